# SPDX-License-Identifier: Apache-2.0
"""BrickSim's topology JSON, ``bricksim/lego_topology@2``.

What the schema cannot say is kept in objects named ``bricksim_ros``, a key that other readers
ignore: of a part ``studs`` (false for a tile), ``mass`` [kg] and ``fixed`` (held by the world); of
the file ``ground`` [m].

BrickSim's own importer warns about connections that it cannot add and goes on. Here a connection
that contradicts the rest of the file is an error, because leaving it out would silently change what
is analysed. Two kinds change nothing and are only listed in `Structure.skipped`: a pair whose grids
do not overlap (BrickSim's converter writes one for each brick beside its base plate) and a repeated
connection. So are parts of unknown type, with what refers to them. With ``strict`` all are errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bricksim_core.errors import (
    AlreadyConnectedError,
    FormatError,
    NoOverlapError,
    PartError,
    TopologyError,
)
from bricksim_core.formats.source import MAX_PARTS, left_out
from bricksim_core.formats.strict_json import Field
from bricksim_core.parts import HOLE_INTERFACE, STUD_INTERFACE, BrickShape, Color, Part
from bricksim_core.parts.brick import MAX_PLATES, MAX_STUDS_PER_SIDE
from bricksim_core.spatial import Array, inverse, quaternion_of, transform
from bricksim_core.topology import BrickTopologyGraph, Connection, PoseHint, Structure
from bricksim_core.topology.grid import part_pose

SCHEMA = "bricksim/lego_topology@2"
EXTENSION = "bricksim_ros"
PART_TYPE = "brick"

_MAX_POSITION = 1e6
_MAX_OFFSET = 2 * MAX_STUDS_PER_SIDE
_UNIT_TOLERANCE = 1e-3
_HINT_TOLERANCE = 1e-9
"""A remembered hint is written again when it gives the component's pose to this [m, -]."""
_DECIMALS = 12


@dataclass
class _Reading:
    name: str
    strict: bool
    graph: BrickTopologyGraph = field(default_factory=BrickTopologyGraph)
    origins: dict[int, str] = field(default_factory=dict)
    fixed: set[int] = field(default_factory=set)
    unknown_parts: set[int] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)

    def skip(self, entry: Field, reason: str) -> None:
        if self.strict:
            raise FormatError(f"{self.name}: {entry.path}: {reason}")
        self.skipped.append(f"{entry.path}: {reason}")


def read_topology(data: Any, *, name: str, title: str, strict: bool = False) -> Structure:
    """Reads a parsed topology file.

    Part and connection ids, their order and the pose hints are kept. Components without a hint
    stand with their first part at the origin.

    Args:
        data: The parsed JSON.
        name: The file, for errors.
        title: Name of the structure.
        strict: Raise where something would be left out.

    Raises:
        FormatError: A field is missing or out of range, an id is unknown or used twice, or the
            connections contradict each other or put two parts into one place.
    """
    top = Field(data, "", name)
    schema = top.get("schema")
    if schema.value != SCHEMA:
        schema.fail(f"{SCHEMA!r}")
    reading = _Reading(name, strict)
    entries = _entries(top, "parts")
    if len(entries) > MAX_PARTS:
        raise FormatError(f"{name}: parts has {len(entries)} elements, expected <= {MAX_PARTS}")
    try:
        for entry in entries:
            _read_part(entry, reading)
        _connect(_entries(top, "connections"), reading)
        hints = _read_hints(_entries(top, "pose_hints"), reading)
    except FormatError as error:
        # What was left out may be why the rest does not fit together.
        raise FormatError(f"{error}{left_out(reading.skipped)}") from None
    extension = top.optional(EXTENSION)
    ground = extension.optional("ground") if extension else None
    return Structure(
        graph=reading.graph,
        component_poses=_component_poses(reading.graph, hints),
        fixed=frozenset(reading.fixed),
        name=title,
        origins=reading.origins,
        skipped=reading.skipped,
        ground=ground.number(_MAX_POSITION) if ground else None,
        pose_hints=hints,
    )


def _entries(top: Field, key: str) -> list[Field]:
    entry = top.optional(key)
    return entry.elements() if entry else []


