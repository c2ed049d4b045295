# SPDX-License-Identifier: Apache-2.0
"""Motion planning with MoveIt 2 through MoveItPy.

The scene of a request is written into a copy of MoveIt's planning scene, start state included, so
what MoveIt's monitor knows or does not know yet plays no part.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import READY, ArmDescription
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.planning.moveit_configuration import (
    FREE,
    STRAIGHT,
    controller_name,
    moveit_configuration,
    namespace_of,
    parameter_file,
    validate_configuration,
)
from bricksim_moveit_demo.planning.moveit_messages import (
    attached_object,
    collision_object,
    fill,
    joint_trajectory,
    pose_message,
    raise_for_code,
    raise_for_status,
    trajectory_of,
)
from bricksim_moveit_demo.planning.protocol import (
    MotionPlanner,
    PlanningOptions,
    Trajectory,
    TrajectoryExecutor,
)
from bricksim_moveit_demo.planning.scene import PlanningScene
from bricksim_moveit_demo.planning.solutions import Solutions

_NODE = "moveit_py"
"""Name of MoveItPy's node."""
_IK_TIMEOUT = 0.1
"""Time for one inverse kinematics solution [s]."""


def moveit_available() -> bool:
    """Whether MoveItPy is installed."""
    return importlib.util.find_spec("moveit") is not None


class MoveItPlanner(MotionPlanner, TrajectoryExecutor):
    """Plans and executes with MoveItPy. Make it through `create_planner`: in an own process.

    Raises:
        DescriptionError: The configuration lacks something.
        PlanningError: MoveItPy is not installed.
    """

    def __init__(
        self,
        arms: Sequence[ArmDescription],
        options: PlanningOptions,
        use_sim_time: bool = True,
    ) -> None:
        config = moveit_configuration(arms, use_sim_time=use_sim_time)
        validate_configuration(config, arms)
        if not moveit_available():
            raise PlanningError("planner 'moveit': the Python package moveit is not installed")
        # MoveIt has no wheels: it is there where ROS 2 with MoveIt is sourced.
        from moveit.core.robot_state import (  # pyright: ignore[reportMissingImports]
            RobotState,
        )
        from moveit.core.robot_trajectory import (  # pyright: ignore[reportMissingImports]
            RobotTrajectory,
        )
        from moveit.planning import (  # pyright: ignore[reportMissingImports]
            MoveItPy,
            MultiPipelinePlanRequestParameters,
            PlanRequestParameters,
        )

        self._options = options
        self._arms = {arm.name: arm for arm in arms}
        # A configuration that MoveItPy is given as a dictionary is meant for a node without a
        # namespace: hence a file of our own.
        namespace = namespace_of(sys.argv)
        with TemporaryDirectory(prefix="bricksim_") as folder:
            file = Path(folder) / "moveit_py.yaml"
            file.write_text(parameter_file(config, namespace, _NODE), encoding="utf-8")
            self._moveit = MoveItPy(
                node_name=_NODE, name_space=namespace, launch_params_filepaths=[str(file)]
            )
        self._robot_state, self._robot_trajectory = RobotState, RobotTrajectory
        self._components = {
            arm.name: self._moveit.get_planning_component(arm.group) for arm in arms
        }
        self._free = MultiPipelinePlanRequestParameters(self._moveit, list(FREE))
        for request in self._free.multi_plan_request_parameters:
            request.max_velocity_scaling_factor = options.velocity_scale
            request.max_acceleration_scaling_factor = options.acceleration_scale
        self._straight = PlanRequestParameters(self._moveit, STRAIGHT)
        self._straight.max_acceleration_scaling_factor = options.acceleration_scale

    def close(self) -> None:
        """Shuts MoveIt down."""
        self._moveit.shutdown()

    def reach(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, count: int = 1
    ) -> list[Array]:
        """See `MotionPlanner.reach`."""
        moveit_scene = self._scene(scene)
        here = scene.arm_positions(arm.joints)
        pose = self._pose(world_T_tool)
        found = Solutions(here, count)
        solved = False
        for seed in itertools.islice(
            ik_seeds(here, self._options.seed), 4 * (count + self._options.tries)
        ):
            state = self._state(scene)
            state.set_joint_group_positions(arm.group, seed)
            state.update()
            if not state.set_from_ik(arm.group, pose, arm.tool, _IK_TIMEOUT):
                continue
            solved = True
            state.update()
            if moveit_scene.is_state_colliding(state, arm.group, False):
                continue
            solution = np.array(state.get_joint_group_positions(arm.group))
            if found.add(solution):
                break
        reached = found.nearest_first()
        if not reached:
            reason = "every solution is in collision" if solved else "no solution"
            place = "{:.3f}, {:.3f}, {:.3f}".format(*world_T_tool[:3, 3])
            raise UnreachableError(f"{arm.name}: tool pose at {place} m: {reason}")
        return reached

    def plan_to_joints(
        self, scene: PlanningScene, arm: ArmDescription, goals: Sequence[Array]
    ) -> Trajectory:
        """See `MotionPlanner.plan_to_joints`."""
        failures = []
        for goal in goals:
            state = self._state(scene)
            state.set_joint_group_positions(arm.group, goal)
            state.update()
            try:
                return self._plan(
                    scene, arm, "free motion", robot_state=state, multi_plan_parameters=self._free
                )
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
        from geometry_msgs.msg import PoseStamped

        self._straight.max_velocity_scaling_factor = straight_scale(self._options, speed)

        def plan(scene: PlanningScene, pose: Array) -> Trajectory:
            goal = fill(
                PoseStamped(), {"header": {"frame_id": "world"}, "pose": pose_message(pose)}
            )
            return self._plan(
                scene,
                arm,
                "straight motion",
                pose_stamped_msg=goal,
                pose_link=arm.tool,
                single_plan_parameters=self._straight,
            )

        return through(scene, arm, poses, plan)

    def execute(self, arm: ArmDescription, trajectory: Trajectory) -> None:
        """See `TrajectoryExecutor.execute`."""
        from moveit_msgs.msg import (  # pyright: ignore[reportMissingImports]
            RobotTrajectory as Message,
        )

        model = self._moveit.get_robot_model()
        planned = self._robot_trajectory(model)
        planned.joint_model_group_name = arm.group
        message = fill(Message(), {"joint_trajectory": joint_trajectory(trajectory)})
        planned.set_robot_trajectory_msg(self._robot_state(model), message)
        status = self._moveit.execute(planned, controllers=[controller_name(arm)])
        if not status:
            raise_for_status(str(status.status), arm.name)

    # -- inside -----------------------------------------------------------------------------

    def _plan(
        self, scene: PlanningScene, arm: ArmDescription, what: str, **request: Any
    ) -> Trajectory:
        component = self._components[arm.name]
        component.set_start_state(robot_state=self._state(scene))
        goal = {k: request.pop(k) for k in tuple(request) if k not in _PLAN_ARGUMENTS}
        component.set_goal_state(**goal)
        result = component.plan(planning_scene=self._scene(scene), **request)
        raise_for_code(int(result.error_code.val), f"{arm.name}: {what}")
        message = result.trajectory.get_robot_trajectory_msg()
        return trajectory_of(message.joint_trajectory, arm.joints)

    def _state(self, scene: PlanningScene) -> Any:
        state = self._robot_state(self._moveit.get_robot_model())
        state.joint_positions = {name: float(p) for name, p in scene.positions.items()}
        state.update()
        return state

    def _scene(self, scene: PlanningScene) -> Any:
        """A copy of MoveIt's scene that holds exactly what the given scene holds."""
        from moveit_msgs.msg import (  # pyright: ignore[reportMissingImports]
            AttachedCollisionObject,
            CollisionObject,
        )

        with self._moveit.get_planning_scene_monitor().read_only() as monitored:
            result = copy.deepcopy(monitored)
        result.remove_all_collision_objects()
        result.current_state = self._state(scene)
        for name, box in scene.objects.items():
            result.apply_collision_object(
                fill(CollisionObject(), collision_object(name, "world", box))
            )
        for arm_name, boxes in scene.attached.items():
            for name, box in boxes.items():
                message = attached_object(name, self._arms[arm_name], box)
                result.process_attached_collision_object(fill(AttachedCollisionObject(), message))
        # Reading the property gives a copy of the matrix: it takes effect when it is put back.
        matrix = result.allowed_collision_matrix
        for a, b in scene.allowed:
            matrix.set_entry(a, b, True)
        result.allowed_collision_matrix = matrix
        return result

    @staticmethod
    def _pose(world_T_tool: Array) -> Any:
        from geometry_msgs.msg import Pose

        return fill(Pose(), pose_message(world_T_tool))


