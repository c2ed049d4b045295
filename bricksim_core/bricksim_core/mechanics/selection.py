# SPDX-License-Identifier: Apache-2.0
"""Which connections break when some are overloaded.

A component comes apart only along a cut, so one overloaded connection alone rarely can break. The
parts that sound connections hold together count as one body; between such bodies lie only
overloaded connections. Of all sets of these that separate the two bodies which the worst connection
joins, the one of least strength breaks: a minimum cut, which always contains the worst connection
(BrickSim, arXiv 2603.16853, with strengths in place of counts).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.incidence import ends_at
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_RESOLUTION = 1 << 30
"""Strengths are compared as whole multiples of their sum over this number, so that a minimum cut
does not hang on rounding."""


@dataclass(frozen=True, eq=False)
class Selection:
    """What breaks.

    Attributes:
        broken: Indices of the connections that break, sorted; empty if nothing does.
        bypassed: Indices of overloaded connections whose parts sound connections (or the world)
            hold together, sorted: they cannot come apart, whatever their load.
    """

    broken: IntArray
    bypassed: IntArray


def select_breaks(
    anchored: NDArray[np.bool_],
    stud_index: IntArray,
    hole_index: IntArray,
    utilization: Array,
    overloaded: NDArray[np.bool_],
    strength: Array,
    candidates: NDArray[np.bool_] | None = None,
) -> Selection:
    """The weakest set of overloaded connections that contains the worst one and separates its ends.

    Connections that are equally the worst (to 1e-9) each give a cut; the weakest of these breaks,
    the first one if they are equal.

    Args:
        anchored: (N,) parts that the world holds: they count as one body.
        stud_index: (C,) index of the lower part of each connection.
        hole_index: (C,) index of the upper part.
        utilization: (C,) says which is the worst.
        overloaded: (C,) connections that may break.
        strength: (C,) positive; what it takes to break each, in any unit.
        candidates: (C,) overloaded connections one of which must break; None: all of them.
    """
    none = np.zeros(0, dtype=np.int64)
    if not overloaded.any():
        return Selection(none, none)
    body = bodies_joined(anchored, stud_index[~overloaded], hole_index[~overloaded])
    lower, upper = body[stud_index], body[hole_index]
    joining = overloaded & (lower != upper)
    bypassed = np.flatnonzero(overloaded & ~joining)
    eligible = joining if candidates is None else joining & candidates
    if not eligible.any():
        return Selection(none, bypassed)

    crossing = np.flatnonzero(joining)
    ends = np.column_stack([lower[crossing], upper[crossing]])
    links = _Links(ends, strength[crossing])
    highest = utilization[eligible].max()
    worst = eligible & (utilization >= highest - 1e-9 * abs(highest))
    best: tuple[int, NDArray[np.bool_]] | None = None
    for a, b in dict.fromkeys(map(tuple, ends[worst[crossing]].tolist())):
        cost, cut = links.weakest_cut(a, b)
        if best is None or cost < best[0]:
            best = (cost, cut)
    assert best is not None
    return Selection(crossing[best[1]], bypassed)


def bypassed_by_sound(
    anchored: NDArray[np.bool_],
    stud_index: IntArray,
    hole_index: IntArray,
    overloaded: NDArray[np.bool_],
) -> IntArray:
    """Indices of the overloaded connections whose parts sound ones, or the world, hold together."""
    if not overloaded.any():
        return np.zeros(0, dtype=np.int64)
    _, body = sides(anchored, stud_index, hole_index, overloaded)
    return np.flatnonzero(overloaded & (body[stud_index] == body[hole_index]))


class _Links:
    """Bodies and what joins them.

    Args:
        ends: (L, 2) bodies that each link joins.
        strength: (L,) positive.
    """

    def __init__(self, ends: IntArray, strength: Array) -> None:
        self._ends, self._number, self._count = _numbered(ends)
        self._whole = np.maximum(np.rint(strength * (_RESOLUTION / strength.sum())), 1)

    def weakest_cut(self, a: int, b: int) -> tuple[int, NDArray[np.bool_]]:
        """The weakest set of links that separates two bodies; of equals the one next to ``b``.

        Returns:
            Its strength, and (L,) which links it has.
        """
        count = self._count
        if count == 2:
            return 0, np.ones(len(self._ends), dtype=bool)
        one, other = int(self._number[a]), int(self._number[b])
        cost, beyond = _minimum_cut(count, self._ends, self._whole.astype(np.int64), one, other)
        return cost, beyond[self._ends[:, 0]] != beyond[self._ends[:, 1]]


@compiled
def _numbered(ends: IntArray) -> tuple[IntArray, IntArray, int]:
    """(L, 2) ends by the numbers of those bodies that links join, in their order; these numbers by
    body, and how many there are."""
    number = np.full(ends.max() + 1, -1, dtype=np.int64)
    for link in range(len(ends)):
        number[ends[link, 0]] = number[ends[link, 1]] = 0
    count = 0
    for body in range(len(number)):
        if number[body] == 0:
            number[body] = count
            count += 1
    new = np.empty_like(ends)
    for link in range(len(ends)):
        new[link, 0], new[link, 1] = number[ends[link, 0]], number[ends[link, 1]]
    return new, number, count


@compiled
def _minimum_cut(
    count: int, ends: IntArray, strength: IntArray, a: int, b: int
) -> tuple[int, NDArray[np.bool_]]:
    """Greatest flow between two bodies along shortest ways (Edmonds and Karp 1972).

    Args:
        count: B, bodies.
        ends: (L, 2) those that each link joins.
        strength: (L,) what flows through a link at most, either way.
        a: The body that it comes from.
        b: The one that it goes to.

    Returns:
        The flow, and (B,) which bodies more could flow to the second one from.
    """
    first, side = ends_at(count, ends[:, 0].copy(), ends[:, 1].copy())
    left = np.empty((len(ends), 2), dtype=np.int64)  # from the end to the other one
    for link in range(len(ends)):
        left[link] = strength[link]
    flow = 0
    queue, way = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    while True:
        # Backwards from where it goes: which link leads there.
        way[:] = -1
        way[b], queue[0] = 2 * len(ends), b
        head, tail = 0, 1
        while head < tail and way[a] < 0:
            body = queue[head]
            head += 1
            for k in range(first[body], first[body + 1]):
                link, end = side[k] // 2, side[k] % 2
                near = ends[link, 1 - end]
                if way[near] < 0 and left[link, 1 - end] > 0:
                    way[near] = 2 * link + 1 - end
                    queue[tail] = near
                    tail += 1
        if way[a] < 0:
            return flow, way >= 0
        body, most = a, left[way[a] // 2, way[a] % 2]
        while body != b:
            link, end = way[body] // 2, way[body] % 2
            most = min(most, left[link, end])
            body = ends[link, 1 - end]
        body = a
        while body != b:
            link, end = way[body] // 2, way[body] % 2
            left[link, end] -= most
            left[link, 1 - end] += most
            body = ends[link, 1 - end]
        flow += int(most)


@compiled
def bodies_joined(anchored: NDArray[np.bool_], a: IntArray, b: IntArray) -> IntArray:
    """(N,) number of the body that each part belongs to, by the bodies' first parts."""
    count = len(anchored)
    above = np.arange(count)  # a part of the same body with no greater index
    world = -1
    for i in range(count):
        if anchored[i]:
            world = i if world < 0 else world
            above[i] = world
    for k in range(len(a)):
        one, other = a[k], b[k]
        while above[one] != one:
            above[one] = above[above[one]]
            one = above[one]
        while above[other] != other:
            above[other] = above[above[other]]
            other = above[other]
        above[max(one, other)] = min(one, other)
    number, bodies = np.empty(count, dtype=np.int64), 0
    for i in range(count):
        if above[i] == i:
            number[i] = bodies
            bodies += 1
        else:
            number[i] = number[above[i]]
    return number


@compiled
def sides(
    anchored: NDArray[np.bool_], lower: IntArray, upper: IntArray, yielding: NDArray[np.bool_]
) -> tuple[bool, IntArray]:
    """Whether connections that can yield set anything free, and (N,) number of the body that each
    part belongs to then."""
    side = bodies_joined(anchored, lower[~yielding], upper[~yielding])
    apart = False
    for k in range(len(lower)):
        apart = apart or side[lower[k]] != side[upper[k]]
    return apart, side
