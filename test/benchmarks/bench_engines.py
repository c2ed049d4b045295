# SPDX-License-Identifier: Apache-2.0
"""Engines side by side: step time, drift and cantilever sag for 10, 50 and 200 bricks.

mujoco keeps a component as one rigid body; ovphysx welds a body per brick (present only where the
extra is installed: run this file with that Python). All in one run, so that ratios count; times
are CPU time of the process, which other work on the machine disturbs least.

- step: median time of a step of a wall that stands on the ground.
- drift: how far a wall's bricks have moved against each other after two seconds of tumbling.
- frame: median and 99th percentile of whole frames (`Simulator.step`, four engine steps with all
  mechanics) of the wall at rest (asleep), pushed lightly (hence awake), dropped on its edge, and of
  as many loose bricks at rest.
- episode: ten simulated seconds with 50 bricks: one is pressed onto a wall and connects (to 2 s),
  the wall stands (to 4 s), is dropped on its edge, breaks, and its pieces come to rest. Its
  real-time factor, and how many of its 600 frames took longer than 1/60 s.
- sag: how far the tip of a horizontal beam of bricks (two studs longer with each) hangs below where
  its root, a block of 20 kg on the ground, has it: the mean of the second half of two seconds.
"""

from __future__ import annotations

import importlib.util
import itertools
import time
from typing import Any

import numpy as np

from bricksim_core.engines import BodySpec, Engine, create_engine
from bricksim_core.experiments.setup import standing
from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, transform
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_core.topology.layout import ComponentLayout

COUNTS = (10, 50, 200)
SHAPE = BrickShape(4, 2)
ENGINES = ("mujoco", "ovphysx")


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows: step, drift and sag by number of bricks and engine; mujoco is the baseline of steps."""
    names = [n for n in ENGINES if n == "mujoco" or importlib.util.find_spec(n)]
    rows = []
    for count in COUNTS[:2] if quick else COUNTS:
        steps = {name: _step_time(name, count) for name in names}
        for name, value in steps.items():
            ratio = steps["mujoco"] / value
            rows.append(_row(f"step, {count} bricks, {name}", "ms", value, steps["mujoco"], ratio))
        for case in _CASES:
            frames = {name: _frames(name, count, case) for name in names}
            for name, (median, worst) in frames.items():
                base = frames["mujoco"]
                for what, value, i in (("median", median, 0), ("p99", worst, 1)):
                    text = f"frame {case} {what}, {count} bricks, {name}"
                    rows.append(_row(text, "ms", value, base[i], base[i] / value))
        for name in names:
            rows.append(_row(f"drift, {count} bricks, {name}", "um", 1e6 * _drift(name, count)))
            rows.append(_row(f"sag, {count} bricks, {name}", "um", 1e6 * _sag(name, count)))
    for name in names:
        factor, late, events = _episode(name)
        rows.append(_row(f"episode, real-time factor, {name}", "-", factor))
        rows.append(_row(f"episode, frames that are late, {name}", "-", late))
        rows.append(_row(f"episode, connections made and broken, {name}", "-", events))
    return rows


def _row(
    name: str, unit: str, value: float, baseline: float | None = None, ratio: float | None = None
) -> dict[str, Any]:
    return {"name": name, "unit": unit, "value": value, "baseline": baseline, "ratio": ratio}


def _wall_graph(count: int) -> BrickTopologyGraph:
    """Layers of two bricks and of one that ties them, in turn."""
    graph = BrickTopologyGraph()
    tie = graph.add_part(SHAPE)
    for i in itertools.count():
        if len(graph) >= count:
            break
        part = graph.add_part(SHAPE)
        if i % 3 == 2:
            graph.connect(part - 1, part, (-2, 0), 0)
            tie = part
        else:
            graph.connect(tie, part, (-2 if i % 3 == 0 else 2, 0), 0)
    return graph


def _wall(count: int) -> ComponentLayout:
    graph = _wall_graph(count)
    return graph.layout(graph.component_ids[0])


def _beam(count: int) -> ComponentLayout:
    """A heavy block and a beam of two layers on it, each brick half over the last."""
    graph = BrickTopologyGraph()
    block = graph.add_part(BrickShape(32, 32, 300, mass=20.0))
    ids = [graph.add_part(SHAPE) for _ in range(count)]
    graph.connect(block, ids[0], (28, 15), 0)
    for i, (last, part) in enumerate(itertools.pairwise(ids)):
        below, above, offset = (last, part, 2) if i % 2 == 0 else (part, last, -2)
        graph.connect(below, above, (offset, 0), 0)
    return graph.layout(graph.component_of(block))


def _spec(component: int, layout: ComponentLayout, pose: Array, spin: float = 0.0) -> BodySpec:
    colors = ((255, 255, 255),) * len(layout.part_ids)
    return BodySpec(component, layout, pose, np.array([0, 0, 0, spin, spin, 0]), False, colors)


def _step_time(name: str, count: int) -> float:
    engine = create_engine(name)
    try:
        engine.update([], [_spec(0, _wall(count), np.eye(4))])
        times = []
        for _ in range(150):
            start = time.process_time()
            engine.step()
            times.append(time.process_time() - start)
        return 1e3 * float(np.median(times[30:]))
    finally:
        engine.close()


_CASES = ("at rest", "pushed", "dropped", "loose")
_SETTLING = {"at rest": 180, "pushed": 3, "dropped": 3, "loose": 180}
"""Frames that are not measured."""


def _frames(name: str, count: int, case: str) -> tuple[float, float]:
    """Median and 99th percentile of 120 frames [ms]."""
    simulator = Simulator(create_engine(name))
    try:
        if case == "loose":
            graph = BrickTopologyGraph()
            parts = [graph.add_part(SHAPE) for _ in range(count)]
            places = {
                graph.component_of(part): transform([0.05 * (i % 10), 0.03 * (i // 10), 0.0])
                for i, part in enumerate(parts)
            }
            simulator.spawn(Structure(graph, places))
        else:
            graph = _wall_graph(count)
            structure = Structure(graph, {graph.component_ids[0]: np.eye(4)})
            tilt = [0.2, 0.1, 0.0, 0.97] if case == "dropped" else [0.0, 0.0, 0.0, 1.0]
            rotation, height = transform([0, 0, 0], tilt)[:3, :3], 0.1 * (case == "dropped")
            parts = simulator.spawn(structure, standing(structure, rotation, height))
        times = []
        for frame in range(_SETTLING[case] + 120):
            if case == "pushed":
                simulator.apply_wrench(parts[0], [0, 0, -1e-3 * (1 + frame % 2), 0, 0, 0])
            start = time.process_time()
            simulator.step()
            times.append(1e3 * (time.process_time() - start))
        times = times[_SETTLING[case] :]
        return float(np.median(times)), float(np.percentile(times, 99))
    finally:
        simulator.engine.close()


def _episode(name: str) -> tuple[float, int, int]:
    """Real-time factor, number of late frames and number of events of the episode."""
    simulator = Simulator(create_engine(name))
    try:
        graph = _wall_graph(45)
        wall = Structure(graph, {graph.component_ids[0]: np.eye(4)})
        pose = standing(wall)
        ids = simulator.spawn(wall, pose)
        top = max(ids, key=lambda part: wall.graph.grid_pose(part).z)
        seat = simulator.part_pose(ids[top])
        single = BrickTopologyGraph()
        pressed = single.add_part(SHAPE)
        brick = Structure(single, {single.component_of(pressed): np.eye(4)})
        lift = SHAPE.size[2] + STUD_HEIGHT + 2e-4
        above = seat @ transform([0.0, 0.0, lift]) @ np.linalg.inv(_structure_T_first(brick))
        pressed = simulator.spawn(brick, above)[pressed]
        for i in range(4):
            simulator.spawn(brick, transform([0.2 + 0.05 * i, 0.1, 0.0]))
        tilted = transform([0, 0, 0], [0.2, 0.1, 0.0, 0.97])[:3, :3]
        times, events = [], 0
        simulator.step()
        for frame in range(600):
            if frame < 120:
                simulator.apply_wrench(pressed, [0, 0, -min(0.1 * frame, 2.0), 0, 0, 0])
            elif frame == 240:
                simulator.teleport(ids[0], standing(wall, tilted, 0.4) @ _structure_T_first(wall))
            start = time.process_time()
            result = simulator.step()
            times.append(time.process_time() - start)
            events += len(result.events)
        return 10.0 / sum(times), sum(t > 1.0 / 60.0 for t in times), events
    finally:
        simulator.engine.close()


def _structure_T_first(structure: Structure) -> Array:
    """(4, 4) pose of a structure's first part in its frame [m]."""
    component = structure.graph.component_ids[0]
    layout = structure.graph.layout(component)
    return structure.component_poses[component] @ layout.component_T_parts[0]


