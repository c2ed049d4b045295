# SPDX-License-Identifier: Apache-2.0
"""One arm's hand: gripping bricks, knowing how they sit in it, letting go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.spatial import Array, inverse, rotation_angle, transform
from bricksim_moveit_demo.beside import near
from bricksim_moveit_demo.choosing import Choice, GraspChooser
from bricksim_moveit_demo.control.gripper import GripperStatus
from bricksim_moveit_demo.description import MAX_WIDTH, READY
from bricksim_moveit_demo.errors import Outcome, PlanningError, TaskError
from bricksim_moveit_demo.grasps import TIP_THICKNESS, Grasp, is_upright
from bricksim_moveit_demo.motion import ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.protocol import MotionPlanner
from bricksim_moveit_demo.planning.scene import TABLE, PlanningScene, brick_name
from bricksim_moveit_demo.pressing import Pressing
from bricksim_moveit_demo.reports import Feedback, HandlingStage, Stage
from bricksim_moveit_demo.sighting import averaged
from bricksim_moveit_demo.world import World

UP = np.array([0.0, 0.0, 1.0])
"""(3,) away from the table, world."""

_SHIFT = 0.0004
"""How far a brick shifts between the fingers as it clicks on [m] (measured)."""
_TURNING = 4.0
"""Force over that of aligning [-] up to which it is raised slowly on a group."""
_SLOWLY = 0.2
"""Speed of the fingers meanwhile, over that before [-]: the force rises by 4 N/s."""
_TOUCHING = 0.001
"""Bricks closer than this to what is held [m] are touched by it where a free motion begins."""


@dataclass(frozen=True, eq=False)
class Support:
    """A second hand that pushes back where this one presses.

    Attributes:
        part: The part that it holds.
        point: (3,) where it pushes [m], world.
        bear: Lets it push back with a force [N] for the next control period.
        rest: Ends that.
    """

    part: int
    point: Array
    bear: Callable[[float], None]
    rest: Callable[[], None]


class Hand:
    """An arm with what it holds and what it is about.

    Attributes:
        world: The scene.
        motion: The arm's motions.
        parameters: The numbers of the running task.
        chooser: Chooses grasps.
        attempt: Which try of the task this is, from 1.
        stage: What it is doing.
        grasp: How the held brick is held; None if none is.
        greatest: Greatest force along an insertion axis during the task [N].
        support: Another hand that bears this one's press; None: there is none.
    """

    def __init__(
        self,
        world: World,
        planner: MotionPlanner,
        arm: str,
        parameters: TaskParameters,
        feedback: Feedback | None,
    ) -> None:
        self.world = world
        self.motion = ArmMotion(world, planner, arm)
        self.attempt = 1
        self.grasp: Grasp | None = None
        self.greatest = 0.0
        self.support: Support | None = None
        self._feedback = feedback
        self._part_id = 0
        self.stage = Stage.PLANNING
        self._tool_T_held: Array | None = None
        self._deadline = float("inf")
        self.use(parameters)

    def elsewhere(self, world: World) -> Hand:
        """The same arm in another scene, for plans; it holds nothing there."""
        return Hand(world, self.motion.planner, self.motion.arm.name, self.parameters, None)

    def use(self, parameters: TaskParameters) -> None:
        """Takes over the numbers of a task."""
        self.forget_missing()
        self.parameters = parameters
        self.motion.collision_force = parameters.collision_force
        self.chooser = GraspChooser(self.motion, parameters)

    @property
    def between(self) -> frozenset[int]:
        """Parts between the fingers."""
        return self.motion.between if self.motion.held is not None else frozenset()

    @property
    def held_by_others(self) -> set[int]:
        """Parts that other arms hold."""
        own = self.motion.arm.name
        return {part for arm, part in self.world.held.items() if arm != own}

    # -- telling ----------------------------------------------------------------------------

    def begin(self, part_id: int) -> None:
        """A task with a brick begins: its time runs."""
        self._part_id = part_id
        self.greatest, self.attempt = 0.0, 1
        self._deadline = self.world.time + self.parameters.timeout

    def end(self) -> None:
        """The task is over."""
        self._deadline = float("inf")

    def enter(self, stage: Stage) -> None:
        """Tells a new stage; raises as `tell`."""
        self.stage = stage
        self.tell(0.0)

    def tell(self, force: float) -> None:
        """Tells the force along the insertion axis [N].

        Raises:
            TaskError: The task's time is over.
        """
        if self.world.time > self._deadline:
            self._deadline = float("inf")
            self.motion.controller.give_way(True)
            raise TaskError(
                f"not done after {self.parameters.timeout:.0f} s ({self.stage})", Outcome.TIMEOUT
            )
        if self._feedback is not None:
            self._feedback(HandlingStage(self._part_id, self.stage, self.attempt, force))

    def pressing(
        self,
        axis: Array,
        limit: float | None = None,
        partner: Callable[[float], None] | None = None,
        moving: Collection[int] = (),
    ) -> Pressing:
        """Motions along an axis ((3,), world) with this arm, with a greatest force [N]; a partner
        is told the force before each control period, and keeps up with it; moving parts ((N,) ids)
        must stay together meanwhile."""
        numbers = self.parameters if partner is None else self.parameters.braced
        return Pressing(self.motion, axis, numbers, self.tell, limit, partner, moving)

    # -- gripping ---------------------------------------------------------------------------

    def grip(self, choice: Choice) -> None:
        """Goes to a brick, grips it and lifts it.

        Raises:
            TaskError: The gripper did not close on it, or it was lost on the way up.
        """
        self.reach(choice)
        self.enter(Stage.GRASPING)
        self.close(choice.part, choice.grasp)
        self.enter(Stage.LIFTING)
        self.lift()
        self.require_grip()

    def reach(self, choice: Choice) -> None:
        """Opens the gripper and moves it around a brick."""
        p, motion = self.parameters, self.motion
        self.enter(Stage.APPROACHING)
        motion.move_gripper(self.chooser.opening(choice.grasp), p.grip_force)
        motion.go_to_joints([choice.above_pick])
        scene = self.world.planning_scene().allowing(motion.touching([choice.part]))
        tool = choice.world_T_part @ choice.grasp.part_T_tool
        motion.go_straight([tool], p.approach_speed, scene, free=True)

    def close(self, part_id: int, grasp: Grasp, force: float | None = None) -> None:
        """Closes the gripper on a brick.

        Raises:
            TaskError: It closed on nothing or on something else, or did not close.
        """
        p, motion, graph = self.parameters, self.motion, self.world.graph
        group = len(graph.component_parts(graph.component_of(part_id))) > 1
        speed = p.align_speed if group else p.close_speed
        # The pads turn the brick until it is square between them: at once, and with all their
        # force, that throws a long brick about, and breaks the joints of what hangs on one.
        status = motion.move_gripper(0.0, p.align_force, speed)
        if grasp.beside is None:
            if group:
                # Friction on the table holds a large group for longer; then it turns with a jerk.
                motion.move_gripper(0.0, _TURNING * p.align_force, _SLOWLY * speed)
            status = motion.move_gripper(0.0, force or p.grip_force, speed)
        # Of two parts side by side the joints between them would bear more: while they are turned
        # square, 2 N broke the one stud by which one of them hung.
        width = motion.controller.width
        if status is not GripperStatus.STALLED or abs(width - grasp.width) > p.width_tolerance:
            motion.move_gripper(self.chooser.opening(grasp), p.grip_force)
            raise TaskError(
                f"gripper closed to {1e3 * width:.1f} mm on brick {part_id}, expected"
                f" {1e3 * grasp.width:.1f} mm",
                Outcome.GRASP_FAILED,
            )
        self.world.held[motion.arm.name] = part_id
        self.grasp = grasp
        self.motion.between = grasp.held_with(part_id)
        # A task that is canceled while the brick settles between the pads goes on holding it.
        self._remember_grip()
        motion.wait(p.settle_time)
        self._remember_grip()

    def let_go(self) -> None:
        """Opens the gripper around a brick that something else holds and moves back."""
        p, motion = self.parameters, self.motion
        assert self.grasp is not None and motion.held is not None
        held = motion.held
        self.enter(Stage.RELEASING)
        release, force = self.grasp.release, p.grip_force
        if release < max(p.release_clearances):
            # With hardly any room one finger would still press on a brick that shifted: they open
            # a little farther, gently because of the neighbours.
            release, force = release + _SHIFT, p.align_force
        # What hangs together passes slowly to what holds it then: let go of at once, it jerks.
        speed = p.align_speed if len(motion.carried()) > 1 else None
        motion.move_gripper(min(self.grasp.width + 2.0 * release, MAX_WIDTH), force, speed)
        self.forget_grip()
        self.enter(Stage.RETREATING)
        beside = near(self.world, held, within=TIP_THICKNESS + release)
        scene = motion.scene().allowing(motion.touching([*beside, held]))
        self._move_clear(-motion.tool[:3, 2], p.approach_height, None, scene)

    def look_at_grip(self) -> None:
        """Observes how the held brick sits in the gripper after it was moved there."""
        assert self.grasp is not None and self.motion.held is not None
        seen = averaged(self.world.observe, self.world.part_pose(self.motion.held))
        part_T_tool = inverse(seen) @ self.motion.controller.measured_tool
        self.grasp = replace(self.grasp, part_T_tool=part_T_tool)
        self._remember_grip()

    def forget_grip(self) -> None:
        """Nothing is held any more."""
        self.world.held.pop(self.motion.arm.name, None)
        self.grasp = None
        self.motion.between = frozenset()
        self._tool_T_held = None

    def forget_missing(self) -> None:
        """What has left the scene since the last task is held no more."""
        if self.motion.held is not None and self.motion.held not in self.world.graph:
            self.forget_grip()

    def lift(self) -> None:
        """Lifts what is held off the table, straight up past what stands beside it.

        Raises:
            TaskError: It ran into something, or the arm cannot go up from here.
        """
        p, motion = self.parameters, self.motion
        carried = motion.carried()
        around = {other for part in carried for other in near(self.world, part)}
        pairs = motion.touching(sorted(around)) + [(brick_name(part), TABLE) for part in carried]
        scene = self.world.planning_scene().allowing(pairs)

        self._move_clear(UP, p.lift_height, p.approach_speed, scene, free=True)

    def lift_clear(self) -> None:
        """Lifts what a canceled task left touching other bricks: no free motion begins there.

        Raises:
            TaskError: It ran into something, or the arm cannot go up from here.
        """
        carried = self.motion.carried()
        touched = {other for part in carried for other in near(self.world, part, within=_TOUCHING)}
        if touched.difference(carried):
            self.enter(Stage.LIFTING)
            self.lift()

    def require_held(self) -> tuple[float, float]:
        """Raises when the held brick is no longer between the fingers.

        Returns:
            How far it moved there [m] and turned [rad] since it was gripped.
        """
        held = self.motion.held
        assert self._tool_T_held is not None and held is not None
        now = inverse(self.motion.controller.measured_tool) @ self.world.part_pose(held)
        shift = float(np.linalg.norm(now[:3, 3] - self._tool_T_held[:3, 3]))
        if shift > self.parameters.missing_distance:
            self.forget_grip()
            raise TaskError(
                f"brick {held} is {1e3 * shift:.0f} mm from where it was gripped",
                Outcome.BRICK_LOST,
            )
        return shift, float(rotation_angle(now[:3, :3] @ self._tool_T_held[:3, :3].T))

    def require_grip(self) -> None:
        """Raises when the held brick is not where the grasp left it."""
        held = self.motion.held
        shift, turn = self.require_held()
        if shift > self.parameters.slip_position or turn > self.parameters.slip_rotation:
            raise TaskError(
                f"brick {held} moved {1e3 * shift:.1f} mm and {np.degrees(turn):.1f} degrees in"
                " the gripper",
                Outcome.BRICK_SLIPPED,
            )

    def require_whole(self, parts: Iterable[int], when: str) -> None:
        """Raises when some of what is to hang on the hand has come off."""
        lost = sorted(set(parts).difference(self.motion.carried()))
        if lost:
            raise TaskError(
                f"bricks {lost} came off brick {self.motion.held} {when}", Outcome.STRUCTURE_BROKE
            )

    def grip_is_good(self) -> bool:
        """Whether the held brick is where the grasp left it."""
        try:
            self.require_grip()
        except TaskError:
            return False
        return True

    def locate(self, part_id: int) -> Array:
        """Observed pose of a brick, however it lies, from several looks.

        Raises:
            TaskError: It is under the table.
        """
        pose = self.world.part_pose(part_id)
        if pose[2, 3] < -0.01:
            raise TaskError(f"brick {part_id} is under the table", Outcome.BRICK_MISSING)
        if is_upright(pose):
            return averaged(self.world.observe, pose)
        # Errors of perception lie in the plane of the table, whichever side is up.
        level = transform(pose[:3, 3])
        return averaged(self.world.observe, level) @ inverse(level) @ pose

    # -- getting away -----------------------------------------------------------------------

    def back_off(self) -> None:
        """Moves straight back by servoing: works from wherever a motion stopped."""
        p = self.parameters
        # What it still pushed against is no zero of the force.
        self.motion.relax()
        self.motion.tare(p.settle_time)
        self.pressing(-self.motion.tool[:3, 2]).pull(p.pull_force, p.approach_height)

    def clear_off(self) -> None:
        """Gets the empty hand away from bricks, straight back or, at a joint limit, by a plan."""
        self.motion.move_gripper(MAX_WIDTH, self.parameters.grip_force)
        self.forget_grip()
        try:
            self.back_off()
        except TaskError as error:
            if error.outcome is not Outcome.CONTROLLER_FAILED:
                raise
            self.motion.go_to_joints([np.array(READY)])

    # -- inside -----------------------------------------------------------------------------

    def _move_clear(
        self,
        direction: Array,
        distance: float,
        speed: float | None,
        scene: PlanningScene,
        free: bool = False,
    ) -> None:
        """Moves straight along a direction ((3,), world) by a distance [m]; where the arm does not
        get that far, by as much as it takes to be clear of a brick. See `ArmMotion.go_straight`."""
        height = self.parameters.approach_height
        failure: PlanningError | None = None
        for way in dict.fromkeys(min(distance, h) for h in (distance, height, 0.5 * height)):
            goal = self.motion.tool
            goal[:3, 3] += way * direction
            try:
                return self.motion.go_straight([goal], speed, scene, free)
            except PlanningError as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _remember_grip(self) -> None:
        assert self.motion.held is not None
        tool = self.motion.controller.measured_tool
        self._tool_T_held = inverse(tool) @ self.world.part_pose(self.motion.held)
