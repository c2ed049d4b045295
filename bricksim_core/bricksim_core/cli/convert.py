# SPDX-License-Identifier: Apache-2.0
"""``bricksim convert``: from one structure format to another."""

from __future__ import annotations

from typing import Annotated

import typer

from bricksim_core.cli.console import counted, warn
from bricksim_core.cli.options import (
    BaseplateOption,
    StrictOption,
    examples,
    parse_baseplate,
)

NAME = "convert"
EXAMPLES = examples(
    "bricksim convert model.mpd model.json",
    "bricksim convert tower.txt tower.usda",
    "bricksim convert --to text tower.json - | bricksim analyze -",
)


def command(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="Structure file; `-` reads standard input.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help=".json (topology), .txt (StableText2Brick), .ldr/.mpd (LDraw),"
            " .usda/.usdc/.usd; `-` writes to standard output.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="`topology`, `text` or `ldraw`; default: by OUT's name."
        ),
    ] = None,
    baseplate: BaseplateOption = "auto",
    strict: StrictOption = False,
) -> int:
    """Convert a structure file. OUT appears whole or not at all."""
    plate = parse_baseplate(baseplate)
    if target == "-" and to is None:
        raise typer.BadParameter("OUT is standard output, expected --to with its format")

    from bricksim_core.formats import read_structure, write_structure

    structure = read_structure(source, baseplate=plate, strict=strict)
    for line in structure.skipped:
        warn(f"skipped {line}")
    write_structure(structure, target, format=to)
    if target != "-":
        graph = structure.graph
        parts, connections = len(graph), len(graph.connections)
        print(f"{target}: {counted(parts, 'part')}, {counted(connections, 'connection')}")
    return 0
