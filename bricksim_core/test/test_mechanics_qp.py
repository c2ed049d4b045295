# SPDX-License-Identifier: Apache-2.0
"""Quadratic programs against answers known by hand and by optimality conditions."""

import os
import signal
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bricksim_core.mechanics import qp
from bricksim_core.mechanics.qp import Program, QpSettings, solve_interior
from bricksim_core.mechanics.types import SolveStatus

INFINITY = np.inf
EXACT = QpSettings(method="interior")
FINE = QpSettings(tolerance=1e-9)


def program(settings=FINE, rows=((1.0, 1.0), (1.0, 0.0))):
    """min (x^2 + y^2) / 2 + q'(x, y)."""
    return Program("test", sp.csc_matrix(np.eye(2)), sp.csc_matrix(np.array(rows)), settings)


@pytest.mark.parametrize("settings", [FINE, EXACT])
@pytest.mark.parametrize(
    ("q", "low", "high", "expected"),
    [
        ((-3, -1), (-INFINITY, -INFINITY), (INFINITY, INFINITY), (3, 1)),  # nothing binds
        ((0, 0), (2, -INFINITY), (2, INFINITY), (1, 1)),  # x + y = 2
        ((-3, -1), (-INFINITY, -INFINITY), (2, INFINITY), (2, 0)),  # x + y <= 2
        ((-3, -1), (2, 0), (2, 0.5), (0.5, 1.5)),  # x + y = 2, x <= 1/2
        ((0, 0), (3, 2.5), (INFINITY, INFINITY), (2.5, 0.5)),  # x + y >= 3, x >= 2.5
    ],
)
def test_small_programs_by_hand(settings, q, low, high, expected):
    vectors = [np.array(v, dtype=float) for v in (q, low, high)]
    result = program(settings).solve(*vectors)
    assert result.status is SolveStatus.SOLVED and result.message == ""
    assert_allclose(result.x, expected, atol=1e-6)


@pytest.mark.parametrize("settings", [FINE, EXACT])
def test_a_program_without_solution_fails_and_says_why(settings):
    low, high = np.array([2.0, 0.0]), np.array([2.0, INFINITY])
    impossible = program(settings, rows=((1.0, 1.0), (-1.0, -1.0)))
    result = impossible.solve(np.zeros(2), low, high)
    assert result.status is SolveStatus.FAILED
    assert result.message.startswith("test: ") and "infeasible" in result.message
    # The next solve starts afresh and is not spoilt.
    result = impossible.solve(np.zeros(2), np.array([2.0, -3.0]), high)
    assert result.status is SolveStatus.SOLVED
    assert_allclose(result.x, [1.0, 1.0], atol=1e-6)


def test_redundant_equations_are_no_trouble():
    """The rows of a floating component depend on each other."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(4, 8))
    rows = np.vstack([base, base[:2] + base[2:], rng.normal(size=(3, 8))])
    x0 = rng.normal(size=8)
    low = np.concatenate([rows[:6] @ x0, np.full(3, -INFINITY)])
    high = np.concatenate([rows[:6] @ x0, rows[6:] @ x0 + 0.1])
    x, outcome = solve_interior(
        sp.csc_matrix(np.eye(8)), np.zeros(8), sp.csc_matrix(rows), low, high
    )
    assert outcome == "solved"
    assert_allclose(rows[:6] @ x, low[:6], atol=1e-7)
    assert np.all(rows[6:] @ x <= high[6:] + 1e-7)
    # Least norm: no feasible neighbour is shorter.
    for _ in range(200):
        step = rng.normal(size=8) * 0.01
        step -= np.linalg.pinv(base) @ (base @ step)
        if np.all(rows[6:] @ (x + step) <= high[6:]):
            assert np.linalg.norm(x + step) >= np.linalg.norm(x) - 1e-9


def test_the_fallback_answers_where_osqp_gives_up_and_the_next_solve_goes_on():
    hurried = QpSettings(max_iterations=1)
    problem = program(hurried)
    vectors = [np.array(v, dtype=float) for v in ((-3, -1), (2, 0), (2, 0.5))]
    for _ in range(2):
        result = problem.solve(*vectors)
        assert result.status is SolveStatus.FALLBACK
        assert result.message == "test: OSQP maximum iterations reached after 1 iterations"
        assert_allclose(result.x, [0.5, 1.5], atol=1e-6)


def test_both_solvers_failing_is_told(monkeypatch):
    monkeypatch.setattr(qp, "solve_interior", lambda P, q, *_: (q, "numerics"))
    result = program(QpSettings(max_iterations=1)).solve(-np.ones(2), np.zeros(2), np.ones(2))
    assert result.status is SolveStatus.FAILED and "interior point numerics" in result.message


def interrupted_soon():
    """Sends this process an interrupt from outside, as OSQP does not let other threads run."""
    return subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -INT {os.getpid()}"])


def test_an_interrupt_during_a_solve_goes_to_whoever_handles_interrupts():
    endless = program(QpSettings(tolerance=1e-300, max_iterations=10**9))
    vectors = [np.array(v, dtype=float) for v in ((-3, -1), (2, 0), (2, 0.5))]
    told = []

    def hurry(*_):
        """A handler that does not raise, as a node's, and ends the solve that follows."""
        told.append(True)
        endless._settings = QpSettings()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interrupted_soon(), pytest.raises(KeyboardInterrupt):
            endless.solve(*vectors)
        assert endless.state() is None
        signal.signal(signal.SIGINT, hurry)
        with interrupted_soon():
            result = endless.solve(*vectors)
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == [True]
    assert_array_equal(result.x, program(QpSettings()).solve(*vectors).x)


def test_state_repeats_the_next_solves_bit_by_bit():
    rng = np.random.default_rng(1)
    rows = sp.csc_matrix(rng.normal(size=(30, 20)) * 10.0 ** rng.uniform(-2, 2, size=(30, 1)))
    problem = Program("test", sp.csc_matrix(np.diag(rng.uniform(0, 1, 20))), rows, QpSettings())
    low, high = -np.ones(30), np.ones(30)
    inputs = [100.0 * rng.normal(size=20) for _ in range(5)]
    for q in inputs[:2]:
        problem.solve(q, low, high)
    state = problem.state()
    first = [problem.solve(q, low, high).x for q in inputs[2:]]
    problem.restore(state)
    again = [problem.solve(q, low, high).x for q in inputs[2:]]
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    problem.restore(None)
    assert problem.state() is None
