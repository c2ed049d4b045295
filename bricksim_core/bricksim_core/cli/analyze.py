# SPDX-License-Identifier: Apache-2.0
"""``bricksim analyze``: do structures stand, and how much of their capacity do they use?"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from bricksim_core.batch import AnalysisOptions, FileReport, analyze_files, verdict
from bricksim_core.cli.console import number, print_json, print_table, progress, warn
from bricksim_core.cli.options import (
    BaseplateOption,
    JsonOption,
    ModelOption,
    StrictOption,
    examples,
    parse_baseplate,
    parse_numbers,
)
from bricksim_core.errors import BrickSimError

NAME = "analyze"
EXAMPLES = examples(
    "bricksim analyze chair.txt",
    "bricksim analyze --picture pictures/ --json structures/*.json",
    "bricksim analyze crane.json --load 27=0,0,-2.5",
    "find . -name '*.txt' | bricksim analyze --files-from - --json > results.jsonl",
)
_SHOWN = 12
"""Connections that a line of text names at most; JSON has all."""

SAFETY_FACTOR_UP_TO = 20
"""Files up to which the safety factor is found unless it is asked for: it takes longer than the
verdict."""
_TOO_MANY = f"not looked for in more than {SAFETY_FACTOR_UP_TO} files unless asked for"


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Structure files; `-` reads standard input."),
    ] = None,
    json: JsonOption = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="DIR", help="Write a picture per file, coloured by utilization."
        ),
    ] = None,
    model: ModelOption = "default",
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="PART=FX,FY,FZ[,TX,TY,TZ]",
            help="A load on a part at its centre of mass, world axes, N and N m; may be repeated,"
            " those on one part add up.",
        ),
    ] = None,
    safety_factor: Annotated[
        bool | None,
        typer.Option(
            "--safety-factor/--no-safety-factor",
            help="Find the multiple of all loads at which the structure fails"
            f" (by default for up to {SAFETY_FACTOR_UP_TO} files, and 1500 parts each).",
        ),
    ] = None,
    files_from: Annotated[
        str | None,
        typer.Option(
            "--files-from",
            metavar="LIST",
            help="Read file names from a file (`-`: standard input).",
        ),
    ] = None,
    baseplate: BaseplateOption = "auto",
    strict: StrictOption = False,
    gravity: Annotated[
        float, typer.Option("--gravity", metavar="G", help="Acceleration downwards [m/s²].")
    ] = 9.81,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, metavar="N", help="Worker processes (default: all cores)."
        ),
    ] = None,
) -> int:
    """Say whether structures stand, and how much of its capacity each connection uses.

    A utilization of 1 is the limit, 1.2 is 20 % too much. `marginal` means too close to the limit
    for a verdict (0.9 to 1.1), `unknown` that forces are not known, as where a piece lies on
    several parts without a connection. In JSON `safety_factor` is "infinity" where loads of this
    kind never fail the structure, and null where it was not asked for or not found;
    `safety_factor_lacks` says why. Exit code: 0 all stable, 1 some not, 2 error (the other files
    are still analysed).
    """
    names = [*(files or []), *_listed(files_from)]
    if not names:
        raise typer.BadParameter("no files, expected at least one (or --files-from)")
    many = safety_factor is None and len(names) > SAFETY_FACTOR_UP_TO
    options = AnalysisOptions(
        model=model,
        loads=_loads(load or []),
        baseplate=parse_baseplate(baseplate),
        strict=strict,
        gravity=gravity,
        safety_factor=False if many else safety_factor,
    )
    pictures = None if picture is None else _picture_files(names, picture)
    reports: list[FileReport] = []
    with progress("analysing", len(names)) as show:
        for report in analyze_files(names, options, pictures, workers=jobs):
            if many and not report.error and report.safety_factor is None:
                lacks = report.safety_factor_lacks or _TOO_MANY
                report = replace(report, safety_factor_lacks=lacks)
            reports.append(report)
            show(len(reports))
            if json:
                print_json(_data(report))
    if not json:
        _print(reports)
    for report in reports:
        if report.error:
            warn(report.error)
    for problem in dict.fromkeys(r.picture_error for r in reports if r.picture_error):
        warn(f"no pictures: {problem}")
    if any(r.error for r in reports):
        return 2
    return 0 if all(r.stable for r in reports) else 1


def _data(report: FileReport) -> dict[str, object]:
    if report.error:
        return {"file": report.file, "error": report.error}
    data = {key: value for key, value in asdict(report).items() if key != "error"}
    if report.safety_factor is not None and math.isinf(report.safety_factor):
        data["safety_factor"] = "infinity"
    return data


def _print(reports: Sequence[FileReport]) -> None:
    rows = [
        (
            r.file,
            str(r.bricks) if not r.error else "–",
            str(r.components) if not r.error else "–",
            verdict(r),
            number(r.max_utilization),
            "–" if r.worst_parts is None else "{} – {}".format(*r.worst_parts),
            number(r.safety_factor),
            "–" if r.error else f"{r.total_ms:.1f}",
        )
        for r in reports
    ]
    columns = ("file", "bricks", "pieces", "verdict", "utilization", "worst", "safety", "ms")
    print_table(columns, rows, numbers=("bricks", "pieces", "utilization", "safety", "ms"))
    for report in reports:
        for reason in report.reasons:
            print(f"{report.file}: {reason}")
        if report.safety_factor_lacks not in ("", _TOO_MANY):
            print(f"{report.file}: no safety factor: {report.safety_factor_lacks}")
        if report.breaking_parts:
            print(f"{report.file}: comes apart at {_named(report.breaking_parts)}")
        if report.bypassed_parts:
            held = _named(report.bypassed_parts)
            print(f"{report.file}: overloaded, but held together by others: {held}")
        for skipped in report.skipped:
            print(f"{report.file}: skipped {skipped}")
        if report.picture:
            print(f"{report.file}: picture in {report.picture}")
    if any(r.safety_factor_lacks == _TOO_MANY for r in reports):
        print(f"no safety factor where the verdict needs none: {_TOO_MANY}")


def _named(connections: Sequence[tuple[int, int]]) -> str:
    """Connections by their parts, the first dozen of them."""
    shown = ", ".join(f"{lower} – {upper}" for lower, upper in connections[:_SHOWN])
    more = len(connections) - _SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def _listed(files_from: str | None) -> list[str]:
    if files_from is None:
        return []
    try:
        text = sys.stdin.read() if files_from == "-" else Path(files_from).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BrickSimError(f"{files_from}: cannot be read: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _loads(texts: Sequence[str]) -> dict[int, tuple[float, ...]]:
    """Wrenches by part id; those on one part add up."""
    loads: dict[int, tuple[float, ...]] = {}
    for text in texts:
        part, wrench = _load(text)
        before = loads.get(part, (0.0,) * 6)
        loads[part] = tuple(a + b for a, b in zip(before, wrench, strict=True))
    return loads


def _load(text: str) -> tuple[int, tuple[float, ...]]:
    part, _, numbers = text.partition("=")
    # No id has more digits (`topology.ids`).
    if not re.fullmatch(r"\s*-?[0-9]{1,16}\s*", part) or "=" not in text:
        raise typer.BadParameter(
            f"--load is {text!r}, expected PART=FX,FY,FZ or PART=FX,FY,FZ,TX,TY,TZ"
        )
    values = parse_numbers(numbers, f"--load {part}", (3, 6))
    return int(part), values + (0.0,) * (6 - len(values))


def _picture_files(names: Sequence[str], folder: Path) -> list[Path]:
    """A picture per file, named after it; equal names get numbers."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrickSimError(f"{folder}: cannot be made: {error.strerror or error}") from None
    taken: dict[str, int] = {}
    paths = []
    for name in names:
        stem = "stdin" if name == "-" else Path(name).stem
        taken[stem] = taken.get(stem, 0) + 1
        paths.append(folder / (f"{stem}.png" if taken[stem] == 1 else f"{stem}-{taken[stem]}.png"))
    return paths
