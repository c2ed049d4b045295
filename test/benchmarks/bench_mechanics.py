# SPDX-License-Identifier: Apache-2.0
"""The default model alone: building, first and later solves, safety factor, batches.

Baselines are model "paper" in the same run: three OSQP programs cold for a first solve, warm for a
later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bricksim_core.experiments.bond import running_bond
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.loads import gravity_loads
from bricksim_core.mechanics.models import get_model
from bricksim_core.topology.layout import ComponentLayout

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data" / "brickgpt"
BATCH = ("demo_car", "demo_sofa", "demo_table", "fewshot_3_109567d7", "mesh2brick_car")
"""Structures of 59 to 99 bricks."""


def shortest(function: Callable[[], object], times: int) -> float:
    """Shortest CPU time of several calls [ms]."""
    best = np.inf
    for _ in range(times):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return 1e3 * best


def wall(columns: int, rows: int, layers: int) -> ComponentLayout:
    """A solid block of 4x2 bricks in running bond on a plate (the first part)."""
    structure = parse_structure(running_bond(columns, rows, layers))
    (component,) = structure.graph.component_ids
    return structure.graph.layout(component)


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows by size: build, first solve, later solve, safety factor; then batches."""
    rows = []

    def row(name: str, value: float, baseline: float | None = None, unit: str = "ms") -> None:
        ratio = None if baseline is None else baseline / value
        rows.append(
            {"name": name, "unit": unit, "value": value, "baseline": baseline, "ratio": ratio}
        )

    sizes = [(1, 2, 15), (2, 2, 12), (3, 5, 14), (5, 9, 22)]
    for size in sizes[: 2 if quick else 4]:
        layout = wall(*size)
        bricks = len(layout.part_ids) - 1
        anchored = np.arange(bricks + 1) == 0
        loads = gravity_loads(layout, np.array([0.0, 0.0, -9.81]))
        rng = np.random.default_rng(0)
        shaken = [loads * rng.uniform(0.95, 1.05, size=(bricks + 1, 1)) for _ in range(8)]
        default, paper = get_model("default"), get_model("paper")
        row(f"build, {bricks} bricks", shortest(lambda: default.system(layout, anchored), 5))  # noqa: B023
        first = shortest(lambda: default.system(layout, anchored).solve(loads), 5)  # noqa: B023
        theirs = None
        system = default.system(layout, anchored)
        later = shortest(lambda: [system.solve(b) for b in shaken], 5) / len(shaken)  # noqa: B023
        their_later = None
        if bricks <= 200:
            published = paper.system(layout, anchored)
            theirs = shortest(lambda: published.solve(loads), 1)  # noqa: B023
            their_later = shortest(lambda: published.solve(shaken[0]), 1)  # noqa: B023
        row(f"build and first solve, {bricks} bricks", first, theirs)
        row(f"solve, loads changed, {bricks} bricks", later, their_later)
        row(f"safety factor, {bricks} bricks", shortest(lambda: system.safety_factor(loads), 1))  # noqa: B023

    paths = [DATA / f"{name}.txt" for name in BATCH]
    repeat = 1 if quick else 3
    spent = shortest(lambda: [analyze(read_structure(p), limit=False) for p in paths], repeat)
    row("structures of 59-99 bricks, file to verdict", 1e3 * len(paths) / spent, None, "1/s")
    return rows


if __name__ == "__main__":
    for line in run(quick=False):
        ratio = "" if line["ratio"] is None else f": {line['ratio']:6.1f} x"
        print(f"{line['name']:55} {line['value']:9.2f} {line['unit']}{ratio}")
