# SPDX-License-Identifier: Apache-2.0
"""Picking a brick and inserting it, and taking bricks off again, with one arm."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.errors import TopologyError
from bricksim_core.events import EventKind
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array, inverse, rotation_angle, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_moveit_demo.control.gripper import GripperStatus
from bricksim_moveit_demo.description import MAX_WIDTH, READY
from bricksim_moveit_demo.errors import (
    Outcome,
    PlanningError,
    TaskError,
    UnreachableError,
)
from bricksim_moveit_demo.grasps import Grasp, boxes_overlap, grasps, hand_is_free
from bricksim_moveit_demo.motion import ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.protocol import MotionPlanner
from bricksim_moveit_demo.planning.scene import TABLE, Box, PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.pressing import ConnectionKey, Pressing, connection_key
from bricksim_moveit_demo.reports import Feedback, InsertionGoal, Report, Stage
from bricksim_moveit_demo.world import World

_MAX_CANDIDATES = 12
"""How many grasps are checked by inverse kinematics before giving up."""
_LINE_SOLUTIONS = 4
"""How many joint solutions are tried for the beginning of a straight motion."""
_NEARBY = 0.012
"""Bricks within this distance of a brick [m] may be touched while it slides in or out."""
_HOPELESS = (Outcome.INVALID_GOAL, Outcome.UNREACHABLE, Outcome.CANCELED, Outcome.TIMEOUT)
"""Causes that another try does not mend."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """A grasp that works at both ends, with joint positions where the straight motions begin."""

    grasp: Grasp
    world_T_part: Array
    above_pick: Array
    above_seat: Array


class BrickHandler:
    """Handles bricks with one arm.

    Errors of a try are recovered where possible; what remains is told in the report.
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
        self._stage = Stage.PLANNING
        self._attempt = 1
        self._grasp: Grasp | None = None
        self._tool_T_part: Array | None = None
        self._greatest = 0.0
        self._deadline = float("inf")

    # -- tasks ------------------------------------------------------------------------------

    def pick_and_insert(self, goal: InsertionGoal, release: bool = True) -> Report:
        """Picks a brick and presses it onto another; retries as the parameters allow.

        Args:
            goal: What goes where. If the arm holds a brick of the same component already, that
                component is inserted as it is.
            release: False: keep holding afterwards.
        """
        begin, planning = self._world.time, self.motion.planning_time
        self._greatest, self._attempt = 0.0, 1
        self._deadline = begin + self.parameters.timeout
        failures: list[Outcome] = []
        outcome, message = Outcome.SUCCEEDED, ""
        try:
            wanted = expected_connections(self._world.graph, goal)
            for attempt in range(1, self.parameters.tries + 1):
                self._attempt = attempt
                try:
                    self._try_insertion(goal, wanted, release)
                    outcome, message = Outcome.SUCCEEDED, ""
                    break
                except TaskError as error:
                    outcome, message = error.outcome, str(error)
                    if outcome in _HOPELESS:
                        raise
                    failures.append(outcome)
                    self._recover(goal, wanted)
        except TaskError as error:
            outcome = error.outcome
            message = f"{message}; then: {error}" if message not in ("", str(error)) else str(error)
        ids = (
            tuple(c.id for c in self._world.graph.connections_of(goal.part))
            if (outcome is Outcome.SUCCEEDED)
            else ()
        )
        return Report(
            goal.part,
            self.motion.arm.name,
            outcome,
            message,
            self._attempt,
            self._world.time - begin,
            self.motion.planning_time - planning,
            self._greatest,
            ids,
            tuple(failures),
        )

    # -- pieces for tasks of two arms -----------------------------------------------------------

    def pick(self, part_id: int, candidates: Iterable[Grasp]) -> Grasp:
        """Picks a brick from the table with the first of some grasps that works.

        Raises:
            TaskError: None works, or the brick was not gripped.
        """
        self._enter(Stage.PLANNING)
        world_T_part = self._locate(part_id)
        scene = self._world.planning_scene()
        obstacles = self._obstacles(scene, [part_id])
        arm = self.motion.arm
        reasons = []
        for grasp in candidates:
            tool = world_T_part @ grasp.part_T_tool
            if not self._fits(tool, self._opening(grasp), obstacles):
                reasons.append("no room for the fingers")
                continue
            opened = scene.with_positions({f: 0.5 * self._opening(grasp) for f in arm.fingers})
            touching = opened.allowing(self.motion.touching([part_id]))
            above = _raised(tool, self.parameters.approach_height)
            try:
                start = self._line_start(opened, touching, above, tool)
            except PlanningError as error:
                reasons.append(str(error))
                continue
            self._pick(part_id, _Choice(grasp, world_T_part, start, start))
            return grasp
        summary = "; ".join(f"{n} x {r}" for r, n in _counted(reasons).items())
        raise UnreachableError(f"no grasp of brick {part_id} works: {summary}")

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
        motion.move_gripper(self._opening(grasp), p.grip_force)
        tool = self._world.observe(self._world.part_pose(part_id)) @ grasp.part_T_tool
        before = tool.copy()
        before[:3, 3] -= 2.0 * p.approach_height * tool[:3, 2]
        scene = self._world.planning_scene()
        touching = scene.allowing(motion.touching(giver.motion.carried()))
        motion.go_to_joints([self._line_start(scene, touching, before, tool)])
        touching = self._world.planning_scene().allowing(motion.touching(giver.motion.carried()))
        motion.go_straight([tool], p.approach_speed, touching, p.collision_force)
        self._enter(Stage.GRASPING)
        # Both hands on one brick: the one that gives yields, so that they do not pull at it.
        giver.motion.controller.give_way(True)
        self._close(part_id, grasp)
        self._look_at_grip(part_id)
        giver.let_go(part_id)

    def let_go(self, part_id: int) -> None:
        """Opens the gripper around a brick that something else holds and moves back."""
        self._release(part_id)

    def carry(self, world_T_part: Array) -> None:
        """Moves the held brick to a pose ((4, 4) [m]) in free space.

        Raises:
            TaskError: Nothing is held or the pose cannot be reached.
        """
        if self._grasp is None:
            raise TaskError(f"{self.motion.arm.name} holds no brick", Outcome.BRICK_LOST)
        self._enter(Stage.TRANSFERRING)
        self.motion.go_to_pose(world_T_part @ self._grasp.part_T_tool)

    # -- one try ----------------------------------------------------------------------------

    def _try_insertion(
        self, goal: InsertionGoal, wanted: set[ConnectionKey], release: bool
    ) -> None:
        if connections_of(self._world.graph, goal.part) == wanted:
            return
        mark = len(self._world.events)
        self._enter(Stage.PLANNING)
        world_T_seat = self._world.observe(self._true_seat(goal))
        if goal.part not in self.motion.carried():
            choice = self._choose(goal, world_T_seat)
            self._pick(goal.part, choice)
        self._insert(goal, world_T_seat, wanted, release)
        self._enter(Stage.VERIFYING)
        self._require_whole(mark)
        actual = connections_of(self._world.graph, goal.part)
        if actual != wanted:
            raise TaskError(
                f"brick {goal.part} has connections {sorted(actual)}, expected {sorted(wanted)}",
                Outcome.WRONG_CONNECTION,
            )

    def _require_whole(self, mark: int) -> None:
        """Raises if a connection broke since an event."""
        broken = [e for e in self._world.events[mark:] if e.kind is EventKind.BROKEN]
        graph = self._world.graph
        lost = [connection_key(e) for e in broken if not _connected(graph, connection_key(e))]
        if lost:
            raise TaskError(f"connections {lost} broke", Outcome.STRUCTURE_BROKE)

    def _pick(self, part_id: int, choice: _Choice) -> None:
        p, motion, grasp = self.parameters, self.motion, choice.grasp
        tool = choice.world_T_part @ grasp.part_T_tool
        self._enter(Stage.APPROACHING)
        motion.move_gripper(self._opening(grasp), p.grip_force)
        motion.go_to_joints([choice.above_pick])
        scene = self._world.planning_scene().allowing(motion.touching([part_id]))
        motion.go_straight([tool], p.approach_speed, scene, p.collision_force)
        self._enter(Stage.GRASPING)
        self._close(part_id, grasp)
        self._enter(Stage.LIFTING)
        self._lift(part_id, p.lift_height)
        self._require_held(part_id)

    def _close(self, part_id: int, grasp: Grasp) -> None:
        p, motion = self.parameters, self.motion
        status = motion.move_gripper(0.0, p.grip_force)
        width = motion.controller.width
        if status is not GripperStatus.STALLED or abs(width - grasp.width) > p.width_tolerance:
            motion.move_gripper(self._opening(grasp), p.grip_force)
            raise TaskError(
                f"gripper closed to {1e3 * width:.1f} mm on brick {part_id}, expected"
                f" {1e3 * grasp.width:.1f} mm",
                Outcome.GRASP_FAILED,
            )
        self._world.held[motion.arm.name] = part_id
        self._grasp = grasp
        motion.wait(p.settle_time)
        self._remember_grip(part_id)

    def _look_at_grip(self, part_id: int) -> None:
        """Observes how the held brick sits in the gripper after it was moved there."""
        assert self._grasp is not None
        seen = self._world.observe(self._world.part_pose(part_id))
        part_T_tool = inverse(seen) @ self.motion.controller.measured_tool
        self._grasp = replace(self._grasp, part_T_tool=part_T_tool)
        self._remember_grip(part_id)

    def _remember_grip(self, part_id: int) -> None:
        tool = self.motion.controller.measured_tool
        self._tool_T_part = inverse(tool) @ self._world.part_pose(part_id)

    def _lift(self, part_id: int, height: float) -> None:
        motion = self.motion
        scene = self._world.planning_scene().allowing(
            motion.touching([*self._near(part_id), part_id])
        )
        scene = scene.allowing((brick_name(p), TABLE) for p in motion.carried())
        motion.go_straight(
            [_raised(motion.tool, height)],
            self.parameters.approach_speed,
            scene,
            self.parameters.collision_force,
        )

    def _insert(
        self,
        goal: InsertionGoal,
        world_T_seat: Array,
        wanted: set[ConnectionKey],
        release: bool,
    ) -> None:
        p, motion = self.parameters, self.motion
        assert self._grasp is not None and motion.held is not None
        held = motion.held
        up = world_T_seat[:3, 2]
        part_T_held = relative_pose(self._world.graph, goal.part, held)
        seat_tool = world_T_seat @ part_T_held @ self._grasp.part_T_tool
        above = seat_tool.copy()
        above[:3, 3] += p.approach_height * up
        self._enter(Stage.TRANSFERRING)
        start = self._line_start(
            self._world.planning_scene(), self._insertion_scene(goal), above, seat_tool
        )
        motion.go_to_joints([start])
        self._require_held(held)
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
        wrong = set(pressing.formed()) - wanted
        if wrong:
            raise TaskError(f"connected as {sorted(wrong)}", Outcome.WRONG_CONNECTION)
        if release:
            self._release(held)
        else:
            # What holds the seat and this arm now pull at each other no more.
            motion.wait(p.settle_time)
            self._look_at_grip(held)

    def _release(self, part_id: int) -> None:
        p, motion = self.parameters, self.motion
        assert self._grasp is not None
        self._enter(Stage.RELEASING)
        opening = min(self._grasp.width + 2.0 * p.release_clearance, MAX_WIDTH)
        motion.move_gripper(opening, p.grip_force)
        self._forget_grasp()
        self._enter(Stage.RETREATING)
        self._retreat(part_id, p.approach_height)

    def _retreat(self, part_id: int, distance: float) -> None:
        """Moves back along the tool's own axis: nothing is beside the fingers there."""
        motion = self.motion
        tool = motion.tool
        back = tool.copy()
        back[:3, 3] -= distance * tool[:3, 2]
        scene = self._world.planning_scene().allowing(
            motion.touching([*self._near(part_id), part_id])
        )
        motion.go_straight([back], None, scene)

    # -- choosing ---------------------------------------------------------------------------

    def _choose(self, goal: InsertionGoal, world_T_seat: Array) -> _Choice:
        """The first grasp that works at pick and at place, by geometry and inverse kinematics."""
        world_T_part = self._locate(goal.part)
        scene = self._world.planning_scene()
        shape = self._world.graph.part(goal.part).shape
        at_pick = self._obstacles(scene, [goal.part])
        reasons: list[str] = []
        checked = 0
        good: _Choice | None = None
        skip = self._attempt - 1
        for grasp in grasps(shape, self.parameters):
            if not self._fits(world_T_part @ grasp.part_T_tool, self._opening(grasp), at_pick):
                reasons.append("no room for the fingers at the pick")
                continue
            released = grasp.width + 2.0 * self.parameters.release_clearance
            if not self._fits(world_T_seat @ grasp.part_T_tool, released, at_pick):
                reasons.append("no room for the fingers at the seat")
                continue
            if checked == _MAX_CANDIDATES:
                break
            checked += 1
            try:
                good = self._check(goal, grasp, scene, world_T_part, world_T_seat)
            except PlanningError as error:
                reasons.append(str(error))
                continue
            if skip == 0:
                return good
            # Another try takes another grasp, if there is one.
            skip -= 1
        if good is not None:
            return good
        summary = "; ".join(f"{n} x {r}" for r, n in _counted(reasons).items())
        raise UnreachableError(f"no grasp of brick {goal.part} reaches its seat: {summary}")

    def _check(
        self,
        goal: InsertionGoal,
        grasp: Grasp,
        scene: PlanningScene,
        world_T_part: Array,
        world_T_seat: Array,
    ) -> _Choice:
        p, arm = self.parameters, self.motion.arm
        tool = world_T_part @ grasp.part_T_tool
        opened = scene.with_positions({f: 0.5 * self._opening(grasp) for f in arm.fingers})
        touching = opened.allowing(self.motion.touching([goal.part]))
        above_pick = self._line_start(opened, touching, _raised(tool, p.approach_height), tool)
        closed = scene.with_positions(dict.fromkeys(arm.fingers, 0.5 * grasp.width))
        held = closed.with_positions(
            dict(zip(arm.joints, above_pick.tolist(), strict=True))
        ).attaching(arm.name, [brick_name(goal.part)], tool)
        sliding = held.allowing(
            (brick_name(goal.part), brick_name(other))
            for other in self._near_pose(goal.part, world_T_seat)
        )
        seat_tool = world_T_seat @ grasp.part_T_tool
        above = seat_tool.copy()
        above[:3, 3] += p.approach_height * world_T_seat[:3, 2]
        above_seat = self._line_start(held, sliding, above, seat_tool)
        return _Choice(grasp, world_T_part, above_pick, above_seat)

    def _line_start(
        self, free: PlanningScene, sliding: PlanningScene, begin: Array, end: Array
    ) -> Array:
        """Joint positions at a tool pose from which a straight line to another is possible."""
        motion = self.motion
        solutions = motion.plan(
            lambda: motion.planner.reach(free, motion.arm, begin, _LINE_SOLUTIONS)
        )
        failure: PlanningError | None = None
        for solution in solutions:
            at = sliding.with_positions(
                dict(zip(motion.arm.joints, solution.tolist(), strict=True))
            )
            try:
                motion.plan(lambda at=at: motion.planner.plan_straight(at, motion.arm, [end]))
                return solution
            except PlanningError as error:
                failure = error
        assert failure is not None
        raise failure

    def _insertion_scene(self, goal: InsertionGoal) -> PlanningScene:
        """The scene in which the held brick may touch its seat and what stands around it."""
        near = self._near_pose(goal.part, self._true_seat(goal))
        return self._world.planning_scene().allowing(
            (brick_name(p), brick_name(other)) for p in self.motion.carried() for other in near
        )

    def _obstacles(self, scene: PlanningScene, parts: Iterable[int]) -> list[Box]:
        own = {brick_name(p) for p in parts} | {TABLE}
        return [box for name, box in scene.objects.items() if name not in own]

    def _fits(self, tool: Array, opening: float, obstacles: Sequence[Box]) -> bool:
        return hand_is_free(tool, opening, obstacles, self.parameters.neighbor_clearance)

    def _near(self, part_id: int) -> list[int]:
        return self._near_pose(part_id, self._world.part_pose(part_id))

    def _near_pose(self, part_id: int, world_T_part: Array) -> list[int]:
        """Other bricks close to a brick at a pose."""
        graph = self._world.graph
        box = brick_box(graph.part(part_id).shape, world_T_part)
        others = [other for other in graph.part_ids if other != part_id]
        boxes = [brick_box(graph.part(o).shape, self._world.part_pose(o)) for o in others]
        close = boxes_overlap(box, boxes, _NEARBY)
        return [other for other, near in zip(others, close, strict=True) if near]

    # -- observing --------------------------------------------------------------------------

    def _locate(self, part_id: int) -> Array:
        """Observed pose of a loose brick that stands upright.

        Raises:
            TaskError: It lies on a side or is out of the workspace.
        """
        pose = self._world.part_pose(part_id)
        if pose[2, 2] < 0.99:
            raise TaskError(f"brick {part_id} does not stand upright", Outcome.BRICK_MISSING)
        if pose[2, 3] < -0.01:
            raise TaskError(f"brick {part_id} is under the table", Outcome.BRICK_MISSING)
        return self._world.observe(pose)

    def _true_seat(self, goal: InsertionGoal) -> Array:
        """(4, 4) world_T_part of the brick in its seat [m]."""
        return self._world.part_pose(goal.target) @ seat_in_target(self._world.graph, goal)

    def _require_held(self, part_id: int) -> None:
        """Raises when the held brick is not where the grasp left it."""
        assert self._tool_T_part is not None
        p = self.parameters
        now = inverse(self.motion.controller.measured_tool) @ self._world.part_pose(part_id)
        shift = float(np.linalg.norm(now[:3, 3] - self._tool_T_part[:3, 3]))
        turn = float(rotation_angle(now[:3, :3] @ self._tool_T_part[:3, :3].T))
        if shift > p.missing_distance:
            self._forget_grasp()
            raise TaskError(
                f"brick {part_id} is {1e3 * shift:.0f} mm from the gripper", Outcome.BRICK_LOST
            )
        if shift > p.slip_position or turn > p.slip_rotation:
            raise TaskError(
                f"brick {part_id} moved {1e3 * shift:.1f} mm and {np.degrees(turn):.1f} degrees in"
                " the gripper",
                Outcome.BRICK_SLIPPED,
            )

    # -- recovering -------------------------------------------------------------------------

    def _recover(self, goal: InsertionGoal, wanted: set[ConnectionKey]) -> None:
        """Brings arm and brick back to where another try can start.

        Raises:
            TaskError: That failed, too.
        """
        self._enter(Stage.RECOVERING)
        motion, p = self.motion, self.parameters
        motion.settle_motion()
        part = goal.part
        if motion.held is not None and part in motion.carried():
            attached = connections_of(self._world.graph, part)
            if attached:
                self._pull_off(part)
            else:
                self._back_off(p.approach_height)
            if self._slipped(part) or self._attempt % 2 == 0:
                self._put_down(part)
        else:
            motion.move_gripper(MAX_WIDTH, p.grip_force)
            self._clear_off()
        actual = connections_of(self._world.graph, part)
        if motion.held != part and actual and actual != wanted:
            raise TaskError(
                f"brick {part} is stuck with connections {sorted(actual)}", Outcome.WRONG_CONNECTION
            )

    def _slipped(self, part_id: int) -> bool:
        try:
            self._require_held(part_id)
        except TaskError:
            return True
        return False

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

    def _pull_off(self, part_id: int) -> None:
        """Pulls the held brick off whatever it is connected to."""
        motion = self.motion
        pressing = Pressing(motion, -motion.tool[:3, 2], self.parameters, self._tell_force)
        pressing.pull(self.parameters.pull_force, self.parameters.approach_height)
        if connections_of(self._world.graph, part_id):
            raise TaskError(
                f"brick {part_id} does not come off with {self.parameters.pull_force:.0f} N",
                Outcome.FORCE_LIMIT,
            )

    def _put_down(self, part_id: int) -> None:
        """Puts the held brick on a free place of the table and lets go."""
        motion, p = self.motion, self.parameters
        if motion.held != part_id or self._grasp is None:
            return
        shape = self._world.graph.part(part_id).shape
        scene = self._world.planning_scene()
        name = brick_name(part_id)
        failure: PlanningError | None = None
        for world_T_part in self._free_places(part_id, scene):
            tool = world_T_part @ self._grasp.part_T_tool
            above = _raised(tool, p.approach_height)
            try:
                start = self._line_start(
                    scene, scene.allowing([(name, TABLE)]), above, _raised(tool, 0.001)
                )
                motion.go_to_joints([start])
                break
            except PlanningError as error:
                failure = error
        else:
            raise failure or UnreachableError(f"no free place on the table for a {shape}")
        motion.tare(p.settle_time)
        pressing = Pressing(motion, np.array([0.0, 0.0, 1.0]), p, self._tell_force)
        pressing.descend(p.approach_height, studs=False)
        motion.controller.give_way(True)
        self._release(part_id)

    def _free_places(self, part_id: int, scene: PlanningScene) -> Iterable[Array]:
        """Upright poses on the table around the brick's own last place, away from all others."""
        shape = self._world.graph.part(part_id).shape
        obstacles = self._obstacles(scene, [part_id])
        base = self.motion.arm.world_T_base
        found = 0
        for radius, angle in itertools.product((0.45, 0.38, 0.52, 0.6), np.linspace(-1.3, 1.3, 27)):
            place = base @ transform(
                [radius * np.cos(angle), radius * np.sin(angle), 0.0],
                [0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)],
            )
            box = brick_box(shape, place)
            if not boxes_overlap(box, obstacles, 4.0 * STUD_PITCH).any():
                yield place
                found += 1
                if found == _MAX_CANDIDATES:
                    return

    # -- small things -----------------------------------------------------------------------

    def _opening(self, grasp: Grasp) -> float:
        return min(grasp.width + 2.0 * self.parameters.open_clearance, MAX_WIDTH)

    def _forget_grasp(self) -> None:
        self._world.held.pop(self.motion.arm.name, None)
        self._grasp = None
        self._tool_T_part = None

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


