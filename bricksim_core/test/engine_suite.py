# SPDX-License-Identifier: Apache-2.0
"""Physics that every engine has to get right, as functions of an engine factory.

Truth comes from mechanics (Newton, momentum, reference capacities), never from an engine. Each
engine's test module calls them with its factory and its own tolerances.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from bricksim_core.dynamics import in_world, kinetic_energy, mass_properties, momentum
from bricksim_core.engines import NO_PART, BodySpec, Engine
from bricksim_core.events import Cause, EventKind, StepResult
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.parts import (
    BRICK_HEIGHT,
    PLATE_HEIGHT,
    STUD_HEIGHT,
    STUD_PITCH,
    BrickShape,
)
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import Array, transform
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_core.topology.layout import ComponentLayout

GRAVITY = 9.81


class EngineFactory(Protocol):
    """Makes an empty engine."""

    def __call__(
        self, *, gravity: Sequence[float] = (0.0, 0.0, -GRAVITY), ground: float | None = 0.0
    ) -> Engine: ...


# -- scenes ---------------------------------------------------------------------------------


def slab() -> Structure:
    """Twelve bricks side by side, held together by six on top."""
    below = [f"4x2 ({4 * i},{2 * j},0)" for i in range(3) for j in range(4)]
    above = [f"4x2 ({4 * i + 2},{2 * j + 1},1)" for i in range(2) for j in range(3)]
    return parse_structure("\n".join(below + above), baseplate=None)


def brick_layout(shape: BrickShape = BrickShape(4, 2), part_id: int = 0) -> ComponentLayout:
    """One brick as a component whose frame is at the least corner of its bottom."""
    graph = BrickTopologyGraph()
    graph.add_part(shape, part_id=part_id)
    return graph.layout(graph.component_of(part_id))


def body(
    component: int,
    layout: ComponentLayout,
    world_T_component: Array,
    twist: ArrayLike = (0.0,) * 6,
    fixed: bool = False,
) -> BodySpec:
    """A component for an engine, white."""
    return BodySpec(
        component,
        layout,
        np.asarray(world_T_component, dtype=float),
        np.array(twist, dtype=float),
        fixed,
        tuple((255, 255, 255) for _ in layout.shapes),
    )


def at(x: float, y: float, z: float, rotvec: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """A pose from a position [m] and a rotation vector [rad]."""
    return transform((x, y, z), Rotation.from_rotvec(rotvec).as_quat())


def random_pose(rng: np.random.Generator, low: Sequence[float], high: Sequence[float]) -> Array:
    """Any orientation at a place between two corners [m]."""
    return transform(rng.uniform(low, high), Rotation.random(rng=rng).as_quat())


def single(shape: BrickShape, *, fixed: bool = False) -> Structure:
    """One part with its part frame at the structure's origin (centre of the bottom)."""
    graph = BrickTopologyGraph()
    part = graph.add_part(shape)
    corner = at(-0.5 * shape.length * STUD_PITCH, -0.5 * shape.width * STUD_PITCH, 0.0)
    held = frozenset({part}) if fixed else frozenset()
    return Structure(graph, {graph.component_of(part): corner}, fixed=held)


def tower(count: int, shape: BrickShape = BrickShape(4, 2)) -> Structure:
    """Bricks straight on top of each other, frame at the least corner of the lowest."""
    graph = BrickTopologyGraph()
    ids = [graph.add_part(shape) for _ in range(count)]
    for below, above in itertools.pairwise(ids):
        graph.connect(below, above, (0, 0), 0)
    lowest = graph.grid_pose(ids[0]).z
    return Structure(graph, {graph.component_of(ids[0]): at(0.0, 0.0, -lowest * PLATE_HEIGHT)})


def total_momentum(simulator: Simulator) -> Array:
    """(6,) linear momentum and angular momentum about the world's origin of all parts."""
    result = simulator.result()
    total = np.zeros(6)
    for row, part_id in enumerate(result.part_ids.tolist()):
        shape = simulator.graph.part(part_id).shape
        properties = in_world(_part_mass(shape), result.world_T_part[row])
        linear, angular = momentum(properties, result.twist[row], np.zeros(3))
        total += np.concatenate([linear, angular])
    return total


