# SPDX-License-Identifier: Apache-2.0
"""A structure's parts as boxes of whole cells in the world: what grid formats can express."""

from __future__ import annotations

import numpy as np

from bricksim_core.errors import FormatError
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology import GridPose, Structure
from bricksim_core.topology.occupancy import Box

TOLERANCE = 1e-6
"""Deviation from the grid that counts as rounding [m, and rad for the rotation]."""


def stacked_boxes(structure: Structure, format_name: str) -> list[tuple[int, Box]]:
    """Parts above the base plate as boxes, in the topology's order.

    Args:
        structure: Components that share one upright grid.
        format_name: Of the format that needs it, for errors.

    Returns:
        (part id, (x0, y0, z0, x1, y1, z1)) [studs, plates]: z from the ground, x and y >= 0.

    Raises:
        FormatError: A component is turned, tilted or shifted off the grid of the others.
    """
    graph = structure.graph
    world = _world_poses(structure, format_name)
    boxes: dict[int, Box] = {}
    for part_id in graph.graph.nodes:
        shape, grid = graph.part(part_id).shape, world[part_id]
        x0, y0, x1, y1 = grid.footprint(shape)
        boxes[part_id] = (x0, y0, grid.z, x1, y1, grid.z + shape.height)
    if not boxes:
        return []
    plate = baseplate_of(structure, boxes)
    ground = _ground(structure, boxes, plate)
    boxes.pop(plate, None)  # type: ignore[arg-type]  # None is no key
    shift = [-min(0, min((b[i] for b in boxes.values()), default=0)) for i in range(2)]
    if any(b[2] < ground for b in boxes.values()):
        low = min(boxes, key=lambda p: boxes[p][2])
        raise FormatError(
            f"{structure.name}: part {low} reaches below the ground, which {format_name} does not"
            " know"
        )
    return [
        (p, (b[0] + shift[0], b[1] + shift[1], b[2] - ground, b[3] + shift[0], b[4] + shift[1],
             b[5] - ground))
        for p, b in boxes.items()
    ]  # fmt: skip


def baseplate_of(structure: Structure, boxes: dict[int, Box]) -> int | None:
    """The part that is a base plate: one plate high and alone in the lowest layer.

    A plate that the world holds is one; a free plate is one when it carries everything.
    """
    lowest = min(b[2] for b in boxes.values())
    bottom = [p for p, b in boxes.items() if b[2] == lowest]
    if len(bottom) != 1 or boxes[bottom[0]][5] != lowest + 1:
        return None
    (plate,) = bottom
    if plate in structure.fixed:
        return plate
    whole = len(structure.graph.component_ids) == 1 and len(boxes) > 1
    return plate if whole and structure.ground is None else None


def _ground(structure: Structure, boxes: dict[int, Box], plate: int | None) -> int:
    if plate is not None:
        return boxes[plate][5]
    if structure.ground is not None:
        return round(structure.ground / PLATE_HEIGHT)
    return min(b[2] for b in boxes.values())


def _world_poses(structure: Structure, format_name: str) -> dict[int, GridPose]:
    """Grid poses of all parts in one grid; it is the world's where the parts fit to that."""
    graph = structure.graph
    cell = np.array([STUD_PITCH, STUD_PITCH, PLATE_HEIGHT])
    phase: Array | None = None
    result: dict[int, GridPose] = {}
    for component_id in graph.component_ids:
        pose = structure.component_poses[component_id]
        yaw = round(np.arctan2(pose[1, 0], pose[0, 0]) / (np.pi / 2))
        c, s = [(1, 0), (0, 1), (-1, 0), (0, -1)][yaw % 4]
        aligned = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        first = graph.component_parts(component_id)[0]
        if np.abs(pose[:3, :3] - aligned).max() > TOLERANCE:
            raise FormatError(
                f"{structure.name}: the component of part {first} is turned off the axes of the"
                f" world, which {format_name} cannot express"
            )
        if phase is None:
            phase = pose[:3, 3] - np.round(pose[:3, 3] / cell) * cell
        cells = (pose[:3, 3] - phase) / cell
        if np.abs((cells - np.round(cells)) * cell).max() > TOLERANCE:
            raise FormatError(
                f"{structure.name}: the component of part {first} stands off the stud grid of the"
                f" others, which {format_name} cannot express"
            )
        x, y, z = (int(v) for v in np.round(cells))
        world_T_component = GridPose(x, y, z, yaw % 4)
        for part_id in graph.component_parts(component_id):
            result[part_id] = world_T_component @ graph.grid_pose(part_id)
    return result