def connections_of(graph: BrickTopologyGraph, part_id: int) -> set[ConnectionKey]:
    """What a part is connected to."""
    return {(c.stud_part, c.hole_part, c.offset, c.yaw) for c in graph.connections_of(part_id)}


def _connected(graph: BrickTopologyGraph, key: ConnectionKey) -> bool:
    stud, hole, _, _ = key
    if stud not in graph or hole not in graph:
        return False
    return key in connections_of(graph, hole)


def expected_connections(graph: BrickTopologyGraph, goal: InsertionGoal) -> set[ConnectionKey]:
    """All connections that a brick has in its seat: the wanted one and those that close with it.

    Raises:
        TaskError: The goal is impossible; the text says why.
    """
    try:
        trial = graph.copy()
        present = connections_of(trial, goal.part)
        for key in present:
            if key == (goal.target, goal.part, tuple(goal.offset), goal.yaw % 4):
                return present
        trial.connect(goal.target, goal.part, goal.offset, goal.yaw)
        return connections_of(trial, goal.part)
    except TopologyError as error:
        raise TaskError(str(error), Outcome.INVALID_GOAL) from error


def relative_pose(graph: BrickTopologyGraph, part: int, other: int) -> Array:
    """(4, 4) part_T_other [m] of two parts of one component."""
    relative = graph.relative_grid_pose(part, other)
    part_T_corner = inverse(part_pose(GridPose(), graph.part(part).shape))
    return part_T_corner @ part_pose(relative, graph.part(other).shape)


def seat_in_target(graph: BrickTopologyGraph, goal: InsertionGoal) -> Array:
    """(4, 4) target_T_part of the brick in its seat [m]."""
    target, shape = graph.part(goal.target).shape, graph.part(goal.part).shape
    corner_T_seat = part_pose(GridPose(*goal.offset, target.height, goal.yaw % 4), shape)
    return inverse(part_pose(GridPose(), target)) @ corner_T_seat


def _raised(pose: Array, height: float) -> Array:
    raised = pose.copy()
    raised[2, 3] += height
    return raised


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return counts
