# SPDX-License-Identifier: Apache-2.0
"""Impacts: touch by hand, and drops whose outcome does not hang on the time step."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from mechanics_cases import data_structure
from scipy.spatial.transform import Rotation

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.protocol import Contacts, StepReport
from bricksim_core.events import EventKind
from bricksim_core.experiments.setup import UNHURRIED, rotation_from_degrees, standing
from bricksim_core.mechanics.bodies import Bodies, bodies_of
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.impacts import Span, Touch, rebounding, split_impacts, touch_of
from bricksim_core.mechanics.slip import SlipCriterion
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.topology import BrickTopologyGraph, Structure

AT_ONCE = BreakageThresholds(engagement=0.0, impact_time=math.inf)
"""The original's way: loads as the engine gives them, broken as soon as overloaded."""


# -- touch --------------------------------------------------------------------------------------


def report(twists, contacts: Contacts) -> StepReport:
    count = len(twists)
    poses = np.tile(np.eye(4), (count, 1, 1))
    return StepReport(
        time=0.0,
        dt=0.01,
        component_ids=np.arange(count),
        world_T_component=poses,
        twist=np.zeros((count, 6)),
        previous_world_T_component=poses,
        previous_twist=np.array(twists, dtype=float),
        contacts=contacts,
    )


def touching(pairs, positions, normals, impulses, others=None) -> Contacts:
    """Contacts (part_a, part_b); part_a -1 with others index into ("ground", "arm/finger")."""
    part_a, part_b = np.array(pairs).T
    zeros = np.zeros(len(pairs), dtype=np.int64)
    normals, impulses = np.array(normals, dtype=float), np.array(impulses, dtype=float)
    return Contacts(
        part_a=part_a,
        part_b=part_b,
        shape_a=zeros,
        shape_b=zeros,
        other=np.array(others if others is not None else np.where(part_a < 0, 0, -1)),
        names=("ground", "arm/finger"),
        position=np.array(positions, dtype=float),
        normal=normals,
        normal_impulse=impulses,
        impulse=normals * impulses[:, None],
    )


def two_points() -> Bodies:
    """Parts 7 and 8, taken as points at the origins of their components and as loaded."""
    graph = BrickTopologyGraph()
    parts = [graph.add_part(BrickShape(2, 2), part_id=p) for p in (7, 8)]
    layouts = {graph.component_of(p): graph.layout(graph.component_of(p)) for p in parts}
    return replace(bodies_of(layouts), coms=np.zeros((2, 3)), loaded=np.arange(2))


BODIES = two_points()
UP = [0.0, 0.0, 1.0]


def speeds_of(twists, contacts: Contacts) -> np.ndarray:
    return touch_of(steps_of([report(twists, contacts)]), BODIES).speed


def test_falling_onto_the_ground_closes_at_its_speed():
    contacts = touching([(-1, 7)], [[0, 0, 0]], [UP], [1.0])
    (speeds,) = speeds_of([[0, 0, -1.5, 0, 0, 0], [0] * 6], contacts)
    assert speeds == pytest.approx([1.5, 0.0])


def test_rotation_counts_at_the_contact_point():
    contacts = touching([(-1, 7)], [[0.2, 0, 0]], [UP], [1.0])
    turning = [0, 0, 0, 0, 3.0, 0]  # about y: the point at +x goes down with 0.6 m/s
    assert speeds_of([turning, [0] * 6], contacts)[0] == pytest.approx([0.6, 0])


def test_two_bodies_close_at_their_relative_speed():
    contacts = touching([(7, 8)], [[0, 0, 0]], [[1.0, 0, 0]], [1.0])
    twists = [[0.5, 0, 0, 0, 0, 0], [-0.25, 0, 0, 0, 0, 0]]
    assert speeds_of(twists, contacts)[0] == pytest.approx([0.75, 0.75])


