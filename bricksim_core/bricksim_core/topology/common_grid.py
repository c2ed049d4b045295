# SPDX-License-Identifier: Apache-2.0
"""All parts of a structure on one stud grid, where its components share one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.parts import PLATE_HEIGHT
from bricksim_core.spatial import Array
from bricksim_core.topology.grid import GRID_CELL, GridPose, nearest_yaw, quarter_turn
from bricksim_core.topology.occupancy import Box
from bricksim_core.topology.structure import Structure

TOLERANCE = 1e-6
"""Deviation from the grid that counts as rounding [m, and -, for rotation matrices]."""


@dataclass(frozen=True, eq=False)
class CommonGrid:
    """One grid for all parts.

    Attributes:
        world_T_grid: (4, 4) pose of the grid [m]. Its axes are the world's where the components are
            turned by quarter turns only; then its origin is off the world's by less than a cell.
        boxes: Occupied cells (x0, y0, z0, x1, y1, z1), half open [studs, studs, plates], by part id
            in the topology's order.
        ground: Height of the ground [plates].
        baseplate: The part that everything stands on, None if there is none.
    """

    world_T_grid: Array
    boxes: dict[int, Box]
    ground: int
    baseplate: int | None


def common_grid(structure: Structure) -> CommonGrid:
    """The grid that all components of a structure share.

    A base plate is a part one plate high, alone in the lowest layer, that is fixed or, where the
    file does not define a ground, carries everything. The ground is its top; else what the
    structure defines; else the lowest bottom.

    Raises:
        StructureError: A component is tilted, or turned or shifted off the grid of the others.
    """
    graph = structure.graph
    world_T_grid, by_part = np.eye(4), {}
    for index, component_id in enumerate(graph.component_ids):
        pose = structure.component_poses[component_id]
        first = graph.component_parts(component_id)[0]
        if abs(pose[2, 2] - 1.0) > TOLERANCE:
            raise StructureError(f"{structure.label}: the component of part {first} is tilted")
        if index == 0:
            world_T_grid = _grid_of(pose)
        grid_T_component = _on_grid(world_T_grid, pose)
        if grid_T_component is None:
            raise StructureError(
                f"{structure.label}: the component of part {first} stands off the stud grid of the"
                " others"
            )
        for part_id in graph.component_parts(component_id):
            by_part[part_id] = grid_T_component @ graph.grid_pose(part_id)
    boxes: dict[int, Box] = {}
    for part_id in graph.graph.nodes:
        grid, shape = by_part[part_id], graph.part(part_id).shape
        x0, y0, x1, y1 = grid.footprint(shape)
        boxes[part_id] = (x0, y0, grid.z, x1, y1, grid.z + shape.height)
    plate = _baseplate(structure, boxes)
    if plate is not None:
        ground = boxes[plate][5]
    elif structure.ground is not None:
        ground = round((structure.ground - world_T_grid[2, 3]) / PLATE_HEIGHT)
    else:
        ground = min((box[2] for box in boxes.values()), default=0)
    return CommonGrid(world_T_grid, boxes, ground, plate)


def _grid_of(pose: Array) -> Array:
    rotation = pose[:3, :3]
    if np.abs(rotation - quarter_turn(nearest_yaw(rotation))).max() > TOLERANCE:
        return pose
    grid = np.eye(4)
    phase = pose[:3, 3] - np.round(pose[:3, 3] / GRID_CELL) * GRID_CELL
    grid[:3, 3] = np.where(np.abs(phase) > TOLERANCE, phase, 0.0)
    return grid


def _on_grid(world_T_grid: Array, pose: Array) -> GridPose | None:
    rotation = world_T_grid[:3, :3].T @ pose[:3, :3]
    yaw = nearest_yaw(rotation)
    offset = world_T_grid[:3, :3].T @ (pose[:3, 3] - world_T_grid[:3, 3])
    cells = np.round(offset / GRID_CELL)
    off = max(np.abs(offset - cells * GRID_CELL).max(), np.abs(rotation - quarter_turn(yaw)).max())
    if off > 2.0 * TOLERANCE:
        return None
    x, y, z = (int(v) for v in cells)
    return GridPose(x, y, z, yaw)


def _baseplate(structure: Structure, boxes: dict[int, Box]) -> int | None:
    lowest = min((box[2] for box in boxes.values()), default=0)
    bottom = [p for p, box in boxes.items() if box[2] == lowest]
    if len(bottom) != 1 or boxes[bottom[0]][5] != lowest + 1:
        return None
    (plate,) = bottom
    carries = len(structure.graph.component_ids) == 1 < len(boxes) and structure.ground is None
    return plate if plate in structure.fixed or carries else None
