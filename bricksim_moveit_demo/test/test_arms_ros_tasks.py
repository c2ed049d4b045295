# SPDX-License-Identifier: Apache-2.0
"""Handling bricks through ROS: the actions, with bricks that were spawned over ROS."""

from __future__ import annotations

from pathlib import Path

import launch_pytest
import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from arms_ros_support import (
    BRICK,
    PLATE,
    StoppedTask,
    connections,
    lay_out,
    one_arm_cell,
    parameter,
    rested,
    spawn,
)
from arms_support import bricks, yawed
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from ros_client import ros_client
from sensor_msgs.msg import JointState
from simulation_interfaces.srv import ResetSimulation
from trajectory_msgs.msg import JointTrajectoryPoint

from bricksim_core.formats import Format, format_structure
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_moveit_demo.description import READY, one_arm
from bricksim_msgs import action, msg

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
TOWER = DATA / "bricksim" / "demo_assembly_structure1.json"
ABORTED, CANCELED = GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED


@launch_pytest.fixture(scope="module")
def cell(module_ros_domain_id):
    """One arm in an empty scene, as fast as possible."""
    return one_arm_cell()


pytestmark = [pytest.mark.launch(fixture=cell), pytest.mark.usefixtures("module_ros_domain_id")]


def tower(*shapes: BrickShape, loose: tuple[BrickShape, ...] = ()) -> str:
    """A file of bricks on a plate, each on the one before, and of others beside them."""
    graph = BrickTopologyGraph()
    last = graph.add_part(PLATE)
    for offset, shape in zip([(2, 3), *[(0, 0)] * 9], shapes, strict=False):
        part = graph.add_part(shape)
        graph.connect(last, part, offset, 0)
        last = part
    for shape in loose:
        graph.add_part(shape)
    poses = {c: yawed(0.3 * i, 0.0, 0.1 * i) for i, c in enumerate(graph.component_ids)}
    return format_structure(Structure(graph, poses, frozenset(), "tower"), Format.TOPOLOGY)


def test_a_brick_is_inserted_canceled_inserted_again_and_taken_off() -> None:
    with ros_client() as ros:
        plate, first, _ = lay_out(ros)
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(part_id=first, target_part=plate, offset=[2, 3])

        # Nothing connects: the arm presses until it is told to stop.
        parameter(ros, "assembly.force", 500.0)
        told: list[action.PickAndInsert.Feedback] = []
        handle = ros.goal(insert, goal, told)
        ros.wait_for(lambda: any(f.stage == "pressing" for f in told), "the press")
        busy = ros.result(ros.goal(insert, goal))
        assert busy.status == ABORTED and "busy with pick_and_insert" in busy.result.report.message
        ros.wait_for(handle.cancel_goal_async().done, "the cancel to be answered")
        answer = ros.result(handle)
        assert answer.status == CANCELED
        report = answer.result.report
        assert (report.outcome, report.arm) == (msg.InsertionReport.CANCELED, "fr3")
        assert connections(ros) == []
        stages = list(dict.fromkeys(f.stage for f in told))
        wanted = ["planning", "approaching", "grasping", "lifting", "transferring", "inserting"]
        assert stages == [*wanted, "pressing"]
        assert max(f.press_force for f in told) > 1.0

        # The next goal goes on from there.
        parameter(ros, "assembly.force", 1.0)
        answer = ros.result(ros.goal(insert, goal))
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result.report
        assert connections(ros) == [(plate, first)]
        assert len(answer.result.report.connection_ids) == 1

        remove = ros.action(action.Disassemble, "disassemble")
        place = PoseStamped(pose=Pose(position=Point(x=0.4, y=-0.2), orientation=Quaternion(w=1.0)))
        place.header.frame_id = "world"
        handle = ros.goal(remove, action.Disassemble.Goal(part_id=first, place=place))
        answer = ros.result(handle)
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result.report
        assert connections(ros) == []


