# SPDX-License-Identifier: Apache-2.0
"""All controllers of one arm behind one `update` per control period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bricksim_core.engines.protocol import JointState
from bricksim_core.spatial import Array
from bricksim_moveit_demo.control.gripper import GripperController
from bricksim_moveit_demo.control.trajectory import Reference, Status, TrajectoryFollower
from bricksim_moveit_demo.description import JOINT_DAMPING, JOINT_STIFFNESS, ArmDescription
from bricksim_moveit_demo.errors import ControllerError
from bricksim_moveit_demo.kinematics import ArmKinematics

_FORCE_FILTER = 0.02
"""Time constant of the wrist force estimate [s]."""
_POSE_GAIN = 5.0
"""How fast servoing corrects the drift of its joint positions from its tool pose [1/s]."""
_SERVO_ACCELERATION = np.array([0.2, 0.2, 0.2, 1.0, 1.0, 1.0])
"""Greatest acceleration of the tool while servoing [m/s^2, rad/s^2]."""
_YIELDING = 0.8
"""Share of the drives' damping that is cancelled while yielding."""
_VIOLATED = (Status.PATH_TOLERANCE_VIOLATED, Status.GOAL_TOLERANCE_VIOLATED)
_LIMIT_MARGIN = 0.01
"""Servoing stops this far from a joint limit [rad]."""


@dataclass(frozen=True)
class DriveModel:
    """How the position drives answer, so that the targets can make up for it.

    A drive's torque is stiffness (target - position) - damping velocity. Without a model the
    targets are the reference positions themselves.
    """

    stiffness: tuple[float, ...] = JOINT_STIFFNESS
    damping: tuple[float, ...] = JOINT_DAMPING


