# SPDX-License-Identifier: Apache-2.0
"""Where the picture is taken from, and where a point of the world appears in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.spatial import Array, transform_points

DEFAULT_ELEVATION = math.radians(22.0)
"""How far the camera looks down [rad]."""
DEFAULT_FIELD_OF_VIEW = math.radians(26.0)
"""Vertical opening of the camera [rad]; small, so that upright edges stay nearly parallel."""
THREE_QUARTER = math.radians(35.0)
"""Angle between the view and the normal of the structure's broad side [rad]."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera without roll.

    Attributes:
        target: Point in the middle of the picture [m], world.
        distance: From the camera to the target [m].
        azimuth: Direction in which the camera looks, about z from x [rad].
        elevation: How far it looks down [rad], under a quarter turn either way.
        field_of_view: Vertical opening [rad].
    """

    target: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float = DEFAULT_ELEVATION
    field_of_view: float = DEFAULT_FIELD_OF_VIEW

    @property
    def axes(self) -> Array:
        """(3, 3) rows: right, up and forward unit vectors, world."""
        ca, sa = math.cos(self.azimuth), math.sin(self.azimuth)
        ce, se = math.cos(self.elevation), math.sin(self.elevation)
        return np.array([(sa, -ca, 0.0), (ca * se, sa * se, ce), (ca * ce, sa * ce, -se)])

    @property
    def position(self) -> Array:
        """(3,) where the camera stands [m], world."""
        return np.array(self.target) - self.distance * self.axes[2]

    def pixel(self, height: int) -> float:
        """Width of a pixel at the target [m] in a picture of this height [pixels]."""
        return 2.0 * self.distance * math.tan(0.5 * self.field_of_view) / height

    def project(self, points: ArrayLike, size: tuple[int, int]) -> Array:
        """Where points appear.

        Args:
            points: (..., 3) [m], world.
            size: Width and height of the picture [pixels].

        Returns:
            (..., 3) column and row in pixels from the upper left corner, and depth along the view
            [m]. Points behind the camera have a negative depth and meaningless pixels.
        """
        width, height = size
        local = (np.asarray(points, dtype=float) - self.position) @ self.axes.T
        depth = local[..., 2]
        scale = 0.5 * height / math.tan(0.5 * self.field_of_view) / depth
        column = 0.5 * width + local[..., 0] * scale
        row = 0.5 * height - local[..., 1] * scale
        return np.stack([column, row, depth], axis=-1)


def corner_points(shapes: Sequence[BrickShape], world_T_part: Array) -> Array:
    """(N, 8, 3) corners of the parts' boxes, studs included [m], world."""
    sizes = np.array([s.size for s in shapes], dtype=float).reshape(-1, 3)
    low = np.concatenate([-0.5 * sizes[:, :2], np.zeros((len(sizes), 1))], axis=1)
    high = low + sizes
    high[:, 2] += np.array([STUD_HEIGHT * s.has_studs for s in shapes])
    choice = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=bool)
    corners = np.where(choice, high[:, None, :], low[:, None, :])
    return transform_points(world_T_part[:, None], corners)


def fit_camera(
    points: ArrayLike,
    size: tuple[int, int],
    *,
    azimuth: float | None = None,
    elevation: float = DEFAULT_ELEVATION,
    field_of_view: float = DEFAULT_FIELD_OF_VIEW,
    margins: tuple[float, float, float, float] = (0.06, 0.06, 0.06, 0.06),
) -> Camera:
    """The nearest camera that sees all points.

    Args:
        points: (..., 3) points that must be in the picture [m], world; at least one.
        size: Width and height of the picture [pixels].
        azimuth: Direction in which to look, about z from x [rad]; None shows the broad side at
            three quarters.
        elevation: How far to look down [rad].
        field_of_view: Vertical opening [rad].
        margins: Free borders left, right, top, bottom, as fractions of the width and height.

    Returns:
        The camera.
    """
    points = np.asarray(points, dtype=float).reshape(-1, 3)
    if azimuth is None:
        extent = np.ptp(points, axis=0)
        azimuth = THREE_QUARTER + (math.pi / 2 if extent[0] >= extent[1] else math.pi)
    axes = Camera((0.0, 0.0, 0.0), 1.0, azimuth, elevation).axes
    right, up, forward = axes @ points.T
    # Slopes of the four planes that bound the free part of the picture. A point is inside when
    # (side - eye_side) <= slope (forward - eye_forward), for each side.
    half_height = math.tan(0.5 * field_of_view)
    half_width = half_height * size[0] / size[1]
    left, rightmost, top, bottom = (1.0 - 2.0 * m for m in margins)
    bounds = []
    for side, half, low, high in (
        (right, half_width, left, rightmost),
        (up, half_height, bottom, top),
    ):
        above = np.max(side - half * high * forward)
        below = np.max(-side - half * low * forward)
        bounds.append((above, below, half * high, half * low))
    eye_forward = min(-(above + below) / (high + low) for above, below, high, low in bounds)
    eye_forward = min(eye_forward, forward.min() - 1e-3)
    eye_right, eye_up = (
        0.5 * ((above + high * eye_forward) - (below + low * eye_forward))
        for above, below, high, low in bounds
    )
    distance = float(np.mean([forward.min(), forward.max()]) - eye_forward)
    target = np.array([eye_right, eye_up, eye_forward + distance]) @ axes
    return Camera(
        (float(target[0]), float(target[1]), float(target[2])),
        distance,
        azimuth,
        elevation,
        field_of_view,
    )
