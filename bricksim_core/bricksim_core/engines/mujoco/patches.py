# SPDX-License-Identifier: Apache-2.0
"""Contacts of flat patches, borne at their corners and shared out over all of their points.

Two components that lie on each other touch with every pair of their boxes, four points and more
each: slabs of a dozen bricks have a hundred, and the work of MuJoCo's solver grows with the
square. But both are rigid. How far apart two planes are is affine over the place, and so is how
fast they approach each other: between the corners of a patch no point comes closer than one of the
corners does, and a force at any point is one at the corners. Only these are given to the solver.

What a brick bears is another matter: it hangs on where in the patch the force is. The soft contacts
of MuJoCo answer to depth and speed, both affine over the place, times a firmness that rises with
depth ("solimp" in its documentation): so the pressure over a patch is an affine function where that
is positive, times the firmness, and zero elsewhere. `spread` finds the one with the force and the
moment that the corners bear.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.least_pushes import least_pushes
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

ALONE = -1
"""Patch of a contact that is in none."""
_SAME_PLACE = 1e-7
"""Distance [m] that is rounding."""
_SAME_FACE = 1e-6
"""Distance [m] of a box's face from a plane that MuJoCo's contacts give."""
_SHALLOW = 1e-5
"""Depth [m] down to which contacts stay as they are: what rests sinks by less."""
_ACROSS, _FLAT = 0.1, 0.99
"""Cosines of normals that are across each other, and of a patch's normal and those of its planes if
these are faces of both bodies."""
_SAME_WAY = 1e-2
"""Difference of the components of normals within a patch. MuJoCo takes a contact's normal from a
face of either box, or from two edges: bodies that lie on each other, tilted by a ten thousandth,
have all of these in one patch."""
FEW = 8
"""Contacts that have to be saved at least: making constraints anew costs as much as these."""
_REDUNDANT = 1
"""What MuJoCo's ``exclude`` of a contact without constraints is, apart from 0."""
_SETTLED = 1e-7
"""Error of a pressure's force and moments, relative, that is as small as that of the places."""
_FREE = 1e-12
"""What makes matrices regular where places leave something free."""


@compiled
def keep_corners(
    pair: NDArray[np.int32],
    frame: Array,
    position: Array,
    gap: Array,
    excluded: NDArray[np.int32],
    address: NDArray[np.int32],
    body_of: NDArray[np.int32],
    centre: Array,
    turn: Array,
    half: Array,
    other: IntArray,
) -> tuple[IntArray, int]:
    """Excludes contacts between the corners of flat patches from the constraints of a step, after
    those that belong to one by their boxes have been turned to it; see `_turn_in`.

    Args:
        pair: (N, 2) geoms of all contacts, right after MuJoCo has found them.
        frame: (N, 9) their axes, one after the other; the first one is the normal; written.
        position: (N, 3) half-way between the surfaces [m]; written.
        gap: (N,) from surface to surface, negative: depth [m]; written.
        excluded: (N,) zero for contacts with constraints; written.
        address: (N,) where their forces will be; written: negative without constraints.
        body_of: (G,) bodies of the geoms.
        centre: (G, 3) centres of the geoms [m].
        turn: (G, 9) their rotations, row by row.
        half: (G, 3) half extents of boxes [m].
        other: (G,) what is no brick: above 0 a robot's link, whose contacts stay as they are.

    Returns:
        (N,) the patch of each contact or ALONE, and how many contacts were turned or excluded.
    """
    count = len(gap)
    patch = np.full(count, ALONE)
    surfaces = np.empty((count, 2, 3))
    first, planes, offsets = (
        np.empty(count, dtype=np.int64),
        np.empty((count, 2, 3)),
        np.empty((count, 2)),
    )
    patches = last = 0
    for c in range(count):
        if excluded[c] or other[pair[c, 0]] > 0 or other[pair[c, 1]] > 0:
            continue
        for k in range(2):
            for i in range(3):
                surfaces[c, k, i] = position[c, i] + (k - 0.5) * gap[c] * frame[c, i]
        # Contacts of a patch come in rows, so the last one is tried first.
        p, tried = last, 0
        while tried < patches:
            f = first[p]
            if (
                body_of[pair[c, 0]] == body_of[pair[f, 0]]
                and body_of[pair[c, 1]] == body_of[pair[f, 1]]
                and abs(frame[c, 0] - frame[f, 0]) <= _SAME_WAY
                and abs(frame[c, 1] - frame[f, 1]) <= _SAME_WAY
                and abs(frame[c, 2] - frame[f, 2]) <= _SAME_WAY
                and _on_planes(c, surfaces, p, planes, offsets)
            ):
                break
            p = p - 1 if p else patches - 1
            tried += 1
        if tried == patches:
            p = patches
            patches += 1
            first[p] = c
            for k in range(2):
                _write_plane(turn[pair[c, k]], frame[c], planes[p, k])
                offsets[p, k] = _along(planes, p, surfaces, c, k)
        patch[c] = last = p
    turned = 0
    heads = first[:patches]
    axes = frame[heads]
    deepest = _deepest(patch, gap, axes, pair[heads], body_of)
    for c in range(count):
        if patch[c] == ALONE or other[pair[c, 0]] >= 0 or gap[c] >= -_SHALLOW:
            continue
        own = patch[c]
        for p in range(patches):
            if (
                deepest[p] > deepest[own]
                and body_of[pair[c, 0]] == body_of[pair[first[p], 0]]
                and body_of[pair[c, 1]] == body_of[pair[first[p], 1]]
                and _turn_in(
                    c, pair[c], frame, position, gap, centre, turn, half,
                    axes[p], planes[p], offsets[p],
                )
            ):  # fmt: skip
                patch[c] = p
                turned += 1
                break
    corner = np.zeros(count, dtype=np.bool_)
    saved = 0
    order, ends = _by_patch(patch, patches)
    for p in range(patches):
        members = order[ends[p] : ends[p + 1]]
        if len(members):  # they may all have been turned to others
            saved += len(members) - _mark_corners(members, frame[members[0]], position, corner)
    if saved < FEW and not turned:
        return np.full(count, ALONE), 0
    for c in range(count):
        if patch[c] != ALONE and not corner[c]:
            excluded[c], address[c] = _REDUNDANT, -1
    return patch, saved + turned