def total_energy(simulator: Simulator) -> float:
    """Kinetic energy of all parts [J]."""
    result = simulator.result()
    return sum(
        kinetic_energy(
            in_world(_part_mass(simulator.graph.part(p).shape), result.world_T_part[row]),
            result.twist[row],
        )
        for row, p in enumerate(result.part_ids.tolist())
    )


def _part_mass(shape: BrickShape):
    layout = brick_layout(shape)
    mass = mass_properties(layout)
    return mass._replace(com=shape.com)


# -- engine alone ---------------------------------------------------------------------------


def check_free_fall(make: EngineFactory, tolerance: float = 1e-12) -> None:
    """Velocity g t exactly; height as the semi-implicit Euler rule gives it, spin untouched."""
    engine = make(ground=None)
    layout = brick_layout(BrickShape(2, 2))
    engine.update([], [body(3, layout, at(0, 0, 1), (0.1, 0, 0.2, 0, 0, 0.5))])
    steps, dt = 50, engine.timestep
    for _ in range(steps):
        report = engine.step()
    t = steps * dt
    assert report.time == pytest.approx(t)
    expected = [0.1, 0.0, 0.2 - GRAVITY * t, 0.0, 0.0, 0.5]
    np.testing.assert_allclose(report.twist[0], expected, atol=max(tolerance, 1e-12) * 10)
    com = mass_properties(layout).com
    start = np.array([0, 0, 1]) + com
    now = report.world_T_component[0] @ np.append(com, 1.0)
    fall = 0.2 * t - GRAVITY * dt**2 * steps * (steps + 1) / 2
    exact = 0.2 * t - 0.5 * GRAVITY * t**2
    drop = now[2] - start[2]
    assert min(abs(drop - fall), abs(drop - exact)) < max(1e-9, tolerance)
    assert not len(report.contacts)


def check_rest_impulse(make: EngineFactory, relative: float = 1e-6, steps: int = 240) -> None:
    """A brick of 10 g at rest on the ground presses with m g dt."""
    engine = make()
    engine.update([], [body(0, brick_layout(BrickShape(4, 2, mass=0.01)), np.eye(4))])
    for _ in range(steps):
        report = engine.step()
    contacts = report.contacts
    weight = 0.01 * GRAVITY * engine.timestep
    np.testing.assert_allclose(contacts.impulse.sum(axis=0), [0, 0, weight], atol=weight * relative)
    assert contacts.normal_impulse.sum() == pytest.approx(weight, rel=relative)
    assert set(contacts.part_b.tolist()) == {0}
    assert set(contacts.part_a.tolist()) == {NO_PART}
    assert {contacts.names[i] for i in contacts.other} == {"ground"}
    up = np.tile([0, 0, 1], (len(contacts), 1))
    np.testing.assert_allclose(contacts.normal, up, atol=max(1e-9, 1e-3 * relative))


def check_impulse_is_momentum_change(make: EngineFactory, relative: float = 1e-6) -> None:
    """Over an impact, contact impulses plus gravity are the change of momentum, step by step."""
    engine = make()
    layout = brick_layout(BrickShape(4, 2))
    mass = mass_properties(layout)
    pose = at(0, 0, 0.02, (0.3, 0.2, 0.1))
    engine.update([], [body(0, layout, pose, (0.3, 0.0, -1.0, 0.0, 0.0, 0.0))])
    largest = 0.0
    for _ in range(40):
        report = engine.step()
        change = mass.mass * (report.twist[0, :3] - report.previous_twist[0, :3])
        weight = mass.mass * GRAVITY * report.dt * np.array([0, 0, -1.0])
        impulse = report.contacts.impulse.sum(axis=0)
        largest = max(largest, float(np.linalg.norm(impulse)))
        np.testing.assert_allclose(
            change, impulse + weight, atol=relative * mass.mass * 1.0, rtol=relative
        )
    # Stopping a fall of 1 m/s takes about its momentum, or more if it bounces or tips.
    assert largest > 0.3 * mass.mass


