# SPDX-License-Identifier: Apache-2.0
"""Limit analysis: at which multiple of its loads does a structure fail?

The least u for which forces exist that balance the loads with all rows of utilization <= u. What
wrenches a joint can carry at a given u is a cone (docs/mechanics.md), and a cone needs no rows: its
wrenches are

    w = u a - sum of pushes c_k >= 0 at the corners + Fx, Fy, Mz (each as a difference of two
        numbers >= 0),

with a the pull and moments of all friction at its strength. One row for the sideways load is left.
All unknowns are >= 0, and the matrix of the interior point method's steps is a stiffness matrix: a
6 x 6 block for each joint, the same graph of parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import piqp
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.snapfit.band import multiplied, multiplied_back
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.ground import friction_lever
from bricksim_core.mechanics.snapfit.interior import Optimum, minimize
from bricksim_core.mechanics.snapfit.joints import Joints, rectangle_corners
from bricksim_core.mechanics.snapfit.normal import NormalMatrix
from bricksim_core.mechanics.snapfit.whole import interior_point
from bricksim_core.mechanics.types import LimitLoad
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

FEW_PARTS = 250
"""Moving parts up to which PIQP is quicker, which does not know the blocks of the matrix."""

NEVER = 1e-7
"""Utilization, relative to that of the bonded structure, below which failure never comes."""

_AT_ONCE = 1e5
"""Relative utilization above which the loads cannot be carried at any size: only the ground's rows
can ask for so much."""

_LIGHTLY = 2e-3
"""Utilization of the bonded structure from which on it is hardly ever without need of friction."""

_ACCURACY = 5e-6
"""Relative gap that may be left between the bounds on the factor."""

_PART = 1e-4
"""Share of the work from which a connection counts as part of the mechanism."""

_LINPROG_INFEASIBLE = 2
_SIMPLEX_TIME = 30.0
"""After which HiGHS gives up [s]."""

_VERTICAL = (2, 3, 4)
"""Components of a wrench that vertical forces have."""

_UNKNOWNS = 10
"""Of a joint: pushes at four corners, then +Fx, -Fx, +Fy, -Fy, +Mz, -Mz."""


@dataclass(frozen=True, eq=False)
class Cones:
    """What wrenches K joints (connections, then footprints on the ground) can carry.

    Attributes:
        columns: (K, 6, 10) scaled wrench about the joint's point per unknown.
        apex: (K, 6) scaled wrench of all friction at its strength; zero for a footprint.
        joint: (R,) joint of each row: first one row for each joint, then second ones.
        rows: (R, 10) coefficients; no unknown is in two rows.
        limit: (R,) h: rows @ unknowns <= h u.
    """

    columns: Array
    apex: Array
    joint: IntArray
    rows: Array
    limit: Array


def cones_of(joints: Joints, half: Array, constants: SnapFitConstants) -> Cones:
    """The cones of connections and of footprints with (G, 2) half sides on the ground [m]."""
    pitch = PITCHES[3]
    count, resting = len(joints), len(half)
    corners = rectangle_corners(np.zeros((count + resting, 3)), np.concatenate([joints.half, half]))
    columns = np.zeros((count + resting, 6, _UNKNOWNS))
    columns[:, 2, :4] = -1.0
    columns[:, 3, :4] = -corners[:, :, 1] / pitch
    columns[:, 4, :4] = corners[:, :, 0] / pitch
    for k, axis in enumerate((0, 1, 5)):
        columns[:, axis, 4 + 2 * k], columns[:, axis, 5 + 2 * k] = 1.0, -1.0
    apex = np.zeros((count + resting, 6))
    apex[:count, 2] = joints.pull
    apex[:count, 3] = 0.5 * (joints.tip[:, 2] - joints.tip[:, 3]) / pitch
    apex[:count, 4] = 0.5 * (joints.tip[:, 1] - joints.tip[:, 0]) / pitch
    # On one stud friction alone resists turning, and what it takes the pull lacks.
    single = np.flatnonzero(joints.studs == 1)
    turn = pitch / joints.twist
    columns[single, :, 8:] -= (apex[:count] * turn[:, None])[single, :, None]

    first = np.zeros((count + resting, _UNKNOWNS))
    first[:count, 4:8] = 1.0 / joints.shear[:, None]
    first[:count, 8:] = turn[:, None]
    first[single, 8:] = 0.0
    first[count:, :4] = -constants.ground_friction
    first[count:, 4:8] = 1.0
    first[count:, 8:] = pitch / friction_lever(half)[:, None]
    second = np.zeros((len(single), _UNKNOWNS))
    second[:, 8:] = turn[single, None]
    return Cones(
        columns=columns,
        apex=apex,
        joint=np.concatenate([np.arange(count + resting), single]),
        rows=np.concatenate([first, second]),
        limit=np.repeat([1.0, 0.0, 1.0], [count, resting, len(single)]),
    )


class LimitProgram:
    """The program for one component.

    Args:
        cones: What its joints can carry.
        size: F, free displacements.
        opening: See `Equations.opening`; contacts of one face follow each other, four at a time.
        normal: The stiffness matrix of all of these.
        few: Moving parts up to which PIQP is asked first.
    """

    def __init__(
        self,
        cones: Cones,
        size: int,
        opening: tuple[Array, IntArray, IntArray],
        normal: Callable[[], NormalMatrix],
        few: int = FEW_PARTS,
    ) -> None:
        self._cones, self._normal, self._few = cones, normal, few
        self._size, self._opening = size, opening
        joints = len(cones.columns)
        self._unknowns = (_UNKNOWNS - 6) * joints + len(opening[2]) - 1
        strength = multiplied_back(*opening, cones.apex.reshape(-1), size)
        self._border = np.concatenate([strength, -cones.limit])
        columns = _columns(*opening, cones.columns, cones.joint, cones.rows, size)
        self._matrix = _with_column(columns, self._border)

    def limit_load(self, loads: Array, scale: float) -> LimitLoad:
        """The factor 1 / u (static theorem), and the mechanism by the multipliers (kinematic one).

        Args:
            loads: (F,) scaled loads [N] on what can move.
            scale: Greatest utilization of the bonded structure; units of u.
        """
        if scale <= NEVER:
            return LimitLoad(np.inf, ())
        few = self._size <= 6 * self._few
        if few and scale < _LIGHTLY and self._stands_by_pushes(loads / scale):
            return LimitLoad(np.inf, ())
        optimum = self._optimum(loads / scale)
        if optimum is None:
            return LimitLoad(np.nan, ())
        if optimum.value < NEVER:
            return LimitLoad(np.inf, ())
        if not optimum.value < _AT_ONCE:
            return LimitLoad(0.0, ())
        # Work of the friction at its strength and of the sideways limits, which is the row of u.
        velocity, row = np.split(optimum.multiplier, [self._size])
        opening = multiplied(*self._opening, velocity)[: self._cones.apex.size].reshape(-1, 6)
        work = np.einsum("kj,kj->k", self._cones.apex, opening)
        np.add.at(work, self._cones.joint, -self._cones.limit * row)
        order = np.argsort(-work, kind="stable")
        taking_part = order[work[order] > _PART * work.sum()]
        return LimitLoad(1.0 / (optimum.value * scale), tuple(taking_part.tolist()))

    def _stands_by_pushes(self, loads: Array) -> bool:
        """Whether pushes straight down or up balance the loads, without any friction: half of the
        equations and two fifths of the unknowns."""
        rows, matrix = self._upright
        if loads[~rows].any():
            return False
        cost = np.zeros(len(matrix.indptr) - 1)
        cost[-1] = 1.0
        found = _interior_point(matrix, cost, loads[rows])
        return found is not None and found.value < NEVER

    @cached_property
    def _upright(self) -> tuple[NDArray[np.bool_], sp.csc_array]:
        """(F,) equations of vertical forces and of tipping, and the program's columns in these
        alone."""
        matrix = self._matrix
        rows = np.isin(np.arange(self._size) % 6, _VERTICAL)
        sideways = np.concatenate([~rows, np.zeros(len(self._cones.limit), dtype=bool)])
        count = self._unknowns + len(self._cones.limit) + 1
        column = np.repeat(np.arange(count), np.diff(matrix.indptr))
        kept = np.ones(count, dtype=bool)
        kept[column[sideways[matrix.indices]]] = False
        kept[self._unknowns : -1] = False
        return rows, sp.csc_array(matrix[:, kept][: self._size][rows])

    def _optimum(self, loads: Array) -> Optimum | None:
        right = np.concatenate([loads, np.zeros(len(self._cones.limit))])
        cost = np.zeros(self._unknowns + len(self._cones.joint) + 1)
        cost[-1] = 1.0
        found = None
        if self._size <= 6 * self._few:
            found = _interior_point(self._matrix, cost, right)
        if found is None:
            found = minimize(
                self._matrix,
                cost,
                right,
                self._factorized,
                tolerance=_ACCURACY,
                nothing=0.5 * NEVER,
                never=_AT_ONCE,
            )
        return _simplex(self._matrix, cost, right) if found is None else found

    def _factorized(self, weight: Array) -> Callable[[Array], Array]:
        """Solver of the program's N D N^T y = r.

        The rows' part of it is diagonal and is eliminated first; then u, whose column is full, is a
        border.
        """
        cones, count = self._cones, len(self._cones.columns)
        unknown = weight[: _UNKNOWNS * count].reshape(count, _UNKNOWNS)
        push = weight[_UNKNOWNS * count : self._unknowns]
        slack, multiple = weight[self._unknowns : -1], weight[-1]
        blocks, carried, own = _condensed(cones.columns, cones.joint, cones.rows, unknown, slack)
        cholesky = self._normal().factorized([blocks, push.reshape(-1, 4)])
        opening = self._opening

        def inner(right: Array) -> Array:
            balance, row = right[: self._size], right[self._size :]
            y = cholesky.solve(_without_rows(*opening, carried, cones.joint, row / own, balance))
            return np.concatenate([y, (row - _shares(*opening, carried, cones.joint, y)) / own])

        border = inner(self._border)
        stiff = 1.0 / multiple + self._border @ border

        def solve(right: Array) -> Array:
            y = inner(right)
            return y - (self._border @ y / stiff) * border

        return solve


@compiled
def _condensed(
    columns: Array, joint: IntArray, rows: Array, weight: Array, slack: Array
) -> tuple[Array, Array, Array]:
    """The weights of the joints' unknowns, the rows eliminated.

    Args:
        columns: See `Cones`.
        joint: See there.
        rows: See there.
        weight: (K, 10) of the unknowns.
        slack: (R,) of the slacks of the rows.

    Returns:
        (K, 6, 6) weights of the wrenches, (R, 6) wrenches by the multipliers of the rows, and (R,)
        the rows' own part of the matrix.
    """
    count, _, unknowns = columns.shape
    blocks, carried, own = np.zeros((count, 6, 6)), np.zeros((len(joint), 6)), slack.copy()
    for k in range(count):
        for i in range(unknowns):
            for c in range(6):
                weighted = weight[k, i] * columns[k, c, i]
                if weighted != 0.0:
                    for d in range(6):
                        blocks[k, c, d] += weighted * columns[k, d, i]
    for r in range(len(joint)):
        k = joint[r]
        for i in range(unknowns):
            weighted = weight[k, i] * rows[r, i]
            if weighted != 0.0:
                own[r] += weighted * rows[r, i]
                for c in range(6):
                    carried[r, c] += weighted * columns[k, c, i]
        for c in range(6):
            less = carried[r, c] / own[r]
            for d in range(6):
                blocks[k, c, d] -= less * carried[r, d]
    return blocks, carried, own


@compiled
def _without_rows(
    value: Array,
    place: IntArray,
    start: IntArray,
    carried: Array,
    joint: IntArray,
    multiplier: Array,
    balance: Array,
) -> Array:
    """(F,) balance less what the rows put into it by (R,) multipliers; the others as in
    `_columns` and `_condensed`."""
    left = balance.copy()
    for r in range(len(joint)):
        for c in range(6):
            force = carried[r, c] * multiplier[r]
            if force != 0.0:
                k = 6 * joint[r] + c
                for p in range(start[k], start[k + 1]):
                    left[place[p]] -= value[p] * force
    return left


@compiled
def _shares(
    value: Array, place: IntArray, start: IntArray, carried: Array, joint: IntArray, y: Array
) -> Array:
    """(R,) what (F,) multipliers of the balance add to the rows."""
    share = np.zeros(len(joint))
    for r in range(len(joint)):
        for c in range(6):
            if carried[r, c] != 0.0:
                k = 6 * joint[r] + c
                for p in range(start[k], start[k + 1]):
                    share[r] += carried[r, c] * value[p] * y[place[p]]
    return share


@compiled
def _columns(
    value: Array,
    place: IntArray,
    start: IntArray,
    cones: Array,
    joint: IntArray,
    rows: Array,
    size: int,
) -> tuple[Array, IntArray, IntArray]:
    """The program's columns but for that of u: unknowns of the joints, pushes, slacks of the rows.

    Args:
        value: See `Equations.opening`.
        place: See there.
        start: See there.
        cones: See `Cones.columns`.
        joint: See `Cones.joint`.
        rows: See `Cones.rows`.
        size: F.

    Returns:
        Values, rows and beginnings of the columns of a sparse matrix.
    """
    count, _, unknowns = cones.shape
    # Each unknown of a joint loads two parts and is in two rows at most.
    room = count * unknowns * (2 * 6 + 2) + len(value) + len(joint)
    data, at = np.empty(room), np.empty(room, dtype=np.int64)
    begins = np.zeros(count * (unknowns - 6) + len(start) + len(joint), dtype=np.int64)
    used, column = 0, 0
    load = np.zeros(size)
    second = np.full(count, -1)
    for r in range(count, len(joint)):
        second[joint[r]] = r
    for k in range(count):
        # The parts of a joint, the one with the lower number first.
        touched = np.unique(place[start[6 * k] : start[6 * k + 6]])
        for unknown in range(unknowns):
            for axis in range(6):
                share = cones[k, axis, unknown]
                if share != 0.0:
                    for p in range(start[6 * k + axis], start[6 * k + axis + 1]):
                        load[place[p]] += share * value[p]
            for row in touched:
                if load[row] != 0.0:
                    data[used], at[used] = load[row], row
                    load[row] = 0.0
                    used += 1
            for r in (k, second[k]):
                if r >= 0 and rows[r, unknown] != 0.0:
                    data[used], at[used] = rows[r, unknown], size + r
                    used += 1
            column += 1
            begins[column] = used
    for v in range(6 * count, len(start) - 1):
        first, last = start[v], start[v + 1]
        # Two parts of up to six entries each, both in order; the one with the lower number first.
        split = first
        while split < last and place[split] // 6 == place[first] // 6:
            split += 1
        if split < last and place[split] < place[first]:
            order = (split, last, first, split)
        else:
            order = (first, split, split, last)
        for p in range(order[0], order[1]):
            data[used], at[used] = value[p], place[p]
            used += 1
        for p in range(order[2], order[3]):
            data[used], at[used] = value[p], place[p]
            used += 1
        column += 1
        begins[column] = used
    for r in range(len(joint)):
        data[used], at[used] = 1.0, size + r
        used += 1
        column += 1
        begins[column] = used
    return data[:used], at[:used], begins


def _with_column(columns: tuple[Array, IntArray, IntArray], last: Array) -> sp.csc_array:
    """A sparse matrix by its columns, and one more."""
    value, row, start = columns
    at = np.flatnonzero(last)
    return sp.csc_array(
        (
            np.concatenate([value, last[at]]),
            np.concatenate([row, at]),
            np.append(start, start[-1] + len(at)),
        ),
        shape=(len(last), len(start)),
    )


def _interior_point(matrix: sp.csc_array, cost: Array, right: Array) -> Optimum | None:
    """The same program by PIQP."""
    answer = interior_point(None, cost, matrix, right, None, None, np.zeros(len(cost)))
    if answer.status != piqp.PIQP_SOLVED:
        return None
    return Optimum(float(cost @ answer.x), answer.x, -answer.multiplier)


def _simplex(matrix: sp.csc_array, cost: Array, right: Array) -> Optimum | None:
    """The same program by HiGHS: never lost, but it can take minutes for a thousand bricks."""
    # Seldom needed, and slow to load.
    from scipy.optimize import linprog

    result = linprog(
        cost,
        A_eq=matrix,
        b_eq=right,
        bounds=(0.0, None),
        method="highs",
        options={"time_limit": _SIMPLEX_TIME},
    )
    if result.status == _LINPROG_INFEASIBLE:
        return Optimum(np.inf, np.zeros(len(cost)), np.zeros(len(right)))
    if result.status != 0:
        return None
    return Optimum(float(result.fun), result.x, result.eqlin.marginals)
