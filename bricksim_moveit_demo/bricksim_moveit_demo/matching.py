# SPDX-License-Identifier: Apache-2.0
"""Which bricks of a scene stand for the parts of a structure that is to be built there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import base_part
from bricksim_moveit_demo.errors import Outcome, TaskError


def find_base(
    structure: Structure,
    graph: BrickTopologyGraph,
    fixed: Iterable[int],
    base: int | None = None,
) -> int:
    """The part of a scene that stands for a structure's base.

    Args:
        structure: What is to be built.
        graph: The scene.
        fixed: Parts that the world holds.
        base: The part that is asked for; None: the fixed part of the same shape.

    Raises:
        TaskError: There is none, or the part that is asked for has another shape.
    """
    shape = structure.graph.part(base_part(structure)).shape
    if base is None:
        found = [p for p in sorted(fixed) if p in graph and graph.part(p).shape == shape]
        if not found:
            raise TaskError(
                f"{structure.name}: no part that the world holds has the base's shape {shape}",
                Outcome.BRICK_MISSING,
            )
        return found[0]
    if base not in graph or graph.part(base).shape != shape:
        there = graph.part(base).shape if base in graph else "no part"
        raise TaskError(
            f"{structure.name}: base part {base} is {there}, expected {shape}",
            Outcome.INVALID_GOAL,
        )
    return base


def match_bricks(
    structure: Structure,
    graph: BrickTopologyGraph,
    fixed: Iterable[int],
    base: int,
    order: Sequence[int] = (),
) -> dict[int, int]:
    """Scene part by structure part: what is in place already, else loose bricks, if there are any.

    A brick must have the part's shape; one of its colour is taken before others, and of these the
    one with the least id.

    Args:
        structure: What is to be built.
        graph: The scene.
        fixed: Parts that the world holds.
        base: Part of the scene that stands for the structure's base.
        order: Structure parts in the order in which they are served, the rest after them.
    """
    fixed = frozenset(fixed)
    own_base = base_part(structure)
    chosen = {own_base: base, **_in_place(structure, graph, own_base, base)}
    free = [
        part
        for part in graph.part_ids
        if part not in fixed
        and part not in chosen.values()
        and len(graph.component_parts(graph.component_of(part))) == 1
    ]
    wanted = dict.fromkeys([*order, *structure.graph.part_ids])
    for part in [p for p in wanted if p not in chosen]:
        model = structure.graph.part(part)
        fitting = [p for p in free if graph.part(p).shape == model.shape]
        if not fitting:
            continue
        best = min(fitting, key=lambda p: (graph.part(p).color != model.color, p))
        free.remove(best)
        chosen[part] = best
    return chosen


def require_all(structure: Structure, ids: Mapping[int, int]) -> None:
    """Refuses to build with some bricks only.

    Args:
        structure: What is to be built.
        ids: Scene part by structure part.

    Raises:
        TaskError: Bricks are missing; the text lists them.
    """
    parts = [part for part in structure.graph.parts() if part.id not in ids]
    if parts:
        missing = ", ".join(f"part {part.id} ({part.shape})" for part in parts)
        raise TaskError(f"{structure.name}: no loose brick for {missing}", Outcome.BRICK_MISSING)


def _in_place(
    structure: Structure, graph: BrickTopologyGraph, own_base: int, base: int
) -> dict[int, int]:
    """Structure parts that stand on the scene's base where they belong."""
    own = structure.graph
    there = {
        (graph.relative_grid_pose(base, other), graph.part(other).shape): other
        for other in graph.component_parts(graph.component_of(base))
    }
    places = {
        part: (own.relative_grid_pose(own_base, part), own.part(part).shape)
        for part in own.component_parts(own.component_of(own_base))
        if part != own_base
    }
    return {part: there[place] for part, place in places.items() if place in there}
