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

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_RESOLUTION = 1 << 40
"""Strengths are compared as whole multiples of the strongest over this number, so that a minimum
cut does not hang on rounding."""


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
    body = _bodies(anchored, stud_index[~overloaded], hole_index[~overloaded])
    lower, upper = body[stud_index], body[hole_index]
    joining = overloaded & (lower != upper)
    bypassed = np.flatnonzero(overloaded & ~joining)
    eligible = joining if candidates is None else joining & candidates
    if not eligible.any():
        return Selection(none, bypassed)

    crossing = np.flatnonzero(joining)
    capacity = np.maximum(np.rint(strength[crossing] * (_RESOLUTION / strength[crossing].max())), 1)
    graph = nx.Graph()
    for a, b, c in zip(
        lower[crossing].tolist(), upper[crossing].tolist(), capacity.tolist(), strict=True
    ):
        held = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
        graph.add_edge(a, b, capacity=held + int(c))

    highest = utilization[eligible].max()
    worst = np.flatnonzero(eligible & (utilization >= highest - 1e-9 * abs(highest)))
    best: tuple[int, set[int]] | None = None
    for a, b in dict.fromkeys(zip(lower[worst].tolist(), upper[worst].tolist(), strict=True)):
        value, (side, _) = nx.minimum_cut(graph, a, b)
        if best is None or value < best[0]:
            best = (value, side)
    assert best is not None
    inside = np.isin(np.arange(body.max() + 1), list(best[1]))
    broken = crossing[inside[lower[crossing]] != inside[upper[crossing]]]
    return Selection(broken, bypassed)


def _bodies(anchored: NDArray[np.bool_], a: IntArray, b: IntArray) -> IntArray:
    """(N,) number of the body that each part belongs to."""
    world = np.flatnonzero(anchored)
    rows = np.concatenate([a, world[:-1]])
    columns = np.concatenate([b, world[1:]])
    shape = (len(anchored), len(anchored))
    links = coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    return connected_components(links, directed=False)[1].astype(np.int64)
