# SPDX-License-Identifier: Apache-2.0
"""Which parts of a component occupy which cells: neighbours and collisions in constant time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import BrickShape
from bricksim_core.topology.grid import GridPose, IntArray

_BLOCK = 16
"""Side of the blocks [studs] that parts are hashed into: bounds the entries of a base plate."""

Box = tuple[int, int, int, int, int, int]
"""x0, y0, z0, x1, y1, z1, half open; studs and plates."""


def _box(grid: GridPose, shape: BrickShape) -> Box:
    x0, y0, x1, y1 = grid.footprint(shape)
    return x0, y0, grid.z, x1, y1, grid.z + shape.height


class Occupied(Protocol):
    """Where the parts of a component are."""

    def collision(self, grid: GridPose, shape: BrickShape) -> int | None:
        """Least id of a part that a part at this pose would overlap, None if there is none."""
        ...

    def touching(self, grid: GridPose, shape: BrickShape, *, above: bool) -> list[int]:
        """Sorted ids of the parts that rest on (or, not above, carry) a part at this pose."""
        ...


class BoxList:
    """Boxes of parts, all of which are looked at every time: that costs less than to hash them for
    a few questions.

    Args:
        part_ids: (N,) sorted.
        boxes: (N, 2, 3) their least and greatest corners [studs, studs, plates].
    """

    def __init__(self, part_ids: IntArray, boxes: IntArray) -> None:
        self._part_ids = part_ids
        self._least, self._greatest = boxes[:, 0], boxes[:, 1]

    def collision(self, grid: GridPose, shape: BrickShape) -> int | None:
        """See `Occupied.collision`."""
        found = self._part_ids[self._overlapping(_box(grid, shape))]
        return int(found[0]) if len(found) else None

    def touching(self, grid: GridPose, shape: BrickShape, *, above: bool) -> list[int]:
        """See `Occupied.touching`."""
        box = _box(grid, shape)
        faces, height = (self._least, box[5]) if above else (self._greatest, box[2])
        found = self._overlapping(_layer(box, above)) & (faces[:, 2] == height)
        return self._part_ids[found].tolist()

    def _overlapping(self, box: Box) -> NDArray[np.bool_]:
        return ((self._least < box[3:]) & (self._greatest > box[:3])).all(axis=1)


class Occupancy:
    """Boxes of parts, hashed by block and layer."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int, int], dict[int, Box]] = {}

    def copy(self) -> Occupancy:
        """An independent copy."""
        other = Occupancy()
        other._blocks = {key: dict(block) for key, block in self._blocks.items()}
        return other

    def add(self, part_id: int, grid: GridPose, shape: BrickShape) -> None:
        """Enters a part."""
        box = _box(grid, shape)
        for key in _keys(box):
            self._blocks.setdefault(key, {})[part_id] = box

    def remove(self, part_id: int, grid: GridPose, shape: BrickShape) -> None:
        """Takes out a part that was added with the same pose and shape."""
        for key in _keys(_box(grid, shape)):
            block = self._blocks[key]
            del block[part_id]
            if not block:
                del self._blocks[key]

    def collision(self, grid: GridPose, shape: BrickShape) -> int | None:
        """See `Occupied.collision`."""
        return min(self._overlapping(_box(grid, shape)), default=None)

    def touching(self, grid: GridPose, shape: BrickShape, *, above: bool) -> list[int]:
        """See `Occupied.touching`."""
        box = _box(grid, shape)
        layer, height = _layer(box, above), box[5 if above else 2]
        face = 2 if above else 5
        found = set()
        for key in _keys(layer):
            for part_id, other in self._blocks.get(key, {}).items():
                if other[face] == height and _overlap(layer, other):
                    found.add(part_id)
        return sorted(found)

    def _overlapping(self, box: Box) -> Iterator[int]:
        for key in _keys(box):
            for part_id, other in self._blocks.get(key, {}).items():
                if _overlap(box, other):
                    yield part_id


def _layer(box: Box, above: bool) -> Box:
    """The layer of plates above a box or below it."""
    x0, y0, z0, x1, y1, z1 = box
    return (x0, y0, z1, x1, y1, z1 + 1) if above else (x0, y0, z0 - 1, x1, y1, z0)


def _overlap(a: Box, b: Box) -> bool:
    return (
        a[0] < b[3] and b[0] < a[3] and a[1] < b[4] and b[1] < a[4] and a[2] < b[5] and b[2] < a[5]
    )


def _keys(box: Box) -> Iterator[tuple[int, int, int]]:
    x0, y0, z0, x1, y1, z1 = box
    for x in range(x0 // _BLOCK, (x1 - 1) // _BLOCK + 1):
        for y in range(y0 // _BLOCK, (y1 - 1) // _BLOCK + 1):
            for z in range(z0, z1):
                yield x, y, z
