# SPDX-License-Identifier: Apache-2.0
"""Where things stand on the table: the base plate and, around it, the loose bricks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bricksim_core.parts import STUD_PITCH, BrickShape
from bricksim_core.spatial import Array, transform
from bricksim_moveit_demo.errors import TaskError


@dataclass(frozen=True)
class Region:
    """A rectangle of the table [m], world axes."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class TableLayout:
    """Where the structure is built and where bricks may lie.

    Attributes:
        seat: x, y of the middle of the structure's base [m].
        regions: Where bricks are laid out.
        gap: Least distance of bricks [m]: fingers must fit between them.
        spread: How far bricks may be off their packed place, at random [m].
    """

    seat: tuple[float, float] = (0.5, 0.0)
    regions: tuple[Region, ...] = (
        Region(0.30, 0.13, 0.66, 0.42),
        Region(0.30, -0.42, 0.66, -0.13),
    )
    gap: float = 0.042
    spread: float = 0.004


def arrange(
    shapes: Mapping[int, BrickShape], layout: TableLayout, generator: np.random.Generator
) -> dict[int, Array]:
    """Lays bricks out on the table in rows, in random order, turned and shifted at random.

    Args:
        shapes: Shapes by part id.
        layout: The regions.
        generator: Source of all randomness.

    Returns:
        (4, 4) world_T_part [m] by part id.

    Raises:
        TaskError: They do not fit.
    """
    order = generator.permutation(sorted(shapes)).tolist()
    places: dict[int, Array] = {}
    free = [_Shelf(region, layout.gap) for region in layout.regions]
    for part_id in order:
        shape = shapes[part_id]
        turned = bool(generator.integers(2))
        sides = (shape.length * STUD_PITCH, shape.width * STUD_PITCH)
        size = sides[::-1] if turned else sides
        shelves = [free[i] for i in generator.permutation(len(free))]
        place = next((p for p in (shelf.place(size) for shelf in shelves) if p is not None), None)
        if place is None:
            raise TaskError(
                f"brick {part_id} ({shape}) does not fit on the table after {len(places)} others"
            )
        shift = generator.uniform(-1.0, 1.0, 2) * layout.spread
        wobble = generator.uniform(-0.1, 0.1)
        yaw = 0.5 * np.pi * turned + np.pi * generator.integers(2) + wobble
        quaternion = [0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)]
        places[part_id] = transform([place[0] + shift[0], place[1] + shift[1], 0.0], quaternion)
    return places


class _Shelf:
    """Fills a region row by row."""

    def __init__(self, region: Region, gap: float) -> None:
        self._region = region
        self._gap = gap
        self._x = region.x0
        self._y = region.y0
        self._row = 0.0

    def place(self, size: Sequence[float]) -> tuple[float, float] | None:
        """Centre of the next free place, None if the region is full."""
        region = self._region
        if self._x + size[0] > region.x1:
            self._x = region.x0
            self._y += self._row + self._gap
            self._row = 0.0
        if self._x + size[0] > region.x1 or self._y + size[1] > region.y1:
            return None
        centre = (self._x + 0.5 * size[0], self._y + 0.5 * size[1])
        self._x += size[0] + self._gap
        self._row = max(self._row, size[1])
        return centre
