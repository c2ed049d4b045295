# SPDX-License-Identifier: Apache-2.0
"""What a hand grips moves along with it exactly.

Contacts are solved for velocities in the configuration at the start of a step. A gripped body then
flies straight for the step while the hand moves on an arc: without slipping it would creep outwards
by w^2 r dt^2 / 2 a step, millimetres per second at a metre per second, and friction has no memory
of where it held. So the pose of a gripped body is advanced in the frame of the link that holds it:
the difference between the link's true motion and its straight one is added. Velocities and forces
stay what the solver found.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bricksim_core.spatial import Array


@dataclass(frozen=True, eq=False)
class Carrier:
    """A link at the start of a step and how it moves.

    Attributes:
        body: The link.
        position: (3,) origin at the start [m].
        rotation: (3, 3) axes at the start.
        linear: (3,) velocity of the origin that the step found [m/s].
        angular: (3,) angular velocity that the step found [rad/s].
    """

    body: int
    position: Array
    rotation: Array
    linear: Array
    angular: Array


def carrier(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Carrier:
    """A link after `mj_step`, while the kinematics are still those of the step's start."""
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBody(model, data, linear, angular, body)
    return Carrier(
        body,
        data.xpos[body].copy(),
        data.xmat[body].reshape(3, 3).copy(),
        linear @ data.qvel,
        angular @ data.qvel,
    )


def carry(
    data: mujoco.MjData,
    link: Carrier,
    qpos: NDArray[np.intp],
    start: Array,
    dt: float,
) -> None:
    """Corrects the pose of a free body that a link holds.

    Args:
        data: With the kinematics of the end of the step.
        link: The link.
        qpos: (7,) addresses of the body's pose.
        start: (3,) its position at the start of the step [m].
        dt: Length of the step [s].
    """
    end = data.xmat[link.body].reshape(3, 3)
    arm = start - link.position
    true = data.xpos[link.body] + end @ link.rotation.T @ arm
    straight = start + dt * (link.linear + np.cross(link.angular, arm))
    data.qpos[qpos[:3]] += true - straight
    turned = Rotation.from_rotvec(dt * link.angular).as_matrix() @ link.rotation
    x, y, z, w = Rotation.from_matrix(end @ turned.T).as_quat()
    quaternion = np.zeros(4)
    mujoco.mju_mulQuat(quaternion, np.array([w, x, y, z]), data.qpos[qpos[3:]])
    data.qpos[qpos[3:]] = quaternion / np.linalg.norm(quaternion)
