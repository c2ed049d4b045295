# SPDX-License-Identifier: Apache-2.0
"""Boxes of large bodies that nothing can reach in a step are hidden from all but the ground.

MuJoCo compares fast bodies box by box, every one of the first with every one of the second, which
takes milliseconds where a piece of some bricks falls beside one of a thousand. Here a large body's
boxes are compared with spheres around the other bodies first, around groups of boxes of those that
are large themselves, widened by how far both can move. Only what the spheres miss is masked, so
that contacts are the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.mujoco.bodies import rotations
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array

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
_SPECULATIVE = int(mujoco.mjtEnableBit.mjENBL_SPECULATIVE)


@dataclass(frozen=True, eq=False)
class LargeBody:
    """A body with many boxes.

    Attributes:
        row: Which of the free components it is; their number for what the world holds.
        geoms: Its geoms.
        low: (B, 3) least corners of their bounds, from the sphere's centre, body axes [m].
        high: (B, 3) greatest corners [m].
        bounds: (3,) least and greatest corner of all [m].
        centres: (G, 3) centres of spheres around groups of boxes, like the corners [m].
        radii: (G,) of these spheres [m].
    """

    row: int
    geoms: slice
    low: Array
    high: Array
    bounds: tuple[Array, Array]
    centres: Array
    radii: Array


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Spheres around the F free components and, last, around what the world holds.

    Attributes:
        reach: (F + 1,) radii [m]; those of free components are around their centres of mass. -inf
            if the world holds nothing.
        held: (3,) centre of the last one, world [m].
        large: Bodies with many boxes; none if there are robots or nothing else to touch.
    """

    reach: Array
    held: Array
    large: tuple[LargeBody, ...]


def surroundings(
    model: mujoco.MjModel, body: NDArray[np.intp], dof: NDArray[np.intp], held: int, robots: bool
) -> Surroundings:
    """Finds the bodies of a model.

    Args:
        model: The model.
        body: (F,) bodies of the free components.
        dof: (F, 6) addresses of their velocities.
        held: Body of what the world holds.
        robots: Whether there are robots: then nothing is masked.
    """
    reach = np.append(model.dof_length[dof[:, 3]], -np.inf)
    centre, large = np.zeros(3), []
    for row, element in enumerate([*body.tolist(), held]):
        first, count = int(model.body_geomadr[element]), int(model.body_geomnum[element])
        if not count or (element != held and count < _MANY):
            continue
        geoms = slice(first, first + count)
        low, high = _bounds(model, geoms)
        least, greatest = low.min(axis=0), high.max(axis=0)
        if element == held:
            centre = 0.5 * (least + greatest)
            reach[-1] = 0.5 * np.linalg.norm(greatest - least)
            low, high, least, greatest = (x - centre for x in (low, high, least, greatest))
        if count >= _MANY and not robots:
            spheres = _spheres(low, high)
            large.append(LargeBody(row, geoms, low, high, (least, greatest), *spheres))
    alone = np.count_nonzero(np.isfinite(reach)) < 2
    return Surroundings(reach, centre, () if alone else tuple(large))


def _bounds(model: mujoco.MjModel, geoms: slice) -> tuple[Array, Array]:
    """Corners of geoms' bounds in their body's frame [m]."""
    axes, centres = rotations(model.geom_quat[geoms]), model.geom_pos[geoms]
    half = np.einsum("gij,gj->gi", np.abs(axes), model.geom_size[geoms])
    return centres - half, centres + half


def _spheres(low: Array, high: Array) -> tuple[Array, Array]:
    """(G, 3) centres and (G,) radii of spheres around groups of boxes that lie together."""
    middle = low + high
    groups, found = [np.arange(len(low))], []
    while groups:
        group = groups.pop()
        if len(group) <= _GROUP:
            found.append((low[group].min(axis=0), high[group].max(axis=0)))
            continue
        points = middle[group]
        order = np.argsort(points[:, int(np.argmax(np.ptp(points, axis=0)))], kind="stable")
        half = len(group) // 2
        groups += [group[order[:half]], group[order[half:]]]
    least, greatest = np.array([a for a, _ in found]), np.array([b for _, b in found])
    return 0.5 * (least + greatest), 0.5 * np.linalg.norm(greatest - least, axis=1)


@dataclass(frozen=True, eq=False)
class _Swept:
    """Spheres that bodies do not leave in a step; what the world holds comes last.

    Attributes:
        centres: (F + 1, 3) [m].
        radii: (F + 1,) [m].
        ways: (F + 1,) how far any point of a body may get [m].
    """

    centres: Array
    radii: Array
    ways: Array


