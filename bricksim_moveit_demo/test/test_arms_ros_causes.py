# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a brick, each cause in the action's result; cancel at every stage."""

from __future__ import annotations

import itertools
import math

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
    move,
    one_arm_cell,
    parameter,
    rested,
    spawn,
)
from arms_support import bricks, yawed
from geometry_msgs.msg import WrenchStamped
from ros_client import RosClient, ros_client
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import Result
from simulation_interfaces.srv import DeleteEntity, GetEntityState

from bricksim_core.parts import BrickShape
from bricksim_msgs import action, msg, srv

KINDS = msg.InsertionReport
SUCCEEDED, ABORTED = GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_ABORTED


@launch_pytest.fixture(scope="module")
def cell(module_ros_domain_id):
    """One arm in an empty scene, as fast as possible."""
    return one_arm_cell()


pytestmark = [pytest.mark.launch(fixture=cell), pytest.mark.usefixtures("module_ros_domain_id")]


def height(ros: RosClient, part: int) -> float:
    answer = ros.call(GetEntityState, "get_entity_state", entity=f"brick_{part}")
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message
    return answer.state.pose.position.z


def canceled(task: StoppedTask) -> None:
    """Cancels a task; its result has to say so."""
    answer = task.cancel()
    assert answer.status == GoalStatus.STATUS_CANCELED, answer.result
    assert answer.result.report.outcome == KINDS.CANCELED
    assert answer.result.report.arm == "fr3"


def force(wrenches: list[WrenchStamped]) -> float:
    """What the tool feels [N]."""
    last = wrenches[-1].wrench.force
    return math.hypot(last.x, last.y, last.z)


def hold(ros: RosClient, part: int, fixed: bool) -> None:
    answer = ros.call(srv.HoldFixed, "bricksim/hold_fixed", part_ids=[part], fixed=fixed)
    assert answer.success, answer.message


def delete(ros: RosClient, part: int) -> None:
    answer = ros.call(DeleteEntity, "delete_entity", entity=f"brick_{part}")
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message


def spoiled(ros: RosClient, stage: str, spoil, shape: BrickShape = BRICK, tries: int = 1):
    """The report of an insertion in which something happens to the brick in a stage."""
    plate, brick, _ = lay_out(ros, shape)
    parameter(ros, "task.tries", tries)
    insert = ros.action(action.PickAndInsert, "pick_and_insert")
    goal = action.PickAndInsert.Goal(part_id=brick, target_part=plate, offset=[2, 3])
    task = StoppedTask(ros, insert, goal)
    task.until(stage)
    spoil(brick)
    answer = task.answer()
    parameter(ros, "task.tries", 4)
    assert answer.status == ABORTED and not answer.result.success
    report = answer.result.report
    assert report.part_id == brick and report.arm == "fr3" and report.tries <= tries
    return report


def test_gripper_that_closes_on_nothing_or_not_at_all_is_told() -> None:
    with ros_client() as ros:
        report = spoiled(ros, "approaching", lambda brick: move(ros, brick, yawed(0.5, -0.25)))
        assert report.outcome == KINDS.GRASP_FAILED
        assert "gripper closed to 0." in report.message

        def wedge(brick: int) -> None:
            """A brick that is held askew keeps the fingers 21.6 mm apart."""
            move(ros, brick, yawed(0.42, 0.2, 0.0, 30.0))
            hold(ros, brick, True)

        report = spoiled(ros, "approaching", wedge, BrickShape(2, 2))
        assert report.outcome == KINDS.GRASP_FAILED
        assert "gripper closed to 21." in report.message
        assert "expected 16.0 mm" in report.message


def test_lost_slipped_and_vanished_bricks_are_told() -> None:
    with ros_client() as ros:
        report = spoiled(ros, "transferring", lambda brick: move(ros, brick, yawed(0.5, -0.25)))
        assert report.outcome == KINDS.BRICK_LOST
        assert "mm from where it was gripped" in report.message

        def slip(brick: int) -> None:
            """Five millimetres down between the pads."""
            state = ros.call(GetEntityState, "get_entity_state", entity=f"brick_{brick}").state
            p, q = state.pose.position, state.pose.orientation
            turn = 2.0 * math.degrees(math.atan2(q.z, q.w))
            move(ros, brick, yawed(p.x, p.y, p.z - 0.005, turn))

        report = spoiled(ros, "transferring", slip)
        assert report.outcome == KINDS.BRICK_SLIPPED
        assert "5.0 mm" in report.message and "in the gripper" in report.message

        report = spoiled(ros, "approaching", lambda brick: delete(ros, brick), tries=4)
        assert report.outcome == KINDS.BRICK_MISSING
        assert "does not exist" in report.message


