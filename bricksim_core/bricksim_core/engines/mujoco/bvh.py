# SPDX-License-Identifier: Apache-2.0
"""Bounding volume hierarchies of a body's boxes, in MuJoCo's terms.

MuJoCo walks a binary tree of axis-aligned boxes in the body's frame and asks nothing else of it, so
the tree is a balanced one over the boxes along a space-filling curve (Morton order): its form hangs
on the number of boxes alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array

_BITS = 10
"""Cells of the space-filling curve along each axis, as a power of two."""


class Tree(NamedTuple):
    """A tree over N boxes; 2 N - 1 nodes, the root first.

    Attributes:
        child: (2 N - 1, 2) nodes below each node, -1 for leaves.
        leaf: (2 N - 1,) box of each leaf, -1 for inner nodes.
        bounds: (2 N - 1, 6) centre and half extents [m].
    """

    child: NDArray[np.intp]
    leaf: NDArray[np.intp]
    bounds: Array


@compiled
def box_tree(centres: Array, reach: Array) -> Tree:
    """The tree over some boxes.

    Args:
        centres: (N, 3) in the body's frame [m], N > 0.
        reach: (N, 3) half extents along the body's axes [m].
    """
    nodes, order = 2 * len(centres) - 1, along_curve(centres)
    child, leaf = np.full((nodes, 2), -1, dtype=np.intp), np.full(nodes, -1, dtype=np.intp)
    # A balanced tree over the boxes in this order.
    first, last = np.zeros(nodes, dtype=np.intp), np.zeros(nodes, dtype=np.intp)
    last[0], used = len(centres), 1
    for node in range(nodes):
        if last[node] - first[node] == 1:
            leaf[node] = order[first[node]]
            continue
        middle = (first[node] + last[node]) // 2
        child[node, 0], child[node, 1] = used, used + 1
        first[used], last[used] = first[node], middle
        first[used + 1], last[used + 1] = middle, last[node]
        used += 2
    low, high, bounds = np.empty((nodes, 3)), np.empty((nodes, 3)), np.empty((nodes, 6))
    for node in range(nodes - 1, -1, -1):  # children come after their parents
        for k in range(3):
            if leaf[node] < 0:
                one, other = child[node]
                low[node, k] = min(low[one, k], low[other, k])
                high[node, k] = max(high[one, k], high[other, k])
            else:
                low[node, k] = centres[leaf[node], k] - reach[leaf[node], k]
                high[node, k] = centres[leaf[node], k] + reach[leaf[node], k]
            bounds[node, k] = 0.5 * (low[node, k] + high[node, k])
            bounds[node, 3 + k] = 0.5 * (high[node, k] - low[node, k])
    return Tree(child, leaf, bounds)


@compiled
def along_curve(centres: Array) -> NDArray[np.intp]:
    """(N,) order of points along a Morton curve: by the bits of their cells in turn."""
    if len(centres) < 3:
        return np.arange(len(centres))
    low, high = centres[0].copy(), centres[0].copy()
    for n in range(1, len(centres)):
        for k in range(3):
            low[k], high[k] = min(low[k], centres[n, k]), max(high[k], centres[n, k])
    size = 1e-12
    for k in range(3):
        size = max(size, high[k] - low[k])
    scale, codes = (2**_BITS - 1) / size, np.zeros(len(centres), dtype=np.int64)
    for n in range(len(centres)):
        for k in range(3):
            cell = int((centres[n, k] - low[k]) * scale)
            for bit in range(_BITS):
                codes[n] |= (cell >> bit & 1) << (3 * bit + k)
    return np.argsort(codes, kind="mergesort")
