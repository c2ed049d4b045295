# SPDX-License-Identifier: Apache-2.0
"""Compiled loops of the snap-fit solvers against dense linear algebra and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from bricksim_core.mechanics.snapfit.band import (
    band_of_squares,
    factor_band,
    multiplied,
    solve_in_band,
)
from bricksim_core.mechanics.snapfit.pivoting import pivoted


def sparse_rows(rng: np.random.Generator, rows: int, size: int):
    """Each row has entries in a few columns that lie near each other."""
    dense = np.zeros((rows, size))
    for row in dense:
        first = int(rng.integers(size - 4))
        row[first : first + 5] = rng.normal(size=5) * (rng.uniform(size=5) < 0.7)
    matrix = sp.csr_array(dense)
    index = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return dense, (matrix.data, *index)


@pytest.mark.parametrize("size", [6, 12, 60])
def test_bands(size):
    rng = np.random.default_rng(size)
    dense, entries = sparse_rows(rng, 6 * size, size)
    weight = rng.uniform(0.5, 2.0, size=len(dense))
    square = dense.T @ (weight[:, None] * dense)
    band = band_of_squares(*entries, weight, size)
    for below in range(band.shape[1]):
        lower = np.pad(np.diagonal(square, -below), (0, below))
        assert band[: len(lower), below] == pytest.approx(lower, abs=1e-12)
    x = rng.normal(size=(size, 3))
    assert multiplied(*entries, x[:, 0].copy()) == pytest.approx(dense @ x[:, 0], abs=1e-12)
    assert factor_band(band)
    right = square @ x
    solve_in_band(band, right)
    assert right == pytest.approx(x, abs=1e-8)


def test_a_matrix_that_is_not_positive_definite_is_told():
    band = np.zeros((6, 6))
    band[:, 0], band[4, 1] = 1.0, 2.0
    assert not factor_band(band)


def search(matrix: np.ndarray, target: np.ndarray, active: np.ndarray):
    """`pivoted` from a guess, with tolerances of rounding."""
    little = np.full(len(target), 1e-10)
    return pivoted(matrix, target, little, little, 0, active, np.empty_like(matrix), -1)


@pytest.mark.parametrize("seed", range(20))
def test_pivots_find_the_least_squares_with_positive_unknowns(seed):
    """z >= 0 with M z - q >= 0, complementary, is least |A z - b| over z >= 0."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 60))
    root = rng.normal(size=(count + 5, count)) + 0.5  # positive couplings: hard for block pivots
    right = rng.normal(size=count + 5)
    matrix, target = root.T @ root, root.T @ right
    active = rng.uniform(size=count) < 0.5
    value, size, found = search(matrix, target, active)
    assert found and size == np.count_nonzero(active)
    assert value == pytest.approx(nnls(root, right)[0], abs=1e-7)


def test_pivots_go_on_from_a_known_factor():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(30, 20))
    matrix, right = root.T @ root, rng.normal(size=30)
    little, upper = np.full(20, 1e-10), np.empty((20, 20))
    active = np.zeros(20, dtype=bool)
    _, known, _ = pivoted(matrix, root.T @ right, little, little, 0, active, upper, -1)
    other = right + 1e-3 * rng.normal(size=30)
    value, _, found = pivoted(matrix, root.T @ other, little, little, 0, active, upper, known)
    assert found
    assert value == pytest.approx(nnls(root, other)[0], abs=1e-7)


def test_pivots_give_up_where_the_matrix_is_not_positive_definite():
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    value, size, found = search(matrix, np.ones(2), np.ones(2, dtype=bool))
    assert not found and size == -1 and len(value) == 2
