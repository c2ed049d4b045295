# SPDX-License-Identifier: Apache-2.0
"""What is joined in one hand, from the top down, and does not stand on the table.

The hand presses all that it holds onto a brick that lies on the table, takes that along, and goes
on with the next one below. The farther its grip is from the next joint, the more the press strains
what is in between: then the other hand holds the whole in the air, and the first one takes it
again, lower down.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.spatial import Array
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.aloft import Join, apart, grip_boxes, meetings, moved_to
from bricksim_moveit_demo.beside import near
from bricksim_moveit_demo.choosing import Choice, raised
from bricksim_moveit_demo.connections import component_boxes, joined, relative_pose, seat_in_target
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.exchanging import stand_back, standing_back, take, way_in
from bricksim_moveit_demo.grasps import Grasp, grasps, hand_is_free, holding_grasps, presses_on
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import InsertionTask, own_candidates, press_check, seat_pose
from bricksim_moveit_demo.placing import free_places, move, put_down
from bricksim_moveit_demo.planning.scene import TABLE, PlanningScene, brick_name
from bricksim_moveit_demo.presscheck import PressCheck
from bricksim_moveit_demo.reports import Stage
from bricksim_moveit_demo.sighting import Sightings, averaged

_GRIPS = 24
"""How many grips are looked at."""
_SAG = 0.0015
"""How far a corner of the tips may sink towards what is below the held brick [m]: the load turns
between the pads, by 3 degrees in a minute where much hangs on one side (measured)."""
_LINES = 6
"""How many of them are checked by inverse kinematics."""
_TAKES = 3
"""With how many of those an exchange is looked for."""
_PARTS = 4
"""At how many parts near a grip the other hand may hold the whole."""
_HOLDS = 8
"""How many of its grasps are checked by inverse kinematics for each grip."""
_TURNS = (0.0, 0.5 * np.pi, -0.5 * np.pi, 0.25 * np.pi, -0.25 * np.pi)
"""Directions of the holding hand, from straight away from its base [rad]."""
_LOOKS = 3
"""How often five looks are taken at what changes hands."""
_YAWS = (0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi)
_PICKS = 48
"""How many grasps are looked at to move a brick on the table."""
_PLACES = 32
"""How many places of the table are looked at for it."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """How a whole goes from one hand to the other and back into another grip.

    Attributes:
        offer: (7,) joint positions of the first hand where it offers the whole [rad].
        hold: Part and grasp of the second hand.
        take: Part and grasp with which the first hand takes it again.
    """

    offer: Array
    hold: tuple[int, Grasp]
    take: tuple[int, Grasp]


def lay_ready(hand: Hand, movers: Sequence[Hand], joins: Sequence[Join]) -> None:
    """Sees to it that bricks lie where a hand gets to them with all that it has joined by then.

    Args:
        hand: The arm that is to join them.
        movers: Arms that may move what lies elsewhere; they hold nothing.
        joins: What is pressed onto what: the part of each is the target of the one before.

    Raises:
        UnreachableError: It does not get there, and no place of the table is better.
        TaskError: A brick could not be moved.
    """
    world = hand.world
    for number, join in enumerate(joins):
        target = join.goal.target
        whole = joined(world.graph, [other.goal for other in joins[:number]])
        scene = standing_back(world.planning_scene(), movers)
        options = _grips(hand, whole, join)

        def reached(
            place: Array, whole: BrickTopologyGraph = whole, join: Join = join, o=options, s=scene
        ) -> bool:
            seat = (join.goal.part, place @ seat_in_target(world.graph, join.goal))
            return bool(_reaching(hand, s, whole, o, seat, 1))

        if reached(world.part_pose(target)):
            continue
        if world.is_fixed(target) or not _moved(hand, movers, target, reached):
            raise UnreachableError(
                f"brick {join.goal.part}, with all that is joined to it by then, cannot be brought"
                f" onto brick {target} by {hand.motion.arm.name}"
            )


def ready_grip(hand: Hand, helper: Hand, job: InsertionTask) -> None:
    """Sees to it that what is in the hand already is held so that it bears the press and gets to
    its seat, the other hand holding it meanwhile where it has to be taken in another grip.

    Raises:
        TaskError: It did not work.
    """
    there = helper.motion.carried()
    if job.goal.part in there:
        # What hangs together might not stand on the table; a single brick is picked from there.
        return _take_back(hand, helper, job) if len(there) > 1 else put_down(helper)
    carried = hand.motion.carried()
    if len(carried) == 1 or job.goal.part not in carried or _in_good_grip(hand, job):
        return None
    hand.enter(Stage.PLANNING)
    try:
        exchange = _exchange(hand, helper, _good_grips(hand, helper, job))
    except UnreachableError:
        # As it is, then: if it is not borne, or needs a hand that pushes back, that is found there.
        return None
    return _regrip(hand, helper, exchange)


def bring_target(hand: Hand, helper: Hand, job: InsertionTask) -> bool:
    """Whether the other hand moved a loose brick to where a hand gets to it with what it holds.

    What lay at the edge of its reach is beyond it when the grip came out a little otherwise than
    planned, or the brick is seen elsewhere.

    Raises:
        TaskError: The brick could not be moved.
    """
    world, motion, target = hand.world, hand.motion, job.goal.target
    if job.goal.part not in motion.carried() or world.is_fixed(target):
        return False
    assert hand.grasp is not None and motion.held is not None
    grip = (motion.held, hand.grasp)
    scene = standing_back(world.planning_scene(), [helper])

    def reached(place: Array) -> bool:
        seat = (job.goal.part, place @ seat_in_target(world.graph, job.goal))
        return bool(_reaching(hand, scene, world.graph, [grip], seat, 1))

    return _moved(hand, [helper], target, reached)


# -- inside ---------------------------------------------------------------------------------------


def _in_good_grip(hand: Hand, job: InsertionTask) -> bool:
    """Whether what a hand holds bears the press of an insertion, and gets to its seat."""
    assert hand.grasp is not None and hand.motion.held is not None
    seat = (job.goal.part, seat_pose(hand.world, job.goal))
    grip = (hand.motion.held, hand.grasp)
    scene, graph = hand.world.planning_scene(), hand.world.graph
    return _bears(hand, job, hand.between) and bool(_reaching(hand, scene, graph, [grip], seat, 1))


def _regrip(hand: Hand, helper: Hand, exchange: Exchange) -> None:
    """Gives what a hand holds to the other one and takes it in another grip.

    Raises:
        TaskError: It did not work.
    """
    stand_back(helper)
    hand.enter(Stage.TRANSFERRING)
    hand.motion.go_to_joints([exchange.offer])
    hand.require_grip()
    _take(helper, *exchange.hold, hand)
    _take_again(hand, helper, *exchange.take)


def _take_back(hand: Hand, helper: Hand, job: InsertionTask) -> None:
    """Takes what the other hand holds, after an exchange that was not finished.

    Raises:
        UnreachableError: No grip works.
        TaskError: It was not gripped.
    """
    hand.enter(Stage.PLANNING)
    failure: PlanningError | None = None
    for part, grasp in _good_grips(hand, helper, job):
        try:
            return _take_again(hand, helper, part, grasp)
        except PlanningError as error:
            failure = failure or error
    raise failure or UnreachableError(
        f"{hand.motion.arm.name} has no grip in which it could take brick {job.goal.part} back"
    )


def _take_again(hand: Hand, helper: Hand, part: int, grasp: Grasp) -> None:
    _take(hand, part, grasp, helper)
    stand_back(helper)


def _take(hand: Hand, part: int, grasp: Grasp, giver: Hand) -> None:
    """Takes a part, with what hangs on it, out of the other hand. It is looked at for long: fingers
    that close beside it push and turn it, and all joints between both hands with it."""
    world, looks = hand.world, Sightings()
    for _ in range(_LOOKS):
        seen = averaged(world.observe, world.part_pose(part), None, looks)
    take(hand, part, grasp, giver, seen)


def _moved(hand: Hand, movers: Sequence[Hand], part: int, reached: Callable[[Array], bool]) -> bool:
    """Whether a brick was moved to a place of the table from where the rest works: the nearest to
    both arms, as one of them picks it and the other one has it then."""
    able: list[tuple[Hand, Choice]] = []
    for mover in movers:
        options = itertools.islice(own_candidates(mover, part), _PICKS)
        with contextlib.suppress(PlanningError):
            able.append((mover, mover.chooser.choose(options, mover.locate)))
    bases = [arm.motion.arm.world_T_base[:2, 3] for arm in (hand, *movers)]

    def away(place: Array) -> float:
        return round(max(float(np.linalg.norm(place[:2, 3] - base)) for base in bases), 2)

    places = sorted(free_places(hand, part, _YAWS, None), key=away)
    for place, (mover, pick) in itertools.product(places[:_PLACES], able):
        if not reached(place):
            continue
        with contextlib.suppress(PlanningError):
            choice = mover.chooser.choose([(part, pick.grasp)], mover.locate, (part, place))
            move(mover, choice)
            stand_back(mover)
            return True
    return False


def _grips(hand: Hand, whole: BrickTopologyGraph, join: Join) -> list[tuple[int, Grasp]]:
    """Ways to hold what is pressed on: those that were planned, then others at the part itself;
    last those whose tips would come to stand on what is below as the load sags."""
    part = join.goal.part
    own = ((part, grasp) for grasp in grasps(whole.part(part).shape, hand.parameters))
    then = joined(whole, [join.goal])

    def rests_below(option: tuple[int, Grasp]) -> bool:
        held, grasp = option
        bodies = component_boxes(then, held, np.eye(4))
        del bodies[held]
        sunk = grasp.part_T_tool.copy()
        sunk[2, 3] -= _SAG
        return presses_on(sunk, grasp.width, list(bodies.values()))

    return sorted(itertools.chain(join.candidates, own), key=rests_below)[:_GRIPS]


def _good_grips(hand: Hand, helper: Hand, job: InsertionTask) -> list[tuple[int, Grasp]]:
    """Grips that bear the press and get to the seat."""
    world, goal = hand.world, job.goal
    scene = standing_back(world.planning_scene(), [helper])
    bears: dict[frozenset[int], bool] = {}
    options = []
    for part, grasp in _grips(hand, world.graph, Join(goal, job.candidates)):
        between = grasp.held_with(part)
        if between not in bears:
            bears[between] = _bears(hand, job, between)
        if bears[between]:
            options.append((part, grasp))
    return _reaching(hand, scene, world.graph, options, (goal.part, seat_pose(world, goal)), _TAKES)


def _bears(hand: Hand, job: InsertionTask, between: Collection[int]) -> bool:
    least = hand.parameters.least_press_force
    return not press_check(hand, job, between).verdict(least, least).reason


def _reaching(
    hand: Hand,
    scene: PlanningScene,
    whole: BrickTopologyGraph,
    options: Iterable[tuple[int, Grasp]],
    seat: tuple[int, Array],
    count: int,
) -> list[tuple[int, Grasp]]:
    """The first few grips with which a hand gets a whole, wherever it is now, down to its seat."""
    world, arm, p = hand.world, hand.motion.arm, hand.parameters
    parts = whole.component_parts(whole.component_of(seat[0]))
    bodies = component_boxes(whole, *seat)
    named = {brick_name(part): box for part, box in bodies.items()}
    around = [b for name, b in scene.objects.items() if name not in named and name != TABLE]
    attached = {name: load for name, load in scene.attached.items() if named.keys() != load.keys()}
    there = replace(scene, objects={**scene.objects, **named}, attached=attached)
    touching = [
        (brick_name(part), brick_name(other))
        for part in parts
        for other in near(world, part, seat[1] @ relative_pose(whole, seat[0], part))
        if other not in bodies
    ]
    found: list[tuple[int, Grasp]] = []
    checked = 0
    for part, grasp in options:
        tool = seat[1] @ relative_pose(whole, seat[0], part) @ grasp.part_T_tool
        others = around + [box for other, box in bodies.items() if other != part]
        if not hand_is_free(
            tool, grasp.width + 2.0 * grasp.release, others, 0.5 * p.neighbor_clearance
        ):
            continue
        if checked == _LINES or len(found) == count:
            break
        checked += 1
        held = there.with_positions(dict.fromkeys(arm.fingers, 0.5 * grasp.width)).attaching(
            arm.name, named, tool
        )
        try:
            begin = raised(tool, p.approach_height)
            hand.chooser.line_start(held, held.allowing(touching), begin, tool)
            found.append((part, grasp))
        except PlanningError:
            continue
    return found


def _exchange(hand: Hand, helper: Hand, takes: Sequence[tuple[int, Grasp]]) -> Exchange:
    """Where and how the second hand holds what the first one has, until that takes it again.

    Raises:
        UnreachableError: There is no way.
    """
    failures: dict[str, None] = {}
    for part, grasp in takes:
        for held, hold in itertools.islice(_holds(hand, helper, part, grasp), _HOLDS):
            for meeting in meetings(helper, hold, _TURNS):
                try:
                    offer = _meet(hand, helper, (held, hold), (part, grasp), meeting)
                    return Exchange(offer, (held, hold), (part, grasp))
                except PlanningError as error:
                    failures[str(error)] = None
    reasons = "; ".join(itertools.islice(failures, 4))
    raise UnreachableError(
        f"{helper.motion.arm.name} cannot hold what {hand.motion.arm.name} has to take in another"
        f" grip: {reasons or 'no grip bears the press, or the hands have no room'}"
    )


def _holds(hand: Hand, helper: Hand, part: int, take: Grasp) -> Iterator[tuple[int, Grasp]]:
    """Parts and grasps of the second hand that keep off both grips of the first one."""
    graph, held, grasp = hand.world.graph, hand.motion.held, hand.grasp
    assert held is not None and grasp is not None
    carried, clearance = hand.motion.carried(), helper.parameters.neighbor_clearance

    # The less there is between both hands, the less they strain each joint.
    def away(other: int) -> float:
        return max(
            float(np.linalg.norm(relative_pose(graph, grip, other)[:3, 3])) for grip in (held, part)
        )

    def clear(other: int, hold: Grasp) -> bool:
        opening = helper.chooser.opening(hold)
        bodies = component_boxes(graph, other, np.eye(4))
        del bodies[other]
        free = all(
            hand_is_free(hold.part_T_tool, w, list(bodies.values()), clearance)
            for w in (opening, hold.width)
        )
        if not free:
            return False
        own = grip_boxes(hold, hold.part_T_tool)
        return all(
            apart(own, grip_boxes(g, relative_pose(graph, other, p) @ g.part_T_tool))
            for p, g in ((held, grasp), (part, take))
        )

    for other in sorted(carried, key=away)[:_PARTS]:
        if PressCheck(hand.world, carried, {other}, ()).verdict(1.0, 1.0).reason:
            continue
        for hold in holding_grasps(graph.part(other).shape, helper.parameters):
            if clear(other, hold):
                yield other, hold


def _meet(
    hand: Hand,
    helper: Hand,
    hold: tuple[int, Grasp],
    take: tuple[int, Grasp],
    meeting: Array,
) -> Array:
    """Joint positions (7,) of the first hand [rad] where the whole meets the second one.

    Raises:
        PlanningError: One of the hands does not get there.
    """
    world, graph, motion = hand.world, hand.world.graph, hand.motion
    assert motion.held is not None and hand.grasp is not None
    arm, other = motion.arm, helper.motion.arm
    scene = standing_back(world.planning_scene(), [helper])
    tool = meeting @ relative_pose(graph, hold[0], motion.held) @ hand.grasp.part_T_tool
    offer = motion.plan(lambda: motion.planner.reach(scene, arm, tool, 1))[0]
    named = {
        brick_name(part): box for part, box in component_boxes(graph, hold[0], meeting).items()
    }
    scene = replace(
        scene,
        objects={**scene.objects, **named},
        attached={name: load for name, load in scene.attached.items() if name != arm.name},
    ).with_positions(dict(zip(arm.joints, offer.tolist(), strict=True)))
    own = [(link, name) for link in arm.hand_links for name in named]
    there = scene.allowing(own).with_positions(
        dict.fromkeys(other.fingers, 0.5 * helper.chooser.opening(hold[1]))
    )
    near_by = there.allowing((link, name) for link in other.hand_links for name in named)
    start = helper.chooser.line_start(
        there, near_by, *way_in(helper, meeting @ hold[1].part_T_tool)
    )
    both = moved_to(helper, near_by, start, meeting, hold[1])
    alone = replace(both, allowed=both.allowed - {(min(p), max(p)) for p in own})
    opened = dict.fromkeys(arm.fingers, 0.5 * hand.chooser.opening(take[1]))
    alone = alone.with_positions(opened)
    pose = meeting @ relative_pose(graph, hold[0], take[0])
    hand.chooser.line_start(alone, alone.allowing(own), *way_in(hand, pose @ take[1].part_T_tool))
    return offer
