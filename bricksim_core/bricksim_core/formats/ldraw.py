# SPDX-License-Identifier: Apache-2.0
"""LDraw models (.ldr, .mpd) of rectangular bricks, plates and tiles.

LDraw's unit is 0.4 mm (20 to the stud, 8 to the plate) and its y points down. The reader unfolds
sub-models, snaps the positions that editors write to the stud grid and connects what touches. Parts
that are placed off each other's grid, or turned, become components of their own. Parts that are not
known, drawn geometry and unknown colours are listed in `Structure.skipped`.

A shape without an LDraw id, or with a mass of its own, is written as a part inside the file that
carries ``0 !BRICKSIM PART length width height [TILE] [MASS kg]``; viewers see its geometry. Part
ids, connection ids and what the world holds are not kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from bricksim_core.errors import FormatError, PartError
from bricksim_core.formats.grid_builder import PlacedPart, add_parts, connect_touching
from bricksim_core.formats.ldraw_colors import (
    INHERITED,
    UNCOLORED,
    color_code,
    color_of,
    color_text,
    definition,
)
from bricksim_core.formats.ldraw_parts import IDS, shape_of
from bricksim_core.formats.source import MAX_PARTS, shorten
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape, Color
from bricksim_core.spatial import Array
from bricksim_core.topology import BrickTopologyGraph, GridPose, Structure
from bricksim_core.topology.boxes import near_pairs, part_boxes
from bricksim_core.topology.grid import GRID_CELL, nearest_yaw, quarter_turn

UNIT = 0.0004
"""One LDraw unit [m]."""
POSITION_TOLERANCE = 0.2
"""Deviation from the grid that is snapped [LDraw units]."""
ROTATION_TOLERANCE = 5e-3
"""Deviation of a rotation matrix' entries from a right angle that is snapped."""
OVERLAP_TOLERANCE = 1.0
"""Overlap of parts of different components that is let pass [LDraw units]."""

_PLATE = 8
_STUD = 20
_MAX_DEPTH = 64
_MAX_NUMBER = 1e7
_ORTHONORMAL = 0.02
_SHOWN = 5
_META = "!BRICKSIM"

WORLD_R_LDRAW = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Rotation from LDraw's axes (y down) to the world's (z up)."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, eq=False)
class _Reference:
    """A line of type 1."""

    line: int
    color: int
    rotation: Array
    position: Array
    target: str


@dataclass(eq=False)
class _Model:
    """A file inside the file."""

    name: str
    references: list[_Reference] = field(default_factory=list)
    drawn: list[int] = field(default_factory=list)
    shape: BrickShape | None = None


@dataclass(frozen=True, eq=False)
class _Placed:
    """A known part after unfolding, in LDraw's units and axes."""

    shape: BrickShape
    color: Color
    rotation: Array
    position: Array
    origin: str


@dataclass(eq=False)
class _File:
    """Everything that was read, before unfolding."""

    name: str
    main: _Model
    models: dict[str, _Model]
    colors: dict[int, Color]
    notes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def note(self, what: str, line: int) -> None:
        """Remembers something that is left out: its first line and how often it occurs."""
        first, count = self.notes.get(what, (line, 0))
        self.notes[what] = (min(first, line), count + 1)

    def skipped(self) -> list[str]:
        """The notes as text, by line."""
        ordered = sorted(self.notes.items(), key=lambda item: item[1])
        return [
            f"line {line}: {what}" + (f" ({count} times)" if count > 1 else "")
            for what, (line, count) in ordered
        ]


