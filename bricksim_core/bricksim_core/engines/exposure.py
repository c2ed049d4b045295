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
    low, high = layout.boxes[:, 0], layout.boxes[:, 1]
    # Room for a layer of neighbours all around.
    origin = low.min(axis=0) - 1
    low, high = low - origin, high - origin
    size = high.max(axis=0) + 1
    few = len(low) < _FEW
    if few or np.prod(size) > _SPARSE * np.prod(high - low, axis=1).sum():
        exposed = np.ones(len(low), dtype=np.bool_)
        return exposed, exposed
    occupied = np.zeros(tuple(size.tolist()), dtype=np.bool_)
    covered = np.empty((len(low), 6), dtype=np.bool_)
    _cover(low, high, occupied, covered)
    return ~covered.all(axis=1), ~covered[:, 5]


@compiled
def _cover(
    low: IntArray, high: IntArray, occupied: NDArray[np.bool_], covered: NDArray[np.bool_]
) -> None:
    """Writes which sides of bodies lie against others all over.

    Args:
        low: (N, 3) least cells of the bodies.
        high: (N, 3) greatest cells + 1.
        occupied: (X, Y, Z) cells of the grid, empty; has room beyond all bodies.
        covered: (N, 6) to be written: below and above along x, y and z.
    """
    for n in range(len(low)):
        for x in range(low[n, 0], high[n, 0]):
            for y in range(low[n, 1], high[n, 1]):
                occupied[x, y, low[n, 2] : high[n, 2]] = True
    first, last = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    for n in range(len(low)):
        for side in range(6):
            # The layer of cells next to the body on this side.
            axis = side // 2
            for k in range(3):
                first[k], last[k] = low[n, k], high[n, k]
            first[axis] = high[n, axis] if side % 2 else low[n, axis] - 1
            last[axis] = first[axis] + 1
            covered[n, side] = _full(occupied, first, last)


@compiled
def _full(occupied: NDArray[np.bool_], first: IntArray, last: IntArray) -> bool:
    """Whether all cells from the first to the one before the last along each axis are occupied."""
    for x in range(first[0], last[0]):
        for y in range(first[1], last[1]):
            for z in range(first[2], last[2]):
                if not occupied[x, y, z]:
                    return False
    return True
