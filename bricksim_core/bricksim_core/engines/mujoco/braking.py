# SPDX-License-Identifier: Apache-2.0
"""Hits of bricks on bricks: as soft as those on the ground, but no deeper than boxes bear.

A soft contact lets a body sink by its speed times a third of the time constant: at 3 m/s by a whole
brick. The ground bears that. Of two boxes the contact turns around, and pushes on, where they are
through each other by half. MuJoCo's speculative contacts stop a body at what it will reach in the
step: nothing passes through anything, but all of the speed is gone within one step, or nothing of
it, by where the body was when the step began.

So what is about to touch is braked only for the part of the step in which it will, and by as much
as what touches already: as the soft contact has it or, where that would not stop it within the
depth that both boxes bear, by the least steady deceleration that does.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.mujoco.contact import GeomTable
from bricksim_core.engines.mujoco.patches import half_thickness
from bricksim_core.parts import BRICK_HEIGHT, STUD_HEIGHT
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_BORNE = 2.0 / 3.0
"""Depth that boxes bear of that at which they are through each other by half."""
_DEEPEST = _BORNE * 0.5 * (BRICK_HEIGHT + STUD_HEIGHT)
"""Depth [m] in which any contact is to stop: that of a brick in the studs of another one."""
_RESERVE = 1.0 / 3.0
"""How much of what is left to that half may be used up where that is more: so nothing stops at
once."""
_AGAINST = -0.5
"""Cosine of normals that are against each other."""
_FLUNG = 10.0
"""Closing speed [m/s] above which bodies that are pressed both ways are left to soft contacts."""
_LANDING = 0.5
"""How much of its depth a body may use up in the step in which it comes to touch."""
_HIT = 0.2
"""Closing speed [m/s] from which contacts are looked at; a soft one stops less within 0.6 mm."""
_INSIDE = 2e-6
"""Distance [m] of a contact's surface from a box that is its own."""


def brake(model: mujoco.MjModel, data: mujoco.MjData, geoms: GeomTable, dt: float) -> None:
    """Rewrites what the contacts of bricks with bricks ask for in a step.

    Args:
        model: The model.
        data: Its state with the constraints of the step and their references (``efc_aref``), before
            they are solved for.
        geoms: What the geoms are.
        dt: Length of the step [s].
    """
    found, speed = data.contact, data.efc_vel
    # MuJoCo's arrays are columns of a table: one contact's are of another kind than those of more,
    # for which a loop would be compiled once more.
    whole = np.ascontiguousarray
    pair, address = whole(found.geom), whole(found.efc_address)
    if _any_hit(pair, address, geoms.other, speed):
        _brake(
            pair, whole(found.frame), whole(found.pos), whole(found.dist), address,
            geoms.other, model.geom_bodyid, data.geom_xpos, data.geom_xmat, model.geom_size,
            speed, data.efc_KBIP, data.efc_aref, dt,
        )  # fmt: skip


@compiled
def _any_hit(
    pair: NDArray[np.int32], address: NDArray[np.int32], other: IntArray, speed: Array
) -> bool:
    """Whether bricks close in on each other at speed; arguments as in `_brake`."""
    for c in range(len(pair)):
        row = address[c]
        if row >= 0 and speed[row] < -_HIT and other[pair[c, 0]] < 0 and other[pair[c, 1]] < 0:
            return True
    return False


