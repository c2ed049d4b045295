# SPDX-License-Identifier: Apache-2.0
"""Active sets of many rows and contacts in a structure whose stiffness lies near the diagonal.

The same steps as in `pivoting`, for the same unknowns. What they are for an active set is found by
Newton's method on displacements (`newton`) instead of a dense matrix, in one compiled loop: the
cost does not hang on how many there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.snapfit.band import add_squares, factor_band, solved_in_band
from bricksim_core.mechanics.snapfit.newton import (
    ROUNDING,
    forces_of,
    held_back,
    yielding_rows,
)
from bricksim_core.mechanics.snapfit.plain import Plain
from bricksim_core.mechanics.snapfit.yielding import NEGATIVE, PUSH_TOLERANCE, TOLERANCE
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_PATIENCE = 5
"""Changes of all that is wrong, one after the other, without less of it, before it gives up."""

_REFINEMENTS = 3

_BALANCED = 5e-9
"""What may be left unbalanced, over the greatest force: more than in large structures (`newton`),
whose arms make more of it."""


class Kept(NamedTuple):
    """What of an active set solves that only grant more overload have in common.

    Attributes:
        release: See `yielding_rows`.
        pressing: See there.
        parting: See there.
        factor: (F, w) band of the stiffness matrix, factored; empty if nothing is known.
    """

    release: Array
    pressing: Array
    parting: Array
    factor: Array

    @staticmethod
    def nothing() -> Kept:
        """Before the first solve."""
        none = np.zeros((0, 6))
        return Kept(none, np.zeros(0), none, none)


@compiled
def settled_in_band(
    plain: Plain,
    width: int,
    gap: Array,
    limit: Array,
    granted: Array,
    granted_row: Array,
    loads: Array,
    known: NDArray[np.bool_],
    active: NDArray[np.bool_],
    kept: Kept,
) -> tuple[Array, Array, Array, Array, bool, Kept]:
    """Finds which of the known rows yield and which contacts are closed, and the forces.

    Args:
        plain: The structure.
        width: Of the band of the stiffness matrix.
        gap: (V,) of the contacts [m].
        limit: (J,) of the joints.
        granted: See `Granted`.
        granted_row: See there.
        loads: (F,) scaled loads [N].
        known: (J * ROWS + V,) which members are asked for.
        active: (J * ROWS + V,) which are active: the guess, then what was found.
        kept: Of these, nothing if it is not known.

    Returns:
        (J, 6) scaled wrenches and (V,) pushes [N], (J * ROWS + V,) multipliers of active members
        (nan for others), (J * ROWS,) by how much rows are exceeded that are not known, whether the
        active set was found, and what is kept of it.
    """
    value, column, start, weight, every, softness = plain
    joints, rows, _ = every.shape
    first, contacts = joints * rows, len(gap)
    stiffness = weight[: 6 * joints].copy().reshape(joints, 6)
    load = np.abs(loads).max()
    multiplier, excess = np.full(len(active), np.nan), np.zeros(first)
    wrench, push = np.zeros((joints, 6)), np.zeros(contacts)
    wrong = np.zeros(len(active), dtype=np.bool_)
    fewest, patience = len(active) + 1, _PATIENCE
    while True:
        own = np.flatnonzero(active[:first])
        firm = np.where(active[first:], weight[6 * joints :], 0.0)
        if not len(kept.factor):
            release, pressing, parting, blocks = yielding_rows(own, every, stiffness, softness)
            factor = _band(value, column, start, blocks, firm, len(loads), width)
            if not factor_band(factor):
                return wrench, push, multiplier, excess, False, kept
            kept = Kept(release, pressing, parting, factor)
        release, pressing, parting, factor = kept
        held = held_back(own, pressing, parting, limit - granted, granted_row)
        displaced, last, worst, goal = np.zeros(len(loads)), np.inf, np.inf, load
        mu, closing, lack = held, gap, loads
        for refinement in range(_REFINEMENTS + 1):
            wrench, push, mu, closing, lack = forces_of(
                value,
                column,
                start,
                every,
                stiffness,
                own,
                release,
                held,
                firm,
                gap,
                loads,
                displaced,
            )
            if refinement > 0:
                worst, goal = np.abs(lack).max(), max(load, np.abs(wrench).max())
                if not (ROUNDING * goal < worst and worst < 0.5 * last):
                    break
                last = worst
            if refinement < _REFINEMENTS:
                displaced = displaced + solved_in_band(factor, lack)
        if not min(worst, last) <= _BALANCED * goal:
            return wrench, push, multiplier, excess, False, kept

        greatest, overload = 0.0, -granted
        multiplier[:] = np.nan
        for i in range(len(own)):
            greatest = max(greatest, abs(mu[i]))
            overload[own[i] // rows] += softness[own[i] // rows] * mu[i]
            multiplier[own[i]] = mu[i]
        number = 0
        for j in range(joints):
            bound = limit[j] + max(overload[j], 0.0)
            for r in range(rows):
                member = j * rows + r
                if active[member]:
                    wrong[member] = multiplier[member] < -NEGATIVE * greatest
                    excess[member] = -bound
                else:
                    over = -bound
                    for c in range(6):
                        over += every[j, r, c] * wrench[j, c]
                    wrong[member] = known[member] and over > TOLERANCE
                    excess[member] = -bound if known[member] else over
                number += wrong[member]
        for v in range(contacts):
            member = first + v
            if active[member]:
                wrong[member] = push[v] < -PUSH_TOLERANCE
                multiplier[member] = push[v]
            else:
                wrong[member] = weight[6 * joints + v] * closing[v] > PUSH_TOLERANCE
            number += wrong[member]
        if number == 0:
            return wrench, push, multiplier, excess, True, kept
        patience = _PATIENCE if number < fewest else patience - 1
        fewest = min(fewest, number)
        if patience == 0:
            return wrench, push, multiplier, excess, False, kept
        kept = Kept(release, pressing, parting, factor[:0])
        for member in range(len(active)):
            if wrong[member]:
                active[member] = not active[member]


@compiled
def _band(
    value: Array,
    column: IntArray,
    start: IntArray,
    blocks: Array,
    firm: Array,
    size: int,
    width: int,
) -> Array:
    """(F, w) band of the stiffness matrix: (J, 6, 6) blocks of joints, (V,) of contacts."""
    band = np.zeros((size, width))
    joints = len(blocks)
    for j in range(joints):
        for c in range(6):
            for d in range(6):
                weight = blocks[j, c, d]
                if weight != 0.0:
                    add_squares(value, column, start, 6 * j + c, 6 * j + d, weight, band)
    for v in range(len(firm)):
        if firm[v] != 0.0:
            add_squares(value, column, start, 6 * joints + v, 6 * joints + v, firm[v], band)
    return band
