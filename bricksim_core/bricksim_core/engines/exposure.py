# SPDX-License-Identifier: Apache-2.0
"""Which colliders of a component something outside can touch.

The slab over a brick's studs is inside the bricks on top where these cover all of it, and a body
with neighbours on all six sides is out of reach. An engine may leave both out of collision
detection: whatever came to touch them would be inside other bricks of the component before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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
    low, high = (low - origin).T, (high - origin).T
    size = high.max(axis=1) + 1
    few = low.shape[1] < _FEW
    if few or np.prod(size) > _SPARSE * _volume(low, high).sum():
        exposed = np.ones(low.shape[1], dtype=np.bool_)
        return exposed, exposed
    # The layers of cells on the six sides of each body: three axes, below and above.
    first, last = np.tile(low[:, None, None], (3, 2, 1)), np.tile(high[:, None, None], (3, 2, 1))
    for axis in range(3):
        first[axis, axis] = low[axis] - 1, high[axis]
        last[axis, axis] = low[axis], high[axis] + 1
    covered = _occupied(low, high, size, first, last) == _volume(first, last)
    return ~covered.all(axis=(0, 1)), ~covered[2, 1]


def _volume(first: IntArray, last: IntArray) -> IntArray:
    x, y, z = last - first
    return x * y * z


def _occupied(
    low: IntArray, high: IntArray, size: IntArray, first: IntArray, last: IntArray
) -> IntArray:
    """(...,) occupied cells in boxes of cells, by a summed-volume table.

    Args:
        low: (3, N) least cells of bodies, which do not overlap.
        high: (3, N) greatest cells + 1.
        size: (3,) cells of the grid.
        first: (3, ...) least cells of the boxes.
        last: (3, ...) greatest cells + 1.
    """
    # Corner i of the grid is place i + 1 of the table, so that it begins with zeros.
    shape = tuple((size + 2).tolist())
    # A body is the sum along the axes of steps at its eight corners; the table is the sum of that.
    places, signs = zip(*_corners(low + 1, high + 1, shape), strict=True)
    weights = np.repeat(signs, low.shape[1])
    table = np.bincount(np.concatenate(places), weights, int(np.prod(shape))).astype(np.int64)
    table = table.reshape(shape)
    for axis in (0, 1, 2, 0, 1, 2):
        np.cumsum(table, axis=axis, out=table)
    table = table.ravel()
    total = np.zeros(first.shape[1:], dtype=np.int64)
    for place, sign in _corners(first, last, shape):
        total -= sign * table[place]
    return total


def _corners(
    first: IntArray, last: IntArray, shape: tuple[int, ...]
) -> Iterator[tuple[IntArray, int]]:
    """Flat places of the eight corners of boxes in a table, and their signs."""
    stride = (shape[1] * shape[2], shape[2], 1)
    ends = [(f * s, la * s) for f, la, s in zip(first, last, stride, strict=True)]
    for i, j, k in np.ndindex(2, 2, 2):
        yield ends[0][i] + ends[1][j] + ends[2][k], (-1) ** (i + j + k)
