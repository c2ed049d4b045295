# SPDX-License-Identifier: Apache-2.0
"""Cholesky factorization of a sparse matrix of 6 x 6 blocks within a compiled loop.

For matrices of some dozens of block rows that are factored again and again with other numbers: the
order and the places of all blocks are found once (minimum degree: Tinney and Walker 1967). With so
few blocks that is a sixth to a tenth of the multiplications of a band.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


class Elimination(NamedTuple):
    """In which order bodies are eliminated, and where the factor has blocks.

    Attributes:
        place: (B,) of each body in that order.
        start: (B + 1,) where the blocks of each column begin, the first one on the diagonal.
        row: (n,) block rows, in each column sorted.
        between: (L,) which of the blocks lies between the bodies of a link, -1 for links to the
            world.
    """

    place: IntArray
    start: IntArray
    row: IntArray
    between: IntArray


@compiled
def elimination_of(count: int, lower: IntArray, upper: IntArray) -> Elimination:
    """Always eliminates the body with the fewest neighbours, which are all neighbours from then on.

    Args:
        count: B, number of bodies.
        lower: (L,) one body of each link, -1 for the world.
        upper: (L,) the other.
    """
    joined, degree = np.zeros((count, count), dtype=np.bool_), np.zeros(count, dtype=np.int64)
    for k in range(len(lower)):
        a, b = lower[k], upper[k]
        if a >= 0 and b >= 0 and not joined[a, b]:
            joined[a, b] = joined[b, a] = True
            degree[a] += 1
            degree[b] += 1
    place, near = np.full(count, -1, dtype=np.int64), np.empty(count, dtype=np.int64)
    body, start = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    for step in range(count):
        least = -1
        for b in range(count):
            if place[b] < 0 and (least < 0 or degree[b] < degree[least]):
                least = b
        place[least], body[step] = step, least
        many = 0
        for b in range(count):
            if joined[least, b] and place[b] < 0:
                near[many] = b
                many += 1
        for m in range(many):
            a = near[m]
            degree[a] -= 1
            for b in near[:m]:
                if not joined[a, b]:
                    joined[a, b] = joined[b, a] = True
                    degree[a] += 1
                    degree[b] += 1
        start[step + 1] = start[step] + 1 + many
    row = np.empty(start[-1], dtype=np.int64)
    for j in range(count):
        row[start[j]], at = j, start[j] + 1
        for i in range(j + 1, count):
            if joined[body[j], body[i]]:
                row[at] = i
                at += 1
    between = np.full(len(lower), -1, dtype=np.int64)
    for k in range(len(lower)):
        if lower[k] >= 0 and upper[k] >= 0:
            i, j = place[lower[k]], place[upper[k]]
            at = start[min(i, j)]
            while row[at] < max(i, j):
                at += 1
            between[k] = at
    return Elimination(place, start, row, between)


@compiled
def products(order: Elimination) -> int:
    """How many products of two blocks a factorization takes."""
    total = 0
    for j in range(len(order.place)):
        blocks = order.start[j + 1] - order.start[j]
        total += blocks * (blocks + 1) // 2
    return total


# Six columns at a time: what is multiplied is read and written a sixth as often.


@compiled
def factor(blocks: Array, order: Elimination) -> bool:
    """Replaces the lower triangle of a symmetric matrix by its Cholesky factor L.

    Args:
        blocks: (n, 6, 6) transposed blocks of the matrix, then of L; of those on the diagonal the
            upper triangle counts, with one over the diagonal of L.
        order: Where they are.

    Returns:
        False: the matrix is not positive definite.
    """
    start, row = order.start, order.row
    for j in range(len(order.place)):
        own, begin, end = blocks[start[j]], start[j] + 1, start[j + 1]
        for c in range(6):
            if not own[c, c] > 0.0:
                return False
            f = 1.0 / np.sqrt(own[c, c])
            own[c, c] = f
            for r in range(c + 1, 6):
                own[c, r] *= f
            for d in range(c + 1, 6):
                f = own[c, d]
                for r in range(d, 6):
                    own[d, r] -= f * own[c, r]
        for b in range(begin, end):
            block = blocks[b]
            for c in range(6):
                f = own[c, c]
                for r in range(6):
                    block[c, r] *= f
                for d in range(c + 1, 6):
                    f = own[c, d]
                    for r in range(6):
                        block[d, r] -= f * block[c, r]
        for b in range(begin, end):
            # The rows below one of a column are among those of the column that it names.
            at = start[row[b]]
            for a in range(b, end):
                while row[at] < row[a]:
                    at += 1
                _subtract_product(blocks[b], blocks[a], blocks[at])
    return True


@compiled
def _subtract_product(left: Array, right: Array, block: Array) -> None:
    """Subtracts left^T right from a block."""
    for i in range(6):
        s, t, u = left[0, i], left[1, i], left[2, i]
        v, w, z = left[3, i], left[4, i], left[5, i]
        for j in range(6):
            block[i, j] -= (
                s * right[0, j] + t * right[1, j] + u * right[2, j]
                + v * right[3, j] + w * right[4, j] + z * right[5, j]
            )  # fmt: skip


@compiled
def solved(blocks: Array, order: Elimination, right: Array) -> Array:
    """(6 B,) solution for a right hand side, by the blocks of `factor`."""
    place, start, row, _ = order
    count = len(place)
    x, solution = np.empty(6 * count), np.empty(6 * count)
    for b in range(count):
        for c in range(6):
            x[6 * place[b] + c] = right[6 * b + c]
    for j in range(count):
        own, part = blocks[start[j]], x[6 * j : 6 * j + 6]
        for c in range(6):
            part[c] *= own[c, c]
            for r in range(c + 1, 6):
                part[r] -= own[c, r] * part[c]
        for b in range(start[j] + 1, start[j + 1]):
            block, i = blocks[b], 6 * row[b]
            for c in range(6):
                for r in range(6):
                    x[i + r] -= block[c, r] * part[c]
    for j in range(count - 1, -1, -1):
        own, part = blocks[start[j]], x[6 * j : 6 * j + 6]
        for b in range(start[j] + 1, start[j + 1]):
            block, i = blocks[b], 6 * row[b]
            for c in range(6):
                total = 0.0
                for r in range(6):
                    total += block[c, r] * x[i + r]
                part[c] -= total
        for c in range(5, -1, -1):
            for r in range(c + 1, 6):
                part[c] -= own[c, r] * part[r]
            part[c] *= own[c, c]
    for b in range(count):
        for c in range(6):
            solution[6 * b + c] = x[6 * place[b] + c]
    return solution
