# SPDX-License-Identifier: Apache-2.0
"""The markers node: topology, events and utilizations in, RViz markers out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from bricksim_msgs import msg
from bricksim_ros import parameters
from bricksim_ros.marker_builder import MarkerBuilder, MarkerOptions
from bricksim_ros.publishing import EVENTS, LATCHED, STREAM
from bricksim_ros.running import run_node, spin, wall_timer


class MarkersNode(Node):
    """Draws what the simulator tells; sends only what changed, everything to a new viewer."""

    def __init__(self) -> None:
        super().__init__("markers")
        self._declare()
        self._builder = MarkerBuilder(self._options())
        self._pending: dict[tuple[str, int], Marker] = {}
        self._latest: msg.ConnectionUtilizationArray | None = None
        self._viewers = 0
        self._publisher = self.create_publisher(MarkerArray, "bricksim/markers", LATCHED)
        self.create_subscription(msg.BrickTopology, "bricksim/topology", self._topology, LATCHED)
        self.create_subscription(
            msg.ConnectionUtilizationArray,
            "bricksim/connection_utilization",
            self._utilization,
            STREAM,
        )
        self.create_subscription(
            msg.ConnectionEvent, "bricksim/connection_events", self._event, EVENTS
        )
        rate = parameters.value(self, "rate")
        wall_timer(self, 1.0 / rate, self._send)
        self.add_post_set_parameters_callback(self._changed)

    def _declare(self) -> None:
        def describe(text: str, low: float | None = None, high: float = 0.0):
            descriptor = ParameterDescriptor(description=text)
            if low is not None:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=low, to_value=high)
                ]
            return descriptor

        self.declare_parameter("rate", 10.0, describe("Updates a second at most [Hz]", 0.1, 60.0))
        self.declare_parameter("frame_prefix", "", describe("Put in front of brick frames"))
        self.declare_parameter("connections", True, describe("Draw connections"))
        self.declare_parameter("labels", False, describe("Write part ids"))
        self.declare_parameter("brick_alpha", 1.0, describe("Opacity of bricks", 0.05, 1.0))
        text = "Bricks name mesh files on this machine; false: markers carry triangles"
        self.declare_parameter("mesh_files", True, describe(text))

    def _options(self) -> MarkerOptions:
        return MarkerOptions(
            **{
                name: parameters.value(self, name)
                for name in ("frame_prefix", "connections", "labels", "brick_alpha", "mesh_files")
            }
        )

    def _collect(self, markers: list[Marker]) -> None:
        self._pending.update({(m.ns, m.id): m for m in markers})

    def _topology(self, message: msg.BrickTopology) -> None:
        self._collect(self._builder.set_topology(message))

    def _utilization(self, message: msg.ConnectionUtilizationArray) -> None:
        self._latest = message  # drawn when markers are sent next: streams are faster than that

    def _event(self, message: msg.ConnectionEvent) -> None:
        self._collect(self._builder.add_event(message))

    def _changed(self, _parameters: Sequence[Parameter]) -> None:
        head = Header(stamp=self.get_clock().now().to_msg())
        self._collect(self._builder.set_options(self._options(), head))

    def _send(self) -> None:
        if self._latest is not None:
            message, self._latest = self._latest, None
            self._collect(self._builder.set_utilization(message))
            stamp = message.header.stamp
            self._collect(self._builder.advance(stamp.sec + 1e-9 * stamp.nanosec))
        viewers = self._publisher.get_subscription_count()
        if viewers > self._viewers:
            # A latched message holds only the last changes: who has just come gets everything.
            self._collect(self._builder.all_markers())
        self._viewers = viewers
        if not self._pending:
            return
        markers, self._pending = list(self._pending.values()), {}
        self._publisher.publish(MarkerArray(markers=markers))


def main(args: list[str] | None = None) -> int:
    """Entry point of ``ros2 run bricksim_ros markers``."""
    return run_node(MarkersNode, spin, args)


if __name__ == "__main__":
    sys.exit(main())
