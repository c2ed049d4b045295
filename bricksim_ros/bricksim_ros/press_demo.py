# SPDX-License-Identifier: Apache-2.0
"""Presses one structure onto another through ROS: services, a wrench topic, an event."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from bricksim_core.events import Cause
from bricksim_core.experiments.press import RAMP, stacked
from bricksim_core.formats import Format, format_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_msgs import msg, srv
from bricksim_ros import conversions, parameters
from bricksim_ros.publishing import EVENTS, STREAM
from bricksim_ros.running import run_node

_SETTLING = 0.15
"""Time in which the upper one comes to rest on the studs before it is pressed [s, simulated]."""
_AFTER = 1.0
"""Time in which one can see what became of it before the demo ends [s, simulated]."""
_PARAMETERS: dict[str, tuple[Any, str]] = {
    "lower": ("", "Structure file that stays below; empty: a 4x4 plate"),
    "upper": ("", "Structure file that is pressed on; empty: a 4x2 brick"),
    "offset": ([0, 0], "Least corner of the upper one from that of the lower one [studs]"),
    "yaw": (0, "Turn of the upper one about the vertical [quarter turns]"),
    "force": (5.0, "Greatest force [N]; grows evenly over half a second"),
}


class PressDemo(Node):
    """Spawns two structures, presses, and says whether they connected."""

    def __init__(self) -> None:
        super().__init__("press_demo")
        for name, (default, text) in _PARAMETERS.items():
            self.declare_parameter(name, default, ParameterDescriptor(description=text))
        self.connected: bool | None = None
        self._upper: list[int] = []
        self._shares: list[float] = []
        self._start: float | None = None
        self.end = False
        self._decided: float | None = None
        self._spawn = self.create_client(srv.SpawnStructure, "bricksim/spawn_structure")
        self._wrench = self.create_publisher(WrenchStamped, "bricksim/apply_wrench", 100)
        self.create_subscription(
            msg.ConnectionEvent, "bricksim/connection_events", self._event, EVENTS
        )
        self.create_subscription(Clock, "/clock", self._tick, STREAM)
        lower, upper = self._structures()
        lower_pose, upper_pose = self._poses(lower, upper)
        self._shares = [part.shape.mass for part in upper.graph.parts()]
        self._ask(lower, lower_pose, True, lambda: self._ask(upper, upper_pose, False, self._begin))

    def _structures(self) -> tuple[Structure, Structure]:
        files = [parameters.value(self, name) for name in ("lower", "upper")]
        defaults = (BrickShape(4, 4, 1), BrickShape(4, 2))
        lower, upper = (
            read_structure(Path(file), baseplate=None) if file else _single(shape)
            for file, shape in zip(files, defaults, strict=True)
        )
        return lower, upper

    def _poses(self, lower: Structure, upper: Structure) -> tuple[Array, Array]:
        offset = parameters.value(self, "offset")
        return stacked(lower, upper, offset, 90.0 * parameters.value(self, "yaw"))

    def _ask(self, structure: Structure, pose: Array, fixed: bool, then) -> None:
        request = srv.SpawnStructure.Request(
            text=format_structure(structure, Format.TOPOLOGY), fixed=fixed
        )
        request.pose = PoseStamped(pose=conversions.pose_message(pose))
        self._spawn.wait_for_service()

        def answered(future) -> None:
            response = future.result()
            if not response.success:
                self.get_logger().error(response.message)
                self.connected = False
                self.end = True
                return
            self._upper = list(response.part_ids)
            then()

        self._spawn.call_async(request).add_done_callback(answered)

    def _begin(self) -> None:
        self._start = float("nan")

    def _tick(self, clock: Clock) -> None:
        now = clock.clock.sec + 1e-9 * clock.clock.nanosec
        if self.connected is not None:
            self._decided = now if self._decided is None else self._decided
            self.end = self.end or now > self._decided + _AFTER
        if self._start is None or self.connected is not None:
            return
        if np.isnan(self._start):
            self._start = now
        pressing = (now - self._start - _SETTLING) / RAMP
        if pressing > 2.0:
            self.get_logger().error("pressed to the limit without a connection")
            self.connected = False
        force = float(np.clip(pressing, 0.0, 1.0)) * parameters.value(self, "force")
        for part_id, mass in zip(self._upper, self._shares, strict=True):
            wrench = WrenchStamped()
            wrench.header.stamp = clock.clock
            wrench.header.frame_id = f"brick_{part_id}"
            wrench.wrench.force.z = -force * mass / sum(self._shares)
            self._wrench.publish(wrench)

    def _event(self, event: msg.ConnectionEvent) -> None:
        if event.cause == Cause.PRESSED and event.connection.hole_part in self._upper:
            c = event.connection
            self.get_logger().info(
                f"connected: part {c.hole_part} on part {c.stud_part}, offset"
                f" {c.offset[0]}, {c.offset[1]}, yaw {c.yaw}, pressed with {event.force:.2f} N"
            )
            self.connected = True


def _single(shape: BrickShape) -> Structure:
    graph = BrickTopologyGraph()
    part = graph.add_part(shape, (200, 30, 30))
    return Structure(graph, {graph.component_of(part): np.eye(4)})


def main(args: list[str] | None = None) -> int:
    """Entry point of ``ros2 run bricksim_ros press_demo``; exit code 0 if they connected."""
    return run_node(PressDemo, _press, args)


def _press(node: PressDemo, executor: SingleThreadedExecutor) -> int:
    while not node.end:
        executor.spin_once()
    return 0 if node.connected else 1


if __name__ == "__main__":
    sys.exit(main())
