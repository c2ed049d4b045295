# SPDX-License-Identifier: Apache-2.0
"""``bricksim press``: push one structure onto another."""

from __future__ import annotations

from typing import Annotated

import typer

from bricksim_core.cli.console import print_json, progress
from bricksim_core.cli.options import (
    BaseplateOption,
    EngineOption,
    JsonOption,
    OptionalFolder,
    StrictOption,
    UtilizationOption,
    VideoOption,
    examples,
    parse_baseplate,
    parse_numbers,
)

NAME = "press"
EXAMPLES = examples(
    "bricksim press plate.json brick.json --offset 2,1 --force 10",
    "bricksim press a.txt b.txt --yaw 90",
    "bricksim press a.txt b.txt --offset 0.4,0 --yaw 3 --out out/",
)


def command(
    file_a: Annotated[str, typer.Argument(metavar="FILE_A", help="Lower structure.")],
    file_b: Annotated[str, typer.Argument(metavar="FILE_B", help="Is pushed onto it.")],
    offset: Annotated[
        str,
        typer.Option(
            "--offset",
            metavar="X,Y",
            help="Least corner of B's bounding box from that of A's [studs]; fractions misalign.",
        ),
    ] = "0,0",
    yaw: Annotated[
        float, typer.Option("--yaw", metavar="DEG", help="Turn of B about the vertical [degrees].")
    ] = 0.0,
    force: Annotated[
        float,
        typer.Option("--force", metavar="N", help="Greatest force [N]."),
    ] = 10.0,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="Simulated time of pressing [s].")
    ] = 1.0,
    hold: Annotated[
        bool, typer.Option("--hold/--free", help="The world holds A's lowest parts.")
    ] = True,
    out: OptionalFolder = None,
    video: VideoOption = True,
    utilization: UtilizationOption = False,
    json: JsonOption = False,
    engine: EngineOption = "mujoco",
    baseplate: BaseplateOption = "none",
    strict: StrictOption = False,
) -> int:
    """Push structure B down onto structure A: do they connect, and if not, why?

    The force acts over the middle of the studs that B covers and grows over half a second. Exit
    code: 0 connected, 1 not.
    """
    place = parse_numbers(offset, "--offset", (2,))
    plate = parse_baseplate(baseplate)

    from bricksim_core.cli.summaries import changes_data, recording_data, save
    from bricksim_core.experiments.press import press
    from bricksim_core.formats import read_structure

    lower = read_structure(file_a, baseplate=plate, strict=strict)
    upper = read_structure(file_b, baseplate=plate, strict=strict)
    with progress("pressing", 1.0) as show:
        result = press(
            lower,
            upper,
            offset=(place[0], place[1]),
            yaw=yaw,
            force=force,
            seconds=seconds,
            hold=hold,
            engine=engine,
            progress=show,
        )
    data = {
        "files": [file_a, file_b],
        "offset": list(place),
        "yaw": yaw,
        "force": force,
        "connected": result.connected,
        "connections": changes_data(result.connections),
        "reason": result.reason,
        "simulation": recording_data(result.recording),
    }
    if out is not None:
        save(result.recording, data, out, by_utilization=utilization, video=video)
    if json:
        print_json(data)
    elif result.connected:
        first = result.connections[0]
        more = len(result.connections) - 1
        print(
            f"connected at {first.time:.2f} s: {first.stud_part} – {first.hole_part}, offset"
            f" {first.offset[0]},{first.offset[1]}, yaw {90 * first.yaw}°,"
            f" pressed with {first.force:.2f} N" + (f"; and {more} more" if more else "")
        )
    else:
        print(f"not connected: {result.reason}")
    return 0 if result.connected else 1
