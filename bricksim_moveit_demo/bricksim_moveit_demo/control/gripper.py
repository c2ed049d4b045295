# SPDX-License-Identifier: Apache-2.0
"""The gripper with the semantics of control_msgs/GripperCommand: width, force, stall."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import FINGER_STIFFNESS, MAX_WIDTH, franka
from bricksim_moveit_demo.errors import ControllerError

_REACHED = 0.0005
"""Width error [m] at which a position is reached."""
_STALL_SPEED = 0.001
"""Finger speed [m/s] below which the gripper stands still."""
_RATTLE = 5e-5
"""How far fingers that stand still on a brick may move [m], however fast: between stiff pads they
rattle (measured: 2 micrometres at 1.6 mm/s, for seconds)."""
_STALL_TIME = 0.1
"""How long [s] it must stand still to count as stalled."""


class GripperStatus(StrEnum):
    """State of a gripper command."""

    IDLE = "idle"
    ACTIVE = "active"
    REACHED = "reached"
    STALLED = "stalled"


@dataclass(frozen=True)
class GripperLimits:
    """Limits of the hand: speed of a finger [m/s], force of a finger [N]."""

    speed: float
    force: float

    @classmethod
    def of_franka(cls) -> GripperLimits:
        """The Franka Hand."""
        finger = franka()["finger"]
        return cls(finger["velocity"], finger["effort"])


class GripperController:
    """Moves both fingers to a width at limited speed, pressing with at most the given force.

    The drives are springs: the force on what is gripped is stiffness times the distance between a
    finger and its target, so the target is kept within force / stiffness of the finger.
    """

    def __init__(self, limits: GripperLimits | None = None) -> None:
        self._limits = limits or GripperLimits.of_franka()
        self._goal = MAX_WIDTH
        self._force = self._limits.force
        self._speed = self._limits.speed
        self._targets: Array | None = None
        self._fingers: Array | None = None
        self._last = 0.0
        self._still_since: float | None = None
        self._still_at: Array = np.zeros(2)
        self.status = GripperStatus.IDLE

    @property
    def squeeze(self) -> float:
        """How far the targets are inside the fingers [m]: what their drives press with."""
        if self._targets is None or self._fingers is None:
            return 0.0
        return float(np.abs(self._targets - self._fingers).max())

    def start(self, width: float, force: float, now: float, speed: float | None = None) -> None:
        """Accepts a command.

        Args:
            width: Wanted distance of the pads [m], 0 to 0.08.
            force: Greatest force of each finger [N].
            now: Time [s].
            speed: Greatest speed of a finger [m/s]; the hand's limit holds in any case.

        Raises:
            ControllerError: A number is out of range.
        """
        if not 0.0 <= width <= MAX_WIDTH:
            raise ControllerError(f"gripper width is {width} m, expected 0 to {MAX_WIDTH}")
        if not 0.0 < force <= self._limits.force:
            raise ControllerError(
                f"gripper force is {force} N, expected more than 0, at most {self._limits.force}"
            )
        if speed is not None and not speed > 0.0:
            raise ControllerError(f"gripper speed is {speed} m/s, expected more than 0")
        if (
            self._targets is not None
            and self._fingers is not None
            and 0.5 * width > (self._targets.min())
        ):
            # Opening lets go at once: the targets start at the fingers, not inside the brick.
            self._targets = np.maximum(self._targets, self._fingers)
        self._goal, self._force, self._last = width, force, now
        self._speed = min(speed or self._limits.speed, self._limits.speed)
        self._still_since = None
        self.status = GripperStatus.ACTIVE

    def command(self, width: float) -> None:
        """Sets the fingers' targets to a width [m] directly."""
        self._goal = float(np.clip(width, 0.0, MAX_WIDTH))
        self._targets = np.full(2, 0.5 * self._goal)
        self.status = GripperStatus.REACHED

    def stop(self) -> None:
        """Ends a command; the fingers keep what they hold."""
        if self.status is GripperStatus.ACTIVE:
            self.status = GripperStatus.IDLE

    def update(self, now: float, fingers: Array, speeds: Array) -> Array | None:
        """One control period.

        Args:
            now: Time [s].
            fingers: (2,) finger positions [m].
            speeds: (2,) finger speeds [m/s].

        Returns:
            (2,) position targets [m]; None before the first command.
        """
        self._fingers = np.array(fingers)
        if self.status is GripperStatus.IDLE:
            return None
        if self._targets is None:
            self._targets = np.array(fingers)
        step = self._speed * max(now - self._last, 0.0)
        self._last = now
        wanted = np.full(2, 0.5 * self._goal)
        targets = self._targets + np.clip(wanted - self._targets, -step, step)
        reach = self._force / FINGER_STIFFNESS
        if self.status is GripperStatus.ACTIVE:
            targets = np.clip(targets, fingers - reach, fingers + reach)
            self._targets = targets
            self._judge(now, fingers, speeds, reach)
        return self._targets

    def _judge(self, now: float, fingers: Array, speeds: Array, reach: float) -> None:
        if abs(fingers.sum() - self._goal) <= _REACHED:
            self.status = GripperStatus.REACHED
            return
        assert self._targets is not None
        pressing = np.abs(self._targets - fingers).max() >= min(
            0.9 * reach, 0.9 * self._gap(fingers)
        )
        slow = np.abs(speeds).max() <= _STALL_SPEED
        stays = self._still_since is not None and np.abs(fingers - self._still_at).max() <= _RATTLE
        if not pressing or not (slow or stays):
            self._still_since = None
        elif self._still_since is None:
            self._still_since, self._still_at = now, np.array(fingers)
        elif now - self._still_since >= _STALL_TIME:
            self.status = GripperStatus.STALLED

    def _gap(self, fingers: Array) -> float:
        return float(np.abs(0.5 * self._goal - fingers).max())