def test_impulses_weigh_and_robots_do_not_count():
    falling = [[0, 0, -1.0, 0, 1.0, 0], [0] * 6]
    points = [[0, 0, 0], [1.0, 0, 0]]  # closing at 1 and 2 m/s
    contacts = touching([(-1, 7), (-1, 7)], points, [UP, UP], [3.0, 1.0])
    assert speeds_of(falling, contacts)[0, 0] == pytest.approx(1.25)
    held = touching([(-1, 7), (-1, 7)], points, [UP, UP], [3.0, 1.0], others=[0, 1])
    assert speeds_of(falling, held)[0, 0] == pytest.approx(1.0)


def test_every_step_has_its_own_speeds():
    contacts = touching([(-1, 7)], [[0, 0, 0]], [UP], [1.0])
    none = touching(np.zeros((0, 2), dtype=int), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))
    fast, slow = [[0, 0, -1.5, 0, 0, 0], [0] * 6], [[0, 0, -0.5, 0, 0, 0], [0] * 6]
    reports = [report(fast, contacts), report(fast, none), report(slow, contacts)]
    assert touch_of(steps_of(reports), BODIES).speed[:, 0] == pytest.approx([1.5, 0.0, 0.5])


def test_forces_are_sums_but_where_a_robot_presses():
    points, pairs = [[0, 0, 0], [1.0, 0, 0], [0, 0, 0]], [(-1, 7), (-1, 7), (7, 8)]
    contacts = touching(pairs, points, [UP] * 3, [3.0, 1.0, 0.5])
    (forces,) = touch_of(steps_of([report(np.zeros((2, 6)), contacts)]), BODIES).force
    assert forces == pytest.approx([450.0, 50.0])  # in steps of 0.01 s
    held = touching(pairs, points, [UP] * 3, [3.0, 1.0, 0.5], others=[0, 1, -1])
    (forces,) = touch_of(steps_of([report(np.zeros((2, 6)), held)]), BODIES).force
    assert forces == pytest.approx([0.0, 50.0])


def test_a_rebound_presses_more_than_the_weight_and_ever_less():
    force = np.array([[9.0, 7.0, 7.0, 3.0, 1.9, 0.0]]).T
    speed = np.array([[1.0, 0.05, 0.0, -0.2, -0.3, 0.0]]).T
    for before, weight, told in ((0.0, 1.0, ".r.r.."), (0.0, 4.0, "......"), (9.5, 0.5, ".r.rr.")):
        found = rebounding(Touch(speed, force), np.array([before]), np.array([weight]))
        assert "".join("r" if r else "." for r in found[:, 0]) == told


@pytest.mark.parametrize(
    "steps, before, spans",
    [
        ("....", "", []),
        ("....", "hh", [Span([], True)]),
        (".hh.", "", [Span([1, 2], True)]),
        ("h..h", "h", [Span([0], True), Span([3], False)]),
        ("hhhh", "", [Span([0, 1, 2], True), Span([3], False)]),
        ("hhhh", "hh", [Span([0], True), Span([1, 2, 3], True)]),
        ("hr.r", "", [Span([0, 1], True)]),
        ("rr..", "h", [Span([0, 1], True)]),
        ("rrrh", "h", [Span([0, 1], True), Span([3], False)]),
        ("hrhr", "", [Span([0, 1], True), Span([2, 3], False)]),
        ("h...", "hr", [Span([], True), Span([0], True)]),
        ("r...", "", []),
    ],
)
def test_impacts_end_with_the_rebound_or_at_the_next_hit_or_after_three_steps(steps, before, spans):
    hits, rebounds = (np.array([step == which for step in steps]) for which in "hr")
    off = before.endswith("r")
    assert split_impacts(hits, rebounds, np.ones(4), len(before), off, 3) == spans


def test_parts_of_steps_count_as_long_as_they_are():
    hits, lengths = np.array([True] * 6), np.array([1.0, 0.25, 0.25, 0.25, 0.25, 1.0])
    spans = split_impacts(hits, ~hits, lengths, 0.5, False, 2)
    assert spans == [Span([0, 1, 2], True), Span([3, 4, 5], False)]


# -- with the engine ----------------------------------------------------------------------------


def drop(structure: Structure, euler, **way):
    """Pieces, broken connections and utilization of `dropped`."""
    return dropped(structure, euler, **way)[:3]


