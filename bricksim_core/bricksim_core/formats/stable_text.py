# SPDX-License-Identifier: Apache-2.0
"""StableText2Brick text: one brick a line, ``hxw (x,y,z)``.

h studs along x, w studs along y; the brick fills the cells [x, x+h) x [y, y+w) of layer z; layer 0
stands on the ground. All bricks are one brick high; the format knows no colours.
"""

from __future__ import annotations

import re

from bricksim_core.errors import FormatError
from bricksim_core.formats.grid_builder import (
    BaseplateOption,
    PlacedPart,
    brick_at,
    layer_height,
    stacked_structure,
)
from bricksim_core.formats.source import MAX_PARTS, shorten
from bricksim_core.formats.world_grid import stacked_boxes
from bricksim_core.parts import PLATES_PER_BRICK, BrickShape
from bricksim_core.parts.brick import MAX_STUDS_PER_SIDE
from bricksim_core.topology import Structure

MAX_COORDINATE = 100_000
"""Largest cell or layer number."""

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
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        origin = f"line {number}"
        if len(parts) >= MAX_PARTS:
            raise FormatError(f"{name}: {origin}: more than {MAX_PARTS} bricks")
        h, w, x, y, z = _numbers(line, name, origin)
        length, width, grid = brick_at(h, w, x, y)
        grid = grid._replace(z=layer_height(z))
        parts.append(PlacedPart(len(parts) + 1, BrickShape(length, width), grid, origin))
    if not parts:
        raise FormatError(f"{name}: holds no brick, expected lines like '2x4 (0,0,0)'")
    return stacked_structure(parts, name=name, title=title, baseplate=baseplate)


def _numbers(line: str, name: str, origin: str) -> list[int]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise FormatError(
            f"{name}: {origin} is {shorten(line)}, expected 'hxw (x,y,z)' with whole numbers,"
            " like '2x4 (0,0,0)'"
        )
    values = []
    for key, text in match.groupdict().items():
        low, high = (1, MAX_STUDS_PER_SIDE) if key in "hw" else (0, MAX_COORDINATE)
        if len(text) > len(str(high)) + 20 or not low <= int(text) <= high:
            raise FormatError(
                f"{name}: {origin}: {key} is {shorten(text)}, expected {low} to {high}"
            )
        values.append(int(text))
    return values


def format_text(structure: Structure) -> str:
    """Writes StableText2Brick text, a line per brick in the order of the topology.

    A base plate is the ground and left out. Where the structure stands matters only up to a shift:
    it is moved as a whole where a cell would be negative or off the grid. Colours are not kept.

    Raises:
        FormatError: A part is no brick of one brick's height with studs and the standard mass, or
            a component is turned or shifted off the grid of the others.
    """
    lines = []
    for part_id, (x0, y0, z0, x1, y1, z1) in stacked_boxes(structure, "StableText2Brick text"):
        shape = structure.graph.part(part_id).shape
        problem = _problem(shape, z0, z1)
        if problem:
            raise FormatError(
                f"{structure.name}: part {part_id} ({shape}) cannot be written as StableText2Brick"
                f" text: {problem}"
            )
        lines.append(f"{x1 - x0}x{y1 - y0} ({x0},{y0},{z0 // PLATES_PER_BRICK})\n")
    if not lines:
        raise FormatError(f"{structure.name}: holds no brick to write")
    return "".join(lines)


def _problem(shape: BrickShape, z0: int, z1: int) -> str:
    if z1 - z0 != PLATES_PER_BRICK:
        return f"it is {z1 - z0} plates high, the format knows {PLATES_PER_BRICK} only"
    if z0 % PLATES_PER_BRICK:
        return f"its bottom is {z0} plates high, expected a multiple of {PLATES_PER_BRICK}"
    if not shape.has_studs:
        return "it has no studs"
    if shape.mass != shape.standard_mass:
        return f"its mass is {shape.mass} kg, the format knows {shape.standard_mass} kg only"
    return ""
