# SPDX-License-Identifier: Apache-2.0
"""Rigid transforms, twists and inertias on plain numpy arrays.

Poses are homogeneous 4x4 matrices named ``parent_T_child``; quaternions are xyzw (ROS, REP 103).
Every function accepts leading batch dimensions. scipy's rotations are imported where they are used:
that takes longer than reading a structure file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[np.float64]


def transform(position: ArrayLike, quaternion: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> Array:
    """Homogeneous transforms from positions and unit quaternions.

    Args:
        position: (..., 3) translation [m].
        quaternion: (..., 4) rotation, xyzw; normalised here.

    Returns:
        (..., 4, 4) ``parent_T_child``.

    Raises:
        ValueError: A quaternion is zero.
    """
    position = np.asarray(position, dtype=float)
    quaternion = np.asarray(quaternion, dtype=float)
    norm = np.sqrt(np.einsum("...i,...i->...", quaternion, quaternion))[..., None]
    if np.any(norm == 0.0):
        raise ValueError("quaternion is zero, expected one of length 1")
    x, y, z, w = np.moveaxis(quaternion / norm, -1, 0)
    shape = np.broadcast_shapes(position.shape[:-1], quaternion.shape[:-1])
    result = np.zeros((*shape, 4, 4))
    result[..., 0, 0] = 1.0 - 2.0 * (y * y + z * z)
    result[..., 0, 1] = 2.0 * (x * y - z * w)
    result[..., 0, 2] = 2.0 * (x * z + y * w)
    result[..., 1, 0] = 2.0 * (x * y + z * w)
    result[..., 1, 1] = 1.0 - 2.0 * (x * x + z * z)
    result[..., 1, 2] = 2.0 * (y * z - x * w)
    result[..., 2, 0] = 2.0 * (x * z - y * w)
    result[..., 2, 1] = 2.0 * (y * z + x * w)
    result[..., 2, 2] = 1.0 - 2.0 * (x * x + y * y)
    result[..., :3, 3] = position
    result[..., 3, 3] = 1.0
    return result


def position_of(pose: Array) -> Array:
    """(..., 3) translation [m] of (..., 4, 4) transforms."""
    return pose[..., :3, 3]


def quaternion_of(pose: Array) -> Array:
    """(..., 4) rotation, xyzw with w >= 0, of (..., 4, 4) transforms."""
    from scipy.spatial.transform import Rotation

    rotations = pose[..., :3, :3]
    quaternions = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_quat(canonical=True)
    return quaternions.reshape((*rotations.shape[:-2], 4))


def inverse(pose: Array) -> Array:
    """(..., 4, 4) inverses of rigid transforms."""
    rotation_t = np.swapaxes(pose[..., :3, :3], -1, -2)
    result = np.zeros_like(pose)
    result[..., :3, :3] = rotation_t
    result[..., :3, 3] = -np.einsum("...ij,...j->...i", rotation_t, pose[..., :3, 3])
    result[..., 3, 3] = 1.0
    return result


def transform_points(pose: Array, points: ArrayLike) -> Array:
    """Points [m] expressed in the parent frame: ``parent_T_child`` applied to (..., 3) points."""
    points = np.asarray(points, dtype=float)
    return np.einsum("...ij,...j->...i", pose[..., :3, :3], points) + pose[..., :3, 3]


def rotation_angle(rotation: Array) -> Array:
    """(...,) angle [rad] in [0, pi] of (..., 3, 3) rotation matrices."""
    from scipy.spatial.transform import Rotation

    matrices = rotation.reshape(-1, 3, 3)
    return Rotation.from_matrix(matrices).magnitude().reshape(rotation.shape[:-2])


def joined(
    arrays: Iterable[ArrayLike], shape: tuple[int, ...] = (), dtype: DTypeLike = np.float64
) -> NDArray:
    """(N, *shape) rows of some arrays, one after the other; there may be no array at all."""
    return np.concatenate([np.zeros((0, *shape), dtype=dtype), *arrays])


def cross(a: Array, b: Array) -> Array:
    """(..., 3) cross products; `numpy.cross` spends most of its time on the axes."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    first = y * w - z * v
    product = np.empty((*first.shape, 3), dtype=first.dtype)
    product[..., 0] = first
    product[..., 1] = z * u - x * w
    product[..., 2] = x * v - y * u
    return product


def point_velocity(twist: Array, offset: Array) -> Array:
    """Velocity [m/s] of the point at ``offset`` [m] from the point that ``twist`` refers to."""
    return twist[..., :3] + cross(twist[..., 3:], offset)
