# SPDX-License-Identifier: Apache-2.0
"""Colliders of bricks as oriented boxes, and which boxes penetrate which.

A brick collides as two boxes: its body, and a slab over its whole top that stands for the studs.
Both leave a clearance at the sides, so that a brick fits beside its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE
from bricksim_core.parts import PLATE_HEIGHT, SIDE_CLEARANCE, STUD_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array, joined, transform_points
from bricksim_core.topology.layout import ComponentLayout, IntArray
from bricksim_core.topology.separation import separate, separations

_ROWS = 256
"""Boxes compared with all others at once: bounds the memory."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Oriented boxes; B rows.

    Attributes:
        part_ids: (B,) brick each belongs to.
        shapes: (B,) BODY_SHAPE or STUD_SHAPE.
        centres: (B, 3) [m].
        axes: (B, 3, 3) rotations; columns are the box axes.
        halves: (B, 3) half extents along the box axes [m].
    """

    part_ids: IntArray
    shapes: IntArray
    centres: Array
    axes: Array
    halves: Array

    def moved(self, pose: Array) -> Boxes:
        """The same boxes in the parent frame of ``pose``: (4, 4), or (B, 4, 4) one for each."""
        return Boxes(
            self.part_ids,
            self.shapes,
            transform_points(pose, self.centres),
            _turned(pose[..., :3, :3], self.axes),
            self.halves,
        )

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Boxes:
        """Some of the boxes."""
        return Boxes(
            self.part_ids[rows],
            self.shapes[rows],
            self.centres[rows],
            self.axes[rows],
            self.halves[rows],
        )

    @property
    def reach(self) -> Array:
        """(B, 3) half extents along the parent's axes [m]."""
        return np.einsum("nij,nj->ni", np.abs(self.axes), self.halves)


def _turned(rotation: Array, axes: Array) -> Array:
    """(B, 3, 3) axes turned by a (3, 3) rotation, or each by one of (B, 3, 3)."""
    if rotation.ndim == 2:
        kinds, which = kinds_of(axes)
        if len(kinds):
            return (rotation @ kinds)[which]
    return rotation @ axes


@compiled
def kinds_of(axes: Array) -> tuple[Array, NDArray[np.intp]]:
    """Different ones of some axes, as most boxes of a component have the same.

    Args:
        axes: (B, 3, 3).

    Returns:
        (K, 3, 3) the different ones, none if they are too many, and (B,) which of them is each.
    """
    kinds, count = np.empty((4, 3, 3)), 0
    which = np.zeros(len(axes), dtype=np.intp)
    for b in range(len(axes)):
        kind = 0
        while kind < count and not _same(kinds, kind, axes, b):
            kind += 1
        if kind == len(kinds):
            return kinds[:0], which
        if kind == count:
            kinds[kind], count = axes[b], count + 1
        which[b] = kind
    return kinds[:count], which


@compiled
def _same(some: Array, i: int, others: Array, j: int) -> bool:
    """Whether two of some axes are bit by bit the same."""
    for k in range(3):
        for m in range(3):
            if some[i, k, m] != others[j, k, m]:
                return False
    return True


def concatenate(boxes: Sequence[Boxes]) -> Boxes:
    """All boxes of several sets, in order."""
    return Boxes(
        joined((b.part_ids for b in boxes), dtype=np.int64),
        joined((b.shapes for b in boxes), dtype=np.int64),
        joined((b.centres for b in boxes), (3,)),
        joined((b.axes for b in boxes), (3, 3)),
        joined((b.halves for b in boxes), (3,)),
    )


def brick_boxes(layout: ComponentLayout) -> Boxes:
    """Colliders of a component's bricks in the component frame: all bodies, then all studs."""
    sizes, poses = layout.dimensions, layout.component_T_parts
    return Boxes(*_colliders(layout.part_ids, sizes, poses, layout.studded))


@compiled
def seat_depths(sizes: IntArray, poses: Array) -> Array:
    """(P,) depth [m] of the stud slabs of some bricks in the bodies of others; negative: how far
    apart they are at least.

    Args:
        sizes: (2 P, 3) lengths, widths [studs] and heights [plates]: of P lower bricks and, in the
            same order, P upper ones.
        poses: (2 P, 4, 4) their frames [m].
    """
    count = len(sizes) // 2
    everything, ids = np.ones(2 * count, dtype=np.bool_), np.arange(2 * count)
    centres, axes = np.empty((2 * count, 3)), np.empty((2 * count, 3, 3))
    halves, shapes, gaps = np.empty((2 * count, 3)), np.empty_like(ids), np.empty((count, 15))
    for start, shape in ((0, STUD_SHAPE), (count, BODY_SHAPE)):
        own = slice(start, start + count)
        _write(
            shape, everything[own], ids[own], sizes[own], poses[own], start,
            ids.copy(), shapes, centres, axes, halves,
        )  # fmt: skip
    lower, upper = slice(0, count), slice(count, 2 * count)
    separate(
        centres[upper] - centres[lower], axes[lower], halves[lower], axes[upper], halves[upper],
        gaps,
    )  # fmt: skip
    deep = np.empty(count)
    for p in range(count):
        deep[p] = -gaps[p].max()
    return deep


