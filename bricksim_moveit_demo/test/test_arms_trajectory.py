# SPDX-License-Identifier: Apache-2.0
"""Trajectories: interpolation, FollowJointTrajectory's rules, and the arm in the simulator."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from arms_support import bench, tool_down, yawed
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.spatial import transform, transform_points
from bricksim_moveit_demo.control.trajectory import Status, Tolerances, TrajectoryFollower
from bricksim_moveit_demo.errors import (
    CanceledError,
    ControllerError,
    Outcome,
    PlanningError,
    TaskError,
)
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, boxes_overlap, hand_boxes
from bricksim_moveit_demo.planning.protocol import Trajectory
from bricksim_moveit_demo.planning.scene import Box, PlanningScene, brick_box, brick_name

JOINTS = ("a", "b")
LIMITS = np.array([2.0, 2.0])


def _ramp(duration=1.0, distance=0.5, joints=JOINTS):
    """A smooth motion of both joints, at rest at both ends."""
    t = np.linspace(0.0, duration, 21)
    s = t / duration
    shape = distance * (3.0 * s**2 - 2.0 * s**3)
    slope = distance * (6.0 * s - 6.0 * s**2) / duration
    bend = distance * (6.0 - 12.0 * s) / duration**2
    columns = [np.column_stack([x, -x]) for x in (shape, slope, bend)]
    return Trajectory(joints, t, *columns)


def test_sampling_is_cubic_hermite():
    trajectory = _ramp()
    spline = CubicHermiteSpline(trajectory.times, trajectory.positions, trajectory.velocities)
    for t in np.linspace(0.0, 0.999, 57):
        position, velocity, _ = trajectory.sample(t)
        np.testing.assert_allclose(position, spline(t), atol=1e-12)
        np.testing.assert_allclose(velocity, spline(t, 1), atol=1e-12)
    position, velocity, _ = trajectory.sample(5.0)
    np.testing.assert_array_equal(position, trajectory.positions[-1])
    assert not velocity.any()


def _run(follower, lag=0.0, stuck_after=None, cancel_at=None):
    """Lets a follower drive ideal joints; returns times and positions."""
    now, measured, history = 0.0, np.zeros(2), []
    while follower.status is Status.ACTIVE and now < 10.0:
        now += 0.01
        if cancel_at is not None and now >= cancel_at:
            follower.cancel()
        reference = follower.update(now, measured, np.zeros(2))
        if stuck_after is None or now < stuck_after:
            measured = reference.positions - lag
        history.append((now, reference))
    return history


def test_succeeds_at_the_goal():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(), 0.0, np.zeros(2))
    history = _run(follower)
    assert follower.status is Status.SUCCEEDED
    np.testing.assert_allclose(history[-1][1].positions, [0.5, -0.5])


def test_joints_may_come_in_any_order():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(joints=("b", "a")), 0.0, np.zeros(2))
    history = _run(follower)
    np.testing.assert_allclose(history[-1][1].positions, [-0.5, 0.5])


def test_aborts_when_a_joint_is_stuck():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(), 0.0, np.zeros(2), Tolerances(path=0.1))
    _run(follower, stuck_after=0.3)
    assert follower.status is Status.PATH_TOLERANCE_VIOLATED
    assert "path tolerance" in follower.message


def test_aborts_when_the_goal_is_missed():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(), 0.0, np.zeros(2), Tolerances(goal=0.01, goal_time=0.5))
    history = _run(follower, lag=0.02)
    assert follower.status is Status.GOAL_TOLERANCE_VIOLATED
    assert history[-1][0] == pytest.approx(1.5, abs=0.03)


def test_cancel_comes_to_rest_on_the_path_without_a_jerk():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(), 0.0, np.zeros(2))
    history = _run(follower, cancel_at=0.4)
    assert follower.status is Status.CANCELED
    positions = np.array([r.positions for _, r in history])
    np.testing.assert_allclose(positions[:, 0], -positions[:, 1], atol=1e-12)
    steps = np.diff(positions[:, 0])
    assert steps.min() >= 0.0
    assert np.abs(np.diff(steps)).max() < 2e-3
    assert 0.2 < positions[-1, 0] < 0.4
    assert history[-1][0] == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: Trajectory(("a", "c"), t.times, *_tables(t)), "joints are"),
        (lambda t: Trajectory(JOINTS, t.times[::-1], *_tables(t)), "increasing times"),
        (lambda t: Trajectory(JOINTS, t.times[:1], *(x[:1] for x in _tables(t))), "two points"),
        (lambda t: Trajectory(JOINTS, t.times, np.nan * t.positions, *_tables(t)[1:]), "finite"),
        (lambda t: Trajectory(JOINTS, t.times, t.positions + 0.1, *_tables(t)[1:]), "start of"),
        (lambda t: _ramp(duration=0.2), "velocity limit"),
    ],
)
def test_bad_goals_are_rejected(change, words):
    follower = TrajectoryFollower(JOINTS, LIMITS)
    with pytest.raises(ControllerError, match=words):
        follower.start(change(_ramp()), 0.0, np.zeros(2))
    assert follower.status is Status.IDLE


def _tables(trajectory):
    return trajectory.positions, trajectory.velocities, trajectory.accelerations


def test_second_goal_is_rejected_while_moving():
    follower = TrajectoryFollower(JOINTS, LIMITS)
    follower.start(_ramp(), 0.0, np.zeros(2))
    follower.update(0.1, np.zeros(2), np.zeros(2))
    with pytest.raises(ControllerError, match="another motion is active"):
        follower.start(_ramp(), 0.1, np.zeros(2))


def test_twenty_motions_in_a_row_start_where_the_arm_is():
    """Plan and execute at once, again and again: no start deviates, none is rejected."""
    b = bench({}, {})
    motion = b.handler.motion
    generator = np.random.default_rng(4)
    for _ in range(20):
        x, y, z = generator.uniform([0.35, -0.3, 0.1], [0.6, 0.3, 0.4])
        motion.go_to_pose(tool_down(x, y, z))
        np.testing.assert_allclose(motion.controller.measured_tool, tool_down(x, y, z), atol=1.5e-3)


def test_arm_follows_and_feels_no_force_in_free_space():
    b = bench({}, {})
    motion = b.handler.motion
    errors, forces = [], []

    def watch(_):
        controller = motion.controller
        state = b.simulator.engine.joint_state("fr3")
        measured = state.positions[:7]
        errors.append(np.abs(measured - controller.reference.positions).max())
        forces.append(np.linalg.norm(controller.wrench[:3]))

    b.world.listeners.append(watch)
    motion.go_to_pose(tool_down(0.45, -0.25, 0.15))
    assert max(errors) < 0.02
    assert max(forces) < 1.0


def test_running_into_something_ends_the_motion():
    b = bench({}, {})
    motion = b.handler.motion
    motion.go_to_pose(tool_down(0.5, 0.2, 0.1))
    # A scene without the table: the planner does not see it, the arm runs into the ground.
    blind = PlanningScene(b.world.planning_scene().positions)
    with pytest.raises(TaskError, match="on the tool during a free motion") as failure:
        motion.go_straight([tool_down(0.5, 0.2, -0.03)], 0.05, blind, free=True)
    assert failure.value.outcome is Outcome.COLLISION
    motion.wait(0.3)
    assert motion.controller.measured_tool[2, 3] > 0.005
    assert np.linalg.norm(motion.controller.wrench[:3]) < 20.0


def test_cancel_during_a_motion_leaves_the_arm_at_rest():
    b = bench({}, {})
    motion = b.handler.motion
    stop = b.world.time + 0.4
    b.world.listeners.append(lambda _: b.world.cancel() if b.world.time >= stop else None)
    with pytest.raises(CanceledError):
        motion.go_to_pose(tool_down(0.45, -0.25, 0.15))
    b.world.listeners.clear()
    state = b.simulator.engine.joint_state("fr3")
    assert np.abs(state.velocities).max() < 0.1
    assert np.linalg.norm(motion.controller.measured_tool[:3, 3] - [0.45, -0.25, 0.15]) > 0.05
    motion.go_to_pose(tool_down(0.45, -0.25, 0.15))


def test_free_motions_keep_a_clearance_to_bricks():
    shape = BrickShape(2, 2, 3)
    b = bench({1: shape}, {1: yawed(0.3, 0.3)})
    motion = b.handler.motion
    kinematics, arm, fingers = motion.controller.kinematics, motion.arm, motion.controller.width

    def ends(height):
        """Joints at both ends of a flat motion, and the tool half way."""
        scene = b.world.planning_scene().without([brick_name(1)])
        tools = [tool_down(0.45, y, height) for y in (-0.34, -0.04)]
        start, goal = (b.planner.reach(scene, arm, tool)[0] for tool in tools)
        return start, goal, kinematics.tool_pose(0.5 * (start + goal))

    # The brick lies under one finger, 2 mm below the tips as they pass over its studs.
    passing = shape.size[2] + STUD_HEIGHT + 0.002 + TIP_BEYOND_TOOL
    start, goal, middle = ends(0.05)
    start, goal, middle = ends(0.05 + passing - middle[2, 3])
    motion.go_to_joints([start])
    place = yawed(*(middle @ [0.0, 0.5 * fingers + 0.005, 0.0, 1.0])[:2])
    b.simulator.teleport(1, place)

    def near(tool, gap):
        box = brick_box(shape, place)
        parts = [Box(part.size, tool @ part.pose) for part in hand_boxes(fingers)]
        return any(boxes_overlap(part, [box], gap).any() for part in parts)

    direct = b.planner.plan_to_joints(b.world.planning_scene(), arm, [goal])
    assert any(near(kinematics.tool_pose(q), 0.0025) for q in direct.positions)
    grazed = []
    b.world.listeners.append(lambda _: grazed.append(near(motion.controller.measured_tool, 0.0025)))
    motion.go_to_joints([goal])
    assert grazed and not any(grazed)
    np.testing.assert_allclose(kinematics.tool_pose(goal), motion.tool, atol=1e-4)
    np.testing.assert_allclose(b.world.part_pose(1), place, atol=1e-4)


def test_free_motions_keep_a_clearance_to_the_table():
    b = bench({}, {})
    motion = b.handler.motion
    kinematics, fingers = motion.controller.kinematics, motion.controller.width
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))

    def gap(tool):
        """Height of the hand's lowest corner [m]."""
        boxes = hand_boxes(fingers)
        return min(
            transform_points(tool @ box.pose, corners * box.size)[:, 2].min() for box in boxes
        )

    def low(x, y, *tilt):
        """A tilted hand 12 mm above the table."""
        pose = tool_down(x, y, 0.0)
        pose[:3, :3] = Rotation.from_euler("xy", tilt, degrees=True).as_matrix() @ pose[:3, :3]
        pose[2, 3] = 0.012 - gap(pose)
        return pose

    # Straight in joint space, the tips pass 1 mm above the table half way.
    scene, arm = b.world.planning_scene(), motion.arm
    start = b.planner.reach(scene, arm, low(0.53, -0.02, 9.0, -13.0))[0]
    scene = scene.with_positions(dict(zip(arm.joints, start.tolist(), strict=True)))
    goal = b.planner.reach(scene, arm, low(0.42, -0.28, -23.0, -23.0))[0]
    motion.go_to_joints([start])
    direct = b.planner.plan_to_joints(b.world.planning_scene(), arm, [goal])
    assert min(gap(kinematics.tool_pose(q)) for q in direct.positions) < 0.002
    gaps = []
    b.world.listeners.append(lambda _: gaps.append(gap(motion.controller.measured_tool)))
    motion.go_to_joints([goal])
    assert min(gaps) > 0.003


