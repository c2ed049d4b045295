# SPDX-License-Identifier: Apache-2.0
"""Small sparse matrices, and symmetric ones near their diagonal, in compiled loops.

Row k of a band holds column k of the lower triangle from the diagonal downwards.
"""

from __future__ import annotations

import math

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@compiled
def multiplied(value: Array, column: IntArray, start: IntArray, x: Array) -> Array:
    """(R,) A x.

    Args:
        value: (E,) entries of A, row by row.
        column: (E,) their columns.
        start: (R + 1,) where its rows begin.
        x: (n,).
    """
    product = np.zeros(len(start) - 1)
    for r in range(len(product)):
        for p in range(start[r], start[r + 1]):
            product[r] += value[p] * x[column[p]]
    return product


@compiled
def multiplied_back(value: Array, column: IntArray, start: IntArray, x: Array, size: int) -> Array:
    """(n,) A' x.

    Args:
        value: See `multiplied`.
        column: See there.
        start: See there.
        x: (R,).
        size: n, columns of A.
    """
    product = np.zeros(size)
    for r in range(len(x)):
        if x[r] != 0.0:
            for p in range(start[r], start[r + 1]):
                product[column[p]] += value[p] * x[r]
    return product


@compiled
def filled(value: Array, column: IntArray, start: IntArray, size: int) -> Array:
    """(R, n) A with all of its zeros; see `multiplied_back`."""
    matrix = np.zeros((len(start) - 1, size))
    for r in range(len(matrix)):
        for p in range(start[r], start[r + 1]):
            matrix[r, column[p]] = value[p]
    return matrix


@compiled
def band_width(column: IntArray, start: IntArray) -> int:
    """w: how many diagonals from the main one downwards A' W A has for a sparse A and a W that is
    made of blocks of rows with entries in the same sixes of columns.

    Args:
        column: See `multiplied`.
        start: See there.
    """
    widest = 0
    for r in range(len(start) - 1):
        own = column[start[r] : start[r + 1]] // 6
        if len(own):
            widest = max(widest, int(own.max() - own.min()))
    return 6 * widest + 6


@compiled
def band_of_squares(
    value: Array, column: IntArray, start: IntArray, weight: Array, size: int
) -> Array:
    """(n, w) band of A' W A for a sparse A, row by row, and a diagonal W.

    Args:
        value: See `multiplied`.
        column: See there.
        start: See there.
        weight: (R,) W.
        size: n, columns of A.
    """
    band = np.zeros((size, band_width(column, start)))
    for r in range(len(weight)):
        add_squares(value, column, start, r, r, weight[r], band)
    return band


@compiled
def add_squares(
    value: Array, column: IntArray, start: IntArray, r: int, s: int, weight: float, band: Array
) -> None:
    """Adds the lower triangle of a_r' weight a_s, of two rows of a sparse matrix, to a band."""
    for p in range(start[r], start[r + 1]):
        weighted, a = weight * value[p], column[p]
        for q in range(start[s], start[s + 1]):
            if column[q] >= a:
                band[a, column[q] - a] += weighted * value[q]


@compiled
def factor_band(band: Array) -> bool:
    """Puts L with L L' = K in the place of K; whether K is positive definite.

    Args:
        band: (n, w) K, both whole sixes: the columns of six displacements end in the same row.
    """
    size, width = band.shape
    for first in range(0, size, 6):
        end = min(first + width, size)
        for k in range(first, first + 6):
            own = band[k]
            if not own[0] > 0.0:
                return False
            own[: end - k] /= math.sqrt(own[0])
            for i in range(k + 1, first + 6):
                factor, other = own[i - k], band[i]
                for j in range(end - i):
                    other[j] -= factor * own[i - k + j]
        # Six columns at a time: what follows is read and written a sixth as often.
        for i in range(first + 6, end):
            k, n, other = i - first, end - i, band[i]
            u, v, w = band[first, k:], band[first + 1, k - 1 :], band[first + 2, k - 2 :]
            x, y, z = band[first + 3, k - 3 :], band[first + 4, k - 4 :], band[first + 5, k - 5 :]
            a, b, c, d, e, f = u[0], v[0], w[0], x[0], y[0], z[0]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0 or e != 0.0 or f != 0.0:
                for j in range(n):
                    other[j] -= a * u[j] + b * v[j] + c * w[j] + d * x[j] + e * y[j] + f * z[j]
    return True


@compiled
def solve_in_band(factor: Array, right: Array) -> None:
    """Puts K^-1 B in the place of B.

    Args:
        factor: (n, w) from `factor_band`.
        right: (n, m) B.
    """
    size, width = factor.shape
    for k in range(size):
        own = right[k]
        own /= factor[k, 0]
        for d in range(1, min(width, size - k)):
            if factor[k, d] != 0.0:
                right[k + d] -= factor[k, d] * own
    for k in range(size - 1, -1, -1):
        own = right[k]
        for d in range(1, min(width, size - k)):
            if factor[k, d] != 0.0:
                own -= factor[k, d] * right[k + d]
        own /= factor[k, 0]


@compiled
def solved_in_band(factor: Array, right: Array) -> Array:
    """(n,) K^-1 b; see `solve_in_band`."""
    size, width = factor.shape
    x = right.copy()
    for k in range(size):
        x[k] /= factor[k, 0]
        for d in range(1, min(width, size - k)):
            x[k + d] -= factor[k, d] * x[k]
    for k in range(size - 1, -1, -1):
        total = x[k]
        for d in range(1, min(width, size - k)):
            total -= factor[k, d] * x[k + d]
        x[k] = total / factor[k, 0]
    return x
