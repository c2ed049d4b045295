# SPDX-License-Identifier: Apache-2.0
"""The complementarity problem of `yielding` for small structures, as a small dense one.

A contact is taken for a spring of stiffness k that opens by s >= 0, as a joint is one that yields
by mu >= 0. The potential energy, least over displacements y, is then a quadratic one in z = (s, mu)
alone,

    least 1/2 z' M z - q' z  over z >= 0,

M the flexibility of contacts and rows, and its gradient M z - q tells how contacts press and what
rows are short of their limits by. With many unknowns `banded` takes the same steps. All of it is
done in compiled loops: for a dozen parts the calls of NumPy would take most of the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.snapfit.band import (
    band_of_squares,
    band_width,
    factor_band,
    multiplied,
    multiplied_back,
    solve_in_band,
    solved_in_band,
)
from bricksim_core.mechanics.snapfit.banded import Kept, settled_in_band
from bricksim_core.mechanics.snapfit.dissection import sweep
from bricksim_core.mechanics.snapfit.joints import ROWS
from bricksim_core.mechanics.snapfit.newton import ROUNDING
from bricksim_core.mechanics.snapfit.pivoting import pivoted, solve_active
from bricksim_core.mechanics.snapfit.plain import Plain
from bricksim_core.mechanics.snapfit.yielding import (
    APART,
    NEGATIVE,
    PUSH_TOLERANCE,
    TOLERANCE,
    Equations,
    Granted,
    SlowError,
    Yielded,
    hardened,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

DENSE = 100
"""Contacts and rows near their limits up to which the dense program is quicker."""

_TIMES = 12
"""Times that rows are added before others are asked."""

_REFINEMENTS = 2

_NEAR = 0.5
"""Share of its limit from which on a row of the bonded structure is looked at at once."""

_CLOSE = 0.2
"""What a row is short of its limit by at most to be added with those that are exceeded."""


@dataclass(frozen=True, eq=False)
class _Structure:
    """The structure.

    Attributes:
        plain: As compiled loops take it.
    """

    plain: Plain

    @cached_property
    def width(self) -> int:
        """Of the band of a stiffness matrix in this order of displacements."""
        return band_width(self.plain.column, self.plain.start)

    @cached_property
    def factor(self) -> Array:
        """(F, w) band of the structure with its contacts as springs, factored."""
        plain = self.plain
        size = 6 * (1 + int(plain.column.max(initial=0)) // 6)
        factor = band_of_squares(plain.value, plain.column, plain.start, plain.weight, size)
        if not factor_band(factor):
            raise np.linalg.LinAlgError("not positive definite")
        return factor


class CompactSolver:
    """Solves for small structures.

    Args:
        equations: What to solve.
    """

    def __init__(self, equations: Equations) -> None:
        self._equations = equations
        # An order in which parts that touch follow each other.
        self._order = sweep(equations.structure.points)

    @cached_property
    def _structure(self) -> _Structure:
        equations, structure = self._equations, self._equations.structure
        value, column, start = equations.opening
        part, axis = np.divmod(column, 6)
        column = 6 * np.argsort(self._order)[part] + axis
        weight = np.concatenate([structure.stiffness, 1.0 / equations.compliance])
        softness = equations.limits.softness
        return _Structure(Plain(value, column, start, weight, equations.every, softness))

    def solve(self, loads: Array, elastic: Array) -> Yielded | None:
        """Least overload, then least energy; None if other solvers are to be asked.

        Args:
            loads: (F,) scaled loads [N].
            elastic: (F,) displacements of the bonded structure under them, without contacts.
        """
        loads, elastic = (each.reshape(-1, 6)[self._order].reshape(-1) for each in (loads, elastic))
        structure, limit = self._structure, self._equations.limits.limit
        closing, bonded = _bonded(structure.plain, elastic)
        gap = self._equations.gap
        known = np.ones(len(bonded) + len(gap), dtype=np.bool_)
        known[: len(bonded)] = bonded > _NEAR * np.repeat(limit, ROWS) + TOLERANCE
        active = np.concatenate([bonded > np.repeat(limit, ROWS) + TOLERANCE, closing >= gap])
        try:
            kind = _DenseSearch if np.count_nonzero(known) <= DENSE else _BandSearch
            search = kind(structure, self._equations, loads, known, active)
            none = np.zeros(0, dtype=np.int64)
            return hardened(self._equations.limits.softness, none, search.settled)
        except (np.linalg.LinAlgError, SlowError):
            return None


class _Search(ABC):
    """The search for the active set under given loads.

    Args:
        structure: The structure.
        equations: Its limits and gaps.
        loads: (F,) scaled loads [N].
        known: (J * ROWS + V,) which rows and contacts are looked at.
        active: (J * ROWS + V,) which rows yield and which contacts are closed at first.
    """

    def __init__(
        self,
        structure: _Structure,
        equations: Equations,
        loads: Array,
        known: NDArray[np.bool_],
        active: NDArray[np.bool_],
    ) -> None:
        self._structure, self._loads = structure, loads
        self._gap, self._limit = equations.gap, equations.limits.limit
        self._known, self._active = known, active

    @abstractmethod
    def _found(self, granted: Granted) -> tuple[Array, Array, Array, Array, bool]:
        """What `settled_in_band` gives; it goes on where it ended before."""

    def settled(self, _: IntArray, granted: Granted) -> Yielded | None:
        """Forces with softness; see `hardened`."""
        for _time in range(_TIMES):
            wrench, push, multiplier, excess, found = self._found(granted)
            if not found:
                return None
            if excess.max() <= TOLERANCE:
                members = np.flatnonzero(np.isfinite(multiplier))
                return Yielded(wrench, push, members, multiplier[members])
            self._known[: len(excess)] |= excess > -_CLOSE
            self._active[: len(excess)] |= excess > TOLERANCE
        return None


class _BandSearch(_Search):
    """For many unknowns."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self._kept, self._kept_of = Kept.nothing(), self._active.copy()

    def _found(self, granted: Granted) -> tuple[Array, Array, Array, Array, bool]:
        structure = self._structure
        if not np.array_equal(self._kept_of, self._active):
            self._kept = Kept.nothing()
        *forces, found, self._kept = settled_in_band(
            structure.plain,
            structure.width,
            self._gap,
            self._limit,
            granted.joint,
            granted.row,
            self._loads,
            self._known,
            self._active,
            self._kept,
        )
        self._kept_of = self._active.copy()
        wrench, push, multiplier, excess = forces
        return wrench, push, multiplier, excess, found


