# SPDX-License-Identifier: Apache-2.0
"""Putting bricks down on the table: on a free place, in another grip, on another side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_moveit_demo.choosing import Choice, raised
from bricksim_moveit_demo.connections import component_boxes, relative_pose
from bricksim_moveit_demo.errors import Outcome, PlanningError, TaskError, UnreachableError
from bricksim_moveit_demo.grasps import (
    Grasp,
    Turn,
    boxes_overlap,
    is_upright,
    lifting_grasps,
    turning_grasps,
)
from bricksim_moveit_demo.hand import UP, Hand
from bricksim_moveit_demo.layout import flat
from bricksim_moveit_demo.planning.scene import TABLE, brick_name
from bricksim_moveit_demo.presscheck import stays_whole
from bricksim_moveit_demo.reports import Stage
from bricksim_moveit_demo.world import placed_boxes

_FREE_PLACES = 12
"""How many free places of the table are tried to put a brick down."""
_TRIED_PLACES = 3
"""How many of them are tried for another grip or a turn, each with four yaws."""
_YAWS = (0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi)
_TURNS = 3
"""Turns after which a brick has to be upright: upside down takes two, and one that leans on
something is laid on a face first."""


def put_down(hand: Hand, place: Array | None = None) -> None:
    """Puts what is held on the table and lets go; only lets go of what the world holds.

    Args:
        hand: Holds something.
        place: (4, 4) world_T_part [m] of the held part in the end; None: a free place.

    Raises:
        TaskError: It would fall over there, and stays in the hand; no place can be reached, or
            there is something else.
    """
    motion, p = hand.motion, hand.parameters
    held = motion.held
    if held is None or hand.grasp is None:
        return
    graph = hand.world.graph
    carried = motion.carried()
    if not carried:
        # A task was canceled around a brick that sits already.
        hand.let_go()
        return
    if not stands(hand):
        raise TaskError(
            f"what hangs together with brick {held} would fall over or come apart on the table:"
            f" {motion.arm.name} goes on holding it",
            Outcome.STRUCTURE_UNSTABLE,
        )
    hand.lift_clear()
    if place is None:
        lowest = min(carried, key=lambda part: graph.grid_pose(part).z)
        lowest_T_held = relative_pose(graph, lowest, held)
        places = (pose @ lowest_T_held for pose in free_places(hand, lowest))
    else:
        places = iter([place])
    scene = hand.world.planning_scene()
    resting = scene.allowing((brick_name(part), TABLE) for part in carried)
    failures: list[str] = []
    for world_T_held in places:
        tool = world_T_held @ hand.grasp.part_T_tool
        above = raised(tool, p.approach_height)
        try:
            start = hand.chooser.line_start(scene, resting, above, raised(tool, 0.001))
            motion.go_to_joints([start])
            break
        except PlanningError as error:
            failures.append(str(error))
    else:
        raise UnreachableError(
            f"no free place of the table for brick {held}: " + "; ".join(dict.fromkeys(failures))
        )
    _lower(hand)


def stands(hand: Hand) -> bool:
    """Whether what a hand holds stays as it is when it is put on the table."""
    return stays_whole(hand.world, hand.motion.carried())


def _lower(hand: Hand) -> None:
    """From above a place: down to the table, and lets go."""
    p, motion = hand.parameters, hand.motion
    motion.tare(p.settle_time)
    # What hangs together is set down gently: a joint of two studs broke as its far end landed.
    limit = p.least_press_force if len(motion.carried()) > 1 else None
    hand.pressing(UP, limit).descend(p.approach_height, studs=False)
    motion.controller.give_way(True)
    hand.let_go()


def free_places(
    hand: Hand, part_id: int, yaws: Iterable[float] = (0.0,), count: int | None = _FREE_PLACES
) -> Iterator[Array]:
    """Upright poses of a brick on the table in reach of the arm, away from all other bricks.

    Args:
        hand: The arm.
        part_id: The brick; what it is connected to comes along.
        yaws: Directions of each place, from the direction away from the arm's base [rad].
        count: How many places; None: all.

    Yields:
        (4, 4) world_T_part [m].
    """
    graph = hand.world.graph
    moving = graph.component_parts(graph.component_of(part_id))
    others = [p for p in graph.part_ids if p not in moving]
    obstacles = placed_boxes(hand.world, others)
    base = hand.motion.arm.world_T_base
    found = 0
    for radius, angle in itertools.product((0.45, 0.38, 0.52, 0.6), np.linspace(-1.3, 1.3, 27)):
        clear = []
        for yaw in yaws:
            place = base @ flat(radius * np.cos(angle), radius * np.sin(angle), angle + yaw)
            boxes = component_boxes(graph, part_id, place).values()
            if not any(boxes_overlap(box, obstacles, 4.0 * STUD_PITCH).any() for box in boxes):
                clear.append(place)
        yield from clear
        found += bool(clear)
        if found == count:
            return


def regrasp(
    hand: Hand,
    fitting: Sequence[tuple[int, Grasp]],
    candidates: Iterable[tuple[int, Grasp]],
    seat: tuple[int, Array],
    mover: Hand | None = None,
) -> None:
    """Moves a brick to a free place of the table where it can be taken as its seat needs it.

    Args:
        hand: The arm that is to take it then; holds nothing.
        fitting: Parts and grasps that fit the seat.
        candidates: Parts and grasps for the way to the free place.
        seat: A part of the component and the (4, 4) pose that it is to get [m].
        mover: Another arm that brings it: to places between both; None: the arm itself.

    Raises:
        UnreachableError: There is no such place.
        TaskError: The way there failed.
    """
    part = seat[0]
    places = free_places(hand, part, _YAWS, _FREE_PLACES if mover is None else None)
    if mover is not None:
        base = mover.motion.arm.world_T_base[:2, 3]
        places = iter(sorted(places, key=lambda p: round(float(np.hypot(*(p[:2, 3] - base))), 4)))
    mover = mover or hand
    candidates = tuple(candidates)
    failure: UnreachableError | None = None
    for place in itertools.islice(places, len(_YAWS) * _TRIED_PLACES):
        try:
            hand.chooser.choose(fitting, hand.locate, seat, moved=(part, place))
            choice = mover.chooser.choose(candidates, mover.locate, (part, place))
        except UnreachableError as error:
            failure = failure or error
            continue
        move(mover, choice)
        return
    raise failure or UnreachableError(f"no free place of the table for brick {part}")


def turn_upright(hand: Hand, part_id: int) -> None:
    """Turns a brick that lies on a side, upside down or leans until it stands on its holes.

    The fingers close along the axis of the turn, tilted to one side when they take the brick and
    as much to the other when they let it go. A brick that leans is taken as it is, put on a free
    place and let fall onto a face.

    Raises:
        TaskError: No such grasp works.
    """
    graph = hand.world.graph
    for number in itertools.count():
        pose = hand.locate(part_id)
        if is_upright(pose):
            return
        if number == _TURNS:
            break
        if len(graph.component_parts(graph.component_of(part_id))) > 1:
            raise TaskError(
                f"brick {part_id} lies on a side together with the bricks connected to it: they"
                " cannot be turned",
                Outcome.BRICK_MISSING,
            )
        hand.enter(Stage.RECOVERING)
        shape, p = graph.part(part_id).shape, hand.parameters
        turns = list(turning_grasps(shape, pose, p)) or list(lifting_grasps(shape, pose, p))
        if not turns:
            raise TaskError(
                f"brick {part_id} does not stand upright, and no side of it can be gripped to turn"
                " it",
                Outcome.BRICK_MISSING,
            )
        move(hand, _choose_turn(hand, part_id, pose, turns))
    raise TaskError(
        f"brick {part_id} does not stand upright after {_TURNS} turns", Outcome.BRICK_MISSING
    )


def _choose_turn(hand: Hand, part_id: int, pose: Array, turns: Sequence[Turn]) -> Choice:
    """The first turn for which a free place of the table is found."""
    failure: PlanningError | None = None
    places = list(itertools.islice(free_places(hand, part_id, _YAWS), len(_YAWS) * _TRIED_PLACES))
    for turn, place in itertools.product(turns, places):
        try:
            return hand.chooser.choose(
                [(part_id, turn.grasp)], lambda _: pose, (part_id, place @ turn.rest), up=UP
            )
        except PlanningError as error:
            failure = failure or error
    raise TaskError(
        f"brick {part_id} does not stand upright and cannot be turned: {failure}",
        Outcome.BRICK_MISSING,
    )


def move(hand: Hand, choice: Choice) -> None:
    """Takes a brick from one place of the table to another one."""
    assert choice.above_seat is not None
    hand.grip(choice)
    hand.enter(Stage.TRANSFERRING)
    hand.motion.go_to_joints([choice.above_seat])
    _lower(hand)
