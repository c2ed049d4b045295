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

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.contact_lists import take_contacts
from bricksim_core.engines.protocol import Contacts
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.steps import Steps
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import IntArray

_HEAVY = 20.0
"""Normal forces between bricks [weights of all components] below which nothing is looked at."""

_OPPOSED = 10.0
"""Normal forces between two bodies [of their resultant] that press against each other."""

_FRICTION = 0.3
"""Tangential force that weighs as much as a normal force of 1."""

_TRIES, _EXACT = 50, 1e-10
"""Newton steps to the least forces, and the part of the resultant that they may miss."""

_FAINT = 1e-9
"""Part of their mean stiffness that contacts have at least, where none of them pushes."""


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
    _, pair = np.unique(np.minimum(a, b) * len(bodies.coms) + np.maximum(a, b), return_inverse=True)
    # Contacts of two bodies may name either of them first; all forces are on the one of lower row.
    sign = np.where(b < a, 1.0, -1.0)[:, None]
    impulse = contacts.impulse.copy()
    for number in range(int(pair.max()) + 1):
        own = pair == number
        rows, toward = between[own], sign[own]
        impulse[rows] = toward * relieved(
            toward * contacts.normal[rows], contacts.position[rows], toward * impulse[rows]
        )
    return impulse


def relieved(normals: Array, positions: Array, forces: Array) -> Array:
    """(C, 3) forces on a body by another one: the given ones, or where these press against each
    other the least ones with the same resultant.

    Args:
        normals: (C, 3) unit normals that push the body.
        positions: (C, 3) [m].
        forces: (C, 3) on the body, in any unit.
    """
    arms = positions - positions.mean(axis=0)
    reach = float(np.sqrt(np.mean(np.sum(arms**2, axis=1))))
    if reach == 0.0:
        return forces
    arms = arms / reach
    resultant = np.concatenate([forces.sum(axis=0), cross(arms, forces).sum(axis=0)])
    pressing = float(np.einsum("ci,ci->c", normals, forces).sum())
    if pressing <= _OPPOSED * float(np.linalg.norm(resultant)):
        return forces
    least = least_forces(normals, arms, resultant)
    return forces if least is None else least


def least_forces(normals: Array, arms: Array, resultant: Array) -> Array | None:
    """The forces of contacts with a given resultant and the least sum of squares.

    Tangential forces count 1 / `_FRICTION` times. That is a strictly convex program with six
    equations; what is solved is its dual, a piecewise quadratic function of six multipliers, by
    Newton's method.

    Args:
        normals: (C, 3) unit vectors along which contacts push.
        arms: (C, 3) from any point to them, in a unit in which they are about 1.
        resultant: (6,) force and moment about that point.

    Returns:
        (C, 3) forces, with those along the normals >= 0; None if there are none.
    """
    # Per contact, the (3, 6) matrix from multipliers to the displacement that they stand for.
    spread = np.zeros((len(normals), 3, 6))
    spread[:, 0, 0] = spread[:, 1, 1] = spread[:, 2, 2] = 1.0
    spread[:, :, 3:] = np.stack([cross(axis, arms) for axis in np.eye(3)], axis=2)
    along = np.einsum("ci,cij->cj", normals, spread)
    soft = _FRICTION**2
    across = soft * (
        np.einsum("cij,cik->jk", spread, spread) - np.einsum("cj,ck->jk", along, along)
    )

    def dual(multipliers: Array) -> float:
        pushes = np.maximum(along @ multipliers, 0.0)
        own = 0.5 * float(pushes @ pushes) + 0.5 * float(multipliers @ across @ multipliers)
        return own - float(resultant @ multipliers)

    multipliers = np.zeros(6)
    scale = float(np.linalg.norm(resultant))
    for _ in range(_TRIES):
        pushes = along @ multipliers
        pushing: NDArray[np.bool_] = pushes >= 0.0
        missing = resultant - across @ multipliers - along[pushing].T @ pushes[pushing]
        if float(np.linalg.norm(missing)) <= _EXACT * scale:
            moved = spread @ multipliers
            own = np.maximum(pushes, 0.0) - soft * pushes
            return soft * moved + own[:, None] * normals
        stiffness = across + along[pushing].T @ along[pushing]
        stiffness += _FAINT * np.trace(stiffness) * np.eye(6)
        step = np.linalg.solve(stiffness, missing)
        length, before, rise = 1.0, dual(multipliers), float(missing @ step)
        rounding = 1e-14 * abs(before)
        while dual(multipliers + length * step) > before - 1e-4 * length * rise + rounding:
            length *= 0.5
        multipliers = multipliers + length * step
    return None
