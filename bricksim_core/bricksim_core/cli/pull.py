# SPDX-License-Identifier: Apache-2.0
"""``bricksim pull``: pull at a part until something gives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import typer

from bricksim_core.cli.console import print_json, progress
from bricksim_core.cli.options import (
    BaseplateOption,
    EngineOption,
    FileArgument,
    JsonOption,
    ModelOption,
    OptionalFolder,
    StrictOption,
    UtilizationOption,
    VideoOption,
    examples,
    parse_baseplate,
    parse_numbers,
)

NAME = "pull"
EXAMPLES = examples(
    "bricksim pull tower.txt --part 7",
    "bricksim pull tower.txt --part 7 --force 5 --direction 1,0,0",
    "bricksim pull crane.json --part 31 --out out/ --utilization",
)


def command(
    file: FileArgument,
    part: Annotated[int, typer.Option("--part", metavar="ID", help="Part to pull at.")],
    force: Annotated[
        float,
        typer.Option("--force", metavar="N", help="Greatest force, at its centre of mass [N]."),
    ] = 20.0,
    direction: Annotated[
        str, typer.Option("--direction", metavar="X,Y,Z", help="Direction of the force, world.")
    ] = "0,0,1",
    out: OptionalFolder = None,
    video: VideoOption = True,
    utilization: UtilizationOption = False,
    json: JsonOption = False,
    model: ModelOption = "default",
    engine: EngineOption = "mujoco",
    baseplate: BaseplateOption = "auto",
    strict: StrictOption = False,
) -> int:
    """Pull at a part with a growing force: what breaks first, and at which force?

    The world holds the file's fixed parts, or the lowest parts. Statics gives the force at which
    the verdict turns to unstable; the simulation shows what breaks. Exit code: 0 it holds, 1 it
    breaks.
    """
    along = parse_numbers(direction, "--direction", (3,))
    plate = parse_baseplate(baseplate)

    from bricksim_core.cli.summaries import changes_data, recording_data, save
    from bricksim_core.experiments.pull import pull
    from bricksim_core.experiments.setup import UNHURRIED
    from bricksim_core.formats import read_structure

    structure = read_structure(file, baseplate=plate, strict=strict)
    with progress("pulling", 1.0) as show:
        result = pull(
            structure,
            part,
            force=force,
            direction=along,
            config=replace(UNHURRIED, model=model),
            engine=engine,
            progress=show,
        )
    data = {
        "file": file,
        "part": part,
        "force": force,
        "direction": list(along),
        "model": model,
        "limit": result.limit,
        "overloaded": [list(pair) for pair in result.overloaded],
        "break_force": result.break_force,
        "broken": changes_data(result.broken),
        "simulation": recording_data(result.recording),
    }
    if out is not None:
        save(result.recording, data, out, by_utilization=utilization, video=video)
    if json:
        print_json(data)
    else:
        if math.isinf(result.limit):
            print(f"statics: part {part} holds {force:g} N")
        elif math.isnan(result.limit):
            print("statics: not known: pieces lie on others without a connection")
        else:
            pairs = ", ".join(f"{a} – {b}" for a, b in result.overloaded[:5])
            print(f"statics: part {part} holds {result.limit:.4g} N; beyond it gives way: {pairs}")
        if result.break_force is None:
            print(f"simulation: nothing breaks up to {force:g} N")
        else:
            pairs = ", ".join(f"{c.stud_part} – {c.hole_part}" for c in result.broken)
            print(f"simulation: {pairs} break first, at {result.break_force:.3g} N")
        if out is not None:
            print(f"results in {out}")
    return 0 if math.isinf(result.limit) and result.break_force is None else 1
