# SPDX-License-Identifier: Apache-2.0
"""Picking bricks, inserting them and taking them off again, with one arm."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array, inverse, rotation_angle, transform
from bricksim_moveit_demo.choosing import Choice, GraspChooser, raised
from bricksim_moveit_demo.connections import (
    Expectation,
    connections_of,
    expectation,
    lost_connections,
    relative_pose,
    seat_in_target,
)
from bricksim_moveit_demo.control.gripper import GripperStatus
from bricksim_moveit_demo.description import MAX_WIDTH, READY
from bricksim_moveit_demo.errors import Outcome, PlanningError, TaskError, UnreachableError
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, Grasp, boxes_overlap, grasps
from bricksim_moveit_demo.motion import ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.protocol import MotionPlanner
from bricksim_moveit_demo.planning.scene import TABLE, brick_box, brick_name
from bricksim_moveit_demo.pressing import Pressing
from bricksim_moveit_demo.reports import Feedback, InsertionGoal, Report, Stage
from bricksim_moveit_demo.world import World

_FREE_PLACES = 12
"""How many free places of the table are tried to put a brick down."""
_HOPELESS = (Outcome.INVALID_GOAL, Outcome.UNREACHABLE, Outcome.CANCELED, Outcome.TIMEOUT)
"""Causes that another try does not mend."""


class BrickHandler:
    """Handles bricks with one arm.

    Errors of a try are recovered where possible; what remains is told in the report.

    Attributes:
        motion: The arm's motions.
        parameters: All numbers.
    """

    def __init__(
        self,
        world: World,
        planner: MotionPlanner,
        arm: str,
        parameters: TaskParameters | None = None,
        feedback: Feedback | None = None,
    ) -> None:
        self.motion = ArmMotion(world, planner, arm)
        self.parameters = parameters or TaskParameters()
        self._world = world
        self._feedback = feedback
        self._chooser = GraspChooser(self.motion, self.parameters)
        self._stage = Stage.PLANNING
        self._attempt = 1
        self._grasp: Grasp | None = None
        self._tool_T_held: Array | None = None
        self._greatest = 0.0
        self._deadline = float("inf")

    # -- whole tasks --------------------------------------------------------------------------

    def pick_and_insert(
        self,
        goal: InsertionGoal,
        candidates: Iterable[tuple[int, Grasp]] = (),
        release: bool = True,
    ) -> Report:
        """Picks a brick, or all that it is connected to, and presses it onto another.

        Args:
            goal: What goes where. What the arm holds already is not picked again.
            candidates: Parts and grasps to try before all others.
            release: False: keep holding afterwards.
        """
        candidates = tuple(candidates)
        report = _Record(self)
        try:
            wanted = expectation(self._world.graph, goal)
            for attempt in range(1, self.parameters.tries + 1):
                self._attempt = attempt
                try:
                    self._try_insertion(goal, wanted, candidates, release)
                    break
                except TaskError as error:
                    report.failed(error)
                    self._recover(goal, wanted)
            else:
                return report.finish(goal.part, ())
        except TaskError as error:
            report.gave_up(error)
            return report.finish(goal.part, ())
        made = tuple(c.id for c in self._world.graph.connections_of(goal.part))
        return report.succeed(goal.part, made)

    def take_off(self, part_id: int, method: str = "lift") -> Report:
        """Takes a brick off a structure and puts it on a free place of the table.

        Args:
            part_id: The brick; nothing may stand on it.
            method: ``lift`` pulls straight up; ``twist`` tilts it about an edge first, which
                takes less force.
        """
        report = _Record(self)
        broken = (
            tuple(c.id for c in self._world.graph.connections_of(part_id))
            if (part_id in self._world.graph)
            else ()
        )
        try:
            self._require_removable(part_id, method)
            for attempt in range(1, self.parameters.tries + 1):
                self._attempt = attempt
                try:
                    self._try_removal(part_id, method)
                    break
                except TaskError as error:
                    report.failed(error)
                    self._clear_hand(part_id)
            else:
                return report.finish(part_id, ())
        except TaskError as error:
            report.gave_up(error)
            return report.finish(part_id, ())
        return report.succeed(part_id, broken)

    # -- pieces, for tasks of two arms ----------------------------------------------------------

    def pick(self, part_id: int, candidates: Iterable[Grasp]) -> Grasp:
        """Picks a brick from the table with the first of some grasps that works.

        Raises:
            TaskError: None works, or the brick was not gripped.
        """
        self._enter(Stage.PLANNING)
        choice = self._chooser.choose(((part_id, g) for g in candidates), self._locate)
        self._grip(choice)
        return choice.grasp

    def take(self, part_id: int, grasp: Grasp, giver: BrickHandler) -> None:
        """Takes a brick out of another arm's gripper.

        Args:
            part_id: The brick, held by the other arm in free space.
            grasp: How to take it.
            giver: The arm that holds it; it lets go and moves back.

        Raises:
            TaskError: The place cannot be reached or the gripper did not close on the brick.
        """
        p, motion = self.parameters, self.motion
        self._enter(Stage.APPROACHING)
        motion.move_gripper(self._chooser.opening(grasp), p.grip_force)
        tool = self._world.observe(self._world.part_pose(part_id)) @ grasp.part_T_tool
        before = tool.copy()
        before[:3, 3] -= 2.0 * p.approach_height * tool[:3, 2]
        near = motion.touching(giver.motion.carried())
        scene = self._world.planning_scene()
        motion.go_to_joints([self._chooser.line_start(scene, scene.allowing(near), before, tool)])
        scene = self._world.planning_scene().allowing(near)
        motion.go_straight([tool], p.approach_speed, scene, p.collision_force)
        self._enter(Stage.GRASPING)
        # Both hands on one brick: the one that gives yields, so that they do not pull at it.
        giver.motion.controller.give_way(True)
        self._close(part_id, grasp)
        self._look_at_grip()
        giver.let_go()

    def let_go(self) -> None:
        """Opens the gripper around a brick that something else holds and moves back."""
        p, motion = self.parameters, self.motion
        assert self._grasp is not None and motion.held is not None
        held = motion.held
        self._enter(Stage.RELEASING)
        opening = min(self._grasp.width + 2.0 * self._grasp.release, MAX_WIDTH)
        motion.move_gripper(opening, p.grip_force)
        self._forget_grip()
        self._enter(Stage.RETREATING)
        back = motion.tool
        back[:3, 3] -= p.approach_height * back[:3, 2]
        touching = motion.touching([*self._chooser.near(held), held])
        motion.go_straight([back], None, self._world.planning_scene().allowing(touching))

    def carry(self, world_T_part: Array) -> None:
        """Moves the held brick to a pose ((4, 4) [m]) in free space.

        Raises:
            TaskError: Nothing is held or the pose cannot be reached.
        """
        if self._grasp is None:
            raise TaskError(f"{self.motion.arm.name} holds no brick", Outcome.BRICK_LOST)
        self._enter(Stage.TRANSFERRING)
        self.motion.go_to_pose(world_T_part @ self._grasp.part_T_tool)

    # -- inserting --------------------------------------------------------------------------

    def _try_insertion(
        self,
        goal: InsertionGoal,
        wanted: Expectation,
        candidates: tuple[tuple[int, Grasp], ...],
        release: bool,
    ) -> None:
        if wanted.is_met(self._world.graph):
            return
        mark = len(self._world.events)
        self._enter(Stage.PLANNING)
        seat = self._world.part_pose(goal.target) @ seat_in_target(self._world.graph, goal)
        world_T_seat = self._world.observe(seat)
        if goal.part not in self.motion.carried():
            choice = self._chooser.choose(
                itertools.chain(candidates, self._own_candidates(goal.part)),
                self._locate,
                (goal.part, world_T_seat),
                skip=self._attempt - 1,
            )
            self._grip(choice)
        self._insert(goal, world_T_seat, wanted, release)
        self._enter(Stage.VERIFYING)
        lost = lost_connections(self._world.graph, self._world.events[mark:])
        if lost:
            raise TaskError(f"connections {lost} broke", Outcome.STRUCTURE_BROKE)
        if not wanted.is_met(self._world.graph):
            actual = connections_of(self._world.graph, wanted.parts)
            raise TaskError(
                f"brick {goal.part} has connections {sorted(actual)}, expected"
                f" {sorted(wanted.connections)}",
                Outcome.WRONG_CONNECTION,
            )

    def _own_candidates(self, part_id: int) -> Iterator[tuple[int, Grasp]]:
        """Grasps of a brick, then of what it is connected to, the topmost first."""
        graph = self._world.graph
        group = graph.component_parts(graph.component_of(part_id))
        for part in sorted(group, key=lambda p: (p != part_id, -graph.grid_pose(p).z)):
            for grasp in grasps(graph.part(part).shape, self.parameters):
                yield part, grasp

    def _insert(
        self, goal: InsertionGoal, world_T_seat: Array, wanted: Expectation, release: bool
    ) -> None:
        p, motion = self.parameters, self.motion
        assert self._grasp is not None and motion.held is not None
        up = world_T_seat[:3, 2]
        part_T_held = relative_pose(self._world.graph, goal.part, motion.held)
        seat_tool = world_T_seat @ part_T_held @ self._grasp.part_T_tool
        above = seat_tool.copy()
        above[:3, 3] += p.approach_height * up
        self._enter(Stage.TRANSFERRING)
        scene = self._world.planning_scene()
        pairs = self._chooser.sliding_pairs(motion.carried(), goal.part, world_T_seat)
        start = self._chooser.line_start(scene, scene.allowing(pairs), above, seat_tool)
        motion.go_to_joints([start])
        self._require_grip()
        self._enter(Stage.INSERTING)
        motion.tare(p.settle_time)
        pressing = Pressing(motion, up, p, self._tell_force)
        try:
            pressing.descend(p.approach_height)
            self._enter(Stage.PRESSING)
            connected = (
                pressing.press(p.search_force)
                or pressing.search(p.search_force)
                or pressing.press(p.press_force)
                or pressing.search(p.press_force)
            )
        finally:
            self._greatest = max(self._greatest, pressing.greatest)
        motion.controller.give_way(True)
        if not connected:
            raise TaskError(
                f"no connection with {pressing.greatest:.1f} N (limit {p.press_force:.1f} N)",
                Outcome.FORCE_LIMIT,
            )
        wrong = set(pressing.formed()) - wanted.connections
        if wrong:
            raise TaskError(f"connected as {sorted(wrong)}", Outcome.WRONG_CONNECTION)
        if release:
            self.let_go()
        else:
            # What holds the seat and this arm pull at each other no more.
            motion.wait(p.settle_time)
            self._look_at_grip()

    # -- gripping ---------------------------------------------------------------------------

    def _grip(self, choice: Choice) -> None:
        """Goes to a brick, grips it and lifts it."""
        p, motion, grasp, part = self.parameters, self.motion, choice.grasp, choice.part
        self._enter(Stage.APPROACHING)
        motion.move_gripper(self._chooser.opening(grasp), p.grip_force)
        motion.go_to_joints([choice.above_pick])
        scene = self._world.planning_scene().allowing(motion.touching([part]))
        tool = choice.world_T_part @ grasp.part_T_tool
        motion.go_straight([tool], p.approach_speed, scene, p.collision_force)
        self._enter(Stage.GRASPING)
        self._close(part, grasp)
        self._enter(Stage.LIFTING)
        self._lift()
        self._require_grip()

    def _close(self, part_id: int, grasp: Grasp, force: float | None = None) -> None:
        p, motion = self.parameters, self.motion
        status = motion.move_gripper(0.0, force or p.grip_force)
        width = motion.controller.width
        if status is not GripperStatus.STALLED or abs(width - grasp.width) > p.width_tolerance:
            motion.move_gripper(self._chooser.opening(grasp), p.grip_force)
            raise TaskError(
                f"gripper closed to {1e3 * width:.1f} mm on brick {part_id}, expected"
                f" {1e3 * grasp.width:.1f} mm",
                Outcome.GRASP_FAILED,
            )
        self._world.held[motion.arm.name] = part_id
        self._grasp = grasp
        motion.wait(p.settle_time)
        self._remember_grip()

    def _lift(self) -> None:
        p, motion = self.parameters, self.motion
        carried = motion.carried()
        near = {other for part in carried for other in self._chooser.near(part)}
        pairs = motion.touching(sorted(near)) + [(brick_name(part), TABLE) for part in carried]
        motion.go_straight(
            [raised(motion.tool, p.lift_height)],
            p.approach_speed,
            self._world.planning_scene().allowing(pairs),
            p.collision_force,
        )

    def _look_at_grip(self) -> None:
        """Observes how the held brick sits in the gripper after it was moved there."""
        assert self._grasp is not None and self.motion.held is not None
        seen = self._world.observe(self._world.part_pose(self.motion.held))
        part_T_tool = inverse(seen) @ self.motion.controller.measured_tool
        self._grasp = replace(self._grasp, part_T_tool=part_T_tool)
        self._remember_grip()

    def _remember_grip(self) -> None:
        assert self.motion.held is not None
        tool = self.motion.controller.measured_tool
        self._tool_T_held = inverse(tool) @ self._world.part_pose(self.motion.held)

    def _forget_grip(self) -> None:
        self._world.held.pop(self.motion.arm.name, None)
        self._grasp = None
        self._tool_T_held = None

    def _require_held(self) -> tuple[float, float]:
        """Raises when the held brick is no longer between the fingers.

        Returns:
            How far it moved there [m] and turned [rad] since it was gripped.
        """
        held = self.motion.held
        assert self._tool_T_held is not None and held is not None
        now = inverse(self.motion.controller.measured_tool) @ self._world.part_pose(held)
        shift = float(np.linalg.norm(now[:3, 3] - self._tool_T_held[:3, 3]))
        if shift > self.parameters.missing_distance:
            self._forget_grip()
            raise TaskError(
                f"brick {held} is {1e3 * shift:.0f} mm from where it was gripped",
                Outcome.BRICK_LOST,
            )
        return shift, float(rotation_angle(now[:3, :3] @ self._tool_T_held[:3, :3].T))

    def _require_grip(self) -> None:
        """Raises when the held brick is not where the grasp left it."""
        held = self.motion.held
        shift, turn = self._require_held()
        if shift > self.parameters.slip_position or turn > self.parameters.slip_rotation:
            raise TaskError(
                f"brick {held} moved {1e3 * shift:.1f} mm and {np.degrees(turn):.1f} degrees in"
                " the gripper",
                Outcome.BRICK_SLIPPED,
            )

    def _locate(self, part_id: int) -> Array:
        """Observed pose of a brick that stands upright.

        Raises:
            TaskError: It lies on a side or is out of the workspace.
        """
        pose = self._world.part_pose(part_id)
        if pose[2, 2] < 0.99:
            raise TaskError(f"brick {part_id} does not stand upright", Outcome.BRICK_MISSING)
        if pose[2, 3] < -0.01:
            raise TaskError(f"brick {part_id} is under the table", Outcome.BRICK_MISSING)
        return self._world.observe(pose)

    # -- recovering -------------------------------------------------------------------------

    def _recover(self, goal: InsertionGoal, wanted: Expectation) -> None:
        """Brings arm and brick back to where another try can start.

        Raises:
            TaskError: That failed, too.
        """
        self._enter(Stage.RECOVERING)
        motion = self.motion
        motion.settle_motion()
        if wanted.is_met(self._world.graph):
            return
        if motion.held is not None and goal.part in motion.carried():
            self._back_off(self.parameters.approach_height)
            if not self._grip_is_good() or self._attempt % 2 == 0:
                self._put_down()
        elif motion.held is not None:
            self._pull_off(wanted)
        else:
            motion.move_gripper(MAX_WIDTH, self.parameters.grip_force)
            self._clear_off()
        graph = self._world.graph
        fixed = [p for p in wanted.parts if p in graph and self._world.is_fixed(p)]
        if fixed and motion.held is None and not wanted.is_met(graph):
            raise TaskError(
                f"bricks {fixed} are stuck with connections {sorted(connections_of(graph, fixed))}",
                Outcome.WRONG_CONNECTION,
            )

    def _grip_is_good(self) -> bool:
        try:
            self._require_grip()
        except TaskError:
            return False
        return True

    def _back_off(self, distance: float) -> None:
        """Moves straight back by servoing: works from wherever a motion stopped."""
        motion = self.motion
        motion.controller.tare()
        axis = -motion.tool[:3, 2]
        pressing = Pressing(motion, axis, self.parameters, self._tell_force)
        pressing.pull(self.parameters.pull_force, distance)

    def _clear_off(self) -> None:
        """Gets the empty hand away from bricks, straight back or, at a joint limit, by a plan."""
        try:
            self._back_off(self.parameters.approach_height)
        except TaskError as error:
            if error.outcome is not Outcome.CONTROLLER_FAILED:
                raise
            self.motion.go_to_joints([np.array(READY)])

    def _clear_hand(self, part_id: int) -> None:
        """After a failed removal: puts down what is held, else opens and moves away."""
        self._enter(Stage.RECOVERING)
        self.motion.settle_motion()
        if part_id in self.motion.carried():
            self._put_down()
            return
        self.motion.move_gripper(MAX_WIDTH, self.parameters.grip_force)
        self._forget_grip()
        self._clear_off()

    def _pull_off(self, wanted: Expectation) -> None:
        """Pulls the held brick off whatever it is wrongly connected to."""
        self._pull_free(wanted.parts)
        if any(self._world.is_fixed(part) for part in wanted.parts):
            raise TaskError(
                f"brick {self.motion.held} does not come off with"
                f" {self.parameters.pull_force:.0f} N",
                Outcome.FORCE_LIMIT,
            )

    def _pull_free(self, part_ids: Iterable[int]) -> None:
        """Pulls until none of some parts is held by the world, or the limit of force is met."""
        p, motion = self.parameters, self.motion
        pressing = Pressing(motion, -motion.tool[:3, 2], p, self._tell_force)
        parts = tuple(part_ids)
        pressing.pull(
            p.pull_force,
            p.approach_height,
            free=lambda: not any(self._world.is_fixed(part) for part in parts),
        )
        self._greatest = max(self._greatest, pressing.greatest, -pressing.least)

    # -- taking off -------------------------------------------------------------------------

    def _require_removable(self, part_id: int, method: str) -> None:
        graph = self._world.graph
        if part_id not in graph:
            raise TaskError(f"brick {part_id} does not exist", Outcome.INVALID_GOAL)
        if method not in ("lift", "twist"):
            raise TaskError(f"method is {method!r}, expected lift or twist", Outcome.INVALID_GOAL)
        above = [c.hole_part for c in graph.connections_of(part_id) if c.stud_part == part_id]
        if above:
            raise TaskError(f"bricks {above} stand on brick {part_id}", Outcome.INVALID_GOAL)
        if not graph.connections_of(part_id):
            raise TaskError(f"brick {part_id} is not connected", Outcome.INVALID_GOAL)

    def _try_removal(self, part_id: int, method: str) -> None:
        p, motion = self.parameters, self.motion
        shape = self._world.graph.part(part_id).shape
        if not self._world.graph.connections_of(part_id):
            # It came off in another try and was lost.
            self.pick(part_id, grasps(shape, p))
            self._put_down()
            return
        mark = len(self._world.events)
        others = _others(self._world, part_id)
        self._enter(Stage.PLANNING)
        choice = self._chooser.choose(
            ((part_id, g) for g in grasps(shape, p)), self._locate, skip=self._attempt - 1
        )
        self._enter(Stage.APPROACHING)
        motion.move_gripper(self._chooser.opening(choice.grasp), p.grip_force)
        motion.go_to_joints([choice.above_pick])
        scene = self._world.planning_scene().allowing(motion.touching([part_id]))
        tool = choice.world_T_part @ choice.grasp.part_T_tool
        motion.go_straight([tool], p.approach_speed, scene, p.collision_force)
        self._enter(Stage.GRASPING)
        # The brick stands firm: the arm yields while the fingers find their place on it.
        motion.controller.give_way(True)
        self._close(part_id, choice.grasp, p.pull_grip_force)
        self._enter(Stage.LIFTING)
        motion.controller.give_way(False)
        motion.tare(p.settle_time)
        if method == "twist":
            self._twist(choice.grasp)
        self._pull_free([part_id])
        if self._world.graph.connections_of(part_id):
            motion.controller.give_way(True)
            motion.move_gripper(self._chooser.opening(choice.grasp), p.grip_force)
            self._forget_grip()
            raise TaskError(
                f"brick {part_id} does not come off with {p.pull_force:.0f} N",
                Outcome.FORCE_LIMIT,
            )
        motion.wait(p.settle_time)
        self._require_held()
        self._look_at_grip()
        self._put_down()
        self._enter(Stage.VERIFYING)
        lost = [
            key
            for key in lost_connections(self._world.graph, self._world.events[mark:])
            if part_id not in key[:2]
        ]
        if lost or _others(self._world, part_id) != others:
            raise TaskError(f"connections {lost} broke, too", Outcome.STRUCTURE_BROKE)

    def _twist(self, grasp: Grasp) -> None:
        """Tilts the held brick about a lower edge, away from the studs."""
        p, motion = self.parameters, self.motion
        tool = motion.tool
        closing, up = tool[:3, 1], -tool[:3, 2]
        along = np.cross(closing, up)
        # The edge under one pad: the fingers' faces stay parallel to it.
        height = self._world.graph.part(motion.held or -1).shape.size[2]
        bottom = tool[:3, 3] - (TIP_BEYOND_TOOL + height - grasp.depth) * up
        edge = bottom + 0.5 * grasp.width * closing
        pressing = Pressing(motion, up, p, self._tell_force)
        pressing.tilt(
            edge,
            -along,
            p.twist_angle,
            done=lambda: not self._world.is_fixed(motion.held or -1),
        )
        self._greatest = max(self._greatest, pressing.greatest, -pressing.least)

    # -- putting down -----------------------------------------------------------------------

    def _put_down(self) -> None:
        """Puts what is held on a free place of the table and lets go."""
        motion, p = self.motion, self.parameters
        held = motion.held
        if held is None or self._grasp is None:
            return
        graph = self._world.graph
        carried = motion.carried()
        lowest = min(carried, key=lambda part: graph.grid_pose(part).z)
        lowest_T_held = relative_pose(graph, lowest, held)
        scene = self._world.planning_scene()
        resting = scene.allowing((brick_name(part), TABLE) for part in carried)
        failures: list[str] = []
        for world_T_lowest in self._free_places(lowest):
            tool = world_T_lowest @ lowest_T_held @ self._grasp.part_T_tool
            above = raised(tool, p.approach_height)
            try:
                motion.go_to_joints(
                    [self._chooser.line_start(scene, resting, above, raised(tool, 0.001))]
                )
                break
            except PlanningError as error:
                failures.append(str(error))
        else:
            raise UnreachableError(
                f"no free place of the table for brick {held}: "
                + "; ".join(dict.fromkeys(failures))
            )
        motion.tare(p.settle_time)
        pressing = Pressing(motion, np.array([0.0, 0.0, 1.0]), p, self._tell_force)
        pressing.descend(p.approach_height, studs=False)
        motion.controller.give_way(True)
        self.let_go()

    def _free_places(self, part_id: int) -> Iterator[Array]:
        """Upright poses on the table in reach of the arm, away from all bricks."""
        graph = self._world.graph
        moving = graph.component_parts(graph.component_of(part_id))
        others = [p for p in graph.part_ids if p not in moving]
        obstacles = [brick_box(graph.part(p).shape, self._world.part_pose(p)) for p in others]
        base = self.motion.arm.world_T_base
        found = 0
        for radius, angle in itertools.product((0.45, 0.38, 0.52, 0.6), np.linspace(-1.3, 1.3, 27)):
            place = base @ transform(
                [radius * np.cos(angle), radius * np.sin(angle), 0.0],
                [0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)],
            )
            boxes = [
                brick_box(graph.part(p).shape, place @ relative_pose(graph, part_id, p))
                for p in moving
            ]
            if any(boxes_overlap(box, obstacles, 4.0 * STUD_PITCH).any() for box in boxes):
                continue
            yield place
            found += 1
            if found == _FREE_PLACES:
                return

    # -- telling ----------------------------------------------------------------------------

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._tell_force(0.0)

    def _tell_force(self, force: float) -> None:
        if self._world.time > self._deadline:
            self._deadline = float("inf")
            self.motion.controller.give_way(True)
            raise TaskError(
                f"not done after {self.parameters.timeout:.0f} s ({self._stage})", Outcome.TIMEOUT
            )
        if self._feedback is not None:
            self._feedback(self._stage, self._attempt, force)


class _Record:
    """Collects what a report says."""

    def __init__(self, handler: BrickHandler) -> None:
        self._handler = handler
        self._begin = handler._world.time
        self._planning = handler.motion.planning_time
        self._failures: list[TaskError] = []
        self._outcome = Outcome.SUCCEEDED
        self._message = ""
        handler._greatest, handler._attempt = 0.0, 1
        handler._deadline = self._begin + handler.parameters.timeout

    def failed(self, error: TaskError) -> None:
        """A try failed; raises the error again if another one is hopeless."""
        self._outcome, self._message = error.outcome, str(error)
        if error.outcome in _HOPELESS:
            raise error
        self._failures.append(error)

    def gave_up(self, error: TaskError) -> None:
        """No further try is possible."""
        self._outcome = error.outcome
        if self._message in ("", str(error)):
            self._message = str(error)
        else:
            self._message = f"{self._message}; then: {error}"

    def succeed(self, part_id: int, connection_ids: tuple[int, ...]) -> Report:
        """The report of a success."""
        self._outcome, self._message = Outcome.SUCCEEDED, ""
        return self.finish(part_id, connection_ids)

    def finish(self, part_id: int, connection_ids: tuple[int, ...]) -> Report:
        """The report."""
        handler = self._handler
        handler._deadline = float("inf")
        return Report(
            part_id,
            handler.motion.arm.name,
            self._outcome,
            self._message,
            handler._attempt,
            handler._world.time - self._begin,
            handler.motion.planning_time - self._planning,
            handler._greatest,
            connection_ids,
            tuple(error.outcome for error in self._failures),
            tuple(str(error) for error in self._failures),
        )


def _others(world: World, part_id: int) -> set[tuple[int, int, tuple[int, int], int]]:
    """Connections that have nothing to do with a part."""
    graph = world.graph
    return connections_of(graph, graph.part_ids) - connections_of(graph, [part_id])
