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
    Limits,
    Yielded,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

(_posv,) = get_lapack_funcs(("posv",), dtype=np.float64)

LARGEST = 200
"""Contacts and rows near their limits up to which this is quicker than sparse equations."""

_GROWN = 250
"""Those that they may become."""

_ROUNDS = 8
"""Changes of the active set before PIQP is asked for it, and after that."""

_TIMES = 12
"""Times that rows are added or the softness is lowered before others are asked."""

_NEAR = 0.5
"""Share of its limit from which on a row of the bonded structure is looked at at once."""

_HARDER = 100.0
"""What the softness is divided by where it has an active set that no lower one has."""

_HARDEST = 1e-4
"""Least softness, over that of the constants."""

_LITTLE = 0.05
"""Share of an overload that softness may take while its effects are taken for linear."""

_LIKELY = 1e-8
"""Tolerance with which PIQP looks for the active set."""

_ACCURACY = 1e-6
"""Excess over a limit [-] that softness may leave in the answer."""


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """The program: c contacts, then r rows; m in all.

    Attributes:
        joint: (r,) joint of each row.
        number: (r,) which of its rows it is.
        rows: (r, 6) the rows.
        force: (m, F) load of a unit of each on displacements that are held.
        response: (F, m) displacements that answer it.
        matrix: (m, m) M without softness.
        softness: (r, r) softness of the rows.
        target: (m,) q.
    """

    joint: IntArray
    number: IntArray
    rows: Array
    force: Array
    response: Array
    matrix: Array
    softness: Array
    target: Array

    @property
    def contacts(self) -> int:
        """c."""
        return len(self.target) - len(self.joint)

    def softened(self, scale: float) -> Array:
        """(m, m) M with so many times the softness."""
        matrix = self.matrix.copy()
        matrix[self.contacts :, self.contacts :] += scale * self.softness
        return matrix


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
        self._limits, self._stiffness = limits, structure.stiffness.reshape(-1, 6)
        self._closing, self._gap, self._firm = closing, gap, firm
        joints = len(self._stiffness)
        self._every = rows
        self._strain = structure.strain.toarray()
        stiffened = self._strain * structure.stiffness[:, None]
        self._stiffened = stiffened.reshape(joints, 6, -1)
        matrix = stiffened.T @ self._strain
        self._pressed = pressed = firm * closing
        if len(closing):
            matrix += pressed.T @ closing
        self._factor = DenseCholesky(matrix)
        none, count = np.zeros(0, dtype=np.int64), len(closing)
        response = self._factor.solve(pressed.T)
        flexibility = -(pressed @ response)
        np.einsum("ii->i", flexibility)[:] += firm
        self._nothing = _Unknowns(
            joint=none,
            number=none,
            rows=np.zeros((0, 6)),
            force=pressed,
            response=response,
            matrix=flexibility,
            softness=np.zeros((0, 0)),
            target=np.zeros(count),
        )

    def solve(self, loads: Array, elastic: Array) -> Yielded | None:
        """Least overload, then least energy; None if other solvers are to be asked.

        Args:
            loads: (F,) scaled loads [N].
            elastic: (F,) displacements of the bonded structure under them, without contacts.
        """
        limit, gap = self._limits.limit, self._gap
        displaced = self._factor.solve(loads + gap @ self._pressed)
        bonded = self._values(self._wrench(elastic))
        near = bonded > _NEAR * limit[:, None] + TOLERANCE
        if len(gap) + np.count_nonzero(near) > LARGEST:
            return None
        closing = self._closing @ displaced - gap
        start = replace(self._nothing, target=-self._firm * closing)
        unknowns = self._extended(start, near, displaced)
        active = np.concatenate(
            [
                self._closing @ elastic < gap,
                bonded[unknowns.joint, unknowns.number] > limit[unknowns.joint] + TOLERANCE,
            ]
        )
        scale = 1.0
        try:
            for _ in range(_TIMES):
                found = _settled(unknowns, active, scale, self._firm)
                if found is None:
                    return None
                active, value = found
                softer = _solved(unknowns, active, 2.0 * scale)
                state, over = self._hardened(unknowns, displaced, active, value, softer, scale)
                linear = not over[unknowns.joint, unknowns.number].any()
                linear &= state.push.min(initial=0.0) >= -_ACCURACY * state.push.max(initial=0.0)
                if not linear or not over.any():
                    if linear and _lasts(unknowns, active, value, softer, scale):
                        return state
                    scale /= _HARDER
                    if scale < _HARDEST:
                        return None
                    continue
                unknowns = self._extended(unknowns, over, displaced)
                if len(unknowns.target) > _GROWN:
                    return None
                added = len(unknowns.target) - len(active)
                active = np.concatenate([active, np.ones(added, dtype=bool)])
        except np.linalg.LinAlgError:
            return None
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
        softness = same * self._limits.softness[joint][:, None]
        own = np.arange(len(joint))
        softness[own, before + own] *= 1.0 + APART
        wrench = self._wrench(displaced)
        target = (rows * wrench[joint]).sum(axis=1) - self._limits.limit[joint]
        return _Unknowns(
            joint=every_joint,
            number=np.concatenate([known.number, number]),
            rows=every_rows,
            force=np.concatenate([known.force, force]),
            response=np.concatenate([known.response, response], axis=1),
            matrix=_bordered(known.matrix, beside, corner),
            softness=_bordered(known.softness, softness[:, :before], softness[:, before:]),
            target=np.concatenate([known.target, target]),
        )

    def _hardened(
        self,
        unknowns: _Unknowns,
        displaced: Array,
        active: NDArray[np.bool_],
        value: Array,
        softer: Array,
        scale: float,
    ) -> tuple[Yielded, NDArray[np.bool_]]:
        """The limit of vanishing softness, and which (J, ROWS) rows are exceeded then."""
        limits, contacts = self._limits, unknowns.contacts
        final = 2.0 * value - softer
        overload = np.zeros(len(limits.limit))
        over = 2.0 * scale * (unknowns.softness @ (value - softer)[contacts:])
        np.maximum.at(overload, unknowns.joint, over)
        displaced = displaced - unknowns.response @ final
        slip = np.zeros_like(self._stiffness)
        np.add.at(slip, unknowns.joint, unknowns.rows * final[contacts:, None])
        wrench = self._wrench(displaced) - self._stiffness * slip
        push = self._firm * (self._closing @ displaced - self._gap + final[:contacts])
        push[active[:contacts]] = 0.0
        own, closed = np.flatnonzero(active[contacts:]), np.flatnonzero(~active[:contacts])
        members = unknowns.joint[own] * ROWS + unknowns.number[own]
        order = np.argsort(members)
        state = Yielded(
            wrench=wrench,
            push=push,
            members=np.concatenate([members[order], len(limits.limit) * ROWS + closed]),
            multiplier=np.concatenate([value[contacts:][own][order], push[closed]]),
        )
        return state, self._values(wrench) > (limits.limit + overload + _ACCURACY)[:, None]

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


