# SPDX-License-Identifier: Apache-2.0
"""Invariants of the Brick Topology Graph under any sequence of changes.

The checks restate the rules from the topology schema (offset and yaw of the hole frame in the stud
frame) and from sets of occupied cells; they share no code with the graph.
"""

import itertools
import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bricksim_core.errors import (
    AlreadyConnectedError,
    CollisionError,
    InconsistentTransformError,
    NoOverlapError,
    TopologyError,
    UnknownIdError,
)
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph, GridPose
from bricksim_core.topology.occupancy import BoxList, Occupancy

TURNS = [np.array([[c, -s], [s, c]]) for c, s in [(1, 0), (0, 1), (-1, 0), (0, -1)]]


def cells(grid, shape):
    """Occupied cells of a part, cell by cell through its rotation."""
    for i, j in itertools.product(range(shape.length), range(shape.width)):
        x, y = TURNS[grid.yaw] @ (i + 0.5, j + 0.5) + (grid.x, grid.y)
        for k in range(shape.height):
            yield int(np.floor(x)), int(np.floor(y)), grid.z + k


def columns(grid, shape):
    return {(x, y) for x, y, _ in cells(grid, shape)}


def coincident(graph, part_ids):
    """All (stud part, hole part) of a component that touch stud to hole, by brute force."""
    pairs = set()
    for a, b in itertools.permutations(part_ids, 2):
        shape_a, shape_b = graph.part(a).shape, graph.part(b).shape
        grid_a, grid_b = graph.grid_pose(a), graph.grid_pose(b)
        touching = shape_a.has_studs and grid_b.z == grid_a.z + shape_a.height
        if touching and columns(grid_a, shape_a) & columns(grid_b, shape_b):
            pairs.add((a, b))
    return pairs


def metric_stud_T_hole(stud, hole, offset, yaw):
    """Pose of the upper part frame in the lower part frame, the explicit formula of the schema."""
    pitch, plate = 0.008, 0.0032
    pose = np.eye(4)
    pose[:2, :2] = TURNS[yaw]
    corner = np.array([-stud.length, -stud.width]) * pitch / 2 + np.array(offset) * pitch
    pose[:2, 3] = corner - TURNS[yaw] @ (np.array([-hole.length, -hole.width]) * pitch / 2)
    pose[2, 3] = stud.height * plate
    return pose


def state(graph):
    """Everything that can be seen of a graph."""
    components = {c: graph.component_parts(c) for c in graph.component_ids}
    parts = {p.id: (p, graph.grid_pose(p.id), graph.component_of(p.id)) for p in graph.parts()}
    edges = {tuple(sorted(e)) for e in graph.graph.edges}
    return components, parts, dict(graph.connections), edges


def check(graph):
    """All invariants."""
    components = {frozenset(graph.component_parts(c)) for c in graph.component_ids}
    assert components == {frozenset(c) for c in nx.connected_components(graph.graph)}
    for component_id in graph.component_ids:
        part_ids = graph.component_parts(component_id)
        assert all(graph.component_of(p) == component_id for p in part_ids)
        taken = [c for p in part_ids for c in cells(graph.grid_pose(p), graph.part(p).shape)]
        assert len(set(taken)) == len(taken)
        layout = graph.layout(component_id)
        assert layout.part_ids.tolist() == part_ids
        poses = dict(zip(part_ids, layout.component_T_parts, strict=True))
        for connection_id in layout.connection_ids.tolist():
            c = graph.connection(connection_id)
            stud, hole = graph.part(c.stud_part).shape, graph.part(c.hole_part).shape
            expected = poses[c.stud_part] @ metric_stud_T_hole(stud, hole, c.offset, c.yaw)
            assert np.allclose(poses[c.hole_part], expected, atol=1e-9)
    bundled = [
        c for _, _, data in graph.graph.edges(data=True) for c in data["connections"].values()
    ]
    assert sorted(c.id for c in bundled) == sorted(graph.connections)
    assert len({c.interfaces for c in bundled}) == len(bundled)


shapes = st.builds(
    BrickShape,
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    has_studs=st.sampled_from([True, True, True, False]),
)
offsets = st.tuples(st.integers(-4, 4), st.integers(-4, 4))


