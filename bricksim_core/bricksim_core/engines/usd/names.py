# SPDX-License-Identifier: Apache-2.0
"""Paths of prims. Plain strings: engines use them without importing OpenUSD."""

from __future__ import annotations

import re

from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE
from bricksim_core.engines.welded import FilterPrim
from bricksim_core.errors import EngineError

WORLD = "/World"
SCENE = f"{WORLD}/PhysicsScene"
GROUND = f"{WORLD}/Ground"
BRICKS = f"{WORLD}/Bricks"
WELDS = f"{WORLD}/Welds"
CONNECTIONS = f"{WORLD}/Connections"
ROBOTS = f"{WORLD}/Robots"
SHAPES = f"{WORLD}/Shapes"
MATERIALS = f"{WORLD}/Materials"
PLASTIC = f"{MATERIALS}/Plastic"
RUBBER = f"{MATERIALS}/Rubber"
COLORS = f"{MATERIALS}/Colors"

COLLIDERS = {BODY_SHAPE: "Body", STUD_SHAPE: "Studs"}
"""Names of a brick's collider prims."""


def _number(value: int) -> str:
    """An integer as part of a prim name."""
    return str(value) if value >= 0 else f"m{-value}"


def brick(part_id: int) -> str:
    """Path of a brick."""
    return f"{BRICKS}/brick_{_number(part_id)}"


def collider(part_id: int, shape: int) -> str:
    """Path of a brick's body box or stud slab."""
    return f"{brick(part_id)}/{COLLIDERS[shape]}"


def weld(pair: tuple[int, int]) -> str:
    """Path of a weld."""
    return f"{WELDS}/weld_{_number(pair[0])}_{_number(pair[1])}"


def connection(connection_id: int) -> str:
    """Path of a connection."""
    return f"{CONNECTIONS}/connection_{_number(connection_id)}"


def filter_prim(prim: FilterPrim) -> str:
    """Path of what a collision filter speaks of."""
    shapes = {"body": BODY_SHAPE, "studs": STUD_SHAPE}
    if prim.shape in shapes:
        return collider(prim.part_id, shapes[prim.shape])
    return brick(prim.part_id)


def robot(name: str) -> str:
    """Path of a robot.

    Raises:
        EngineError: The name is no prim name.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise EngineError(f"robot name is {name!r}, expected letters, digits and underscores")
    return f"{ROBOTS}/{name}"


def part_of(path: str) -> tuple[int, int] | None:
    """Part id and contact shape of a collider path, None if it is no brick's."""
    found = re.fullmatch(rf"{BRICKS}/brick_(m?\d+)/(\w+)", path)
    if not found:
        return None
    shape = next(s for s, name in COLLIDERS.items() if name == found[2])
    return int(found[1].replace("m", "-")), shape
