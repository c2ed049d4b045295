# SPDX-License-Identifier: Apache-2.0
"""Sliding connections: Newton's law by hand, and that the time step does not decide what breaks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mechanics_cases import random_structure, weights
from snapfit_truth import PointForces

from bricksim_core.mechanics import slip
from bricksim_core.mechanics.courses import Course
from bricksim_core.mechanics.detector import BreakageDetector, BreakageThresholds
from bricksim_core.mechanics.geometry import face_contacts
from bricksim_core.mechanics.portions import at_once
from bricksim_core.mechanics.pulses import impact_bounds
from bricksim_core.mechanics.sliding import Parts, bodies_between, moving
from bricksim_core.mechanics.slip import SlipCriterion, _Loose
from bricksim_core.mechanics.snapfit import SnapFitConstants, SnapFitModel
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.joints import joints_of
from bricksim_core.mechanics.snapfit.pushes import pushes_of
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


def pulled(force: float, dt: float, seconds: float = 1.0):
    """When a pair under a constant pull is broken, None if not."""
    layout, anchored = pair()
    detector = BreakageDetector(SnapFitModel(), READY)
    for step in range(1, 1 + round(seconds / dt)):
        if detector.examine(0, layout, anchored, apart(force), dt).broken:
            return step * dt
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


def test_distances_are_those_of_the_slips_whatever_changed_them():
    graph = BrickTopologyGraph()
    low, middle, top = (graph.add_part(BrickShape(4, 2)) for _ in range(3))
    (first,) = graph.connect(low, middle, (0, 0), 0).connections
    (second,) = graph.connect(middle, top, (0, 0), 0).connections
    layout = graph.layout(graph.component_of(low))
    criterion = SlipCriterion()
    criterion.restore(({first.id: 1e-4, second.id: 2e-4}, ()))
    before = criterion.snapshot()
    assert criterion._distances(layout).tolist() == [1e-4, 2e-4]
    criterion.forget((first.id,))
    assert criterion._distances(layout).tolist() == [0.0, 2e-4]
    criterion.restore(before)
    assert criterion._distances(layout).tolist() == [1e-4, 2e-4]


def slid(force: float, time: float, impact: float, dt: float) -> tuple[float, bool]:
    """Slip of a pair by a pull that then ends [m], and whether that broke it."""
    layout, anchored = pair()
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    (connection,) = layout.connection_ids.tolist()
    broken = detector.examine(0, layout, anchored, apart(force), time, impact).broken
    for _ in range(round(0.1 / dt)):
        broken += detector.examine(0, layout, anchored, apart(0.0), dt).broken
    return criterion.slip(connection), bool(broken)


def column(count: int) -> tuple[BrickTopologyGraph, list[int]]:
    """4x2 bricks in a column, and their ids from below."""
    graph = BrickTopologyGraph()
    ids = [graph.add_part(BrickShape(4, 2)) for _ in range(count)]
    for lower, upper in itertools.pairwise(ids):
        graph.connect(lower, upper, (0, 0), 0)
    return graph, ids


@pytest.mark.parametrize("dt", [1 / 60, 1 / 480])
def test_what_comes_off_drags_the_rest_only_until_then(dt):
    """A held brick and two on it, pulled with S / 2 in the middle and 10 S at the top: the joints
    open with S / (2 m) and 8.5 S / m. When the upper one is open, after a time t, the lower one has
    slid by 1/17 of the engagement, and friction stops it within half of that."""
    graph, (low, middle, top) = column(3)
    layout, held = graph.layout(graph.component_of(low)), np.array([True, False, False])
    foot, joint = layout.connection_ids.tolist()
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    loads = np.zeros((3, 6))
    loads[1:, 2] = 0.5 * STRENGTH, 10.0 * STRENGTH
    broken = ()
    while not broken:
        broken = detector.examine(0, layout, held, loads, dt).broken
    assert broken == (joint,)
    assert criterion.slip(foot) == pytest.approx(ENGAGEMENT / 17.0, rel=0.01)
    graph.disconnect(broken)
    piece = graph.layout(graph.component_of(middle))
    detector.follow({0: (piece, held[:2], 0)})
    for _ in range(6):
        assert detector.examine(0, piece, held[:2], np.zeros((2, 6)), dt).broken == ()
    assert criterion.slip(foot) == pytest.approx(1.5 * ENGAGEMENT / 17.0, rel=0.01)
    assert not criterion.twists(piece).any()
    # The top is put back: it comes without the motion with which it left.
    graph.connect(middle, top, (0, 0), 0)
    whole = graph.layout(graph.component_of(low))
    detector.follow({0: (whole, held, 0)})
    for _ in range(6):
        assert detector.examine(0, whole, held, np.zeros((3, 6)), dt).broken == ()
    assert not criterion.twists(whole).any()


@pytest.mark.parametrize("impact", [5.0, 40.0])
def test_impact_factor_trades_force_for_time(impact):
    """The same impulse: force up, time down; in what that leaves of the time it slides on."""
    force = 20.0 * STRENGTH
    time = math.sqrt(0.5 * MASS * STRENGTH * ENGAGEMENT) / force
    real, broken = slid(force, time, 1.0, 1 / 60)
    assert real == pytest.approx(0.5 * ENGAGEMENT, rel=0.1) and not broken
    assert slid(force / impact, time * impact, impact, 1 / 60)[0] == pytest.approx(real, rel=1e-3)


@pytest.mark.parametrize("spread", [1 / 30, 1 / 480])
@pytest.mark.parametrize("dt", [1 / 60, 1 / 480])
@pytest.mark.parametrize("energy", [0.6, 1.5])
def test_a_short_impulse_breaks_if_it_brings_the_work_of_friction(spread, dt, energy):
    """Impulse J gives J^2 / (2 m) to the reduced mass m / 2; friction takes S times the slip,
    however long the engine took over the impulse."""
    work = energy * STRENGTH * ENGAGEMENT
    impulse = math.sqrt(2.0 * (MASS / 2.0) * work)
    # The force is 1e5 N in reality: an ideal impulse.
    factor = 1e5 / (impulse / spread)
    slip, broken = slid(impulse / spread, spread, factor, dt)
    assert broken == (energy > 1.0)
    if not broken:
        assert slip == pytest.approx(energy * ENGAGEMENT, rel=0.01)


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_sliding_takes_no_more_energy_than_the_impact_had(speed):
    """A pair stops from a speed, and what it hits pushes one brick away from the other with much
    more than both bricks' momentum: sliding and friction get what the motion had, not more."""
    layout, anchored = pair()
    energy = 0.5 * 2.0 * MASS * speed**2
    loads = apart(20.0 * MASS * speed / 1e-4)

    def hit(change):
        criterion = SlipCriterion()
        detector = BreakageDetector(SnapFitModel(), READY, criterion)
        detector.examine(0, layout, anchored, loads, 1e-4, 1.001, change)
        twists = criterion.twists(layout)[:, :3]
        work = STRENGTH * criterion.slip(int(layout.connection_ids[0]))
        return np.linalg.norm(twists, axis=1).max(), 0.5 * MASS * (twists**2).sum() + work

    fastest, taken = hit(np.array([0.0, 0.0, speed, 0.0, 0.0, 0.0]))
    assert 0.0 < fastest <= 1.02 * speed
    assert 0.95 * energy < taken < 1.05 * energy  # speeds to a fiftieth
    assert hit(None)[1] > 10.0 * energy


