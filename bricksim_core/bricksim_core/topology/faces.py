# SPDX-License-Identifier: Apache-2.0
"""Which boxes on one grid touch. What reads files goes without (`neighbours` does for it): loops
take half a second to load."""

from __future__ import annotations

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.topology.grid import IntArray


@compiled
def facing_pairs(boxes: IntArray, axis: int) -> tuple[IntArray, IntArray]:
    """Pairs of boxes that touch with faces of opposite directions.

    Args:
        boxes: (N, 2, 3) least and greatest corners, whole numbers.
        axis: Direction of the normal, 0, 1 or 2.

    Returns:
        (M,) indices of the boxes on the low side and (M,) of those on the high side.
    """
    count, found = len(boxes), 0
    low, high = np.empty(2 * count, dtype=np.int64), np.empty(2 * count, dtype=np.int64)
    if not count:
        return low, high
    # The search goes along the longer side, where fewer boxes are side by side.
    u, v = (axis + 1) % 3, (axis + 2) % 3
    origin = boxes[:, 0, u].min()
    longer = boxes[:, 1, u].max() - origin
    if boxes[:, 1, v].max() - boxes[:, 0, v].min() > longer:
        u, v = v, u
        origin = boxes[:, 0, u].min()
        longer = boxes[:, 1, u].max() - origin
    # One line holds all planes one after another, so that one sorted search serves them all.
    line = np.empty((2, count), dtype=np.int64)
    for i in range(count):
        along = boxes[i, 0, u] - origin
        line[0, i] = boxes[i, 1, axis] * (longer + 1) + along
        line[1, i] = boxes[i, 0, axis] * (longer + 1) + along
    order = np.empty((2, count), dtype=np.int64)
    for side in range(2):
        order[side] = np.argsort(line[side], kind="mergesort")
    # One of two begins where the other does or, each way, within it.
    for side in range(2):
        own, other, first = order[side], order[1 - side], 0
        for i in own:
            begin, end = line[side, i] + side, line[side, i] + boxes[i, 1, u] - boxes[i, 0, u]
            while first < count and line[1 - side, other[first]] < begin:
                first += 1
            for k in range(first, count):
                j = other[k]
                if line[1 - side, j] >= end:
                    break
                if boxes[i, 0, v] < boxes[j, 1, v] and boxes[j, 0, v] < boxes[i, 1, v]:
                    if found == len(low):
                        low, high = np.append(low, low), np.append(high, high)
                    low[found], high[found] = (j, i) if side else (i, j)
                    found += 1
    return low[:found], high[:found]
