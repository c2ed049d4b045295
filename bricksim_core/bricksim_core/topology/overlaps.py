# SPDX-License-Identifier: Apache-2.0
"""Where parts overlap in their connections. Imported where it is used: loops take half a second."""

from __future__ import annotations

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.grid import IntArray


@compiled
def overlaps(offsets: IntArray, studs: IntArray, holes: IntArray) -> tuple[IntArray, Array]:
    """Connected cells of connections, and the frames at their centres.

    Args:
        offsets: (n, 3) origin [studs] and yaw [quarter turns] of the hole interface in the stud
            interface frame.
        studs: (n, 3) length, width and height of the lower parts [studs, studs, plates].
        holes: (n, 2) length and width of the upper parts [studs].

    Returns:
        (n, 4) connected stud cells x0, y0, x1, y1 (half open) in the stud interface frame [studs],
        and (n, 4, 4) frames in the lower parts' frames [m].
    """
    cells, frames = np.empty((len(offsets), 4), dtype=np.int64), np.zeros((len(offsets), 4, 4))
    for n in range(len(offsets)):
        turns, along, across = offsets[n, 2] % 4, holes[n, 0], holes[n, 1]
        for _ in range(turns):
            along, across = -across, along
        for k in range(2):
            reach = across if k else along
            first = max(offsets[n, k] + min(reach, 0), 0)
            last = min(offsets[n, k] + max(reach, 0), studs[n, k])
            cells[n, k], cells[n, 2 + k] = first, last
            frames[n, k, 3] = (0.5 * (first + last) - 0.5 * studs[n, k]) * STUD_PITCH
        frames[n, 2, 3] = studs[n, 2] * PLATE_HEIGHT
        for k in range(4):
            frames[n, k, k] = 1.0
    return cells, frames
