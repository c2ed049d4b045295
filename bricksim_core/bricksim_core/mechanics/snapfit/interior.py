# SPDX-License-Identifier: Apache-2.0
"""Linear programs by an interior point method whose linear algebra the caller knows best.

Mehrotra's predictor and corrector (1992) on min c x, N x = r, x >= 0. Each step solves a few
systems with N D N^T, D diagonal, which for a structure is a stiffness matrix: the caller factors
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bricksim_core.mechanics.snapfit.band import multiplied, multiplied_back
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

Factorize = Callable[[Array], Callable[[Array], Array]]
"""From the diagonal of D to a solver of N D N^T y = r."""

_MAX_ITERATIONS = 60
_TO_THE_EDGE = 0.995
"""Share of the way to the nearest bound that a step goes at most."""
_REFINEMENTS = 40
_ROUNDING = 1e-12
"""Relative residual of a linear system at which refining it ends."""
_IN_VAIN, _ENOUGH = 3, 1e-9
"""Refinements without a smaller residual after which it ends at this one."""
_LITTLE = 1e-3
"""Relative error of N x = r that may be rounding."""
_SETTLED = 1e-9
"""Relative change of the lower bound, or gap, that is not worth another step."""
_FEASIBLE = 1e-8
"""Relative error of N x = r and of the reduced costs that counts as none."""


class Optimum(NamedTuple):
    """Solution of a linear program.

    Attributes:
        value: The least c x; inf if N x = r has no solution x >= 0.
        x: (n,) a solution.
        multiplier: (m,) y, the multipliers of N x = r: c - N^T y >= 0, r y = c x.
    """

    value: float
    x: Array
    multiplier: Array


class _Bound(NamedTuple):
    """Best value so far and where it was reached."""

    value: float
    at: Array


class _Columns(NamedTuple):
    """N by its columns: values, rows and beginnings, and the number of rows."""

    value: Array
    row: IntArray
    start: IntArray
    rows: int

    @staticmethod
    def of(matrix: sp.csc_array, rows: int) -> _Columns:
        """From a sparse N."""
        row, start = (each.astype(np.int64) for each in (matrix.indices, matrix.indptr))
        return _Columns(matrix.data, row, start, rows)

    def sum(self, x: Array) -> Array:
        """N x."""
        return multiplied_back(self.value, self.row, self.start, x, self.rows)

    def product(self, y: Array) -> Array:
        """N^T y."""
        return multiplied(self.value, self.row, self.start, y)

    def weighted(self, weight: Array, y: Array) -> Array:
        """N D N^T y."""
        return self.sum(weight * self.product(y))


class _Point(NamedTuple):
    x: Array
    y: Array
    z: Array

    def moved(self, direction: _Point) -> _Point:
        """Along a direction as far as x and z stay positive, each by its own step."""
        primal = min(1.0, _TO_THE_EDGE * room(self.x, direction.x))
        dual = min(1.0, _TO_THE_EDGE * room(self.z, direction.z))
        return _Point(
            self.x + primal * direction.x, self.y + dual * direction.y, self.z + dual * direction.z
        )


def minimize(
    matrix: sp.csc_array,
    cost: Array,
    right: Array,
    factorize: Factorize,
    *,
    tolerance: float,
    nothing: float,
    never: float,
) -> Optimum | None:
    """Least c x with N x = r, x >= 0.

    Args:
        matrix: (m, n) sparse N of full row rank.
        cost: (n,) c.
        right: (m,) r.
        factorize: Factors N D N^T; raises LinAlgError where rounding prevents that.
        tolerance: Relative gap between the bounds on the value that is acceptable where rounding
            prevents a smaller one.
        nothing: Value below which its size does not matter.
        never: Value above which the program counts as infeasible.

    Returns:
        The optimum; None if rounding stood in the way.
    """
    columns = _Columns.of(matrix, len(right))
    size = 1.0 + float(np.abs(right).max(initial=0.0))
    point = _start(columns, cost, right, factorize)
    least, most = _Bound(-np.inf, point.y), _Bound(np.inf, point.x)
    for _ in range(_MAX_ITERATIONS):
        x, y, z = point
        missing = right - columns.sum(x)
        reduced = cost - columns.product(y) - z
        value, bound = float(cost @ x), float(right @ y)
        before = least.value
        if bound > least.value and np.abs(reduced).max() <= _FEASIBLE * (1.0 + z.max()):
            least = _Bound(bound, y)
        if value < most.value and np.abs(missing).max(initial=0.0) <= _FEASIBLE * size:
            most = _Bound(value, x)
        settled = least.value - before <= _SETTLED * abs(least.value)
        gap = most.value - least.value
        if least.value > never:
            return Optimum(np.inf, x, y)
        if most.value <= nothing or gap < (tolerance if settled else _SETTLED) * most.value:
            break
        try:
            rough = factorize(x / z)
        except np.linalg.LinAlgError:
            break

        def direction(target: Array, solve: Callable[[Array], Array]) -> _Point:
            """Towards x z = target, with what N x and the reduced costs lack."""
            share = reduced - target / x  # noqa: B023
            dy = solve(missing + columns.sum(x / z * share))  # noqa: B023
            dx = x / z * (columns.product(dy) - share)  # noqa: B023
            return _Point(dx, dy, (target - z * dx) / x)  # noqa: B023

        solve = _refined(columns, x / z, rough)
        affine = direction(-x * z, rough)
        reached = _Point(x, y, z).moved(affine)
        mean = float(x @ z) / len(x)
        centring = (float(reached.x @ reached.z) / len(x) / mean) ** 3
        point = point.moved(direction(centring * mean - x * z - affine.x * affine.z, solve))
        # Late steps are differences of large numbers; what N x lacks by rounding is put right.
        lost = right - columns.sum(point.x)
        lack = float(np.abs(lost).max(initial=0.0))
        if not lack <= max(_LITTLE * size, np.abs(missing).max(initial=0.0)):
            break
        if _ROUNDING * size < lack <= _LITTLE * size:
            corrected = point.x + x / z * columns.product(solve(lost))
            if corrected.min() > 0.0:
                point = point._replace(x=corrected)
    if most.value <= nothing or most.value - least.value < tolerance * most.value:
        return Optimum(0.5 * (max(least.value, 0.0) + most.value), most.at, least.at)
    return None


def _start(columns: _Columns, cost: Array, right: Array, factorize: Factorize) -> _Point:
    """Mehrotra's: least squares solutions, shifted into the interior."""
    solve = _refined(columns, np.ones(len(cost)), factorize(np.ones(len(cost))))
    x = columns.product(solve(right))
    y = solve(columns.sum(cost))
    z = cost - columns.product(y)
    x += max(-1.5 * float(x.min()), 0.0)
    z += max(-1.5 * float(z.min()), 0.0)
    product = 0.5 * float(x @ z)
    return _Point(x + product / z.sum() + 1e-10, y, z + product / x.sum() + 1e-10)