def parse_ldraw(text: str, *, name: str, title: str, strict: bool = False) -> Structure:
    """Reads an LDraw model. Parts get ids from 1 in the order of the file.

    Args:
        text: The text of an .ldr or .mpd file.
        name: The file, for errors.
        title: Name of the structure.
        strict: Raise where something would be left out.

    Raises:
        FormatError: A line is wrong, a sub-model contains itself, a part is mirrored, scaled or
            overlaps another, or no part is known.
    """
    file = _read_lines(text, name)
    placed = _unfold(file)
    skipped = file.skipped()
    if skipped and (strict or not placed):
        more = f"; and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
        reason = "" if strict else "holds no part that is known: "
        raise FormatError(f"{name}: {reason}{'; '.join(skipped[:_SHOWN])}{more}")
    if not placed:
        raise FormatError(f"{name}: holds no part, expected lines like '1 4 0 0 0 ... 3001.dat'")
    return _structure(placed, name=name, title=title, skipped=skipped)


# -- lines -----------------------------------------------------------------------------------------


def _key(file_name: str) -> str:
    """A reference or the name of an inner file, so that both compare equal."""
    return " ".join(file_name.lower().replace("\\", "/").split()).removeprefix("parts/")


def _read_lines(text: str, name: str) -> _File:
    current: _Model | None = _Model("")
    file = _File(name, current, {}, {})
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        kind, *rest = words
        meta = rest[0].upper() if kind == "0" and rest else ""
        if meta == "FILE":
            current = _begin_file(file, " ".join(rest[1:]), number)
        elif meta == "NOFILE":
            current = None
        elif current is None:
            continue
        elif kind == "0":
            _read_meta(file, current, meta, rest, number)
        elif kind == "1":
            current.references.append(_read_reference(line, name, number))
        elif kind in "2345" and len(kind) == 1:
            current.drawn.append(number)
        else:
            raise FormatError(
                f"{name}: line {number} starts with {shorten(kind)}, expected a line type 0 to 5"
            )
    return file


def _begin_file(file: _File, file_name: str, number: int) -> _Model:
    key = _key(file_name)
    if not key:
        raise FormatError(f"{file.name}: line {number}: 0 FILE without a name")
    if key in file.models:
        raise FormatError(f"{file.name}: line {number}: a second file named {shorten(file_name)}")
    unnamed = not file.main.name
    if unnamed and (file.main.references or file.main.drawn):
        file.main.name = "the lines before the first 0 FILE"
        unnamed = False
    model = file.main if unnamed else _Model(file_name)
    model.name = file_name
    file.models[key] = model
    return model


def _read_meta(file: _File, model: _Model, meta: str, words: list[str], number: int) -> None:
    if meta == "!COLOUR":
        defined = definition(words[1:])
        if defined is None:
            raise FormatError(
                f"{file.name}: line {number}: expected '0 !COLOUR name CODE n VALUE #RRGGBB ...'"
            )
        file.colors[defined[0]] = defined[1]
    elif meta == _META:
        model.shape = _read_shape(words[1:], file.name, number)


def _read_shape(words: list[str], name: str, number: int) -> BrickShape:
    sizes, options = words[1:4], words[4:]
    has_studs = options[:1] != ["TILE"]
    options = options if has_studs else options[1:]
    mass = _number(options[1]) if len(options) == 2 and options[0] == "MASS" else None
    whole = len(sizes) == 3 and all(s.isascii() and s.isdecimal() and len(s) < 6 for s in sizes)
    if words[:1] != ["PART"] or not whole or (options and mass is None):
        raise FormatError(
            f"{name}: line {number}: expected '0 {_META} PART length width height [TILE] [MASS kg]'"
        )
    try:
        length, width, height = map(int, sizes)
        own = {} if mass is None else {"mass": mass}
        return BrickShape(length, width, height, has_studs, **own)
    except PartError as error:
        raise FormatError(f"{name}: line {number}: {error}") from None


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if abs(value) <= _MAX_NUMBER else None


def _read_reference(line: str, name: str, number: int) -> _Reference:
    words = line.split(maxsplit=14)
    where = f"{name}: line {number}"
    if len(words) < 15:
        raise FormatError(
            f"{where} has {len(words)} fields, expected 15: '1 colour x y z a b c d e f g h i file'"
        )
    color = color_code(words[1])
    if color is None:
        raise FormatError(f"{where}: colour is {shorten(words[1])}, expected a code or 0x2RRGGBB")
    values = []
    for label, word in zip("xyzabcdefghi", words[2:14], strict=True):
        value = _number(word)
        if value is None:
            raise FormatError(
                f"{where}: {label} is {shorten(word)}, expected a number of at most"
                f" {_MAX_NUMBER:g} in size"
            )
        values.append(value)
    rotation = np.array(values[3:]).reshape(3, 3)
    return _Reference(number, color, rotation, np.array(values[:3]), words[14].strip())