@compiled
def _deepest(
    patch: IntArray, gap: Array, axes: Array, pair: NDArray[np.int32], body_of: NDArray[np.int32]
) -> Array:
    """(P,) how deep the bodies of each patch are in each other along its normal [m], in any patch.

    Args:
        patch: (N,) patches of the contacts.
        gap: (N,) [m].
        axes: (P, 9) of the patches.
        pair: (P, 2) geoms of a contact of each.
        body_of: (G,) their bodies.
    """
    count = len(axes)
    depth, deepest = np.zeros(count), np.zeros(count)
    for c in range(len(patch)):
        if patch[c] != ALONE:
            depth[patch[c]] = max(depth[patch[c]], -gap[c])
    for p in range(count):
        for q in range(count):
            if body_of[pair[p, 0]] == body_of[pair[q, 0]] and (
                body_of[pair[p, 1]] == body_of[pair[q, 1]]
            ):
                along = 0.0
                for i in range(3):
                    along += axes[p, i] * axes[q, i]
                if abs(along) > _FLAT:
                    deepest[p] = max(deepest[p], depth[q])
    return deepest


@compiled
def _turn_in(
    c: int,
    geoms: NDArray[np.int32],
    frame: Array,
    position: Array,
    gap: Array,
    centre: Array,
    turn: Array,
    half: Array,
    axes: Array,
    planes: Array,
    offsets: Array,
) -> bool:
    """Turns a contact to a patch that its boxes belong to; returns whether they do.

    MuJoCo takes the normal of two boxes along the axis along which they are least through each
    other. Soft contacts sink by millimetres in a hit: boxes of two bodies that came down on each
    other with others, and overlap by less than that, would be pushed apart sideways then.

    Args:
        c: The contact.
        geoms: (2,) its geoms.
        frame: (N, 9) as in `keep_corners`, as are the next ones.
        position: (N, 3)
        gap: (N,)
        centre: (G, 3)
        turn: (G, 9)
        half: (G, 3)
        axes: (9,) axes of the patch.
        planes: (2, 3) normals of its planes.
        offsets: (2,) where these are along them [m].
    """
    across = 0.0
    for i in range(3):
        across += frame[c, i] * axes[i]
    if abs(across) > _ACROSS:
        return False
    away = np.empty(2)
    for k in range(2):
        geom, along, at, here = geoms[k], 0.0, 0.0, 0.0
        for i in range(3):
            along += planes[k, i] * axes[i]
            at += planes[k, i] * centre[geom, i]
            here += planes[k, i] * position[c, i]
        reach = half_thickness(planes[k], turn[geom], half[geom])
        face = at + reach if (along > 0.0) == (k == 0) else at - reach
        if abs(along) < _FLAT or abs(face - offsets[k]) > _SAME_FACE:
            return False
        away[k] = (offsets[k] - here) / along
    if away[1] >= away[0]:
        return False
    gap[c] = away[1] - away[0]
    for i in range(3):
        position[c, i] += 0.5 * (away[0] + away[1]) * axes[i]
    frame[c] = axes
    return True


