# SPDX-License-Identifier: Apache-2.0
"""Choosing a grasp that works where a brick is picked and where it goes, before the arm moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.beside import aside, near
from bricksim_moveit_demo.connections import component_boxes, relative_pose
from bricksim_moveit_demo.description import MAX_WIDTH
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.grasps import Grasp, hand_is_free, presses_on
from bricksim_moveit_demo.motion import ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.scene import TABLE, Box, PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.world import placed_boxes

_MAX_CHECKED = 16
"""How many grasps are checked by inverse kinematics before giving up."""
_LINE_SOLUTIONS = 4
"""How many joint solutions are tried for the beginning of a straight motion."""
_FITTING = 3
"""How many grasps that fit a seat are looked for."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A grasp that works, with joint positions where its straight motions begin.

    Attributes:
        part: The part between the fingers.
        grasp: How it is held.
        world_T_part: (4, 4) where it was seen [m].
        above_pick: (7,) joint positions above the pick [rad].
        above_seat: (7,) joint positions above the seat [rad]; None if only the pick was asked for.
    """

    part: int
    grasp: Grasp
    world_T_part: Array
    above_pick: Array
    above_seat: Array | None


class GraspChooser:
    """Checks grasps by geometry, inverse kinematics and the planner, in this order."""

    def __init__(self, motion: ArmMotion, parameters: TaskParameters) -> None:
        self._motion = motion
        self._parameters = parameters

    def choose(
        self,
        candidates: Iterable[tuple[int, Grasp]],
        locate: Callable[[int], Array],
        seat: tuple[int, Array] | None = None,
        skip: int = 0,
        up: Array | None = None,
        moved: tuple[int, Array] | None = None,
    ) -> Choice:
        """The first grasp that works at the pick and, if asked for, at the seat.

        Args:
            candidates: Parts to hold and how.
            locate: Observed (4, 4) world_T_part [m] of a part on the table.
            seat: A part of the same component and the (4, 4) pose that it is to get.
            skip: How many working grasps to pass over: another try takes another one.
            up: (3,) direction from which the brick comes to its seat, world; None: that of its
                studs there.
            moved: A part and the (4, 4) pose [m] at which it, with its component, is to be picked
                instead of where it is now.

        Raises:
            UnreachableError: None works; the text counts the reasons.
        """
        scene = self._motion.world.planning_scene()
        if moved is not None:
            scene = self.moved(scene, *moved)
        if seat is not None and up is None:
            up = seat[1][:3, 2]
        seen: dict[int, Array] = {}
        reasons: Counter[str] = Counter()
        good: Choice | None = None
        checked = 0
        for part, grasp in candidates:
            if part not in seen:
                seen[part] = locate(part) if moved is None else self._at(part, *moved)
            refusal = self._refusal(scene, part, grasp, seen[part], seat)
            if refusal:
                reasons[refusal] += 1
                continue
            if checked == _MAX_CHECKED:
                break
            checked += 1
            try:
                good = self._check(scene, part, grasp, seen[part], seat, up)
            except PlanningError as error:
                reasons[str(error)] += 1
                continue
            if skip == 0:
                return good
            skip -= 1
        if good is not None:
            return good
        summary = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(4))
        parts = ", ".join(map(str, seen)) or "none"
        raise UnreachableError(f"no grasp of brick {parts} works: {summary}")

    def fitting(
        self,
        candidates: Iterable[tuple[int, Grasp]],
        seat: tuple[int, Array],
        scene: PlanningScene | None = None,
    ) -> list[tuple[int, Grasp]]:
        """The first few candidates that fit a seat, wherever they are picked; see `choose`.

        Args:
            candidates: Parts to hold and how.
            seat: A part and the (4, 4) pose that it is to get [m].
            scene: Where everything is; None: as it is now.
        """
        scene = scene or self._motion.world.planning_scene()
        found: list[tuple[int, Grasp]] = []
        checked = 0
        for part, grasp in candidates:
            if self._refusal_at_seat(scene, part, grasp, seat):
                continue
            if checked == _MAX_CHECKED or len(found) == _FITTING:
                break
            checked += 1
            try:
                pose = self._motion.world.part_pose(part)
                self._above_seat(scene, part, grasp, pose, seat, seat[1][:3, 2])
                found.append((part, grasp))
            except PlanningError:
                continue
        return found

    def line_start(
        self, free: PlanningScene, sliding: PlanningScene, begin: Array, end: Array
    ) -> Array:
        """Joint positions at a tool pose from which a straight line to another is possible.

        Args:
            free: Scene in which the beginning must be free.
            sliding: Scene in which the line must be free.
            begin: (4, 4) tool pose where the line begins [m].
            end: (4, 4) tool pose where it ends [m].

        Raises:
            PlanningError: There are none.
        """
        motion = self._motion
        solutions = motion.plan(
            lambda: motion.planner.reach(free, motion.arm, begin, _LINE_SOLUTIONS)
        )
        failures: list[str] = []
        for solution in solutions:
            joints = dict(zip(motion.arm.joints, solution.tolist(), strict=True))
            at = sliding.with_positions(joints)
            try:
                motion.plan(lambda at=at: motion.planner.plan_straight(at, motion.arm, [end]))
                return solution
            except PlanningError as error:
                failures.append(str(error))
        raise UnreachableError("; ".join(dict.fromkeys(failures)))

    def way_down(
        self,
        free: PlanningScene,
        sliding: PlanningScene,
        seat: tuple[int, Array],
        grip: tuple[int, Grasp],
        up: Array,
    ) -> tuple[Array, Array, Array]:
        """Where a held brick comes down onto its seat: beside it where there are edges to be met,
        if there is room for that.

        Args:
            free: Scene in which the beginning must be free.
            sliding: Scene in which the line must be free.
            seat: A part and the (4, 4) pose that it is to get [m].
            grip: A part of the same component and how it is held.
            up: (3,) direction from which it comes, world.

        Returns:
            (7,) joint positions at the beginning [rad] and (3,) distances from the seat [m], across
            the axis; see `aside`.

        Raises:
            PlanningError: There is no way.
        """
        p, graph = self._parameters, self._motion.world.graph
        part, grasp = grip
        moving = graph.component_parts(graph.component_of(part))
        apart, off = aside(
            self._motion.world, moving, seat, grip, p.side_clearance, p.least_press_force
        )
        failure: PlanningError | None = None
        for share in (1.0, 0.0) if apart.any() or off.any() else (0.0,):
            end = self._at(part, *seat) @ grasp.part_T_tool
            end[:3, 3] += share * (apart + off)
            begin = end.copy()
            begin[:3, 3] += p.approach_height * up
            try:
                return self.line_start(free, sliding, begin, end), share * apart, share * off
            except PlanningError as error:
                failure = error
        assert failure is not None
        raise failure

    def sliding_pairs(
        self, parts: Iterable[int], part: int, world_T_part: Array
    ) -> Iterator[tuple[str, str]]:
        """Names of bricks that may touch while parts slide into a seat.

        Args:
            parts: The moving parts, one component.
            part: One of them.
            world_T_part: (4, 4) its pose in the seat [m].
        """
        moving, world = set(parts), self._motion.world
        for other in sorted(moving):
            pose = world_T_part @ relative_pose(world.graph, part, other)
            for neighbor in near(world, other, pose):
                if neighbor not in moving:
                    yield brick_name(other), brick_name(neighbor)

    def presses_others(self, part: int, grasp: Grasp) -> bool:
        """Whether the closed fingers press on other parts of a brick's component, too."""
        graph = self._motion.world.graph
        boxes = [
            brick_box(graph.part(other).shape, relative_pose(graph, part, other))
            for other in graph.component_parts(graph.component_of(part))
            if other != part
        ]
        return presses_on(grasp.part_T_tool, grasp.width, boxes)

    def scrapes(self, part: int, grasp: Grasp, seat: tuple[int, Array]) -> bool:
        """Whether the closed fingers come close to what stands flush with a brick in its seat.

        Args:
            part: The part that is held.
            grasp: How.
            seat: A part of its component and the (4, 4) pose that it is to get [m].
        """
        world = self._motion.world
        graph = world.graph
        pose = self._at(part, *seat)
        moving = graph.component_parts(graph.component_of(part))
        boxes = placed_boxes(world, (o for o in near(world, part, pose) if o not in moving))
        return not self._fits(pose @ grasp.part_T_tool, grasp.width, boxes)

    def opening(self, grasp: Grasp) -> float:
        """Width [m] to which the gripper opens before a grasp."""
        return min(grasp.width + 2.0 * self._parameters.open_clearance, MAX_WIDTH)

    def moved(self, scene: PlanningScene, part: int, world_T_part: Array) -> PlanningScene:
        """A scene with a component elsewhere."""
        boxes = component_boxes(self._motion.world.graph, part, world_T_part)
        named = {brick_name(other): box for other, box in boxes.items()}
        return replace(scene, objects={**scene.objects, **named})

    # -- inside -----------------------------------------------------------------------------

    def _at(self, part: int, reference: int, world_T_reference: Array) -> Array:
        """Pose of a part when another one of its component is at a pose."""
        return world_T_reference @ relative_pose(self._motion.world.graph, reference, part)

    def _refusal(
        self,
        scene: PlanningScene,
        part: int,
        grasp: Grasp,
        world_T_part: Array,
        seat: tuple[int, Array] | None,
    ) -> str:
        """Why geometry alone forbids a grasp; empty if it does not."""
        boxes = _bricks(scene, [part])
        tool = world_T_part @ grasp.part_T_tool
        if not self._fits(tool, self.opening(grasp), boxes):
            return "no room for the fingers at the pick"
        graph = self._motion.world.graph
        moving = graph.component_parts(graph.component_of(part))
        if not self._fits(tool, grasp.width, _bricks(scene, moving)):
            return "the fingers would close on something else, too"
        return "" if seat is None else self._refusal_at_seat(scene, part, grasp, seat)

    def _refusal_at_seat(
        self, scene: PlanningScene, part: int, grasp: Grasp, seat: tuple[int, Array]
    ) -> str:
        """The same for the seat alone."""
        graph = self._motion.world.graph
        moving = graph.component_parts(graph.component_of(part))
        boxes = _bricks(scene, moving)
        for other in moving:
            if other != part:
                boxes.append(brick_box(graph.part(other).shape, self._at(other, *seat)))
        tool = self._at(part, *seat) @ grasp.part_T_tool
        # Half of the gap is left to the error of the seat.
        gap = 0.5 * self._parameters.neighbor_clearance
        if not hand_is_free(tool, grasp.width + 2.0 * grasp.release, boxes, gap):
            return "no room for the fingers at the seat"
        return ""

    def _fits(self, tool: Array, opening: float, obstacles: Sequence[Box]) -> bool:
        return hand_is_free(tool, opening, obstacles, self._parameters.neighbor_clearance)

    def _check(
        self,
        scene: PlanningScene,
        part: int,
        grasp: Grasp,
        world_T_part: Array,
        seat: tuple[int, Array] | None,
        up: Array | None,
    ) -> Choice:
        p, motion = self._parameters, self._motion
        arm = motion.arm
        tool = world_T_part @ grasp.part_T_tool
        opened = scene.with_positions(dict.fromkeys(arm.fingers, 0.5 * self.opening(grasp)))
        touching = opened.allowing(motion.touching([part]))
        above_pick = self.line_start(opened, touching, raised(tool, p.approach_height), tool)
        if seat is None or up is None:
            return Choice(part, grasp, world_T_part, above_pick, None)
        joints = dict(zip(arm.joints, above_pick.tolist(), strict=True))
        above_seat = self._above_seat(
            scene.with_positions(joints), part, grasp, world_T_part, seat, up
        )
        return Choice(part, grasp, world_T_part, above_pick, above_seat)

    def _above_seat(
        self,
        scene: PlanningScene,
        part: int,
        grasp: Grasp,
        world_T_part: Array,
        seat: tuple[int, Array],
        up: Array,
    ) -> Array:
        """(7,) joint positions above the seat, from which the way down is free.

        Raises:
            PlanningError: There are none.
        """
        arm, graph = self._motion.arm, self._motion.world.graph
        moving = graph.component_parts(graph.component_of(part))
        fingers = dict.fromkeys(arm.fingers, 0.5 * grasp.width)
        # What the arm holds already hangs on it in the scene.
        loose = [name for name in map(brick_name, moving) if name in scene.objects]
        held = scene.with_positions(fingers).attaching(
            arm.name, loose, world_T_part @ grasp.part_T_tool
        )
        sliding = held.allowing(self.sliding_pairs(moving, *seat))
        return self.way_down(held, sliding, seat, (part, grasp), up)[0]


def raised(pose: Array, height: float) -> Array:
    """A pose moved up by a height [m]."""
    result = np.array(pose)
    result[2, 3] += height
    return result


def _bricks(scene: PlanningScene, without: Iterable[int]) -> list[Box]:
    """Boxes of all bricks in the world but some."""
    gone = {brick_name(part_id) for part_id in without} | {TABLE}
    return [box for name, box in scene.objects.items() if name not in gone]
