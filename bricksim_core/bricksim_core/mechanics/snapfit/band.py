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
        band: (n, w) K.
    """
    size, width = band.shape
    for k in range(size):
        own = band[k]
        if not own[0] > 0.0:
            return False
        own /= math.sqrt(own[0])
        last = min(width, size - k)
        for d in range(1, last):
            factor, other = own[d], band[k + d]
            if factor != 0.0:
                for e in range(d, last):
                    other[e - d] -= factor * own[e]
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
