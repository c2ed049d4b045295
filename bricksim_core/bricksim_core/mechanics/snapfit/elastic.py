# SPDX-License-Identifier: Apache-2.0
"""The bonded structure: rigid parts, every joint an elastic spring that never yields.

Displacements y of the parts that can move follow from the loads b by K y = b, K = J D J^T, where D
is the diagonal of the joints' stiffness and J^T y the displacement of the upper part relative to
the lower one at each joint. K is symmetric and positive definite and constant while the topology
is, so it is factored once.

Torques and rotations are scaled by the stud pitch (`to_pitches`), so that all wrenches are in
newtons and all displacements in metres.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from bricksim_core.mechanics.geometry import GROUND
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

PITCHES = np.array([1.0, 1.0, 1.0, STUD_PITCH, STUD_PITCH, STUD_PITCH])
"""A wrench in SI over the same wrench scaled; a scaled displacement over the one in SI."""

_FEW = 24
"""Free parts up to which any order will do."""


def wrench_maps(points: Array, coms: Array) -> Array:
    """(C, 6, 6) maps from scaled wrenches about points to scaled wrenches about COMs.

    Args:
        points: (C, 3) [m].
        coms: (C, 3) [m].
    """
    arm = (points - coms) / STUD_PITCH
    maps = np.zeros((len(arm), 6, 6))
    maps[:, range(6), range(6)] = 1.0
    maps[:, 3, 1], maps[:, 3, 2] = -arm[:, 2], arm[:, 1]
    maps[:, 4, 0], maps[:, 4, 2] = arm[:, 2], -arm[:, 0]
    maps[:, 5, 0], maps[:, 5, 1] = -arm[:, 1], arm[:, 0]
    return maps


def elimination_order(lower: IntArray, upper: IntArray, held: NDArray[np.bool_]) -> IntArray:
    """Parts that are free to move, in an order of little fill (minimum degree).

    The order is found on the graph of parts, 36 times smaller than the stiffness matrix.

    Args:
        lower: (J,) lower part of each joint, GROUND for the world.
        upper: (J,) upper part.
        held: (N,) parts that do not move.
    """
    free = np.flatnonzero(~held)
    if len(free) <= _FEW:
        return free
    place = np.full(len(held), -1, dtype=np.int64)
    place[free] = np.arange(len(free))
    both = (lower != GROUND) & ~held[lower] & ~held[upper]
    a, b = place[lower[both]], place[upper[both]]
    if not len(a):
        return free
    size = len(free)
    rows, columns = np.concatenate([a, b]), np.concatenate([b, a])
    graph = sp.csc_array(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size)))
    # Any matrix of this pattern will do; a dominant diagonal keeps the throw-away factor regular.
    graph.setdiag(1.0 + graph.sum(axis=0).max())
    found = splu(
        sp.csc_array(graph),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return free[np.argsort(found.perm_c)]


class ElasticStructure:
    """The factored stiffness of a component.

    Args:
        lower: (J,) index of the lower part of each joint, GROUND for the world.
        upper: (J,) index of the upper part.
        centres: (J, 3) points of the joints [m].
        stiffness: (J, 6) diagonal stiffness about those points [N/m, N m/rad].
        coms: (N, 3) centres of mass [m].
        held: (N,) parts that do not move. Every part must hang on a held one or on the world.

    Attributes:
        free: (F,) indices of the 6 N scaled displacements that are free, in the order in which
            they are eliminated.
        jacobian: (F, 6 J) sparse J.
        stiffness: (6 J,) scaled stiffness [N/m].
    """

    def __init__(
        self,
        lower: IntArray,
        upper: IntArray,
        centres: Array,
        stiffness: Array,
        coms: Array,
        held: NDArray[np.bool_],
    ) -> None:
        self._coms = coms
        order = elimination_order(lower, upper, held)
        self.free = (6 * order[:, None] + np.arange(6)).reshape(-1)
        self._column = np.full(6 * len(coms), -1, dtype=np.int64)
        self._column[self.free] = np.arange(len(self.free))
        self.stiffness = (stiffness / PITCHES**2).reshape(-1)
        blocks = 6 * np.arange(len(lower))
        self.jacobian = self.spread(
            parts=np.concatenate([lower, upper]),
            points=np.concatenate([centres, centres]),
            wrenches=None,
            signs=np.repeat([-1.0, 1.0], len(lower)),
            columns=np.concatenate([blocks, blocks]),
            width=6 * len(lower),
        )
        self.strain = sp.csr_array(self.jacobian.T)
        """(6 J, F) sparse J^T."""

    def spread(
        self,
        parts: IntArray,
        points: Array,
        wrenches: Array | None,
        signs: Array,
        columns: IntArray,
        width: int,
    ) -> sp.csc_array:
        """Loads on the free displacements by forces at points.

        Args:
            parts: (M,) part that each force acts on; GROUND and held parts take it silently.
            points: (M, 3) where [m].
            wrenches: (M, 6) scaled wrench about the point per unit of its column, or None for six
                columns per point, one for each unit wrench.
            signs: (M,) factors.
            columns: (M,) (first) column of each force.
            width: Number of columns.

        Returns:
            (F, width) sparse loads.
        """
        moving = parts != GROUND
        parts, points, columns = parts[moving], points[moving], columns[moving]
        maps = wrench_maps(points, self._coms[parts]) * signs[moving, None, None]
        if wrenches is None:
            values, columns = maps, columns[:, None, None] + np.arange(6)
        else:
            values, columns = maps @ wrenches[moving, :, None], columns[:, None, None]
        rows = self._column[6 * parts[:, None, None] + np.arange(6)[:, None]]
        rows, columns = np.broadcast_arrays(rows, columns)
        kept = (values != 0.0) & (rows >= 0)
        entries = (values[kept], (rows[kept], columns[kept]))
        return sp.csc_array(sp.coo_array(entries, shape=(len(self.free), width)))

    @cached_property
    def _factor(self):
        weighted = self.jacobian.multiply(self.stiffness[None, :])
        matrix = sp.csc_array(weighted @ self.strain)
        return splu(
            matrix,
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def displacements(self, loads: Array) -> Array:
        """(F,) or (F, m) scaled displacements [m] under (F,) or (F, m) scaled loads [N]."""
        return self._factor.solve(loads)

    def wrenches(self, displacements: Array) -> Array:
        """(J, 6) scaled wrenches [N] of the joints on their lower parts."""
        return (self.stiffness * (self.strain @ displacements)).reshape(-1, 6)
