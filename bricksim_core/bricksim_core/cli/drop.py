# SPDX-License-Identifier: Apache-2.0
"""``bricksim drop``: let a structure fall and see what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from bricksim_core.cli.console import counted, number, print_json, progress
from bricksim_core.cli.options import (
    BaseplateOption,
    EngineOption,
    FileArgument,
    JsonOption,
    ModelOption,
    OutFolder,
    StrictOption,
    UtilizationOption,
    VideoOption,
    examples,
    parse_baseplate,
    parse_numbers,
)

NAME = "drop"
EXAMPLES = examples(
    "bricksim drop guitar.txt --out out/",
    "bricksim drop guitar.txt --height 0.3 --tilt 90,0,0 --seconds 3 --out out/",
    "bricksim drop crane.json --utilization --no-video --json --out out/",
)


def command(
    file: FileArgument,
    out: OutFolder,
    height: Annotated[
        float,
        typer.Option("--height", metavar="M", help="From the ground to the lowest point [m]."),
    ] = 0.144,
    tilt: Annotated[
        str,
        typer.Option(
            "--tilt", metavar="ROLL,PITCH,YAW", help="Turn about x, then y, then z [degrees]."
        ),
    ] = "0,0,0",
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="Simulated time [s].")
    ] = 2.0,
    video: VideoOption = True,
    utilization: UtilizationOption = False,
    json: JsonOption = False,
    model: ModelOption = "default",
    engine: EngineOption = "mujoco",
    baseplate: BaseplateOption = "none",
    strict: StrictOption = False,
) -> int:
    """Drop a structure onto the ground and record what breaks.

    Writes summary.json (pieces, which connections broke and when, time per frame), strip.png and
    video.mp4. The file's fixed parts are released.
    """
    angles = parse_numbers(tilt, "--tilt", (3,))
    plate = parse_baseplate(baseplate)

    from bricksim_core.cli.output_folder import LAST, output_folder
    from bricksim_core.cli.summaries import FILM, recording_data, write_film, write_json
    from bricksim_core.experiments.drop import drop
    from bricksim_core.experiments.setup import UNHURRIED, rotation_from_degrees
    from bricksim_core.formats import read_structure

    structure = read_structure(file, baseplate=plate, strict=strict)
    with output_folder(out, FILM) as folder:
        with progress("dropping", 1.0) as show:
            recording = drop(
                structure,
                height=height,
                rotation=rotation_from_degrees(*angles),
                seconds=seconds,
                config=replace(UNHURRIED, model=model),
                engine=engine,
                progress=show,
            )
        data = {
            "file": file,
            "height": height,
            "tilt": list(angles),
            "model": model,
            "bricks": len(recording.parts),
            **recording_data(recording),
        }
        data["files"] = write_film(recording, folder, by_utilization=utilization, video=video)
        write_json(data, folder / LAST)
    if json:
        print_json(data)
        return 0
    pieces, broken = data["pieces"], data["broken"]
    sizes = ", ".join(counted(len(p), "part") for p in pieces[:8])
    sizes += " ..." if len(pieces) > 8 else ""
    print(
        f"{file}: {counted(len(pieces), 'piece')} of {sizes};"
        f" {len(broken)} of {len(structure.graph.connections)} connections broke"
    )
    for change in broken[:10]:
        print(
            f"  {change['time']:.3f} s  {change['stud_part']} – {change['hole_part']}"
            f"  utilization {number(change['utilization'])}"
        )
    if len(broken) > 10:
        print(f"  and {len(broken) - 10} more")
    times = data["frame_ms"]
    print(
        f"frame {times['mean']:.2f} ms on average, {times['p99']:.2f} p99, {times['max']:.2f} most"
        + (f"; loading compiled code {times['loading']:.0f} ms" if times["loading"] else "")
    )
    print(f"results in {out}: {', '.join([LAST, *data['files']])}")
    return 0
