# SPDX-License-Identifier: Apache-2.0
"""What is left of a component, as arrays. Imported where it is used: loops take half a second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.membership import places_in
from bricksim_core.spatial import Array
from bricksim_core.topology.grid import IntArray


@compiled
def parts_left(
    rows: NDArray[np.intp],
    grids: IntArray,
    kinds: IntArray,
    dimensions: IntArray,
    studded: NDArray[np.bool_],
    masses: Array,
    component_T_parts: Array,
    coms: Array,
    inertias: Array,
    boxes: IntArray,
) -> tuple[IntArray, IntArray, IntArray, NDArray[np.bool_], Array, Array, Array, Array, IntArray]:
    """Rows of what a layout knows of its parts, see `ComponentLayout`."""
    return (
        grids[rows],
        kinds[rows],
        dimensions[rows],
        studded[rows],
        masses[rows],
        component_T_parts[rows],
        coms[rows],
        inertias[rows],
        boxes[rows],
    )


@compiled
def connections_left(
    count: int,
    rows: NDArray[np.intp],
    connection_ids: IntArray,
    stud_index: IntArray,
    hole_index: IntArray,
    offsets: IntArray,
    yaws: IntArray,
    ended: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Connections of what is left of a component.

    Args:
        count: Parts of the component.
        rows: (M,) which of them are left.
        connection_ids: (C,) as the next four what its layout knows; see `ComponentLayout`.
        stud_index: (C,)
        hole_index: (C,)
        offsets: (C, 2)
        yaws: (C,)
        ended: Ids of connections that ended between parts that are left, and any others.

    Returns:
        The same five of the connections that are left.
    """
    place = np.full(count, -1, dtype=np.int64)
    for m in range(len(rows)):
        place[rows[m]] = m
    alive = np.empty(len(connection_ids), dtype=np.bool_)
    for c in range(len(alive)):
        alive[c] = place[stud_index[c]] >= 0 and place[hole_index[c]] >= 0
    for at in places_in(connection_ids, ended):
        if at >= 0:
            alive[at] = False
    kept = np.flatnonzero(alive)
    stud, hole = place[stud_index[kept]], place[hole_index[kept]]
    return connection_ids[kept], stud, hole, offsets[kept], yaws[kept]
