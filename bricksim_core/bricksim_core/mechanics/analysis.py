# SPDX-License-Identifier: Apache-2.0
"""Static analysis: does a structure stand, and how much of its capacity does a connection use?"""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bricksim_core.errors import BrickSimError, StructureError
from bricksim_core.mechanics.geometry import GROUND_TOLERANCE
from bricksim_core.mechanics.loads import STANDARD_GRAVITY, gravity_loads
from bricksim_core.mechanics.models import get_model
from bricksim_core.mechanics.resting import EDGE, TOUCHING, Touch, area, footing, top_down, touches
from bricksim_core.mechanics.selection import Selection, select_breaks
from bricksim_core.mechanics.types import (
    ConnectionModel,
    ContactVertices,
    LimitLoad,
    Solution,
    SolveStatus,
    VerdictLimits,
)
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology.layout import ComponentLayout, IntArray
from bricksim_core.topology.structure import Structure
from bricksim_core.values import as_numbers, shown

LIMIT_UP_TO = 1500
"""Parts of a component up to which the safety factor is found where it was left open."""

GREATEST_LOAD = 1e9
"""Greatest component of a load [N, N m] or of gravity [m/s^2]. Far beyond it rounding would
decide the verdict."""

_LIFT = 1e-4
"""Height [m] by which the highest corner of the faces on which a component stands may be above the
lowest one. What rests aside of their middle in a simulator's soft contacts leans by up to 2e-5."""

_EQUAL = 1e-9
"""Relative difference of utilizations that is rounding."""

Support = Literal["auto", "fixed", "ground"]


class LoadError(BrickSimError):
    """Gravity, a support or a load given by hand is not acceptable."""


@dataclass(frozen=True, eq=False)
class ComponentAnalysis:
    """Static analysis of one component.

    Attributes:
        component: Component id.
        part_ids: (N,) part ids.
        connection_ids: (C,) connection ids; order of the solution's rows.
        supported: True if the world holds a part, or the ground or another component carries one.
        solution: Internal forces, in component axes.
        contacts: Where the contact forces of the solution act.
        limit: At which multiple of its loads it fails, and how; None if that was not asked for.
        max_utilization: Highest utilization, 0 without connections, NaN if the solve failed.
        stable: True if the loads are carried.
        marginal: True if the load is too close to what the component can carry for a verdict.
        reason: Why it is not stable; empty if it is.
        breaking: Ids of the connections that come apart first: the weakest set of overloaded ones
            that has the most loaded one (`selection`); empty if nothing comes apart.
        bypassed: Ids of overloaded connections that cannot come apart because connections within
            their limits hold their parts together.
    """

    component: int
    part_ids: IntArray
    connection_ids: IntArray
    supported: bool
    solution: Solution
    contacts: ContactVertices
    limit: LimitLoad | None
    max_utilization: float
    stable: bool
    marginal: bool
    reason: str
    breaking: tuple[int, ...]
    bypassed: tuple[int, ...]

    @property
    def unknown(self) -> bool:
        """True if its forces are not known: nothing may be concluded."""
        return self.solution.status is SolveStatus.FAILED