def check_collision_conserves_momentum(make: EngineFactory, relative: float = 1e-6) -> None:
    """Two bricks that collide in free space keep their total momentum."""
    engine = make(gravity=(0.0, 0.0, 0.0), ground=None)
    layouts = [brick_layout(BrickShape(4, 2), 0), brick_layout(BrickShape(2, 2), 1)]
    engine.update(
        [],
        [
            body(0, layouts[0], at(0, 0, 0), (0.5, 0, 0, 0, 0, 0)),
            body(1, layouts[1], at(0.04, 0.004, 0.002), (-0.5, 0, 0, 0, 0.2, 0)),
        ],
    )
    masses = [mass_properties(layout) for layout in layouts]

    def momenta(poses: Array, twists: Array) -> Array:
        parts = [
            momentum(in_world(m, p), t, np.zeros(3))
            for m, p, t in zip(masses, poses, twists, strict=True)
        ]
        return np.concatenate([sum(p.linear for p in parts), sum(p.angular for p in parts)])

    report = engine.step()
    before = momenta(report.previous_world_T_component, report.previous_twist)
    touched = 0
    for _ in range(60):
        report = engine.step()
        touched += len(report.contacts)
        if len(report.contacts):
            assert set(report.contacts.part_a.tolist() + report.contacts.part_b.tolist()) == {0, 1}
    after = momenta(report.world_T_component, report.twist)
    assert touched > 0
    assert abs(report.twist[0, 0] - 0.5) > 0.1
    scale = 0.5 * masses[0].mass
    np.testing.assert_allclose(after[:3], before[:3], atol=relative * scale)
    # The lever arms are those of a step's start, so angular momentum holds to first order in dt.
    np.testing.assert_allclose(after[3:], before[3:], atol=0.02 * scale * 0.02)


def check_wrench_acts_once(make: EngineFactory, relative: float = 1e-6) -> None:
    """A wrench accelerates a brick as Newton says, in the next step only."""
    engine = make(gravity=(0.0, 0.0, 0.0), ground=None)
    layout = brick_layout(BrickShape(2, 2))
    mass = mass_properties(layout)
    engine.update([], [body(0, layout, at(0, 0, 0))])
    wrench = np.array([0.01, -0.02, 0.03, 1e-6, 2e-6, -1e-6])
    engine.apply_wrench(0, wrench)
    first = engine.step().twist[0]
    dt = engine.timestep
    np.testing.assert_allclose(first[:3], wrench[:3] / mass.mass * dt, rtol=relative)
    np.testing.assert_allclose(first[3:], np.linalg.solve(mass.inertia, wrench[3:]) * dt, rtol=1e-3)
    second = engine.step().twist[0]
    np.testing.assert_allclose(second[:3], first[:3], rtol=relative)


def check_fixed_stays(make: EngineFactory) -> None:
    """What the world holds does not move, whatever lands on it, and carries the impulse."""
    engine = make(ground=None)
    plate, brick = brick_layout(BrickShape(6, 6, 1), 0), brick_layout(BrickShape(2, 2), 1)
    pose = at(0.1, 0.2, 0.3, (0, 0, 0.4))
    engine.update([], [body(0, plate, pose, fixed=True)])
    top = PLATE_HEIGHT + STUD_HEIGHT
    local = at(0.016, 0.016, top + 0.002)
    engine.update([], [body(1, brick, pose @ local)])
    for _ in range(240):
        report = engine.step()
    np.testing.assert_allclose(report.world_T_component[0], pose, atol=1e-12)
    np.testing.assert_array_equal(report.twist[0], np.zeros(6))
    assert report.contacts.impulse[:, 2].sum() != 0.0
    weight = mass_properties(brick).mass * GRAVITY * engine.timestep
    assert abs(report.contacts.normal_impulse.sum() - weight) < 1e-3 * weight