@pytest.mark.parametrize(("room", "kept"), [(0.006, 0.005), (0.0035, 0.0025), (0.0015, 0.0)])
def test_the_clearance_is_what_there_is_room_for(room, kept):
    """Something is close beside the elbow when a motion begins."""
    b = bench({}, {})
    motion, arm = b.handler.motion, b.handler.motion.arm
    scene = b.world.planning_scene()
    start = scene.arm_positions(arm.joints)
    size, close, far = (0.04, 0.04, 0.04), 0.0, 0.3

    def beside(distance):
        box = Box(size, transform([-0.165, distance, 0.615]))
        return replace(scene, objects={**scene.objects, "post": box})

    def touches(distance):
        try:
            b.planner.plan_to_joints(beside(distance), arm, [start])
        except PlanningError:
            return True
        return False

    assert touches(close) and not touches(far)
    while far - close > 1e-5:
        middle = 0.5 * (close + far)
        close, far = (middle, far) if touches(middle) else (close, middle)
    away = start.copy()
    away[0] += 0.3
    motion.go_to_joints([away], beside(far + room))
    assert motion.clearance == kept


def test_a_free_motion_that_runs_into_something_ends():
    b = bench({}, {})
    motion = b.handler.motion
    motion.go_to_pose(tool_down(0.5, 0.2, 0.1))
    blind = PlanningScene(b.world.planning_scene().positions)
    with pytest.raises(TaskError, match="on the tool during a free motion, expected at most 15"):
        motion.go_to_pose(tool_down(0.5, 0.2, -0.03), blind)
