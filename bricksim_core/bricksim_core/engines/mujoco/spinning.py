# SPDX-License-Identifier: Apache-2.0
"""Free spin of rigid bodies that keeps their angular momentum.

MuJoCo takes the gyroscopic torque at the start of a step: a body that turns by a large angle in a
step gains momentum out of nothing, and a small brick flung at a few hundred rad/s blows up. The
torque worked out here replaces that term by the one with which the angular momentum in the world at
the end of the step, R exp(h w') I w', is that at its start (Lie group Euler rule; Newton's
iteration on w').
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import Vector, compiled, crossed
from bricksim_core.spatial import Array

SLOW = 0.01
"""Turn in a step [rad] below which the explicit term is as good: its error is of this order."""
_ITERATIONS = 12
_CONVERGED = 1e-9
"""Change of the turn in a step [rad] with which the iteration ends."""
_LEAP = 0.3
"""Greatest change of the turn [rad] in an iteration."""


@compiled
def load_spin(
    velocities: Array, spin: NDArray[np.intp], moments: Array, dt: float, applied: Array
) -> None:
    """Sets the applied forces to the torques that correct the spin of fast bodies.

    Args:
        velocities: (V,) of the model; angular ones in principal axes [rad/s].
        spin: (F, 3) addresses of the free bodies' angular velocities.
        moments: (F, 3) their principal moments [kg m^2].
        dt: Length of the step [s].
        applied: (V,) forces to set; 0 but for the torques [N, N m].
    """
    applied[:] = 0.0
    limit = (SLOW / dt) ** 2
    for f in range(len(spin)):
        i, j, k = spin[f]
        angular = (float(velocities[i]), float(velocities[j]), float(velocities[k]))
        if _dot(angular, angular) > limit:
            inertia = (float(moments[f, 0]), float(moments[f, 1]), float(moments[f, 2]))
            applied[i], applied[j], applied[k] = spin_torque(inertia, angular, dt)


@compiled
def spin_torque(inertia: Vector, angular: Vector, dt: float) -> Vector:
    """Torque to add to a solver that takes -w x (I w) at the start of the step.

    Args:
        inertia: Principal moments [kg m^2].
        angular: Angular velocity in principal axes [rad/s].
        dt: Length of the step [s].

    Returns:
        Torque in principal axes [N m].
    """
    i, j, k = inertia
    x, y, z = angular
    moment = (i * x, j * y, k * z)
    for _ in range(_ITERATIONS):
        dx, dy, dz = _newton_step(inertia, (x, y, z), moment, dt)
        change = dt * math.sqrt(dx * dx + dy * dy + dz * dz)
        if change > _LEAP:
            part = _LEAP / change
            dx, dy, dz = part * dx, part * dy, part * dz
        x, y, z = x - dx, y - dy, z - dz
        if change < _CONVERGED:
            break
    a, b, c = crossed(angular, moment)
    x, y, z = x - angular[0], y - angular[1], z - angular[2]
    return a + i * x / dt, b + j * y / dt, c + k * z / dt


@compiled
def _newton_step(inertia: Vector, angular: Vector, moment: Vector, dt: float) -> Vector:
    """Solution of J d = exp(h w) I w - L, with the derivative J of the right hand side by w, that
    of exp to second order in h w."""
    i, j, k = inertia
    x, y, z = dt * angular[0], dt * angular[1], dt * angular[2]
    xx, yy, zz = x * x, y * y, z * z
    # Rodrigues' formula; 1 - cos a is twice the square of sin a / 2. The tiny summand keeps a body
    # at rest from being divided by zero.
    angle = math.sqrt(xx + yy + zz + 1e-30)
    first, half = math.sin(angle) / angle, math.sin(0.5 * angle) / angle
    second = 2.0 * half * half
    fx, fy, fz = first * x, first * y, first * z
    sxy, sxz, syz = second * x * y, second * x * z, second * y * z
    diagonal_x, diagonal_y, diagonal_z = (
        -second * (yy + zz),
        -second * (xx + zz),
        -second * (xx + yy),
    )
    rxx, rxy, rxz = 1.0 + diagonal_x, sxy - fz, sxz + fy
    ryx, ryy, ryz = sxy + fz, 1.0 + diagonal_y, syz - fx
    rzx, rzy, rzz = sxz - fy, syz + fx, 1.0 + diagonal_z
    u, v, w = i * angular[0], j * angular[1], k * angular[2]
    tx = rxx * u + rxy * v + rxz * w
    ty = ryx * u + ryy * v + ryz * w
    tz = rzx * u + rzy * v + rzz * w
    # The left Jacobian of exp, E + second [h w].
    sx, sy, sz = second * x, second * y, second * z
    hx, hy, hz = dt * tx, dt * ty, dt * tz
    # Columns of J: those of R times the moments less [h t] times the Jacobian's.
    a = rxx * i + hz * sz + hy * sy, ryx * i - hz - hx * sy, rzx * i + hy - hx * sz
    b = rxy * j + hz - hy * sx, ryy * j + hz * sz + hx * sx, rzy * j - hx - hy * sz
    c = rxz * k - hy - hz * sx, ryz * k + hx - hz * sy, rzz * k + hy * sy + hx * sx
    e = tx - moment[0], ty - moment[1], tz - moment[2]
    bc = crossed(b, c)
    scale = 1.0 / _dot(a, bc)
    return scale * _dot(e, bc), scale * _dot(e, crossed(c, a)), scale * _dot(e, crossed(a, b))


@compiled
def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
