# SPDX-License-Identifier: Apache-2.0
"""When overloaded connections have come apart: after they have slid out.

An overloaded connection does not vanish, it slides: friction goes on acting while what exceeds it
accelerates the parts against each other, and stops them again when the overload is over (Newmark's
sliding block, for any number of blocks; `sliding`). The connection is broken once its studs have
slid by their engagement. An impact must therefore bring the work of friction over that way; a high
but short force alone does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.errors import SolverError
from bricksim_core.mechanics.courses import Course, Motion
from bricksim_core.mechanics.geometry import face_contacts
from bricksim_core.mechanics.portions import Portions, solve_cost
from bricksim_core.mechanics.pulses import MILD, Pulse
from bricksim_core.mechanics.selection import sides
from bricksim_core.mechanics.sliding import (
    STILL,
    Bodies,
    Outset,
    Parts,
    bodies_between,
    moving,
)
from bricksim_core.mechanics.snapfit.balance import balance_of
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.joints import Joints, joints_of
from bricksim_core.mechanics.snapfit.pushes import Pushes, pushes_of
from bricksim_core.mechanics.snapfit.system import SnapFitSystem
from bricksim_core.mechanics.types import ComponentSystem, Solution, SolveStatus
from bricksim_core.membership import are_in, places_in
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

_AT_LIMIT = 1e-4
"""What is missing to utilization 1 [-] in connections that may slide with overloaded ones."""

_OVER = 1e-4
"""Overload of a connection taken to be sound [-] from which it is let slide as well."""

_NEAR = 1.0 / 3.0
"""Utilization [-] of the bonded structure from which connections may slide in a pulse that does not
set in motion what it could with those that are overloaded."""

_FURTHER, _LOWEST = 0.25, 0.005
"""Factor of that where connections loaded so much set no more bodies free; from the second on it
is not lowered further."""

_ROUNDS = 4
"""Motions tried in a step, each with more that may slide."""

_LITTLE = 1e-6
"""Slip [m] that the energy of a difference between two motions can bring, below which they count as
the same: less than a thousandth of what breaks a connection."""

_APART = 1.0 - 1e-9
"""Part of the engagement from which a connection has come apart [-]: sums of slips are rounded."""

_SHORT = 1e-4
"""Way [m] that what brakes can still have before it, below which nothing else is looked for that
slides with it: it would go no further."""

_MOST = 200
"""Bodies that a motion may have unless it has to be exact; of more the steps would take tenths of a
second."""

_BEGIN, _BEGIN_EACH = 0.2, 0.001
"""Cost of the look which bodies slide, and for each part."""


class Sliding(NamedTuple):
    """What a criterion says of the connections of a component.

    Attributes:
        failed: (C,) those that have come apart.
        loose: (C,) those that can part together with them.
        severity: (C,) which of the failed ones is the worst.
    """

    failed: NDArray[np.bool_]
    loose: NDArray[np.bool_]
    severity: Array


@record
class _Moving:
    """Parts that move against their component.

    Attributes:
        part_ids: (M,) sorted.
        twists: (M, 6) scaled.
        grids: (M, 4) their poses on the component's grid.
    """

    part_ids: IntArray
    twists: Array
    grids: IntArray

    def take(self, index: NDArray[np.bool_]) -> _Moving:
        """Some of them."""
        return _Moving(self.part_ids[index], self.twists[index], self.grids[index])


@compiled
def _found(ids: IntArray, known: IntArray, values: Array) -> Array:
    """(C,) values of sorted ids by those of known ones, 0 for others."""
    found = np.zeros(len(ids))
    at = places_in(ids, known)
    for k in range(len(known)):
        if at[k] >= 0:
            found[at[k]] = values[k]
    return found


@compiled
def _take_over(
    ids: IntArray, grids: IntArray, known: IntArray, poses: IntArray, motion: Array, twists: Array
) -> bool:
    """Writes twists of parts that are known in the same pose; whether one of them moves.

    Args:
        ids: (N,) the parts.
        grids: (N, 4) their poses.
        known: (M,) sorted ids of known parts.
        poses: (M, 4) their poses.
        motion: (M, 6) their twists.
        twists: (N, 6) of the parts, written.
    """
    moves = False
    at = places_in(known, ids)
    for k in range(len(ids)):
        i = at[k]
        if i >= 0 and (poses[i] == grids[k]).all():
            for c in range(6):
                twists[k, c] = motion[i, c]
                moves = moves or motion[i, c] != 0.0
    return moves


class SlipCriterion:
    """Breaks what has slid out; see `BreakCriterion`.

    Args:
        constants: Strengths of the joints.
    """

    def __init__(self, constants: SnapFitConstants = SnapFitConstants()) -> None:
        self._constants = constants
        self._slips: dict[int, float] = {}
        # Their ids and values as arrays, until they change.
        self._listed: tuple[IntArray, Array] | None = None
        self._moving: tuple[_Moving, ...] = ()

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
        """Connections that have slid out (see `BreakCriterion.failed`).

        Raises:
            SolverError: No motion was found; what is known of the component stays as it was.
        """
        if engagement <= 0.0:
            return Sliding(overloaded, overloaded, utilization)
        twists = self._known(layout)
        loose = np.zeros(len(overloaded), dtype=bool)
        distance = self._distances(layout)
        apart = distance >= _APART * engagement
        if apart.any():
            # It waits to be broken: until then what it would let loose is not known.
            if twists is not None:
                parts = Parts.of(layout, anchored, loads)
                loose = moving(joints_of(layout, self._constants), parts, twists)
            return Sliding(apart, loose | apart, distance)
        if twists is not None or overloaded.any():
            slip = yield from self._slide(
                layout,
                anchored,
                system,
                loads,
                utilization,
                overloaded,
                tolerance,
                twists,
                dt,
                brief,
                rest,
                change,
                engagement - distance,
            )
            loose = slip > 0.0
            distance += slip
        failed = distance >= _APART * engagement
        return Sliding(failed, loose | failed, distance)

    def forget(self, connection_ids: tuple[int, ...]) -> None:
        """Drops the slip of connections that have ended."""
        for connection in connection_ids:
            if self._slips.pop(connection, None) is not None:
                self._listed = None

    def follow(self, layouts: Sequence[ComponentLayout]) -> None:
        """Drops all motion but that in these components."""
        moving = [(layout, self._known(layout)) for layout in layouts]
        self._moving = ()
        for layout, twists in moving:
            if twists is not None:
                self._keep(layout, twists)

    def slip(self, connection_id: int) -> float:
        """How far a connection has slid in all: mean slip of its studs [m]."""
        return self._slips.get(connection_id, 0.0)

    def twists(self, layout: ComponentLayout) -> Array:
        """(N, 6) velocities of the parts' COMs and spins against the rigid motion of their
        component, in its frame [m/s, rad/s]."""
        known = self._known(layout)
        return np.zeros((len(layout.part_ids), 6)) if known is None else known / PITCHES

    def snapshot(self) -> object:
        """All slips and motions."""
        return dict(self._slips), self._moving

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot."""
        slips, self._moving = snapshot
        self._slips, self._listed = dict(slips), None

    def _distances(self, layout: ComponentLayout) -> Array:
        """(C,) slips of a component's connections [m]."""
        if not self._slips:
            return np.zeros(len(layout.connection_ids))
        if self._listed is None:
            known = np.fromiter(self._slips, dtype=np.int64)
            self._listed = known, np.fromiter(self._slips.values(), dtype=np.float64)
        return _found(layout.connection_ids, *self._listed)

    def _known(self, layout: ComponentLayout) -> Array | None:
        """(N, 6) scaled twists of the parts, None if none slides."""
        twists, slides = np.zeros((len(layout.part_ids), 6)), False
        for known in self._moving:
            # A join may put a component into another frame; what little still slid ends then.
            slides |= _take_over(
                layout.part_ids, layout.grids, known.part_ids, known.grids, known.twists, twists
            )
        return twists if slides else None

    def _keep(self, layout: ComponentLayout, twists: Array) -> None:
        """Takes over the motion of a component's parts."""
        ids, kept = layout.part_ids, []
        for known in self._moving:
            if known.part_ids is ids:
                continue
            other = ~are_in(known.part_ids, ids)
            if other.any():
                kept.append(known.take(other))
        if float(np.abs(twists).max(initial=0.0)) >= STILL:
            kept.append(_Moving(ids, twists, layout.grids))
        self._moving = tuple(kept)

    def _slide(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: ComponentSystem,
        loads: Array,
        utilization: Array,
        overloaded: NDArray[np.bool_],
        tolerance: float,
        twists: Array | None,
        dt: float,
        brief: bool,
        rest: float,
        change: Array | None,
        spare: Array,
    ) -> Portions[Array]:
        """Takes the motion through a step; (C,) how far the connections slide [m]."""
        yield _BEGIN + _BEGIN_EACH * len(loads)
        parts = Parts.of(layout, anchored, loads)
        joints = joints_of(layout, self._constants)
        if isinstance(system, SnapFitSystem):
            pushes = system.pushes
        else:
            pushes = pushes_of(face_contacts(layout), joints.lower, joints.upper, self._constants)
        start = np.zeros_like(parts.loads) if twists is None else twists
        if twists is not None and not anchored.any():
            # What comes off has the motion of the whole; its own rigid motion slides nowhere.
            start = balance_of(layout).relative(twists, parts.momenta(twists))
        pulse = None
        if brief and change is not None and not anchored.any():
            pulse = Pulse.of(parts, change, start, dt, utilization)
        motion = yield from _motion(
            parts, joints, pushes, system, utilization, overloaded, tolerance, start, dt, brief,
            pulse, spare,
        )  # fmt: skip
        slip, twists = motion.slip, motion.twists
        if rest > 0.0 and twists.any() and (slip < spare).all():
            yield _BEGIN + _BEGIN_EACH * len(loads)
            # Friction alone stops what a pulse has set in motion.
            free, none = parts.under(np.zeros_like(parts.loads)), np.zeros_like(slip)
            motion = yield from _motion(
                free, joints, pushes, system, none, none > 0.0, tolerance, twists, rest, False,
                None, spare - slip,
            )  # fmt: skip
            slip, twists = slip + motion.slip, motion.twists
        self._listed = None
        for index in np.flatnonzero(slip).tolist():
            connection = int(layout.connection_ids[index])
            self._slips[connection] = self._slips.get(connection, 0.0) + float(slip[index])
        self._keep(layout, twists)
        return slip


