# SPDX-License-Identifier: Apache-2.0
"""Reading and writing structures in any known format."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from bricksim_core.errors import FormatError
from bricksim_core.formats.grid_builder import BaseplateOption
from bricksim_core.formats.ldraw import format_ldraw, parse_ldraw
from bricksim_core.formats.source import STANDARD_STREAM, read_bytes, shorten, write_text
from bricksim_core.formats.stable_text import format_text, parse_text
from bricksim_core.formats.stablelego import LIBRARY, Library, read_library, read_stablelego
from bricksim_core.formats.strict_json import load_json
from bricksim_core.formats.topology_json import format_topology, read_topology
from bricksim_core.parts.brick import MAX_STUDS_PER_SIDE
from bricksim_core.topology import Structure


class Format(StrEnum):
    """The known formats of structure files."""

    TOPOLOGY = "topology"
    """BrickSim topology JSON."""
    TEXT = "text"
    """StableText2Brick text."""
    STABLELEGO = "stablelego"
    """StableLego task JSON; read only."""
    LDRAW = "ldraw"
    """LDraw .ldr and .mpd."""


SUFFIXES = {
    ".json": Format.TOPOLOGY,
    ".txt": Format.TEXT,
    ".ldr": Format.LDRAW,
    ".mpd": Format.LDRAW,
}
"""Formats that `write_structure` chooses by the file name."""
USD_SUFFIXES = (".usd", ".usda", ".usdc")
"""Names of USD stages, which no text stands for: `engines.usd` reads and writes them."""

_TEXT_LINE = re.compile(r"[-+]?\d+(\.\d+)?\s*[xX]\s*[-+]?\d")
_LDRAW_LINE = re.compile(r"[0-5](\s|$)")
_BYTE_ORDER_MARK = "\ufeff"


def detect_format(text: str, *, name: str = "<text>") -> Format:
    """The format of a structure file's text, judged by its content alone.

    Args:
        text: The text.
        name: What to call it in errors.

    Raises:
        FormatError: It is none of the known formats.
    """
    return _detect(text, name)[0]


def _detect(text: str, name: str) -> tuple[Format, Any]:
    """The format, and the parsed content if it is JSON."""
    lines = (stripped for line in text.splitlines() if (stripped := line.strip(" \t\r\n\ufeff")))
    first = next(lines, "")
    if not first:
        raise FormatError(f"{name}: is empty, expected a structure")
    if first[0] in "{[":
        data = load_json(text.removeprefix(_BYTE_ORDER_MARK), name)
        if not isinstance(data, dict):
            raise FormatError(f"{name}: top level is {shorten(data)}, expected an object")
        if "schema" in data or "parts" in data:
            return Format.TOPOLOGY, data
        if data and not any(key.isdecimal() for key in data):
            first = ", ".join(shorten(key) for key in list(data)[:3])
            raise FormatError(
                f"{name}: cannot tell the format: a JSON object with the fields {first}, expected"
                " 'schema' and 'parts' (BrickSim topology) or '1', '2', ... (StableLego)"
            )
        return Format.STABLELEGO, data
    if _TEXT_LINE.match(first):
        return Format.TEXT, None
    if _LDRAW_LINE.match(first):
        return Format.LDRAW, None
    raise FormatError(
        f"{name}: cannot tell the format: it starts with {shorten(first)}, expected topology or"
        " StableLego JSON ('{'), StableText2Brick text ('2x4 (0,0,0)') or LDraw ('0 ...', '1 ...')"
    )


def parse_structure(
    text: str,
    *,
    name: str = "<text>",
    format: Format | str | None = None,
    strict: bool = False,
    baseplate: BaseplateOption = "auto",
    library: Library | str | os.PathLike[str] | None = None,
) -> Structure:
    """Reads a structure from text.

    Args:
        text: Content of a structure file.
        name: What to call it in errors, now and later; the structure is named after its stem.
        format: Its format; None detects it from the content.
        strict: Raise where something would be left out (see `Structure.skipped`).
        baseplate: For StableText2Brick and StableLego, what stands under layer 0 as part 0, held by
            the world: a plate of the structure's footprint ("auto"), one of (studs along x, studs
            along y) centred under it, or nothing but the ground (None).
        library: For StableLego, its brick types or a library file; None takes StableLego's own.

    Raises:
        FormatError: The text cannot be read; the message names file, line or field, the value and
            what was expected.
    """
    _check_baseplate(baseplate)
    structure = _parse(text, name, format, strict, baseplate, library)
    structure.file = name
    return structure


def _parse(
    text: str,
    name: str,
    format: Format | str | None,
    strict: bool,
    baseplate: BaseplateOption,
    library: Library | str | os.PathLike[str] | None,
) -> Structure:
    wanted = None if format is None else _format(format)
    title = _title(name)
    data: Any = None
    if wanted in (None, Format.TOPOLOGY, Format.STABLELEGO):
        detected, data = _detect(text, name)
        if wanted is not None and data is None:
            raise FormatError(f"{name}: is {detected} by its content, expected {wanted}")
        wanted = wanted or detected
    text = text.removeprefix(_BYTE_ORDER_MARK)
    match wanted:
        case Format.TOPOLOGY:
            return read_topology(data, name=name, title=title, strict=strict)
        case Format.STABLELEGO:
            if library is None:
                library = LIBRARY
            elif not isinstance(library, Mapping):
                library = read_library(library)
            return read_stablelego(
                data, name=name, title=title, baseplate=baseplate, library=library
            )
        case Format.TEXT:
            return parse_text(text, name=name, title=title, baseplate=baseplate)
        case _:
            return parse_ldraw(text, name=name, title=title, strict=strict)


def read_structure(
    path: str | os.PathLike[str],
    *,
    format: Format | str | None = None,
    strict: bool = False,
    baseplate: BaseplateOption = "auto",
    library: Library | str | os.PathLike[str] | None = None,
) -> Structure:
    """Reads a structure file.

    Args:
        path: The file, or ``-`` for standard input. A USD stage is known by its name.
        format: See `parse_structure`.
        strict: See `parse_structure`.
        baseplate: See `parse_structure`.
        library: See `parse_structure`.

    Raises:
        FormatError: The file cannot be read; the message names file, line or field, the value and
            what was expected.
        EngineError: It is a USD stage, and OpenUSD is not installed.
    """
    if format is None and _is_stage(path):
        return _read_stage(path, strict)
    data, name = read_bytes(path)
    return parse_structure(
        _decode(data, name),
        name=name,
        format=format,
        strict=strict,
        baseplate=baseplate,
        library=library,
    )


def format_structure(structure: Structure, format: Format | str) -> str:
    """The structure as text of a format.

    Raises:
        FormatError: The format cannot express the structure, or is read only.
    """
    match _format(format):
        case Format.TOPOLOGY:
            return format_topology(structure)
        case Format.TEXT:
            return format_text(structure)
        case Format.LDRAW:
            return format_ldraw(structure)
        case other:
            raise FormatError(f"{other} files are read only, expected one of {_writable()}")


def write_structure(
    structure: Structure, path: str | os.PathLike[str], *, format: Format | str | None = None
) -> None:
    """Writes a structure file. The file appears whole or not at all.

    Args:
        structure: What to write.
        path: The file, or ``-`` for standard output.
        format: None chooses by the file name: .json topology, .txt text, .ldr and .mpd LDraw, .usd,
            .usda and .usdc a USD stage.

    Raises:
        FormatError: The format is not known, is read only or cannot express the structure, or the
            file cannot be written.
        EngineError: It is a USD stage, and OpenUSD is not installed.
    """
    if format is None and _is_stage(path):
        from bricksim_core.engines import usd

        return usd.write_stage(structure, path)
    if format is None:
        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES:
            known = ", ".join([*SUFFIXES, *USD_SUFFIXES])
            raise FormatError(
                f"{os.fspath(path)}: the name does not tell the format, expected one of {known}"
                f" or a format of {_writable()}"
            )
        format = SUFFIXES[suffix]
    write_text(format_structure(structure, format), path)


def _is_stage(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix.lower() in USD_SUFFIXES


def _read_stage(path: str | os.PathLike[str], strict: bool) -> Structure:
    from bricksim_core.engines import usd

    structure = usd.read_stage(path)
    if strict and structure.skipped:
        raise FormatError(f"{os.fspath(path)}: {structure.skipped[0]}")
    return structure


def _writable() -> str:
    return ", ".join(dict.fromkeys(SUFFIXES.values()))


def _format(value: Format | str) -> Format:
    try:
        return Format(value)
    except ValueError:
        known = ", ".join(Format)
        raise FormatError(f"format is {value!r}, expected one of {known}") from None


def _check_baseplate(option: object) -> None:
    if option is None or option == "auto":
        return
    limits = (1, MAX_STUDS_PER_SIDE)
    if not (
        isinstance(option, tuple)
        and len(option) == 2
        and all(type(n) is int and limits[0] <= n <= limits[1] for n in option)
    ):
        raise FormatError(
            f"baseplate is {shorten(option)}, expected 'auto', None or (studs along x, studs along"
            f" y) of {limits[0]} to {limits[1]}"
        )


def _title(name: str) -> str:
    return "structure" if name == STANDARD_STREAM or name.startswith("<") else Path(name).stem


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # Old LDraw files have Latin-1 author names in comments; numbers and part names are ASCII.
        if _LDRAW_LINE.match(data[:2].decode("latin-1")) and b"\0" not in data:
            return data.decode("latin-1")
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{name}: line {line}: byte 0x{data[error.start]:02x} at offset {error.start} is not"
            " UTF-8 text, expected a structure file in UTF-8"
        ) from None