def check_snapshot_repeats(make: EngineFactory) -> None:
    """From a snapshot the same future follows bit by bit, also over a change of topology."""
    engine = make()
    layouts = [brick_layout(BrickShape(4, 2), i) for i in range(3)]
    engine.update(
        [], [body(i, la, at(0.01 * i, 0.005 * i, 0.02 * i)) for i, la in enumerate(layouts)]
    )
    for _ in range(20):
        engine.step()
    snapshot = engine.snapshot()

    def future() -> list[Array]:
        found = []
        for i in range(40):
            if i == 10:
                engine.update([2], [])
            if i == 20:
                engine.update([], [body(7, layouts[2], at(0.0, 0.0, 0.08))])
            if i == 25:
                engine.apply_wrench(0, np.array([0.1, 0, 0, 0, 0, 0]))
            report = engine.step()
            found += [report.world_T_component, report.twist, report.contacts.impulse]
        return found

    first = future()
    engine.restore(snapshot)
    for a, b in zip(first, future(), strict=True):
        np.testing.assert_array_equal(a, b)


# -- with the simulator ---------------------------------------------------------------------


def make_simulator(
    make: EngineFactory, *, breakage: bool = True, model: str = "default", **engine: object
) -> Simulator:
    """A simulator on a new engine."""
    made = make(**engine)  # type: ignore[arg-type]
    config = SimulatorConfig(
        substeps=round(1.0 / (60.0 * made.timestep)),
        model=model,
        breakage=BreakageThresholds(enabled=breakage),
    )
    return Simulator(made, config)


def placed(
    stud: BrickShape,
    hole: BrickShape,
    offset: tuple[int, int],
    yaw: int,
    error: ArrayLike = (0.0, 0.0, 0.0),
    yaw_error: float = 0.0,
    tilt: float = 0.0,
) -> tuple[Array, Array]:
    """Pose of a brick over the studs of another whose frame is the world's.

    Args:
        stud: Lower part.
        hole: Upper part.
        offset: Grid offset.
        yaw: Quarter turns.
        error: Shift from the place where the hole plane is on top of the studs [m].
        yaw_error: [rad], about the centre of the overlap.
        tilt: [rad], about the y axis through the centre of the overlap.

    Returns:
        (4, 4) pose of the upper part's frame and (3,) the centre of the overlap on the studs.
    """
    graph = BrickTopologyGraph()
    below, above = graph.add_part(stud), graph.add_part(hole)
    graph.connect(below, above, offset, yaw)
    layout = graph.layout(graph.component_of(below))
    world = np.linalg.inv(layout.component_T_parts[0]) @ layout.component_T_parts[1]
    a, b = layout.footprints
    middle = 0.5 * (np.maximum(a[:2], b[:2]) + np.minimum(a[2:], b[2:])) - 0.5 * (a[:2] + a[2:])
    # Footprints are in component axes; the lower part's are those up to its own quarter turns.
    middle = layout.component_T_parts[0][:2, :2].T @ middle
    centre = np.append(middle * STUD_PITCH, stud.height * PLATE_HEIGHT + STUD_HEIGHT)
    world = world.copy()
    world[2, 3] += STUD_HEIGHT
    turn = at(0, 0, 0, (0, 0, yaw_error)) @ at(0, 0, 0, (0, tilt, 0))
    shift, back = at(*centre.tolist()), at(*(-centre).tolist())
    error = np.asarray(error, dtype=float)
    moved = at(*error.tolist()) @ shift @ turn @ back @ world
    return moved, centre + error


def push_at(simulator: Simulator, part_id: int, point: Array, force: ArrayLike) -> None:
    """Applies a force at a point of the world during the next frame."""
    com = simulator.part_pose(part_id) @ np.append(simulator.graph.part(part_id).shape.com, 1)
    push = np.asarray(force, dtype=float)
    torque = np.cross(point - com[:3], push)
    simulator.apply_wrench(part_id, np.concatenate([push, torque]))


def press(
    simulator: Simulator, part_id: int, point: Array, force: float, frames: int
) -> StepResult:
    """Presses a part down at a point until something connects or the frames are over."""
    for _ in range(frames):
        push_at(simulator, part_id, point, (0.0, 0.0, -force))
        result = simulator.step()
        if any(
            e.kind is EventKind.ASSEMBLED and e.cause is not Cause.SPAWNED for e in result.events
        ):
            break
    return result


