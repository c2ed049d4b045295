# SPDX-License-Identifier: Apache-2.0
"""Free spin of rigid bodies that keeps their angular momentum.

MuJoCo takes the gyroscopic torque at the start of a step: a body that turns by a large angle in a
step gains momentum out of nothing, and a small brick flung at a few hundred rad/s blows up. The
torque returned here replaces that term by the one with which the angular momentum in the world at
the end of the step, R exp(h w') I w', is that at its start (Lie group Euler rule; Newton's
iteration on w').
"""

from __future__ import annotations

import numpy as np

from bricksim_core.spatial import Array, cross

SLOW = 0.01
"""Turn in a step [rad] below which the explicit term is as good: its error is of this order."""
_ITERATIONS = 6


def spin_torque(inertia: Array, angular: Array, dt: float) -> Array:
    """Torque to add to a solver that takes -w x (I w) at the start of the step.

    Args:
        inertia: (N, 3) principal moments [kg m^2].
        angular: (N, 3) angular velocity in principal axes [rad/s].
        dt: Length of the step [s].

    Returns:
        (N, 3) torque in principal axes [N m].
    """
    moment = inertia * angular
    after = angular.copy()
    for _ in range(_ITERATIONS):
        turned, slope = _turned_moment(inertia, after, dt)
        step = np.linalg.solve(slope, (turned - moment)[:, :, None])[:, :, 0]
        # A turn changes by a third of a radian at most, so that the iteration cannot leap.
        size = np.linalg.norm(step, axis=1, keepdims=True) * dt
        after = after - step * np.minimum(1.0, 0.3 / np.maximum(size, 1e-12))
    return cross(angular, moment) + inertia * (after - angular) / dt


def _turned_moment(inertia: Array, angular: Array, dt: float) -> tuple[Array, Array]:
    """exp(h w) I w and its derivative by w (that of exp to first order in h w)."""
    moment = inertia * angular
    angle = np.linalg.norm(angular, axis=1) * dt
    axis = angular * dt / np.maximum(angle, 1e-12)[:, None]
    sine, cosine = np.sin(angle)[:, None], np.cos(angle)[:, None]
    along = np.sum(axis * moment, axis=1)[:, None]
    turned = moment * cosine + cross(axis, moment) * sine + axis * along * (1.0 - cosine)
    rotation = _cross_matrix(axis) * sine[:, :, None]
    rotation += axis[:, :, None] * axis[:, None, :] * (1.0 - cosine)[:, :, None]
    rotation += np.eye(3) * cosine[:, :, None]
    slope = rotation * inertia[:, None, :] - dt * _cross_matrix(turned)
    return turned, slope


def _cross_matrix(vectors: Array) -> Array:
    """(N, 3, 3) matrices of the cross product with (N, 3) vectors."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.moveaxis(np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]), -1, 0)
