# SPDX-License-Identifier: Apache-2.0
"""Which topics an episode consists of, and how they are read."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rosgraph_msgs.msg import Clock
from rosidl_runtime_py.utilities import get_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from bricksim_core.errors import BrickSimError
from bricksim_msgs import msg

CLOCK = "/clock"
TOPOLOGY = "bricksim/topology"

_CDR_HEADER = 4
_TRANSFORMS_STAMP = 8
"""Behind the header comes the number of transforms."""


@dataclass(frozen=True)
class RecordedTopic:
    """A topic of an episode.

    Attributes:
        name: Moves with the node's namespace if it does not begin with a slash.
        kind: Type of its messages.
        latched: Whether late subscribers get the last message.
        reliable: False: taken from best-effort publishers, too.
        stamp_offset: Where the first stamp lies in a serialized message [bytes]; None: nowhere.
    """

    name: str
    kind: type
    latched: bool = False
    reliable: bool = True
    stamp_offset: int | None = _CDR_HEADER

    @property
    def type_name(self) -> str:
        """As ROS spells it, for example ``sensor_msgs/msg/JointState``."""
        package, folder = self.kind.__module__.split(".")[:2]
        return f"{package}/{folder}/{self.kind.__name__}"

    @property
    def qos(self) -> QoSProfile:
        """What to subscribe with."""
        policy, durability = QoSReliabilityPolicy, QoSDurabilityPolicy
        return QoSProfile(
            depth=100 if self.latched else 2000,
            reliability=policy.RELIABLE if self.reliable else policy.BEST_EFFORT,
            durability=durability.TRANSIENT_LOCAL if self.latched else durability.VOLATILE,
        )

    def stamp(self, data: bytes) -> int | None:
        """First stamp [ns] in a serialized message, None if it has none."""
        offset = self.stamp_offset
        if offset is None or len(data) < offset + 8:
            return None
        seconds, nanoseconds = struct.unpack_from("<iI", data, offset)
        return seconds * 1_000_000_000 + nanoseconds


TOPICS = (
    RecordedTopic(CLOCK, Clock),
    RecordedTopic(TOPOLOGY, msg.BrickTopology, latched=True),
    RecordedTopic("bricksim/connection_events", msg.ConnectionEvent),
    RecordedTopic("bricksim/connection_utilization", msg.ConnectionUtilizationArray),
    RecordedTopic("bricksim/brick_states", msg.BrickStateArray),
    RecordedTopic("bricksim/statistics", msg.StepStatistics),
    RecordedTopic("joint_states", JointState),
    RecordedTopic("joint_commands", JointState, reliable=False),
    RecordedTopic("robot_description", String, latched=True, stamp_offset=None),
    RecordedTopic("robot_description_1", String, latched=True, stamp_offset=None),
    RecordedTopic("/tf", TFMessage, stamp_offset=_TRANSFORMS_STAMP),
    RecordedTopic("/tf_static", TFMessage, latched=True, stamp_offset=_TRANSFORMS_STAMP),
)
"""What every episode consists of."""


def further_topics(entries: Iterable[str]) -> list[RecordedTopic]:
    """Topics that somebody asks for.

    Args:
        entries: Each ``NAME TYPE``, for example ``camera/image sensor_msgs/msg/Image``; empty ones
            count for nothing. Messages that begin with a header or a stamp are filed under it,
            others under the time at which they come.

    Raises:
        BrickSimError: Names the entry that is none, or is recorded already.
    """
    found: dict[str, RecordedTopic] = {}
    for entry in filter(None, (e.strip() for e in entries)):
        words = entry.split()
        if len(words) != 2:
            raise BrickSimError(
                f"topic to record is {entry!r}, expected NAME TYPE,"
                " as in 'camera/image sensor_msgs/msg/Image'"
            )
        name, type_name = words
        if name in found or any(name == topic.name for topic in TOPICS):
            raise BrickSimError(f"topic to record {name!r} is recorded already")
        kind = _message_type(entry, type_name)
        offset = _CDR_HEADER if _begins_with_a_stamp(kind) else None
        found[name] = RecordedTopic(name, kind, reliable=False, stamp_offset=offset)
    return list(found.values())


def _message_type(entry: str, type_name: str) -> type:
    try:
        return get_message(type_name)
    except (AttributeError, ModuleNotFoundError, ValueError) as error:
        raise BrickSimError(f"topic to record {entry!r}: no such message type ({error})") from None


def _begins_with_a_stamp(kind: type) -> bool:
    first = next(iter(kind.get_fields_and_field_types().values()), "")
    return first in ("std_msgs/Header", "builtin_interfaces/Time")
