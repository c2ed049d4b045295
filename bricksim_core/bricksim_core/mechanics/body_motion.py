# SPDX-License-Identifier: Apache-2.0
"""Motions of bodies of parts, compiled: dozens of them are looked at in every step that slides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed
from bricksim_core.mechanics.friction_packed import Packed, unpacked
from bricksim_core.mechanics.friction_program import FrictionJoints, parted
from bricksim_core.parts import STUD_PITCH
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
def moves_at(
    lower: IntArray,
    upper: IntArray,
    centre: Array,
    coms: Array,
    twists: Array,
    still: float,
    faint: float,
) -> NDArray[np.bool_]:
    """(C,) connections whose ends move against each other.

    Args:
        lower: (C,) lower parts.
        upper: (C,) upper parts.
        centre: (C, 3) where they are [m].
        coms: (N, 3) of the parts [m].
        twists: (N, 6) scaled, of these [m/s].
        still: Speed up to which nothing moves [m/s].
        faint: The same as a part of the greatest one.
    """
    speed, along, turn = np.zeros(len(lower)), np.empty(3), np.empty(3)
    for k in range(len(lower)):
        one, other = twists[lower[k]], twists[upper[k]]
        # Motions of the parts at the origin differ by what they do against each other.
        by_one = crossed(one[3:], coms[lower[k]] / STUD_PITCH)
        by_other = crossed(other[3:], coms[upper[k]] / STUD_PITCH)
        for c in range(3):
            along[c] = (other[c] - by_other[c]) - (one[c] - by_one[c])
            turn[c] = other[3 + c] - one[3 + c]
        turning = crossed(turn, centre[k] / STUD_PITCH)
        for c in range(3):
            speed[k] = max(speed[k], abs(along[c] + turning[c]), abs(turn[c]))
    most = still
    for k in range(len(speed)):
        most = max(most, faint * speed[k])
    return speed > most


@compiled
def pushed(
    program: Packed,
    unit: float,
    friction: Array,
    loads: Array,
    speed: Array,
    span: float,
    share: float,
) -> tuple[Array, float]:
    """(6 B,) what drives bodies through a span and full friction as multiples of a force, and that
    force [N]: the greatest of what drives them.

    Args:
        program: The bodies.
        unit: Of mass [kg].
        friction: (6 B,) scaled forces of full friction [N].
        loads: (6 B,) scaled loads [N].
        speed: (6 B,) scaled twists before the span [m/s].
        span: How long it is [s].
        share: Factor of the loads.
    """
    load, force = multiplied(unpacked(program).mass, speed, unit), 1.0
    for i in range(len(load)):
        load[i] = load[i] / span + share * loads[i]
        force = max(force, abs(load[i]))
    for i in range(len(load)):
        load[i] = (load[i] + friction[i]) / force
    return load, force


@compiled
def full_wrenches(program: Packed, upper: Array, force: float) -> Array:
    """(K, 6) scaled wrenches of joints on their lower bodies [N].

    Args:
        program: The joints and bodies.
        upper: (L, 6) wrenches on the upper bodies, all but the full friction of joints with more
            than one stud, as multiples of a force.
        force: That [N].
    """
    joints = unpacked(program).joints
    wrench = np.empty((len(joints.turn), 6))
    for k in range(len(wrench)):
        for c in range(6):
            wrench[k, c] = -force * upper[k, c]
        if not joints.single[k]:
            for c in range(3):
                wrench[k, 2 + c] += joints.pull[k] * joints.apex[k, c]
    return wrench


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
def momenta_by(program: Packed, unit: float, speed: Array) -> Array:
    """(6 B,) scaled momenta of bodies by their twists; unit: of mass [kg]."""
    return multiplied(unpacked(program).mass, speed, unit)


@compiled
def summed(body: IntArray, arm: Array, wrenches: Array, count: int) -> Array:
    """(6 B,) scaled wrenches on bodies by (N, 6) scaled ones on their parts."""
    total = np.zeros(6 * count)
    for i in range(len(body)):
        if body[i] >= 0:
            w, a, at = wrenches[i], arm[i], 6 * body[i]
            for c in range(6):
                total[at + c] += w[c]
            total[at + 3] += a[1] * w[2] - a[2] * w[1]
            total[at + 4] += a[2] * w[0] - a[0] * w[2]
            total[at + 5] += a[0] * w[1] - a[1] * w[0]
    return total


@compiled
def gathered(
    program: Packed,
    unit: float,
    body: IntArray,
    arm: Array,
    masses: Array,
    inertias: Array,
    twists: Array,
) -> Array:
    """(6 B,) scaled twists of bodies that have the momenta of their parts.

    Args:
        program: The bodies.
        unit: Of mass [kg].
        body: (N,) the body of each part, -1 for the world.
        arm: (N, 3) from its COM to the part's [pitches].
        masses: (N,) of the parts [kg].
        inertias: (N, 3, 3) scaled, about their COMs [kg].
        twists: (N, 6) scaled, of them [m/s].
    """
    mobility = unpacked(program).mobility
    if not twists.any():
        return np.zeros(6 * len(mobility))
    momenta = summed(body, arm, momenta_of(masses, inertias, twists), len(mobility))
    return multiplied(mobility, momenta, 1.0 / unit)


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
def parting_at(program: Packed, speed: Array) -> Array:
    """(K, 6) scaled twists of upper against lower bodies at the joints, by (6 B,) of bodies."""
    links, joints = unpacked(program).links, unpacked(program).joints
    return parted(links, speed)[: len(joints.turn)]


@compiled
def friction_at(program: Packed, parting: Array) -> tuple[Array, Array]:
    """(K,) power [W] and mean slip speeds [m/s]; see `sliding.Bodies.friction_of`."""
    return _friction(unpacked(program).joints, parting)


@compiled
def _friction(joints: FrictionJoints, parting: Array) -> tuple[Array, Array]:
    """`friction_at`."""
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
def slid_at(program: Packed, speed: Array, still: float) -> tuple[Array, Array, Array]:
    """(K, 6) scaled twists at joints by (6 B,) of bodies, and what `friction_at` gives for them;
    zeros if none is faster than what counts as still [m/s]."""
    parting = parting_at(program, speed)
    if np.abs(parting).max() <= still:
        parting[:] = 0.0
        return parting, np.zeros(len(parting)), np.zeros(len(parting))
    power, rate = friction_at(program, parting)
    return parting, power, rate


@compiled
def ways_at(program: Packed, parting: Array) -> Array:
    """(9 K,) see `sliding.Bodies.ways`."""
    corners = unpacked(program).joints.corners
    ways = np.empty((len(parting), 9))
    for k in range(len(parting)):
        x, y, z = parting[k, 0], parting[k, 1], parting[k, 2]
        for i in range(4):
            about = parting[k, 3] * corners[k, i, 1] - parting[k, 4] * corners[k, i, 0]
            ways[k, i] = z + about
        ways[k, 4], ways[k, 5], ways[k, 6], ways[k, 7] = x, y, x - y, x + y
        ways[k, 8] = parting[k, 5]
    return ways.reshape(-1)
