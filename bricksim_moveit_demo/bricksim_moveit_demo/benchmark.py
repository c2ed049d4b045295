# SPDX-License-Identifier: Apache-2.0
"""How reliably and how fast structures are built: many seeds, one table that grows run by run."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bricksim_core.errors import BrickSimError
from bricksim_core.sequencing import SequenceError, plan_assembly
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import Summary, base_part
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.reports import Report
from bricksim_moveit_demo.scenes import SceneOptions, assemble

COLUMNS = (
    ("structure", 28),
    ("built", -9),
    ("insertions", -10),
    ("first try", -9),
    ("recovered", -9),
    ("s/brick", -7),
    ("press N", -7),
    ("plan s", -6),
    ("wall/sim", -8),
)
"""Heads and widths of the table; right-aligned where negative. Causes of failure follow."""


@dataclass(frozen=True)
class Run:
    """One structure, one seed.

    Attributes:
        structure: Name of the structure.
        seed: Seed of layout, noise and planner.
        summary: How building went; None if the structure cannot be built.
        wall: Wall time [s].
        error: Why it cannot be built: which brick and why.
        setup: What else it was measured with: noise, arms, planner, engine, number of bricks.
    """

    structure: str
    seed: int
    summary: Summary | None
    wall: float
    error: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a line of JSON."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Run:
        """A run from the plain data of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: They are not those of a run.
        """
        summary = data["summary"]
        if summary is not None:
            reports = tuple(_report(report) for report in summary["reports"])
            outcome = Outcome(summary["outcome"])
            summary = Summary(**{**summary, "outcome": outcome, "reports": reports})
        return cls(**{**data, "summary": summary})

    def __str__(self) -> str:
        """One line."""
        if self.summary is None:
            return self.error
        retried = [
            f"brick {r.part_id}: {', '.join(r.failures) or r.outcome}"
            for r in self.summary.reports
            if r.failures or not r.success
        ]
        built = f"{self.summary.inserted}/{self.summary.total}"
        return f"{self.structure} seed {self.seed}: {built}  {'; '.join(retried)}".rstrip()


def _report(data: Mapping[str, Any]) -> Report:
    lists = {
        "connection_ids": tuple(data["connection_ids"]),
        "failures": tuple(Outcome(cause) for cause in data["failures"]),
        "failure_messages": tuple(data["failure_messages"]),
    }
    return Report(**{**data, **lists, "outcome": Outcome(data["outcome"])})


def read_runs(file: Path, setup: Mapping[str, Any]) -> list[Run]:
    """Runs that were measured before; none if there is no such file. What was being written when a
    measurement was killed, a last line without its end, is left out.

    Args:
        file: A run a line, as JSON.
        setup: What they have to be measured with to belong to the same table.

    Raises:
        TaskError: A line is no run, or was measured otherwise; the text names file and line.
    """
    if not file.exists():
        return []
    found = []
    whole, _, _torn = file.read_text(encoding="utf-8").rpartition("\n")
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            run = Run.of(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            raise TaskError(
                f"{file}, line {number}: no run of this version ({error}): choose another folder"
            ) from None
        if run.setup != setup:
            raise TaskError(
                f"{file}, line {number}: measured with {_told(run.setup)}, expected"
                f" {_told(setup)}: choose another folder"
            )
        found.append(run)
    return found


def _told(setup: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setup.items()) or "nothing known"


def runs(
    structure: Structure,
    seeds: Iterable[int],
    options: SceneOptions,
    setup: Mapping[str, Any] | None = None,
) -> Iterator[Run]:
    """Builds a structure once per seed; only once if it cannot be built at all.

    Args:
        structure: The structure.
        seeds: The seeds.
        options: All else.
        setup: What the runs say that they were measured with.
    """
    setup = setup or {}
    for seed in seeds:
        started = time.perf_counter()
        try:
            summary = assemble(structure, replace(options, seed=seed))
        except BrickSimError as error:
            wall = time.perf_counter() - started
            yield Run(structure.name, seed, None, wall, str(error), setup)
            return
        yield Run(structure.name, seed, summary, time.perf_counter() - started, setup=setup)


def beginning(structure: Structure, count: int) -> Structure:
    """Some bricks of a structure: those of the first steps of its plan.

    Of one that cannot be built as a whole: the base and the lowest that hang together with it.

    Args:
        structure: The structure.
        count: How many bricks, the base not counted; a step that would bring more of them ends
            it. 0: all.
    """
    if not count:
        return structure
    base, graph = base_part(structure), structure.graph
    try:
        steps = plan_assembly(structure, arms=1, base=[base]).steps
        sizes = itertools.accumulate(len(step.parts) for step in steps)
        first = sum(size <= count for size in sizes)
        return structure.without(part for step in steps[first:] for part in step.parts)
    except SequenceError:
        poses = structure.part_poses()
    chosen = {base}
    while len(chosen) <= count:
        near = {
            part
            for other in chosen
            for joint in graph.connections_of(other)
            for part in (joint.stud_part, joint.hole_part)
        } - chosen
        if not near:
            break
        chosen.add(min(near, key=lambda part: (round(float(poses[part][2, 3]), 6), part)))
    return structure.without(set(graph.part_ids) - chosen)


def row(runs: Sequence[Run]) -> str:
    """Runs of one structure as a line of the table."""
    summaries = [run.summary for run in runs if run.summary is not None]
    name = runs[0].structure
    if not summaries:
        return f"{name:28} {runs[0].error}"
    reports = [report for summary in summaries for report in summary.reports]
    total = sum(summary.total for summary in summaries)
    inserted = sum(summary.inserted for summary in summaries)
    first = sum(report.success and report.tries == 1 for report in reports)
    simulated = sum(summary.duration for summary in summaries)
    causes = Counter(str(cause) for report in reports for cause in report.failures)
    causes.update(str(r.outcome) for r in reports if not r.success and not r.failures)
    cells = (
        name,
        f"{sum(summary.success for summary in summaries)}/{len(summaries)}",
        f"{total}",
        f"{100.0 * first / total:.1f} %",
        f"{100.0 * inserted / total:.1f} %",
        f"{simulated / max(inserted, 1):.1f}",
        f"{max((report.press_force for report in reports), default=0.0):.1f}",
        f"{sum(report.planning_time for report in reports) / max(len(reports), 1):.2f}",
        f"{sum(run.wall for run in runs) / simulated:.2f}",
    )
    told = ", ".join(f"{n} {cause}" for cause, n in causes.most_common()) or "-"
    return f"{_aligned(cells)}  {told}"


def head() -> str:
    """First line of the table."""
    return f"{_aligned([name for name, _ in COLUMNS])}  causes of failed tries"


def table(runs: Sequence[Run]) -> str:
    """All runs as a table, a line for each structure."""
    names = list(dict.fromkeys(run.structure for run in runs))
    rows = [row([run for run in runs if run.structure == name]) for name in names]
    return "\n".join([head(), *rows]) + "\n"


def _aligned(cells: Sequence[str]) -> str:
    return " ".join(
        cell.rjust(-width) if width < 0 else cell.ljust(width)
        for cell, (_, width) in zip(cells, COLUMNS, strict=True)
    )
