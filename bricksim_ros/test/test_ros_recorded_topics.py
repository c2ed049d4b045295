# SPDX-License-Identifier: Apache-2.0
"""What somebody asks a recorder to take along."""

from __future__ import annotations

import pytest
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.serialization import serialize_message
from std_msgs.msg import Header, String
from tf2_msgs.msg import TFMessage

from bricksim_core.errors import BrickSimError
from bricksim_ros.recorded_topics import CLOCK, TOPICS, TOPOLOGY, further_topics
from bricksim_ros.recorder_node import RecorderNode


def test_messages_are_filed_under_their_stamp_where_they_have_one() -> None:
    header = Header(stamp=Time(sec=7, nanosec=30), frame_id="tool")
    wrench, text = further_topics(
        ["", " arm/wrench geometry_msgs/msg/WrenchStamped", "notes std_msgs/msg/String "]
    )
    assert (wrench.name, wrench.type_name) == ("arm/wrench", "geometry_msgs/msg/WrenchStamped")
    assert wrench.stamp(serialize_message(WrenchStamped(header=header))) == 7_000_000_030
    assert text.stamp(serialize_message(String(data="long enough for a stamp"))) is None
    transforms = next(topic for topic in TOPICS if topic.name == "/tf")
    message = TFMessage(transforms=[TransformStamped(header=header)])
    assert transforms.stamp(serialize_message(message)) == 7_000_000_030
    assert transforms.stamp(serialize_message(TFMessage())) is None


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("camera", "'camera', expected NAME TYPE"),
        ("camera sensor_msgs/msg/Nothing", "no such message type .*Nothing"),
        ("camera no_such_package/msg/Image", "no such message type .*no_such_package"),
        ("camera bricksim_msgs/action/BuildStructure", "no such message type"),
        ("camera Image", "no such message type"),
        ("bricksim/topology bricksim_msgs/msg/BrickTopology", "'bricksim/topology' is recorded"),
    ],
)
def test_what_is_no_topic_is_named(entry: str, text: str) -> None:
    with pytest.raises(BrickSimError, match=text):
        further_topics([entry])


def test_a_topic_is_recorded_once() -> None:
    with pytest.raises(BrickSimError, match="'notes' is recorded already"):
        further_topics(["notes std_msgs/msg/String"] * 2)


def test_when_clock_and_topology_are_heard_all_else_is_subscribed(ros_domain_id) -> None:
    further = "further_topics:=['arm/stage std_msgs/msg/String']"
    rclpy.init(args=["--ros-args", "-p", further])
    node = RecorderNode()
    try:
        names = [subscription.topic_name for subscription in node.subscriptions]
        assert "/arm/stage" in names[:-2]
        assert set(names[-2:]) == {CLOCK, f"/{TOPOLOGY}"}
    finally:
        node.close()
        node.destroy_node()
        rclpy.shutdown()