def test_bad_goals_end_with_a_named_cause() -> None:
    with ros_client() as ros:
        plate, first, second = lay_out(ros)
        (far,) = spawn(ros, bricks({0: BRICK}, {0: yawed(2.0, 0.0)}))
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        remove = ros.action(action.Disassemble, "disassemble")
        build = ros.action(action.BuildStructure, "build_structure")

        def asked(client, goal):
            answer = ros.result(ros.goal(client, goal))
            assert answer.status == ABORTED and not answer.result.success
            return answer.result

        def on_plate(part: int, **more):
            return action.PickAndInsert.Goal(part_id=part, target_part=plate, **more)

        kinds = msg.InsertionReport
        insertions = [
            (on_plate(999), kinds.INVALID_GOAL, "999"),
            (on_plate(first, arm="robby"), kinds.INVALID_GOAL, "robby"),
            (on_plate(first, offset=[40, 0]), kinds.INVALID_GOAL, "overlap"),
            (on_plate(first, timeout=-1.0), kinds.INVALID_GOAL, "timeout"),
            (on_plate(far), kinds.UNREACHABLE, "no grasp"),
        ]
        for goal, outcome, text in insertions:
            report = asked(insert, goal).report
            assert report.outcome == outcome, report
            assert text in report.message, report
        report = asked(remove, action.Disassemble.Goal(part_id=second)).report
        assert report.outcome == kinds.INVALID_GOAL and "not connected" in report.message
        report = asked(remove, action.Disassemble.Goal(part_id=plate, method="pray")).report
        assert "pray" in report.message

        bad, missing = kinds.INVALID_GOAL, kinds.BRICK_MISSING
        structures = [
            ({"text": tower(BRICK, loose=(BRICK,))}, bad, 2, "part 2"),
            ({"text": "nonsense"}, bad, 0, "nonsense"),
            ({}, bad, 0, "exactly one of text and uri"),
            ({"uri": str(TOWER), "arms": ["robby"]}, bad, 0, "robby"),
            ({"uri": str(TOWER), "base_part": first}, bad, 4, "base part"),
            ({"uri": str(TOWER), "base_part": first, "supply": True}, bad, 4, "base part"),
            ({"text": tower(*[BRICK] * 4)}, missing, 4, "no loose brick for part 4"),
        ]
        for fields, outcome, total, text in structures:
            result = asked(build, action.BuildStructure.Goal(**fields))
            assert text in result.message, result
            assert (result.outcome, result.inserted, result.total) == (outcome, 0, total), result


def test_a_structure_is_built_from_spawned_bricks_and_a_reset_ends_it() -> None:
    with ros_client() as ros:
        plate, first, second = lay_out(ros)
        build = ros.action(action.BuildStructure, "build_structure")
        goal = action.BuildStructure.Goal(text=tower(BRICK, BRICK))
        told: list[action.BuildStructure.Feedback] = []
        answer = ros.result(ros.goal(build, goal, told))
        result = answer.result
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, result
        assert (result.inserted, result.total) == (2, 2)
        assert [r.outcome for r in result.reports] == ["succeeded", "succeeded"]
        lower, upper = (r.part_id for r in result.reports)
        assert {lower, upper} == {first, second}
        assert connections(ros) == sorted([(plate, lower), (lower, upper)])
        assert {f.part_id for f in told} == {first, second}
        assert {f.arm for f in told} == {"fr3"} and told[-1].total == 2

        # What the scene lacks is supplied, what stands there already stays.
        goal = action.BuildStructure.Goal(text=tower(BRICK, BRICK, BRICK), supply=True)
        result = ros.result(ros.goal(build, goal)).result
        assert result.success and (result.inserted, result.total) == (3, 3), result
        ((_, third),) = set(connections(ros)) - {(plate, lower), (lower, upper)}
        assert third not in {plate, first, second}

        # Everything back to where it was spawned, in the middle of a task.
        lay_out(ros)
        told.clear()
        goal = action.BuildStructure.Goal(text=tower(BRICK))
        handle = ros.goal(build, goal, told)
        ros.wait_for(lambda: any(f.stage == "lifting" for f in told), "a brick to be lifted")
        ros.call(ResetSimulation, "reset_simulation", scope=3)
        answer = ros.result(handle)
        assert answer.status == ABORTED
        assert answer.result.reports[0].outcome == msg.InsertionReport.CANCELED
        assert "reset" in answer.result.reports[0].message
        assert ros.result(ros.goal(build, goal)).status == GoalStatus.STATUS_SUCCEEDED