def _read_part(entry: Field, reading: _Reading) -> None:
    id_field = entry.get("id")
    part_id = id_field.identifier()
    if part_id in reading.origins:
        id_field.fail(f"a new id; {reading.origins[part_id]} has it")
    reading.origins[part_id] = entry.path
    kind = entry.get("type")
    if kind.string() != PART_TYPE:
        reading.unknown_parts.add(part_id)
        reading.skip(entry, f"type is {kind.value!r}, only {PART_TYPE!r} is known")
        return
    payload = entry.get("payload")
    extension = entry.optional(EXTENSION)
    studs = extension.optional("studs") if extension else None
    mass = extension.optional("mass") if extension else None
    fixed = extension.optional("fixed") if extension else None
    red, green, blue = (c.integer(0, 255) for c in payload.get("color").elements(3))
    try:
        shape = BrickShape(
            payload.get("L").integer(1, MAX_STUDS_PER_SIDE),
            payload.get("W").integer(1, MAX_STUDS_PER_SIDE),
            payload.get("H").integer(1, MAX_PLATES),
            has_studs=studs.boolean() if studs else True,
            **({"mass": mass.number(1e6)} if mass else {}),
        )
    except PartError as error:
        raise FormatError(f"{reading.name}: {entry.path}: {error}") from None
    reading.graph.add_part(shape, (red, green, blue), part_id=part_id)
    if fixed and fixed.boolean():
        reading.fixed.add(part_id)


def _connect(entries: list[Field], reading: _Reading) -> None:
    """Connects the parts: all at once, or one by one where that finds what is wrong."""
    known: dict[int, str] = {}
    new = [(entry, _read_connection(entry, reading, known)) for entry in entries]
    skipped = len(reading.skipped)
    kept = [c for entry, c in new if c is not None and _joins(entry, c, reading)]
    try:
        reading.graph.connect_all(kept)
    except TopologyError:
        del reading.skipped[skipped:]
        for entry, connection in new:
            if connection is not None:
                _connect_one(entry, connection, reading)


def _read_connection(entry: Field, reading: _Reading, known: dict[int, str]) -> Connection | None:
    """The connection as the file has it, None if it goes with a part that was left out."""
    id_field = entry.get("id")
    connection_id = id_field.identifier()
    if connection_id in known:
        id_field.fail(f"a new id; {known[connection_id]} has it")
    known[connection_id] = entry.path
    for key, interface in (("stud_iface", STUD_INTERFACE), ("hole_iface", HOLE_INTERFACE)):
        if entry.get(key).integer(-(2**63), 2**63) != interface:
            entry.get(key).fail(f"{interface}, the only such interface of a brick")
    stud, hole = (_part_reference(entry.get(key), reading) for key in ("stud_id", "hole_id"))
    x, y = (o.integer(-_MAX_OFFSET, _MAX_OFFSET) for o in entry.get("offset").elements(2))
    yaw = entry.get("yaw").integer(-(2**63), 2**63) % 4
    for end in (stud, hole):
        if end in reading.unknown_parts:
            reading.skip(entry, f"part {end} was left out")
            return None
    return Connection(connection_id, stud, hole, (x, y), yaw)


def _joins(entry: Field, connection: Connection, reading: _Reading) -> bool:
    """Whether the grids of a connection overlap; if they do not, it is skipped."""
    lower, upper = (reading.graph.part(p).shape for p in connection.interfaces[::2])
    x0, y0, x1, y1 = connection.stud_T_hole(lower).footprint(upper)
    if min(x1, lower.length) > max(x0, 0) and min(y1, lower.width) > max(y0, 0):
        return True
    _connect_one(entry, connection, reading)
    return False


def _connect_one(entry: Field, connection: Connection, reading: _Reading) -> None:
    stud, hole, (x, y), yaw = (
        connection.stud_part,
        connection.hole_part,
        connection.offset,
        connection.yaw,
    )
    try:
        reading.graph.connect(stud, hole, (x, y), yaw, connection_id=connection.id, closure=False)
    except NoOverlapError as error:
        reading.skip(entry, str(error))
    except AlreadyConnectedError as error:
        (other,) = reading.graph.connections_between(stud, hole)
        if (other.offset, other.yaw) != ((x, y), yaw):
            raise FormatError(
                f"{reading.name}: {entry.path}: {error} with offset {list(other.offset)} and yaw"
                f" {other.yaw}, got [{x}, {y}] and {yaw}"
            ) from None
        reading.skip(entry, str(error))
    except TopologyError as error:
        places = " and ".join(
            f"part {p} is {reading.origins[p]}" for p in dict.fromkeys((stud, hole))
        )
        raise FormatError(f"{reading.name}: {entry.path}: {error} ({places})") from None


def _part_reference(entry: Field, reading: _Reading) -> int:
    part_id = entry.identifier()
    return part_id if part_id in reading.origins else entry.fail("the id of one of the parts")


def _read_hints(entries: list[Field], reading: _Reading) -> tuple[PoseHint, ...]:
    winners: dict[int, tuple[Field, PoseHint]] = {}
    losers: list[tuple[Field, Field]] = []
    for entry in entries:
        part_id = _part_reference(entry.get("part"), reading)
        px, py, pz = (c.number(_MAX_POSITION) for c in entry.get("pos").elements(3))
        rotation = entry.get("rot")
        w, x, y, z = (c.number(10.0) for c in rotation.elements(4))
        if abs(np.linalg.norm((w, x, y, z)) - 1.0) > _UNIT_TOLERANCE:
            rotation.fail("a unit quaternion [w, x, y, z]")
        if part_id in reading.unknown_parts:
            reading.skip(entry, f"part {part_id} was left out")
            continue
        component = reading.graph.component_of(part_id)
        if component in winners:
            loser, _ = winners.pop(component)
            losers.append((loser, entry))
        winners[component] = (entry, PoseHint(part_id, (px, py, pz), (x, y, z, w)))
    if losers:
        loser, entry = losers[0]
        more = f", and {len(losers) - 1} more like it" if len(losers) > 1 else ""
        reading.skip(loser, f"{entry.path} places the same component{more}")
    return tuple(hint for _, hint in winners.values())


