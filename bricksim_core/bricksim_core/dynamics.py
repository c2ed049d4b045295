# SPDX-License-Identifier: Apache-2.0
"""Rigid-body dynamics of components as pure functions: mass, joins and breaks.

A join is perfectly plastic: the forces that click two bricks together are internal, so linear
momentum and angular momentum about the common centre of mass (COM) stay, and no energy is won. A
break lets each piece go on with the velocity field of the whole, so neither momentum nor kinetic
energy jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bricksim_core.compiled import compiled, crossed
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout


class MassProperties(NamedTuple):
    """Mass of a rigid body.

    Attributes:
        mass: Mass [kg].
        com: (3,) centre of mass in the body's frame [m].
        inertia: (3, 3) about the centre of mass, axes of the body's frame [kg m^2].
    """

    mass: float
    com: Array
    inertia: Array


class Momentum(NamedTuple):
    """Momentum of a rigid body.

    Attributes:
        linear: (3,) [N s].
        angular: (3,) about the point asked for [N m s].
    """

    linear: Array
    angular: Array


@lru_cache(maxsize=1024)
def mass_properties(layout: ComponentLayout) -> MassProperties:
    """Mass, centre of mass and inertia of a component, in the component frame. Read only."""
    return combine(layout.masses, layout.coms, layout.inertias)


def combine(masses: Array, coms: Array, inertias: Array) -> MassProperties:
    """Mass properties of N bodies held together.

    Args:
        masses: (N,) [kg].
        coms: (N, 3) centres of mass [m].
        inertias: (N, 3, 3) about each body's own centre of mass, common axes [kg m^2].
    """
    mass = float(masses.sum())
    com = masses @ coms / mass
    arms = coms - com
    squares = np.einsum("ni,ni->n", arms, arms)
    return MassProperties(mass, com, _total_inertia(inertias, masses, arms, squares))


@compiled
def _total_inertia(inertias: Array, masses: Array, arms: Array, squares: Array) -> Array:
    """(3, 3) inertia of bodies about their common centre of mass [kg m^2] (Steiner).

    Args:
        inertias: (N, 3, 3) about each body's own centre of mass [kg m^2].
        masses: (N,) [kg].
        arms: (N, 3) from the common centre of mass to their own [m].
        squares: (N,) of their lengths [m^2].
    """
    total = np.zeros((3, 3))
    for n in range(len(masses)):
        for i in range(3):
            for j in range(3):
                shift = (squares[n] if i == j else 0.0) - arms[n, i] * arms[n, j]
                total[i, j] += inertias[n, i, j] + masses[n] * shift
    return 0.5 * (total + total.T)


def com_in_world(body: MassProperties, world_T_body: Array) -> Array:
    """(3,) centre of mass in the world frame [m]."""
    return world_T_body[:3, :3] @ body.com + world_T_body[:3, 3]


def in_world(body: MassProperties, world_T_body: Array) -> MassProperties:
    """The same mass properties in the world frame."""
    rotation = world_T_body[:3, :3]
    return MassProperties(
        body.mass, com_in_world(body, world_T_body), rotation @ body.inertia @ rotation.T
    )


def momentum(body: MassProperties, twist: Array, about: Array) -> Momentum:
    """Momentum of a body.

    Args:
        body: Mass properties, world frame.
        twist: (6,) COM linear and angular velocity, world [m/s, rad/s].
        about: (3,) point that the angular momentum refers to [m].
    """
    linear = body.mass * twist[:3]
    angular = body.inertia @ twist[3:] + np.cross(body.com - about, linear)
    return Momentum(linear, angular)


def kinetic_energy(body: MassProperties, twist: Array) -> float:
    """Kinetic energy [J] of a body with mass properties and twist in the world frame."""
    linear, angular = twist[:3], twist[3:]
    return float(0.5 * body.mass * linear @ linear + 0.5 * angular @ body.inertia @ angular)


def merged_twist(
    bodies: Sequence[MassProperties], twists: Sequence[Array], merged: MassProperties
) -> Array:
    """Twist of what was several bodies and is one from now on.

    Args:
        bodies: Mass properties before the join, world frame.
        twists: (6,) COM linear and angular velocity of each, world [m/s, rad/s].
        merged: Mass properties after it, world frame. The snap may have moved bodies; their
            angular momentum is taken about the common COM at the places where they had it.

    Returns:
        (6,) twist that has the total linear momentum and the total angular momentum about the
        common COM; less of this where a snap has brought bodies so much nearer to each other that
        they would spin with more energy than they had.
    """
    total = sum(body.mass for body in bodies)
    com = sum((body.mass * body.com for body in bodies), np.zeros(3)) / total
    moments = [momentum(body, twist, com) for body, twist in zip(bodies, twists, strict=True)]
    linear = sum((m.linear for m in moments), np.zeros(3)) / total
    angular = sum((m.angular for m in moments), np.zeros(3))
    spin = np.linalg.solve(merged.inertia, angular)
    had = sum(
        kinetic_energy(body, np.concatenate([twist[:3] - linear, twist[3:]]))
        for body, twist in zip(bodies, twists, strict=True)
    )
    energy = 0.5 * float(spin @ merged.inertia @ spin)
    if energy > had:
        spin = spin * np.sqrt(had / energy)
    return np.concatenate([linear, spin])


@compiled
def piece_twists(twist: Array, com: Array, piece_coms: Array) -> Array:
    """Twists of the pieces of a rigid body at the moment they break off.

    Args:
        twist: (6,) twist of the whole, linear part at ``com``, world [m/s, rad/s].
        com: (3,) COM of the whole [m], world.
        piece_coms: (P, 3) COMs of the pieces [m], world.

    Returns:
        (P, 6) twists of the pieces, linear parts at their own COMs.
    """
    twists = np.empty((len(piece_coms), 6))
    for p in range(len(piece_coms)):
        x, y, z = crossed(twist[3:], piece_coms[p] - com)
        twists[p, 0], twists[p, 1], twists[p, 2] = twist[0] + x, twist[1] + y, twist[2] + z
        twists[p, 3:] = twist[3:]
    return twists
