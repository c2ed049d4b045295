# SPDX-License-Identifier: Apache-2.0
"""The default model against the point-force formulation solved by Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
from mechanics_cases import data_structure, random_structure, single_component, weights
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
