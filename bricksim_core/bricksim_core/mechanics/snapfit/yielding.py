# SPDX-License-Identifier: Apache-2.0
"""Overload and contact on top of the bonded structure: a small complementarity problem.

Let the joints yield where a row r of their utilization reaches its limit, by a plastic multiplier
mu_r >= 0, and let pushes lambda_v >= 0 act where gaps close. With w = D (J^T y - R^T mu) and
K y = b + B lambda + J D R^T mu the conditions are

    R_r w <= limit_r + v_r,  v = E mu,  mu >= 0,  complementary       (E: softness, tiny)
    approach_v <= gap_v + lambda_v / k_v,  lambda >= 0,  complementary.

They are the optimality conditions of: least overload v (weighted by the joints' strengths), then
least elastic energy. Because E and 1/k are positive the problem has exactly one solution, whatever
the loads. Only rows that come near their limit enter: each needs one back-substitution, whose
result is kept as long as the topology stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.portions import Portions, at_once
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

MAX_PIVOTS = 200
"""Changes of the active set before the solver gives up."""

_FAST_PIVOTS = 40
"""Changes of many members at once; after that one at a time, which is certain to end."""

TOLERANCE = 1e-7
"""Excess over a limit [-] that counts as none."""

PUSH_TOLERANCE = 1e-6
"""Pull at a contact that can only push [N] that counts as none."""

MAX_MEMBERS = 3000
"""Active rows and pushes at which the solver gives up: their matrix is a dense one."""

HARDENINGS = 20
"""Solves that take the softness out."""

LEAPS = 50
"""Times that these solves go on to the next change of the active set."""

STEADY = 3
"""Solves that tell what goes on to change in those that follow."""

_SLOW, _ALIKE = 0.3, 0.02
"""Ratio of a series of these solves from which on it is summed up, once it stays the same."""

ACCEPTED = 1e-6
"""Part of the greatest overload that overloads may be wrong by where these solves do not settle."""

NEGATIVE = 1e-12
"""A multiplier below minus this fraction of the greatest one counts as negative."""

MAX_KEPT = 600
"""Rows and pushes beyond which what is known of them is forgotten after a solve, and no search is
begun: a dense row each, and a dense matrix of them at every change."""

_CHANGE, _CHANGE_EACH, _COLUMN_EACH = 0.1, 0.0006, 0.0014
"""Cost of a change of the active set, for each part, and of what enters for the first time for each
part."""

APART = 1e-6
"""Softness of a single row over that of its joint: rows of one joint that statics ties together
would be interchangeable otherwise."""

SOFTENED = (1.0, 100.0)
"""Multiples of the softness with which the solution is searched for, one after the other where
rounding stands in the way: it grows with the stiffness of the structure, softness does not."""


class _StalledError(Exception):
    """A search that descends comes back to where it was: rounding."""


class SlowError(Exception):
    """Softness is not taken out in `HARDENINGS` solves; more of it would take even longer."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What the joints of a structure can bear.

    Attributes:
        rows_of: Gives (K, ROWS, 6) utilization per scaled wrench [1/N] of K of the joints.
        limit: (J,) bound of the rows [-]: 1, or 0 for a joint that can only push.
        softness: (J,) E, overload per multiplier [1/J].
        greatest: Gives the (J,) greatest rows, or 0, of (J, 6) scaled wrenches.
    """

    rows_of: Callable[[IntArray], Array]
    limit: Array
    softness: Array
    greatest: Callable[[Array], Array]

    def exceeded(self, wrench: Array, overload: Array, members: IntArray) -> tuple[IntArray, Array]:
        """The row of each joint that is exceeded most, of those that are not active.

        Args:
            wrench: (J, 6) scaled wrenches [N].
            overload: (J,) what the joints are allowed beyond their limits.
            members: The active rows, as joint * ROWS + row.

        Returns:
            The exceeded rows, numbered like the members, and by how much they are.
        """
        bound = self.limit + np.maximum(overload, 0.0)
        over = np.flatnonzero(self.greatest(wrench) > bound + TOLERANCE)
        if not len(over):
            return over, np.zeros(0)
        excess = np.matmul(self.rows_of(over), wrench[over, :, None])[:, :, 0]
        excess -= bound[over, None]
        place = np.full(len(bound), -1)
        place[over] = np.arange(len(over))
        active, row = np.divmod(members, ROWS)
        taken = place[active] >= 0
        excess[place[active[taken]], row[taken]] = -np.inf
        worst = excess.argmax(axis=1)
        most = excess[np.arange(len(over)), worst]
        return (over * ROWS + worst)[most > TOLERANCE], most[most > TOLERANCE]


@record
class Yielded:
    """Solution of the complementarity problem.

    Attributes:
        wrench: (J, 6) scaled wrenches [N].
        push: (V,) lambda [N].
        members: Active rows (joint * ROWS + row) and pushes (J * ROWS + v), sorted.
        multiplier: Their mu [J] and lambda [N].
    """

    wrench: Array
    push: Array
    members: IntArray
    multiplier: Array


def limits_of(
    rows_of: Callable[[IntArray], Array],
    limit: Array,
    strength: Array,
    constants: SnapFitConstants,
    greatest: Callable[[Array], Array],
) -> Limits:
    """Limits whose softness goes inversely with strength: joints side by side share an overload.

    Args:
        rows_of: See `Limits`.
        limit: (J,) bound of the rows [-].
        strength: (J,) [N].
        constants: For softness and stiffness.
        greatest: See `Limits`.
    """
    soft = constants.softness * constants.stud_stiffness / constants.contact_strength
    return Limits(rows_of, limit, soft / strength, greatest)


@dataclass(frozen=True, eq=False)
class Granted:
    """Overload that is allowed at no cost; see `hardened`.

    Attributes:
        joint: (J,) of all rows of a joint [-].
        row: (J * ROWS,) of single rows beyond that [-].
    """

    joint: Array
    row: Array

    @staticmethod
    def nothing(joints: int) -> Granted:
        """Before the first solve."""
        return Granted(np.zeros(joints), np.zeros(joints * ROWS))

    @staticmethod
    def by(softness: Array, state: Yielded) -> Granted:
        """E mu: the overload that softness gave, with what was granted of it."""
        joints = len(softness)
        own = state.members[: np.searchsorted(state.members, joints * ROWS)]
        soft = softness[own // ROWS] * state.multiplier[: len(own)]
        row = np.zeros(joints * ROWS)
        row[own] = APART * soft
        return Granted(np.bincount(own // ROWS, soft, joints), row)

    def onward(self, before: Granted, times: float) -> Granted:
        """What is granted after so many more solves, if each adds what the last one has added."""
        return Granted(
            self.joint + times * (self.joint - before.joint),
            self.row + times * (self.row - before.row),
        )


Settled = Callable[[IntArray, Granted], "Yielded | None"]
"""Solves with softness, from a guess of the members, with overloads granted; None where it
cannot."""

Settling = Callable[[IntArray, Granted], "Portions[Yielded | None]"]
"""The same in portions."""


Ahead = Callable[[Yielded], float]
"""After how many more solves, each of which grants as much as the last one, the active set changes;
0 if it never does, NaN if it has just changed. It is asked after `STEADY` solves without a leap."""


def hardened(
    softness: Array,
    guess: IntArray,
    settled: Settled,
    start: tuple[Granted, Array] | None = None,
    ahead: Ahead | None = None,
) -> Yielded | None:
    """What `hardening` gives."""

    def settling(guess: IntArray, granted: Granted) -> Portions[Yielded | None]:
        yield from ()
        return settled(guess, granted)

    return at_once(hardening(softness, guess, settling, start, ahead))


def hardening(
    softness: Array,
    guess: IntArray,
    settling: Settling,
    start: tuple[Granted, Array] | None = None,
    ahead: Ahead | None = None,
) -> Portions[Yielded | None]:
    """The limit of vanishing softness, by the method of multipliers (Rockafellar 1976).

    The softness lets joints be overloaded by E mu. Solved again with that granted,
    R w <= limit + E mu - granted, what the loads do not need of the overload vanishes by a factor
    which is small but where the structure hardly carries them.

    What is overloaded slips by as much again in every solve. The softer the structure is made, the
    less that is: gaps that are still open when the overloads settle may close later, and what is
    active then may become free.

    Args:
        softness: (J,) overload per multiplier [1/J].
        guess: Members that are likely to be active.
        settling: The solver.
        start: What to grant at first and the (J,) overload before [-], nothing if None.
        ahead: Whether the active set changes later.

    Returns:
        The solution, None where there is no solve.

    Raises:
        SlowError: The solutions do not settle.
    """
    joints = len(softness)
    granted, overload = start or (Granted.nothing(joints), np.zeros(joints))
    change, ratio, found, left, leaps = np.inf, 0.0, None, HARDENINGS, 0
    since = 0  # the last leap
    state = yield from settling(guess, granted)
    while left:
        if state is None:
            return found
        if not len(state.members) or state.members[0] >= joints * ROWS:
            return state
        soft = Granted.by(softness, state)
        before, last = change, overload
        overload = soft.joint - granted.joint
        change = float(np.abs(overload - last).max())
        # A geometric series: its remainder by its last two terms.
        ratio, known = (change / before if before > 0.0 else np.sign(change)), ratio
        remainder = change * ratio / (1.0 - ratio) if ratio < 1.0 and before < np.inf else np.inf
        most = float(overload.max())
        left, since, times = left - 1, since + 1, 0.0
        # Where too much had been granted it is negative, and something is left as well.
        if float(np.abs(overload).max()) < TOLERANCE:
            return state
        steady = ahead is None or since >= STEADY
        if steady and remainder < max(TOLERANCE, ACCEPTED * most):
            times = 0.0 if ahead is None else ahead(state)
            if times == 0.0 and remainder < TOLERANCE * max(1.0, most):
                return state
            found = state if times == 0.0 else None
        if times > 0.0:
            granted = soft.onward(granted, times)
            left, leaps, since, change = HARDENINGS, leaps + 1, 0, np.inf
            if leaps > LEAPS:
                break
        elif _SLOW < ratio < 1.0 and abs(ratio - known) < _ALIKE * (1.0 - ratio):
            # At once all that a geometric series would still grant.
            more = ratio**2 / (1.0 - ratio) ** 2 * (last - overload)
            granted = replace(soft, joint=soft.joint + more)
            since, change = 0, np.inf
        else:
            granted = soft
        state = yield from settling(state.members, granted)
    if found is None:
        raise SlowError
    return found


@dataclass(frozen=True, eq=False)
class Equations:
    """A component's equations.

    Attributes:
        structure: The bonded structure: J, D, K.
        limits: R and what they allow.
        closing: (V, F) -B^T: values, columns and beginnings of the rows of a sparse matrix.
        gap: (V,) [m].
        compliance: (V,) 1/k [m/N].
    """

    structure: ElasticStructure
    limits: Limits
    closing: tuple[Array, IntArray, IntArray]
    gap: Array
    compliance: Array

    @cached_property
    def push_loads(self) -> sp.csc_array:
        """(F, V) sparse B."""
        value, column, start = self.closing
        return sp.csc_array((-value, column, start), shape=(self.structure.size, len(self.gap)))

    @cached_property
    def opening(self) -> tuple[Array, IntArray, IntArray]:
        """Strains of the joints, then how far contacts close, by displacements: a (6 J + V, F)
        matrix like `closing`."""
        (data, indices, indptr), (value, column, start) = self.structure.strain, self.closing
        return (
            np.concatenate([data, value]),
            np.concatenate([indices, column]),
            np.concatenate([indptr[:-1], start + len(data)]),
        )

    @cached_property
    def every(self) -> Array:
        """(J, ROWS, 6) all rows."""
        return np.ascontiguousarray(self.limits.rows_of(np.arange(len(self.limits.limit))))


@dataclass(frozen=True, eq=False)
class Kept:
    """What a solver keeps of the S rows and pushes that were active so far.

    Attributes:
        slot: Their positions below.
        owner: (S,) joint of a row, -1 - v of a push.
        rows: (S, 6) the rows, zero for pushes.
        loads: (S, 12) what is not zero in the rows of C^T and B^T.
        places: (S, 12) in which columns.
        response: (S, F) displacements under these.
        matrix: (S, S) the conditions' coefficients, without softness.
        softness: (S, S) softness.
        bound: (S,) limits and gaps.
        sign: (S,) -1 for rows, 1 for pushes.
    """

    slot: dict[int, int]
    owner: IntArray
    rows: Array
    loads: Array
    places: IntArray
    response: Array
    matrix: Array
    softness: Array
    bound: Array
    sign: Array

    @staticmethod
    def nothing(size: int) -> Kept:
        """Before the first solve."""
        none, square, loads = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 12))
        owner, places = np.zeros(0, dtype=np.int64), np.zeros((0, 12), dtype=np.int64)
        rows, response = np.zeros((0, 6)), np.zeros((0, size))
        return Kept({}, owner, rows, loads, places, response, square, square, none, none)


class YieldSolver:
    """Active set solver on a factored structure.

    Args:
        equations: What to solve.

    Attributes:
        kept: Its memory; put an earlier one back to repeat solves bit by bit.
    """

    def __init__(self, equations: Equations) -> None:
        self._structure = equations.structure
        self._limits = equations.limits
        self._closing = equations.closing
        self._approach = -equations.push_loads.transpose() if len(equations.gap) else None
        self._gap = equations.gap
        self._compliance = equations.compliance
        self._first_push = len(equations.limits.limit) * ROWS
        self.kept = Kept.nothing(equations.structure.size)

    def solve(
        self, displacements: Array, guess: IntArray, pivots: int | None = None
    ) -> Yielded | None:
        """What `solving` gives."""
        return at_once(self.solving(displacements, guess, pivots))

    def solving(
        self,
        displacements: Array,
        guess: IntArray,
        pivots: int | None = None,
        most: int = MAX_MEMBERS,
        budget: float = np.inf,
    ) -> Portions[Yielded | None]:
        """Lets the structure yield.

        A primal active set method on the potential energy, which is strictly convex in
        displacements, multipliers mu >= 0 and remaining gaps s >= 0: it descends at every step and
        therefore ends.

        Args:
            displacements: (F,) response of the bonded structure to the loads.
            guess: Members that are likely to be active.
            pivots: Changes of the active set before it gives up; None: `MAX_PIVOTS`.
            most: Members of the active set up to which it goes on.
            budget: Cost at which it gives up.

        Returns:
            The solution, None if rounding or more changes or members stood in the way.
        """
        for softer in SOFTENED:
            try:
                yielded = yield from self._solved(
                    displacements, guess, pivots, most, budget, softer
                )
            except _StalledError:
                continue
            except SlowError:
                yielded = None
            if len(self.kept.slot) > MAX_KEPT:
                self.kept = Kept.nothing(self._structure.size)
            return yielded
        return None

    def _solved(
        self,
        displacements: Array,
        guess: IntArray,
        pivots: int | None,
        most: int,
        budget: float,
        softer: float,
    ) -> Portions[Yielded | None]:
        """`solving` with a multiple of the softness."""
        parts, left = self._structure.size / 6, budget

        def settling(guess: IntArray, granted: Granted) -> Portions[Yielded | None]:
            search = _Search(self, displacements, granted, softer)
            members = np.union1d(guess, np.flatnonzero(search.value))
            nonlocal left
            seen: set[bytes] = set()
            for pivot in range(MAX_PIVOTS if pivots is None else pivots):
                if len(members) > most:
                    return None
                new = sum(member not in self.kept.slot for member in members.tolist())
                cost = _CHANGE + (_CHANGE_EACH + new * _COLUMN_EACH) * parts
                left -= cost
                if left < 0.0:
                    return None
                yield cost
                try:
                    changed = search.step(members)
                except np.linalg.LinAlgError:
                    return None
                if changed is None:
                    if members.tobytes() in seen:
                        raise _StalledError
                    seen.add(members.tobytes())
                    yielded, changed = search.found(members, single=pivot >= _FAST_PIVOTS)
                    if not len(changed):
                        return yielded
                members = np.array(
                    sorted(set(members.tolist()).symmetric_difference(changed.tolist())),
                    dtype=np.int64,
                )
            return None

        return (yield from hardening(softer * self._limits.softness, guess, settling))

    def slots(self, members: IntArray) -> IntArray:
        """Positions of the members in what is kept, which new ones enter."""
        slot = self.kept.slot
        new = [m for m in members.tolist() if m not in slot]
        if new:
            self._keep(np.array(new))
            slot = self.kept.slot
        return np.array([slot[m] for m in members.tolist()], dtype=np.int64)

    def _keep(self, new: IntArray) -> None:
        kept, limits, structure = self.kept, self._limits, self._structure
        is_row = new < self._first_push
        joint, row = np.divmod(new[is_row], ROWS)
        push = new[~is_row] - self._first_push
        rows = np.zeros((len(new), 6))
        rows[is_row] = limits.rows_of(joint)[np.arange(len(joint)), row]
        yielding = np.zeros((len(new), 6))
        yielding[is_row] = structure.stiffness.reshape(-1, 6)[joint] * rows[is_row]
        loads, places = np.zeros((len(new), 12)), np.zeros((len(new), 12), dtype=np.int64)
        loads[is_row], places[is_row] = structure.loads(joint, yielding[is_row])
        loads[~is_row], places[~is_row] = _push_loads(push, *self._closing)
        every = _spread(loads, places, structure.size)
        response = np.ascontiguousarray(structure.displacements(every.T).T)

        owner = np.empty(len(new), dtype=np.int64)
        owner[is_row], owner[~is_row] = joint, -1 - push
        soft, own, bound = (np.zeros(len(new)) for _ in range(3))
        soft[is_row], bound[is_row] = limits.softness[joint], limits.limit[joint]
        own[~is_row], bound[~is_row] = self._compliance[push], self._gap[push]
        sign = np.where(is_row, -1.0, 1.0)
        with_kept = owner[:, None] == kept.owner
        with_new = owner[:, None] == owner
        across = _work(kept.loads, kept.places, response)
        own_work = _work(loads, places, response)
        corner = sign[:, None] * own_work + with_new * (yielding @ rows.T)
        shared = with_kept * (yielding @ kept.rows.T)
        behind, ahead = sign[:, None] * across.T + shared, kept.sign[:, None] * across + shared.T
        # Rows of one joint share its softness; a little more of their own sets them apart.
        softness = soft[:, None] * (with_new + APART * np.eye(len(new)))
        beside = soft[:, None] * with_kept
        first, size = len(kept.slot), len(kept.slot) + len(new)
        matrix, soft_matrix = np.empty((size, size)), np.empty((size, size))
        matrix[:first, :first], soft_matrix[:first, :first] = kept.matrix, kept.softness
        matrix[:first, first:], soft_matrix[:first, first:] = ahead, beside.T
        matrix[first:, :first], soft_matrix[first:, :first] = behind, beside
        matrix[first:, first:], soft_matrix[first:, first:] = corner + np.diag(own), softness
        self.kept = Kept(
            slot=kept.slot | {m: first + i for i, m in enumerate(new.tolist())},
            owner=np.concatenate([kept.owner, owner]),
            rows=np.concatenate([kept.rows, rows]),
            loads=np.concatenate([kept.loads, loads]),
            places=np.concatenate([kept.places, places]),
            response=np.concatenate([kept.response, response]),
            matrix=matrix,
            softness=soft_matrix,
            bound=np.concatenate([kept.bound, bound]),
            sign=np.concatenate([kept.sign, sign]),
        )


class _Search:
    """One search of a `YieldSolver`.

    Args:
        solver: The solver.
        elastic: (F,) response of the bonded structure to the loads.
        granted: See `hardened`.
        softer: Multiple of the softness.

    Attributes:
        value: Multipliers mu and lambda of all rows and pushes where the search is.
    """

    def __init__(
        self, solver: YieldSolver, elastic: Array, granted: Granted, softer: float
    ) -> None:
        self._solver = solver
        self._softer = softer
        self._granted = granted
        self._elastic = elastic
        self._displaced = elastic.copy()
        self._first = solver._first_push
        self._closing = self._closed(elastic)
        self.value = np.zeros(self._first + len(self._closing))
        self.value[self._first :] = np.maximum(self._closing, 0.0) / solver._compliance
        self._multiplier = np.zeros(0)

    def step(self, members: IntArray) -> IntArray | None:
        """Goes to where all members sit exactly at their limits, or as far as that is possible.

        Returns:
            The members that stop it on the way, None if nothing does.
        """
        solver = self._solver
        self._multiplier = self._multipliers(members)
        final = self._final(members, self._multiplier)
        closing = self._closed(final)
        step, blocking = _stopped(
            members, self._multiplier, self.value, self._closing, closing, solver._compliance,
            self._first,
        )  # fmt: skip
        if len(blocking):
            # In place: these are long, and new memory costs more than the numbers.
            _go(self._displaced, final, step)
            _go(self._closing, closing, step)
            _go_to_multipliers(self.value, members, self._multiplier, step)
            self.value[blocking[blocking < self._first]] = 0.0
            return blocking
        self._displaced, self._closing = final, closing
        _go_to_multipliers(self.value, members, self._multiplier, 1.0)
        return None

    def found(self, members: IntArray, single: bool) -> tuple[Yielded, IntArray]:
        """The forces where the search is, and what has to enter or leave the active set.

        Args:
            members: The active set, at whose limits the search is.
            single: One change only.
        """
        solver, limits = self._solver, self._solver._limits
        state, overload = self._forces(members, self._multiplier, self._displaced)
        own = members[members < self._first]
        entering, most = limits.exceeded(state.wrench, overload, own)

        closed = self._closing - solver._compliance * state.push
        held = members[members >= self._first] - self._first
        closed[held] = -np.inf
        pressed = np.flatnonzero(closed > PUSH_TOLERANCE * solver._compliance)
        pulling = held[state.push[held] < -PUSH_TOLERANCE]
        if single:
            if len(entering):
                return state, entering[[int(np.argmax(most))]]
            if len(pulling):
                return state, pulling[[int(np.argmin(state.push[pulling]))]] + self._first
            pressed = pressed[np.argsort(-closed[pressed])[:1]]
        changes = np.concatenate([entering, pressed + self._first, pulling + self._first])
        return state, changes

    def _closed(self, displacements: Array) -> Array:
        """(V,) how far parts would have moved into each other [m]."""
        approach = self._solver._approach
        return np.zeros(0) if approach is None else approach @ displacements - self._solver._gap

    def _multipliers(self, members: IntArray) -> Array:
        """Multipliers for which all members sit exactly at their limits.

        With C = J D R^T, rows obey (R D R^T + E - C^T K^-1 C) mu - C^T K^-1 B lambda = R w0 - limit
        + granted and pushes B^T K^-1 C mu + (B^T K^-1 B + 1/k) lambda = approach0 - gap.
        """
        if not len(members):
            return np.zeros(0)
        at = self._solver.slots(members)
        kept = self._solver.kept
        square = np.ix_(at, at)
        matrix = kept.matrix[square] + self._softer * kept.softness[square]
        work = _work(kept.loads[at], kept.places[at], self._elastic[None])[:, 0]
        excess = -kept.sign[at] * work - kept.bound[at]
        own = members[members < self._first]
        excess[members < self._first] += self._granted.joint[own // ROWS] + self._granted.row[own]
        return np.linalg.solve(matrix, excess)

    def _final(self, members: IntArray, multiplier: Array) -> Array:
        """(F,) displacements for given multipliers, a new array."""
        at = self._solver.slots(members)
        return _moved(self._elastic, multiplier, self._solver.kept.response, at)

    def _forces(
        self, members: IntArray, multiplier: Array, displacements: Array
    ) -> tuple[Yielded, Array]:
        """Forces for given multipliers, and the (J,) overload that they stand for."""
        structure, limits = self._solver._structure, self._solver._limits
        slip = np.zeros((len(limits.limit), 6))
        overload = -self._granted.joint
        push = np.zeros(len(self._closing))
        is_row = members < self._first
        joint = members[is_row] // ROWS
        if len(joint):
            rows = self._solver.kept.rows[self._solver.slots(members[is_row])]
            np.add.at(slip, joint, rows * multiplier[is_row, None])
        np.add.at(overload, joint, self._softer * limits.softness[joint] * multiplier[is_row])
        push[members[~is_row] - self._first] = multiplier[~is_row]
        wrench = structure.wrenches(displacements) - structure.stiffness.reshape(-1, 6) * slip
        return Yielded(wrench, push, members, multiplier), overload


@compiled
def _stopped(
    members: IntArray,
    multiplier: Array,
    value: Array,
    before: Array,
    closing: Array,
    compliance: Array,
    first: int,
) -> tuple[float, IntArray]:
    """The greatest step in [0, 1] that keeps all mu and remaining gaps s >= 0.

    Args:
        members: Sorted rows and, from ``first`` on, pushes that are active.
        multiplier: (M,) theirs at the end of the whole step.
        value: Those of all at its start.
        before: (V,) how far parts would have moved into each other at its start [m].
        closing: (V,) and at its end [m].
        compliance: (V,) 1/k [m/N].
        first: Number of the first push.

    Returns:
        The step, and the members that stop it; none if nothing does.
    """
    least = 0.0
    for m in range(len(members)):
        if members[m] < first:
            least = max(least, abs(multiplier[m]))
    least *= -NEGATIVE
    found = np.empty(len(members) + len(closing), dtype=np.int64)
    ratio = np.empty(len(found))
    count, active = 0, 0
    for m in range(len(members)):
        if members[m] >= first:
            break
        active = m + 1
        if multiplier[m] < least:
            room = value[members[m]]
            found[count], ratio[count] = members[m], room / (room - multiplier[m])
            count += 1
    for v in range(len(closing)):
        if active < len(members) and members[active] == first + v:
            active += 1
            continue
        if -closing[v] < -PUSH_TOLERANCE * compliance[v]:
            room = max(compliance[v] * value[first + v] - before[v], 0.0)
            found[count], ratio[count] = first + v, room / (room + closing[v])
            count += 1
    step = 1.0
    for k in range(count):
        step = min(step, ratio[k])
    if step == 1.0:
        return step, found[:0]
    return step, found[:count][ratio[:count] <= step]


@compiled
def _go(value: Array, target: Array, step: float) -> None:
    """Goes a part of the way."""
    for i in range(len(value)):
        value[i] += step * (target[i] - value[i])


@compiled
def _go_to_multipliers(value: Array, members: IntArray, multiplier: Array, step: float) -> None:
    """Goes a part of the way to where members have their multipliers and others have none."""
    m = 0
    for i in range(len(value)):
        target = 0.0
        if m < len(members) and members[m] == i:
            target = multiplier[m]
            m += 1
        value[i] = value[i] + step * (target - value[i]) if step < 1.0 else target


@compiled
def _push_loads(
    pushes: IntArray, value: Array, column: IntArray, start: IntArray
) -> tuple[Array, IntArray]:
    """(M, 12) loads and places of pushes, as in `Kept`; of `Equations.closing`."""
    loads, places = np.zeros((len(pushes), 12)), np.zeros((len(pushes), 12), dtype=np.int64)
    for m in range(len(pushes)):
        first = start[pushes[m]]
        for k in range(start[pushes[m] + 1] - first):
            loads[m, k], places[m, k] = -value[first + k], column[first + k]
    return loads, places


@compiled
def _spread(loads: Array, places: IntArray, size: int) -> Array:
    """(M, F) loads as in `Kept`, with all that is zero."""
    spread = np.zeros((len(loads), size))
    for m in range(len(loads)):
        for k in range(loads.shape[1]):
            spread[m, places[m, k]] += loads[m, k]
    return spread


@compiled
def _work(loads: Array, places: IntArray, displacements: Array) -> Array:
    """(S, M) work of S loads, as in `Kept`, along (M, F) displacements."""
    work = np.zeros((len(loads), len(displacements)))
    for s in range(len(loads)):
        for m in range(len(displacements)):
            for k in range(loads.shape[1]):
                work[s, m] += loads[s, k] * displacements[m, places[s, k]]
    return work


@compiled
def _moved(start: Array, multiplier: Array, response: Array, at: IntArray) -> Array:
    """(F,) displacements and some responses, times multipliers."""
    moved = start.copy()
    for k in range(len(at)):
        own = response[at[k]]
        for i in range(len(moved)):
            moved[i] += multiplier[k] * own[i]
    return moved