@compiled
def _colliders(
    ids: IntArray, sizes: IntArray, poses: Array, studded: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, Array, Array, Array]:
    """What `brick_boxes` hands back; arguments as `_write`, but which of the bricks have studs."""
    count = len(ids) + np.count_nonzero(studded)
    part_ids, shapes = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    centres, axes, halves = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3))
    everything = np.ones(len(ids), dtype=np.bool_)
    _write(
        BODY_SHAPE, everything, ids, sizes, poses, 0, part_ids, shapes, centres, axes, halves
    )  # fmt: skip
    _write(
        STUD_SHAPE, studded, ids, sizes, poses, len(ids), part_ids, shapes, centres, axes, halves
    )  # fmt: skip
    return part_ids, shapes, centres, axes, halves


def _room(count: int) -> tuple[IntArray, IntArray, Array, Array, Array]:
    """Arrays for so many boxes, see `Boxes`."""
    part_ids, shapes = np.empty((2, count), dtype=np.int64)
    return part_ids, shapes, np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3))


@compiled
def _write(
    shape: int,
    wanted: NDArray[np.bool_],
    parts: IntArray,
    sizes: IntArray,
    poses: Array,
    start: int,
    part_ids: IntArray,
    shapes: IntArray,
    centres: Array,
    axes: Array,
    halves: Array,
) -> None:
    """Writes the bodies of some bricks, or the slabs of their studs.

    Args:
        shape: BODY_SHAPE or STUD_SHAPE.
        wanted: (N,) which bricks.
        parts: (N,) their ids.
        sizes: (N, 3) lengths, widths [studs] and heights [plates].
        poses: (N, 4, 4) their frames [m].
        start: First row to be written of the others, see `Boxes`.
        part_ids: (B,)
        shapes: (B,)
        centres: (B, 3)
        axes: (B, 3, 3)
        halves: (B, 3)
    """
    row = start
    for n in range(len(parts)):
        if not wanted[n]:
            continue
        height = PLATE_HEIGHT * sizes[n, 2]
        half = 0.5 * (STUD_HEIGHT if shape == STUD_SHAPE else height)
        middle = height + half if shape == STUD_SHAPE else half
        part_ids[row], shapes[row] = parts[n], shape
        for i in range(3):
            centres[row, i] = poses[n, i, 2] * middle + poses[n, i, 3]
            for j in range(3):
                axes[row, i, j] = poses[n, i, j]
        for i in range(2):
            halves[row, i] = 0.5 * STUD_PITCH * sizes[n, i] - SIDE_CLEARANCE
        halves[row, 2] = half
        row += 1


def penetrating(
    a: Boxes, b: Boxes, tolerance: float, skip: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Pairs of boxes that penetrate each other by more than a tolerance.

    Args:
        a: Boxes.
        b: Boxes to compare with.
        tolerance: Depth that is let pass [m].
        skip: If ``a`` and ``b`` are the same boxes, (B,) groups; pairs of one group do not count.

    Returns:
        (P,) indices into ``a``, (P,) indices into ``b``, (P,) depths [m].
    """
    reach_a, reach_b = a.reach - 0.5 * tolerance, b.reach - 0.5 * tolerance
    low_a, high_a = a.centres - reach_a, a.centres + reach_a
    low_b, high_b = b.centres - reach_b, b.centres + reach_b
    # Only what reaches into the bounds of all of ``a`` is compared pair by pair.
    near = np.flatnonzero(
        np.all((low_b < high_a.max(axis=0, initial=-np.inf)), axis=1)
        & np.all((high_b > low_a.min(axis=0, initial=np.inf)), axis=1)
    )
    axes = [(low_a[:, k], high_a[:, k], low_b[near, k], high_b[near, k]) for k in range(3)]
    pairs = []
    for start in range(0, len(low_a), _ROWS):
        rows = slice(start, start + _ROWS)
        touch = np.ones((len(low_a[rows]), len(near)), dtype=np.bool_)
        for low, high, other_low, other_high in axes:
            touch &= low[rows, None] < other_high
            touch &= other_low < high[rows, None]
        pairs.append(np.argwhere(touch) + np.array([start, 0]))
    first, second = joined(pairs, (2,), np.intp).T
    if skip is not None:
        other = skip[first] != skip[near[second]]
        first, second = first[other], second[other]
    second = near[second]
    depth = depths(a, first, b, second)
    deep = depth > tolerance
    return first[deep], second[deep], depth[deep]


def depths(a: Boxes, first: NDArray[np.intp], b: Boxes, second: NDArray[np.intp]) -> Array:
    """(P,) penetration depth [m] of box pairs; negative: how far apart they are at least."""
    gaps = separations(
        b.centres[second] - a.centres[first],
        a.axes[first],
        a.halves[first],
        b.axes[second],
        b.halves[second],
    )
    return -gaps.max(axis=1, initial=-np.inf)
