# SPDX-License-Identifier: Apache-2.0
"""Sliding connections: Newton's law by hand, and that the time step does not decide what breaks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mechanics_cases import random_structure

from bricksim_core.mechanics.detector import BreakageDetector, BreakageThresholds
from bricksim_core.mechanics.slip import SlipCriterion, relative_inertia, shared, sides_of
from bricksim_core.mechanics.snapfit import SnapFitConstants, SnapFitModel
from bricksim_core.mechanics.snapfit.joints import joints_of
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout

STRENGTH = 8 * (1 + math.sqrt(2)) * 0.7
"""Pull-off of a 4x2 on a 4x2 [N]."""
MASS = 0.00216
ENGAGEMENT = 0.0017
READY = BreakageThresholds(cooldown=0.0)


def pair() -> tuple[ComponentLayout, np.ndarray]:
    """Two floating 4x2 bricks, one on the other."""
    graph = BrickTopologyGraph()
    lower, upper = graph.add_part(BrickShape(4, 2)), graph.add_part(BrickShape(4, 2))
    graph.connect(lower, upper, (0, 0), 0)
    return graph.layout(graph.component_of(lower)), np.zeros(2, dtype=bool)


def apart(force: float) -> np.ndarray:
    """(2, 6) loads that pull the pair apart."""
    loads = np.zeros((2, 6))
    loads[:, 2] = -force, force
    return loads


def pulled(force: float, dt: float, impact: float = 1.0, seconds: float = 1.0):
    """When (real time) a pair under a constant pull is broken, None if not."""
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(), READY)
    for step in range(1, 1 + round(seconds / dt)):
        if detector.examine(0, layout, anchored, apart(force), dt, impact).broken:
            return step * dt / impact
    return None


@pytest.mark.parametrize("over", [1.05, 1.5, 4.0])
def test_a_steady_overload_takes_the_time_of_newton(over):
    """Two bricks under F against friction S: the gap opens with (F - S) (1/m + 1/m)."""
    excess = (over - 1.0) * STRENGTH
    time = math.sqrt(2.0 * ENGAGEMENT / (excess * 2.0 / MASS))
    dt = time / 200.0
    assert pulled(over * STRENGTH, dt) == pytest.approx(time, abs=1.01 * dt)


def test_what_is_carried_never_slides():
    assert pulled(0.999 * STRENGTH, 1e-3, seconds=0.05) is None


def test_friction_is_that_of_the_model():
    """Half the preload: under F the gap opens with (F - S / 2) (1/m + 1/m)."""
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(SnapFitConstants(preload=1.75)), READY)
    time = math.sqrt(2.0 * ENGAGEMENT / (0.4 * STRENGTH * 2.0 / MASS))
    dt, steps = time / 200.0, 0
    while not detector.examine(0, layout, anchored, apart(0.9 * STRENGTH), dt).broken:
        steps += 1
        assert steps < 300
    assert steps == pytest.approx(200, abs=2)


@pytest.mark.parametrize("impact", [1.0, 5.0, 40.0])
def test_impact_factor_trades_force_for_time(impact):
    """The same impulse: force up, time down."""
    real = pulled(20.0 * STRENGTH, 1e-6)
    assert real is not None
    assert pulled(20.0 * STRENGTH / impact, 1e-6 * impact, impact) == pytest.approx(real)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 120, 1 / 240, 1 / 480])
@pytest.mark.parametrize("energy", [0.6, 1.5])
def test_a_short_impulse_breaks_if_it_brings_the_work_of_friction(dt, energy):
    """Impulse J gives J^2 / (2 m) to the reduced mass m / 2; friction takes S times the slip.

    The engine spreads the impulse over 1/30 s whatever its step; then nothing acts.
    """
    work = energy * STRENGTH * ENGAGEMENT
    impulse = math.sqrt(2.0 * (MASS / 2.0) * work)
    layout, anchored = pair()
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    steps, spread = round(1 / 30 / dt), 1 / 30
    broken = ()
    for _ in range(steps):
        # The force peaks at 1e5 N in reality: an ideal impulse.
        factor = 1e5 / (impulse / spread)
        found = detector.examine(0, layout, anchored, apart(impulse / spread), dt, factor)
        broken += found.broken
    for _ in range(round(0.1 / dt)):
        broken += detector.examine(0, layout, anchored, apart(0.0), dt).broken
    assert bool(broken) == (energy > 1.0)
    if not broken:
        connection = int(layout.connection_ids[0])
        assert criterion.slip(connection) == pytest.approx(energy * ENGAGEMENT, rel=0.01)


def test_slip_adds_up_over_impacts_and_is_forgotten_with_the_connection():
    layout, anchored = pair()
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    connection = int(layout.connection_ids[0])
    slips = []
    for _ in range(2):
        detector.examine(0, layout, anchored, apart(3 * STRENGTH), 1e-4)
        detector.examine(0, layout, anchored, apart(0.0), 1.0)
        slips.append(criterion.slip(connection))
    assert slips[1] == pytest.approx(2 * slips[0]) and slips[0] > 0.0
    criterion.forget((connection,))
    assert criterion.slip(connection) == 0.0


def test_snapshot_keeps_slip():
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(), READY)
    for _ in range(3):
        detector.examine(0, layout, anchored, apart(2 * STRENGTH), 1e-4)
    snapshot = detector.snapshot()
    connection = int(layout.connection_ids[0])
    assert isinstance(detector.criterion, SlipCriterion)
    before = detector.criterion.slip(connection)
    detector.examine(0, layout, anchored, apart(2 * STRENGTH), 1e-4)
    assert detector.criterion.slip(connection) > before
    detector.restore(snapshot)
    assert detector.criterion.slip(connection) == before


@pytest.mark.parametrize("force", [0.9, 1.1])
def test_no_engagement_breaks_at_once(force):
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(), BreakageThresholds(cooldown=0.0, engagement=0.0))
    finding = detector.examine(0, layout, anchored, apart(force * STRENGTH), 1e-6)
    assert bool(finding.broken) == (force > 1.0)


def test_a_failed_connection_breaks_although_the_overload_is_over():
    """It has slid out by its momentum."""
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(), READY)
    first = detector.examine(0, layout, anchored, apart(30 * STRENGTH), 6e-5)
    assert not first.broken
    later = detector.examine(0, layout, anchored, apart(0.0), 1.0)
    assert later.broken == (int(layout.connection_ids[0]),)


def test_relative_inertia_is_that_of_two_free_bodies():
    """Energy of relative motion at zero momentum, against a direct minimisation."""
    graph = random_structure(np.random.default_rng(8), 6)
    (component,) = graph.component_ids
    layout = graph.layout(component)
    free = np.zeros(len(layout.part_ids), dtype=bool)
    joints = joints_of(layout, SnapFitConstants())
    found = 0
    for connection in range(len(joints)):
        side = sides_of(layout, free, np.array([connection]))
        ends = (int(side[joints.lower[connection]]), int(side[joints.upper[connection]]))
        if ends[0] == ends[1]:
            continue
        found += 1
        point = joints.centre[connection]
        matrix = relative_inertia(layout, free, side, ends, point)
        twist = np.random.default_rng(connection).normal(size=6)
        inertias = []
        for end in ends:
            total = np.zeros((6, 6))
            for part in np.flatnonzero(side == end):
                arm = layout.coms[part] - point
                cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
                motion = np.block([[np.eye(3), -cross], [np.zeros((3, 3)), np.eye(3)]])
                own = np.zeros((6, 6))
                own[:3, :3] = layout.masses[part] * np.eye(3)
                own[3:, 3:] = layout.inertias[part]
                total += motion.T @ own @ motion
            inertias.append(total)
        a, b = inertias
        # Bodies move by x and x + twist; x is such that the energy is least.
        x = -np.linalg.solve(a + b, b @ twist)
        energy = 0.5 * x @ a @ x + 0.5 * (x + twist) @ b @ (x + twist)
        assert 0.5 * twist @ matrix @ twist == pytest.approx(energy, rel=1e-9)
    assert found >= 3


def test_a_fixed_side_does_not_move():
    layout, _ = pair()
    side = sides_of(layout, np.array([True, False]), np.array([0]))
    matrix = relative_inertia(
        layout, np.array([True, False]), side, (int(side[0]), int(side[1])), layout.coms[1]
    )
    assert matrix[:3, :3] == pytest.approx(MASS * np.eye(3))
    assert matrix[3:, 3:] == pytest.approx(layout.inertias[1])


def test_a_cut_shares_its_load_like_the_whole_model():
    """A beam on two posts: the cut through both joints against the solution of the component."""
    graph = BrickTopologyGraph()
    plate = graph.add_part(BrickShape(8, 2, 1))
    posts = [graph.add_part(BrickShape(2, 2)) for _ in range(2)]
    beam = graph.add_part(BrickShape(8, 2))
    graph.connect(plate, posts[0], (0, 0), 0)
    graph.connect(plate, posts[1], (6, 0), 0)
    graph.connect(posts[0], beam, (0, 0), 0)
    (component,) = graph.component_ids
    layout = graph.layout(component)
    anchored = layout.part_ids != beam
    loads = np.zeros((4, 6))
    loads[beam] = [0.3, 0.0, 15.0, 0.01, 0.03, 0.0]
    solution = SnapFitModel().system(layout, anchored).solve(loads)
    joints = joints_of(layout, SnapFitConstants())
    cut = np.flatnonzero(layout.hole_index == beam)
    crossing = joints.take(cut)
    total = np.zeros((2, 6))
    total[0] = -loads[beam]  # all of it in the first joint, about the beam's COM
    total[0] *= -1.0
    arm = layout.coms[beam] - crossing.centre[0]
    total[0, 3:] += np.cross(arm, total[0, :3])
    wrench = shared(crossing, np.array([True, True]), total, SnapFitConstants())
    assert crossing.utilization(wrench) == pytest.approx(solution.utilization[cut], rel=1e-6)
    assert crossing.utilization(wrench).max() > 1.0
