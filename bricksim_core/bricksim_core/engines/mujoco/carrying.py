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

from bricksim_core.spatial import Array


@dataclass(frozen=True, eq=False)
class Carrier:
    """A link at the start of a step and how it moves.

    Attributes:
        body: The link.
        position: (3,) origin at the start [m].
        rotation: (3, 3) axes at the start.
        quaternion: (4,) the same in MuJoCo's order.
        twist: (6,) linear and angular velocity that the step found [m/s, rad/s].
    """

    body: int
    position: Array
    rotation: Array
    quaternion: Array
    twist: Array


def carrier(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Carrier:
    """A link after `mj_step`, while the kinematics are still those of the step's start."""
    jacobian = np.zeros((6, model.nv))
    mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], body)
    return Carrier(
        body,
        data.xpos[body].copy(),
        data.xmat[body].reshape(3, 3).copy(),
        data.xquat[body].copy(),
        jacobian @ data.qvel,
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
    # MuJoCo's own functions: scipy's rotations take ten times as long for one.
    linear, angular = link.twist[:3], link.twist[3:]
    end = data.xmat[link.body].reshape(3, 3)
    arm, swept = start - link.position, np.zeros(3)
    mujoco.mju_cross(swept, angular, arm)
    true = data.xpos[link.body] + end @ (link.rotation.T @ arm)
    straight = start + dt * (linear + swept)
    data.qpos[qpos[:3]] += true - straight
    turned, quaternion = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4)
    mujoco.mju_quatIntegrate(turned, angular, dt)
    mujoco.mju_mulQuat(turned, turned.copy(), link.quaternion)
    mujoco.mju_negQuat(turned, turned.copy())
    mujoco.mju_mulQuat(quaternion, turned, data.qpos[qpos[3:]])
    mujoco.mju_mulQuat(quaternion, data.xquat[link.body], quaternion.copy())
    mujoco.mju_normalize4(quaternion)
    data.qpos[qpos[3:]] = quaternion