class ArmController:
    """Turns motions, twists and gripper commands into joint targets.

    Attributes:
        kinematics: The arm's kinematics.
        follower: Follows trajectories.
        gripper: Moves the fingers.
    """

    def __init__(self, arm: ArmDescription, drives: DriveModel | None) -> None:
        self.arm = arm
        self.kinematics = ArmKinematics(arm)
        self.follower = TrajectoryFollower(arm.joints, self.kinematics.max_velocity)
        self.gripper = GripperController()
        self._gains: tuple[Array, Array] | None = None
        if drives is not None:
            self._gains = np.array(drives.stiffness), np.array(drives.damping)
        self._names: tuple[str, ...] = ()
        self._columns: tuple[list[int], list[int]] = ([], [])
        self._reference: Reference | None = None
        self._servo_pose: Array | None = None
        self._yielding = False
        self._wanted_twist: Array = np.zeros(6)
        self._twist: Array = np.zeros(6)
        self._speed: Array = np.zeros(7)
        self._measured: Array = np.zeros(7)
        self._fingers: Array = np.zeros(2)
        self._raw: Array = np.zeros(7)
        self._bias: Array = np.zeros(6)
        self._last: float | None = None

    @property
    def reference(self) -> Reference:
        """Where the arm should be.

        Raises:
            ControllerError: No state was received yet.
        """
        if self._reference is None:
            raise ControllerError(f"{self.arm.name}: no joint state was received yet")
        return self._reference

    @property
    def tool_reference(self) -> Array:
        """(4, 4) world_T_tool [m] of the reference."""
        return self.kinematics.tool_pose(self.reference.positions)

    @property
    def measured_tool(self) -> Array:
        """(4, 4) world_T_tool [m] as measured."""
        return self.kinematics.tool_pose(self._measured)

    @property
    def measured(self) -> tuple[Array, Array]:
        """(7,) measured positions [rad] and velocities [rad/s]."""
        return self._measured, self._speed

    @property
    def fingers(self) -> Array:
        """(2,) measured finger positions [m]."""
        return self._fingers

    @property
    def width(self) -> float:
        """Measured distance of the finger pads [m]."""
        return float(self._fingers.sum())

    @property
    def wrench(self) -> Array:
        """(6,) estimate of what the surroundings exert on the tool [N, N m], world axes."""
        return self._whole_wrench() - self._bias

    def servo(self, twist: Array) -> None:
        """Moves the tool with a (6,) twist [m/s, rad/s], world axes, until told otherwise.

        Raises:
            ControllerError: A trajectory is being followed.
        """
        if self.follower.status is Status.ACTIVE:
            raise ControllerError(f"{self.arm.name}: cannot servo while a motion is active")
        self._yielding = False
        if self._servo_pose is None:
            self._servo_pose = self.tool_reference
            self._twist = np.zeros(6)
        self._wanted_twist = np.asarray(twist, dtype=float)

    def hold(self) -> None:
        """Brings servoing or an active trajectory to rest."""
        self._wanted_twist = np.zeros(6)
        self.follower.cancel()

    def give_way(self, yielding: bool, *, stop: bool = True) -> None:
        """Lets whatever pushes the arm move it, or holds it again where it is then.

        While yielding the reference is the measured state: no stiffness is left, little damping.

        Args:
            yielding: Which of both.
            stop: True: an active trajectory is brought to rest.
        """
        self._servo_pose = None
        self._wanted_twist = np.zeros(6)
        if stop:
            self.follower.cancel()
        elif self.follower.status is Status.ACTIVE:
            return
        self._yielding = yielding
        if self._reference is not None and not yielding:
            self._reference = Reference.at_rest(self._reference.positions)

    def command(self, targets: Mapping[str, float]) -> None:
        """Sets position targets of joints and fingers [rad, m] directly; others stay.

        Raises:
            ControllerError: A trajectory is being followed, or no state was received yet.
        """
        if self.follower.status is Status.ACTIVE:
            raise ControllerError(f"{self.arm.name}: a motion is active: joint command ignored")
        positions = self.reference.positions.copy()
        for i, joint in enumerate(self.arm.joints):
            positions[i] = targets.get(joint, positions[i])
        self._servo_pose, self._yielding = None, False
        self._reference = Reference.at_rest(positions)
        fingers = [targets[joint] for joint in self.arm.fingers if joint in targets]
        if fingers:
            self.gripper.command(2.0 * sum(fingers) / len(fingers))

    def reset(self) -> None:
        """Forgets motions and references: the arm was put elsewhere and rests there."""
        self.follower.stop()
        self.gripper = GripperController()
        self._reference = self._servo_pose = self._last = None
        self._yielding = False
        self._wanted_twist, self._twist = np.zeros(6), np.zeros(6)
        self._speed, self._raw, self._bias = np.zeros(7), np.zeros(7), np.zeros(6)

    def tare(self) -> None:
        """Takes the present wrench estimate as zero."""
        self._bias = self._whole_wrench()

    def update(self, now: float, state: JointState) -> dict[str, float]:
        """One control period.

        Args:
            now: Time [s].
            state: Measured joints of this arm, in any order.

        Returns:
            Position targets by joint name [rad, m].
        """
        arm, fingers = self._found(tuple(state.names))
        self._measured = state.positions[arm]
        self._fingers = state.positions[fingers]
        speed = state.velocities[arm]
        dt = 0.0 if self._last is None else now - self._last
        self._last = now
        if self._reference is None:
            self._reference = Reference.at_rest(self._measured)
        if self.follower.status is Status.ACTIVE:
            self._servo_pose = None
            reference = self.follower.update(now, self._measured, speed)
            assert reference is not None
            self._reference = reference
            if self.follower.status in _VIOLATED:
                # Whatever holds the arm off its path is not pushed any more.
                self._reference = Reference.at_rest(self._measured)
        elif self._yielding:
            # Following the measured speed cancels most of the drives' damping.
            self._reference = Reference(self._measured, _YIELDING * speed, np.zeros(7))
        elif self._servo_pose is not None:
            self._reference = self._servo_step(dt)
        else:
            self._reference = Reference.at_rest(self._reference.positions)
        self._estimate_torques(dt, speed, state.efforts[arm])
        targets = dict(zip(self.arm.joints, self._targets().tolist(), strict=True))
        grip = self.gripper.update(now, state.positions[fingers], state.velocities[fingers])
        if grip is not None:
            targets |= dict(zip(self.arm.fingers, grip.tolist(), strict=True))
        return targets

    # -- inside -----------------------------------------------------------------------------

    def _servo_step(self, dt: float) -> Reference:
        assert self._servo_pose is not None and self._reference is not None
        change = _SERVO_ACCELERATION * dt
        self._twist = self._twist + np.clip(self._wanted_twist - self._twist, -change, change)
        positions = self._reference.positions
        pose = self._servo_pose
        pose[:3, 3] += self._twist[:3] * dt
        pose[:3, :3] = _rotated(pose[:3, :3], self._twist[3:] * dt)
        here = self.kinematics.tool_pose(positions)
        drift = np.concatenate([pose[:3, 3] - here[:3, 3], _rotation_error(pose, here)])
        velocities = self.kinematics.joint_velocities(positions, self._twist + _POSE_GAIN * drift)
        share = np.abs(velocities) / self.kinematics.max_velocity
        if share.max() > 1.0:
            velocities = velocities / share.max()
        advanced = positions + velocities * dt
        low = self.kinematics.lower + _LIMIT_MARGIN
        high = self.kinematics.upper - _LIMIT_MARGIN
        if np.any(advanced < low) or np.any(advanced > high):
            self._servo_pose = here
            return Reference.at_rest(positions)
        accelerations = (velocities - self._reference.velocities) / dt if dt > 0.0 else np.zeros(7)
        return Reference(advanced, velocities, accelerations)

    def _targets(self) -> Array:
        reference = self.reference
        if self._gains is None:
            return reference.positions
        stiffness, damping = self._gains
        torque = self.kinematics.inertial_torques(
            reference.positions, reference.velocities, reference.accelerations
        )
        torque = torque + damping * reference.velocities
        return reference.positions + torque / stiffness

    def _found(self, names: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Where the arm's joints and its fingers are in a state."""
        if names != self._names:
            arm, fingers = self.arm.joints, self.arm.fingers
            self._columns = [names.index(j) for j in arm], [names.index(j) for j in fingers]
            self._names = names
        return self._columns

    def _whole_wrench(self) -> Array:
        return self.kinematics.tool_wrench(self._measured, self._raw)

    def _estimate_torques(self, dt: float, speed: Array, efforts: Array) -> None:
        # The drives' effort of the last period less what the motion that it caused took.
        if dt > 0.0:
            acceleration = (speed - self._speed) / dt
            moving = self.kinematics.inertial_torques(self._measured, speed, acceleration)
            self._raw = self._raw + dt / (_FORCE_FILTER + dt) * ((moving - efforts) - self._raw)
        self._speed = speed


def _rotated(rotation: Array, vector: Array) -> Array:
    """A rotation turned by a small rotation vector [rad] in world axes."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return rotation
    x, y, z = vector / angle
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew
    return turn @ rotation


def _rotation_error(wanted: Array, actual: Array) -> Array:
    """(3,) rotation vector [rad], world axes, from an actual to a nearby wanted pose."""
    difference = wanted[:3, :3] @ actual[:3, :3].T
    return 0.5 * np.array(
        [
            difference[2, 1] - difference[1, 2],
            difference[0, 2] - difference[2, 0],
            difference[1, 0] - difference[0, 1],
        ]
    )
