# SPDX-License-Identifier: Apache-2.0
"""One try of an insertion: pick, transfer, descend until contact, press, let go, verify."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array, inverse, transform_points
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.beside import edges
from bricksim_moveit_demo.connections import (
    Expectation,
    connections_of,
    expectation,
    relative_pose,
    seat_in_target,
)
from bricksim_moveit_demo.errors import Outcome, TaskError, UnreachableError
from bricksim_moveit_demo.grasps import Grasp, grasps, is_upright
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.placing import put_down, regrasp, turn_upright
from bricksim_moveit_demo.presscheck import PressCheck, PressVerdict
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.sighting import Sightings, averaged
from bricksim_moveit_demo.world import World

_KEPT = 24
"""How many grasps are looked at that have to fit several seats."""
_STANDING = 0.001
"""Height over the table, and over that by which a click lifts a brick, up to which it may be let go
of [m]."""


@dataclass(frozen=True, eq=False)
class InsertionTask:
    """What an arm is to do.

    Attributes:
        goal: What goes where.
        wanted: The connections that it is to lead to.
        candidates: Parts and grasps to try before all others.
        release: False: keep holding afterwards.
        then: Where the brick goes next in the same grasp.
    """

    goal: InsertionGoal
    wanted: Expectation
    candidates: tuple[tuple[int, Grasp], ...] = ()
    release: bool = True
    then: tuple[InsertionGoal, ...] = ()


class Bracing(Protocol):
    """A second hand that may bear the press or bring the brick; see `exchanging.Brace`."""

    def bring(
        self,
        fitting: Sequence[tuple[int, Grasp]],
        candidates: Iterable[tuple[int, Grasp]],
        seat: tuple[int, Array],
    ) -> None:
        """Puts the brick where the first hand reaches it; see `placing.regrasp`."""
        ...

    def needed(self) -> bool:
        """Whether what stands there does not bear the press."""
        ...

    def foresee(self) -> None:
        """Raises `TaskError` if the second hand cannot bear it, either; moves nothing but a brick
        that the first one holds already."""
        ...

    def apply(self) -> None:
        """Brings the second hand to its place; raises `TaskError`."""
        ...


def broken_inside(graph: BrickTopologyGraph, job: InsertionTask) -> Iterator[InsertionTask]:
    """Insertions, made one after the other, that join again what is to be inserted as one.

    Raises:
        TaskError: It cannot be joined.
    """
    for key in sorted(job.wanted.connections):
        stud, hole, offset, yaw = key
        inside = {stud, hole}.issubset(job.wanted.parts)
        if inside and key not in connections_of(graph, [hole]):
            goal = InsertionGoal(hole, stud, offset, yaw)
            yield InsertionTask(goal, expectation(graph, goal))


def try_insertion(hand: Hand, job: InsertionTask, bracing: Bracing | None = None) -> None:
    """Picks a brick, if it is not in the hand yet, and presses it onto its seat.

    Args:
        hand: The arm.
        job: What it is to do.
        bracing: A second hand that comes, once the brick is picked, where it has to.

    Raises:
        TaskError: It did not work; the arm stands where it was then.
    """
    world, goal = hand.world, job.goal
    if job.wanted.is_met(world.graph):
        if job.release and hand.motion.held in job.wanted.parts:
            release(hand)
        return
    hand.enter(Stage.PLANNING)
    if _lies_down(world, goal.target):
        put_down(hand)
        turn_upright(hand, goal.target)
    if goal.part not in hand.motion.carried():
        put_down(hand)
        turn_upright(hand, goal.part)
    world_T_seat = observed_seat(hand, goal)
    braced = bracing is not None and bracing.needed()
    if bracing is not None and braced:
        bracing.foresee()
    elif goal.part in hand.motion.carried():
        bearable(hand, job, hand.between)
    if goal.part not in hand.motion.carried():
        holds = None if braced else bearing_holds(hand, job)
        _pick(hand, job, world_T_seat, bracing, holds)
    if bracing is not None and braced:
        bracing.apply()
    _insert(hand, job, world_T_seat)
    hand.enter(Stage.VERIFYING)
    if not job.wanted.is_met(world.graph):
        actual = connections_of(world.graph, job.wanted.parts)
        raise TaskError(
            f"brick {goal.part} has connections {sorted(actual)}, expected"
            f" {sorted(job.wanted.connections)}",
            Outcome.WRONG_CONNECTION,
        )


def _lies_down(world: World, part: int) -> bool:
    """Whether a part lies on the table, not on its holes."""
    if world.is_fixed(part) or is_upright(world.part_pose(part)):
        return False
    group = world.graph.component_parts(world.graph.component_of(part))
    return not any(held in group for held in world.held.values())


def release(hand: Hand) -> None:
    """Lets go of what is joined already; what would fall is put down.

    Raises:
        TaskError: It cannot be put down.
    """
    graph, world = hand.world.graph, hand.world
    carried = hand.motion.carried()
    lowest = min(carried, key=lambda p: graph.grid_pose(p).z, default=None)
    falls = lowest is not None and world.part_pose(lowest)[2, 3] > STUD_HEIGHT + _STANDING
    if falls and hand.held_by_others.isdisjoint(carried):
        put_down(hand)
    else:
        hand.let_go()


def seat_pose(world: World, goal: InsertionGoal) -> Array:
    """(4, 4) world_T_part [m] of a brick in its seat."""
    return world.part_pose(goal.target) @ seat_in_target(world.graph, goal)


def observed_seat(hand: Hand, goal: InsertionGoal) -> Array:
    """(4, 4) world_T_part [m] of a brick in its seat, as perception sees it: of a structure that
    stands firm with all that was seen of it before, of what lies loose with several looks.

    Raises:
        TaskError: The target lies on a side.
    """
    if not is_upright(hand.world.part_pose(goal.target)):
        raise TaskError(
            f"brick {goal.target} does not stand upright: nothing can be pressed onto it",
            Outcome.BRICK_MISSING,
        )
    world, graph = hand.world, hand.world.graph
    here, firm = seat_pose(world, goal), _firm(world, goal.target)
    if firm is None:
        return averaged(world.observe, here)
    base_T_seat = relative_pose(graph, firm, goal.target) @ seat_in_target(graph, goal)
    looks = world.sightings.setdefault(firm, Sightings())
    return averaged(world.observe, here, base_T_seat, looks)


def _firm(world: World, part: int) -> int | None:
    """The part by which the world holds the component of a part; None if it does not."""
    graph = world.graph
    held = world.fixed_parts.intersection(graph.component_parts(graph.component_of(part)))
    return min(held, default=None)


def bearable(hand: Hand, job: InsertionTask, between: Collection[int]) -> PressVerdict:
    """How hard the press may be, with what stands there now.

    Args:
        hand: The arm that presses.
        job: The insertion.
        between: Parts between its fingers.

    Raises:
        TaskError: Not hard enough to connect anything.
    """
    p = hand.parameters
    verdict = press_check(hand, job, between).verdict(p.least_press_force, p.press_force)
    if verdict.force == 0.0:
        raise TaskError(
            f"pressing brick {job.goal.part} on with {p.least_press_force:.1f} N would break what"
            f" is there: {verdict.reason}",
            Outcome.STRUCTURE_UNSTABLE,
        )
    return verdict


def bearing_holds(hand: Hand, job: InsertionTask) -> set[frozenset[int]]:
    """Parts to have between the fingers, each set one or two, so that both sides bear the press.

    Raises:
        TaskError: There are none.
    """
    failure: TaskError | None = None
    holds: set[frozenset[int]] = set()
    for between in dict.fromkeys(grasp.held_with(part) for part, grasp in _candidates(hand, job)):
        try:
            bearable(hand, job, between)
            holds.add(between)
        except TaskError as error:
            failure = failure or error
    if failure is not None and not holds:
        raise failure
    return holds


def press_check(hand: Hand, job: InsertionTask, between: Collection[int]) -> PressCheck:
    """The check of an insertion's press, other hands holding what they hold or pushing back.

    What is held in the air stays where it is; a structure that stands firm does not give way to the
    press and so leaves nothing to a hand that only holds.
    """
    world, support = hand.world, hand.support
    others = [part for part in hand.held_by_others if not world.is_fixed(part)]
    push = None if support is None else (support.part, support.point)
    formed = job.wanted.connections
    return PressCheck(world, job.wanted.parts, between, formed, others, push)


def own_candidates(hand: Hand, part_id: int) -> Iterator[tuple[int, Grasp]]:
    """Grasps of a brick, then of what it is connected to, the topmost first."""
    graph = hand.world.graph
    group = graph.component_parts(graph.component_of(part_id))
    for part in sorted(group, key=lambda p: (p != part_id, -graph.grid_pose(p).z)):
        for grasp in grasps(graph.part(part).shape, hand.parameters):
            yield part, grasp


def _gentle_first(
    hand: Hand, candidates: Iterable[tuple[int, Grasp]], seat: tuple[int, Array]
) -> Iterator[tuple[int, Grasp]]:
    """Candidates in their order, but last those whose fingers press on other parts of the group:
    straightening several parts at once strains the joints between them; or meet the edges of what
    stands flush with the seat where they come down a little off."""
    rough = []
    for part, grasp in candidates:
        presses = hand.chooser.presses_others(part, grasp)
        if presses or hand.chooser.scrapes(part, grasp, seat):
            rough.append((part, grasp))
        else:
            yield part, grasp
    yield from rough


def _candidates(hand: Hand, job: InsertionTask) -> Iterator[tuple[int, Grasp]]:
    """Grasps of what is to be inserted, those that were given first."""
    graph = hand.world.graph
    group = set(graph.component_parts(graph.component_of(job.goal.part)))
    given = (candidate for candidate in job.candidates if candidate[0] in group)
    return itertools.chain(given, own_candidates(hand, job.goal.part))


def _pick(
    hand: Hand,
    job: InsertionTask,
    world_T_seat: Array,
    bracing: Bracing | None,
    holds: Collection[frozenset[int]] | None,
) -> None:
    """Picks the brick with a grasp that fits its seat, after a regrasp if there is no other way, or
    after another arm has brought it; holds it at one of some parts, None: at any."""
    seat = (job.goal.part, world_T_seat)
    skip = hand.attempt - 1

    def candidates() -> Iterator[tuple[int, Grasp]]:
        all_of_them = _candidates(hand, job)
        if holds is not None:
            all_of_them = (c for c in all_of_them if c[1].held_with(c[0]) in holds)
        later = [(goal.part, seat_pose(hand.world, goal)) for goal in job.then]
        options = _gentle_first(hand, all_of_them, seat)
        if not later:
            return options
        return (
            candidate
            for candidate in itertools.islice(options, _KEPT)
            if all(hand.chooser.fitting([candidate], place) for place in later)
        )

    try:
        choice = hand.chooser.choose(candidates(), hand.locate, seat, skip=skip)
    except UnreachableError as error:
        fitting = hand.chooser.fitting(candidates(), seat)
        if not fitting:
            raise
        try:
            regrasp(hand, fitting, candidates(), seat)
        except UnreachableError:
            if bracing is None:
                raise error from None
            bracing.bring(fitting, candidates(), seat)
        choice = hand.chooser.choose(fitting, hand.locate, seat)
    hand.grip(choice)


def _insert(hand: Hand, job: InsertionTask, world_T_seat: Array) -> None:
    """From where the brick was lifted into its seat."""
    p, motion, world = hand.parameters, hand.motion, hand.world
    goal = job.goal
    assert hand.grasp is not None and motion.held is not None
    hand.require_whole(job.wanted.parts, "when it was picked")
    up = world_T_seat[:3, 2]
    hand.lift_clear()
    hand.enter(Stage.TRANSFERRING)
    scene = world.planning_scene()
    seat, carried = (goal.part, world_T_seat), motion.carried()
    sliding = scene.allowing(hand.chooser.sliding_pairs(carried, *seat))
    start, aside, off = hand.chooser.way_down(scene, sliding, seat, (motion.held, hand.grasp), up)
    motion.go_to_joints([start])
    hand.require_grip()
    hand.require_whole(job.wanted.parts, "on the way")
    limit = bearable(hand, job, hand.between)
    hand.enter(Stage.INSERTING)
    motion.tare(p.settle_time)
    support = hand.support
    pressing = hand.pressing(
        up, limit.force, None if support is None else support.bear, job.wanted.parts
    )
    gentle = min(p.search_force, limit.force)
    # Where the joints are as far as it is known where the seat is.
    check = press_check(hand, job, hand.between)
    known = world_T_seat @ inverse(seat_pose(world, goal))
    pivot = transform_points(known, check.middle)
    places = [transform_points(known, place) for place in check.bearing_alone(gentle)]
    first = check.first(p.least_press_force)
    try:
        if first is not None:
            above = p.approach_height * up
            pressing.lean(pivot + above, transform_points(known, first) + above)
        pressing.descend(p.approach_height, edges=edges(world, carried, seat), aside=aside, off=off)
        hand.enter(Stage.PRESSING)
        connected = (
            pressing.press(gentle)
            or pressing.rock(gentle, pivot, places)
            or pressing.search(gentle)
            or pressing.press(limit.force)
            or pressing.search(limit.force)
        )
        if connected and job.release and _lies_loose(world, goal.target):
            pressing.set_down()
    finally:
        hand.greatest = max(hand.greatest, pressing.greatest)
        if support is not None:
            support.rest()
    motion.controller.give_way(True)
    if not connected:
        why = f", more would break what is there: {limit.reason}" if limit.reason else ""
        raise TaskError(
            f"no connection with {pressing.greatest:.1f} N (limit {limit.force:.1f} N{why})",
            Outcome.FORCE_LIMIT,
        )
    wrong = set(pressing.formed()) - job.wanted.connections
    if wrong:
        raise TaskError(f"connected as {sorted(wrong)}", Outcome.WRONG_CONNECTION)
    if job.release:
        hand.let_go()
    else:
        # What holds the seat and this arm pull at each other no more.
        motion.wait(p.settle_time)
        hand.look_at_grip()
        _lift_joined(hand)


def _lies_loose(world: World, part: int) -> bool:
    """Whether a part lies on the table, or hangs from what one hand holds alone."""
    graph = world.graph
    group = graph.component_parts(graph.component_of(part))
    return not world.is_fixed(part) and sum(held in group for held in world.held.values()) < 2


def _lift_joined(hand: Hand) -> None:
    """Lifts what was joined in the grip from between the bricks around it, unless somebody else
    holds it, too."""
    carried = set(hand.motion.carried())
    if carried and carried.isdisjoint(hand.held_by_others):
        hand.enter(Stage.LIFTING)
        hand.lift()