class GraphMachine(RuleBasedStateMachine):
    """Adds, connects, disconnects and removes at random."""

    def __init__(self):
        super().__init__()
        self.graph = BrickTopologyGraph()

    @rule(shape=shapes, grid=st.builds(GridPose, *[st.integers(-3, 3)] * 3, st.integers(0, 3)))
    def add(self, shape, grid):
        part_id = self.graph.add_part(shape, grid=grid)
        assert self.graph.grid_pose(part_id) == grid
        assert self.graph.component_parts(self.graph.component_of(part_id)) == [part_id]

    @precondition(lambda self: len(self.graph) >= 2)
    @rule(data=st.data(), offset=offsets, yaw=st.integers(-4, 7), closure=st.booleans())
    def connect(self, data, offset, yaw, closure):
        graph = self.graph
        stud, hole = data.draw(st.permutations(graph.part_ids))[:2]
        before = state(graph)
        separate = graph.component_of(stud) != graph.component_of(hole)
        apart = coincident(graph, graph.part_ids) if not separate else set()
        sides = [set(graph.component_parts(graph.component_of(p))) for p in (stud, hole)]
        try:
            joined = graph.connect(stud, hole, offset, yaw, closure=closure)
        except TopologyError:
            assert state(graph) == before
            return
        first = joined.connections[0]
        assert (first.stud_part, first.hole_part, first.offset) == (stud, hole, offset)
        assert first.yaw == yaw % 4
        assert len(graph.connections) == len(before[2]) + len(joined.connections)
        made = {(c.stud_part, c.hole_part) for c in joined.connections}
        if not separate:
            assert made == {(stud, hole)} <= apart
            assert joined.absorbed is None
            return
        crossing = {
            pair for pair in coincident(graph, sorted(sides[0] | sides[1]))
            if (pair[0] in sides[0]) != (pair[1] in sides[0])
        }  # fmt: skip
        assert made == (crossing if closure else {(stud, hole)})
        # The parts of the ended component moved by the reported transform, the others not at all.
        components, parts, _, _ = before
        assert joined.absorbed is not None
        for part_id in components[joined.absorbed]:
            moved = joined.component_T_absorbed @ parts[part_id][1]
            assert graph.grid_pose(part_id) == moved
        for part_id in components[joined.component]:
            assert graph.grid_pose(part_id) == parts[part_id][1]

    @precondition(lambda self: len(self.graph.connections) > 0)
    @rule(data=st.data())
    def disconnect(self, data):
        graph = self.graph
        chosen = data.draw(st.lists(st.sampled_from(sorted(graph.connections)), min_size=1))
        before = state(graph)
        separated = graph.disconnect(chosen)
        assert {c.id for c in separated.connections} == set(chosen)
        self.check_pieces(before, separated, removed=None)

    @precondition(lambda self: len(self.graph) > 0)
    @rule(data=st.data())
    def remove(self, data):
        graph = self.graph
        part_id = data.draw(st.sampled_from(graph.part_ids))
        before = state(graph)
        expected = graph.connections_of(part_id)
        separated = graph.remove_part(part_id)
        assert sorted(c.id for c in separated.connections) == [c.id for c in expected]
        assert part_id not in graph
        self.check_pieces(before, separated, removed=part_id)

    def check_pieces(self, before, separated, removed):
        components, parts, _, _ = before
        for component_id, pieces in separated.pieces.items():
            held = sorted(p for piece in pieces for p in self.graph.component_parts(piece))
            assert held == [p for p in components[component_id] if p != removed]
        for part_id, (_, grid, _) in parts.items():
            if part_id != removed:
                assert self.graph.grid_pose(part_id) == grid
        untouched = set(components) - set(separated.pieces)
        assert all(self.graph.component_parts(c) == components[c] for c in untouched)

    @rule(data=st.data())
    def copy(self, data):
        """Goes on with the copy; the original must not change any more."""
        original = self.graph
        before = state(original)
        self.graph = original.copy()
        assert state(self.graph) == before
        if self.graph.part_ids:
            part_id = data.draw(st.sampled_from(self.graph.part_ids))
            assert self.graph.copy().remove_part(part_id) == original.copy().remove_part(part_id)
        added = (self.graph.add_part(BRICK), original.copy().add_part(BRICK))
        assert added[0] == added[1]
        assert self.graph.component_of(added[0]) not in before[0]
        assert state(original) == before

    @invariant()
    def invariants(self):
        check(self.graph)


BRICK = BrickShape(4, 2)

TestGraph = GraphMachine.TestCase
TestGraph.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def stack(*shapes, offset=(0, 0)):
    graph = BrickTopologyGraph()
    ids = [graph.add_part(s) for s in shapes]
    for low, high in itertools.pairwise(ids):
        graph.connect(low, high, offset, 0)
    return graph


