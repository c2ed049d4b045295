# SPDX-License-Identifier: Apache-2.0
"""What a change of the topology costs among loose bricks: connecting two, taking them apart.

The baseline is what MuJoCo needs to compile the same scene anew and to set up its data, without
anything else that the change takes: what each change would cost at least without a model that is
changed in place. CPU time, everything in one run.
"""

from __future__ import annotations

import time
from typing import Any

import mujoco
import numpy as np

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.specification import (
    Capacity,
    SceneOptions,
    compile_spec,
    scene_spec,
)
from bricksim_core.formats import parse_structure
from bricksim_core.simulator import Simulator

COUNTS = (50, 200, 1000)
EVENTS = 40


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows: an event by number of bricks, and a frame in which nothing moves."""
    rows = []
    for count in COUNTS[:2] if quick else COUNTS:
        compiling, (event, rest) = _compile_time(count), _event_time(count)
        for name, value in ((f"event, {count} bricks", event), (f"rest, {count} bricks", rest)):
            rows.append(
                {
                    "name": name,
                    "unit": "ms",
                    "value": value,
                    "baseline": compiling,
                    "ratio": compiling / value,
                }
            )
    return rows


def _compile_time(count: int) -> float:
    """Median CPU time [ms] of compiling a scene of so many free bricks and of making its data."""
    engine = MujocoEngine()
    options = SceneOptions(engine.timestep, engine.gravity, 0.0, engine._contact)
    spec = scene_spec(options, (), Capacity(count, 2 * count))
    times = []
    for _ in range(5 if count < 500 else 2):
        start = time.process_time()
        mujoco.MjData(compile_spec(spec))
        times.append(time.process_time() - start)
    return 1e3 * float(np.median(times))


def _event_time(count: int) -> tuple[float, float]:
    """Median CPU times [ms] of a connection or disconnection, and of a frame before them."""
    columns = int(np.ceil(np.sqrt(count * 5 / 3)))
    lines = [f"2x4 ({3 * (i % columns)},{5 * (i // columns)},0)" for i in range(count)]
    simulator = Simulator()
    ids = list(simulator.spawn(parse_structure("\n".join(lines) + "\n", baseplate=None)).values())
    for _ in range(40):
        simulator.step()
    start = time.process_time()
    for _ in range(60):
        simulator.step()
    rest = (time.process_time() - start) / 60
    pairs = list(zip(ids[0::2], ids[1::2], strict=True))[: EVENTS // 2]
    times, connected = [], {}
    for pair in pairs * 2:
        start = time.process_time()
        if pair in connected:
            simulator.disconnect(connected.pop(pair))
        else:
            made = simulator.connect(*pair, (0, 0), 0)
            connected[pair] = [c.id for c in made]
        times.append(time.process_time() - start)
        for _ in range(3):
            simulator.step()
    return 1e3 * float(np.median(times)), 1e3 * rest


if __name__ == "__main__":
    for row in run(quick=False):
        print(f"{row['name']:24} {row['value']:8.3f} ms {row['baseline']:8.1f} {row['ratio']:6.1f}")
