# SPDX-License-Identifier: Apache-2.0
"""Parts as oriented boxes in the world: who overlaps and who touches whom.

Inside a component the integer grid answers this; here are the components against each other, which
may stand at any pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.spatial import Array, joined
from bricksim_core.topology.grid import GRID_CELL
from bricksim_core.topology.structure import Structure

_UPRIGHT = 1.0 - 1e-9
_AT_ONCE = 1 << 20
"""Pairs that are compared together: bounds the memory."""


@dataclass(frozen=True, eq=False)
class PartBoxes:
    """Bodies of parts, studs left out.

    Attributes:
        part_ids: (N,) part ids, sorted by component and id.
        components: (N,) component ids.
        centres: (N, 3) [m], world.
        axes: (N, 3, 3) rotations; columns are the box axes in the world.
        halves: (N, 3) half extents along the box axes [m].
    """

    part_ids: NDArray[np.int64]
    components: NDArray[np.int64]
    centres: Array
    axes: Array
    halves: Array

    @property
    def reach(self) -> Array:
        """(N, 3) half extents along the world axes [m]."""
        return np.einsum("nij,nj->ni", np.abs(self.axes), self.halves)

    @property
    def upright(self) -> NDArray[np.bool_]:
        """(N,) whether the studs point up."""
        return self.axes[:, 2, 2] > _UPRIGHT


@dataclass(frozen=True, eq=False)
class BoxPairs:
    """Pairs of boxes of different components that are near each other.

    Attributes:
        first: (P,) index of one box.
        second: (P,) index of the other.
        gap: (P,) separation [m]; negative: how deep they overlap.
        side_gap: (P,) the part of it along horizontal box axes; -inf if a box is tilted.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    gap: Array
    side_gap: Array


def part_boxes(structure: Structure) -> PartBoxes:
    """Bodies of all parts of a structure."""
    layouts = [(c, structure.graph.layout(c)) for c in structure.graph.component_ids]
    poses = [structure.component_poses[c] @ layout.component_T_parts for c, layout in layouts]
    world = joined(poses, (4, 4))
    cells = [layout.dimensions for _, layout in layouts]
    halves: Array = joined(cells, (3,)) * (0.5 * GRID_CELL)
    axes = world[:, :3, :3]
    ids = [layout.part_ids for _, layout in layouts]
    return PartBoxes(
        part_ids=joined(ids, dtype=np.int64),
        components=np.repeat(
            np.array([c for c, _ in layouts], dtype=np.int64), [len(i) for i in ids]
        ),
        centres=world[:, :3, 3] + axes[:, :, 2] * halves[:, 2:],
        axes=axes,
        halves=halves,
    )


def near_pairs(boxes: PartBoxes, distance: float) -> BoxPairs:
    """Pairs of different components whose boxes are at most ``distance`` [m] apart.

    The separation is the largest one over the axes of the separating axis theorem: exact where the
    boxes overlap or face each other, never more than the true distance elsewhere.
    """
    first, second = _candidates(boxes, distance)
    if not len(first):  # most structures; compiled loops take half a second to load
        return BoxPairs(first, second, np.zeros(0), np.zeros(0))
    from bricksim_core.topology.separation import separations

    gaps = separations(
        boxes.centres[second] - boxes.centres[first],
        boxes.axes[first],
        boxes.halves[first],
        boxes.axes[second],
        boxes.halves[second],
    )
    gap = gaps.max(axis=1, initial=-np.inf)
    upright = boxes.upright[first] & boxes.upright[second]
    side_gap = np.where(upright, gaps[:, [0, 1, 3, 4]].max(axis=1, initial=-np.inf), -np.inf)
    near = gap <= distance
    return BoxPairs(first[near], second[near], gap[near], side_gap[near])


def _candidates(boxes: PartBoxes, distance: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of different components whose axis-aligned bounds are near: a sweep along x."""
    firsts, seconds = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
    if (boxes.components != boxes.components[:1]).any():
        reach = boxes.reach + 0.5 * distance
        low, high = boxes.centres - reach, boxes.centres + reach
        order = np.argsort(low[:, 0], kind="stable")
        ends = np.searchsorted(low[order, 0], high[order, 0], side="right")
        later = np.maximum(ends - np.arange(len(order)) - 1, 0)
        total = later.cumsum()
        cuts = np.flatnonzero(np.diff(total // _AT_ONCE)) + 1
        for rows in np.split(np.arange(len(order)), cuts):
            counts = later[rows]
            within = np.arange(counts.sum()) - (counts.cumsum() - counts).repeat(counts)
            i, j = order[rows.repeat(counts)], order[rows.repeat(counts) + 1 + within]
            keep = boxes.components[i] != boxes.components[j]
            keep &= np.all((low[j] <= high[i]) & (low[i] <= high[j]), axis=1)
            firsts.append(i[keep])
            seconds.append(j[keep])
    return np.concatenate(firsts), np.concatenate(seconds)
