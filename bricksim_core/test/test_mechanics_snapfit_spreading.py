# SPDX-License-Identifier: Apache-2.0
"""Rough overloads: in equilibrium, near to the least ones, at a bounded cost."""

import numpy as np
import pytest
from mechanics_cases import internal_wrenches, single_component, text_structure

from bricksim_core.experiments.bond import running_bond
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.snapfit.balance import balance_of
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.spreading import spread
from bricksim_core.mechanics.types import SolveStatus


def pushed_block(columns, rows, layers, times, axis):
    """A loose block of which one brick in the middle is pushed along an axis, so many times as
    hard as it bears if nothing yields: layout, anchored parts (none) and loads."""
    layout, anchored = single_component(text_structure(running_bond(columns, rows, layers), None))
    push = np.zeros((len(layout.part_ids), 6))
    push[np.linalg.norm(layout.coms - layout.coms.mean(axis=0), axis=1).argmin(), axis] = 1.0
    system = SnapFitModel().system(layout, anchored)
    return layout, anchored, times / system.bonded(push).utilization.max() * push


def over(solution):
    return np.maximum(solution.utilization - 1.0, 0.0)


@pytest.mark.parametrize(("times", "axis"), [(5.0, 1), (20.0, 1), (20.0, 2), (100.0, 0)])
def test_they_are_near_to_the_least_ones(times, axis):
    layout, anchored, loads = pushed_block(3, 5, 14, times, axis)
    exact, rough = (SnapFitModel().system(layout, anchored) for _ in range(2))
    solutions = exact.solve(loads), rough.solve(loads, 1e-3), exact.bonded(loads)
    assert solutions[1].status is SolveStatus.FALLBACK
    assert "upper estimates" in solutions[1].message
    # The exact ones are the least by these squares.
    least, found, bonded = (float(exact.joints.pull @ over(each) ** 2) for each in solutions)
    assert least <= found <= min(2.0 * least, 0.6 * bonded)


def test_forces_are_in_equilibrium():
    layout, anchored, loads = pushed_block(3, 5, 14, 20.0, 2)
    system = SnapFitModel().system(layout, anchored)
    loads, _ = balance_of(layout).taken(loads / PITCHES)
    loads = loads * PITCHES
    found = system.solve(loads, 1e-3)
    assert found.status is SolveStatus.FALLBACK
    internal = internal_wrenches(layout, found, system.contacts)
    np.testing.assert_allclose(internal, -loads, atol=1e-6 * np.abs(loads).max())


def test_what_can_be_carried_is():
    """Bonded, the joints round the brick that is pushed would be overloaded."""
    layout, anchored, loads = pushed_block(3, 5, 14, 5.0, 2)
    system = SnapFitModel().system(layout, anchored)
    structure, equations = system._structure, system._equations
    free_loads, _ = system._free_loads(loads)
    start = structure.displacements(free_loads)
    spreading = spread(structure, equations.every, equations.limits.limit, free_loads, start, 200)
    costs, wrench = [], None
    while wrench is None:
        try:
            costs.append(next(spreading))
        except StopIteration as end:
            wrench = end.value
    assert system.joints.greatest(structure.wrenches(start)).max() == pytest.approx(5.0)
    assert system.joints.greatest(wrench).max() <= 1.0
    assert len(costs) < 40


@pytest.mark.parametrize("times", [3.0, 10.0, 1000.0])
def test_what_they_cost_is_bounded(times):
    """A block of 990 bricks; exactly these take seconds to minutes."""
    layout, anchored, loads = pushed_block(5, 9, 22, times, 1)
    portions = SnapFitModel().system(layout, anchored).solving(loads, 1e-3)
    assert 5.0 < sum(portions) < 60.0


def test_they_are_the_same_from_a_snapshot():
    layout, anchored, loads = pushed_block(3, 5, 14, 20.0, 1)
    system = SnapFitModel().system(layout, anchored)
    system.solve(0.1 * loads, 1e-3)
    snapshot = system.snapshot()
    first = system.solve(loads, 1e-3)
    system.solve(-loads, 1e-3)
    system.restore(snapshot)
    assert np.array_equal(first.utilization, system.solve(loads, 1e-3).utilization)
