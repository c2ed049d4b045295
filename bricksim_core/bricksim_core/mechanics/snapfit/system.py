# SPDX-License-Identifier: Apache-2.0
"""The default snap-fit model; docs/mechanics.md has the equations."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.errors import SolverError
from bricksim_core.mechanics.geometry import GROUND, face_contacts
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.portions import Portions, at_once, solve_cost
from bricksim_core.mechanics.snapfit.balance import balance_of
from bricksim_core.mechanics.snapfit.band import multiplied, multiplied_back
from bricksim_core.mechanics.snapfit.bounds import ChangeBound
from bricksim_core.mechanics.snapfit.bridges import least_load
from bricksim_core.mechanics.snapfit.compact import CompactSolver
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES, ElasticStructure, Origin
from bricksim_core.mechanics.snapfit.ground import ground_footprints, ground_rows
from bricksim_core.mechanics.snapfit.joints import (
    Joints,
    joints_of,
    joints_of_descendant,
    pull_moments,
    rectangle_corners,
    spread_push,
    spread_stiffness,
)
from bricksim_core.mechanics.snapfit.limit import FEW_PARTS, NEVER, LimitProgram, cones_of
from bricksim_core.mechanics.snapfit.newton import NewtonSolver
from bricksim_core.mechanics.snapfit.normal import NormalMatrix, face_edges, joint_edges
from bricksim_core.mechanics.snapfit.pushes import pushes_of
from bricksim_core.mechanics.snapfit.softened import soften
from bricksim_core.mechanics.snapfit.spreading import spread
from bricksim_core.mechanics.snapfit.whole import WholeProblem
from bricksim_core.mechanics.snapfit.yielding import (
    MAX_KEPT,
    MAX_MEMBERS,
    PUSH_TOLERANCE,
    TOLERANCE,
    Equations,
    Limits,
    Yielded,
    YieldSolver,
    limits_of,
)
from bricksim_core.mechanics.types import (
    ComponentSystem,
    ContactVertices,
    LimitLoad,
    Solution,
    SolveStatus,
    VerdictLimits,
)
from bricksim_core.membership import places_in
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

FEW = 3
"""Joints over their limit, or members of the last active set, up to which (or a quarter of all
joints, an eighth from `LARGE` on) the active set is searched at once: each costs a
back-substitution, a few less than an interior point method."""

SMALL = 48
"""Joints up to which the interior point method is quicker than any search without a last active
set."""

QUICK = 12
"""Changes of the active set, and one for 16 joints, after which that method gives a guess."""

LONG = 40
"""Changes after which Newton's method is as quick in any case."""

ROWS_FROM = 16
"""Joints whose rows are asked for from which on the rows of all of them are made, and kept."""

MANY_ROWS = 200
"""Joints from which on their greatest rows are found quicker without making the rows."""

MANY = 24
"""Members of the active set from which on Newton's method is quicker than a search."""

COMPACT = 240
"""Free displacements up to which dense equations are tried."""

LARGE = 400
"""Joints from which on Newton's method needs no guess to be quicker than what gives one."""

_SEARCHING = 20.0
"""Cost of a search after which it is given up where a rough answer will do."""

FEW_ENOUGH = 300
"""Joints up to which softer ones are solved for where a rough answer will do: some 50 ms."""

_SPREADING, _FEWEST_STEPS, _MOST_STEPS = 30.0, 10, 24
"""What spreading the overloads may cost then, and the fewest and most steps of that."""

_LOOK, _LOOK_EACH = 0.05, 0.0003
"""Cost of a look whether the last answer still holds, and for each part."""

_YIELDING = 0.5
"""Times the cost of a solve without yielding that it costs to begin with what yields."""

_BALANCED, _BALANCINGS = 1e-9, 3
"""Part of the greatest load that may be left unbalanced, and times that it is balanced at most."""

_TIED = 1e-7
"""Relative difference of utilizations that may be rounding."""

_MOST_TIED = 4
"""Joints that are equally loaded up to which each is looked at."""

