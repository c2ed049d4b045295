# SPDX-License-Identifier: Apache-2.0
"""Frames of the simulator with one component of 50, 200 and 1000 bricks, dropped and at rest.

The drops take in free fall, impacts and coming to rest; the one from 0.5 m breaks bricks off. The
baseline is the frame of 1/60 s; `ratio` says how many times a frame fits into it.

Other work on the machine is no property of the simulator. So CPU time is measured, and of each
frame the least of some runs, which are the same bit by bit: who shares caches and memory makes
single frames take two or three times as long, each time others.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np

from bricksim_core.events import Cause
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.rehearsal import rehearse
from bricksim_core.simulator import Simulator
from bricksim_core.topology import Structure

FRAME = 1000.0 / 60.0
"""Length of a frame [ms]."""

WAYS = (
    (20, 30, 0), (30, 20, 0), (10, 40, 0), (45, 30, 0), (90, 20, 0), (25, 35, 10), (150, 20, 0),
    (60, 10, 0),
)  # fmt: skip
"""Ways of landing, roll, pitch and yaw [degrees]: how many pieces come off and how they fall into
each other hangs on it, and with that what the worst frames cost."""

HIGH = 0.5
"""From where each of these is tried [m]."""

DROPS = {
    "flat": ((0, 0, 0), 0.144),
    "tilted": (WAYS[0], 0.144),
    "tilted from 0.5 m": (WAYS[0], HIGH),
}
"""Way of landing, and height of the lowest point [m]."""

RUNS = 3
"""How often each drop is run."""

BLOCKS = {50: (2, 2, 12), 200: (3, 5, 14), 1000: (5, 9, 22)}
"""Bricks along x and y, and layers."""


def block(columns: int, rows: int, layers: int) -> Structure:
    """A solid block of 4x2 bricks in running bond: one component with many loops."""
    return parse_structure(running_bond(columns, rows, layers), baseplate=None)


def frame_times(
    structure: Structure, euler, height: float, seconds: float, runs: int = RUNS
) -> tuple:
    """CPU time of each frame and of the spawning before [ms], the least of some runs, in which
    frames pieces came off, and pieces at the end."""
    times, spawnings, breaks, pieces = zip(
        *(_run(structure, euler, height, seconds) for _ in range(runs)), strict=True
    )
    assert len(set(pieces)) == 1 and (np.array(breaks) == breaks[0]).all()
    return np.min(times, axis=0), min(spawnings), breaks[0], pieces[0]


def _run(structure: Structure, euler, height: float, seconds: float) -> tuple:
    """The same of one run."""
    simulator = Simulator()
    pose = standing(structure, rotation_from_degrees(*euler), height)
    start = time.process_time()
    simulator.spawn(structure, pose, fixed=())
    spawning = 1e3 * (time.process_time() - start)
    times, breaks = [], []
    gc.collect()
    for _ in range(round(60 * seconds)):
        start = time.process_time()
        result = simulator.step()
        times.append(1e3 * (time.process_time() - start))
        breaks.append(any(event.cause is Cause.OVERLOAD for event in result.events))
    pieces = len(simulator.graph.component_ids)
    return np.array(times), spawning, np.array(breaks), pieces


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows: median, 99th percentile and maximum of drops and at rest; spawning."""
    rehearse()
    rows = []

    def row(name: str, value: float) -> None:
        rows.append(
            {"name": name, "unit": "ms", "value": value, "baseline": FRAME, "ratio": FRAME / value}
        )

    def frames(name: str, times: np.ndarray) -> None:
        row(f"{name}, median", float(np.median(times)))
        row(f"{name}, p99", float(np.percentile(times, 99)))
        row(f"{name}, max", float(times.max()))

    seconds, ways = (1.0, WAYS[:2]) if quick else (2.0, WAYS)
    for bricks, size in list(BLOCKS.items())[: 2 if quick else 3]:
        structure = block(*size)
        fallen = []
        for pose, (euler, height) in DROPS.items():
            times, _, breaks, pieces = frame_times(structure, euler, height, seconds)
            frames(f"frame, {bricks} bricks dropped {pose} ({pieces} pieces)", times)
            if breaks.any():
                row(f"frame with a break, {bricks} bricks, {pose}, max", float(times[breaks].max()))
            if height == HIGH:
                fallen.append(times)
        fallen += [frame_times(structure, way, HIGH, seconds)[0] for way in ways[1:]]
        medium = np.median([np.percentile(times, 99) for times in fallen])
        row(
            f"frame, {bricks} bricks, {len(ways)} ways from 0.5 m, median of the p99", float(medium)
        )
        frames(f"frame, {bricks} bricks, {len(ways)} ways from 0.5 m", np.concatenate(fallen))
        times, spawning, *_ = frame_times(structure, (0, 0, 0), 0.0, 2.0)
        frames(f"frame, {bricks} bricks at rest", times[-60:])
        row(f"spawning, {bricks} bricks", spawning)
    return rows


if __name__ == "__main__":
    for line in run(quick=False):
        print(f"{line['name']:55} {line['value']:8.2f} {line['unit']}: {line['ratio']:6.1f} x")
