# SPDX-License-Identifier: Apache-2.0
"""From bricks that stand on one grid to a topology: who touches whom is connected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from bricksim_core.errors import FormatError
from bricksim_core.parts import PLATES_PER_BRICK, BrickShape, Color, Part
from bricksim_core.parts.brick import MAX_STUDS_PER_SIDE
from bricksim_core.topology import BrickTopologyGraph, Connection, GridPose, Structure
from bricksim_core.topology.grid import grid_boxes, relative
from bricksim_core.topology.neighbours import overlapping_pairs, stacked_pairs

BaseplateOption = Literal["auto"] | tuple[int, int] | None
"""``auto``: as large as the structure's footprint; (studs along x, studs along y); None: none."""

BASEPLATE_ID = 0
BASEPLATE_ORIGIN = "base plate"
DEFAULT_COLOR: Color = (255, 255, 255)
BASEPLATE_COLOR: Color = (155, 161, 157)


class PlacedPart(NamedTuple):
    """A part on the grid and where it stands in its file.

    Attributes:
        id: Part id.
        shape: Its dimensions.
        grid: Pose of its hole interface frame on the grid.
        origin: Where it stands in the file ("line 12").
        color: Its colour.
    """

    id: int
    shape: BrickShape
    grid: GridPose
    origin: str
    color: Color = DEFAULT_COLOR


def brick_at(x_studs: int, y_studs: int, x: int, y: int, z: int) -> tuple[int, int, GridPose]:
    """Canonical length, width (length >= width) and pose of a brick by its footprint.

    Args:
        x_studs: Studs along x.
        y_studs: Studs along y.
        x: Least occupied cell along x.
        y: Least occupied cell along y.
        z: Height of its bottom [plates].

    Returns:
        Length, width and the pose.
    """
    if x_studs >= y_studs:
        return x_studs, y_studs, GridPose(x, y, z)
    return y_studs, x_studs, GridPose(x + x_studs, y, z, 1)


def add_parts(graph: BrickTopologyGraph, parts: Iterable[PlacedPart]) -> None:
    """Adds parts to a graph, unconnected, each with the grid as its component's frame."""
    for part in parts:
        graph.add_part(part.shape, part.color, part_id=part.id, grid=part.grid)


def connect_touching(graph: BrickTopologyGraph, parts: Sequence[PlacedPart], name: str) -> None:
    """Connects every stud with the hole that it fills.

    The components keep the grid as their frame.

    Args:
        graph: The topology.
        parts: Parts of one grid that were added to it and are not connected.
        name: The file, for errors.

    Raises:
        FormatError: Two parts overlap.
    """
    graph.connect_all(_connections(parts, name, graph.next_connection_id))


def _connections(placed: Sequence[PlacedPart], name: str, first: int) -> list[Connection]:
    """All that studs fill, with ids from ``first`` on."""
    if not placed:
        return []
    grids = np.array([p.grid for p in placed], dtype=np.int64)
    sizes = [(p.shape.length, p.shape.width, p.shape.height) for p in placed]
    boxes = grid_boxes(grids, np.array(sizes, dtype=np.int64))
    earlier, later = overlapping_pairs(boxes)
    if len(later):
        part = placed[int(later.min())]
        other = min((placed[i] for i in earlier[later == later.min()]), key=lambda p: p.id)
        raise FormatError(
            f"{name}: {part.origin}: {describe(part)} overlaps {describe(other)} of"
            f" {other.origin}, expected free cells"
        )
    below, above = stacked_pairs(boxes)
    studded = np.array([p.shape.has_studs for p in placed])[below]
    below, above = below[studded], above[studded]
    ids = np.array([p.id for p in placed], dtype=np.int64)
    order = np.lexsort((ids[below], above))
    below, above = below[order], above[order]
    between = relative(grids[below], grids[above])
    pairs = zip(ids[below].tolist(), ids[above].tolist(), between.tolist(), strict=True)
    return [
        Connection(first + k, stud, hole, (x, y), yaw)
        for k, (stud, hole, (x, y, _, yaw)) in enumerate(pairs)
    ]


def describe(part: PlacedPart) -> str:
    """The part by its cells: studs along x and y, least corner, height of its bottom."""
    x0, y0, x1, y1 = part.grid.footprint(part.shape)
    return f"the {x1 - x0}x{y1 - y0} part at ({x0}, {y0}), {part.grid.z} plates up,"


def stacked_structure(
    parts: Sequence[PlacedPart], *, name: str, title: str, baseplate: BaseplateOption
) -> Structure:
    """Structure of bricks on a ground at height 0, with a fixed base plate under it if wanted.

    Args:
        parts: The bricks, ids from 1.
        name: The file, for errors.
        title: Name of the structure.
        baseplate: The plate; its top is the ground.

    Raises:
        FormatError: Two parts overlap, or the base plate would be too large.
    """
    everything = list(parts)
    if baseplate is not None and parts:
        everything.insert(0, _baseplate(parts, name, baseplate))
    connections = _connections(everything, name, BrickTopologyGraph().next_connection_id)
    placed = [(Part(p.id, p.shape, p.color), p.grid) for p in everything]
    graph = BrickTopologyGraph.on_grid(placed, connections)
    return Structure(
        graph=graph,
        component_poses={c: np.eye(4) for c in graph.component_ids},
        fixed=frozenset(p.id for p in everything if p.id == BASEPLATE_ID),
        name=title,
        origins={p.id: p.origin for p in everything},
        ground=0.0,
    )


def _baseplate(
    parts: Sequence[PlacedPart], name: str, option: Literal["auto"] | tuple[int, int]
) -> PlacedPart:
    boxes = np.array([p.grid.footprint(p.shape) for p in parts])
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    size = high - low if option == "auto" else np.array(option)
    if max(size) > MAX_STUDS_PER_SIDE:
        raise FormatError(
            f"{name}: the bricks span {high[0] - low[0]} x {high[1] - low[1]} studs, expected at"
            f" most {MAX_STUDS_PER_SIDE} for a base plate of {size[0]} x {size[1]}"
        )
    centred = (low + high - size) // 2
    corner = np.where(size >= high - low, centred, low)
    shape = BrickShape(int(size[0]), int(size[1]), 1)
    grid = GridPose(int(corner[0]), int(corner[1]), -1)
    return PlacedPart(BASEPLATE_ID, shape, grid, BASEPLATE_ORIGIN, BASEPLATE_COLOR)


def layer_height(layer: int) -> int:
    """Height [plates] of the bottom of a layer of bricks."""
    return layer * PLATES_PER_BRICK