def _settled(
    unknowns: _Unknowns, active: NDArray[np.bool_], scale: float, firm: float
) -> tuple[NDArray[np.bool_], Array] | None:
    """The active set and the values for a softness; None if it is not found."""
    found = _pivoted(unknowns, active, scale, firm)
    if found is None:
        likely = _likely(unknowns, scale)
        found = None if likely is None else _pivoted(unknowns, likely, scale, firm)
    return found


def _pivoted(
    unknowns: _Unknowns, active: NDArray[np.bool_], scale: float, firm: float
) -> tuple[NDArray[np.bool_], Array] | None:
    """What a few changes of all wrong members at once lead to."""
    contacts = unknowns.contacts
    matrix = unknowns.softened(scale)
    least = np.empty(len(active))
    least[:contacts] = -PUSH_TOLERANCE / firm
    gradient = np.full(len(active), -TOLERANCE)
    gradient[:contacts] = -PUSH_TOLERANCE
    for _ in range(_ROUNDS):
        value = _of(matrix, active, unknowns.target)
        least[contacts:] = -NEGATIVE * np.abs(value[contacts:]).max(initial=0.0)
        short = matrix @ value - unknowns.target
        wrong = np.where(active, value < least, short < gradient)
        if not wrong.any():
            return active, value
        active = active ^ wrong
    return None


def _solved(unknowns: _Unknowns, active: NDArray[np.bool_], scale: float) -> Array:
    """(m,) the active unknowns as they have to be, the others zero."""
    return _of(unknowns.softened(scale), active, unknowns.target)


def _of(matrix: Array, active: NDArray[np.bool_], target: Array) -> Array:
    at = active.nonzero()[0]
    value = np.zeros(len(target))
    if len(at):
        _, value[at], info = _posv(matrix[at[:, None], at], target[at])
        if info:
            raise np.linalg.LinAlgError("not positive definite")
    return value


def _likely(unknowns: _Unknowns, scale: float) -> NDArray[np.bool_] | None:
    """Unknowns that will be positive, by an interior point method."""
    matrix = unknowns.softened(scale)
    # In units in which all diagonal entries are one.
    unit = 1.0 / np.sqrt(np.einsum("ii->i", matrix))
    matrix *= unit[:, None]
    matrix *= unit
    solver, none = dense_interior_solver(_LIKELY), None
    lower = np.zeros(len(matrix))
    solver.setup(matrix.T, -unknowns.target * unit, none, none, none, none, none, lower, none)
    if solver.solve() != piqp.PIQP_SOLVED:
        return None
    return solver.result.x > solver.result.z_bl


def _lasts(
    unknowns: _Unknowns, active: NDArray[np.bool_], value: Array, softer: Array, scale: float
) -> bool:
    """Whether the active set is the same for lower softness, too, or need not be.

    Args:
        unknowns: The program.
        active: The active set.
        value: The solution.
        softer: That with the same active set for twice the softness.
        scale: Of the softness.
    """
    contacts = unknowns.contacts
    overload = scale * (unknowns.softness @ value[contacts:])
    limit = 2.0 * scale * (unknowns.softness @ (value - softer)[contacts:])
    if np.abs(limit).max(initial=0.0) <= _ACCURACY:
        return True
    if np.abs(overload - limit).max() > _LITTLE * overload.max():
        return False
    # With E the softness they are a / E + b + c E, and c is often naught.
    for refined in (False, True):
        growing = 2.0 * (value - softer)
        if refined:
            softest = _solved(unknowns, active, 4.0 * scale)
            growing = (4.0 * (value - softer) - 2.0 * (softer - softest)) * (2.0 / 3.0)
        harder = value + (_HARDER - 1.0) * growing
        own, opening = harder[contacts:], harder[:contacts]
        least = -1e-3 * np.abs(own).max(initial=0.0)
        if (own >= least).all() and (opening >= -1e-3 * value[:contacts]).all():
            return True
    return False
