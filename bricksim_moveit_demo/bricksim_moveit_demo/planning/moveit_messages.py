# SPDX-License-Identifier: Apache-2.0
"""The planning scene, goals and results as contents of MoveIt's messages.

Plain dictionaries: `fill` turns one into a message. So all of it is testable without MoveIt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bricksim_core.spatial import Array, quaternion_of
from bricksim_moveit_demo.description import ArmDescription
from bricksim_moveit_demo.errors import ControllerError, Outcome, PlanningError, UnreachableError
from bricksim_moveit_demo.planning.protocol import Trajectory
from bricksim_moveit_demo.planning.scene import Box, PlanningScene

_BOX = 1
"""shape_msgs/SolidPrimitive.BOX"""
_ADD, _REMOVE = 0, 1
"""moveit_msgs/CollisionObject.ADD and REMOVE (as bytes in the message)."""

ERROR_CODES: Mapping[int, str] = {
    1: "success",
    99999: "failure",
    -1: "planning failed",
    -2: "invalid motion plan",
    -3: "the environment changed",
    -4: "control failed",
    -5: "no sensor data",
    -6: "timed out",
    -7: "preempted",
    -10: "start state in collision",
    -11: "start state violates path constraints",
    -12: "goal in collision",
    -13: "goal violates path constraints",
    -14: "goal constraints violated",
    -15: "invalid group name",
    -16: "invalid goal constraints",
    -17: "invalid robot state",
    -18: "invalid link name",
    -19: "invalid object name",
    -21: "frame transform failure",
    -22: "collision checking unavailable",
    -23: "robot state stale",
    -24: "sensor info stale",
    -25: "communication failure",
    -26: "start state invalid",
    -27: "goal state invalid",
    -28: "unrecognized goal type",
    -29: "crash",
    -30: "abort",
    -31: "no inverse kinematics solution",
}
"""moveit_msgs/MoveItErrorCodes in words."""

_UNREACHABLE = (-12, -27, -31)
_PREEMPTED = -7


def pose_message(pose: Array) -> dict[str, Any]:
    """geometry_msgs/Pose of a (4, 4) pose [m]."""
    x, y, z = (float(v) for v in pose[:3, 3])
    qx, qy, qz, qw = (float(v) for v in quaternion_of(pose))
    return {
        "position": {"x": x, "y": y, "z": z},
        "orientation": {"x": qx, "y": qy, "z": qz, "w": qw},
    }


def collision_object(name: str, frame: str, box: Box) -> dict[str, Any]:
    """moveit_msgs/CollisionObject of a box, to be added."""
    return {
        "header": {"frame_id": frame},
        "id": name,
        "pose": pose_message(box.pose),
        "primitives": [{"type": _BOX, "dimensions": [float(s) for s in box.size]}],
        "primitive_poses": [pose_message(np.eye(4))],
        "operation": bytes([_ADD]),
    }


def removed_object(name: str, frame: str = "world") -> dict[str, Any]:
    """moveit_msgs/CollisionObject that removes an object."""
    return {"header": {"frame_id": frame}, "id": name, "operation": bytes([_REMOVE])}


def attached_object(name: str, arm: ArmDescription, box: Box) -> dict[str, Any]:
    """moveit_msgs/AttachedCollisionObject of a held box, the hand as its touch links."""
    return {
        "link_name": arm.tool,
        "object": collision_object(name, arm.tool, box),
        "touch_links": list(arm.hand_links),
    }


def scene_changes(
    before: PlanningScene | None, after: PlanningScene, arms: Sequence[ArmDescription]
) -> dict[str, Any]:
    """moveit_msgs/PlanningScene (a difference) that makes one scene of another.

    MoveIt takes in the robot state, with what is attached, before the world: what is let go is in
    the world then, where it is moved to its place or removed; what is attached leaves the world by
    itself.

    Args:
        before: The scene as MoveIt has it; None: nothing of it is there.
        after: As it is to be.
        arms: The arms.
    """
    by_name = {arm.name: arm for arm in arms}
    old = before or PlanningScene({})
    held, holding = _carried(old), _carried(after)
    attached = [
        {"link_name": by_name[arm].tool, "object": removed_object(name, by_name[arm].tool)}
        for name, (arm, _) in held.items()
        if name not in holding or holding[name][0] != arm
    ]
    attached += [
        attached_object(name, by_name[arm], box)
        for name, (arm, box) in holding.items()
        if name not in held or held[name][0] != arm or not _same(held[name][1], box)
    ]
    gone = (old.objects.keys() | held.keys()) - after.objects.keys() - holding.keys()
    objects = [removed_object(name) for name in sorted(gone)]
    objects += [
        collision_object(name, "world", box)
        for name, box in after.objects.items()
        if name not in old.objects or not _same(old.objects[name], box)
    ]
    return {
        "is_diff": True,
        "robot_state": {**robot_state(after), "attached_collision_objects": attached},
        "world": {"collision_objects": objects},
    }


def robot_state(scene: PlanningScene) -> dict[str, Any]:
    """moveit_msgs/RobotState (a difference) with the positions of all joints."""
    return {
        "is_diff": True,
        "joint_state": {
            "name": list(scene.positions),
            "position": [float(p) for p in scene.positions.values()],
        },
    }


def allowed_matrix(
    names: Sequence[str], rows: Sequence[Sequence[bool]], pairs: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """moveit_msgs/AllowedCollisionMatrix: a given one with more pairs allowed.

    A scene's matrix is replaced as a whole, also in a difference: hence the given one.

    Args:
        names: Names of the given matrix.
        rows: Its rows.
        pairs: Names that may touch.
    """
    ordered = sorted((min(pair), max(pair)) for pair in pairs)
    known = list(dict.fromkeys([*names, *(name for pair in ordered for name in pair)]))
    index = {name: i for i, name in enumerate(known)}
    matrix = np.zeros((len(known), len(known)), dtype=bool)
    for row, values in enumerate(rows):
        matrix[row, : len(values)] = values
    for a, b in ordered:
        matrix[index[a], index[b]] = matrix[index[b], index[a]] = True
    return {"entry_names": known, "entry_values": [{"enabled": r} for r in matrix.tolist()]}


def plan_request(
    scene: PlanningScene,
    arm: ArmDescription,
    goal: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """moveit_msgs/MotionPlanRequest from the scene's positions.

    Args:
        scene: Where the robot is.
        arm: The arm that moves.
        goal: From `joint_goal` or `pose_goal`.
        parameters: ``plan_request_params`` as in config/moveit_cpp.yaml.
    """
    return {
        "group_name": arm.group,
        "start_state": robot_state(scene),
        "goal_constraints": [dict(goal)],
        "pipeline_id": parameters["planning_pipeline"],
        "planner_id": parameters["planner_id"],
        "num_planning_attempts": int(parameters["planning_attempts"]),
        "allowed_planning_time": float(parameters["planning_time"]),
        "max_velocity_scaling_factor": float(parameters["max_velocity_scaling_factor"]),
        "max_acceleration_scaling_factor": float(parameters["max_acceleration_scaling_factor"]),
    }


def ik_request(
    scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, seed: Array, timeout: float
) -> dict[str, Any]:
    """moveit_msgs/PositionIKRequest for joint positions without collision.

    Args:
        scene: Positions of all joints.
        arm: The arm.
        world_T_tool: (4, 4) pose of its tool [m].
        seed: (7,) positions [rad] that the solver begins with.
        timeout: Longest time [s].
    """
    nanoseconds = round(timeout * 1e9)
    seeded = scene.with_positions(dict(zip(arm.joints, seed.tolist(), strict=True)))
    return {
        "group_name": arm.group,
        "robot_state": robot_state(seeded),
        "avoid_collisions": True,
        "ik_link_name": arm.tool,
        "pose_stamped": {"header": {"frame_id": "world"}, "pose": pose_message(world_T_tool)},
        "timeout": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
    }


def _carried(scene: PlanningScene) -> dict[str, tuple[str, Box]]:
    """Arm and box of everything that is attached, by name."""
    return {name: (arm, box) for arm, own in scene.attached.items() for name, box in own.items()}


def _same(a: Box, b: Box) -> bool:
    return a.size == b.size and np.array_equal(a.pose, b.pose)


def joint_goal(joints: Sequence[str], positions: Array, tolerance: float = 1e-4) -> dict[str, Any]:
    """moveit_msgs/Constraints that ask for joint positions [rad]."""
    return {
        "joint_constraints": [
            {
                "joint_name": joint,
                "position": float(position),
                "tolerance_above": tolerance,
                "tolerance_below": tolerance,
                "weight": 1.0,
            }
            for joint, position in zip(joints, positions, strict=True)
        ]
    }


def pose_goal(
    arm: ArmDescription, world_T_tool: Array, position: float = 1e-4, rotation: float = 1e-3
) -> dict[str, Any]:
    """moveit_msgs/Constraints that ask for a tool pose within tolerances [m, rad]."""
    pose = pose_message(world_T_tool)
    header = {"frame_id": "world"}
    return {
        "position_constraints": [
            {
                "header": header,
                "link_name": arm.tool,
                "constraint_region": {
                    "primitives": [{"type": 2, "dimensions": [position]}],
                    "primitive_poses": [{"position": pose["position"], "orientation": {"w": 1.0}}],
                },
                "weight": 1.0,
            }
        ],
        "orientation_constraints": [
            {
                "header": header,
                "link_name": arm.tool,
                "orientation": pose["orientation"],
                "absolute_x_axis_tolerance": rotation,
                "absolute_y_axis_tolerance": rotation,
                "absolute_z_axis_tolerance": rotation,
                "weight": 1.0,
            }
        ],
    }


def execution_goal(trajectory: Trajectory, controller: str) -> dict[str, Any]:
    """Goal of moveit_msgs/ExecuteTrajectory.

    The trajectory carries no stamp: it begins when its controller gets it, whatever clock MoveIt
    goes by.

    Args:
        trajectory: What to follow.
        controller: Name of the controller in MoveIt's configuration.
    """
    return {
        "trajectory": {"joint_trajectory": joint_trajectory(trajectory)},
        "controller_names": [controller],
    }


def joint_trajectory(trajectory: Trajectory) -> dict[str, Any]:
    """trajectory_msgs/JointTrajectory of a trajectory, without a stamp."""
    rows = zip(
        trajectory.times.tolist(),
        trajectory.positions.tolist(),
        trajectory.velocities.tolist(),
        trajectory.accelerations.tolist(),
        strict=True,
    )
    points = []
    for time, positions, velocities, accelerations in rows:
        nanoseconds = round(1e9 * time)
        sec, nanosec = divmod(nanoseconds, 1_000_000_000)
        points.append(
            {
                "positions": positions,
                "velocities": velocities,
                "accelerations": accelerations,
                "time_from_start": {"sec": sec, "nanosec": nanosec},
            }
        )
    return {"joint_names": list(trajectory.joints), "points": points}


def fill(message: Any, values: Mapping[str, Any]) -> Any:
    """A ROS message with fields set from nested dictionaries."""
    from rosidl_runtime_py.set_message import set_message_fields

    set_message_fields(message, dict(values))
    return message


def trajectory_of(message: Any, joints: Sequence[str]) -> Trajectory:
    """The trajectory in a trajectory_msgs/JointTrajectory.

    Args:
        message: The message.
        joints: The arm's joints, in the wanted order.

    Raises:
        PlanningError: It is empty, lacks joints or velocities, or does not begin at time 0.
    """
    names = list(message.joint_names)
    missing = [joint for joint in joints if joint not in names]
    if missing or len(message.points) < 1:
        raise PlanningError(
            f"planned trajectory has {len(message.points)} points and lacks joints {missing}"
        )
    columns = [names.index(joint) for joint in joints]
    points = list(message.points)
    times = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points])
    if len(points) == 1:
        # The goal is where the arm is already: a rest of a tenth of a second.
        points, times = [points[0], points[0]], np.array([0.0, 0.1])

    def table(field: str) -> Array:
        rows = [list(getattr(p, field)) or [0.0] * len(names) for p in points]
        return np.array(rows, dtype=float)[:, columns]

    return Trajectory(
        tuple(joints), times, table("positions"), table("velocities"), table("accelerations")
    )


def raise_for_code(code: int, what: str) -> None:
    """Raises the error that belongs to a MoveIt error code; nothing on success.

    Raises:
        UnreachableError: The goal cannot be reached.
        PlanningError: Any other failure.
    """
    if code == 1:
        return
    text = f"{what}: MoveIt says {ERROR_CODES.get(code, 'unknown error')} ({code})"
    if code in _UNREACHABLE:
        raise UnreachableError(text)
    raise PlanningError(text, Outcome.CANCELED if code == _PREEMPTED else None)


def raise_for_execution(error: Any, arm: str) -> None:
    """Raises the error that belongs to the result of an execution; nothing on success.

    Args:
        error: moveit_msgs/MoveItErrorCodes.
        arm: Name of the arm.

    Raises:
        ControllerError: It failed; the outcome is `CANCELED` where somebody told MoveIt to stop.
    """
    code = int(error.val)
    if code == 1:
        return
    text = f"{arm}: MoveIt's execution ended with {ERROR_CODES.get(code, 'unknown error')} ({code})"
    # Not all versions of the message have it.
    if said := getattr(error, "message", ""):
        text = f"{text}: {said}"
    raise ControllerError(text, Outcome.CANCELED if code == _PREEMPTED else None)


def raise_for_status(status: str, arm: str) -> None:
    """Raises the error that belongs to MoveItPy's status of an execution that did not succeed.

    Args:
        status: Its name, e.g. ``ABORTED``.
        arm: Name of the arm.

    Raises:
        ControllerError: Always; the outcome is `CANCELED` where somebody told MoveIt to stop.
    """
    raise ControllerError(
        f"{arm}: MoveIt's execution ended with {status.lower().replace('_', ' ')}",
        Outcome.CANCELED if status == "PREEMPTED" else None,
    )
