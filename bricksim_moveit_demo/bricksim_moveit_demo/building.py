# SPDX-License-Identifier: Apache-2.0
"""Building a whole structure brick by brick from bricks on the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, inverse, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.errors import Outcome
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.layout import TableLayout, arrange
from bricksim_moveit_demo.reports import InsertionGoal, Report
from bricksim_moveit_demo.world import World


@dataclass(frozen=True)
class Summary:
    """How building went.

    Attributes:
        success: True if the whole structure stands.
        message: What went wrong; empty on success.
        inserted: Bricks in place.
        total: Bricks to insert.
        reports: One per handled brick, in order.
        duration: Simulation time [s].
        planning_time: Wall time spent planning [s].
    """

    success: bool
    message: str
    inserted: int
    total: int
    reports: tuple[Report, ...]
    duration: float
    planning_time: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for summary.json."""
        return asdict(self)


def base_part(structure: Structure) -> int:
    """Id of the part that the structure stands on.

    The fixed part; without one, the largest of the lowest parts.

    Raises:
        StructureError: Several parts are fixed.
    """
    if len(structure.fixed) > 1:
        raise StructureError(
            f"{structure.name}: parts {sorted(structure.fixed)} are fixed, expected one base"
        )
    if structure.fixed:
        return next(iter(structure.fixed))
    poses = structure.part_poses()

    def rank(part_id: int) -> tuple[float, int, int]:
        shape = structure.graph.part(part_id).shape
        return round(float(poses[part_id][2, 3]), 6), -shape.length * shape.width, part_id

    return min(poses, key=rank)


def insertion_order(structure: Structure, base: int) -> list[InsertionGoal]:
    """From the base upwards: each brick onto one that stands already.

    Raises:
        StructureError: A brick has nothing below it; the text names it.
    """
    graph = structure.graph
    component = graph.component_of(base)
    grids = {p: graph.grid_pose(p) for p in graph.component_parts(component)}
    outside = [p for p in graph.part_ids if p not in grids]
    if outside:
        raise StructureError(f"{structure.name}: parts {outside} are not connected to {base}")
    goals = []
    placed = {base}
    for part in sorted(grids, key=lambda p: (grids[p].z, grids[p].y, grids[p].x, p)):
        if part == base:
            continue
        below = [c for c in graph.connections_of(part) if c.hole_part == part]
        support = next((c for c in below if c.stud_part in placed), None)
        if support is None:
            raise StructureError(
                f"{structure.name}: part {part} has nothing below it to be pressed onto"
            )
        goals.append(InsertionGoal(part, support.stud_part, support.offset, support.yaw))
        placed.add(part)
    return goals


def lay_out(
    simulator: Simulator,
    structure: Structure,
    layout: TableLayout | None = None,
    seed: int = 0,
    noise: Callable[[np.random.Generator], Array] | None = None,
) -> None:
    """Puts the base in its place and all other bricks loose on the table, ids as in the structure.

    Args:
        simulator: An empty simulator.
        structure: What is to be built.
        layout: Where things go.
        seed: Seed of the layout.
        noise: Further error of each brick's place, e.g. `Noise.sample`.

    Raises:
        TaskError: The bricks do not fit on the table.
    """
    layout = layout or TableLayout()
    generator = np.random.default_rng([seed, 0x7AB1E])
    base = base_part(structure)
    graph = structure.graph
    shapes = {p: graph.part(p).shape for p in graph.part_ids if p != base}
    poses = arrange(shapes, layout, generator)
    if noise is not None:
        poses = {part: pose @ noise(generator) for part, pose in poses.items()}
    poses[base] = transform([*layout.seat, 0.0])
    loose = BrickTopologyGraph()
    component_poses = {}
    for part_id in graph.part_ids:
        part = graph.part(part_id)
        loose.add_part(part.shape, part.color, part_id=part_id)
        part_T_component = inverse(part_pose(GridPose(), part.shape))
        component_poses[loose.component_of(part_id)] = poses[part_id] @ part_T_component
    scene = Structure(loose, component_poses, frozenset({base}), structure.name)
    simulator.spawn(scene, np.eye(4), part_ids={p: p for p in graph.part_ids})


class StructureBuilder:
    """Builds structures with one or more arms, one brick after the other.

    Args:
        world: The scene.
        handlers: Arms by name.
        progress: Called after each brick with its report, bricks in place and bricks in all.
    """

    def __init__(
        self,
        world: World,
        handlers: Mapping[str, BrickHandler],
        progress: Callable[[Report, int, int], None] | None = None,
    ) -> None:
        self._world = world
        self._handlers = handlers
        self._progress = progress

    def build(
        self,
        goals: Sequence[InsertionGoal],
        ids: Mapping[int, int] | None = None,
        stop_at_failure: bool = False,
    ) -> Summary:
        """Inserts bricks in order.

        Args:
            goals: What to insert, in ids of the structure.
            ids: World part ids by structure part ids; None: they are the same.
            stop_at_failure: End at the first brick that fails; else go on with what can be built.
        """
        begin = self._world.time
        reports: list[Report] = []
        failed: set[int] = set()
        message = ""
        for goal in goals:
            goal = goal if ids is None else _renamed(goal, ids)
            if goal.target in failed:
                failed.add(goal.part)
                continue
            report = self._insert(goal)
            reports.append(report)
            if not report.success:
                failed.add(goal.part)
                message = message or f"brick {goal.part}: {report.message}"
            if self._progress is not None:
                self._progress(report, sum(r.success for r in reports), len(goals))
            if report.outcome is Outcome.CANCELED or (failed and stop_at_failure):
                break
        inserted = sum(r.success for r in reports)
        return Summary(
            inserted == len(goals),
            message,
            inserted,
            len(goals),
            tuple(reports),
            self._world.time - begin,
            sum(r.planning_time for r in reports),
        )

    def _insert(self, goal: InsertionGoal) -> Report:
        """Lets the first arm that reaches do it."""
        report: Report | None = None
        for handler in self._handlers.values():
            report = handler.pick_and_insert(goal)
            if report.outcome is not Outcome.UNREACHABLE:
                break
        assert report is not None
        return report


def _renamed(goal: InsertionGoal, ids: Mapping[int, int]) -> InsertionGoal:
    return replace(goal, part=ids[goal.part], target=ids[goal.target])
