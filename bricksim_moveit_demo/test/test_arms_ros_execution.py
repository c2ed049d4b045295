# SPDX-License-Identifier: Apache-2.0
"""Plans that are executed through a running move_group's action."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from action_msgs.msg import GoalStatus
from arms_ros_support import StoppedTask, connections, lay_out, rested, running
from moveit_environment import moveit_environment
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_client import RosClient, ros_client
from sensor_msgs.msg import JointState

from bricksim_msgs import action, msg

RELAY = Path(__file__).with_name("move_group_relay.py")
SIMULATOR = ["ros2", "run", "bricksim_moveit_demo", "simulator", "--ros-args", "-p", "arms:=1"]


@pytest.mark.timeout(900)  # the first time, interfaces are built
def test_motions_are_executed_by_move_group(ros_domain_id) -> None:
    """What it reports becomes the outcome of the try; a cancel ends what it executes."""
    environment = moveit_environment()
    options = ["-p", "execution:=move_group", "-p", "real_time_factor:=0.0"]
    with (
        running([sys.executable, str(RELAY)], "ready", 300.0, environment),
        running([*SIMULATOR, *options], "ready: arms fr3", 300.0, environment),
        ros_client() as ros,
    ):
        plate, first, second = lay_out(ros)
        insert = ros.action(action.PickAndInsert, "pick_and_insert")

        def goal(part: int, y: int) -> action.PickAndInsert.Goal:
            return action.PickAndInsert.Goal(part_id=part, target_part=plate, offset=[2, y])

        fail(ros, 1)
        answer = ros.result(ros.goal(insert, goal(first, 1)))
        report = answer.result.report
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, report
        assert report.tries == 2
        assert connections(ros) == [(plate, first)]

        task = StoppedTask(ros, insert, goal(second, 5))
        task.until("transferring")
        answer = task.cancel()
        assert answer.status == GoalStatus.STATUS_CANCELED, answer.result
        states = ros.collect(JointState, "joint_states", 1)
        assert max(map(abs, rested(ros, states).velocity[:7])) < 0.01

        fail(ros, 1_000)
        answer = ros.result(ros.goal(insert, goal(second, 5)))
        report = answer.result.report
        assert answer.status == GoalStatus.STATUS_ABORTED
        assert report.outcome == msg.InsertionReport.CONTROLLER_FAILED, report
        assert "MoveIt's execution ended with control failed (-4): told to fail" in report.message


def fail(ros: RosClient, times: int) -> None:
    """Makes move_group fail some times."""
    changes = [Parameter("fails", value=times).to_parameter_msg()]
    answer = ros.call(SetParameters, "move_group/set_parameters", parameters=changes)
    assert answer.results[0].successful