def empty(rate=60.0, substeps=4, constant=1 / 120, breakage=None) -> Simulator:
    """A simulator with nothing in it: frames a second, steps a frame, time constant of contacts."""
    limits = breakage or UNHURRIED.breakage
    config = SimulatorConfig(frame_rate=rate, substeps=substeps, breakage=limits)
    contact = ContactParameters(time_constant=constant)
    engine = MujocoEngine(config.timestep, config.gravity, config.ground, contact)
    return Simulator(engine, config)


def dropped(structure: Structure, euler, *, rate=60.0, **way):
    """Drops a structure from 144 mm.

    Returns:
        Sizes of the pieces and ids of the broken connections after 0.25 s (the first impact), the
        highest utilization seen, and the greatest slip [m] in what holds at the end.
    """
    simulator = empty(rate, **way)
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("xyz", euler, degrees=True).as_matrix()
    poses = structure.part_poses()
    shapes = {p: structure.graph.part(p).shape for p in poses}
    corners = np.array(
        [
            (pose @ world_T_part @ [*(0.5 * np.array(shapes[p].size) * [x, y, 0]), 1.0])[:3]
            + z * shapes[p].size[2] * (pose @ world_T_part)[:3, 2]
            for p, world_T_part in poses.items()
            for x in (-1, 1)
            for y in (-1, 1)
            for z in (0, 1)
        ]
    )
    pose[2, 3] = 0.144 + 0.002 - corners[:, 2].min()
    simulator.spawn(structure, pose, fixed=())
    highest, broken = 0.0, []
    for _ in range(round(0.25 * rate)):
        result = simulator.step()
        ended = [e for e in result.events if e.kind is EventKind.BROKEN]
        broken += [e.connection.id for e in ended]
        known = result.utilization[np.isfinite(result.utilization)]
        highest = max([highest, *known, *(e.utilization for e in ended)])
    graph = simulator.graph
    pieces = sorted(len(graph.component_parts(c)) for c in graph.component_ids)
    criterion = simulator._watch.detector.criterion
    assert isinstance(criterion, SlipCriterion)
    slip = max(criterion.slip(connection) for connection in graph.connections)
    return pieces, broken, highest, slip


@pytest.fixture(scope="module")
def guitar() -> Structure:
    return data_structure("brickgpt/texture_guitar.txt", baseplate=None)


WAYS = [
    {"rate": 60.0},
    {"rate": 120.0},
    {"rate": 240.0},
    {"rate": 480.0},
    {"rate": 60.0, "substeps": 32, "constant": 1 / 960},
]
"""Frames from 1/60 to 1/480 s; and contacts with an eighth of the time constant."""


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_guitar_on_its_side_splits_at_the_neck(guitar, way):
    """In two, by what bends the neck. It does so at more than one joint, one after the other; which
    of them comes out first is a close call."""
    pieces, broken, highest = drop(guitar, [0, 90, 0], **way)
    assert len(pieces) == 2 and min(pieces) >= 10
    poses = guitar.part_poses()
    for connection in broken:
        stud = poses[guitar.graph.connection(connection).stud_part]
        assert 4 <= round(stud[2, 3] / 0.0096) <= 9  # layers where the neck begins
    assert highest > 1.0


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "euler",
    [[0, 0, 0], [180, 0, 0], [90, 0, 0], [45, 30, 0]],
    ids=["upright", "upside down", "on its back", "on a corner"],
)
def test_guitar_on_its_ends_its_back_and_a_corner_holds(guitar, euler, way):
    pieces, broken, _ = drop(guitar, euler, **way)
    assert pieces == [28] and broken == []


@pytest.mark.parametrize("way", [WAYS[0], WAYS[1], WAYS[4]], ids=str)
def test_table_on_its_feet_loses_one_end(way):
    """What its feet hand on passes through joints that are hardly loaded while nothing slides."""
    table = data_structure("brickgpt/demo_table.txt", baseplate=None)
    assert drop(table, [0, 0, 0], **way)[0] == [10, 49]


