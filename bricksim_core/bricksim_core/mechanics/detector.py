# SPDX-License-Identifier: Apache-2.0
"""Watches moving components and says which connections break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.portions import Portions, at_once, solve_cost
from bricksim_core.mechanics.selection import bypassed_by_sound, select_breaks
from bricksim_core.mechanics.slip import Sliding, SlipCriterion
from bricksim_core.mechanics.snapfit import SnapFitConstants, SnapFitModel
from bricksim_core.mechanics.types import ComponentSystem, ConnectionModel, Solution, SolveStatus
from bricksim_core.membership import are_in
from bricksim_core.parts import STUD_PITCH
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.values import as_number, require_flag

_ACCURACY = 1e-6
"""Of utilizations at a limit [-]: less above it is no overload."""

_SET_UP, _SET_UP_EACH, _JOINED_EACH = 0.3, 0.0012, 0.0025
"""Cost of new equations of a component, and for each of its parts; where some are joined anew."""

_BREAK, _BREAK_EACH = 2.4, 0.0035
"""Cost of a break in the scene and the engine, and for each part of the component."""


@dataclass(frozen=True)
class BreakageThresholds:
    """When connections break.

    Attributes:
        enabled: False: nothing is solved and nothing breaks.
        utilization: Load over capacity above which a connection is overloaded [-].
        cooldown: Time after a change of a component in which none of its connections breaks [s].
            BrickSim's value. What slides in this time after a join is not counted: bodies that snap
            into place push, for a step or two, with forces that nothing real stands behind.
        engagement: Slip by overload after which a connection is broken [m]; 0: at once, as in
            BrickSim; None: what the model says.
        impact_time: Duration of real impacts [s], to which the engine's longer ones are compressed
            (`impacts`); inf: take loads as the engine gives them, as in BrickSim; None: what the
            model says.
        reuse: Error of the utilizations up to which those of other loads are given again [-], where
            it is certain and nothing is overloaded; 0: loads that differ are solved for, and
            overloads among many parts exactly, however long that takes.
        imbalance: Part of the loads that no internal force can balance, above which the finding
            says so [-]. BrickSim's value. Loads below the component's weight count as its weight,
            so that the rounding noise of free fall is no news.
        lateness: Time [s] by which the simulator may break components of many parts too late where
            its frames would be long else (`load_watch`); 0: never.

    Raises:
        BrickSimError: A value is negative or no number, or `utilization` or `impact_time` is 0.
    """

    enabled: bool = True
    utilization: float = 1.0
    cooldown: float = 0.05
    engagement: float | None = None
    impact_time: float | None = None
    reuse: float = 1e-3
    imbalance: float = 0.1
    lateness: float = 0.15

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self) if f.name != "enabled"):
            value = getattr(self, name)
            if value is None and name in ("engagement", "impact_time"):
                continue
            above = name in ("utilization", "impact_time")
            as_number(value, f"breakage threshold {name}", 0.0, above=above, finite=False)
        require_flag(self.enabled, "breakage threshold enabled")


class BreakCriterion(Protocol):
    """Decides when overloaded connections fail. Its memory goes by connection id, so that it
    outlasts joins and breaks elsewhere in the component."""

    def failed(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: ComponentSystem,
        loads: Array,
        utilization: Array,
        overloaded: NDArray[np.bool_],
        tolerance: float,
        engagement: float,
        dt: float,
        brief: bool,
        rest: float,
        change: Array | None,
    ) -> Portions[Sliding]:
        """Takes in one step of a component. Its memory changes at the end.

        Args:
            layout: The component.
            anchored: (N,) parts that the world holds.
            system: Its equations.
            loads: (N, 6) loads on its parts, as they were in reality [N, N m].
            utilization: (C,) of its connections under them; by a short pulse, of the bonded
                structure.
            overloaded: (C,) connections that are overloaded now.
            tolerance: Error of utilizations that is allowed; see `ComponentSystem.solve`.
            engagement: Slip after which a connection has failed [m]; 0: at once.
            dt: For how long the loads act [s].
            brief: They were a short pulse.
            rest: For how long nothing acts after them [s].
            change: (6,) of a free component's motion by them [m/s, rad/s], in its frame; None:
                unknown.

        Returns:
            Connections that have failed, whether overloaded now or not, and those that can part
            together with them.

        Raises:
            SolverError: Nothing can be said of this step.
        """
        ...

    def forget(self, connection_ids: tuple[int, ...]) -> None:
        """Drops what it knows of connections that have ended, or that others hold together."""
        ...

    def follow(self, layouts: Sequence[ComponentLayout]) -> None:
        """Drops what it knows of motions after a change of the topology, but of those in the given
        components: what comes off alone, is joined to something or is gone moves in none."""
        ...

    def snapshot(self) -> object:
        """Its complete memory, to be given to `restore`."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot."""
        ...


