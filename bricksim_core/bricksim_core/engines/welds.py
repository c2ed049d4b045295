# SPDX-License-Identifier: Apache-2.0
"""Which bricks of a component are welded to each other where every brick is its own body.

A weld per connection makes a soft component: errors of the iterative solver add up along the
paths of the structure. The paper (arXiv 2603.16853) therefore welds a spanning tree of the
connections plus a random graph in which every brick has ``degree`` partners anywhere in the
component: the weld graph's diameter is then logarithmic in the number of bricks.

Pure functions over part ids. A weld is a pair (a, b), a < b.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Pair = tuple[int, int]

DEGREE = 4
"""Partners of each brick in the random graph (the paper's d)."""
SEED = 0x9E3779B97F4A7C15
"""Seed of the random graph: the same structure gets the same welds in every run."""


@dataclass(frozen=True)
class Welds:
    """Welds of one component, by their purpose; a pair may serve both.

    Attributes:
        spanning: A spanning forest: holds the component together.
        mesh: The random regular graph: makes it stiff.
    """

    spanning: frozenset[Pair] = frozenset()
    mesh: frozenset[Pair] = frozenset()

    @property
    def pairs(self) -> frozenset[Pair]:
        """Every weld once."""
        return self.spanning | self.mesh

    def within(self, parts: Iterable[int]) -> Welds:
        """Those welds that join two of the given parts."""
        inside = set(parts)
        return Welds(
            frozenset(p for p in self.spanning if inside.issuperset(p)),
            frozenset(p for p in self.mesh if inside.issuperset(p)),
        )

    def __or__(self, other: Welds) -> Welds:
        return Welds(self.spanning | other.spanning, self.mesh | other.mesh)


def schedule(
    parts: Iterable[int],
    connected: Iterable[Pair],
    kept: Welds = Welds(),
    *,
    degree: int = DEGREE,
    seed: int = SEED,
) -> Welds:
    """Plans the welds of one component.

    The spanning welds follow connections. A part that has ``degree`` of them already passes
    further ones on to a part of its own side, so that a base plate under hundreds of bricks does
    not collect hundreds of welds. The mesh is a random ``degree``-regular graph (complete up to
    ``degree`` + 1 parts). No part gets more than 2 ``degree`` welds.

    Welds in ``kept`` stay wherever these rules allow. Parts that join a larger piece enter its
    mesh one by one, each in the middle of ``degree`` / 2 random welds; a piece that breaks off
    keeps what is left of its mesh and only fills the gaps.

    Args:
        parts: Ids of the component's parts.
        connected: Pairs of parts with at least one connection.
        kept: Welds of the pieces that the component was made from.
        degree: Partners of each part in the mesh, even and at least 2.
        seed: Seed of all random choices.

    Returns:
        The welds; the same for the same arguments.

    Raises:
        ValueError: ``degree`` is odd or too small, or the parts are not connected.
    """
    if degree < 2 or degree % 2:
        raise ValueError(f"degree is {degree}, expected an even number of at least 2")
    ids = sorted(set(parts))
    kept = kept.within(ids)
    spanning = _spanning(ids, sorted({_pair(a, b) for a, b in connected}), kept, degree)
    return Welds(spanning, _mesh(ids, kept, degree, np.random.default_rng(seed)))


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


class _Sets:
    """Disjoint sets of parts with their members at hand."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._members = {i: [i] for i in ids}
        self._set_of = {i: i for i in self._members}

    def members(self, part: int) -> list[int]:
        return self._members[self._set_of[part]]

    def join(self, a: int, b: int) -> bool:
        """Unites the sets of two parts; False if they are one already."""
        small, large = sorted((self._set_of[a], self._set_of[b]), key=self._size)
        if small == large:
            return False
        moved = self._members.pop(small)
        self._members[large] += moved
        self._set_of.update(dict.fromkeys(moved, large))
        return True

    def separate(self, a: int, b: int) -> bool:
        return self._set_of[a] != self._set_of[b]

    def largest(self) -> list[int]:
        """The set with most members; of equal ones that with the least id."""
        return max(self._members.values(), key=lambda m: (len(m), -min(m)), default=[])

    def __len__(self) -> int:
        return len(self._members)

    def _size(self, key: int) -> tuple[int, int]:
        return len(self._members[key]), key


def _spanning(
    ids: Sequence[int], connected: Sequence[Pair], kept: Welds, limit: int
) -> frozenset[Pair]:
    sets = _Sets(ids)
    count = dict.fromkeys(ids, 0)
    chosen = set()

    def weld(a: int, b: int) -> None:
        sets.join(a, b)
        chosen.add(_pair(a, b))
        count[a] += 1
        count[b] += 1

    def free(part: int) -> int:
        if count[part] < limit:
            return part
        return min(sets.members(part), key=lambda p: (count[p], p))

    for a, b in sorted(kept.spanning):
        if sets.separate(a, b):
            weld(a, b)
    for a, b in connected:
        if sets.separate(a, b):
            weld(free(a), free(b))
    if len(sets) > 1:
        raise ValueError(f"the {len(ids)} parts are not connected: {len(sets)} pieces")
    return frozenset(chosen)


def _mesh(
    ids: Sequence[int], kept: Welds, degree: int, rng: np.random.Generator
) -> frozenset[Pair]:
    if len(ids) <= degree + 1:
        return frozenset(itertools.combinations(ids, 2))
    pieces = _Sets(ids)
    for a, b in sorted(kept.pairs):
        pieces.join(a, b)
    base = sorted(pieces.largest())
    graph = _Mesh(base, kept.within(base).mesh, degree, rng)
    if not graph.fill():
        base = base[:1]
        graph = _Mesh(base, frozenset(), degree, rng)
    inside = set(base)
    for part in rng.permutation([i for i in ids if i not in inside]).tolist():
        graph.insert(part)
    return frozenset(graph.edges)


class _Mesh:
    """A graph on its way to being random and regular."""

    def __init__(
        self, ids: Sequence[int], edges: frozenset[Pair], degree: int, rng: np.random.Generator
    ) -> None:
        self._degree = degree
        self._rng = rng
        self._partners: dict[int, set[int]] = {i: set() for i in ids}
        self.edges: list[Pair] = sorted(edges)
        for a, b in self.edges:
            self._partners[a].add(b)
            self._partners[b].add(a)

    def insert(self, part: int) -> None:
        """Adds a part to a regular (or small and complete) graph; it stays so."""
        others = list(self._partners)
        self._partners[part] = set()
        if len(others) <= self._degree:
            for other in others:
                self._add(part, other)
            return
        ends: set[int] = set()
        for _ in range(self._degree // 2):
            # One is left: a regular graph has more welds than the ends taken so far touch.
            edge = next(e for e in self._shuffled() if ends.isdisjoint(e))
            ends.update(edge)
            self._remove(edge)
        for end in sorted(ends):
            self._add(part, end)

    def fill(self) -> bool:
        """Makes the graph regular (or complete if it is small); False if it cannot be done."""
        if len(self._partners) <= self._degree + 1:
            for a, b in itertools.combinations(self._partners, 2):
                if b not in self._partners[a]:
                    self._add(a, b)
            return True
        while lacking := [p for p in self._partners if self._lacks(p)]:
            part = lacking[self._rng.integers(len(lacking))]
            open_to = [p for p in lacking if p != part and p not in self._partners[part]]
            if open_to:
                self._add(part, open_to[self._rng.integers(len(open_to))])
            else:
                # The sum of all gaps is even, so a part that lacks one partner is never alone.
                partner = part if self._lacks(part) > 1 else next(p for p in lacking if p != part)
                if not self._splice(part, partner):
                    return False
        return True

    def _splice(self, a: int, b: int) -> bool:
        """Replaces a random weld x-y by x-a and y-b; False if none allows it."""
        for x, y in self._shuffled():
            if {x, y} & {a, b} or x in self._partners[a] or y in self._partners[b]:
                continue
            self._remove((x, y))
            self._add(x, a)
            self._add(y, b)
            return True
        return False

    def _lacks(self, part: int) -> int:
        return self._degree - len(self._partners[part])

    def _shuffled(self) -> Iterator[Pair]:
        return (self.edges[i] for i in self._rng.permutation(len(self.edges)))

    def _add(self, a: int, b: int) -> None:
        self.edges.append(_pair(a, b))
        self._partners[a].add(b)
        self._partners[b].add(a)

    def _remove(self, edge: Pair) -> None:
        self.edges.remove(edge)
        self._partners[edge[0]].remove(edge[1])
        self._partners[edge[1]].remove(edge[0])