def look_ahead(
    model: mujoco.MjModel,
    around: Surroundings,
    positions: Array,
    velocities: Array,
    dt: float,
    foresight: bool,
) -> None:
    """Makes a model ready for a step: masks boxes that nothing reaches, and lets fast bodies meet
    what they would pass through where bodies can meet.

    MuJoCo's speculative contacts stop a box at what it will reach in this step, but only boxes that
    are thinner than their way. On the ground, which nothing passes through, a layer of studs would
    so be stopped before the bricks beside it, and take all of a flat landing's impulse.

    Args:
        model: Changed in place.
        around: Its bodies.
        positions: (F, 7) of the free bodies.
        velocities: (F, 6) of them [m/s, rad/s].
        dt: Length of the step [s].
        foresight: False: speculative contacts stay on, as is right where there are robots.
    """
    if not around.large and not foresight:
        return
    swept = _swept(around, positions, velocities, dt)
    _mask_far(model, around, positions, swept)
    if foresight:
        if _may_meet(swept):
            model.opt.enableflags |= _SPECULATIVE
        else:
            model.opt.enableflags &= ~_SPECULATIVE


def _mask_far(model: mujoco.MjModel, around: Surroundings, positions: Array, swept: _Swept) -> None:
    """Sets the contact types of large bodies' boxes for a step."""
    world, radii, widened = swept.centres, swept.radii, swept.ways + _SLACK
    turned = {body.row: _rotation(body.row, positions) for body in around.large}
    for body in around.large:
        rotation, shift = turned[body.row], swept.ways[body.row]
        centres = (world - world[body.row]) @ rotation
        radius = radii + shift
        radius[body.row] = -np.inf
        close = _touching(*body.bounds, centres, radius)
        spheres = [(centres, np.where(close, radius, -np.inf))]
        for other in around.large:
            if close[other.row]:
                there = centres[other.row] + other.centres @ turned[other.row].T @ rotation
                spheres[0][1][other.row] = -np.inf
                spheres.append((there, other.radii + widened[other.row] + shift))
        centres = np.concatenate([c for c, _ in spheres])
        radius = np.concatenate([r for _, r in spheres])
        close = _touching(*body.bounds, centres, radius)
        centres, radius = centres[close], radius[close]
        if len(centres) * len(body.low) > _MOST:
            near = np.ones(len(body.low), dtype=np.bool_)
        else:
            corners = body.low[:, None], body.high[:, None]
            near = _touching(*corners, centres, radius).any(axis=1)
        model.geom_contype[body.geoms] = near
        model.geom_conaffinity[body.geoms] = np.where(near, BOX_AFFINITY, _MASKED_AFFINITY)


def _may_meet(swept: _Swept) -> bool:
    """Whether a body that is fast enough to pass through studs may meet another body."""
    fast = np.flatnonzero(swept.ways > 0.5 * STUD_HEIGHT)
    if len(fast) * len(swept.ways) > _MOST:
        return True
    apart = np.linalg.norm(swept.centres[fast, None] - swept.centres, axis=2)
    apart[np.arange(len(fast)), fast] = np.inf
    return bool((apart <= swept.radii[fast, None] + swept.radii).any())


def _swept(around: Surroundings, positions: Array, velocities: Array, dt: float) -> _Swept:
    squares = velocities * velocities
    speeds = np.zeros(len(around.reach))
    speeds[:-1] = np.sqrt(squares[:, :3].sum(axis=1))
    speeds[:-1] += np.sqrt(squares[:, 3:].sum(axis=1)) * around.reach[:-1]
    ways = dt * speeds
    centres = np.concatenate([positions[:, :3], around.held[None]])
    return _Swept(centres, around.reach + (ways + _SLACK), ways)


def _rotation(row: int, positions: Array) -> Array:
    """(3, 3) world_R_body of a free body, or of what the world holds."""
    if row >= len(positions):
        return np.eye(3)
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, positions[row, 3:])
    return rotation.reshape(3, 3)


def _touching(low: Array, high: Array, centres: Array, radius: Array) -> NDArray[np.bool_]:
    """(..., N) whether boxes (..., 3) and N spheres touch; negative radii never do."""
    apart = np.maximum(low - centres, centres - high)
    np.maximum(apart, 0.0, out=apart)
    return (np.einsum("...i,...i->...", apart, apart) <= radius * radius) & (radius >= 0.0)