# -- unfolding -------------------------------------------------------------------------------------


def _unfold(file: _File) -> list[_Placed]:
    _check_size(file)
    placed: list[_Placed] = []
    _place(file, file.main, np.eye(3), np.zeros(3), UNCOLORED, (), placed)
    return placed


def _check_size(file: _File) -> None:
    """Counts the parts before they are unfolded: a few nested lines can stand for billions."""
    counts: dict[int, int] = {}

    def count(model: _Model, path: tuple[_Model, ...]) -> int:
        if model in path:
            names = " -> ".join(shorten(m.name) for m in (*path[path.index(model) :], model))
            raise FormatError(f"{file.name}: a sub-model contains itself: {names}")
        if len(path) >= _MAX_DEPTH:
            raise FormatError(f"{file.name}: sub-models are nested more than {_MAX_DEPTH} deep")
        if id(model) not in counts:
            total = 0
            for reference in model.references:
                inner = _submodel(file, reference)
                total += count(inner, (*path, model)) if inner else 1
            counts[id(model)] = total
        return counts[id(model)]

    if count(file.main, ()) > MAX_PARTS:
        raise FormatError(f"{file.name}: holds more than {MAX_PARTS} parts after unfolding")


def _submodel(file: _File, reference: _Reference) -> _Model | None:
    """The sub-model that a line refers to; None for a part, known or not.

    Packed files hold the drawings of their parts as well: these are no models.
    """
    key = _key(reference.target)
    model = file.models.get(key)
    if model is None or _shape(file, reference) is not None:
        return None
    return None if key.endswith(".dat") and model.drawn else model


def _shape(file: _File, reference: _Reference) -> BrickShape | None:
    key = _key(reference.target)
    model = file.models.get(key)
    return model.shape if model is not None and model.shape is not None else shape_of(key)


def _place(
    file: _File,
    model: _Model,
    rotation: Array,
    position: Array,
    color: Color,
    path: tuple[_Reference, ...],
    placed: list[_Placed],
) -> None:
    for number in model.drawn:
        file.note("drawn geometry", number)
    for reference in model.references:
        inner, shape = _submodel(file, reference), _shape(file, reference)
        if inner is None and shape is None:
            file.note(f"part {shorten(reference.target)} is not known", reference.line)
            continue
        own = color
        if reference.color != INHERITED:
            known = color_of(reference.color, file.colors)
            if known is None:
                file.note(f"colour {reference.color} is not known, grey instead", reference.line)
            own = known or UNCOLORED
        chain = (*path, reference)
        turned = rotation @ reference.rotation
        moved = rotation @ reference.position + position
        if inner is not None:
            _place(file, inner, turned, moved, own, chain, placed)
        elif shape is not None:
            _check_rotation(file, chain, turned)
            lines = " in ".join(f"line {r.line}" for r in reversed(chain))
            placed.append(_Placed(shape, own, turned, moved, lines))


def _check_rotation(file: _File, chain: tuple[_Reference, ...], total: Array) -> None:
    for reference, matrix in (*((r, r.rotation) for r in chain), (chain[-1], total)):
        if np.abs(matrix.T @ matrix - np.eye(3)).max() > _ORTHONORMAL:
            problem = "scales or shears"
        elif np.linalg.det(matrix) < 0.0:
            problem = "mirrors"
        else:
            continue
        raise FormatError(
            f"{file.name}: line {reference.line}: the matrix of {shorten(reference.target)}"
            f" {problem} a part, expected a rotation"
        )


