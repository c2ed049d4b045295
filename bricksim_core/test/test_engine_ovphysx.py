# SPDX-License-Identifier: Apache-2.0
"""The ovphysx engine: the physics shared by all engines, with tolerances of single precision.

Tolerances. PhysX computes in single precision (relative 6e-8) and by iterations; welds are nearly
rigid. Hence: impulses 1e-3 of the largest, momentum 1e-4, velocities 1e-5; a snapshot repeats bit
by bit from its second use on, because what the solver remembers cannot be saved.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

if importlib.util.find_spec("ovphysx") is None:
    pytest.skip("extra [ovphysx] is not installed", allow_module_level=True)

import engine_suite as suite
from engine_suite import at, body, brick_layout

from bricksim_core.engines import BodySpec, Engine, RobotSpec, create_engine
from bricksim_core.engines.isaacsim.checks import MECHANICS
from bricksim_core.errors import EngineError
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph


@pytest.fixture
def make() -> Iterator[Callable[..., Engine]]:
    made: list[Engine] = []

    def factory(
        *, gravity: Sequence[float] = (0.0, 0.0, -9.81), ground: float | None = 0.0
    ) -> Engine:
        made.append(create_engine("ovphysx", gravity=tuple(gravity), ground=ground))
        return made[-1]

    yield factory
    for engine in made:
        engine.close()


def test_free_fall(make):
    # TGS applies gravity in each of its 32 iterations: heights are nearly those of the parabola.
    suite.check_free_fall(make, tolerance=2e-4)


def test_brick_at_rest_reads_its_weight(make):
    suite.check_rest_impulse(make, relative=1e-3)


def test_impulses_are_the_change_of_momentum(make):
    suite.check_impulse_is_momentum_change(make, relative=1e-3)


def test_collision_conserves_momentum(make):
    suite.check_collision_conserves_momentum(make, relative=1e-4)


def test_wrench_acts_in_the_next_step_only(make):
    suite.check_wrench_acts_once(make, relative=1e-4)


def test_fixed_bodies_stay(make):
    suite.check_fixed_stays(make)


@pytest.mark.parametrize("yaw", [0, 1, 2, 3])
def test_press_connects(make, yaw):
    suite.check_press_connects(make, BrickShape(4, 2), BrickShape(2, 2), (1, yaw and 1), yaw)


def test_misaligned_or_unforced_does_not_connect(make):
    suite.check_does_not_connect(make, error=(0.0, 0.0, 0.005), force=0.0)
    suite.check_does_not_connect(make, error=(0.003, 0.0, 5e-5), force=2.0)
    suite.check_does_not_connect(make, yaw_error=np.radians(8.0), force=2.0)


@pytest.mark.parametrize(("size", "capacity"), [((1, 1), 2.8), ((2, 2), 8.4), ((4, 2), 16.8)])
def test_pull_off_capacity(make, size, capacity):
    suite.check_pull_off(make, BrickShape(*size), capacity)


def test_join_conserves_momentum(make):
    suite.check_join_conserves_momentum(make, relative=1e-4)


def test_break_keeps_momentum_and_energy(make):
    suite.check_break_keeps_momentum_and_energy(make, relative=1e-4)


def test_drop_and_break(make):
    suite.check_drop_and_break(make)


def _wall(count: int) -> tuple[BrickTopologyGraph, int]:
    """Layers of two bricks side by side and of one that ties them, in turn."""
    graph = BrickTopologyGraph()
    shape = BrickShape(4, 2)
    tie = graph.add_part(shape)
    while len(graph) < count:
        left, right, top = (graph.add_part(shape) for _ in range(3))
        graph.connect(tie, left, (-2, 0), 0)
        graph.connect(tie, right, (2, 0), 0)
        graph.connect(left, top, (2, 0), 0)
        tie = top
    return graph, graph.component_ids[0]


def _spec(graph: BrickTopologyGraph, component: int, pose=None, twist=(0.0,) * 6) -> BodySpec:
    return body(component, graph.layout(component), at(0, 0, 0) if pose is None else pose, twist)


def test_a_tumbling_wall_keeps_its_momentum_and_its_shape(make):
    """50 welded bricks in free flight: linear and angular momentum, and no drift of the bricks."""
    engine = make(gravity=(0.0, 0.0, 0.0), ground=None)
    graph, component = _wall(50)
    twist = (0.1, -0.2, 0.05, 1.0, 2.0, -1.5)
    engine.update([], [_spec(graph, component, at(0, 0, 1, (0.3, 0.1, 0.2)), twist)])
    mass = suite.mass_properties(graph.layout(component))
    first = engine.step()
    start = suite.momentum(
        suite.in_world(mass, first.world_T_component[0]), first.twist[0], np.zeros(3)
    )
    for _ in range(240):
        report = engine.step()
    end = suite.momentum(
        suite.in_world(mass, report.world_T_component[0]), report.twist[0], np.zeros(3)
    )
    np.testing.assert_allclose(end.linear, start.linear, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(end.angular, start.angular, rtol=1e-2, atol=1e-6)
    assert engine.deformation().max() < 5e-5


def test_joins_and_breaks_at_run_time_leave_others_alone(make):
    engine = make(gravity=(0.0, 0.0, 0.0), ground=None)
    graph, component = _wall(10)
    bystander = graph.add_part(BrickShape(2, 2))
    own = graph.component_of(bystander)
    drift = (0.1, 0.0, 0.0, 0.0, 0.0, 0.5)
    engine.update([], [_spec(graph, component), _spec(graph, own, at(1, 0, 0), drift)])
    engine.step()
    last = max(graph.connections)
    pieces = graph.disconnect([i for i in graph.connections if i > last - 3]).pieces
    specs = [_spec(graph, c) for c in graph.component_ids if c != own]
    assert len(specs) > 1
    engine.update(list(pieces), specs)
    report = engine.step()
    assert report.component_ids.tolist() == sorted(graph.component_ids)
    np.testing.assert_allclose(report.twist[report.component_ids == own][0], drift, atol=1e-6)


def test_a_snapshot_gives_the_same_future_every_time(make):
    engine = make()
    layouts = [brick_layout(BrickShape(4, 2), i) for i in range(3)]
    poses = [at(0.01 * i, 0.005 * i, 0.02 * i) for i in range(3)]
    engine.update(
        [], [body(i, la, p) for i, (la, p) in enumerate(zip(layouts, poses, strict=True))]
    )
    for _ in range(20):
        engine.step()
    snapshot = engine.snapshot()

    def future():
        engine.restore(snapshot)
        found = [np.array([engine.time])]
        for i in range(40):
            if i == 10:
                engine.update([2], [])
            report = engine.step()
            found += [report.world_T_component, report.twist, report.contacts.impulse]
        return found

    first = future()
    for a, b in zip(first, future(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_after_a_snapshot_goes_on_what_would_have_come(make):
    """To rounding where nothing touches; where bodies touch or are welded, as near as the solver
    comes without what it remembered of the last step."""
    engine = make()
    graph, component = _wall(25)
    engine.update(
        [],
        [
            _spec(graph, component),
            body(900, brick_layout(part_id=900), at(1, 0, 0.6, (0.3, 0.1, 0)), (0, 0, 0, 1, 2, 0)),
        ],
    )

    def future():
        return [engine.step() for _ in range(40)]

    future()
    snapshot = engine.snapshot()
    expected = future()
    engine.restore(snapshot)
    for found, wanted in zip(future(), expected, strict=True):
        np.testing.assert_allclose(
            found.world_T_component[1], wanted.world_T_component[1], atol=5e-6, rtol=0.0
        )
        np.testing.assert_allclose(found.twist[1], wanted.twist[1], atol=5e-5, rtol=0.0)
        np.testing.assert_allclose(
            found.world_T_component[0], wanted.world_T_component[0], atol=3e-6, rtol=0.0
        )
        np.testing.assert_allclose(found.twist[0, :3], wanted.twist[0, :3], atol=5e-5, rtol=0.0)
        weights = [r.contacts.impulse.sum(axis=0) for r in (found, wanted)]
        np.testing.assert_allclose(*weights, atol=5e-6, rtol=0.0)


def test_two_runs_are_equal_bit_by_bit(make):
    def run():
        engine = make()
        graph, component = _wall(10)
        engine.update([], [_spec(graph, component, at(0, 0, 0.05, (0.4, 0.2, 0)))])
        return [engine.step().world_T_component for _ in range(60)]

    for a, b in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_teleport_and_hold(make):
    engine = make()
    layout = brick_layout(BrickShape(2, 2))
    engine.update([], [body(0, layout, at(0, 0, 0.5))])
    engine.step()
    held = at(0.2, 0.1, 0.3, (0, 0, 0.3))
    engine.update([0], [body(0, layout, held, fixed=True)])
    for _ in range(5):
        report = engine.step()
    np.testing.assert_allclose(report.world_T_component[0], held, atol=1e-12)
    twist = (0.1, 0.2, 0.3, 0.0, 0.0, 1.0)
    engine.update([0], [body(0, layout, held, twist)])
    report = engine.step()
    np.testing.assert_allclose(report.previous_twist[0], twist)
    expected = np.array(twist) - [0, 0, 9.81 * engine.timestep, 0, 0, 0]
    np.testing.assert_allclose(report.twist[0], expected, atol=1e-4)


@pytest.fixture
def resting(make):
    """A wall and, apart, one brick on another and one alone: all asleep."""
    engine = make()
    graph, wall = _wall(7)
    below, above, alone = 100, 101, 102
    height = 0.0096 + 0.0017
    layouts = {i: brick_layout(part_id=i) for i in (below, above, alone)}
    places = {below: at(0.2, 0, 0), above: at(0.2, 0, height), alone: at(0.4, 0, 0)}
    bodies = [body(i, layout, places[i]) for i, layout in layouts.items()]
    engine.update([], [_spec(graph, wall, at(0, 0, 0)), *bodies])
    reports = [engine.step() for _ in range(360)]
    assert reports[-1].still.all()
    return engine, reports, layouts


def test_what_rests_sleeps_where_it_stood_and_carries_what_it_carried(resting):
    """Without sleep it would go on as before: the same place, and the weight as contact."""
    engine, reports, _ = resting
    awake, asleep = reports[200], reports[-1]
    np.testing.assert_allclose(asleep.world_T_component, awake.world_T_component, atol=2e-5)
    assert not asleep.twist.any()
    masses = np.array([engine.scene.bodies[c].layout.masses.sum() for c in asleep.component_ids])
    contacts = asleep.contacts
    ground = contacts.part_a == -1
    found = contacts.impulse[ground][:, 2].sum() / engine.timestep
    assert found == pytest.approx(9.81 * masses.sum(), rel=2e-3)
    upper = contacts.impulse[contacts.part_b == 101]
    lower = contacts.impulse[contacts.part_a == 101]
    carried = (upper.sum(axis=0) - lower.sum(axis=0))[2] / engine.timestep
    assert carried == pytest.approx(9.81 * masses[2], rel=1e-2)
    before = engine.step()
    for name in ("position", "impulse", "part_a", "part_b"):
        after = getattr(engine.step().contacts, name)
        np.testing.assert_array_equal(after, getattr(before.contacts, name))
    assert len(before.fresh) == 0


def test_a_wrench_wakes_what_it_acts_on_and_what_touches_it(resting):
    engine, _, layouts = resting
    push = 0.5 * layouts[100].masses[0] * 9.81
    engine.apply_wrench(100, np.array([0, 0, push, 0, 0, 0]))
    report = engine.step()
    rows = dict(zip(report.component_ids.tolist(), report.still.tolist(), strict=True))
    assert [rows[i] for i in (100, 101, 102)] == [False, False, True]
    weight = 9.81 * layouts[100].masses[0] * 2 * engine.timestep
    own = (report.contacts.part_b == 100) & (report.contacts.part_a == -1)
    found = report.contacts.impulse[own][:, 2].sum()
    assert found == pytest.approx(weight - push * engine.timestep, rel=0.05)


def test_what_slept_in_a_snapshot_sleeps_after_it_is_restored(resting):
    engine, reports, layouts = resting
    snapshot = engine.snapshot()
    engine.apply_wrench(100, np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(5):
        engine.step()
    engine.restore(snapshot)
    report = engine.step()
    awake = dict(zip(report.component_ids.tolist(), report.still.tolist(), strict=True))
    assert all(awake.values()), awake
    np.testing.assert_array_equal(report.world_T_component, reports[-1].world_T_component)
    for name in ("position", "impulse", "part_a", "part_b"):
        found, wanted = (getattr(r.contacts, name) for r in (report, reports[-1]))
        np.testing.assert_array_equal(found, wanted)
    # And it wakes as if it had never been away, with what lies on it.
    engine.apply_wrench(100, np.array([0, 0, 0.5 * layouts[100].masses[0] * 9.81, 0, 0, 0]))
    report = engine.step()
    rows = dict(zip(report.component_ids.tolist(), report.still.tolist(), strict=True))
    assert [rows[i] for i in (100, 101, 102)] == [False, False, True]


@pytest.mark.parametrize("held", [False, True])
def test_what_stood_on_something_falls_when_it_goes(resting, held):
    engine, _, layouts = resting
    if held:  # the world takes it, it sleeps on, and then it goes
        engine.update([100], [body(100, layouts[100], at(0.2, 0, 0), fixed=True)])
        for _ in range(360):
            report = engine.step()
        assert report.still.all()
    engine.update([100], [])
    report = engine.step()
    rows = report.component_ids.tolist()
    assert report.twist[rows.index(101), 2] == pytest.approx(-9.81 * engine.timestep, rel=1e-3)
    assert (report.twist[rows.index(102)] == 0.0).all() or held


STACKED = 0.0096 + 0.0017
"""Height of a brick that lies loose on the studs of another one [m]."""


def sleeping_stack(make):
    """An engine with six loose bricks on each other that sleep, their layouts and its report."""
    engine = make()
    layouts = [brick_layout(part_id=i) for i in range(6)]
    engine.update([], [body(i, layouts[i], at(0, 0, i * STACKED)) for i in range(6)])
    for _ in range(360):
        report = engine.step()
    assert report.still.all()
    return engine, layouts, report


@pytest.mark.parametrize("gone", ["removed", "moved"])
def test_a_whole_stack_falls_when_its_lowest_brick_goes(make, gone):
    """Waking spreads through all that slept on it, not only to the brick next to it."""
    engine, layouts, report = sleeping_stack(make)
    before = report.world_T_component[:, 2, 3]
    if gone == "removed":
        engine.update([0], [])
    else:
        engine.update([0], [body(0, layouts[0], at(1.0, 0, 0))])
    first = engine.step()
    rows = [first.component_ids.tolist().index(i) for i in range(1, 6)]
    assert not first.still[rows].any()
    for _ in range(239):
        report = engine.step()
    fallen = before[1:] - report.world_T_component[rows, 2, 3]
    np.testing.assert_allclose(fallen, STACKED, atol=2e-4)


def test_what_is_hit_wakes(resting):
    engine, _, layouts = resting
    mass = layouts[102].masses[0]
    flying = body(200, brick_layout(part_id=200), at(0.439, 0, 0.001), (-1.0, 0, 0, 0, 0, 0))
    engine.update([], [flying])
    for _ in range(12):
        report = engine.step()
    rows = report.component_ids.tolist()
    twists = report.twist[[rows.index(102), rows.index(200)], 0]
    assert twists[0] < -0.1
    assert mass * twists.sum() > -1.0 * mass  # friction takes some, nothing is added
    assert report.still[rows.index(101)]


def test_a_push_at_the_lowest_brick_wakes_the_whole_stack_on_it(make):
    engine, layouts, _ = sleeping_stack(make)
    engine.apply_wrench(0, np.array([0.01, 0, 0, 0, 0, 0]))
    engine.step()
    report = engine.step()
    assert not report.still.any()
    weight = 9.81 * sum(layout.masses.sum() for layout in layouts)
    ground = report.contacts.part_a == -1
    found = report.contacts.impulse[ground][:, 2].sum() / engine.timestep
    assert found == pytest.approx(weight, rel=0.05)


def test_sleep_can_be_switched_off():
    engine = create_engine("ovphysx", sleeping=False)
    try:
        engine.update([], [body(0, brick_layout(), at(0, 0, 0))])
        for _ in range(300):
            report = engine.step()
        assert report.still is not None
        assert not report.still.any()
        assert report.fresh is not None
        assert len(report.fresh) == len(report.contacts) > 0
    finally:
        engine.close()


def test_overlaps(make):
    engine = make()
    layout = brick_layout(BrickShape(2, 2))
    engine.update([], [body(0, layout, at(0, 0, 0))])
    other = brick_layout(BrickShape(2, 2), 1)
    places = [(0.016, 0.0, 0.0), (0.0155, 0.0, 0.0), (0.1, 0.0, 0.0), (0.1, 0.0, -0.001)]
    found = engine.overlaps([body(1, other, at(*place)) for place in places])
    assert found.tolist() == [False, True, False, True]
    assert engine.overlaps([body(1, other, at(0, 0, 0))], ignore=[0]).tolist() == [False]


URDF = """<robot name="crane">
  <link name="world"/>
  <link name="post"><inertial><mass value="2"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="boom"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.15 0 0"/><geometry><box size="0.3 0.02 0.02"/></geometry></collision>
  </link>
  <link name="left"><inertial><mass value="0.1"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="right"><inertial><mass value="0.1"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="base" type="fixed"><parent link="world"/><child link="post"/></joint>
  <joint name="swing" type="revolute"><parent link="post"/><child link="boom"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>
    <limit lower="0.5" upper="2.5" effort="100" velocity="2"/></joint>
  <joint name="grip" type="prismatic"><parent link="boom"/><child link="left"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.05" effort="100" velocity="1"/></joint>
  <joint name="other" type="prismatic"><parent link="boom"/><child link="right"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.05" effort="100" velocity="1"/><mimic joint="grip"/></joint>
  <joint name="end" type="fixed"><parent link="boom"/><child link="tip"/>
    <origin xyz="0.3 0 0"/></joint>