def _component_poses(graph: BrickTopologyGraph, hints: tuple[PoseHint, ...]) -> dict[int, Array]:
    hinted = {graph.component_of(h.part): h for h in hints}
    poses: dict[int, Array] = {}
    for part_id in graph.graph.nodes:  # the file's order: the first part comes first
        component = graph.component_of(part_id)
        if component not in poses:
            hint = hinted.get(component, PoseHint(part_id, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
            poses[component] = _placed_by(graph, hint)
    return poses


def _placed_by(graph: BrickTopologyGraph, hint: PoseHint) -> Array:
    """(4, 4) world_T_component that puts the hint's part where the hint says."""
    component_T_part = part_pose(graph.grid_pose(hint.part), graph.part(hint.part).shape)
    return transform(hint.position, hint.quaternion) @ inverse(component_T_part)


def topology_dict(structure: Structure) -> dict[str, Any]:
    """The structure as the JSON object of a topology file; parts and connections keep their order.

    A component is placed by the hint that it was read with, else by its fixed part, else by its
    part of least id.
    """
    graph = structure.graph
    parts = [_part_dict(graph.part(p), p in structure.fixed) for p in graph.graph.nodes]
    connections = [
        {
            "id": c.id,
            "stud_id": c.stud_part,
            "stud_iface": c.stud_interface,
            "hole_id": c.hole_part,
            "hole_iface": c.hole_interface,
            "offset": list(c.offset),
            "yaw": c.yaw,
        }
        for c in graph.connections.values()
    ]
    hints = [
        {"part": h.part, "pos": list(h.position), "rot": [h.quaternion[3], *h.quaternion[:3]]}
        for h in current_hints(structure)
    ]
    result = {
        "schema": SCHEMA,
        "parts": parts,
        "connections": connections,
        "pose_hints": hints,
    }
    if structure.ground is not None:
        result[EXTENSION] = {"ground": structure.ground}
    return result


def _part_dict(part: Part, fixed: bool) -> dict[str, Any]:
    shape = part.shape
    color: Color = part.color
    payload = {"L": shape.length, "W": shape.width, "H": shape.height, "color": list(color)}
    extension: dict[str, Any] = {}
    if not shape.has_studs:
        extension["studs"] = False
    if shape.mass != shape.standard_mass:
        extension["mass"] = shape.mass
    if fixed:
        extension["fixed"] = True
    result = {"id": part.id, "type": PART_TYPE, "payload": payload}
    return result | ({EXTENSION: extension} if extension else {})


def current_hints(structure: Structure) -> tuple[PoseHint, ...]:
    """One hint per component that gives its present pose, remembered ones unchanged and first.

    A component that was read without a hint and still has the default pose gets none.
    """
    graph, hints = structure.graph, []
    remaining = dict(structure.component_poses)
    for hint in structure.pose_hints or ():
        if hint.part not in graph:
            continue
        component = graph.component_of(hint.part)
        pose = remaining.get(component)
        if pose is None:
            continue
        if np.abs(_placed_by(graph, hint) - pose).max() > _HINT_TOLERANCE:
            hint = _hint_for(graph, hint.part, pose)
        hints.append(hint)
        del remaining[component]
    default = _component_poses(graph, ()) if structure.pose_hints is not None else {}
    for component, pose in sorted(remaining.items()):
        unmoved = component in default and np.array_equal(default[component], pose)
        if not unmoved:
            parts = graph.component_parts(component)
            part_id = next((p for p in parts if p in structure.fixed), parts[0])
            hints.append(_hint_for(graph, part_id, pose))
    return tuple(hints)


def _hint_for(graph: BrickTopologyGraph, part_id: int, world_T_component: Array) -> PoseHint:
    component_T_part = part_pose(graph.grid_pose(part_id), graph.part(part_id).shape)
    pose = world_T_component @ component_T_part
    x, y, z = (_rounded(v) for v in pose[:3, 3])
    qx, qy, qz, qw = (_rounded(v) for v in quaternion_of(pose))
    return PoseHint(part_id, (x, y, z), (qx, qy, qz, qw))


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0


def format_topology(structure: Structure) -> str:
    """Writes topology JSON."""
    return json.dumps(topology_dict(structure), indent=2, allow_nan=False) + "\n"
