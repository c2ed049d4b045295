# SPDX-License-Identifier: Apache-2.0
"""How well two interfaces are aligned: pure geometry of many pairs at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_QUARTER = 0.5 * np.pi
_NO_AREA = 1e-9
"""Share of an interface's area that is seen along the other's normal, below which it is none."""


@record
class Alignment:
    """Alignment of P stud interfaces with hole interfaces.

    Attributes:
        offset: (P, 2) nearest grid offset [studs].
        yaw: (P,) nearest yaw [quarter turns, 0-3].
        height_error: (P,) hole plane above the tops of the studs, at the overlap [m].
        tilt: (P,) angle between the interface normals [rad].
        yaw_error: (P,) signed error from the nearest quarter turn [rad].
        position_error: (P,) lateral distance from the nearest grid offset [m].
        overlap: (P, 4) overlapped stud cells x0, y0, x1, y1 at the nearest offset [studs]; empty
            where x1 <= x0 or y1 <= y0.
    """

    offset: IntArray
    yaw: IntArray
    height_error: Array
    tilt: Array
    yaw_error: Array
    position_error: Array
    overlap: IntArray

    @property
    def overlapping(self) -> NDArray[np.bool_]:
        """(P,) whether the grids overlap."""
        return (self.overlap[:, 2] > self.overlap[:, 0]) & (self.overlap[:, 3] > self.overlap[:, 1])


def align(world_T_part: Array, sizes: IntArray, pairs: IntArray) -> Alignment:
    """Compares pairs of parts with the nearest exact connection.

    Height and lateral error are taken at the middle of the overlap, where the studs are, not at the
    origin of the hole interface as in BrickSim: at the far corner of a long brick a small yaw or
    tilt would read as a large shift. Without yaw and tilt error the two are the same.

    Args:
        world_T_part: (N, 4, 4) poses of parts [m].
        sizes: (N, 3) their lengths, widths [studs] and heights [plates].
        pairs: (P, 2) which of them are the lower and the upper parts.
    """
    count = len(pairs)
    grid, overlap = np.empty((count, 3), dtype=np.int64), np.empty((count, 4), dtype=np.int64)
    errors = np.empty((4, count))
    _align(world_T_part, sizes, pairs, grid, overlap, errors)
    height, tilt, yaw, position = errors
    return Alignment(
        offset=grid[:, :2],
        yaw=grid[:, 2],
        height_error=height,
        tilt=tilt,
        yaw_error=yaw,
        position_error=position,
        overlap=overlap,
    )


@compiled
def _align(
    world_T_part: Array,
    sizes: IntArray,
    pairs: IntArray,
    grid: IntArray,
    overlap: IntArray,
    errors: Array,
) -> None:
    """Writes what `align` hands back.

    Args:
        world_T_part: (N, 4, 4) like the next two, see `align`.
        sizes: (N, 3)
        pairs: (P, 2)
        grid: (P, 3) to be written: offset, yaw.
        overlap: (P, 4) to be written.
        errors: (4, P) to be written: height [m], tilt [rad], yaw [rad], position [m].
    """
    turn, shift = np.empty((3, 3)), np.empty(3)
    extent = np.empty(2, dtype=np.int64)
    centre, middle = np.empty(2), np.empty(2)
    for p in range(len(pairs)):
        below, above = world_T_part[pairs[p, 0]], world_T_part[pairs[p, 1]]
        stud_size, hole_size = sizes[pairs[p, 0]], sizes[pairs[p, 1]]
        for i in range(3):
            for j in range(3):
                turn[i, j] = (
                    below[0, i] * above[0, j]
                    + below[1, i] * above[1, j]
                    + below[2, i] * above[2, j]
                )
            shift[i] = (
                below[0, i] * (above[0, 3] - below[0, 3])
                + below[1, i] * (above[1, 3] - below[1, 3])
                + below[2, i] * (above[2, 3] - below[2, 3])
            )
        angle = math.atan2(turn[1, 0], turn[0, 0])
        quarters = round(angle / _QUARTER)
        yaw = quarters % 4
        for k in range(2):
            extent[k] = hole_size[1 - k if yaw % 2 else k]
            # Centre of the hole interface in the stud interface frame, in studs from the least
            # corner.
            centre[k] = shift[k] / STUD_PITCH + 0.5 * stud_size[k]
            low = max(centre[k] - 0.5 * extent[k], 0.0)
            middle[k] = 0.5 * (low + min(centre[k] + 0.5 * extent[k], float(stud_size[k])))
        # Where the hole interface has the point that is over the middle of the overlap, and where
        # an exact connection would have it. Tilted by a quarter turn it has no such point: any one
        # will do, for the tilt says enough.
        area = turn[0, 0] * turn[1, 1] - turn[0, 1] * turn[1, 0]
        if abs(area) < _NO_AREA:
            area = _NO_AREA
        dx, dy = middle[0] - centre[0], middle[1] - centre[1]
        x = (turn[1, 1] * dx - turn[0, 1] * dy) / area
        y = (turn[0, 0] * dy - turn[1, 0] * dx) / area
        exact_x, exact_y = (x, y) if yaw % 2 == 0 else (-y, x)
        sign = -1.0 if yaw > 1 else 1.0
        least_x = middle[0] - sign * exact_x - 0.5 * extent[0]
        least_y = middle[1] - sign * exact_y - 0.5 * extent[1]
        start_x, start_y = round(least_x), round(least_y)
        # The hole interface's origin is the corner that its quarter turns carry away from the
        # least.
        grid[p, 0] = start_x + (extent[0] if yaw in (1, 2) else 0)
        grid[p, 1] = start_y + (extent[1] if yaw in (2, 3) else 0)
        grid[p, 2] = yaw
        overlap[p, 0], overlap[p, 1] = max(start_x, 0), max(start_y, 0)
        overlap[p, 2] = min(start_x + extent[0], stud_size[0])
        overlap[p, 3] = min(start_y + extent[1], stud_size[1])
        height = shift[2] + STUD_PITCH * (turn[2, 0] * x + turn[2, 1] * y)
        errors[0, p] = height - stud_size[2] * PLATE_HEIGHT - STUD_HEIGHT
        errors[1, p] = math.atan2(math.hypot(turn[0, 2], turn[1, 2]), turn[2, 2])
        errors[2, p] = angle - quarters * _QUARTER
        errors[3, p] = STUD_PITCH * math.hypot(least_x - start_x, least_y - start_y)
