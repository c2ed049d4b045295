# SPDX-License-Identifier: Apache-2.0
"""The visual surface of a part: closed where it must be, of the right size, with all its studs."""

from __future__ import annotations

import numpy as np
import pytest

from bricksim_core.parts import STUD_HEIGHT, STUD_PITCH, STUD_RADIUS, BrickShape
from bricksim_core.parts.mesh import MOST_STUDS, VISUAL_GAP, brick_mesh, brick_surface

SHAPES = [BrickShape(4, 2), BrickShape(1, 6), BrickShape(1, 1, 1), BrickShape(2, 2, 1, False)]


def triangles(surface):
    return surface.vertices[surface.faces]


def areas_and_normals(surface):
    a, b, c = np.moveaxis(triangles(surface), 1, 0)
    cross = np.cross(b - a, c - a)
    area = 0.5 * np.linalg.norm(cross, axis=1)
    return area, cross / (2.0 * area[:, None])


@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_triangles_face_along_their_unit_normals(shape, hollow):
    surface = brick_surface(shape, hollow=hollow)
    assert np.allclose(np.linalg.norm(surface.normals, axis=1), 1.0)
    area, normals = areas_and_normals(surface)
    assert (area > 0.0).all()
    agreement = np.einsum("fi,fki->fk", normals, surface.normals[surface.faces])
    assert (agreement > 0.0).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bounds_are_the_nominal_size_less_the_gap(shape):
    vertices = brick_surface(shape).vertices
    length, width, height = shape.size
    top = height - VISUAL_GAP + (STUD_HEIGHT if shape.has_studs else 0.0)
    expected = [length / 2 - VISUAL_GAP, width / 2 - VISUAL_GAP, top]
    assert vertices.max(axis=0) == pytest.approx(expected)
    assert vertices[:, :2].min(axis=0) == pytest.approx([-expected[0], -expected[1]])
    assert vertices[:, 2].min() == 0.0


def test_studs_stand_on_the_grid_and_have_the_right_wall_area():
    shape, segments = BrickShape(3, 2), 64
    surface = brick_surface(shape, segments=segments)
    area, normals = areas_and_normals(surface)
    centres = triangles(surface).mean(axis=1)
    body_top = shape.size[2] - VISUAL_GAP
    wall = (centres[:, 2] > body_top) & (np.abs(normals[:, 2]) < 1e-9)
    # The upright part of each stud's wall: circumference times height less the rounded edge.
    height = triangles(surface)[wall][..., 2].max() - body_top
    circumference = 2.0 * segments * STUD_RADIUS * np.sin(np.pi / segments)
    assert area[wall].sum() == pytest.approx(6 * circumference * height)
    assert 0.7 * STUD_HEIGHT < height < STUD_HEIGHT
    cells = np.floor(centres[wall, :2] / STUD_PITCH + [1.5, 1.0]).astype(int)
    assert {tuple(c) for c in cells.tolist()} == {(i, j) for i in range(3) for j in range(2)}
    offset = centres[wall, :2] - (cells + 0.5 - [1.5, 1.0]) * STUD_PITCH
    assert np.linalg.norm(offset, axis=1) == pytest.approx(STUD_RADIUS, rel=0.01)


def test_closed_body_encloses_its_volume():
    shape = BrickShape(2, 2, 3, False)
    a, b, c = np.moveaxis(triangles(brick_surface(shape)), 1, 0)
    volume = np.einsum("fi,fi->f", a, np.cross(b, c)).sum() / 6.0
    length, width, height = np.array(shape.size) - [2 * VISUAL_GAP, 2 * VISUAL_GAP, VISUAL_GAP]
    # The rounded edges take less than 1 %.
    assert 0.99 * length * width * height < volume < length * width * height


def lowest_hit(surface, x, y):
    """Height of the first triangle above (x, y), coming from below."""
    corners = triangles(surface)
    a, b, c = np.moveaxis(corners[..., :2], 1, 0)
    point = np.array([x, y])

    def side(p, q):
        return (q[:, 0] - p[:, 0]) * (point[1] - p[:, 1]) - (q[:, 1] - p[:, 1]) * (
            point[0] - p[:, 0]
        )

    sides = np.stack([side(a, b), side(b, c), side(c, a)])
    inside = (sides > 0).all(axis=0) | (sides < 0).all(axis=0)
    return corners[inside][..., 2].mean(axis=1).min()


def test_underside_is_hollow_with_a_tube_between_four_studs():
    shape = BrickShape(2, 2)
    closed, hollow = brick_surface(shape), brick_surface(shape, hollow=True)
    under_a_stud, tube_wall = (0.25e-3 + STUD_PITCH / 2, 0.1e-3 + STUD_PITCH / 2), (2.8e-3, 0.1e-3)
    assert lowest_hit(closed, *under_a_stud) == 0.0
    assert lowest_hit(hollow, *under_a_stud) > 0.5 * shape.size[2]
    assert lowest_hit(hollow, *tube_wall) == 0.0
    assert lowest_hit(hollow, 0.3e-3, 0.2e-3) > 0.5 * shape.size[2]  # inside the tube


def test_more_segments_make_rounder_studs_and_very_large_plates_are_flat():
    shape = BrickShape(2, 4)
    assert len(brick_mesh(shape, segments=16)[1]) > len(brick_mesh(shape, segments=8)[1])
    huge = BrickShape(MOST_STUDS // 64 + 1, 64, 1)
    assert brick_mesh(huge)[0][:, 2].max() < huge.size[2]