def test_cutting_out_the_middle_separates_all_pieces():
    """Two cuts at once in a chain whose middle piece is the smallest."""
    graph = stack(*[BRICK] * 7)
    cuts = [c.id for c in graph.connections_of(3)]
    separated = graph.disconnect(cuts)
    assert sorted(sorted(graph.component_parts(p)) for p in separated.pieces[
        next(iter(separated.pieces))
    ]) == [[0, 1, 2], [3], [4, 5, 6]]  # fmt: skip
    check(graph)


def test_removing_the_middle_separates_both_ends():
    graph = stack(*[BRICK] * 5)
    graph.remove_part(2)
    assert sorted(graph.component_parts(c) for c in graph.component_ids) == [[0, 1], [3, 4]]


def test_one_bundle_of_a_ring_is_no_cut():
    """Two towers under one beam on one plate: a ring. One cut leaves it whole, two halve it."""
    graph = BrickTopologyGraph()
    shapes = (BrickShape(8, 2, 1), BrickShape(2, 2), BrickShape(2, 2), BrickShape(8, 2))
    plate, left, right, beam = (graph.add_part(s) for s in shapes)
    graph.connect(plate, left, (0, 0), 0)
    graph.connect(plate, right, (6, 0), 0)
    joined = graph.connect(left, beam, (0, 0), 0)
    assert {(c.stud_part, c.hole_part) for c in joined.connections} == {(left, beam), (right, beam)}
    first = graph.connections_between(plate, left)[0]
    assert graph.disconnect([first.id]).pieces == {joined.component: (joined.component,)}
    second = graph.connections_between(right, beam)[0]
    (pieces,) = graph.disconnect([second.id]).pieces.values()
    assert sorted(graph.component_parts(p) for p in pieces) == [[plate, right], [left, beam]]


def test_conflict_names_the_path():
    graph = stack(BRICK, BRICK, BRICK)
    with pytest.raises(InconsistentTransformError, match="2 - 1 - 0") as error:
        graph.connect(2, 0, (0, 0), 0)
    assert "(0, 0, 3, 0)" in str(error.value) and "(0, 0, -6, 0)" in str(error.value)


def test_conflict_of_a_repeated_connection():
    graph = stack(BRICK, BRICK)
    with pytest.raises(AlreadyConnectedError, match="connection 0"):
        graph.connect(0, 1, (1, 0), 0)


def test_collision_names_both_parts():
    """An arch over a brick that is in the way."""
    graph = BrickTopologyGraph()
    plate, obstacle = graph.add_part(BrickShape(6, 2, 1)), graph.add_part(BrickShape(2, 2))
    graph.connect(plate, obstacle, (2, 0), 0)
    left, beam, leg = (
        graph.add_part(s) for s in (BrickShape(2, 2), BrickShape(6, 2), BrickShape(2, 2, 1))
    )
    graph.connect(left, beam, (0, 0), 0)
    graph.connect(leg, beam, (-2, 0), 0)
    before = state(graph)
    with pytest.raises(CollisionError, match=f"part {obstacle} into part {leg}"):
        graph.connect(plate, left, (0, 0), 0)
    assert state(graph) == before


def test_tile_carries_nothing():
    graph = BrickTopologyGraph()
    tile, brick = graph.add_part(BrickShape(2, 2, 1, has_studs=False)), graph.add_part(BRICK)
    with pytest.raises(TopologyError, match="no studs"):
        graph.connect(tile, brick, (0, 0), 0)


def test_closure_ignores_tiles():
    """A beam comes down onto a brick and a tile of equal height: only the brick connects."""
    graph = BrickTopologyGraph()
    plate, brick, tile, beam = (
        graph.add_part(s)
        for s in (
            BrickShape(8, 2, 1),
            BRICK,
            BrickShape(4, 2, 3, has_studs=False),
            BrickShape(8, 2),
        )
    )
    graph.connect(plate, brick, (0, 0), 0)
    graph.connect(plate, tile, (4, 0), 0)
    joined = graph.connect(brick, beam, (0, 0), 0)
    assert [(c.stud_part, c.hole_part) for c in joined.connections] == [(brick, beam)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 0, (0, 0), 0), TopologyError),
        ((0, 9, (0, 0), 0), UnknownIdError),
        ((9, 0, (0, 0), 0), UnknownIdError),
        ((0, 1, (4, 0), 0), NoOverlapError),
        ((0, 1, (0, -2), 0), NoOverlapError),
        ((0, 1, (0, 0), 2), NoOverlapError),
        ((0, 1, (0.5, 0), 0), TopologyError),
        ((0, 1, (0, 0), 0.5), TopologyError),
    ],
)
def test_refusals_change_nothing(arguments, error):
    graph = BrickTopologyGraph()
    for _ in range(2):
        graph.add_part(BRICK)
    before = state(graph)
    with pytest.raises(error):
        graph.connect(*arguments)
    assert state(graph) == before


