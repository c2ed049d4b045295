# SPDX-License-Identifier: Apache-2.0
"""GripperCommand of one arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from control_msgs.action import GripperCommand
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.control.gripper import GripperLimits, GripperStatus
from bricksim_moveit_demo.description import FINGER_STIFFNESS, MAX_WIDTH
from bricksim_moveit_demo.motion import GRIPPER_TIMEOUT
from bricksim_moveit_demo.nodes.parameters import FEEDBACK_RATE
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.moveit_configuration import gripper_name
from bricksim_ros.publishing import Rate
from bricksim_ros.server import Server
from bricksim_ros.world import World


class GripperServer(Server):
    """Serves ``<arm>_gripper/gripper_cmd``.

    Positions are those of one finger joint [m], half the distance of the pads, as MoveIt's gripper
    controller sends them. Closing on a brick succeeds with ``stalled`` set.

    Args:
        node: Node that owns the action.
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
        self._active: ServerGoalHandle | None = None
        self._deadline = 0.0
        self._rate = Rate(FEEDBACK_RATE)
        self._server = ActionServer(
            node,
            GripperCommand,
            f"{gripper_name(controller.arm)}/gripper_cmd",
            goal_callback=self._asked,
            handle_accepted_callback=self._accepted,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def destroy(self) -> None:
        """Takes the action away; its goal ends."""
        self.end("the controller is shut down")
        self._server.destroy()

    def end(self, reason: str) -> None:
        """Ends the goal; the fingers keep what they hold."""
        if self._active is not None:
            self._node.get_logger().warning(f"{self._controller.arm.name}: gripper: {reason}")
            self._controller.gripper.stop()
            self._active.abort(self._state(GripperCommand.Result))
            self._active = None

    def after_step(self) -> None:
        """Gives feedback, ends what is over."""
        handle = self._active
        if handle is None:
            return
        status = self._controller.gripper.status
        if status in (GripperStatus.REACHED, GripperStatus.STALLED):
            self._active = None
            handle.succeed(self._state(GripperCommand.Result))
        elif handle.is_cancel_requested:
            self._active = None
            self._controller.gripper.stop()
            handle.canceled(self._state(GripperCommand.Result))
        elif self._world.simulator.time > self._deadline:
            self.end(f"neither reached its width nor stalled in {GRIPPER_TIMEOUT} s")
        elif self._rate.due(self._world.time):
            handle.publish_feedback(self._state(GripperCommand.Feedback))

    # -- inside -------------------------------------------------------------------------------

    def _asked(self, goal: GripperCommand.Goal) -> GoalResponse:
        """Refuses what cannot be done: the action's result has no room for a reason."""
        position, effort = goal.command.position, goal.command.max_effort
        reason = self._busy()
        if not (math.isfinite(position) and -1e-4 <= position <= 0.5 * MAX_WIDTH + 1e-4):
            reason = f"position is {position} m, expected 0 to {0.5 * MAX_WIDTH} of a finger"
        elif not (math.isfinite(effort) and effort >= 0.0):
            reason = f"max_effort is {effort} N, expected at least 0; 0: the default"
        if reason:
            self._node.get_logger().error(f"{self._controller.arm.name}: gripper: {reason}")
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _accepted(self, handle: ServerGoalHandle) -> None:
        handle.executing()
        if self._active is not None:
            self._active.abort(self._state(GripperCommand.Result))
        command = handle.request.command
        force = min(
            command.max_effort or TaskParameters().grip_force, GripperLimits.of_franka().force
        )
        width = min(max(2.0 * command.position, 0.0), MAX_WIDTH)
        now = self._world.simulator.time
        self._controller.gripper.start(width, force, now)
        self._deadline = now + GRIPPER_TIMEOUT
        self._active = handle

    def _state(self, kind: type) -> Any:
        gripper = self._controller.gripper
        return kind(
            position=0.5 * self._controller.width,
            effort=FINGER_STIFFNESS * gripper.squeeze,
            stalled=gripper.status is GripperStatus.STALLED,
            reached_goal=gripper.status is GripperStatus.REACHED,
        )
