# SPDX-License-Identifier: Apache-2.0
"""Which steps need speculative contacts, and between which boxes; which are divided for a hit.

MuJoCo's speculative contacts stop a box at what it will reach in this step. They cost a lot: bodies
that move are compared box by box instead of by their trees, and every two boxes that might meet are
followed along their ways: two pieces of 100 bricks that part take 5 ms a step. So they are on only
in steps in which two boxes of different bodies may meet that move by more than half a layer of
studs relative to each other; what moves less cannot pass through anything. In such a step boxes
that meet no other body are hidden from all but the ground.

Bodies are compared by spheres around them first, boxes by spheres and then along the axes of their
faces, all of them widened by the greatest relative motion there: two bodies that fall or tumble as
one are at rest for each other.

How a body leaves a hit hangs on where it was when the contact was seen first: at 1.7 m/s that is up
to 7 mm deep with a step of 1/240 s. So steps in which a component with connections moves into the
ground or another body at speed are to be divided; the answer for single bricks, which cannot break,
is good enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import Vector, compiled, crossed, length
from bricksim_core.engines.mujoco.bodies import write_rotation
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array

GROUND_TYPE = 3
"""Contact type of the ground: that of all geoms (1), and one that boxes always answer to (2)."""
BOX_AFFINITY = 3
"""Contact types that boxes answer to."""
_MASKED_AFFINITY = 2
_SLACK = 1e-3
"""What distances may be short by [m]."""
_MOST = 1_000_000
"""Comparisons of bodies that are worth while."""
_SLOW = 0.5 * STUD_HEIGHT
"""Relative motion in a step [m] with which nothing passes through a layer of studs: what enters it
is seen before it is through half of it."""
_HIT_SPEED = 0.2
"""Closing speed of a hit [m/s]; bricks that roll or settle stay below."""
_FULL_HIT, _FULL_HIT_OF_TWO = 1.3, 0.8
"""Closing speed with which a body hits the ground, and greatest relative speed of two bodies that
hit each other [m/s], from which on a hit wants as short steps as any: in a quarter of 1/240 s the
latter move by just as much as `_SLOW`, so that few need speculation."""
_SPECULATIVE = int(mujoco.mjtEnableBit.mjENBL_SPECULATIVE)


class _Boxes(NamedTuple):
    """The boxes of B bodies, in the bodies' frames; G geoms of the model.

    Attributes:
        bodies: (B,) bodies of the model.
        first: First geom of each body of the model.
        number: How many geoms each has.
        places: (G, 3) centres [m].
        quaternions: (G, 4) axes.
        halves: (G, 3) half extents [m].
        radii: (G,) of spheres around them [m].
    """

    bodies: NDArray[np.intp]
    first: NDArray[np.int32]
    number: NDArray[np.int32]
    places: Array
    quaternions: Array
    halves: Array
    radii: Array


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The F free bodies and, last, what the world holds.

    Attributes:
        reach: (F + 1,) radii of spheres around them [m]; those of free bodies are around their
            centres of mass. -inf if the world holds nothing.
        held: (3,) centre of the last one, world [m].
        jointed: (F + 1,) which of them have connections.
        boxes: Their boxes, as the model has them.
        alone: Whether a free body has no other body to meet.
    """

    reach: Array
    held: Array
    jointed: NDArray[np.bool_]
    boxes: _Boxes
    alone: bool


def surroundings(
    model: mujoco.MjModel,
    body: NDArray[np.intp],
    dof: NDArray[np.intp],
    held: int,
    jointed: NDArray[np.bool_],
) -> Surroundings:
    """Finds the bodies of a model.

    Args:
        model: The model.
        body: (F,) bodies of the free components.
        dof: (F, 6) addresses of their velocities.
        held: Body of what the world holds.
        jointed: (F + 1,) which of them have connections, what the world holds last.
    """
    bodies, reach = np.full(len(body) + 1, held), np.full(len(body) + 1, -np.inf)
    bodies[:-1], reach[:-1] = body, model.dof_length[dof[:, 3]]
    first, count = int(model.body_geomadr[held]), int(model.body_geomnum[held])
    centre = np.zeros(3)
    if count:
        geoms = slice(first, first + count)
        places, radii = model.geom_pos[geoms], model.geom_rbound[geoms, None]
        least, greatest = (places - radii).min(axis=0), (places + radii).max(axis=0)
        centre = 0.5 * (least + greatest)
        reach[-1] = 0.5 * np.linalg.norm(greatest - least)
    boxes = _Boxes(
        bodies, model.body_geomadr, model.body_geomnum,
        model.geom_pos, model.geom_quat, model.geom_size, model.geom_rbound,
    )  # fmt: skip
    return Surroundings(reach, centre, jointed, boxes, alone=len(body) + (count > 0) < 2)


