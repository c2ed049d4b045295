# SPDX-License-Identifier: Apache-2.0
"""A structure as the planner sees it: boxes on a grid, who is over whom, who is connected.

Sets of parts are bit masks of row numbers (Python integers): bit i stands for the i-th part.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH, STUD_RADIUS
from bricksim_core.sequencing.gripper import Held
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology import Structure
from bricksim_core.topology.common_grid import CommonGrid, common_grid
from bricksim_core.topology.grid import nearest_yaw

_CELL = np.array([STUD_PITCH, STUD_PITCH, PLATE_HEIGHT] * 2)


@dataclass(frozen=True)
class Joint:
    """A connection by the rows of its parts.

    Attributes:
        connection: Connection id.
        lower: Row of the lower part; in an upside-down workpiece the one with the hole.
        upper: Row of the upper part.
        studs: How many studs are engaged.
        centre: Middle of the engaged studs [m], world.
        rims: Middles of the four sides of the engaged studs [m], world.
    """

    connection: int
    lower: int
    upper: int
    studs: int
    centre: tuple[float, float, float]
    rims: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, eq=False)
class Workpiece:
    """All parts of a structure.

    Attributes:
        structure: The structure.
        grid: Its grid.
        part_ids: (N,) part id of each row, in the topology's order.
        boxes: (N, 6) cells x0, y0, z0, x1, y1, z1 [studs, plates]; z is negated when upside down.
        joints: All connections.
        from_below: True if parts are put on from below: everything is seen upside down.
    """

    structure: Structure
    grid: CommonGrid
    part_ids: tuple[int, ...]
    boxes: np.ndarray
    joints: tuple[Joint, ...]
    from_below: bool

    @cached_property
    def row(self) -> dict[int, int]:
        """Row by part id."""
        return {part_id: i for i, part_id in enumerate(self.part_ids)}

    @cached_property
    def over(self) -> list[int]:
        """For each part the parts that stand in the columns above it, at any height."""
        b = self.boxes
        shared = np.ones((len(b), len(b)), dtype=bool)
        for axis in (0, 1):
            shared &= b[:, None, axis] < b[None, :, axis + 3]
            shared &= b[None, :, axis] < b[:, None, axis + 3]
        above = shared & (b[None, :, 2] >= b[:, None, 5])
        return [mask_of(np.flatnonzero(line).tolist()) for line in above]

    @cached_property
    def linked(self) -> list[int]:
        """For each part the parts that are connected to it."""
        masks = [0] * len(self.part_ids)
        for joint in self.joints:
            masks[joint.lower] |= 1 << joint.upper
            masks[joint.upper] |= 1 << joint.lower
        return masks

    @cached_property
    def joints_below(self) -> list[list[Joint]]:
        """For each part the joints by which it stands on others."""
        result: list[list[Joint]] = [[] for _ in self.part_ids]
        for joint in self.joints:
            result[joint.upper].append(joint)
        return result

    @cached_property
    def _bodies(self) -> Array:
        return self.boxes * _CELL

    @cached_property
    def obstacles(self) -> Array:
        """(N, 6) boxes [m] in the grid's frame, the studs on top included."""
        boxes = self._bodies.copy()
        if not self.from_below:
            studs = [self.structure.graph.part(p).shape.has_studs for p in self.part_ids]
            boxes[:, 5] += np.where(studs, STUD_HEIGHT, 0.0)
        return boxes

    def held(self, row: int) -> Held:
        """A part as a gripper takes it."""
        x0, y0, z0, x1, y1, z1 = self._bodies[row].tolist()
        return Held(
            self.part_ids[row],
            (0.5 * (x0 + x1), 0.5 * (y0 + y1)),
            self._yaws[row],
            (x0, y0, z0),
            (x1, y1, z1),
            from_below=self.from_below,
        )

    def held_pairs(self, group: int) -> Iterator[tuple[int, Held]]:
        """Pairs of parts of a group that a gripper can take side by side: their rows and how."""
        boxes = self.boxes
        for i, j in itertools.permutations(rows_of(group), 2):
            for closing in (0, 1):
                side = 1 - closing
                level = boxes[i, 5] == boxes[j, 5] and boxes[i, closing + 3] == boxes[j, closing]
                low = max(boxes[i, side], boxes[j, side])
                high = min(boxes[i, side + 3], boxes[j, side + 3])
                if not level or low >= high:
                    continue
                box = np.concatenate([np.minimum(boxes[i, :3], boxes[j, :3]),
                                      np.maximum(boxes[i, 3:], boxes[j, 3:])])  # fmt: skip
                box[[side, side + 3]] = low, high
                box[2] = max(boxes[i, 2], boxes[j, 2])
                x0, y0, z0, x1, y1, z1 = (box * _CELL).tolist()
                first = replace(self.held(i), low=(x0, y0, z0), high=(x1, y1, z1))
                pair = replace(first, beside=self.part_ids[j], closing=closing)
                yield 1 << i | 1 << j, pair

    @cached_property
    def _yaws(self) -> list[int]:
        rotation = self.grid.world_T_grid[:3, :3]
        poses = self.structure.part_poses()
        return [nearest_yaw(rotation.T @ poses[p][:3, :3]) for p in self.part_ids]

    def ids(self, mask: int) -> tuple[int, ...]:
        """Part ids of a set."""
        return tuple(self.part_ids[i] for i in rows_of(mask))

    def mask(self, part_ids: Iterable[int]) -> int:
        """The set of these parts."""
        return mask_of(self.row[p] for p in part_ids)

    def reach(self, start: int, within: int) -> int:
        """The parts of a set that are connected to some of its parts."""
        seen = frontier = start & within
        while frontier:
            grown = 0
            for i in rows_of(frontier):
                grown |= self.linked[i]
            frontier = grown & within & ~seen
            seen |= frontier
        return seen


