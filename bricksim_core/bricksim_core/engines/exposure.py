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
from bricksim_core.topology.layout import ComponentLayout, IntArray

_FEW = 8
"""Bricks below which nothing is looked for: too little would be gained."""
_SPARSE = 64
"""Cells in the bounds of a component, over cells of its bricks, from which on nothing is looked
for: such components have little inside, and their grid would be large."""


def exposed_parts(layout: ComponentLayout) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(N,) bodies and (N,) stud slabs that are not enclosed by other bricks of the component."""
    return _exposed(layout.boxes)


@compiled
def _exposed(boxes: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The same of (N, 2, 3) boxes (`ComponentLayout.boxes`)."""
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
    size = high - low + 2
    if size[0] * size[1] * size[2] > _SPARSE * cells:
        return bodies, studs
    occupied = np.zeros((size[0], size[1], size[2]), dtype=np.bool_)
    first, last = np.empty((count, 3), dtype=np.int64), np.empty((count, 3), dtype=np.int64)
    for n in range(count):
        for k in range(3):
            first[n, k], last[n, k] = boxes[n, 0, k] - low[k] + 1, boxes[n, 1, k] - low[k] + 1
        for x in range(first[n, 0], last[n, 0]):
            for y in range(first[n, 1], last[n, 1]):
                occupied[x, y, first[n, 2] : last[n, 2]] = True
    for n in range(count):
        sides = 0
        for side in range(6):
            if _covered(occupied, first[n], last[n], side):
                sides += 1
                if side == 5:
                    studs[n] = False
        bodies[n] = sides < 6
    return bodies, studs


@compiled
def _covered(occupied: NDArray[np.bool_], low: IntArray, high: IntArray, side: int) -> bool:
    """Whether a side of a body lies against others all over.

    Args:
        occupied: (X, Y, Z) cells of the grid; has room beyond all bodies.
        low: (3,) least cell of the body.
        high: (3,) greatest cell + 1.
        side: Below and above along x, y and z.
    """
    # The layer of cells next to the body on this side.
    axis, first, last = side // 2, low.copy(), high.copy()
    first[axis] = high[axis] if side % 2 else low[axis] - 1
    last[axis] = first[axis] + 1
    for x in range(first[0], last[0]):
        for y in range(first[1], last[1]):
            for z in range(first[2], last[2]):
                if not occupied[x, y, z]:
                    return False
    return True