def look_ahead(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    around: Surroundings,
    positions: NDArray[np.intp],
    velocities: NDArray[np.intp],
    ground: float,
    dt: float,
    hits: bool,
) -> float:
    """Makes a model without robots ready for a step: speculative contacts where bodies may meet
    that would pass through each other, and nowhere else.

    On the ground, which nothing passes through, they do harm: MuJoCo follows only boxes that are
    thinner than their way, so that a layer of studs would be stopped before the bricks beside it
    and take all of a flat landing's impulse.

    Args:
        model: Changed in place.
        data: Its state.
        around: Its bodies.
        positions: (F, 7) addresses of the free bodies' positions.
        velocities: (F, 6) those of their velocities.
        ground: Height of the ground, -inf without one [m].
        dt: Length of the step [s].
        hits: Whether hits are asked for.

    Returns:
        How hard a component with connections hits something in this step: 1 wants as short steps
        as any, half of that twice as long ones; 0 if none does or if not asked for.
    """
    ahead = bool(model.opt.enableflags & _SPECULATIVE)
    if not (ahead or hits) and _all_slow(data.qvel, velocities, around.reach, dt):
        return 0.0
    boxes = around.boxes
    near = np.zeros(len(boxes.places), dtype=np.bool_)
    passing, hit = _foreseen(
        data.qpos, data.qvel, positions, velocities, around.reach, around.held, around.jointed,
        ground, dt, hits, boxes, near,
    )  # fmt: skip
    if passing or ahead:  # else nothing is hidden
        _hide(boxes, near, passing, model.geom_contype, model.geom_conaffinity)
        if passing:
            model.opt.enableflags |= _SPECULATIVE
        else:
            model.opt.enableflags &= ~_SPECULATIVE
    return min(hit, 1.0)


@compiled
def _all_slow(qvel: Array, velocities: NDArray[np.intp], reach: Array, dt: float) -> bool:
    """Whether no two bodies move by more than half a layer of studs relative to each other, however
    near they are: what `_foreseen` finds as well, but takes a fraction of its arguments.

    Args:
        qvel: Velocities of the model.
        velocities: (F, 6) addresses of those of the free bodies.
        reach: (F + 1,) see `Surroundings`.
        dt: Length of the step [s].
    """
    limit = (1.0 - 1e-9) * 0.5 * _SLOW / dt  # in doubt the exact answer counts
    for f in range(len(velocities)):
        shift = turn = 0.0
        for i in range(3):
            shift += qvel[velocities[f, i]] ** 2
            turn += qvel[velocities[f, 3 + i]] ** 2
        if not math.sqrt(shift) + math.sqrt(turn) * reach[f] <= limit:
            return False
    return True


@compiled
def _boxes_of(boxes: _Boxes, body: int) -> slice:
    """Geoms of one of the B bodies."""
    start = boxes.first[boxes.bodies[body]]
    return slice(start, start + boxes.number[boxes.bodies[body]])


@compiled
def _hide(
    boxes: _Boxes,
    near: NDArray[np.bool_],
    passing: bool,
    types: NDArray[np.int32],
    affinities: NDArray[np.int32],
) -> None:
    """Hides boxes from each other in a step with speculative contacts, and none in others.

    Args:
        boxes: All.
        near: (G,) which geoms are not to be hidden.
        passing: Whether it is such a step.
        types: (G,) contact types, to be written.
        affinities: (G,) types that geoms answer to, to be written.
    """
    for body in boxes.bodies:
        for g in range(boxes.first[body], boxes.first[body] + boxes.number[body]):
            seen = near[g] or not passing
            types[g] = 1 if seen else 0
            affinities[g] = BOX_AFFINITY if seen else _MASKED_AFFINITY


