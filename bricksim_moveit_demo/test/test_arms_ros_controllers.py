# SPDX-License-Identifier: Apache-2.0
"""Trajectory and gripper actions, wrench and joint commands of an arm in the simulator node."""

from __future__ import annotations

import math
from typing import Any

import launch_pytest
import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from arms_ros_support import one_arm_cell, set_state
from arms_support import bricks, yawed
from builtin_interfaces.msg import Duration
from control_msgs.action import (
    FollowJointTrajectory,
    GripperCommand,
    ParallelGripperCommand,
)
from control_msgs.msg import JointTolerance
from geometry_msgs.msg import WrenchStamped
from ros_client import RosClient, ros_client
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import ResetSimulation
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from bricksim_core.formats import Format, format_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_moveit_demo.description import READY, one_arm
from bricksim_msgs import srv

Result = FollowJointTrajectory.Result
JOINTS, FINGERS = list(one_arm()[0].joints), list(one_arm()[0].fingers)
TRAJECTORY, GRIPPER = "fr3_controller/follow_joint_trajectory", "fr3_gripper/gripper_cmd"
PARALLEL = "fr3_parallel_gripper/gripper_cmd"


@launch_pytest.fixture(scope="module")
def arm(module_ros_domain_id):
    """One arm in an empty scene, in a namespace, as fast as possible."""
    return one_arm_cell("cell")


pytestmark = [pytest.mark.launch(fixture=arm), pytest.mark.usefixtures("module_ros_domain_id")]


class Arm:
    """What the tests know of the arm: its last joint state, the clock, its trajectory action."""

    def __init__(self, ros: RosClient) -> None:
        self.ros = ros
        self.states = ros.collect(JointState, "joint_states", 10)
        self.clocks = ros.collect(Clock, "/clock", 10)
        self.action = ros.action(FollowJointTrajectory, TRAJECTORY)
        ros.wait_for(lambda: self.states and self.clocks, "the arm")

    @property
    def positions(self) -> dict[str, float]:
        return dict(zip(self.states[-1].name, self.states[-1].position, strict=True))

    @property
    def rests(self) -> bool:
        return max(abs(v) for v in self.states[-1].velocity) < 1e-3

    @property
    def state_time(self) -> float:
        stamp = self.states[-1].header.stamp
        return stamp.sec + 1e-9 * stamp.nanosec

    @property
    def time(self) -> float:
        clock = self.clocks[-1].clock
        return clock.sec + 1e-9 * clock.nanosec

    def send(self, goal: FollowJointTrajectory.Goal, feedback: list | None = None):
        handle = self.ros.goal(self.action, goal, feedback)
        assert handle.accepted
        return handle

    def follow(self, goal: FollowJointTrajectory.Goal):
        """(status, result) of a goal."""
        answer = self.ros.result(self.send(goal))
        return answer.status, answer.result


def duration(seconds: float) -> Duration:
    return Duration(sec=int(seconds), nanosec=round(1e9 * (seconds % 1.0)))


def goal_to(
    *points: tuple[float, list[float]], joints: list[str] = JOINTS, **fields
) -> FollowJointTrajectory.Goal:
    """A goal of (time, positions)."""
    goal = FollowJointTrajectory.Goal(**fields)
    goal.trajectory.joint_names = joints
    goal.trajectory.points = [
        JointTrajectoryPoint(positions=positions, time_from_start=duration(time))
        for time, positions in points
    ]
    return goal


def moved(first: float, others: float = 0.0) -> list[float]:
    """The ready pose with the first joint turned, and perhaps the others."""
    return [first, *(p + others for p in READY[1:])]


def near(arm: Arm, positions: list[float], within: float = 0.02) -> bool:
    now = arm.positions
    return all(abs(now[j] - p) < within for j, p in zip(JOINTS, positions, strict=True))


