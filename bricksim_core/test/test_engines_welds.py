# SPDX-License-Identifier: Apache-2.0
"""Weld scheduling: the properties that the paper's scheme promises, on random trees of parts."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.engines.welds import Welds, schedule


def _tree(n: int, seed: int) -> list[tuple[int, int]]:
    tree = nx.random_labeled_tree(n, seed=seed) if n > 1 else nx.empty_graph(n)
    return [(3 * a + 7, 3 * b + 7) for a, b in tree.edges]


def _ids(n: int) -> list[int]:
    return [3 * i + 7 for i in range(n)]


def _degrees(ids: list[int], pairs: frozenset[tuple[int, int]]) -> list[int]:
    return [sum(i in pair for pair in pairs) for i in ids]


structures = st.tuples(st.integers(1, 60), st.integers(0, 10_000), st.sampled_from([2, 4, 6]))


@settings(max_examples=60, deadline=None)
@given(structures)
def test_mesh_is_regular_and_spanning_welds_connect_within_bounds(case):
    n, seed, degree = case
    welds = schedule(_ids(n), _tree(n, seed), degree=degree)
    assert set(_degrees(_ids(n), welds.mesh)) == {min(degree, n - 1)}
    assert nx.is_tree(nx.Graph(list(welds.spanning)) if n > 1 else nx.empty_graph(1))
    assert max(_degrees(_ids(n), welds.spanning)) <= max(degree, 1)
    assert max(_degrees(_ids(n), welds.pairs)) <= 2 * degree
    assert all(a < b for a, b in welds.pairs)


def test_a_base_plate_under_many_bricks_does_not_collect_their_welds():
    star = [(0, i) for i in range(1, 300)]
    welds = schedule(range(300), star)
    assert max(_degrees(list(range(300)), welds.pairs)) <= 8
    assert nx.is_connected(nx.Graph(list(welds.spanning)))


@pytest.mark.parametrize("n", [10, 50, 200, 1000])
def test_diameter_grows_with_the_logarithm_even_where_the_structure_is_a_chain(n):
    chain = list(itertools.pairwise(range(n)))
    graph = nx.Graph(list(schedule(range(n), chain).pairs))
    # A random d-regular graph has diameter log(n) / log(d - 1) + o(log n) (Bollobas, de la Vega
    # 1982); 2 more for small n.
    assert nx.diameter(graph) <= math.log(n) / math.log(3) + 2
    # Expansion: the second eigenvalue of a random 4-regular graph stays near 2 sqrt(3) (Friedman);
    # that of a ring with neighbours of neighbours tends to 4.
    spectrum = sorted(nx.adjacency_spectrum(nx.Graph(list(schedule(range(n), chain).mesh))).real)
    assert spectrum[-2] < 3.75


@settings(max_examples=40, deadline=None)
@given(st.integers(7, 60), st.integers(0, 1000))
def test_pressing_one_brick_on_changes_at_most_d_half_old_and_d_plus_one_new_welds(n, seed):
    edges = _tree(n, seed)
    before = schedule(_ids(n), edges)
    joined = [*edges, (_ids(n)[seed % n], 10_000)]
    after = schedule([*_ids(n), 10_000], joined, before)
    assert len(before.pairs - after.pairs) <= 2
    assert len(after.pairs - before.pairs) <= 5
    assert set(_degrees([*_ids(n), 10_000], after.mesh)) == {4}


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 40), st.integers(6, 40), st.integers(0, 1000))
def test_a_join_keeps_the_larger_piece_and_mixes_both(n, m, seed):
    first, second = _tree(n, seed), _tree(m, seed + 1)
    shifted = [(a + 5000, b + 5000) for a, b in second]
    ids = [*_ids(n), *(i + 5000 for i in _ids(m))]
    left = schedule(_ids(n), first)
    right = schedule([i + 5000 for i in _ids(m)], shifted)
    both = schedule(ids, [*first, *shifted, (7, 5007)], left | right)
    small = min(n, m)
    large = left if n >= m else right
    assert len(large.mesh - both.mesh) <= 2 * small
    crossing = sum((a < 5000) != (b < 5000) for a, b in both.mesh)
    assert crossing >= small / 2
    assert set(_degrees(ids, both.mesh)) == {4}


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000), st.data())
def test_a_break_keeps_what_is_left_and_fills_the_gaps(n, seed, data):
    edges = _tree(n, seed)
    before = schedule(_ids(n), edges)
    cut = data.draw(st.sampled_from(edges))
    pieces = nx.Graph(edges)
    pieces.remove_edge(*cut)
    for part_ids in nx.connected_components(pieces):
        piece = sorted(part_ids)
        inside = [e for e in edges if set(e) <= part_ids and e != cut]
        after = schedule(piece, inside, before)
        left = before.within(piece)
        assert set(_degrees(piece, after.mesh)) == {min(4, len(piece) - 1)}
        gaps = sum(min(4, len(piece) - 1) - d for d in _degrees(piece, left.mesh))
        # Filling a gap takes at most one weld away; a mesh that cannot be filled is made anew.
        if len(piece) > 8:
            assert len(left.mesh - after.mesh) <= max(gaps, 0)
        assert left.spanning <= after.spanning


@settings(max_examples=20, deadline=None)
@given(structures)
def test_the_same_structure_gets_the_same_welds(case):
    n, seed, degree = case
    edges = _tree(n, seed)
    first = schedule(_ids(n), edges, degree=degree)
    again = schedule(reversed(_ids(n)), [(b, a) for a, b in reversed(edges)], degree=degree)
    assert first == again
    assert schedule(_ids(n), edges, first, degree=degree) == first


def test_another_seed_gives_another_mesh():
    assert schedule(range(40), _tree_plain(40), seed=1) != schedule(range(40), _tree_plain(40))


def _tree_plain(n: int) -> list[tuple[int, int]]:
    return list(itertools.pairwise(range(n)))


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_odd_degrees_are_refused(degree):
    with pytest.raises(ValueError, match="even number"):
        schedule([1, 2], [(1, 2)], degree=degree)


def test_disconnected_parts_are_refused():
    with pytest.raises(ValueError, match="2 pieces"):
        schedule([1, 2, 3], [(1, 2)])


def test_welds_within_and_union():
    welds = Welds(frozenset({(1, 2)}), frozenset({(1, 2), (2, 3)}))
    assert welds.pairs == {(1, 2), (2, 3)}
    assert welds.within([2, 3]) == Welds(mesh=frozenset({(2, 3)}))
    assert (welds | Welds(frozenset({(8, 9)}))).spanning == {(1, 2), (8, 9)}
