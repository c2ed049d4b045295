# SPDX-License-Identifier: Apache-2.0
"""From engine steps to findings of the breakage detector: frames and impacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bricksim_core.dynamics import mass_properties
from bricksim_core.engines.protocol import StepReport
from bricksim_core.events import SolverNote
from bricksim_core.mechanics.bodies import Bodies, bodies_of, most
from bricksim_core.mechanics.detector import BreakageDetector, Finding
from bricksim_core.mechanics.impacts import HIT_SPEED, rebounding, split_impacts, touch_of
from bricksim_core.mechanics.loads import STANDARD_GRAVITY, StepLoads
from bricksim_core.mechanics.portions import Allowance, Task
from bricksim_core.mechanics.snapfit.balance import Balance, balance_of
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.mechanics.wedges import without_wedges
from bricksim_core.membership import are_in, places_in
from bricksim_core.records import record
from bricksim_core.scene import PartTable, Scene
from bricksim_core.spatial import Array, cross, joined
from bricksim_core.topology.layout import ComponentLayout, IntArray

LONGEST_IMPACT = 0.05
"""Duration after which what goes on hitting counts as a new impact [s]."""

SOME_PARTS = 40
"""Parts of a component from which on examinations may go on in the next frames."""

_FRAME = {50: 2.7, 200: 6.0, 1000: 11.5}
"""What a frame with so many parts in large components may cost (`portions`)."""

_USUAL, _USUAL_EACH = 0.4, 0.0005
"""What a frame costs besides the engine's steps and the examinations, and more for each of these
components' parts."""

_LATE = {50: 2.0, 200: 3.0, 1000: 5.0}
"""By parts, frames that wait above which they may cost as much more as there are more of them."""


@record
class _Pulse:
    """Loads of some steps in a row.

    Attributes:
        total: (N, 6) sum of the steps' loads [N, N m].
        steps: How many; a part of a step counts as such.
        change: (6,) of the component's velocity in them [m/s, rad/s], in its frame.
        pressing: (2,) sums over them of the contacts' normal force [N] and of its square [N^2].
    """

    total: Array
    steps: float
    change: Array
    pressing: Array

    @property
    def mean(self) -> Array:
        """(N, 6) [N, N m]."""
        return self.total / self.steps

    @property
    def sharpness(self) -> float:
        """How many times shorter the steady force is that has the same impulse and square."""
        force, square = self.pressing.tolist()
        return self.steps * square / force**2 if force > 0.0 else 1.0

    def and_then(self, later: _Pulse | None) -> _Pulse:
        """This pulse and the one that went before it as one."""
        if later is None:
            return self
        return _Pulse(
            later.total + self.total,
            later.steps + self.steps,
            later.change + self.change,
            later.pressing + self.pressing,
        )


@record
class _Cut:
    """How a piece came out of a component.

    Attributes:
        rows: (M,) indices of its parts there.
        shift: (3,) from the component's COM to its own [m].
        balance: Of the piece, if nothing holds it; None else.
    """

    rows: IntArray
    shift: Array
    balance: Balance | None

    def of(self, pulse: _Pulse, dt: float) -> _Pulse:
        """A pulse of the component, which took a time [s], for the piece. What nothing holds any
        more moves as its own loads have it."""
        total, change = pulse.total[self.rows], pulse.change.copy()
        change[:3] += cross(change[3:], self.shift)
        if self.balance is not None:
            total, acceleration = self.balance.apart(total / PITCHES)
            total *= PITCHES
            change += acceleration / PITCHES * (dt / pulse.steps)
        return _Pulse(total, pulse.steps, change, pulse.pressing)


@record
class _Due:
    """What a component has gone through, to be examined.

    Attributes:
        dt: For how long [s].
        loads: Under which loads on the component then.
        impact: How many times shorter that was in reality; 1: no impact.
        cuts: How it came apart since, to be worked out when it is examined: not all of that is, and
            not in the frame of the break.
    """

    dt: float
    loads: _Pulse
    impact: float = 1.0
    cuts: tuple[_Cut, ...] = ()

    def worked_out(self) -> _Due:
        """The same, of the piece itself."""
        if not self.cuts:
            return self
        pulse = self.loads
        for cut in self.cuts:
            pulse = cut.of(pulse, self.dt)
        return _Due(self.dt, pulse, self.impact)