def test_a_motion_ends_at_its_goal_and_tells_on_the_way() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        feedback: list[FollowJointTrajectory.Feedback] = []
        # Joints in another order than the controller's; the first point is where the arm goes.
        order = JOINTS[::-1]
        goal = goal_to((0.8, moved(0.2)[::-1]), (1.6, moved(0.4)[::-1]), joints=order)
        answer = ros.result(arm.send(goal, feedback))
        assert answer.status == GoalStatus.STATUS_SUCCEEDED
        assert answer.result.error_code == Result.SUCCESSFUL
        ros.wait_for(lambda: near(arm, moved(0.4)), "the arm to be at its goal")
        assert len(feedback) > 5
        assert list(feedback[-1].joint_names) == JOINTS
        for item in feedback:
            assert np.allclose(
                np.array(item.desired.positions) - np.array(item.actual.positions),
                item.error.positions,
            )


def test_what_is_wrong_with_a_goal_is_named_and_the_running_one_goes_on() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        here = [arm.positions[j] for j in JOINTS]
        running = arm.send(goal_to((60.0, moved(0.3))))
        off = [p + 0.3 for p in here]
        bad_time = goal_to((1.0, here), (1.0, here))
        wall = goal_to((1.0, here))
        wall.trajectory.header.stamp.sec = 1_700_000_000
        old = goal_to((0.001, here))
        old.trajectory.header.stamp.nanosec = 1
        fast = goal_to((0.05, moved(1.5)))
        odd = goal_to((1.0, here))
        odd.path_tolerance = [JointTolerance(name="elbow", position=0.1)]
        cases = [
            (goal_to((1.0, here), joints=[*JOINTS[:-1], "elbow"]), Result.INVALID_JOINTS, "elbow"),
            (goal_to((1.0, here[:3]), joints=JOINTS[:3]), Result.INVALID_JOINTS, "fr3_joint7"),
            (goal_to((1.0, [math.nan, *here[1:]])), Result.INVALID_GOAL, "nan"),
            (goal_to((1.0, here[:3])), Result.INVALID_GOAL, "7 finite numbers"),
            (goal_to((1.0, [4.0, *here[1:]])), Result.INVALID_GOAL, "fr3_joint1 is 4.0"),
            (goal_to(), Result.INVALID_GOAL, "no points"),
            (goal_to((0.0, off), (2.0, here)), Result.INVALID_GOAL, "start of"),
            (bad_time, Result.INVALID_GOAL, "increasing"),
            (wall, Result.INVALID_GOAL, "use_sim_time"),
            (old, Result.OLD_HEADER_TIMESTAMP, "ago"),
            (fast, Result.INVALID_GOAL, "velocity limit"),
            (odd, Result.INVALID_JOINTS, "path_tolerance names 'elbow'"),
        ]
        for goal, code, text in cases:
            status, result = arm.follow(goal)
            assert status == GoalStatus.STATUS_ABORTED
            assert (result.error_code, text in result.error_string) == (code, True), result
        assert running.status in (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
        ros.wait_for(running.cancel_goal_async().done, "the cancel to be answered")
        assert ros.result(running).status == GoalStatus.STATUS_CANCELED


def test_cancel_holds_and_a_new_goal_takes_over_while_the_arm_moves() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        first = arm.send(goal_to((4.0, moved(-0.8))))
        start = arm.positions["fr3_joint1"]
        ros.wait_for(lambda: abs(arm.positions["fr3_joint1"] - start) > 0.2, "the arm to move")
        status, result = arm.follow(goal_to((2.0, moved(0.5))))
        assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, Result.SUCCESSFUL)
        preempted = ros.result(first)
        assert preempted.status == GoalStatus.STATUS_ABORTED
        assert "preempted" in preempted.result.error_string

        canceled = arm.send(goal_to((4.0, moved(-0.8))))
        ros.wait_for(lambda: arm.positions["fr3_joint1"] < 0.3, "the arm to move")
        ros.wait_for(canceled.cancel_goal_async().done, "the cancel to be answered")
        assert ros.result(canceled).status == GoalStatus.STATUS_CANCELED
        # The result may overtake the last states of the motion.
        ros.wait_for(lambda: arm.rests, "the arm to rest")
        begin, where = arm.time, arm.positions["fr3_joint1"]
        assert where > -0.7
        ros.wait_for(lambda: arm.state_time > begin + 1.0, "a second")
        assert abs(arm.positions["fr3_joint1"] - where) < 0.001


