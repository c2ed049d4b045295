# SPDX-License-Identifier: Apache-2.0
"""Whole-problem solves by an interior point method (PIQP; HiGHS where that gets lost).

Limit analysis, and the answer of last resort for the complementarity problem of `yielding`. Both
state the same equations: equilibrium J w - B lambda = b, rows R w <= limit u, lambda >= 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import piqp
import scipy.sparse as sp
from scipy.optimize import linprog

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure
from bricksim_core.mechanics.snapfit.yielding import Equations, Yielded
from bricksim_core.mechanics.types import LimitLoad
from bricksim_core.spatial import Array

_NEVER = 1e-7
"""Utilization, relative to that of the bonded structure, below which failure never comes."""

_PART = 1e-4
"""Share of the work from which a connection counts as part of the mechanism."""

_RELAXED = 1e-7
"""Overload [-] that the first stage may miss by and the second stage grants."""

_LINPROG_INFEASIBLE = 2

_INTERIOR_TOLERANCES = (1e-10, 1e-8)
"""Absolute and relative tolerances of the interior point method: wanted, and accepted."""


class WholeProblem:
    """The equations of a component as one sparse system.

    Args:
        structure: The bonded structure.
        equations: What to solve on it.
    """

    def __init__(self, structure: ElasticStructure, equations: Equations) -> None:
        limits = equations.limits
        gap, push_loads = equations.gap, equations.push_loads
        self._structure, self._limits = structure, limits
        self._gap, self._compliance = gap, equations.compliance
        self._joints, self._pushes = len(limits.limit), len(gap)
        self._equilibrium = sp.hstack([structure.jacobian, -push_loads], format="csc")
        rows = limits.rows_of(np.arange(len(limits.limit)))
        self._joint, row = np.nonzero(np.abs(rows).sum(axis=2))
        wrench = rows[self._joint, row]
        at = np.repeat(np.arange(len(wrench)), 6)
        column = (6 * self._joint[:, None] + np.arange(6)).reshape(-1)
        shape = (len(wrench), 6 * self._joints + self._pushes)
        self._rows = sp.csc_array(sp.coo_array((wrench.reshape(-1), (at, column)), shape=shape))
        self._lower = np.repeat([-np.inf, 0.0], [6 * self._joints, self._pushes])

    def limit_load(self, loads: Array, scale: float) -> LimitLoad:
        """Least u for which forces exist that balance the loads with all rows <= limit u.

        Its inverse is the factor (static theorem); the multipliers of the rows are the mechanism
        (kinematic theorem).

        Args:
            loads: (F,) scaled b [N].
            scale: Greatest utilization of the bonded structure, for the solver's scaling.
        """
        if scale <= _NEVER:
            return LimitLoad(np.inf, ())
        minus_limit = sp.csc_array(-self._limits.limit[self._joint][:, None])
        cost = np.append(np.zeros(len(self._lower)), 1.0)
        program = (
            cost,
            sp.hstack([self._equilibrium, sp.csc_array((len(loads), 1))]),
            loads / scale,
            sp.hstack([self._rows, minus_limit]),
            np.zeros(len(self._joint)),
            np.append(self._lower, 0.0),
        )
        answer = _solve(sp.csc_array((len(cost), len(cost))), *program)
        if answer.status not in (piqp.PIQP_SOLVED, piqp.PIQP_PRIMAL_INFEASIBLE):
            answer = _solve_simplex(*program)
        if answer.status == piqp.PIQP_PRIMAL_INFEASIBLE:
            return LimitLoad(0.0, ())
        if answer.status != piqp.PIQP_SOLVED:
            return LimitLoad(np.nan, ())
        if answer.x[-1] < _NEVER:
            return LimitLoad(np.inf, ())
        work = np.bincount(self._joint, answer.multiplier, self._joints)[self._limits.limit > 0.0]
        order = np.argsort(-work, kind="stable")
        taking_part = order[work[order] > _PART * work.sum()]
        return LimitLoad(1.0 / (answer.x[-1] * scale), tuple(taking_part.tolist()))

    def yielded(self, loads: Array) -> Yielded:
        """Least overload, then least energy: what `YieldSolver.solve` solves, in two stages.

        Args:
            loads: (F,) scaled b [N].

        Raises:
            SolverError: The solver found no optimum.
        """
        width, count, joints = len(self._lower), len(self._joint), self._joints
        overload = sp.csc_array(
            (-np.ones(count), (np.arange(count), self._joint)), shape=(count, joints)
        )
        limit = self._limits.limit[self._joint]
        weight = self._limits.softness.min() / self._limits.softness
        first = _solve(
            sp.diags_array(np.concatenate([np.zeros(width), weight])),
            np.zeros(width + joints),
            sp.hstack([self._equilibrium, sp.csc_array((len(loads), joints))]),
            loads,
            sp.hstack([self._rows, overload]),
            limit,
            np.concatenate([self._lower, np.zeros(joints)]),
        )
        if first.status != piqp.PIQP_SOLVED:
            raise SolverError(f"overload: interior point method ended with {first.status.name}")
        excess = np.maximum(first.x[width:], 0.0)
        excess[excess < _RELAXED] = 0.0

        energy = np.concatenate([1.0 / self._structure.stiffness, self._compliance])
        # In units of the joints' compliance the energy is of the order of the squared forces.
        unit = float(np.median(energy))
        second = _solve(
            sp.diags_array(energy / unit),
            np.concatenate([np.zeros(6 * joints), self._gap / unit]),
            self._equilibrium,
            loads,
            self._rows,
            limit + excess[self._joint] + _RELAXED,
            self._lower,
        )
        if second.status != piqp.PIQP_SOLVED:
            raise SolverError(f"energy: interior point method ended with {second.status.name}")
        wrench = second.x[: 6 * joints].reshape(-1, 6)
        push = np.maximum(second.x[6 * joints :], 0.0)
        return Yielded(wrench, push, np.zeros(0, dtype=np.int64), np.zeros(0))


class _Answer(NamedTuple):
    status: Any  # piqp.Status
    x: Array
    multiplier: Array
    """Of the inequality rows."""


def _solve(cost, linear: Array, equal, value: Array, rows, upper: Array, lower: Array) -> _Answer:
    """Least 1/2 x'Px + q'x subject to Ax = value, Gx <= upper, x >= lower."""
    status = piqp.PIQP_UNSOLVED
    for tolerance in _INTERIOR_TOLERANCES:
        solver = piqp.SparseSolver()
        settings = solver.settings
        settings.verbose = False
        settings.eps_abs = settings.eps_rel = tolerance
        settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tolerance
        solver.setup(
            sp.csc_matrix(cost),
            linear,
            sp.csc_matrix(equal),
            value,
            sp.csc_matrix(rows),
            None,
            upper,
            lower,
            None,
        )
        status = solver.solve()
        if status in (piqp.PIQP_SOLVED, piqp.PIQP_PRIMAL_INFEASIBLE):
            return _Answer(status, np.array(solver.result.x), np.array(solver.result.z_u))
    return _Answer(status, np.zeros(0), np.zeros(0))


def _solve_simplex(linear: Array, equal, value: Array, rows, upper: Array, lower: Array) -> _Answer:
    """Least q'x with the constraints of `_solve`, by HiGHS: slower, never lost."""
    result = linprog(
        linear,
        A_ub=sp.csc_array(rows),
        b_ub=upper,
        A_eq=sp.csc_array(equal),
        b_eq=value,
        bounds=np.column_stack([lower, np.full(len(lower), np.inf)]),
        method="highs",
    )
    if result.status != 0:
        infeasible = result.status == _LINPROG_INFEASIBLE
        status = piqp.PIQP_PRIMAL_INFEASIBLE if infeasible else piqp.PIQP_UNSOLVED
        return _Answer(status, np.zeros(0), np.zeros(0))
    return _Answer(piqp.PIQP_SOLVED, result.x, -result.ineqlin.marginals)