@dataclass(eq=False)
class _Watched:
    """One component with connections.

    Attributes:
        layout: The component.
        anchored: (N,) parts that the world holds.
        impact: The impact that goes on.
        force: With which contacts pressed in the last step looked at [N].
        rebounds: Whether that was a rebound.
        examined: Loads of the last call of the detector.
        age: Time examined since the component changed [s].
        utilization: (C,) last answer, also of what it was part of before; NaN where unknown.
        bypassed: Of that answer; see `Finding`.
        still: True if in all steps of the last frame it was still (`StepReport.still`) and nothing
            pushed it.
        waiting: What of earlier frames has to be examined, by frame, in this order.
        task: The examination of the first of it, begun already.
    """

    layout: ComponentLayout
    anchored: NDArray[np.bool_]
    utilization: Array
    bypassed: tuple[int, ...] = ()
    impact: _Pulse | None = None
    force: float = 0.0
    rebounds: bool = False
    examined: Array | None = None
    age: float = 0.0
    still: bool = False
    waiting: tuple[tuple[_Due, ...], ...] = ()
    task: Task[Finding] | None = None

    def copy(self) -> _Watched:
        """The same for another future."""
        return replace(self, task=None if self.task is None else self.task.copy())

    def end_task(self) -> None:
        """Ends what is under way, for a change: what slid has slid, what breaks comes too late."""
        if self.task is not None:
            self.task.run_ahead()
            first, *others = self.waiting
            self.task, self.waiting = None, (first[1:], *others)