def test_other_refusals_change_nothing():
    graph = stack(BRICK, BRICK)
    third = graph.add_part(BRICK)
    before = state(graph)
    wrong: Any = 1.5
    for call in (
        lambda: graph.connect(0, third, (0, 0), 0, connection_id=0),
        lambda: graph.connect(1, third, (0, 0), 0, keep=99),
        lambda: graph.connect(1, third, (0, 0), 0, connection_id=wrong),
        lambda: graph.add_part(BRICK, part_id=1),
        lambda: graph.add_part(BRICK, part_id=wrong),
        lambda: graph.disconnect([0, 7]),
        lambda: graph.remove_part(7),
        lambda: graph.relative_grid_pose(0, third),
    ):
        with pytest.raises(TopologyError):
            call()
        assert state(graph) == before


@pytest.mark.parametrize("bad", [2**53 + 1, -(2**53) - 1, 2**63, 0.0, "0", True])
def test_ids_are_whole_numbers_that_arrays_and_files_keep(bad):
    graph = BrickTopologyGraph()
    last = graph.add_part(BRICK, part_id=2**53)
    first = graph.add_part(BRICK, part_id=-(2**53))
    with pytest.raises(TopologyError, match=f"part id is {bad!r}, expected a whole number of -9"):
        graph.add_part(BRICK, part_id=bad)
    with pytest.raises(TopologyError, match=f"connection id is {bad!r}"):
        graph.connect(first, last, (0, 0), 0, connection_id=bad)
    with pytest.raises(TopologyError, match=f"part id is {2**53 + 1}"):
        graph.add_part(BRICK)  # the one after the last
    graph.connect(first, last, (0, 0), 0, connection_id=2**53)
    layout = graph.layout(graph.component_of(first))
    assert layout.part_ids.tolist() == [first, last] and layout.connection_ids.tolist() == [2**53]


def test_closure_gives_no_id_after_the_last():
    graph = BrickTopologyGraph()
    below, *above = (graph.add_part(BRICK) for _ in range(3))
    top = graph.add_part(BrickShape(8, 2))
    graph.connect(below, above[0], (-2, 0), 0)
    graph.connect(below, above[1], (2, 0), 0)
    with pytest.raises(TopologyError, match=f"connection id is {2**53 + 1}"):
        graph.connect(above[0], top, (0, 0), 0, connection_id=2**53)
    assert len(graph.connections) == 2 and graph.component_parts(graph.component_of(top)) == [top]


@pytest.mark.parametrize("keep_stud", [True, False])
def test_keep_chooses_the_frame(keep_stud):
    graph = BrickTopologyGraph()
    low = graph.add_part(BRICK, grid=GridPose(5, 6, 7, 1))
    high = graph.add_part(BRICK, grid=GridPose(-1, 2, 0, 3))
    kept = graph.component_of(low if keep_stud else high)
    joined = graph.connect(low, high, (5, 2), 2, keep=kept)
    assert joined.component == kept == graph.component_of(low) == graph.component_of(high)
    expected = GridPose(5, 6, 7, 1) if keep_stud else GridPose(-1, 2, 0, 3)
    assert graph.grid_pose(low if keep_stud else high) == expected


def test_layout_is_kept_until_the_component_changes():
    graph = stack(BRICK, BRICK, BRICK)
    other = graph.component_of(graph.add_part(BRICK))
    component = graph.component_of(0)
    before, bystander = graph.layout(component), graph.layout(other)
    assert graph.layout(component) is before
    graph.disconnect([0])
    after = graph.layout(component)
    assert after is not before and len(after.part_ids) + 1 == len(before.part_ids)
    assert graph.layout(other) is bystander
    graph.connect(0, 1, (0, 0), 0)
    assert graph.layout(graph.component_of(0)).part_ids.tolist() == [0, 1, 2]


