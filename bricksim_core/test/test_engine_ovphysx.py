# SPDX-License-Identifier: Apache-2.0
"""The ovphysx engine: the physics shared by all engines, with tolerances of single precision.

Tolerances. PhysX computes in single precision (relative 6e-8) and by iterations; welds are nearly
rigid. Hence: impulses 1e-3 of the largest, momentum 1e-4, velocities 1e-5; a snapshot repeats from
its second use on, because what the solver remembers cannot be saved.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

if importlib.util.find_spec("ovphysx") is None:
    pytest.skip("extra [ovphysx] is not installed", allow_module_level=True)

import engine_suite as suite
from engine_suite import at, body, brick_layout

from bricksim_core.engines import BodySpec, Engine, create_engine
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


def test_overlaps(make):
    engine = make()
    layout = brick_layout(BrickShape(2, 2))
    engine.update([], [body(0, layout, at(0, 0, 0))])
    other = brick_layout(BrickShape(2, 2), 1)
    places = [(0.016, 0.0, 0.0), (0.0155, 0.0, 0.0), (0.1, 0.0, 0.0), (0.1, 0.0, -0.001)]
    found = engine.overlaps([body(1, other, at(*place)) for place in places])
    assert found.tolist() == [False, True, False, True]
    assert engine.overlaps([body(1, other, at(0, 0, 0))], ignore=[0]).tolist() == [False]


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