def check_press_connects(
    make: EngineFactory,
    stud: BrickShape,
    hole: BrickShape,
    offset: tuple[int, int],
    yaw: int,
    error: Sequence[float] = (0.0, 0.0, 5e-5),
    yaw_error: float = 0.0,
    force: float = 2.0,
) -> None:
    """A brick pressed onto a held one connects as it was placed, and sits exactly."""
    simulator = make_simulator(make, ground=None)
    below = simulator.spawn(single(stud, fixed=True))[0]
    pose, point = placed(stud, hole, offset, yaw, error, yaw_error)
    above = simulator.spawn(single(hole), pose)[0]
    result = press(simulator, above, point, force, frames=20)
    events = [e for e in result.events if e.cause is Cause.PRESSED]
    assert len(events) == 1, [c.reason for c in result.candidates]
    made = events[0].connection
    assert (made.stud_part, made.hole_part) == (below, above)
    assert (made.offset, made.yaw) == (offset, yaw)
    assert events[0].force >= 1.0
    seated, _ = placed(stud, hole, offset, yaw, (0, 0, -STUD_HEIGHT))
    np.testing.assert_allclose(simulator.part_pose(above), seated, atol=1e-12)
    # Nothing pushes afterwards: the pair is one body.
    simulator.step()
    np.testing.assert_allclose(simulator.part_pose(above), seated, atol=1e-12)


def check_does_not_connect(
    make: EngineFactory,
    *,
    error: Sequence[float] = (0.0, 0.0, 5e-5),
    yaw_error: float = 0.0,
    tilt: float = 0.0,
    force: float = 0.0,
    frames: int = 40,
) -> tuple[str, ...]:
    """A 4x2 brick over a held 4x2 brick does not connect; returns why not."""
    shape = BrickShape(4, 2)
    simulator = make_simulator(make, ground=None)
    simulator.spawn(single(shape, fixed=True))
    pose, point = placed(shape, shape, (0, 0), 0, error, yaw_error, tilt)
    above = simulator.spawn(single(shape), pose)[0]
    reasons: list[str] = []
    for _ in range(frames):
        result = press(simulator, above, point, force, frames=1)
        assert not simulator.graph.connections
        reasons += [c.reason for c in result.candidates]
    return tuple(reasons)


def check_pull_off(make: EngineFactory, shape: BrickShape, capacity: float) -> None:
    """In model "paper" a brick comes off a held plate at its capacity, not before."""
    for share, breaks in ((0.97, False), (1.03, True)):
        simulator = make_simulator(make, model="paper", ground=None)
        graph = BrickTopologyGraph()
        plate, brick = graph.add_part(BrickShape(8, 8, 1)), graph.add_part(shape)
        graph.connect(plate, brick, (0, 0), 0)
        component = graph.component_of(plate)
        ids = simulator.spawn(Structure(graph, {component: np.eye(4)}, frozenset({plate})))
        pull = share * capacity + shape.mass * GRAVITY
        broken = False
        for _ in range(12):
            simulator.apply_wrench(ids[brick], (0, 0, pull, 0, 0, 0))
            broken = broken or any(e.cause is Cause.OVERLOAD for e in simulator.step().events)
        assert broken is breaks


def check_pressed_join_conserves_momentum(make: EngineFactory, relative: float = 1e-6) -> None:
    """Two free bricks pressed together in free space fly on with their total momentum."""
    simulator = make_simulator(make, gravity=(0.0, 0.0, 0.0), ground=None)
    shape = BrickShape(4, 2)
    below = simulator.spawn(single(shape))[0]
    pose, point = placed(shape, shape, (1, 0), 0, (3e-4, -2e-4, 2e-5))
    above = simulator.spawn(single(shape), pose)[0]
    drift = np.array([0.2, 0.1, 0.0, 0.0, 0.0, 0.0])
    for part in (below, above):
        simulator.teleport(part, simulator.part_pose(part), drift)
    start = total_momentum(simulator)
    for i in range(20):
        moved = point + i * drift[:3] / simulator.config.frame_rate
        push_at(simulator, below, moved, (0, 0, 2.0))
        push_at(simulator, above, moved, (0, 0, -2.0))
        if any(e.cause is Cause.PRESSED for e in simulator.step().events):
            break
    else:
        raise AssertionError("the bricks did not connect")
    after = total_momentum(simulator)
    np.testing.assert_allclose(after[:3], start[:3], atol=relative * 2 * shape.mass * 0.2)