_HARDLY = 0.01
"""Part of the weight by which a load may differ from the last one for the last answer to be tried;
beyond it the bound would hardly hold."""


@dataclass(frozen=True)
class SnapFitModel:
    """The default model of brick connections.

    Attributes:
        constants: All of its constants.
        name: How `mechanics.models` knows it.
    """

    constants: SnapFitConstants = SnapFitConstants()
    name: str = "default"

    @property
    def verdict(self) -> VerdictLimits:
        """What counts as stable and as marginal."""
        c = self.constants
        return VerdictLimits(
            utilization=1.0 + c.tolerance,
            imbalance=c.tolerance,
            marginal_low=c.marginal_low,
            marginal_high=c.marginal_high,
        )

    @property
    def engagement(self) -> float:
        """Slip by overload after which a connection is broken [m]."""
        return self.constants.engagement

    @property
    def impact_time(self) -> float:
        """Duration of real impacts [s]."""
        return self.constants.impact_time

    def system(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        ground: float | None = None,
        origin: ComponentSystem | None = None,
    ) -> SnapFitSystem:
        """The equations of one component; see `ConnectionModel.system`."""
        whole = origin if isinstance(origin, SnapFitSystem) else None
        return SnapFitSystem(layout, anchored, ground, self.constants, whole)


