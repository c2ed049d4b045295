# SPDX-License-Identifier: Apache-2.0
"""How reliably and how fast structures are built: many seeds, one table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import Summary
from bricksim_moveit_demo.scenes import SceneOptions, assemble


@dataclass(frozen=True)
class Row:
    """Results of one structure over several seeds.

    Attributes:
        name: The structure.
        runs: Seeds.
        built: Runs in which the whole structure stands.
        insertions: Insertions that were tried.
        first: Of these, those that succeeded at the first try.
        recovered: Those that succeeded at last.
        seconds: Simulated seconds per insertion.
        press: Greatest press force [N].
        planning: Wall seconds of motion planning per insertion.
        wall: Wall seconds per simulated second.
        causes: Causes of failed tries and how often they occurred.
    """

    name: str
    runs: int
    built: int
    insertions: int
    first: int
    recovered: int
    seconds: float
    press: float
    planning: float
    wall: float
    causes: Counter[str]


def measure(
    structure: Structure,
    seeds: Iterable[int],
    options: SceneOptions,
    progress: Callable[[int, Summary], None] | None = None,
) -> Row:
    """Builds a structure once per seed."""
    summaries: list[Summary] = []
    started = time.perf_counter()
    for seed in seeds:
        summary = assemble(structure, replace(options, seed=seed))
        summaries.append(summary)
        if progress is not None:
            progress(seed, summary)
    wall = time.perf_counter() - started
    reports = [report for summary in summaries for report in summary.reports]
    causes = Counter(str(cause) for report in reports for cause in report.failures)
    causes.update(str(r.outcome) for r in reports if not r.success and not r.failures)
    return Row(
        name=structure.name,
        runs=len(summaries),
        built=sum(summary.success for summary in summaries),
        insertions=len(reports),
        first=sum(report.success and report.tries == 1 for report in reports),
        recovered=sum(report.success for report in reports),
        seconds=float(np.mean([report.duration for report in reports])),
        press=max(report.press_force for report in reports),
        planning=float(np.mean([report.planning_time for report in reports])),
        wall=wall / sum(summary.duration for summary in summaries),
        causes=causes,
    )


def table(rows: Iterable[Row]) -> str:
    """Rows as text, one line each."""
    head = (
        f"{'structure':28} {'built':>7} {'insertions':>10} {'first try':>9} {'recovered':>9}"
        f" {'s/brick':>7} {'press N':>7} {'plan s':>6} {'wall/sim':>8}  causes of failed tries"
    )
    lines = [head]
    for row in rows:
        causes = ", ".join(f"{n} {cause}" for cause, n in row.causes.most_common()) or "-"
        lines.append(
            f"{row.name:28} {row.built:>3}/{row.runs:<3} {row.insertions:>10}"
            f" {100.0 * row.first / row.insertions:>8.1f}%"
            f" {100.0 * row.recovered / row.insertions:>8.1f}%"
            f" {row.seconds:>7.1f} {row.press:>7.1f} {row.planning:>6.2f} {row.wall:>8.2f}"
            f"  {causes}"
        )
    return "\n".join(lines) + "\n"