@compiled
def half_thickness(direction: Array, turn: Array, half: Array) -> float:
    """Half of the thickness of a box along a direction [m].

    Args:
        direction: (3,)
        turn: (9,) rotation of the box, row by row.
        half: (3,) its half extents [m].
    """
    total = 0.0
    for k in range(3):
        along = 0.0
        for i in range(3):
            along += turn[3 * i + k] * direction[i]
        total += abs(along) * half[k]
    return total


@compiled
def _along(planes: Array, p: int, surfaces: Array, c: int, k: int) -> float:
    """Where a surface of a contact is along the normal of a patch's plane [m]."""
    total = 0.0
    for i in range(3):
        total += planes[p, k, i] * surfaces[c, k, i]
    return total


@compiled
def _on_planes(c: int, surfaces: Array, p: int, planes: Array, offsets: Array) -> bool:
    """Whether both surfaces of a contact are on the planes of a patch.

    Args:
        c: The contact.
        surfaces: (N, 2, 3) points of the surfaces [m].
        p: The patch.
        planes: (P, 2, 3) normals of its planes.
        offsets: (P, 2) where these are along them [m].
    """
    for k in range(2):
        if abs(_along(planes, p, surfaces, c, k) - offsets[p, k]) > _SAME_PLACE:
            return False
    return True


@compiled
def _write_plane(turn: Array, frame: Array, plane: Array) -> None:
    """Writes the axis of a box that is nearest to a contact's normal.

    Args:
        turn: (9,) rotation of the box, row by row.
        frame: (9,) axes of the contact.
        plane: (3,) to be written.
    """
    steepest = -1.0
    for axis in range(3):
        steepness = 0.0
        for i in range(3):
            steepness += turn[3 * i + axis] * frame[i]
        if abs(steepness) > steepest:
            steepest = abs(steepness)
            for i in range(3):
                plane[i] = turn[3 * i + axis]


