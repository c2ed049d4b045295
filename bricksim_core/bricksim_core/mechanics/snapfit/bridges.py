# SPDX-License-Identifier: Apache-2.0
"""Joints that fail alone: the only joint of what hangs on it, with nothing in the way.

What hangs on one joint moves as a rigid body when this joint gives way by one of its rows. If that
motion closes no contact with other parts it is a mechanism, and what the joint must bear at least
(kinematic theorem of limit analysis) is this row of the resultant of the loads.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bricksim_core.mechanics.snapfit.band import multiplied
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure, wrench_maps
from bricksim_core.mechanics.snapfit.joints import TIP_ROWS
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_CLOSING = 1e-9
"""Closing of a contact relative to the greatest displacement that is rounding."""


def least_load(
    structure: ElasticStructure,
    closing: tuple[Array, IntArray, IntArray],
    joint: int,
    rows: Array,
    loads: Array,
    enough: float,
) -> float:
    """Utilization that a joint has at least, however the forces are distributed.

    Args:
        structure: The bonded structure.
        closing: See `Equations.closing`.
        joint: The joint.
        rows: (ROWS, 6) its utilization per scaled wrench [1/N].
        loads: (F,) scaled loads [N].
        enough: Less is of no interest; greater than 0.

    Returns:
        A row of the wrench that the loads alone would give it, whose motion is a mechanism; 0 if
        there is none of interest.
    """
    hanging = _hanging(structure, joint)
    if not hanging.any():
        return 0.0
    node = structure.node[structure.upper[joint]]
    sign = 1.0 if node >= 0 and hanging[node] else -1.0
    maps = sign * wrench_maps(structure.points[hanging], structure.centres[joint])
    wrench = np.einsum("nij,nj->i", maps, loads.reshape(-1, 6)[hanging])
    # On a single stud two rows that differ in the turn alone may be at work together.
    rows = np.concatenate([rows, 0.5 * (rows[: TIP_ROWS // 2] + rows[TIP_ROWS // 2 : TIP_ROWS])])
    values = rows @ wrench
    for row in np.flatnonzero(values >= enough).tolist():
        displaced = np.zeros((len(hanging), 6))
        displaced[hanging] = rows[row] @ maps
        farthest = np.abs(displaced).max()
        moved = multiplied(*closing, displaced.reshape(-1))
        if moved.max(initial=0.0) <= _CLOSING * farthest:
            return float(values[row])
    return 0.0


def _hanging(structure: ElasticStructure, joint: int) -> NDArray[np.bool_]:
    """(n,) the free parts that no joint but this one joins to what is held; none if both of its
    sides, or neither, are joined otherwise."""
    count = len(structure.points)
    a, b = (
        np.where(node < 0, count, node)
        for node in (structure.node[structure.lower], structure.node[structure.upper])
    )
    others = np.arange(len(a)) != joint
    shape = (count + 1, count + 1)
    graph = sp.coo_array((np.ones(others.sum()), (a[others], b[others])), shape=shape)
    _, side = connected_components(graph, directed=False)
    loose = [side[part] for part in (a[joint], b[joint]) if side[part] != side[count]]
    return side[:-1] == (loose[0] if len(loose) == 1 else -1)