def test_a_hand_that_runs_into_something_stops() -> None:
    with ros_client() as ros:
        wrenches = ros.collect(WrenchStamped, "fr3/wrench", 1)

        def block(_brick: int) -> None:
            """A brick appears above one end of the hand, which is about to go up."""
            spawn(ros, bricks({0: BRICK}, {0: yawed(0.42, 0.11, 0.15)}), fixed=True)

        report = spoiled(ros, "lifting", block)
        assert report.outcome == KINDS.COLLISION
        assert "N on the tool during a free motion, expected at most 15.0" in report.message
        states = ros.collect(JointState, "joint_states", 1)
        # It does not go on pushing.
        assert np.abs(rested(ros, states).velocity).max() < 0.02
        assert force(wrenches) < 5.0


def test_a_press_that_what_stands_there_would_not_bear_is_refused() -> None:
    with ros_client() as ros:
        plate, _, brick = lay_out(ros)
        steps = [
            plate,
            *spawn(
                ros,
                bricks(
                    dict.fromkeys(range(4), BRICK),
                    {i: yawed(0.3 + 0.05 * i, -0.3) for i in range(4)},
                ),
            ),
        ]
        for lower, upper in itertools.pairwise(steps):
            offset = [4, 3] if lower == plate else [-2, 0]
            answer = ros.call(
                srv.Connect, "bricksim/connect", stud_part=lower, hole_part=upper, offset=offset
            )
            assert answer.success, answer.message
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(part_id=brick, target_part=steps[-1], offset=[-2, 0])
        answer = ros.result(ros.goal(insert, goal))
        report = answer.result.report
        assert answer.status == ABORTED
        assert report.outcome == KINDS.STRUCTURE_UNSTABLE, report
        assert "would break what is there" in report.message


def test_cancel_at_every_stage_leaves_a_state_that_the_next_goal_goes_on_from() -> None:
    with ros_client() as ros:
        plate, first, second = lay_out(ros)
        states = ros.collect(JointState, "joint_states", 1)
        wrenches = ros.collect(WrenchStamped, "fr3/wrench", 1)
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(part_id=first, target_part=plate, offset=[2, 4])
        picking = ("planning", "approaching", "grasping", "lifting")
        for stage in (*picking, "transferring", "inserting", "pressing", "releasing"):
            task = StoppedTask(ros, insert, goal)
            task.until(stage)
            # What is held already is not picked again.
            assert ("grasping" in task.stages) == (stage in picking[2:]), task.stages
            canceled(task)
            assert np.abs(rested(ros, states).velocity).max() < 0.02, stage
            assert force(wrenches) < 3.0, stage
            if stage == "inserting":
                assert height(ros, first) > 0.02
        # Hand and fingers are still around the brick: the same goal finishes what is left.
        assert connections(ros) == [(plate, first)]
        answer = ros.result(ros.goal(insert, goal))
        assert answer.status == SUCCEEDED, answer.result.report
        goal = action.PickAndInsert.Goal(part_id=second, target_part=plate, offset=[2, 0])
        task = StoppedTask(ros, insert, goal)
        task.until("retreating")
        canceled(task)
        assert connections(ros) == [(plate, first), (plate, second)]
        answer = ros.result(ros.goal(insert, goal))
        assert answer.status == SUCCEEDED, answer.result.report
        assert rested(ros, states).position[-1] > 0.01


def test_a_brick_deleted_in_the_hand_does_not_stop_later_goals() -> None:
    with ros_client() as ros:
        plate, brick, other = lay_out(ros)
        insert = ros.action(action.PickAndInsert, "pick_and_insert")
        goal = action.PickAndInsert.Goal(part_id=brick, target_part=plate, offset=[2, 3])
        task = StoppedTask(ros, insert, goal)
        task.until("transferring")
        delete(ros, brick)
        answer = task.answer()
        assert answer.result.report.outcome == msg.InsertionReport.BRICK_MISSING
        goal.part_id = other
        answer = ros.result(ros.goal(insert, goal))
        assert answer.status == SUCCEEDED, answer.result.report


def test_a_canceled_removal_goes_on_with_the_next_goal() -> None:
    with ros_client() as ros:
        plate, first, _ = lay_out(ros)
        answer = ros.call(
            srv.Connect, "bricksim/connect", stud_part=plate, hole_part=first, offset=[2, 3]
        )
        assert answer.success, answer.message
        states = ros.collect(JointState, "joint_states", 1)
        remove = ros.action(action.Disassemble, "disassemble")
        goal = action.Disassemble.Goal(part_id=first)
        for stage in ("approaching", "grasping", "lifting"):
            task = StoppedTask(ros, remove, goal)
            task.until(stage)
            canceled(task)
            assert np.abs(rested(ros, states).velocity).max() < 0.02, stage
        assert PLATE.size[2] - 0.001 < height(ros, first) < PLATE.size[2] + 0.002
        answer = ros.result(ros.goal(remove, goal))
        assert answer.status == SUCCEEDED, answer.result.report
        assert connections(ros) == []
