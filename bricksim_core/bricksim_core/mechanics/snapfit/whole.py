# SPDX-License-Identifier: Apache-2.0
"""The answer of last resort for the complementarity problem of `yielding`: two quadratic programs.

Equilibrium J w - B lambda = b, rows R w <= limit + overload, lambda >= 0, solved by PIQP.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import piqp
import scipy.sparse as sp

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.interior_solver import interior_solver
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure
from bricksim_core.mechanics.snapfit.yielding import Equations, Yielded
from bricksim_core.spatial import Array

_RELAXED = 1e-7
"""Overload [-] that the first stage may miss by and the second stage grants."""

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
        first = interior_point(
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
        second = interior_point(
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
    """
    square = sp.csc_matrix((len(linear), len(linear))) if cost is None else sp.csc_matrix(cost)
    inequalities = None if rows is None else sp.csc_matrix(rows)
    status = piqp.PIQP_UNSOLVED
    for tolerance in _INTERIOR_TOLERANCES:
        solver = interior_solver(tolerance)
        solver.setup(
            square, linear, sp.csc_matrix(equal), value, inequalities, None, upper, lower, None
        )
        status = solver.solve()
        if status in (piqp.PIQP_SOLVED, piqp.PIQP_PRIMAL_INFEASIBLE):
            return Answer(status, np.array(solver.result.x), np.array(solver.result.y))
    return Answer(status, np.zeros(0), np.zeros(0))
