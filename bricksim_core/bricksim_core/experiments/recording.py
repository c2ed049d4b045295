# SPDX-License-Identifier: Apache-2.0
"""What happened in a simulation, frame by frame, in the ids of the structure's own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import loaded
from bricksim_core.events import ConnectionEvent, EventKind, SolverNote, StepResult, Timings
from bricksim_core.parts import BrickShape, Color
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array
from bricksim_core.topology.frames import stud_T_connection

PartName = int | str
"""Id of a part in its file; with several files in one scene a text like "a:3"."""


@dataclass(frozen=True)
class ConnectionChange:
    """A connection that began or ended.

    Attributes:
        time: When [s].
        kind: Began or ended.
        cause: Why.
        stud_part: Lower part.
        hole_part: Upper part.
        offset: Origin of the hole interface frame in the stud interface frame [studs].
        yaw: Rotation of the hole interface frame [quarter turns].
        utilization: Load over capacity when it broke, else NaN.
        force: Pressing force or axial force [N], NaN where it means nothing.
        part_index: Row of the lower part in the recording.
        local: Centre of the connection in the lower part's frame [m].
    """

    time: float
    kind: EventKind
    cause: str
    stud_part: PartName
    hole_part: PartName
    offset: tuple[int, int]
    yaw: int
    utilization: float
    force: float
    part_index: int
    local: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Recording:
    """All frames of a simulation. F frames, N parts.

    Attributes:
        parts: The N parts' names.
        shapes: Their shapes.
        colors: Their colours.
        fixed: (N,) parts that the world holds.
        times: (F,) simulation time at each frame [s]; the first is the start.
        world_T_part: (F, N, 4, 4) poses [m]; `pictures.ABSENT` while a part is not there.
        utilization: (F, N) highest utilization among each part's connections, NaN where unknown.
        changes: Connections that began or ended, in order.
        pieces: Parts of each component at the end, the largest first.
        timings: Wall times of the F - 1 steps.
        loading: (F - 1,) which of them waited for compiled loops that a process loads once.
        solver_notes: Solves that did not go as they should.
    """

    parts: tuple[PartName, ...]
    shapes: tuple[BrickShape, ...]
    colors: tuple[Color, ...]
    fixed: np.ndarray
    times: Array
    world_T_part: Array
    utilization: Array
    changes: tuple[ConnectionChange, ...]
    pieces: tuple[tuple[PartName, ...], ...]
    timings: tuple[Timings, ...]
    loading: NDArray[np.bool_]
    solver_notes: tuple[SolverNote, ...]

    @property
    def broken(self) -> tuple[ConnectionChange, ...]:
        """The connections that ended."""
        return tuple(c for c in self.changes if c.kind is EventKind.BROKEN)

    @property
    def max_utilization(self) -> float:
        """Highest utilization of all frames; NaN if nothing was ever solved."""
        known = self.utilization[~np.isnan(self.utilization)]
        return float(known.max()) if known.size else float("nan")

    def frame_times(self) -> dict[str, float]:
        """Statistics of the wall time of a step [ms]: mean, median, p99, max, of all that did not
        wait for loops to be loaded; and ``loading``, what those took together that did."""
        total = 1e3 * np.array([t.total for t in self.timings])
        loading = float(total[self.loading].sum())
        if not self.loading.all():
            total = total[~self.loading]
        if not total.size:
            return {}
        return {
            "mean": float(total.mean()),
            "median": float(np.median(total)),
            "p99": float(np.percentile(total, 99)),
            "max": float(total.max()),
            "loading": loading,
        }


class Recorder:
    """Takes in the steps of a simulator whose parts stay the same.

    Args:
        simulator: The simulator, before its first step.
        names: Name of each part by its id in the simulator.
    """

    def __init__(self, simulator: Simulator, names: Mapping[int, PartName]) -> None:
        self._simulator = simulator
        self._names = dict(names)
        self._ids = simulator.graph.part_ids
        self._row = {part_id: row for row, part_id in enumerate(self._ids)}
        self._changes: list[ConnectionChange] = []
        self._notes: list[SolverNote] = []
        self._timings: list[Timings] = []
        self._loading: list[bool] = []
        self._loaded = loaded()
        first = simulator.result()
        self._times = [first.time]
        self._poses = [first.world_T_part]
        self._utilization = [self._by_part(first)]

    def add(self, result: StepResult) -> None:
        """Takes in one step."""
        for event in result.events:
            self._changes.append(self._change(event))
        self._notes += result.solver_notes
        self._timings.append(result.timings)
        now = loaded()
        self._loading.append(now != self._loaded)
        self._loaded = now
        self._times.append(result.time)
        self._poses.append(result.world_T_part)
        self._utilization.append(self._by_part(result))

    def finish(self) -> Recording:
        """The recording so far."""
        graph, simulator = self._simulator.graph, self._simulator
        parts = [graph.part(i) for i in self._ids]
        pieces = [
            tuple(self._names[p] for p in graph.component_parts(c)) for c in graph.component_ids
        ]
        return Recording(
            parts=tuple(self._names[i] for i in self._ids),
            shapes=tuple(p.shape for p in parts),
            colors=tuple(p.color for p in parts),
            fixed=np.isin(self._ids, list(simulator.fixed_parts)),
            times=np.array(self._times),
            world_T_part=np.stack(self._poses),
            utilization=np.stack(self._utilization),
            changes=tuple(self._changes),
            pieces=tuple(sorted(pieces, key=len, reverse=True)),
            timings=tuple(self._timings),
            loading=np.array(self._loading, dtype=np.bool_),
            solver_notes=tuple(self._notes),
        )

    def _by_part(self, result: StepResult) -> Array:
        graph = self._simulator.graph
        values = zip(result.connection_ids.tolist(), result.utilization.tolist(), strict=True)
        loaded = [(graph.connection(i), value) for i, value in values]
        loaded += [(event.connection, event.utilization) for event in result.events]
        highest = np.full(len(self._ids), np.nan)
        for connection, value in loaded:
            rows = [self._row[connection.stud_part], self._row[connection.hole_part]]
            highest[rows] = np.fmax(highest[rows], value)
        return highest

    def _change(self, event: ConnectionEvent) -> ConnectionChange:
        connection = event.connection
        graph = self._simulator.graph
        stud, hole = (graph.part(p) for p in (connection.stud_part, connection.hole_part))
        x, y, z = stud_T_connection(connection, stud.shape, hole.shape)[:3, 3].tolist()
        return ConnectionChange(
            time=event.time,
            kind=event.kind,
            cause=str(event.cause),
            stud_part=self._names[connection.stud_part],
            hole_part=self._names[connection.hole_part],
            offset=connection.offset,
            yaw=connection.yaw,
            utilization=event.utilization,
            force=event.force,
            part_index=self._row[connection.stud_part],
            local=(x, y, z),
        )
