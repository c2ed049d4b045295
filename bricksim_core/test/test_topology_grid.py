# SPDX-License-Identifier: Apache-2.0
"""Grid poses are a group that the metric poses represent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import inverse, transform_points
from bricksim_core.topology.grid import GridPose, part_pose, part_poses, rotate

coordinates = st.integers(-(10**6), 10**6)
poses = st.builds(GridPose, coordinates, coordinates, coordinates, st.integers(0, 3))
shapes = st.builds(BrickShape, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))


def metric(pose: GridPose) -> np.ndarray:
    """The 4x4 matrix of a grid pose, written out from its definition."""
    c, s = [(1, 0), (0, 1), (-1, 0), (0, -1)][pose.yaw]
    return np.array(
        [[c, -s, 0, pose.x * 0.008], [s, c, 0, pose.y * 0.008], [0, 0, 1, pose.z * 0.0032],
         [0, 0, 0, 1.0]]
    )  # fmt: skip


@given(poses, poses, poses)
def test_group(a, b, c):
    assert (a @ b) @ c == a @ (b @ c)
    assert a @ GridPose() == GridPose() @ a == a
    assert a @ a.inverse() == a.inverse() @ a == GridPose()


@given(poses, poses)
def test_represents_rigid_transforms(a, b):
    assert np.allclose(metric(a @ b), metric(a) @ metric(b), atol=1e-6)
    assert np.allclose(metric(a.inverse()), inverse(metric(a)), atol=1e-6)


@pytest.mark.parametrize(
    ("yaw", "expected"), [(0, (3, 5)), (1, (-5, 3)), (2, (-3, -5)), (3, (5, -3))]
)
def test_rotate(yaw, expected):
    """The table of the topology schema: k=1 (x,y)->(-y,x), 2 -> (-x,-y), 3 -> (y,-x)."""
    assert rotate(yaw, 3, 5) == expected
    assert rotate(yaw + 4, 3, 5) == rotate(yaw - 4, 3, 5) == expected


@given(poses, shapes)
def test_part_frame_is_the_centre_of_the_bottom(grid, shape):
    corner = [-shape.length * 0.004, -shape.width * 0.004, 0]
    pose = part_pose(grid, shape)
    assert np.allclose(transform_points(pose, corner), metric(grid)[:3, 3], atol=1e-6)
    assert np.allclose(pose[:3, :3], metric(grid)[:3, :3])


@given(st.lists(st.tuples(poses, shapes), min_size=1, max_size=5))
def test_batch_equals_single(items):
    grids = np.array([g for g, _ in items])
    sizes = np.array([(s.length, s.width) for _, s in items])
    batch = part_poses(grids, sizes)
    assert all(np.array_equal(p, part_pose(g, s)) for p, (g, s) in zip(batch, items, strict=True))


@given(poses, shapes)
def test_footprint_encloses_the_turned_corners(grid, shape):
    corners = np.array([[0, 0], [shape.length, 0], [0, shape.width], [shape.length, shape.width]])
    points = transform_points(metric(grid), np.c_[corners * 0.008, np.zeros(4)])[:, :2] / 0.008
    x0, y0, x1, y1 = grid.footprint(shape)
    assert np.allclose(points.min(axis=0), (x0, y0), atol=1e-6)
    assert np.allclose(points.max(axis=0), (x1, y1), atol=1e-6)