def workpiece(structure: Structure, *, from_below: bool = False) -> Workpiece:
    """Prepares a structure for planning.

    Args:
        structure: Its components share an upright grid.
        from_below: Put parts on from below.

    Raises:
        StructureError: A component is tilted, or off the grid of the others.
    """
    grid = common_grid(structure)
    part_ids = tuple(grid.boxes)
    boxes = np.array([grid.boxes[p] for p in part_ids], dtype=np.int64).reshape(-1, 6)
    row = {part_id: i for i, part_id in enumerate(part_ids)}
    joints = []
    for connection in structure.graph.connections.values():
        lower, upper = row[connection.stud_part], row[connection.hole_part]
        a, b = boxes[lower], boxes[upper]
        low, high = np.maximum(a[:2], b[:2]), np.minimum(a[3:5], b[3:5])
        middle = [*(0.5 * (low + high) * STUD_PITCH), b[2] * PLATE_HEIGHT]
        x, y, z = transform_points(grid.world_T_grid, middle).tolist()
        if from_below:
            lower, upper = upper, lower
        studs = int(np.prod(high - low))
        half_x, half_y = ((0.5 * (high - low - 1)) * STUD_PITCH + STUD_RADIUS).tolist()
        sides = [(half_x, 0.0), (-half_x, 0.0), (0.0, half_y), (0.0, -half_y)]
        places = [np.add(middle, (*side, 0.0)) for side in sides]
        rims = tuple(map(tuple, transform_points(grid.world_T_grid, np.array(places)).tolist()))
        joints.append(Joint(connection.id, lower, upper, studs, (x, y, z), rims))
    if from_below:
        boxes[:, [2, 5]] = -boxes[:, [5, 2]]
    return Workpiece(structure, grid, part_ids, boxes, tuple(joints), from_below)


def mask_of(rows: Iterable[int]) -> int:
    """The set of these rows."""
    mask = 0
    for i in rows:
        mask |= 1 << i
    return mask


def rows_of(mask: int) -> Iterator[int]:
    """Rows of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
