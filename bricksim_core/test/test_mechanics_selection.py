# SPDX-License-Identifier: Apache-2.0
"""Break selection against trying every subset."""

import itertools

import networkx as nx
import numpy as np
import pytest

from bricksim_core.mechanics.selection import bodies_joined, select_breaks


def select(edges, utilization, *, parts=8, strength=None, anchored=(), candidates=None):
    utilization = np.array(utilization, dtype=float)
    held = np.isin(np.arange(parts), anchored)
    return select_breaks(
        held,
        np.array([a for a, _ in edges]),
        np.array([b for _, b in edges]),
        utilization,
        utilization > 1.0,
        np.ones(len(edges)) if strength is None else np.array(strength, dtype=float),
        None if candidates is None else np.array(candidates),
    )


def test_nothing_overloaded_breaks_nothing():
    result = select([(0, 1), (1, 2)], [0.5, 1.0])
    assert result.broken.tolist() == [] and result.bypassed.tolist() == []


def test_the_worst_link_of_a_chain_breaks_alone():
    assert select([(0, 1), (1, 2), (2, 3)], [1.1, 1.7, 1.2]).broken.tolist() == [1]


def test_a_sound_detour_holds_an_overloaded_connection():
    result = select([(0, 1), (1, 2), (0, 2)], [1.5, 0.2, 0.2])
    assert result.broken.tolist() == [] and result.bypassed.tolist() == [0]


def test_the_next_worst_breaks_if_the_worst_is_bypassed():
    # 0-1 is bypassed over 2; 3 hangs on 0 by one overloaded connection.
    result = select([(0, 1), (1, 2), (0, 2), (0, 3)], [2.0, 0.2, 0.2, 1.1])
    assert result.broken.tolist() == [3] and result.bypassed.tolist() == [0]


def test_all_parallel_connections_of_the_worst_break_with_it():
    # A brick on two others: it can only come off as a whole.
    result = select([(0, 2), (1, 2), (0, 3), (1, 3)], [1.4, 1.1, 0.3, 0.2])
    assert result.broken.tolist() == [0, 1]


def test_the_weakest_cut_is_chosen():
    # 0 =(strong pair)= 1 -(weak)- 2 and 0 - 2: separating 0 from 2 cuts 0-2 and one of the others.
    edges = [(0, 2), (0, 1), (1, 2)]
    utilization = [1.9, 1.2, 1.2]
    assert select(edges, utilization, strength=[1, 5, 2]).broken.tolist() == [0, 2]
    assert select(edges, utilization, strength=[1, 2, 5]).broken.tolist() == [0, 1]


def test_parts_that_the_world_holds_are_one_body():
    edges = [(0, 1), (1, 2)]
    assert select(edges, [1.5, 1.2], anchored=(0, 2)).broken.tolist() == [0, 1]
    result = select([(0, 1)], [1.5], anchored=(0, 1))
    assert result.broken.tolist() == [] and result.bypassed.tolist() == [0]


def test_only_candidates_start_a_break():
    edges, utilization = [(0, 1), (1, 2)], [1.9, 1.2]
    assert select(edges, utilization, candidates=[False, True]).broken.tolist() == [1]
    assert select(edges, utilization, candidates=[False, False]).broken.tolist() == []


def test_equally_loaded_connections_break_at_the_cheapest_place():
    edges = [(0, 1), (0, 1), (1, 2)]
    assert select(edges, [1.5, 1.5, 1.5]).broken.tolist() == [2]


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_best_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    parts = int(rng.integers(3, 7))
    tree = [(int(rng.integers(k)), k) for k in range(1, parts)]
    extra = [tuple(sorted(rng.choice(parts, 2, replace=False).tolist())) for _ in range(4)]
    edges = tree + extra
    utilization = rng.uniform(0.3, 2.0, len(edges))
    strength = rng.uniform(0.5, 4.0, len(edges))
    anchored = tuple(np.flatnonzero(rng.random(parts) < 0.2).tolist())
    result = select(edges, utilization, parts=parts, strength=strength, anchored=anchored)

    def joined(kept):
        graph = nx.MultiGraph()
        graph.add_nodes_from(range(parts))
        graph.add_edges_from(edges[k] for k in kept)
        graph.add_edges_from(itertools.pairwise(anchored))
        return graph

    overloaded = [k for k in range(len(edges)) if utilization[k] > 1.0]
    sound = joined(k for k in range(len(edges)) if k not in overloaded)
    movable = [k for k in overloaded if not nx.has_path(sound, *edges[k])]
    assert result.bypassed.tolist() == [k for k in overloaded if k not in movable]
    if not movable:
        assert result.broken.tolist() == []
        return
    worst = max(movable, key=lambda k: utilization[k])
    costs = {}
    for size in range(1, len(overloaded) + 1):
        for subset in itertools.combinations(overloaded, size):
            kept = joined(k for k in range(len(edges)) if k not in subset)
            if worst in subset and not nx.has_path(kept, *edges[worst]):
                costs[subset] = sum(strength[k] for k in subset)
    broken = result.broken.tolist()
    assert worst in broken
    rest = joined(k for k in range(len(edges)) if k not in broken)
    assert not nx.has_path(rest, *edges[worst])
    assert sum(strength[k] for k in broken) == pytest.approx(min(costs.values()), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_bodies_are_the_connected_components(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    ends = rng.integers(0, count, (2, int(rng.integers(0, 2 * count))))
    anchored = rng.random(count) < (0.0, 0.1, 0.5)[seed % 3]
    world = np.flatnonzero(anchored).tolist()
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(ends.T.tolist())
    graph.add_edges_from(itertools.pairwise(world))
    body = bodies_joined(anchored, *ends)
    # They are numbered by their first parts.
    bodies = sorted(nx.connected_components(graph), key=min)
    assert [set(np.flatnonzero(body == i).tolist()) for i in range(body.max() + 1)] == bodies


def test_a_long_chain_is_one_body():
    order = np.random.default_rng(0).permutation(2000)
    assert not bodies_joined(np.zeros(2000, dtype=bool), order[:-1], order[1:]).any()
