# SPDX-License-Identifier: Apache-2.0
"""Which boxes on one grid touch or overlap: sorted searches over whole arrays of boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from bricksim_core.topology.grid import IntArray

_AT_ONCE = 1 << 20
"""Pairs that are looked at together: bounds the memory."""


def stacked_pairs(boxes: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of boxes of which one stands on the other; see also `faces.facing_pairs`.

    Args:
        boxes: (N, 2, 3) least and greatest corners, whole numbers.

    Returns:
        (M,) indices of the lower boxes and (M,) of the upper ones.
    """
    low, high = boxes[:, 0], boxes[:, 1]
    # The search goes along the longer side, where fewer boxes are side by side.
    u, v = 0, 1
    origin, end = low.min(axis=0), high.max(axis=0)
    if end[v] - origin[v] > end[u] - origin[u]:
        u, v = v, u
    # One line holds all planes one after another, so that one sorted search serves them all.
    stride = end[u] - origin[u] + 1
    line_a = high[:, 2] * stride + low[:, u] - origin[u]
    line_b = low[:, 2] * stride + low[:, u] - origin[u]
    length = high[:, u] - low[:, u]
    found = [
        (a[touching], b[touching])
        for a, b in _overlapping_intervals(line_a, length, line_b, length)
        for touching in [(low[a, v] < high[b, v]) & (low[b, v] < high[a, v])]
    ]
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


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
