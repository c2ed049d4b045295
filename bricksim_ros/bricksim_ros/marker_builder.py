# SPDX-License-Identifier: Apache-2.0
"""RViz markers of bricks and connections: what has to be sent when something changed.

Each brick is one mesh marker locked to its TF frame, so it is sent once and follows the brick.
Connections are spheres locked to their lower brick; they are sent again only when their colour
changes visibly. Namespaces and ids are stable, lifetimes are 0, what vanishes is deleted by id.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from geometry_msgs.msg import Vector3
from rclpy.logging import get_logger
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

from bricksim_core.episodes.messages import connection_from_message, shape_from_message
from bricksim_core.events import Cause, EventKind
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology import Connection
from bricksim_core.topology.frames import stud_T_connection
from bricksim_msgs import msg
from bricksim_ros import conversions
from bricksim_ros.meshes import mesh_address, mesh_folder, mesh_points

BRICKS, CONNECTIONS, BROKEN, LABELS = "bricks", "connections", "broken", "labels"
COLOR_LEVELS = 20
"""Steps of the colour scale: a change below one step is not sent."""
SPHERE_DIAMETER = 0.004
"""Of a connection's sphere [m]."""
FLASH_TIME = 2.0
"""How long a broken connection flashes [s, simulated]."""
FLASH_PERIOD = 0.25
"""Time between its changes of colour [s, simulated]."""
_UNKNOWN_LEVEL = -1


@dataclass(frozen=True)
class MarkerOptions:
    """What to draw.

    Attributes:
        frame_prefix: Put in front of brick frames.
        connections: Draw connections.
        labels: Write part ids and utilizations.
        brick_alpha: Opacity of bricks (1 = solid), so that connections inside can be seen.
        mesh_files: Brick markers name mesh files (`meshes.mesh_folder`), which the viewer reads;
            False: they carry triangles, for a viewer on another machine.
        mesh_folder: Where the files are, None for the usual place.
    """

    frame_prefix: str = ""
    connections: bool = True
    labels: bool = False
    brick_alpha: float = 1.0
    mesh_files: bool = True
    mesh_folder: Path | None = None


@dataclass
class _Shown:
    """A marker that has been sent, with what its looks depend on."""

    marker: Marker
    looks: tuple