class _DenseSearch(_Search):
    """For few unknowns; nothing is lost by rounding in long arms."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self._unknowns = np.zeros(0, dtype=np.int64)
        self._taken = np.zeros(len(self._known), dtype=np.bool_)
        self._positive = np.zeros(0, dtype=np.bool_)
        self._response, self._matrix = np.zeros((len(self._loads), 0)), np.zeros((0, 0))
        self._upper, self._factored = self._matrix, -1

    @cached_property
    def _displaced(self) -> Array:
        """(F,) displacements where nothing yields and all contacts hold."""
        structure = self._structure
        return _displaced(structure.plain, structure.factor, self._loads, self._gap)

    def _found(self, granted: Granted) -> tuple[Array, Array, Array, Array, bool]:
        self._extend()
        *forces, self._factored = _settled(
            self._structure.plain,
            self._gap,
            self._limit,
            granted.joint,
            granted.row,
            self._loads,
            self._structure.factor,
            self._displaced,
            self._unknowns,
            self._response,
            self._matrix,
            self._positive,
            self._upper,
            self._factored,
        )
        wrench, push, multiplier, excess = forces
        return wrench, push, multiplier, excess, self._factored >= 0

    def _extend(self) -> None:
        """Takes in what has become known."""
        first = ROWS * len(self._limit)
        new = np.flatnonzero(self._known & ~self._taken)
        if not len(new):
            return
        self._taken[new] = True
        rows = np.searchsorted(new, first)
        new = np.concatenate([new[rows:], new[:rows]])
        self._unknowns = np.concatenate([self._unknowns, new])
        # A contact's unknown is positive where it is open.
        self._positive = np.concatenate([self._positive, self._active[new] != (new >= first)])
        structure = self._structure
        self._response, self._matrix = _extended(
            structure.plain, structure.factor, self._unknowns, self._response, self._matrix
        )
        self._upper, self._factored = np.empty_like(self._matrix), -1


@compiled
def _row_values(every: Array, wrench: Array) -> Array:
    """(J * ROWS,) all rows of (J, 6) wrenches."""
    joints, rows, _ = every.shape
    values = np.zeros(joints * rows)
    for j in range(joints):
        for r in range(rows):
            for c in range(6):
                values[j * rows + r] += every[j, r, c] * wrench[j, c]
    return values


@compiled
def _bonded(
    plain: Plain,
    displaced: Array,
) -> tuple[Array, Array]:
    """(V,) how far contacts close and (J * ROWS,) all rows, where nothing yields."""
    opening = multiplied(plain.value, plain.column, plain.start, displaced)
    weight, joints = plain.weight, len(plain.softness)
    wrench = (weight[: 6 * joints] * opening[: 6 * joints]).reshape(joints, 6)
    return opening[6 * joints :], _row_values(plain.every, wrench)


@compiled
def _displaced(
    plain: Plain,
    factor: Array,
    loads: Array,
    gap: Array,
) -> Array:
    """(F,) displacements under loads where nothing yields and all contacts hold."""
    value, column, start, weight, _, softness = plain
    right = loads.copy()
    first = 6 * len(softness)
    for v in range(len(gap)):
        for p in range(start[first + v], start[first + v + 1]):
            right[column[p]] += weight[first + v] * gap[v] * value[p]
    return solved_in_band(factor, right)


@compiled
def _extended(
    plain: Plain,
    factor: Array,
    unknowns: IntArray,
    response: Array,
    matrix: Array,
) -> tuple[Array, Array]:
    """The program with more unknowns.

    Args:
        plain: The structure.
        factor: Of its stiffness; see `factor_band`.
        unknowns: (m,) all of them, rows as joint * ROWS + row, contacts as J * ROWS + v.
        response: (F, k) displacements by a unit of each of the first k.
        matrix: (k, k) M for these.

    Returns:
        The same of all.
    """
    value, column, start, weight, every, softness = plain
    joints, rows, _ = every.shape
    first, known, count = joints * rows, len(matrix), len(unknowns)
    size = len(response)
    loads = np.zeros((count - known, size))
    for i in range(known, count):
        load = loads[i - known]
        joint, row = divmod(unknowns[i], rows)
        if unknowns[i] >= first:
            r = 6 * joints + unknowns[i] - first
            for p in range(start[r], start[r + 1]):
                load[column[p]] += weight[r] * value[p]
        else:
            for c in range(6):
                r = 6 * joint + c
                force = -every[joint, row, c] * weight[r]
                for p in range(start[r], start[r + 1]):
                    load[column[p]] += force * value[p]
    new = loads.T.copy()
    solve_in_band(factor, new)
    larger_response = np.empty((size, count))
    larger_response[:, :known], larger_response[:, known:] = response, new
    larger = np.zeros((count, count))
    larger[:known, :known] = matrix
    for i in range(known, count):
        own, load = larger[i], loads[i - known]
        for f in range(size):
            if load[f] != 0.0:
                own -= load[f] * larger_response[f]
        if unknowns[i] >= first:
            own[i] += weight[6 * joints + unknowns[i] - first]
            continue
        joint, row = divmod(unknowns[i], rows)
        for k in range(count):
            if unknowns[k] // rows == joint:
                # Rows of one joint share its softness; a little more of its own sets it apart.
                own[k] += softness[joint]
                for c in range(6):
                    stiff = weight[6 * joint + c] * every[joint, row, c]
                    own[k] += stiff * every[joint, unknowns[k] % rows, c]
        own[i] += APART * softness[joint]
    larger[:known, known:] = larger[known:, :known].T
    return larger_response, larger


@compiled
def _yield(every: Array, unknowns: IntArray, z: Array, opening: Array) -> None:
    """Takes from (R,) openings what yielding and the opening of contacts account for."""
    joints, rows, _ = every.shape
    for i in range(len(unknowns)):
        if unknowns[i] >= joints * rows:
            opening[6 * joints + unknowns[i] - joints * rows] += z[i]
        elif z[i] != 0.0:
            joint, row = divmod(unknowns[i], rows)
            for c in range(6):
                opening[6 * joint + c] -= every[joint, row, c] * z[i]


@compiled
def _overload(softness: Array, granted: Array, unknowns: IntArray, z: Array) -> Array:
    """(J,) overload of the joints beyond what is granted."""
    overload = -granted
    for i in range(len(unknowns)):
        joint = unknowns[i] // ROWS
        if joint < len(overload):
            overload[joint] += softness[joint] * z[i]
    return overload


@compiled
def _settled(
    plain: Plain,
    gap: Array,
    limit: Array,
    granted: Array,
    granted_row: Array,
    loads: Array,
    factor: Array,
    displaced: Array,
    unknowns: IntArray,
    response: Array,
    matrix: Array,
    active: NDArray[np.bool_],
    upper: Array,
    factored: int,
) -> tuple[Array, Array, Array, Array, int]:
    """Solves the program and gives the forces.

    Args:
        plain: The structure.
        gap: (V,) of the contacts [m].
        limit: (J,) of the joints.
        granted: See `Granted`.
        granted_row: See there.
        loads: (F,) scaled loads [N].
        factor: Of the stiffness; see `factor_band`.
        displaced: (F,) displacements where nothing yields and all contacts hold.
        unknowns: See `_extended`.
        response: See there.
        matrix: See there.
        active: See `pivoted`.
        upper: See there.
        factored: See there.

    Returns:
        (J, 6) scaled wrenches and (V,) pushes [N], (J * ROWS + V,) multipliers of active members
        (nan for others), (J * ROWS,) by how much rows are exceeded that the program lacks, and the
        size of the factor of what is active, -1 if that was not found.
    """
    value, column, start, weight, every, softness = plain
    joints, rows, _ = every.shape
    first, count, firm = joints * rows, len(unknowns), weight[6 * joints :]
    opening = multiplied(value, column, start, displaced)
    target = np.empty(count)
    floor, tolerance = np.full(count, NEGATIVE), np.full(count, TOLERANCE)
    contacts = len(gap)
    for i in range(count):
        if unknowns[i] >= first:
            v = unknowns[i] - first
            target[i] = -firm[v] * (opening[6 * joints + v] - gap[v])
            floor[i], tolerance[i] = PUSH_TOLERANCE / firm[v], PUSH_TOLERANCE
        else:
            joint, row = divmod(unknowns[i], rows)
            target[i] = granted[joint] + granted_row[unknowns[i]] - limit[joint]
            for c in range(6):
                pull = weight[6 * joint + c] * opening[6 * joint + c]
                target[i] += every[joint, row, c] * pull
    z, factored, found = pivoted(
        matrix, target, floor, tolerance, contacts, active, upper, factored
    )
    opening = multiplied(value, column, start, displaced - response @ z)
    opening[6 * joints :] -= gap
    _yield(every, unknowns, z, opening)
    force = weight * opening
    # Joints that yield slip a million times as far as elastic ones (`softness`): of long arms
    # rounding leaves something unbalanced, which is put right.
    at, change = np.flatnonzero(active), np.zeros(count)
    overload = _overload(softness, granted, unknowns, z)
    for _ in range(_REFINEMENTS if found else 0):
        lack = loads - multiplied_back(value, column, start, force, len(loads))
        if not np.abs(lack).max() > ROUNDING * np.abs(force).max():
            break
        force += weight * multiplied(value, column, start, solved_in_band(factor, lack))
        for i in at:
            if unknowns[i] >= first:
                target[i] = -force[6 * joints + unknowns[i] - first]
                continue
            joint, row = divmod(unknowns[i], rows)
            target[i] = granted_row[unknowns[i]] - limit[joint] - overload[joint]
            target[i] -= APART * softness[joint] * z[i]
            for c in range(6):
                target[i] += every[joint, row, c] * force[6 * joint + c]
        solve_active(upper, target, at, change)
        opening = multiplied(value, column, start, -(response @ change))
        _yield(every, unknowns, change, opening)
        force += weight * opening
        z += change
        overload = _overload(softness, granted, unknowns, z)
    wrench = force[: 6 * joints].copy().reshape(joints, 6)
    excess = _row_values(every, wrench)
    multiplier = np.full(first + contacts, np.nan)
    push = np.zeros(contacts)
    for i in range(count):
        member = unknowns[i]
        if member < first:
            excess[member] = 0.0
            if active[i]:
                multiplier[member] = z[i]
        elif not active[i]:
            v = member - first
            multiplier[member] = push[v] = force[6 * joints + v]
    for j in range(joints):
        for r in range(rows):
            excess[j * rows + r] -= limit[j] + max(overload[j], 0.0)
    return wrench, push, multiplier, excess, factored if found else -1
