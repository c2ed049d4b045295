# SPDX-License-Identifier: Apache-2.0
"""Sub-assemblies that one hand holds in the air while the other one joins bricks to them.

The arm that presses picks the brick that is to be held and hands it over; the other one holds it
from the side, so that the way down to its studs stays free. When all is joined, the first arm takes
the whole from above. Where each hand takes hold is found before anything moves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bricksim_core.spatial import Array, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.choosing import Choice
from bricksim_moveit_demo.connections import expectation, joined, relative_pose
from bricksim_moveit_demo.description import READY
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.exchanging import stand_back, take, way_in
from bricksim_moveit_demo.grasps import (
    Grasp,
    boxes_overlap,
    grasps,
    hand_boxes,
    hand_is_free,
    holding_grasps,
)
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import (
    InsertionTask,
    observed_seat,
    own_candidates,
    try_insertion,
)
from bricksim_moveit_demo.placing import put_down, regrasp
from bricksim_moveit_demo.planning.scene import Box, PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.sighting import averaged

_MEETINGS = ((0.55, 0.5), (0.5, 0.42), (0.6, 0.42))
"""Where the hands meet: distance from the holding arm's base and height [m]."""
_TURNS = (0.0, 0.5, -0.5)
"""Directions of the holding hand there, from straight away from its base [rad]."""
_HOLDS = 12
"""How many grasps of the holding hand are checked by inverse kinematics."""
_OFFERS = 3
"""How many grasps of the handing arm are tried for each of them."""
_GAP = 0.0015
"""Least gap of both hands [m]: each is off by the noise."""
_TAKES = 12
"""How many grasps of a joined sub-assembly are tried."""
_DOWN = 0.8
"""Downward share of a hand's direction [-] from which on it holds from above: from the side it is
0.5 at most."""
_SHAPED = 48
"""How many grasps of a brick are looked at to see whether the holding hand leaves room."""

Candidates = tuple[tuple[int, Grasp], ...]
"""Parts and grasps, best first."""


@dataclass(frozen=True, eq=False)
class Join:
    """One insertion.

    Attributes:
        goal: What goes where.
        candidates: Parts to hold and how.
    """

    goal: InsertionGoal
    candidates: Candidates = ()


@dataclass(frozen=True, eq=False)
class HeldGroup:
    """A sub-assembly that is joined in the air.

    Attributes:
        holder: The part that the second hand holds.
        joins: What is pressed on, in order.
        onto: Where the whole goes, and how it is taken out of the second hand.
    """

    holder: int
    joins: tuple[Join, ...]
    onto: Join


@dataclass(frozen=True, eq=False)
class Meeting:
    """How two hands hold a part in the air.

    Attributes:
        offer: How the handing arm picks it and gets it there.
        world_T_part: (4, 4) where they meet [m].
        hold: How the holding arm takes it.
        scene: Everything with the part there and only the holding arm at it.
    """

    offer: Choice
    world_T_part: Array
    hold: Grasp
    scene: PlanningScene


def hold_aloft(taker: Hand, giver: Hand, group: HeldGroup, bring: bool = False) -> None:
    """Puts the part that is to be held into the second hand, in the air.

    Args:
        taker: The arm that is to hold it.
        giver: The arm that picks it and is to press others on.
        group: What will be joined.
        bring: True: what the giver does not reach the taker brings it first.

    Raises:
        UnreachableError: The hands have no room, or do not get there; nothing moved but what was
            brought.
        TaskError: It did not work.
    """
    if taker.motion.held == group.holder:
        return
    giver.enter(Stage.PLANNING)
    if giver.motion.carried():
        # A handover was canceled: it begins anew.
        stand_back(taker)
        put_down(giver)
    if bring:
        _gather(taker, giver, group)
    meeting = foresee(taker, giver, group)
    stand_back(taker)
    giver.grip(meeting.offer)
    giver.enter(Stage.TRANSFERRING)
    assert meeting.offer.above_seat is not None
    giver.motion.go_to_joints([meeting.offer.above_seat])
    tool = meeting.world_T_part @ meeting.offer.grasp.part_T_tool
    giver.motion.go_straight([tool], giver.parameters.approach_speed)
    giver.require_grip()
    take(taker, group.holder, meeting.hold, giver)


def holds_aloft(hand: Hand, part: int) -> bool:
    """Whether a hand holds a part from the side, for another one to press on it."""
    return hand.motion.held == part and hand.motion.tool[2, 2] > -_DOWN


