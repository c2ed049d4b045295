# SPDX-License-Identifier: Apache-2.0
"""Goals of FollowJointTrajectory: checked, then as trajectory and tolerances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from scipy.interpolate import PchipInterpolator
from trajectory_msgs.msg import JointTrajectoryPoint

from bricksim_core.spatial import Array
from bricksim_moveit_demo.control.trajectory import Reference, Tolerances
from bricksim_moveit_demo.planning.protocol import Trajectory

Result = FollowJointTrajectory.Result
_FARTHEST = 600.0
"""A start farther ahead than this [s] is taken for wall time under simulation time."""
_FIRST = 1e-3
"""Points up to this time [s] are where the motion begins."""
_RESTING = 1e-2
"""Greatest speed at the last point [rad/s]."""


class GoalError(Exception):
    """A goal is refused.

    Attributes:
        code: Error code of FollowJointTrajectory's result.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, eq=False)
class TrajectoryGoal:
    """A checked goal.

    Attributes:
        joints: The arm's joints.
        times: (T,) increasing [s].
        positions: (T, J) [rad].
        velocities: (T, J) [rad/s]; None where the goal gives none.
        accelerations: (T, J) [rad/s^2]; None where the goal gives none.
        tolerances: When to give up.
        start: Simulation time at which it is to start [s]; None: at once.
    """

    joints: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array | None
    accelerations: Array | None
    tolerances: Tolerances
    start: float | None

    def trajectory(self, here: Reference, elapsed: float = 0.0) -> Trajectory:
        """What is left to follow.

        Args:
            here: Where the arm is to be now: the motion begins there, unless the goal itself says
                where it begins.
            elapsed: How long ago the start was [s].

        Raises:
            GoalError: It is over already.
        """
        left = self.times >= elapsed
        if not left.any():
            raise GoalError(
                Result.OLD_HEADER_TIMESTAMP,
                f"the trajectory ended {elapsed - self.times[-1]:.3f} s ago",
            )
        times = self.times[left] - elapsed
        tables = [
            None if table is None else table[left]
            for table in (self.positions, self.velocities, self.accelerations)
        ]
        if times[0] > _FIRST or len(times) == 1:
            times = np.concatenate([[0.0], np.maximum(times, _FIRST)])
            present = (here.positions, here.velocities, here.accelerations)
            tables = [
                None if table is None else np.vstack([now, table])
                for now, table in zip(present, tables, strict=True)
            ]
        positions, velocities, accelerations = tables
        assert positions is not None
        if velocities is None:
            velocities = _slopes(times, positions)
            velocities[0] = here.velocities
        if accelerations is None:
            accelerations = np.gradient(velocities, times, axis=0)
        return Trajectory(self.joints, times, positions, velocities, accelerations)


