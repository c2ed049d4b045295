# SPDX-License-Identifier: Apache-2.0
"""Quadratic programs with constant matrices: warm OSQP with an interior point method behind it.

Problems are: minimise 1/2 x'Px + q'x subject to low <= Ax <= high.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import osqp
import piqp
import scipy.sparse as sp

from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics.interior_solver import interior_solver
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.spatial import Array
from bricksim_core.values import as_number, as_whole


@dataclass(frozen=True)
class QpSettings:
    """How a quadratic program is solved.

    Attributes:
        method: "osqp": OSQP, and the interior point method where OSQP does not converge;
            "interior": the interior point method at once.
        tolerance: OSQP's absolute and relative tolerance.
        max_iterations: OSQP's limit of iterations.
        interior_tolerance: Absolute and relative tolerance of the interior point method.

    Raises:
        BrickSimError: A value is out of range or of another type.
    """

    method: Literal["osqp", "interior"] = "osqp"
    tolerance: float = 1e-4
    max_iterations: int = 10000
    interior_tolerance: float = 1e-9

    def __post_init__(self) -> None:
        if self.method not in ("osqp", "interior"):
            raise BrickSimError(f"method is {self.method!r}, expected 'osqp' or 'interior'")
        for name in ("tolerance", "interior_tolerance"):
            as_number(getattr(self, name), name, 0.0, above=True)
        as_whole(self.max_iterations, "max_iterations", 1, 10**9)


class QpResult(NamedTuple):
    """Minimiser, how it came about, and what went wrong on the way (empty if nothing did)."""

    x: Array
    status: SolveStatus
    message: str


class ProgramState(NamedTuple):
    """What makes the next solve of a `Program` repeatable bit by bit."""

    setup: tuple[Array, Array, Array]
    x: Array
    y: Array
    rho: float


class Program:
    """A quadratic program that is solved again and again with other q, low and high.

    The factorization and the last answer are kept between calls.
    """

    def __init__(
        self, name: str, P: sp.csc_matrix, A: sp.csc_matrix, settings: QpSettings, rho: float = 0.1
    ) -> None:
        """
        Args:
            name: What to call it in messages.
            P: (n, n) symmetric positive semidefinite.
            A: (m, n).
            settings: How to solve it.
            rho: OSQP's first step size.
        """
        self.name = name
        self._P, self._A = P, A
        self._upper = sp.triu(P, format="csc")
        self._settings = settings
        self._rho = rho
        self._osqp: Any = None  # osqp.OSQP, whose attributes are typed None before its setup
        self._state: ProgramState | None = None

    def solve(self, q: Array, low: Array, high: Array) -> QpResult:
        """Solves for these vectors; infinite bounds are allowed."""
        if self._settings.method == "interior":
            x, outcome = solve_interior(
                self._P, q, self._A, low, high, self._settings.interior_tolerance
            )
            if outcome == "solved":
                return QpResult(x, SolveStatus.SOLVED, "")
            return QpResult(x, SolveStatus.FAILED, f"{self.name}: interior point {outcome}")

        result, setup = self._run_osqp(q, low, high)
        if result.info.status == "solved":
            self._remember(setup, result.x, result.y)
            return QpResult(result.x.copy(), SolveStatus.SOLVED, "")
        if result.info.status == "interrupted":
            # OSQP took the interrupt from whoever handles them. Its step size may have changed.
            self._osqp = None
            signal.raise_signal(signal.SIGINT)
            return self.solve(q, low, high)
        trouble = f"{self.name}: OSQP {result.info.status} after {result.info.iter} iterations"
        x, outcome = solve_interior(
            self._P, q, self._A, low, high, self._settings.interior_tolerance
        )
        if outcome == "solved":
            self._remember(setup, x, np.zeros_like(low))
            return QpResult(x, SolveStatus.FALLBACK, trouble)
        self._osqp = self._state = None
        return QpResult(x, SolveStatus.FAILED, f"{trouble}; interior point {outcome}")

    def state(self) -> ProgramState | None:
        """What `restore` needs to repeat the next solve exactly."""
        return self._state

    def restore(self, state: ProgramState | None) -> None:
        """Returns to a state of a program with the same matrices."""
        self._osqp, self._state = None, state

    def _setup(self, q: Array, low: Array, high: Array) -> Any:
        solver = osqp.OSQP()
        solver.setup(
            self._upper,
            q,
            self._A,
            low,
            high,
            verbose=False,
            rho=self._rho,
            eps_abs=self._settings.tolerance,
            eps_rel=self._settings.tolerance,
            max_iter=self._settings.max_iterations,
        )
        return solver

    def _run_osqp(self, q: Array, low: Array, high: Array):
        """OSQP's result and the vectors that the solver was set up with."""
        if self._state is None:
            self._osqp = self._setup(q, low, high)
            setup = (q.copy(), low.copy(), high.copy())
        else:
            setup = self._state.setup
            if self._osqp is None:
                self._osqp = self._setup(*setup)
                self._osqp.update_settings(rho=self._state.rho)
            self._osqp.update(q=q, l=low, u=high)
            # Set explicitly, so that the iteration hangs on nothing but the state.
            self._osqp.warm_start(x=self._state.x, y=self._state.y)
        return self._osqp.solve(raise_error=False), setup

    def _remember(self, setup: tuple[Array, Array, Array], x: Array, y: Array) -> None:
        # OSQP adapts rho as it goes; its Python class does not show the value.
        rho = self._osqp._solver.get_settings().rho
        self._state = ProgramState(setup, x.copy(), y.copy(), rho)


def solve_interior(
    P: sp.csc_matrix, q: Array, A: sp.csc_matrix, low: Array, high: Array, tolerance: float = 1e-9
) -> tuple[Array, str]:
    """Solves one quadratic program by PIQP's proximal interior point method.

    Returns:
        The minimiser and "solved", or the last iterate and the solver's word for what happened.
    """
    rows = sp.csr_matrix(A)
    equal = np.equal(low, high)
    solver = interior_solver(tolerance)
    solver.setup(
        sp.csc_matrix(P),
        q,
        sp.csc_matrix(rows[equal]),
        low[equal],
        sp.csc_matrix(rows[~equal]),
        low[~equal],
        high[~equal],
    )
    status = solver.solve()
    x = np.array(solver.result.x)
    if status == piqp.PIQP_SOLVED and np.all(np.isfinite(x)):
        return x, "solved"
    return x, status.name.removeprefix("PIQP_").lower().replace("_", " ")