def take_whole(giver: Hand, taker: Hand, group: HeldGroup) -> None:
    """Takes a joined sub-assembly out of the second hand, as its seat needs it.

    Raises:
        TaskError: No grasp fits both, or it did not work.
    """
    part = group.onto.goal.part
    if part in giver.motion.carried() and taker.motion.held is None:
        return
    for join in group.joins:
        # What came apart in another try.
        wanted = expectation(giver.world.graph, join.goal)
        try_insertion(giver, InsertionTask(join.goal, wanted, join.candidates))
    giver.enter(Stage.PLANNING)
    put_down(giver)
    seat = (part, observed_seat(giver, group.onto.goal))
    scene = _let_loose(giver, taker)
    options = [*group.onto.candidates, *own_candidates(giver, part)]
    _take_one(giver, taker, (o for o in options if giver.chooser.fitting([o], seat, scene)), _TAKES)


def relieve(holder: Hand, other: Hand) -> None:
    """Puts down what a hand holds from the side, which cannot do that itself.

    Raises:
        TaskError: The other hand does not get at it, or cannot put it down.
    """
    held = holder.motion.held
    if held is None or not holder.motion.carried():
        return
    other.enter(Stage.RECOVERING)
    put_down(other)
    _take_one(other, holder, own_candidates(other, held), _SHAPED)
    put_down(other)


def clear_hands(taker: Hand, giver: Hand) -> None:
    """After a handover that failed: where another try can start.

    Raises:
        TaskError: That failed, too.
    """
    giver.enter(Stage.RECOVERING)
    giver.motion.settle_motion()
    if taker.motion.held is None:
        stand_back(taker)
    held = giver.motion.held
    if held is None:
        giver.back_off()
    elif held in taker.motion.carried():
        giver.motion.controller.give_way(True)
        giver.let_go()
    else:
        put_down(giver)


def foresee(taker: Hand, giver: Hand, group: HeldGroup) -> Meeting:
    """Where and how both hands hold the part, so that all joins have room and can be reached.

    Raises:
        UnreachableError: They cannot.
    """
    world, part = giver.world, group.holder
    whole = joined(world.graph, [join.goal for join in group.joins])
    lying = giver.locate(part)
    failures: dict[str, None] = {}
    for hold, offers in itertools.islice(_holds(taker, giver, group, whole), _HOLDS):
        for meeting in meetings(taker, hold, _TURNS):
            try:
                choice = giver.chooser.choose(
                    [(part, offer) for offer in offers], lambda _: lying, (part, meeting)
                )
                scene = _holding_scene(taker, giver, choice, meeting, hold)
                _require_room(giver, group, whole, meeting, scene)
            except PlanningError as error:
                failures[str(error)] = None
                continue
            return Meeting(choice, meeting, hold, scene)
    reasons = "; ".join(itertools.islice(failures, 4)) or "the other hand has no room beside it"
    raise UnreachableError(f"brick {part} cannot be held in the air by a second hand: {reasons}")


# -- inside ---------------------------------------------------------------------------------------


def _take_one(hand: Hand, holder: Hand, options: Iterable[tuple[int, Grasp]], most: int) -> None:
    """Takes what another hand holds with the first of some grasps that works.

    Raises:
        UnreachableError: None does.
        TaskError: It was not gripped.
    """
    failures: dict[str, None] = {}
    for part, grasp in itertools.islice(options, most):
        try:
            # Closing the fingers turns it, and its joints with it, by what is left of the error.
            seen = averaged(hand.world.observe, hand.world.part_pose(part))
            return take(hand, part, grasp, holder, seen)
        except PlanningError as error:
            failures[str(error)] = None
    reasons = "; ".join(itertools.islice(failures, 4)) or "no grasp fits"
    raise UnreachableError(
        f"{hand.motion.arm.name} cannot take brick {holder.motion.held} from"
        f" {holder.motion.arm.name}: {reasons}"
    )


def _let_loose(giver: Hand, taker: Hand) -> PlanningScene:
    """The scene with what the second hand holds where it is, and that hand out of the way."""
    scene, graph = giver.world.planning_scene(), giver.world.graph
    boxes = {
        brick_name(p): brick_box(graph.part(p).shape, giver.world.part_pose(p))
        for p in taker.motion.carried()
    }
    back = dict(zip(taker.motion.arm.joints, READY, strict=True))
    attached = {arm: load for arm, load in scene.attached.items() if arm != taker.motion.arm.name}
    scene = replace(scene, objects={**scene.objects, **boxes}, attached=attached)
    return scene.with_positions(back)