@compiled
def _foreseen(
    qpos: Array,
    qvel: Array,
    positions: NDArray[np.intp],
    velocities: NDArray[np.intp],
    reach: Array,
    held: Array,
    jointed: NDArray[np.bool_],
    ground: float,
    dt: float,
    hits: bool,
    boxes: _Boxes,
    near: NDArray[np.bool_],
) -> tuple[bool, float]:
    """Whether boxes of two bodies may meet that are fast enough for each other to pass through
    studs, and how hard a component with connections hits something: from 1 on as hard as any.

    Args:
        qpos: Positions of the model.
        qvel: Its velocities.
        positions: (F, 7) addresses of the free bodies' positions.
        velocities: (F, 6) those of their velocities.
        reach: (F + 1,) like the next two, see `Surroundings`.
        held: (3,) [m].
        jointed: (F + 1,)
        ground: Height of the ground [m].
        dt: Length of the step [s].
        hits: Whether the second is asked for.
        boxes: Of the F + 1 bodies.
        near: (G,) geoms that may meet others are marked here if the first answer is yes.
    """
    motion = _motions(qpos, qvel, positions, velocities, reach, held, dt)
    least = min(_SLOW, motion.hit) if hits else _SLOW
    # Of two that move by so much relative to each other one moves by half of it.
    fast = motion.ways > 0.5 * least
    count = len(reach)
    passing, hit = False, 0.0
    if not fast.any():
        return passing, hit
    for i in range(count):
        if hits and fast[i] and jointed[i] and hit < 1.0:
            hit = max(hit, _meets_ground(motion, i, ground, boxes))
    if np.count_nonzero(fast) * count > _MOST:
        near[:] = True
        return True, hit
    for look_at_fast in (True, False):
        for i in range(count):
            for j in range(i):
                if look_at_fast and not (fast[i] or fast[j]):
                    continue
                way = _greatest_way(motion, i, j)
                if way < 0.0 or (way > least) != look_at_fast:
                    continue
                asked = hits and hit < 1.0 and (jointed[i] or jointed[j])
                fast_ones, closing = _boxes_meet(motion, i, j, way, asked, boxes, near)
                passing = passing or fast_ones
                if closing:
                    hit = max(hit, way / motion.full_of_two)
        if not passing:
            break
    return passing, hit


@compiled
def _meets_ground(motion: _Motion, body: int, ground: float, boxes: _Boxes) -> float:
    """How hard a corner of a body's boxes hits the ground in the step; see `_foreseen`.

    Args:
        motion: All bodies.
        body: Which.
        ground: Height of the ground [m].
        boxes: All.
    """
    centre, turn = motion.centres[body], motion.angular[body]
    fall, way = motion.linear[body, 2], motion.ways[body]
    hardest = 0.0
    if not centre[2] - motion.reach[body] - way < ground:
        return hardest
    own = _down_to(motion, body, ground + way, boxes)
    centres, axes = _placed(motion, body, boxes, own)
    halves = boxes.halves[own]
    for n in range(len(centres)):
        low = centres[n, 2]
        for k in range(3):
            low -= abs(axes[n, 2, k]) * halves[n, k]
        if low - way > ground:
            continue
        for corner in range(8):
            x, y, z = centres[n, 0] - centre[0], centres[n, 1] - centre[1], centres[n, 2]
            for k in range(3):
                half = halves[n, k] if corner >> k & 1 else -halves[n, k]
                x += axes[n, 0, k] * half
                y += axes[n, 1, k] * half
                z += axes[n, 2, k] * half
            down = fall + turn[0] * y - turn[1] * x
            if down < -motion.hit and z + down < ground:
                hardest = max(hardest, -down / motion.full)
                if hardest >= 1.0:
                    return hardest
    return hardest


