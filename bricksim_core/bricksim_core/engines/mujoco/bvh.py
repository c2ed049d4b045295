# SPDX-License-Identifier: Apache-2.0
"""Bounding volume hierarchies of a body's boxes, in MuJoCo's terms.

MuJoCo walks a binary tree of axis-aligned boxes in the body's frame and asks nothing else of it, so
the tree is a balanced one over the boxes along a space-filling curve (Morton order): its form hangs
on the number of boxes alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array

_BITS = 10
"""Cells of the space-filling curve along each axis, as a power of two."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree over N boxes; 2 N - 1 nodes, the root first.

    Attributes:
        child: (2 N - 1, 2) nodes below each node, -1 for leaves.
        leaf: (2 N - 1,) box of each leaf, -1 for inner nodes.
        bounds: (2 N - 1, 6) centre and half extents [m].
    """

    child: NDArray[np.intp]
    leaf: NDArray[np.intp]
    bounds: Array


def box_tree(centres: Array, reach: Array) -> Tree:
    """The tree over some boxes.

    Args:
        centres: (N, 3) in the body's frame [m], N > 0.
        reach: (N, 3) half extents along the body's axes [m].
    """
    child, place = _form(len(centres))
    leaf = np.where(place < 0, -1, along_curve(centres)[place])
    bounds = np.empty((len(leaf), 6))
    _bound(child, leaf, centres, reach, bounds)
    return Tree(child, leaf, bounds)


@compiled
def _bound(
    child: NDArray[np.intp], leaf: NDArray[np.intp], centres: Array, reach: Array, bounds: Array
) -> None:
    """Writes the bounds of a tree; see `Tree` and `box_tree`."""
    low, high = np.empty((len(leaf), 3)), np.empty((len(leaf), 3))
    for node in range(len(leaf) - 1, -1, -1):  # children come after their parents
        for k in range(3):
            if leaf[node] < 0:
                first, second = child[node]
                low[node, k] = min(low[first, k], low[second, k])
                high[node, k] = max(high[first, k], high[second, k])
            else:
                low[node, k] = centres[leaf[node], k] - reach[leaf[node], k]
                high[node, k] = centres[leaf[node], k] + reach[leaf[node], k]
            bounds[node, k] = 0.5 * (low[node, k] + high[node, k])
            bounds[node, 3 + k] = 0.5 * (high[node, k] - low[node, k])


@compiled
def _form(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A balanced tree over so many boxes in a row: (2 N - 1, 2) children as in `Tree`, and
    (2 N - 1,) the place of each leaf's box in the row, -1 for inner nodes."""
    child = np.full((2 * count - 1, 2), -1, dtype=np.intp)
    place = np.full(2 * count - 1, -1, dtype=np.intp)
    first, last = np.zeros(2 * count - 1, dtype=np.intp), np.zeros(2 * count - 1, dtype=np.intp)
    last[0], used = count, 1
    for node in range(2 * count - 1):
        if last[node] - first[node] == 1:
            place[node] = first[node]
            continue
        middle = (first[node] + last[node]) // 2
        child[node] = used, used + 1
        first[used], last[used] = first[node], middle
        first[used + 1], last[used + 1] = middle, last[node]
        used += 2
    return child, place


def along_curve(centres: Array) -> NDArray[np.intp]:
    """(N,) order of points along a Morton curve."""
    if len(centres) < 3:
        return np.arange(len(centres))
    low = centres.min(axis=0)
    size = max(float((centres.max(axis=0) - low).max()), 1e-12)
    cells = ((centres - low) * ((2**_BITS - 1) / size)).astype(np.int64)
    return np.argsort(_interleaved(cells), kind="stable")


@compiled
def _interleaved(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) numbers along the curve of (N, 3) cells: their bits in turn."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for n in range(len(cells)):
        for bit in range(_BITS):
            for axis in range(3):
                codes[n] |= (cells[n, axis] >> bit & 1) << (3 * bit + axis)
    return codes
