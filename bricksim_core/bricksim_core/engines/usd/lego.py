# SPDX-License-Identifier: Apache-2.0
"""The attributes ``lego:*`` by which BrickSim marks bricks and connections on a stage.

Their names and meanings are BrickSim's, so that stages can be exchanged with it. What BrickSim
has no attribute for (ids, tiles) stands in attributes ``bricksim:*`` beside them; a reader does
without where they are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Gf, Sdf, Usd, UsdPhysics

from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.looks import srgb_color
from bricksim_core.errors import FormatError, PartError
from bricksim_core.parts import BrickShape, Color
from bricksim_core.topology import Connection

CONNECTION_TYPE = "LegoConnection"
"""Prim type of a connection; no schema of it is needed to read a stage."""


@dataclass(frozen=True)
class BrickPrim:
    """What a brick prim says of itself. ``part_id`` is None if it has no id of its own."""

    path: str
    part_id: int | None
    shape: BrickShape
    color: Color


@dataclass(frozen=True)
class ConnectionPrim:
    """What a connection prim says: paths of both bricks, and the connection's numbers."""

    path: str
    connection_id: int | None
    stud: str
    hole: str
    stud_interface: int
    hole_interface: int
    offset: tuple[int, int]
    yaw: int


def author_attributes(prim: Usd.Prim, part_id: int, shape: BrickShape, color: Color) -> None:
    """Marks a prim as a brick."""
    kinds = Sdf.ValueTypeNames
    dimensions = Gf.Vec3i(shape.length, shape.width, shape.height)
    prim.CreateAttribute("lego:part_kind", kinds.Token).Set("brick")
    prim.CreateAttribute("lego:brick_dimensions", kinds.Int3).Set(dimensions)
    prim.CreateAttribute("lego:brick_color", kinds.Int3).Set(Gf.Vec3i(*color))
    prim.CreateAttribute("bricksim:part_id", kinds.Int64).Set(part_id)
    prim.CreateAttribute("bricksim:has_studs", kinds.Bool).Set(shape.has_studs)


def author_connection(stage: Usd.Stage, connection: Connection) -> Usd.Prim:
    """A connection between two bricks of the stage."""
    kinds = Sdf.ValueTypeNames
    prim = stage.DefinePrim(names.connection(connection.id), CONNECTION_TYPE)
    prim.CreateRelationship("lego:conn_stud").SetTargets([names.brick(connection.stud_part)])
    prim.CreateRelationship("lego:conn_hole").SetTargets([names.brick(connection.hole_part)])
    prim.CreateAttribute("lego:conn_stud_interface", kinds.Int).Set(connection.stud_interface)
    prim.CreateAttribute("lego:conn_hole_interface", kinds.Int).Set(connection.hole_interface)
    prim.CreateAttribute("lego:conn_offset", kinds.Int2).Set(Gf.Vec2i(*connection.offset))
    prim.CreateAttribute("lego:conn_yaw", kinds.Int).Set(connection.yaw)
    prim.CreateAttribute("bricksim:connection_id", kinds.Int64).Set(connection.id)
    return prim


def read_brick(prim: Usd.Prim, file: str) -> BrickPrim | None:
    """The brick that a prim is, None if it is none.

    Raises:
        FormatError: An attribute is missing or not acceptable.
    """
    if prim.GetAttribute("lego:part_kind").Get() != "brick":
        return None
    where = f"{file}: {prim.GetPath()}"
    length, width, height = _integers(prim, "lego:brick_dimensions", 3, where)
    studs = prim.GetAttribute("bricksim:has_studs").Get()
    mass = UsdPhysics.MassAPI(prim).GetMassAttr().Get() if prim.HasAPI("PhysicsMassAPI") else 0.0
    try:
        shape = BrickShape(length, width, height, has_studs=studs is not False)
        if mass and not np.isclose(mass, shape.standard_mass, rtol=1e-5):
            # The shortest decimal number that is this single one, as its author wrote it.
            mass = float(str(np.float32(mass)))
            shape = BrickShape(length, width, height, shape.has_studs, mass=mass)
    except PartError as error:
        raise FormatError(f"{where}: {error}") from None
    part_id = prim.GetAttribute("bricksim:part_id").Get()
    return BrickPrim(str(prim.GetPath()), part_id, shape, _color(prim, where))


def read_connection(prim: Usd.Prim, file: str) -> ConnectionPrim | None:
    """The connection that a prim is, None if it is none.

    Raises:
        FormatError: An attribute or relationship is missing or not acceptable.
    """
    if prim.GetTypeName() != CONNECTION_TYPE:
        return None
    where = f"{file}: {prim.GetPath()}"
    ox, oy = _integers(prim, "lego:conn_offset", 2, where)
    return ConnectionPrim(
        path=str(prim.GetPath()),
        connection_id=prim.GetAttribute("bricksim:connection_id").Get(),
        stud=_target(prim, "lego:conn_stud", where),
        hole=_target(prim, "lego:conn_hole", where),
        stud_interface=_integers(prim, "lego:conn_stud_interface", 1, where)[0],
        hole_interface=_integers(prim, "lego:conn_hole_interface", 1, where)[0],
        offset=(ox, oy),
        yaw=_integers(prim, "lego:conn_yaw", 1, where)[0],
    )


def _numbers(prim: Usd.Prim, name: str, count: int, where: str) -> np.ndarray:
    value = prim.GetAttribute(name).Get()
    array = np.array([] if value is None else value).reshape(-1)
    if len(array) != count or not np.issubdtype(array.dtype, np.number):
        raise FormatError(f"{where}.{name} is {value!r}, expected {count} number(s)")
    return array


def _integers(prim: Usd.Prim, name: str, count: int, where: str) -> list[int]:
    array = _numbers(prim, name, count, where)
    if not np.array_equal(array, np.rint(array)):
        raise FormatError(f"{where}.{name} is {array.tolist()}, expected integers")
    return [int(v) for v in array]


def _color(prim: Usd.Prim, where: str) -> Color:
    """Integers are sRGB 0-255; floats are linear 0-1, as USD's own colours."""
    name = "lego:brick_color"
    if not prim.GetAttribute(name).HasAuthoredValue():
        return 255, 255, 255
    array = _numbers(prim, name, 3, where)
    if np.issubdtype(array.dtype, np.floating):
        return srgb_color(array)
    if array.min() < 0 or array.max() > 255:
        raise FormatError(f"{where}.{name} is {array.tolist()}, expected 0 to 255")
    red, green, blue = array.tolist()
    return red, green, blue


def _target(prim: Usd.Prim, name: str, where: str) -> str:
    targets = prim.GetRelationship(name).GetTargets()
    if len(targets) != 1:
        raise FormatError(f"{where}.{name} has {len(targets)} targets, expected one brick")
    return str(targets[0])
