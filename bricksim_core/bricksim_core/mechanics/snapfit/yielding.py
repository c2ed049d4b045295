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

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES, ElasticStructure
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

MAX_PIVOTS = 200
"""Changes of the active set before the solver gives up."""

_FAST_PIVOTS = 40
"""Changes of many members at once; after that one at a time, which is certain to end."""

TOLERANCE = 1e-7
"""Excess over a limit [-] that counts as none."""

_PUSH_TOLERANCE = 1e-6
"""Pull at a contact that can only push [N] that counts as none."""

MAX_MEMBERS = 300
"""Active rows and pushes at which the solver gives up: an interior point method is quicker then."""

_NEGATIVE = 1e-12
"""A multiplier below minus this fraction of the greatest one counts as negative."""

_APART = 1e-6
"""Softness of a single row over that of its joint: rows of one joint that statics ties together
would be interchangeable otherwise."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What the joints of a structure can bear.

    Attributes:
        rows: (J, ROWS, 6) utilization per scaled wrench [1/N].
        limit: (J,) bound of the rows [-]: 1, or 0 for a joint that can only push.
        softness: (J,) E, overload per multiplier [1/J].
    """

    rows: Array
    limit: Array
    softness: Array


@dataclass(frozen=True, eq=False)
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


def limits_of(rows: Array, limit: Array, strength: Array, constants: SnapFitConstants) -> Limits:
    """Limits whose softness goes inversely with strength: joints side by side share an overload.

    Args:
        rows: (J, ROWS, 6) utilization per wrench in SI.
        limit: (J,) bound of the rows [-].
        strength: (J,) [N].
        constants: For softness and stiffness.
    """
    soft = constants.softness * constants.stud_stiffness / constants.contact_strength
    return Limits(rows * PITCHES, limit, soft / strength)


@dataclass(frozen=True, eq=False)
class Equations:
    """A component's equations.

    Attributes:
        structure: The bonded structure: J, D, K.
        limits: R and what they allow.
        push_loads: (F, V) sparse B.
        gap: (V,) [m].
        compliance: (V,) 1/k [m/N].
    """

    structure: ElasticStructure
    limits: Limits
    push_loads: sp.csc_array
    gap: Array
    compliance: Array