def test_what_breaks_is_kept_in_mind_until_it_has_been_broken():
    """The result of an examination may come frames later, or too late, after a change."""
    layout, anchored = pair()
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    connection = int(layout.connection_ids[0])
    portions = detector.examination(0, layout, anchored, apart(30 * STRENGTH), 1e-2, 1.0, None)
    slips = [criterion.slip(connection) for _ in portions]
    assert len(slips) >= 3 and set(slips[:-1]) == {0.0}
    assert slips[-1] == criterion.slip(connection) == pytest.approx(ENGAGEMENT)
    assert detector.examine(0, layout, anchored, apart(0.0), 1e-2).broken == (connection,)
    assert criterion.slip(connection) == 0.0


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


def stack(count: int) -> tuple[ComponentLayout, np.ndarray]:
    """Floating 4x2 bricks on each other."""
    graph = BrickTopologyGraph()
    parts = [graph.add_part(BrickShape(4, 2)) for _ in range(count)]
    for lower, upper in itertools.pairwise(parts):
        graph.connect(lower, upper, (0, 0), 0)
    return graph.layout(graph.component_of(parts[0])), np.zeros(count, dtype=bool)


def slipped(layout, anchored, loads, dt, steps=1):
    """(C,) slips [m] after steps under the same loads each."""
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    for _ in range(steps):
        assert detector.examine(0, layout, anchored, loads, dt).message == ""
    return np.array([criterion.slip(i) for i in layout.connection_ids.tolist()])


