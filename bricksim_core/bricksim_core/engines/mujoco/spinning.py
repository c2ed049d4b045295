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
_ITERATIONS = 12
_CONVERGED = 1e-9
"""Change of the turn in a step [rad] with which the iteration ends."""
_EYE = np.eye(3)
_CROSS = np.zeros((3, 9))
"""Maps vectors to the matrices of their cross products, row by row."""
for _i, _place, _sign in ((0, 5, -1), (0, 7, 1), (1, 2, 1), (1, 6, -1), (2, 1, -1), (2, 3, 1)):
    _CROSS[_i, _place] = _sign


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
        size = np.sqrt(np.einsum("ni,ni->n", step, step)) * dt
        greatest = size.max()
        # A turn changes by a third of a radian at most, so that the iteration cannot leap.
        if greatest > 0.3:
            step *= np.minimum(1.0, 0.3 / np.maximum(size, 0.3))[:, None]
        after -= step
        if greatest < _CONVERGED:
            break
    return cross(angular, moment) + inertia * (after - angular) / dt


def _turned_moment(inertia: Array, angular: Array, dt: float) -> tuple[Array, Array]:
    """exp(h w) I w and its derivative by w (that of exp to second order in h w)."""
    moment = inertia * angular
    angle = dt * np.sqrt(np.einsum("ni,ni->n", angular, angular))[:, None, None]
    angle = np.maximum(angle, 1e-9)
    skew = _cross_matrix(dt * angular)
    # Rodrigues' formula; 1 - cos a is twice the square of sin a / 2.
    first, second = np.sin(angle) / angle, 2.0 * (np.sin(0.5 * angle) / angle) ** 2
    rotation = _EYE + first * skew + second * (skew @ skew)
    turned = (rotation @ moment[:, :, None])[:, :, 0]
    slope = rotation * inertia[:, None, :]
    slope -= _cross_matrix(dt * turned) @ (_EYE + second * skew)
    return turned, slope


def _cross_matrix(vectors: Array) -> Array:
    """(N, 3, 3) matrices of the cross product with (N, 3) vectors."""
    return (vectors @ _CROSS).reshape(-1, 3, 3)