def test_tolerances_end_a_motion_and_stamps_begin_one() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        tight = goal_to((1.0, moved(arm.positions["fr3_joint1"] + 0.3)))
        tight.path_tolerance = [JointTolerance(name="fr3_joint1", position=1e-5)]
        status, result = arm.follow(tight)
        assert status == GoalStatus.STATUS_ABORTED
        assert result.error_code == Result.PATH_TOLERANCE_VIOLATED
        assert "fr3_joint1" in result.error_string
        exact = goal_to((1.0, moved(0.2)), goal_time_tolerance=duration(0.2))
        exact.goal_tolerance = [JointTolerance(name="fr3_joint2", position=1e-9)]
        status, result = arm.follow(exact)
        assert status == GoalStatus.STATUS_ABORTED
        assert result.error_code == Result.GOAL_TOLERANCE_VIOLATED
        assert "fr3_joint2" in result.error_string

        status, result = arm.follow(goal_to((1.0, moved(0.0))))
        assert status == GoalStatus.STATUS_SUCCEEDED, result
        later = goal_to((0.5, moved(0.3)))
        begin = arm.time + 30.0
        later.trajectory.header.stamp.sec = int(begin)
        waiting = arm.send(later)
        future = waiting.get_result_async()
        moving: list[float] = []

        def over() -> bool:
            if not moving and arm.positions["fr3_joint1"] > 0.05:
                moving.append(arm.time)
            return future.done()

        ros.wait_for(over, "the goal of the future")
        assert future.result().status == GoalStatus.STATUS_SUCCEEDED
        assert moving[0] > int(begin)


def test_the_gripper_stalls_on_a_brick_and_closes_on_nothing() -> None:
    with ros_client("cell") as ros:
        action = ros.action(GripperCommand, GRIPPER)
        arm = Arm(ros)
        # The fingers move along y then.
        status, result = arm.follow(goal_to((2.0, moved(0.0))))
        assert status == GoalStatus.STATUS_SUCCEEDED, result

        def grip(position: float, effort: float = 0.0) -> Any:
            goal = GripperCommand.Goal()
            goal.command.position, goal.command.max_effort = position, effort
            handle = ros.goal(action, goal)
            return ros.result(handle).result if handle.accepted else None

        assert grip(math.nan) is None
        assert grip(0.5) is None
        assert grip(0.02, -1.0) is None
        empty = grip(0.0)
        assert empty.reached_goal and not empty.stalled
        assert empty.position == pytest.approx(0.0, abs=0.001)
        assert grip(0.04).reached_goal

        tf = ros.collect(TFMessage, "/tf", 100)
        tool = ros.wait_for(lambda: tool_position(tf), "the frames of the arm")
        # A held brick between the fingers, 16 mm wide; its origin is in its lower face.
        place = {0: yawed(tool[0], tool[1], tool[2] - 0.005)}
        text = format_structure(bricks({0: BrickShape(2, 2)}, place), Format.TOPOLOGY)
        spawned = ros.call(srv.SpawnStructure, "bricksim/spawn_structure", text=text, fixed=True)
        assert spawned.success, spawned.message
        assert grip(0.012).reached_goal
        # Half a second is 30 steps, whatever the machine is busy with.
        set_state(ros, SimulationState.STATE_PAUSED)
        goal = GripperCommand.Goal()
        goal.command.max_effort = 20.0
        result = ros.goal(action, goal).get_result_async()
        steps = ros.action(SimulateSteps, "simulate_steps")
        assert ros.result(ros.goal(steps, SimulateSteps.Goal(steps=30))).result.result.result == 1
        ros.wait_for(result.done, "the gripper to stall within half a second")
        set_state(ros, SimulationState.STATE_PLAYING)
        held = result.result().result
        assert held.stalled and not held.reached_goal
        assert 2.0 * held.position == pytest.approx(0.0158, abs=0.001)
        assert held.effort == pytest.approx(20.0, rel=0.3)
        assert grip(0.04).reached_goal

        parallel = ros.action(ParallelGripperCommand, PARALLEL)

        def grip_both(**fields: list) -> Any:
            goal = ParallelGripperCommand.Goal(command=JointState(**fields))
            handle = ros.goal(parallel, goal)
            return ros.result(handle).result if handle.accepted else None

        assert grip_both(position=[0.0]) is None
        assert grip_both(name=["fr3_joint1"], position=[0.0]) is None
        assert grip_both(name=FINGERS, position=[0.0, 0.01]) is None
        assert grip_both(name=FINGERS[:1], position=[0.0], velocity=[-1.0]) is None
        assert grip_both(name=FINGERS[:1], position=[0.0], effort=[math.inf]) is None
        held = grip_both(name=FINGERS[:1], position=[0.0], effort=[20.0])
        assert held.stalled and not held.reached_goal
        assert list(held.state.name) == FINGERS
        assert held.state.position[0] == pytest.approx(held.state.position[1], abs=1e-4)
        assert 2.0 * held.state.position[0] == pytest.approx(0.0158, abs=0.001)
        assert held.state.effort[0] == pytest.approx(20.0, rel=0.3)
        begin = held.state.header.stamp
        opened = grip_both(name=FINGERS, position=[0.028, 0.028], velocity=[0.02, 0.02])
        assert opened.reached_goal and not opened.stalled
        end = opened.state.header.stamp
        # 20 mm at 20 mm/s instead of 50 mm/s.
        assert end.sec - begin.sec + 1e-9 * (end.nanosec - begin.nanosec) > 0.9
        ros.call(ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_SPAWNED)


