# SPDX-License-Identifier: Apache-2.0
"""Edits for engines with a body per brick: replayed on a list of bodies, welds and filters."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from bricksim_core.engines.protocol import BodySpec
from bricksim_core.engines.welded import FilterPrim, WeldedScene
from bricksim_core.errors import EngineError
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph


class Replay:
    """What an engine would hold after the edits."""

    def __init__(self) -> None:
        self.scene = WeldedScene()
        self.poses: dict[int, np.ndarray] = {}
        self.fixed: dict[int, bool] = {}
        self.welds: dict[tuple[int, int], object] = {}
        self.filters: dict[FilterPrim, list[FilterPrim]] = {}

    def update(self, removed, added, seated=None):
        edits = self.scene.update(removed, added, seated)
        for pair in edits.unwelded:
            del self.welds[pair]
        for part in edits.deleted:
            assert not any(part in pair for pair in self.welds)
            del self.poses[part], self.fixed[part]
            self.filters = {k: v for k, v in self.filters.items() if k.part_id != part}
        for body in edits.created:
            assert body.part_id not in self.poses
            self.poses[body.part_id], self.fixed[body.part_id] = body.world_T_part, body.fixed
        for body in edits.moved:
            self.poses[body.part_id] = body.world_T_part
        for part, fixed in edits.held.items():
            assert self.fixed[part] != fixed
            self.fixed[part] = fixed
        for prim, targets in edits.filters.items():
            assert prim.part_id in self.poses
            self.filters[prim] = targets
        for weld in edits.welded:
            assert weld.pair not in self.welds
            self.welds[weld.pair] = weld
        return edits


def _spec(graph, component, pose=None, fixed=False, twist=(0.0,) * 6):
    layout = graph.layout(component)
    pose = np.eye(4) if pose is None else pose
    return BodySpec(
        component, layout, pose, np.array(twist), fixed, ((255, 255, 255),) * len(layout.part_ids)
    )


def _tower(n, shape=BrickShape(4, 2)):
    graph = BrickTopologyGraph()
    ids = [graph.add_part(shape) for _ in range(n)]
    for low, high in itertools.pairwise(ids):
        graph.connect(low, high, (1, 0) if low % 2 else (0, 0), 0)
    return graph, ids


def _check(replay, specs):
    """The engine's state must be what the components of the scene ask for, from scratch."""
    parts = {p: s for s in specs.values() for p in s.layout.part_ids.tolist()}
    assert replay.poses.keys() == parts.keys()
    assert replay.fixed == {p: s.fixed for p, s in parts.items()}
    assert replay.welds.keys() == replay.scene.welds
    for spec in specs.values():
        ids = spec.layout.part_ids.tolist()
        inside = [pair for pair in replay.welds if set(pair) <= set(ids)]
        if spec.fixed:
            assert not inside
            continue
        graph = nx.Graph(inside)
        graph.add_nodes_from(ids)
        assert nx.is_connected(graph)
        poses = dict(zip(ids, spec.world_T_component @ spec.layout.component_T_parts, strict=True))
        for pair in inside:
            weld = replay.welds[pair]
            # Both sides of a weld name the same frame of the world.
            np.testing.assert_allclose(
                poses[pair[0]] @ weld.a_T_weld, poses[pair[1]] @ weld.b_T_weld, atol=1e-12
            )
        filtered = {
            frozenset((k.part_id, t.part_id))
            for k, targets in replay.filters.items()
            for t in targets
            if k.shape == "brick" and {k.part_id, t.part_id} <= set(ids)
        }
        connected = zip(spec.layout.stud_index, spec.layout.hole_index, strict=True)
        assert {frozenset((ids[i], ids[j])) for i, j in connected} <= filtered
    for prim, targets in replay.filters.items():
        for target in targets:
            same = parts[prim.part_id] is parts[target.part_id]
            assert same == (prim.shape == "brick"), (prim, target)


@pytest.mark.parametrize("seed", range(6))
def test_random_joins_breaks_spawns_and_removals_leave_what_a_fresh_scene_would_hold(seed):
    rng = np.random.default_rng(seed)
    graph, replay, specs = BrickTopologyGraph(), Replay(), {}

    def refresh(*touched):
        removed = [c for c in touched if c in specs]
        for c in removed:
            del specs[c]
        fresh = [c for c in graph.component_ids if c not in specs]
        for c in fresh:
            specs[c] = _spec(graph, c, fixed=bool(rng.random() < 0.15))
        replay.update(removed, [specs[c] for c in fresh])
        _check(replay, specs)

    for _ in range(150):
        kind = rng.random()
        if kind < 0.35 or len(graph) < 4:
            graph.add_part(BrickShape(int(rng.integers(1, 5)), 2))
            refresh()
        elif kind < 0.75:
            a, b = rng.choice(graph.part_ids, 2, replace=False).tolist()
            touched = {graph.component_of(a), graph.component_of(b)}
            try:
                graph.connect(a, b, tuple(rng.integers(-1, 3, 2).tolist()), int(rng.integers(4)))
            except Exception:
                continue
            refresh(*touched)
        elif kind < 0.92 and graph.connections:
            connection = graph.connection(int(rng.choice(list(graph.connections))))
            touched = {graph.component_of(connection.stud_part)}
            graph.disconnect([connection.id])
            refresh(*touched)
        else:
            part = int(rng.choice(graph.part_ids))
            touched = {graph.component_of(part)}
            graph.remove_part(part)
            refresh(*touched)


