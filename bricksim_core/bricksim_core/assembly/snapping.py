# SPDX-License-Identifier: Apache-2.0
"""Turns accepted candidates into connections: who moves, where to, and whether there is room."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.assembly.types import Candidate
from bricksim_core.engines.protocol import Engine
from bricksim_core.errors import CollisionError, TopologyError
from bricksim_core.scene import Scene, component_T_other
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection, Joined
from bricksim_core.topology.grid import frame_pose

_EXACT = 1e-6
"""Distance [m, and m per m of rotation] up to which two poses count as the same."""


@dataclass(frozen=True)
class Snap:
    """A join that is about to happen.

    Attributes:
        anchor: Component that stays where it is.
        mover: Component that moves; equal to ``anchor`` if the parts are in one component.
        world_T_mover: (4, 4) where it moves to [m].
    """

    anchor: int
    mover: int
    world_T_mover: Array


def plan_snap(
    scene: Scene,
    stud_part: int,
    hole_part: int,
    offset: tuple[int, int],
    yaw: int,
    gripped: Collection[int] = (),
) -> Snap:
    """Decides who moves: never what the world holds, rather not what a robot grips, else the
    lighter component.

    Raises:
        TopologyError: The world holds both components and they do not fit as they are.
    """
    graph = scene.graph
    below, above = graph.component_of(stud_part), graph.component_of(hole_part)

    def weight(component: int) -> tuple[bool, bool, float, int]:
        held = scene.is_fixed(component)
        return held, component in gripped, scene.mass(component).mass, -component

    anchor, mover = sorted((below, above), key=weight, reverse=True)
    wanted = Connection(-1, stud_part, hole_part, offset, yaw % 4)
    target = scene.pose(anchor) @ frame_pose(component_T_other(graph, wanted, anchor))
    if mover != anchor and scene.is_fixed(mover):
        error = np.abs(target - scene.pose(mover)).max()
        if error > _EXACT:
            raise TopologyError(
                f"parts {stud_part} and {hole_part} are both held and {error * 1e3:.3g} mm off,"
                f" expected at most {_EXACT * 1e3:.3g} mm"
            )
    return Snap(anchor, mover, target)


def require_room(scene: Scene, engine: Engine, snap: Snap, ignore: Collection[int] = ()) -> None:
    """Checks that the snapped component would not be inside of another one.

    Robots do not count: the fingers that press a brick give way.

    Raises:
        CollisionError: It would.
    """
    if snap.mover == snap.anchor:
        return
    if scene.changed:
        scene.commit()
    body = scene.body(snap.mover, snap.world_T_mover)
    others = sorted({snap.anchor, snap.mover, *ignore})
    if engine.overlaps([body], others, robots=False)[0]:
        raise CollisionError(
            f"snapping component {snap.mover} to component {snap.anchor} would put it into"
            " something else"
        )


def apply_candidates(
    scene: Scene, engine: Engine, candidates: Sequence[Candidate], gripped: Collection[int]
) -> tuple[list[tuple[Candidate, Joined]], tuple[Candidate, ...]]:
    """Makes the connections of the accepted candidates, the first one first.

    Bricks that are pressed onto several others at once connect to all of them: components that
    other accepted candidates would join as well do not count as obstacles.

    Returns:
        The joins, and all candidates with those marked that were refused after all.
    """
    accepted = [c for c in candidates if c.accepted]
    joins: list[tuple[Candidate, Joined]] = []
    refused: dict[tuple[int, int], str] = {}
    for candidate in accepted:
        pair = (candidate.stud_part, candidate.hole_part)
        if scene.graph.connections_between(*pair):
            continue  # closure of a join before it
        partners = {
            scene.graph.component_of(part) for c in accepted for part in (c.stud_part, c.hole_part)
        }
        try:
            snap = plan_snap(scene, *pair, candidate.offset, candidate.yaw, gripped)
            require_room(scene, engine, snap, partners)
            joined = scene.join(*pair, candidate.offset, candidate.yaw, snap.anchor)
        except TopologyError as error:
            refused[pair] = str(error)
            continue
        joins.append((candidate, joined))
    # A brick that snapped to one of several may stand in the studs of one that was refused.
    scene.seat(refused)
    marked = tuple(
        replace(c, accepted=False, reason=refused[c.stud_part, c.hole_part])
        if (c.stud_part, c.hole_part) in refused
        else c
        for c in candidates
    )
    return joins, marked
