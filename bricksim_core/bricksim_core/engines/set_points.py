# SPDX-License-Identifier: Apache-2.0
"""State of robots: joints, and set points of drives that move to targets at limited speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.spatial import Array


@dataclass(frozen=True, eq=False)
class RobotState:
    """State of a robot, by its J joints [SI].

    Attributes:
        positions: (J,).
        velocities: (J,).
        targets: (J,) where the drives are to go.
        set_points: (J,) where the drives are told to be now.
    """

    positions: Array
    velocities: Array
    targets: Array
    set_points: Array


class SetPoints:
    """Targets and set points of one robot's J joints [rad or m].

    Args:
        start: (J,) where targets and set points begin.
        speeds: (J,) greatest speeds of the set points [rad/s or m/s]; inf for none.
    """

    def __init__(self, start: Array, speeds: Array) -> None:
        self.targets = np.array(start, dtype=float)
        self.now = self.targets.copy()
        self._speeds = speeds

    def advance(self, dt: float) -> bool:
        """Moves towards the targets for a time [s]; False if nothing moved."""
        reach = self._speeds * dt
        step = np.clip(self.targets - self.now, -reach, reach)
        self.now += step
        return bool(np.any(step))

    def put(self, targets: Array, now: Array) -> None:
        """Sets both."""
        self.targets = np.array(targets, dtype=float)
        self.now = np.array(now, dtype=float)


def drive_effort(drive: tuple[float, float, float] | None, error: float, velocity: float) -> float:
    """Force of a position drive by its law [N or N m].

    Args:
        drive: Stiffness, damping, greatest force [SI]; None for a joint without a drive.
        error: Set point minus position [rad or m].
        velocity: Of the joint [rad/s or m/s].
    """
    if drive is None:
        return 0.0
    stiffness, damping, limit = drive
    return float(np.clip(stiffness * error - damping * velocity, -limit, limit))
