# SPDX-License-Identifier: Apache-2.0
"""Nested dissection: an order of elimination for a graph of parts, as a tree of dense blocks.

A graph is halved by a separator, the halves are eliminated first (each in the same way), the
separator last (George 1973). What a block of the tree eliminates touches only its ancestors, so a
change of the graph leaves every block alone that is no ancestor of where it happens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bricksim_core.spatial import Array, joined
from bricksim_core.topology.layout import IntArray

LEAF = 48
"""Nodes up to which a block is not dissected any more."""

_GROWTH = 8
"""A graph is dissected anew when more than one in so many of its nodes, and `LEAF`, were added."""


@dataclass(frozen=True, eq=False)
class Block:
    """Nodes that are eliminated together, by their places in the order.

    Attributes:
        first: First place.
        last: One after the last.
        boundary: (B,) later places that it touches, sorted, by edges or by what it eliminates.
        children: Indices of the blocks whose parent it is.
        spots: For each child, where its boundary is among this block's places and boundary.
    """

    first: int
    last: int
    boundary: IntArray
    children: tuple[int, ...]
    spots: tuple[IntArray, ...]

    def local(self, places: IntArray) -> IntArray:
        """Where places are among the block's own and its boundary."""
        own = self.last - self.first
        return np.where(
            places < self.last, places - self.first, own + np.searchsorted(self.boundary, places)
        )


@dataclass(frozen=True, eq=False)
class Dissection:
    """A tree of blocks in an order in which children come before their parents.

    Attributes:
        order: (n,) nodes in the order of elimination.
        place: (n,) places of the nodes in that order.
        blocks: The blocks.
        added: Nodes that were put in since the graph was dissected.
    """

    order: IntArray
    place: IntArray
    blocks: tuple[Block, ...]
    added: int = 0

    @property
    def block_of(self) -> IntArray:
        """(n,) block of each place."""
        return np.repeat(np.arange(len(self.blocks)), [b.last - b.first for b in self.blocks])

    def without(
        self, kept: NDArray[np.bool_], changed: NDArray[np.bool_]
    ) -> tuple[Dissection, dict[int, int]]:
        """The dissection of what is left when nodes and edges go.

        Args:
            kept: (n,) nodes that stay, in their order.
            changed: (n,) nodes that stay and have lost edges.

        Returns:
            It, and the old numbers of the blocks that nothing has changed in or below, by their
            new ones.
        """
        stays = kept[self.order]
        place = np.cumsum(stays) - 1
        number = np.cumsum(kept) - 1
        order = number[self.order[stays]]
        block_of = self.block_of
        alive = np.bincount(block_of, stays, len(self.blocks)).astype(np.int64).tolist()
        dirty = np.bincount(block_of, ~stays | changed[self.order], len(self.blocks)) > 0.0
        blocks: list[Block] = []
        same: dict[int, int] = {}
        heirs: list[tuple[int, ...]] = []
        for k, (old, left) in enumerate(zip(self.blocks, alive, strict=True)):
            children = tuple(heir for child in old.children for heir in heirs[child])
            later = old.boundary[stays[old.boundary]]
            # The boundary may be a larger one than the edges that are left ask for.
            fewer = len(later) < len(old.boundary)
            dirty[k] |= fewer or any(dirty[child] for child in old.children)
            if not left:
                heirs.append(children)
                continue
            last = int(place[old.last - 1]) + 1
            block = Block(last - left, last, place[later], children, old.spots)
            if dirty[k]:
                spots = tuple(block.local(blocks[c].boundary) for c in children)
                block = replace(block, spots=spots)
            else:
                same[len(blocks)] = k
            heirs.append((len(blocks),))
            blocks.append(block)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return Dissection(order, places, tuple(blocks), self.added), same

    def grown(
        self, nodes: IntArray, changed: NDArray[np.bool_], a: IntArray, b: IntArray
    ) -> tuple[Dissection, dict[int, int]] | None:
        """The dissection when nodes and edges are added.

        New nodes that are joined to each other go into the lowest block that lies above all they
        touch. No block is split for them, so that they are to be few.

        Args:
            nodes: (n,) new numbers of the nodes, in their order; all others are new ones.
            changed: (m,) which of all nodes have got or lost edges; new ones always have.
            a: (k,) one end of each edge, in new numbers.
            b: (k,) the other.

        Returns:
            It, and the old numbers of the blocks that nothing has changed in or below, by their
            new ones; None if the nodes are too many for it, or an edge fits no tree of these
            blocks.
        """
        count, blocks = len(changed), len(self.blocks)
        added = self.added + count - len(nodes)
        if not blocks or added > LEAF + count // _GROWTH:
            return None
        home = np.full(count, -1, dtype=np.int64)
        home[nodes] = self.block_of[self.place]
        parents, first = [-1] * blocks, list(range(blocks))
        for block, known in enumerate(self.blocks):
            for child in known.children:
                parents[child] = block
                first[block] = min(first[block], first[child])
        # The blocks below one are those from its first descendant on, without a gap.
        lowest = np.array(first)
        new = home < 0
        for cluster in _clusters(new, a, b):
            within = np.zeros(count, dtype=bool)
            within[cluster] = True
            touched = home[np.concatenate([b[within[a]], a[within[b]]])]
            touched = touched[touched >= 0]
            least, block = int(touched.min(initial=blocks)), int(touched.max(initial=-1))
            while block >= 0 and lowest[block] > least:
                block = parents[block]
            if block < 0:
                return None
            home[cluster] = block
        low, high = np.minimum(home[a], home[b]), np.maximum(home[a], home[b])
        if (lowest[high] > low).any():
            return None

        dirty = np.zeros(blocks, dtype=bool)
        dirty[home[changed | new]] = True
        number = nodes[self.order]
        groups = np.split(number, [block.last for block in self.blocks[:-1]])
        for block in np.unique(home[new]).tolist():
            groups[block] = np.append(groups[block], np.flatnonzero(new & (home == block)))
        larger = replace(arrange(groups, parents, a, b, count), added=added)
        for block, known in enumerate(larger.blocks):
            before = number[self.blocks[block].boundary]
            dirty[block] |= any(dirty[child] for child in known.children)
            dirty[block] |= not np.array_equal(larger.order[known.boundary], before)
        return larger, {block: block for block in np.flatnonzero(~dirty).tolist()}


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

    def split(nodes: IntArray, edges: NDArray) -> list[int]:
        """Appends the blocks of a subgraph; indices of those that have the others below."""
        halves = _halved(points, nodes, edges) if len(nodes) > LEAF else None
        separator, parts = (nodes, []) if halves is None else halves
        below = [block for part in parts for block in split(*part)]
        if not len(separator):
            return below
        groups.append(separator[sweep(points[separator])])
        parents.append(-1)
        for child in below:
            parents[child] = len(groups) - 1
        return [len(groups) - 1]

    if len(points):
        split(np.arange(len(points)), np.column_stack([a, b]))
    return arrange(groups, parents, a, b, len(points))


