# SPDX-License-Identifier: Apache-2.0
"""What a brick is: dimensions, mass, inertia, stud and hole interfaces, colour."""

from bricksim_core.parts.brick import (
    BRICK_HEIGHT,
    HOLE_INTERFACE,
    PLATE_HEIGHT,
    PLATES_PER_BRICK,
    SIDE_CLEARANCE,
    STUD_HEIGHT,
    STUD_INTERFACE,
    STUD_PITCH,
    STUD_RADIUS,
    BrickShape,
    Color,
    Part,
)

__all__ = [
    "BRICK_HEIGHT",
    "HOLE_INTERFACE",
    "PLATES_PER_BRICK",
    "PLATE_HEIGHT",
    "SIDE_CLEARANCE",
    "STUD_HEIGHT",
    "STUD_INTERFACE",
    "STUD_PITCH",
    "STUD_RADIUS",
    "BrickShape",
    "Color",
    "Part",
]
