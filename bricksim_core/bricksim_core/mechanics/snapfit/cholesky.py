# SPDX-License-Identifier: Apache-2.0
"""Cholesky factorization of a sparse matrix of 6 x 6 blocks, by fronts (Duff and Reid 1983).

Each block of a dissection has a dense front: what it eliminates against that and its boundary. They
are factored by BLAS and LAPACK. A front hangs on its own entries and its children's fronts only, so
that after a change the others are taken over as they are. A solve goes through all of them in one
compiled loop: it waits for memory, so that the fewer numbers a factor has the better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from bricksim_core.compiled import compiled, numbers_at
from bricksim_core.mechanics.portions import Portions, at_once
from bricksim_core.mechanics.snapfit.dissection import Dissection, sweep
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_potrf, _potrs, _pbtrf, _pbtrs = get_lapack_funcs(
    ("potrf", "potrs", "pbtrf", "pbtrs"), dtype=np.float64
)
_trsm, _syrk = get_blas_funcs(("trsm", "syrk"), dtype=np.float64)

BAND = 1.5e7
"""Multiplications up to which a matrix is factored within its band. Of more, fronts take up to half
as long again, but when the matrix changes nothing of a band can be taken over."""

_ONCE = 1e9
"""The same for a matrix of which nothing will be taken over."""

_FRONT, _MULTIPLIED = 0.06, 0.8e7
"""Cost of a front, and multiplications that cost 1."""

_PORTION = 1.5
"""Cost of the fronts that are factored at a time, but for a larger one."""

_WITHIN = 0.6e7
"""Multiplications within a band that cost as much as one."""


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
    def at(self) -> tuple[int, int]:
        """Where `factor` and `below` are in memory."""
        return self.factor.ctypes.data, self.below.ctypes.data


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
        known: Fronts that are known already, None for others.

    Attributes:
        fronts: One per block.

    Raises:
        numpy.linalg.LinAlgError: K is not positive definite.
    """

    def __init__(
        self, dissection: Dissection, entries: Entries, known: Sequence[Front | None] = ()
    ) -> None:
        at_once(self._eliminate(dissection, entries, known))

    @classmethod
    def factored(
        cls, dissection: Dissection, entries: Entries, known: Sequence[Front | None]
    ) -> Portions[BlockCholesky]:
        """The same in portions."""
        cholesky = cls.__new__(cls)
        yield from cholesky._eliminate(dissection, entries, known)
        return cholesky

    def _eliminate(
        self, tree: Dissection, entries: Entries, known: Sequence[Front | None]
    ) -> Portions[None]:
        self._tree = tree
        known = known or [None] * len(tree)
        p, q = 6 * np.diff(tree.first), 6 * np.diff(tree.start)
        costs = (_FRONT + _multiplications(p, q) / _MULTIPLIED).tolist()
        sizes = np.where([front is None for front in known], p**2 + p * q + q**2, 0)
        # One piece of memory for all of them: the system hands out large pages for it.
        memory = np.zeros(int(sizes.sum()))
        used = (np.cumsum(sizes) - sizes).tolist()
        cuts = np.searchsorted(entries.column, tree.first).tolist()
        local = np.empty(len(tree.order), dtype=np.int64)
        children: list[list[int]] = [[] for _ in known]
        for block, parent in enumerate(tree.parent.tolist()):
            if parent >= 0:
                children[parent].append(block)
        self.fronts = fronts = cast(list[Front], list(known))  # those that are None come in time
        for portion, cost in _portions([k for k, f in enumerate(known) if f is None], costs):
            yield cost
            for k in portion:
                own = slice(cuts[k], cuts[k + 1])
                fronts[k] = self._eliminated(
                    k, entries.row[own], entries.column[own], entries.value[own],
                    children[k], memory[used[k] :], local,
                )  # fmt: skip
        self._at = np.array([front.at for front in fronts], dtype=np.int64).reshape(-1, 2)

    def solve(self, loads: Array) -> Array:
        """K^-1 of (6 n,) or (6 n, m) right hand sides."""
        tree = self._tree
        every = np.array(loads.reshape(len(loads), -1).T, order="C")
        _solve(tree.order, tree.first, tree.start, tree.boundary, self._at, every)
        return every.T.reshape(loads.shape)

    def _eliminated(
        self,
        block: int,
        row: IntArray,
        column: IntArray,
        value: Array,
        children: list[int],
        memory: Array,
        local: IntArray,
    ) -> Front:
        tree = self._tree
        first, last = tree.first[block : block + 2].tolist()
        boundary = tree.boundary[tree.start[block] : tree.start[block + 1]]
        p, q = 6 * (last - first), 6 * len(boundary)
        pivots = memory[: p * p].reshape(p, p)
        below = memory[p * p : p * (p + q)].reshape(p, q)
        update = memory[p * (p + q) : p * (p + q) + q * q].reshape(q, q)
        local[first:last] = np.arange(last - first)
        local[boundary] = np.arange(last - first, last - first + len(boundary))
        _put(local[row], local[column], value, pivots, below)
        for child in children:
            spots = local[tree.boundary[tree.start[child] : tree.start[child + 1]]]
            _extend(self.fronts[child].update.T, spots, pivots, below, update)
        # To LAPACK a row-major matrix is its transpose.
        factor, info = _potrf(pivots.T, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError("not positive definite")
        rows, rest = below.T, update.T
        if q:
            rows = _trsm(1.0, factor, rows, side=1, lower=1, trans_a=1, overwrite_b=1)
            rest = _syrk(-1.0, rows, beta=1.0, c=rest, lower=1, overwrite_c=1)
        return Front(factor, rows, rest)


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
    most = _ONCE if once else BAND
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
        self._row, self._column, self._count = row, column, count

    def filled(self, value: Array) -> Array:
        """(w, 6 n) band of a matrix with given (M, 6, 6) transposed blocks."""
        return _band_of(self._row, self._column, value, self._count).T


def band_cost(band: Array) -> float:
    """Cost of factoring a (w, m) band."""
    width, columns = band.shape
    return columns * width**2 / 2.0 / _WITHIN


class BandCholesky:
    """The same for a matrix whose entries lie near its diagonal.

    Args:
        order: (n,) block rows in the order of elimination.
        band: K in that order, as from `Band`. It is overwritten.

    Raises:
        numpy.linalg.LinAlgError: K is not positive definite.
    """

    def __init__(self, order: IntArray, band: Array) -> None:
        # Where the rows that are eliminated come from, and where they are then.
        self._rows = (6 * order[:, None] + np.arange(6)).reshape(-1)
        self._places = np.empty_like(self._rows)
        self._places[self._rows] = np.arange(len(self._rows))
        self._factor, info = _pbtrf(band, lower=1, overwrite_ab=1)
        if info:
            raise np.linalg.LinAlgError("not positive definite")

    def solve(self, loads: Array) -> Array:
        """K^-1 of (6 n,) or (6 n, m) right hand sides."""
        return _pbtrs(self._factor, loads[self._rows], lower=1)[0][self._places]


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


def _multiplications(p: IntArray, q: IntArray) -> Array:
    """How many fronts take that eliminate p rows against q others."""
    return p**3 / 6.0 + p**2 * q / 2.0 + p * q**2 / 2.0


def _portions(blocks: list[int], costs: list[float]) -> list[tuple[list[int], float]]:
    """Blocks in portions that cost about as much each, and what they cost."""
    portions: list[tuple[list[int], float]] = []
    for block in blocks:
        if not portions or portions[-1][1] + costs[block] > _PORTION:
            portions.append(([], 0.0))
        before, cost = portions[-1]
        portions[-1] = [*before, block], cost + costs[block]
    return portions


@compiled
def _band_of(row: IntArray, column: IntArray, value: Array, count: int) -> Array:
    """(6 n, w) the band of `Band.filled`, column by column."""
    width = 6
    for e in range(len(row)):
        width = max(width, 6 * (row[e] - column[e]) + 6)
    band = np.zeros((6 * count, width))
    for e in range(len(row)):
        below = 6 * (row[e] - column[e])
        for i in range(6):
            # Of blocks on the diagonal the lower triangle only.
            for j in range(0 if below else i, 6):
                band[6 * column[e] + i, below + j - i] += value[e, i, j]
    return band


@compiled
def _put(row: IntArray, column: IntArray, value: Array, pivots: Array, below: Array) -> None:
    """Puts entries into a front.

    Args:
        row: (E,) block rows in the front.
        column: (E,) block columns there.
        value: (E, 6, 6) transposed blocks.
        pivots: (p, p) by columns.
        below: (p, q) by columns.
    """
    own = len(pivots) // 6
    for e in range(len(row)):
        c = 6 * column[e]
        if row[e] < own:
            r = 6 * row[e]
            for i in range(6):
                for j in range(6):
                    pivots[c + i, r + j] = value[e, i, j]
        else:
            r = 6 * (row[e] - own)
            for i in range(6):
                for j in range(6):
                    below[c + i, r + j] = value[e, i, j]


@compiled
def _extend(source: Array, spots: IntArray, pivots: Array, below: Array, update: Array) -> None:
    """Adds a child's update to a front, all of them by columns.

    Args:
        source: (6 s, 6 s) the update.
        spots: (s,) block rows in the front where its block rows belong, sorted.
        pivots: (p, p).
        below: (p, q).
        update: (q, q).
    """
    own = len(pivots) // 6
    for m in range(len(spots)):
        c = 6 * spots[m]
        for n in range(m, len(spots)):
            r = 6 * spots[n]
            for i in range(6):
                values = source[6 * m + i, 6 * n : 6 * n + 6]
                if spots[n] < own:
                    target = pivots[c + i, r : r + 6]
                elif spots[m] < own:
                    target = below[c + i, r - 6 * own : r - 6 * own + 6]
                else:
                    target = update[c - 6 * own + i, r - 6 * own : r - 6 * own + 6]
                for j in range(6):
                    target[j] += values[j]


@compiled
def _solve(
    order: IntArray, first: IntArray, start: IntArray, boundary: IntArray, at: IntArray, x: Array
) -> None:
    """Replaces right hand sides by solutions.

    Args:
        order: See `Dissection`.
        first: See there.
        start: See there.
        boundary: See there.
        at: (K, 2) where the blocks' `Front.factor` and `Front.below` are.
        x: (m, 6 n) right hand sides.
    """
    count = len(order)
    y, far = np.empty_like(x), np.empty(6 * count)
    for m in range(len(x)):
        for i in range(count):
            for c in range(6):
                y[m, 6 * i + c] = x[m, 6 * order[i] + c]
    # Block by block: what is read of one serves all right hand sides.
    for k in range(len(at)):
        for own in y:
            _forth(first[k], first[k + 1], boundary[start[k] : start[k + 1]], at[k], own, far)
    for k in range(len(at) - 1, -1, -1):
        for own in y:
            _back(first[k], first[k + 1], boundary[start[k] : start[k + 1]], at[k], own, far)
    for m in range(len(x)):
        for i in range(count):
            for c in range(6):
                x[m, 6 * order[i] + c] = y[m, 6 * i + c]


# Six columns at a time: what follows is read and written a sixth as often, and six sums go on at
# the same time.


@compiled
def _forth(first: int, last: int, boundary: IntArray, at: IntArray, y: Array, far: Array) -> None:
    """Takes what a block eliminates out of what comes later; see `_solve`.

    Args:
        first: Its first place.
        last: One after its last place.
        boundary: (B,) later places that it touches.
        at: Where its factor and what is below are.
        y: (6 n,) right hand side, by places.
        far: Room for as much.
    """
    own, size, later = y[6 * first : 6 * last], 6 * (last - first), 6 * len(boundary)
    if not own.any():
        return
    pivots, below = numbers_at(at[0], (size, size)), numbers_at(at[1], (size, later))
    far[:later] = 0.0
    for c in range(0, size, 6):
        for i in range(c, c + 6):
            own[i] /= pivots[i, i]
            for j in range(i + 1, c + 6):
                own[j] -= pivots[i, j] * own[i]
        s, t, u, v, w, z = own[c], own[c + 1], own[c + 2], own[c + 3], own[c + 4], own[c + 5]
        p, q, r = pivots[c], pivots[c + 1], pivots[c + 2]
        a, b, d = pivots[c + 3], pivots[c + 4], pivots[c + 5]
        for j in range(c + 6, size):
            own[j] -= p[j] * s + q[j] * t + r[j] * u + a[j] * v + b[j] * w + d[j] * z
        p, q, r = below[c], below[c + 1], below[c + 2]
        a, b, d = below[c + 3], below[c + 4], below[c + 5]
        for j in range(later):
            far[j] += p[j] * s + q[j] * t + r[j] * u + a[j] * v + b[j] * w + d[j] * z
    for k in range(len(boundary)):
        for c in range(6):
            y[6 * boundary[k] + c] -= far[6 * k + c]


@compiled
def _back(first: int, last: int, boundary: IntArray, at: IntArray, y: Array, far: Array) -> None:
    """Solves for what a block eliminates, what comes later being known; see `_forth`."""
    own, size, later = y[6 * first : 6 * last], 6 * (last - first), 6 * len(boundary)
    pivots, below = numbers_at(at[0], (size, size)), numbers_at(at[1], (size, later))
    for k in range(len(boundary)):
        for c in range(6):
            far[6 * k + c] = y[6 * boundary[k] + c]
    for c in range(size - 6, -1, -6):
        s, t, u, v, w, z = own[c], own[c + 1], own[c + 2], own[c + 3], own[c + 4], own[c + 5]
        p, q, r = below[c], below[c + 1], below[c + 2]
        a, b, d = below[c + 3], below[c + 4], below[c + 5]
        for j in range(later):
            x = far[j]
            s, t, u = s - p[j] * x, t - q[j] * x, u - r[j] * x
            v, w, z = v - a[j] * x, w - b[j] * x, z - d[j] * x
        p, q, r = pivots[c], pivots[c + 1], pivots[c + 2]
        a, b, d = pivots[c + 3], pivots[c + 4], pivots[c + 5]
        for j in range(c + 6, size):
            x = own[j]
            s, t, u = s - p[j] * x, t - q[j] * x, u - r[j] * x
            v, w, z = v - a[j] * x, w - b[j] * x, z - d[j] * x
        own[c], own[c + 1], own[c + 2], own[c + 3], own[c + 4], own[c + 5] = s, t, u, v, w, z
        for i in range(c + 5, c - 1, -1):
            for j in range(i + 1, c + 6):
                own[i] -= pivots[i, j] * own[j]
            own[i] /= pivots[i, i]
