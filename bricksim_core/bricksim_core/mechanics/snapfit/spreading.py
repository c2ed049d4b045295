# SPDX-License-Identifier: Apache-2.0
"""Overloads of large structures, roughly and at a known cost: they are spread step by step.

Without softness and contacts the problem of `yielding` is to find displacements y with

    b = J w(J' y),    w(e): of the wrenches that the joint can carry the nearest to D e, by D^-1

(plasticity's return mapping). J w - b is the gradient of a convex function that is curved no more
than that of the bonded structure, whose stiffness is K = J D J'. Accelerated gradient steps
K^-1 (b - J w) (Nesterov, Soviet Math. Dokl. 27, 1983; begun again where they turn back: O'Donoghue
and Candes, Found. Comput. Math. 15, 2015) need no matrix but that one, which is factored. What a
step leaves out of balance the bonded structure carries: that is a distribution in equilibrium, with
contacts that do not push, and its utilizations are upper estimates of the least ones.
"""

from __future__ import annotations

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.portions import Portions, solve_cost
from bricksim_core.mechanics.snapfit.band import multiplied_back
from bricksim_core.mechanics.snapfit.elastic import ElasticStructure
from bricksim_core.spatial import Array

_SPARE = 1e-3
"""Part of what joints can carry that is left, so that loads which can be carried are after a number
of steps."""

_SWEEPS, _SETTLED = 20, 1e-4
"""Times that the rows of a joint are looked at, and the change of a wrench, over what the row can
carry, at which it has settled."""


def spread(
    structure: ElasticStructure, every: Array, limit: Array, loads: Array, start: Array, steps: int
) -> Portions[Array]:
    """(J, 6) scaled wrenches in equilibrium with the loads [N].

    Args:
        structure: The bonded structure.
        every: (J, ROWS, 6) utilization per scaled wrench [1/N].
        limit: (J,) bound of the rows [-].
        loads: (F,) scaled loads [N].
        start: (F,) displacements under them [m].
        steps: How many; fewer if the loads can be carried.
    """
    stiffness = structure.stiffness.reshape(-1, 6)
    last, ahead, weight = start, start, 1.0
    wrench = structure.wrenches(ahead)
    for _ in range(steps):
        yield solve_cost(structure.size // 6)
        carried = _carried(every, stiffness, (1.0 - _SPARE) * limit, structure.wrenches(ahead))
        lack = loads - multiplied_back(*structure.strain, carried.reshape(-1), len(loads))
        step = structure.displacements(lack)
        wrench = carried + structure.wrenches(step)
        if not _exceeds(every, limit, wrench):
            break
        before, last = last, ahead + step
        onward = last - before
        heavier = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * weight * weight))
        momentum = (weight - 1.0) / heavier
        if float(onward @ lack) < 0.0:
            heavier, momentum = 1.0, 0.0
        ahead, weight = last + momentum * onward, heavier
    return wrench


@compiled
def _exceeds(every: Array, limit: Array, wrench: Array) -> bool:
    """Whether a row of (J, 6) wrenches is beyond its limit."""
    joints, rows, _ = every.shape
    for j in range(joints):
        for r in range(rows):
            total = -limit[j]
            for c in range(6):
                total += every[j, r, c] * wrench[j, c]
            if total > 0.0:
                return True
    return False


@compiled
def _carried(every: Array, stiffness: Array, limit: Array, wrench: Array) -> Array:
    """(J, 6) what joints can carry that is nearest to (J, 6) wrenches, by the inverse of (J, 6)
    stiffnesses: row by row (Hildreth, Naval Res. Logist. Q. 4, 1957)."""
    joints, rows, _ = every.shape
    carried, multiplier = wrench.copy(), np.empty(rows)
    for j in range(joints):
        own = carried[j]
        multiplier[:] = 0.0
        for _ in range(_SWEEPS):
            most = 0.0
            for r in range(rows):
                excess, firm = -limit[j], 0.0
                for c in range(6):
                    excess += every[j, r, c] * own[c]
                if excess <= 0.0 and multiplier[r] == 0.0:
                    continue
                for c in range(6):
                    firm += every[j, r, c] * stiffness[j, c] * every[j, r, c]
                change = max(excess / firm, -multiplier[r])
                multiplier[r] += change
                most = max(most, abs(change) * firm)
                for c in range(6):
                    own[c] -= change * stiffness[j, c] * every[j, r, c]
            if most <= _SETTLED:
                break
    return carried
