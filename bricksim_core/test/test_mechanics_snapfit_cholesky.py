# SPDX-License-Identifier: Apache-2.0
"""Block factorizations against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from bricksim_core.mechanics.snapfit import cholesky, dissection
from bricksim_core.mechanics.snapfit.cholesky import (
    Band,
    BandCholesky,
    BlockCholesky,
    Entries,
    entries_of,
    swept_order,
)
from bricksim_core.mechanics.snapfit.dissection import Dissection, dissect


def random_problem(rng: np.random.Generator, count: int):
    """Points in a slab, edges between near ones, and a positive definite block matrix on them."""
    points = rng.uniform(size=(count, 3)) * [4.0, 2.0, 1.0]
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    a, b = np.nonzero(np.triu(distance < 0.6, 1))
    dense = np.zeros((count, 6, count, 6))
    for i, j in zip(a.tolist(), b.tolist(), strict=True):
        block = rng.normal(size=(6, 12))
        square = block.T @ block
        for row, r in ((i, slice(0, 6)), (j, slice(6, 12))):
            for column, c in ((i, slice(0, 6)), (j, slice(6, 12))):
                dense[row, :, column] += square[r, c]
    dense[np.arange(count), :, np.arange(count)] += np.eye(6)
    return points, a, b, dense.reshape(6 * count, 6 * count)


def entries(order: np.ndarray, dense: np.ndarray) -> Entries:
    count = len(order)
    blocks = dense.reshape(count, 6, count, 6).transpose(0, 2, 1, 3)
    blocks = blocks[order][:, order]
    row, column = np.nonzero(np.tril(np.abs(blocks).max(axis=(2, 3)) > 0.0))
    value = blocks[row, column].swapaxes(1, 2)
    return entries_of(row, column, value, count)


def factored(tree: Dissection, dense: np.ndarray, known=()) -> BlockCholesky:
    return BlockCholesky(tree, entries(tree.order, dense), known)


def banded(points: np.ndarray, a: np.ndarray, b: np.ndarray, dense: np.ndarray) -> BandCholesky:
    order = swept_order(points, a, b)
    assert order is not None
    known = entries(order, dense)
    return BandCholesky(order, Band(known.row, known.column, len(order)).filled(known.value))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(dissection, "LEAF", 5)


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_solves_as_dense_algebra_does(count):
    rng = np.random.default_rng(count)
    points, a, b, dense = random_problem(rng, count)
    tree = dissect(points, a, b)
    assert sorted(tree.order.tolist()) == list(range(count))
    if count == 60:
        assert len(tree) > 8
    factors = factored(tree, dense), banded(points, a, b, dense)
    one, many = rng.normal(size=6 * count), rng.normal(size=(6 * count, 5))
    single = np.zeros((6 * count, 2))  # columns that touch one node each
    single[0, 0], single[-1, 1] = 1.0, -2.0
    for factor in factors:
        for loads in (one, many, single):
            assert factor.solve(loads) == pytest.approx(np.linalg.solve(dense, loads), abs=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_left_keeps_fronts_that_are_those_of_a_new_factorization(seed):
    """Nodes go; fronts that nothing changed below are taken over, and are right bit by bit."""
    rng = np.random.default_rng(seed)
    points, a, b, dense = random_problem(rng, 60)
    tree = dissect(points, a, b)
    fronts = factored(tree, dense).fronts
    gone = np.argsort(points @ [1.0, 1.0, 0.5])[: int(rng.integers(1, 12))]
    kept = np.ones(60, dtype=bool)
    kept[gone] = False
    changed = np.zeros(60, dtype=bool)
    for ends, others in ((a, b), (b, a)):
        changed[ends[kept[ends] & ~kept[others]]] = True
    rest, same = tree.without(kept, changed)
    rows = np.repeat(kept, 6)
    left = dense[np.ix_(rows, rows)]
    # Edges of those that went leave the diagonal blocks as well, as joints do.
    for node in np.flatnonzero(changed[kept]).tolist():
        left[6 * node : 6 * node + 6, 6 * node : 6 * node + 6] += np.eye(6)
    assert (same >= 0).any()
    known = [fronts[block] if block >= 0 else None for block in same.tolist()]
    taken = factored(rest, left, known)
    fresh = factored(rest, left)
    loads = rng.normal(size=len(left))
    assert np.array_equal(taken.solve(loads), fresh.solve(loads))
    assert fresh.solve(loads) == pytest.approx(np.linalg.solve(left, loads), abs=1e-9)


def test_what_is_not_positive_definite_is_refused():
    points, a, b, dense = random_problem(np.random.default_rng(3), 12)
    indefinite = dense - 100.0 * np.eye(len(dense))
    with pytest.raises(np.linalg.LinAlgError):
        factored(dissect(points, a, b), indefinite)
    with pytest.raises(np.linalg.LinAlgError):
        banded(points, a, b, indefinite)


def test_a_wide_band_is_left_to_fronts(monkeypatch):
    points, a, b, _ = random_problem(np.random.default_rng(1), 40)
    monkeypatch.setattr(cholesky, "BAND", 1e4)
    assert swept_order(points, a, b) is None