def tool_position(tf: list[TFMessage]) -> list[float] | None:
    """Where the tool is according to TF, by the chain of its frames; None until all are known."""
    links: dict[str, tuple[str, np.ndarray]] = {}
    for message in tf:
        for item in message.transforms:
            p, q = item.transform.translation, item.transform.rotation
            pose = transform([p.x, p.y, p.z], [q.x, q.y, q.z, q.w])
            links[item.child_frame_id] = (item.header.frame_id, pose)
    frame, pose = "fr3_hand_tcp", np.eye(4)
    while frame != "world":
        if frame not in links:
            return None
        frame, link = links[frame]
        pose = link @ pose
    return pose[:3, 3].tolist()


def test_commands_and_trajectories_do_not_fight_and_the_wrist_feels_nothing_in_free_air() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        commands = ros.node.create_publisher(JointState, "joint_commands", 10)
        ros.wait_for(commands.get_subscription_count, "the simulator to take commands")
        goal = moved(-0.3)
        commands.publish(JointState(name=["fr3_joint1"], position=[-0.3]))
        ros.wait_for(lambda: abs(arm.positions["fr3_joint1"] + 0.3) < 0.01, "the commanded place")
        status, result = arm.follow(goal_to((1.0, goal)))
        assert status == GoalStatus.STATUS_SUCCEEDED, result
        wrenches = ros.collect(WrenchStamped, "fr3/wrench", 10)
        ros.wait_for(lambda: len(wrenches) > 20, "wrenches")
        last = wrenches[-1]
        assert last.header.frame_id == "fr3_hand_tcp"
        force = last.wrench.force
        assert math.hypot(force.x, force.y, force.z) < 1.0


def test_fifty_resets_of_time_and_state_leave_everything_working() -> None:
    with ros_client("cell") as ros:
        arm = Arm(ros)
        tf = ros.collect(TFMessage, "/tf", 10)
        request = ResetSimulation.Request
        for number in range(50):
            scope = request.SCOPE_TIME if number % 2 else request.SCOPE_TIME | request.SCOPE_STATE
            handle = arm.send(goal_to((0.15, moved(0.02)), (0.3, moved(0.04))))
            ros.call(ResetSimulation, "reset_simulation", scope=scope)
            answer = ros.result(handle)
            if scope & request.SCOPE_STATE and answer.status == GoalStatus.STATUS_ABORTED:
                assert "reset" in answer.result.error_string
            else:
                assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result
        assert arm.time < 300.0
        del tf[:]
        status, result = arm.follow(goal_to((0.5, moved(0.25))))
        assert status == GoalStatus.STATUS_SUCCEEDED, result
        ros.wait_for(lambda: near(arm, moved(0.25)), "the arm to be at its goal")
        now = arm.time
        stamps = [t.header.stamp.sec for m in tf for t in m.transforms]
        assert stamps and max(stamps) <= now + 1.0
