# SPDX-License-Identifier: Apache-2.0
"""Boxes masked because nothing can reach them change no contact: same states, bit by bit."""

from __future__ import annotations

import itertools
import math

import mujoco
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from bricksim_core.engines.mujoco import MujocoEngine, masking
from bricksim_core.engines.mujoco import engine as mujoco_engine
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import transform

STEP = 1.0 / 240.0


def block(layers: int, width: int = 3):
    return parse_structure(running_bond(width, width, layers), baseplate=None)


def brick():
    return parse_structure("2x2 (0,0,0)", baseplate=None)


def scene(held: bool) -> Simulator:
    """A block that falls beside a held one or a loose one, bricks thrown at it, and the ground."""
    simulator = Simulator()
    simulator.spawn(
        block(9), transform([0.0, 0.0, 0.05], [0.0, np.sin(0.1), 0.0, np.cos(0.1)]), fixed=()
    )
    other = block(8)
    simulator.spawn(
        other,
        transform([0.16, 0.0, 0.0], [0, 0, 0, 1]),
        fixed=other.graph.part_ids[: int(held)],
    )
    for i in range(6):
        place = [0.02 + 0.01 * i, -0.12 - 0.02 * i, 0.06 + 0.02 * i]
        (part,) = simulator.spawn(brick(), transform(place, [0, 0, 0, 1]), fixed=()).values()
        twist = [0.3, 3.0, 0.5, 5.0 * i, 10.0, 2.0]
        simulator.teleport(part, transform(place, [0, 0, 0, 1]), twist)
    return simulator


@pytest.mark.parametrize("held", [False, True])
def test_masked_boxes_touch_nothing(held: bool, monkeypatch: pytest.MonkeyPatch):
    def run() -> tuple[list[np.ndarray], int, set]:
        simulator = scene(held)
        engine = simulator.engine
        assert isinstance(engine, MujocoEngine)
        states, masked, kinds = [], 0, set()
        for _ in range(30):
            result = simulator.step()
            states.append(result.world_T_part)
            masked += int(np.count_nonzero(engine.model.geom_conaffinity == 2))
            pairs = engine.data.contact.geom
            kinds |= {bool((pair == 0).any()) for pair in pairs}
        return states, masked, kinds

    quick, masked, _ = run()
    monkeypatch.setattr(masking, "_hide", lambda *arguments: None)
    plain, none, kinds = run()
    assert none == 0 and masked > 10 * 100
    assert kinds == {True, False}  # with the ground, and with each other
    for one, other in zip(plain, quick, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rate", [60.0, 480.0])
@pytest.mark.parametrize("euler", [(90.0, 0.0, 0.0), (0.0, 90.0, 0.0)])
def test_a_flat_landing_breaks_a_neck_whatever_the_step(rate: float, euler):
    """Bricks on their side meet the ground together. Where studs met it first, by speculation, a
    head of three bricks kept a neck that slips 3.5 mm and more without, and lost it at 480 Hz."""
    hammer = [f"1x1 (5,5,{z})" for z in range(8)] + [f"4x4 (4,4,{z})" for z in (8, 9, 10)]
    structure = parse_structure("\n".join(hammer), baseplate=None)
    simulator = Simulator(config=SimulatorConfig(frame_rate=rate))
    simulator.spawn(structure, standing(structure, rotation_from_degrees(*euler), 0.144), fixed=())
    for _ in range(round(0.25 * rate)):
        simulator.step()
    graph = simulator.graph
    assert sorted(len(graph.component_parts(c)) for c in graph.component_ids) == [3, 8]


def test_a_block_breaks_across_a_layer_without_compiling():
    simulator = Simulator()
    simulator.spawn(block(4, 6), fixed=())
    engine = simulator.engine
    assert isinstance(engine, MujocoEngine)
    room = engine.model.ngeom, engine.model.npair
    cut(simulator)
    assert len(simulator.graph.component_ids) > 1
    assert np.count_nonzero(engine.model.pair_geom1 != engine.model.pair_geom1[-1]) > 40
    assert (engine.model.ngeom, engine.model.npair) == room


def cut(simulator: Simulator) -> float:
    """Takes a block apart at half its height [m]."""
    height = {p: pose[2, 3] for p, pose in simulator.poses().items()}
    middle = 0.5 * (min(height.values()) + max(height.values()))
    simulator.disconnect(
        c.id
        for c in simulator.graph.connections.values()
        if (height[c.stud_part] < middle) != (height[c.hole_part] < middle)
    )
    return middle


def halves(turn: float, rise: float = 0.0) -> MujocoEngine:
    """Two pieces of a block, one in the other's studs, 0.2 m over the ground, that fall at 2 m/s
    and tumble as one; the upper one turns by another `turn` [rad/s] and leaves at `rise` [m/s]."""
    simulator = Simulator(config=SimulatorConfig(breakage=BreakageThresholds(enabled=False)))
    simulator.spawn(block(10), transform([0.0, 0.0, 0.2], [0, 0, 0, 1]), fixed=())
    middle, graph = cut(simulator), simulator.graph
    engine = simulator.engine
    assert isinstance(engine, MujocoEngine)
    components = list(graph.component_ids)
    spin = np.array([2.0, 3.0, 1.0])
    centre = np.mean([simulator.component_com(c) for c in components], axis=0)
    for component in components:
        part = min(graph.component_parts(component))
        upper = simulator.part_pose(part)[2, 3] > middle
        angular = spin + np.array([turn * upper, 0.0, 0.0])
        linear = np.cross(spin, simulator.component_com(component) - centre)
        linear[2] += rise * upper - 2.0
        pose = simulator.part_pose(part)
        simulator.teleport(part, pose, [*linear, *angular], allow_overlap=True)
    return engine


@pytest.mark.parametrize(
    ("turn", "parts", "foresight"), [(0.0, 0, False), (20.0, 4, False), (100.0, 4, True)]
)
def test_only_what_moves_relative_to_each_other_is_looked_ahead_for(
    turn: float, parts: int, foresight: bool
):
    """Pieces with connections that meet are followed in shorter steps, by speculation beyond."""
    engine = halves(turn)
    report = engine.step()
    assert len(report.parts or ()) == parts
    assert bool(engine.model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SPECULATIVE) == foresight


@pytest.mark.parametrize(
    ("rise", "parts"), [(1.0, 0), (-0.1, 0), (-0.3, 2), (-0.5, 3), (-0.7, 4), (-1.5, 4)]
)
def test_only_pieces_that_close_in_on_each_other_hit(
    rise: float, parts: int, monkeypatch: pytest.MonkeyPatch
):
    """The faster they do, the shorter are the steps, so that few need speculation."""
    engine, ahead, step = halves(0.0, rise), [], mujoco_engine.step_on_corners

    def watched(model, *arguments):
        ahead.append(bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SPECULATIVE))
        return step(model, *arguments)

    monkeypatch.setattr(mujoco_engine, "step_on_corners", watched)
    assert len(engine.step().parts or ()) == parts
    assert ahead[0] == (abs(rise) > 0.8)


