# SPDX-License-Identifier: Apache-2.0
"""Plans that are executed through a running move_group's action."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from action_msgs.msg import GoalStatus
from arms_ros_support import StoppedTask, connections, lay_out, rested
from launched import finished
from moveit_environment import moveit_environment
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_client import RosClient, ros_client
from sensor_msgs.msg import JointState

from bricksim_msgs import action, msg

RELAY = Path(__file__).with_name("move_group_relay.py")
SIMULATOR = ["ros2", "run", "bricksim_moveit_demo", "simulator", "--ros-args", "-p", "arms:=1"]


@contextmanager
def running(command: list[str], environment: Mapping[str, str], ready: str) -> Iterator[None]:
    """A process that has told that it is ready; it has to end with 0 when it is interrupted."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    # Without this a process that is never ready would be waited for without end.
    watchdog = threading.Timer(300.0, os.killpg, (process.pid, signal.SIGKILL))
    watchdog.start()
    try:
        lines = []
        for line in iter(process.stdout.readline, ""):
            lines.append(line)
            if ready in line:
                break
        watchdog.cancel()
        assert lines and ready in lines[-1], "".join(lines)
        yield
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process)
        assert process.returncode == 0, output
        assert "Traceback" not in output, output
    finally:
        watchdog.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.timeout(900)  # the first time, interfaces are built
def test_motions_are_executed_by_move_group(ros_domain_id) -> None:
    """What it reports becomes the outcome of the try; a cancel ends what it executes."""
    environment = moveit_environment()
    options = ["-p", "execution:=move_group", "-p", "real_time_factor:=0.0"]
    with (
        running([sys.executable, str(RELAY)], environment, "ready"),
        running([*SIMULATOR, *options], environment, "ready: arms fr3"),
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
