# SPDX-License-Identifier: Apache-2.0
"""Metric frames of connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection
from bricksim_core.topology.grid import grid_boxes


def overlap(
    connection: Connection, stud_shape: BrickShape, hole_shape: BrickShape
) -> tuple[int, int, int, int]:
    """Connected stud cells x0, y0, x1, y1 (half open) in the stud interface frame [studs]."""
    x0, y0, x1, y1 = connection.stud_T_hole(stud_shape).footprint(hole_shape)
    return max(x0, 0), max(y0, 0), min(x1, stud_shape.length), min(y1, stud_shape.width)


def stud_T_connection(
    connection: Connection, stud_shape: BrickShape, hole_shape: BrickShape
) -> Array:
    """(4, 4) frame of a connection in the lower part's frame [m].

    Origin at the centre of the overlap on the stud plane, axes of the stud interface.
    """
    return stud_T_connections([connection], [stud_shape], [hole_shape])[0]


def stud_T_connections(
    connections: Sequence[Connection],
    stud_shapes: Sequence[BrickShape],
    hole_shapes: Sequence[BrickShape],
) -> Array:
    """(n, 4, 4) what `stud_T_connection` says of n connections, by the shapes of their parts."""
    stud, hole = (
        np.array([(s.length, s.width, s.height) for s in shapes], dtype=np.int64).reshape(-1, 3)
        for shapes in (stud_shapes, hole_shapes)
    )
    grids = np.array([(*c.offset, 0, c.yaw) for c in connections], dtype=np.int64).reshape(-1, 4)
    covered = grid_boxes(grids, hole)[:, :, :2]
    ends = np.maximum(covered[:, 0], 0) + np.minimum(covered[:, 1], stud[:, :2])
    poses = np.tile(np.eye(4), (len(stud), 1, 1))
    poses[:, :2, 3] = (0.5 * ends - 0.5 * stud[:, :2]) * STUD_PITCH
    poses[:, 2, 3] = stud[:, 2] * PLATE_HEIGHT
    return poses