class MarkerBuilder:
    """Keeps what RViz shows and tells what has to be sent to change it."""

    def __init__(self, options: MarkerOptions) -> None:
        self.options = options
        self._shown: dict[tuple[str, int], _Shown] = {}
        self._parts: dict[int, msg.BrickPart] = {}
        self._connections: dict[int, Connection] = {}
        self._levels: dict[int, int] = {}
        self._flashing: dict[int, tuple[float, msg.ConnectionEvent]] = {}

    def all_markers(self) -> list[Marker]:
        """Everything that is shown, for a viewer that has just come."""
        return [shown.marker for shown in self._shown.values()]

    def set_topology(self, topology: msg.BrickTopology) -> list[Marker]:
        """Markers to send for a new topology."""
        self._parts = {p.id: p for p in topology.parts}
        self._connections = {c.id: connection_from_message(c) for c in topology.connections}
        for gone in self._levels.keys() - self._connections.keys():
            del self._levels[gone]
        return self._update(topology.header)

    def set_utilization(self, utilization: msg.ConnectionUtilizationArray) -> list[Marker]:
        """Markers to send for new utilizations."""
        ids = utilization.connection_ids.tolist()
        levels = color_levels(np.asarray(utilization.utilization)).tolist()
        before, self._levels = self._levels, dict(zip(ids, levels, strict=True))
        if not self.options.connections or self._levels == before:
            return []
        sent: list[Marker] = []
        for connection_id in sorted(self._levels.keys() | before.keys()):
            connection = self._connections.get(connection_id)
            changed = self._levels.get(connection_id) != before.get(connection_id)
            if changed and connection is not None:
                sent += self._show_connection(connection, utilization.header)
        return sent

    def set_options(self, options: MarkerOptions, head: Header) -> list[Marker]:
        """Markers to send for other options."""
        self.options = options
        return self._update(head)

    def add_event(self, event: msg.ConnectionEvent) -> list[Marker]:
        """Markers to send for an event: what broke of overload flashes."""
        if event.kind != EventKind.BROKEN or event.cause != Cause.OVERLOAD:
            return []
        stamp = event.header.stamp
        self._flashing[event.connection.id] = (stamp.sec + 1e-9 * stamp.nanosec, event)
        return self.advance(stamp.sec + 1e-9 * stamp.nanosec)

    def advance(self, now: float) -> list[Marker]:
        """Markers to send as simulation time [s] goes on: flashes change and end."""
        sent = []
        for connection_id, (start, event) in list(self._flashing.items()):
            if not 0.0 <= now - start < FLASH_TIME:
                del self._flashing[connection_id]
                sent += self._remove((BROKEN, _marker_id(connection_id)))
                continue
            bright = int((now - start) / FLASH_PERIOD) % 2 == 0
            sent += self._show(self._broken_marker(connection_id, event, bright), (bright,))
        return sent

    # -- inside -------------------------------------------------------------------------------

    def _update(self, head: Header) -> list[Marker]:
        sent: list[Marker] = []
        wanted: set[tuple[str, int]] = set()
        for part in self._parts.values():
            wanted.add((BRICKS, _marker_id(part.id)))
            options = self.options
            looks = (*part.color, options.brick_alpha, options.mesh_files, *_dimensions(part))
            sent += self._show_if_new(BRICKS, part.id, looks, self._brick_marker, part, head)
            if self.options.labels:
                wanted.add((LABELS, _marker_id(part.id)))
                sent += self._show_if_new(LABELS, part.id, (), self._label_marker, part, head)
        if self.options.connections:
            for connection in self._connections.values():
                if connection.stud_part not in self._parts:
                    continue
                wanted.add((CONNECTIONS, _marker_id(connection.id)))
                sent += self._show_connection(connection, head)
        stale = [key for key in self._shown if key[0] != BROKEN and key not in wanted]
        return [*sent, *(m for key in stale for m in self._remove(key))]

    def _show_connection(self, connection: Connection, head: Header) -> list[Marker]:
        if connection.stud_part not in self._parts:
            return []
        level = self._levels.get(connection.id, _UNKNOWN_LEVEL)
        return self._show_if_new(
            CONNECTIONS, connection.id, (level,), self._connection_marker, connection, head
        )

    def _show_if_new(self, namespace, item_id, looks, build, item, head) -> list[Marker]:
        shown = self._shown.get((namespace, _marker_id(item_id)))
        if shown is not None and shown.looks == looks:
            return []
        return self._show(build(item, head), looks)

    def _show(self, marker: Marker, looks: tuple) -> list[Marker]:
        key = (marker.ns, marker.id)
        shown = self._shown.get(key)
        if shown is not None and shown.looks == looks:
            return []
        self._shown[key] = _Shown(marker, looks)
        return [marker]

    def _remove(self, key: tuple[str, int]) -> list[Marker]:
        shown = self._shown.pop(key, None)
        if shown is None:
            return []
        return [Marker(header=shown.marker.header, ns=key[0], id=key[1], action=Marker.DELETE)]

    def _locked(self, namespace: str, item_id: int, part_id: int, head: Header) -> Marker:
        marker = Marker(ns=namespace, id=_marker_id(item_id), action=Marker.ADD, frame_locked=True)
        marker.header = Header(
            stamp=head.stamp, frame_id=f"{self.options.frame_prefix}brick_{part_id}"
        )
        marker.pose.orientation.w = 1.0
        return marker

    def _brick_marker(self, part: msg.BrickPart, head: Header) -> Marker:
        shape = shape_from_message(part)
        marker = self._locked(BRICKS, part.id, part.id, head)
        marker.mesh_resource = self._mesh_address(shape)
        if marker.mesh_resource:
            marker.type = Marker.MESH_RESOURCE
        else:
            marker.type = Marker.TRIANGLE_LIST
            marker.points = mesh_points(shape)
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        red, green, blue = (channel / 255.0 for channel in part.color)
        marker.color = ColorRGBA(r=red, g=green, b=blue, a=self.options.brick_alpha)
        return marker

    def _mesh_address(self, shape: BrickShape) -> str:
        """Address of a brick's mesh file, empty for none."""
        if not self.options.mesh_files:
            return ""
        try:
            return mesh_address(shape, self.options.mesh_folder or mesh_folder())
        except OSError as error:
            get_logger("markers").warning(
                f"no mesh files, markers carry triangles instead: {error}", once=True
            )
            return ""

    def _label_marker(self, part: msg.BrickPart, head: Header) -> Marker:
        marker = self._locked(LABELS, part.id, part.id, head)
        marker.type = Marker.TEXT_VIEW_FACING
        marker.pose.position.z = shape_from_message(part).size[2] + 0.004
        marker.scale.z = 0.006
        marker.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        marker.text = str(part.id)
        return marker

    def _connection_marker(self, connection: Connection, head: Header) -> Marker:
        marker = self._locked(CONNECTIONS, connection.id, connection.stud_part, head)
        stud = shape_from_message(self._parts[connection.stud_part])
        hole = shape_from_message(self._parts[connection.hole_part])
        frame = stud_T_connection(connection, stud, hole)
        conversions.set_position(marker.pose.position, frame[:3, 3])
        _make_sphere(marker)
        marker.color = level_color(self._levels.get(connection.id, _UNKNOWN_LEVEL))
        return marker

    def _broken_marker(
        self, connection_id: int, event: msg.ConnectionEvent, bright: bool
    ) -> Marker:
        marker = Marker(ns=BROKEN, id=_marker_id(connection_id), action=Marker.ADD)
        marker.header = event.header
        marker.pose = event.pose
        _make_sphere(marker, 1.5)
        green = 1.0 if bright else 0.0
        marker.color = ColorRGBA(r=1.0, g=green, b=green, a=1.0)
        return marker


