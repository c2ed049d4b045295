# SPDX-License-Identifier: Apache-2.0
"""Small structures: the dense program against the other solvers, theory and limit analysis."""

from __future__ import annotations

import numpy as np
import pytest
from mechanics_cases import (
    internal_wrenches,
    random_structure,
    single_component,
    text_structure,
    weights,
)
from snapfit_truth import PointForces
from test_mechanics_snapfit_newton import pushed_wall

from bricksim_core.mechanics.snapfit import SnapFitModel, SnapFitSystem
from bricksim_core.topology.layout import ComponentLayout


def compact(system: SnapFitSystem, loads: np.ndarray):
    """What the dense program alone says."""
    free_loads, _ = system._free_loads(loads)
    assert system._compact is not None
    return system._compact.solve(free_loads, system._structure.displacements(free_loads))


def random_case(seed: int) -> tuple[ComponentLayout, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(4, 18)))
    (component,) = graph.component_ids
    layout = graph.layout(component)
    anchored = np.arange(len(layout.part_ids)) == 0
    loads = rng.normal(size=(len(layout.part_ids), 6)) * [1, 1, 1, 0.01, 0.01, 0.01]
    return layout, anchored, float(rng.choice([0.5, 1.5, 4.0])) * loads


def test_agrees_with_the_search_on_random_structures(monkeypatch):
    answered = overloaded = 0
    for seed in range(40):
        layout, anchored, loads = random_case(seed)
        system = SnapFitModel().system(layout, anchored)
        found = compact(system, loads)
        if found is None:
            continue
        monkeypatch.setattr("bricksim_core.mechanics.snapfit.system.COMPACT", 0)
        other = SnapFitModel().system(layout, anchored)
        expected = other.solve(loads)
        monkeypatch.undo()
        wrench = other.joints.greatest(found.wrench[: len(other.joints)])
        most = max(1.0, float(expected.utilization.max(initial=0.0)))
        assert wrench == pytest.approx(expected.utilization, abs=1e-5 * most)
        answered += 1
        overloaded += most > 1.1
    assert answered > 34 and overloaded > 20


@pytest.mark.parametrize(("wide", "high"), [(2, 3), (3, 3), (5, 2), (3, 5)])
@pytest.mark.parametrize("share", [0.97, 0.99, 1.01, 1.5])
def test_walls_pushed_along_stand_up_to_their_limit(wide, high, share):
    """Their bricks have to slide by side gaps before others take over: softness that is too high
    leaves an overload below the limit. Each part is in balance."""
    layout, anchored, loads = pushed_wall(wide, high, share)
    system = SnapFitModel().system(layout, anchored)
    found = compact(system, loads)
    assert found is not None
    solution = system.solve(loads)
    most = solution.utilization.max()
    assert most == pytest.approx(1.0, abs=2e-6) if share < 1.0 else most > 1.0 + 0.1 * (share - 1)
    total = internal_wrenches(layout, solution, system.contacts) + loads
    assert np.abs(total[~anchored]).max() < 1e-6 * np.abs(loads).max()


def test_agrees_with_the_formulation_by_points_where_side_gaps_close():
    layout, anchored, loads = pushed_wall(3, 3, 1.3)
    system = SnapFitModel().system(layout, anchored)
    found = compact(system, loads)
    assert found is not None and found.push.max() > 0.0
    _, wrench = PointForces(layout, anchored).elastic_plastic(loads)
    utilization = system.joints.greatest(found.wrench)
    assert utilization == pytest.approx(system.joints.utilization(wrench), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("arm", "column"), [(8, 1), (12, 8), (20, 10)])
def test_an_overloaded_cantilever_reads_load_over_capacity(arm, column):
    """Statically determinate: all moments go by the joint below the arm. The longer it is, the more
    would be lost by rounding (2e-6 of the longest one)."""
    bricks = [f"2x2 (0,0,{k})" for k in range(column)]
    bricks += [f"4x2 ({2 * k},0,{column + k % 2})" for k in range(arm)]
    layout, anchored = single_component(text_structure("\n".join(bricks)))
    light = SnapFitModel().system(layout, anchored).solve(0.1 * weights(layout)).utilization
    for level in (1.5, 3.0, 10.0):
        system = SnapFitModel().system(layout, anchored)
        found = compact(system, level * 0.1 / light.max() * weights(layout))
        assert found is not None
        assert system.joints.greatest(found.wrench).max() == pytest.approx(level, rel=1e-9)


def test_softness_that_goes_slowly_is_summed_up():
    """A box just below its limit: each solve leaves two thirds of the softness, twenty too much."""
    lines = ["8x2 (0,0,0)", "8x2 (0,6,0)", "2x4 (0,2,0)", "2x4 (6,2,0)", "2x8 (0,0,1)"]
    lines += ["2x8 (6,0,1)", "4x2 (2,0,1)", "4x2 (2,6,1)", "8x4 (0,0,2)", "8x4 (0,4,2)"]
    layout, anchored = single_component(text_structure("\n".join(lines)))
    loads = weights(layout, 9.81)
    loads[layout.part_ids == 1, 0] += 3.0
    loads[layout.part_ids == 9, 2] -= 20.0
    system = SnapFitModel().system(layout, anchored)
    found = compact(system, 0.98 * system.safety_factor(loads).factor * loads)
    assert found is not None
    assert system.joints.greatest(found.wrench).max() <= 1.0 + 1e-6


def test_answers_do_not_hang_on_what_was_solved_before():
    layout, anchored, loads = random_case(3)
    used, fresh = (SnapFitModel().system(layout, anchored) for _ in range(2))
    used.solve(-2.0 * loads)
    assert np.array_equal(used.solve(loads).utilization, fresh.solve(loads).utilization)