@pytest.mark.parametrize(
    ("bricks", "speed", "parts"), [(1, 2.0, 0), (2, 2.0, 4), (2, 0.6, 2), (2, 0.15, 0)]
)
def test_a_step_with_a_hit_on_the_ground_is_divided_and_told_as_a_whole(
    bricks: int, speed: float, parts: int
):
    simulator = Simulator(config=SimulatorConfig(breakage=BreakageThresholds(enabled=False)))
    tower = parse_structure("".join(f"2x2 (0,0,{z})\n" for z in range(bricks)), baseplate=None)
    simulator.spawn(tower, transform([0.0, 0.0, 0.004], [0.0, 0.0, 0.0, 1.0]), fixed=())
    pose = simulator.part_pose(min(simulator.graph.part_ids))
    simulator.teleport(min(simulator.graph.part_ids), pose, [0.0, 0.0, -speed, 0.0, 0.0, 0.0])
    engine, report = simulator.engine, None
    for _ in range(8):
        report = engine.step()
        if len(report.contacts):
            break
    assert report is not None and len(report.contacts)
    assert len(report.parts or ()) == parts
    if report.parts is None:
        return
    steps = steps_of([report])
    assert steps.dt.tolist() == [report.dt / parts] * parts
    np.testing.assert_array_equal(steps.next_poses[-1], report.world_T_component)
    np.testing.assert_array_equal(steps.poses[0], report.previous_world_T_component)
    np.testing.assert_array_equal(steps.poses[1:], steps.next_poses[:-1])
    np.testing.assert_array_equal(steps.twists[1:], steps.next_twists[:-1])
    assert steps.first[-1] == len(report.contacts)
    impulses = steps.contacts.impulse
    np.testing.assert_array_equal(impulses, report.contacts.impulse)
    mass = bricks * BrickShape(2, 2).mass
    for k, (start, end) in enumerate(itertools.pairwise(steps.first.tolist())):
        gained = mass * (steps.next_twists[k, 0, 2] - steps.twists[k, 0, 2])
        pushed = impulses[start:end, 2].sum()
        assert pushed == pytest.approx(gained + mass * 9.81 * steps.dt[k], rel=1e-3)
    gained = mass * (report.twist[0, 2] - report.previous_twist[0, 2])
    assert impulses[:, 2].sum() == pytest.approx(gained + mass * 9.81 * report.dt, rel=1e-4)


