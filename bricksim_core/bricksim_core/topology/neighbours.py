# SPDX-License-Identifier: Apache-2.0
"""Which boxes on one grid touch or overlap: sorted searches over whole arrays of boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.topology.grid import IntArray

_AT_ONCE = 1 << 20
"""Pairs that are looked at together: bounds the memory."""


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


def overlapping_pairs(boxes: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of boxes that share a volume.

    Args:
        boxes: (N, 2, 3) least and greatest corners, whole numbers.

    Returns:
        (M,) lesser and (M,) greater indices, each pair once; where there are millions, only some.
    """
    low, high = boxes[:, 0], boxes[:, 1]
    origin, end = low.min(axis=0, initial=0), high.max(axis=0, initial=0)
    u, v = (0, 1) if end[0] - origin[0] >= end[1] - origin[1] else (1, 0)
    # Where two boxes overlap, one of them reaches into the layer in which the other begins.
    heights = high[:, 2] - low[:, 2]
    box = np.repeat(np.arange(len(boxes)), heights)
    layer = np.arange(len(box)) - np.repeat(np.cumsum(heights) - heights, heights) + low[box, 2]
    stride = end[u] - origin[u] + 1
    length, line = high[:, u] - low[:, u], low[:, u] - origin[u]
    pairs = np.zeros(0, dtype=np.int64)
    for a, part in _overlapping_intervals(
        low[:, 2] * stride + line, length, layer * stride + line[box], length[box]
    ):
        b = box[part]
        shared = (a != b) & (low[a, v] < high[b, v]) & (low[b, v] < high[a, v])
        found = np.minimum(a, b)[shared] * len(boxes) + np.maximum(a, b)[shared]
        pairs = np.union1d(pairs, found)
        if len(pairs) > _AT_ONCE // 2:
            break
    return pairs // max(len(boxes), 1), pairs % max(len(boxes), 1)


def _overlapping_intervals(
    low_a: IntArray, length_a: IntArray, low_b: IntArray, length_b: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """All index pairs of half open intervals that overlap, in portions."""
    # One of them begins within the other: at its beginning or after it.
    yield from _starts_within(low_a, low_a + length_a, low_b)
    for b, a in _starts_within(low_b + 1, low_b + length_b, low_a):
        yield a, b


def _starts_within(
    low: IntArray, high: IntArray, starts: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """All (interval, start) index pairs with low <= start < high, in portions."""
    order = starts.argsort(kind="stable")
    ordered = starts[order]
    first = ordered.searchsorted(low)
    counts = np.maximum(ordered.searchsorted(high) - first, 0)
    portions = counts.cumsum() // _AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist(), len(low)]
    for begin, end in itertools.pairwise(edges):
        count = counts[begin:end]
        interval = np.arange(begin, end).repeat(count)
        within = np.arange(len(interval)) - (count.cumsum() - count).repeat(count)
        yield interval, order[first[interval] + within]