class _Motion(NamedTuple):
    """How bodies move in a step; what the world holds comes last.

    Attributes:
        origins: (F + 1, 3) of the bodies' frames, world [m].
        axes: (F + 1, 3, 3) world_R_body.
        centres: (F + 1, 3) of the spheres around them [m].
        reach: (F + 1,) radii of these [m].
        linear: (F + 1, 3) ways of the centres [m].
        angular: (F + 1, 3) turns, world [rad].
        bent: (F + 1,) how far the way of any point may be off the straight line [m].
        ways: (F + 1,) how far any point gets, at most [m].
        hit: How far what hits something closes in on it in the step, at least [m].
        full: How far what hits the ground as hard as any closes in on it [m].
        full_of_two: How far two bodies move relative to each other that hit as hard as any [m].
    """

    origins: Array
    axes: Array
    centres: Array
    reach: Array
    linear: Array
    angular: Array
    bent: Array
    ways: Array
    hit: float
    full: float
    full_of_two: float


@compiled
def _motions(
    qpos: Array,
    qvel: Array,
    positions: NDArray[np.intp],
    velocities: NDArray[np.intp],
    reach: Array,
    held: Array,
    dt: float,
) -> _Motion:
    """How bodies move; arguments as in `_foreseen`."""
    count = len(reach)
    origins, linear, angular = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3))
    axes, bent, ways = np.zeros((count, 3, 3)), np.zeros(count), np.zeros(count)
    for f in range(count - 1):
        at, moving = positions[f], velocities[f]
        write_rotation(qpos[at[3] : at[3] + 4], axes[f])
        shift = turn = 0.0
        for i in range(3):
            origins[f, i] = qpos[at[i]]
            linear[f, i] = dt * qvel[moving[i]]
            for j in range(3):
                angular[f, i] += dt * axes[f, i, j] * qvel[moving[3 + j]]
            shift += linear[f, i] ** 2
            turn += angular[f, i] ** 2
        ways[f] = math.sqrt(shift) + math.sqrt(turn) * reach[f]
        bent[f] = 0.5 * turn * reach[f]
    axes[-1] = np.eye(3)
    centres = origins.copy()
    centres[-1] = held
    return _Motion(
        origins, axes, centres, reach, linear, angular, bent, ways,
        _HIT_SPEED * dt, _FULL_HIT * dt, _FULL_HIT_OF_TWO * dt,
    )  # fmt: skip


@compiled
def _greatest_way(motion: _Motion, i: int, j: int) -> float:
    """How far two bodies move relative to each other where they may meet [m], at most; -1 if they
    cannot meet."""
    reach, centres = motion.reach, motion.centres
    apart, touching = math.sqrt(_squared(centres[i], centres[j])), reach[i] + reach[j] + _SLACK
    if not apart <= touching + motion.ways[i] + motion.ways[j]:
        return -1.0
    smaller = i if reach[i] < reach[j] else j  # they meet inside of it
    way = _relative_way(motion, i, j, centres[smaller], reach[smaller])
    return way if apart <= touching + way else -1.0


@compiled
def _relative_way(motion: _Motion, i: int, j: int, centre: Array, radius: float) -> float:
    """How far two bodies move relative to each other in a step, at most, inside a sphere [m].

    Args:
        motion: All bodies.
        i: One.
        j: The other.
        centre: (3,) of the sphere, world [m].
        radius: [m].
    """
    x, y, z = _relative_shift(motion, i, j, centre)
    shift = math.sqrt(x * x + y * y + z * z)
    return shift + _turned(motion, i, j, radius) + motion.bent[i] + motion.bent[j]


@compiled
def _relative_shift(motion: _Motion, i: int, j: int, point: Array) -> Vector:
    """How a point of body i moves relative to body j in a step, world [m]."""
    ax, ay, az = crossed(motion.angular[i], point - motion.centres[i])
    bx, by, bz = crossed(motion.angular[j], point - motion.centres[j])
    one, other = motion.linear[i], motion.linear[j]
    return one[0] + ax - other[0] - bx, one[1] + ay - other[1] - by, one[2] + az - other[2] - bz


@compiled
def _turned(motion: _Motion, i: int, j: int, radius: float) -> float:
    """How far two bodies turn relative to each other in a step, at a distance from the axis [m]."""
    return math.sqrt(_squared(motion.angular[i], motion.angular[j])) * radius