class _Loose:
    """What may slide in a step: a set of connections that grows, and the bodies that it leaves.

    Args:
        parts: The parts under their loads.
        joints: Their connections.
        pushes: Contacts beside these.
        utilization: (C,) of the connections under all of the loads.
        yielding: (C,) those that may slide in any case.
        most: Bodies up to which connections may slide, the most loaded ones first, after those that
            may in any case.

    Attributes:
        limit: Utilization from which a connection may slide.
        yielding: (C,) what may slide.
    """

    def __init__(
        self,
        parts: Parts,
        joints: Joints,
        pushes: Pushes,
        utilization: Array,
        yielding: NDArray[np.bool_],
        most: float,
    ) -> None:
        self._most = most
        self._rank = utilization + yielding * float(utilization.max(initial=0.0))
        self._parts, self._joints, self._pushes = parts, joints, pushes
        self._utilization = utilization
        self.yielding = yielding
        self.limit = 1.0 - _AT_LIMIT
        self._held = np.zeros(len(yielding), dtype=bool)
        self._bodies: Bodies | None = None
        self._known = False

    @property
    def sound(self) -> NDArray[np.bool_]:
        """(C,) connections taken to bear what they have to, without being tried."""
        return ~(self.yielding | self._held)

    def add(self, more: NDArray[np.bool_]) -> None:
        """Connections that may slide, too."""
        self._held &= ~more
        self._let(more)

    def _let(self, more: NDArray[np.bool_]) -> None:
        """Lets connections slide that are not held."""
        if (more & ~self.yielding).any():
            self.yielding, self._known = self.yielding | more, False

    def hold(self, still: NDArray[np.bool_]) -> None:
        """Connections that need not slide until they are added again: a greater share of the loads
        did not set them in motion."""
        self._held |= still
        self.yielding, self._known = self.yielding & ~still, False

    def at(self, share: float) -> Bodies | None:
        """The bodies that a share of the loads leaves; None: nothing comes apart.

        What a greater share left loose stays so: more bodies move at least as they should.
        """
        self._let((share * self._utilization >= self.limit) & ~self._held)
        if not self._known:
            many = len(self._parts.masses) > self._most  # fewer parts are fewer bodies
            if many and self._free(self.yielding) > self._most:
                self._hold_least()
            self._bodies = bodies_between(self._parts, self._joints, self._pushes, self.yielding)
            self._known = True
        return self._bodies

    def _free(self, yielding: NDArray[np.bool_]) -> int:
        """How many bodies some connections leave."""
        joints = self._joints
        _, side = sides(self._parts.anchored, joints.lower, joints.upper, yielding)
        return len(np.unique(side))

    def _hold_least(self) -> None:
        """Holds the least loaded connections, so that no more bodies are left than may."""
        index = np.flatnonzero(self.yielding)
        index = index[np.argsort(-self._rank[index], kind="mergesort")]
        few, many = 0, len(index)  # of these that leave so many bodies, and too many
        while many - few > 1:
            count = (few + many) // 2
            chosen = np.zeros_like(self.yielding)
            chosen[index[:count]] = True
            few, many = (count, many) if self._free(chosen) <= self._most else (few, count)
        self._held[index[few:]], self.yielding = True, self.yielding.copy()
        self.yielding[index[few:]] = False

    def widen(self, share: float) -> None:
        """Lets slide what is loaded a third as much as the limit: overloaded connections hand on
        what they cannot carry, and if need be to such as are loaded even less."""
        before = self.at(share)
        count = 0 if before is None else before.count
        self.limit = _NEAR
        while self.limit > _LOWEST and not self._frees_more(share, count):
            self.limit *= _FURTHER

    def _frees_more(self, share: float, count: int) -> bool:
        """Whether more than so many bodies come apart."""
        bodies = self.at(share)
        return bodies is not None and bodies.count > count


