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
import scipy.sparse as sp

from bricksim_core.mechanics.snapfit.cholesky import BandCholesky, BlockCholesky
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.mechanics.snapfit.normal import NormalMatrix
from bricksim_core.mechanics.snapfit.yielding import (
    APART,
    NEGATIVE,
    PUSH_TOLERANCE,
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

SOFTER = (1e6, 1e5, 1e4, 1e3, 1e2)
"""Factors of the softness by which the answer is looked for one after the other."""

_REFINEMENTS = 4
_ROUNDING = 1e-11
"""Relative residual of the equilibrium at which refining it ends."""
_BALANCED = 1e-9
"""Relative residual of the equilibrium that is acceptable."""
_LITTLE = 1e-8
"""Pull at a contact that can only push, relative to the greatest force, that counts as none."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Joints with known active rows.

    Attributes:
        own: The active rows, as joint * ROWS + row.
        softness: (J,) of the joints.
        yielding: (Y,) joints with active rows, at most A of them.
        which: Number of the yielding joint of each active row.
        rank: Number of each active row among those of its joint.
        stiff_rows: (Y, A, 6) R_A D.
        release: (Y, A, 6) multipliers by strain.
        pressing: (Y, A) how far they fall as the limit of their joint rises.
        parting: (Y, A, A) the same for the limits of single rows.
        blocks: (J, 6, 6) stiffness.
    """

    own: IntArray
    softness: Array
    yielding: IntArray
    which: IntArray
    rank: IntArray
    stiff_rows: Array
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
        # Strains of the joints, then approaches at the contacts; transposed: their loads.
        strain, push_loads = structure.strain, equations.push_loads
        entries = (
            np.concatenate([strain.data, -push_loads.data]),
            np.concatenate([strain.indices, push_loads.indices]),
            np.concatenate([strain.indptr, push_loads.indptr[1:] + strain.indptr[-1]]),
        )
        shape = (len(structure.stiffness) + len(equations.gap), structure.size)
        self._opening = sp.csr_array(entries, shape=shape)
        self._pull = sp.csc_array(entries, shape=shape[::-1])
        self._stiffness = structure.stiffness.reshape(-1, 6)
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
            try:
                yielded = hardened(softness, guess, _Settling(self, loads, softness).settled)
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
        stiffness, gap = self._stiffness, self._equations.gap
        firm, rows = known.firm, known.rows
        yielding, stiff_rows = rows.yielding, rows.stiff_rows
        bound = (self._equations.limits.limit - granted.joint)[yielding]
        single = np.zeros((*rows.pressing.shape, 1))
        single[rows.which, rows.rank, 0] = granted.row[rows.own]
        held = rows.pressing * bound[:, None] - (rows.parting @ single)[:, :, 0]
        count = stiffness.size
        force = np.zeros(count + len(gap))
        wrench, push = force[:count].reshape(-1, 6), force[count:]
        wrench[yielding] = (held[:, None, :] @ stiff_rows)[:, 0]
        push[:] = -firm * gap
        displaced = known.cholesky.solve(loads - self._pull @ force)
        load = float(np.abs(loads).max(initial=0.0))
        last = np.inf
        multiplier, closing = held, gap
        for _ in range(_REFINEMENTS):
            opening = self._opening @ displaced
            strain, closing = opening[:count].reshape(-1, 6), opening[count:] - gap
            multiplier = (rows.release @ strain[yielding, :, None])[:, :, 0] - held
            np.multiply(stiffness, strain, out=wrench)
            wrench[yielding] -= (multiplier[:, None, :] @ stiff_rows)[:, 0]
            np.multiply(firm, closing, out=push)
            lack = loads - self._pull @ force
            worst = float(np.abs(lack).max(initial=0.0))
            goal = max(load, float(np.abs(wrench).max(initial=0.0)))
            if not _ROUNDING * goal < worst < 0.5 * last:
                break
            displaced, last = displaced + known.cholesky.solve(lack), worst
        if not min(worst, last) <= _BALANCED * goal:
            raise np.linalg.LinAlgError("equilibrium was lost by rounding")
        overload = -granted.joint
        overload[yielding] += rows.softness[yielding] * multiplier.sum(axis=1)
        values = np.concatenate([multiplier[rows.which, rows.rank], push[known.closed]])
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
        stiffness = self._stiffness
        joint, row = np.divmod(own, ROWS)
        first = np.flatnonzero(np.diff(joint, prepend=-1))
        yielding = joint[first]
        which = np.searchsorted(yielding, joint)
        rank = np.arange(len(own)) - first[which]
        width = int(rank.max(initial=-1)) + 1
        rows = np.zeros((len(yielding), width, 6))
        rows[which, rank] = self._equations.limits.rows_of(yielding)[which, row]
        taken = np.zeros((len(yielding), width))
        taken[which, rank] = 1.0
        soft = softness[yielding]
        stiff_rows = rows * stiffness[yielding][:, None, :]
        matrix = stiff_rows @ rows.swapaxes(1, 2)
        matrix += soft[:, None, None] * taken[:, :, None] * taken[:, None, :]
        diagonal = np.arange(width)
        matrix[:, diagonal, diagonal] += np.where(taken, APART * soft[:, None], 1.0)
        right = np.zeros((len(yielding), width, 7 + width))
        right[:, :, :6], right[:, :, 6] = stiff_rows, taken
        right[:, diagonal, 7 + diagonal] = taken
        solved = np.linalg.solve(matrix, right)
        release = solved[:, :, :6]
        blocks = np.zeros((len(stiffness), 6, 6))
        axes = np.arange(6)
        blocks[:, axes, axes] = stiffness
        blocks[yielding] -= stiff_rows.swapaxes(1, 2) @ release
        return _Rows(
            own=own,
            softness=softness,
            yielding=yielding,
            which=which,
            rank=rank,
            stiff_rows=stiff_rows,
            release=release,
            pressing=solved[:, :, 6],
            parting=solved[:, :, 7:],
            blocks=blocks,
        )

    def changes(self, state: Yielded, overload: Array, closing: Array) -> IntArray:
        """What has to enter or leave the active set."""
        limits, first = self._equations.limits, self._first_push
        members, count = state.members, np.searchsorted(state.members, self._first_push)
        own, held = members[:count], members[count:] - first
        entering, _ = limits.exceeded(state.wrench, overload, own)
        least = -NEGATIVE * np.abs(state.multiplier[:count]).max(initial=0.0)
        leaving = own[state.multiplier[:count] < least]

        closing[held] = -np.inf
        little = max(PUSH_TOLERANCE, _LITTLE * float(np.abs(state.wrench).max(initial=0.0)))
        pressed = np.flatnonzero(closing > little * self._equations.compliance)
        pulling = held[state.push[held] < -little]
        return np.concatenate([entering, leaving, pressed + first, pulling + first])


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

    def settled(self, members: IntArray, granted: Granted) -> Yielded | None:
        """Forces with softness; see `hardened`."""
        seen: set[bytes] = set()
        for _ in range(ROUNDS):
            if members.tobytes() in seen:
                return None
            seen.add(members.tobytes())
            try:
                state, overload, closing = self._state(members, granted)
            except np.linalg.LinAlgError:
                return None
            changes = self._solver.changes(state, overload, closing)
            if not len(changes):
                return state
            members = np.setxor1d(members, changes, assume_unique=True)
        return None

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