def test_the_neck_slips_alike_for_all_steps_and_contacts(guitar):
    """It is struck at the body and 10 ms later at its end, which bends it the other way."""
    slips = []
    for way in WAYS:
        slides = BreakageThresholds(engagement=1.0)  # nothing breaks: the whole slip is seen
        pieces, _, _, slip = dropped(guitar, [0, 90, 0], **way, breakage=slides)
        assert pieces == [28]
        slips.append(slip)
    assert min(slips) > 2e-3
    assert max(slips) < 1.15 * min(slips)


@pytest.mark.parametrize("euler", [[45, 30, 0], [30, 30, 0]])
def test_a_tumble_after_a_hit_is_the_same_for_all_steps(guitar, euler):
    """Spins after the first hit, at eight times of the hit within a step of 1/240 s: they were off
    by a tenth on average while the engine took steps whole and contacts at their stiffness."""

    def spins(rate: float) -> np.ndarray:
        found = []
        for phase in range(8):
            off = BreakageThresholds(enabled=False)
            simulator = Simulator(config=SimulatorConfig(frame_rate=rate, breakage=off))
            height = 0.144 + phase / 8 * math.sqrt(2.0 * 9.81 * 0.144) / 240.0
            pose = standing(guitar, rotation_from_degrees(*euler), height)
            simulator.spawn(guitar, pose, fixed=())
            for _ in range(round(0.2 * rate)):
                simulator.step()
            found.append(simulator.part_twist(min(simulator.graph.part_ids))[3:])
        return np.array(found)

    converged = spins(480.0)
    speeds = np.linalg.norm(converged, axis=1)
    assert speeds.min() > 10.0
    for rate in (60.0, 120.0):
        errors = np.linalg.norm(spins(rate) - converged, axis=1) / speeds
        assert errors.mean() < 0.05 and errors.max() < 0.08


def test_the_peak_force_hangs_on_the_contacts_and_not_on_the_step(guitar):
    """The greatest force of the ground in a step. Contacts of an eighth of the time constant stop
    the same momentum in an eighth of the time."""

    def peak(rate: float, **way) -> float:
        simulator = empty(rate, breakage=BreakageThresholds(enabled=False), **way)
        simulator.spawn(guitar, standing(guitar, rotation_from_degrees(0, 90, 0), 0.144), fixed=())
        forces = [0.0]

        def look_back() -> None:
            if (last := simulator._last) is not None:
                steps = steps_of([last])
                impulses = np.split(steps.contacts.normal_impulse, steps.first[1:-1])
                forces.extend(own.sum() / dt for own, dt in zip(impulses, steps.dt, strict=True))

        simulator.before_substep.append(look_back)
        for _ in range(round(0.2 * rate)):
            simulator.step()
        return max(forces)

    first, *others, stiff = (peak(**way) for way in WAYS)
    assert others == pytest.approx([first] * 3, rel=0.1)
    assert stiff / first == pytest.approx(8.0, rel=0.15)


def test_the_original_way_hangs_on_the_time_step(guitar):
    """What the slip criterion is for: without it soft contacts break nothing, stiff ones do."""
    soft = drop(guitar, [30, 0, 0], rate=60.0, substeps=1, breakage=AT_ONCE)
    stiff = drop(guitar, [30, 0, 0], rate=60.0, substeps=32, constant=1 / 960, breakage=AT_ONCE)
    assert soft[0] == [28]
    assert len(stiff[0]) > 1


def test_resting_is_no_impact():
    """A tower stands on the ground: loads are weights, whatever the contact time."""
    graph = BrickTopologyGraph()
    parts = [graph.add_part(BrickShape(4, 2)) for _ in range(6)]
    for lower, upper in itertools.pairwise(parts):
        graph.connect(lower, upper, (0, 0), 0)
    structure = Structure(graph, {graph.component_of(parts[0]): np.eye(4)})
    simulator = Simulator(config=SimulatorConfig())
    simulator.spawn(structure)
    for _ in range(60):
        result = simulator.step()
    assert result.utilization == pytest.approx(0.0, abs=0.02)
