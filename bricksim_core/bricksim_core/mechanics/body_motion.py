# SPDX-License-Identifier: Apache-2.0
"""Motions of bodies of parts, compiled: dozens of them are looked at in every step that slides."""

from __future__ import annotations

import numpy as np

from bricksim_core.compiled import compiled, crossed
from bricksim_core.mechanics.friction_program import FrictionJoints
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@compiled
def momenta_of(masses: Array, inertias: Array, twists: Array) -> Array:
    """(N, 6) scaled momenta about their COMs of bodies.

    Args:
        masses: (N,) [kg].
        inertias: (N, 3, 3) scaled, about the COMs [kg].
        twists: (N, 6) scaled [m/s].
    """
    momenta = np.empty_like(twists)
    for i in range(len(masses)):
        for c in range(3):
            momenta[i, c] = masses[i] * twists[i, c]
            total = 0.0
            for d in range(3):
                total += inertias[i, c, d] * twists[i, 3 + d]
            momenta[i, 3 + c] = total
    return momenta


@compiled
def energy_of(masses: Array, inertias: Array, twists: Array) -> float:
    """Kinetic energy [J] of bodies; see `momenta_of`."""
    momenta = momenta_of(masses, inertias, twists)
    total = 0.0
    for i in range(len(masses)):
        for c in range(6):
            total += twists[i, c] * momenta[i, c]
    return 0.5 * total


@compiled
def multiplied(matrices: Array, values: Array, factor: float) -> Array:
    """(6 B,) product of the (B, 6, 6) blocks of a matrix, a factor and (6 B,) values."""
    product = np.empty_like(values)
    for b in range(len(matrices)):
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += matrices[b, i, j] * values[6 * b + j]
            product[6 * b + i] = factor * total
    return product


@compiled
def spread_over(body: IntArray, arm: Array, speed: Array) -> Array:
    """(N, 6) scaled twists of parts by (6 B,) of their bodies.

    Args:
        body: (N,) the body of each part, -1 for the world.
        arm: (N, 3) from its COM to the part's [pitches].
        speed: Of the bodies [m/s].
    """
    twists = np.zeros((len(body), 6))
    for i in range(len(body)):
        if body[i] < 0:
            continue
        at = 6 * body[i]
        turning = crossed(speed[at + 3 : at + 6], arm[i])
        for c in range(3):
            twists[i, c] = speed[at + c] + turning[c]
            twists[i, 3 + c] = speed[at + 3 + c]
    return twists


@compiled
def fastest(body: IntArray, arm: Array, speed: Array) -> float:
    """Greatest speed of a part's COM by (6 B,) scaled twists of the bodies; see `spread_over`."""
    twists = spread_over(body, arm, speed)
    most = 0.0
    for i in range(len(body)):
        most = max(most, twists[i, 0] ** 2 + twists[i, 1] ** 2 + twists[i, 2] ** 2)
    return np.sqrt(most)


@compiled
def friction_at(joints: FrictionJoints, parting: Array) -> tuple[Array, Array]:
    """(K,) power [W] and mean slip speeds [m/s]; see `sliding.Bodies.friction_of`."""
    power, rate = np.empty(len(parting)), np.empty(len(parting))
    for k in range(len(parting)):
        apart = 0.0
        for c in range(3):
            apart += joints.apex[k, c] * parting[k, 2 + c]
        apart = max(apart, 0.0)
        turning = joints.turn[k] * abs(parting[k, 5])
        sideways = max(abs(parting[k, 0]), abs(parting[k, 1]))
        if joints.single[k]:
            apart = max(apart, turning)
        else:
            sideways = max(sideways, turning)
        power[k] = joints.pull[k] * apart + joints.shear[k] * sideways
        rate[k] = apart + sideways
    return power, rate


@compiled
def ways_at(corners: Array, parting: Array) -> Array:
    """(9 K,) see `sliding.Bodies.ways`."""
    ways = np.empty((len(parting), 9))
    for k in range(len(parting)):
        x, y, z = parting[k, 0], parting[k, 1], parting[k, 2]
        for i in range(4):
            about = parting[k, 3] * corners[k, i, 1] - parting[k, 4] * corners[k, i, 0]
            ways[k, i] = z + about
        ways[k, 4], ways[k, 5], ways[k, 6], ways[k, 7] = x, y, x - y, x + y
        ways[k, 8] = parting[k, 5]
    return ways.reshape(-1)
