# SPDX-License-Identifier: Apache-2.0
"""The complementarity problem of `yielding` as quadratic programs, solved by PIQP.

Equilibrium J w - B lambda = b, rows R w <= limit + overload, lambda >= 0. As one program, with the
softness of `yielding`, it tells which rows and pushes will be active. Its two criteria one after
the other are the answer of last resort.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import piqp
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.interior_solver import interior_solver
from bricksim_core.mechanics.snapfit.joints import ROWS, TIP_ROWS
from bricksim_core.mechanics.snapfit.yielding import TOLERANCE, Equations, Yielded
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_RELAXED = 1e-7
"""Overload, relative to the greatest one or to 1, that the first stage may miss by and the second
stage grants."""

_LIKELY = 1e-9
"""Tolerance with which the active set is looked for."""

_NEAR = 0.25
"""Share of its limit that a row of bearing has to reach in the bonded structure for these to be
looked at."""

_INTERIOR_TOLERANCES = {1e-10: 250, 1e-8: 1000}
"""Absolute and relative tolerances of the interior point method, wanted and accepted, and steps to
get there: arms of thousands of bricks, whose moments differ a millionfold, take some hundreds."""

_NEVER = 1e-30
"""Tolerance with which a program is never said to have no solution."""


class WholeProblem:
    """The equations of a component as one sparse system.

    Args:
        equations: What to solve.
    """

    def __init__(self, equations: Equations) -> None:
        structure = equations.structure
        limits, push_loads = equations.limits, equations.push_loads
        data, indices, indptr = structure.strain
        self._structure, self._limits = structure, limits
        self._gap, self._compliance = equations.gap, equations.compliance
        joints, pushes = len(limits.limit), len(equations.gap)
        self._joints, self._pushes, self._width = joints, pushes, 6 * joints + pushes
        # Columns: scaled wrenches, pushes, overloads.
        size = self._width + joints
        ends = np.concatenate([indptr, push_loads.indptr[1:] + indptr[-1]])
        self._equal = sp.csc_matrix(
            (
                np.concatenate([data, -push_loads.data]),
                np.concatenate([indices, push_loads.indices]),
                np.concatenate([ends, np.full(joints, ends[-1])]),
            ),
            shape=(structure.size, size),
        )
        self._all_rows = limits.rows_of(np.arange(joints))
        self._lower = np.repeat([-np.inf, 0.0, -np.inf], [6 * joints, pushes, joints])

    def _rows(self, used: NDArray[np.bool_]) -> tuple[Any, IntArray, IntArray]:
        """Some rows, of (J, ROWS), less the overload: as a matrix, and their joints and numbers."""
        joint, number = np.nonzero(used)
        count, joints = len(joint), self._joints
        place = np.cumsum(used.reshape(-1)).reshape(used.shape) - 1
        of, column, row = np.nonzero((self._all_rows * used[:, :, None]).swapaxes(1, 2))
        entries = np.bincount(6 * of + column, minlength=self._width)
        entries = np.concatenate([[0], entries, np.bincount(joint, minlength=joints)])
        rows = sp.csc_matrix(
            (
                np.concatenate([self._all_rows[of, row, column], np.full(count, -1.0)]),
                np.concatenate([place[of, row], np.arange(count)]),
                np.cumsum(entries),
            ),
            shape=(count, len(self._lower)),
        )
        return rows, joint, number

    def likely(self, loads: Array, wrench: Array) -> IntArray:
        """Members (see `Yielded`) that will be active, sorted.

        The interior point method ends near the optimum; what there weighs more than the distance to
        its limit is taken for active. Rows of bearing are left out where the bonded structure does
        not come near them, and it is right to.

        Args:
            loads: (F,) scaled b [N].
            wrench: (J, 6) scaled wrenches of the bonded structure [N].
        """
        limit = self._limits.limit[:, None]
        every = self._all_rows.any(axis=2)
        bearing = self._values(wrench)[:, TIP_ROWS:] - _NEAR * limit
        few = bearing.max(initial=0.0) <= 0.0
        used = every.copy()
        if few:
            used[:, TIP_ROWS:] = False
        members, found = self._active(loads, used)
        if few and (self._values(found)[:, TIP_ROWS:] > limit + TOLERANCE).any():
            members, _ = self._active(loads, every)
        return members

    def _values(self, wrench: Array) -> Array:
        """(J, ROWS) all rows of (J, 6) scaled wrenches."""
        return np.matmul(self._all_rows, wrench[:, :, None])[:, :, 0]

    def _active(self, loads: Array, used: NDArray[np.bool_]) -> tuple[IntArray, Array]:
        """Active members with (J, ROWS) some rows only, and the (J, 6) scaled wrenches."""
        stiffness, joints = self._structure.stiffness, self._joints
        energy = np.concatenate([1.0 / stiffness, self._compliance, 1.0 / self._limits.softness])
        # In units of the joints' compliance the energy is of the order of the squared forces.
        unit = float(np.median(energy[: len(stiffness)]))
        linear = np.concatenate([np.zeros(6 * joints), self._gap / unit, np.zeros(joints)])
        size = len(energy)
        cost = sp.csc_matrix((energy / unit, np.arange(size), np.arange(size + 1)))
        rows, joint, number = self._rows(used)
        limit = self._limits.limit[joint]
        solver = interior_solver(_LIKELY)
        solver.setup(cost, linear, self._equal, loads, rows, None, limit, self._lower, None)
        solver.solve()
        result, push = solver.result, slice(6 * joints, self._width)
        active = np.flatnonzero(result.z_u > result.s_u)
        pressed = np.flatnonzero(result.x[push] > result.z_bl[push])
        own = joint[active] * ROWS + number[active]
        members = np.concatenate([own, joints * ROWS + pressed])
        return members, result.x[: 6 * joints].reshape(-1, 6)

    def yielded(self, loads: Array, bonded: Array) -> Yielded:
        """Least overload, then least energy: what `YieldSolver.solve` solves, in two stages.

        Where no least energy is found the forces are others of the least overload: right for what
        is overloaded, anything up to the limit elsewhere.

        Args:
            loads: (F,) scaled b [N].
            bonded: (J, 6) scaled wrenches of the bonded structure [N].

        Raises:
            SolverError: The solver found no optimum.
        """
        width, joints = self._width, self._joints
        rows, joint, _ = self._rows(self._all_rows.any(axis=2))
        # In units of what the bonded structure would bear, so that overloads are of order one.
        scale = max(1.0, float(self._limits.greatest(bonded).max(initial=0.0)))
        loads, limit = loads / scale, self._limits.limit[joint] / scale
        weight = self._limits.softness.min() / self._limits.softness
        first = interior_point(
            sp.diags_array(np.concatenate([np.zeros(width), weight])),
            np.zeros(width + joints),
            self._equal,
            loads,
            rows,
            limit,
            self._lower,
            feasible=True,
        )
        if first.status != piqp.PIQP_SOLVED:
            raise SolverError(f"overload: interior point method ended with {first.status.name}")
        excess = np.maximum(first.x[width:], 0.0)
        relaxed = _RELAXED * max(1.0 / scale, float(excess.max(initial=0.0)))
        excess[excess < relaxed] = 0.0

        energy = np.concatenate([1.0 / self._structure.stiffness, self._compliance])
        unit = float(np.median(energy))
        second = interior_point(
            sp.diags_array(energy / unit),
            np.concatenate([np.zeros(6 * joints), self._gap / scale / unit]),
            self._equal[:, :width],
            loads,
            rows[:, :width],
            limit + excess[joint] + relaxed,
            self._lower[:width],
            feasible=True,
        )
        # Without the second answer the first one's forces are balanced and no more overloaded.
        forces = second.x if second.status == piqp.PIQP_SOLVED else first.x[:width]
        wrench = scale * forces[: 6 * joints].reshape(-1, 6)
        push = scale * np.maximum(forces[6 * joints :], 0.0)
        return Yielded(wrench, push, np.zeros(0, dtype=np.int64), np.zeros(0))


class Answer(NamedTuple):
    """What PIQP says.

    Attributes:
        status: piqp.Status; only with PIQP_SOLVED there is more.
        x: The optimum.
        multiplier: Of the equations: cost x + linear + equal^T multiplier is the reduced cost.
    """

    status: Any
    x: Array
    multiplier: Array


def interior_point(
    cost: Any,
    linear: Array,
    equal: Any,
    value: Array,
    rows: Any,
    upper: Array | None,
    lower: Array,
    feasible: bool = False,
) -> Answer:
    """Least 1/2 x'Px + q'x subject to Ax = value, Gx <= upper, x >= lower, by PIQP.

    Args:
        cost: (n, n) sparse P; None: zero.
        linear: (n,) q.
        equal: (m, n) sparse A.
        value: (m,).
        rows: (k, n) sparse G; None: there are none.
        upper: (k,).
        lower: (n,).
        feasible: Certainly there is an x: an ill-conditioned program may look as if there was none.
    """
    square = sp.csc_matrix((len(linear), len(linear))) if cost is None else sp.csc_matrix(cost)
    inequalities = None if rows is None else sp.csc_matrix(rows)
    status = piqp.PIQP_UNSOLVED
    for tolerance, steps in _INTERIOR_TOLERANCES.items():
        solver = interior_solver(tolerance)
        solver.settings.max_iter = steps
        if feasible:
            solver.settings.eps_primal_inf = _NEVER
        solver.setup(
            square, linear, sp.csc_matrix(equal), value, inequalities, None, upper, lower, None
        )
        status = solver.solve()
        if status in (piqp.PIQP_SOLVED, piqp.PIQP_PRIMAL_INFEASIBLE):
            return Answer(status, np.array(solver.result.x), np.array(solver.result.y))
    return Answer(status, np.zeros(0), np.zeros(0))