def _gather(taker: Hand, giver: Hand, group: HeldGroup) -> None:
    """Brings the bricks that the giver does not reach to where it does.

    Raises:
        TaskError: That cannot be done.
    """
    stand_back(giver)
    for part in (group.holder, *(join.goal.part for join in group.joins)):
        options = list(itertools.islice(own_candidates(giver, part), _SHAPED))
        try:
            giver.chooser.choose(options, giver.locate)
            continue
        except UnreachableError:
            pass
        seat = (part, transform(_at_base(taker, *_MEETINGS[0])))
        regrasp(giver, giver.chooser.fitting(options, seat), options, seat, taker)
    stand_back(taker)


def _holds(
    taker: Hand, giver: Hand, group: HeldGroup, whole: BrickTopologyGraph
) -> Iterator[tuple[Grasp, list[Grasp]]]:
    """Grasps from the side that leave room for all that is joined and for the other hand, each
    with ways to hand the part over."""
    part, clearance = group.holder, taker.parameters.neighbor_clearance
    shape = whole.part(part).shape
    others = [
        brick_box(whole.part(p).shape, relative_pose(whole, part, p))
        for p in whole.component_parts(whole.component_of(part))
        if p != part
    ]
    # For each thing that the other hand does: where it may be while it does that.
    needs = [
        _hands(giver, whole, part, join.candidates, join.goal.part)
        for join in (*group.joins, group.onto)
    ]
    offers = list(itertools.islice(grasps(shape, giver.parameters), _SHAPED))
    for hold in holding_grasps(shape, taker.parameters):
        tool, opening = hold.part_T_tool, taker.chooser.opening(hold)
        if not all(hand_is_free(tool, w, others, clearance) for w in (opening, hold.width)):
            continue
        own = [box for w in (opening, hold.width) for box in hand_at(tool, w)]
        if not all(any(apart(own, boxes) for boxes in ways) for ways in needs):
            continue
        fitting = [o for o in offers if apart(own, grip_boxes(o, o.part_T_tool))]
        if fitting:
            yield hold, fitting[:_OFFERS]


def apart(boxes: Sequence[Box], others: Sequence[Box]) -> bool:
    """Whether the boxes of two hands leave a gap."""
    return not any(boxes_overlap(box, others, _GAP).any() for box in boxes)


def _hands(
    giver: Hand, whole: BrickTopologyGraph, holder: int, candidates: Candidates, part: int
) -> list[list[Box]]:
    """Boxes of the other hand in the frame of the held part, for some ways to hold another one."""
    options = itertools.chain(candidates, _own(giver, whole, part))
    return [
        grip_boxes(grasp, relative_pose(whole, holder, held) @ grasp.part_T_tool)
        for held, grasp in itertools.islice(options, _SHAPED)
        if held in whole and whole.component_of(held) == whole.component_of(holder)
    ]


def _own(giver: Hand, whole: BrickTopologyGraph, part: int) -> Iterator[tuple[int, Grasp]]:
    for grasp in grasps(whole.part(part).shape, giver.parameters):
        yield part, grasp


def grip_boxes(grasp: Grasp, tool: Array) -> list[Box]:
    """Boxes of a hand that grips, and then lets go, at a tool pose."""
    return [
        box for w in (grasp.width, grasp.width + 2.0 * grasp.release) for box in hand_at(tool, w)
    ]


def hand_at(tool: Array, width: float) -> list[Box]:
    """Boxes of a hand at a tool pose with a distance of its pads [m]."""
    return [Box(box.size, tool @ box.pose) for box in hand_boxes(width)]


def meetings(taker: Hand, hold: Grasp, turns: Iterable[float]) -> Iterator[Array]:
    """Level poses ((4, 4) [m]) of the part in reach of both arms, the holding hand pointing away
    from its base, turned by some angles [rad]."""
    base = taker.motion.arm.world_T_base
    approach = hold.part_T_tool[:3, 2]
    ahead = math.atan2(base[1, 0], base[0, 0]) - math.atan2(approach[1], approach[0])
    for place, turn in itertools.product(_MEETINGS, turns):
        half = 0.5 * (ahead + turn)
        yield transform(_at_base(taker, *place), [0.0, 0.0, math.sin(half), math.cos(half)])


def _at_base(taker: Hand, distance: float, height: float) -> Array:
    """(3,) point [m], world, ahead of an arm's base."""
    return (taker.motion.arm.world_T_base @ [distance, 0.0, height, 1.0])[:3]


