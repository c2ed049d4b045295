# SPDX-License-Identifier: Apache-2.0
"""Planning and executing with a running move_group, through its services and its action: no
MoveItPy is needed.

Before each request move_group's planning scene is made equal to the given one by a difference;
the start state is part of the request. What others put into that scene stays there.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import ArmDescription
from bricksim_moveit_demo.errors import ControllerError, PlanningError, UnreachableError
from bricksim_moveit_demo.planning.moveit import ik_seeds, straight_scale, through
from bricksim_moveit_demo.planning.moveit_configuration import (
    FREE,
    STRAIGHT,
    controller_name,
    namespace_of,
    request_parameters,
)
from bricksim_moveit_demo.planning.moveit_messages import (
    allowed_matrix,
    execution_goal,
    fill,
    ik_request,
    joint_goal,
    plan_request,
    pose_goal,
    raise_for_code,
    raise_for_execution,
    scene_changes,
    trajectory_of,
)
from bricksim_moveit_demo.planning.protocol import (
    MotionPlanner,
    PlanningOptions,
    Trajectory,
    TrajectoryExecutor,
)
from bricksim_moveit_demo.planning.scene import Box, PlanningScene, brick_name
from bricksim_moveit_demo.planning.solutions import Solutions

_SERVICES = {
    "plan_kinematic_path": "GetMotionPlan",
    "compute_ik": "GetPositionIK",
    "get_planning_scene": "GetPlanningScene",
    "apply_planning_scene": "ApplyPlanningScene",
}
"""Services of move_group and their types in moveit_msgs.srv."""
_EXECUTE = "execute_trajectory"
"""Action of move_group, moveit_msgs/ExecuteTrajectory."""
_WAIT = 20.0
"""How long move_group may take to appear [s]."""
_ANSWER = 60.0
"""Longest answer to a request [s]."""
_IK_TIMEOUT = 0.1
"""Time for one inverse kinematics solution [s]."""


class MoveGroupPlanner(MotionPlanner):
    """`MotionPlanner` on a move_group node. Make it through `create_planner`: in an own process.

    Args:
        arms: The arms; move_group has to have their groups.
        options: How plans are made.

    Raises:
        PlanningError: moveit_msgs is not installed, or no move_group answers.
    """

    def __init__(self, arms: Sequence[ArmDescription], options: PlanningOptions) -> None:
        try:
            from moveit_msgs import srv  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise _not_installed("planner", error) from None
        self._arms, self._options = tuple(arms), options
        self._node = _Client("bricksim_move_group_planner")
        self._types = {name: getattr(srv, kind) for name, kind in _SERVICES.items()}
        create = self._node.node.create_client
        self._clients = {name: create(kind, name) for name, kind in self._types.items()}
        self._known: PlanningScene | None = None
        end = time.monotonic() + _WAIT
        for name, client in self._clients.items():
            if not client.wait_for_service(max(0.0, end - time.monotonic())):
                raise PlanningError(
                    f"planner 'move_group': service {name} did not appear in {_WAIT:.0f} s:"
                    " is move_group running in this namespace?"
                )
        components = {"components": {"components": _ALLOWED_COLLISIONS}}
        matrix = self._call("get_planning_scene", components).scene.allowed_collision_matrix
        self._names = list(matrix.entry_names)
        self._rows = [list(entry.enabled) for entry in matrix.entry_values]

    def close(self) -> None:
        """Ends the client; move_group goes on."""
        self._node.close()

    def reach(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, count: int = 1
    ) -> list[Array]:
        """See `MotionPlanner.reach`."""
        self._synchronize(scene)
        here = scene.arm_positions(arm.joints)
        found = Solutions(here, count)
        tries = 4 * (count + self._options.tries)
        for seed in itertools.islice(ik_seeds(here, self._options.seed), tries):
            request = ik_request(scene, arm, world_T_tool, seed, _IK_TIMEOUT)
            answer = self._call("compute_ik", {"ik_request": request})
            if answer.error_code.val != 1:
                continue
            state = answer.solution.joint_state
            positions = dict(zip(state.name, state.position, strict=True))
            solution = np.array([positions[joint] for joint in arm.joints])
            if found.add(solution):
                break
        reached = found.nearest_first()
        if not reached:
            place = "{:.3f}, {:.3f}, {:.3f}".format(*world_T_tool[:3, 3])
            raise UnreachableError(
                f"{arm.name}: tool pose at {place} m: no solution without collision"
            )
        return reached

    def plan_to_joints(
        self, scene: PlanningScene, arm: ArmDescription, goals: Sequence[Array]
    ) -> Trajectory:
        """See `MotionPlanner.plan_to_joints`."""
        self._synchronize(scene)
        failures = []
        for goal, name in itertools.product(goals, FREE):
            parameters = request_parameters(name) | {
                "max_velocity_scaling_factor": self._options.velocity_scale,
                "max_acceleration_scaling_factor": self._options.acceleration_scale,
            }
            try:
                return self._plan(scene, arm, joint_goal(arm.joints, goal), parameters, name)
            except PlanningError as error:
                failures.append(str(error))
        raise PlanningError("; ".join(failures) or f"{arm.name}: no goal was given")

    def plan_straight(
        self,
        scene: PlanningScene,
        arm: ArmDescription,
        poses: Sequence[Array],
        speed: float | None = None,
    ) -> Trajectory:
        """See `MotionPlanner.plan_straight`."""
        self._synchronize(scene)
        parameters = request_parameters(STRAIGHT) | {
            "max_velocity_scaling_factor": straight_scale(self._options, speed),
            "max_acceleration_scaling_factor": self._options.acceleration_scale,
        }

        def plan(scene: PlanningScene, pose: Array) -> Trajectory:
            return self._plan(scene, arm, pose_goal(arm, pose), parameters, STRAIGHT)

        return through(scene, arm, poses, plan)

    # -- inside -----------------------------------------------------------------------------

    def _plan(
        self,
        scene: PlanningScene,
        arm: ArmDescription,
        goal: Mapping[str, Any],
        parameters: Mapping[str, Any],
        what: str,
    ) -> Trajectory:
        request = {"motion_plan_request": plan_request(scene, arm, goal, parameters)}
        answer = self._call("plan_kinematic_path", request).motion_plan_response
        raise_for_code(int(answer.error_code.val), f"{arm.name}: {what}")
        return trajectory_of(answer.trajectory.joint_trajectory, arm.joints)

    def _synchronize(self, scene: PlanningScene) -> None:
        """Makes move_group's scene what the given one is."""
        before = self._known or self._left_behind()
        changes = scene_changes(before, scene, self._arms)
        if self._known is None or self._known.allowed != scene.allowed:
            matrix = allowed_matrix(self._names, self._rows, scene.allowed)
            changes["allowed_collision_matrix"] = matrix
        self._known = None  # if it fails, what move_group has is not known
        if not self._call("apply_planning_scene", {"scene": changes}).success:
            raise PlanningError("move_group refused a change of its planning scene")
        self._known = scene

    def _left_behind(self) -> PlanningScene:
        """Bricks in move_group's scene that an earlier client has left there, to be removed."""
        components = {"components": {"components": _OBJECT_NAMES | _ATTACHED_OBJECTS}}
        scene = self._call("get_planning_scene", components).scene
        nowhere = Box((0.0, 0.0, 0.0), np.eye(4))
        prefix = brick_name(0).removesuffix("0")
        names = [o.id for o in scene.world.collision_objects if o.id.startswith(prefix)]
        tools = {arm.tool: arm.name for arm in self._arms}
        attached: dict[str, dict[str, Box]] = {}
        for body in scene.robot_state.attached_collision_objects:
            if body.object.id.startswith(prefix) and body.link_name in tools:
                attached.setdefault(tools[body.link_name], {})[body.object.id] = nowhere
        return PlanningScene({}, dict.fromkeys(names, nowhere), attached)

    def _call(self, name: str, request: Mapping[str, Any]) -> Any:
        request = fill(self._types[name].Request(), request)
        return self._node.wait(self._clients[name].call_async(request), name, _ANSWER)