def color_levels(utilization: Array) -> np.ndarray:
    """Steps of the colour scale for (N,) utilizations; above 1 is one step of its own."""
    levels = np.round(np.clip(np.nan_to_num(utilization), 0.0, 1.0) * COLOR_LEVELS).astype(int)
    levels[utilization > 1.0] = COLOR_LEVELS + 1
    levels[np.isnan(utilization)] = _UNKNOWN_LEVEL
    return levels


def level_color(level: int) -> ColorRGBA:
    """Grey: unknown; green over yellow to red: 0 to 1; magenta: overloaded."""
    if level == _UNKNOWN_LEVEL:
        return ColorRGBA(r=0.5, g=0.5, b=0.5, a=1.0)
    if level > COLOR_LEVELS:
        return ColorRGBA(r=1.0, g=0.0, b=1.0, a=1.0)
    share = level / COLOR_LEVELS
    return ColorRGBA(r=min(1.0, 2.0 * share), g=min(1.0, 2.0 - 2.0 * share), b=0.0, a=1.0)


def _make_sphere(marker: Marker, factor: float = 1.0) -> None:
    marker.type = Marker.SPHERE
    diameter = SPHERE_DIAMETER * factor
    marker.scale = Vector3(x=diameter, y=diameter, z=diameter)


def _marker_id(item_id: int) -> int:
    """Marker ids are 32 bit."""
    return item_id & 0x7FFFFFFF


def _dimensions(part: msg.BrickPart) -> tuple:
    return (part.length, part.width, part.height, part.has_studs)
