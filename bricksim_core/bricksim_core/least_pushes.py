# SPDX-License-Identifier: Apache-2.0
"""Pushes that have a resultant and are the least ones: where contacts can only push."""

from __future__ import annotations

import math

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array

_TRIES = 50
"""Newton steps to the least pushes."""


@compiled
def least_pushes(
    along: Array, firmness: Array, across: Array, resultant: Array, exact: float, faint: float
) -> tuple[bool, Array]:
    """Multipliers y by which contacts push with firmness max(0, along y) and give a resultant:

        across y + along' (firmness max(0, along y)) = resultant

    These pushes have the least sum of squares over the firmness. y is where a convex function is
    least (the dual problem), which Newton's method finds.

    Args:
        along: (C, K) what a push of 1 of each contact gives.
        firmness: (C,) of the contacts, more than 0.
        across: (K, K) what resists apart from pushes, symmetric, positive semidefinite.
        resultant: (K,)
        exact: Part of the resultant that may be missed.
        faint: Part of the trace of the stiffness that is added to it in every direction: some may
            be left free.

    Returns:
        Whether they were found, and (K,) multipliers.
    """
    count, size = along.shape
    multipliers, scale = np.zeros(size), norm(resultant)
    for _ in range(_TRIES):
        stiffness, missing = across.copy(), resultant - across @ multipliers
        for c in range(count):
            height = product(along[c], multipliers)
            if height >= 0.0:
                for j in range(size):
                    missing[j] -= firmness[c] * height * along[c, j]
                    for k in range(size):
                        stiffness[j, k] += firmness[c] * along[c, j] * along[c, k]
        if norm(missing) <= exact * scale:
            return True, multipliers
        least = faint * np.trace(stiffness)
        for j in range(size):
            stiffness[j, j] += least
        step = np.linalg.solve(stiffness, missing)
        before = _dual(multipliers, along, firmness, across, resultant)
        rise, rounding, length = product(missing, step), 1e-14 * abs(before), 1.0
        while (
            _dual(multipliers + length * step, along, firmness, across, resultant)
            > before - 1e-4 * length * rise + rounding
        ):
            length *= 0.5
        multipliers += length * step
    return False, multipliers


@compiled
def _dual(
    multipliers: Array, along: Array, firmness: Array, across: Array, resultant: Array
) -> float:
    """What `least_pushes` makes least."""
    value = 0.5 * product(multipliers, across @ multipliers) - product(resultant, multipliers)
    for c in range(len(along)):
        value += 0.5 * firmness[c] * max(product(along[c], multipliers), 0.0) ** 2
    return value


@compiled
def product(a: Array, b: Array) -> float:
    """Inner product of two vectors."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def norm(a: Array) -> float:
    """Euclidean norm of a vector."""
    return math.sqrt(product(a, a))
