# SPDX-License-Identifier: Apache-2.0
"""Which steps need speculative contacts, and between which boxes.

MuJoCo's speculative contacts stop a box at what it will reach in this step. They cost a lot: bodies
that move are compared box by box instead of by their trees, and every two boxes that might meet are
followed along their ways: two pieces of 500 bricks that fall together take 20 ms a step. So they
are on only in steps in which two bodies may meet that move by more than half a layer of studs
relative to each other, there where they may meet; what moves less cannot pass through anything.
Boxes of large bodies that nothing can reach in such a step are hidden from all but the ground.

All of this looks at spheres, around bodies and, for large ones, around groups of their boxes, and
at the greatest relative motion of two bodies inside of them: two bodies that fall or tumble as one
are at rest for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.mujoco.bodies import rotations
from bricksim_core.engines.mujoco.bvh import along_curve
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array, cross

GROUND_TYPE = 3
"""Contact type of the ground: that of all geoms (1), and one that boxes always answer to (2)."""
BOX_AFFINITY = 3
"""Contact types that boxes answer to."""
_MASKED_AFFINITY = 2
_MANY = 64
"""Boxes from which on a body is large."""
_GROUP = 12
"""Boxes of a large body that share a sphere, at most."""
_SLACK = 1e-3
"""What spheres are widened by in addition [m]."""
_MOST = 100_000
"""Comparisons with spheres that are worth while."""
_SLOW = 0.5 * STUD_HEIGHT
"""Relative motion in a step [m] with which nothing passes through a layer of studs: what enters it
is seen before it is through half of it."""
_SPECULATIVE = int(mujoco.mjtEnableBit.mjENBL_SPECULATIVE)


@dataclass(frozen=True, eq=False)
class LargeBody:
    """A body with many boxes.

    Attributes:
        row: Which of the free components it is; their number for what the world holds.
        geoms: Its geoms.
        low: (B, 3) least corners of their bounds, from the sphere's centre, body axes [m].
        high: (B, 3) greatest corners [m].
        group: (B,) group of each.
        centres: (G, 3) centres of spheres around the groups, like the corners [m].
        radii: (G,) of these spheres [m].
    """

    row: int
    geoms: slice
    low: Array
    high: Array
    group: NDArray[np.intp]
    centres: Array
    radii: Array


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Spheres around the F free components and, last, around what the world holds.

    Attributes:
        reach: (F + 1,) radii [m]; those of free components are around their centres of mass. -inf
            if the world holds nothing.
        held: (3,) centre of the last one, world [m].
        large: Bodies with many boxes.
        alone: Whether there are less than two of these bodies, so that none meets another.
    """

    reach: Array
    held: Array
    large: tuple[LargeBody, ...]
    alone: bool

    @cached_property
    def large_rows(self) -> dict[int, LargeBody]:
        """The large bodies by row."""
        return {body.row: body for body in self.large}


def surroundings(
    model: mujoco.MjModel, body: NDArray[np.intp], dof: NDArray[np.intp], held: int
) -> Surroundings:
    """Finds the bodies of a model.

    Args:
        model: The model.
        body: (F,) bodies of the free components.
        dof: (F, 6) addresses of their velocities.
        held: Body of what the world holds.
    """
    reach = np.append(model.dof_length[dof[:, 3]], -np.inf)
    centre, large = np.zeros(3), []
    for row, element in enumerate([*body.tolist(), held]):
        first, count = int(model.body_geomadr[element]), int(model.body_geomnum[element])
        if not count or (element != held and count < _MANY):
            continue
        geoms = slice(first, first + count)
        low, high = _bounds(model, geoms)
        if element == held:
            least, greatest = low.min(axis=0), high.max(axis=0)
            centre = 0.5 * (least + greatest)
            reach[-1] = 0.5 * np.linalg.norm(greatest - least)
            low, high = low - centre, high - centre
        if count >= _MANY:
            large.append(LargeBody(row, geoms, low, high, *_spheres(low, high)))
    alone = np.count_nonzero(np.isfinite(reach)) < 2
    return Surroundings(reach, centre, tuple(large), bool(alone))


def _bounds(model: mujoco.MjModel, geoms: slice) -> tuple[Array, Array]:
    """Corners of geoms' bounds in their body's frame [m]."""
    axes, centres = rotations(model.geom_quat[geoms]), model.geom_pos[geoms]
    half = np.einsum("gij,gj->gi", np.abs(axes), model.geom_size[geoms])
    return centres - half, centres + half


