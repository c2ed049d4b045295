# SPDX-License-Identifier: Apache-2.0
"""Poses of requests: in the world or in the frame of something that is in it."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.lifecycle import LifecycleNode

from bricksim_core.spatial import Array
from bricksim_ros import conversions, parameters
from bricksim_ros.world import EntityState, NotFoundError, World


class Frames:
    """What a request's ``frame_id`` may name.

    That is the root frame (or nothing), an entity, or a brick's frame as /tf has it.

    Args:
        node: Node whose parameters name the root frame and the prefix of the others.
        world: Where the entities are.
    """

    def __init__(self, node: LifecycleNode, world: World) -> None:
        self._world = world
        self._root: str = parameters.value(node, "world_frame")
        self._prefix: str = parameters.value(node, "frame_prefix")

    def state(self, frame_id: str, pose: Pose, twist: Array | None = None) -> EntityState:
        """A pose, and a (6,) twist [m/s, rad/s] if there is one, as they are in the world.

        Raises:
            ValueError: The pose is none, or nothing has this frame.
        """
        matrix = conversions.checked_pose(pose, zero_is_identity=True)
        state = EntityState(matrix, np.zeros(6) if twist is None else twist)
        if frame_id in ("", self._root):
            return state
        try:
            return self._world.in_world(self._entity(frame_id), state)
        except NotFoundError:
            raise ValueError(
                f"frame is {frame_id[:80]!r}, expected {self._root!r}, none, an entity or a"
                f" brick ({self._prefix}brick_<id>)"
            ) from None

    def _entity(self, frame_id: str) -> str:
        prefix = self._prefix
        if prefix and frame_id.startswith(f"{prefix}brick_"):
            return frame_id.removeprefix(prefix)
        return frame_id
