# SPDX-License-Identifier: Apache-2.0
"""From parts that are held together to the program of bodies and friction (`friction_program`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.elimination import elimination_of
from bricksim_core.mechanics.friction_packed import Packed, packed
from bricksim_core.mechanics.friction_program import (
    Contacts,
    FrictionJoints,
    Links,
    Program,
)
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


class PartArrays(NamedTuple):
    """Parts; as in `sliding.Parts`."""

    coms: Array
    masses: Array
    inertias: Array
    anchored: NDArray[np.bool_]


class JointArrays(NamedTuple):
    """Connections; as in `snapfit.joints.Joints`."""

    lower: IntArray
    upper: IntArray
    centre: Array
    half: Array
    studs: IntArray
    pull: Array
    tip: Array
    shear: Array
    twist: Array


class PushArrays(NamedTuple):
    """Contacts; as in `snapfit.pushes.Pushes`."""

    low: IntArray
    high: IntArray
    point: Array
    normal: Array


class Laid(NamedTuple):
    """Bodies.

    Attributes:
        body: (N,) the body of each part, -1 for the world.
        arm: (N, 3) from the body's centre of mass to the part's [pitches]; 0 in the world.
        unit: Mass of the lightest body [kg].
        crossing: (K,) indices of the connections between bodies.
        friction: (6 B,) scaled forces of full friction on the bodies, of connections that more than
            one stud holds [N].
        weakest: Least pull-off strength of the connections between bodies [N].
        program: The program.
    """

    body: IntArray
    arm: Array
    unit: float
    crossing: IntArray
    friction: Array
    weakest: float
    program: Packed


@compiled
def _numbered(side: IntArray, anchored: NDArray[np.bool_]) -> tuple[IntArray, int]:
    """(N,) numbers of bodies by those of all sides, -1 for the world's; and how many there are."""
    most = 0
    for i in range(len(side)):
        most = max(most, side[i] + 1)
    number = np.zeros(most, dtype=np.int64)
    for i in range(len(side)):
        if anchored[i]:
            number[side[i]] = -1
    count = 0
    for i in range(most):
        if number[i] == 0:
            number[i] = count
            count += 1
    body = np.empty(len(side), dtype=np.int64)
    for i in range(len(side)):
        body[i] = number[side[i]]
    return body, count


@compiled
def _masses(parts: PartArrays, body: IntArray, count: int) -> tuple[Array, Array, Array, float]:
    """(B, 3) centres of mass, (B, 6, 6) mass matrices in units of the lightest body, their
    inverses, and that unit."""
    mass, coms = np.zeros(count), np.zeros((count, 3))
    for i in range(len(body)):
        b = body[i]
        if b >= 0:
            mass[b] += parts.masses[i]
            for c in range(3):
                coms[b, c] += parts.masses[i] * parts.coms[i, c]
    unit = np.inf
    for b in range(count):
        unit = min(unit, mass[b])
        for c in range(3):
            coms[b, c] /= mass[b]
    matrix, inverse = np.zeros((count, 6, 6)), np.zeros((count, 6, 6))
    arm = np.empty(3)
    for i in range(len(body)):
        b = body[i]
        if b < 0:
            continue
        square = 0.0
        for c in range(3):
            arm[c] = (parts.coms[i, c] - coms[b, c]) / STUD_PITCH
            square += arm[c] * arm[c]
        m = parts.masses[i] / unit
        for c in range(3):
            matrix[b, c, c] += m
            matrix[b, 3 + c, 3 + c] += m * square
            for d in range(3):
                own = parts.inertias[i, c, d] / unit
                matrix[b, 3 + c, 3 + d] += own - m * arm[c] * arm[d]
    for b in range(count):
        j = matrix[b, 3:, 3:]
        for c in range(3):
            inverse[b, c, c] = 1.0 / matrix[b, c, c]
            p, q = (c + 1) % 3, (c + 2) % 3
            for d in range(3):
                r, s = (d + 1) % 3, (d + 2) % 3
                inverse[b, 3 + d, 3 + c] = j[p, r] * j[q, s] - j[p, s] * j[q, r]
        size = 0.0
        for c in range(3):
            size += j[0, c] * inverse[b, 3 + c, 3]
        for c in range(3):
            for d in range(3):
                inverse[b, 3 + c, 3 + d] /= size
    return coms, matrix, inverse, unit


@compiled
def _paired(pushes: PushArrays, body: IntArray, count: int) -> tuple[IntArray, IntArray, int]:
    """(V,) indices of the contacts between bodies, sorted by pairs of these; (V,) numbers of the
    pairs; and how many there are."""
    pairs = np.full((count + 1, count + 1), -1, dtype=np.int64)
    pair = np.full(len(pushes.low), -1, dtype=np.int64)
    known = 0
    size = np.zeros(len(pushes.low) + 1, dtype=np.int64)
    for v in range(len(pair)):
        low, high = body[pushes.low[v]], body[pushes.high[v]]
        if low != high:
            if pairs[low, high] < 0:  # the world is the last one
                pairs[low, high] = known
                known += 1
            pair[v] = pairs[low, high]
            size[pair[v] + 1] += 1
    for p in range(known):
        size[p + 1] += size[p]
    total = size[known]
    index, number = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    for v in range(len(pair)):
        if pair[v] >= 0:
            at = size[pair[v]]
            index[at], number[at] = v, pair[v]
            size[pair[v]] += 1
    return index, number, known