class LoadWatch:
    """Averages the loads on every component over a frame and has the detector examine them.

    What hits at speed (`impacts`) is examined apart, each impact as a whole once it is over: only
    its impulse and where it acted can be trusted, not how the engine spread it over its steps.
    Where there are large components only so much is done in a frame; the rest goes on in the next.

    A component whose loads are bit by bit those that were examined last, without an overload, is
    not examined again: the answer would be the same. Loads of one that the engine calls still and
    nothing pushes for two frames are not even worked out.

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
        self._ids: IntArray = np.zeros(0, dtype=np.int64)
        self._bodies = bodies_of({})
        self._table: PartTable | None = None
        self._chosen = self._bodies, np.zeros(0, dtype=np.bool_), self._bodies
        self._set_order()
        self._steps: list[tuple[StepReport, Mapping[int, Array]]] = []

    def sync(self, scene: Scene) -> None:
        """Takes over what the scene consists of, after edits."""
        if scene.table is self._table:  # no component has changed
            return
        self._table = scene.table
        known_ids, known_utilization = self.utilization()
        old, self._watched = self._watched, {}
        layouts = {c: scene.graph.layout(c) for c in scene.component_ids.tolist()}
        fixed = np.fromiter(scene.fixed, dtype=np.int64)
        changed = {}
        same = {
            component
            for component, known in old.items()
            if layouts.get(component) is known.layout
            and np.array_equal(are_in(known.layout.part_ids, fixed), known.anchored)
        }
        for component in old.keys() - same:
            old[component].end_task()
        for component, layout in layouts.items():
            if not len(layout.connection_ids):
                continue
            if component in same:
                self._watched[component] = old[component]
                continue
            anchored = are_in(layout.part_ids, fixed)
            source = self._source_of(layout.part_ids)
            self._watched[component] = _Watched(
                layout,
                anchored,
                utilization=_taken_over(layout.connection_ids, known_ids, known_utilization),
                waiting=() if source is None else _waiting(old.get(source), layout, anchored),
            )
            changed[component] = layout, anchored, source
        held = [component for component, watched in self._watched.items() if watched.anchored.any()]
        self._ids = np.array(list(layouts), dtype=np.int64)
        self._set_order()
        self._bodies = bodies_of(layouts, self._watched.keys(), held)
        self.detector.follow(changed, old.keys() - self._watched.keys())

    def _set_order(self) -> None:
        """Works out the order of `utilization`."""
        ids = joined((w.layout.connection_ids for w in self._watched.values()), dtype=np.int64)
        self._order = np.argsort(ids)
        self._connection_ids: IntArray = ids[self._order]

    def _component_of(self, part_id: int) -> int | None:
        """The component that a part was in at the last `sync`."""
        known, at = self._bodies, int(self._bodies.find(np.array(part_id)))
        if at == len(known.part_ids) or known.part_ids[at] != part_id:
            return None
        return int(self._ids[known.row[at]])

    def _source_of(self, part_ids: IntArray) -> int | None:
        """The component that most of some parts were in at the last `sync`, None if all are new."""
        known = self._bodies
        row = most(known.part_ids, known.row, len(self._ids), part_ids)
        return None if row < 0 else int(self._ids[row])

    def begin(self) -> None:
        """Begins a frame. Steps of one that failed are forgotten: what was there may be no more."""
        self._steps = []

    def observe(self, report: StepReport, applied: Mapping[int, Array]) -> None:
        """Takes in one engine step.

        Args:
            report: The step.
            applied: (6,) wrenches that acted on parts during it, by part id.
        """
        if self._watched and self.detector.thresholds.enabled:
            self._steps.append((report, dict(applied)))

    def examine(self) -> tuple[dict[int, Finding], tuple[SolverNote, ...]]:
        """Ends a frame.

        Returns:
            Findings with breaks by component id, and solves that did not go as they should.
        """
        findings: dict[int, Finding] = {}
        notes: list[SolverNote] = []
        steps, self._steps = self._steps, []
        if not self.detector.thresholds.enabled:
            for watched in self._watched.values():
                watched.utilization = np.full(len(watched.utilization), np.nan)
                watched.bypassed = ()
                watched.end_task()
                watched.waiting = ()
            return findings, ()
        if not steps:
            return findings, ()
        stirred = self._stirred(steps)
        if not stirred.any():
            return findings, ()
        chosen = [one for one, wanted in zip(self._watched.items(), stirred, strict=True) if wanted]
        quiet, impacts = self._pulses(steps, stirred, [watched for _, watched in chosen])
        late = max(len(watched.waiting) for _, watched in chosen)
        allowance = _allowance(self._many, [report for report, _ in steps], late)
        latest = self.detector.thresholds.lateness / self._frame + 1e-9
        for index, (component, watched) in enumerate(chosen):
            usual, over = quiet[index], impacts[index]
            known = usual is None or self._known(watched, usual.mean)
            if known and not over and not watched.waiting:
                continue
            finding = self._examine(component, watched, usual, over, allowance, latest)
            watched.age += self._frame
            if finding is None:
                continue
            watched.utilization, watched.bypassed = finding.utilization, finding.bypassed
            if finding.broken:
                self.detector.criterion.forget(finding.broken)
                findings[component] = finding
            status = finding.solution.status if finding.solution else SolveStatus.SOLVED
            if finding.message or status in (SolveStatus.FALLBACK, SolveStatus.FAILED):
                notes.append(SolverNote(component, status.value, finding.message))
        return findings, tuple(notes)

    def utilization(self) -> tuple[IntArray, Array]:
        """(C,) connection ids, sorted, and (C,) their utilizations in the last frame."""
        values = joined(w.utilization for w in self._watched.values())
        return self._connection_ids, values[self._order]

    def bypassed(self) -> IntArray:
        """(B,) ids of overloaded connections that others held together in the last frame."""
        ids = [connection for w in self._watched.values() for connection in w.bypassed]
        return np.array(sorted(ids), dtype=np.int64)

    def snapshot(self) -> object:
        """What `restore` takes."""
        watched = {component: w.copy() for component, w in self._watched.items()}
        return self.detector.snapshot(), watched, self._bodies, self._ids, self._table

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot."""
        assert isinstance(snapshot, tuple)
        detector, watched, self._bodies, self._ids, self._table = snapshot
        self.detector.restore(detector)
        self._watched = {component: w.copy() for component, w in watched.items()}
        self._set_order()

    def _stirred(
        self, steps: Sequence[tuple[StepReport, Mapping[int, Array]]]
    ) -> NDArray[np.bool_]:
        """(W,) which watched components may have other loads than those examined last."""
        stirred = np.ones(len(self._watched), dtype=np.bool_)
        told = [report.still for report, _ in steps if report.still is not None]
        if len(told) < len(steps):
            return stirred
        pushed = {self._component_of(part) for _, applied in steps for part in applied}
        still = np.logical_and.reduce(told)[self._bodies.loaded].tolist()
        for i, (component, watched) in enumerate(self._watched.items()):
            calm = still[i] and component not in pushed
            if calm and watched.still and watched.impact is None and not watched.waiting:
                stirred[i] = not self._settled(watched)
            watched.still = calm
        return stirred

    def _pulses(
        self,
        steps: list[tuple[StepReport, Mapping[int, Array]]],
        wanted: NDArray[np.bool_],
        watched: Sequence[_Watched],
    ) -> tuple[list[_Pulse | None], list[list[_Pulse]]]:
        """Loads of a frame for some watched components: of the steps that were no part of an
        impact, and of the impacts that are over.

        Args:
            steps: The frame.
            wanted: (W,) which watched components.
            watched: They.
        """
        bodies = self._chosen_bodies(wanted)
        # What is still does not touch anything that is not, but for what the world holds. In the
        # frame in which it falls asleep it is examined once more, and stands on its contacts then.
        rows = self._bodies.loaded[wanted]
        told = [r.still[rows] for r, _ in steps if r.still is not None]
        still = bool(told) and bool(np.concatenate(told).any())
        whole = steps_of([r for r, _ in steps], still=still or bool(bodies.held.any()))
        row = without_wedges(whole, bodies)
        applied = [wrenches for report, wrenches in steps for _ in range(len(report.parts or (0,)))]
        loads = StepLoads(bodies, row, self._gravity, applied)
        touch = touch_of(row, bodies)
        hits = touch.speed > HIT_SPEED
        rebounds = rebounding(
            touch, np.array([w.force for w in watched]), STANDARD_GRAVITY * bodies.mass
        )
        # A mean over a rebound as well would hide what loads as the engine gives them are at most.
        rebounds &= self._compression > 1.0
        lengths: Array = row.dt / self._step

        impacts = []
        turn = np.zeros(hits.shape, dtype=np.int64)  # 0: usual steps, k: those of the k-th impact
        for i, w in enumerate(watched):
            before = w.impact.steps if w.impact else 0.0
            spans = split_impacts(
                hits[:, i], rebounds[:, i], lengths, before, w.rebounds, self._longest
            )
            for k, span in enumerate(spans, start=1):
                turn[span.steps, i] = k
            w.force, w.rebounds = float(touch.force[-1, i]), bool(rebounds[-1, i])
            impacts.append(spans)
        turns = np.arange(1 + max(map(len, impacts)))
        weights = np.where(turn == turns[:, None, None], lengths[:, None], 0.0)
        totals, changes = loads.summed(weights, self._step)
        quiet: list[_Pulse | None] = []
        over: list[list[_Pulse]] = []
        usual = (lengths @ (turn == 0)).tolist()
        for i, (one, spans) in enumerate(zip(watched, impacts, strict=True)):
            pulses: list[_Pulse] = []
            parts = bodies.parts_of(i)
            for k, span in enumerate(spans, start=1):
                pulse = one.impact
                if span.steps:
                    length, force = lengths[span.steps], touch.force[span.steps, i]
                    pressing = np.array([length @ force, length @ force**2])
                    new = _Pulse(totals[k, parts], float(length.sum()), changes[k, i], pressing)
                    pulse = new.and_then(pulse)
                if span.over and pulse is not None:
                    pulses.append(pulse)
                    pulse = None
                one.impact = pulse
            over.append(pulses)
            rest = _Pulse(totals[0, parts], usual[i], changes[0, i], np.zeros(2))
            quiet.append(rest if usual[i] else None)
        return quiet, over

    def _chosen_bodies(self, wanted: NDArray[np.bool_]) -> Bodies:
        """The bodies of (W,) some watched components: mostly they are those of the last frame."""
        bodies, before, chosen = self._chosen
        if bodies is not self._bodies or not np.array_equal(before, wanted):
            chosen = self._bodies.only(wanted)
            self._chosen = self._bodies, wanted, chosen
        return chosen

    def _examine(
        self,
        component: int,
        watched: _Watched,
        usual: _Pulse | None,
        impacts: list[_Pulse],
        allowance: Allowance,
        latest: float,
    ) -> Finding | None:
        """Has the detector take in what waits and a frame, its impacts one by one, then the rest of
        its steps, as far as the allowance lasts, and in any case what has waited for as many frames
        as it may at the latest. None: there was nothing to say."""
        factor, step = self._compression, self._step
        new: list[_Due] = []
        for pulse in impacts:
            shorter = factor * pulse.sharpness if factor > 1.0 else 1.0
            new.append(_Due(pulse.steps * step, pulse, shorter))
        if usual is not None:
            new.append(_Due(usual.steps * step, usual))
        frames = [*map(list, watched.waiting), new]
        watched.examined = None
        found: list[Finding] = []
        while frames:
            due = frames[0]
            if not due:
                del frames[0]
                continue
            one = due[0] = due[0].worked_out()
            if watched.task is None:
                portions = self.detector.examination(
                    component, watched.layout, watched.anchored, one.loads.mean, one.dt,
                    one.impact, one.loads.change,
                )  # fmt: skip
                watched.task = Task(portions)
            result = watched.task.result(allowance, must=len(frames) > latest)
            if not result:
                break
            finding, watched.task = result[0], None
            del due[0]
            watched.examined = one.loads.mean if one.impact == 1.0 else None
            found.append(finding)
            if finding.broken:
                del frames[0]  # it broke in it
                break
        watched.waiting = tuple(tuple(frame) for frame in frames if frame)
        if not found:
            return None
        if len(found) == 1:
            return found[0]
        highest = found[0].utilization
        for finding in found[1:]:
            highest = np.fmax(highest, finding.utilization)
        bypassed = {connection for finding in found for connection in finding.bypassed}
        return replace(found[-1], utilization=highest, bypassed=tuple(sorted(bypassed)))

    @property
    def _many(self) -> int:
        """Parts of components whose examinations may go on in the next frames: they are not small,
        or a piece of such a one that still waits for some."""
        some = [
            len(watched.layout.part_ids)
            for watched in self._watched.values()
            if watched.waiting or len(watched.layout.part_ids) >= SOME_PARTS
        ]
        return sum(some)

    @property
    def _compression(self) -> float:
        """How many times shorter impacts are in reality, at least 1."""
        return max(1.0, self._contact_time / self.detector.impact_time)

    def _known(self, watched: _Watched, loads: Array) -> bool:
        """Whether the detector would answer what it answered last."""
        return (
            watched.examined is not None
            and np.array_equal(watched.examined, loads)
            and self._settled(watched)
        )

    def _settled(self, watched: _Watched) -> bool:
        """Whether the detector would answer what it answered last if loads were the same."""
        limits = self.detector.thresholds
        return (
            watched.examined is not None
            and watched.age > limits.cooldown + self._frame
            # Unknown (NaN) and overloaded connections have to be examined again.
            and bool(np.all(watched.utilization <= limits.utilization))
        )


