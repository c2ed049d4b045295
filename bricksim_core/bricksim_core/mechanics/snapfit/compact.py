# SPDX-License-Identifier: Apache-2.0
"""The complementarity problem of `yielding` for small structures, as a small dense one.

A contact is taken for a spring of stiffness k that opens by s >= 0, as a joint is one that yields
by mu >= 0. The potential energy, least over displacements y, is then a quadratic one in z = (s, mu)
alone,

    least 1/2 z' M z - q' z  over z >= 0,

M the flexibility of contacts and rows, and its gradient M z - q tells how contacts press and what
rows are short of their limits by. To build M and to find what of z is positive by trying takes some
dozens of dense operations, less than to set up anything sparse for a dozen parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import piqp
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from bricksim_core.mechanics.interior_solver import dense_interior_solver
from bricksim_core.mechanics.snapfit.cholesky import DenseCholesky
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.mechanics.snapfit.yielding import (
    APART,
    NEGATIVE,
    PUSH_TOLERANCE,
    TOLERANCE,
    Granted,
    Limits,
    SlowError,
    Yielded,
    hardened,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_potrf, _potrs = get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)

LARGEST = 160
"""Contacts and rows near their limits up to which this is quicker than sparse equations."""

_GROWN = 240
"""Those that they may become."""

_ROUNDS = 8
"""Changes of the active set after PIQP was asked for it, and before that for many unknowns: for few
of them (`_AT_ONCE` and one for `_MORE`) it takes no longer than three changes."""

_AT_ONCE, _MORE = 3, 16

_TIMES = 12
"""Times that rows are added before others are asked."""

_NEAR = 0.5
"""Share of its limit from which on a row of the bonded structure is looked at at once."""

_CLOSE = 0.2
"""What a row is short of its limit by at most to be added with those that are exceeded."""

_NEVER = 1e-30
"""Tolerance with which it is never said to have no least value: it may look so where rows tie."""

_LIKELY = 1e-8
"""Tolerance with which PIQP looks for the active set."""


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """The program: c contacts, then r rows; m in all.

    Attributes:
        joint: (r,) joint of each row.
        number: (r,) which of its rows it is.
        rows: (r, 6) the rows.
        force: (m, F) load of a unit of each on displacements that are held.
        response: (F, m) displacements that answer it.
        matrix: (m, m) M.
        target: (m,) q.
    """

    joint: IntArray
    number: IntArray
    rows: Array
    force: Array
    response: Array
    matrix: Array
    target: Array

    @property
    def contacts(self) -> int:
        """c."""
        return len(self.target) - len(self.joint)


class CompactSolver:
    """Solves for small structures.

    Args:
        structure: The bonded structure.
        limits: What its joints bear.
        rows: (J, ROWS, 6) all of their rows.
        closing: (V, F) how far contacts close per displacement.
        gap: (V,) [m].
        firm: Stiffness of a contact [N/m].

    Attributes:
        closing: As given.
    """

    def __init__(
        self,
        structure: ElasticStructure,
        limits: Limits,
        rows: Array,
        closing: Array,
        gap: Array,
        firm: float,
    ) -> None:
        self._structure, self._limits = structure, limits
        self._stiffness = structure.stiffness.reshape(-1, 6)
        self._closing, self._gap, self._firm = closing, gap, firm
        self._every, self._pressed = rows, firm * closing

    @cached_property
    def _strain(self) -> Array:
        """(6 J, F) J^T."""
        return self._structure.strain.toarray()

    @cached_property
    def _stiffened(self) -> Array:
        """(J, 6, F) D J^T."""
        stiffened = self._strain * self._structure.stiffness[:, None]
        return stiffened.reshape(len(self._stiffness), 6, -1)

    @cached_property
    def _factor(self) -> DenseCholesky:
        """Of the structure with its contacts as springs."""
        matrix = self._stiffened.reshape(self._strain.shape).T @ self._strain
        if len(self._closing):
            matrix += self._pressed.T @ self._closing
        return DenseCholesky(matrix)

    @cached_property
    def _contacts(self) -> _Unknowns:
        """The contacts alone, before any load."""
        response = self._factor.solve(self._pressed.T)
        flexibility = -(self._pressed @ response)
        np.einsum("ii->i", flexibility)[:] += self._firm
        none = np.zeros(0, dtype=np.int64)
        return _Unknowns(
            joint=none,
            number=none,
            rows=np.zeros((0, 6)),
            force=self._pressed,
            response=response,
            matrix=flexibility,
            target=np.zeros(len(self._closing)),
        )

    def solve(self, loads: Array, elastic: Array) -> Yielded | None:
        """Least overload, then least energy; None if other solvers are to be asked.

        Args:
            loads: (F,) scaled loads [N].
            elastic: (F,) displacements of the bonded structure under them, without contacts.
        """
        limit, gap = self._limits.limit, self._gap
        bonded = self._values(self._structure.wrenches(elastic))
        near = bonded > _NEAR * limit[:, None] + TOLERANCE
        if len(gap) + np.count_nonzero(near) > LARGEST:
            return None
        displaced = self._factor.solve(loads + gap @ self._pressed)
        closing = self._closing @ displaced - gap
        start = replace(self._contacts, target=-self._firm * closing)
        unknowns = self._extended(start, near, displaced)
        active = np.concatenate(
            [
                self._closing @ elastic < gap,
                bonded[unknowns.joint, unknowns.number] > limit[unknowns.joint] + TOLERANCE,
            ]
        )

        search = _Search(unknowns, active, self._firm)

        def settled(_: IntArray, granted: Granted) -> Yielded | None:
            # The search goes on where the last one ended.
            for _time in range(_TIMES):
                value = search.settled(granted)
                if value is None:
                    return None
                state, excess = self._state(search, displaced, value, granted)
                if excess.max() <= TOLERANCE:
                    return state
                more = excess > -_CLOSE
                extended = self._extended(search.unknowns, more, displaced)
                search.extend(extended, excess[more] > TOLERANCE)
                if len(search.active) > _GROWN:
                    return None
            return None

        try:
            return hardened(self._limits.softness, np.zeros(0, dtype=np.int64), settled)
        except (np.linalg.LinAlgError, SlowError):
            return None

    def _extended(self, known: _Unknowns, more: NDArray[np.bool_], displaced: Array) -> _Unknowns:
        """The program with some of the (J, ROWS) rows more."""
        joint, number = more.nonzero()
        if not len(joint):
            return known
        rows = self._every[joint, number]
        force = -(rows[:, None, :] @ self._stiffened[joint])[:, 0]
        response = self._factor.solve(force.T)
        stiff = rows * self._stiffness[joint]
        every_joint = np.concatenate([known.joint, joint])
        every_rows = np.concatenate([known.rows, rows])
        same, before = joint[:, None] == every_joint, len(known.joint)
        beside = -(force @ known.response)
        beside[:, known.contacts :] += same[:, :before] * (stiff @ known.rows.T)
        corner = same[:, before:] * (stiff @ rows.T) - force @ response
        # Rows of one joint share its softness; a little more of their own sets them apart.
        soft = self._limits.softness[joint]
        beside[:, known.contacts :] += same[:, :before] * soft[:, None]
        corner += same[:, before:] * soft[:, None]
        np.einsum("ii->i", corner)[:] += APART * soft
        wrench = self._wrench(displaced)
        target = (rows * wrench[joint]).sum(axis=1) - self._limits.limit[joint]
        return _Unknowns(
            joint=every_joint,
            number=np.concatenate([known.number, number]),
            rows=every_rows,
            force=np.concatenate([known.force, force]),
            response=np.concatenate([known.response, response], axis=1),
            matrix=_bordered(known.matrix, beside, corner),
            target=np.concatenate([known.target, target]),
        )

    def _state(
        self, search: _Search, displaced: Array, value: Array, granted: Granted
    ) -> tuple[Yielded, Array]:
        """The forces, and by how much they exceed the (J, ROWS) rows that the program lacks."""
        unknowns, active = search.unknowns, search.active
        contacts, joint = unknowns.contacts, unknowns.joint
        multiplier = value[contacts:]
        soft = self._limits.softness[joint] * multiplier
        overload = np.bincount(joint, soft, len(self._every)) - granted.joint
        displaced = displaced - unknowns.response @ value
        slip = np.zeros_like(self._stiffness)
        np.add.at(slip, joint, unknowns.rows * multiplier[:, None])
        wrench = self._wrench(displaced) - self._stiffness * slip
        push = self._firm * (self._closing @ displaced - self._gap + value[:contacts])
        push[active[:contacts]] = 0.0
        own, closed = np.flatnonzero(active[contacts:]), np.flatnonzero(~active[:contacts])
        members = joint[own] * ROWS + unknowns.number[own]
        order = np.argsort(members)
        state = Yielded(
            wrench=wrench,
            push=push,
            members=np.concatenate([members[order], len(self._every) * ROWS + closed]),
            multiplier=np.concatenate([multiplier[own][order], push[closed]]),
        )
        bound = (self._limits.limit + np.maximum(overload, 0.0))[:, None]
        values = self._values(wrench)
        values[joint, unknowns.number] = 0.0
        return state, values - bound

    def _wrench(self, displaced: Array) -> Array:
        """(J, 6) scaled wrenches of joints that do not yield."""
        return self._stiffness * (self._strain @ displaced).reshape(-1, 6)

    def _values(self, wrench: Array) -> Array:
        """(J, ROWS) all rows of (J, 6) scaled wrenches."""
        return np.matmul(self._every, wrench[:, :, None])[:, :, 0]


def _bordered(matrix: Array, beside: Array, corner: Array) -> Array:
    """A symmetric matrix with more rows and columns."""
    first = len(matrix)
    if not first:
        return corner
    larger = np.empty((first + len(corner), first + len(corner)))
    larger[:first, :first] = matrix
    larger[first:, :first], larger[:first, first:] = beside, beside.T
    larger[first:, first:] = corner
    return larger


class _Search:
    """The search for the active set.

    Args:
        unknowns: The program.
        active: (m,) what of z is taken to be positive at first.
        firm: Stiffness of a contact [N/m].

    Attributes:
        unknowns: The program.
        active: (m,) what of z is positive where the search is.
    """

    def __init__(self, unknowns: _Unknowns, active: NDArray[np.bool_], firm: float) -> None:
        self.unknowns, self.active, self._firm = unknowns, active, firm
        self._known: tuple[NDArray[np.bool_], Array] | None = None

    def extend(self, unknowns: _Unknowns, active: NDArray[np.bool_]) -> None:
        """Goes on with more rows, and which of them are positive at first."""
        self.unknowns, self.active = unknowns, np.concatenate([self.active, active])
        self._known = None

    def settled(self, granted: Granted) -> Array | None:
        """(m,) z for granted overloads; None if its active set is not found."""
        unknowns = self.unknowns
        target = unknowns.target.copy()
        own = unknowns.joint * ROWS + unknowns.number
        target[unknowns.contacts :] += granted.joint[unknowns.joint] + granted.row[own]
        value = self._pivoted(target, min(_ROUNDS, _AT_ONCE + len(target) // _MORE))
        if value is None:
            likely = _likely(unknowns.matrix, target)
            if likely is not None:
                self.active = likely
                value = self._pivoted(target, _ROUNDS)
        return value

    def _pivoted(self, target: Array, rounds: int) -> Array | None:
        """What a few changes of all wrong members at once lead to."""
        contacts, matrix = self.unknowns.contacts, self.unknowns.matrix
        least = np.empty(len(target))
        least[:contacts] = -PUSH_TOLERANCE / self._firm
        gradient = np.full(len(target), -TOLERANCE)
        gradient[:contacts] = -PUSH_TOLERANCE
        for _ in range(rounds):
            value = self._value(target)
            least[contacts:] = -NEGATIVE * np.abs(value[contacts:]).max(initial=0.0)
            short = matrix @ value - target
            wrong = np.where(self.active, value < least, short < gradient)
            if not wrong.any():
                return value
            self.active = self.active ^ wrong
        return None

    def _value(self, target: Array) -> Array:
        """(m,) the active unknowns as they have to be, the others zero."""
        active, known = self.active, self._known
        at = active.nonzero()[0]
        value = np.zeros(len(target))
        if not len(at):
            return value
        if known is None or known[0] is not active:
            # The transpose of a symmetric matrix is laid out as LAPACK wants it.
            square = self.unknowns.matrix[at[:, None], at].T
            factor, info = _potrf(square, clean=0, overwrite_a=1)
            if info:
                raise np.linalg.LinAlgError("not positive definite")
            self._known = known = active, factor
        value[at] = _potrs(known[1], target[at])[0]
        return value


def _likely(matrix: Array, target: Array) -> NDArray[np.bool_] | None:
    """Unknowns that will be positive, by an interior point method."""
    # In units in which all diagonal entries are one.
    unit = 1.0 / np.sqrt(np.einsum("ii->i", matrix))
    matrix = matrix * unit[:, None] * unit
    solver, none = dense_interior_solver(_LIKELY), None
    solver.settings.eps_dual_inf = _NEVER
    lower = np.zeros(len(matrix))
    solver.setup(matrix.T, -target * unit, none, none, none, none, none, lower, none)
    if solver.solve() != piqp.PIQP_SOLVED:
        return None
    return solver.result.x > solver.result.z_bl
