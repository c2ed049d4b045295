# SPDX-License-Identifier: Apache-2.0
"""Small dense linear complementarity problems by block pivots, in compiled loops.

Find z >= 0 with M z - q >= 0 and z' (M z - q) = 0, M symmetric and positive definite. All that is
wrong about an active set is changed at once, as long as less and less is wrong. Where that has not
happened for a few times what is wrong last alone is (Murty's rule), which is certain to end, but
may take long (Judice and Pires 1994).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_PATIENCE = 5
"""Changes of all that is wrong, one after the other, without less of it."""

_SINGLE = 2000
"""Changes of single unknowns, times the number of all, before it gives up."""


@compiled
def pivoted(
    matrix: Array,
    target: Array,
    floor: Array,
    tolerance: Array,
    contacts: int,
    active: NDArray[np.bool_],
    upper: Array,
    known: int,
) -> tuple[Array, int, bool]:
    """Solves from a guess of what is positive.

    Args:
        matrix: (m, m) M.
        target: (m,) q.
        floor: (m,) unknowns count as negative below minus this; from number ``contacts`` on, times
            the greatest unknown of these.
        tolerance: (m,) by how much M z - q may be negative.
        contacts: Unknowns with a floor of their own.
        active: (m,) what is positive: the guess, then what was found.
        upper: (m, m) room for the factor of the active part of M.
        known: Its size if it is known already, else -1.

    Returns:
        (m,) z, the size of the factor (-1 if there is none), whether it was found.
    """
    count = len(target)
    fewest, patience = count + 1, _PATIENCE
    value = np.zeros(count)
    wrong = np.zeros(count, dtype=np.bool_)
    while True:
        at = np.flatnonzero(active)
        if known < 0:
            if not _factored(matrix, at, upper):
                return value, -1, False
            known = len(at)
        solve_active(upper, target, at, value)
        gradient = -target
        greatest = 0.0
        for i in at:
            gradient += value[i] * matrix[i]
            if i >= contacts:
                greatest = max(greatest, abs(value[i]))
        number, last = 0, -1
        for i in range(count):
            if active[i]:
                least = floor[i] if i < contacts else floor[i] * greatest
                wrong[i] = value[i] < -least
            else:
                wrong[i] = gradient[i] < -tolerance[i]
            if wrong[i]:
                number, last = number + 1, i
        if number == 0:
            return value, known, True
        known = -1
        patience = _PATIENCE if number < fewest else patience - 1
        fewest = min(fewest, number)
        if patience < -_SINGLE // count:
            return value, -1, False
        if patience <= 0:
            wrong[:] = False
            wrong[last] = True
        for i in range(count):
            if wrong[i]:
                active[i] = not active[i]


@compiled
def _factored(matrix: Array, at: IntArray, upper: Array) -> bool:
    """Puts U with U' U = M for some rows and columns into the upper triangle of ``upper``."""
    count = len(at)
    for i in range(count):
        for j in range(i, count):
            upper[i, j] = matrix[at[i], at[j]]
    # Four rows at a time: what is below is then read and written a quarter as often.
    for first in range(0, count, 4):
        last = min(first + 4, count)
        for k in range(first, last):
            own = upper[k]
            if not own[k] > 0.0:
                return False
            root = math.sqrt(own[k])
            for j in range(k, count):
                own[j] /= root
            for i in range(k + 1, last):
                factor, other = own[i], upper[i]
                for j in range(i, count):
                    other[j] -= factor * own[j]
        if last == count:
            break
        a, b, c, d = upper[first], upper[first + 1], upper[first + 2], upper[first + 3]
        for i in range(last, count):
            by_a, by_b, by_c, by_d, other = a[i], b[i], c[i], d[i], upper[i]
            for j in range(i, count):
                other[j] -= by_a * a[j] + by_b * b[j] + by_c * c[j] + by_d * d[j]
    return True


@compiled
def solve_active(upper: Array, target: Array, at: IntArray, value: Array) -> None:
    """Puts the active unknowns as they have to be, the others zero, into ``value``."""
    count = len(at)
    x = target[at]
    for i in range(count):
        x[i] /= upper[i, i]
        for j in range(i + 1, count):
            x[j] -= upper[i, j] * x[i]
    for i in range(count - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, count):
            total -= upper[i, j] * x[j]
        x[i] = total / upper[i, i]
    value[:] = 0.0
    for i in range(count):
        value[at[i]] = x[i]