def _drift(name: str, count: int) -> float:
    engine = create_engine(name, gravity=(0.0, 0.0, 0.0), ground=None)
    try:
        engine.update([], [_spec(0, _wall(count), np.eye(4), spin=2.0)])
        for _ in range(480):
            engine.step()
        layout = _wall(count)
        return float(np.abs(_relative(engine, layout) - _exact(layout)).max())
    finally:
        engine.close()


def _sag(name: str, count: int) -> float:
    engine = create_engine(name)
    try:
        layout = _beam(count)
        engine.update([], [_spec(0, layout, np.linalg.inv(layout.component_T_parts[0]))])
        heights = []
        for _ in range(480):
            engine.step()
            heights.append(_relative(engine, layout)[-1, 2])
        return float(_exact(layout)[-1, 2] - np.mean(heights[240:]))
    finally:
        engine.close()


def _exact(layout: ComponentLayout) -> Array:
    """(N, 3) places of the bricks in the frame of the first one [m]."""
    poses = layout.component_T_parts
    return (np.linalg.inv(poses[0]) @ poses)[:, :3, 3]


def _relative(engine: Engine, layout: ComponentLayout) -> Array:
    """(N, 3) places of the bricks' bodies in the frame of the first one [m]."""
    motion = getattr(engine, "part_motion", None)
    if motion is None:
        return _exact(layout)  # one rigid body: the bricks have no places of their own
    poses = motion()[0][: len(layout.part_ids)]
    return (np.linalg.inv(poses[0]) @ poses)[:, :3, 3]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows with a line for each quantity and number of bricks, a column for each engine."""
    values: dict[str, dict[str, str]] = {}
    for row in rows:
        what, _, engine = row["name"].rpartition(", ")
        values.setdefault(f"{what} [{row['unit']}]", {})[engine] = f"{row['value']:.3f}"
    names = [name for name in ENGINES if any(name in found for found in values.values())]
    lines = [f"{'':44}" + "".join(f"{name:>12}" for name in names)]
    for what, found in values.items():
        lines.append(f"{what:44}" + "".join(f"{found.get(name, ''):>12}" for name in names))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(run(quick=False)))
