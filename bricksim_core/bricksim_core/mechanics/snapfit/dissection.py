# SPDX-License-Identifier: Apache-2.0
"""Nested dissection: an order of elimination for a graph of parts, as a tree of dense blocks.

A graph is halved by a separator, the halves are eliminated first (each in the same way), the
separator last (George 1973). What a block of the tree eliminates touches only its ancestors, so a
change of the graph leaves every block alone that is no ancestor of where it happens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array, joined
from bricksim_core.topology.layout import IntArray

LEAF = 8
"""Nodes up to which a block is not dissected any more: fewer make more blocks to look after, more
a factor with more numbers in it."""

_ADDED, _GROWTH = 48, 8
"""A graph is dissected anew when more nodes were added than so many and one in so many."""


@dataclass(frozen=True, eq=False)
class Dissection:
    """A tree of blocks in an order in which children come before their parents.

    Attributes:
        order: (n,) nodes in the order of elimination.
        place: (n,) places of the nodes in that order.
        first: (K + 1,) first place of each block, which ends where the next one begins.
        parent: (K,) the block above each, -1 for none.
        start: (K + 1,) where the boundary of each block begins.
        boundary: (S,) later places that the blocks touch, by edges or by what they eliminate, of
            each block sorted.
        added: Nodes that were put in since the graph was dissected.
    """

    order: IntArray
    place: IntArray
    first: IntArray
    parent: IntArray
    start: IntArray
    boundary: IntArray
    added: int = 0

    def __len__(self) -> int:
        """K, number of blocks."""
        return len(self.parent)

    @property
    def block_of(self) -> IntArray:
        """(n,) block of each place."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def without(
        self, kept: NDArray[np.bool_], changed: NDArray[np.bool_]
    ) -> tuple[Dissection, IntArray]:
        """The dissection of what is left when nodes and edges go.

        Args:
            kept: (n,) nodes that stay, in their order.
            changed: (n,) nodes that stay and have lost edges.

        Returns:
            It, and for each of its blocks the old number if nothing has changed in or below it,
            else -1.
        """
        stays, number = kept[self.order], np.cumsum(kept) - 1
        order = number[self.order[stays]]
        first, parent, start, boundary, same = _left(
            self.first, self.parent, self.start, self.boundary, stays, changed[self.order]
        )
        left = Dissection(order, _places(order), first, parent, start, boundary, self.added)
        return left, same

    def grown(
        self, nodes: IntArray, changed: NDArray[np.bool_], a: IntArray, b: IntArray
    ) -> tuple[Dissection, IntArray] | None:
        """The dissection when nodes and edges are added.

        New nodes that are joined to each other go into the lowest block that lies above all they
        touch. No block is split for them, so that they are to be few.

        Args:
            nodes: (n,) new numbers of the nodes, in their order; all others are new ones.
            changed: (m,) which of all nodes have got or lost edges; new ones always have.
            a: (k,) one end of each edge, in new numbers.
            b: (k,) the other.

        Returns:
            It, and for each of its blocks the old number if nothing has changed in or below it,
            else -1; None if the nodes are too many for it, or an edge fits no tree of these blocks.
        """
        count, blocks = len(changed), len(self)
        added = self.added + count - len(nodes)
        if not blocks or added > _ADDED + count // _GROWTH:
            return None
        home = np.full(count, -1, dtype=np.int64)
        home[nodes] = self.block_of[self.place]
        # The blocks below one are those from its lowest descendant on, without a gap.
        lowest, new = _lowest(self.parent), home < 0
        for cluster in _clusters(new, a, b):
            within = np.zeros(count, dtype=bool)
            within[cluster] = True
            touched = home[np.concatenate([b[within[a]], a[within[b]]])]
            touched = touched[touched >= 0]
            least, block = int(touched.min(initial=blocks)), int(touched.max(initial=-1))
            while block >= 0 and lowest[block] > least:
                block = int(self.parent[block])
            if block < 0:
                return None
            home[cluster] = block
        low, high = np.minimum(home[a], home[b]), np.maximum(home[a], home[b])
        if (lowest[high] > low).any():
            return None

        number = nodes[self.order]
        every = np.concatenate([number, np.flatnonzero(new)])
        order = every[np.argsort(home[every], kind="stable")]
        sizes = np.bincount(home, minlength=blocks)
        larger = arrange(order, sizes, self.parent, a, b, added)
        dirty = np.zeros(blocks, dtype=bool)
        dirty[home[changed | new]] = True
        _mark_grown(
            self.start, number[self.boundary],
            larger.start, larger.order[larger.boundary], self.parent, dirty,
        )  # fmt: skip
        return larger, np.where(dirty, -1, np.arange(blocks))


