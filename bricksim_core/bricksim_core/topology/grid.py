# SPDX-License-Identifier: Apache-2.0
"""Exact integer poses on the stud grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.spatial import Array

IntArray = NDArray[np.int64]

GRID_CELL = np.array([STUD_PITCH, STUD_PITCH, PLATE_HEIGHT])
"""(3,) size of a cell [m]."""

_QUARTER_TURNS = (((1, 0), (0, 1)), ((0, -1), (1, 0)), ((-1, 0), (0, -1)), ((0, 1), (-1, 0)))
"""Rotation matrices about z by 0, 90, 180 and 270 degrees."""
_TURNS = np.array(_QUARTER_TURNS, dtype=np.int64)


def rotate(yaw: int, x: int, y: int) -> tuple[int, int]:
    """(x, y) turned about z by ``yaw`` quarter turns."""
    (a, b), (c, d) = _QUARTER_TURNS[yaw % 4]
    return a * x + b * y, c * x + d * y


def quarter_turn(yaw: int) -> Array:
    """(3, 3) rotation about z by ``yaw`` quarter turns."""
    rotation = np.eye(3)
    rotation[:2, :2] = _QUARTER_TURNS[yaw % 4]
    return rotation


def nearest_yaw(rotation: Array) -> int:
    """Quarter turns about z [0-3] nearest to a (3, 3) rotation."""
    return round(np.arctan2(rotation[1, 0], rotation[0, 0]) / (0.5 * np.pi)) % 4


class GridPose(NamedTuple):
    """Pose of one grid frame in another: x, y in studs, z in plates, yaw in quarter turns about z.

    For a part it is the pose of its *hole interface frame* (least corner of the bottom face in the
    part's own axes) in the component's grid frame.
    """

    x: int = 0
    y: int = 0
    z: int = 0
    yaw: int = 0

    def __matmul__(self, other: GridPose) -> GridPose:  # a_T_b @ b_T_c = a_T_c
        dx, dy = rotate(self.yaw, other.x, other.y)
        return GridPose(self.x + dx, self.y + dy, self.z + other.z, (self.yaw + other.yaw) % 4)

    def inverse(self) -> GridPose:
        """b_T_a of a_T_b."""
        x, y = rotate(-self.yaw, -self.x, -self.y)
        return GridPose(x, y, -self.z, -self.yaw % 4)

    def footprint(self, shape: BrickShape) -> tuple[int, int, int, int]:
        """Occupied cells (x0, y0, x1, y1), half open, of a part of ``shape`` at this pose."""
        dx, dy = rotate(self.yaw, shape.length, shape.width)
        x0, x1 = sorted((self.x, self.x + dx))
        y0, y1 = sorted((self.y, self.y + dy))
        return x0, y0, x1, y1


def part_pose(grid: GridPose, shape: BrickShape) -> Array:
    """(4, 4) pose [m] of the part frame (centre of the bottom face) in the grid's frame."""
    return part_poses(np.array([grid]), np.array([[shape.length, shape.width]]))[0]


def frame_pose(grid: GridPose) -> Array:
    """(4, 4) pose [m] of a grid frame in its parent."""
    return part_poses(np.array([grid]), np.zeros((1, 2), dtype=np.int64))[0]


def part_poses(grids: np.ndarray, footprints: np.ndarray) -> Array:
    """Metric poses of many parts.

    Args:
        grids: (N, 4) integer grid poses (x, y, z, yaw).
        footprints: (N, 2) lengths and widths in studs.

    Returns:
        (N, 4, 4) component_T_part [m].
    """
    turns = _TURNS[grids[:, 3] % 4].astype(float)
    poses = np.zeros((len(grids), 4, 4))
    poses[:, :2, :2] = turns
    poses[:, 2, 2] = poses[:, 3, 3] = 1.0
    centre = np.einsum("nij,nj->ni", turns, 0.5 * footprints)
    poses[:, :2, 3] = (grids[:, :2] + centre) * STUD_PITCH
    poses[:, 2, 3] = grids[:, 2] * PLATE_HEIGHT
    return poses


def compose(a_T_b: IntArray, b_T_c: IntArray) -> IntArray:
    """(N, 4) products of (N, 4) grid poses, as `GridPose` multiplies them."""
    product = a_T_b + b_T_c
    product[:, :2] = a_T_b[:, :2] + _turned(a_T_b[:, 3], b_T_c[:, :2])
    product[:, 3] %= 4
    return product


def relative(a_T_b: IntArray, a_T_c: IntArray) -> IntArray:
    """(N, 4) grid poses b_T_c of (N, 4) poses in one frame."""
    difference = a_T_c - a_T_b
    difference[:, :2] = _turned(-a_T_b[:, 3], difference[:, :2])
    difference[:, 3] %= 4
    return difference


def grid_boxes(grids: IntArray, dimensions: IntArray) -> IntArray:
    """(N, 2, 3) least and greatest corners [studs, studs, plates] of parts.

    Args:
        grids: (N, 4) poses of their hole interface frames.
        dimensions: (N, 3) length, width [studs] and height [plates].
    """
    across = _turned(grids[:, 3], dimensions[:, :2])
    boxes = np.empty((len(grids), 2, 3), dtype=np.int64)
    # A turn carries the origin to another corner of the footprint.
    np.add(grids[:, :2], np.minimum(across, 0), out=boxes[:, 0, :2])
    np.add(grids[:, :2], np.maximum(across, 0), out=boxes[:, 1, :2])
    boxes[:, 0, 2] = grids[:, 2]
    boxes[:, 1, 2] = grids[:, 2] + dimensions[:, 2]
    return boxes


def _turned(yaws: IntArray, vectors: IntArray) -> IntArray:
    """(N, 2) vectors turned about z by (N,) quarter turns."""
    return (_TURNS[yaws % 4] @ vectors[:, :, None])[:, :, 0]