# -- the grid --------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Frame:
    """A stud grid in the world and the parts that stand on it."""

    rotation: Array
    origin: Array
    parts: list[PlacedPart] = field(default_factory=list)

    @property
    def pose(self) -> Array:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation, self.origin
        return pose

    def grid_pose(self, rotation: Array, corner: Array) -> GridPose | None:
        """Pose on this grid of a part by its rotation and corner in the world, None if off it."""
        turn = self.rotation.T @ rotation
        yaw = nearest_yaw(turn)
        if np.abs(turn - quarter_turn(yaw)).max() > ROTATION_TOLERANCE:
            return None
        cells = self.rotation.T @ (corner - self.origin) / GRID_CELL
        whole = np.round(cells)
        if np.abs((cells - whole) * GRID_CELL).max() > POSITION_TOLERANCE * UNIT:
            return None
        x, y, z = (int(v) for v in whole)
        return GridPose(x, y, z, yaw)


def _frame_of(rotation: Array, corner: Array) -> _Frame:
    """The grid that a part defines: right-angled and whole where the part is, but for rounding."""
    left, _, right = np.linalg.svd(rotation)
    rotation = left @ right
    squared = np.round(rotation)
    square = bool(np.abs(rotation - squared).max() <= ROTATION_TOLERANCE)
    if square:
        rotation = np.eye(3) if squared[2, 2] == 1.0 else squared
    local = rotation.T @ corner
    phase = (local - np.round(local / GRID_CELL) * GRID_CELL) / UNIT
    if square:
        whole = np.round(phase)
        phase = np.where(np.abs(phase - whole) <= POSITION_TOLERANCE, whole, phase)
    return _Frame(rotation, rotation @ phase * UNIT)


def _structure(placed: list[_Placed], *, name: str, title: str, skipped: list[str]) -> Structure:
    graph = BrickTopologyGraph()
    frames: list[_Frame] = []
    for part_id, part in enumerate(placed, start=1):
        shape = part.shape
        rotation = WORLD_R_LDRAW @ part.rotation @ WORLD_R_LDRAW.T
        bottom = part.position + part.rotation[:, 1] * (_PLATE * shape.height)
        half = np.array([0.5 * shape.length, 0.5 * shape.width, 0.0]) * STUD_PITCH
        corner = WORLD_R_LDRAW @ bottom * UNIT - rotation @ half
        frame, grid = _find_frame(frames, rotation, corner)
        entry = PlacedPart(part_id, shape, grid, part.origin, part.color)
        frame.parts.append(entry)
        add_parts(graph, [entry])
    for frame in frames:
        connect_touching(graph, frame.parts, name)
    poses = {graph.component_of(p.id): f.pose for f in frames for p in f.parts}
    structure = Structure(
        graph=graph,
        component_poses=dict(sorted(poses.items())),
        name=title,
        origins={p.id: p.origin for f in frames for p in f.parts},
        skipped=skipped,
    )
    _check_overlaps(structure, name)
    return structure


def _find_frame(frames: list[_Frame], rotation: Array, corner: Array) -> tuple[_Frame, GridPose]:
    for frame in frames:
        grid = frame.grid_pose(rotation, corner)
        if grid is not None:
            return frame, grid
    frame = _frame_of(rotation, corner)
    grid = frame.grid_pose(rotation, corner)
    assert grid is not None, "a part stands on the grid that it defines"
    frames.append(frame)
    return frame, grid


def _check_overlaps(structure: Structure, name: str) -> None:
    boxes = part_boxes(structure)
    pairs = near_pairs(boxes, 0.0)
    for i, j, gap in zip(pairs.first, pairs.second, pairs.gap, strict=True):
        if gap < -OVERLAP_TOLERANCE * UNIT:
            a, b = sorted((int(boxes.part_ids[i]), int(boxes.part_ids[j])))
            shapes = [structure.graph.part(p).shape for p in (a, b)]
            raise FormatError(
                f"{name}: {structure.origins[b]}: the {shapes[1]} overlaps the {shapes[0]} of"
                f" {structure.origins[a]} by {-gap / UNIT:.1f} LDraw units"
            )


