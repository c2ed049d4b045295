# SPDX-License-Identifier: Apache-2.0
"""Following joint trajectories with the semantics of control_msgs/FollowJointTrajectory.

A state machine without a clock of its own: the caller gives time and measured state at every
control period and passes the targets on. It serves the in-process executor and the action
server alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.errors import ControllerError
from bricksim_moveit_demo.planning.protocol import Trajectory

_STOPPING_TIME = 0.2
"""Time in which a canceled motion comes to rest on its path [s]."""


@dataclass(frozen=True)
class Tolerances:
    """When a motion is given up.

    Each but the times is one number or (J,) numbers, infinite where there is no limit.

    Attributes:
        start: Greatest distance of the first point from the measured position [rad].
        path: Greatest distance from the trajectory on the way [rad].
        path_velocity: Greatest difference of the speed from the trajectory's on the way [rad/s].
        goal: Greatest distance from the last point at the end [rad].
        goal_time: How long after the last point's time the goal may be reached [s].
        stopped: Joint speed below which the arm is at rest [rad/s].
    """

    start: float = 0.05
    path: float | Array = 0.15
    path_velocity: float | Array = np.inf
    goal: float | Array = 0.01
    goal_time: float = 1.0
    stopped: float | Array = 0.05


class Status(StrEnum):
    """State of a motion; the ends are those of FollowJointTrajectory's result."""

    IDLE = "idle"
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"
    PATH_TOLERANCE_VIOLATED = "path_tolerance_violated"
    GOAL_TOLERANCE_VIOLATED = "goal_tolerance_violated"


@dataclass(frozen=True, eq=False)
class Reference:
    """Where the arm should be now: (J,) positions [rad], velocities, accelerations."""

    positions: Array
    velocities: Array
    accelerations: Array

    @classmethod
    def at_rest(cls, positions: Array) -> Reference:
        """Standing still."""
        zeros = np.zeros(len(positions))
        return cls(np.array(positions), zeros, zeros)


