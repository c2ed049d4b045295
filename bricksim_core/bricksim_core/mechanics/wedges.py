# SPDX-License-Identifier: Apache-2.0
"""Contacts that press against each other: bodies wedged into one another.

Pieces that fall back into the gap they came from get deeper into each other than real ones could,
and an engine's contacts on both sides of a tooth then push against each other, with as much force
as their stiffness makes of the depth: hundreds of kilonewtons between some hundred bricks. Rigid
bodies do not feel it, as only the resultant of the contacts moves them, but forces between bricks
would. How contacts share a resultant is undetermined among rigid bodies. Where the engine's answer
is far greater than the resultant it is replaced by the least forces that have the same resultant.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed
from bricksim_core.engines.contact_lists import take_contacts
from bricksim_core.engines.protocol import Contacts
from bricksim_core.least_pushes import least_pushes, norm, product
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.steps import Steps
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_HEAVY = 20.0
"""Normal forces between bricks [weights of all components] below which nothing is looked at."""

_OPPOSED = 10.0
"""Normal forces between two bodies [of their resultant] that press against each other."""

_FRICTION = 0.3
"""Tangential force that weighs as much as a normal force of 1."""

_EXACT, _FAINT = 1e-10, 1e-9
"""Part of the resultant that the least forces may miss, and of their stiffness that contacts have
at least, where none of them pushes."""


def without_wedges(steps: Steps, bodies: Bodies) -> Steps:
    """Steps with contacts between bricks that press against each other relieved.

    Args:
        steps: The steps.
        bodies: The scene during them.
    """
    contacts = steps.contacts
    heavy = _heavy(contacts.part_a, contacts.normal_impulse, steps.first, steps.dt, bodies.mass)
    if not len(heavy):
        return steps
    impulse, along = contacts.impulse.copy(), contacts.normal_impulse.copy()
    for s in heavy.tolist():
        own = slice(*steps.first[s : s + 2].tolist())
        impulse[own] = _relieved(take_contacts(contacts, own), bodies)
        normal = contacts.normal[own]
        along[own] = np.maximum(np.einsum("ci,ci->c", impulse[own], normal), 0.0)
    return replace(steps, contacts=replace(contacts, impulse=impulse, normal_impulse=along))


@compiled
def _heavy(
    part_a: IntArray, normal_impulse: Array, first: IntArray, dt: Array, mass: Array
) -> IntArray:
    """Steps in which normal forces between bricks are high.

    Args:
        part_a: (C,) like the next, see `Contacts`.
        normal_impulse: (C,) [N s].
        first: (S + 1,) like the next, see `Steps`.
        dt: (S,) [s].
        mass: (W,) of the components [kg].
    """
    found, count = np.empty(len(dt), dtype=np.int64), 0
    limit = _HEAVY * STANDARD_GRAVITY * mass.sum()
    for s in range(len(dt)):
        pressing = 0.0
        for c in range(first[s], first[s + 1]):
            if part_a[c] >= 0:
                pressing += normal_impulse[c]
        if pressing > limit * dt[s]:
            found[count] = s
            count += 1
    return found[:count]


def _relieved(contacts: Contacts, bodies: Bodies) -> Array:
    """(C, 3) impulses of a step's contacts [N s], with those between bricks relieved."""
    between = np.flatnonzero(contacts.part_a >= 0)
    a, b = (bodies.row[bodies.find(c[between])] for c in (contacts.part_a, contacts.part_b))
    pair = np.minimum(a, b) * len(bodies.coms) + np.maximum(a, b)
    order = np.argsort(pair, kind="stable")
    # Contacts of two bodies may name either of them first; all forces are on the one of lower row.
    toward = np.where(b < a, 1.0, -1.0)[:, None]
    rows, toward, pair = between[order], toward[order], pair[order]
    first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    impulse = contacts.impulse.copy()
    impulse[rows] = toward * relieved_in_groups(
        np.append(first, len(pair)),
        toward * contacts.normal[rows], contacts.position[rows], toward * impulse[rows],
    )  # fmt: skip
    return impulse


@compiled
def relieved_in_groups(
    first: NDArray[np.intp], normals: Array, positions: Array, forces: Array
) -> Array:
    """What `relieved` gives for each of G groups of contacts; (G + 1,) where each begins."""
    found = np.empty_like(forces)
    for g in range(len(first) - 1):
        own = slice(first[g], first[g + 1])
        found[own] = relieved(normals[own], positions[own], forces[own])
    return found


@compiled
def relieved(normals: Array, positions: Array, forces: Array) -> Array:
    """(C, 3) forces on a body by another one: the given ones, or where these press against each
    other the least ones with the same resultant.

    Args:
        normals: (C, 3) unit normals that push the body.
        positions: (C, 3) [m].
        forces: (C, 3) on the body, in any unit.
    """
    count, middle = len(forces), np.zeros(3)
    for c in range(count):
        middle += positions[c]
    middle /= count
    arms = positions - middle
    reach = norm(arms.ravel()) / math.sqrt(count)
    if reach == 0.0:
        return forces
    arms /= reach
    resultant, pressing = np.zeros(6), 0.0
    for c in range(count):
        moment = crossed(arms[c], forces[c])
        for i in range(3):
            resultant[i] += forces[c, i]
            resultant[3 + i] += moment[i]
            pressing += normals[c, i] * forces[c, i]
    if pressing <= _OPPOSED * norm(resultant):
        return forces
    found, least = least_forces(normals, arms, resultant)
    return least if found else forces


@compiled
def least_forces(normals: Array, arms: Array, resultant: Array) -> tuple[bool, Array]:
    """The forces of contacts with a given resultant and the least sum of squares.

    Tangential forces count 1 / `_FRICTION` times. That is a strictly convex program with six
    equations, see `least_pushes`.

    Args:
        normals: (C, 3) unit vectors along which contacts push.
        arms: (C, 3) from any point to them, in a unit in which they are about 1.
        resultant: (6,) force and moment about that point.

    Returns:
        Whether there are any, and (C, 3) forces, with those along the normals >= 0.
    """
    count, soft = len(normals), _FRICTION**2
    # What each contact's displacement along its normal is by the multipliers, which stand for a
    # shift and a turn; and the stiffness of all tangential ones.
    along, across = np.empty((count, 6)), np.zeros((6, 6))
    own, forces = np.zeros((3, 6)), np.empty((count, 3))
    own[0, 0] = own[1, 1] = own[2, 2] = 1.0
    for c in range(count):
        x, y, z = arms[c]
        own[0, 4], own[1, 5], own[2, 3] = z, x, y
        own[0, 5], own[1, 3], own[2, 4] = -y, -z, -x
        for j in range(6):
            along[c, j] = (
                normals[c, 0] * own[0, j] + normals[c, 1] * own[1, j] + normals[c, 2] * own[2, j]
            )
        for j in range(6):
            for k in range(6):
                inner = own[0, j] * own[0, k] + own[1, j] * own[1, k] + own[2, j] * own[2, k]
                across[j, k] += soft * (inner - along[c, j] * along[c, k])
    found, multipliers = least_pushes(along, np.ones(count), across, resultant, _EXACT, _FAINT)
    for c in range(count):
        push = product(along[c], multipliers)
        turned = crossed(multipliers[3:], arms[c])
        for i in range(3):
            forces[c, i] = soft * (multipliers[i] + turned[i])
            forces[c, i] += (max(push, 0.0) - soft * push) * normals[c, i]
    return found, forces