def _places(order: IntArray) -> IntArray:
    """(n,) where each node is in an order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


@compiled
def _left(
    first: IntArray,
    parent: IntArray,
    start: IntArray,
    boundary: IntArray,
    stays: NDArray[np.bool_],
    changed: NDArray[np.bool_],
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Blocks of a dissection without some places; what became empty is left out.

    Args:
        first: See `Dissection`.
        parent: See there.
        start: See there.
        boundary: See there.
        stays: (n,) places that stay.
        changed: (n,) places that have lost edges.

    Returns:
        The first four of what is left, and the old numbers of its blocks, -1 where something has
        changed in or below them.
    """
    blocks, used, alive = len(parent), 0, 0
    place = np.cumsum(stays) - 1
    number, dirty = np.full(blocks, -1, dtype=np.int64), np.zeros(blocks, dtype=np.bool_)
    ends, cuts = np.zeros(blocks + 1, dtype=np.int64), np.zeros(blocks + 1, dtype=np.int64)
    later, same = np.empty_like(boundary), np.empty(blocks, dtype=np.int64)
    for k in range(blocks):
        own = 0
        for i in range(first[k], first[k + 1]):
            own += stays[i]
            dirty[k] |= changed[i] or not stays[i]
        begin = used
        for i in boundary[start[k] : start[k + 1]]:
            # The boundary may be a larger one than the edges that are left ask for.
            if stays[i]:
                later[used] = place[i]
                used += 1
            else:
                dirty[k] = True
        if dirty[k] and parent[k] >= 0:
            dirty[parent[k]] = True
        if not own:
            used = begin
            continue
        number[k], same[alive] = alive, -1 if dirty[k] else k
        alive += 1
        ends[alive], cuts[alive] = ends[alive - 1] + own, used
    above = np.empty(alive, dtype=np.int64)
    for k in range(blocks):
        if number[k] >= 0:
            heir = parent[k]
            while heir >= 0 and number[heir] < 0:
                heir = parent[heir]
            above[number[k]] = number[heir] if heir >= 0 else -1
    return ends[: alive + 1], above, cuts[: alive + 1], later[:used], same[:alive]


@compiled
def _lowest(parent: IntArray) -> IntArray:
    """(K,) the first block below each, or it itself."""
    lowest = np.arange(len(parent))
    for k in range(len(parent)):
        if parent[k] >= 0:
            lowest[parent[k]] = min(lowest[parent[k]], lowest[k])
    return lowest


@compiled
def _mark_grown(
    before_start: IntArray,
    before: IntArray,
    start: IntArray,
    after: IntArray,
    parent: IntArray,
    dirty: NDArray[np.bool_],
) -> None:
    """Marks the blocks whose boundaries, by nodes, are no longer the same, and all above what is
    marked."""
    for k in range(len(parent)):
        count = start[k + 1] - start[k]
        if count != before_start[k + 1] - before_start[k]:
            dirty[k] = True
        else:
            for i in range(count):
                dirty[k] |= after[start[k] + i] != before[before_start[k] + i]
        if dirty[k] and parent[k] >= 0:
            dirty[parent[k]] = True


def _clusters(wanted: NDArray[np.bool_], a: IntArray, b: IntArray) -> list[IntArray]:
    """Wanted nodes, those together that edges between them join."""
    nodes = np.flatnonzero(wanted)
    place = np.cumsum(wanted) - 1
    inner = wanted[a] & wanted[b]
    ends = place[a[inner]], place[b[inner]]
    shape = (len(nodes), len(nodes))
    graph = sp.coo_array((np.ones(len(ends[0])), ends), shape=shape)
    count, label = connected_components(graph, directed=False)
    return [nodes[label == cluster] for cluster in range(count)]


def dissect(points: Array, a: IntArray, b: IntArray) -> Dissection:
    """Dissects a graph whose nodes have places in space and edges are short.

    Args:
        points: (n, 3) places; only their order along each axis and the longest axis count.
        a: (m,) one end of each edge.
        b: (m,) the other.
    """
    groups: list[IntArray] = []
    parents: list[int] = []

    def split(nodes: IntArray, a: IntArray, b: IntArray) -> list[int]:
        """Appends the blocks of a subgraph; indices of those that have the others below."""
        separator, below = nodes, []
        if len(nodes) > LEAF:
            worth, middle, *halves = _halved(points, nodes, a, b)
            if worth:
                separator = middle
                for half in (halves[:3], halves[3:]):
                    below += split(*half) if len(half[0]) else []
        if not len(separator):
            return below
        groups.append(separator[sweep(points[separator])])
        parents.append(-1)
        for child in below:
            parents[child] = len(groups) - 1
        return [len(groups) - 1]

    if len(points):
        split(np.arange(len(points)), a, b)
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    return arrange(joined(groups, dtype=np.int64), sizes, np.array(parents, dtype=np.int64), a, b)