class MoveGroupExecutor(TrajectoryExecutor):
    """Executes plans with the action execute_trajectory of a running move_group.

    move_group sends them to the arms' trajectory controllers and reports what these say. Make it
    through `create_executor`: in a process of its own.

    Args:
        arms: The arms, for which move_group has controllers.
        options: Not used.

    Raises:
        PlanningError: moveit_msgs is not installed, or no move_group answers.
    """

    def __init__(self, arms: Sequence[ArmDescription], options: PlanningOptions) -> None:
        try:
            from moveit_msgs.action import (  # pyright: ignore[reportMissingImports]
                ExecuteTrajectory,
            )
        except ImportError as error:
            raise _not_installed("execution", error) from None
        self._goal = ExecuteTrajectory.Goal
        self._node = _Client("bricksim_move_group_executor")
        from rclpy.action import ActionClient

        self._client = ActionClient(self._node.node, ExecuteTrajectory, _EXECUTE)
        if not self._client.wait_for_server(_WAIT):
            self.close()
            raise PlanningError(
                f"execution 'move_group': action {_EXECUTE} did not appear in {_WAIT:.0f} s: is"
                " move_group running in this namespace?"
            )

    def execute(self, arm: ArmDescription, trajectory: Trajectory) -> None:
        """See `TrajectoryExecutor.execute`."""
        goal = fill(self._goal(), execution_goal(trajectory, controller_name(arm)))
        handle = self._node.wait(self._client.send_goal_async(goal), _EXECUTE, _ANSWER)
        if not handle.accepted:
            raise ControllerError(f"{arm.name}: move_group refuses to execute the trajectory")
        # How long it takes on the wall depends on how fast the simulation runs: who waits for the
        # end of the motion gives up by simulation time.
        answer = self._node.wait(handle.get_result_async(), _EXECUTE, None)
        raise_for_execution(answer.result.error_code, arm.name)

    def close(self) -> None:
        """Ends the client; move_group goes on."""
        self._client.destroy()
        self._node.close()