LAYOUT_ARRAYS = [
    "part_ids",
    "grids",
    "connection_ids",
    "stud_index",
    "hole_index",
    "offsets",
    "yaws",
    "dimensions",
    "masses",
    "component_T_parts",
    "coms",
    "inertias",
    "footprints",
    "boxes",
]


def anew(graph):
    """The same parts, connections and poses in a graph without a past."""
    other = BrickTopologyGraph()
    for part in graph.parts():
        other.add_part(part.shape, part_id=part.id, grid=graph.grid_pose(part.id))
    for c in graph.connections.values():
        other.connect(c.stud_part, c.hole_part, c.offset, c.yaw, connection_id=c.id, closure=False)
    return other


@pytest.mark.parametrize("seed", range(4))
def test_layouts_of_pieces_are_those_of_a_new_graph(seed):
    """Broken again and again, some layouts asked for in between and some parts joined again."""
    rng = random.Random(seed)
    graph = BrickTopologyGraph()
    for x, y, z in itertools.product(range(3), range(2), range(7)):
        brick = BrickShape(4, 2, rng.choice([1, 3]) if z == 6 else 3)
        graph.add_part(brick, grid=GridPose(4 * x + 2 * (z % 2), 2 * y + z // 2 % 2, 3 * z))
    grids = {p.id: graph.grid_pose(p.id) for p in graph.parts()}
    pairs = [
        (low.id, high.id)
        for low, high in itertools.permutations(graph.parts(), 2)
        if grids[high.id].z == grids[low.id].z + low.shape.height
        and columns(grids[low.id], low.shape) & columns(grids[high.id], high.shape)
    ]

    def join(low, high):
        between = grids[low].inverse() @ grids[high]
        graph.connect(low, high, (between.x, between.y), between.yaw, closure=False)

    for pair in pairs:
        join(*pair)
    for turn in range(25):
        ended = rng.sample(sorted(graph.connections), min(3, len(graph.connections)))
        broken = [(graph.connection(i).stud_part, graph.connection(i).hole_part) for i in ended]
        graph.disconnect(ended)
        if turn % 5 == 4:
            join(*broken[0])
        if turn == 12:
            graph.remove_part(rng.choice(graph.part_ids))
        asked = graph.component_ids if turn % 3 == 0 else graph.component_ids[:1]
        expected = anew(graph)
        for component in asked:
            layout = graph.copy().layout(component)
            assert graph.layout(component) is graph.layout(component)
            other = expected.layout(expected.component_of(int(layout.part_ids[0])))
            assert layout.shapes == other.shapes == graph.layout(component).shapes
            for name in LAYOUT_ARRAYS:
                got = getattr(graph.layout(component), name)
                np.testing.assert_array_equal(getattr(layout, name), getattr(other, name))
                np.testing.assert_array_equal(got, getattr(other, name))


def random_wall(rng, layers=6, width=12):
    """Bricks of a wall with gaps: (x, layer, length)."""
    bricks = []
    for layer in range(layers):
        x = rng.randint(0, 2)
        while x < width:
            length = min(rng.randint(1, 4), width - x)
            if rng.random() < 0.85:
                bricks.append((x, layer, length))
            x += length
    return bricks


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_order_of_joining_does_not_matter(seed, turn):
    """One wall, joined in two orders and turned as a whole: same relative poses and connections."""
    rng = random.Random(seed)
    bricks = random_wall(rng)
    touching = [
        (i, j)
        for (i, a), (j, b) in itertools.permutations(enumerate(bricks), 2)
        if b[1] == a[1] + 1 and a[0] < b[0] + b[2] and b[0] < a[0] + a[2]
    ]

    def build(order, grid):
        graph = BrickTopologyGraph()
        for x, _, length in bricks:
            graph.add_part(BrickShape(length, 1), grid=grid @ GridPose(x, 0, 0))
        for low, high in order:
            if graph.component_of(low) != graph.component_of(high):
                graph.connect(low, high, (bricks[high][0] - bricks[low][0], 0), 0)
        return graph

    one = build(touching, GridPose())
    two = build(rng.sample(touching, len(touching)), GridPose(3, -2, 1, turn))
    check(two)
    assert {(*c.interfaces, c.offset, c.yaw) for c in one.connections.values()} == {
        (*c.interfaces, c.offset, c.yaw) for c in two.connections.values()
    }
    assert {(c.stud_part, c.hole_part) for c in one.connections.values()} == set(touching)
    for component_id in one.component_ids:
        first, *others = one.component_parts(component_id)
        for part_id in others:
            assert one.relative_grid_pose(first, part_id) == two.relative_grid_pose(first, part_id)


def test_no_drift_in_a_long_chain():
    """A spiral stair of 1000 bricks: the last pose is the closed form, to the last bit."""
    graph = BrickTopologyGraph()
    graph.add_part(BrickShape(2, 2))
    for part_id in range(1, 1000):
        graph.add_part(BrickShape(2, 2))
        graph.connect(part_id - 1, part_id, (1, 0), 1)
    # One turn of four bricks: offsets (1,0), each step turned by 90 degrees more, sum to zero.
    assert graph.relative_grid_pose(0, 996) == GridPose(0, 0, 996 * 3, 0)
    pose = graph.layout(graph.component_of(0)).component_T_parts
    assert pose[996, 2, 3] - pose[0, 2, 3] == pytest.approx(996 * 0.0096, abs=1e-12)


def test_thousand_bricks():
    """A wall of 1000 bricks on a plate, taken apart brick by brick from the top."""
    graph = BrickTopologyGraph()
    plate = graph.add_part(BrickShape(100, 4, 1))
    rows: list[list[int]] = []
    for row in range(41):
        rows.append([graph.add_part(BRICK) for _ in range(25 - row % 2)])
        for i, part_id in enumerate(rows[row]):
            x = 4 * i + 2 * (row % 2)
            if row == 0:
                graph.connect(plate, part_id, (x, 0), 0)
            else:
                j = min(i, len(rows[row - 1]) - 1)
                graph.connect(rows[row - 1][j], part_id, (x - 4 * j - 2 * ((row - 1) % 2), 0), 0)
    assert len(graph) == 1006 and len(graph.component_ids) == 1
    # Each brick of an upper row rests on two, but for the ends of the longer rows.
    assert len(graph.connections) == 25 + 20 * 24 * 2 + 20 * (23 * 2 + 2)
    layout = graph.layout(graph.component_of(plate))
    assert layout.component_T_parts.shape == (1006, 4, 4)
    for part_ids in rows[::-1]:
        for part_id in part_ids:
            graph.remove_part(part_id)
    assert graph.part_ids == [plate] and not graph.connections


def test_what_is_occupied_is_the_same_by_the_layout():
    """Neighbours by a known layout, parts turned and shifted, against those of parts entered."""
    graph = BrickTopologyGraph()
    for i in range(12):
        graph.add_part(BrickShape(4, 2, 1 + i % 3))
        if i:
            offset, yaw = ((1, 1), 0) if i % 2 else ((3, 0), 1)
            graph.connect(i - 1, i, offset, yaw)
    (component,) = graph._components.values()
    component.occupancy, graph._layouts = None, {}
    entered = graph._occupied(component, 1)
    component.occupancy, layout = None, graph.layout(component.id)
    listed = graph._occupied(component, 1)
    assert isinstance(entered, Occupancy) and isinstance(listed, BoxList)
    for part_id, grid in component.parts.items():
        shape = graph.part(part_id).shape
        assert listed.collision(grid, shape) == entered.collision(grid, shape) == part_id
        for above in (True, False):
            touching = entered.touching(grid, shape, above=above)
            assert listed.touching(grid, shape, above=above) == touching
            assert part_id in (0, 11) or touching
    assert len(set(layout.grids[:, 3].tolist())) > 1
    assert isinstance(graph._occupied(component, 12), Occupancy)


def test_layout_of_a_join_is_that_of_the_whole():
    """What moves is turned, and its ids are between those of the others."""
    graph = BrickTopologyGraph()
    for number, (low, high) in enumerate(((8, 1), (5, 2), (7, 6))):
        graph.add_part(BrickShape(4, 2, 3), part_id=low)
        graph.add_part(BrickShape(2, 2, 1 + number), part_id=high)
        graph.connect(low, high, (number, 0), 0, connection_id=10 - number)
    for pair, yaw, connection_id in (((2, 7), 1, 3), ((1, 5), 3, 12)):
        for component in graph.component_ids:
            _ = graph.layout(component).inertias
        component = graph.connect(*pair, (1, 1), yaw, connection_id=connection_id).component
        layout = graph.layout(component)
        other = graph._new_layout(graph._components[component].parts)
        assert "inertias" in vars(layout) and "inertias" not in vars(other)
        assert layout.shapes == other.shapes and len(layout.part_ids) in (4, 6)
        for name in LAYOUT_ARRAYS:
            np.testing.assert_array_equal(getattr(layout, name), getattr(other, name))
