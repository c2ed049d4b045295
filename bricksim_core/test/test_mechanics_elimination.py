# SPDX-License-Identifier: Apache-2.0
"""Sparse Cholesky factorization in a compiled loop, against NumPy's dense one."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.mechanics.elimination import (
    Elimination,
    elimination_of,
    factor,
    products,
    solved,
)


def order_of(count: int, links: list[tuple[int, int]]) -> Elimination:
    lower, upper = np.array(links, dtype=np.int64).reshape(-1, 2).T.copy()
    return elimination_of(count, lower, upper)


def matrix_of(count: int, links: list[tuple[int, int]], rng: np.random.Generator) -> np.ndarray:
    """Positive definite: each link adds the square of a matrix over its bodies, each body one."""
    matrix = np.zeros((6 * count, 6 * count))
    for ends in [*links, *((b, -1) for b in range(count))]:
        rows = np.concatenate([np.arange(6 * b, 6 * b + 6) for b in ends if b >= 0])
        half = rng.normal(size=(len(rows), len(rows)))
        matrix[np.ix_(rows, rows)] += half @ half.T + 1e-3 * np.eye(len(rows))
    return matrix


def blocks_of(matrix: np.ndarray, order: Elimination) -> np.ndarray:
    """Transposed blocks of the lower triangle where the factor has some."""
    body = np.argsort(order.place)
    blocks = np.zeros((len(order.row), 6, 6))
    for j in range(len(body)):
        for at in range(order.start[j], order.start[j + 1]):
            a, b = 6 * body[order.row[at]], 6 * body[j]
            blocks[at] = matrix[a : a + 6, b : b + 6].T
    return blocks


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 14))
    end = st.integers(-1, count - 1)
    pairs = st.tuples(end, end).filter(lambda pair: pair[0] != pair[1])
    return count, draw(st.lists(pairs, max_size=40))


@settings(deadline=None)  # compiles first
@given(graphs(), st.integers(0, 2**32 - 1))
def test_it_solves_what_numpy_solves(graph, seed) -> None:
    count, links = graph
    rng = np.random.default_rng(seed)
    matrix, right = matrix_of(count, links, rng), rng.normal(size=6 * count)
    order = order_of(count, links)
    assert sorted(order.place) == list(range(count))
    for k, (a, b) in enumerate(links):  # found where it was said to be
        if min(a, b) < 0:
            assert order.between[k] == -1
        else:
            low, high = sorted((order.place[a], order.place[b]))
            assert order.start[low] < order.between[k] < order.start[low + 1]
            assert order.row[order.between[k]] == high
    blocks = blocks_of(matrix, order)
    assert factor(blocks, order)
    x = solved(blocks, order, right)
    np.testing.assert_allclose(matrix @ x, right, atol=1e-7 * np.abs(matrix).max())
    np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=1e-6, atol=1e-6)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    links = [(0, 1), (1, 2)]
    order = order_of(3, links)
    matrix = matrix_of(3, links, np.random.default_rng(1))
    matrix -= 1.01 * np.linalg.eigvalsh(matrix)[0] * np.eye(18)
    assert not factor(blocks_of(matrix, order), order)


@pytest.mark.parametrize(
    ("graph", "blocks"),
    [
        # Trees fill nothing in, and a ring one block for each body but three; the last bodies of a
        # hub are in any order.
        (nx.path_graph(30), 59),
        (nx.star_graph(29), 59),
        (nx.balanced_tree(2, 4), 61),
        (nx.cycle_graph(30), 30 + 30 + 27),
        (nx.complete_graph(12), 78),
    ],
)
def test_the_factor_has_the_fewest_blocks(graph, blocks) -> None:
    order = order_of(len(graph), list(graph.edges))
    assert len(order.row) == blocks
    each = np.diff(order.start)
    assert products(order) == sum(n * (n + 1) // 2 for n in each)