def random_bodies(rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, 7) positions [m] and (N, 6) velocities [m/s, rad/s] of free bodies."""
    positions = np.concatenate([rng.normal(size=(count, 3)) * 0.1, rng.normal(size=(count, 4))], 1)
    positions[:, 3:] /= np.linalg.norm(positions[:, 3:], axis=1, keepdims=True)
    return positions, rng.normal(size=(count, 6)) * [2.0, 2.0, 2.0, 30.0, 30.0, 30.0]


def motion_of(positions, velocities, reach) -> masking._Motion:
    addresses = np.arange(7 * len(positions)).reshape(-1, 7)
    dofs = np.arange(6 * len(positions)).reshape(-1, 6)
    return masking._motions(
        positions.ravel(), velocities.ravel(), addresses, dofs, reach, np.zeros(3), STEP
    )


def test_what_is_slow_for_all_is_slow_for_each():
    """The quick answer is yes only if nobody moves by more than a quarter of a layer of studs."""
    rng = np.random.default_rng(5)
    answers = []
    for _ in range(200):
        positions, velocities = random_bodies(rng, 3)
        velocities *= rng.uniform(0.0, 0.1)
        reach = np.append(rng.uniform(0.01, 0.05, size=3), -np.inf)
        dofs = np.arange(18).reshape(-1, 6)
        slow = masking._all_slow(velocities.ravel(), dofs, reach, STEP)
        ways = motion_of(positions, velocities, reach).ways
        assert slow == bool(ways.max() <= 0.25 * STUD_HEIGHT)
        answers.append(slow)
    assert 20 < sum(answers) < 180


def test_relative_ways_bound_how_far_points_get():
    """Points of tumbling bodies against each other, rigid motion worked out to the end."""
    rng, checked = np.random.default_rng(3), 0
    for _ in range(200):
        positions, velocities = random_bodies(rng, 2)
        motion = motion_of(positions, velocities, np.array([0.15, 0.1, -np.inf]))
        arm = rng.normal(size=3)
        point = positions[1, :3] + 0.1 * rng.uniform() * arm / np.linalg.norm(arm)
        if np.linalg.norm(point - positions[0, :3]) > 0.15:
            continue
        ends = []
        for row in (0, 1):
            turned = Rotation.from_quat(positions[row, 3:], scalar_first=True)
            spin = Rotation.from_rotvec(STEP * turned.apply(velocities[row, 3:]))
            arm = point - positions[row, :3]
            ends.append(positions[row, :3] + STEP * velocities[row, :3] + spin.apply(arm))
        way = float(np.linalg.norm(ends[0] - ends[1]))
        assert way <= masking._relative_way(motion, 0, 1, positions[1, :3], 0.1)
        assert way <= masking._greatest_way(motion, 0, 1)
        checked += 1
    assert checked > 20


def test_boxes_that_may_meet_are_found():
    """Against the distances of boxes as a quadratic programme finds them."""
    rng, outcomes, hits = np.random.default_rng(4), [], []
    for _ in range(25):
        positions, velocities = random_bodies(rng, 2)
        positions[:, :3] *= 0.1
        places, quaternions = rng.normal(size=(8, 3)) * 0.01, rng.normal(size=(8, 4))
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
        sizes, (near, asked) = rng.uniform(1e-3, 8e-3, (8, 3)), np.zeros((2, 8), dtype=np.bool_)
        motion, way = motion_of(positions, velocities, np.array([0.05, 0.05, -np.inf])), 2e-3
        first, number = np.array([0, 4, 8], dtype=np.int32), np.array([4, 4, 0], dtype=np.int32)
        radii = np.linalg.norm(sizes, axis=1)
        boxes = masking._Boxes(np.arange(3), first, number, places, quaternions, sizes, radii)
        passing, hit = masking._boxes_meet(motion, 0, 1, way, False, boxes, near)
        assert not hit
        hits.append(masking._boxes_meet(motion, 0, 1, way, True, boxes, asked))
        # Whether hits are asked for changes nothing else.
        assert hits[-1][0] == passing and np.array_equal(near, asked)
        corners = []
        for box in range(8):
            body = Rotation.from_quat(positions[box // 4, 3:], scalar_first=True)
            local = Rotation.from_quat(quaternions[box], scalar_first=True)
            centre = body.apply(places[box]) + positions[box // 4, :3]
            corners.append((centre, (body * local).as_matrix() * sizes[box]))
        distances = np.array(
            [[gap(corners[a], corners[4 + b]) for b in range(4)] for a in range(4)]
        )
        close = distances <= way
        least = np.concatenate([close.any(axis=1), close.any(axis=0)])
        assert np.all(near[least])
        far = np.concatenate([distances.min(axis=1), distances.min(axis=0)]) > 0.02
        assert not near[far].any()
        outcomes += least.tolist()
    assert 30 < sum(outcomes) < len(outcomes) - 30
    assert 0 < sum(hit for _, hit in hits) < len(hits)


def gap(one, other) -> float:
    """Distance of two boxes, each a centre and a matrix of half edges [m]."""
    matrix = np.concatenate([one[1], -other[1]], axis=1)
    bounds = -np.ones(6), np.ones(6)
    found = lsq_linear(1e3 * matrix, 1e3 * (other[0] - one[0]), bounds, tol=1e-12)
    return 1e-3 * math.sqrt(2.0 * found.cost)