# -- writing ---------------------------------------------------------------------------------------


def format_ldraw(structure: Structure) -> str:
    """Writes an LDraw model, a step per part in the order of the topology."""
    poses = structure.part_poses()
    main = f"{structure.name}.ldr"
    lines = [f"0 FILE {main}", f"0 {structure.name}", f"0 Name: {main}", "0 Author: BrickSim-ROS"]
    own: dict[str, BrickShape] = {}
    for part_id in structure.graph.graph.nodes:
        part = structure.graph.part(part_id)
        file_name, turn = _library_part(part.shape)
        if file_name is None:
            file_name = _own_name(part.shape)
            own[file_name] = part.shape
        pose = poses[part_id].copy()
        pose[:3, :3] = pose[:3, :3] @ quarter_turn(turn)
        lines.append(_reference_line(pose, part.shape.height, part.color, file_name))
        lines.append("0 STEP")
    if own:
        lines.append("0 NOFILE")
    for file_name, shape in own.items():
        lines += _own_part(file_name, shape)
    return "\n".join(lines) + "\n"


def _library_part(shape: BrickShape) -> tuple[str | None, int]:
    """File of LDraw's library for a shape and how it is turned against it [quarter turns]."""
    if shape.mass != shape.standard_mass:
        return None, 0
    for turn, (length, width) in enumerate(
        ((shape.length, shape.width), (shape.width, shape.length))
    ):
        part_id = IDS.get(BrickShape(length, width, shape.height, shape.has_studs))
        if part_id is not None:
            return f"{part_id}.dat", turn
    return None, 0


def _own_name(shape: BrickShape) -> str:
    kind = "" if shape.has_studs else "-tile"
    mass = "" if shape.mass == shape.standard_mass else f"-{shape.mass!r}kg"
    return f"bricksim-{shape.length}x{shape.width}x{shape.height}{kind}{mass}.dat"


def _own_part(file_name: str, shape: BrickShape) -> list[str]:
    """A part inside the file: what it is, and a box with studs for viewers."""
    tile = "" if shape.has_studs else " TILE"
    mass = "" if shape.mass == shape.standard_mass else f" MASS {shape.mass!r}"
    x, z = shape.length * _STUD // 2, shape.width * _STUD // 2
    low = shape.height * _PLATE
    size = f"{shape.length} {shape.width} {shape.height}"
    lines = [f"0 FILE {file_name}", f"0 {shape}", f"0 Name: {file_name}"]
    lines.append(f"0 {_META} PART {size}{tile}{mass}")
    corners = [(-x, -z), (x, -z), (x, z), (-x, z)]
    for (ax, az), (bx, bz) in zip(corners, corners[1:] + corners[:1], strict=True):
        lines.append(f"4 16 {ax} 0 {az} {bx} 0 {bz} {bx} {low} {bz} {ax} {low} {az}")
    for y in (0, low):
        lines.append("4 16 " + " ".join(f"{cx} {y} {cz}" for cx, cz in corners))
    if shape.has_studs:
        for i in range(shape.length):
            for j in range(shape.width):
                stud = f"{(i + 0.5) * _STUD - x:g} 0 {(j + 0.5) * _STUD - z:g}"
                lines.append(f"1 16 {stud} 1 0 0 0 1 0 0 0 1 stud.dat")
    return [*lines, "0 NOFILE"]


def _reference_line(world_T_part: Array, height: int, color: Color, file_name: str) -> str:
    top = world_T_part[:3, 3] + world_T_part[:3, 2] * (height * PLATE_HEIGHT)
    position = WORLD_R_LDRAW.T @ top / UNIT
    rotation = WORLD_R_LDRAW.T @ world_T_part[:3, :3] @ WORLD_R_LDRAW
    numbers = [_decimal(v, 6) for v in position] + [_decimal(v, 9) for v in rotation.ravel()]
    return f"1 {color_text(color)} {' '.join(numbers)} {file_name}"


def _decimal(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