class SnapFitSystem:
    """Equations of one component, constant while its topology is.

    Args:
        layout: The component.
        anchored: (N,) parts that the world holds.
        ground: Height of a rigid horizontal ground in the component frame [m], None for none.
        constants: The model's constants.
        origin: Equations before the component changed; what of them still holds is taken over.

    Attributes:
        constants: The model's constants.
        joints: The connections as joints.
        pushes: Contacts beside the joints.
    """

    def __init__(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        ground: float | None,
        constants: SnapFitConstants,
        origin: SnapFitSystem | None = None,
    ) -> None:
        self.constants = constants
        self._layout = layout
        self._anchored = np.array(anchored, dtype=bool)
        self._ground = ground
        descent = None if origin is None else _Descent.of(origin, layout, self._anchored, self)
        if descent is None:
            joints = joints_of(layout, constants)
        else:
            joints = joints_of_descendant(
                layout, constants, descent.origin.joints, descent.connections
            )
        if descent is not None and descent.piece:
            self.pushes = descent.origin.pushes.within(descent.index)
            self._footprints = descent.origin._footprints
        else:
            faces = face_contacts(layout, ground)
            self.pushes = pushes_of(faces, joints.lower, joints.upper, constants)
            self._footprints = ground_footprints(faces)
        self.joints = joints
        resting, footprint, half = self._footprints
        self._floating = not self._anchored.any() and not len(resting)
        held = self._anchored.copy()
        if self._floating:
            # The loads of a floating component are in balance: any part may be the reference. From
            # one that much holds the fewest others move in a mechanism: little is lost by rounding.
            known = -1 if descent is None else descent.reference
            held[
                _firmest(joints.lower, joints.upper, joints.pull, len(held)) if known < 0 else known
            ] = True
        self._held = held

        lower, upper = joints.lower, joints.upper
        centres, stiffness = joints.centre, joints.stiffness
        if len(resting):
            area = np.rint(4.0 * half.prod(axis=1) / STUD_PITCH**2)
            below = spread_stiffness(half, area, constants.stud_stiffness)
            lower = np.concatenate([lower, np.full_like(resting, GROUND)])
            upper = np.concatenate([upper, resting])
            centres = np.concatenate([centres, footprint])
            stiffness = np.concatenate([stiffness, below])
        self._structure = ElasticStructure(
            lower=lower,
            upper=upper,
            centres=centres,
            stiffness=stiffness,
            coms=layout.coms,
            held=held,
            origin=None if descent is None else descent.structure(held),
        )
        self._weight = STANDARD_GRAVITY * float(layout.masses.sum())
        self._ground_rows = ground_rows(half, self._weight, constants)
        self._least_gap = float(self.pushes.gap.min(initial=np.inf))
        self._free_reach = np.linalg.norm(layout.dimensions[~held], axis=1)
        self._guess = np.zeros(0, dtype=np.int64)
        self._last: tuple[Array, Solution] | None = None
        # Loads of the last answer and how far a part moved under them, if nothing yielded.
        self._elastic: tuple[Array, float] | None = None

    @property
    def contacts(self) -> ContactVertices:
        """Four corners of every connection, four of every footprint on the ground, the pushes."""
        return self._contacts

    @cached_property
    def _contacts(self) -> ContactVertices:
        resting, footprint, half = self._footprints
        joints, pushes = self.joints, self.pushes
        ground = rectangle_corners(footprint, half)
        up = np.tile([0.0, 0.0, 1.0], (4 * (len(joints) + len(resting)), 1))
        world = np.full(4 * len(resting), GROUND)
        return ContactVertices(
            part_a=np.concatenate([np.repeat(joints.lower, 4), world, pushes.low]),
            part_b=np.concatenate([np.repeat(joints.upper, 4), np.repeat(resting, 4), pushes.high]),
            position=np.concatenate(
                [joints.corners.reshape(-1, 3), ground.reshape(-1, 3), pushes.point]
            ),
            normal=np.concatenate([up, pushes.normal]),
        )

    @cached_property
    def _equations(self) -> Equations:
        pushes, count = self.pushes, len(self.pushes)
        closing = self._structure.closing(pushes.low, pushes.high, pushes.point, pushes.normal)
        compliance = np.full(count, 1.0 / self.constants.face_stiffness)
        return Equations(self._structure, self._limits, closing, pushes.gap, compliance)

    @cached_property
    def _limits(self) -> Limits:
        joints, resting = self.joints, len(self._ground_rows)
        return limits_of(
            rows_of=self._rows_of,
            limit=np.repeat([1.0, 0.0], [len(joints), resting]),
            strength=np.concatenate([joints.pull, np.full(resting, self._weight)]),
            constants=self.constants,
            greatest=self._greatest,
        )

    def _rows_of(self, index: IntArray) -> Array:
        """(K, ROWS, 6) rows of some joints and footprints per scaled wrench."""
        if len(index) < ROWS_FROM and "_rows" not in vars(self) and not len(self._ground_rows):
            return self.joints.take(index).rows * PITCHES
        return self._rows[index]

    @cached_property
    def _rows(self) -> Array:
        """Those of all joints and footprints."""
        rows = self.joints.rows
        if len(self._ground_rows):
            rows = np.concatenate([rows, self._ground_rows])
        return rows * PITCHES

    def _greatest(self, wrench: Array) -> Array:
        """(J,) greatest row, or 0, of (J, 6) scaled wrenches of joints and footprints."""
        if "_rows" in vars(self) and len(wrench) <= MANY_ROWS:
            return np.maximum(np.matmul(self._rows, wrench[:, :, None]).max(axis=(1, 2)), 0.0)
        count = len(self.joints)
        joints = self.joints.greatest(wrench[:count])
        if not len(self._ground_rows):
            return joints
        below = np.matmul(self._ground_rows, (wrench[count:] * PITCHES)[:, :, None])[:, :, 0]
        return np.concatenate([joints, np.maximum(below.max(axis=1), 0.0)])

    @cached_property
    def _solver(self) -> YieldSolver:
        return YieldSolver(self._equations)

    @cached_property
    def _compact(self) -> CompactSolver | None:
        if self._structure.size > COMPACT:
            return None
        return CompactSolver(self._equations)

    @cached_property
    def _whole(self) -> WholeProblem:
        return WholeProblem(self._equations)

    @cached_property
    def _normal(self) -> NormalMatrix:
        structure, layout = self._structure, self._layout
        joints = joint_edges(
            structure.lower, structure.upper, structure.centres, layout.coms, structure.node
        )
        faces = face_edges(self.pushes, layout.coms, structure.node)
        return NormalMatrix(layout.coms[~self._held], [joints, faces])

    @cached_property
    def _newton(self) -> NewtonSolver:
        return NewtonSolver(self._equations, self._normal)

    def limit_program(self, few: int = FEW_PARTS) -> LimitProgram:
        """The program of limit analysis; see there."""
        half = self._footprints[2]
        return LimitProgram(
            cones=cones_of(self.joints, half, self.constants),
            size=self._structure.size,
            opening=self._equations.opening,
            normal=lambda: self._normal,
            few=few,
        )

    @cached_property
    def _limit_program(self) -> LimitProgram:
        return self.limit_program()

    def solve(self, loads: Array, tolerance: float = 0.0) -> Solution:
        """Internal forces under the loads; see `ComponentSystem.solve`.

        `Solution.contact_force` goes by `contacts`.
        """
        return at_once(self.solving(loads, tolerance))

    def solving(self, loads: Array, tolerance: float = 0.0) -> Portions[Solution]:
        """What `solve` gives, in portions."""
        yield _LOOK + _LOOK_EACH * len(loads)
        cost = solve_cost(len(loads))
        start = time.perf_counter()
        if self._last is not None and np.array_equal(loads, self._last[0]):
            return _again(self._last[1], self._last[1].imbalance, start)
        if not np.isfinite(loads).all():
            return self._failed("loads are not finite", start)
        free_loads, imbalance = self._free_loads(loads)
        if tolerance > 0.0 and self._holds(free_loads, tolerance):
            assert self._last is not None
            return _again(self._last[1], imbalance, start)
        yield cost
        displacements = self._structure.displacements(free_loads)
        status, message = SolveStatus.SOLVED, ""
        self._elastic = None
        yielded, utilization = self._unyielding(displacements, free_loads)
        if yielded is None:
            yield _YIELDING * cost
            yielded = yield from self._yielding(displacements, free_loads, tolerance > 0.0)
        if yielded is None and tolerance > 0.0:
            yielded, message = yield from self._roughly(displacements, free_loads)
            status = SolveStatus.FALLBACK
        if yielded is None:
            status, message = SolveStatus.FALLBACK, "the active set did not settle"
            try:
                bonded = self._structure.wrenches(displacements)
                yielded = self._whole.yielded(free_loads, bonded)
            except SolverError as error:
                return self._failed(f"{message}; {error}", start)
        self._guess = yielded.members
        if utilization is None:  # something yields
            yielded = self._balanced(yielded, free_loads)
        solution = self._solution(yielded, imbalance, status, message, start, utilization)
        self._last = (loads.copy(), solution)
        return solution

    def _holds(self, free_loads: Array, tolerance: float) -> bool:
        """Whether the last answer is one for other loads, too: certainly to the tolerance, without
        overload before or after (`bounds`)."""
        if self._elastic is None or self._last is None:
            return False
        known, farthest = self._elastic
        change, greatest = _changed(known, free_loads, self._structure.free, len(self._held))
        if greatest > _HARDLY * self._weight:
            return False
        bound = self._bound
        root = bound.root_energy(change)
        return (
            bound.bears(root, self._last[1].utilization, tolerance)
            and 2.0 * (farthest + bound.per_displacement * root) < self._least_gap
        )

    @cached_property
    def _bound(self) -> ChangeBound:
        return ChangeBound(self._layout, self._held, self.joints)

    def bonded(self, loads: Array) -> Solution:
        """Internal forces if nothing yields; see `ComponentSystem.bonded`."""
        start = time.perf_counter()
        if not np.isfinite(loads).all():
            return self._failed("loads are not finite", start)
        free_loads, imbalance = self._free_loads(loads)
        wrench = self._structure.wrenches(self._structure.displacements(free_loads))
        yielded = self._all_bonded(wrench)
        return self._solution(yielded, imbalance, SolveStatus.SOLVED, "", start)

    def _balanced(self, yielded: Yielded, free_loads: Array) -> Yielded:
        """The same forces, with what rounding has left of the loads borne by the bonded structure.

        Forces are balanced to a fraction of the greatest one: in an arm of hundreds of bricks,
        whose moments are thousands of times the weight of one, that is a good part of this.
        """
        wrench, size = yielded.wrench, len(free_loads)
        least = _BALANCED * float(np.abs(free_loads).max(initial=0.0))
        for _ in range(_BALANCINGS):
            forces = np.concatenate([wrench.reshape(-1), yielded.push])
            lack = free_loads - multiplied_back(*self._equations.opening, forces, size)
            if float(np.abs(lack).max(initial=0.0)) <= least:
                break
            wrench = wrench + self._structure.wrenches(self._structure.displacements(lack))
        return replace(yielded, wrench=wrench)

    def _all_bonded(self, wrench: Array) -> Yielded:
        """Forces by the (J, 6) scaled wrenches of joints and footprints alone."""
        none = np.zeros(0, dtype=np.int64)
        return Yielded(wrench, np.zeros(len(self.pushes)), none, np.zeros(0))

    def _roughly(self, displacements: Array, free_loads: Array) -> Portions[tuple[Yielded, str]]:
        """Forces whose overloads are near the least ones, and in what they differ from them."""
        equations, structure = self._equations, self._structure
        if len(self._limits.limit) <= FEW_ENOUGH:
            found = yield from soften(equations, self._normal, free_loads)
            if found is not None:
                wrench, push = found
                softer = replace(self._all_bonded(wrench), push=push)
                return softer, "overloads are of softer joints"
        steps = round(_SPREADING / solve_cost(structure.size // 6))
        steps = min(max(steps, _FEWEST_STEPS), _MOST_STEPS)
        wrench = yield from spread(
            structure, equations.every, self._limits.limit, free_loads, displacements, steps
        )
        return self._all_bonded(wrench), "overloads are upper estimates"

    def factor(self) -> Portions[None]:
        """Factors the bonded structure; see `ComponentSystem.factor`."""
        yield from self._structure.factor()

    def prepare(self) -> None:
        """Factors it and what else the first frames need; see `ComponentSystem.prepare`."""
        at_once(self.factor())
        _ = self._bound

    @property
    def strength(self) -> Array:
        """(C,) pure pull-off strength of each connection [N]."""
        return self.joints.pull

    def snapshot(self) -> object:
        """The last answer, its active set and what the solver kept."""
        kept = self._solver.kept if "_solver" in vars(self) else None
        return self._guess, self._last, self._elastic, kept

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot of this system."""
        self._guess, self._last, self._elastic, kept = snapshot
        if kept is not None:
            self._solver.kept = kept
        else:
            vars(self).pop("_solver", None)

    def safety_factor(self, loads: Array) -> LimitLoad:
        """The multiple of the loads at which the component fails; see `LimitProgram.limit_load`."""
        free_loads, _ = self._free_loads(loads)
        wrench = self._structure.wrenches(self._structure.displacements(free_loads))
        utilization = self._greatest(wrench)
        highest = float(utilization.max(initial=0.0))
        alone = None
        if highest > NEVER and not self._ground_tension(wrench) > 0.0:
            alone = self._failing_alone(free_loads, utilization)
        return alone or self._limit_program.limit_load(free_loads, highest)

    def _failing_alone(self, free_loads: Array, utilization: Array) -> LimitLoad | None:
        """The limit load where joints that fail alone are the most loaded ones in the bonded
        structure: no forces load them less, and these load no other one more."""
        highest = float(utilization.max())
        tied = np.flatnonzero(utilization >= highest * (1.0 - _TIED))
        if len(tied) > _MOST_TIED:
            return None
        closing, enough = self._equations.closing, highest * (1.0 - _TIED)
        least = np.array(
            [
                least_load(self._structure, closing, joint, rows, free_loads, enough)
                for joint, rows in zip(tied.tolist(), self._rows_of(tied), strict=True)
            ]
        )
        if not least.any():
            return None
        return LimitLoad(1.0 / float(least.max()), tuple(tied[least > 0.0].tolist()))

    def _unyielding(
        self, displacements: Array, free_loads: Array
    ) -> tuple[Yielded | None, Array | None]:
        """The answer if nothing yields and no gap closes, which spares the search, and (C,)
        utilizations; else None."""
        # A gap closes by two parts' movements.
        farthest = _farthest(displacements, self._free_reach)
        near = 2.0 * farthest >= self._least_gap
        if near:
            closing = multiplied(*self._equations.closing, displacements) - self.pushes.gap
            if (closing > PUSH_TOLERANCE / self.constants.face_stiffness).any():
                return None, None
        wrench = self._structure.wrenches(displacements)
        utilization = self.joints.greatest(wrench[: len(self.joints)])
        if utilization.max(initial=0.0) > 1.0 + TOLERANCE:
            return None, None
        if self._ground_tension(wrench) > TOLERANCE:
            return None, None
        if not len(self._ground_rows) and not near:
            self._elastic = free_loads, farthest
        return self._all_bonded(wrench), utilization

    def _yielding(
        self, displacements: Array, free_loads: Array, quick: bool
    ) -> Portions[Yielded | None]:
        """The answer where something yields; None if the active set did not settle.

        Args:
            displacements: (F,) response of the bonded structure.
            free_loads: (F,) scaled loads [N].
            quick: Whether a rough answer will do otherwise: nothing that may take long is tried.
        """
        if self._compact is not None:
            yielded = self._compact.solve(free_loads, displacements)
            if yielded is not None:
                return yielded
        guess = self._guess
        wrench = self._structure.wrenches(displacements)
        over = np.count_nonzero(self._greatest(wrench) > self._limits.limit + TOLERANCE)
        joints = len(wrench)
        known, large = len(guess) > 0 or joints >= SMALL, joints >= LARGE
        few, pivots = max(FEW, joints // (8 if large else 4)), QUICK + joints // 16
        if (known or quick) and max(len(guess), over) <= few:
            # Of large ones Newton's method is quicker as soon as the set grows beyond these.
            limits = (min(pivots, LONG), few) if large else (pivots, MAX_MEMBERS)
            budget = _SEARCHING if quick else np.inf
            yielded = yield from self._solver.solving(displacements, guess, *limits, budget)
            if yielded is not None or quick:
                return yielded
        if quick:
            return None
        if large:
            none = np.zeros(0, dtype=np.int64)
            yielded = self._newton.solve(free_loads, guess) if len(guess) else None
            yielded = yielded or self._newton.solve(free_loads, none)
            return yielded or self._newton.solve_softly(free_loads)
        guess = self._whole.likely(free_loads, wrench)
        many = len(guess) > MANY
        yielded = self._newton.solve(free_loads, guess) if many else None
        if yielded is None and len(guess) <= MAX_KEPT:
            yielded = yield from self._solver.solving(displacements, guess)
        return yielded or self._newton.solve_softly(free_loads)

    def _ground_tension(self, wrench: Array) -> float:
        """What the ground would have to hold beyond pushes and friction, over the weight."""
        if not len(self._ground_rows):
            return 0.0
        below = wrench[len(self.joints) :] * PITCHES
        rows = self._ground_rows @ below[:, :, None]
        return max(float(rows.max()), 0.0)

    def _solution(
        self,
        yielded: Yielded,
        imbalance: float,
        status: SolveStatus,
        message: str,
        start: float,
        utilization: Array | None = None,
    ) -> Solution:
        if utilization is None:
            utilization = self.joints.greatest(yielded.wrench[: len(self.joints)])
        return Solution(
            status=status,
            message=message,
            utilization=utilization,
            forces=partial(_forces, self.joints, self._footprints[2], yielded),
            imbalance=max(imbalance, self._ground_tension(yielded.wrench)),
            solve_time=time.perf_counter() - start,
        )

    def _failed(self, message: str, start: float) -> Solution:
        count = len(self.joints)
        wrench = np.full((count + len(self._footprints[0]), 6), np.nan)
        none = np.zeros(0, dtype=np.int64)
        unknown = Yielded(wrench, np.full(len(self.pushes), np.nan), none, np.zeros(0))
        return Solution(
            status=SolveStatus.FAILED,
            message=message,
            utilization=np.full(count, np.nan),
            forces=partial(_forces, self.joints, self._footprints[2], unknown),
            imbalance=np.nan,
            solve_time=time.perf_counter() - start,
        )

    def _free_loads(self, loads: Array) -> tuple[Array, float]:
        """(F,) scaled loads of the parts that can move, and what of them cannot be balanced."""
        scaled, imbalance = loads / PITCHES, 0.0
        if self._floating:
            scaled, imbalance = balance_of(self._layout).taken(scaled)
        return scaled.reshape(-1)[self._structure.free], imbalance


def _again(last: Solution, imbalance: float, start: float) -> Solution:
    """The last answer for other loads."""
    return Solution(
        status=SolveStatus.REUSED,
        message=last.message,
        utilization=last.utilization,
        forces=last.forces,
        imbalance=imbalance,
        solve_time=time.perf_counter() - start,
    )


def _forces(joints: Joints, footprint: Array, yielded: Yielded) -> tuple[Array, Array]:
    """What `Solution.forces` gives."""
    count = len(joints)
    studs, corners = joints.split(yielded.wrench[:count] * PITCHES)
    ground = spread_push(-pull_moments(yielded.wrench[count:] * PITCHES), footprint)
    push = np.maximum(yielded.push, 0.0)
    return studs, np.concatenate([corners.reshape(-1), ground.reshape(-1), push])


@compiled
def _changed(before: Array, now: Array, free: IntArray, parts: int) -> tuple[Array, float]:
    """How loads differ.

    Args:
        before: (F,) scaled loads of what can move [N].
        now: (F,) others.
        free: (F,) where these are among the loads of all parts.
        parts: N

    Returns:
        (N, 6) the difference, 0 where nothing can move, and the greatest of its entries.
    """
    change, greatest = np.zeros(6 * parts), 0.0
    for k in range(len(free)):
        change[free[k]] = now[k] - before[k]
        greatest = max(greatest, abs(float(change[free[k]])))
    return change.reshape(-1, 6), greatest


@compiled
def _firmest(lower: IntArray, upper: IntArray, pull: Array, parts: int) -> int:
    """The first part whose joints have the greatest pull-off strength [N] together."""
    holding = np.zeros(parts)
    for ends in (lower, upper):
        for k in range(len(ends)):
            holding[ends[k]] += pull[k]
    return int(np.argmax(holding))


@compiled
def _farthest(displacements: Array, reach: Array) -> float:
    """How far any point of a part moves at most [m].

    Args:
        displacements: (6 n,) scaled, of the parts that are free [m].
        reach: (n,) how far their points are from their COMs [pitches].
    """
    farthest = 0.0
    for k in range(len(reach)):
        x, y, z = abs(displacements[6 * k]), abs(displacements[6 * k + 1]), displacements[6 * k + 2]
        u, v, w = displacements[6 * k + 3], displacements[6 * k + 4], displacements[6 * k + 5]
        way = x + y + abs(z) + (abs(u) + abs(v) + abs(w)) * reach[k]
        farthest = max(farthest, way)
    return farthest


@dataclass(frozen=True, eq=False)
class _Descent:
    """How a component came out of an earlier one, whose frame it has.

    Attributes:
        origin: Equations of the earlier one.
        layout: The component.
        parts: (N,) where its parts were there, -1 for new ones.
        index: (N of the origin,) the inverse, -1 for other parts.
        connections: (C,) where its connections were there, -1 for new ones.
        changed: (N,) its parts that have got or lost connections.
        piece: It has nothing that is new; not even a bare contact where a connection was.
    """

    origin: SnapFitSystem
    layout: ComponentLayout
    parts: IntArray
    index: IntArray
    connections: IntArray
    changed: NDArray[np.bool_]
    piece: bool

    @staticmethod
    def of(
        origin: SnapFitSystem,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: SnapFitSystem,
    ) -> _Descent | None:
        """The descent, None if nothing can be taken over."""
        old = origin._layout
        if (
            origin.constants != system.constants
            or origin._ground is not None
            or system._ground is not None
        ):
            return None
        fits, piece, parts, index, connections, changed = _descended(
            _Numbers(
                old.part_ids, old.grids, origin._anchored, old.connection_ids, old.stud_index,
                old.hole_index,
            ),
            _Numbers(
                layout.part_ids, layout.grids, anchored, layout.connection_ids, layout.stud_index,
                layout.hole_index,
            ),
        )  # fmt: skip
        if not fits or any(
            i >= 0 and old.shapes[i] is not shape and old.shapes[i] != shape
            for i, shape in zip(parts.tolist(), layout.shapes, strict=True)
        ):
            return None
        return _Descent(origin, layout, parts, index, connections, changed, piece)

    @property
    def reference(self) -> int:
        """The part that stood for the world already, -1 if it is not here."""
        if not self.origin._floating:
            return -1
        return int(self.index[int(np.argmax(self.origin._held))])

    def structure(self, held: NDArray[np.bool_]) -> Origin:
        """What the bonded structure comes out of."""
        changed = self.changed
        new = held & (self.parts >= 0) & ~self.origin._held[self.parts]
        if new.any():
            changed = changed.copy()
            changed[self.layout.stud_index[new[self.layout.hole_index]]] = True
            changed[self.layout.hole_index[new[self.layout.stud_index]]] = True
        grown = not self.piece and bool((self.connections < 0).any())
        return Origin(self.origin._structure, self.parts, changed, grown)


class _Numbers(NamedTuple):
    """What a descent hangs on; as in `ComponentLayout`."""

    part_ids: IntArray
    grids: IntArray
    anchored: NDArray[np.bool_]
    connection_ids: IntArray
    lower: IntArray
    upper: IntArray


@compiled
def _descended(
    old: _Numbers, new: _Numbers
) -> tuple[bool, bool, IntArray, IntArray, IntArray, NDArray[np.bool_]]:
    """How a component came out of an earlier one; see `_Descent`.

    Returns:
        Whether most of its parts were there as they are now, with their connections; `piece`,
        `parts`, `index`, `connections` and `changed`.
    """
    parts = places_in(old.part_ids, new.part_ids)
    connections = places_in(old.connection_ids, new.connection_ids)
    index = np.full(len(old.part_ids), -1, dtype=np.int64)
    changed = np.zeros(len(parts), dtype=np.bool_)
    known, same = 0, True
    for k in range(len(parts)):
        i = parts[k]
        if i < 0:
            continue
        known += 1
        index[i] = k
        same = same and old.anchored[i] == new.anchored[k]
        for axis in range(new.grids.shape[1]):
            same = same and old.grids[i, axis] == new.grids[k, axis]
    ended = np.ones(len(old.connection_ids), dtype=np.bool_)
    grown = False
    for k in range(len(connections)):
        c = connections[k]
        if c < 0:
            grown = changed[new.lower[k]] = changed[new.upper[k]] = True
        else:
            ended[c] = False
            same = same and index[old.lower[c]] == new.lower[k]
            same = same and index[old.upper[c]] == new.upper[k]
    bare = False
    for c in range(len(ended)):
        if ended[c]:
            lower, upper = index[old.lower[c]], index[old.upper[c]]
            if lower >= 0:
                changed[lower] = True
            if upper >= 0:
                changed[upper] = True
            # Faces that lie on each other without a connection are no joint but a contact.
            bare = bare or (lower >= 0 and upper >= 0)
    piece = known == len(parts) and not grown and not bare
    return same and 2 * known > len(parts), piece, parts, index, connections, changed
