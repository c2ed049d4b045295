# SPDX-License-Identifier: Apache-2.0
"""Metric frames of connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection
from bricksim_core.topology.grid import IntArray


def overlap(
    connection: Connection, stud_shape: BrickShape, hole_shape: BrickShape
) -> tuple[int, int, int, int]:
    """Connected stud cells x0, y0, x1, y1 (half open) in the stud interface frame [studs]."""
    x0, y0, x1, y1 = _overlaps([connection], [stud_shape], [hole_shape])[0][0].tolist()
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
    return _overlaps(connections, stud_shapes, hole_shapes)[1]


def _overlaps(
    connections: Sequence[Connection],
    stud_shapes: Sequence[BrickShape],
    hole_shapes: Sequence[BrickShape],
) -> tuple[IntArray, Array]:
    """What `overlap` and `stud_T_connection` say of n connections."""
    from bricksim_core.topology.overlaps import overlaps

    offsets = np.array([(*c.offset, c.yaw) for c in connections], dtype=np.int64)
    studs = np.array([(s.length, s.width, s.height) for s in stud_shapes], dtype=np.int64)
    holes = np.array([(s.length, s.width) for s in hole_shapes], dtype=np.int64)
    return overlaps(offsets.reshape(-1, 3), studs.reshape(-1, 3), holes.reshape(-1, 2))
