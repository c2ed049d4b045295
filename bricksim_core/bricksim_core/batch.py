# SPDX-License-Identifier: Apache-2.0
"""Static analysis of many files on all cores, in the order of the files."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bricksim_core.errors import BrickSimError, NoGraphicsError
from bricksim_core.threads import SINGLE_THREAD

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

    from bricksim_core.topology import Structure

POOL_FROM = 8
"""From this many files on, worker processes are worth their start."""
_WORKER = {**SINGLE_THREAD, "LP_NUM_THREADS": "1"}
"""Environment of workers: one thread each for linear algebra and Mesa's drawing."""
_CHUNK = 4
_STAIRS = "".join(f"2x2 ({k},0,{k})\n" for k in range(20))
_WALL = "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(3) for i in range(2))
_ON_TILE = """0 a brick on a tile
1 4 0 -8 0 1 0 0 0 1 0 0 0 1 3068b.dat
1 4 0 -32 0 1 0 0 0 1 0 0 0 1 3003.dat
"""
_REHEARSED = {False: (_STAIRS, _WALL), True: (_ON_TILE,)}
"""What is analysed before the first file and before the first one of several pieces: stairs that
their own weight overloads, a wall in which forces take several ways, a piece on another one."""


@dataclass(frozen=True)
class AnalysisOptions:
    """How files are analysed.

    Attributes:
        model: Name of the snap-fit model.
        loads: Further loads by part id: force [N] and torque about the part's COM [N m], world.
        baseplate: See `formats.read_structure`.
        strict: Fail where a reader would leave something out.
        safety_factor: True: also find the load multiplier at which the structure fails; None: for
            structures of at most `LIMIT_UP_TO` parts; False: only where the verdict needs it.
        gravity: [m/s^2], downwards.
    """

    model: str = "default"
    loads: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    baseplate: str | tuple[int, int] | None = "auto"
    strict: bool = False
    safety_factor: bool | None = True
    gravity: float = 9.81


