# SPDX-License-Identifier: Apache-2.0
"""Which links of a graph end at each of its nodes, for compiled loops."""

from __future__ import annotations

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.topology.layout import IntArray


@compiled
def ends_at(count: int, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
    """Ends of links by node.

    Args:
        count: n, nodes.
        a: (L,) node at one end of each link; links with a negative one count for nothing.
        b: (L,) at the other.

    Returns:
        (n + 1,) where those of each node begin, and the ends at the nodes in the order of the
        links: twice the number of the link, and one more where it is b.
    """
    start = np.zeros(count + 1, dtype=np.int64)
    for link in range(len(a)):
        if a[link] >= 0 and b[link] >= 0:
            start[a[link] + 1] += 1
            start[b[link] + 1] += 1
    for node in range(count):
        start[node + 1] += start[node]
    at, ends = start[:-1].copy(), np.empty(start[-1], dtype=np.int64)
    for link in range(len(a)):
        if a[link] >= 0 and b[link] >= 0:
            ends[at[a[link]]] = 2 * link
            at[a[link]] += 1
            ends[at[b[link]]] = 2 * link + 1
            at[b[link]] += 1
    return start, ends
