# SPDX-License-Identifier: Apache-2.0
"""A program that executes trajectories through move_group's interface, as move_group itself does:
it passes each to the FollowJointTrajectory server of the named controller and reports its result.

The parameter `fails` makes it report a failure of control that many times first.
"""

from __future__ import annotations

import contextlib

import rclpy
from control_msgs.action import FollowJointTrajectory
from moveit_msgs.action import ExecuteTrajectory  # pyright: ignore[reportMissingImports]
from rclpy.action import ActionClient, ActionServer
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node

SUCCESS, CONTROL_FAILED = 1, -4


class Relay(Node):
    """Serves execute_trajectory."""

    def __init__(self) -> None:
        super().__init__("move_group")
        self.declare_parameter("fails", 0)
        self._group = ReentrantCallbackGroup()
        self._controllers: dict[str, ActionClient] = {}
        ActionServer(
            self,
            ExecuteTrajectory,
            "execute_trajectory",
            execute_callback=self._execute,
            callback_group=self._group,
        )
        self.get_logger().info("ready")

    async def _execute(self, handle) -> ExecuteTrajectory.Result:
        result = ExecuteTrajectory.Result()
        result.error_code.val, result.error_code.message = await self._code(handle.request)
        if result.error_code.val == SUCCESS:
            handle.succeed()
        else:
            handle.abort()
        return result

    async def _code(self, request) -> tuple[int, str]:
        left = self.get_parameter("fails").get_parameter_value().integer_value
        if left > 0:
            self.set_parameters([rclpy.Parameter("fails", value=left - 1)])
            return CONTROL_FAILED, "told to fail"
        (name,) = request.controller_names
        if name not in self._controllers:
            self._controllers[name] = ActionClient(
                self,
                FollowJointTrajectory,
                f"{name}/follow_joint_trajectory",
                callback_group=self._group,
            )
        controller = self._controllers[name]
        if not controller.wait_for_server(60.0):
            return CONTROL_FAILED, f"{name} does not answer"
        goal = FollowJointTrajectory.Goal(trajectory=request.trajectory.joint_trajectory)
        handle = await controller.send_goal_async(goal)
        self.get_logger().info(f"{name} follows {len(goal.trajectory.points)} points")
        answer = await handle.get_result_async()  # pyright: ignore[reportOptionalMemberAccess]
        if answer.result.error_code == FollowJointTrajectory.Result.SUCCESSFUL:
            return SUCCESS, ""
        return CONTROL_FAILED, answer.result.error_string


def main() -> None:
    rclpy.init()
    executor = MultiThreadedExecutor(2)
    executor.add_node(Relay())
    with contextlib.suppress(ExternalShutdownException, KeyboardInterrupt):
        executor.spin()


if __name__ == "__main__":
    main()
