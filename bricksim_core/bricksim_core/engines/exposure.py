# SPDX-License-Identifier: Apache-2.0
"""Which colliders of a component something outside can touch.

The slab over a brick's studs is inside the bricks on top where these cover all of it, and a body
with neighbours on all six sides is out of reach. An engine may leave both out of collision
detection: whatever came to touch them would be inside other bricks of the component before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.topology.layout import ComponentLayout, IntArray

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
    if np.prod(size) > _SPARSE * np.prod(high - low, axis=1).sum():
        exposed = np.ones(len(low), dtype=np.bool_)
        return exposed, exposed
    counts = _counts(low, high, size)
    covered = np.ones((2, 3, len(low)), dtype=np.bool_)
    for axis in range(3):
        for side, edge, start in ((0, low, -1), (1, high, 0)):
            first, last = low.copy(), high.copy()
            first[:, axis] = edge[:, axis] + start
            last[:, axis] = first[:, axis] + 1
            covered[side, axis] = _between(counts, first, last) == np.prod(last - first, axis=1)
    return ~covered.all(axis=(0, 1)), ~covered[1, 2]


def _counts(low: IntArray, high: IntArray, size: IntArray) -> IntArray:
    """(X + 1, Y + 1, Z + 1) occupied cells below each corner of the grid (a summed-volume table).

    Args:
        low: (N, 3) least cells of boxes that do not overlap.
        high: (N, 3) greatest cells + 1.
        size: (3,) cells of the grid.
    """
    # Each box is the product of three steps: the sums along the axes of eight corners.
    shape = tuple((size + 1).tolist())
    marks = np.zeros(np.prod(shape))
    for corner in np.ndindex(2, 2, 2):
        chosen = np.where(corner, high, low)
        flat = np.ravel_multi_index(tuple(chosen.T), shape)
        marks += (-1.0) ** sum(corner) * np.bincount(flat, minlength=len(marks))
    occupied = marks.reshape(shape)
    for axis in range(3):
        np.cumsum(occupied, axis=axis, out=occupied)
    table = np.zeros(shape)
    table[1:, 1:, 1:] = occupied[:-1, :-1, :-1]
    for axis in range(3):
        np.cumsum(table, axis=axis, out=table)
    return table.astype(np.int64)


def _between(counts: IntArray, first: IntArray, last: IntArray) -> IntArray:
    """(N,) occupied cells in boxes of cells."""
    total = np.zeros(len(first), dtype=np.int64)
    for corner in np.ndindex(2, 2, 2):
        x, y, z = np.where(corner, last, first).T
        total += (-1) ** (3 - sum(corner)) * counts[x, y, z]
    return total
