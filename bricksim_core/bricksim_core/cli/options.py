# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, and what their texts mean."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

Baseplate = Literal["auto"] | tuple[int, int] | None

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Structure file; `-` reads standard input.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ModelOption = Annotated[
    str,
    typer.Option("--model", metavar="NAME", help="Snap-fit model: `default` or `paper`."),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine", metavar="NAME", help="Rigid-body engine: `mujoco`, `ovphysx` or `isaacsim`."
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Fail where a file holds something that is not understood.")
]
BaseplateOption = Annotated[
    str,
    typer.Option(
        "--baseplate",
        metavar="auto|none|LxW",
        help="Plate under the lowest layer of StableText2Brick and StableLego files: of the"
        " structure's size, none, or L x W studs.",
    ),
]
OutFolder = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Folder for the results; it is made if it is missing, files of the same name are"
        " replaced.",
    ),
]
OptionalFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Folder for summary.json, strip and video."),
]
UtilizationOption = Annotated[
    bool,
    typer.Option(
        "--utilization", help="Colour pictures and video by utilization instead of real colours."
    ),
]
VideoOption = Annotated[bool, typer.Option("--video/--no-video", help="Write video.mp4.")]


def parse_baseplate(text: str) -> Baseplate:
    """The value of --baseplate.

    Raises:
        typer.BadParameter: It is none of the forms.
    """
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    sides = text.lower().split("x")
    if len(sides) == 2 and all(s.isascii() and s.isdigit() for s in sides):
        return int(sides[0]), int(sides[1])
    raise typer.BadParameter(f"--baseplate is {text!r}, expected auto, none or LxW such as 32x32")


def parse_numbers(text: str, option: str, counts: tuple[int, ...]) -> tuple[float, ...]:
    """Finite numbers separated by commas.

    Args:
        text: What the user wrote.
        option: Name of the option, for the message.
        counts: How many numbers there may be.

    Raises:
        typer.BadParameter: Another number of numbers, or one that is not finite.
    """
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in counts or not all(math.isfinite(v) for v in values):
        wanted = " or ".join(str(c) for c in counts)
        raise typer.BadParameter(
            f"{option} is {text!r}, expected {wanted} finite numbers separated by commas"
        )
    return values


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "**Examples**\n\n" + "\n\n".join(f"`{line}`" for line in lines)
