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
    BandCholesky,
    BlockCholesky,
    DenseCholesky,
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
        count = len(points)
        swept = swept_order(points, a[both], b[both], once=True)
        # By its band, or by fronts.
        self._order: IntArray | Dissection
        if swept is not None:
            self._order, place = swept, np.argsort(swept)
        else:
            self._order = dissect(points, a[both], b[both])
            place = self._order.place
        self._edges = edges
        self._blocks: list[tuple[NDArray, NDArray, NDArray, NDArray]] = []
        keys = []
        for group in edges:
            on_a, on_b = group.a >= 0, group.b >= 0
            across = on_a & on_b
            first, second = place[group.a], place[group.b]
            self._blocks.append((on_a, on_b, across, (first > second)[across, None, None]))
            low = np.minimum(first, second)[across]
            high = np.maximum(first, second)[across]
            keys += [first[on_a] * (count + 1), second[on_b] * (count + 1), low * count + high]
        key, entry = np.unique(np.concatenate(keys), return_inverse=True)
        self._row, self._column = key % count, key // count
        shape = (len(key), len(entry))
        self._sum = sp.csr_array((np.ones(len(entry)), (entry, np.arange(len(entry)))), shape=shape)
        self._diagonal = np.flatnonzero(self._row == self._column)

    def factorized(self, weights: list[Array]) -> BandCholesky | BlockCholesky:
        """Factors the matrix for given weights.

        Args:
            weights: For each group (E, p, p) W, or (E, p) its diagonal.
        """
        blocks = []
        for group, weight, where in zip(self._edges, weights, self._blocks, strict=True):
            on_a, on_b, across, swapped = where
            if weight.ndim == 2:
                by_a, by_b = group.on_a * weight[:, None, :], group.on_b * weight[:, None, :]
            else:
                by_a, by_b = group.on_a @ weight, group.on_b @ weight
            mixed = by_a[across] @ group.on_b[across].swapaxes(1, 2)
            blocks += [
                by_a[on_a] @ group.on_a[on_a].swapaxes(1, 2),
                by_b[on_b] @ group.on_b[on_b].swapaxes(1, 2),
                np.where(swapped, mixed.swapaxes(1, 2), mixed),
            ]
        value = (self._sum @ np.concatenate(blocks).reshape(-1, 36)).reshape(-1, 6, 6)
        axes = np.arange(6)
        value[self._diagonal[:, None], axes, axes] *= 1.0 + _REGULAR
        entries = Entries(self._row, self._column, value)
        if isinstance(self._order, Dissection):
            return BlockCholesky(self._order, entries)
        return BandCholesky(self._order, entries)


class DenseNormalMatrix:
    """`NormalMatrix` for joints and pushes of a small structure.

    Args:
        strain: (6 J, F) J^T.
        push_loads: (F, V) B.

    Attributes:
        strain: As given.
        push_loads: As given.
    """

    def __init__(self, strain: Array, push_loads: Array) -> None:
        self.strain, self.push_loads = strain, push_loads

    def factorized(self, weights: list[Array]) -> DenseCholesky:
        """Factors J W J^T + B diag B^T for (J, 6, 6) W and the (V / 4, 4) diagonal."""
        blocks, push = weights
        weighted = blocks @ self.strain.reshape(len(blocks), 6, -1)
        matrix = self.strain.T @ weighted.reshape(self.strain.shape)
        if push.any():
            matrix += (self.push_loads * push.reshape(-1)) @ self.push_loads.T
        diagonal = np.einsum("ii->i", matrix)
        diagonal *= 1.0 + _REGULAR
        return DenseCholesky(matrix)


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