@compiled
def _brake(
    pair: NDArray[np.int32],
    frame: Array,
    position: Array,
    gap: Array,
    address: NDArray[np.int32],
    other: IntArray,
    body_of: NDArray[np.int32],
    centre: Array,
    turn: Array,
    half: Array,
    speed: Array,
    reference: Array,
    wanted: Array,
    dt: float,
) -> None:
    """See `brake`.

    Args:
        pair: (N, 2) geoms of the contacts.
        frame: (N, 9) their axes, one after the other; the first one is the normal.
        position: (N, 3) half-way between the surfaces [m].
        gap: (N,) from surface to surface, negative: depth [m]. Those of speculative contacts are
            made up.
        address: (N,) rows of their normals among the constraints, negative without any.
        other: (G,) what is no brick: not negative.
        body_of: (G,) bodies of the geoms.
        centre: (G, 3) centres of the geoms [m].
        turn: (G, 9) their rotations, row by row.
        half: (G, 3) half extents [m].
        speed: (M,) of the constraints [m/s]; negative: closing.
        reference: (M, 4) MuJoCo's stiffness [1/s^2], damping [1/s] and two more of each.
        wanted: (M,) their reference accelerations [m/s^2], written.
        dt: Length of the step [s].
    """
    for c in range(len(gap)):
        row, a, b = address[c], pair[c, 0], pair[c, 1]
        if row < 0 or other[a] >= 0 or other[b] >= 0:
            continue
        closing = -float(speed[row])
        if closing <= _HIT:
            continue
        normal = frame[c, :3]
        through = half_thickness(normal, turn[a], half[a]) + half_thickness(
            normal, turn[b], half[b]
        )
        depth = min(_BORNE * through, _DEEPEST)
        way = closing * dt
        touching = (
            gap[c] <= 0.0
            and _inside(c, -0.5, position, gap, normal, centre[a], turn[a], half[a])
            and _inside(c, 0.5, position, gap, normal, centre[b], turn[b], half[b])
        )
        if touching:
            to_half = through + float(gap[c])
            # Else it may be on its way out on the other side.
            if to_half > 0.0 and (
                closing < _FLUNG or not _squeezed(c, pair, frame, gap, address, body_of)
            ):
                left = max(depth + float(gap[c]), _RESERVE * to_half)
                share = _share(way, left, way, left)
                wanted[row] = max(wanted[row], share * closing / dt)
        else:
            # MuJoCo would stop it just where it touches.
            sunk = float(wanted[row]) * dt * dt
            if sunk > 0.0:
                soft = min(reference[row, 1] * dt, 1.0)
                wanted[row] *= max(_share(way, depth, sunk, _LANDING * depth), soft)


@compiled
def _squeezed(
    c: int,
    pair: NDArray[np.int32],
    frame: Array,
    gap: Array,
    address: NDArray[np.int32],
    body_of: NDArray[np.int32],
) -> bool:
    """Whether another contact pushes the same two bodies the other way: what stops them along both
    would throw them. Arguments as in `_brake`."""
    for d in range(len(gap)):
        if address[d] < 0 or gap[d] > 0.0:
            continue
        along = 0.0
        for i in range(3):
            along += frame[c, i] * frame[d, i]
        if (
            along < _AGAINST
            and body_of[pair[c, 0]] == body_of[pair[d, 0]]
            and body_of[pair[c, 1]] == body_of[pair[d, 1]]
        ):
            return True
    return False


@compiled
def _share(way: float, left: float, sunk: float, allowed: float) -> float:
    """Which share of its speed a body has to lose in a step to stop within some depth by a steady
    deceleration, and not to get too far in the step itself.

    Args:
        way: How far it would get in the step [m].
        left: Depth that is left [m].
        sunk: How much deeper it would be then [m], more than 0.
        allowed: How much that may be [m].
    """
    # Positions follow from the speeds at the ends of steps: half a step's way is saved.
    return max(way / (2.0 * left + way), 1.0 - allowed / sunk)


@compiled
def _inside(
    c: int,
    side: float,
    position: Array,
    gap: Array,
    normal: Array,
    centre: Array,
    turn: Array,
    half: Array,
) -> bool:
    """Whether a contact's point on one of its surfaces is a point of that box, as it is where they
    touch.

    Args:
        c: The contact.
        side: -0.5 for the first box, 0.5 for the second.
        position: As in `_brake`, as are the others, of that box.
        gap:
        normal: (3,)
        centre: (3,)
        turn: (9,)
        half: (3,)
    """
    for k in range(3):
        along = 0.0
        for i in range(3):
            point = position[c, i] + side * gap[c] * normal[i] - centre[i]
            along += turn[3 * i + k] * point
        if abs(along) > half[k] + _INSIDE:
            return False
    return True