@pytest.mark.parametrize("steps", [1, 7])
def test_a_stack_of_three_pulled_at_its_ends_slides_at_both_joints(steps):
    """Each joint gives S: the middle brick stays, the others go with (F - S) / m."""
    layout, free = stack(3)
    loads = np.zeros((3, 6))
    loads[:, 2] = [-1.5 * STRENGTH, 0.0, 1.5 * STRENGTH]
    time = 4e-4
    slips = slipped(layout, free, loads, time / steps, steps)
    assert slips == pytest.approx(0.5 * (0.5 * STRENGTH / MASS) * time**2, rel=1e-5)


def test_in_a_chain_with_equal_joints_the_pulled_end_comes_off():
    """Below the joint that slides nothing is loaded by more than that gives."""
    layout, _ = stack(4)
    held = np.array([True, False, False, False])
    loads = np.zeros((4, 6))
    loads[3, 2] = 1.3 * STRENGTH
    slips = slipped(layout, held, loads, 3e-4)
    assert slips[2] == pytest.approx(0.5 * (0.3 * STRENGTH / MASS) * 3e-4**2, rel=1e-4)
    assert slips[:2].max() == 0.0


def test_joints_slide_and_stop_each_in_its_own_time():
    """The ends of a stack of three are hit with different impulses: they stop after v m / S."""
    layout, free = stack(3)
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    brief, speeds = 1e-7, np.array([0.6, 0.9])
    loads = np.zeros((3, 6))
    loads[0, 2] = -speeds[0] * MASS / brief
    loads[2, 2] = speeds[1] * MASS / brief
    # A free component: what moves it as a whole does not open joints, nor does it close them.
    detector.examine(0, layout, free, loads, brief)
    detector.examine(0, layout, free, np.zeros((3, 6)), 1.0 / 60.0)
    found = [criterion.slip(i) for i in layout.connection_ids.tolist()]
    # Both brake until the slower one has stopped; then it moves with the middle brick, which the
    # faster one pulls along: (m + m) and m against each other with S.
    deceleration = STRENGTH / MASS
    stop = speeds[0] / deceleration
    left = speeds[1] - speeds[0]
    last = 0.5 * left**2 / (1.5 * deceleration)
    want = [0.5 * speeds[0] * stop, (speeds[1] - 0.5 * speeds[0]) * stop + last]
    assert found == pytest.approx(want, rel=2e-3)


