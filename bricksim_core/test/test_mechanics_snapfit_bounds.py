# SPDX-License-Identifier: Apache-2.0
"""Answers that are given again: certain to the tolerance, and only where nothing is overloaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mechanics_cases import random_structure, weights

from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.detector import BreakageDetector, BreakageThresholds
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.snapfit.bounds import ChangeBound
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.topology.layout import ComponentLayout

MODEL = SnapFitModel()


def random_case(seed: int):
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(3, 25)))
    (component,) = graph.component_ids
    layout = graph.layout(component)
    anchored = (layout.part_ids == 0) & bool(seed % 2)
    return rng, layout, anchored


def some_loads(rng: np.random.Generator, layout: ComponentLayout, size: float) -> np.ndarray:
    return size * rng.normal(size=(len(layout.part_ids), 6)) * [1, 1, 1, 0.01, 0.01, 0.01]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_changes_by_more_than_the_bound(seed):
    """Utilizations and displacements of bonded structures, for all sorts of changes."""
    rng, layout, anchored = random_case(seed)
    system = MODEL.system(layout, anchored)
    bound = ChangeBound(layout, system._held, system.joints)
    for _ in range(4):
        change = some_loads(rng, layout, 1.0) * (rng.random((len(anchored), 1)) < 0.4)
        first, second = some_loads(rng, layout, 0.3), np.zeros_like(change)
        second = first + change
        free, _ = system._free_loads(change)
        every = np.zeros(6 * len(anchored))
        every[system._structure.free] = free
        root = bound.root_energy(every.reshape(-1, 6))
        before = system.bonded(first).utilization
        after = system.bonded(second).utilization
        assert np.all(np.abs(after - before) <= bound.per_utilization * root * (1 + 1e-9) + 1e-12)

        moved = np.zeros(6 * len(anchored))
        moved[system._structure.free] = system._structure.displacements(free)
        shifts = np.linalg.norm(moved.reshape(-1, 6)[:, :3], axis=1)
        assert shifts.max() <= bound.per_displacement * root


@pytest.mark.parametrize("seed", range(40))
def test_what_is_given_again_is_right_to_the_tolerance(seed):
    """Against a cold solve, for changes of many sizes; far from the bound it is solved for."""
    rng, layout, anchored = random_case(seed)
    base = 0.2 * weights(layout) + some_loads(rng, layout, 0.002)
    for size in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        system = MODEL.system(layout, anchored)
        system.solve(base)
        loads = base + some_loads(rng, layout, size)
        answer = system.solve(loads, tolerance=1e-3)
        cold = MODEL.system(layout, anchored).solve(loads)
        assert answer.utilization == pytest.approx(cold.utilization, abs=1e-3)
        assert answer.status in (SolveStatus.REUSED, SolveStatus.SOLVED)
        exact = system.solve(loads, tolerance=0.0)
        if answer.status is SolveStatus.REUSED:
            assert exact.status is SolveStatus.SOLVED
            assert cold.utilization.max(initial=0.0) <= 1.0
        assert exact.utilization == pytest.approx(cold.utilization, abs=1e-8)


def tower(bricks: int) -> tuple[ComponentLayout, np.ndarray]:
    lines = [f"4x2 ({z % 2},0,{z})" for z in range(bricks)]
    graph = parse_structure("\n".join(lines), baseplate=None).graph
    (component,) = graph.component_ids
    layout = graph.layout(component)
    return layout, np.arange(bricks) == 0


def test_small_changes_are_answered_from_memory_and_large_ones_are_not():
    layout, anchored = tower(10)
    loads = weights(layout)
    system = MODEL.system(layout, anchored)
    first = system.solve(loads)
    assert first.status is SolveStatus.SOLVED
    jitter = loads.copy()
    jitter[9, 2] -= 1e-6
    again = system.solve(jitter, tolerance=1e-3)
    assert again.status is SolveStatus.REUSED
    assert np.array_equal(again.utilization, first.utilization)
    pushed = loads.copy()
    pushed[9, 0] += 0.01
    assert system.solve(pushed, tolerance=1e-3).status is SolveStatus.SOLVED


def test_small_steps_do_not_add_up():
    """Many small steps: never further from the truth than the tolerance."""
    layout, anchored = tower(10)
    loads = weights(layout)
    system = MODEL.system(layout, anchored)
    system.solve(loads)
    seen = set()
    for _ in range(300):
        loads[9, 0] += 2e-5
        answer = system.solve(loads, tolerance=1e-3)
        seen.add(answer.status)
        cold = MODEL.system(layout, anchored).solve(loads)
        assert answer.utilization == pytest.approx(cold.utilization, abs=1e-3)
    assert seen == {SolveStatus.REUSED, SolveStatus.SOLVED}


def test_what_is_close_to_its_limit_is_not_given_again():
    """2 x (1 + sqrt 2) x ... of friction, all but a hair of it used: an overload must show."""
    layout, anchored = tower(2)
    system = MODEL.system(layout, anchored)
    strength = float(system.strength[0])
    loads = np.zeros((2, 6))
    loads[1, 2] = strength * (1.0 - 1e-7)
    tilt = system.solve(loads).utilization[0]
    loads *= (1.0 - 1e-7) / tilt
    assert system.solve(loads).utilization[0] == pytest.approx(1.0 - 1e-7, abs=1e-9)
    loads *= 1.0 + 2e-6
    over = system.solve(loads, tolerance=1e-3)
    assert over.status is SolveStatus.SOLVED and over.utilization[0] > 1.0


def test_detector_gives_answers_again_as_its_threshold_says():
    layout, anchored = tower(10)
    loads = weights(layout)
    jitter = loads + np.where(np.arange(10)[:, None] == 9, 1e-6, 0.0) * [0, 0, 1, 0, 0, 0]
    for thresholds, status in (
        (BreakageThresholds(), SolveStatus.REUSED),
        (BreakageThresholds(reuse=0.0), SolveStatus.SOLVED),
    ):
        detector = BreakageDetector(MODEL, replace(thresholds, cooldown=0.0))
        detector.examine(0, layout, anchored, loads, 1 / 60)
        finding = detector.examine(0, layout, anchored, jitter, 1 / 60)
        assert finding.solution is not None and finding.solution.status is status
