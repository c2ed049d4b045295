# SPDX-License-Identifier: Apache-2.0
"""GripperCommand and ParallelGripperCommand of one arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from control_msgs.action import GripperCommand, ParallelGripperCommand
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from sensor_msgs.msg import JointState

from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.control.gripper import GripperLimits, GripperStatus
from bricksim_moveit_demo.description import FINGER_STIFFNESS, MAX_WIDTH
from bricksim_moveit_demo.motion import GRIPPER_TIMEOUT
from bricksim_moveit_demo.nodes.parameters import FEEDBACK_RATE
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.moveit_configuration import gripper_name, parallel_gripper_name
from bricksim_ros import conversions
from bricksim_ros.publishing import Rate
from bricksim_ros.server import Server
from bricksim_ros.world import World


@dataclass(frozen=True)
class _Command:
    """What a goal asks of a finger: position [m], greatest force [N], speed [m/s]; 0: default."""

    position: float
    force: float = 0.0
    speed: float = 0.0


class _Kind(Protocol):
    """How one type of action tells commands and states."""

    action: Any

    def command(self, goal: Any) -> _Command:
        """What is asked for.

        Raises:
            ValueError: It is not clear.
        """
        ...

    def state(self, message: Any, controller: ArmController, time: float) -> Any:
        """A result or feedback, filled in but for ``stalled`` and ``reached_goal``."""
        ...


class _Single:
    """GripperCommand: one number stands for the gripper."""

    action = GripperCommand

    def command(self, goal: GripperCommand.Goal) -> _Command:
        return _Command(goal.command.position, goal.command.max_effort)

    def state(self, message: Any, controller: ArmController, time: float) -> Any:
        message.position = 0.5 * controller.width
        message.effort = FINGER_STIFFNESS * controller.gripper.squeeze
        return message


class _Parallel:
    """ParallelGripperCommand: a joint state of one or both fingers."""

    action = ParallelGripperCommand

    def __init__(self, fingers: Sequence[str]) -> None:
        self._fingers = tuple(fingers)

    def command(self, goal: ParallelGripperCommand.Goal) -> _Command:
        asked = goal.command
        names = list(asked.name)
        if not names or len(set(names)) < len(names) or not set(names) <= set(self._fingers):
            expected = " or ".join(self._fingers)
            raise ValueError(f"joints are {names}, expected {expected} or both")
        position = self._one(names, asked.position, "position")
        if position is None:
            raise ValueError("position is empty, expected one number a joint")
        return _Command(
            position,
            self._one(names, asked.effort, "effort") or 0.0,
            self._one(names, asked.velocity, "velocity") or 0.0,
        )

    def state(self, message: Any, controller: ArmController, time: float) -> Any:
        fingers = len(self._fingers)
        message.state = JointState(
            name=list(self._fingers),
            position=controller.fingers.tolist(),
            effort=[FINGER_STIFFNESS * controller.gripper.squeeze] * fingers,
        )
        message.state.header.stamp = conversions.time_message(time)
        return message

    def _one(self, names: Sequence[str], values: Sequence[float], field: str) -> float | None:
        """The number that all given joints share: the fingers cannot be moved separately."""
        if len(values) == 0:
            return None
        if len(values) != len(names) or any(value != values[0] for value in values):
            raise ValueError(
                f"{field} is {list(values)}, expected one number a joint, the same for both fingers"
            )
        return float(values[0])


@dataclass(frozen=True, eq=False)
class _Goal:
    """The goal that the fingers are moved for."""

    handle: ServerGoalHandle
    kind: _Kind
    deadline: float


class GripperServer(Server):
    """Serves ``<arm>_gripper/gripper_cmd`` and ``<arm>_parallel_gripper/gripper_cmd``.

    Positions are those of one finger joint [m], half the distance of the pads, as MoveIt's gripper
    controllers send them. Closing on a brick succeeds with ``stalled`` set. A new goal of either
    action takes the place of the one before.

    Args:
        node: Node that owns the actions.
        world: The world, for its time.
        controller: The arm.
        busy: Why no goal can be taken now; empty if one can.
    """

    def __init__(
        self, node: Node, world: World, controller: ArmController, busy: Callable[[], str]
    ) -> None:
        self._node = node
        self._world = world
        self._controller = controller
        self._busy = busy
        self._limits = GripperLimits.of_franka()
        self._active: _Goal | None = None
        self._rate = Rate(FEEDBACK_RATE)
        arm = controller.arm
        kinds: dict[str, _Kind] = {
            gripper_name(arm): _Single(),
            parallel_gripper_name(arm): _Parallel(arm.fingers),
        }
        self._servers = [self._serve(name, kind) for name, kind in kinds.items()]

    def destroy(self) -> None:
        """Takes the actions away; their goal ends."""
        self.end("the controller is shut down")
        for server in self._servers:
            server.destroy()

    def end(self, reason: str) -> None:
        """Ends the goal; the fingers keep what they hold."""
        if self._active is not None:
            self._node.get_logger().warning(f"{self._controller.arm.name}: gripper: {reason}")
            self._controller.gripper.stop()
            self._abort()

    def after_step(self) -> None:
        """Gives feedback, ends what is over."""
        goal = self._active
        if goal is None:
            return
        status = self._controller.gripper.status
        if status in (GripperStatus.REACHED, GripperStatus.STALLED):
            self._active = None
            goal.handle.succeed(self._state(goal.kind, goal.kind.action.Result))
        elif goal.handle.is_cancel_requested:
            self._active = None
            self._controller.gripper.stop()
            goal.handle.canceled(self._state(goal.kind, goal.kind.action.Result))
        elif self._world.simulator.time > goal.deadline:
            self.end(f"neither reached its width nor stalled in {GRIPPER_TIMEOUT} s")
        elif self._rate.due(self._world.time):
            goal.handle.publish_feedback(self._state(goal.kind, goal.kind.action.Feedback))

    # -- inside -------------------------------------------------------------------------------

    def _serve(self, name: str, kind: _Kind) -> ActionServer:
        return ActionServer(
            self._node,
            kind.action,
            f"{name}/gripper_cmd",
            goal_callback=lambda goal: self._asked(kind, goal),
            handle_accepted_callback=lambda handle: self._accepted(kind, handle),
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def _asked(self, kind: _Kind, goal: Any) -> GoalResponse:
        """Refuses what cannot be done: the actions' results have no room for a reason."""
        try:
            reason = self._busy() or _out_of_range(kind.command(goal))
        except ValueError as error:
            reason = str(error)
        if reason:
            self._node.get_logger().error(f"{self._controller.arm.name}: gripper: {reason}")
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _accepted(self, kind: _Kind, handle: ServerGoalHandle) -> None:
        handle.executing()
        self._abort()
        command = kind.command(handle.request)
        force = min(command.force or TaskParameters().grip_force, self._limits.force)
        width = min(max(2.0 * command.position, 0.0), MAX_WIDTH)
        now = self._world.simulator.time
        self._controller.gripper.start(width, force, now, command.speed or None)
        self._active = _Goal(handle, kind, now + GRIPPER_TIMEOUT + _travel(command))

    def _abort(self) -> None:
        goal, self._active = self._active, None
        if goal is not None:
            goal.handle.abort(self._state(goal.kind, goal.kind.action.Result))

    def _state(self, kind: _Kind, message: type) -> Any:
        status = self._controller.gripper.status
        return kind.state(
            message(
                stalled=status is GripperStatus.STALLED,
                reached_goal=status is GripperStatus.REACHED,
            ),
            self._controller,
            self._world.time,
        )


def _out_of_range(command: _Command) -> str:
    """What is wrong with a command; empty if nothing is."""
    position, force, speed = command.position, command.force, command.speed
    if not (math.isfinite(position) and -1e-4 <= position <= 0.5 * MAX_WIDTH + 1e-4):
        return f"position is {position} m, expected 0 to {0.5 * MAX_WIDTH} of a finger"
    if not (math.isfinite(force) and force >= 0.0):
        return f"greatest effort is {force} N, expected at least 0; 0: the default"
    if not (math.isfinite(speed) and speed >= 0.0):
        return f"greatest velocity is {speed} m/s, expected at least 0; 0: the default"
    return ""


def _travel(command: _Command) -> float:
    """How long [s] the whole stroke takes at a speed that was asked for."""
    return 0.5 * MAX_WIDTH / command.speed if command.speed else 0.0