class TrajectoryFollower:
    """Follows one trajectory at a time."""

    def __init__(self, joints: tuple[str, ...], max_velocity: Array) -> None:
        self._joints = joints
        self._max_velocity = max_velocity
        self._trajectory: Trajectory | None = None
        self._tolerances = Tolerances()
        self._started = 0.0
        self._last = 0.0
        self._path_time = 0.0
        self._stop_from: float | None = None
        self.status = Status.IDLE
        self.message = ""

    def start(
        self,
        trajectory: Trajectory,
        now: float,
        measured: Array,
        tolerances: Tolerances | None = None,
        *,
        preempt: bool = False,
    ) -> None:
        """Accepts a trajectory.

        Args:
            trajectory: What to follow; its joints in any order.
            now: Time [s].
            measured: (J,) measured positions [rad].
            tolerances: When to give up.
            preempt: Takes the place of an active motion.

        Raises:
            ControllerError: Busy, other joints, times that do not increase, numbers that are not
                finite, speeds over the limits, or a start away from the measured position.
        """
        if self.status is Status.ACTIVE and not preempt:
            raise ControllerError("goal rejected: another motion is active")
        tolerances = tolerances or Tolerances()
        trajectory = self._ordered(trajectory)
        self._validate(trajectory)
        distance = np.abs(trajectory.positions[0] - measured)
        if distance.max() > tolerances.start:
            worst = int(distance.argmax())
            raise ControllerError(
                f"goal rejected: start of {self._joints[worst]} is {distance[worst]:.4f} rad from"
                f" the measured position, expected at most {tolerances.start}"
            )
        self._trajectory, self._tolerances = trajectory, tolerances
        self._started = self._last = now
        self._path_time, self._stop_from = 0.0, None
        self.status, self.message = Status.ACTIVE, ""

    def cancel(self) -> None:
        """Brings an active motion to rest on its path."""
        if self.status is Status.ACTIVE and self._stop_from is None:
            self._stop_from = self._last

    def stop(self) -> None:
        """Ends an active motion at once: the arm was put elsewhere."""
        if self.status is Status.ACTIVE:
            self._end(Status.CANCELED, "stopped")

    def update(self, now: float, measured: Array, speed: Array) -> Reference | None:
        """One control period.

        Args:
            now: Time [s].
            measured: (J,) measured positions [rad].
            speed: (J,) measured velocities [rad/s].

        Returns:
            Where the arm should be; None when no motion was ever given.
        """
        if self._trajectory is None:
            return None
        if self.status is Status.ACTIVE:
            self._path_time += (now - self._last) * self._rate(now)
            self._last = now
        position, velocity, acceleration = self._trajectory.sample(self._path_time)
        rate = self._rate(now) if self.status is Status.ACTIVE else 0.0
        reference = Reference(position, rate * velocity, rate * acceleration)
        if self.status is Status.ACTIVE:
            self._judge(now, reference, measured, speed)
        if self.status is not Status.ACTIVE:
            return Reference.at_rest(position)
        return reference

    def _rate(self, now: float) -> float:
        if self._stop_from is None:
            return 1.0
        return max(0.0, 1.0 - (now - self._stop_from) / _STOPPING_TIME)

    def _judge(self, now: float, reference: Reference, measured: Array, speed: Array) -> None:
        assert self._trajectory is not None
        t = self._tolerances
        error = np.abs(reference.positions - measured)
        lag = np.abs(reference.velocities - speed)
        if self._stop_from is not None and self._rate(now) == 0.0:
            self._end(Status.CANCELED, "canceled")
        elif np.any(error > t.path) or np.any(lag > t.path_velocity):
            what = self._excess((error, t.path, "rad"), (lag, t.path_velocity, "rad/s"))
            self._end(
                Status.PATH_TOLERANCE_VIOLATED,
                f"path tolerance: {what} at {self._path_time:.2f} s",
            )
        elif self._path_time >= self._trajectory.duration:
            if not (np.any(error > t.goal) or np.any(np.abs(speed) > t.stopped)):
                self._end(Status.SUCCEEDED, "")
            elif now - self._started > self._trajectory.duration + t.goal_time:
                what = self._excess((error, t.goal, "rad"), (np.abs(speed), t.stopped, "rad/s"))
                self._end(
                    Status.GOAL_TOLERANCE_VIOLATED,
                    f"goal tolerance: {what} {t.goal_time} s after the end",
                )

    def _excess(self, *checks: tuple[Array, float | Array, str]) -> str:
        """The joint that is farthest over a tolerance, with the numbers."""
        shares = []
        for values, limit, unit in checks:
            limits = np.broadcast_to(limit, values.shape)
            share = values / np.maximum(limits, 1e-12)
            worst = int(share.argmax())
            text = f"{self._joints[worst]} is off by {values[worst]:.4f} {unit}, expected at most"
            shares.append((float(share[worst]), f"{text} {limits[worst]:.4f},"))
        return max(shares)[1]

    def _end(self, status: Status, message: str) -> None:
        self.status, self.message = status, message

    def _ordered(self, trajectory: Trajectory) -> Trajectory:
        if trajectory.joints == self._joints:
            return trajectory
        if sorted(trajectory.joints) != sorted(self._joints):
            raise ControllerError(
                f"goal rejected: joints are {list(trajectory.joints)}, expected"
                f" {list(self._joints)}"
            )
        columns = [trajectory.joints.index(joint) for joint in self._joints]
        return Trajectory(
            self._joints,
            trajectory.times,
            trajectory.positions[:, columns],
            trajectory.velocities[:, columns],
            trajectory.accelerations[:, columns],
        )

    def _validate(self, trajectory: Trajectory) -> None:
        shape = (len(trajectory.times), len(self._joints))
        tables: Mapping[str, Array] = {
            "positions": trajectory.positions,
            "velocities": trajectory.velocities,
            "accelerations": trajectory.accelerations,
        }
        if shape[0] < 2 or trajectory.times[0] < 0.0 or np.any(np.diff(trajectory.times) <= 0.0):
            raise ControllerError(
                "goal rejected: expected at least two points with increasing times from 0"
            )
        for name, table in tables.items():
            if table.shape != shape or not np.all(np.isfinite(table)):
                raise ControllerError(
                    f"goal rejected: {name} have shape {table.shape} or are not finite, expected"
                    f" {shape} finite numbers"
                )
        steps = np.abs(np.diff(trajectory.positions, axis=0)) / np.diff(trajectory.times)[:, None]
        speeds = np.concatenate([np.abs(trajectory.velocities), steps])
        excess = speeds.max(axis=0) / self._max_velocity
        if excess.max() > 1.0 + 1e-6:
            worst = int(excess.argmax())
            raise ControllerError(
                f"goal rejected: {self._joints[worst]} would move at {excess[worst]:.2f} times its"
                " velocity limit"
            )
