# SPDX-License-Identifier: Apache-2.0
"""Commands: build a structure, join in the hands, measure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bricksim_core.atomic import replacing
from bricksim_core.errors import BrickSimError
from bricksim_core.formats import read_structure
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo import scenes
from bricksim_moveit_demo.benchmark import beginning, head, read_runs, row, runs, table
from bricksim_moveit_demo.inhand import InHandScene, brick_of
from bricksim_moveit_demo.layout import packing, read_layout
from bricksim_moveit_demo.reports import Report
from bricksim_moveit_demo.scenes import SceneOptions, require_folder


def assemble(arguments: Sequence[str] | None = None) -> int:
    """``assemble FILE``: one arm, or two, build a structure."""
    parser = _parser("Arms build a structure from bricks on the table.")
    _add_arms(parser)
    parser.add_argument("structure", help="structure file of any known format")
    parser.add_argument(
        "--layout",
        type=Path,
        metavar="YAML",
        help="where the bricks lie on the table; without it they are packed",
    )
    chosen = parser.parse_args(arguments)

    def tell(report: Report, inserted: int, total: int) -> None:
        print(report.line(inserted, total), flush=True)

    try:
        structure = read_structure(chosen.structure)
        layout = None
        if chosen.layout is not None:
            layout = read_layout(chosen.layout, packing(chosen.arms, structure))
        summary = scenes.assemble(structure, _options(chosen), chosen.out, tell, layout)
    except BrickSimError as error:
        print(f"assemble: {error}", file=sys.stderr)
        return 2
    print(
        f"{'built' if summary.success else 'not built'}: {summary.inserted} of {summary.total} in"
        f" {summary.duration:.1f} simulated seconds"
    )
    return 0 if summary.success else 1


def inhand(arguments: Sequence[str] | None = None) -> int:
    """``inhand``: two arms join two bricks in the air."""
    parser = _parser("Two arms join two bricks in the air and place them.")
    for name, what in (("lower", "handed over"), ("upper", "pressed onto it")):
        parser.add_argument(
            f"--{name}", default="4x2", metavar="SIZE", help=f"brick that is {what} [studs]"
        )
    chosen = parser.parse_args(arguments)
    try:
        scene = InHandScene(brick_of(chosen.lower), brick_of(chosen.upper))
        summary = scenes.assemble_in_hand(scene, _options(chosen), chosen.out)
    except BrickSimError as error:
        print(f"inhand: {error}", file=sys.stderr)
        return 2
    print(f"{summary.outcome} {summary.message}".rstrip() + f" in {summary.duration:.1f} s")
    return 0 if summary.success else 1


def benchmark(arguments: Sequence[str] | None = None) -> int:
    """``assembly_benchmark FILE...``: many seeds, one table that grows run by run."""
    parser = _parser(
        "Builds structures over many seeds and prints a table. Runs that are in the folder --out"
        " already are not made again."
    )
    _add_arms(parser)
    parser.add_argument("structures", nargs="+", help="structure files")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds")
    parser.add_argument(
        "--bricks",
        type=int,
        default=0,
        help="build only N bricks of each: the first of its plan or, of what cannot be built as a"
        " whole, the lowest that hang together; 0: all",
    )
    chosen = parser.parse_args(arguments)
    try:
        structures = [beginning(read_structure(f), chosen.bricks) for f in chosen.structures]
        _measure(structures, chosen)
    except BrickSimError as error:
        print(f"assembly_benchmark: {error}", file=sys.stderr)
        return 2
    return 0


def _measure(structures: Sequence[Structure], chosen: argparse.Namespace) -> None:
    """Makes the runs that are not in the folder yet and prints the table of all.

    Raises:
        BrickSimError: The folder holds something else.
    """
    options, done = _options(chosen), []
    if chosen.seeds < 1:
        raise BrickSimError(f"seeds is {chosen.seeds}, expected 1 or more")
    if chosen.bricks < 0:
        raise BrickSimError(f"bricks is {chosen.bricks}, expected 0 or more")
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    setup = {
        "noise_mm": options.noise_mm,
        "noise_degrees": options.noise_degrees,
        "planner": options.planner,
        "engine": options.engine,
        "arms": options.arms,
        "bricks": chosen.bricks,
    }
    if chosen.out is not None:
        require_folder(chosen.out)
        done = read_runs(chosen.out / "runs.jsonl", setup)
    print(head(), flush=True)
    for structure in structures:
        own = [run for run in done if run.structure == structure.name]
        known = {run.seed for run in own}
        if own:
            print(f"{row(own)}\n    {len(own)} runs from {chosen.out}", flush=True)
        if any(run.summary is None for run in own):
            continue
        for run in runs(structure, [s for s in seeds if s not in known], options, setup):
            own.append(run)
            done.append(run)
            # What was measured is on the screen and on disk before the next run begins.
            print(f"{row(own)}\n    {run}" if run.summary else row(own), flush=True)
            if chosen.out is not None:
                with replacing(chosen.out / "runs.jsonl") as temporary:
                    lines = [json.dumps(run.to_dict()) + "\n" for run in done]
                    temporary.write_text("".join(lines), encoding="utf-8")
                with replacing(chosen.out / "table.txt") as temporary:
                    temporary.write_text(table(done), encoding="utf-8")
    print("\n" + table(done), end="")


def _add_arms(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arms", type=int, choices=(1, 2), default=1, help="number of arms")


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help="seed of layout, noise and planner")
    parser.add_argument(
        "--noise",
        nargs=2,
        type=float,
        default=(1.0, 2.0),
        metavar=("MM", "DEGREES"),
        help="greatest errors of brick places and of observations",
    )
    parser.add_argument(
        "--planner",
        default="embedded",
        choices=("auto", "embedded", "moveit", "move_group"),
        help="planner",
    )
    parser.add_argument(
        "--engine",
        default="mujoco",
        choices=("mujoco", "ovphysx", "isaacsim"),
        help="rigid-body engine; the others than mujoco need what docs/engines.md says",
    )
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--film", action="store_true", help="make the video and the picture")
    return parser


def _options(chosen: argparse.Namespace) -> SceneOptions:
    return SceneOptions(
        seed=chosen.seed,
        noise_mm=chosen.noise[0],
        noise_degrees=chosen.noise[1],
        planner=chosen.planner,
        engine=chosen.engine,
        arms=getattr(chosen, "arms", 1),
        film=chosen.film,
    )