@compiled
def _by_patch(patch: IntArray, patches: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(N,) contacts by patch, those in none first, and (P + 1,) where each patch begins."""
    ends = np.zeros(patches + 1, dtype=np.intp)
    for c in range(len(patch)):
        ends[patch[c] + 1] += 1
    for p in range(patches):
        ends[p + 1] += ends[p]
    return np.argsort(patch, kind="mergesort"), ends


@compiled
def _mark_corners(
    members: NDArray[np.intp], frame: Array, position: Array, corner: NDArray[np.bool_]
) -> int:
    """Marks the corners of a patch, from one to the next around it; returns how many there are.

    Args:
        members: (n,) its contacts.
        frame: (9,) its axes, the first one the normal.
        position: (N, 3) of all contacts [m].
        corner: (N,) which of these are corners, written.
    """
    x, y, _ = _places(members, members[0], frame, position)
    start = 0
    for i in range(len(members)):
        if x[i] < x[start] or (x[i] == x[start] and y[i] < y[start]):
            start = i
    here, found = start, 0
    while not corner[members[here]]:
        corner[members[here]] = True
        found += 1
        following, length = here, 0.0
        for i in range(len(members)):
            dx, dy = x[i] - x[here], y[i] - y[here]
            distance = np.sqrt(dx**2 + dy**2)
            if distance <= _SAME_PLACE:
                continue
            ux, uy = x[following] - x[here], y[following] - y[here]
            # Beside the line to what would follow by now: outside, or on it and beyond.
            beside = (ux * dy - uy * dx) / length if length > 0.0 else -1.0
            on_it = abs(beside) <= _SAME_PLACE and ux * dx + uy * dy > 0.0
            if (on_it and distance > length) or beside < -_SAME_PLACE:
                following, length = i, distance
        here = following
    return found


@compiled
def _places(members: NDArray[np.intp], origin: int, frame: Array, position: Array) -> Array:
    """(3, n) places of contacts along the second, the third and the first axis of a frame, from
    one of them [m]."""
    places = np.zeros((3, len(members)))
    for m in range(len(members)):
        for i in range(3):
            away = position[members[m], i] - position[origin, i]
            for k in range(3):
                places[k, m] += frame[3 * ((k + 1) % 3) + i] * away
    return places


@compiled
def spread(
    patch: IntArray,
    constrained: NDArray[np.bool_],
    frame: Array,
    position: Array,
    gap: Array,
    impedance: Array,
    pressing: Array,
    force: Array,
) -> None:
    """Shares out what the corners of patches bear over all of their points.

    Force and moment of each patch stay what they are, and friction is where pressure is.

    Args:
        patch: (N,) patches of contacts; see `keep_corners`.
        constrained: (N,) which of them had constraints: patches without others stay as they are.
        frame: (N, 9) their axes.
        position: (N, 3) [m].
        gap: (N,) from surface to surface [m].
        impedance: (N, 5) MuJoCo's five numbers ("solimp").
        pressing: (N,) normal forces [N], zero for those without constraints; rewritten.
        force: (N, 3) forces [N], likewise.
    """
    patches = int(patch.max()) + 1
    order, ends = _by_patch(patch, patches)
    for p in range(patches):
        members = order[ends[p] : ends[p + 1]]
        if constrained[members].all():
            continue
        axes = frame[members[0]]
        pressure = np.zeros(len(members))
        for m in range(len(members)):
            for i in range(3):
                pressure[m] += axes[i] * force[members[m], i]
        total = pressure.sum()
        places = _places(members, members[0], axes, position)
        size = np.abs(places).max()
        if total <= 0.0 or size <= _SAME_PLACE:
            continue
        places /= size
        wanted, rows = np.zeros(3), np.ones((len(members), 3))
        firmness = np.empty(len(members))
        for m in range(len(members)):
            rows[m, 1], rows[m, 2] = places[0, m], places[1, m]
            wanted += pressure[m] / total * rows[m]
            firmness[m] = _firmness(members[m], gap, impedance)
        firmness /= firmness.max()
        found, plane = least_pushes(rows, firmness, np.zeros((3, 3)), wanted, _SETTLED, _FREE)
        if not found:
            continue  # the corners bear it
        shares = firmness * np.maximum(rows @ plane, 0.0)
        _share_friction(members, axes, places, shares, force)
        for m in range(len(members)):
            pressing[members[m]] = total * shares[m]
            for i in range(3):
                force[members[m], i] += total * shares[m] * axes[i]


@compiled
def _share_friction(
    members: NDArray[np.intp], axes: Array, places: Array, shares: Array, force: Array
) -> None:
    """Rewrites the forces of a patch: no normal ones, and the others in shares of the pressure
    times a field: a push, a turn, and a push as great as the place is high, as force and moment
    have it.

    Args:
        members: (n,) its contacts.
        axes: (9,) its axes.
        places: (3, n) along the second, the third and the first axis, in any unit.
        shares: (n,) shares of the pressure, one in all.
        force: (N, 3) of all contacts [N].
    """
    mean, square = np.zeros(3), np.zeros((3, 3))
    wanted = np.zeros(5)
    for m in range(len(members)):
        x, y, z = places[:, m]
        u = v = 0.0
        for i in range(3):
            u += axes[3 + i] * force[members[m], i]
            v += axes[6 + i] * force[members[m], i]
            mean[i] += shares[m] * places[i, m]
            for k in range(3):
                square[i, k] += shares[m] * places[i, m] * places[k, m]
        wanted[0] += u
        wanted[1] += v
        wanted[2] += x * v - y * u
        wanted[3] += z * u
        wanted[4] += z * v
    x, y, z = mean
    around = square[0, 0] + square[1, 1]
    xz, yz, zz = square[2, 0], square[2, 1], square[2, 2]
    matrix = np.array(
        [
            [1.0, 0.0, -y, z, 0.0],
            [0.0, 1.0, x, 0.0, z],
            [-y, x, around, -yz, xz],
            [z, 0.0, -yz, zz, 0.0],
            [0.0, z, xz, 0.0, zz],
        ]
    )
    for i in range(5):
        matrix[i, i] += _FREE  # points on a line, or all of one height, leave some free
    along, across, turn, along_high, across_high = np.linalg.solve(matrix, wanted)
    for m in range(len(members)):
        x, y, z = places[:, m]
        u = shares[m] * (along - turn * y + along_high * z)
        v = shares[m] * (across + turn * x + across_high * z)
        for i in range(3):
            force[members[m], i] = axes[3 + i] * u + axes[6 + i] * v


@compiled
def _firmness(c: int, gap: Array, impedance: Array) -> float:
    """How firm a contact is at its gap, in a unit of its own: d / (1 - d), with MuJoCo's impedance
    d there; see "solimp" in its documentation, and `spread` for the arguments."""
    start, end, width, middle, power = impedance[c]
    depth = min(abs(gap[c]) / width, 1.0)
    if depth == 1.0:
        rise = 1.0
    elif depth <= middle:
        rise = depth**power / middle ** (power - 1.0)
    else:
        rise = 1.0 - (1.0 - depth) ** power / (1.0 - middle) ** (power - 1.0)
    d = start + rise * (end - start)
    return d / (1.0 - d)
