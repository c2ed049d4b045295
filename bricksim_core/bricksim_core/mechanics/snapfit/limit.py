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

from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.ground import friction_lever
from bricksim_core.mechanics.snapfit.interior import Optimum, minimize
from bricksim_core.mechanics.snapfit.joints import Joints, rectangle_corners
from bricksim_core.mechanics.snapfit.normal import NormalMatrix, face_edges, joint_edges
from bricksim_core.mechanics.snapfit.pushes import Pushes
from bricksim_core.mechanics.snapfit.whole import interior_point
from bricksim_core.mechanics.types import LimitLoad
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

FEW = 250
"""Moving parts up to which PIQP is quicker, which does not know the blocks of the matrix."""

_NEVER = 1e-7
"""Utilization, relative to that of the bonded structure, below which failure never comes."""

_AT_ONCE = 1e5
"""Relative utilization above which the loads cannot be carried at any size: only the ground's rows
can ask for so much."""

_ACCURACY = 5e-6
"""Relative gap that may be left between the bounds on the factor."""

_PART = 1e-4
"""Share of the work from which a connection counts as part of the mechanism."""

_LINPROG_INFEASIBLE = 2
_SIMPLEX_TIME = 30.0
"""After which HiGHS gives up [s]."""

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
        lower: (K,) lower part of each joint, GROUND for the world.
        upper: (K,) upper part.
        centres: (K, 3) points of the joints [m].
        pushes: Contacts beside the joints; those of one face follow each other, four at a time.
        coms: (N, 3) centres of mass of the parts [m].
        held: (N,) parts that do not move.
        few: Moving parts up to which PIQP is asked first.
    """

    def __init__(
        self,
        cones: Cones,
        lower: IntArray,
        upper: IntArray,
        centres: Array,
        pushes: Pushes,
        coms: Array,
        held: NDArray[np.bool_],
        few: int = FEW,
    ) -> None:
        self._cones = cones
        self._few = few
        parts = np.flatnonzero(~held)
        node = np.full(len(coms) + 1, -1, dtype=np.int64)  # one more, for GROUND
        node[parts] = np.arange(len(parts))
        self._size = 6 * len(parts)

        self._joints = joint_edges(lower, upper, centres, coms, node)
        self._faces = face_edges(pushes, coms, node)

        flat = cones.columns.swapaxes(1, 2)  # (K, 10, 6)
        self._spread = self._joints.matrix(self._size)
        block = _block_diagonal(flat)
        balance = sp.hstack([self._spread @ block, self._faces.matrix(self._size)], format="csr")
        joint = cones.joint
        at = np.repeat(np.arange(len(joint)), _UNKNOWNS)
        column = (_UNKNOWNS * joint[:, None] + np.arange(_UNKNOWNS)).reshape(-1)
        self._unknowns = _UNKNOWNS * len(cones.columns) + len(pushes)
        shape = (len(joint), self._unknowns)
        rows = sp.csr_array((cones.rows.reshape(-1), (at, column)), shape=shape)
        rows.eliminate_zeros()
        strength = (self._spread @ cones.apex.reshape(-1))[:, None]
        self._matrix = sp.csr_array(
            sp.block_array(
                [
                    [balance, None, sp.csr_array(strength)],
                    [rows, sp.eye_array(len(joint)), sp.csr_array(-cones.limit[:, None])],
                ]
            )
        )
        self._border = np.concatenate([strength[:, 0], -cones.limit])
        self._points = coms[parts]

    @cached_property
    def _normal(self) -> NormalMatrix:
        return NormalMatrix(self._points, [self._joints, self._faces])

    def limit_load(self, loads: Array, scale: float) -> LimitLoad:
        """The factor 1 / u (static theorem), and the mechanism by the multipliers (kinematic one).

        Args:
            loads: (F,) scaled loads [N] on what can move.
            scale: Greatest utilization of the bonded structure; units of u.
        """
        if scale <= _NEVER:
            return LimitLoad(np.inf, ())
        optimum = self._optimum(loads / scale)
        if optimum is None:
            return LimitLoad(np.nan, ())
        if optimum.value < _NEVER:
            return LimitLoad(np.inf, ())
        if not optimum.value < _AT_ONCE:
            return LimitLoad(0.0, ())
        # Work of the friction at its strength and of the sideways limits, which is the row of u.
        velocity, row = np.split(optimum.multiplier, [self._size])
        opening = (self._spread.T @ velocity).reshape(-1, 6)
        work = np.einsum("kj,kj->k", self._cones.apex, opening)
        np.add.at(work, self._cones.joint, -self._cones.limit * row)
        order = np.argsort(-work, kind="stable")
        taking_part = order[work[order] > _PART * work.sum()]
        return LimitLoad(1.0 / (optimum.value * scale), tuple(taking_part.tolist()))

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
                nothing=0.5 * _NEVER,
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
        joint = cones.joint
        weighted = cones.rows * unknown[joint]
        own = (weighted * cones.rows).sum(axis=1) + slack
        carried = (cones.columns[joint] @ weighted[:, :, None])[:, :, 0]
        blocks = (cones.columns * unknown[:, None, :]) @ cones.columns.swapaxes(1, 2)
        less = carried[:, :, None] * (carried / own[:, None])[:, None, :]
        blocks -= less[:count]
        blocks[joint[count:]] -= less[count:]
        cholesky = self._normal.factorized([blocks, push.reshape(-1, 4)])
        spread = self._spread

        def inner(right: Array) -> Array:
            balance, row = right[: self._size], right[self._size :]
            share = carried * (row / own)[:, None]
            wrench = share[:count].copy()
            wrench[joint[count:]] += share[count:]
            y = cholesky.solve(balance - spread @ wrench.reshape(-1))
            opening = (spread.T @ y).reshape(-1, 6)
            return np.concatenate([y, (row - (carried * opening[joint]).sum(axis=1)) / own])

        border = inner(self._border)
        stiff = 1.0 / multiple + self._border @ border

        def solve(right: Array) -> Array:
            y = inner(right)
            return y - (self._border @ y / stiff) * border

        return solve


def _block_diagonal(blocks: Array) -> sp.csr_array:
    """Sparse block diagonal matrix of (K, p, q) blocks, transposed each."""
    count, p, q = blocks.shape
    row = np.arange(count * q).reshape(count, 1, q)
    column = np.arange(count * p).reshape(count, p, 1)
    row, column = np.broadcast_arrays(row, column)
    kept = blocks != 0.0
    entries = (blocks[kept], (row[kept], column[kept]))
    return sp.csr_array(sp.coo_array(entries, shape=(count * q, count * p)))


def _interior_point(matrix: sp.csr_array, cost: Array, right: Array) -> Optimum | None:
    """The same program by PIQP."""
    answer = interior_point(None, cost, matrix, right, None, None, np.zeros(len(cost)))
    if answer.status != piqp.PIQP_SOLVED:
        return None
    return Optimum(float(cost @ answer.x), answer.x, -answer.multiplier)


def _simplex(matrix: sp.csr_array, cost: Array, right: Array) -> Optimum | None:
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