@record
class Finding:
    """What the detector says of one component in one step.

    Attributes:
        utilization: (C,) by the layout's order of connections; NaN where unknown.
        broken: Ids of the connections that break now.
        bypassed: Ids of overloaded connections that cannot come apart because sound ones hold their
            parts together.
        solution: Internal forces; None if nothing was solved.
        message: What the user should know of the solve; empty if all is well.
    """

    utilization: Array
    broken: tuple[int, ...] = ()
    bypassed: tuple[int, ...] = ()
    solution: Solution | None = None
    message: str = ""


@dataclass
class _Entry:
    """One component.

    Attributes:
        layout: The component.
        anchored: (N,) parts that the world holds.
        system: Its equations, None until they are needed.
        origin: Equations before it changed.
        joined: Parts that were there before have got new connections.
        age: Time examined [s].
    """

    layout: ComponentLayout
    anchored: NDArray[np.bool_]
    system: ComponentSystem | None = None
    origin: ComponentSystem | None = None
    joined: bool = False
    age: float = 0.0

    def holds_for(self, layout: ComponentLayout, anchored: NDArray[np.bool_]) -> bool:
        """Whether a component is still the same."""
        return _same(self.layout, layout) and bool((self.anchored == anchored).all())


class BreakageDetector:
    """Examines components step by step; equations are kept while a component does not change.

    The same sequence of calls gives the same findings, bit by bit, also from a restored snapshot.
    """

    def __init__(
        self,
        model: ConnectionModel,
        thresholds: BreakageThresholds = BreakageThresholds(),
        criterion: BreakCriterion | None = None,
    ) -> None:
        """
        Args:
            model: Gives the internal forces.
            thresholds: May be exchanged at any time.
            criterion: Decides what fails; None: a `SlipCriterion`.
        """
        self.model = model
        self.thresholds = thresholds
        if criterion is None:
            own = model.constants if isinstance(model, SnapFitModel) else SnapFitConstants()
            criterion = SlipCriterion(own)
        self.criterion: BreakCriterion = criterion
        self._entries: dict[int, _Entry] = {}

    def examine(
        self,
        component_id: int,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        loads: Array,
        dt: float,
        impact: float = 1.0,
        change: Array | None = None,
    ) -> Finding:
        """Takes in one step of a component, and takes it that what is to break does.

        Args:
            component_id: Its id.
            layout: The component as it was during the step. Handing in the same object again saves
                a comparison.
            anchored: (N,) parts that the world holds.
            loads: (N, 6) loads on the parts (`loads.StepLoads`).
            dt: Length of the step [s].
            impact: How many times shorter, and stronger, the loads were in reality (`impacts`);
                in the rest of the step nothing acts.
            change: (6,) of the motion of a free component by an impact: of the velocity of its COM
                and of its spin, in its frame [m/s, rad/s]; None: unknown.
        """
        arguments = component_id, layout, anchored, loads, dt, impact, change
        finding = at_once(self.examination(*arguments))
        self.criterion.forget(finding.broken)
        return finding

    def examination(
        self,
        component_id: int,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        loads: Array,
        dt: float,
        impact: float,
        change: Array | None,
    ) -> Portions[Finding]:
        """What `examine` does, but that the criterion still has to `forget` what breaks. Meanwhile
        the component must not be examined otherwise nor change."""
        count, limits, engagement = len(layout.connection_ids), self.thresholds, self.engagement
        if not limits.enabled or count == 0:
            return Finding(np.full(count, np.nan))
        entry = self._entry(component_id, layout, anchored)
        settled = self._settled(entry)
        entry.age += dt
        if entry.system is None:
            each = _JOINED_EACH if entry.joined else _SET_UP_EACH
            yield _SET_UP + each * len(loads)
            yield from self._system(entry).factor()
        system = self._system(entry)
        # Loads of an impact are gone before much can yield; the criterion looks at what slides.
        real = loads if impact == 1.0 else loads * impact
        if impact == 1.0:
            solution = yield from system.solving(loads, limits.reuse)
        else:
            yield solve_cost(len(loads))
            solution = system.bonded(real)
        if solution.status is SolveStatus.FAILED:
            message = f"no internal forces found, nothing breaks: {solution.message}"
            return Finding(solution.utilization, solution=solution, message=message)

        messages = [solution.message] if solution.message else []
        imbalance = solution.imbalance
        if imbalance > limits.imbalance:
            imbalance *= _share_of_weight(layout, loads)
        if imbalance > limits.imbalance:
            messages.append(f"{imbalance:.0%} of the loads cannot be balanced")
        overloaded = solution.utilization > limits.utilization + _ACCURACY
        broken: tuple[int, ...] = ()
        if not entry.joined or settled:
            try:
                sliding = yield from self.criterion.failed(
                    layout,
                    anchored,
                    system,
                    real,
                    solution.utilization,
                    overloaded,
                    limits.reuse,
                    engagement,
                    dt / impact,
                    impact != 1.0,
                    dt - dt / impact,
                    change,
                )
                broken = self._broken(layout, anchored, system, sliding, settled)
            except SolverError as error:
                messages.append(f"no slip found, nothing breaks: {error}")
        bypassed = bypassed_by_sound(anchored, layout.stud_index, layout.hole_index, overloaded)
        if broken:
            yield _BREAK + _BREAK_EACH * len(loads)  # what the others will make of it
        return Finding(
            utilization=solution.utilization,
            broken=broken,
            bypassed=tuple(layout.connection_ids[bypassed].tolist()),
            solution=solution,
            message="; ".join(messages),
        )

    def _broken(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: ComponentSystem,
        sliding: Sliding,
        settled: bool,
    ) -> tuple[int, ...]:
        """Ids of the connections that break by what has slid."""
        ends = layout.stud_index, layout.hole_index
        broken: tuple[int, ...] = ()
        if settled and sliding.failed.any():
            cut = select_breaks(
                anchored,
                *ends,
                sliding.severity,
                sliding.loose,
                system.strength,
                candidates=sliding.failed,
            ).broken
            broken = tuple(layout.connection_ids[cut].tolist())
        if settled and not broken:
            # Studs that sound connections hold in place cannot have slid out.
            self.criterion.forget(tuple(layout.connection_ids[sliding.failed].tolist()))
        return broken

    @property
    def engagement(self) -> float:
        """Slip after which a connection is broken [m]."""
        own = self.thresholds.engagement
        return self.model.engagement if own is None else own

    @property
    def impact_time(self) -> float:
        """Duration of real impacts [s]."""
        own = self.thresholds.impact_time
        return self.model.impact_time if own is None else own

    def follow(
        self,
        changed: Mapping[int, tuple[ComponentLayout, NDArray[np.bool_], int | None]],
        gone: Iterable[int] = (),
    ) -> None:
        """Takes over a change of the topology, so that equations can be cut out of earlier ones.

        Args:
            changed: Layout, parts that the world holds, and id of the component that it is a piece
                of (None for none), by id of each new or changed component.
            gone: Ids of components that do not exist any more; unknown ids are fine.
        """
        before = dict(self._entries)
        for component_id in gone:
            self._entries.pop(component_id, None)
        going_on = []
        for component_id, (layout, anchored, source) in changed.items():
            known = before.get(component_id)
            if known is not None and known.holds_for(layout, anchored):
                continue
            old = None if source is None else before.get(source)
            entry = _Entry(layout, np.array(anchored, dtype=bool))
            if old is not None:
                entry.origin = old.system or old.origin
                new = not are_in(layout.connection_ids, old.layout.connection_ids).all()
                entry.joined = new or (old.joined and not self._settled(old))
                if not new:
                    going_on.append(layout)
            elif source is not None:  # single parts have no equations
                entry.joined = True
            self._entries[component_id] = entry
        going_on.extend(e.layout for i, e in self._entries.items() if before.get(i) is e)
        self.criterion.follow(going_on)

    def prepare(self) -> None:
        """Sets up the equations of new components, which else happens when they are examined.

        Findings do not hang on it.
        """
        if not self.thresholds.enabled:
            return
        for entry in self._entries.values():
            if entry.system is None and entry.origin is None and len(entry.layout.connection_ids):
                self._system(entry).prepare()

    def snapshot(self) -> object:
        """Everything that the next findings hang on, to be given to `restore`."""
        entries = {
            component_id: (replace(e), None if e.system is None else e.system.snapshot())
            for component_id, e in self._entries.items()
        }
        return self.model, self.thresholds, self.criterion, self.criterion.snapshot(), entries

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot of this detector."""
        self.model, self.thresholds, self.criterion, memory, entries = snapshot
        self.criterion.restore(memory)
        self._entries = {}
        for component_id, (entry, state) in entries.items():
            self._entries[component_id] = entry = replace(entry)
            if entry.system is not None:
                entry.system.restore(state)

    def _entry(
        self, component_id: int, layout: ComponentLayout, anchored: NDArray[np.bool_]
    ) -> _Entry:
        entry = self._entries.get(component_id)
        if entry is None or not entry.holds_for(layout, anchored):
            entry = _Entry(layout, np.array(anchored, dtype=bool))
            self._entries[component_id] = entry
        return entry

    def _settled(self, entry: _Entry) -> bool:
        return entry.age >= self.thresholds.cooldown - 1e-9

    def _system(self, entry: _Entry) -> ComponentSystem:
        system = entry.system
        if system is None:
            origin, entry.origin = entry.origin, None
            system = self.model.system(entry.layout, entry.anchored, origin=origin)
            entry.system = system
        return system


def _share_of_weight(layout: ComponentLayout, loads: Array) -> float:
    """Norm of the loads over the component's weight (torques per stud pitch), at most 1."""
    norm = np.hypot(np.linalg.norm(loads[:, :3]), np.linalg.norm(loads[:, 3:]) / STUD_PITCH)
    return min(float(norm / (STANDARD_GRAVITY * layout.masses.sum())), 1.0)


def _same(a: ComponentLayout, b: ComponentLayout) -> bool:
    return a is b or (
        a.shapes == b.shapes
        and np.array_equal(a.part_ids, b.part_ids)
        and np.array_equal(a.grids, b.grids)
        and np.array_equal(a.connection_ids, b.connection_ids)
        and np.array_equal(a.stud_index, b.stud_index)
        and np.array_equal(a.hole_index, b.hole_index)
    )
