# SPDX-License-Identifier: Apache-2.0
"""Blocking motions of one arm in a world: what the task logic is written with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bricksim_core.spatial import Array, inverse
from bricksim_moveit_demo.carrying import Load, gentle
from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.control.gripper import GripperStatus
from bricksim_moveit_demo.control.trajectory import Status
from bricksim_moveit_demo.description import (
    FINGER_DAMPING,
    FINGER_STIFFNESS,
    ArmDescription,
)
from bricksim_moveit_demo.errors import ControllerError, Outcome, PlanningError, TaskError
from bricksim_moveit_demo.grasps import boxes_overlap, hand_boxes
from bricksim_moveit_demo.planning.protocol import MotionPlanner, Trajectory
from bricksim_moveit_demo.planning.scene import Box, PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.world import World

_CONTACT = 0.001
"""Bricks this close [m] may be in contact."""
CLEARANCES = (0.005, 0.0025)
"""Gaps [m] that free motions keep to bricks and table, and what is carried to other arms, the first
one that has room, or none: drives lag by up to 5 mm behind what was planned. (A brick that was
carried low at 0.3 m/s struck the table with 100 N.)"""
GRIPPER_TIMEOUT = 3.0
"""Longest time of a gripper command [s]: the whole stroke takes 0.8 s; slower ones get the time
that they take besides."""


class ArmMotion:
    """One arm, its planner and what it carries.

    Attributes:
        planning_time: Wall time spent planning so far [s].
        collision_force: Force on the tool [N] that ends a free motion as a collision.
        clearance: Least gap [m] that free motions kept to bricks and table, as planned, since it
            was last set.
        between: Parts between the fingers; empty if nothing is held.
    """

    def __init__(self, world: World, planner: MotionPlanner, name: str) -> None:
        self.world = world
        self.planner = planner
        self.controller: ArmController = world.arms[name]
        self.planning_time = 0.0
        self.collision_force = float("inf")
        self.clearance = CLEARANCES[0]
        self.between: frozenset[int] = frozenset()

    @property
    def arm(self) -> ArmDescription:
        """The arm."""
        return self.controller.arm

    @property
    def tool(self) -> Array:
        """(4, 4) world_T_tool [m] where the controller wants the tool."""
        return self.controller.tool_reference

    # -- planned motions ----------------------------------------------------------------------

    def scene(self) -> PlanningScene:
        """The planning scene; what other arms hold may touch what it rests on."""
        scene, graph = self.world.planning_scene(), self.world.graph
        pairs = []
        for arm, load in scene.attached.items():
            if arm == self.arm.name:
                continue
            for part in (p for p in graph.part_ids if brick_name(p) in load):
                box = brick_box(graph.part(part).shape, self.world.part_pose(part))
                touching = boxes_overlap(box, list(scene.objects.values()), _CONTACT)
                pairs += [
                    (brick_name(part), name)
                    for name, touches in zip(scene.objects, touching, strict=True)
                    if touches
                ]
        return scene.allowing(pairs)

    @property
    def held(self) -> int | None:
        """Id of the part in the gripper."""
        return self.world.held.get(self.arm.name)

    def carried(self) -> list[int]:
        """Ids of all parts that move with the tool."""
        if self.held is None or self.world.is_fixed(self.held):
            return []
        graph = self.world.graph
        return graph.component_parts(graph.component_of(self.held))

    def touching(self, part_ids: Iterable[int]) -> list[tuple[str, str]]:
        """Pairs that let hand and load touch some bricks."""
        names = [brick_name(part_id) for part_id in part_ids]
        own = [*self.arm.hand_links, *(brick_name(p) for p in self.carried())]
        return [(a, b) for a in own for b in names if a != b]

    def plan[T](self, request: Callable[[], T]) -> T:
        """Calls a planner and counts its wall time; a canceled task plans no more."""
        started = time.perf_counter()
        try:
            return self.world.compute(request)
        finally:
            self.planning_time += time.perf_counter() - started

    def go_to_pose(self, world_T_tool: Array, scene: PlanningScene | None = None) -> None:
        """Moves freely to a tool pose ((4, 4) [m]), with the first of `CLEARANCES` that has room.

        Raises:
            PlanningError: No motion was found.
            ControllerError: The controller gave up.
            TaskError: The arm ran into something.
        """
        self._go_freely(
            [world_T_tool],
            scene,
            lambda around: self.planner.plan_to_pose(around, self.arm, world_T_tool),
        )

    def go_to_joints(self, goals: Sequence[Array], scene: PlanningScene | None = None) -> None:
        """Moves freely to one of several joint positions ((7,) [rad]); as `go_to_pose`."""
        self._go_freely(
            [self.controller.kinematics.tool_pose(goal) for goal in goals],
            scene,
            lambda around: self.planner.plan_to_joints(around, self.arm, goals),
        )

    def _go_freely(
        self,
        tools: Sequence[Array],
        scene: PlanningScene | None,
        request: Callable[[PlanningScene], Trajectory],
    ) -> None:
        around = scene or self.scene()
        hand = hand_boxes(self.controller.width)

        def planned() -> tuple[float, Trajectory]:
            for gap in CLEARANCES:
                room = around.padded(self._kept_off(around, hand, tools, gap), gap)
                rooms = [room]
                if self.arm.name in around.attached and len(self.world.arms) > 1:
                    rooms.insert(0, room.surrounding(self.arm.name, gap))
                for scene in rooms:
                    with contextlib.suppress(PlanningError):
                        return gap, request(scene)
            return 0.0, request(around)

        gap, trajectory = self.plan(planned)
        self.clearance = min(self.clearance, gap)
        self.follow(trajectory, self.collision_force)

    def _kept_off(
        self, scene: PlanningScene, hand: Sequence[Box], tools: Sequence[Array], gap: float
    ) -> list[str]:
        """Names of the objects, and of what other arms carry, that hand and load are not within a
        gap [m] of when a free motion begins, nor with the tool at any of its goals ((4, 4) [m])."""
        around = dict(scene.objects)
        for name, carried in scene.attached.items():
            if name != self.arm.name:
                other = self.world.arms[name]
                held = other.kinematics.tool_pose(scene.arm_positions(other.arm.joints))
                around |= {n: Box(box.size, held @ box.pose) for n, box in carried.items()}
        boxes = list(around.values())
        load = scene.attached.get(self.arm.name, {}).values()
        start = self.controller.kinematics.tool_pose(scene.arm_positions(self.arm.joints))
        beside = np.zeros(len(boxes), dtype=bool)
        for tool in (start, *tools):
            for box in (*hand, *load):
                beside |= boxes_overlap(Box(box.size, tool @ box.pose), boxes, gap)
        return [name for name, near in zip(around, beside, strict=True) if not near]

    def go_straight(
        self,
        poses: Sequence[Array],
        speed: float | None = None,
        scene: PlanningScene | None = None,
        free: bool = False,
    ) -> None:
        """Moves along straight lines; raises as `go_to_pose`.

        Args:
            poses: Where the tool goes, (4, 4) [m] each.
            speed: Its speed [m/s]; None: the planner's.
            scene: What is there; None: what the world tells.
            free: Through free space: it ends as a collision above `collision_force`.
        """
        scene = scene or self.scene()
        planned = self.plan(lambda: self.planner.plan_straight(scene, self.arm, poses, speed))
        self.follow(planned, self.collision_force if free else None)

    def follow(self, trajectory: Trajectory, force_limit: float | None = None) -> None:
        """Executes a trajectory to its end, slower where the joints of what is carried need it.

        Args:
            trajectory: Starts where the arm is.
            force_limit: Force on the tool [N] that ends the motion as a collision; None: no limit.

        Raises:
            ControllerError: The controller rejected or aborted it.
            TaskError: The force limit was exceeded.
        """
        controller = self.controller
        load = self._load()
        if load is not None:
            whole = load
            trajectory = self.plan(lambda: gentle(trajectory, controller.kinematics, whole))
        controller.give_way(False)
        self.settle_motion()
        controller.tare()
        with self.world.execution.start(controller, trajectory, self.world.time) as motion:
            while motion.active:
                self.world.advance()
                force = float(np.linalg.norm(controller.wrench[:3]))
                if force_limit is not None and force > force_limit:
                    controller.hold()
                    self.settle_motion()
                    controller.give_way(True)
                    raise TaskError(
                        f"{self.arm.name}: {force:.1f} N on the tool during a free motion, expected"
                        f" at most {force_limit:.1f}",
                        Outcome.COLLISION,
                    )
            motion.require_success()

    def _load(self) -> Load | None:
        """What hangs together in the hand; None if that is one brick at most."""
        if self.held is None or len(self.carried()) < 2:
            return None
        layout = self.world.graph.layout(self.world.graph.component_of(self.held))
        held = int(np.flatnonzero(layout.part_ids == self.held)[0])
        pose = self.world.part_pose(self.held) @ inverse(layout.component_T_parts[held])
        between = self.between or {self.held}
        return Load(layout, between, inverse(self.controller.measured_tool) @ pose)

    def settle_motion(self) -> None:
        """Waits until no trajectory is active."""
        while self.controller.follower.status is Status.ACTIVE:
            self.world.advance()

    def relax(self) -> None:
        """Stops pushing against whatever is in the way; a motion under way comes to rest."""
        if self.controller.follower.status is not Status.ACTIVE:
            self.controller.give_way(True)

    # -- others -------------------------------------------------------------------------------

    def wait(self, duration: float) -> None:
        """Stands still for a time [s], or goes on giving way."""
        self.controller.hold()
        end = self.world.time + duration
        while self.world.time < end:
            self.world.advance()

    def tare(self, duration: float) -> None:
        """Rests for a time [s], then takes the wrench estimate as zero."""
        self.wait(duration)
        self.controller.tare()

    def move_gripper(self, width: float, force: float, speed: float | None = None) -> GripperStatus:
        """Moves the fingers until the width [m] is reached or they stall, each with at most a force
        [N] and a speed [m/s]; None: as fast as they can.

        Raises:
            ControllerError: Neither happened in time.
        """
        gripper = self.controller.gripper
        gripper.start(width, force, self.world.time, speed)
        pace = min(speed or float("inf"), force / FINGER_DAMPING)
        way = 0.5 * abs(width - self.controller.width) + force / FINGER_STIFFNESS
        limit = GRIPPER_TIMEOUT + way / pace
        end = self.world.time + limit
        while gripper.status is GripperStatus.ACTIVE:
            if self.world.time > end:
                raise ControllerError(
                    f"{self.arm.name}: gripper neither reached {width:.4f} m nor stalled in"
                    f" {limit:.1f} s"
                )
            self.world.advance()
        return gripper.status
