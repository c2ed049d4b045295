# SPDX-License-Identifier: Apache-2.0
"""StableText2Brick text: one brick a line, ``hxw (x,y,z)``.

h studs along x, w studs along y; the brick fills the cells [x, x+h) x [y, y+w) of layer z; layer 0
stands on the ground. All bricks are one brick high; the format knows no colours.
"""

from __future__ import annotations

import re

import numpy as np

from bricksim_core.errors import FormatError, StructureError
from bricksim_core.formats.grid_builder import (
    BaseplateOption,
    PlacedPart,
    brick_at,
    layer_height,
    stacked_structure,
)
from bricksim_core.formats.source import MAX_PARTS, shorten
from bricksim_core.parts import PLATES_PER_BRICK, BrickShape
from bricksim_core.parts.brick import MAX_STUDS_PER_SIDE
from bricksim_core.topology import Structure
from bricksim_core.topology.common_grid import CommonGrid, common_grid

MAX_COORDINATE = 100_000
"""Largest cell or layer number."""

_DIGITS = 25
"""Longest number that is looked at: leading zeros are allowed, thousands of digits are not."""

_LINE = re.compile(
    r"\s*(?P<h>\d+)\s*x\s*(?P<w>\d+)\s*\(\s*(?P<x>\d+)\s*,\s*(?P<y>\d+)\s*,\s*(?P<z>\d+)\s*\)\s*",
    re.ASCII,
)


def parse_text(text: str, *, name: str, title: str, baseplate: BaseplateOption) -> Structure:
    """Reads StableText2Brick text. Blank lines and spaces between the numbers do not matter.

    The brick of the n-th line that is not blank gets the id n; a base plate gets id 0.

    Args:
        text: The text.
        name: The file, for errors.
        title: Name of the structure.
        baseplate: What stands under layer 0, see `grid_builder.BaseplateOption`.

    Raises:
        FormatError: A line is not a brick, or two bricks overlap.
    """
    parts: list[PlacedPart] = []
    shapes: dict[tuple[int, int], BrickShape] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.isspace():
            continue
        origin = f"line {number}"
        if len(parts) >= MAX_PARTS:
            raise FormatError(f"{name}: {origin}: more than {MAX_PARTS} bricks")
        match = _LINE.fullmatch(line)
        if match is None:
            raise FormatError(
                f"{name}: {origin} is {shorten(line)}, expected 'hxw (x,y,z)' with whole numbers,"
                " like '2x4 (0,0,0)'"
            )
        texts = match.groups()
        if max(map(len, texts)) > _DIGITS:
            _check_ranges(match, name, origin)
        h, w, x, y, z = map(int, texts)
        if not (0 < h <= MAX_STUDS_PER_SIDE and 0 < w <= MAX_STUDS_PER_SIDE) or (
            max(x, y, z) > MAX_COORDINATE
        ):
            _check_ranges(match, name, origin)
        length, width, grid = brick_at(h, w, x, y, layer_height(z))
        shape = shapes.get((length, width))
        if shape is None:
            shape = shapes[length, width] = BrickShape(length, width)
        parts.append(PlacedPart(len(parts) + 1, shape, grid, origin))
    if not parts:
        raise FormatError(f"{name}: holds no brick, expected lines like '2x4 (0,0,0)'")
    return stacked_structure(parts, name=name, title=title, baseplate=baseplate)


def _check_ranges(match: re.Match[str], name: str, origin: str) -> None:
    """Refuses a line with a number out of range."""
    for key, text in match.groupdict().items():
        low, high = (1, MAX_STUDS_PER_SIDE) if key in "hw" else (0, MAX_COORDINATE)
        if len(text) > _DIGITS or not low <= int(text) <= high:
            raise FormatError(
                f"{name}: {origin}: {key} is {shorten(text)}, expected {low} to {high}"
            )


def format_text(structure: Structure) -> str:
    """Writes StableText2Brick text, a line per brick in the order of the topology.

    A base plate is the ground and left out. Where the structure stands matters only up to a shift:
    it is moved as a whole where a cell would be negative or off the grid. Colours are not kept.

    Raises:
        FormatError: A part is no brick of one brick's height with studs and the standard mass, or
            a component is turned or shifted off the grid of the others.
    """
    grid = _grid(structure)
    boxes = {p: box for p, box in grid.boxes.items() if p != grid.baseplate}
    if not boxes:
        raise FormatError(f"{structure.label}: holds no brick to write")
    shift_x = -min(0, *(box[0] for box in boxes.values()))
    shift_y = -min(0, *(box[1] for box in boxes.values()))
    lines = []
    for part_id, (x0, y0, z0, x1, y1, _) in boxes.items():
        shape = structure.graph.part(part_id).shape
        layer, rest = divmod(z0 - grid.ground, PLATES_PER_BRICK)
        problem = _problem(shape, layer, rest)
        if problem:
            raise FormatError(
                f"{structure.label}: part {part_id} ({shape}) cannot be written as StableText2Brick"
                f" text: {problem}"
            )
        lines.append(f"{x1 - x0}x{y1 - y0} ({x0 + shift_x},{y0 + shift_y},{layer})\n")
    return "".join(lines)


def _grid(structure: Structure) -> CommonGrid:
    try:
        grid = common_grid(structure)
    except StructureError as error:
        raise FormatError(f"{error}, which StableText2Brick text cannot express") from None
    if not np.array_equal(grid.world_T_grid[:3, :3], np.eye(3)):
        first = structure.graph.part_ids[0]
        raise FormatError(
            f"{structure.label}: the component of part {first} is turned off the axes of the world,"
            " which StableText2Brick text cannot express"
        )
    return grid


def _problem(shape: BrickShape, layer: int, rest: int) -> str:
    if shape.height != PLATES_PER_BRICK:
        return f"it is {shape.height} plates high, the format knows {PLATES_PER_BRICK} only"
    if layer < 0:
        return "it reaches below the ground"
    if rest:
        height = layer * PLATES_PER_BRICK + rest
        return f"its bottom is {height} plates high, expected a multiple of {PLATES_PER_BRICK}"
    if not shape.has_studs:
        return "it has no studs"
    if shape.mass != shape.standard_mass:
        return f"its mass is {shape.mass} kg, the format knows {shape.standard_mass} kg only"
    return ""