def arrange(
    groups: list[IntArray], parents: list[int], a: IntArray, b: IntArray, count: int
) -> Dissection:
    """The blocks of a given tree.

    Args:
        groups: Nodes of each block, children before parents.
        parents: Index of each block's parent, -1 for none.
        a: (m,) one end of each edge; what is joined lies in the same block or one above the other.
        b: (m,) the other.
        count: Number of nodes.
    """
    order = joined(groups, dtype=np.int64)
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    ends = np.cumsum([len(group) for group in groups]).tolist()
    starts = [end - len(group) for end, group in zip(ends, groups, strict=True)]
    low, high = np.minimum(place[a], place[b]), np.maximum(place[a], place[b])
    by_low = np.argsort(low, kind="stable")
    low, high = low[by_low], high[by_low]
    cuts = np.searchsorted(low, [*starts, count]).tolist()
    children: list[list[int]] = [[] for _ in groups]
    for block, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(block)
    blocks: list[Block] = []
    for k, (first, last) in enumerate(zip(starts, ends, strict=True)):
        touched = [high[cuts[k] : cuts[k + 1]], *(blocks[c].boundary for c in children[k])]
        later = np.unique(np.concatenate(touched))
        block = Block(first, last, later[np.searchsorted(later, last) :], tuple(children[k]), ())
        spots = tuple(block.local(blocks[c].boundary) for c in children[k])
        blocks.append(Block(first, last, block.boundary, block.children, spots))
    return Dissection(order, place, tuple(blocks))


def sweep(points: Array) -> IntArray:
    """An order along the longest axis, so that neighbours mostly follow each other."""
    extent = points.max(axis=0) - points.min(axis=0)
    return np.lexsort(points.T[np.argsort(extent, kind="stable")])


def _halved(
    points: Array, nodes: IntArray, edges: NDArray
) -> tuple[IntArray, list[tuple[IntArray, NDArray]]] | None:
    """Separator, and nodes and edges of the two halves; None if that is no gain."""
    here = points[nodes]
    extent = here.max(axis=0) - here.min(axis=0)
    best: tuple[IntArray, NDArray[np.bool_]] | None = None
    far = np.zeros(len(points), dtype=bool)
    for axis in np.argsort(-extent, kind="stable")[:2].tolist():
        along = here[:, axis]
        middle = np.partition(along, len(along) // 2)[len(along) // 2]
        upper = along >= middle
        if upper.all():
            continue
        far[nodes] = upper
        beyond = far[edges]
        crossing = edges[beyond[:, 0] != beyond[:, 1]]
        ends = crossing.reshape(-1)
        low, high = np.unique(ends[~far[ends]]), np.unique(ends[far[ends]])
        separator = low if len(low) <= len(high) else high
        if best is None or len(separator) < len(best[0]):
            best = separator, upper
    if best is None or 2 * len(best[0]) > len(nodes):
        return None
    separator, upper = best
    far[nodes] = upper
    gone = np.zeros(len(points), dtype=bool)
    gone[separator] = True
    rest = edges[~gone[edges].any(axis=1)]
    side = far[rest[:, 0]]
    left = ~gone[nodes]
    parts = [
        (nodes[left & (upper == which)], rest[side == which])
        for which in (False, True)
        if (left & (upper == which)).any()
    ]
    return separator, parts
