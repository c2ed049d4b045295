# SPDX-License-Identifier: Apache-2.0
"""Which boxes on one grid touch or overlap: sorted searches over whole arrays of boxes."""

from __future__ import annotations

import numpy as np

from bricksim_core.topology.grid import IntArray


def facing_pairs(boxes: IntArray, axis: int) -> tuple[IntArray, IntArray]:
    """Pairs of boxes that touch with faces of opposite directions.

    Args:
        boxes: (N, 2, 3) least and greatest corners, whole numbers.
        axis: Direction of the normal, 0, 1 or 2.

    Returns:
        (M,) indices of the boxes on the low side and (M,) of those on the high side.
    """
    u, v = (axis + 1) % 3, (axis + 2) % 3
    low, high = boxes[:, 0], boxes[:, 1]
    # One line holds all planes one after another, so that one sorted search serves them all.
    origin = low[:, u].min()
    stride = high[:, u].max() - origin + 1
    line_a = high[:, axis] * stride + low[:, u] - origin
    line_b = low[:, axis] * stride + low[:, u] - origin
    length = high[:, u] - low[:, u]
    a, b = _overlapping_intervals(line_a, length, line_b, length)
    touching = (low[a, v] < high[b, v]) & (low[b, v] < high[a, v])
    return a[touching], b[touching]


def overlapping_pairs(boxes: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of boxes that share a volume.

    Args:
        boxes: (N, 2, 3) least and greatest corners, whole numbers.

    Returns:
        (M,) lesser and (M,) greater indices, each pair once.
    """
    low, high = boxes[:, 0], boxes[:, 1]
    # Where two boxes overlap, one of them reaches into the layer in which the other begins.
    heights = high[:, 2] - low[:, 2]
    box = np.repeat(np.arange(len(boxes)), heights)
    layer = np.arange(len(box)) - np.repeat(np.cumsum(heights) - heights, heights) + low[box, 2]
    origin = low[:, 0].min(initial=0)
    stride = high[:, 0].max(initial=0) - origin + 1
    length = high[:, 0] - low[:, 0]
    line = low[:, 0] - origin
    a, b = _overlapping_intervals(
        low[:, 2] * stride + line, length, layer * stride + line[box], length[box]
    )
    b = box[b]
    shared = (a != b) & (low[a, 1] < high[b, 1]) & (low[b, 1] < high[a, 1])
    count = len(boxes)
    pairs = np.unique(np.minimum(a, b)[shared] * count + np.maximum(a, b)[shared])
    return pairs // count, pairs % count


def _overlapping_intervals(
    low_a: IntArray, length_a: IntArray, low_b: IntArray, length_b: IntArray
) -> tuple[IntArray, IntArray]:
    """All index pairs of half open intervals that overlap."""
    # One of them begins within the other: at its beginning or after it.
    a, b = _starts_within(low_a, low_a + length_a, low_b)
    b_later, a_later = _starts_within(low_b + 1, low_b + length_b, low_a)
    return np.concatenate([a, a_later]), np.concatenate([b, b_later])


def _starts_within(low: IntArray, high: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """All (interval, start) index pairs with low <= start < high."""
    order = starts.argsort(kind="stable")
    ordered = starts[order]
    first = ordered.searchsorted(low)
    counts = np.maximum(ordered.searchsorted(high) - first, 0)
    interval = np.arange(len(low)).repeat(counts)
    within = np.arange(len(interval)) - (counts.cumsum() - counts).repeat(counts)
    return interval, order[first[interval] + within]
