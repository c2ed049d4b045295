# SPDX-License-Identifier: Apache-2.0
"""Compiled loops against NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.compiled import cholesky_solved


@settings(deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_cholesky_solved_is_the_solution(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    matrix = root @ root.T + n * np.eye(n)
    right = rng.normal(size=n)
    lower = np.linalg.cholesky(matrix)
    lower += np.triu(rng.normal(size=(n, n)), 1)  # not read
    x = cholesky_solved(lower, right)
    assert np.allclose(matrix @ x, right, atol=1e-9 * np.abs(right).max())