_PLAN_ARGUMENTS = ("single_plan_parameters", "multi_plan_parameters")


def ik_seeds(here: Array, seed: int) -> Iterator[Array]:
    """(7,) positions [rad] to begin inverse kinematics with, without end.

    The present ones, Franka's ready pose, then random ones around it.
    """
    yield here
    yield np.array(READY)
    generator = np.random.default_rng(seed)
    while True:
        yield np.array(READY) + generator.uniform(-1.0, 1.0, 7)


def straight_scale(options: PlanningOptions, speed: float | None) -> float:
    """Velocity factor of straight motions: Pilz scales its Cartesian limits by it.

    Args:
        options: How plans are made.
        speed: Wanted speed of the tool [m/s], None: that of the options.
    """
    share = (speed or options.linear_speed) / options.linear_speed
    return min(1.0, share * options.velocity_scale)


def through(
    scene: PlanningScene,
    arm: ArmDescription,
    poses: Sequence[Array],
    plan: Callable[[PlanningScene, Array], Trajectory],
) -> Trajectory:
    """A motion through poses, planned one after the other, each from where the last one ends.

    Args:
        scene: Where the motion begins.
        arm: The arm.
        poses: (4, 4) world_T_tool [m].
        plan: Plans from a scene to a pose.
    """
    pieces = []
    for pose in poses:
        pieces.append(piece := plan(scene, pose))
        last = dict(zip(arm.joints, piece.positions[-1].tolist(), strict=True))
        scene = scene.with_positions(last)
    return joined(pieces)


def joined(pieces: Sequence[Trajectory]) -> Trajectory:
    """Trajectories one after the other; each begins where the one before ends, at rest.

    Raises:
        PlanningError: There are none.
    """
    if not pieces:
        raise PlanningError("no pose was given to go to")
    times = [pieces[0].times]
    for piece in pieces[1:]:
        times.append(piece.times[1:] + times[-1][-1])
    return Trajectory(
        pieces[0].joints,
        np.concatenate(times),
        np.concatenate([p.positions[1 if i else 0 :] for i, p in enumerate(pieces)]),
        np.concatenate([p.velocities[1 if i else 0 :] for i, p in enumerate(pieces)]),
        np.concatenate([p.accelerations[1 if i else 0 :] for i, p in enumerate(pieces)]),
    )
