# SPDX-License-Identifier: Apache-2.0
"""Cold verdicts by the default model, against model "paper" solved cold.

Real structures under their weight: the first solve, and everything from reading the file to the
verdict. Then many small ones: walls, stairs, towers, sticks and cantilevers of 5 to 31 parts and
the built cases of the test data, each under its weight, and with pushes of its highest brick along
x, across and down, close to the limit (0.98) and beyond it (1.5 and 3 times): for each family,
under weight and pushed, the rows give the least ratio and whose it is, and the median.
The baseline is the paper's three OSQP programs set up and solved once, matrices not counted; of our
model everything but the constructor counts. CPU time, the shortest of several runs, both in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.loads import gravity_loads
from bricksim_core.mechanics.models import get_model
from bricksim_core.parts import PLATE_HEIGHT
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.topology.structure import Structure

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
FILES = (
    "bricksim/demo_assembly_structure1.json",
    "stablelego/external_weight_good.json",
    "stablelego/stair_19.json",
    "stablelego/stair_20.json",
    "stablelego/stick_light.json",
    "stablelego/stick_heavy.json",
    "brickgpt/texture_guitar.txt",
)
PUSHES = {"along": (0.1, 0.0, 0.0), "across": (0.0, 0.1, 0.0), "down": (0.0, 0.0, -0.1)}
"""On the highest brick [N], before the loads are scaled."""
LEVELS = (0.98, 1.5, 3.0)
"""Loads over those at which the structure fails."""


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def wall(wide: int, high: int) -> str:
    """A wall in running bond of 4x2 bricks."""
    return _text(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})" for k in range(high) for i in range(wide))


def stairs(steps: int) -> str:
    """Steps of 2x4 bricks, each one stud further."""
    return _text(f"2x4 ({k},0,{k})" for k in range(steps))


def tower(layers: int) -> str:
    """Two bricks a layer, crosswise."""
    lines = []
    for k in range(layers):
        lines += [f"2x4 ({2 * i},0,{k})" if k % 2 == 0 else f"4x2 (0,{2 * i},{k})" for i in (0, 1)]
    return _text(lines)


def stick(bricks: int) -> str:
    """A row of 4x1 bricks in two layers."""
    return _text(f"4x1 ({3 * k},0,{k % 2})" for k in range(bricks))


def cantilever(arm: int, column: int) -> str:
    """An arm of 4x2 bricks on a column of 2x2 bricks."""
    lines = [f"2x2 (0,0,{k})" for k in range(column)]
    return _text([*lines, *(f"4x2 ({2 * k},0,{column + k % 2})" for k in range(arm))])


SMALL: dict[str, str] = {
    **{f"wall {w}x{h}": wall(w, h) for w, h in ((1, 5), (2, 3), (3, 3), (5, 2), (2, 5), (3, 5))},
    **{f"wall {w}x{h}": wall(w, h) for w, h in ((5, 4), (4, 6), (6, 5), (3, 10), (10, 3))},
    **{f"stairs {n}": stairs(n) for n in (5, 8, 12, 20)},
    **{f"tower {2 * n}": tower(n) for n in (3, 6, 10, 15)},
    **{f"stick {n}": stick(n) for n in (5, 9, 15, 29)},
    **{f"cantilever {a}+{c}": cantilever(a, c) for a, c in ((3, 2), (6, 4), (12, 8), (20, 10))},
}
"""Structures of 5 to 30 bricks."""


REAL = (
    "bricksim/demo_assembly_structure1.json",
    "stablelego/stair_19.json",
    "stablelego/stick_light.json",
    "brickgpt/texture_guitar.txt",
    "brickgpt/demo_table.txt",
    "brickgpt/demo_sofa.txt",
    "brickgpt/demo_car.txt",
    "brickgpt/mesh2brick_car.txt",
)


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows of real structures, then of small ones."""
    return real_rows(quick) + small_rows(quick)