def arrange(
    order: IntArray, sizes: IntArray, parent: IntArray, a: IntArray, b: IntArray, added: int = 0
) -> Dissection:
    """The dissection with a given tree.

    Args:
        order: (n,) nodes block by block, children before parents.
        sizes: (K,) how many each block has.
        parent: (K,) the block above each, -1 for none.
        a: (m,) one end of each edge; what is joined lies in the same block or one above the other.
        b: (m,) the other.
        added: See `Dissection`.
    """
    place = _places(order)
    first = np.concatenate([[0], np.cumsum(sizes)])
    start, boundary = _bounded(first, parent, place[a], place[b])
    return Dissection(order, place, first, parent, start, boundary, added)


@compiled
def _bounded(
    first: IntArray, parent: IntArray, a: IntArray, b: IntArray
) -> tuple[IntArray, IntArray]:
    """Boundaries of the blocks of a tree.

    Args:
        first: See `Dissection`.
        parent: See there.
        a: (m,) place of one end of each edge.
        b: (m,) of the other.

    Returns:
        `Dissection.start` and `Dissection.boundary`.
    """
    count, blocks = first[-1], len(parent)
    cut = np.zeros(count + 1, dtype=np.int64)
    for e in range(len(a)):
        cut[min(a[e], b[e]) + 1] += 1
    for i in range(count):
        cut[i + 1] += cut[i]
    at, high = cut[:-1].copy(), np.empty(len(a), dtype=np.int64)
    for e in range(len(a)):
        low = min(a[e], b[e])
        high[at[low]] = max(a[e], b[e])
        at[low] += 1
    child, sibling = np.full(blocks, -1, dtype=np.int64), np.full(blocks, -1, dtype=np.int64)
    for k in range(blocks - 1, -1, -1):
        if parent[k] >= 0:
            child[parent[k]], sibling[k] = k, child[parent[k]]
    seen = np.full(count, -1, dtype=np.int64)
    start, boundary = np.zeros(blocks + 1, dtype=np.int64), np.empty(4 * count, dtype=np.int64)
    for k in range(blocks):
        last, used = first[k + 1], start[k]
        if len(boundary) < used + count - last:
            larger = np.empty(2 * len(boundary) + count, dtype=np.int64)
            larger[:used] = boundary[:used]
            boundary = larger
        for i in high[cut[first[k]] : cut[last]]:
            if i >= last and seen[i] != k:
                seen[i], boundary[used] = k, i
                used += 1
        below = child[k]
        while below >= 0:
            for i in boundary[start[below] : start[below + 1]]:
                if i >= last and seen[i] != k:
                    seen[i], boundary[used] = k, i
                    used += 1
            below = sibling[below]
        boundary[start[k] : used].sort()
        start[k + 1] = used
    return start, boundary[: start[-1]].copy()


@compiled
def sweep(points: Array) -> IntArray:
    """An order along the longest axis, so that neighbours mostly follow each other."""
    order, extent = np.arange(len(points)), np.empty(3)
    for axis in range(3):
        extent[axis] = points[:, axis].max() - points[:, axis].min()
    for axis in np.argsort(extent, kind="mergesort"):
        order = order[np.argsort(points[order, axis], kind="mergesort")]
    return order


@compiled
def _halved(
    points: Array, nodes: IntArray, a: IntArray, b: IntArray
) -> tuple[bool, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Halves a subgraph.

    Args:
        points: (n, 3) places of all nodes.
        nodes: (k,) those of the subgraph, sorted.
        a: (m,) one end of each edge between them.
        b: (m,) the other.

    Returns:
        Whether that is a gain; the separator; nodes and edges' ends of the lower half and of the
        upper one.
    """
    count, none = len(nodes), nodes[:0]
    extent = np.empty(3)
    for axis in range(3):
        along = points[nodes, axis]
        extent[axis] = along.max() - along.min()
    # 0: below, 1: above; 2: in the separator.
    side, least = np.zeros(len(points), dtype=np.int8), count + 1
    best = side
    for axis in np.argsort(-extent, kind="mergesort")[:2]:
        middle = np.partition(points[nodes, axis], count // 2)[count // 2]
        side, cut = np.zeros(len(points), dtype=np.int8), np.zeros(len(points), dtype=np.bool_)
        above = 0
        for i in nodes:
            side[i] = points[i, axis] >= middle
            above += side[i]
        if above == count:
            continue
        for e in range(len(a)):
            if side[a[e]] != side[b[e]]:
                cut[a[e]] = cut[b[e]] = True
        ends = np.zeros(2, dtype=np.int64)
        for i in nodes:
            if cut[i]:
                ends[side[i]] += 1
        fewer = 0 if ends[0] <= ends[1] else 1
        if ends[fewer] < least:
            best, least = side, ends[fewer]
            for i in nodes:
                if cut[i] and side[i] == fewer:
                    side[i] = 2
    if 2 * least > count:
        return False, none, none, none, none, none, none, none
    of, both = best[nodes], best[a] == best[b]
    lower, upper = both & (best[a] == 0), both & (best[a] == 1)
    return (
        True, nodes[of == 2],
        nodes[of == 0], a[lower], b[lower],
        nodes[of == 1], a[upper], b[upper],
    )  # fmt: skip