def test_what_a_break_leaves_slides_by_its_own_motion_alone():
    """The ends of a stack of three are hit, the upper one comes off: the others brake against each
    other with S from the speed between them, whatever both got of the motion of the whole."""
    graph = BrickTopologyGraph()
    parts = [graph.add_part(BrickShape(4, 2)) for _ in range(3)]
    joined = (graph.connect(a, b, (0, 0), 0) for a, b in itertools.pairwise(parts))
    kept, lost = (one.connections[0].id for one in joined)
    criterion = SlipCriterion()
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    brief, speed = 1e-7, 0.6
    loads = np.zeros((3, 6))
    loads[[0, 2], 2] = np.array([-speed, 5.0 * speed]) * MASS / brief
    detector.examine(0, graph.layout(graph.component_of(parts[0])), np.zeros(3, bool), loads, brief)
    graph.disconnect([lost])
    pair = graph.layout(graph.component_of(parts[0]))
    detector.examine(0, pair, np.zeros(2, bool), np.zeros((2, 6)), 1.0 / 60.0)
    work = 0.5 * (0.5 * MASS) * speed**2
    assert criterion.slip(kept) == pytest.approx(work / STRENGTH, rel=2e-3)


def loaded(rng: np.random.Generator):
    """A random structure on a held plate, loads on it, and the multiple of these that it bears."""
    while True:
        graph = random_structure(rng, int(rng.integers(3, 14)))
        (component,) = graph.component_ids
        layout = graph.layout(component)
        held = layout.part_ids == 0
        loads = weights(layout)
        for part in rng.integers(1, len(loads), 2):
            loads[part] += rng.normal(size=6) * [1, 1, 1, 0.01, 0.01, 0.01]
        factor = SnapFitModel().system(layout, held).safety_factor(loads).factor
        if 0.01 < factor < 1e4:
            return layout, held, loads, factor


@pytest.mark.parametrize("seed", range(25))
def test_what_limit_analysis_says_slides(seed):
    """Random structures under random loads, below and above their safety factor."""
    layout, held, loads, factor = loaded(np.random.default_rng(seed))
    detector = BreakageDetector(SnapFitModel(), READY)
    for _ in range(3):
        assert not detector.examine(0, layout, held, 0.98 * factor * loads, 1.0).broken
    for dt in (1 / 60, 1 / 480):
        detector = BreakageDetector(SnapFitModel(), READY)
        broken = ()
        for _ in range(round(0.5 / dt)):
            broken = detector.examine(0, layout, held, 1.3 * factor * loads, dt).broken
            if broken:
                break
        assert broken