@compiled
def _boxes_meet(
    motion: _Motion,
    i: int,
    j: int,
    way: float,
    hits: bool,
    boxes: _Boxes,
    near: NDArray[np.bool_],
) -> tuple[bool, bool]:
    """Marks the boxes of two bodies that may meet; see `_foreseen`.

    Args:
        motion: All bodies.
        i: One.
        j: The other.
        way: How far they move relative to each other, at most [m].
        hits: Whether hits are asked for.
        boxes: See `_foreseen`.
        near: See there.

    Returns:
        Whether any of these boxes move by more than half a layer of studs relative to each other;
        whether any may touch in the step that close in on each other at the speed of a hit.
    """
    margin = way + _SLACK
    some, others = _within(motion, i, j, margin, boxes), _within(motion, j, i, margin, boxes)
    half_a, half_b = boxes.halves[some], boxes.halves[others]
    at_a, axes_a = _placed(motion, i, boxes, some)
    at_b, axes_b = _placed(motion, j, boxes, others)
    # What cannot be is not looked for.
    passing_known, hit_known = way <= _SLOW, way <= motion.hit or not hits
    passing = hit = False
    nearby_b = _beside(at_b, half_b, at_a, axes_a, half_a, motion.axes[i], margin)
    for a in _beside(at_a, half_a, at_b, axes_b, half_b, motion.axes[j], margin):
        radius_a = length(half_a[a])
        for b in nearby_b:
            known = near[some[a]] and near[others[b]]
            if known and passing_known and hit_known:
                continue
            radius_b = length(half_b[b])
            limit = radius_a + radius_b + margin
            if _squared(at_a[a], at_b[b]) > limit * limit:
                continue
            least = min(radius_a, radius_b)
            smaller = at_a[a] if radius_a < radius_b else at_b[b]
            shift = _relative_shift(motion, i, j, smaller)
            gap, closing = _gap(
                at_a[a], axes_a[a], half_a[a], at_b[b], axes_b[b], half_b[b], shift, margin
            )
            if gap > margin:
                continue
            near[some[a]] = near[others[b]] = True
            if not passing_known:
                passing = passing_known = _relative_way(motion, i, j, smaller, least) > _SLOW
            if not hit_known:
                closing += _turned(motion, i, j, least) + motion.bent[i] + motion.bent[j]
                hit = hit_known = closing > motion.hit and closing > gap
    return passing, hit


@compiled
def _within(
    motion: _Motion, body: int, other: int, margin: float, boxes: _Boxes
) -> NDArray[np.intp]:
    """Geoms of a body that come as near as a margin [m] to the sphere around another one, as
    spheres."""
    own, places, radii = _boxes_of(boxes, body), boxes.places, boxes.radii
    reach, turn = motion.reach[other] + margin, motion.axes[body]
    # The centre of the sphere in the body's frame.
    apart = motion.centres[other] - motion.origins[body]
    x = turn[0, 0] * apart[0] + turn[1, 0] * apart[1] + turn[2, 0] * apart[2]
    y = turn[0, 1] * apart[0] + turn[1, 1] * apart[1] + turn[2, 1] * apart[2]
    z = turn[0, 2] * apart[0] + turn[1, 2] * apart[1] + turn[2, 2] * apart[2]
    found, count = np.empty(own.stop - own.start, dtype=np.intp), 0
    for g in range(own.start, own.stop):
        away = (places[g, 0] - x) ** 2 + (places[g, 1] - y) ** 2 + (places[g, 2] - z) ** 2
        if away <= (radii[g] + reach) ** 2:
            found[count] = g
            count += 1
    return found[:count]


@compiled
def _down_to(motion: _Motion, body: int, height: float, boxes: _Boxes) -> NDArray[np.intp]:
    """Geoms of a body that as spheres come down to a height [m]."""
    own, places, radii = _boxes_of(boxes, body), boxes.places, boxes.radii
    origin, turn = motion.origins[body], motion.axes[body]
    found, count = np.empty(own.stop - own.start, dtype=np.intp), 0
    for g in range(own.start, own.stop):
        low = origin[2] - radii[g]
        for k in range(3):
            low += turn[2, k] * places[g, k]
        if low <= height:
            found[count] = g
            count += 1
    return found[:count]


