# SPDX-License-Identifier: Apache-2.0
"""The rigid motion of a component from the motions of its bricks.

Where every brick is its own body, welds hold a component only nearly rigid. What the simulator is
told is the rigid motion that fits best: the pose by a weighted Procrustes fit, the twist with the
linear and angular momentum of the bricks, so that nothing is lost or gained by fitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.spatial import Array, transform_points
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
        poses = _stack([layout.component_T_parts for layout in layouts], (4, 4))
        coms = transform_points(poses, local_coms)
        total = _sum(masses, starts)
        com = _sum(masses[:, None] * coms, starts) / total[:, None]
        square = _sum(masses * np.square(coms - com[group]).sum(axis=1), starts) / total
        return cls(
            part_ids=_stack([layout.part_ids for layout in layouts], ()).astype(np.int64),
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
        linear = twists[:, :3] + np.cross(twists[:, 3:], coms - centre)
        return poses, np.concatenate([linear, twists[:, 3:]], axis=1)

    def fit(self, world_T_parts: Array, twists: Array) -> tuple[Array, Array]:
        """The rigid motion of each component that fits the motions of its parts.

        Args:
            world_T_parts: (N, 4, 4) poses [m].
            twists: (N, 6) velocities of the parts' COMs and angular velocities, world.

        Returns:
            (K, 4, 4) world_T_component [m] and (K, 6) twists (COM, world). Linear and angular
            momentum of the twists are those of the parts.
        """
        weight = self.masses / _sum(self.masses, self.starts)[self.group]
        coms = transform_points(world_T_parts, self.local_coms)
        centre = _sum(weight[:, None] * coms, self.starts)
        exact = transform_points(self.component_T_parts, self.local_coms) - self.com[self.group]
        actual = coms - centre[self.group]
        turned = world_T_parts[:, :3, :3] @ np.swapaxes(self.component_T_parts[:, :3, :3], 1, 2)
        covariance = actual[:, :, None] * exact[:, None, :]
        covariance += self.spread[self.group][:, None, None] * turned
        rotation = _nearest_rotation(_sum(weight[:, None, None] * covariance, self.starts))
        poses = np.zeros((len(self), 4, 4))
        poses[:, :3, :3] = rotation
        poses[:, :3, 3] = centre - np.einsum("kij,kj->ki", rotation, self.com)
        poses[:, 3, 3] = 1.0

        linear = _sum(weight[:, None] * twists[:, :3], self.starts)
        arms = np.einsum("nij,nj->ni", rotation[self.group], exact)
        axes = world_T_parts[:, :3, :3]
        inertias = axes @ self.local_inertias @ np.swapaxes(axes, 1, 2)
        spin = np.cross(arms, self.masses[:, None] * twists[:, :3])
        spin += np.einsum("nij,nj->ni", inertias, twists[:, 3:])
        steiner = np.square(arms).sum(axis=1)[:, None, None] * np.eye(3)
        steiner -= arms[:, :, None] * arms[:, None, :]
        inertia = _sum(inertias + self.masses[:, None, None] * steiner, self.starts)
        angular = np.linalg.solve(inertia, _sum(spin, self.starts)[..., None])[..., 0]
        return poses, np.concatenate([linear, angular], axis=1)


def _nearest_rotation(matrices: Array) -> Array:
    """(K, 3, 3) rotations R that maximise trace(R^T M)."""
    u, _, vt = np.linalg.svd(matrices)
    u[:, :, 2] *= np.sign(np.linalg.det(u @ vt))[:, None]
    return u @ vt


def _sum(values: Array, starts: NDArray[np.intp]) -> Array:
    if not len(starts):
        return np.zeros((0, *values.shape[1:]))
    return np.add.reduceat(values, starts, axis=0)


def _stack(arrays: Sequence[NDArray], shape: tuple[int, ...]) -> NDArray:
    return np.concatenate([np.zeros((0, *shape)), *arrays])
