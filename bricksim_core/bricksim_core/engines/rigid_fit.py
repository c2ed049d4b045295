# SPDX-License-Identifier: Apache-2.0
"""The rigid motion of a component from the motions of its bricks.

Where every brick is its own body, welds hold a component only nearly rigid. What the simulator is
told is the rigid motion that fits best: the pose by a weighted Procrustes fit, the twist with the
linear and angular momentum of the bricks, so that nothing is lost or gained by fitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bricksim_core.spatial import Array, cross, inverse, joined, transform_points
from bricksim_core.topology.layout import ComponentLayout

_LEAST_LENGTH = 1e-3
"""Least characteristic length of a component [m]: keeps the orientation of one brick in the fit."""


@dataclass(frozen=True, eq=False)
class RigidGroups:
    """K components of N parts in all, as arrays; parts are sorted by component.

    Attributes:
        part_ids: (N,) part ids.
        starts: (K,) index of each component's first part.
        group: (N,) component index of each part.
        masses: (N,) [kg].
        local_coms: (N, 3) centres of mass in the part frames [m].
        local_inertias: (N, 3, 3) inertias about them, part axes [kg m^2].
        component_T_parts: (N, 4, 4) exact poses in the component frames [m].
        com: (K, 3) centres of mass of the components, component frames [m].
        spread: (K,) weight of the orientations in the pose fit: mass times half the squared
            characteristic length (reference A4.5) over the total mass [m^2].
    """

    part_ids: NDArray[np.int64]
    starts: NDArray[np.intp]
    group: NDArray[np.intp]
    masses: Array
    local_coms: Array
    local_inertias: Array
    component_T_parts: Array
    com: Array
    spread: Array

    @classmethod
    def of(cls, layouts: Sequence[ComponentLayout]) -> RigidGroups:
        """Collects components in the given order."""
        counts = np.array([len(layout.part_ids) for layout in layouts], dtype=np.intp)
        starts = np.cumsum(counts) - counts
        group = np.repeat(np.arange(len(layouts)), counts)
        shapes = [shape for layout in layouts for shape in layout.shapes]
        masses = np.array([s.mass for s in shapes])
        local_coms = np.array([s.com for s in shapes]).reshape(-1, 3)
        poses = joined([layout.component_T_parts for layout in layouts], (4, 4))
        coms = transform_points(poses, local_coms)
        total = _sum(masses, starts)
        com = _sum(masses[:, None] * coms, starts) / total[:, None]
        square = _sum(masses * np.square(coms - com[group]).sum(axis=1), starts) / total
        return cls(
            part_ids=joined([layout.part_ids for layout in layouts], dtype=np.int64),
            starts=starts,
            group=group,
            masses=masses,
            local_coms=local_coms,
            local_inertias=np.array([s.inertia for s in shapes]).reshape(-1, 3, 3),
            component_T_parts=poses,
            com=com,
            spread=0.5 * np.maximum(square, _LEAST_LENGTH**2),
        )

    def __len__(self) -> int:
        return len(self.starts)

    def part_motion(self, world_T_component: Array, twist: Array) -> tuple[Array, Array]:
        """Motion of all parts when the components move rigidly.

        Args:
            world_T_component: (K, 4, 4) poses [m].
            twist: (K, 6) velocities of the components' COMs and angular velocities, world.

        Returns:
            (N, 4, 4) world_T_part [m] and (N, 6) twists of the parts' COMs, world [m/s, rad/s].
        """
        poses = world_T_component[self.group] @ self.component_T_parts
        coms = transform_points(poses, self.local_coms)
        centre = transform_points(world_T_component, self.com)[self.group]
        twists = twist[self.group]
        linear = twists[:, :3] + cross(twists[:, 3:], coms - centre)
        return poses, np.concatenate([linear, twists[:, 3:]], axis=1)

    def all_parts(self, parts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(K,) whether something holds, (N,), for all parts of each component."""
        return np.logical_and.reduceat(parts, self.starts) if len(self) else parts

    def mean_twists(self, before: Array, after: Array, dt: float) -> Array:
        """(K, 6) mean velocities of the components' COMs and mean angular velocities, world.

        Args:
            before: (K, 4, 4) world_T_component [m].
            after: (K, 4, 4) the same a time ``dt`` later.
            dt: The time [s].
        """
        way = transform_points(after, self.com) - transform_points(before, self.com)
        turned = after[:, :3, :3] @ np.swapaxes(before[:, :3, :3], 1, 2)
        return np.concatenate([way, Rotation.from_matrix(turned).as_rotvec()], axis=1) / dt

    def fit(self, world_T_parts: Array, twists: Array) -> tuple[Array, Array]:
        """The rigid motion of each component that fits the motions of its parts.

        Args:
            world_T_parts: (N, 4, 4) poses [m].
            twists: (N, 6) velocities of the parts' COMs and angular velocities, world.

        Returns:
            (K, 4, 4) world_T_component [m] and (K, 6) twists (COM, world). Linear and angular
            momentum of the twists are those of the parts.
        """
        if not len(self._several):
            return self._single(world_T_parts, twists)
        if len(self._several) == len(self):
            return self._fit(world_T_parts, twists)
        poses, found = self._single(world_T_parts[self.starts], twists[self.starts])
        several, rows, rest = self._several, self._several_rows, self._rest
        poses[several], found[several] = rest._fit(world_T_parts[rows], twists[rows])
        return poses, found

    def _single(self, world_T_parts: Array, twists: Array) -> tuple[Array, Array]:
        """`fit` of components of one part, exact; of larger ones, the motion of the first part."""
        return world_T_parts @ self._parts_T_component[self.starts], twists.copy()

    def _fit(self, world_T_parts: Array, twists: Array) -> tuple[Array, Array]:
        weight, exact, starts, group = self._weight, self._exact, self.starts, self.group
        axes = world_T_parts[:, :3, :3]
        coms = transform_points(world_T_parts, self.local_coms)
        centre = _sum(weight[:, None] * coms, starts)
        turned = axes @ self._parts_T_component[:, :3, :3]
        covariance = (coms - centre[group])[:, :, None] * self._weighted_exact[:, None, :]
        covariance += self._weighted_spread[:, None, None] * turned
        rotation = _nearest_rotation(_sum(covariance, starts))
        poses = np.zeros((len(self), 4, 4))
        poses[:, :3, :3] = rotation
        poses[:, :3, 3] = centre - (rotation @ self.com[:, :, None])[..., 0]
        poses[:, 3, 3] = 1.0

        momentum = self.masses[:, None] * twists[:, :3]
        linear = _sum(momentum, starts) / self._total[:, None]
        arms = (rotation[group] @ exact[:, :, None])[..., 0]
        local = (self.local_inertias @ (twists[:, None, 3:] @ axes).swapaxes(1, 2))[..., 0]
        spin = cross(arms, momentum) + (axes @ local[:, :, None])[..., 0]
        # The arms are those of the rigid body, so its inertia only turns with it.
        inertia = rotation @ self._inertia @ np.swapaxes(rotation, 1, 2)
        angular = np.linalg.solve(inertia, _sum(spin, starts)[..., None])[..., 0]
        return poses, np.concatenate([linear, angular], axis=1)

    @cached_property
    def _total(self) -> Array:
        """(K,) masses of the components [kg]."""
        return _sum(self.masses, self.starts)

    @cached_property
    def _weight(self) -> Array:
        """(N,) share of each part in its component's mass."""
        return self.masses / self._total[self.group]

    @cached_property
    def _exact(self) -> Array:
        """(N, 3) from the component's COM to the part's, component axes [m]."""
        return transform_points(self.component_T_parts, self.local_coms) - self.com[self.group]

    @cached_property
    def _weighted_exact(self) -> Array:
        return self._weight[:, None] * self._exact

    @cached_property
    def _weighted_spread(self) -> Array:
        return self._weight * self.spread[self.group]

    @cached_property
    def _parts_T_component(self) -> Array:
        return inverse(self.component_T_parts)

    @cached_property
    def _inertia(self) -> Array:
        """(K, 3, 3) inertia about the COM, component axes [kg m^2]."""
        axes = self.component_T_parts[:, :3, :3]
        own = axes @ self.local_inertias @ np.swapaxes(axes, 1, 2)
        square = np.square(self._exact).sum(axis=1)[:, None, None] * np.eye(3)
        square -= self._exact[:, :, None] * self._exact[:, None, :]
        return _sum(own + self.masses[:, None, None] * square, self.starts)

    @cached_property
    def _several(self) -> NDArray[np.intp]:
        """Components of more than one part."""
        return np.flatnonzero(np.bincount(self.group, minlength=len(self)) > 1)

    @cached_property
    def _several_rows(self) -> NDArray[np.intp]:
        """Their parts."""
        return np.flatnonzero(np.isin(self.group, self._several))

    @cached_property
    def _rest(self) -> RigidGroups:
        """Them alone."""
        several, rows = self._several, self._several_rows
        counts = np.bincount(self.group, minlength=len(self))[several]
        return RigidGroups(
            part_ids=self.part_ids[rows],
            starts=np.cumsum(counts) - counts,
            group=np.repeat(np.arange(len(several)), counts),
            masses=self.masses[rows],
            local_coms=self.local_coms[rows],
            local_inertias=self.local_inertias[rows],
            component_T_parts=self.component_T_parts[rows],
            com=self.com[several],
            spread=self.spread[several],
        )


def _nearest_rotation(matrices: Array) -> Array:
    """(K, 3, 3) rotations R that maximise trace(R^T M)."""
    u, _, vt = np.linalg.svd(matrices)
    u[:, :, 2] *= np.sign(np.linalg.det(u @ vt))[:, None]
    return u @ vt


def _sum(values: Array, starts: NDArray[np.intp]) -> Array:
    if not len(starts):
        return np.zeros((0, *values.shape[1:]))
    return np.add.reduceat(values, starts, axis=0)