def _holding_scene(
    taker: Hand, giver: Hand, choice: Choice, meeting: Array, hold: Grasp
) -> PlanningScene:
    """The scene with the part in the holding hand and the other arm out of the way.

    Raises:
        PlanningError: One of both does not get there.
    """
    world, part = giver.world, choice.part
    name = brick_name(part)
    scene = world.planning_scene()
    box = brick_box(world.graph.part(part).shape, meeting)
    there = replace(scene, objects={**scene.objects, name: box})
    there = there.allowing((link, name) for link in giver.motion.arm.hand_links)
    assert choice.above_seat is not None
    offered = moved_to(giver, there, choice.above_seat, meeting, choice.grasp)
    opened = offered.with_positions(
        dict.fromkeys(taker.motion.arm.fingers, 0.5 * taker.chooser.opening(hold))
    )
    near = opened.allowing((link, name) for link in taker.motion.arm.hand_links)
    start = taker.chooser.line_start(opened, near, *way_in(taker, meeting @ hold.part_T_tool))
    held = moved_to(taker, near, start, meeting, hold)
    arm = giver.motion.arm
    back = dict(zip(arm.joints, READY, strict=True)) | dict.fromkeys(arm.fingers, 0.04)
    return held.with_positions(back)


def moved_to(
    hand: Hand, scene: PlanningScene, start: Array, part_pose: Array, grasp: Grasp
) -> PlanningScene:
    """A scene after a straight motion of an arm from joint positions to a grasp.

    Raises:
        PlanningError: The motion is not possible.
    """
    motion, arm = hand.motion, hand.motion.arm
    begin = scene.with_positions(dict(zip(arm.joints, start.tolist(), strict=True)))
    tool = part_pose @ grasp.part_T_tool
    way = motion.plan(lambda: motion.planner.plan_straight(begin, arm, [tool]))
    end = dict(zip(way.joints, way.positions[-1].tolist(), strict=True))
    return begin.with_positions(end | dict.fromkeys(arm.fingers, 0.5 * grasp.width))


def _require_room(
    giver: Hand,
    group: HeldGroup,
    whole: BrickTopologyGraph,
    meeting: Array,
    scene: PlanningScene,
) -> None:
    """Raises `UnreachableError` where the other arm does not get to a join, or cannot take all."""
    graph = giver.world.graph
    there = set(graph.component_parts(graph.component_of(group.holder)))
    for join in group.joins:
        part = join.goal.part
        moving = graph.component_parts(graph.component_of(part))
        seat = (part, meeting @ relative_pose(whole, group.holder, part))
        allowed = scene.allowing(
            (brick_name(a), brick_name(b)) for a in moving for b in sorted(there)
        )
        options = itertools.chain(join.candidates, own_candidates(giver, part))
        if not giver.chooser.fitting(options, seat, allowed):
            raise UnreachableError(f"no grasp of brick {part} fits the way to its seat there")
        scene = _with_parts(scene, whole, group.holder, meeting, moving)
        there.update(moving)
    _require_take(giver, group, whole, meeting, scene)


def _require_take(
    giver: Hand,
    group: HeldGroup,
    whole: BrickTopologyGraph,
    meeting: Array,
    scene: PlanningScene,
) -> None:
    """Raises `UnreachableError` where the other arm cannot take the joined parts."""
    parts = whole.component_parts(whole.component_of(group.holder))
    touching = scene.allowing(
        (link, brick_name(p)) for link in giver.motion.arm.hand_links for p in parts
    )
    poses = {p: meeting @ relative_pose(whole, group.holder, p) for p in parts}
    boxes = {p: brick_box(whole.part(p).shape, pose) for p, pose in poses.items()}
    clearance = giver.parameters.neighbor_clearance
    options = itertools.chain(group.onto.candidates, _own(giver, whole, group.onto.goal.part))
    for part, grasp in itertools.islice(options, _SHAPED):
        tool = poses[part] @ grasp.part_T_tool
        others = [box for p, box in boxes.items() if p != part]
        if not hand_is_free(tool, giver.chooser.opening(grasp), others, clearance):
            continue
        try:
            giver.chooser.line_start(scene, touching, *way_in(giver, tool))
            return
        except PlanningError:
            continue
    raise UnreachableError("the other hand cannot take the whole there")


def _with_parts(
    scene: PlanningScene,
    whole: BrickTopologyGraph,
    holder: int,
    meeting: Array,
    parts: Iterable[int],
) -> PlanningScene:
    """A scene with parts where they are joined to the held one."""
    boxes = {
        brick_name(p): brick_box(whole.part(p).shape, meeting @ relative_pose(whole, holder, p))
        for p in parts
    }
    return replace(scene, objects={**scene.objects, **boxes})
