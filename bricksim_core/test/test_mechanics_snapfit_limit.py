# SPDX-License-Identifier: Apache-2.0
"""Limit analysis by blocks: against HiGHS, against PIQP, and by the certificates of both bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from mechanics_cases import (
    bonded_block,
    random_structure,
    single_component,
    text_structure,
    weights,
)
from scipy.optimize import linprog

from bricksim_core.experiments.bond import running_bond
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.snapfit.interior import minimize
from bricksim_core.parts import PLATE_HEIGHT


def dense_factor(matrix):
    """Factors N D N^T as a dense matrix."""
    full = matrix.toarray()
    return lambda weight: lambda right: np.linalg.solve((full * weight) @ full.T, right)


@pytest.mark.parametrize("seed", range(40))
def test_linear_programs_against_highs(seed):
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(2, 12)), int(rng.integers(14, 40))
    full = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.6)
    full[:, :rows] += np.eye(rows)
    cost = rng.uniform(0.0, 1.0, columns)
    right = full @ np.maximum(rng.normal(size=columns), 0.0)
    if seed % 4 == 0:  # rows that only sum up what is >= 0 cannot make less than nothing
        full[0], right[0] = np.abs(full[0]), -1.0
    matrix = sp.csc_array(full)
    found = minimize(
        matrix, cost, right, dense_factor(matrix), tolerance=1e-7, nothing=0.0, never=1e5
    )
    truth = linprog(cost, A_eq=matrix, b_eq=right, bounds=(0.0, None))
    assert found is not None
    if truth.status == 2:
        assert seed % 4 == 0 and found.value == np.inf
        return
    assert truth.status == 0
    assert found.value == pytest.approx(truth.fun, rel=1e-6, abs=1e-9)
    # The bounds prove themselves: x is possible, no reduced cost is negative.
    assert found.x.min() >= 0.0
    assert matrix @ found.x == pytest.approx(right, abs=1e-7)
    assert (cost - matrix.T @ found.multiplier).min() > -1e-7


def programs(layout, anchored, ground=None):
    """The same program solved by blocks and solved by PIQP."""
    system = SnapFitModel().system(layout, anchored, ground)
    return [system.limit_program(few) for few in (0, 10**6)]


def scaled(layout, anchored, loads):
    """(F,) loads as the program takes them."""
    return (loads / [1.0, 1.0, 1.0, 0.008, 0.008, 0.008])[~anchored].reshape(-1)


@pytest.mark.parametrize("seed", range(30))
def test_blocks_agree_with_piqp(seed):
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, int(rng.integers(2, 60)))
    layout = graph.layout(graph.component_ids[0])
    anchored = layout.part_ids == 0
    ground = None
    if seed % 3 == 0:  # stands on the ground by its plate
        anchored[:] = False
        ground = float(layout.grids[:, 2].min()) * PLATE_HEIGHT
    loads = weights(layout)
    loads[rng.integers(len(loads))] += rng.normal(size=6) * [1, 1, 1, 0.02, 0.02, 0.02]
    blocks, piqp = (
        program.limit_load(scaled(layout, anchored, loads), 1.0)
        for program in programs(layout, anchored, ground)
    )
    assert blocks.factor == pytest.approx(piqp.factor, rel=5e-6)
    assert blocks.mechanism[:1] == piqp.mechanism[:1]


def by_program(system, layout, anchored, loads):
    """The limit load by the whole program, without shortcuts."""
    program = system.limit_program()
    program._stands_by_pushes = lambda _: False
    return program.limit_load(scaled(layout, anchored, loads), 1.0)


def test_joints_that_fail_alone_need_no_program():
    """Random structures, and many bricks by one stud with neighbours that are in the way or not."""
    alone = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_structure(rng, int(rng.integers(4, 30)))
        layout = graph.layout(graph.component_ids[0])
        anchored = layout.part_ids == 0
        loads = weights(layout)
        if seed % 2:
            part = int(rng.integers(len(loads)))
            loads[part] += rng.normal(size=6) * [1, 1, 1, 0.01, 0.01, 0.01]
        system = SnapFitModel().system(layout, anchored)
        limit, truth = system.safety_factor(loads), by_program(system, layout, anchored, loads)
        assert limit.factor == pytest.approx(truth.factor, rel=1e-8)
        assert limit.mechanism[:1] == truth.mechanism[:1] or len(limit.mechanism) > 1
        alone += "_limit_program" not in vars(system)
    assert 20 < alone < 60


@pytest.mark.parametrize(("push", "alone"), [(-1.0, True), (1.0, False)])
def test_a_neighbour_in_the_way_helps(push, alone):
    """Two columns side by side, one of which is pushed away from the other or towards it: away, it
    has its own joints only; towards it, both bear the push."""
    lines = [f"1x4 ({x},0,{z})" for z in range(3) for x in (0, 1)]
    layout, anchored = single_component(text_structure("\n".join(lines)))
    loads = weights(layout)
    loads[int(np.flatnonzero(layout.part_ids == 5)[0]), 0] = push
    system = SnapFitModel().system(layout, anchored)
    limit = system.safety_factor(loads)
    assert limit.factor == pytest.approx(
        by_program(system, layout, anchored, loads).factor, rel=1e-8
    )
    assert ("_limit_program" not in vars(system)) == alone
    utilization = system.solve(loads).utilization.max()
    assert (limit.factor == pytest.approx(1.0 / utilization, rel=1e-6)) == alone


@pytest.mark.parametrize(("x", "never"), [(1, True), (6, True), (11, False), (13, False)])
def test_what_stands_by_pushes_alone_never_fails(x, never):
    """A brick on a wall whose topmost brick at the end is on one below with its half, just so: with
    the centre of the brick, x + 2, beyond x = 12 friction is needed. The same without and with all
    forces that act sideways."""
    lines = [f"4x2 ({4 * i + 2 * (z % 2)},0,{z})" for z in range(4) for i in range(3)]
    layout, anchored = single_component(text_structure("\n".join([*lines, f"4x2 ({x},0,4)"])))
    loads = weights(layout)
    system = SnapFitModel().system(layout, anchored)
    assert (system.safety_factor(loads).factor == np.inf) == never
    by_pushes = system.limit_program()._stands_by_pushes(scaled(layout, anchored, 1e3 * loads))
    assert by_pushes == never
    truth = by_program(system, layout, anchored, loads)
    assert system.safety_factor(loads).factor == pytest.approx(truth.factor, rel=1e-8)


@pytest.mark.parametrize(("layers", "rows"), [(16, 6), (22, 9)])
def test_a_free_block_fails_at_the_brick_that_is_pulled(layers, rows):
    """A brick hangs on a block of 384 and 792 by one connection, which reads its load over
    capacity. Seen from this brick all others would move when it comes off, and what rounding leaves
    unbalanced of each would add up: 1e-3 of the limit in the larger block, which had no factor."""
    layout, anchored = bonded_block(layers, rows)
    loads = -weights(layout)
    loads[0, 2] -= 8.0
    loads[0, 4] += 0.05
    system = SnapFitModel().system(layout, anchored)
    utilization = system.solve(loads).utilization.max()
    assert utilization > 1.1
    limit = system.safety_factor(loads)
    assert limit.factor == pytest.approx(1.0 / utilization, rel=1e-8)
    assert [layout.stud_index[k] for k in limit.mechanism] == [0]


def test_what_the_ground_cannot_hold_at_any_size():
    layout, _ = single_component(text_structure("2x2 (0,0,0)\n2x2 (0,0,1)", None))
    loads = weights(layout)
    loads[1, 0] = 10.0  # sideways, far above friction
    free = np.zeros(2, dtype=bool)
    for program in programs(layout, free, ground=0.0):
        assert program.limit_load(scaled(layout, free, loads), 1.0).factor == 0.0


def test_hundreds_of_bricks_fail_at_the_joint_that_is_pulled():
    """A wall, and a 2x2 brick on top of it that is pulled up: by hand 6.76 N and its weight."""
    structure = text_structure(running_bond(4, 5, 21) + "2x2 (8,4,21)\n", (20, 12))
    layout, anchored = single_component(structure)
    assert len(layout.part_ids) == 422
    loads = weights(layout)
    top = int(np.flatnonzero(layout.part_ids == 421)[0])
    loads[top, 2] += 2.0
    system = SnapFitModel().system(layout, anchored)
    limit = system.safety_factor(loads)
    by_hand = 0.7 * 4.0 * (1.0 + np.sqrt(2.0)) / (2.0 - 9.8 * 0.00115)
    holding = [k for k, hole in enumerate(layout.hole_index) if hole == top]
    assert sorted(limit.mechanism) == holding
    assert limit.factor == pytest.approx(by_hand, rel=5e-6)