def _spheres(low: Array, high: Array) -> tuple[NDArray[np.intp], Array, Array]:
    """Groups of boxes that lie together: (B,) group of each, (G, 3) centres and (G,) radii of
    spheres around them."""
    order = along_curve(0.5 * (low + high))
    starts = np.arange(0, len(order), _GROUP)
    label = np.empty(len(order), dtype=np.intp)
    label[order] = np.arange(len(order)) // _GROUP
    least = np.minimum.reduceat(low[order], starts)
    greatest = np.maximum.reduceat(high[order], starts)
    return label, 0.5 * (least + greatest), 0.5 * np.linalg.norm(greatest - least, axis=1)


def look_ahead(
    model: mujoco.MjModel, around: Surroundings, positions: Array, velocities: Array, dt: float
) -> None:
    """Makes a model without robots ready for a step: speculative contacts where bodies may meet
    that would pass through each other, and nowhere else.

    On the ground, which nothing passes through, they do harm: MuJoCo follows only boxes that are
    thinner than their way, so that a layer of studs would be stopped before the bricks beside it
    and take all of a flat landing's impulse.

    Args:
        model: Changed in place.
        around: Its bodies.
        positions: (F, 7) of the free bodies.
        velocities: (F, 6) of them [m/s, rad/s].
        dt: Length of the step [s].
    """
    motion = None if around.alone else _motion(around, positions, velocities, dt)
    if motion is None or not _may_meet(around, motion):
        model.opt.enableflags &= ~_SPECULATIVE
        for body in around.large:
            model.geom_contype[body.geoms] = 1
            model.geom_conaffinity[body.geoms] = BOX_AFFINITY
        return
    model.opt.enableflags |= _SPECULATIVE
    for body in around.large:
        near = _within_reach(around, motion, body)
        model.geom_contype[body.geoms] = near
        model.geom_conaffinity[body.geoms] = np.where(near, BOX_AFFINITY, _MASKED_AFFINITY)


@dataclass(frozen=True, eq=False)
class _Motion:
    """How bodies move in a step; what the world holds comes last.

    Attributes:
        centres: (F + 1, 3) [m].
        rotations: (F + 1, 3, 3) world_R_body.
        linear: (F + 1, 3) ways of the centres [m].
        angular: (F + 1, 3) turns, world [rad].
        bent: (F + 1,) how far the way of any point may be off the straight line [m].
        radii: (F + 1,) of spheres that bodies do not leave [m].
        fast: Those that move by more than a quarter of a layer of studs: one of any two that move
            by half of it relative to each other.
    """

    centres: Array
    rotations: Array
    linear: Array
    angular: Array
    bent: Array
    radii: Array
    fast: NDArray[np.intp]


def _motion(around: Surroundings, positions: Array, velocities: Array, dt: float) -> _Motion | None:
    """How bodies move, None if none is fast."""
    reach, free = around.reach, slice(len(positions))
    turn = dt * np.sqrt(np.einsum("fi,fi->f", velocities[:, 3:], velocities[:, 3:]))
    ways = np.zeros(len(reach))
    ways[free] = np.sqrt(np.einsum("fi,fi->f", velocities[:, :3], velocities[:, :3]))
    ways[free] = dt * ways[free] + turn * reach[free]
    fast = np.flatnonzero(ways > 0.5 * _SLOW)
    if not len(fast):
        return None
    turned = np.concatenate([rotations(positions[:, 3:]), np.eye(3)[None]])
    linear, angular = np.zeros((2, len(reach), 3))
    linear[free] = dt * velocities[:, :3]
    angular[free] = dt * np.einsum("fij,fj->fi", turned[free], velocities[:, 3:])
    bent = np.zeros(len(reach))
    bent[free] = 0.5 * turn * turn * reach[free]
    centres = np.concatenate([positions[:, :3], around.held[None]])
    return _Motion(centres, turned, linear, angular, bent, reach + (ways + _SLACK), fast)


def _may_meet(around: Surroundings, motion: _Motion) -> bool:
    """Whether two bodies may meet that are fast enough for each other to pass through studs."""
    fast, large = motion.fast, around.large_rows
    if len(fast) * len(around.reach) > _MOST:
        return True
    apart = _distances(motion.centres[fast], motion.centres)
    apart[np.arange(len(fast)), fast] = np.inf
    first, b = np.nonzero(apart <= motion.radii[fast, None] + motion.radii)
    a = fast[first]
    ways = _pair_ways(around, motion, a, b)
    near = np.flatnonzero((ways > _SLOW) & (apart[first, b] <= _together(around, a, b) + ways))
    for i, j, way in zip(a[near].tolist(), b[near].tolist(), ways[near].tolist(), strict=True):
        if i not in large and j not in large:
            return True
        one, other = _spheres_of(around, motion, i), _spheres_of(around, motion, j)
        p, q = np.nonzero(_meeting(one, other, way))
        smaller = one[1][p] < other[1][q]
        centres = np.where(smaller[:, None], one[0][p], other[0][q])
        radii = np.where(smaller, one[1][p], other[1][q])
        if (_relative_ways(motion, np.array([i]), np.array([j]), centres, radii) > _SLOW).any():
            return True
    return False


