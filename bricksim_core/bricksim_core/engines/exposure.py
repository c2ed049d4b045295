# SPDX-License-Identifier: Apache-2.0
"""Which colliders of a component something outside can touch.

The slab over a brick's studs is inside the bricks on top where these cover all of it, and a body
with neighbours on all six sides is out of reach. An engine may leave both out of collision
detection: whatever came to touch them would be inside other bricks of the component before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.topology.layout import IntArray

_FEW = 8
"""Bricks below which nothing is looked for: too little would be gained."""
_SPARSE = 64
"""Cells in the bounds of a component, over cells of its bricks, from which on nothing is looked
for: such components have little inside, and their grid would be large."""


@compiled
def exposed_boxes(boxes: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(N,) bodies and (N,) stud slabs of a component that are not enclosed by other bricks of it.

    Args:
        boxes: (N, 2, 3) `ComponentLayout.boxes`.
    """
    count, cells = len(boxes), 0
    bodies, studs = np.ones(count, dtype=np.bool_), np.ones(count, dtype=np.bool_)
    if count < _FEW:
        return bodies, studs
    low, high = boxes[0, 0].copy(), boxes[0, 1].copy()
    for n in range(count):
        own = 1
        for k in range(3):
            low[k], high[k] = min(low[k], boxes[n, 0, k]), max(high[k], boxes[n, 1, k])
            own *= boxes[n, 1, k] - boxes[n, 0, k]
        cells += own
    # Room for a layer of neighbours all around.
    low -= 1
    size = high - low + 1
    if size[0] * size[1] * size[2] > _SPARSE * cells:
        return bodies, studs
    occupied = np.zeros((size[0], size[1], size[2]), dtype=np.bool_)
    for n in range(count):
        for x in range(boxes[n, 0, 0] - low[0], boxes[n, 1, 0] - low[0]):
            for y in range(boxes[n, 0, 1] - low[1], boxes[n, 1, 1] - low[1]):
                for z in range(boxes[n, 0, 2] - low[2], boxes[n, 1, 2] - low[2]):
                    occupied[x, y, z] = True
    for n in range(count):
        x, y, z = boxes[n, 0, 0] - low[0], boxes[n, 0, 1] - low[1], boxes[n, 0, 2] - low[2]
        u, v, w = boxes[n, 1, 0] - low[0], boxes[n, 1, 1] - low[1], boxes[n, 1, 2] - low[2]
        # The layers of cells next to the body on each side.
        covered = _full(occupied, x, u, y, v, w, w + 1)
        studs[n] = not covered
        bodies[n] = not (
            covered
            and _full(occupied, x, u, y, v, z - 1, z)
            and _full(occupied, x - 1, x, y, v, z, w)
            and _full(occupied, u, u + 1, y, v, z, w)
            and _full(occupied, x, u, y - 1, y, z, w)
            and _full(occupied, x, u, v, v + 1, z, w)
        )
    return bodies, studs


@compiled
def _full(
    occupied: NDArray[np.bool_], x0: int, x1: int, y0: int, y1: int, z0: int, z1: int
) -> bool:
    """Whether all cells from the first to the one before the last along each axis are occupied."""
    for x in range(x0, x1):
        for y in range(y0, y1):
            for z in range(z0, z1):
                if not occupied[x, y, z]:
                    return False
    return True
