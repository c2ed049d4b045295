# SPDX-License-Identifier: Apache-2.0
"""What users of arms over ROS rely on: ready means ready, plans begin where the arm is measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from arms_ros_support import BRICK, PLATE, parameter, running, set_state, spawn
from arms_support import bricks, tool_down, yawed
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory, GripperCommand
from rclpy.action import get_action_names_and_types
from ros_client import RosClient, ros_client
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import GetEntityState, ResetSimulation, StepSimulation
from trajectory_msgs.msg import JointTrajectoryPoint

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, inverse, transform_points
from bricksim_moveit_demo.description import two_arms
from bricksim_moveit_demo.kinematics import ArmKinematics
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.moveit_configuration import controllers, parallel_gripper_name
from bricksim_moveit_demo.planning.protocol import PlanningOptions, Trajectory
from bricksim_moveit_demo.planning.scene import PlanningScene, brick_box, brick_name
from bricksim_msgs import action, msg

LEFT, RIGHT = two_arms()
COMMAND = ["ros2", "run", "bricksim_moveit_demo", "simulator", "--ros-args"]
PARAMETERS = ["-p", "arms:=2", "-p", "real_time_factor:=0.0"]


@pytest.fixture(scope="module")
def cell(module_ros_domain_id) -> Iterator[None]:
    """A simulator with two arms that has just said that it is ready; it has to end with 0."""
    with running([*COMMAND, *PARAMETERS], "ready: arms left, right", 120.0):
        yield


pytestmark = pytest.mark.usefixtures("cell")


def test_ready_means_that_every_server_of_every_arm_is_there() -> None:
    """By the names and types that MoveIt's controllers are configured with."""
    table = controllers([LEFT, RIGHT])
    wanted = {
        f"/{name}/{table[name]['action_ns']}": f"control_msgs/action/{table[name]['type']}"
        for name in table["controller_names"]
    }
    for arm in (LEFT, RIGHT):
        kind = "control_msgs/action/ParallelGripperCommand"
        wanted[f"/{parallel_gripper_name(arm)}/gripper_cmd"] = kind
    for name in ("PickAndInsert", "BuildStructure", "Disassemble"):
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_")
        wanted[f"/{snake}"] = f"bricksim_msgs/action/{name}"
    with ros_client() as ros:

        def served() -> bool:
            found = dict(get_action_names_and_types(ros.node))
            return all(found.get(name) == [kind] for name, kind in wanted.items())

        ros.wait_for(served, f"the actions {sorted(wanted)}")


class Driver:
    """Plans from the measured joint state, sends the trajectory, waits for the result."""

    def __init__(self, ros: RosClient) -> None:
        self.ros = ros
        self.planner = EmbeddedPlanner(two_arms(), PlanningOptions())
        self.states = ros.collect(JointState, "joint_states", 1)
        self.action = ros.action(FollowJointTrajectory, "left_controller/follow_joint_trajectory")
        self.objects: dict = {}

    def scene(self) -> PlanningScene:
        """The arms as measured, at rest."""

        def rests() -> bool:
            return bool(self.states) and max(map(abs, self.states[-1].velocity[:7])) < 0.02

        self.ros.wait_for(rests, "the arm to rest")
        last = self.states[-1]
        return PlanningScene(dict(zip(last.name, last.position, strict=True)), self.objects)

    def goal(self, planned: Trajectory) -> FollowJointTrajectory.Goal:
        rows = zip(planned.positions, planned.velocities, planned.accelerations, strict=True)
        goal = FollowJointTrajectory.Goal()
        goal.trajectory.joint_names = list(planned.joints)
        goal.trajectory.points = [
            JointTrajectoryPoint(
                positions=positions.tolist(),
                velocities=velocities.tolist(),
                accelerations=accelerations.tolist(),
                time_from_start=Duration(sec=int(time), nanosec=round(1e9 * (time % 1.0))),
            )
            for time, (positions, velocities, accelerations) in zip(
                planned.times.tolist(), rows, strict=True
            )
        ]
        return goal

    def follow(self, planned: Trajectory) -> None:
        handle = self.ros.goal(self.action, self.goal(planned))
        assert handle.accepted
        answer = self.ros.result(handle)
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result

    def go(self, pose: Array) -> None:
        self.follow(self.planner.plan_to_pose(self.scene(), LEFT, pose))

    def go_straight(self, pose: Array, scene: PlanningScene) -> None:
        self.follow(self.planner.plan_straight(scene, LEFT, [pose], 0.1))


