# SPDX-License-Identifier: Apache-2.0
"""Cholesky factorization of a sparse matrix of 6 x 6 blocks, by fronts (Duff and Reid 1983).

Each block of a dissection has a dense front: what it eliminates against that and its boundary. All
arithmetic is done by BLAS and LAPACK on a few dozen such fronts. A front hangs on its own entries
and its children's fronts only, so that after a change the others are taken over as they are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from bricksim_core.mechanics.portions import Portions, at_once
from bricksim_core.mechanics.snapfit.dissection import Block, Dissection, sweep
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_potrf, _potrs, _pbtrf, _pbtrs = get_lapack_funcs(
    ("potrf", "potrs", "pbtrf", "pbtrs"), dtype=np.float64
)
_trsm, _trsv, _syrk = get_blas_funcs(("trsm", "trsv", "syrk"), dtype=np.float64)
(_rough_trsv,) = get_blas_funcs(("trsv",), dtype=np.float32)

BAND = 1e8
"""Multiplications up to which a matrix is factored within its band."""

_ONCE = 10.0
"""How many times more there may be before fronts are quicker; but nothing of a band can be taken
over when the matrix changes."""


_FRONT, _MULTIPLIED = 0.3, 0.8e7
"""Cost of a front, and multiplications that cost as much as one more."""

_BELOW = np.arange(6) - np.arange(6)[:, None]
"""By column and row within a block, how far below the diagonal an entry lies."""


@dataclass(frozen=True, eq=False)
class Front:
    """A factored front.

    Attributes:
        factor: (p, p) L of what is eliminated, lower triangle.
        below: (q, p) the rows of the boundary.
        update: (q, q) what it adds to its ancestors, lower triangle.
    """

    factor: Array
    below: Array
    update: Array

    @cached_property
    def rough(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """`factor` and `below` in single precision: solves of large matrices wait for memory."""
        return self.factor.astype(np.float32), self.below.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Entries:
    """The lower triangle of a symmetric matrix of 6 x 6 blocks, in the order of elimination.

    Attributes:
        row: (E,) block rows.
        column: (E,) block columns, sorted, none after its row; no pair twice.
        value: (E, 6, 6) transposed blocks.
    """

    row: IntArray
    column: IntArray
    value: Array


def entries_of(row: IntArray, column: IntArray, value: Array, count: int) -> Entries:
    """Sums up blocks of the lower triangle of a symmetric matrix.

    Args:
        row: (M,) block rows in the order of elimination.
        column: (M,) block columns, none after its row.
        value: (M, 6, 6) transposed blocks.
        count: Block rows of the matrix.
    """
    if not len(row):
        return Entries(row, column, value)
    key = column * count + row
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    total = np.add.reduceat(value[order], first, axis=0)
    return Entries(key[first] % count, key[first] // count, total)


class BlockCholesky:
    """L with L L^T = K for a symmetric positive definite K.

    Args:
        dissection: Order and blocks.
        entries: K.
        known: Fronts that are known already, by block.

    Attributes:
        fronts: One per block.

    Raises:
        numpy.linalg.LinAlgError: K is not positive definite.
    """

    def __init__(
        self, dissection: Dissection, entries: Entries, known: dict[int, Front] | None = None
    ) -> None:
        at_once(self._eliminate(dissection, entries, known or {}))

    @classmethod
    def factored(
        cls, dissection: Dissection, entries: Entries, known: dict[int, Front]
    ) -> Portions[BlockCholesky]:
        """The same in portions."""
        cholesky = cls.__new__(cls)
        yield from cholesky._eliminate(dissection, entries, known)
        return cholesky

    def _eliminate(
        self, dissection: Dissection, entries: Entries, known: dict[int, Front]
    ) -> Portions[None]:
        self._order = dissection.order
        self._blocks = dissection.blocks
        self.fronts: list[Front] = []
        new = [block for k, block in enumerate(self._blocks) if k not in known]
        # One piece of memory for all of them: the system hands out large pages for it.
        memory = np.zeros(sum(_size(block) for block in new))
        used = 0
        edges = [block.first for block in self._blocks] + [len(self._order)]
        cuts = np.searchsorted(entries.column, edges).tolist()
        for k, block in enumerate(self._blocks):
            front = known.get(k)
            if front is None:
                yield _FRONT + _multiplications(block) / _MULTIPLIED
                own = slice(cuts[k], cuts[k + 1])
                room = memory[used : used + _size(block)]
                used += len(room)
                front = self._eliminated(
                    block, entries.row[own], entries.column[own], entries.value[own], room
                )
            self.fronts.append(front)
        self._steps = [
            (
                slice(6 * block.first, 6 * block.last),
                (6 * block.boundary[:, None] + np.arange(6)).reshape(-1),
                front,
            )
            for block, front in zip(self._blocks, self.fronts, strict=True)
        ]

    def solve(self, loads: Array) -> Array:
        """K^-1 of (6 n,) or (6 n, m) right hand sides."""
        shape = loads.shape
        if not len(self._order):
            return loads.copy()
        x = np.asfortranarray(
            loads.reshape(len(self._order), 6, -1)[self._order].reshape(-1, *shape[1:])
        )
        single = x.ndim == 1
        solve = _solve_one if single else _solve_many
        for span, boundary, front in self._steps:
            own = x[span]
            # Columns for single joints touch few blocks on the way to the root.
            if not single and not own.any():
                continue
            x[span] = own = solve(front.factor, own, 0)
            if len(boundary):
                x[boundary] -= front.below @ own
        for span, boundary, front in reversed(self._steps):
            own = x[span]
            if len(boundary):
                own = own - front.below.T @ x[boundary]
            x[span] = solve(front.factor, own, 1)
        result = np.empty((len(self._order), 6, *shape[1:]))
        result[self._order] = x.reshape(-1, 6, *shape[1:])
        return result.reshape(shape)

    def solve_roughly(self, loads: Array) -> Array:
        """K^-1 of (6 n,) right hand sides, in single precision."""
        x = loads.reshape(-1, 6)[self._order].reshape(-1).astype(np.float32)
        for span, boundary, front in self._steps:
            factor, below = front.rough
            x[span] = own = _rough_trsv(factor, x[span], lower=1)
            if len(boundary):
                x[boundary] -= below @ own
        for span, boundary, front in reversed(self._steps):
            factor, below = front.rough
            own = x[span]
            if len(boundary):
                own = own - below.T @ x[boundary]
            x[span] = _rough_trsv(factor, own, lower=1, trans=1)
        result = np.empty((len(self._order), 6))
        result[self._order] = x.reshape(-1, 6)
        return result.reshape(-1)

    def _eliminated(
        self, block: Block, row: IntArray, column: IntArray, value: Array, room: Array
    ) -> Front:
        own, later = block.last - block.first, len(block.boundary)
        p, q = 6 * own, 6 * later
        pivots = room[: p * p].reshape(p, p, order="F")
        below = room[p * p : p * (p + q)].reshape(q, p, order="F")
        update = room[p * (p + q) :].reshape(q, q, order="F")
        row, column = block.local(row), column - block.first
        inner = row < own
        outer = ~inner
        pivots.T.reshape(own, 6, own, 6)[column[inner], :, row[inner]] = value[inner]
        if later:
            below.T.reshape(own, 6, later, 6)[column[outer], :, row[outer] - own] = value[outer]
        for child, spots in zip(block.children, block.spots, strict=True):
            _extend(self.fronts[child].update, spots, own, pivots, below, update)
        factor, info = _potrf(pivots, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError("not positive definite")
        if later:
            below = _trsm(1.0, factor, below, side=1, lower=1, trans_a=1, overwrite_b=1)
            update = _syrk(-1.0, below, beta=1.0, c=update, lower=1, overwrite_c=1)
        return Front(factor, below, update)


def swept_order(points: Array, a: IntArray, b: IntArray, once: bool = False) -> IntArray | None:
    """An order of elimination along the longest axis, for `BandCholesky`.

    Args:
        points: (n, 3) where the block rows are.
        a: (m,) one end of each edge between them.
        b: (m,) the other.
        once: Nothing of a factorization will be taken over by another.

    Returns:
        (n,) block rows; None where the band is so wide that fronts are better.
    """
    order = sweep(points) if len(points) else np.zeros(0, dtype=np.int64)
    place = np.argsort(order)
    width = 6.0 * float(np.abs(place[a] - place[b]).max(initial=0))
    most = _ONCE * BAND if once else BAND
    return order if 6.0 * len(order) * width**2 <= most else None


class Band:
    """Where the blocks of a symmetric matrix lie in LAPACK's storage of a band: column by column
    what is on and below the diagonal.

    Args:
        row: (M,) block rows in the order of elimination.
        column: (M,) block columns, none after its row; what has the same place is summed up.
        count: Block rows of the matrix.
    """

    def __init__(self, row: IntArray, column: IntArray, count: int) -> None:
        self._count, self._width = 6 * count, 6 * int((row - column).max(initial=0)) + 6
        start = 6 * (row - column) + 6 * column * self._width
        inside = _BELOW + (np.arange(6) * self._width)[:, None]
        place = (start[:, None, None] + inside).reshape(-1)
        lower = ((_BELOW >= 0) | (row > column)[:, None, None]).reshape(-1)
        self._chosen = np.flatnonzero(lower)
        self._place = place[self._chosen]

    def filled(self, value: Array) -> Array:
        """(w, 6 n) band of a matrix with given (M, 6, 6) transposed blocks."""
        chosen = value.reshape(-1)[self._chosen]
        band = np.bincount(self._place, chosen, self._count * self._width)
        return band.reshape(self._width, self._count, order="F")


class BandCholesky:
    """The same for a matrix whose entries lie near its diagonal.

    Args:
        order: (n,) block rows in the order of elimination.
        band: K in that order, as from `Band`. It is overwritten.

    Raises:
        numpy.linalg.LinAlgError: K is not positive definite.
    """

    def __init__(self, order: IntArray, band: Array) -> None:
        self._order = order
        self._factor, info = _pbtrf(band, lower=1, overwrite_ab=1)
        if info:
            raise np.linalg.LinAlgError("not positive definite")

    def solve(self, loads: Array) -> Array:
        """K^-1 of (6 n,) or (6 n, m) right hand sides."""
        shape = loads.shape
        ordered = loads.reshape(len(self._order), -1)[self._order].reshape(shape)
        x = _pbtrs(self._factor, ordered, lower=1)[0].reshape(len(self._order), -1)
        result = np.empty_like(x)
        result[self._order] = x
        return result.reshape(shape)


class DenseCholesky:
    """The same for a matrix that is small enough to be kept dense.

    Args:
        matrix: (m, m) K; its lower triangle counts. It is overwritten.

    Raises:
        numpy.linalg.LinAlgError: K is not positive definite.
    """

    def __init__(self, matrix: Array) -> None:
        # To LAPACK a row-major matrix is its transpose.
        self._factor, info = _potrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError("not positive definite")

    def solve(self, loads: Array) -> Array:
        """K^-1 of (m,) or (m, k) right hand sides."""
        return _potrs(self._factor, loads, lower=0)[0] if len(loads) else loads.copy()


def _size(block: Block) -> int:
    """Numbers that a front holds."""
    p, q = 6 * (block.last - block.first), 6 * len(block.boundary)
    return p * p + p * q + q * q


def _multiplications(block: Block) -> float:
    """How many a front takes."""
    p, q = 6.0 * (block.last - block.first), 6.0 * len(block.boundary)
    return p**3 / 6.0 + p**2 * q / 2.0 + p * q**2 / 2.0


def _solve_one(factor: Array, x: Array, transposed: int) -> Array:
    return _trsv(factor, x, lower=1, trans=transposed)


def _solve_many(factor: Array, x: Array, transposed: int) -> Array:
    return _trsm(1.0, factor, x, lower=1, trans_a=transposed)


def _extend(
    source: Array, spots: IntArray, own: int, pivots: Array, below: Array, update: Array
) -> None:
    """Adds a child's update to the parts of a front."""
    runs = _runs(spots, own)
    for to_column, at_column, width in runs:
        columns = source[:, at_column : at_column + width]
        for to_row, at_row, height in runs:
            if at_row < at_column:
                continue
            values = columns[at_row : at_row + height]
            if to_row < 6 * own:
                target = pivots[to_row : to_row + height, to_column : to_column + width]
            elif to_column < 6 * own:
                to = to_row - 6 * own
                target = below[to : to + height, to_column : to_column + width]
            else:
                to, across = to_row - 6 * own, to_column - 6 * own
                target = update[to : to + height, across : across + width]
            target += values


def _runs(spots: IntArray, own: int) -> list[tuple[int, int, int]]:
    """Rows of a front that follow each other: (in the front, in the child, number of rows)."""
    breaks = np.flatnonzero((np.diff(spots) != 1) | (spots[1:] == own)) + 1
    starts = np.concatenate([[0], breaks, [len(spots)]])
    return [
        (6 * int(spots[s]), 6 * s, 6 * (e - s))
        for s, e in itertools.pairwise(starts.tolist())
        if e > s
    ]