def _taken_over(connection_ids: IntArray, known_ids: IntArray, known: Array) -> Array:
    """(C,) what connections were last known to bear before the topology changed, NaN for new ones.

    Args:
        connection_ids: (C,)
        known_ids: (D,) sorted.
        known: (D,) their utilization.
    """
    places = places_in(known_ids, connection_ids)
    return np.append(known, np.nan)[places]  # -1, not known, is the last one


def _waiting(
    whole: _Watched | None, layout: ComponentLayout, anchored: NDArray[np.bool_]
) -> tuple[tuple[_Due, ...], ...]:
    """What of a component has to be examined in a piece of it; nothing after a join. (What slides
    in it does so under its next loads.)"""
    if whole is None or not whole.waiting:
        return ()
    rows = np.flatnonzero(are_in(whole.layout.part_ids, layout.part_ids))
    if len(rows) < len(layout.part_ids):
        return ()
    shift = mass_properties(layout).com - mass_properties(whole.layout).com
    cut = _Cut(rows, shift, None if anchored.any() else balance_of(layout))
    return tuple(
        tuple(_Due(one.dt, one.loads, one.impact, (*one.cuts, cut)) for one in frame)
        for frame in whole.waiting
    )


@lru_cache
def _limits(many: int) -> tuple[float, float]:
    """`_FRAME` and `_LATE` for so many parts."""
    whole, usual = (
        float(np.interp(many, list(by_parts), list(by_parts.values())))
        for by_parts in (_FRAME, _LATE)
    )
    return whole * max(1.0, many / max(_FRAME)), usual


def _allowance(many: int, steps: Sequence[StepReport], late: int) -> Allowance:
    """What examinations may cost in a frame.

    Args:
        many: Parts in components whose examinations may go on in the next frames.
        steps: The frame.
        late: Frames that wait.
    """
    if not many:
        return Allowance(np.inf)
    whole, usual = _limits(many)
    left = whole - _USUAL - _USUAL_EACH * many - sum(report.cost for report in steps)
    return Allowance(max(left, 0.0) * max(1.0, late / usual), begin=late >= usual)