def check_join_conserves_momentum(make: EngineFactory, relative: float = 1e-9) -> None:
    """A join of bodies in motion keeps linear momentum and angular momentum about their COM."""
    simulator = make_simulator(make, gravity=(0.0, 0.0, 0.0), ground=None)
    rng = np.random.default_rng(1)
    shape = BrickShape(4, 2)
    below = simulator.spawn(tower(3))[2]
    pose = simulator.part_pose(below) @ placed(shape, shape, (1, 1), 1, (5e-4, 1e-3, 2e-3), 0.05)[0]
    above = simulator.spawn(single(shape), pose)[0]
    for part in (below, above):
        simulator.teleport(part, simulator.part_pose(part), rng.normal(size=6))
    before, place = total_momentum(simulator), _com(simulator)
    simulator.connect(below, above, (1, 1), 1)
    after, moved = total_momentum(simulator), _com(simulator)
    assert len(simulator.graph.component_ids) == 1
    np.testing.assert_allclose(after[:3], before[:3], atol=relative * np.abs(before[:3]).max())
    # The snap of the lighter body shifts the common COM; about it the angular momentum stays.
    spin = before[3:] - np.cross(place, before[:3])
    np.testing.assert_allclose(
        after[3:] - np.cross(moved, after[:3]), spin, atol=relative * np.abs(spin).max()
    )


def _com(simulator: Simulator) -> Array:
    result = simulator.result()
    shapes = [simulator.graph.part(p).shape for p in result.part_ids.tolist()]
    masses = np.array([s.mass for s in shapes])
    coms = [pose @ np.append(s.com, 1) for s, pose in zip(shapes, result.world_T_part, strict=True)]
    return masses @ np.array(coms)[:, :3] / masses.sum()


def check_break_keeps_momentum_and_energy(make: EngineFactory, relative: float = 1e-6) -> None:
    """A spinning tower cut in the middle: momentum and kinetic energy do not jump."""
    simulator = make_simulator(make, gravity=(0.0, 0.0, 0.0), ground=None, breakage=False)
    ids = simulator.spawn(tower(6))
    simulator.teleport(ids[0], simulator.part_pose(ids[0]), (0.3, -0.1, 0.2, 0.5, 1.0, -2.0))
    simulator.step()
    before, energy = total_momentum(simulator), total_energy(simulator)
    middle = simulator.graph.connections_between(ids[2], ids[3])[0].id
    simulator.disconnect([middle])
    np.testing.assert_allclose(
        total_momentum(simulator), before, atol=relative * np.abs(before).max()
    )
    assert total_energy(simulator) == pytest.approx(energy, rel=relative)
    # The pieces still stand in each other's studs and are not pushed apart.
    simulator.step()
    assert total_energy(simulator) <= energy * (1 + 1e-3)


def check_drop_and_break(make: EngineFactory) -> None:
    """A tower that hits the ground on its side at 6 m/s breaks; its pieces come to rest on it."""
    simulator = make_simulator(make)
    ids = simulator.spawn(tower(20, BrickShape(1, 1)), at(0, 0, 0.15, (0, 1.3, 0)))
    first = simulator.part_pose(ids[0])
    simulator.teleport(ids[0], first, (0, 0, -6.0, 0, 0, 0))
    broken = 0
    for _ in range(240):
        result = simulator.step()
        broken += sum(e.cause is Cause.OVERLOAD for e in result.events)
    assert broken > 0
    assert len(set(result.component_of.tolist())) > 1
    lowest = result.world_T_part[:, 2, 3] - BRICK_HEIGHT
    assert lowest.min() > -BRICK_HEIGHT - 1e-3
    assert np.abs(result.twist).max() < 0.05
