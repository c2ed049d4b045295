# SPDX-License-Identifier: Apache-2.0
"""From engine steps to findings of the breakage detector: frames and impacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import StepReport
from bricksim_core.events import SolverNote
from bricksim_core.mechanics.detector import BreakageDetector, Finding
from bricksim_core.mechanics.impacts import HIT_SPEED, bodies_of, closing_speeds
from bricksim_core.mechanics.loads import ImpulseTable, part_loads
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.scene import Scene
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

LONGEST_IMPACT = 0.05
"""Duration after which what goes on hitting counts as a new impact [s]."""


@dataclass(eq=False)
class _Watched:
    """One component with connections.

    Attributes:
        layout: The component.
        fixed: True if the world holds it.
        anchored: (N,) parts that the world holds.
        steps: Loads (N, 6) of the frame's steps so far that were no part of an impact.
        impact: Loads of the steps of the impact that goes on.
        over: Loads of the steps of the frame's impacts that are over.
        still: Contacts and loads of the last step if the component was exactly at rest in it.
        examined: Loads of the last call of the detector.
        age: Time examined since the component changed [s].
        utilization: (C,) last answer, NaN where unknown.
    """

    layout: ComponentLayout
    fixed: bool
    anchored: NDArray[np.bool_]
    utilization: Array
    steps: list[Array] = field(default_factory=list)
    impact: list[Array] = field(default_factory=list)
    over: list[list[Array]] = field(default_factory=list)
    still: tuple[tuple[IntArray, Array, Array], Array] | None = None
    examined: Array | None = None
    age: float = 0.0

    def take(self, loads: Array, hits: bool, longest: int) -> None:
        """Takes in the loads of a step.

        Args:
            loads: (N, 6).
            hits: True if the component hit something at speed.
            longest: Steps after which an impact ends in any case.
        """
        if hits:
            self.impact.append(loads)
        if self.impact and (not hits or len(self.impact) >= longest):
            self.over.append(self.impact)
            self.impact = []
        if not hits:
            self.steps.append(loads)


class LoadWatch:
    """Averages the loads on every component over a frame and has the detector examine them.

    What hits at speed (`impacts`) is examined apart, each impact as a whole once it is over: only
    its impulse and where it acted can be trusted, not how the engine spread it over its steps.

    A component whose loads are bit by bit those that were examined last, without an overload, is
    not examined again: the answer would be the same.

    Args:
        detector: Examines components.
        gravity: (3,) [m/s^2].
        frame: Length of a frame [s].
        step: Length of an engine step [s].
        contact_time: The engine's time constant of contacts [s].
    """

    def __init__(
        self,
        detector: BreakageDetector,
        gravity: Array,
        frame: float,
        step: float,
        contact_time: float,
    ) -> None:
        self.detector = detector
        self._gravity = gravity
        self._frame = frame
        self._step = step
        self._contact_time = contact_time
        self._longest = max(1, round(LONGEST_IMPACT / step))
        self._watched: dict[int, _Watched] = {}
        self._bodies = bodies_of({})

    def sync(self, scene: Scene) -> None:
        """Takes over what the scene consists of, after edits."""
        old, self._watched = self._watched, {}
        self._bodies = bodies_of({c: scene.graph.layout(c) for c in scene.component_ids.tolist()})
        for component in scene.component_ids.tolist():
            layout = scene.graph.layout(component)
            if not len(layout.connection_ids):
                continue
            anchored = np.isin(layout.part_ids, list(scene.fixed))
            known = old.get(component)
            if (
                known is not None
                and known.layout is layout
                and np.array_equal(known.anchored, anchored)
            ):
                self._watched[component] = known
                continue
            self._watched[component] = _Watched(
                layout,
                bool(anchored.any()),
                anchored,
                utilization=np.full(len(layout.connection_ids), np.nan),
            )
        for component in old.keys() - self._watched.keys():
            self.detector.forget(component)

    def observe(self, report: StepReport, applied: Mapping[int, Array]) -> None:
        """Takes in one engine step.

        Args:
            report: The step.
            applied: (6,) wrenches that acted on parts during it, by part id.
        """
        if not self._watched or not self.detector.thresholds.enabled:
            return
        impulses = ImpulseTable(report.contacts)
        rows = np.searchsorted(report.component_ids, np.fromiter(self._watched, dtype=np.int64))
        moving = (
            np.any(report.twist[rows] != 0.0, axis=1)
            | np.any(report.previous_twist[rows] != 0.0, axis=1)
        ).tolist()
        hits = closing_speeds(report, self._bodies) > HIT_SPEED
        for row, moves, watched in zip(rows.tolist(), moving, self._watched.values(), strict=True):
            contacts = impulses.on(watched.layout.part_ids) if not moves and not applied else None
            if contacts is not None and watched.still is not None:
                before, loads = watched.still
                if all(np.array_equal(a, b) for a, b in zip(before, contacts, strict=True)):
                    watched.take(loads, False, self._longest)
                    continue
            loads = part_loads(
                watched.layout,
                report.previous_world_T_component[row],
                report.previous_twist[row],
                report.world_T_component[row],
                report.twist[row],
                impulses,
                report.dt,
                self._gravity,
                applied,
                watched.fixed,
            ).loads
            watched.still = None if contacts is None else (contacts, loads)
            watched.take(loads, bool(hits[row]), self._longest)

    def examine(self) -> tuple[dict[int, Finding], tuple[SolverNote, ...]]:
        """Ends a frame.

        Returns:
            Findings with breaks by component id, and solves that did not go as they should.
        """
        findings: dict[int, Finding] = {}
        notes: list[SolverNote] = []
        if not self.detector.thresholds.enabled:
            for watched in self._watched.values():
                watched.utilization = np.full(len(watched.utilization), np.nan)
            return findings, ()
        for component, watched in self._watched.items():
            loads = np.mean(watched.steps, axis=0) if watched.steps else None
            if not watched.over and (loads is None or self._known(watched, loads)):
                watched.steps = []
                continue
            finding = self._examine(component, watched, loads)
            watched.steps, watched.examined = [], loads
            watched.age += self._frame
            watched.utilization = finding.utilization
            if finding.broken:
                findings[component] = finding
            status = finding.solution.status if finding.solution else SolveStatus.SOLVED
            if finding.message or status in (SolveStatus.FALLBACK, SolveStatus.FAILED):
                notes.append(SolverNote(component, status.value, finding.message))
        return findings, tuple(notes)

    def utilization(self) -> tuple[IntArray, Array]:
        """(C,) connection ids, sorted, and (C,) their utilizations in the last frame."""
        watched = self._watched.values()
        ids = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(w.layout.connection_ids for w in watched)]
        )
        values = np.concatenate([np.zeros(0), *(w.utilization for w in watched)])
        order = np.argsort(ids)
        return ids[order], values[order]

    def snapshot(self) -> object:
        """What `restore` takes."""
        watched = {component: _copied(w) for component, w in self._watched.items()}
        return self.detector.snapshot(), watched, self._bodies

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot."""
        assert isinstance(snapshot, tuple)
        detector, watched, self._bodies = snapshot
        self.detector.restore(detector)
        self._watched = {component: _copied(w) for component, w in watched.items()}

    def _examine(self, component: int, watched: _Watched, steps: Array | None) -> Finding:
        """Has the detector take in a frame: its impacts one by one, then the rest of its steps."""
        detector, layout, anchored = self.detector, watched.layout, watched.anchored
        factor = max(1.0, self._contact_time / detector.impact_time)
        impacts, watched.over = watched.over, []
        parts = [(np.mean(loads, axis=0), len(loads) * self._step, factor) for loads in impacts]
        if steps is not None:
            parts.append((steps, len(watched.steps) * self._step, 1.0))
        finding, highest = None, watched.utilization * np.nan
        for loads, dt, impact in parts:
            finding = detector.examine(component, layout, anchored, loads, dt, impact)
            highest = np.fmax(highest, finding.utilization)
            if finding.broken:
                break
        assert finding is not None
        return replace(finding, utilization=highest)

    def _known(self, watched: _Watched, loads: Array) -> bool:
        """Whether the detector would answer what it answered last."""
        limits = self.detector.thresholds
        return (
            watched.examined is not None
            and watched.age > limits.cooldown + self._frame
            # Unknown (NaN) and overloaded connections have to be examined again.
            and bool(np.all(watched.utilization <= limits.utilization))
            and np.array_equal(watched.examined, loads)
        )


def _copied(watched: _Watched) -> _Watched:
    return replace(
        watched,
        steps=list(watched.steps),
        impact=list(watched.impact),
        over=[list(loads) for loads in watched.over],
    )
