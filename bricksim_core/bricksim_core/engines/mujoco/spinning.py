# SPDX-License-Identifier: Apache-2.0
"""Free spin of rigid bodies that keeps their angular momentum and their energy.

MuJoCo takes the gyroscopic torque at the start of a step and turns a body by its velocity at the
end: a body that turns by a large angle in a step gains momentum out of nothing, and a small brick
flung at a few hundred rad/s blows up. So the free motion over the step is worked out here, whatever
the angle: the torque that takes MuJoCo to its velocity is applied, and after the step what nothing
touches is turned as that motion turns it. What wrenches change of the velocity comes on top. What
is touched, or gripped, goes as its contacts have it.

The free motion is composed of turns about principal axes, along which Euler's equations are solved
exactly (J. E. Marsden and T. S. Ratiu's splitting as used by S. Reich, "Momentum conserving
symplectic integrators", Physica D 76, 1994), to fourth order (M. Suzuki, "Fractal decomposition of
exponential operators", Phys. Lett. A 146, 1990). Each of them keeps the angular momentum in the
world to rounding, and being symplectic they win and lose no energy over time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import Vector, compiled, crossed
from bricksim_core.spatial import Array

Quaternion = tuple[float, float, float, float]
"""(w, x, y, z)."""

SLOW = 0.01
"""Turn in a step [rad] below which the explicit term is as good: its error is of this order."""
_PORTION = 0.3
"""Turn [rad] that is composed at once; the energy is then kept to 1e-5."""
_MOST_PORTIONS = 1000
_OUTER = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))
"""Length of four of the five second order steps of one of fourth order; the middle one goes back by
what these are too long."""


@compiled
def load_spin(
    velocities: Array, spin: NDArray[np.intp], moments: Array, dt: float, applied: Array
) -> Array:
    """Sets the applied forces to the torques that make the spin of fast bodies that of free ones.

    Args:
        velocities: (V,) of the model; angular ones in principal axes [rad/s].
        spin: (F, 3) addresses of the free bodies' angular velocities.
        moments: (F, 3) their principal moments [kg m^2].
        dt: Length of the step [s].
        applied: (V,) forces to set; 0 but for the torques [N, N m].

    Returns:
        (F, 7) how they spin if nothing touches them: angular velocity at the end, in the principal
        axes there [rad/s], and turn in the step, a quaternion (w, x, y, z); zeros for slow bodies.
        (0, 7): all of them are.
    """
    applied[:] = 0.0
    limit = (SLOW / dt) ** 2
    free = np.empty((0, 7))
    for f in range(len(spin)):
        i, j, k = spin[f]
        angular = (float(velocities[i]), float(velocities[j]), float(velocities[k]))
        if _squared(angular) > limit:
            if not len(free):
                free = np.zeros((len(spin), 7))
            x, y, z = float(moments[f, 0]), float(moments[f, 1]), float(moments[f, 2])
            end, turn = spun((x, y, z), angular, dt)
            free[f, :3], free[f, 3:] = end, turn
            a, b, c = crossed(angular, (x * angular[0], y * angular[1], z * angular[2]))
            applied[i] = a + x * (end[0] - angular[0]) / dt
            applied[j] = b + y * (end[1] - angular[1]) / dt
            applied[k] = c + z * (end[2] - angular[2]) / dt
    return free


@compiled
def turn_spun(
    before: Array,
    velocities: Array,
    at: NDArray[np.intp],
    spin: NDArray[np.intp],
    free: Array,
    dt: float,
    constrained: Array,
    positions: Array,
) -> None:
    """Turns fast bodies that nothing touched after a step by their free motion, and then by what
    acted on them.

    Args:
        before: Positions of the model at the start of the step.
        velocities: Its velocities at the end [rad/s].
        at: (F, 7) addresses of the free bodies' positions.
        spin: (F, 3) those of their angular velocities.
        free: (F, 7) what `load_spin` found.
        dt: Length of the step [s].
        constrained: (V,) forces of contacts and joints on these velocities [N, N m].
        positions: Positions at the end, to be written.
    """
    for f in range(len(free)):
        i, j, k = spin[f]
        touched = constrained[i] != 0.0 or constrained[j] != 0.0 or constrained[k] != 0.0
        if free[f, 3:].any() and not touched:
            w, x, y, z = at[f, 3:]
            old = (float(before[w]), float(before[x]), float(before[y]), float(before[z]))
            turn = (float(free[f, 3]), float(free[f, 4]), float(free[f, 5]), float(free[f, 6]))
            more = (
                dt * (velocities[i] - free[f, 0]),
                dt * (velocities[j] - free[f, 1]),
                dt * (velocities[k] - free[f, 2]),
            )
            a, b, c, d = _product(_product(old, turn), _exponential(more))
            size = math.sqrt(a * a + b * b + c * c + d * d)
            positions[w], positions[x], positions[y], positions[z] = (
                a / size,
                b / size,
                c / size,
                d / size,
            )


@compiled
def spun(inertia: Vector, angular: Vector, duration: float) -> tuple[Vector, Quaternion]:
    """Free motion of a rigid body.

    Args:
        inertia: Principal moments [kg m^2].
        angular: Angular velocity in principal axes [rad/s].
        duration: [s].

    Returns:
        Angular velocity at the end, in the principal axes there [rad/s], and how these have turned,
        a quaternion (w, x, y, z).
    """
    i, j, k = inertia
    x, y, z = angular
    # No motion of this energy is faster.
    fastest = math.sqrt((i * x * x + j * y * y + k * z * z) / min(i, j, k))
    count = max(1, math.ceil(min(fastest * duration / _PORTION, _MOST_PORTIONS)))
    step = duration / count
    moment, turn = (i * x, j * y, k * z), (1.0, 0.0, 0.0, 0.0)
    for _ in range(count):
        for part in range(5):
            part_step = step * (1.0 - 4.0 * _OUTER if part == 2 else _OUTER)
            moment, turn = _second_order(inertia, moment, turn, part_step)
    size = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2 + turn[3] ** 2)
    turn = (turn[0] / size, turn[1] / size, turn[2] / size, turn[3] / size)
    return (moment[0] / i, moment[1] / j, moment[2] / k), turn


@compiled
def _second_order(
    inertia: Vector, moment: Vector, turn: Quaternion, step: float
) -> tuple[Vector, Quaternion]:
    """Turns about the first, the second, the third, the second and the first axis.

    Args:
        inertia: Principal moments [kg m^2].
        moment: Angular momentum in principal axes [kg m^2/s].
        turn: How these have turned.
        step: Duration [s].

    Returns:
        The momentum and the turn after them.
    """
    a, b, c = moment
    w, x, y, z = turn
    first, second = 0.25 * step / inertia[0], 0.25 * step / inertia[1]
    b, c, w, x, y, z = _about(first * a, b, c, w, x, y, z)
    c, a, w, y, z, x = _about(second * b, c, a, w, y, z, x)
    a, b, w, z, x, y = _about(0.5 * step / inertia[2] * c, a, b, w, z, x, y)
    c, a, w, y, z, x = _about(second * b, c, a, w, y, z, x)
    b, c, w, x, y, z = _about(first * a, b, c, w, x, y, z)
    return (a, b, c), (w, x, y, z)


@compiled
def _about(
    half: float, along: float, across: float, w: float, x: float, y: float, z: float
) -> tuple[float, float, float, float, float, float]:
    """A turn about one axis.

    Args:
        half: Half of its angle [rad].
        along: Angular momentum along the axis after it [kg m^2/s].
        across: The same along the one after that.
        w: How the axes have turned before, a quaternion,
        x: its entry for the axis,
        y: for the one after it,
        z: and for the one after that.

    Returns:
        The last six after the turn.
    """
    c, s = math.cos(half), math.sin(half)
    w, x, y, z = c * w - s * x, c * x + s * w, c * y + s * z, c * z - s * y
    c, s = c * c - s * s, 2.0 * s * c
    return c * along + s * across, c * across - s * along, w, x, y, z


@compiled
def _exponential(rotation: Vector) -> Quaternion:
    """Quaternion of a rotation vector [rad]."""
    angle = math.sqrt(_squared(rotation))
    # The tiny summand keeps no turn at all from being divided by zero.
    scale = math.sin(0.5 * angle) / (angle + 1e-300)
    return math.cos(0.5 * angle), scale * rotation[0], scale * rotation[1], scale * rotation[2]


@compiled
def _product(p: Quaternion, q: Quaternion) -> Quaternion:
    """Product of two quaternions."""
    a, b, c, d = p
    w, x, y, z = q
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


@compiled
def _squared(a: Vector) -> float:
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
