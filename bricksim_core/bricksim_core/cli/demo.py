# SPDX-License-Identifier: Apache-2.0
"""``bricksim demo``: a small crane, analysed, loaded, pulled apart and dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bricksim_core.cli.console import number, print_json, print_table, progress
from bricksim_core.cli.options import JsonOption, ModelOption, examples

NAME = "demo"
EXAMPLES = examples("bricksim demo", "bricksim demo --out /tmp/crane --no-video")
STRUCTURE = Path(__file__).resolve().parents[1] / "data" / "crane.json"
HOOK = 38
"""The red brick that hangs from the jib."""
LOAD_SHARE = 0.7
"""Load on the hook in the second picture, as a share of what statics allows."""
DROP_HEIGHT = 0.144
DROP_TILT = (0.0, 90.0, 0.0)
RESULTS = ("crane.png", "pull.png", "load.png", "drop.png", "drop.mp4")
"""What it may write besides the summary."""


def command(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for pictures and video.")
    ] = Path("out/demo"),
    video: Annotated[bool, typer.Option("--video/--no-video", help="Write drop.mp4.")] = True,
    json: JsonOption = False,
    model: ModelOption = "default",
) -> int:
    """Analyse a small crane, load its hook, pull it until it breaks, and drop it: with pictures."""
    from bricksim_core.cli.output_folder import LAST, output_folder
    from bricksim_core.cli.summaries import (
        Pictures,
        changes_data,
        recording_data,
        write_json,
        write_video_of,
    )
    from bricksim_core.experiments.drop import drop
    from bricksim_core.experiments.film import film_strip
    from bricksim_core.experiments.pull import pull
    from bricksim_core.experiments.setup import UNHURRIED, rotation_from_degrees
    from bricksim_core.formats import read_structure
    from bricksim_core.mechanics.analysis import analyze
    from bricksim_core.pictures import draw_structure

    structure = read_structure(STRUCTURE)
    config = replace(UNHURRIED, model=model)
    bricks = len(structure.graph)
    with output_folder(out, RESULTS) as folder, progress("demo", 1.0) as show:
        pictures = Pictures(folder)
        own = analyze(structure, model=model)
        caption = f"{bricks} parts · safety factor {number(own.safety_factor)}"
        title = "A small crane stands" if own.stable else "A small crane does not stand"
        pictures.write("crane.png", lambda: draw_structure(structure, title=title, caption=caption))
        show(0.1)
        pulled = pull(structure, HOOK, direction=(0.0, 0.0, -1.0), config=config)
        pictures.write("pull.png", lambda: film_strip(pulled.recording, by_utilization=True))
        show(0.3)
        load = LOAD_SHARE * pulled.limit
        loaded = analyze(structure, loads={HOOK: (0.0, 0.0, -load, 0.0, 0.0, 0.0)}, model=model)
        pictures.write(
            "load.png",
            lambda: draw_structure(
                structure,
                utilization=loaded.utilization,
                title=f"{load:.2f} N on the hook",
                caption=f"highest utilization {number(loaded.max_utilization)}",
            ),
        )
        show(0.4)
        dropped = drop(
            structure,
            height=DROP_HEIGHT,
            rotation=rotation_from_degrees(*DROP_TILT),
            config=config,
        )
        pictures.write("drop.png", lambda: film_strip(dropped))
        show(0.6)
        video = video and pictures.possible
        if video:
            write_video_of(dropped, folder / "drop.mp4")
        data = {
            "structure": str(STRUCTURE),
            "model": model,
            "stable": own.stable,
            "safety_factor": own.safety_factor,
            "hook_limit": pulled.limit,
            "hook_break_force": pulled.break_force,
            "hook_broken": changes_data(pulled.broken),
            "loaded_utilization": loaded.max_utilization,
            "drop": recording_data(dropped),
        }
        data["files"] = sorted(path.name for path in folder.iterdir())
        write_json(data, folder / LAST)
    if json:
        print_json(data)
        return 0
    pieces = ", ".join(str(len(piece)) for piece in dropped.pieces)
    broken = ", ".join(f"{c.stud_part} – {c.hole_part}" for c in pulled.broken) or "nothing"
    verdict = "stands" if own.stable else "does not stand"
    steps = [
        (
            f"a crane of {bricks} parts {verdict}, safety factor {number(own.safety_factor)}",
            "crane",
        ),
        (f"{load:.2f} N on the hook: utilization {number(loaded.max_utilization)}", "load"),
        (f"pulled at the hook: holds {number(pulled.limit)} N, then {broken} breaks", "pull"),
        (f"dropped {DROP_HEIGHT} m on its side: pieces of {pieces} parts", "drop"),
    ]
    shown = [str(out / f"{name}.png") if pictures.possible else "–" for _, name in steps]
    rows = [(text, picture) for (text, _), picture in zip(steps, shown, strict=True)]
    print_table(("what", "picture"), rows)
    if video:
        print(f"video: {out / 'drop.mp4'}")
    return 0