class _Client:
    """A node that waits for answers, in the namespace of the process that started this one."""

    def __init__(self, name: str) -> None:
        import rclpy

        self._rclpy = rclpy
        if not rclpy.ok():
            rclpy.init(args=namespace_arguments(sys.argv))
        self.node = rclpy.create_node(name)

    def wait(self, future: Any, name: str, timeout: float | None) -> Any:
        """What comes of a future, within some time [s]; None: without limit.

        Raises:
            PlanningError: Nothing does.
        """
        self._rclpy.spin_until_future_complete(self.node, future, timeout_sec=timeout)
        if not future.done():
            raise PlanningError(f"move_group did not answer {name} within {timeout:.0f} s")
        return future.result()

    def close(self) -> None:
        """Ends it."""
        self.node.destroy_node()
        self._rclpy.try_shutdown()


def namespace_arguments(argv: Sequence[str]) -> list[str]:
    """Of a ROS program's arguments, those that a second node in its namespace is to have."""
    namespace = namespace_of(argv)
    return ["--ros-args", "-r", f"__ns:={namespace}"] if namespace else []


def _not_installed(what: str, error: ImportError) -> PlanningError:
    return PlanningError(
        f"{what} 'move_group': {error.name} is not installed, expected a sourced ROS 2 with"
        " MoveIt's messages"
    )


_ATTACHED_OBJECTS, _OBJECT_NAMES, _ALLOWED_COLLISIONS = 4, 8, 128
"""moveit_msgs/PlanningSceneComponents: ROBOT_STATE_ATTACHED_OBJECTS, WORLD_OBJECT_NAMES and
ALLOWED_COLLISION_MATRIX."""