def check_goal(
    goal: FollowJointTrajectory.Goal,
    joints: Sequence[str],
    limits: tuple[Array, Array],
    now: float,
) -> TrajectoryGoal:
    """Checks what can be checked before the motion starts.

    Args:
        goal: The goal.
        joints: Joints of the arm.
        limits: (J,) lower and upper joint limits [rad].
        now: Simulation time [s].

    Raises:
        GoalError: It is refused; the text says why.
    """
    message = goal.trajectory
    if goal.multi_dof_trajectory.points or goal.multi_dof_trajectory.joint_names:
        raise GoalError(Result.INVALID_GOAL, "multi_dof_trajectory is given, expected none")
    names = list(message.joint_names)
    if sorted(names) != sorted(joints):
        raise GoalError(
            Result.INVALID_JOINTS, f"joints are {names}, expected {', '.join(joints)} in any order"
        )
    if not message.points:
        raise GoalError(Result.INVALID_GOAL, "the trajectory has no points")
    columns = [names.index(joint) for joint in joints]
    times = np.array([_seconds(point.time_from_start) for point in message.points])
    if times[0] < 0.0 or np.any(np.diff(times) <= 0.0):
        raise GoalError(
            Result.INVALID_GOAL,
            f"times from start are {times.tolist()[:8]}, expected increasing ones from 0",
        )
    positions = _table(message.points, "positions", columns)
    if positions is None:
        raise GoalError(Result.INVALID_GOAL, "the points have no positions")
    velocities = _table(message.points, "velocities", columns)
    low, high = limits
    outside = np.argwhere((positions < low) | (positions > high))
    if len(outside):
        point, joint = outside[0]
        raise GoalError(
            Result.INVALID_GOAL,
            f"point {point}: {joints[joint]} is {positions[point, joint]:.4f} rad, expected"
            f" {low[joint]:.4f} to {high[joint]:.4f}",
        )
    if velocities is not None and np.abs(velocities[-1]).max() > _RESTING:
        raise GoalError(
            Result.INVALID_GOAL,
            f"velocities of the last point are {velocities[-1].tolist()}, expected rest",
        )
    stamp = message.header.stamp
    start = None if stamp.sec == 0 and stamp.nanosec == 0 else _seconds(stamp)
    if start is not None and start - now > _FARTHEST:
        raise GoalError(
            Result.INVALID_GOAL,
            f"header.stamp is {start - now:.0f} s ahead of simulation time: was it made without"
            " use_sim_time?",
        )
    return TrajectoryGoal(
        tuple(joints),
        times,
        positions,
        velocities,
        _table(message.points, "accelerations", columns),
        _tolerances(goal, joints),
        start,
    )


def _seconds(stamp) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


def _table(
    points: Iterable[JointTrajectoryPoint], field: str, columns: Sequence[int]
) -> Array | None:
    """(T, J) numbers of a field in the arm's order of joints; None if no point has them."""
    rows = [list(getattr(point, field)) for point in points]
    if not any(rows):
        return None
    for index, row in enumerate(rows):
        if len(row) != len(columns) or not np.all(np.isfinite(row)):
            raise GoalError(
                Result.INVALID_GOAL,
                f"point {index}: {field} are {row}, expected {len(columns)} finite numbers",
            )
    return np.array(rows)[:, list(columns)]


def _slopes(times: Array, positions: Array) -> Array:
    """Velocities of a smooth path through points that does not overshoot them; rest at the end."""
    if len(times) == 2:
        return np.zeros_like(positions)
    slopes = PchipInterpolator(times, positions)(times, 1)
    slopes[-1] = 0.0
    return slopes


def _tolerances(goal: FollowJointTrajectory.Goal, joints: Sequence[str]) -> Tolerances:
    if goal.component_path_tolerance or goal.component_goal_tolerance:
        raise GoalError(Result.INVALID_GOAL, "component tolerances are given, expected none")
    default = Tolerances()
    path = _vector(goal.path_tolerance, joints, "path_tolerance", "position", default.path)
    speed = _vector(
        goal.path_tolerance, joints, "path_tolerance", "velocity", default.path_velocity
    )
    last = _vector(goal.goal_tolerance, joints, "goal_tolerance", "position", default.goal)
    rest = _vector(goal.goal_tolerance, joints, "goal_tolerance", "velocity", default.stopped)
    late = _seconds(goal.goal_time_tolerance)
    return Tolerances(
        path=path,
        path_velocity=speed,
        goal=last,
        stopped=rest,
        goal_time=late if late > 0.0 else default.goal_time,
    )


def _vector(
    tolerances: Iterable[JointTolerance],
    joints: Sequence[str],
    name: str,
    field: str,
    default: float | Array,
) -> Array:
    """(J,) tolerances: 0 stands for the default, a negative number for none."""
    values = np.array(np.broadcast_to(default, len(joints)), dtype=float)
    for item in tolerances:
        if item.name not in joints:
            raise GoalError(
                Result.INVALID_JOINTS,
                f"{name} names {item.name!r}, expected one of {', '.join(joints)}",
            )
        value = getattr(item, field)
        if np.isnan(value):
            raise GoalError(Result.INVALID_GOAL, f"{name} of {item.name} is nan")
        if value:
            values[list(joints).index(item.name)] = value if value > 0.0 else np.inf
    return values