@dataclass(frozen=True, eq=False)
class Analysis:
    """Static analysis of a structure.

    Attributes:
        model: Name of the model.
        components: Analysis of each component, by component id.
        build_time: Wall time of building all equations [s].
        solve_time: Wall time of solving them [s].
        limit_time: Wall time of the limit analyses [s].
    """

    model: str
    components: tuple[ComponentAnalysis, ...]
    build_time: float
    solve_time: float
    limit_time: float

    @property
    def stable(self) -> bool:
        """True if every component carries its loads."""
        return all(c.stable for c in self.components)

    @property
    def marginal(self) -> bool:
        """True if a component is too close to its limit for a verdict and all others carry their
        loads."""
        return any(c.marginal for c in self.components) and all(
            c.stable or c.marginal for c in self.components
        )

    @property
    def unknown(self) -> bool:
        """True if the forces of a component are not known and no other one clearly fails."""
        failing = any(not (c.stable or c.marginal or c.unknown) for c in self.components)
        return not failing and not self.solved

    @property
    def solved(self) -> bool:
        """True if every component's forces were found; else nothing may be concluded."""
        return not any(c.unknown for c in self.components)

    @property
    def utilization(self) -> dict[int, float]:
        """Load over capacity by connection id; NaN where the solve failed."""
        return {
            connection: u
            for c in self.components
            for connection, u in zip(
                c.connection_ids.tolist(), c.solution.utilization.tolist(), strict=True
            )
        }

    @property
    def connection_wrenches(self) -> dict[int, Array]:
        """(6,) wrench of the studs on the lower part about the overlap's centre, in component axes
        [N, N m], by connection id. The pushes of its faces are in each solution's `contact_force`.
        """
        return {
            connection: wrench
            for c in self.components
            for connection, wrench in zip(
                c.connection_ids.tolist(), c.solution.connection_wrench, strict=True
            )
        }

    @property
    def breaking(self) -> tuple[int, ...]:
        """Ids of the connections that come apart first, of all components."""
        return tuple(c for component in self.components for c in component.breaking)

    @property
    def bypassed(self) -> tuple[int, ...]:
        """Ids of overloaded connections that others hold together, of all components."""
        return tuple(c for component in self.components for c in component.bypassed)

    @property
    def max_utilization(self) -> float:
        """Highest utilization, 0 without connections, NaN if a solve failed."""
        return float(np.max([c.max_utilization for c in self.components]))

    @property
    def worst_connection(self) -> int | None:
        """Id of the connection with the highest utilization, None without connections.

        Of those that are equal but for rounding, as in a symmetrical structure, the least id.
        """
        ids = np.concatenate([c.connection_ids for c in self.components])
        utilization = np.concatenate([c.solution.utilization for c in self.components])
        if not np.isfinite(utilization).any():
            return None
        return int(ids[_highest(utilization)].min())

    @property
    def safety_factor(self) -> float:
        """Multiple of the loads at which the first component fails: inf if none ever does, 0 if one
        cannot carry them at any size, NaN if it was not asked for or not found.

        Components for which it was not looked for may have no greater utilization than it allows.
        """
        least, bound = np.inf, np.inf
        for c in self.components:
            if c.limit is not None and not np.isnan(c.limit.factor):
                least = min(least, c.limit.factor)
            elif not c.stable:
                bound = 0.0
            elif c.max_utilization > 0.0:
                # Its forces, so many times greater, are still within all limits.
                bound = min(bound, 1.0 / c.max_utilization)
        found = any(c.limit is not None for c in self.components)
        return float(least) if found and least <= bound else np.nan

    @property
    def mechanism(self) -> tuple[int, ...]:
        """Ids of the connections that give way where the structure fails first, most work first."""
        known = [c for c in self.components if c.limit is not None and not np.isnan(c.limit.factor)]
        if not known:
            return ()
        weakest = min(known, key=lambda c: c.limit.factor if c.limit else np.inf)
        rows = list(weakest.limit.mechanism) if weakest.limit else []
        return tuple(weakest.connection_ids[rows].tolist())

    @property
    def statuses(self) -> dict[int, SolveStatus]:
        """How each component's answer came about, by component id."""
        return {c.component: c.solution.status for c in self.components}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the structure is not stable, one line for each failing component."""
        return tuple(c.reason for c in self.components if c.reason)


def analyze(
    structure: Structure,
    *,
    gravity: float | ArrayLike = STANDARD_GRAVITY,
    loads: Mapping[int, ArrayLike] | None = None,
    model: str | ConnectionModel = "default",
    support: Support = "auto",
    limit: bool | None = True,
) -> Analysis:
    """Analyses a structure at rest where it stands.

    Components are analysed one by one, from the top down. What lies on others without a connection
    passes on its loads where statics alone says how: upright ones to the one part on which it
    lies, or to parts that the world holds. Elsewhere its forces and those of what bears it are not
    known (`unknown`): where it lies on several parts, on an edge or on studs' tops, or is pushed
    sideways. Sides that touch sides bear nothing.

    Args:
        structure: Parts, connections and poses.
        gravity: Magnitude (downwards) or (3,) world vector [m/s^2].
        loads: Further loads by part id: (6,) force [N] and torque about the part's COM [N m], world
            axes (a weight, a push, a robot's press).
        model: Name of a snap-fit model, or a model.
        support: What carries the components. "fixed": the structure's fixed parts; "ground": a
            horizontal ground under the lowest faces of each upright component, fixed parts are
            loose; "auto": fixed parts where a component has them, for the others the ground (at the
            structure's ground height if its format defines one).
        limit: True: find the safety factor and the failure mechanism (a linear program); False: do
            not; None: only where the verdict is close and the component has at most
            `LIMIT_UP_TO` parts (a thousand take a second or two, it grows faster than they do).

    Raises:
        StructureError: The structure holds no part.
        LoadError: Gravity or a load has the wrong shape, is not finite or beyond `GREATEST_LOAD`; a
            part id is no whole number; there is no such support.
        UnknownIdError: A load acts on a part that does not exist.
        UnknownModelError: The model does not exist.
    """
    connection_model = get_model(model)
    graph = structure.graph
    if not len(graph):
        raise StructureError(f"{structure.label}: holds no part")
    vector = _gravity_vector(gravity)
    if support not in get_args(Support):
        raise LoadError(f"support is {support!r}, expected one of {', '.join(get_args(Support))}")
    if not isinstance(loads or {}, Mapping):
        raise LoadError(f"loads are {loads!r}, expected a mapping from part ids to wrenches")
    wrenches = {_part_id(part_id): _wrench(part_id, w) for part_id, w in (loads or {}).items()}
    for part_id in wrenches:
        structure.check_part(part_id)

    task = _Task(structure, support, connection_model, limit, vector, wrenches)
    components = task.analysed()
    return Analysis(
        model=connection_model.name,
        components=components,
        build_time=task.build_time,
        solve_time=sum(c.solution.solve_time for c in components),
        limit_time=task.limit_time,
    )


class _Task:
    """One analysis under way: components from the top down, each with what it bears.

    Attributes:
        build_time: Wall time of building equations up to now [s].
        limit_time: Wall time of limit analyses up to now [s].
    """

    def __init__(
        self,
        structure: Structure,
        support: Support,
        model: ConnectionModel,
        limit: bool | None,
        gravity: Array,
        wrenches: Mapping[int, Array],
    ) -> None:
        self.build_time = self.limit_time = 0.0
        self._structure = structure
        self._support = support
        self._model = model
        self._limit = limit
        self._gravity = gravity
        self._wrenches = dict(wrenches)
        self._held = frozenset() if support == "ground" else structure.fixed
        self._touches = touches(structure)
        self._touching: dict[int, list[Touch]] = {}
        for touch in self._touches:
            for component in (touch.upper, touch.lower):
                self._touching.setdefault(component, []).append(touch)
        self._lying: set[int] = set()
        self._open: dict[int, Touch] = {}

    @cached_property
    def _poses(self) -> dict[int, Array]:
        return self._structure.part_poses()

    def analysed(self) -> tuple[ComponentAnalysis, ...]:
        """All components, by id."""
        found: dict[int, ComponentAnalysis] = {}
        for group in top_down(self._structure.graph.component_ids, self._touches):
            for component in group:
                found[component] = self._component(component, mutual=len(group) > 1)
        return tuple(found[component] for component in self._structure.graph.component_ids)

    def _component(self, component: int, mutual: bool) -> ComponentAnalysis:
        """One component, after those that lie on it; ``mutual``: some lie on each other."""
        layout = self._structure.graph.layout(component)
        pose = self._structure.component_poses[component]
        anchored = np.isin(layout.part_ids, list(self._held))
        ground = None
        if self._support != "fixed" and not anchored.any():
            defined = self._structure.ground if self._support == "auto" else None
            ground = _ground_height(layout, pose, defined)
        loads = _static_loads(layout, pose[:3, :3], self._gravity, self._wrenches)
        touching = self._touching.get(component, [])
        below = [t for t in touching if t.upper == component]
        unknown = touching[0] if mutual else self._open.get(component)
        total, inside = np.zeros(6), np.inf
        if below and not anchored.any() and self._lies(layout, pose, ground, below):
            self._lying.add(component)
            total = _resultant(layout, pose, loads)
            inside = footing(below, total)
            feet = {t.upper_part for t in below}
            if inside < -EDGE or len(feet) == 1:
                # The loads of what is rigid act inside of what bears it: the rest hangs on that.
                anchored, ground = np.isin(layout.part_ids, list(feet)), None
            else:
                ground = _ground_height(layout, pose, None)
                if ground is None or not _borne_everywhere(layout, below):
                    inside = np.nan
            if np.isnan(inside):
                unknown = unknown or below[0]
        tipping = _tipping(below) if inside < -EDGE else ""
        analysis = self._judged(component, layout, anchored, ground, loads, tipping)
        if abs(inside) <= EDGE:
            analysis = replace(analysis, marginal=True)
        if unknown is None and not analysis.stable and not analysis.marginal:
            # What others do to it may help.
            unknown = next((t for t in touching if t.upper not in self._lying), None)
        if unknown is not None:
            analysis = _not_analysed(analysis, unknown)
        self._pass_on(analysis, below, None if tipping else total)
        return analysis

    def _lies(
        self, layout: ComponentLayout, pose: Array, ground: float | None, below: Sequence[Touch]
    ) -> bool:
        """True if others carry a component, or share in carrying it, and not the ground alone."""
        if ground is None:
            return True
        if self._support == "auto" and self._structure.ground is not None:
            return not _touches(layout, ground, TOUCHING)
        sole = float((pose @ layout.component_T_parts)[:, 2, 3].min())
        return any(abs(t.bottom - sole) <= TOUCHING for t in below)

    def _judged(
        self,
        component: int,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        ground: float | None,
        loads: Array,
        tipping: str,
    ) -> ComponentAnalysis:
        """The analysis of a component with known supports and loads."""
        verdict = self._model.verdict
        start = time.perf_counter()
        system = self._model.system(layout, anchored, ground)
        self.build_time += time.perf_counter() - start
        solution = system.solve(loads)
        start = time.perf_counter()
        supported = bool(anchored.any()) or _touches(layout, ground)
        limit_load = None
        if self._limit or (self._limit is None and _is_close(solution, layout, verdict)):
            # Nothing carries an unsupported component's load, however small.
            carried = supported and not tipping
            limit_load = system.safety_factor(loads) if carried else LimitLoad(0.0, ())
        self.limit_time += time.perf_counter() - start
        return _judge(
            component,
            layout,
            supported,
            tipping,
            solution,
            system.contacts,
            limit_load,
            verdict,
            select_breaks(
                anchored,
                layout.stud_index,
                layout.hole_index,
                solution.utilization,
                solution.utilization > verdict.utilization,
                system.strength,
            ),
        )

    def _pass_on(
        self, analysis: ComponentAnalysis, below: Sequence[Touch], total: Array | None
    ) -> None:
        """Hands on what a component does to those below it, or that this is not known.

        Args:
            analysis: The component.
            below: Where it lies on others.
            total: (6,) its loads [N] and their torque about the world's origin [N m]; None: it
                falls.
        """
        free = [t for t in below if t.lower_part not in self._held]
        lies = analysis.component in self._lying
        if not free or (not lies and (analysis.stable or analysis.marginal)):
            return  # what stands by itself needs no push
        bearer, *others = {t.lower_part for t in below}
        if not lies or analysis.unknown or others or total is None:
            self._open |= {t.lower: t for t in free}
            return
        shape = self._structure.graph.part(bearer).shape
        com = transform_points(self._poses[bearer], shape.com)
        wrench = np.concatenate([total[:3], total[3:] - np.cross(com, total[:3])])
        self._wrenches[bearer] = self._wrenches.get(bearer, np.zeros(6)) + wrench


def _gravity_vector(gravity: float | ArrayLike) -> Array:
    vector = as_numbers(gravity)
    if vector is not None and vector.ndim == 0:
        vector = np.array([0.0, 0.0, -float(vector)])
    if vector is None or vector.shape != (3,) or not _bearable(vector):
        raise LoadError(
            f"gravity is {shown(gravity)}, expected a finite number or three, at most"
            f" {GREATEST_LOAD:g} [m/s^2]"
        )
    return vector


def _part_id(value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise LoadError(f"a load is on part {value!r}, expected a part id") from None


def _wrench(part_id: int, wrench: ArrayLike) -> Array:
    vector = as_numbers(wrench)
    if vector is None or vector.shape != (6,) or not _bearable(vector):
        raise LoadError(
            f"load on part {part_id} is {shown(wrench)}, expected six finite numbers of at most"
            f" {GREATEST_LOAD:g}: force [N] and torque [N m]"
        )
    return vector


def _bearable(load: Array) -> bool:
    return bool(np.all(np.abs(load) <= GREATEST_LOAD))


def _static_loads(
    layout: ComponentLayout, rotation: Array, gravity: Array, wrenches: Mapping[int, Array]
) -> Array:
    """(N, 6) weights and given loads, component axes."""
    loads = gravity_loads(layout, rotation.T @ gravity)
    for row, part_id in enumerate(layout.part_ids.tolist()):
        if part_id in wrenches:
            loads[row] += (wrenches[part_id].reshape(2, 3) @ rotation).reshape(6)
    return loads


def _ground_height(
    layout: ComponentLayout, world_T_component: Array, defined: float | None
) -> float | None:
    """Height of the ground in the component frame [m]; None for a tilted component, whose faces
    the ground does not touch."""
    bottom = layout.grids[:, 2].min()
    sole = layout.footprints[layout.grids[:, 2] == bottom] * STUD_PITCH
    sides = sole[:, 2:].max(axis=0) - sole[:, :2].min(axis=0)
    lift = np.abs(world_T_component[2, :2]) @ sides
    if lift > _LIFT or world_T_component[2, 2] < 0.0:
        return None
    if defined is None:
        return float(bottom * PLATE_HEIGHT)
    return float(defined - world_T_component[2, 3])


def _touches(
    layout: ComponentLayout, ground: float | None, tolerance: float = GROUND_TOLERANCE
) -> bool:
    if ground is None:
        return False
    return bool(np.any(np.abs(layout.grids[:, 2] * PLATE_HEIGHT - ground) <= tolerance))


def _resultant(layout: ComponentLayout, world_T_component: Array, loads: Array) -> Array:
    """(6,) sum of (N, 6) loads, torque about the world's origin, world axes."""
    rotation = world_T_component[:3, :3]
    forces, torques = loads[:, :3] @ rotation.T, loads[:, 3:] @ rotation.T
    coms = transform_points(world_T_component, layout.coms)
    return np.concatenate([forces.sum(axis=0), (torques + np.cross(coms, forces)).sum(axis=0)])


def _borne_everywhere(layout: ComponentLayout, below: Sequence[Touch]) -> bool:
    """True if a component lies on others with all of its lowest faces and nothing else."""
    lowest = layout.grids[:, 2] == layout.grids[:, 2].min()
    sole = set(layout.part_ids[lowest].tolist())
    sides = layout.dimensions[lowest, :2] * STUD_PITCH
    borne = sum(area(t.corners) for t in below)
    return sole.issuperset(t.upper_part for t in below) and bool(
        borne >= (1.0 - _EQUAL) * sides.prod(axis=1).sum()
    )


def _tipping(below: Sequence[Touch]) -> str:
    bearers = ", ".join(map(str, sorted({t.lower_part for t in below})))
    return f"only lies on part {bearers} and tips over the edge or lifts off"


def _not_analysed(analysis: ComponentAnalysis, touch: Touch) -> ComponentAnalysis:
    """What may be said of a component on which a force acts that is not known."""
    reason = (
        f"part {touch.upper_part} lies on part {touch.lower_part} without a connection, the force"
        " between them is not known"
    )
    solution = replace(
        analysis.solution,
        status=SolveStatus.FAILED,
        message=reason,
        utilization=np.full_like(analysis.solution.utilization, np.nan),
        imbalance=np.nan,
    )
    return replace(
        analysis,
        solution=solution,
        limit=None,
        max_utilization=np.nan,
        stable=False,
        marginal=False,
        reason=f"{_name(analysis.part_ids)}: not analysed: {reason}",
        breaking=(),
        bypassed=(),
    )


def _name(part_ids: IntArray) -> str:
    """A component in words."""
    others = len(part_ids) - 1
    return f"part {part_ids[0]}" + (f" and the {others} connected to it" if others else "")


def _is_close(solution: Solution, layout: ComponentLayout, verdict: VerdictLimits) -> bool:
    """True if utilization alone leaves open how far a component is from its limit."""
    highest = solution.utilization.max(initial=0.0)
    return len(layout.part_ids) <= LIMIT_UP_TO and bool(highest >= verdict.marginal_low)


def _highest(utilization: Array) -> NDArray[np.bool_]:
    """(C,) which are the highest, but for rounding."""
    return utilization >= np.nanmax(utilization) * (1.0 - _EQUAL)


def _load_share(highest: float, limit: LimitLoad | None) -> float:
    """Load over what the component can carry.

    In a redundant structure a connection can be used up while others still carry more, so the
    safety factor decides where it is known.
    """
    if limit is None or not 0.0 < limit.factor < np.inf:
        return highest
    return 1.0 / limit.factor


def _judge(
    component_id: int,
    layout: ComponentLayout,
    supported: bool,
    tipping: str,
    solution: Solution,
    contacts: ContactVertices,
    limit: LimitLoad | None,
    verdict: VerdictLimits,
    selected: Selection,
) -> ComponentAnalysis:
    utilization = solution.utilization
    highest = float(utilization.max(initial=0.0))
    balanced = solution.imbalance <= verdict.imbalance
    name = _name(layout.part_ids)
    if solution.status is SolveStatus.FAILED:
        reason = f"{name}: no solver found the internal forces ({solution.message})"
    elif tipping:
        reason = f"{name}: {tipping}"
    elif not supported:
        reason = f"{name}: not supported: no part is held, and none stands upright on the ground"
    elif not balanced:
        reason = f"{name}: its loads cannot be carried to the ground: it tips, slides or lifts off"
    elif highest > verdict.utilization:
        row = np.flatnonzero(_highest(utilization))[0]
        ends = layout.part_ids[[layout.stud_index[row], layout.hole_index[row]]]
        joint = " – ".join(map(str, ends.tolist()))
        reason = f"{name}: connection {joint} carries {highest:.4g} times its capacity"
    else:
        reason = ""
    return ComponentAnalysis(
        component=component_id,
        part_ids=layout.part_ids,
        connection_ids=layout.connection_ids,
        supported=supported,
        solution=solution,
        contacts=contacts,
        limit=limit,
        max_utilization=highest,
        stable=not reason,
        marginal=supported
        and not tipping
        and balanced
        and verdict.marginal_low <= _load_share(highest, limit) <= verdict.marginal_high,
        reason=reason,
        breaking=tuple(layout.connection_ids[selected.broken].tolist()),
        bypassed=tuple(layout.connection_ids[selected.bypassed].tolist()),
    )
