# SPDX-License-Identifier: Apache-2.0
"""Overloads of softer joints: in equilibrium, near to the least ones, in a bounded number of
iterations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mechanics_cases import internal_wrenches, single_component

from bricksim_core.formats import read_structure
from bricksim_core.mechanics.portions import at_once
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.snapfit.softened import SOFTER, soften
from bricksim_core.mechanics.types import SolveStatus

DATA = Path(__file__).parent / "data" / "brickgpt"
CASES = [
    ("demo_table.txt", 43, (0.0, 0.0, 1.0)),
    ("demo_table.txt", 23, (1.0, 0.0, 0.0)),
    ("fewshot_1_f23d3a85.txt", 44, (1.0, 1.0, 0.0)),
    ("demo_car.txt", 60, (0.3, -0.5, 0.8)),
    ("mesh2brick_car.txt", 70, (-1.0, 0.2, 0.4)),
]


def loaded(name, part, direction):
    """A model and loads on one of its bricks that are just what it carries: layout, held parts,
    loads. The limit is that of the linear program."""
    layout, anchored = single_component(read_structure(DATA / name))
    loads = np.zeros((len(layout.part_ids), 6))
    loads[part, :3] = direction
    limit = SnapFitModel().system(layout, anchored).safety_factor(loads).factor
    assert 0.0 < limit < np.inf
    return layout, anchored, limit * loads


def softer(layout, anchored, loads):
    """What softer joints bear: system, scaled free loads, wrenches and pushes."""
    system = SnapFitModel().system(layout, anchored)
    free_loads, _ = system._free_loads(loads)
    found = at_once(soften(system._equations, system._normal, free_loads))
    assert found is not None
    return system, free_loads, *found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("times", "most"), [(0.98, 1.1), (1.3, 1.02), (3.0, 1.05)])
def test_the_greatest_is_near_to_the_least_possible(case, times, most):
    layout, anchored, loads = loaded(*case)
    system, _, wrench, _ = softer(layout, anchored, times * loads)
    found = system.joints.greatest(wrench[: len(system.joints)])
    exact = SnapFitModel().system(layout, anchored).solve(times * loads).utilization
    # Of all forces in equilibrium the exact ones have the least sum of these squares.
    weight = system.joints.pull
    overload = [float(weight @ np.maximum(u - 1.0, 0.0) ** 2) for u in (exact, found)]
    assert overload[1] >= (1.0 - 1e-4) * overload[0]
    assert found.max() <= most * exact.max()
    # No forces at all carry more than the limit.
    assert (found.max() > 1.0 + 1e-4) or times < 1.0


@pytest.mark.parametrize("case", CASES)
def test_they_balance_the_loads_and_only_push(case):
    layout, anchored, loads = loaded(*case)
    system, free_loads, wrench, push = softer(layout, anchored, 2.0 * loads)
    value, column, start = system._equations.opening
    balance = np.zeros(len(free_loads))
    forces = np.concatenate([wrench.reshape(-1), push])
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    np.add.at(balance, column, value * forces[row])
    np.testing.assert_allclose(balance, free_loads, atol=2e-5 * np.abs(wrench).max())
    assert (push >= 0.0).all()


def test_simulations_are_answered_so():
    layout, anchored, loads = loaded(*CASES[0])
    system = SnapFitModel().system(layout, anchored)
    portions = system.solving(3.0 * loads, 1e-3)
    costs = []
    while True:
        try:
            costs.append(next(portions))
        except StopIteration as end:
            found = end.value
            break
    assert found.status is SolveStatus.FALLBACK
    assert "softer joints" in found.message
    assert len(costs) < 10 + sum(SOFTER.values())
    held = anchored
    internal = internal_wrenches(layout, found, system.contacts)
    np.testing.assert_allclose(
        internal[~held], -3.0 * loads[~held], atol=1e-4 * np.abs(internal).max()
    )
