# SPDX-License-Identifier: Apache-2.0
"""State of robots: joints, and set points of drives that move to targets at limited speed."""

from __future__ import annotations

from collections.abc import Sequence
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


class Drives:
    """Position drives of J joints: force = stiffness (set point - position) - damping velocity.

    Args:
        drives: Stiffness, damping, greatest force [SI] of each joint; None for one without a drive.
    """

    def __init__(self, drives: Sequence[tuple[float, float, float] | None]) -> None:
        rows = [drive or (0.0, 0.0, 0.0) for drive in drives]
        self._stiffness, self._damping, self._limit = np.array(rows, dtype=float).reshape(-1, 3).T

    def speeds_and_efforts(
        self, set_points: Array, before: Array, now: Array, dt: float
    ) -> tuple[Array, Array]:
        """(J,) mean speeds [rad/s or m/s] and forces [N m or N] over a step.

        PhysX' TGS solver applies a drive in each of its iterations, which are small steps. What
        counts is the mean over the step, not the law at its end: at 1 rad/s that is 6 N m away.
        PhysX' own speeds hold what is left of the solver's corrections: 3 mm/s for a finger that
        stands still and presses with 20 N on a brick.

        Args:
            set_points: (J,) set points during the step [rad or m].
            before: (J,) positions at its start.
            now: (J,) positions at its end.
            dt: Its length [s].
        """
        errors, speeds = set_points - 0.5 * (before + now), (now - before) / dt
        forces = self._stiffness * errors - self._damping * speeds
        return speeds, np.clip(forces, -self._limit, self._limit)
