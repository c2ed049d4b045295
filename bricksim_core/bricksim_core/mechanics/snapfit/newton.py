# SPDX-License-Identifier: Apache-2.0
"""Many joints that yield: Newton's method on the active sets of `yielding`'s problem.

Where the active rows A of a joint and the closed contacts are known, its wrench is affine in its
strain e = J' y (plasticity's return mapping, Simo and Hughes 1998, with several surfaces):

    (R_A D R_A' + E) mu = R_A D e - limit        w = D (e - R_A' mu)

What is left is a stiffness matrix, the one of the bonded structure with other blocks for the joints
that yield; displacements, all multipliers and all wrenches follow. Rows that are exceeded enter,
those with negative multipliers leave, all at once. From a good guess that ends in a few rounds; the
cost of one does not hang on how many rows are active.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.snapfit.band import multiplied
from bricksim_core.mechanics.snapfit.cholesky import BandCholesky, BlockCholesky
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.mechanics.snapfit.normal import NormalMatrix
from bricksim_core.mechanics.snapfit.yielding import (
    APART,
    NEGATIVE,
    PUSH_TOLERANCE,
    STEADY,
    TOLERANCE,
    Equations,
    Granted,
    SlowError,
    Yielded,
    hardened,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

ROUNDS = 30
"""Changes of the active set before the solver gives up."""

CLOSER = 10
"""Changes after which these have to be smaller than the first one: where they are not, the active
set hardly ever settles."""

SOFTER = (1e6, 1e5, 1e4, 1e3, 1e2)
"""Factors of the softness by which the answer is looked for one after the other."""

_REFINEMENTS = 4
ROUNDING = 1e-11
"""Relative residual of the equilibrium at which refining it ends."""
BALANCED = 1e-9
"""Relative residual of the equilibrium that is acceptable."""
_ALIKE = 0.01
"""How much the changes of what goes on to change may differ."""
_FAR = 1e6
"""Solves after which nothing comes any more: with the least softness that is one solve."""
_LITTLE = 1e-8
"""Pull at a contact that can only push, relative to the greatest force, that counts as none."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Joints with N known active rows, at most A of a joint.

    Attributes:
        own: (N,) the active rows, as joint * ROWS + row.
        softness: (J,) of the joints.
        release: (N, 6) their multipliers by the strain of their joint.
        pressing: (N,) how far these fall as the limit of the joint rises.
        parting: (N, A) the same for the limits of its active rows.
        blocks: (J, 6, 6) stiffness.
    """

    own: IntArray
    softness: Array
    release: Array
    pressing: Array
    parting: Array
    blocks: Array


@dataclass(frozen=True, eq=False)
class _Tangent:
    """The structure with a known active set; what loads and granted overloads have no part in.

    Attributes:
        members: The active set; see `Yielded`.
        rows: The joints.
        closed: Closed contacts.
        firm: (V,) stiffness of contacts, 0 where they are open [N/m].
        cholesky: The stiffness matrix.
    """

    members: IntArray
    rows: _Rows
    closed: IntArray
    firm: Array
    cholesky: BandCholesky | BlockCholesky


class NewtonSolver:
    """Solves from a guess of the active set.

    Args:
        equations: What to solve.
        normal: The stiffness of its joints and contacts.
    """

    def __init__(self, equations: Equations, normal: NormalMatrix) -> None:
        structure, self._equations = equations.structure, equations
        self._normal = normal
        self._stiffness = structure.stiffness.reshape(-1, 6)
        self._every = equations.every
        self._first_push = len(equations.limits.limit) * ROWS

    def solve(self, loads: Array, guess: IntArray) -> Yielded | None:
        """The solution, None if the active set did not settle or rounding stood in the way.

        Args:
            loads: (F,) scaled loads [N].
            guess: Sorted members (see `Yielded`) that are likely to be active.
        """
        softness = self._equations.limits.softness
        settling = _Settling(self, loads, softness)
        try:
            return hardened(softness, guess, settling.settled, settling.presumed(guess))
        except SlowError:
            return None

    def solve_softly(self, loads: Array) -> Yielded | None:
        """The same by way of softer structures, in which less is lost by rounding and active sets
        are smaller; more solves are needed to take the softness out.

        Args:
            loads: (F,) scaled loads [N].
        """
        ways, guess = [], np.zeros(0, dtype=np.int64)
        for factor in SOFTER:
            softness = factor * self._equations.limits.softness
            nothing = Granted.nothing(len(softness))
            state = _Settling(self, loads, softness).settled(guess, nothing)
            if state is None:
                break
            guess = state.members
            ways.append((softness, guess))
        for softness, guess in reversed(ways):
            settling = _Settling(self, loads, softness)
            try:
                yielded = hardened(softness, guess, settling.settled, ahead=settling.ahead)
            except SlowError:
                return None
            if yielded is not None:
                return yielded
        return None

    def state(
        self, loads: Array, known: _Tangent, granted: Granted
    ) -> tuple[Yielded, Array, Array]:
        """Forces with all members exactly at their limits, the (J,) overload of the joints and
        (V,) how far parts would have moved into each other [m].

        Args:
            loads: (F,) scaled loads [N].
            known: The structure with these members.
            granted: See `hardened`.

        Raises:
            LinAlgError: Rounding stood in the way.
        """
        rows, gap = known.rows, self._equations.gap
        bound = self._equations.limits.limit - granted.joint
        held = held_back(rows.own, rows.pressing, rows.parting, bound, granted.row)
        # At rest what is not balanced are the loads less what limits hold.
        displaced = np.zeros(len(loads))
        worst = goal = last = np.inf
        load = float(np.abs(loads).max(initial=0.0))
        for refinement in range(_REFINEMENTS + 1):
            wrench, push, multiplier, closing, lack = forces_of(
                *self._equations.opening,
                self._every,
                self._stiffness,
                rows.own,
                rows.release,
                held,
                known.firm,
                gap,
                loads,
                displaced,
            )
            if refinement:
                worst = float(np.abs(lack).max(initial=0.0))
                goal = max(load, float(np.abs(wrench).max(initial=0.0)))
                if not ROUNDING * goal < worst < 0.5 * last:
                    break
                last = worst
            if refinement < _REFINEMENTS:
                displaced = displaced + known.cholesky.solve(lack)
        if not min(worst, last) <= BALANCED * goal:
            raise np.linalg.LinAlgError("equilibrium was lost by rounding")
        overload = np.bincount(rows.own // ROWS, multiplier, len(bound)) * rows.softness
        overload -= granted.joint
        values = np.concatenate([multiplier, push[known.closed]])
        return Yielded(wrench, push, known.members, values), overload, closing

    def tangent(
        self, members: IntArray, softness: Array, before: _Tangent | None = None
    ) -> _Tangent:
        """The structure with these members at their limits, factored.

        Args:
            members: The active set; see `Yielded`.
            softness: (J,) of the joints.
            before: One with the same softness, part of which may be the same.

        Raises:
            LinAlgError: It has no stiffness left.
        """
        equations = self._equations
        own = members[: np.searchsorted(members, self._first_push)]
        if before is not None and np.array_equal(before.rows.own, own):
            rows = before.rows
        else:
            rows = self._rows(own, softness)
        closed = members[len(own) :] - self._first_push
        firm = np.zeros(len(equations.gap))
        firm[closed] = 1.0 / equations.compliance[closed]
        cholesky = self._normal.factorized([rows.blocks, firm.reshape(-1, 4)])
        return _Tangent(members, rows, closed, firm, cholesky)

    def _rows(self, own: IntArray, softness: Array) -> _Rows:
        """Joints with these rows at their limits."""
        return _Rows(own, softness, *yielding_rows(own, self._every, self._stiffness, softness))

    def changes(self, state: Yielded, overload: Array, closing: Array) -> IntArray:
        """What has to enter or leave the active set, sorted."""
        least = _LITTLE * float(np.abs(state.wrench).max(initial=0.0))
        return _changes(
            self._every,
            self._equations.limits.limit + np.maximum(overload, 0.0),
            self._equations.compliance,
            state.members,
            state.multiplier,
            state.wrench,
            closing,
            max(PUSH_TOLERANCE, least),
        )


class _Settling:
    """The search for the active set under given loads, with a given softness.

    Args:
        solver: Of the structure.
        loads: (F,) scaled loads [N].
        softness: (J,) of the joints [1/J].
    """

    def __init__(self, solver: NewtonSolver, loads: Array, softness: Array) -> None:
        self._solver = solver
        self._loads = loads
        self._softness = softness
        # A solve that only grants more begins with the active set of the last one.
        self._known: _Tangent | None = None
        # Active sets of the last three solves, and with each the multipliers and how far parts
        # would have moved into each other.
        self._last: tuple[tuple[IntArray, Array], ...] = ()

    def settled(self, members: IntArray, granted: Granted) -> Yielded | None:
        """Forces with softness; see `hardened`."""
        seen: set[bytes] = set()
        first = 0
        for tried in range(ROUNDS):
            if members.tobytes() in seen:
                return None
            seen.add(members.tobytes())
            try:
                state, overload, closing = self._state(members, granted)
            except np.linalg.LinAlgError:
                return None
            changes = self._solver.changes(state, overload, closing)
            first = first if tried else len(changes)
            if tried >= CLOSER and len(changes) > first:
                return None
            if not len(changes):
                last = members, np.concatenate([state.multiplier, -closing])
                self._last = (*self._last[1 - STEADY :], last)
                return state
            members = np.setxor1d(members, changes, assume_unique=True)
        return None

    def ahead(self, state: Yielded) -> float:
        """See `Ahead`."""
        members, left = self._last[-1]
        if not all(np.array_equal(members, other) for other, _ in self._last):
            return np.nan
        # What a multiplier or an open gap loses in a solve; what still settles does not go on.
        before, last = -np.diff([each for _, each in self._last], axis=0)
        falling = (last > 0.0) & (left > 0.0) & (np.abs(last - before) < _ALIKE * last)
        times = left[falling] / last[falling]
        return float(times.min()) if (times < _FAR).any() else 0.0

    def presumed(self, guess: IntArray) -> tuple[Granted, Array] | None:
        """Where `hardened` would be if the guess was right: the softness that is still in its first
        solve would lead away from it."""
        if not len(guess):
            return None
        try:
            state, overload, _ = self._state(guess, Granted.nothing(len(self._softness)))
        except np.linalg.LinAlgError:
            return None
        return Granted.by(self._softness, state), overload

    def _state(self, members: IntArray, granted: Granted) -> tuple[Yielded, Array, Array]:
        known = self._known
        if known is None or not np.array_equal(known.members, members):
            known = self._known = self._solver.tangent(members, self._softness, known)
        return self._solver.state(self._loads, known, granted)


@compiled
def yielding_rows(
    own: IntArray, every: Array, stiffness: Array, softness: Array
) -> tuple[Array, Array, Array, Array]:
    """What `_Rows` has of these active rows: release, pressing, parting and blocks."""
    joints, rows, _ = every.shape
    count, widest = len(own), 0
    release, pressing = np.zeros((count, 6)), np.zeros(count)
    blocks = np.zeros((joints, 6, 6))
    for j in range(joints):
        for c in range(6):
            blocks[j, c, c] = stiffness[j, c]
    for first in range(count):
        last = first
        while last < count and own[last] // rows == own[first] // rows:
            last += 1
        widest = max(widest, last - first)
    parting = np.zeros((count, widest))
    # Of one joint: the matrix of its multipliers, then what these are for strains, for what all of
    # its limits are, and for what each of them is granted.
    table, stiff = np.zeros((widest, 2 * widest + 7)), np.zeros((widest, 6))
    first = 0
    while first < count:
        joint, last = own[first] // rows, first
        while last < count and own[last] // rows == joint:
            last += 1
        width = last - first
        columns = 2 * width + 7
        for i in range(width):
            active = every[joint, own[first + i] % rows]
            for c in range(6):
                stiff[i, c] = table[i, width + c] = active[c] * stiffness[joint, c]
            for k in range(width):
                other = every[joint, own[first + k] % rows]
                table[i, k] = softness[joint]
                for c in range(6):
                    table[i, k] += stiff[i, c] * other[c]
                table[i, width + 7 + k] = 0.0
            table[i, i] += APART * softness[joint]
            table[i, width + 6] = table[i, width + 7 + i] = 1.0
        _eliminate(table, width, columns)
        for i in range(width):
            release[first + i] = table[i, width : width + 6]
            pressing[first + i] = table[i, width + 6]
            parting[first + i, :width] = table[i, width + 7 : columns]
            for c in range(6):
                for d in range(6):
                    blocks[joint, c, d] -= stiff[i, c] * table[i, width + d]
        first = last
    return release, pressing, parting, blocks


@compiled
def _eliminate(table: Array, width: int, columns: int) -> None:
    """Solves A X = B in a table of (width, columns) [A, B], by Gauss with pivots; X replaces B.

    Raises:
        LinAlgError: A is singular.
    """
    for k in range(width):
        pivot = k
        for i in range(k + 1, width):
            if abs(table[i, k]) > abs(table[pivot, k]):
                pivot = i
        if table[pivot, k] == 0.0:
            raise np.linalg.LinAlgError("singular")
        if pivot != k:
            for c in range(k, columns):
                table[k, c], table[pivot, c] = table[pivot, c], table[k, c]
        own = table[k]
        for i in range(k + 1, width):
            factor = table[i, k] / own[k]
            if factor != 0.0:
                for c in range(k + 1, columns):
                    table[i, c] -= factor * own[c]
    for k in range(width - 1, -1, -1):
        own = table[k]
        for i in range(k + 1, width):
            if own[i] != 0.0:
                for c in range(width, columns):
                    own[c] -= own[i] * table[i, c]
        for c in range(width, columns):
            own[c] /= own[k]


@compiled
def held_back(
    own: IntArray, pressing: Array, parting: Array, bound: Array, granted: Array
) -> Array:
    """(N,) what limits take from the multipliers of active rows.

    Args:
        own: See `_Rows`.
        pressing: See there.
        parting: See there.
        bound: (J,) limits of the joints.
        granted: (J * ROWS,) what single rows are granted.
    """
    held = np.zeros(len(own))
    first = 0
    for i in range(len(own)):
        joint = own[i] // ROWS
        if own[first] // ROWS != joint:
            first = i
        held[i] = pressing[i] * bound[joint]
        for k in range(first, min(first + parting.shape[1], len(own))):
            if own[k] // ROWS == joint:
                held[i] -= parting[i, k - first] * granted[own[k]]
    return held


@compiled
def forces_of(
    value: Array,
    column: IntArray,
    start: IntArray,
    every: Array,
    stiffness: Array,
    own: IntArray,
    release: Array,
    held: Array,
    firm: Array,
    gap: Array,
    loads: Array,
    displaced: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Forces under displacements, with known active rows.

    Args:
        value: See `Equations.opening`.
        column: See there.
        start: See there.
        every: (J, ROWS, 6) all rows.
        stiffness: (J, 6) scaled [N/m].
        own: See `_Rows`.
        release: See there.
        held: From `held_back`.
        firm: See `_Tangent`.
        gap: (V,) of the contacts [m].
        loads: (F,) scaled loads [N].
        displaced: (F,) scaled displacements [m].

    Returns:
        (J, 6) scaled wrenches and (V,) pushes [N], (N,) multipliers, (V,) how far parts would have
        moved into each other [m], and (F,) what of the loads is not balanced [N].
    """
    joints, rows, _ = every.shape
    opening = multiplied(value, column, start, displaced)
    closing = opening[6 * joints :] - gap
    wrench = opening[: 6 * joints].copy().reshape(joints, 6)
    multiplier = -held
    for i in range(len(own)):
        for c in range(6):
            multiplier[i] += release[i, c] * opening[6 * (own[i] // rows) + c]
    for i in range(len(own)):
        joint, row = divmod(own[i], rows)
        for c in range(6):
            wrench[joint, c] -= multiplier[i] * every[joint, row, c]
    wrench *= stiffness
    push = firm * closing
    lack = loads.copy()
    for r in range(len(opening)):
        joint, axis = divmod(r, 6)
        force = wrench[joint, axis] if joint < joints else push[r - 6 * joints]
        if force != 0.0:
            for p in range(start[r], start[r + 1]):
                lack[column[p]] -= force * value[p]
    return wrench, push, multiplier, closing, lack


@compiled
def _changes(
    every: Array,
    bound: Array,
    compliance: Array,
    members: IntArray,
    multiplier: Array,
    wrench: Array,
    closing: Array,
    little: float,
) -> IntArray:
    """What has to enter or leave the active set, sorted: of every joint the row that is exceeded
    most, rows with negative multipliers, contacts that close and those that pull.

    Args:
        every: (J, ROWS, 6) all rows.
        bound: (J,) what they may be.
        compliance: (V,) of the contacts [m/N].
        members: The active set; see `Yielded`.
        multiplier: See there.
        wrench: (J, 6) scaled wrenches [N].
        closing: (V,) how far parts would have moved into each other [m].
        little: Pull at a contact that counts as none [N].
    """
    joints, rows, _ = every.shape
    first = joints * rows
    active = np.zeros(first + len(closing), dtype=np.bool_)
    changed = active.copy()
    greatest = 0.0
    for i in range(len(members)):
        active[members[i]] = True
        if members[i] < first:
            greatest = max(greatest, abs(multiplier[i]))
    for i in range(len(members)):
        least = NEGATIVE * greatest if members[i] < first else little
        changed[members[i]] = multiplier[i] < -least
    for j in range(joints):
        most, worst = TOLERANCE, -1
        for r in range(rows):
            if not active[j * rows + r]:
                total = -bound[j]
                for c in range(6):
                    total += every[j, r, c] * wrench[j, c]
                if total > most:
                    most, worst = total, j * rows + r
        if worst >= 0:
            changed[worst] = True
    for v in range(len(closing)):
        if not active[first + v]:
            changed[first + v] = closing[v] > little * compliance[v]
    return np.flatnonzero(changed)
