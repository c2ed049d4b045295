# SPDX-License-Identifier: Apache-2.0
"""Static analysis of real structures by the default model, against model "paper" solved cold.

The baseline is what the paper times: three OSQP programs set up and solved once, matrices not
counted. Both models are timed in turn in the same run (CPU time), each from a fresh system; the
shortest of several runs counts. "from file" is everything from reading the file to the verdict.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from bricksim_core.formats import read_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.loads import gravity_loads
from bricksim_core.mechanics.models import get_model
from bricksim_core.parts import PLATE_HEIGHT
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.topology.structure import Structure

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
FILES = (
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
    """Rows: cold solve and the way from file to verdict, by structure."""
    rows = []
    for name in FILES[1:5] if quick else FILES:
        path = DATA / name
        structure = read_structure(path)
        (component,) = structure.graph.component_ids
        layout = structure.graph.layout(component)
        times = {"paper": np.inf, "default": np.inf}
        whole = np.inf
        for _ in range(3 if quick else 7):
            for model in times:
                times[model] = min(times[model], cold_solve(model, structure, layout))
            start = time.process_time()
            analyze(read_structure(path), limit=False)
            whole = min(whole, time.process_time() - start)
        for what, value in (("cold solve", times["default"]), ("from file", whole)):
            rows.append(
                {
                    "name": f"{what}, {path.stem} ({len(layout.part_ids)} parts)",
                    "unit": "ms",
                    "value": 1e3 * value,
                    "baseline": 1e3 * times["paper"],
                    "ratio": times["paper"] / value,
                }
            )
    return rows


def cold_solve(model: str, structure: Structure, layout: ComponentLayout) -> float:
    """CPU time of the first solve of a fresh system under gravity [s], without building it."""
    anchored = np.isin(layout.part_ids, list(structure.fixed))
    lowest = float(layout.grids[:, 2].min()) * PLATE_HEIGHT
    ground = None if anchored.any() else lowest
    system = get_model(model).system(layout, anchored, ground)
    loads = gravity_loads(layout, np.array([0.0, 0.0, -9.81]))
    start = time.process_time()
    system.solve(loads)
    return time.process_time() - start


if __name__ == "__main__":
    for row in run(quick=False):
        print(
            f"{row['name']:50} {row['value']:8.2f} {row['unit']}, paper cold"
            f" {row['baseline']:8.2f} ms: {row['ratio']:6.1f} x"
        )