@pytest.mark.parametrize("seed", range(100, 125))
def test_accelerations_against_clarabel_with_point_forces(seed):
    """The first step from rest, with joints that may slide found by the criterion itself."""
    layout, held, loads, factor = loaded(np.random.default_rng(seed))
    loads *= np.random.default_rng(seed).uniform(1.05, 4.0) * factor
    masses = np.zeros((len(loads), 6, 6))
    for mass, own, inertia in zip(masses, layout.masses, layout.inertias, strict=True):
        mass[:3, :3], mass[3:, 3:] = own * np.eye(3), inertia
    left = PointForces(layout, held).unbalanced(loads, masses)
    want = np.linalg.solve(masses, left[:, :, None])[:, :, 0]
    criterion = SlipCriterion()
    dt = 1e-2
    whole = BreakageThresholds(cooldown=0.0, engagement=1e9)
    BreakageDetector(SnapFitModel(), whole, criterion).examine(0, layout, held, loads, dt)
    found = criterion.twists(layout) / dt
    assert found == pytest.approx(want, rel=1e-4, abs=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("seed", range(200, 210))
def test_a_pulse_gives_the_same_slip_whatever_the_step(seed):
    """1/120 s of overload, then its own weight: in steps of 1/120 to 1/480 s."""
    layout, held, loads, factor = loaded(np.random.default_rng(seed))
    quiet = 0.5 * factor * loads
    slips = []
    for steps in (1, 2, 4):
        criterion = SlipCriterion()
        dt = 1.0 / 120.0 / steps
        detector = BreakageDetector(
            SnapFitModel(), BreakageThresholds(cooldown=0.0, engagement=1e3), criterion
        )
        for load, count in ((1.4 * factor * loads, steps), (quiet, 12 * steps)):
            for _ in range(count):
                detector.examine(0, layout, held, load, dt)
        slips.append([criterion.slip(i) for i in layout.connection_ids.tolist()])
    greatest = max(slips[0])
    assert greatest > 0.0
    assert slips[1] == pytest.approx(slips[0], abs=0.02 * greatest)
    assert slips[2] == pytest.approx(slips[0], abs=0.02 * greatest)


def wall(length: int, layers: int) -> tuple[ComponentLayout, np.ndarray, int]:
    """A running-bond wall two studs thick, its lowest layer held; id of an end part of its top."""
    graph = BrickTopologyGraph()
    below: list[tuple[int, int, int]] = []
    held: list[int] = []
    for layer in range(layers):
        starts = [0, *range(2, length, 4)] if layer % 2 else list(range(0, length, 4))
        ends = [*starts[1:], length]
        row = [
            (a, b, graph.add_part(BrickShape(b - a, 2))) for a, b in zip(starts, ends, strict=True)
        ]
        for a, b, part in row:
            # A connection to one of those below makes those to all others.
            for c, other in [(c, other) for c, d, other in below if a < d and c < b][:1]:
                graph.connect(other, part, (a - c, 0), 0)
        held = held or [part for _, _, part in row]
        below = row
    layout = graph.layout(graph.component_of(below[0][2]))
    return layout, np.isin(layout.part_ids, held), below[1][2]


@pytest.mark.parametrize("dt", [1 / 60, 1 / 480])
def test_a_wall_pushed_across_at_its_top_breaks_above_its_limit(dt):
    """It fails by many joints at once, none of which is a cut that could not hold alone."""
    layout, held, part = wall(12, 6)
    dead, push = weights(layout), np.zeros((len(held), 6))
    push[layout.part_ids == part, 1] = 1.0
    system = SnapFitModel().system(layout, held)
    low, high = 0.0, 50.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        fits = system.solve(dead + middle * push).utilization.max() <= 1.0 + 1e-6
        low, high = (middle, high) if fits else (low, middle)
    for share in (0.95, 1.05, 1.2):
        detector = BreakageDetector(SnapFitModel(), READY)
        loads = dead + share * low * push
        steps, broken = 0, ()
        while not broken and steps < round(0.1 / dt):
            broken = detector.examine(0, layout, held, loads, dt).broken
            steps += 1
        assert bool(broken) == (share > 1.0)


@pytest.mark.parametrize("length, layers", [(12, 6), (12, 12)])
def test_a_wall_pulled_ever_more_slowly_breaks_at_its_limit(length, layers):
    """Overloaded it takes time to come apart, in which a fast pull grows."""
    layout, held, part = wall(length, layers)
    dead, push = weights(layout), np.zeros((len(held), 6))
    push[layout.part_ids == part, 1] = 1.0
    system = SnapFitModel().system(layout, held)
    low, high = 0.0, 50.0
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        fits = system.safety_factor(dead + middle * push).factor >= 1.0
        low, high = (middle, high) if fits else (low, middle)
    excess = []
    for rate in (1.0, 0.2, 0.05):  # of the limit in a second
        detector, share = BreakageDetector(SnapFitModel(), READY), 0.95
        while not detector.examine(0, layout, held, dead + share * low * push, 1 / 60).broken:
            share += rate / 60
            assert share < 2.0
        excess.append(share - 1.0)
    assert 0.5 > excess[0] > excess[1] > excess[2] > 0.0
    assert excess[2] < 0.04


def knocked(
    rng: np.random.Generator, bricks: tuple[int, int], knocks: int
) -> tuple[ComponentLayout, np.ndarray, np.ndarray]:
    """A loose random structure of about so many bricks, and so many knocks on parts of it: layout,
    anchored parts (none) and (N, 6) loads."""
    graph = random_structure(rng, int(rng.integers(*bricks)))
    layout = graph.layout(graph.component_ids[0])
    free = np.zeros(len(layout.part_ids), dtype=bool)
    loads = np.zeros((len(free), 6))
    for part in rng.integers(0, len(free), knocks):
        loads[part] += rng.normal(size=6) * [1, 1, 1, 0.01, 0.01, 0.01]
    return layout, free, loads


def hit(seed: int):
    """A loose random structure hit far beyond what it carries, in one pulse: layout, criterion
    after it, the bounds of the impact, unloaded parts and joints."""
    rng = np.random.default_rng(seed)
    layout, free, loads = knocked(rng, (20, 45), 2)
    system = SnapFitModel().system(layout, free)
    loads *= system.safety_factor(loads).factor * rng.uniform(3.0, 100.0)
    change = rng.normal(size=6) * [0.5, 0.5, 0.5, 10.0, 10.0, 10.0]
    criterion, short = SlipCriterion(), 1.001
    detector = BreakageDetector(SnapFitModel(), READY, criterion)
    detector.examine(0, layout, free, loads, 5e-4 * short, short, change)
    parts = Parts.of(layout, free, np.zeros_like(loads))
    bounds = impact_bounds(parts, change)
    assert bounds is not None
    return layout, criterion, bounds, parts, joints_of(layout, SnapFitConstants())


def test_pulses_are_as_hard_as_their_impacts_allow():
    """They make parts as fast, or do as much work, as the impact can, and no more."""
    near = 0
    for seed in range(400, 424):
        layout, criterion, bounds, parts, joints = hit(seed)
        twists = criterion.twists(layout)
        fastest = np.linalg.norm(twists[:, :3], axis=1).max() / bounds.speed
        slips = np.array([criterion.slip(i) for i in layout.connection_ids.tolist()])
        taken = parts.energy(twists * PITCHES) + float(slips @ joints.pull)
        work = taken / bounds.energy
        assert fastest <= 1.101 and work <= 1.101**2
        near += fastest > 0.9 or work > 0.9**2
    assert near >= 20


def test_whether_more_that_slides_makes_a_difference_is_told_rightly():
    """Greater than a given one or not: as the whole motion says."""
    told = {False: 0, True: 0}
    for seed in range(420, 440):
        rng = np.random.default_rng(seed)
        layout, free, loads = knocked(rng, (12, 30), 3)
        loads *= 30.0
        parts, joints = Parts.of(layout, free, loads), joints_of(layout, SnapFitConstants())
        pushes = SnapFitModel().system(layout, free).pushes
        every = np.ones(len(joints), dtype=bool)
        some = rng.random(len(joints)) < 0.4
        few, more = (bodies_between(parts, joints, pushes, loose) for loose in (some, every))
        if few is None or more is None:
            continue
        rest = np.zeros_like(loads)
        course = Course(few, rest, 1e-3, 1.0, False, np.zeros(len(joints)), True)
        outset = at_once(course.begin())
        speed = at_once(more.moved(more.gathered(rest), outset.span)).speed
        energy = parts.energy(more.spread(speed) - outset.soon)
        for factor in (0.9, 1.1, 10.0):
            fresh = bodies_between(parts, joints, pushes, every)
            assert fresh is not None
            differs = at_once(fresh.differs(outset, rest, 1.0, factor * energy))
            assert differs == (factor < 1.0)
            told[differs] += 1
    assert min(told.values()) >= 10


def test_a_motion_far_from_breaking_is_followed_roughly():
    """To a seventh of its greatest slip, with fewer spans."""
    compared = 0
    for seed in range(400, 412):
        layout, criterion, _, parts, joints = hit(seed)
        start = criterion.twists(layout) * PITCHES
        pushes = SnapFitModel().system(layout, parts.anchored).pushes
        bodies = bodies_between(parts, joints, pushes, moving(joints, parts, start))
        if bodies is None or bodies.count < 6:
            continue
        compared += 1
        none = np.zeros(len(joints))
        fine, rough = (
            at_once(Course(bodies, start, 1.0 / 60.0, 1.0, True, spare, True).end()).slip
            for spare in (none, none + 1.0)
        )
        assert rough == pytest.approx(fine, abs=fine.max() / 7.0)
        assert (rough != fine).any()
    assert compared >= 3


def test_pulses_slide_what_would_slide_if_everything_could():
    """Loose random structures hit with 1.05 to 3 times what they can carry, in one step: against
    the same program with every connection free to slide and every part a body."""
    same, pulses = 0, 0
    for seed in range(300, 330):
        rng = np.random.default_rng(seed)
        layout, free, loads = knocked(rng, (12, 30), 2)
        system = SnapFitModel().system(layout, free)
        loads *= system.safety_factor(loads).factor * rng.uniform(1.05, 3.0)
        time, short = 5e-4, 1.0 + 1e-9
        criterion = SlipCriterion()
        detector = BreakageDetector(SnapFitModel(), READY, criterion)
        detector.examine(0, layout, free, loads, time * short, short)
        found = max(criterion.slip(i) for i in layout.connection_ids.tolist())
        parts, joints = Parts.of(layout, free, loads), joints_of(layout, SnapFitConstants())
        bodies = bodies_between(parts, joints, system.pushes, np.ones(len(joints), dtype=bool))
        assert bodies is not None
        want = Course(bodies, np.zeros_like(loads), time, 1.0, False, np.zeros(len(joints)), True)
        want = at_once(want.end()).slip.max()
        assert found == pytest.approx(want, abs=0.02 * ENGAGEMENT)
        same += found == pytest.approx(want, rel=1e-3)
        pulses += 1
    assert same >= 0.75 * pulses


@pytest.mark.parametrize(("most", "sliding"), [(4, 3), (9, 8), (np.inf, 11)])
def test_of_too_many_connections_the_most_loaded_ones_slide(most, sliding):
    """A column of twelve bricks, all of whose connections are overloaded, each by more than the
    next; one that slides already does in any case."""
    layout, anchored = stack(12)
    joints = joints_of(layout, SnapFitConstants())
    parts = Parts.of(layout, anchored, weights(layout))
    pushes = pushes_of(face_contacts(layout), joints.lower, joints.upper, SnapFitConstants())
    utilization = np.linspace(9.0, 2.0, len(joints))
    slides = np.arange(len(joints)) == len(joints) - 1
    loose = _Loose(parts, joints, pushes, utilization, slides, most)
    bodies = loose.at(1.0)
    assert bodies is not None and len(joints) == 11
    want = np.append(np.arange(sliding - 1), 10)
    np.testing.assert_array_equal(bodies.crossing, want)
    # What has to wait is neither tried again nor taken to be sound.
    again = loose.at(1.0)
    assert again is not None and len(again.crossing) == sliding
    assert not loose.sound.any()


def test_all_that_can_slide_does_where_the_answer_is_exact(monkeypatch):
    """A column of 45 bricks, thrown apart by loads that no connection bears."""
    monkeypatch.setattr(slip, "_MOST", 10)
    graph, _ = column(45)
    layout = graph.layout(graph.component_ids[0])
    loads = np.zeros((45, 6))
    loads[:, 2] = 100.0 * np.arange(45)
    slides = []
    for reuse in (0.0, 1e-3):
        limits = BreakageThresholds(impact_time=math.inf, cooldown=0.0, reuse=reuse)
        criterion = SlipCriterion()
        detector = BreakageDetector(SnapFitModel(), limits, criterion)
        detector.examine(0, layout, layout.part_ids == 0, loads, 1e-5)
        slides.append(sum(criterion.slip(c) > 0.0 for c in layout.connection_ids.tolist()))
    assert slides == [44, 9]
