# SPDX-License-Identifier: Apache-2.0
"""StableLego task JSON and its brick library.

A task is an object keyed "1".."n" in assembly order; each brick has the cell of its least corner
(x, y), its layer z, the id of its type and ``ori``: with 0 the type's "height" lies along x and its
"width" along y, with 1 the other way round. All bricks are one brick high.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bricksim_core.errors import FormatError
from bricksim_core.formats.grid_builder import (
    BaseplateOption,
    PlacedPart,
    brick_at,
    layer_height,
    stacked_structure,
)
from bricksim_core.formats.source import MAX_PARTS, read_bytes
from bricksim_core.formats.stable_text import MAX_COORDINATE
from bricksim_core.formats.strict_json import Field, load_json
from bricksim_core.parts import BrickShape
from bricksim_core.parts.brick import MAX_STUDS_PER_SIDE
from bricksim_core.topology import Structure
from bricksim_core.topology.ids import MAX_ID


@dataclass(frozen=True)
class BrickType:
    """An entry of a library.

    Attributes:
        height: Studs along x at ``ori`` 0.
        width: Studs along y at ``ori`` 0.
        mass: Mass [kg].
    """

    height: int
    width: int
    mass: float


Library = Mapping[int, BrickType]
"""Types of bricks by id."""

LIBRARY: Library = {
    1: BrickType(2, 2, 0.2),
    2: BrickType(2, 4, 0.00216),
    3: BrickType(2, 6, 0.00323),
    4: BrickType(1, 8, 0.00303),
    5: BrickType(1, 4, 0.00157),
    6: BrickType(1, 6, 0.00228),
    9: BrickType(1, 2, 0.00081),
    10: BrickType(1, 1, 0.00043),
    12: BrickType(2, 2, 0.00115),
}
"""StableLego's own library; type 1 is a 0.2 kg weight of the size of a 2x2 brick."""


def read_library(path: str | os.PathLike[str]) -> Library:
    """Reads a library file: ``{"2": {"height": 2, "width": 4, "mass": 0.00216}, ...}``.

    Raises:
        FormatError: It cannot be read, or an entry is wrong.
    """
    data, name = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{name}: is not UTF-8 text: byte {error.start}") from None
    types: dict[int, BrickType] = {}
    for key, entry in Field(load_json(text, name), "", name).items():
        side = (1, MAX_STUDS_PER_SIDE)
        mass = entry.get("mass").number(1e6)
        if mass <= 0.0:
            entry.get("mass").fail("a positive mass [kg]")
        height, width = entry.get("height").integer(*side), entry.get("width").integer(*side)
        types[_number(key, entry)] = BrickType(height, width, mass)
    return types


def read_stablelego(
    data: Any, *, name: str, title: str, baseplate: BaseplateOption, library: Library = LIBRARY
) -> Structure:
    """Reads a parsed task file. A brick's part id is its key; a base plate gets id 0.

    Args:
        data: The parsed JSON.
        name: The file, for errors.
        title: Name of the structure.
        baseplate: What stands under layer 0, see `grid_builder.BaseplateOption`.
        library: Types of bricks.

    Raises:
        FormatError: A field is missing or out of range, a type is unknown, or two bricks overlap.
    """
    bricks = {_number(key, entry): entry for key, entry in Field(data, "", name).items()}
    if not bricks:
        raise FormatError(f"{name}: holds no brick, expected fields '1', '2', ...")
    if len(bricks) > MAX_PARTS:
        raise FormatError(f"{name}: holds {len(bricks)} bricks, expected {MAX_PARTS} at most")
    parts = [_brick(number, bricks[number], library) for number in sorted(bricks)]
    return stacked_structure(parts, name=name, title=title, baseplate=baseplate)


def _number(key: str, entry: Field) -> int:
    digits = key.isascii() and key.isdecimal() and key[0] != "0"
    if not digits or len(key) > 16 or int(key) > MAX_ID:
        raise FormatError(f"{entry.name}: field {key[:40]!r}: expected a name like '1'")
    return int(key)


def _brick(number: int, entry: Field, library: Library) -> PlacedPart:
    type_field = entry.get("brick_id")
    brick_type = library.get(type_field.integer(-MAX_ID, MAX_ID))
    if brick_type is None:
        type_field.fail(f"a type of the library: {', '.join(map(str, sorted(library)))}")
    x, y, z = (entry.get(key).integer(0, MAX_COORDINATE) for key in "xyz")
    swapped = entry.get("ori").integer(0, 1)
    along_x, along_y = brick_type.height, brick_type.width
    if swapped:
        along_x, along_y = along_y, along_x
    length, width, grid = brick_at(along_x, along_y, x, y, layer_height(z))
    shape = BrickShape(length, width, mass=brick_type.mass)
    return PlacedPart(number, shape, grid, f"field {entry.path}")
