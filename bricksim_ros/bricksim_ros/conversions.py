# SPDX-License-Identifier: Apache-2.0
"""From the simulator's plain data to ROS messages."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Vector3
from std_msgs.msg import Header

from bricksim_core.assembly.types import Candidate
from bricksim_core.episodes.messages import pose_from_message
from bricksim_core.events import ConnectionEvent, StepResult
from bricksim_core.parts import Part
from bricksim_core.spatial import Array, position_of, quaternion_of
from bricksim_core.topology import BrickTopologyGraph, Connection
from bricksim_msgs import msg

WORLD_SIZE = 1e4
"""Greatest coordinate [m] of a pose from outside: there viewers' single precision is 1 mm."""


_KEPT = 16384
"""Messages of parts and connections that are kept: making one takes longer than sending it."""


KnownComponent = tuple[tuple[int, bytes], msg.BrickComponent]
"""Root part and pose that a component's message tells, and the message."""


def time_message(seconds: float) -> Time:
    """builtin_interfaces/Time of a simulation time [s]."""
    nanoseconds = round(seconds * 1e9)
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def header(stamp: Time, frame_id: str) -> Header:
    """std_msgs/Header."""
    return Header(stamp=stamp, frame_id=frame_id)


def floats(values: Array) -> array:
    """A float64[] field, row after row, without a Python loop."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def integers(values: np.ndarray) -> array:
    """An int64[] field, without a Python loop."""
    return array("q", np.ascontiguousarray(values, dtype=np.int64).tobytes())


def pose_messages(poses: Array) -> list[Pose]:
    """geometry_msgs/Pose of each of (N, 4, 4) transforms [m]."""
    messages = []
    quaternions = quaternion_of(poses).tolist() if len(poses) else []
    for p, q in zip(position_of(poses).tolist(), quaternions, strict=True):
        message = Pose()
        message.position.x, message.position.y, message.position.z = p
        orientation = message.orientation
        orientation.x, orientation.y, orientation.z, orientation.w = q
        messages.append(message)
    return messages


def pose_message(pose: Array) -> Pose:
    """geometry_msgs/Pose of a (4, 4) transform [m]."""
    return pose_messages(pose[None])[0]


def transform_message(pose: Array) -> Transform:
    """geometry_msgs/Transform of a (4, 4) transform [m]."""
    message = Transform()
    set_position(message.translation, position_of(pose))
    set_quaternion(message.rotation, quaternion_of(pose))
    return message


def set_position(target: Vector3 | Point, position: Array) -> None:
    """Writes (3,) into a Vector3 or Point."""
    target.x, target.y, target.z = position.tolist()


def set_quaternion(target: Quaternion, quaternion: Array) -> None:
    """Writes (4,) xyzw into a Quaternion."""
    target.x, target.y, target.z, target.w = quaternion.tolist()


def vector_message(vector: Array) -> Vector3:
    """geometry_msgs/Vector3 of (3,)."""
    message = Vector3()
    set_position(message, vector)
    return message


@lru_cache(maxsize=_KEPT)
def part_message(part: Part, fixed: bool) -> msg.BrickPart:
    """bricksim_msgs/BrickPart; shared by who asks for the same one, so do not change it."""
    shape = part.shape
    return msg.BrickPart(
        id=part.id,
        length=shape.length,
        width=shape.width,
        height=shape.height,
        has_studs=shape.has_studs,
        color=part.color,
        mass=shape.mass,
        fixed=fixed,
    )


@lru_cache(maxsize=_KEPT)
def connection_message(connection: Connection) -> msg.Connection:
    """bricksim_msgs/Connection; shared by who asks for the same one, so do not change it."""
    return msg.Connection(
        id=connection.id,
        stud_part=connection.stud_part,
        stud_interface=connection.stud_interface,
        hole_part=connection.hole_part,
        hole_interface=connection.hole_interface,
        offset=connection.offset,
        yaw=connection.yaw,
    )


def topology_message(
    graph: BrickTopologyGraph,
    world_T_part: Mapping[int, Array],
    fixed: Iterable[int],
    next_event: int,
    head: Header,
    known: dict[int, KnownComponent] | None = None,
) -> msg.BrickTopology:
    """bricksim_msgs/BrickTopology of the whole scene.

    Args:
        graph: Parts and connections.
        world_T_part: (4, 4) poses [m] by part id; at least of the least part of each component.
        fixed: Ids of parts that the world holds.
        next_event: Sequence number of the first event that the graph does not contain.
        head: Stamp and frame.
        known: Components of the last message by id, to be used again where nothing changed; it
            is brought up to date.
    """
    fixed = set(fixed)
    known = {} if known is None else known
    roots = [graph.component_parts(component_id)[0] for component_id in graph.component_ids]
    looks = {
        component: (root, world_T_part[root].tobytes())
        for component, root in zip(graph.component_ids, roots, strict=True)
    }
    new = [c for c, look in looks.items() if c not in known or known[c][0] != look]
    poses = pose_messages(np.array([world_T_part[looks[c][0]] for c in new]).reshape(-1, 4, 4))
    for component, pose in zip(new, poses, strict=True):
        root = looks[component][0]
        message = msg.BrickComponent(id=component, root_part=root, root_pose=pose)
        known[component] = (looks[component], message)
    for gone in known.keys() - looks.keys():
        del known[gone]
    connections = sorted(graph.connections.values(), key=lambda c: c.id)
    return msg.BrickTopology(
        header=head,
        next_event=next_event,
        parts=[part_message(part, part.id in fixed) for part in graph.parts()],
        connections=[connection_message(c) for c in connections],
        components=[known[component][1] for component in looks],
    )


def event_message(event: ConnectionEvent, head: Header) -> msg.ConnectionEvent:
    """bricksim_msgs/ConnectionEvent."""
    return msg.ConnectionEvent(
        header=head,
        sequence=event.sequence,
        kind=str(event.kind),
        cause=str(event.cause),
        connection=connection_message(event.connection),
        utilization=event.utilization,
        force=event.force,
        pose=pose_message(event.world_T_connection),
    )


def utilization_message(result: StepResult, head: Header) -> msg.ConnectionUtilizationArray:
    """bricksim_msgs/ConnectionUtilizationArray."""
    return msg.ConnectionUtilizationArray(
        header=head,
        connection_ids=integers(result.connection_ids),
        utilization=floats(result.utilization),
    )


def states_message(result: StepResult, head: Header) -> msg.BrickStateArray:
    """bricksim_msgs/BrickStateArray."""
    return msg.BrickStateArray(
        header=head,
        part_ids=integers(result.part_ids),
        component_ids=integers(result.component_of),
        positions=floats(position_of(result.world_T_part)),
        orientations=floats(quaternion_of(result.world_T_part)),
        linear_velocities=floats(result.twist[:, :3]),
        angular_velocities=floats(result.twist[:, 3:]),
    )


def candidate_message(candidate: Candidate) -> msg.AssemblyCandidate:
    """bricksim_msgs/AssemblyCandidate."""
    return msg.AssemblyCandidate(
        stud_part=candidate.stud_part,
        hole_part=candidate.hole_part,
        offset=candidate.offset,
        yaw=candidate.yaw,
        height_error=candidate.height_error,
        tilt=candidate.tilt,
        yaw_error=candidate.yaw_error,
        position_error=candidate.position_error,
        force=candidate.force,
        accepted=candidate.accepted,
        reason=candidate.reason,
    )


def candidates_message(candidates: Iterable[Candidate], head: Header) -> msg.AssemblyCandidateArray:
    """bricksim_msgs/AssemblyCandidateArray."""
    return msg.AssemblyCandidateArray(
        header=head, candidates=[candidate_message(c) for c in candidates]
    )


def checked_pose(pose: Pose, *, zero_is_identity: bool = False) -> Array:
    """(4, 4) transform of a pose that came from outside.

    Raises:
        ValueError: A number is not finite, a coordinate is beyond `WORLD_SIZE` or the quaternion
            is not of unit length (within 1 %).
    """
    p, q = pose.position, pose.orientation
    numbers = (p.x, p.y, p.z, q.x, q.y, q.z, q.w)
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"pose is {numbers}, expected finite numbers")
    if max(map(abs, numbers[:3])) > WORLD_SIZE:
        raise ValueError(f"position is {numbers[:3]} [m], expected at most {WORLD_SIZE:g} each")
    norm = math.sqrt(q.x**2 + q.y**2 + q.z**2 + q.w**2)
    if zero_is_identity and norm == 0.0:
        q.w = 1.0
    elif abs(norm - 1.0) > 0.01:
        raise ValueError(
            f"quaternion is {(q.x, q.y, q.z, q.w)} of length {norm:.4g}, expected length 1"
        )
    return pose_from_message(pose)
