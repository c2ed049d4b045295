# SPDX-License-Identifier: Apache-2.0
"""Overloads in simulations: those of softer joints, at a cost that hardly hangs on the loads.

The problem of `yielding` is solved with some times its softness, and that is not taken out again:
joints share an overload a little more evenly than the least overloads do. The conditions

    J w + B lambda = b                          R w - S mu + s = limit,   mu s = tau
    D^-1 w + R^T mu = J^T y                     B^T y - gap - lambda / k + t = 0,   lambda t = tau

are followed to tau = 0 by a primal-dual interior point method (Mehrotra, SIAM J. Optim. 2, 1992).
Multipliers and slacks are eliminated joint by joint and contact by contact, so that each iteration
factors one stiffness matrix of 6 x 6 blocks. Wrenches are unknowns of their own: found from the
displacements, which are large where joints yield, they would not balance the loads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.portions import Portions
from bricksim_core.mechanics.snapfit.band import multiplied, multiplied_back
from bricksim_core.mechanics.snapfit.interior import room
from bricksim_core.mechanics.snapfit.normal import NormalMatrix
from bricksim_core.mechanics.snapfit.yielding import APART, Equations
from bricksim_core.spatial import Array

SOFTER = {3.0: 30, 100.0: 60}
"""Times the softness, one after the other, and iterations with each: the less it is, the more of
the stiffness of what yields is lost by rounding."""

_START = 1e4
"""tau at the start, over the mean energy of a condition in the bonded structure: well inside."""
_SLACK, _GAP = 1.0, 1e-5
"""Slacks of rows [-] and of contacts [m] at the start, at least."""
_CLOSE = 1e-6
"""Complementarity over that at the start with which the search ends."""
_BALANCED = 1e-5
"""Residuals with which it ends."""
_ALONG = 0.99
"""Part of the way to where a multiplier or a slack would vanish."""
_LEAST = 1e-6
"""Part of tau that is left in an iteration, at least."""
_COST, _COST_EACH, _COST_SQUARE = 0.1, 0.006, 1.2e-5
"""Cost of an iteration, more for each joint, and for each of their pairs."""


def soften(
    equations: Equations, normal: NormalMatrix, loads: Array
) -> Portions[tuple[Array, Array] | None]:
    """(J, 6) scaled wrenches and (V,) pushes [N] of softer joints; None: they were not found.

    Args:
        equations: What to solve.
        normal: The stiffness of its joints and contacts.
        loads: (F,) scaled loads [N].
    """
    joints = len(equations.limits.limit)
    for softer, iterations in SOFTER.items():
        path = _Path(equations, normal, loads, softer)
        for _ in range(iterations):
            yield _COST + (_COST_EACH + _COST_SQUARE * joints) * joints
            try:
                if path.advance():
                    return path.wrench, path.push
            except np.linalg.LinAlgError:
                break
    return None


@dataclass(frozen=True, eq=False)
class _Change:
    """A step of the method; see `_Path` for what changes.

    Attributes:
        opening: (6 J + V,)
        wrench: (J, 6)
        multiplier: (J, ROWS)
        slack: (J, ROWS)
        push: (V,)
        gap: (V,)
    """

    opening: Array
    wrench: Array
    multiplier: Array
    slack: Array
    push: Array
    gap: Array


class _Path:
    """Where the method is.

    Args:
        equations: What to solve.
        normal: The stiffness of its joints and contacts.
        loads: (F,) scaled loads [N].
        softer: Times the softness.

    Attributes:
        wrench: (J, 6) w, scaled [N].
        push: (V,) lambda [N].
    """

    def __init__(
        self, equations: Equations, normal: NormalMatrix, loads: Array, softer: float
    ) -> None:
        self._equations, self._normal, self._loads = equations, normal, loads
        every, limit = equations.every, equations.limits.limit
        joints, contacts = len(limit), len(equations.gap)
        self._stiffness = equations.structure.stiffness.reshape(-1, 6)
        self._softness = softer * equations.limits.softness
        self._used = every.any(axis=2)
        self._count = int(np.count_nonzero(self._used)) + contacts
        energy = 0.5 * float(loads @ equations.structure.displacements(loads))
        tau = _START * energy / self._count
        # Strains of the joints, then how far contacts close.
        self._opening = np.zeros(6 * joints + contacts)
        self.wrench = np.zeros((joints, 6))
        self._slack = np.where(self._used, np.maximum(limit, _SLACK)[:, None], 1.0)
        self._multiplier = np.where(self._used, tau / self._slack, 0.0)
        self._gap = np.maximum(equations.gap, _GAP)
        self.push = tau / self._gap
        self._close = _CLOSE * tau
        self._largest = float(np.abs(loads).max(initial=0.0))

    def advance(self) -> bool:
        """An iteration, unless it has come to the end: whether it has.

        Raises:
            LinAlgError: Rounding stood in the way.
        """
        equations, every, used = self._equations, self._equations.every, self._used
        tau = self._complementarity(self._multiplier, self._slack, self.push, self._gap)
        if tau <= self._close and self._residual() <= _BALANCED:
            return True
        firm = 1.0 / (equations.compliance + self._gap / self.push)
        inverse, blocks = _condensed(
            every, used, self._stiffness, self._softness, self._multiplier, self._slack
        )
        cholesky = self._normal.factorized([blocks, firm.reshape(-1, 4)])

        def change(rows: Array, contacts: Array) -> _Change:
            """The step to these (J, ROWS) and (V,) products."""
            lack, excess, strain, closing = _lacks(
                every, used, self._stiffness, self._softness, equations.limits.limit, inverse,
                self._opening, equations.gap, equations.compliance, firm, self.wrench,
                self._multiplier, self.push, rows, contacts,
            )  # fmt: skip
            moved = cholesky.solve(
                self._loads - multiplied_back(*equations.opening, lack, len(self._loads))
            )
            opening = multiplied(*equations.opening, moved)
            return _Change(
                opening,
                *_changes(
                    every, used, self._stiffness, inverse, excess, strain, closing, firm, opening,
                    self._multiplier, self._slack, self.push, self._gap, rows, contacts,
                ),
            )  # fmt: skip

        straight = change(np.zeros_like(self._slack), np.zeros_like(firm))
        way = min(1.0, self._room(straight))
        ahead = self._complementarity(
            self._multiplier + way * straight.multiplier,
            self._slack + way * straight.slack,
            self.push + way * straight.push,
            self._gap + way * straight.gap,
        )
        wanted = tau * min(max((ahead / tau) ** 3, _LEAST), 1.0)
        bent = change(
            wanted - straight.multiplier * straight.slack, wanted - straight.push * straight.gap
        )
        way = min(1.0, _ALONG * self._room(bent))
        if not np.isfinite(bent.wrench).all():
            raise np.linalg.LinAlgError("not finite")
        self._opening = self._opening + way * bent.opening
        self.wrench = self.wrench + way * bent.wrench
        self._multiplier = self._multiplier + way * bent.multiplier
        self._slack = self._slack + way * bent.slack
        self.push = self.push + way * bent.push
        self._gap = self._gap + way * bent.gap
        return False

    def _complementarity(self, multiplier: Array, slack: Array, push: Array, gap: Array) -> float:
        """Mean product of multipliers and slacks; those of rows without use are zero."""
        return float((multiplier * slack).sum() + push @ gap) / self._count

    def _room(self, change: _Change) -> float:
        """How many times a change can be made until something vanishes."""
        return min(
            room(self._multiplier, change.multiplier),
            room(self._slack, change.slack),
            room(self.push, change.push),
            room(self._gap, change.gap),
        )

    def _residual(self) -> float:
        """What is left of the equations: of the loads relative to the greatest force, of the
        limits as they are [-]."""
        equations = self._equations
        forces = np.concatenate([self.wrench.reshape(-1), self.push])
        lack = self._loads - multiplied_back(*equations.opening, forces, len(self._loads))
        greatest = max(self._largest, float(np.abs(self.wrench).max(initial=0.0)))
        values = np.matmul(equations.every, self.wrench[:, :, None])[:, :, 0] + self._slack
        total = self._multiplier.sum(axis=1, keepdims=True) + APART * self._multiplier
        values -= equations.limits.limit[:, None] + self._softness[:, None] * total
        return max(
            float(np.abs(lack).max(initial=0.0)) / greatest,
            float(np.abs(values[self._used]).max(initial=0.0)),
        )


@compiled
def _condensed(
    every: Array,
    used: NDArray[np.bool_],
    stiffness: Array,
    softness: Array,
    multiplier: Array,
    slack: Array,
) -> tuple[Array, Array]:
    """Joints with their multipliers and slacks eliminated.

    Args:
        every: (J, ROWS, 6) all rows.
        used: (J, ROWS) which of them are not zero.
        stiffness: (J, 6) scaled [N/m].
        softness: (J,) of the joints [1/J].
        multiplier: (J, ROWS) [J].
        slack: (J, ROWS) [-].

    Returns:
        (J, ROWS, ROWS) inverse of R D R^T + S + slack / multiplier, and (J, 6, 6) stiffness.
    """
    joints, rows, _ = every.shape
    inverse, blocks = np.zeros((joints, rows, rows)), np.zeros((joints, 6, 6))
    at = np.empty(rows, dtype=np.int64)
    factor, back, firm = np.zeros((rows, rows)), np.zeros((rows, rows)), np.empty((rows, 6))
    for j in range(joints):
        count = 0
        for r in range(rows):
            if used[j, r]:
                at[count] = r
                count += 1
        # Cholesky's factor L, then its inverse.
        for a in range(count):
            for b in range(a + 1):
                total = softness[j]
                for c in range(6):
                    total += every[j, at[a], c] * stiffness[j, c] * every[j, at[b], c]
                if a == b:
                    total += APART * softness[j] + slack[j, at[a]] / multiplier[j, at[a]]
                for c in range(b):
                    total -= factor[a, c] * factor[b, c]
                factor[a, b] = np.sqrt(total) if a == b else total / factor[b, b]
        for b in range(count):
            for a in range(b, count):
                total = 1.0 if a == b else 0.0
                for c in range(b, a):
                    total -= factor[a, c] * back[c, b]
                back[a, b] = total / factor[a, a]
        for a in range(count):
            for b in range(a + 1):
                total = 0.0
                for c in range(a, count):
                    total += back[c, a] * back[c, b]
                inverse[j, at[a], at[b]] = inverse[j, at[b], at[a]] = total
            for c in range(6):
                total = 0.0
                for b in range(a + 1):
                    total += back[a, b] * every[j, at[b], c]
                firm[a, c] = total * stiffness[j, c]
        for c in range(6):
            for d in range(c + 1):
                total = stiffness[j, c] if c == d else 0.0
                for a in range(count):
                    total -= firm[a, c] * firm[a, d]
                blocks[j, c, d] = blocks[j, d, c] = total
    return inverse, blocks


@compiled
def _lacks(
    every: Array,
    used: NDArray[np.bool_],
    stiffness: Array,
    softness: Array,
    limit: Array,
    inverse: Array,
    opening: Array,
    gap: Array,
    compliance: Array,
    firm: Array,
    wrench: Array,
    multiplier: Array,
    push: Array,
    rows_to: Array,
    contacts_to: Array,
) -> tuple[Array, Array, Array, Array]:
    """What the equations lack before a step.

    Args:
        every: As in `_condensed`, like the next three.
        used:
        stiffness:
        softness:
        limit: (J,) of the joints [-].
        inverse: (J, ROWS, ROWS) see `_condensed`.
        opening: (6 J + V,) strains of the joints, then how far contacts close.
        gap: (V,) [m].
        compliance: (V,) [m/N].
        firm: (V,) stiffness of the contacts with their slacks eliminated [N/m].
        wrench: (J, 6) [N].
        multiplier: (J, ROWS) [J].
        push: (V,) [N].
        rows_to: (J, ROWS) products of multipliers and slacks to go to.
        contacts_to: (V,) the same of pushes and gaps.

    Returns:
        (6 J + V,) forces to balance, (J, ROWS) excess of the rows, (J, 6) of strains and (V,) of
        closing.
    """
    joints, rows, _ = every.shape
    forces, excess = np.zeros(len(opening)), np.zeros((joints, rows))
    strain, closing = np.empty((joints, 6)), np.empty(len(gap))
    for j in range(joints):
        total = 0.0
        for r in range(rows):
            total += multiplier[j, r]
        for c in range(6):
            strain[j, c] = wrench[j, c] / stiffness[j, c] - opening[6 * j + c]
            for r in range(rows):
                strain[j, c] += multiplier[j, r] * every[j, r, c]
        for r in range(rows):
            if used[j, r]:
                value = rows_to[j, r] / multiplier[j, r] - limit[j]
                value -= softness[j] * (total + APART * multiplier[j, r])
                for c in range(6):
                    value += every[j, r, c] * (wrench[j, c] - stiffness[j, c] * strain[j, c])
                excess[j, r] = value
        for c in range(6):
            forces[6 * j + c] = wrench[j, c] - stiffness[j, c] * strain[j, c]
        for r in range(rows):
            if used[j, r]:
                released = 0.0
                for k in range(rows):
                    released += inverse[j, r, k] * excess[j, k]
                for c in range(6):
                    forces[6 * j + c] -= stiffness[j, c] * every[j, r, c] * released
    for v in range(len(gap)):
        own = opening[6 * joints + v] - gap[v] - compliance[v] * push[v]
        closing[v] = own + contacts_to[v] / push[v]
        forces[6 * joints + v] = push[v] + firm[v] * closing[v]
    return forces, excess, strain, closing


@compiled
def _changes(
    every: Array,
    used: NDArray[np.bool_],
    stiffness: Array,
    inverse: Array,
    excess: Array,
    strain: Array,
    closing: Array,
    firm: Array,
    opening: Array,
    multiplier: Array,
    slack: Array,
    push: Array,
    gap: Array,
    rows_to: Array,
    contacts_to: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """What `_Change` has beside the openings, which are given here; see `_lacks`."""
    joints, rows, _ = every.shape
    wrenches = np.empty((joints, 6))
    multipliers, slacks = np.zeros((joints, rows)), np.zeros((joints, rows))
    pushes, gaps = np.empty(len(gap)), np.empty(len(gap))
    ahead = np.zeros(rows)
    for j in range(joints):
        for r in range(rows):
            ahead[r] = excess[j, r]
            for c in range(6):
                ahead[r] += every[j, r, c] * stiffness[j, c] * opening[6 * j + c]
        for r in range(rows):
            if used[j, r]:
                own = 0.0
                for k in range(rows):
                    own += inverse[j, r, k] * ahead[k]
                multipliers[j, r] = own
                slacks[j, r] = (rows_to[j, r] - slack[j, r] * own) / multiplier[j, r] - slack[j, r]
        for c in range(6):
            own = opening[6 * j + c] - strain[j, c]
            for r in range(rows):
                own -= every[j, r, c] * multipliers[j, r]
            wrenches[j, c] = stiffness[j, c] * own
    for v in range(len(gap)):
        pushes[v] = firm[v] * (opening[6 * joints + v] + closing[v])
        gaps[v] = (contacts_to[v] - gap[v] * pushes[v]) / push[v] - gap[v]
    return wrenches, multipliers, slacks, pushes, gaps