def test_twenty_plans_from_the_measured_state_are_all_executed() -> None:
    """One after the other without a pause, also after resets of time and right after a grasp."""
    with ros_client() as ros:
        driver = Driver(ros)
        base = LEFT.world_T_base[:3, 3]
        generator = np.random.default_rng(3)
        for cycle in range(18):
            if cycle in (6, 12):
                scope = ResetSimulation.Request.SCOPE_TIME
                ros.call(ResetSimulation, "reset_simulation", scope=scope)
            x, y = base[0] + generator.uniform(0.35, 0.5), base[1] + generator.uniform(-0.2, 0.1)
            driver.go(tool_down(x, y, generator.uniform(0.2, 0.4)))
        x, y = base[0] + 0.4, base[1]
        (brick,) = spawn(ros, bricks({0: BRICK}, {0: yawed(x, y)}))
        driver.objects = {brick_name(brick): brick_box(BRICK, yawed(x, y))}
        touching = [(link, brick_name(brick)) for link in LEFT.hand_links]
        driver.go(tool_down(x, y, 0.1))
        driver.go_straight(tool_down(x, y, 0.012), driver.scene().allowing(touching))
        gripper = ros.action(GripperCommand, "left_gripper/gripper_cmd")
        goal = GripperCommand.Goal()
        goal.command.max_effort = 20.0
        held = ros.result(ros.goal(gripper, goal)).result
        assert held.stalled
        scene = driver.scene().allowing(touching)
        driver.go_straight(tool_down(x, y, 0.15), scene)
        driver.objects = {}
        require_no_drift(driver, brick)


def require_no_drift(driver: Driver, brick: int) -> None:
    """Carries a brick about for ten seconds of simulation time: less than 0.2 mm."""
    kinematics = ArmKinematics(LEFT)

    def grip() -> tuple[float, Array]:
        """Time [s] and the brick's place in the hand [m], of the same step."""
        set_state(driver.ros, SimulationState.STATE_PAUSED)
        driver.states.clear()
        driver.ros.call(StepSimulation, "step_simulation", steps=1)
        driver.ros.wait_for(lambda: driver.states, "joint states")
        joints = driver.states[-1]
        measured = dict(zip(joints.name, joints.position, strict=True))
        tool = kinematics.tool_pose(np.array([measured[joint] for joint in LEFT.joints]))
        answer = driver.ros.call(GetEntityState, "get_entity_state", entity=f"brick_{brick}")
        set_state(driver.ros, SimulationState.STATE_PLAYING)
        p, stamp = answer.state.pose.position, joints.header.stamp
        here = transform_points(inverse(tool), np.array([p.x, p.y, p.z]))
        return stamp.sec + 1e-9 * stamp.nanosec, here

    begin, first = grip()
    generator, time, base = np.random.default_rng(4), begin, LEFT.world_T_base[:3, 3]
    while time < begin + 10.0:
        place = base[:2] + generator.uniform([0.35, -0.25], [0.5, 0.25])
        driver.go(tool_down(place[0], place[1], generator.uniform(0.2, 0.4)))
        time, now = grip()
        assert np.linalg.norm(now - first) < 0.2e-3


def test_an_arm_in_the_way_of_the_other_is_named() -> None:
    with ros_client() as ros:
        ros.call(ResetSimulation, "reset_simulation", scope=7)
        middle = 0.5 * (LEFT.world_T_base[:3, 3] + RIGHT.world_T_base[:3, 3])
        (plate,) = spawn(ros, bricks({0: PLATE}, {0: yawed(middle[0], 0.25)}), fixed=True)
        (brick,) = spawn(ros, bricks({0: BrickShape(1, 1)}, {0: yawed(middle[0], 0.0)}))
        driver = Driver(ros)
        driver.go(tool_down(middle[0], 0.0, 0.06))
        # One depth of grasps: each that does not go is looked for with many seeds.
        parameter(ros, "task.grip_depths", [0.005])
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(
            part_id=brick, target_part=plate, offset=[2, 3], arm=RIGHT.name
        )
        answer = ros.result(ros.goal(insert, goal))
        report = answer.result.report
        assert answer.status == GoalStatus.STATUS_ABORTED
        assert report.outcome == msg.InsertionReport.UNREACHABLE, report
        assert "arms left and right touch each other" in report.message


def test_arms_that_run_into_each_other_end_with_the_cause_and_work_on() -> None:
    with ros_client() as ros:
        ros.call(ResetSimulation, "reset_simulation", scope=7)
        middle = 0.5 * (LEFT.world_T_base[:3, 3] + RIGHT.world_T_base[:3, 3])
        (plate,) = spawn(ros, bricks({0: PLATE}, {0: yawed(middle[0], 0.25)}), fixed=True)
        (brick,) = spawn(ros, bricks({0: BRICK}, {0: yawed(middle[0] + 0.1, -0.2)}))
        driver = Driver(ros)
        driver.go(tool_down(middle[0], 0.0, 0.2))
        # A plan that knows nothing of the other arm.
        known = driver.scene().positions
        own = {joint: known[joint] for joint in (*RIGHT.joints, *RIGHT.fingers)}
        blind = EmbeddedPlanner([RIGHT], PlanningOptions())
        planned = blind.plan_to_pose(PlanningScene(own), RIGHT, tool_down(middle[0], 0.0, 0.2))
        right = ros.action(FollowJointTrajectory, "right_controller/follow_joint_trajectory")
        answer = ros.result(ros.goal(right, driver.goal(planned)))
        assert answer.status == GoalStatus.STATUS_ABORTED
        assert answer.result.error_code == answer.result.PATH_TOLERANCE_VIOLATED
        assert "right_fr3_joint" in answer.result.error_string
        # It stops where it touched, and the next task gets the arms apart.
        driver.scene()
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(
            part_id=brick, target_part=plate, offset=[2, 3], arm=RIGHT.name
        )
        answer = ros.result(ros.goal(insert, goal))
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result