def test_pressing_a_brick_onto_fifty_edits_little():
    graph, ids = _tower(50)
    replay = Replay()
    component = graph.component_of(ids[0])
    single = graph.add_part(BrickShape(2, 2))
    own = graph.component_of(single)
    replay.update([], [_spec(graph, component), _spec(graph, own)])
    joined = graph.connect(ids[-1], single, (0, 0), 0)
    edits = replay.update([component, own], [_spec(graph, joined.component)])
    assert len(edits.welded) <= 5
    assert len(edits.unwelded) <= 2
    assert edits.filters.keys() == {FilterPrim(single)}
    assert not edits.created
    assert not edits.deleted


def test_seated_studs_ignore_the_body_above_until_the_simulator_says_otherwise():
    graph, (low, high) = _tower(2)
    replay = Replay()
    replay.update([], [_spec(graph, graph.component_of(low))])
    whole = graph.component_of(low)
    graph.disconnect(list(graph.connections))
    pieces = [_spec(graph, c) for c in graph.component_ids]
    replay.update([whole], pieces, [(low, high)])
    studs, body = FilterPrim(low, "studs"), FilterPrim(high, "body")
    assert replay.filters[studs] == [body]
    assert replay.update([], []).filters == {}
    replay.update([pieces[1].component], [pieces[1]])
    assert replay.filters[studs] == [body]
    replay.update([], [], [])
    assert replay.filters[studs] == []


def test_a_seat_ends_with_its_brick_and_with_a_new_connection():
    graph, (low, high) = _tower(2)
    scene = WeldedScene()
    connection = next(iter(graph.connections))
    graph.disconnect([connection])
    pieces = [_spec(graph, c) for c in graph.component_ids]
    scene.update([], pieces, [(low, high)])
    assert scene.seated == {(low, high)}
    scene.update([pieces[1].component], [])
    assert scene.seated == frozenset()
    scene.update([], [pieces[1]], [(low, high)])
    graph.connect(low, high, (0, 0), 0)
    edits = scene.update(
        [p.component for p in pieces], [_spec(graph, graph.component_of(low))], [(low, high)]
    )
    assert scene.seated == frozenset()
    assert edits.filters[FilterPrim(low, "studs")] == []


def test_bodies_move_rigidly_with_their_component():
    graph, ids = _tower(3)
    spec = _spec(graph, graph.component_of(ids[0]), twist=(0.1, 0.2, 0.3, 1.0, -2.0, 3.0))
    edits = WeldedScene().update([], [spec])
    total = sum(b.shape.mass for b in edits.created)
    momentum = sum(b.shape.mass * b.twist[:3] for b in edits.created)
    np.testing.assert_allclose(momentum / total, [0.1, 0.2, 0.3], atol=1e-12)
    for body in edits.created:
        np.testing.assert_allclose(body.twist[3:], [1.0, -2.0, 3.0])


def test_a_fixed_component_needs_no_welds_and_gets_them_when_released():
    graph, ids = _tower(8)
    component = graph.component_of(ids[0])
    replay = Replay()
    replay.update([], [_spec(graph, component, fixed=True)])
    assert not replay.welds
    edits = replay.update([component], [_spec(graph, component)])
    assert edits.held == dict.fromkeys(ids, False)
    assert len(replay.welds) >= 7 + 8


def test_bad_requests_change_nothing():
    graph, ids = _tower(2)
    component = graph.component_of(ids[0])
    scene = WeldedScene()
    spec = _spec(graph, component)
    with pytest.raises(EngineError, match="component 77 is unknown"):
        scene.update([77], [])
    with pytest.raises(EngineError, match="given twice"):
        scene.update([], [spec, spec])
    crooked = _spec(graph, component, pose=np.diag([1.0, 1.0, 2.0, 1.0]))
    with pytest.raises(EngineError, match="rotation matrix"):
        scene.update([], [crooked])
    with pytest.raises(EngineError, match="six finite numbers"):
        scene.update([], [_spec(graph, component, twist=(np.nan,) * 6)])
    assert not scene.bodies
    scene.update([], [spec])
    with pytest.raises(EngineError, match="part 0 is in two components"):
        scene.update([], [BodySpec(99, spec.layout, np.eye(4), np.zeros(6), False, spec.colors)])