@dataclass(frozen=True, eq=False)
class Kept:
    """What a solver keeps of the S rows and pushes that were active so far.

    Attributes:
        slot: Their positions below.
        loads: (F, S) columns of C and B.
        response: (F, S) displacements under these.
        flexibility: (S, S) loads^T response.
    """

    slot: dict[int, int]
    loads: Array
    response: Array
    flexibility: Array

    @staticmethod
    def nothing(size: int) -> Kept:
        """Before the first solve."""
        return Kept({}, np.zeros((size, 0)), np.zeros((size, 0)), np.zeros((0, 0)))


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
        self._push_loads = equations.push_loads
        self._approach = sp.csr_array((-equations.push_loads).transpose())
        self._gap = equations.gap
        self._compliance = equations.compliance
        self._first_push = len(equations.limits.limit) * ROWS
        self.kept = Kept.nothing(len(equations.structure.free))

    def solve(self, displacements: Array, guess: IntArray) -> Yielded | None:
        """Lets the structure yield.

        A primal active set method on the potential energy, which is strictly convex in
        displacements, multipliers mu >= 0 and remaining gaps s >= 0: it descends at every step and
        therefore ends.

        Args:
            displacements: (F,) response of the bonded structure to the loads.
            guess: Members that are likely to be active.

        Returns:
            The solution, None if rounding, more than `MAX_PIVOTS` changes or more than
            `MAX_MEMBERS` members of the active set stood in the way.
        """
        elastic = displacements
        closed = self._approach @ elastic - self._gap
        value = np.zeros(self._first_push + len(closed))
        value[self._first_push :] = np.maximum(closed, 0.0) / self._compliance
        members = np.union1d(guess, np.flatnonzero(value))
        for _ in range(MAX_PIVOTS):
            if len(members) > MAX_MEMBERS:
                return None
            try:
                multiplier = self._multipliers(elastic, members)
            except np.linalg.LinAlgError:
                return None
            target = np.zeros_like(value)
            target[members] = multiplier
            final = self._displaced(elastic, members, multiplier)
            step, blocking = self._step(displacements, value, final, target, members)
            if step < 1.0:
                displacements = displacements + step * (final - displacements)
                value = value + step * (target - value)
                value[blocking[blocking < self._first_push]] = 0.0
                members = np.setxor1d(members, blocking)
                continue
            displacements, value = final, target
            state, entering = self._state(final, members, multiplier)
            pulling = members[(members >= self._first_push) & (multiplier < -_PUSH_TOLERANCE)]
            if not len(entering) and not len(pulling):
                return self._hardened(elastic, state)
            members = np.setxor1d(members, np.concatenate([entering, pulling]))
        return None

    def _step(
        self, now: Array, value: Array, final: Array, target: Array, members: IntArray
    ) -> tuple[float, IntArray]:
        """Greatest step in [0, 1] that keeps all mu and s >= 0, and the members that stop it.

        Args:
            now: (F,) displacements before the step.
            value: Multipliers before it, of all rows and pushes.
            final: (F,) displacements at its end.
            target: Multipliers at its end.
            members: Active rows and pushes.
        """
        rows = members[members < self._first_push]
        least = -_NEGATIVE * np.abs(target[rows]).max(initial=0.0)
        falling = rows[target[rows] < least]
        left = self._gap - self._approach @ final
        left[members[members >= self._first_push] - self._first_push] = 0.0
        closing = np.flatnonzero(left < -_PUSH_TOLERANCE * self._compliance)
        before = self._gap + self._compliance * value[self._first_push :] - self._approach @ now
        room = np.concatenate([value[falling], np.maximum(before[closing], 0.0)])
        ratio = room / (room - np.concatenate([target[falling], left[closing]]))
        step = float(ratio.min(initial=1.0))
        stopping = np.concatenate([falling, closing + self._first_push])
        return step, stopping[ratio <= step]

    def _slots(self, members: IntArray) -> IntArray:
        """Positions of the members in what is kept, which new ones enter."""
        kept = self.kept
        new = [m for m in members.tolist() if m not in kept.slot]
        if new:
            loads = np.column_stack([self._load(m) for m in new])
            response = self._structure.displacements(loads)
            across = kept.loads.T @ response
            first = len(kept.slot)
            self.kept = kept = Kept(
                slot=kept.slot | {m: first + i for i, m in enumerate(new)},
                loads=np.column_stack([kept.loads, loads]),
                response=np.column_stack([kept.response, response]),
                flexibility=np.block([[kept.flexibility, across], [across.T, loads.T @ response]]),
            )
        return np.array([kept.slot[m] for m in members.tolist()], dtype=np.int64)

    def _load(self, member: int) -> Array:
        """(F,) J D R_r^T of a row, B_v of a push."""
        if member >= self._first_push:
            return self._push_loads[:, [member - self._first_push]].toarray()[:, 0]
        joint, row = divmod(member, ROWS)
        block = slice(6 * joint, 6 * joint + 6)
        slip = self._structure.stiffness[block] * self._limits.rows[joint, row]
        return self._structure.jacobian[:, block] @ slip

    def _multipliers(
        self, displacements: Array, members: IntArray, softening: float = 1.0
    ) -> Array:
        """Multipliers for which all members sit exactly at their limits.

        With C = J D R^T, rows obey (R D R^T + E - C^T K^-1 C) mu - C^T K^-1 B lambda = R w0 - limit
        and pushes B^T K^-1 C mu + (B^T K^-1 B + 1/k) lambda = approach0 - gap.
        """
        if not len(members):
            return np.zeros(0)
        slots = self._slots(members)
        is_row = members < self._first_push
        sign = np.where(is_row, -1.0, 1.0)
        matrix = sign[:, None] * self.kept.flexibility[np.ix_(slots, slots)]
        excess = -sign * (self.kept.loads.T @ displacements)[slots]

        joint, row = np.divmod(members[is_row], ROWS)
        rows = self._limits.rows[joint, row]
        own = (rows * self._structure.stiffness.reshape(-1, 6)[joint]) @ rows.T
        softness = softening * self._limits.softness[joint]
        own += softness[:, None] * (1.0 + _APART * np.eye(len(joint)))
        matrix[np.ix_(is_row, is_row)] += own * (joint[:, None] == joint)
        excess[is_row] -= self._limits.limit[joint]

        pushes, at = members[~is_row] - self._first_push, np.flatnonzero(~is_row)
        matrix[at, at] += self._compliance[pushes]
        excess[at] -= self._gap[pushes]
        return np.linalg.solve(matrix, excess)

    def _hardened(self, elastic: Array, soft: Yielded) -> Yielded:
        """The limit of vanishing softness, with the active set of a soft solution.

        All results depend on the softness linearly to first order; a second solve with twice the
        softness takes that order out.
        """
        rows = soft.members[soft.members < self._first_push]
        if not len(rows):
            return soft
        multiplier = self._multipliers(elastic, soft.members, softening=2.0)
        final = self._displaced(elastic, soft.members, multiplier)
        softer, _ = self._state(final, soft.members, multiplier)
        return Yielded(
            wrench=2.0 * soft.wrench - softer.wrench,
            push=2.0 * soft.push - softer.push,
            members=soft.members,
            multiplier=soft.multiplier,
        )

    def _displaced(self, elastic: Array, members: IntArray, multiplier: Array) -> Array:
        """(F,) displacements for given multipliers."""
        if not len(members):
            return elastic
        slots = self._slots(members)
        weights = np.zeros(len(self.kept.slot))
        weights[slots] = multiplier
        return elastic + self.kept.response @ weights

    def _state(
        self, displacements: Array, members: IntArray, multiplier: Array
    ) -> tuple[Yielded, IntArray]:
        """Forces for given multipliers, and what else has to act then."""
        structure, limits = self._structure, self._limits
        slip = np.zeros((len(limits.limit), 6))
        overload = np.zeros(len(limits.limit))
        push = np.zeros(len(self._gap))
        is_row = members < self._first_push
        joint, row = np.divmod(members[is_row], ROWS)
        np.add.at(slip, joint, limits.rows[joint, row] * multiplier[is_row, None])
        np.add.at(overload, joint, limits.softness[joint] * multiplier[is_row])
        push[members[~is_row] - self._first_push] = multiplier[~is_row]
        wrench = structure.wrenches(displacements) - structure.stiffness.reshape(-1, 6) * slip

        excess = np.matmul(limits.rows, wrench[:, :, None])[:, :, 0]
        excess -= (limits.limit + np.maximum(overload, 0.0))[:, None]
        excess[joint, row] = -np.inf
        worst = excess.argmax(axis=1)
        over = np.flatnonzero(excess[np.arange(len(worst)), worst] > TOLERANCE)
        closed = self._approach @ displacements - self._gap - self._compliance * push
        closed[members[~is_row] - self._first_push] = -np.inf
        pressed = np.flatnonzero(closed > _PUSH_TOLERANCE * self._compliance) + self._first_push
        entering = np.concatenate([over * ROWS + worst[over], pressed])
        return Yielded(wrench, push, members, multiplier), entering
