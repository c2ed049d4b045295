# SPDX-License-Identifier: Apache-2.0
"""Where bricks are joined on the table: with room for all that will hang together, in reach.

Bricks are laid out so that each of them can be picked. A sub-assembly grows beyond the place of the
brick that it is joined to: onto bricks that lie there, or out of reach of the arm that carries the
other part of it. Such a brick is moved to a better place before anything is joined to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

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
from bricksim_moveit_demo.exchanging import stand_back, standing_back
from bricksim_moveit_demo.grasps import Grasp, boxes_overlap, is_upright
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import own_candidates, seat_pose
from bricksim_moveit_demo.layout import flat
from bricksim_moveit_demo.placing import move, put_down
from bricksim_moveit_demo.planning.scene import brick_name
from bricksim_moveit_demo.reports import InsertionGoal
from bricksim_moveit_demo.world import World, placed_boxes

_GAP = 0.002
"""Least gap of what will hang together to other bricks [m]."""
_ROOM = ((0.032, 0.1), (0.016, 0.016))
"""The same at a new place, where fingers come down, too [m], and to what stands firm, which grows
and is as wide as a hand away then; the wider ones are looked for first."""
_REACH = (0.3, 0.7)
"""Distances from the base of the nearest arm at which a sub-assembly may lie [m]."""
_PITCH = 0.04
"""Distance of the places that are looked at [m]."""
_EXTENT = 0.8
"""How far from the base of an arm [m]."""
_YAWS = (0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi)
_TURNED = 0.1
"""How much farther away [m] a place is as good where a sub-assembly need not be turned by a quarter
on its way to the structure."""
_TRIED = 6
"""How many of them are checked by inverse kinematics."""
_SPACING = 0.05
"""How far apart those are at least [m]."""
_GRASPS = 48
"""How many grasps are looked at for each."""
_COMMON = 24
"""How many of them have to fit several seats."""


def prepare(
    hand: Hand,
    movers: Sequence[Hand],
    goals: Sequence[InsertionGoal],
    later: Sequence[InsertionGoal],
    seats: Sequence[InsertionGoal] = (),
    *,
    most: int | None = None,
) -> None:
    """Moves the bricks that a part is to be pressed onto, where they do not lie well for that.

    Args:
        hand: The arm that is to press.
        movers: All arms, which may move them.
        goals: Insertions of one part, which stays in the hand from one to the next.
        later: What is joined afterwards.
        seats: How the whole, and others, are put on what stands firm then.
        most: How many bricks that hang together may be moved, 0: nothing moves; None: all.

    Raises:
        UnreachableError: They do not lie well, and there is no better place.
        TaskError: The way there failed.
    """
    world = hand.world
    # What stays where it is needs the most room.
    for number, goal in reversed(list(enumerate(goals))):
        part, graph = goal.target, world.graph
        if world.is_fixed(part) or not is_upright(world.part_pose(part)):
            continue
        before, all_joined = joined(graph, goals[:number]), joined(graph, [*goals, *later])
        carried = frozenset(before.component_parts(before.component_of(goal.part)))
        wholes = [(joined(graph, goals[: number + 1]), False)]
        size = len(graph.component_parts(graph.component_of(part)))
        may_move = most is None or size <= most
        if number == len(goals) - 1 and size == 1:
            # The more hangs on it, the worse it bears to be moved.
            wholes.insert(0, (all_joined, True))
        if not may_move:  # all that will hang together must have room as it is
            del wholes[1:]
        yaw = _final_yaw(world, all_joined, part, seats)
        if not any(
            _suits(hand, movers, goal, whole, carried, roomy)
            or (may_move and _settle(hand, movers, goal, whole, carried, yaw))
            for whole, roomy in wholes
        ):
            raise UnreachableError(
                f"brick {goal.part} cannot be joined to brick {part} where that lies, as"
                f" {hand.motion.arm.name} does not reach or has no room, and no place of the table"
                " is better"
            )
    _require_common_hold(hand, movers, goals)


# -- inside ---------------------------------------------------------------------------------------


def _settle(
    hand: Hand,
    movers: Sequence[Hand],
    goal: InsertionGoal,
    whole: BrickTopologyGraph,
    carried: Collection[int],
    yaw: float,
) -> bool:
    """Whether a brick was moved to where it lies well, if possible with a yaw [rad]."""
    part = goal.target
    for mover in movers:
        put_down(mover)
        stand_back(mover)
    for place in itertools.islice(_places(hand, movers, part, whole, carried, yaw), _TRIED):
        if not _reached(hand, movers, goal, place):
            continue
        for mover in movers:
            candidates = itertools.islice(own_candidates(mover, part), _GRASPS)
            try:
                choice = mover.chooser.choose(candidates, mover.locate, (part, place))
            except PlanningError:
                continue
            move(mover, choice)
            stand_back(mover)
            return True
    return False


def _suits(
    hand: Hand,
    movers: Sequence[Hand],
    goal: InsertionGoal,
    whole: BrickTopologyGraph,
    carried: Collection[int],
    roomy: bool,
) -> bool:
    """Whether a brick lies where there is room and the arm gets to the seat; roomy: for fingers on
    all sides, too, and where some arm reaches each part of the whole."""
    world, here = hand.world, hand.world.part_pose(goal.target)
    boxes = component_boxes(whole, goal.target, here).values()
    obstacles = placed_boxes(world, _in_the_way(world, goal.target, carried))
    gap = _ROOM[0][0] if roomy else _GAP
    if any(boxes_overlap(box, obstacles, gap).any() for box in boxes):
        return False
    nearest = _away(movers, np.array([box.pose[:2, 3] for box in boxes])).min(axis=1)
    return (not roomy or bool(_near(nearest))) and _reached(hand, movers, goal, here)


def _away(arms: Sequence[Hand], spots: Array) -> Array:
    """(..., A) distances [m] of (..., 2) places from the bases of arms."""
    bases = np.array([arm.motion.arm.world_T_base[:2, 3] for arm in arms])
    return np.linalg.norm(spots[..., None, :] - bases, axis=-1)


def _near(distances: Array) -> NDArray[np.bool_]:
    """(...) whether all (..., P) distances [m] from an arm are such that it gets there."""
    return (distances.min(axis=-1) > _REACH[0]) & (distances.max(axis=-1) < _REACH[1])


def _reached(hand: Hand, arms: Sequence[Hand], goal: InsertionGoal, world_T_target: Array) -> bool:
    """Whether an arm gets a part to its seat on a brick that lies at a pose ((4, 4) [m])."""
    options = itertools.islice(own_candidates(hand, goal.part), _GRASPS)
    return bool(_fitting(hand, arms, goal, world_T_target, options))


def _fitting(
    hand: Hand,
    arms: Sequence[Hand],
    goal: InsertionGoal,
    world_T_target: Array,
    options: Iterable[tuple[int, Grasp]],
) -> list[tuple[int, Grasp]]:
    """Grasps with which an arm gets a part to its seat on a brick at a pose ((4, 4) [m]), when the
    others stand back."""
    graph, chooser = hand.world.graph, hand.chooser
    seat = (goal.part, world_T_target @ seat_in_target(graph, goal))
    scene = chooser.moved(hand.world.planning_scene(), goal.target, world_T_target)
    onto = graph.component_parts(graph.component_of(goal.target))
    scene = scene.allowing((brick_name(goal.part), brick_name(p)) for p in onto)
    scene = standing_back(scene, (other for other in arms if other is not hand))
    return chooser.fitting(options, seat, scene)


def _require_common_hold(hand: Hand, arms: Sequence[Hand], goals: Sequence[InsertionGoal]) -> None:
    """Raises `UnreachableError` unless one grasp of a part fits all its seats: it is not let go of
    between them."""
    world, part = hand.world, goals[0].part
    for option in itertools.islice(own_candidates(hand, part), _COMMON):
        if all(
            _fitting(hand, arms, goal, world.part_pose(goal.target), [option]) for goal in goals
        ):
            return
    raise UnreachableError(
        f"{hand.motion.arm.name} does not reach with one grasp of brick {part} all that it is to be"
        f" joined to: {[goal.target for goal in goals]}"
    )


def _places(
    hand: Hand,
    movers: Sequence[Hand],
    part: int,
    whole: BrickTopologyGraph,
    carried: Collection[int],
    wanted: float,
) -> Iterator[Array]:
    """(4, 4) poses [m] of a brick at which there is room for a whole, where all arms reach it best
    and it need not be turned to get a yaw [rad]."""
    low, high = _footprint(whole, part)
    around = _in_the_way(hand.world, part, carried)
    firm = [p for p in around if hand.world.is_fixed(p)]
    studs = (_studs(hand.world, set(around).difference(firm)), _studs(hand.world, firm))
    steps = np.arange(-_EXTENT, _EXTENT, _PITCH)
    offsets = np.array(list(itertools.product(steps, steps)))
    centres = hand.motion.arm.world_T_base[:2, 3] + offsets
    options: list[tuple[float, float, int, Array]] = []
    for quarter in _YAWS:
        yaw = wanted + quarter
        turn = _turn(yaw)
        spots = centres[:, None] + 0.5 * (low + high) @ turn.T
        away = _away(movers, spots)
        # All arms have to do with it: between them is best.
        cost = away.max(axis=(1, 2)) + _TURNED * abs(quarter) / (0.5 * np.pi)
        for index in np.flatnonzero(_near(away.min(axis=2))):
            options.append((round(float(cost[index]), 2), yaw, int(index), centres[index]))
    options.sort(key=lambda option: option[:3])
    for gaps in _ROOM:
        tried: list[Array] = []
        for _, yaw, _, centre in options:
            if any(np.abs(centre - other).max() < _SPACING for other in tried):
                continue
            if any(
                _covers(low, high, gap + 0.5 * STUD_PITCH, (spots - centre) @ _turn(yaw))
                for gap, spots in zip(gaps, studs, strict=True)
            ):
                continue
            tried.append(centre)
            yield flat(centre[0], centre[1], yaw)


def _covers(low: Array, high: Array, margin: float, spots: Array) -> bool:
    """Whether any of (K, 2) spots lies in one of the rectangles ((P, 2) corners) or beside it."""
    seen = spots[:, None]
    return bool(((seen > low - margin) & (seen < high + margin)).all(axis=2).any())


def _final_yaw(
    world: World, whole: BrickTopologyGraph, part: int, seats: Sequence[InsertionGoal]
) -> float:
    """Yaw [rad] that a part has in the structure in the end; 0 where that does not stand yet."""
    for seat in seats:
        if world.is_fixed(seat.target) and whole.component_of(seat.part) == whole.component_of(
            part
        ):
            final = seat_pose(world, seat) @ relative_pose(whole, seat.part, part)
            return float(np.arctan2(final[1, 0], final[0, 0]))
    return 0.0


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


def _studs(world: World, parts: Iterable[int]) -> Array:
    """(K, 2) x, y [m], world, of all studs of some bricks."""
    spots = [np.zeros((0, 2))]
    for other in sorted(parts):
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
