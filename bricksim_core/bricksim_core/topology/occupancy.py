# SPDX-License-Identifier: Apache-2.0
"""Which parts of a component occupy which cells: neighbours and collisions in constant time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bricksim_core.parts import BrickShape
from bricksim_core.topology.grid import GridPose

_BLOCK = 16
"""Side of the blocks [studs] that parts are hashed into: bounds the entries of a base plate."""

Box = tuple[int, int, int, int, int, int]
"""x0, y0, z0, x1, y1, z1, half open; studs and plates."""


def _box(grid: GridPose, shape: BrickShape) -> Box:
    x0, y0, x1, y1 = grid.footprint(shape)
    return x0, y0, grid.z, x1, y1, grid.z + shape.height


class Occupancy:
    """Boxes of parts, hashed by block and layer."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int, int], dict[int, Box]] = {}

    @classmethod
    def of(cls, boxes: Mapping[int, Box]) -> Occupancy:
        """That of parts, given where they are."""
        occupancy = cls()
        for part_id, box in boxes.items():
            occupancy._enter(part_id, box)
        return occupancy

    def copy(self) -> Occupancy:
        """An independent copy."""
        other = Occupancy()
        other._blocks = {key: dict(block) for key, block in self._blocks.items()}
        return other

    def add(self, part_id: int, grid: GridPose, shape: BrickShape) -> None:
        """Enters a part."""
        self._enter(part_id, _box(grid, shape))

    def remove(self, part_id: int, grid: GridPose, shape: BrickShape) -> None:
        """Takes out a part that was added with the same pose and shape."""
        for key in _keys(_box(grid, shape)):
            block = self._blocks[key]
            del block[part_id]
            if not block:
                del self._blocks[key]

    def collision(self, grid: GridPose, shape: BrickShape) -> int | None:
        """Least id of a part that a part at this pose would overlap, None if there is none."""
        return min(self._overlapping(_box(grid, shape)), default=None)

    def touching(self, grid: GridPose, shape: BrickShape, *, above: bool) -> list[int]:
        """Sorted ids of the parts that rest on (or, not above, carry) a part at this pose."""
        x0, y0, z0, x1, y1, z1 = _box(grid, shape)
        layer = (x0, y0, z1, x1, y1, z1 + 1) if above else (x0, y0, z0 - 1, x1, y1, z0)
        face = 2 if above else 5
        height = z1 if above else z0
        found = set()
        for key in _keys(layer):
            for part_id, box in self._blocks.get(key, {}).items():
                if box[face] == height and _overlap(layer, box):
                    found.add(part_id)
        return sorted(found)

    def _enter(self, part_id: int, box: Box) -> None:
        for key in _keys(box):
            self._blocks.setdefault(key, {})[part_id] = box

    def _overlapping(self, box: Box) -> Iterator[int]:
        for key in _keys(box):
            for part_id, other in self._blocks.get(key, {}).items():
                if _overlap(box, other):
                    yield part_id


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
