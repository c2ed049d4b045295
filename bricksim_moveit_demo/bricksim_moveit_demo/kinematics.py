# SPDX-License-Identifier: Apache-2.0
"""Kinematics and dynamics of one arm (Pinocchio): tool pose, Jacobian, wrench estimate."""

from __future__ import annotations

import numpy as np
import pinocchio

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import JOINT_ARMATURE, ArmDescription, robot_urdf

_DAMPING = 1e-4
"""Damping of the least-squares inverse [-]: moves the tool by less than 0.1 % off its twist."""

_SINGULAR = 0.02
"""Share of the Jacobian's greatest singular value below which it tells nothing of a wrench [-]:
errors of the dynamics of 0.03 N m read as 16 N where an arm passed a singular configuration."""


class ArmKinematics:
    """One arm, its base where it stands in the world. Fingers are taken as closed."""

    def __init__(self, arm: ArmDescription) -> None:
        self.arm = arm
        root = ArmDescription(arm.name, arm.prefix, arm.world_T_base)
        model = pinocchio.buildModelFromXML(robot_urdf([root]))
        fingers = [model.getJointId(joint) for joint in arm.fingers]
        self._model = pinocchio.buildReducedModel(model, fingers, pinocchio.neutral(model))
        self._model.gravity.setZero()  # the drives make up for it
        self._data = self._model.createData()
        self._tool = self._model.getFrameId(arm.tool)
        self.lower: Array = self._model.lowerPositionLimit.copy()
        self.upper: Array = self._model.upperPositionLimit.copy()
        self.max_velocity: Array = self._model.velocityLimit.copy()

    def tool_pose(self, positions: Array) -> Array:
        """(4, 4) world_T_tool [m] at (7,) positions [rad]."""
        pinocchio.framesForwardKinematics(self._model, self._data, positions)
        return self._data.oMf[self._tool].homogeneous.copy()

    def tool_motion(
        self, positions: Array, velocities: Array, accelerations: Array
    ) -> tuple[Array, Array, Array]:
        """(4, 4) world_T_tool [m], (6,) its twist [m/s, rad/s] and acceleration [m/s^2, rad/s^2],
        linear, angular, world axes, at (7,) each."""
        model, data, frame = self._model, self._data, self._tool
        axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pinocchio.forwardKinematics(model, data, positions, velocities, accelerations)
        pose = pinocchio.updateFramePlacement(model, data, frame).homogeneous.copy()
        twist = pinocchio.getFrameVelocity(model, data, frame, axes).vector.copy()
        change = pinocchio.getFrameClassicalAcceleration(model, data, frame, axes).vector.copy()
        return pose, twist, change

    def jacobian(self, positions: Array) -> Array:
        """(6, 7) maps joint velocities to the tool's twist (linear, angular; world axes)."""
        return pinocchio.computeFrameJacobian(
            self._model,
            self._data,
            positions,
            self._tool,
            pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED,
        )

    def joint_velocities(self, positions: Array, twist: Array) -> Array:
        """(7,) least joint velocities [rad/s] that give the tool a (6,) twist [m/s, rad/s]."""
        jacobian = self.jacobian(positions)
        damped = jacobian @ jacobian.T + _DAMPING * np.eye(6)
        return jacobian.T @ np.linalg.solve(damped, twist)

    def inertial_torques(self, positions: Array, velocities: Array, accelerations: Array) -> Array:
        """(7,) torques [N m] that the motion itself needs, gravity left out."""
        torques = pinocchio.rnea(self._model, self._data, positions, velocities, accelerations)
        return torques + JOINT_ARMATURE * accelerations

    def tool_wrench(self, positions: Array, external_torques: Array) -> Array:
        """(6,) wrench [N, N m] that the surroundings exert on the tool, world axes, about the tool.

        The least-squares solution of J^T w = external torques, as Franka's O_F_ext_hat_K.

        Args:
            positions: (7,) [rad].
            external_torques: (7,) joint torques [N m] due to contact.
        """
        jacobian = self.jacobian(positions)
        # By normal equations, five times as fast as the singular values of the Jacobian, whose
        # squares the eigenvalues are.
        values, axes = np.linalg.eigh(jacobian @ jacobian.T)
        kept = axes[:, values > _SINGULAR**2 * values[-1]]
        shares = kept.T @ (jacobian @ external_torques)
        return kept @ (shares / values[-len(shares) :])
