# SPDX-License-Identifier: Apache-2.0
"""Frame times of a drop: a wall of bricks falls 144 mm onto its edge, breaks and comes to rest.

The baseline is the same drop with the published model (three quadratic programmes a frame and
component, as BrickSim has it) in the same run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bricksim_core.formats import parse_structure
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import transform
from bricksim_core.topology import Structure


def wall(count: int) -> Structure:
    """A wall in running bond of ``count`` bricks 4x2, one component."""
    width = min(20, max(2, round(count**0.5 / 1.5)))
    lines = []
    for i in range(count):
        layer, column = divmod(i, width)
        lines.append(f"4x2 ({4 * column + 2 * (layer % 2)},0,{layer})")
    return parse_structure("\n".join(lines) + "\n", baseplate=None)


def drop(count: int, model: str, frames: int) -> np.ndarray:
    """Frame times [ms] of a drop."""
    simulator = Simulator(config=SimulatorConfig(model=model))
    pose = transform([0, 0, 0.144], [0.0, np.sin(0.15), 0.0, np.cos(0.15)])
    structure = wall(count)
    pose[2, 3] -= min((pose @ p)[2, 3] for p in structure.part_poses().values()) - 0.15
    simulator.spawn(structure, pose)
    return np.array([1e3 * simulator.step().timings.total for _ in range(frames)])


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows: mean, p99 and greatest frame time by number of bricks."""
    frames = 40 if quick else 90
    rows = []
    for count in (10, 50) if quick else (10, 50, 200, 1000):
        times = drop(count, "default", frames)
        base = drop(count, "paper", frames) if count <= 50 else None
        for name, pick in (("mean", np.mean), ("p99", _p99), ("max", np.max)):
            value = float(pick(times))
            baseline = None if base is None else float(pick(base))
            rows.append(
                {
                    "name": f"drop of {count} bricks, frame {name}",
                    "unit": "ms",
                    "value": value,
                    "baseline": baseline,
                    "ratio": None if baseline is None else baseline / value,
                }
            )
    return rows


def _p99(times: np.ndarray) -> float:
    return float(np.percentile(times, 99))