</robot>"""


@pytest.fixture
def crane(tmp_path):
    """An arm that must not stand at zero, with coupled fingers."""
    (tmp_path / "crane.urdf").write_text(URDF)
    return RobotSpec(
        name="crane",
        urdf=tmp_path / "crane.urdf",
        world_T_base=at(0.2, 0.1, 0.0, (0, 0, 0.3)),
        joint_positions={"swing": 1.0, "grip": 0.02},
        drives={"swing": (1000.0, 60.0, 100.0), "grip": (1000.0, 60.0, 50.0)},
        joint_limits={"swing": 1.0},
        armature={"swing": 0.01, "grip": 0.1},
    )


def _tip(swing: float) -> np.ndarray:
    turn = 0.3 + swing
    return np.array([0.2 + 0.3 * np.cos(turn), 0.1 + 0.3 * np.sin(turn), 0.5])


def test_a_robot_starts_where_it_is_told_and_disturbs_no_brick(make, crane):
    engine = make()
    engine.update([], [body(0, brick_layout(), at(1, 0, 0.5), (0.1, 0, 0, 0, 0, 0))])
    engine.add_robot(crane)
    np.testing.assert_allclose(engine.link_pose("crane", "tip")[:3, 3], _tip(1.0), atol=1e-6)
    report = engine.step()
    speed = [0.1, 0.0, -9.81 * engine.timestep]
    np.testing.assert_allclose(report.twist[0, :3], speed, atol=1e-5)
    state = engine.joint_state("crane")
    found = dict(zip(state.names, state.positions, strict=True))
    assert found == pytest.approx({"swing": 1.0, "grip": 0.02, "other": 0.02}, abs=1e-4)
    assert np.abs(state.velocities).max() < 1e-3


def test_a_second_robot_disturbs_neither_the_first_nor_a_brick(make, crane):
    engine = make()
    engine.add_robot(crane)
    engine.update([], [body(0, brick_layout(), at(1, 0, 0.5), (0.1, 0, 0, 0, 0, 0))])
    engine.set_joint_targets("crane", {"swing": 2.0})
    for _ in range(24):
        report = engine.step()
    before, time = engine.joint_state("crane"), engine.time
    place = at(-0.5, 0.0, 0.0)
    engine.add_robot(replace(crane, name="other", world_T_base=place))
    assert engine.time == time
    after = engine.joint_state("crane")
    np.testing.assert_allclose(after.positions, before.positions, atol=1e-6)
    tip = place[:3, 3] + [0.3 * np.cos(1.0), 0.3 * np.sin(1.0), 0.5]
    np.testing.assert_allclose(engine.link_pose("other", "tip")[:3, 3], tip, atol=1e-6)
    speed = report.twist[0, :3] - [0.0, 0.0, 9.81 * engine.timestep]
    np.testing.assert_allclose(engine.step().twist[0, :3], speed, atol=1e-5)
    for _ in range(300):
        engine.step()
    assert engine.joint_state("crane").positions[0] == pytest.approx(2.0, abs=1e-3)
    assert engine.joint_state("other").positions[0] == pytest.approx(1.0, abs=1e-3)


def test_a_robot_follows_its_targets_at_its_speed(make, crane):
    engine = make()
    engine.add_robot(crane)
    engine.set_joint_targets("crane", {"swing": 1.5, "grip": 0.0})
    for _ in range(60):
        engine.step()
    # A set point that moves at 1 rad/s has covered 0.25 rad; the servo lags by damping / stiffness.
    assert engine.joint_state("crane").positions[0] == pytest.approx(1.25 - 0.06, abs=0.02)
    for _ in range(180):
        engine.step()
    state = engine.joint_state("crane")
    np.testing.assert_allclose(state.positions, [1.5, 0.0, 0.0], atol=1e-3)
    np.testing.assert_allclose(engine.link_pose("crane", "tip")[:3, 3], _tip(1.5), atol=1e-3)


def test_joints_are_put_at_once_and_restored(make, crane):
    engine = make()
    engine.add_robot(crane)
    engine.step()
    engine.set_joint_positions("crane", {"swing": 2.0})
    np.testing.assert_allclose(engine.link_pose("crane", "tip")[:3, 3], _tip(2.0), atol=1e-6)
    snapshot = engine.snapshot()
    for _ in range(5):
        engine.step()
    np.testing.assert_allclose(engine.joint_state("crane").positions[0], 2.0, atol=1e-4)
    engine.set_joint_positions("crane", {"swing": 0.6})
    engine.restore(snapshot)
    np.testing.assert_allclose(engine.link_pose("crane", "tip")[:3, 3], _tip(2.0), atol=1e-6)


def test_contacts_with_a_robot_name_its_link(make, crane):
    engine = make()
    engine.add_robot(crane)
    place = at(*_tip(1.0)) @ at(0, 0, 0, (0, 0, 1.3)) @ at(-0.2, -0.008, 0.0101)
    engine.update([], [body(0, brick_layout(), place)])
    for _ in range(60):
        report = engine.step()
    assert report.contacts.names == ("crane/boom",)
    weight = brick_layout().masses[0] * 9.81 * engine.timestep
    assert report.contacts.impulse[:, 2].sum() == pytest.approx(weight, rel=0.02)
    inside = body(
        1, brick_layout(part_id=1), at(*_tip(1.0)) @ at(0, 0, 0, (0, 0, 1.3)) @ at(-0.1, 0, 0)
    )
    assert engine.overlaps([inside]).tolist() == [True]
    assert engine.overlaps([inside], robots=False).tolist() == [False]


def test_a_robot_wakes_the_brick_that_it_pushes(make, crane):
    """A brick that sleeps on a pedestal, in the way of the boom."""
    engine = make()
    engine.add_robot(crane)
    stand = BrickShape(2, 2, 153, has_studs=False)
    place = at(0.2 + 0.25 * np.cos(1.5), 0.1 + 0.25 * np.sin(1.5), 0.0)
    top = place @ at(0.0, 0.0, stand.size[2])
    engine.update(
        [],
        [
            body(0, brick_layout(BrickShape(2, 2)), top),
            body(1, brick_layout(stand, part_id=1), place, fixed=True),
        ],
    )
    for _ in range(300):
        report = engine.step()
    assert report.still.all()
    assert not report.twist.any()
    start = report.world_T_component[0, :2, 3]
    engine.set_joint_targets("crane", {"swing": 2.0})
    touched = set()
    for _ in range(120):
        report = engine.step()
        touched |= set(report.contacts.names)
    assert "crane/boom" in touched
    assert np.linalg.norm(report.world_T_component[0, :2, 3] - start) > 0.02


def test_bad_robots_are_refused(make, crane, tmp_path):
    engine = make()
    with pytest.raises(EngineError, match="robot name is '7', expected letters"):
        engine.add_robot(replace(crane, name="7"))
    with pytest.raises(EngineError, match=r"missing\.urdf: cannot be converted to USD"):
        engine.add_robot(replace(crane, urdf=tmp_path / "missing.urdf"))
    with pytest.raises(EngineError, match="has no joint 'elbow' that moves, expected one of grip"):
        engine.add_robot(replace(crane, drives={"elbow": (1.0, 1.0, 1.0)}))
    with pytest.raises(EngineError, match="has no link 'pad'"):
        engine.add_robot(replace(crane, pad_links=("pad",)))
    engine.add_robot(crane)
    with pytest.raises(EngineError, match="robot name 'crane' is taken"):
        engine.add_robot(crane)
    with pytest.raises(EngineError, match="joint 'elbow' is unknown"):
        engine.set_joint_targets("crane", {"elbow": 1.0})
    with pytest.raises(EngineError, match="link 'hook' is unknown"):
        engine.link_pose("crane", "hook")


def test_what_the_doctor_expects_of_isaac_sim_holds_for_its_twin(make):
    engine = make()
    for name, check in MECHANICS.items():
        assert check(engine), name


def test_bad_requests_are_refused(make):
    engine = make()
    layout = brick_layout(BrickShape(2, 2))
    with pytest.raises(EngineError, match="component 5 is unknown"):
        engine.update([5], [])
    with pytest.raises(EngineError, match="part 3 is unknown"):
        engine.apply_wrench(3, np.zeros(6))
    with pytest.raises(EngineError, match="robot 'arm' is unknown"):
        engine.joint_state("arm")
    with pytest.raises(EngineError, match="rotation matrix"):
        engine.update([], [body(0, layout, np.diag([2.0, 1, 1, 1]))])
    with pytest.raises(EngineError, match="not one of this engine"):
        engine.restore("yesterday")
    assert not len(engine.step().component_ids)
