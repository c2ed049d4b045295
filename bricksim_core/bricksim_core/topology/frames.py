# SPDX-License-Identifier: Apache-2.0
"""Metric frames of connections."""

from __future__ import annotations

import numpy as np

from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection


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
    x0, y0, x1, y1 = overlap(connection, stud_shape, hole_shape)
    pose = np.eye(4)
    pose[0, 3] = (0.5 * (x0 + x1) - 0.5 * stud_shape.length) * STUD_PITCH
    pose[1, 3] = (0.5 * (y0 + y1) - 0.5 * stud_shape.width) * STUD_PITCH
    pose[2, 3] = stud_shape.height * PLATE_HEIGHT
    return pose
