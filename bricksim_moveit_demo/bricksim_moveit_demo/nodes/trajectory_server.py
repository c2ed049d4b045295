# SPDX-License-Identifier: Apache-2.0
"""FollowJointTrajectory of one arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectoryPoint

from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.control.trajectory import Reference, Status
from bricksim_moveit_demo.errors import ControllerError
from bricksim_moveit_demo.nodes.goals import GoalError, TrajectoryGoal, check_goal
from bricksim_moveit_demo.nodes.parameters import FEEDBACK_RATE
from bricksim_moveit_demo.planning.moveit_configuration import controller_name
from bricksim_ros import conversions
from bricksim_ros.publishing import Rate
from bricksim_ros.server import Server
from bricksim_ros.world import World

Result = FollowJointTrajectory.Result
_CODES = {
    Status.PATH_TOLERANCE_VIOLATED: Result.PATH_TOLERANCE_VIOLATED,
    Status.GOAL_TOLERANCE_VIOLATED: Result.GOAL_TOLERANCE_VIOLATED,
}


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A goal whose start, in the simulator's own time [s], is still to come."""

    handle: ServerGoalHandle
    goal: TrajectoryGoal
    start: float


class TrajectoryServer(Server):
    """Serves ``<arm>_controller/follow_joint_trajectory``.

    Every goal is answered with a result whose error code and text tell the cause. A new goal takes
    the place of the one before; one that starts later lets it go on until then.

    Args:
        node: Node that owns the action.
        world: The world, for its time.
        controller: The arm.
        busy: Why no goal can be taken now; empty if one can.
    """

    def __init__(
        self, node: Node, world: World, controller: ArmController, busy: Callable[[], str]
    ) -> None:
        self._world = world
        self._controller = controller
        self._busy = busy
        self._active: ServerGoalHandle | None = None
        self._waiting: _Waiting | None = None
        self._rate = Rate(FEEDBACK_RATE)
        self._server = ActionServer(
            node,
            FollowJointTrajectory,
            f"{controller_name(controller.arm)}/follow_joint_trajectory",
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,
        )

    def destroy(self) -> None:
        """Takes the action away; its goals end."""
        self.end("the controller is shut down")
        self._server.destroy()

    def end(self, reason: str) -> None:
        """Ends all goals; the arm comes to rest on its path."""
        if self._waiting is not None:
            _abort(self._waiting.handle, Result.INVALID_GOAL, reason)
            self._waiting = None
        if self._active is not None:
            self._controller.hold()
            _abort(self._active, Result.INVALID_GOAL, reason)
            self._active = None

    def after_step(self) -> None:
        """Starts what is due, gives feedback, ends what is over."""
        waiting = self._waiting
        if waiting is not None:
            if waiting.handle.is_cancel_requested:
                self._waiting = None
                waiting.handle.canceled(Result(error_string="canceled before its start"))
            elif self._now() >= waiting.start:
                self._waiting = None
                self._start(waiting.handle, waiting.goal, waiting.start)
        if self._active is None:
            return
        follower = self._controller.follower
        if follower.status is Status.ACTIVE:
            if self._rate.due(self._world.time):
                self._active.publish_feedback(self._feedback())
            return
        handle, self._active = self._active, None
        if follower.status is Status.SUCCEEDED:
            handle.succeed(Result(error_code=Result.SUCCESSFUL))
        elif follower.status in _CODES:
            _abort(handle, _CODES[follower.status], follower.message)
        elif handle.is_cancel_requested:
            handle.canceled(Result(error_string=follower.message))
        else:
            _abort(handle, Result.INVALID_GOAL, follower.message)

    # -- inside -------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._world.simulator.time

    def _accepted(self, handle: ServerGoalHandle) -> None:
        handle.executing()
        kinematics = self._controller.kinematics
        try:
            if reason := self._busy():
                raise GoalError(Result.INVALID_GOAL, reason)
            goal = check_goal(
                handle.request,
                self._controller.arm.joints,
                (kinematics.lower, kinematics.upper),
                self._world.time,
            )
        except GoalError as error:
            _abort(handle, error.code, str(error))
            return
        start = self._now()
        if goal.start is not None:
            start = self._world.simulator_time(goal.start)
        if start <= self._now():
            self._start(handle, goal, start)
            return
        if self._waiting is not None:
            _abort(self._waiting.handle, Result.INVALID_GOAL, _PREEMPTED)
        self._waiting = _Waiting(handle, goal, start)

    def _start(self, handle: ServerGoalHandle, goal: TrajectoryGoal, start: float) -> None:
        controller, now = self._controller, self._now()
        try:
            controller.give_way(False, stop=False)
            here = controller.reference
            trajectory = goal.trajectory(here, now - start)
            controller.follower.start(
                trajectory, now, here.positions, goal.tolerances, preempt=True
            )
        except GoalError as error:
            _abort(handle, error.code, str(error))
            return
        except ControllerError as error:
            _abort(handle, Result.INVALID_GOAL, str(error))
            return
        before, self._active = self._active, handle
        if before is not None:
            _abort(before, Result.INVALID_GOAL, _PREEMPTED)

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        if self._active is not None and handle == self._active:
            self._controller.hold()
        return CancelResponse.ACCEPT

    def _feedback(self) -> FollowJointTrajectory.Feedback:
        desired = self._controller.reference
        measured, speed = self._controller.measured
        error = Reference(
            desired.positions - measured, desired.velocities - speed, np.zeros(len(measured))
        )
        message = FollowJointTrajectory.Feedback(
            joint_names=list(self._controller.arm.joints),
            desired=_point(desired),
            actual=_point(Reference(measured, speed, np.zeros(len(measured)))),
            error=_point(error),
        )
        message.header.stamp = conversions.time_message(self._world.time)
        return message


_PREEMPTED = "preempted by a new goal"


def _abort(handle: ServerGoalHandle, code: int, text: str) -> None:
    handle.abort(Result(error_code=code, error_string=text))


def _point(reference: Reference) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(
        positions=reference.positions.tolist(),
        velocities=reference.velocities.tolist(),
        accelerations=reference.accelerations.tolist(),
    )