def _motion(
    parts: Parts,
    joints: Joints,
    pushes: Pushes,
    system: ComponentSystem,
    utilization: Array,
    overloaded: NDArray[np.bool_],
    tolerance: float,
    start: Array,
    dt: float,
    brief: bool,
    pulse: Pulse | None,
    spare: Array,
) -> Portions[Motion]:
    """How parts move in a step: among connections that may slide, with more of these as long as
    others could not bear what is left.

    Args:
        parts: The parts under their loads.
        joints: Their connections.
        pushes: Contacts beside these.
        system: The component's equations.
        utilization: (C,) of the connections under the loads.
        overloaded: (C,) those that are overloaded.
        tolerance: Error of utilizations that is allowed; see `ComponentSystem.solve`.
        start: (N, 6) scaled twists of the parts at the start [m/s].
        dt: Length of the step [s].
        brief: The loads are a short pulse.
        pulse: One that may be too hard; None: the loads are what they are.
        spare: (C,) how far each connection may still slide until it comes apart [m].

    Raises:
        SolverError: No motion was found.
    """
    yielding = overloaded & (not brief)
    slides = bool(start.any())
    if slides:
        yielding |= moving(joints, parts, start)
    most = _MOST if tolerance > 0.0 else np.inf
    loose = _Loose(parts, joints, pushes, utilization, yielding, most)
    highest = float(utilization.max(initial=0.0))
    if brief and not slides and highest <= MILD:
        loose.limit = _NEAR  # one motion of more bodies instead of two
    # What brakes or hits is gone before much else could yield: the bonded structure will do.
    quick = brief or slides
    rests = not brief and not overloaded.any()
    # Loads that are u times what can be carried take u times the friction's power at most.
    short = _SHORT * (1.0 - highest)
    little = _LITTLE * float(joints.pull.min())
    course: Course | None = None
    outset, share = Outset(dt, np.zeros_like(parts.loads), parts.loads), 1.0

    def differs() -> Portions[bool]:
        """Whether it makes a difference that more may slide now."""
        yield _BEGIN + _BEGIN_EACH * len(start)
        more = loose.at(share)
        return more is not None and (yield from more.differs(outset, start, share, little))

    for attempt in range(_ROUNDS):
        if pulse is not None:
            share = yield from pulse.share(loose.at, loose.hold)
        bodies = loose.at(share)
        if bodies is not None:
            course = Course(bodies, start, dt, share, rests, spare, brief)
            outset = yield from course.begin()
            if rests and course.way <= short:
                break
        if loose.yielding.all() or attempt == _ROUNDS - 1:
            break
        moves = bool(outset.soon.any())
        if moves:
            # Connections taken to be sound must bear what is left for them, too.
            left = outset.borne * PITCHES
            if quick:
                yield solve_cost(len(left))
                check = system.bonded(left)
            else:
                check = yield from _solved_apart(system, left, tolerance)
            if check.status is SolveStatus.FAILED:
                raise SolverError(check.message)
            over = check.utilization > 1.0 + _OVER
            if not over.any():
                break
            if (over & loose.sound).any():
                loose.add(check.utilization >= 1.0 - _AT_LIMIT)
                if (yield from differs()):
                    continue
        # Where overloads are upper estimates, others may slide than they say.
        stuck = tolerance > 0.0 and not (brief or moves) and bool(overloaded.any())
        if not (brief or stuck) or loose.limit <= _NEAR or (moves and share < 1.0):
            break
        # What overloaded connections cannot carry they hand on to their neighbours. But where one
        # could slide instead of another, it is the one loaded more that does; and a pulse that was
        # too hard has already set in motion what it can.
        loose.widen(share)
        little = max(little, parts.energy(outset.soon))
        if not (yield from differs()):
            if not stuck:
                break
            loose.add(np.ones_like(overloaded))
            if not (yield from differs()):
                break
    if course is None:
        return Motion(np.zeros_like(start), np.zeros(len(joints)))
    return (yield from course.end())


def _solved_apart(system: ComponentSystem, loads: Array, tolerance: float) -> Portions[Solution]:
    """Internal forces under other loads, without a trace in what the next solve starts from."""
    state = system.snapshot()
    solution = yield from system.solving(loads, tolerance)
    system.restore(state)
    return solution
