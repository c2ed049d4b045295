# SPDX-License-Identifier: Apache-2.0
"""Stiffness matrices of parts between which forces act: assembled and factored by blocks of parts.

Newton's method on forces between parts asks again and again for B W B^T with one B (where the
forces act) and other weights W. Order of elimination and places of all entries are found once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.mechanics.snapfit.cholesky import (
    Band,
    BandCholesky,
    BlockCholesky,
    Entries,
    swept_order,
)
from bricksim_core.mechanics.snapfit.dissection import Dissection, dissect
from bricksim_core.mechanics.snapfit.elastic import PITCHES, wrench_maps
from bricksim_core.mechanics.snapfit.pushes import Pushes
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import IntArray

_REGULAR = 1e-13
"""What is added to the matrix's diagonal, relative to it, so that it can be factored."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Forces between pairs of parts: E edges with p forces each.

    Attributes:
        a: (E,) first node, -1 where it does not move.
        b: (E,) second node.
        on_a: (E, 6, p) scaled load on the first node per unit of each force.
        on_b: (E, 6, p) on the second.
    """

    a: IntArray
    b: IntArray
    on_a: Array
    on_b: Array

    def matrix(self, size: int) -> sp.csr_array:
        """(size, E p) loads by all forces."""
        count, _, width = self.on_a.shape
        value = np.concatenate([self.on_a, self.on_b])
        node = np.concatenate([self.a, self.b])[:, None, None]
        row = np.broadcast_to(6 * node + np.arange(6)[:, None], value.shape)
        force = np.tile(np.arange(count * width).reshape(count, 1, width), (2, 1, 1))
        column = np.broadcast_to(force, value.shape)
        kept = (value != 0.0) & (row >= 0)
        shape = (size, count * width)
        return sp.csr_array((value[kept], (row[kept], column[kept])), shape=shape)


class NormalMatrix:
    """Sums of B W B^T over edges, assembled and factored by blocks.

    Args:
        points: (n, 3) where the nodes are.
        edges: Groups of edges.
    """

    def __init__(self, points: Array, edges: list[Edges]) -> None:
        a = np.concatenate([group.a for group in edges])
        b = np.concatenate([group.b for group in edges])
        both = (a >= 0) & (b >= 0)
        swept = swept_order(points, a[both], b[both], once=True)
        order = dissect(points, a[both], b[both]) if swept is None else swept
        place = order.place if isinstance(order, Dissection) else np.argsort(order)
        self._edges = edges
        self._where: list[tuple[NDArray, NDArray, NDArray, NDArray]] = []
        rows, columns = [], []
        for group in edges:
            on_a, on_b = group.a >= 0, group.b >= 0
            across = on_a & on_b
            first, second = place[group.a], place[group.b]
            self._where.append((on_a, on_b, across, (first > second)[across, None, None]))
            low = np.minimum(first, second)[across]
            high = np.maximum(first, second)[across]
            rows += [first[on_a], second[on_b], high]
            columns += [first[on_a], second[on_b], low]
        row, column = np.concatenate(rows), np.concatenate(columns)
        self._filled: _InBand | _InFronts
        if isinstance(order, Dissection):
            self._filled = _InFronts.of(order, row, column)
        else:
            self._filled = _InBand(order, Band(row, column, len(points)))
        # The last weights of each group and the blocks that they gave.
        self._last: list[tuple[Array, Array] | None] = [None] * len(edges)

    def factorized(self, weights: list[Array]) -> BandCholesky | BlockCholesky:
        """Factors the matrix for given weights.

        Args:
            weights: For each group (E, p, p) W, or (E, p) its diagonal. What a group had in the
                call before, the very array, costs nothing.
        """
        blocks = []
        for number, weight in enumerate(weights):
            last = self._last[number]
            if last is None or last[0] is not weight:
                self._last[number] = last = weight, self._blocks(number, weight)
            blocks.append(last[1])
        return self._filled.factorized(np.concatenate(blocks))

    def _blocks(self, number: int, weight: Array) -> Array:
        """(M, 6, 6) transposed blocks of a group."""
        group = self._edges[number]
        on_a, on_b, across, swapped = self._where[number]
        if weight.ndim == 2:
            by_a, by_b = group.on_a * weight[:, None, :], group.on_b * weight[:, None, :]
        else:
            by_a, by_b = group.on_a @ weight, group.on_b @ weight
        to_a, to_b = group.on_a.swapaxes(1, 2), group.on_b.swapaxes(1, 2)
        mixed = by_a[across] @ to_b[across]
        mixed = np.where(swapped, mixed.swapaxes(1, 2), mixed)
        return np.concatenate([by_a[on_a] @ to_a[on_a], by_b[on_b] @ to_b[on_b], mixed])


@dataclass(frozen=True, eq=False)
class _InBand:
    """A matrix to be factored within its band, in this order."""

    order: IntArray
    band: Band

    def factorized(self, blocks: Array) -> BandCholesky:
        band = self.band.filled(blocks)
        band[0] *= 1.0 + _REGULAR  # the diagonal
        return BandCholesky(self.order, band)


@dataclass(frozen=True, eq=False)
class _InFronts:
    """A matrix to be factored by fronts.

    Attributes:
        tree: Order and blocks.
        row: (E,) rows of its entries.
        column: (E,) their columns.
        sum: (E, M) sparse: adds up what has the same place.
    """

    tree: Dissection
    row: IntArray
    column: IntArray
    sum: sp.csr_array

    @staticmethod
    def of(tree: Dissection, row: IntArray, column: IntArray) -> _InFronts:
        """From the places of all blocks."""
        count = len(tree.order)
        key, entry = np.unique(column * count + row, return_inverse=True)
        shape = (len(key), len(entry))
        each = sp.csr_array((np.ones(len(entry)), (entry, np.arange(len(entry)))), shape=shape)
        return _InFronts(tree, key % count, key // count, each)

    def factorized(self, blocks: Array) -> BlockCholesky:
        value = (self.sum @ blocks.reshape(-1, 36)).reshape(-1, 6, 6)
        axes = np.arange(6)
        value[np.flatnonzero(self.row == self.column)[:, None], axes, axes] *= 1.0 + _REGULAR
        return BlockCholesky(self.tree, Entries(self.row, self.column, value))


def joint_edges(
    lower: IntArray, upper: IntArray, centres: Array, coms: Array, node: IntArray
) -> Edges:
    """Joints as edges, with the six components of their scaled wrenches.

    Args:
        lower: (K,) lower part of each joint, GROUND for the world.
        upper: (K,) upper part.
        centres: (K, 3) points of the joints [m].
        coms: (N, 3) centres of mass of the parts [m].
        node: (N + 1,) number of each part among those that move, -1 for others; last is the world.
    """
    below, above = wrench_maps(centres, coms[lower]), wrench_maps(centres, coms[upper])
    return Edges(node[lower], node[upper], -below, above)


def face_edges(pushes: Pushes, coms: Array, node: IntArray) -> Edges:
    """Contacts beside the joints as edges, four pushes each (those of a face follow each other).

    Args:
        pushes: The contacts.
        coms: (N, 3) centres of mass of the parts [m].
        node: As for `joint_edges`.
    """
    sides = []
    for sign, part in ((1.0, pushes.low), (-1.0, pushes.high)):
        wrench = sign * pushes.wrench
        arm = (pushes.point - coms[part]) / PITCHES[3]
        wrench[:, 3:] += cross(arm, wrench[:, :3])
        sides.append(wrench.reshape(-1, 4, 6).swapaxes(1, 2))
    return Edges(node[pushes.low[::4]], node[pushes.high[::4]], sides[0], sides[1])
