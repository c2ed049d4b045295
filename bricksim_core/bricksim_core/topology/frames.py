# SPDX-License-Identifier: Apache-2.0
"""Metric frames of connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection
from bricksim_core.topology.grid import grid_boxes


def overlap(
    connection: Connection, stud_shape: BrickShape, hole_shape: BrickShape
) -> tuple[int, int, int, int]:
    """Connected stud cells x0, y0, x1, y1 (half open) in the stud interface frame [studs]."""
    (x0, y0), (x1, y1) = _overlaps([connection], [stud_shape], [hole_shape])[0].tolist()
    return x0, y0, x1, y1


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
    stud = _sizes(stud_shapes)
    ends = _overlaps(connections, stud_shapes, hole_shapes).sum(axis=1)
    poses = np.tile(np.eye(4), (len(stud), 1, 1))
    poses[:, :2, 3] = (0.5 * ends - 0.5 * stud[:, :2]) * STUD_PITCH
    poses[:, 2, 3] = stud[:, 2] * PLATE_HEIGHT
    return poses


def _overlaps(
    connections: Sequence[Connection],
    stud_shapes: Sequence[BrickShape],
    hole_shapes: Sequence[BrickShape],
) -> NDArray[np.int64]:
    """(n, 2, 2) least and greatest x, y of what `overlap` says of n connections [studs]."""
    grids = np.array([(*c.offset, 0, c.yaw) for c in connections], dtype=np.int64).reshape(-1, 4)
    covered = grid_boxes(grids, _sizes(hole_shapes))[:, :, :2]
    covered[:, 0] = np.maximum(covered[:, 0], 0)
    covered[:, 1] = np.minimum(covered[:, 1], _sizes(stud_shapes)[:, :2])
    return covered


def _sizes(shapes: Sequence[BrickShape]) -> NDArray[np.int64]:
    """(n, 3) length, width and height in studs and plates."""
    return np.array([(s.length, s.width, s.height) for s in shapes], dtype=np.int64).reshape(-1, 3)