def _within_reach(around: Surroundings, motion: _Motion, body: LargeBody) -> NDArray[np.bool_]:
    """(B,) which boxes of a large body other bodies may reach."""
    row = body.row
    apart = np.linalg.norm(motion.centres - motion.centres[row], axis=1)
    apart[row] = np.inf
    others = np.flatnonzero(apart <= motion.radii[row] + motion.radii)
    ways = _pair_ways(around, motion, np.full(len(others), row), others)
    own = _spheres_of(around, motion, row)
    near = np.zeros(len(body.low), dtype=np.bool_)
    for other, way in zip(others.tolist(), ways.tolist(), strict=True):
        centres, radii = _spheres_of(around, motion, other)
        meeting = _meeting(own, (centres, radii), way)
        boxes, spheres = np.flatnonzero(meeting.any(axis=1)[body.group]), meeting.any(axis=0)
        if len(boxes) * np.count_nonzero(spheres) > _MOST:
            near[boxes] = True
            continue
        centres = (centres[spheres] - motion.centres[row]) @ motion.rotations[row]
        reach = radii[spheres] + (way + _SLACK)
        beyond = np.maximum(body.low[boxes, None] - centres, centres - body.high[boxes, None])
        np.maximum(beyond, 0.0, out=beyond)
        touched = np.einsum("bsi,bsi->bs", beyond, beyond) <= reach * reach
        near[boxes] |= touched.any(axis=1)
    return near


def _spheres_of(around: Surroundings, motion: _Motion, row: int) -> tuple[Array, Array]:
    """(G, 3) centres, world [m], and (G,) radii [m] of spheres around all of a body."""
    body = around.large_rows.get(row)
    if body is None:
        return motion.centres[row, None], around.reach[row, None]
    return motion.centres[row] + body.centres @ motion.rotations[row].T, body.radii


def _meeting(one: tuple[Array, Array], other: tuple[Array, Array], way: float) -> NDArray[np.bool_]:
    """(G, H) which spheres around two bodies may meet, given their relative motion [m]."""
    reach = one[1][:, None] + other[1] + (way + _SLACK)
    return _distances(one[0], other[0]) <= reach


def _distances(a: Array, b: Array) -> Array:
    """(N, M) distances of (N, 3) and (M, 3) points."""
    apart = a[:, None] - b
    return np.sqrt(np.einsum("nmi,nmi->nm", apart, apart))


def _together(around: Surroundings, a: NDArray[np.intp], b: NDArray[np.intp]) -> Array:
    """(N,) distances of bodies that touch [m]."""
    return around.reach[a] + around.reach[b] + _SLACK


def _pair_ways(
    around: Surroundings, motion: _Motion, a: NDArray[np.intp], b: NDArray[np.intp]
) -> Array:
    """(N,) how far two bodies move relative to each other where they may meet, at most [m]."""
    smaller = np.where(around.reach[a] < around.reach[b], a, b)  # they meet inside of it
    return _relative_ways(motion, a, b, motion.centres[smaller], around.reach[smaller])


def _relative_ways(
    motion: _Motion, a: NDArray[np.intp], b: NDArray[np.intp], centres: Array, radii: Array
) -> Array:
    """(N,) how far two bodies move relative to each other in a step, at most, inside spheres [m].

    Args:
        motion: All bodies.
        a: (N,) or (1,) the first.
        b: (N,) or (1,) the second.
        centres: (N, 3) of the spheres, world [m].
        radii: (N,) [m].
    """
    shift = motion.linear[a] - motion.linear[b]
    shift = shift + cross(motion.angular[a], centres - motion.centres[a])
    shift -= cross(motion.angular[b], centres - motion.centres[b])
    turn = motion.angular[a] - motion.angular[b]
    ways = np.sqrt(np.einsum("ni,ni->n", shift, shift))
    ways += np.sqrt(np.einsum("ni,ni->n", turn, turn)) * radii
    return ways + (motion.bent[a] + motion.bent[b])
