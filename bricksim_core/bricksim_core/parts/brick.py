# SPDX-License-Identifier: Apache-2.0
"""Rectangular bricks, plates, tiles and base plates.

Frames. The *part frame* has its origin at the centre of the bottom face, z up, x along the length,
y along the width. The *hole interface frame* (bottom) and the *stud interface frame* (top) have the
axes of the part frame and their origin at the corner of least x and y, so that stud (i, j) sits at
((i + 1/2) pitch, (j + 1/2) pitch, 0) of its interface.

Constants are those of BrickSim (arXiv 2603.16853) and StableLego's mass table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bricksim_core.errors import PartError
from bricksim_core.spatial import Array
from bricksim_core.values import as_number

STUD_PITCH = 0.008
"""Distance of neighbouring studs [m]."""
PLATE_HEIGHT = 0.0032
"""Height of one plate [m]; the unit of all heights."""
PLATES_PER_BRICK = 3
BRICK_HEIGHT = PLATES_PER_BRICK * PLATE_HEIGHT
"""Height of one brick [m]."""
STUD_RADIUS = 0.0024
"""Radius of a stud [m]."""
STUD_HEIGHT = 0.0017
"""Height of a stud above the top face [m]."""
SIDE_CLEARANCE = 0.0001
"""Gap left at each side face of a collider [m], so that a brick fits beside its neighbours."""

HOLE_INTERFACE = 0
"""Id of the hole interface (bottom)."""
STUD_INTERFACE = 1
"""Id of the stud interface (top)."""

MAX_STUDS_PER_SIDE = 1024
MAX_PLATES = 1024

Color = tuple[int, int, int]
"""Red, green, blue, each 0-255 (sRGB)."""

_MEASURED_BRICK_MASS = {
    (1, 1): 0.00043,
    (2, 1): 0.00081,
    (4, 1): 0.00157,
    (6, 1): 0.00228,
    (8, 1): 0.00303,
    (2, 2): 0.00115,
    (4, 2): 0.00216,
    (6, 2): 0.00323,
}
"""Mass [kg] of bricks (height 3 plates) by (long side, short side); StableLego's library."""


def _estimated_mass(length: int, width: int, height: int) -> float:
    """Mass [kg] of a part without a measured mass: BrickSim's fit, by bricks and plates."""
    studs, sides = length * width, length + width
    bricks, plates = divmod(height, PLATES_PER_BRICK)
    grams = bricks * (0.1523 * studs + 0.2498 * sides - 0.2485)
    grams += plates * (0.10937 * studs + 0.05671 * sides - 0.02207)
    return grams * 1e-3


_MASSES = 1e-8, 1e6
"""Least and greatest mass of a part [kg]: lighter ones are none to MuJoCo."""


@dataclass(frozen=True)
class BrickShape:
    """Dimensions of a rectangular part.

    Attributes:
        length: Studs along x, >= 1.
        width: Studs along y, >= 1.
        height: Plates along z, >= 1 (3 = brick, 1 = plate).
        has_studs: False for a tile: its top carries nothing.
        mass: Mass [kg]; None takes the measured or estimated mass of a plastic part of this size.

    Raises:
        PartError: A dimension is not a positive integer or the mass is out of range.
    """

    length: int
    width: int
    height: int = PLATES_PER_BRICK
    has_studs: bool = True
    mass: float = None  # type: ignore[assignment]  # replaced in __post_init__

    def __post_init__(self) -> None:
        limits = {"length": MAX_STUDS_PER_SIDE, "width": MAX_STUDS_PER_SIDE, "height": MAX_PLATES}
        for name, limit in limits.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise PartError(f"{name} is {value!r}, expected a whole number of 1 to {limit}")
            if not 1 <= value <= limit:
                raise PartError(f"{name} is {value}, expected 1 to {limit}")
            object.__setattr__(self, name, int(value))
        if self.mass is None:
            object.__setattr__(self, "mass", self.standard_mass)
        else:
            as_number(self.mass, "mass", *_MASSES, unit="kg", error=PartError)

    @property
    def standard_mass(self) -> float:
        """Mass [kg] of a plastic part of this size: measured where known, else estimated."""
        if self.height == PLATES_PER_BRICK:
            sides = (max(self.length, self.width), min(self.length, self.width))
            if sides in _MEASURED_BRICK_MASS:
                return _MEASURED_BRICK_MASS[sides]
        return _estimated_mass(self.length, self.width, self.height)

    @property
    def size(self) -> tuple[float, float, float]:
        """Nominal extent [m] of the body along x, y, z, without studs and clearance."""
        return (self.length * STUD_PITCH, self.width * STUD_PITCH, self.height * PLATE_HEIGHT)

    @cached_property
    def com(self) -> Array:
        """(3,) centre of mass [m] in the part frame."""
        return np.array([0.0, 0.0, 0.5 * self.height * PLATE_HEIGHT])

    @cached_property
    def inertia(self) -> Array:
        """(3, 3) inertia [kg m^2] about the centre of mass: a solid cuboid, studs ignored."""
        x2, y2, z2 = np.square(self.size)
        return np.diag([y2 + z2, x2 + z2, x2 + y2]) * (self.mass / 12.0)

    def __str__(self) -> str:
        kind = "tile" if not self.has_studs else "plate" if self.height == 1 else "brick"
        height = "" if kind != "brick" or self.height == 3 else f"x{self.height}"
        return f"{self.length}x{self.width}{height} {kind}"


@dataclass(frozen=True)
class Part:
    """A part of a topology: its id, its shape and its colour."""

    id: int
    shape: BrickShape
    color: Color = (255, 255, 255)

    def __post_init__(self) -> None:
        channels = tuple(self.color)
        if len(channels) != 3 or not all(
            isinstance(c, (int, np.integer)) and 0 <= c <= 255 for c in channels
        ):
            raise PartError(f"colour is {self.color!r}, expected three integers 0-255")
        object.__setattr__(self, "color", tuple(map(int, channels)))
