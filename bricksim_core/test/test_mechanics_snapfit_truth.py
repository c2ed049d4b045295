# SPDX-License-Identifier: Apache-2.0
"""The default model against the point-force formulation solved by Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
from mechanics_cases import (
    data_structure,
    random_structure,
    single_component,
    text_structure,
    weights,
)
from snapfit_truth import PointForces

from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.types import SolveStatus

FILES = [
    "bricksim/demo_assembly_structure1.json",
    "stablelego/external_weight_good.json",
    "stablelego/stair_19.json",
    "stablelego/stair_20.json",
    "stablelego/stick_heavy.json",
    "stablelego/stick_light.json",
    "brickgpt/demo_car.txt",
    "brickgpt/demo_sofa.txt",
    "brickgpt/demo_table.txt",
    "brickgpt/fewshot_0_ac97ffc6.txt",
    "brickgpt/fewshot_1_f23d3a85.txt",
    "brickgpt/fewshot_3_109567d7.txt",
    "brickgpt/mesh2brick_car.txt",
    "brickgpt/texture_guitar.txt",
]


def assert_agrees(layout, anchored, loads):
    system = SnapFitModel().system(layout, anchored)
    solution = system.solve(loads)
    limit = system.safety_factor(loads)
    truth = PointForces(layout, anchored)
    least = truth.least_level(loads)
    overload, wrench = truth.elastic_plastic(loads)
    utilization = system.joints.utilization(wrench)
    largest = max(1.0, float(utilization.max()))

    assert solution.status is SolveStatus.SOLVED
    assert solution.utilization == pytest.approx(utilization, rel=1e-5, abs=1e-5 * largest)
    clear = overload > 0.05 * largest
    assert solution.utilization[clear] == pytest.approx(1.0 + overload[clear], rel=1e-3)
    if np.isinf(limit.factor):
        assert least < 1e-7
    else:
        assert limit.factor * least == pytest.approx(1.0, rel=1e-5)
    # The verdict is that a feasible distribution exists; within 1e-5 of the limit both may err.
    if abs(least - 1.0) > 1e-5:
        assert (solution.utilization.max(initial=0.0) <= 1.0 + 1e-6) == (least <= 1.0)
    return largest


@pytest.mark.parametrize("name", FILES)
def test_files(name):
    layout, anchored = single_component(data_structure(name))
    anchored[0] = True  # the plate, which a topology file does not hold
    assert_agrees(layout, anchored, weights(layout))


def random_case(seed: int):
    """A random structure, its weights and (for most) one random wrench on one part."""
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(2, 18)))
    (component,) = graph.component_ids
    layout = graph.layout(component)
    loads = weights(layout)
    size = float(rng.choice([0.0, 1.0, 3.0, 10.0]))
    loads[rng.integers(len(loads))] += size * rng.normal(size=6) * [1, 1, 1, 0.02, 0.02, 0.02]
    return layout, layout.part_ids == 0, loads


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_random_structures(first):
    overloaded = [assert_agrees(*random_case(seed)) > 1.0 for seed in range(first, first + 50)]
    assert 10 < sum(overloaded) < 40


@pytest.mark.parametrize("times", [1.0, 60.0])
def test_studs_sideways(times):
    """Weight along the plate, and at any angle, up to sixty times what it is: bearing and tipping
    decide instead of the pull."""
    worst = []
    for seed in range(10):
        layout, anchored, loads = random_case(seed)
        down = [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.6, 0.0, 0.8)][seed % 3]
        loads[:] = 0.0
        loads[:, :3] = times * 9.8 * layout.masses[:, None] * down
        worst.append(assert_agrees(layout, anchored, loads))
    assert (max(worst) > 1.0) == (times > 1.0)


def wall(wide: int, high: int):
    """A wall of 4x2 bricks in running bond, whose lowest layer is held, and its weights."""
    lines = [f"4x2 ({4 * i + 2 * (z % 2)},0,{z})" for z in range(high) for i in range(wide)]
    layout, _ = single_component(text_structure("\n".join(lines), None))
    return layout, layout.grids[:, 2] == layout.grids[:, 2].min(), weights(layout)


@pytest.mark.parametrize("wide, high", [(10, 6), (20, 10)])
def test_push_along_a_wall(wide, high):
    """Near the limit of a push that closes gap after gap the verdict is what statics says."""
    layout, anchored, loads = wall(wide, high)
    x, _, z = layout.coms.T
    middle = int(np.lexsort((np.abs(x - x.mean()), -z))[0])
    loads[middle, 0] += 100.0
    level = PointForces(layout, anchored).least_level(loads)
    for factor in (0.97, 0.999, 1.001):
        solution = SnapFitModel().system(layout, anchored).solve(factor / level * loads)
        assert solution.status is SolveStatus.SOLVED
        assert (solution.utilization.max() <= 1.0 + 1e-6) == (factor <= 1.0)


@pytest.mark.parametrize("factor", [0.98, 1.5, 5.0])
def test_pull_at_a_wall_of_many_bricks(factor):
    """One joint alone holds what is pulled: it reads the multiple of its limit."""
    layout, anchored, loads = wall(20, 12)
    end = int(np.lexsort((layout.coms[:, 0], layout.coms[:, 2]))[-1])
    loads[end, 2] += 1.0
    level = PointForces(layout, anchored).least_level(loads)
    solution = SnapFitModel().system(layout, anchored).solve(factor / level * loads)
    assert solution.status is SolveStatus.SOLVED
    assert solution.utilization.max() == pytest.approx(max(factor, 1.0), rel=1e-5)


@pytest.mark.parametrize("bricks", [60, 120, 240])
def test_long_cantilever(bricks):
    """An arm that hangs on one brick, up to eight times too long: its worst joint reads the level
    that statics needs."""
    lines = [f"4x2 ({2 * k},0,{k % 2})" for k in range(bricks)]
    layout, _ = single_component(text_structure("\n".join(lines), None))
    anchored = np.arange(bricks) == 0
    loads = weights(layout)
    level = PointForces(layout, anchored).least_level(loads)
    solution = SnapFitModel().system(layout, anchored).solve(loads)
    assert solution.status is SolveStatus.SOLVED
    assert solution.utilization.max() == pytest.approx(max(level, 1.0), rel=1e-6)


@pytest.mark.parametrize("times", [1.2, 2.0, 5.0])
@pytest.mark.parametrize("bricks", [100, 300])
def test_long_stair(bricks, times):
    """By hand: the lowest joint bears the moment of all others about the edge of the first brick.
    That of the highest hundreds of bricks is thousands of times what a brick weighs."""
    lines = [f"4x2 ({2 * k},0,{k})" for k in range(bricks)]
    layout, _ = single_component(text_structure("\n".join(lines), None))
    arms = 0.008 * (2.0 * np.arange(1, bricks) - 2.0)
    moment = -float(weights(layout)[0, 2] * arms.sum())
    strength = 2.0 * (1.0 + np.sqrt(2.0)) * 0.7 * (0.004 + 0.012)
    loads = times * strength / moment * weights(layout)
    solution = SnapFitModel().system(layout, np.arange(bricks) == 0).solve(loads)
    assert solution.utilization[0] == pytest.approx(times, rel=1e-8)
    assert solution.utilization.max() == solution.utilization[0]
