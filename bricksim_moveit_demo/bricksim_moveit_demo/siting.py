# SPDX-License-Identifier: Apache-2.0
"""Where bricks are joined on the table: with room for all that will hang together, in reach.

Bricks are laid out so that each of them can be picked. A sub-assembly grows beyond the place of the
brick that it is joined to: onto bricks that lie there, or out of reach of the arm that carries the
other part of it. Such a brick is moved to a better place before anything is joined to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.connections import (
    component_boxes,
    joined,
    relative_pose,
    seat_in_target,
)
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.exchanging import stand_back
from bricksim_moveit_demo.grasps import boxes_overlap, is_upright
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import own_candidates
from bricksim_moveit_demo.layout import flat
from bricksim_moveit_demo.placing import move, put_down
from bricksim_moveit_demo.planning.scene import brick_name
from bricksim_moveit_demo.reports import InsertionGoal
from bricksim_moveit_demo.world import World, placed_boxes

_GAP = 0.002
"""Least gap of what will hang together to other bricks [m]."""
_ROOM = (0.032, 0.016)
"""The same at a new place, where fingers come down, too [m]; the wider one is looked for first."""
_REACH = (0.3, 0.7)
"""Distances from the base of the nearest arm at which a sub-assembly may lie [m]."""
_PITCH = 0.04
"""Distance of the places that are looked at [m]."""
_EXTENT = 0.8
"""How far from the base of an arm [m]."""
_YAWS = (0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi)
_TRIED = 6
"""How many of them are checked by inverse kinematics."""
_SPACING = 0.05
"""How far apart those are at least [m]."""
_GRASPS = 48
"""How many grasps are looked at for each."""


def prepare(
    hand: Hand,
    movers: Sequence[Hand],
    goals: Sequence[InsertionGoal],
    later: Sequence[InsertionGoal],
) -> None:
    """Moves the bricks that a part is to be pressed onto, where they do not lie well for that.

    Args:
        hand: The arm that is to press.
        movers: Arms that may move them; none: nothing moves.
        goals: Insertions of one part, which stays in the hand from one to the next.
        later: What is joined afterwards.

    Raises:
        UnreachableError: They do not lie well, and there is no better place.
        TaskError: The way there failed.
    """
    world = hand.world
    for number, goal in enumerate(goals):
        part, graph = goal.target, world.graph
        if world.is_fixed(part) or not is_upright(world.part_pose(part)):
            continue
        before = joined(graph, goals[:number])
        carried = frozenset(before.component_parts(before.component_of(goal.part)))
        wholes = [joined(graph, goals[: number + 1])]
        if number == len(goals) - 1 and len(graph.component_parts(graph.component_of(part))) == 1:
            # The more hangs on it, the worse it bears to be moved.
            wholes.insert(0, joined(graph, [*goals, *later]))
        if not movers:  # all that will hang together must have room as it is
            del wholes[1:]
        if not any(_settle(hand, movers, goal, whole, carried) for whole in wholes):
            raise UnreachableError(
                f"brick {goal.part} cannot be joined to brick {part} where that lies, as"
                f" {hand.motion.arm.name} does not reach or has no room, and no place of the table"
                " is better"
            )


# -- inside ---------------------------------------------------------------------------------------


def _settle(
    hand: Hand,
    movers: Sequence[Hand],
    goal: InsertionGoal,
    whole: BrickTopologyGraph,
    carried: Collection[int],
) -> bool:
    """Whether a brick lies well, or was moved to where it does."""
    if _suits(hand, goal, whole, carried):
        return True
    part = goal.target
    for mover in movers:
        put_down(mover)
        candidates = list(itertools.islice(own_candidates(mover, part), _GRASPS))
        for place in itertools.islice(_places(hand, movers, part, whole, carried), _TRIED):
            if not _reached(hand, goal, place):
                continue
            try:
                choice = mover.chooser.choose(candidates, mover.locate, (part, place))
            except PlanningError:
                continue
            for other in movers:
                if other is not mover:
                    stand_back(other)
            move(mover, choice)
            stand_back(mover)
            return True
    return False


def _suits(
    hand: Hand, goal: InsertionGoal, whole: BrickTopologyGraph, carried: Collection[int]
) -> bool:
    """Whether a brick lies where there is room and the arm gets to the seat."""
    world, here = hand.world, hand.world.part_pose(goal.target)
    boxes = component_boxes(whole, goal.target, here).values()
    obstacles = placed_boxes(world, _in_the_way(world, goal.target, carried))
    clear = not any(boxes_overlap(box, obstacles, _GAP).any() for box in boxes)
    return clear and _reached(hand, goal, here)


def _reached(hand: Hand, goal: InsertionGoal, world_T_target: Array) -> bool:
    """Whether an arm gets a part to its seat on a brick that lies at a pose ((4, 4) [m])."""
    graph, chooser = hand.world.graph, hand.chooser
    seat = (goal.part, world_T_target @ seat_in_target(graph, goal))
    scene = chooser.moved(hand.world.planning_scene(), goal.target, world_T_target)
    onto = graph.component_parts(graph.component_of(goal.target))
    scene = scene.allowing((brick_name(goal.part), brick_name(p)) for p in onto)
    options = itertools.islice(own_candidates(hand, goal.part), _GRASPS)
    return bool(chooser.fitting(options, seat, scene))


def _places(
    hand: Hand,
    movers: Sequence[Hand],
    part: int,
    whole: BrickTopologyGraph,
    carried: Collection[int],
) -> Iterator[Array]:
    """(4, 4) poses [m] of a brick at which there is room for a whole, where arms reach it best."""
    bases = np.array([m.motion.arm.world_T_base[:2, 3] for m in movers])
    low, high = _footprint(whole, part)
    blocked = _studs(hand.world, part, carried)
    steps = np.arange(-_EXTENT, _EXTENT, _PITCH)
    offsets = np.array(list(itertools.product(steps, steps)))
    centres = hand.motion.arm.world_T_base[:2, 3] + offsets
    options: list[tuple[float, float, int, Array]] = []
    for yaw in _YAWS:
        turn = _turn(yaw)
        spots = centres[:, None] + 0.5 * (low + high) @ turn.T
        near = np.linalg.norm(spots[:, :, None] - bases, axis=3).min(axis=2)
        for index in np.flatnonzero(
            (near.min(axis=1) > _REACH[0]) & (near.max(axis=1) < _REACH[1])
        ):
            far = round(float(near[index].max()), 2)
            options.append((far, yaw, int(index), centres[index]))
    options.sort(key=lambda option: option[:3])
    for gap in _ROOM:
        tried: list[Array] = []
        margin = gap + 0.5 * STUD_PITCH
        for _, yaw, _, centre in options:
            if any(np.abs(centre - other).max() < _SPACING for other in tried):
                continue
            seen = ((blocked - centre) @ _turn(yaw))[:, None]
            if ((seen > low - margin) & (seen < high + margin)).all(axis=2).any():
                continue
            tried.append(centre)
            yield flat(centre[0], centre[1], yaw)


def _turn(yaw: float) -> Array:
    """(2, 2) rotation in the plane."""
    return np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])


def _footprint(whole: BrickTopologyGraph, part: int) -> tuple[Array, Array]:
    """(P, 2) least and greatest x, y [m] in a part's frame of all that it is connected to."""
    corners = []
    for other in whole.component_parts(whole.component_of(part)):
        half = 0.5 * np.array(whole.part(other).shape.size[:2])
        pose = relative_pose(whole, part, other)
        corners.append([pose[:2, 3] + pose[:2, :2] @ (sign * half) for sign in (-1.0, 1.0)])
    both = np.array(corners)
    return both.min(axis=1), both.max(axis=1)


def _studs(world: World, part: int, carried: Collection[int]) -> Array:
    """(K, 2) x, y [m], world, of all studs of what stands in the way; see `_in_the_way`."""
    spots = [np.zeros((0, 2))]
    for other in _in_the_way(world, part, carried):
        shape = world.graph.part(other).shape
        x = STUD_PITCH * (np.arange(shape.length) - 0.5 * (shape.length - 1))
        y = STUD_PITCH * (np.arange(shape.width) - 0.5 * (shape.width - 1))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        pose = world.part_pose(other)
        spots.append(grid @ pose[:2, :2].T + pose[:2, 3])
    return np.concatenate(spots)


def _in_the_way(world: World, part: int, carried: Collection[int]) -> list[int]:
    """Bricks that neither hang together with one nor are to be joined to it next."""
    graph = world.graph
    own = {*graph.component_parts(graph.component_of(part)), *carried}
    return [p for p in graph.part_ids if p not in own]
