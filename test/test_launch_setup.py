# SPDX-License-Identifier: Apache-2.0
"""The set-up for launch tests: real processes, a real DDS, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import psutil
import pytest

launch_pytest = pytest.importorskip("launch_pytest", reason="needs ROS 2")
rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from launch import LaunchDescription  # noqa: E402
from launch.actions import ExecuteProcess  # noqa: E402
from launch_pytest.tools import process as process_tools  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402

from bricksim_msgs.msg import BrickTopology  # noqa: E402

DISCOVERY_TIMEOUT = 20.0
"""Longest time for a message to arrive [s]; a loaded machine needs seconds to discover."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TALKER = """
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from bricksim_msgs.msg import BrickPart, BrickTopology
rclpy.init()
node = rclpy.create_node("talker")
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
publisher = node.create_publisher(BrickTopology, "bricksim/topology", latched)
part = BrickPart(id=7, length=4, width=2, height=3, has_studs=True, color=[1, 2, 3], mass=0.00216)
publisher.publish(BrickTopology(parts=[part]))
print("published", flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    print("interrupted", flush=True)
"""


@pytest.fixture
def talker() -> ExecuteProcess:
    """A node that publishes one latched topology."""
    return ExecuteProcess(cmd=[sys.executable, "-c", TALKER], cached_output=True, output="both")


@launch_pytest.fixture
def talking(talker: ExecuteProcess) -> LaunchDescription:
    """The talker, launched."""
    return LaunchDescription([talker, launch_pytest.actions.ReadyToTest()])


def _receive(domain_id: int, timeout: float) -> BrickTopology | None:
    received: list[BrickTopology] = []
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    node = rclpy.create_node("listener", context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    node.create_subscription(BrickTopology, "bricksim/topology", received.append, LATCHED)
    deadline = time.monotonic() + timeout
    while not received and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=context)
    return received[0] if received else None


def _pid(talker: ExecuteProcess) -> int:
    details = talker.process_details
    assert details is not None
    return details["pid"]


@pytest.mark.launch(fixture=talking)
def test_late_joiner_in_the_same_domain_receives(talker, ros_domain_id, launch_context):
    assert process_tools.wait_for_output_sync(
        launch_context, talker, lambda text: "published" in text, timeout=DISCOVERY_TIMEOUT
    )
    message = _receive(ros_domain_id, DISCOVERY_TIMEOUT)
    assert message is not None
    assert [(p.id, p.length, p.width, p.mass) for p in message.parts] == [(7, 4, 2, 0.00216)]


@pytest.mark.launch(fixture=talking)
def test_other_domain_receives_nothing(talker, ros_domain_id, launch_context):
    assert process_tools.wait_for_output_sync(
        launch_context, talker, lambda text: "published" in text, timeout=DISCOVERY_TIMEOUT
    )
    assert os.environ["ROS_DOMAIN_ID"] == str(ros_domain_id)
    assert _receive(ros_domain_id + 101, 2.0) is None


@pytest.mark.launch(fixture=talking)
def test_what_follows_the_yield_runs_after_the_end(talker, launch_context):
    assert process_tools.wait_for_output_sync(
        launch_context, talker, lambda text: "published" in text, timeout=DISCOVERY_TIMEOUT
    )
    pid = _pid(talker)
    assert psutil.pid_exists(pid)
    yield
    assert not psutil.pid_exists(pid)
    assert talker.return_code == 0
    assert "interrupted" in talker.get_stdout()


@pytest.mark.launch(fixture=talking, shutdown=True)
def test_marked_shutdown_runs_after_the_end(talker):
    assert not psutil.pid_exists(_pid(talker))


@pytest.mark.launch(fixture=talking)
async def test_coroutine_runs_beside_launch(talker, launch_context):
    deadline = time.monotonic() + DISCOVERY_TIMEOUT
    while "published" not in talker.get_stdout() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert psutil.pid_exists(_pid(talker))
    assert launch_context.is_shutdown is False