def test_a_build_that_is_canceled_at_every_stage_goes_on_with_the_next_goal() -> None:
    with ros_client() as ros:
        plate, first, second = lay_out(ros)
        states = ros.collect(JointState, "joint_states", 1)
        build = ros.action(action.BuildStructure, "build_structure")
        goal = action.BuildStructure.Goal(text=tower(BRICK, BRICK))
        picking = ("planning", "approaching", "grasping", "lifting")
        for stage in (*picking, "transferring", "inserting", "pressing", "releasing", "retreating"):
            task = StoppedTask(ros, build, goal)
            task.until(stage)
            answer = task.cancel()
            result = answer.result
            assert answer.status == CANCELED, result
            assert (result.outcome, result.total) == ("canceled", 2), result
            assert "canceled" in result.message
            assert np.abs(rested(ros, states).velocity).max() < 0.02, stage
            # One that is on already, with the fingers still around it, is not counted yet.
            assert result.inserted <= len(connections(ros)) <= result.inserted + 1, stage
        told: list[action.BuildStructure.Feedback] = []
        answer = ros.result(ros.goal(build, goal, told))
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result
        assert (answer.result.inserted, answer.result.total) == (2, 2)
        assert connections(ros) == [(plate, first), (first, second)]


def test_a_task_ends_the_motion_of_another_client_and_lets_none_begin() -> None:
    with ros_client() as ros:
        plate, first, _ = lay_out(ros)
        follow = ros.action(FollowJointTrajectory, "fr3_controller/follow_joint_trajectory")
        slow = FollowJointTrajectory.Goal()
        slow.trajectory.joint_names = list(one_arm()[0].joints)
        end = [0.3, *READY[1:]]
        slow.trajectory.points = [
            JointTrajectoryPoint(positions=end, time_from_start=Duration(sec=600))
        ]
        moving = ros.goal(follow, slow)
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        task = StoppedTask(ros, insert, action.PickAndInsert.Goal(part_id=first, target_part=plate))
        task.until("approaching")
        for goal, text in (
            (moving, "preempted by pick_and_insert"),
            (ros.goal(follow, slow), "busy with pick_and_insert"),
        ):
            answer = ros.result(goal)
            assert answer.status == ABORTED and text in answer.result.error_string
        assert task.cancel().status == CANCELED


def test_time_runs_while_planning_where_it_keeps_a_pace() -> None:
    """A brick out of reach: all that happens is planning."""
    with ros_client() as ros:
        plate, _, _ = lay_out(ros)
        (far,) = spawn(ros, bricks({0: BRICK}, {0: yawed(2.0, 0.0)}))
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(part_id=far, target_part=plate)

        # One depth of grasps: each that does not go is looked for with many seeds.
        parameter(ros, "task.grip_depths", [0.005])

        def duration(factor: float, runs: bool) -> float:
            parameter(ros, "real_time_factor", factor)
            parameter(ros, "time_runs_while_planning", runs)
            report = ros.result(ros.goal(insert, goal)).result.report
            assert report.outcome == msg.InsertionReport.UNREACHABLE
            assert report.planning_time > 0.0
            return report.duration

        assert duration(1.0, False) == 0.0
        assert duration(1.0, True) > 0.0
        parameter(ros, "real_time_factor", 0.0)