@compiled
def _placed(
    motion: _Motion, body: int, boxes: _Boxes, own: NDArray[np.intp]
) -> tuple[Array, Array]:
    """(N, 3) centres [m] and (N, 3, 3) axes of some boxes of a body in the world."""
    origin, turn = motion.origins[body], motion.axes[body]
    places, quaternions = boxes.places[own], boxes.quaternions[own]
    count = len(places)
    centres, axes, local = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((3, 3))
    for n in range(len(places)):
        write_rotation(quaternions[n], local)
        for i in range(3):
            centres[n, i] = origin[i]
            for k in range(3):
                centres[n, i] += turn[i, k] * places[n, k]
            for j in range(3):
                axes[n, i, j] = (
                    turn[i, 0] * local[0, j] + turn[i, 1] * local[1, j] + turn[i, 2] * local[2, j]
                )
    return centres, axes


@compiled
def _beside(
    places: Array,
    halves: Array,
    centres: Array,
    axes: Array,
    others: Array,
    frame: Array,
    margin: float,
) -> NDArray[np.intp]:
    """Which boxes, taken as spheres, come near the bounds of another body along its axes.

    Args:
        places: (N, 3) centres of the boxes [m].
        halves: (N, 3) their half extents [m].
        centres: (M, 3) centres of the other body's boxes [m].
        axes: (M, 3, 3) their axes.
        others: (M, 3) their half extents [m].
        frame: (3, 3) world_R_body of the other body.
        margin: What counts as near [m].
    """
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for m in range(len(centres)):
        for k in range(3):
            middle = extent = 0.0
            for i in range(3):
                middle += frame[i, k] * centres[m, i]
                extent += others[m, i] * abs(
                    frame[0, k] * axes[m, 0, i]
                    + frame[1, k] * axes[m, 1, i]
                    + frame[2, k] * axes[m, 2, i]
                )
            low[k], high[k] = min(low[k], middle - extent), max(high[k], middle + extent)
    found = np.empty(len(places), dtype=np.intp)
    count = 0
    for n in range(len(places)):
        beyond = 0.0
        for k in range(3):
            at = (
                frame[0, k] * places[n, 0] + frame[1, k] * places[n, 1] + frame[2, k] * places[n, 2]
            )
            beyond += max(low[k] - at, at - high[k], 0.0) ** 2
        if math.sqrt(beyond) <= length(halves[n]) + margin:
            found[count] = n
            count += 1
    return found[:count]


@compiled
def _gap(
    at_a: Array,
    axes_a: Array,
    half_a: Array,
    at_b: Array,
    axes_b: Array,
    half_b: Array,
    shift: Vector,
    enough: float,
) -> tuple[float, float]:
    """Greatest gap of two boxes along the axis of a face, negative where they overlap along all of
    these, and by how much it closes [m].

    Args:
        at_a: (3,) centre of one [m].
        axes_a: (3, 3) its axes.
        half_a: (3,) its half extents [m].
        at_b: Those of the other.
        axes_b:
        half_b:
        shift: (3,) way of the first relative to the second [m].
        enough: Gap beyond which no greater one is looked for [m].
    """
    greatest, closing = -np.inf, 0.0
    for k in range(3):
        one = other = towards_one = towards_other = 0.0
        reach_one, reach_other = half_a[k], half_b[k]
        for i in range(3):
            one += axes_a[i, k] * (at_b[i] - at_a[i])
            other += axes_b[i, k] * (at_b[i] - at_a[i])
            towards_one += axes_a[i, k] * shift[i]
            towards_other += axes_b[i, k] * shift[i]
            along = across = 0.0
            for m in range(3):
                along += axes_a[m, k] * axes_b[m, i]
                across += axes_b[m, k] * axes_a[m, i]
            reach_one += abs(along) * half_b[i]
            reach_other += abs(across) * half_a[i]
        if abs(one) - reach_one > greatest:
            greatest = abs(one) - reach_one
            closing = towards_one if one > 0.0 else -towards_one
        if abs(other) - reach_other > greatest:
            greatest = abs(other) - reach_other
            closing = towards_other if other > 0.0 else -towards_other
        if greatest > enough:
            break
    return greatest, closing


@compiled
def _squared(a: Array, b: Array) -> float:
    """Squared distance of two points."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
