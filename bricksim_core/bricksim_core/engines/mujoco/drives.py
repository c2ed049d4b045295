# SPDX-License-Identifier: Apache-2.0
"""Joint drives: position servos with limited force, implicit in time.

A servo is stiff: taken explicitly it is unstable at 1/240 s, and MuJoCo's implicit integrators
change the velocities of the robot *after* the contacts were solved, so that a gripped brick slides
out of accelerating fingers (measured: millimetres in seconds). Here the servo's force at the *end*
of the step,

    F = Kp (target - q - h v - h^2 a) - Kd (v + h a),

is split: what does not hang on the acceleration a is applied as a force, and the rest,
(h Kd + h^2 Kp) a, is added to the joint's inertia. Contacts, mimic constraints and servos are then
solved together, exactly. A drive at its limit is a constant force and adds no inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bricksim_core.engines.protocol import RobotSpec
from bricksim_core.spatial import Array

_DEFAULT_ARMATURE = 0.1
"""Inertia of a motor seen from its joint [kg m^2 or kg]; see `RobotSpec.armature`."""


@dataclass(frozen=True, eq=False)
class DriveConstants:
    """Drives of one robot, by its J joints; joints without a drive have no force.

    Attributes:
        stiffness: (J,) [N m/rad or N/m].
        damping: (J,) of the drive [N m s/rad or N s/m].
        force: (J,) greatest force [N m or N].
        speed: (J,) greatest speed of the set point [rad/s or m/s].
        armature: (J,) inertia of the motors [kg m^2 or kg].
        friction: (J,) viscous damping of the joints themselves [N m s/rad or N s/m].
    """

    stiffness: Array
    damping: Array
    force: Array
    speed: Array
    armature: Array
    friction: Array

    @cached_property
    def free_acceleration(self) -> Array:
        """(J,) acceleration of the free motors at the greatest force [rad/s^2 or m/s^2]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.force / self.armature)


@dataclass(eq=False)
class DriveState:
    """What drives remember, by the robot's joints.

    Attributes:
        target: (J,) where they are to go [rad or m].
        set_point: (J,) where they are told to be now.
        effort: (J,) their force in the last step [N m or N].
        acceleration: (J,) of the joints in the last step [rad/s^2 or m/s^2].
    """

    target: Array
    set_point: Array
    effort: Array
    acceleration: Array

    def copy(self) -> DriveState:
        """An independent copy."""
        return DriveState(
            self.target.copy(), self.set_point.copy(), self.effort.copy(), self.acceleration.copy()
        )


def drive_constants(
    spec: RobotSpec, joints: Sequence[str], friction: Sequence[float]
) -> DriveConstants:
    """Collects a robot's drives by its joints."""
    drives = np.array([spec.drives.get(j, (0.0, 0.0, 0.0)) for j in joints]).reshape(-1, 3)
    return DriveConstants(
        stiffness=drives[:, 0],
        damping=drives[:, 1],
        force=drives[:, 2],
        speed=np.array([spec.joint_limits.get(j, np.inf) for j in joints]),
        armature=np.array([spec.armature.get(j, _DEFAULT_ARMATURE) for j in joints]),
        friction=np.array(friction),
    )


def resting_drives(count: int) -> DriveState:
    """Drives of ``count`` joints at zero."""
    return DriveState(*(np.zeros(count) for _ in range(4)))


class StepDrives:
    """Forces and inertias of one robot's drives in one step.

    Args:
        constants: The drives.
        state: Their state; the set points are moved.
        position: (J,) joint positions at the start of the step [rad or m].
        velocity: (J,) joint velocities at the start [rad/s or m/s].
        dt: Length of the step [s].
    """

    def __init__(
        self,
        constants: DriveConstants,
        state: DriveState,
        position: Array,
        velocity: Array,
        dt: float,
    ) -> None:
        reach = constants.speed * dt
        state.set_point += np.minimum(np.maximum(state.target - state.set_point, -reach), reach)
        drive = constants.stiffness * (state.set_point - position - dt * velocity)
        drive -= constants.damping * velocity
        self._inertia = dt * constants.damping + dt**2 * constants.stiffness
        # Whether a drive is at its limit is judged by the last acceleration. One against the drive
        # tells nothing: then by that of the free motor at the limit, which a drive that only brakes
        # would overshoot with. (A constant force per step shakes a light joint for ever.)
        limit = constants.force
        against, sign = state.acceleration * drive < 0.0, np.sign(drive)
        expected = np.where(against, sign * constants.free_acceleration, state.acceleration)
        limited = sign * (drive - self._inertia * expected) > limit
        self._inertia = np.where(limited, 0.0, self._inertia)
        self._drive = np.where(limited, np.minimum(np.maximum(drive, -limit), limit), drive)
        self._state = state
        self._friction = dt * constants.friction
        self.force = self._drive - constants.friction * velocity
        self.armature = constants.armature + self._inertia + self._friction

    def finish(self, acceleration: Array) -> None:
        """Takes in the joint accelerations that the step found."""
        self._state.acceleration = acceleration
        self._state.effort = self._drive - self._inertia * acceleration