@compiled
def laid_out(side: IntArray, parts: PartArrays, joints: JointArrays, pushes: PushArrays) -> Laid:
    """Bodies of parts held together, and the program of what is between them.

    Args:
        side: (N,) number of the body that each part belongs to; the world's is one of them.
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
    """
    body, count = _numbered(side, parts.anchored)
    coms, mass, mobility, unit = _masses(parts, body, count)
    arm = np.zeros((len(body), 3))
    for i in range(len(body)):
        if body[i] >= 0:
            for c in range(3):
                arm[i, c] = (parts.coms[i, c] - coms[body[i], c]) / STUD_PITCH

    many = 0
    for k in range(len(joints.lower)):
        many += body[joints.lower[k]] != body[joints.upper[k]]
    crossing = np.empty(many, dtype=np.int64)
    many = 0
    for k in range(len(joints.lower)):
        if body[joints.lower[k]] != body[joints.upper[k]]:
            crossing[many] = k
            many += 1
    index, number, pairs = _paired(pushes, body, count)
    ends = np.empty((2, many + pairs), dtype=np.int64)
    point = np.empty((many + pairs, 3))
    corners, apex = np.empty((many, 4, 2)), np.empty((many, 3))
    turn, single = np.empty(many), np.empty(many, dtype=np.bool_)
    shear, pull = np.empty(many), np.empty(many)
    for at in range(many):
        k = crossing[at]
        ends[0, at], ends[1, at] = body[joints.lower[k]], body[joints.upper[k]]
        for c in range(3):
            point[at, c] = joints.centre[k, c]
        x, y = joints.half[k, 0] / STUD_PITCH, joints.half[k, 1] / STUD_PITCH
        for i in range(4):
            corners[at, i, 0] = x if i in (1, 2) else -x
            corners[at, i, 1] = y if i > 1 else -y
        shear[at], pull[at], single[at] = joints.shear[k], joints.pull[k], joints.studs[k] == 1
        # On one stud friction alone resists turning, and what it takes the pull lacks.
        strength = pull[at] if single[at] else shear[at]
        turn[at] = joints.twist[k] / STUD_PITCH / strength
        moment = 0.5 / STUD_PITCH / pull[at]
        apex[at, 0] = 1.0
        apex[at, 1] = moment * (joints.tip[k, 2] - joints.tip[k, 3])
        apex[at, 2] = moment * (joints.tip[k, 1] - joints.tip[k, 0])
    link, push = np.empty(len(index), dtype=np.int64), np.empty((len(index), 6))
    offset = np.empty(3)
    for at in range(len(index)):
        v, mine = index[at], many + number[at]
        link[at] = mine
        if at == 0 or number[at] != number[at - 1]:  # contacts of a pair act at the first one's
            ends[0, mine], ends[1, mine] = body[pushes.low[v]], body[pushes.high[v]]
            for c in range(3):
                point[mine, c] = pushes.point[v, c]
        n = pushes.normal[v]
        for c in range(3):
            offset[c] = (pushes.point[v, c] - point[mine, c]) / STUD_PITCH
            push[at, c] = n[c]
        push[at, 3] = offset[1] * n[2] - offset[2] * n[1]
        push[at, 4] = offset[2] * n[0] - offset[0] * n[2]
        push[at, 5] = offset[0] * n[1] - offset[1] * n[0]

    from_lower, from_upper = np.zeros((many + pairs, 3)), np.zeros((many + pairs, 3))
    friction = np.zeros(6 * count)
    for k in range(many + pairs):
        for upper in range(2):
            b = ends[upper, k]
            a = from_upper[k] if upper else from_lower[k]
            if b < 0:
                continue
            for c in range(3):
                a[c] = (point[k, c] - coms[b, c]) / STUD_PITCH
            if k < many and not single[k]:
                force = -pull[k] if upper else pull[k]
                friction[6 * b + 2] += force
                friction[6 * b + 3] += force * (apex[k, 1] + a[1])
                friction[6 * b + 4] += force * (apex[k, 2] - a[0])
    lower, upper_ends = ends[0].copy(), ends[1].copy()
    program = Program(
        mass,
        mobility,
        Links(lower, upper_ends, from_lower, from_upper),
        FrictionJoints(corners, turn, single, apex, shear, pull),
        Contacts(link, push),
        elimination_of(count, lower, upper_ends),
    )
    weakest = np.inf
    for k in range(many):
        weakest = min(weakest, pull[k])
    return Laid(body, arm, unit, crossing, friction, weakest, packed(program))
