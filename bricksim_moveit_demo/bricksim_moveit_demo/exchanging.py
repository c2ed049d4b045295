# SPDX-License-Identifier: Apache-2.0
"""What two hands do with each other: making room, taking a brick over, bearing a press."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.beside import near
from bricksim_moveit_demo.choosing import Choice
from bricksim_moveit_demo.connections import relative_pose
from bricksim_moveit_demo.description import READY
from bricksim_moveit_demo.errors import (
    CanceledError,
    Outcome,
    PlanningError,
    TaskError,
    UnreachableError,
)
from bricksim_moveit_demo.grasps import (
    Grasp,
    grasps,
    hand_boxes,
    hand_is_free,
    leaning_grasps,
)
from bricksim_moveit_demo.hand import UP, Hand, Support
from bricksim_moveit_demo.inserting import InsertionTask, own_candidates, press_check, seat_pose
from bricksim_moveit_demo.placing import regrasp
from bricksim_moveit_demo.planning.scene import Box, PlanningScene, brick_box
from bricksim_moveit_demo.presscheck import PressCheck
from bricksim_moveit_demo.reports import Stage

_THERE = 0.02
"""Distance from the ready pose [rad] within which an arm stands there."""
_SUPPORTS = 24
"""How many grasps of the second hand are tried."""
_PRESSING = 8
"""How many grasps of the pressing hand the other one tries to leave room for."""


def stand_back(hand: Hand) -> None:
    """Moves an arm to its ready pose, where another one has room to work.

    It lets go of what stands firm; what it carries otherwise it keeps, and stays where it is.

    Raises:
        TaskError: It cannot get there.
    """
    motion = hand.motion
    if motion.held is not None:
        if motion.carried():
            return
        motion.controller.give_way(True)
        hand.let_go()
    if np.abs(motion.controller.reference.positions - READY).max() < _THERE:
        return
    try:
        motion.go_to_joints([np.array(READY)])
    except PlanningError:
        # A task that failed may have left the hand among bricks.
        hand.clear_off()
        motion.go_to_joints([np.array(READY)])


def standing_back(scene: PlanningScene, hands: Iterable[Hand]) -> PlanningScene:
    """A scene with those arms that carry nothing in their ready pose."""
    for hand in hands:
        if not hand.motion.carried():
            back = dict(zip(hand.motion.arm.joints, READY, strict=True))
            scene = scene.with_positions(back)
    return scene


def way_in(hand: Hand, tool: Array) -> tuple[Array, Array]:
    """Tool poses ((4, 4) [m]) where the straight way to a grasp of a part in the air begins and
    ends."""
    before = tool.copy()
    before[:3, 3] -= 2.0 * hand.parameters.approach_height * tool[:3, 2]
    return before, tool


def let_loose(hand: Hand) -> None:
    """Lets go of what stands firm and moves off a little, after a task that another arm did not get
    done.

    Raises:
        CanceledError: The caller canceled.
    """
    motion = hand.motion
    if motion.held is None or motion.carried():
        return
    motion.controller.give_way(True)
    try:
        hand.let_go()
    except CanceledError:
        raise
    except TaskError:
        # What kept the other arm from its task says more than what keeps this one there.
        return


def take(hand: Hand, part_id: int, grasp: Grasp, giver: Hand, seen: Array | None = None) -> None:
    """Takes a brick, with all that it is connected to, out of another arm's gripper.

    Args:
        hand: The arm that takes it.
        part_id: The brick, held by the other arm in free space.
        grasp: How to take it.
        giver: The arm that holds it; it lets go and moves back.
        seen: (4, 4) where it is [m]; None: it is looked at once.

    Raises:
        TaskError: The place cannot be reached, the gripper did not close on the brick, or the brick
            broke off what the other arm holds.
    """
    p, motion, world = hand.parameters, hand.motion, hand.world
    given = giver.motion.carried()
    hand.enter(Stage.APPROACHING)
    motion.move_gripper(hand.chooser.opening(grasp), p.grip_force)
    seen = world.observe(world.part_pose(part_id)) if seen is None else seen
    tool = seen @ grasp.part_T_tool
    pairs = motion.touching(giver.motion.carried())
    scene = world.planning_scene()
    motion.go_to_joints(
        [hand.chooser.line_start(scene, scene.allowing(pairs), *way_in(hand, tool))]
    )
    scene = world.planning_scene().allowing(pairs)
    motion.go_straight([tool], p.approach_speed, scene, free=True)
    hand.enter(Stage.GRASPING)
    # Both hands on one brick: the one that takes yields, so that they do not pull at it. The other
    # one bears what hangs on it: yielding, it would fall with it.
    motion.controller.give_way(True)
    hand.close(part_id, grasp)
    motion.controller.give_way(False)
    hand.look_at_grip()
    hand.require_whole(given, "when it was taken")
    giver.let_go()
    hand.require_whole(given, "when it was taken")


class Brace:
    """A second hand that bears the press of the first one where what stands there does not, and
    brings what the first one does not reach.

    A rigid structure does not give way to the press and so leaves nothing to a hand that only
    holds: this one pushes back as hard as the other one presses, see `Hand.support`.

    Args:
        helper: The second hand; holds nothing.
        presser: The hand that is going to press.
        job: What it is going to do.
    """

    def __init__(self, helper: Hand, presser: Hand, job: InsertionTask) -> None:
        self._helper = helper
        self._presser = presser
        self._job = job

    def needed(self) -> bool:
        """Whether a structure that stands firm does not bear the least press."""
        if not self._presser.world.is_fixed(self._job.goal.target):
            return False
        return bool(self._alone()[1])

    def foresee(self) -> None:
        """Looks for a place for the second hand. A brick that the first one holds already, since it
        was canceled, is moved out of the way; else nothing moves.

        Raises:
            TaskError: Pushing back does not help, or the place cannot be reached.
        """
        if self._presser.motion.carried():
            self._clear_seat()
        self._choice()

    def apply(self) -> None:
        """Brings the second hand there; it pushes back from then on.

        Raises:
            TaskError: Pushing back does not help, or the place cannot be reached.
        """
        helper, presser = self._helper, self._presser
        self._clear_seat()
        choice = self._choice()
        helper.reach(choice)
        helper.enter(Stage.GRASPING)
        # The brick stands firm: the arm yields while the fingers find their place on it.
        helper.motion.controller.give_way(True)
        helper.close(choice.part, choice.grasp)
        helper.motion.controller.give_way(False)
        helper.motion.tare(helper.parameters.settle_time)
        presser.support = Support(
            choice.part,
            helper.motion.controller.measured_tool[:3, 3].copy(),
            helper.pressing(UP).bear,
            lambda: helper.motion.controller.give_way(True),
        )

    def bring(
        self,
        fitting: Sequence[tuple[int, Grasp]],
        candidates: Iterable[tuple[int, Grasp]],
        seat: tuple[int, Array],
    ) -> None:
        """Puts the brick on a place of the table where the first hand reaches it and makes room.

        Raises:
            TaskError: There is no such place, or the way there failed.
        """
        stand_back(self._presser)
        self._helper.use(self._presser.parameters)
        regrasp(self._presser, fitting, candidates, seat, self._helper)
        stand_back(self._helper)

    def _clear_seat(self) -> None:
        """Moves the first hand to its ready pose, away from where the second one is to work."""
        presser = self._presser
        try:
            presser.motion.go_to_joints([np.array(READY)])
        except PlanningError:
            # It was canceled while it pressed.
            presser.lift()
            presser.motion.go_to_joints([np.array(READY)])

    def _alone(self) -> tuple[PressCheck, str]:
        """The check of the press without the second hand, and what gives way then."""
        presser, least = self._presser, self._presser.parameters.least_press_force
        check = press_check(presser, self._job, presser.between or {self._job.goal.part})
        return check, check.verdict(least, least).reason

    def _choice(self) -> Choice:
        self._helper.use(self._presser.parameters)
        self._helper.enter(Stage.PLANNING)
        check, reason = self._alone()
        choice = _support_choice(self._helper, self._presser, self._job, check)
        if choice is None:
            raise TaskError(
                f"pressing brick {self._job.goal.part} on with"
                f" {self._presser.parameters.least_press_force:.1f} N would break what is there,"
                f" wherever a second hand pushes back: {reason}",
                Outcome.STRUCTURE_UNSTABLE,
            )
        return choice


def _support_choice(
    helper: Hand, presser: Hand, job: InsertionTask, check: PressCheck
) -> Choice | None:
    """How the second hand holds a part so that its push helps and the first one still gets to the
    seat; None if a push helps nowhere.

    Raises:
        UnreachableError: Where it helps there is no way.
    """
    world, least = presser.world, presser.parameters.least_press_force
    seat = (job.goal.part, seat_pose(world, job.goal))
    pressing = list(_pressing_grasps(presser, job))
    failures: dict[str, None] = {}
    tried = 0
    for part, grasp, point in _pushing_grasps(helper, presser, job, check):
        if check.pushed(part, point).verdict(least, least).reason:
            continue
        tried += 1
        if tried > _SUPPORTS:
            break
        try:
            choice = helper.chooser.choose([(part, grasp)], world.part_pose)
            scene = _scene_while_held(helper, choice)
        except PlanningError as error:
            failures[str(error)] = None
            continue
        if presser.chooser.fitting(pressing, seat, scene):
            return choice
        failures["the second hand would be in the way of the first one"] = None
    if not tried:
        return None
    raise UnreachableError(
        f"brick {job.goal.part} needs a second hand that pushes back at {check.lower_parts}: "
        + "; ".join(failures)
    )


def _pushing_grasps(
    helper: Hand, presser: Hand, job: InsertionTask, check: PressCheck
) -> list[tuple[int, Grasp, Array]]:
    """Parts, grasps of the second hand and where ((3,) [m], world) it pushes then, nearest to the
    middle of the press first."""
    middle = check.middle
    options = [
        (part, grasp, (helper.world.part_pose(part) @ grasp.part_T_tool)[:3, 3])
        for part in check.lower_parts
        for grasp in _beside(helper, presser, job, part)
    ]
    return sorted(options, key=lambda o: round(float(np.linalg.norm(o[2][:2] - middle[:2])), 4))


def _scene_while_held(helper: Hand, choice: Choice) -> PlanningScene:
    """The scene with the second hand around the part.

    Raises:
        PlanningError: It does not get there.
    """
    motion, arm = helper.motion, helper.motion.arm
    scene = helper.world.planning_scene().allowing(
        motion.touching([*near(helper.world, choice.part), choice.part])
    )
    above = dict(zip(arm.joints, choice.above_pick.tolist(), strict=True))
    tool = choice.world_T_part @ choice.grasp.part_T_tool
    down = motion.plan(
        lambda: motion.planner.plan_straight(scene.with_positions(above), arm, [tool])
    )
    joints = dict(zip(down.joints, down.positions[-1].tolist(), strict=True))
    fingers = dict.fromkeys(arm.fingers, 0.5 * choice.grasp.width)
    return scene.with_positions(joints | fingers)


def _beside(helper: Hand, presser: Hand, job: InsertionTask, part: int) -> Iterator[Grasp]:
    """Grasps of a part in a structure that leave room for a brick's seat and the pressing hand;
    first those whose hand leans towards its own arm."""
    world = helper.world
    graph, goal, clearance = world.graph, job.goal, helper.parameters.neighbor_clearance
    world_T_seat = seat_pose(world, goal)
    seated = [
        brick_box(graph.part(moving).shape, world_T_seat @ relative_pose(graph, goal.part, moving))
        for moving in graph.component_parts(graph.component_of(goal.part))
    ]
    pressing = [
        [
            Box(box.size, world_T_seat @ goal_T_tool @ box.pose)
            for box in hand_boxes(grasp.width + 2.0 * grasp.release)
        ]
        for held, grasp in _pressing_grasps(presser, job)
        for goal_T_tool in (relative_pose(graph, goal.part, held) @ grasp.part_T_tool,)
    ]
    world_T_part = world.part_pose(part)
    shape = graph.part(part).shape
    base = helper.motion.arm.world_T_base[:2, 3]
    towards = (world_T_part[:2, 3] - base) @ world_T_part[:2, :2]

    def leans_away(grasp: Grasp) -> bool:
        return bool(grasp.part_T_tool[:2, 2] @ towards < 0.0)

    leaning = sorted(leaning_grasps(shape, helper.parameters), key=leans_away)
    for grasp in itertools.chain(leaning, grasps(shape, helper.parameters)):
        tool = world_T_part @ grasp.part_T_tool
        opening = helper.chooser.opening(grasp)
        beside = [hand_is_free(tool, w, seated, clearance) for w in (opening, grasp.width)]
        if all(beside) and any(hand_is_free(tool, opening, b, clearance) for b in pressing):
            yield grasp


def _pressing_grasps(presser: Hand, job: InsertionTask) -> Iterable[tuple[int, Grasp]]:
    """The grasp that the pressing hand has, or some of those that it may take."""
    if presser.grasp is not None and presser.motion.held is not None:
        return [(presser.motion.held, presser.grasp)]
    graph, part = presser.world.graph, job.goal.part
    group = set(graph.component_parts(graph.component_of(part)))
    given = (candidate for candidate in job.candidates if candidate[0] in group)
    options = itertools.chain(given, own_candidates(presser, part))
    return itertools.islice(options, _PRESSING)