@dataclass(frozen=True)
class FileReport:
    """Result for one file.

    Attributes:
        file: As it was given.
        error: Why there is no result; empty if there is one.
        bricks: Parts that the world does not hold.
        components: Rigid pieces.
        stable: Verdict.
        marginal: True: too close to the limit for a verdict.
        unknown: True: no verdict, as forces are not known (`reasons` says which).
        max_utilization: Highest load over capacity.
        worst_connection: Id of the connection that has it, None without connections.
        worst_parts: Its lower and upper part.
        safety_factor: Multiple of all loads at which it fails; None if neither asked for nor needed
            for the verdict, or not found.
        safety_factor_lacks: Why there is none although nobody said that there should be none.
        mechanism: Connections that give way there.
        breaking: Overloaded connections that come apart first.
        bypassed: Overloaded connections whose parts others hold together.
        breaking_parts: Lower and upper part of each that comes apart.
        bypassed_parts: Lower and upper part of each that others hold together.
        reasons: Why it is unstable, or its forces are not known.
        skipped: What the reader left out.
        solve_ms: Time of building and solving the equations [ms].
        total_ms: Time from file to verdict [ms], without the safety factor and without loading
            compiled loops, which the first file of a process waits for.
        limit_ms: Time of finding the safety factor [ms].
        picture: File of its picture, if one was asked for and drawn.
        picture_error: Why there is none although one was asked for.
    """

    file: str
    error: str = ""
    bricks: int = 0
    components: int = 0
    stable: bool = False
    marginal: bool = False
    unknown: bool = False
    max_utilization: float = float("nan")
    worst_connection: int | None = None
    worst_parts: tuple[int, int] | None = None
    safety_factor: float | None = None
    safety_factor_lacks: str = ""
    mechanism: tuple[int, ...] = ()
    breaking: tuple[int, ...] = ()
    bypassed: tuple[int, ...] = ()
    breaking_parts: tuple[tuple[int, int], ...] = ()
    bypassed_parts: tuple[tuple[int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    solve_ms: float = 0.0
    total_ms: float = 0.0
    limit_ms: float = 0.0
    picture: str | None = None
    picture_error: str = ""


def analyze_file(file: str, options: AnalysisOptions, picture: Path | None = None) -> FileReport:
    """Reads and analyses one file.

    Args:
        file: Its name, or ``-`` for standard input.
        options: How.
        picture: Where to write a picture of the utilizations; None: nowhere.

    Returns:
        The result. Where there is no headless OpenGL it says so and lacks the picture.

    Raises:
        BrickSimError: The file cannot be read, cannot stand as given (floating parts), the options
            do not fit it, or the picture's file cannot be written.
    """
    from bricksim_core.formats import check_supported, read_structure
    from bricksim_core.mechanics.analysis import LIMIT_UP_TO, analyze

    _rehearse(options.model, pieces=1)
    start = time.perf_counter()
    structure = read_structure(file, baseplate=options.baseplate, strict=options.strict)  # type: ignore[arg-type]
    if len(structure.graph.component_ids) > 1:
        read = time.perf_counter()
        _rehearse(options.model, pieces=2)
        start += time.perf_counter() - read
    check_supported(structure)
    wanted, lacks = options.safety_factor, ""
    if wanted is None:
        wanted = len(structure.graph) <= LIMIT_UP_TO
        if not wanted:
            lacks = f"not looked for with more than {LIMIT_UP_TO} parts unless asked for"
    analysis = analyze(
        structure,
        gravity=options.gravity,
        loads=options.loads,
        model=options.model,
        limit=wanted or None,
    )
    total = time.perf_counter() - start - analysis.limit_time
    factor: float | None = analysis.safety_factor
    if not math.isnan(factor):
        lacks = ""
    else:
        factor = None
        if not analysis.solved:
            lacks = "not all forces are known"
        elif wanted:
            lacks = "the solver did not find it"
    worst = analysis.worst_connection
    report = FileReport(
        file=file,
        bricks=len(structure.graph) - len(structure.fixed),
        components=len(structure.graph.component_ids),
        stable=analysis.stable,
        marginal=analysis.marginal,
        unknown=analysis.unknown,
        max_utilization=analysis.max_utilization,
        worst_connection=worst,
        worst_parts=None if worst is None else _parts(structure, (worst,))[0],
        safety_factor=factor,
        safety_factor_lacks=lacks,
        mechanism=analysis.mechanism,
        breaking=analysis.breaking,
        bypassed=analysis.bypassed,
        breaking_parts=_parts(structure, analysis.breaking),
        bypassed_parts=_parts(structure, analysis.bypassed),
        reasons=analysis.reasons,
        skipped=tuple(structure.skipped),
        solve_ms=1e3 * (analysis.build_time + analysis.solve_time),
        total_ms=1e3 * total,
        limit_ms=1e3 * analysis.limit_time,
    )
    if picture is None:
        return report
    from bricksim_core.pictures import draw_structure, write_png

    try:
        image = draw_structure(
            structure,
            utilization=analysis.utilization,
            title=f"{structure.name}: {verdict(report)}",
            caption=summary(report),
        )
    except NoGraphicsError as error:
        return replace(report, picture_error=str(error))
    write_png(image, picture)
    return replace(report, picture=str(picture))


def _parts(structure: Structure, connections: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Lower and upper part of each connection."""
    found = map(structure.graph.connection, connections)
    return tuple((c.stud_part, c.hole_part) for c in found)


@cache
def _rehearse(model: str, pieces: int) -> None:
    """Loads what an analysis needs, once in a process: most of a second, which is no file's time.

    Args:
        model: Name of the snap-fit model.
        pieces: How many components: several that touch need more than one does.

    Raises:
        UnknownModelError: The model does not exist.
    """
    from bricksim_core.formats import check_supported, parse_structure
    from bricksim_core.mechanics.analysis import analyze

    for text in _REHEARSED[pieces > 1]:
        structure = parse_structure(text)
        check_supported(structure)
        analyze(structure, model=model)


def verdict(report: FileReport) -> str:
    """One word for the result."""
    if report.error:
        return "error"
    if report.marginal:
        return "marginal"
    if report.unknown:
        return "unknown"
    return "stable" if report.stable else "unstable"


def summary(report: FileReport) -> str:
    """One line that describes the result."""
    words = [f"{report.bricks} bricks", f"utilization {report.max_utilization:.3g}"]
    if report.safety_factor is not None:
        words.append(f"safety factor {report.safety_factor:.3g}")
    return " · ".join(words)


def analyze_files(
    files: Sequence[str],
    options: AnalysisOptions,
    pictures: Sequence[Path | None] | None = None,
    *,
    workers: int | None = None,
) -> Iterator[FileReport]:
    """Analyses files; one that fails gives a report with an error, the others go on.

    Args:
        files: Names; ``-`` is standard input.
        options: How.
        pictures: Where to write a picture of each; None: no pictures.
        workers: Processes; None: all cores, or none extra for a few files.

    Yields:
        A report for each file, in their order, as soon as it and those before it are done. A file
        whose worker process is killed on it (out of memory) gets a report with that error.
    """
    targets = list(pictures) if pictures is not None else [None] * len(files)
    jobs = [(file, options, target) for file, target in zip(files, targets, strict=True)]
    if workers is None:
        workers = min(os.cpu_count() or 1, len(files)) if len(files) >= POOL_FROM else 1
    if workers <= 1 or "-" in files:
        yield from map(_job, jobs)
        return

    import multiprocessing

    os.environ.update(_WORKER)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "bricksim_core.mechanics.analysis"])
    done = 0
    while done < len(jobs):
        for report in _pooled(jobs[done:], workers, context):
            done += 1
            yield report
        # Whose worker was killed is among those that were being worked on: each has one of its own.
        for job in jobs[done : done + workers * _CHUNK]:
            done += 1
            yield next(
                _pooled([job], 1, context),
                FileReport(
                    job[0], error=f"{job[0]}: its worker process was killed (out of memory?)"
                ),
            )


def _pooled(jobs: list[_Job], workers: int, context: ForkServerContext) -> Iterator[FileReport]:
    """Reports in order; ends early where a worker was killed."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(workers, context, _ignore_interrupts) as pool:
        try:
            yield from pool.map(_job, jobs, chunksize=_CHUNK)
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


type _Job = tuple[str, AnalysisOptions, Path | None]


def _job(job: _Job) -> FileReport:
    file, options, picture = job
    try:
        return analyze_file(file, options, picture)
    except BrickSimError as error:
        return FileReport(file, error=str(error))
    except Exception as error:
        # One bad file must not end a batch of thousands; the report says that it is our fault.
        return FileReport(file, error=f"{file}: internal error: {type(error).__name__}: {error}")


def _ignore_interrupts() -> None:
    """Workers leave Ctrl-C to the process that started them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
