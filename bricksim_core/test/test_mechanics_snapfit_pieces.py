# SPDX-License-Identifier: Apache-2.0
"""Equations that come out of earlier ones against equations that are built anew."""

from __future__ import annotations

import numpy as np
import pytest
from mechanics_cases import random_structure

from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.snapfit import (
    SnapFitModel,
    SnapFitSystem,
    cholesky,
    dissection,
    elastic,
)
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout

MODEL = SnapFitModel()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Lets small structures have trees of blocks, too."""
    monkeypatch.setattr(dissection, "LEAF", 3)
    monkeypatch.setattr(elastic, "DENSE", 60)
    monkeypatch.setattr(cholesky, "BAND", 0.0)


def random_loads(rng: np.random.Generator, layout: ComponentLayout, size: float) -> np.ndarray:
    wrench = rng.normal(size=(len(layout.part_ids), 6)) * [1, 1, 1, 0.01, 0.01, 0.01]
    return size * wrench


def held_in(layout: ComponentLayout, held: set[int]) -> np.ndarray:
    return np.isin(layout.part_ids, list(held))


def taken_over(system: SnapFitSystem) -> int:
    """Fronts that were not computed anew."""
    return sum(front is not None for front in system._structure._dissected[1])


def elastic_wrenches(system: SnapFitSystem, loads: np.ndarray) -> np.ndarray:
    """(C, 6) of the bonded structure."""
    structure = system._structure
    return structure.wrenches(structure.displacements(system._free_loads(loads)[0]))


def assert_same(
    piece: SnapFitSystem,
    fresh: SnapFitSystem,
    rng: np.random.Generator,
    sizes: tuple[float, float] = (0.03, 0.3),
    accuracy: float = 1e-6,
) -> None:
    layout = piece._layout
    assert np.array_equal(piece.contacts.part_a, fresh.contacts.part_a)
    assert np.array_equal(piece.contacts.part_b, fresh.contacts.part_b)
    assert np.array_equal(piece.contacts.position, fresh.contacts.position)
    assert np.array_equal(piece.joints.rows, fresh.joints.rows)
    assert np.array_equal(piece.strength, fresh.strength)
    for size in sizes:
        loads = random_loads(rng, layout, size)
        # Movements are against a part of each system's own where the world holds none.
        strained, want = (elastic_wrenches(s, loads) for s in (piece, fresh))
        assert strained == pytest.approx(want, abs=1e-8 * np.abs(want).max(initial=1e-9))
        for a, b, tolerance in (
            (piece.bonded(loads), fresh.bonded(loads), 1e-7),
            (piece.solve(loads), fresh.solve(loads), accuracy),
        ):
            assert a.status is b.status
            scale = max(1.0, float(b.utilization.max(initial=0.0)))
            assert a.utilization == pytest.approx(b.utilization, abs=tolerance * scale)
            force = tolerance * scale * np.abs(loads).sum()
            assert a.connection_wrench == pytest.approx(b.connection_wrench, abs=force)
            assert a.contact_force == pytest.approx(b.contact_force, abs=force)
            assert a.imbalance == pytest.approx(b.imbalance, abs=1e-9)


def break_up(graph: BrickTopologyGraph, held: set[int], rng: np.random.Generator, breaks: int):
    """Breaks a structure again and again; yields (piece of earlier equations, new equations)."""
    systems = {}
    for component in graph.component_ids:
        layout = graph.layout(component)
        systems[component] = MODEL.system(layout, held_in(layout, held))
    for _ in range(breaks):
        alive = [c for c in graph.component_ids if len(graph.layout(c).connection_ids)]
        if not alive:
            return
        component = int(rng.choice(alive))
        origin = systems.pop(component)
        layout = graph.layout(component)
        if rng.random() < 0.7:  # What has been solved for has fronts to hand down.
            origin.solve(random_loads(rng, layout, 1.0))
        part = int(rng.choice(layout.part_ids))
        bundle = [c.id for c in graph.connections_of(part)]
        gone = bundle if rng.random() < 0.7 else [int(rng.choice(bundle))]
        (pieces,) = graph.disconnect(gone).pieces.values()
        for piece in pieces:
            layout = graph.layout(piece)
            anchored = held_in(layout, held)
            systems[piece] = MODEL.system(layout, anchored, origin=origin)
            yield systems[piece], MODEL.system(layout, anchored)


@pytest.mark.parametrize("seed", range(25))
def test_pieces_of_random_structures(seed):
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(6, 30)))
    held = {int(graph.layout(graph.component_ids[0]).part_ids[0])} if seed % 2 else set()
    for piece, fresh in break_up(graph, held, rng, breaks=6):
        if len(piece.joints):
            assert_same(piece, fresh, rng)


def wall(columns: int, layers: int) -> BrickTopologyGraph:
    lines = [f"4x2 ({4 * i + 2 * (z % 2)},0,{z})" for z in range(layers) for i in range(columns)]
    return parse_structure("\n".join(lines), baseplate=None).graph


def build_up(graph: BrickTopologyGraph, held: set[int], rng: np.random.Generator):
    """Takes a structure apart and joins it again, connection by connection; yields (equations that
    grew out of those of the larger component, new equations)."""
    (component,) = graph.component_ids
    layout = graph.layout(component)
    systems = {component: MODEL.system(layout, held_in(layout, held))}
    ended = [graph.connection(int(i)) for i in layout.connection_ids]
    ended = [c for c in ended if rng.random() < 0.4]
    (pieces,) = graph.disconnect([c.id for c in ended]).pieces.values()
    whole = systems.pop(component)
    for piece in pieces:
        layout = graph.layout(piece)
        systems[piece] = MODEL.system(layout, held_in(layout, held), origin=whole)
    for c in ended:
        lower, upper = (graph.component_of(p) for p in (c.stud_part, c.hole_part))
        larger = max(lower, upper, key=lambda i: len(graph.layout(i).part_ids))
        origin = systems[larger]
        if rng.random() < 0.7:
            origin.bonded(random_loads(rng, origin._layout, 0.1))
        joined = graph.connect(c.stud_part, c.hole_part, c.offset, c.yaw, closure=False)
        for gone in {lower, upper} - {joined.component}:
            del systems[gone]
        layout = graph.layout(joined.component)
        anchored = held_in(layout, held)
        systems[joined.component] = MODEL.system(layout, anchored, origin=origin)
        yield systems[joined.component], MODEL.system(layout, anchored)


@pytest.mark.parametrize("seed", range(12))
def test_joins_of_random_structures(seed):
    """Parts and connections that come are worked into what is there."""
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(20, 45)))
    held = {int(graph.layout(graph.component_ids[0]).part_ids[0])} if seed % 2 else set()
    kept = 0
    for i, (grown, fresh) in enumerate(build_up(graph, held, rng)):
        if i % 3 == 0:
            assert_same(grown, fresh, rng, sizes=(0.01, 0.1), accuracy=5e-6)
        kept += taken_over(grown) if grown._structure.size > elastic.DENSE else 0
    assert kept > 0


@pytest.mark.parametrize("held", [set(), {1}], ids=["free", "held"])
def test_what_did_not_change_is_taken_over(held):
    """A wall loses a corner: the fronts of the other end stay, the answers are those of others."""
    rng = np.random.default_rng(5)
    graph = wall(6, 6)
    (component,) = graph.component_ids
    layout = graph.layout(component)
    origin = MODEL.system(layout, held_in(layout, held))
    origin.solve(random_loads(rng, layout, 0.1))
    corner = int(np.argmax(layout.coms.sum(axis=1)))
    gone = [c.id for c in graph.connections_of(int(layout.part_ids[corner]))]
    graph.disconnect(gone)
    layout = graph.layout(component)
    assert len(layout.part_ids) == 35
    piece = MODEL.system(layout, held_in(layout, held), origin=origin)
    assert taken_over(piece) > 5
    assert taken_over(MODEL.system(layout, held_in(layout, held))) == 0
    assert_same(piece, MODEL.system(layout, held_in(layout, held)), rng)


def test_answers_do_not_hang_on_what_was_solved_before():
    """Bit by bit: a front that is taken over is the one that would be computed."""
    answers = []
    for solved in (False, True):
        rng = np.random.default_rng(9)
        graph = wall(5, 5)
        (component,) = graph.component_ids
        layout = graph.layout(component)
        free = np.zeros(len(layout.part_ids), dtype=bool)
        origin = MODEL.system(layout, free)
        if solved:
            origin.bonded(random_loads(rng, layout, 0.1))
        graph.disconnect([c.id for c in graph.connections_of(int(layout.part_ids[-1]))])
        layout = graph.layout(component)
        piece = MODEL.system(layout, free[1:], origin=origin)
        loads = random_loads(np.random.default_rng(1), layout, 0.1)
        assert (taken_over(piece) > 0) is solved
        answers.append(piece.bonded(loads).utilization)
    assert np.array_equal(*answers)


def test_another_frame_or_other_parts_are_no_piece():
    """A connection broken beneath a part that stays leaves a contact; one more is no piece."""
    rng = np.random.default_rng(2)
    graph = wall(3, 3)
    (component,) = graph.component_ids
    layout = graph.layout(component)
    free = np.zeros(len(layout.part_ids), dtype=bool)
    origin = MODEL.system(layout, free)
    graph.disconnect([int(layout.connection_ids[1])])
    bypassed = graph.layout(component)
    assert len(bypassed.part_ids) == len(layout.part_ids)
    again = MODEL.system(bypassed, free, origin=origin)
    fresh = MODEL.system(bypassed, free)
    assert len(again.pushes) == len(fresh.pushes) == len(origin.pushes) + 4
    assert_same(again, fresh, rng)
    assert_same(MODEL.system(layout, free, origin=again), MODEL.system(layout, free), rng)