def _refined(
    columns: _Columns, weight: Array, solve: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """A solver of N D N^T y = r whose error is of the order of rounding.

    What is added to the matrix so that it can be factored holds groups of rows that hang by little
    weight on others: they are few, and conjugate gradients let go of them one after the other.
    """

    def refined(right: Array) -> Array:
        y = solve(right)
        size = float(np.abs(right).max(initial=0.0))
        best, least, since = y, np.inf, 0
        before, direction = 1.0, np.zeros_like(y)
        error = right - columns.weighted(weight, y)
        for _ in range(_REFINEMENTS):
            worst, since = float(np.abs(error).max(initial=0.0)), since + 1
            if worst < least:
                best, least, since = y, worst, 0
            if not worst > _ROUNDING * size or (since >= _IN_VAIN and least <= _ENOUGH * size):
                break
            towards = solve(error)
            slope = float(error @ towards)
            direction = towards + slope / before * direction
            response = columns.weighted(weight, direction)
            bent = float(direction @ response)
            if not (slope > 0.0 and bent > 0.0):
                break
            y = y + slope / bent * direction
            error, before = right - columns.weighted(weight, y), slope
        return best

    return refined


def room(value: Array, change: Array) -> float:
    """How many times a change fits before a value becomes negative."""
    falling = change < 0.0
    return float((-value[falling] / change[falling]).min(initial=np.inf))
