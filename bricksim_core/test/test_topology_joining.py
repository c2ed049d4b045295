# SPDX-License-Identifier: Apache-2.0
"""Many connections at once against the same connections one after the other, and boxes by cells."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanics_cases import random_structure

from bricksim_core.errors import (
    AlreadyConnectedError,
    CollisionError,
    InconsistentTransformError,
    NoOverlapError,
    TopologyError,
    UnknownIdError,
)
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph, Connection, GridPose
from bricksim_core.topology.faces import facing_pairs
from bricksim_core.topology.neighbours import overlapping_pairs, stacked_pairs

BRICK = BrickShape(2, 4)


def seen(graph):
    """Everything that can be seen of a graph."""
    parts = {p: (graph.grid_pose(p), graph.component_of(p)) for p in graph.part_ids}
    edges = {tuple(sorted(e)): d["connections"] for *e, d in graph.graph.edges(data=True)}
    return graph.component_ids, parts, dict(graph.connections), edges, graph.next_connection_id


def connect_each(graph, connections):
    for c in connections:
        graph.connect(c.stud_part, c.hole_part, c.offset, c.yaw, connection_id=c.id, closure=False)


def loose_copy(graph, rng):
    """The same parts, unconnected, each somewhere in a frame of its own."""
    loose = BrickTopologyGraph()
    for part in graph.parts():
        x, y, z, yaw = rng.integers(4, size=4).tolist()
        grid = GridPose(x, y, z, yaw)
        loose.add_part(part.shape, part_id=part.id, grid=grid)
    return loose


@pytest.mark.parametrize("seed", range(60))
def test_all_at_once_equals_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    source = random_structure(rng, int(rng.integers(1, 25)))
    connections = list(source.connections.values())
    rng.shuffle(connections)
    # Some stay away, so that several components are left; some are there before.
    connections = connections[: int(rng.integers(1, len(connections) + 1))]
    before = int(rng.integers(0, len(connections)))
    one, other = (loose_copy(source, np.random.default_rng(seed)) for _ in range(2))
    for graph in (one, other):
        connect_each(graph, connections[:before])
    connect_each(one, connections[before:])
    other.connect_all(connections[before:])
    assert seen(other) == seen(one)
    # Searches for room and for neighbours find the same later on.
    lower = connections[0].hole_part
    assert joined_later(other, lower) == joined_later(one, lower)
    assert seen(other) == seen(one)


@pytest.mark.parametrize("seed", range(10))
def test_parts_on_one_grid_at_once_equal_those_added_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    source = random_structure(rng, int(rng.integers(2, 25)))
    connections = [c for c in source.connections.values() if rng.random() < 0.7]
    placed = [(part, source.grid_pose(part.id)) for part in source.parts()]
    one = BrickTopologyGraph()
    for part, grid in placed:
        one.add_part(part.shape, part.color, part_id=part.id, grid=grid)
    one.connect_all(connections)
    other = BrickTopologyGraph.on_grid(placed, connections)
    assert seen(other) == seen(one) and list(other.parts()) == list(one.parts())
    assert other.add_part(BRICK) == one.add_part(BRICK)
    assert other.component_ids == one.component_ids


def joined_later(graph, lower):
    """What comes of putting another brick onto a part."""
    part_id = graph.add_part(BRICK)
    try:
        return graph.connect(lower, part_id, (0, 0), 1)
    except TopologyError as error:
        return str(error)


def good_and(*bad: Connection):
    return [Connection(7, 0, 1, (0, 0), 0), *bad]


@pytest.mark.parametrize(
    ("connections", "error"),
    [
        (good_and(Connection(7, 1, 2, (0, 0), 0)), TopologyError),
        (good_and(Connection(8, 1, 1, (0, 0), 0)), TopologyError),
        (good_and(Connection(8, 1, 99, (0, 0), 0)), UnknownIdError),
        (good_and(Connection(8, 3, 2, (0, 0), 0)), TopologyError),
        (good_and(Connection(8, 1, 2, (2, 0), 0)), NoOverlapError),
        (good_and(Connection(8, 0, 1, (0, 0), 0)), AlreadyConnectedError),
        (good_and(Connection(8, 0, 2, (1, 3), 0)), CollisionError),
        (
            good_and(Connection(8, 1, 2, (0, 0), 0), Connection(9, 2, 0, (0, 0), 0)),
            InconsistentTransformError,
        ),
        (good_and(Connection(8, 1, 2, (0, 0), 4)), TopologyError),
    ],
)
def test_one_that_is_refused_leaves_the_graph_as_it_was(connections, error):
    graph = BrickTopologyGraph()
    for _ in range(3):
        graph.add_part(BRICK)
    graph.add_part(BrickShape(2, 4, has_studs=False))
    before = seen(graph)
    with pytest.raises(error) as caught:
        graph.connect_all(connections)
    assert seen(graph) == before
    if connections[-1].yaw < 4:
        with pytest.raises(type(caught.value)) as single:
            connect_each(graph, connections)
        assert str(single.value) == str(caught.value)


def test_part_ids_that_are_in_use_are_refused():
    graph = BrickTopologyGraph()
    for _ in range(3):
        graph.add_part(BRICK)
    graph.connect_all([Connection(0, 0, 1, (0, 0), 0)])
    with pytest.raises(TopologyError, match="connection id 0 is in use"):
        graph.connect_all([Connection(0, 1, 2, (0, 0), 0)])
    with pytest.raises(AlreadyConnectedError):
        graph.connect_all([Connection(1, 0, 1, (0, 0), 0)])
    for bad in (2**53 + 1, -(2**63)):
        with pytest.raises(TopologyError, match=f"connection id is {bad}"):
            graph.connect_all([Connection(bad, 1, 2, (0, 0), 0)])
    graph.connect_all([])
    graph.connect_all([replace(graph.connection(0), id=5, stud_part=1, hole_part=2)])
    assert graph.component_parts(graph.component_of(0)) == [0, 1, 2]


boxes_of_any_place = st.lists(
    st.tuples(*[st.integers(-4, 4)] * 3, *[st.integers(1, 5)] * 3), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=200)
@given(boxes_of_any_place)
def test_pairs_of_boxes_by_their_cells(entries):
    boxes = np.array([(e[:3], np.add(e[:3], e[3:])) for e in entries], dtype=np.int64)
    cells = [
        set(itertools.product(*(range(a, b) for a, b in zip(low, high, strict=True))))
        for low, high in boxes.tolist()
    ]
    count = range(len(entries))
    expected = [(i, j) for i in count for j in count if i < j and cells[i] & cells[j]]
    assert list(zip(*(x.tolist() for x in overlapping_pairs(boxes)), strict=True)) == expected
    facing = [(axis, facing_pairs(boxes, axis)) for axis in range(3)]
    for axis, (low, high) in [*facing, (2, stacked_pairs(boxes))]:
        found = sorted(zip(low.tolist(), high.tolist(), strict=True))
        step = np.eye(3, dtype=int)[axis]
        assert found == [
            (i, j)
            for i in count
            for j in count
            if i != j
            and boxes[i, 1, axis] == boxes[j, 0, axis]
            and {tuple((np.array(c) + step).tolist()) for c in cells[i]} & cells[j]
        ]


def test_many_boxes_in_one_place_and_a_long_row_need_little_memory():
    """Of billions of pairs some are enough to refuse; a row of neighbours has few pairs."""
    tracemalloc.start()
    same = np.tile(np.array([[[0, 0, 0], [2, 4, 3]]]), (60_000, 1, 1))
    low, high = overlapping_pairs(same)
    assert (low[0], high[0]) == (0, 1) and len(low) > 1000
    row = same.copy()
    row[:, :, 1] += 4 * np.arange(60_000)[:, None]
    assert len(overlapping_pairs(row)[0]) == 0
    low, high = facing_pairs(row, 1)
    assert len(low) == 59_999 and (high == low + 1).all()
    assert len(facing_pairs(row, 0)[0]) == len(stacked_pairs(row)[0]) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
