# SPDX-License-Identifier: Apache-2.0
"""From the fields of bricksim_msgs to plain data.

The functions read attributes only, so they take the messages of rclpy and those that a bag reader
makes from the definitions inside a bag alike.
"""

from __future__ import annotations

from typing import Any

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, inverse, transform
from bricksim_core.topology.graph import BrickTopologyGraph, Connection
from bricksim_core.topology.structure import Structure


def pose_from_message(pose: Any) -> Array:
    """(4, 4) transform [m] of a geometry_msgs/Pose."""
    p, q = pose.position, pose.orientation
    return transform((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))


def shape_from_message(part: Any) -> BrickShape:
    """Dimensions of a bricksim_msgs/BrickPart."""
    return BrickShape(
        int(part.length), int(part.width), int(part.height), bool(part.has_studs), float(part.mass)
    )


def connection_from_message(connection: Any) -> Connection:
    """A bricksim_msgs/Connection."""
    return Connection(
        id=int(connection.id),
        stud_part=int(connection.stud_part),
        hole_part=int(connection.hole_part),
        offset=(int(connection.offset[0]), int(connection.offset[1])),
        yaw=int(connection.yaw),
        stud_interface=int(connection.stud_interface),
        hole_interface=int(connection.hole_interface),
    )


def structure_from_topology(message: Any, *, name: str = "scene") -> Structure:
    """Rebuilds the structures of a bricksim_msgs/BrickTopology, ids and poses included.

    Raises:
        TopologyError: The connections contradict each other.
        PartError: A part is not acceptable.
    """
    graph = BrickTopologyGraph()
    fixed = set()
    for part in message.parts:
        color = (int(part.color[0]), int(part.color[1]), int(part.color[2]))
        graph.add_part(shape_from_message(part), color, part_id=int(part.id))
        if part.fixed:
            fixed.add(int(part.id))
    for item in message.connections:
        c = connection_from_message(item)
        graph.connect(c.stud_part, c.hole_part, c.offset, c.yaw, connection_id=c.id, closure=False)
    poses = {}
    for component in message.components:
        root = int(component.root_part)
        component_id = graph.component_of(root)
        layout = graph.layout(component_id)
        root_row = layout.part_ids.tolist().index(root)
        world_T_root = pose_from_message(component.root_pose)
        poses[component_id] = world_T_root @ inverse(layout.component_T_parts[root_row])
    return Structure(graph, poses, frozenset(fixed), name)