def real_rows(quick: bool) -> list[dict[str, Any]]:
    """Cold solve and the way from file to verdict, by structure."""
    rows = []
    for name in REAL[1:5] if quick else REAL:
        path = DATA / name
        structure = read_structure(path)
        (component,) = structure.graph.component_ids
        layout = structure.graph.layout(component)
        loads = gravity_loads(layout, np.array([0.0, 0.0, -9.81]))
        default, paper = in_turn(structure, layout, loads, 3 if quick else 7)
        whole = np.inf
        for _ in range(3 if quick else 7):
            start = time.process_time()
            analyze(read_structure(path), limit=False)
            whole = min(whole, time.process_time() - start)
        for what, value in (("cold solve", default), ("from file", whole)):
            name = f"{what}, {path.stem} ({len(layout.part_ids)} parts)"
            rows.append(_row(name, value, paper, paper / value))
    return rows


def small_rows(quick: bool) -> list[dict[str, Any]]:
    """For each family, under weight and pushed, the structure of the least ratio and the median."""
    found: dict[str, list[tuple[float, float, float, str]]] = {}
    for family, name, structure in structures(quick):
        for component in structure.graph.component_ids:
            layout = structure.graph.layout(component)
            if not len(layout.connection_ids):
                continue
            for kind, loads in cases(structure, layout):
                default, paper = in_turn(structure, layout, loads, 2 if quick else 3)
                group = f"{family}, {'pushed' if kind else 'weight'}"
                result = paper / default, default, paper, f"{name} {kind}".strip()
                found.setdefault(group, []).append(result)
    rows = []
    for group, results in found.items():
        results.sort()
        for what, result in (("least", results[0]), ("median", results[len(results) // 2])):
            ratio, value, baseline, name = result
            rows.append(_row(f"{group}: {what} of {len(results)}, {name}", value, baseline, ratio))
    return rows


def _row(name: str, value: float, baseline: float, ratio: float) -> dict[str, Any]:
    return {
        "name": name,
        "unit": "ms",
        "value": 1e3 * value,
        "baseline": 1e3 * baseline,
        "ratio": ratio,
    }


def structures(quick: bool) -> Iterator[tuple[str, str, Structure]]:
    """Families, names and structures."""
    for name, text in list(SMALL.items())[:: 4 if quick else 1]:
        yield name.partition(" ")[0], name, parse_structure(text)
    for file in FILES[:2] if quick else FILES:
        yield "test data", Path(file).stem, read_structure(DATA / file)


def cases(structure: Structure, layout: ComponentLayout) -> Iterator[tuple[str, Array]]:
    """Pushes, empty for none, and (N, 6) loads."""
    weights = gravity_loads(layout, np.array([0.0, 0.0, -9.81]))
    yield "", weights
    system = get_model("default").system(layout, *support(structure, layout))
    for direction, push in PUSHES.items():
        pushed = weights.copy()
        pushed[int(np.argmax(layout.coms[:, 2])), :3] += push
        factor = system.safety_factor(pushed).factor
        if 0.0 < factor < np.inf:
            for level in LEVELS:
                yield f"{direction}, {level:g} x limit", level * factor * pushed


def support(structure: Structure, layout: ComponentLayout) -> tuple[Any, float | None]:
    """(N,) held parts, and the ground where there are none."""
    anchored = np.isin(layout.part_ids, list(structure.fixed))
    return anchored, None if anchored.any() else float(layout.grids[:, 2].min()) * PLATE_HEIGHT


def in_turn(
    structure: Structure, layout: ComponentLayout, loads: Array, times: int
) -> tuple[float, float]:
    """Shortest `cold_solve` of the default model and of model "paper", taken in turn [s]."""
    best = {"default": np.inf, "paper": np.inf}
    for _ in range(times):
        for model in best:
            best[model] = min(best[model], cold_solve(model, structure, layout, loads))
    return best["default"], best["paper"]


def cold_solve(model: str, structure: Structure, layout: ComponentLayout, loads: Array) -> float:
    """CPU time of the first solve of a fresh system [s], without building it."""
    system = get_model(model).system(layout, *support(structure, layout))
    start = time.process_time()
    system.solve(loads)
    return time.process_time() - start


if __name__ == "__main__":
    for row in run(quick=False):
        print(
            f"{row['name']:60} {row['value']:8.2f} {row['unit']}, paper cold"
            f" {row['baseline']:8.2f} ms: {row['ratio']:6.1f} x"
        )
