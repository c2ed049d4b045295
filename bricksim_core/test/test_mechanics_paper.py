# SPDX-License-Identifier: Apache-2.0
"""Model "paper" against figures computed with an independent solver, statics and second solvers.

The figures marked "reference" were computed outside this project from the published formulas, with
a dense interior point method (StableLego's cases, small cases) or an ADMM method at 1e-4 (larger
structures).
"""

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from mechanics_cases import (
    STABLELEGO_GRAVITY,
    data_structure,
    internal_wrenches,
    overlap_centre,
    random_structure,
    single_component,
    text_structure,
    weights,
)

from bricksim_core.mechanics import qp
from bricksim_core.mechanics.geometry import face_contacts, stud_contacts
from bricksim_core.mechanics.paper import OVERFLOW_UTILIZATION, PaperModel, PaperParameters
from bricksim_core.mechanics.qp import QpSettings
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.parts import BRICK_HEIGHT, BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout

clarabel: Any = importlib.import_module("clarabel")  # compiled, without type information
EXACT = QpSettings(method="interior")
POINT = 0.7  # friction of one contact point [N]


def solve(layout, anchored, loads, ground=None, **parameters):
    parameters.setdefault("solver", EXACT)
    system = PaperModel(PaperParameters(**parameters)).system(layout, anchored, ground)
    return system.solve(loads)


def highest(structure, **parameters) -> float:
    layout, anchored = single_component(structure)
    solution = solve(layout, anchored, weights(layout), **parameters)
    assert solution.status is SolveStatus.SOLVED
    return float(solution.utilization.max())


# -- reference figures ------------------------------------------------------------------------

# Case: u without the friction constraint, three-stage u, limit-load factor.
STABLELEGO = {
    "external_weight_good": (0.6863, 0.6863, 2.151),
    "stair_19": (1.1219, 1.0016, 1.316),
    "stair_20": (1.2539, 1.0022, 1.177),
    "stick_light": (1.3971, 1.0010, np.inf),
    "stick_heavy": (1.5496, 1.0011, np.inf),
}


@pytest.mark.parametrize("case", STABLELEGO)
def test_stablelego_cases(case):
    structure = data_structure(f"stablelego/{case}.json", baseplate=(32, 32))
    unconstrained, three_stage, factor = STABLELEGO[case]
    assert highest(structure, friction_limits=False) == pytest.approx(unconstrained, abs=1.5e-4)
    assert highest(structure) == pytest.approx(three_stage, abs=1e-4)
    layout, anchored = single_component(structure)
    limit = PaperModel().system(layout, anchored).safety_factor(weights(layout))
    assert limit.factor == pytest.approx(factor, abs=1e-3)
    if np.isfinite(factor):  # the lowest joints fail; the base plate's connection has id 0
        assert set(limit.mechanism) <= {0, 1}


@pytest.mark.parametrize("case", STABLELEGO)
def test_stablelego_cases_with_the_published_solver(case):
    # Where OSQP gives up, the interior point method behind it has to answer.
    structure = data_structure(f"stablelego/{case}.json", baseplate=(32, 32))
    layout, anchored = single_component(structure)
    solution = solve(layout, anchored, weights(layout), solver=QpSettings())
    assert solution.status in (SolveStatus.SOLVED, SolveStatus.FALLBACK)
    assert (solution.status is SolveStatus.FALLBACK) == bool(solution.message)
    assert solution.utilization.max() == pytest.approx(STABLELEGO[case][1], abs=1e-3)


# Structure: u by the code's formula, u by the paper's; ADMM at 1e-4, hence the tolerance.
BRICKGPT = {
    "fewshot_0_ac97ffc6": (0.0202, 0.0342),
    "fewshot_1_f23d3a85": (0.0019, 0.0019),
    "fewshot_3_109567d7": (0.0640, 0.0641),
    "demo_table": (0.0466, 0.0536),
    "demo_sofa": (0.0791, 0.0991),
    "demo_car": (0.0150, 0.0151),
    "mesh2brick_car": (0.0645, 0.0659),
    "texture_guitar": (0.0038, 0.0038),
}


@pytest.mark.parametrize("name", BRICKGPT)
def test_brickgpt_structures(name):
    structure = data_structure(f"brickgpt/{name}.txt", baseplate=(32, 32))
    layout, anchored = single_component(structure)
    for formula, expected in zip(("code", "paper"), BRICKGPT[name], strict=True):
        solution = solve(layout, anchored, weights(layout), formula=formula, solver=QpSettings())
        assert solution.status is SolveStatus.SOLVED
        assert solution.utilization.max() == pytest.approx(expected, rel=0.05, abs=5e-4)


def test_sizes_of_the_published_programs():
    layout, anchored = single_component(
        data_structure("brickgpt/demo_table.txt", baseplate=(32, 32))
    )
    m = PaperModel().system(layout, anchored).matrices
    assert (m.num_variables, m.num_compression, m.num_friction) == (1385, 1072, 976)
    assert m.num_rows == 360 - 6  # the reference keeps the rows of the root
    layout, _ = single_component(data_structure("brickgpt/texture_guitar.txt", baseplate=(32, 32)))
    assert (
        PaperModel().system(layout, anchored[: len(layout.part_ids)]).matrices.num_variables == 482
    )


SMALL = {
    "one column": ("4x2 (4,4,0)\n4x2 (7,4,1)", 0.0136),
    "two columns": ("4x2 (4,4,0)\n4x2 (6,4,1)", 0.0),
    "one stud of a row": ("8x1 (4,4,0)\n8x1 (11,4,1)", 0.0907),
    "stair of 5": ("\n".join(f"4x2 ({2 * i},4,{i})" for i in range(5)), 0.0440),
    "stair of 10": ("\n".join(f"4x2 ({2 * i},4,{i})" for i in range(10)), 0.2640),
    "tower of 5": ("\n".join(f"1x1 (4,4,{i})" for i in range(5)), 0.0),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("friction_limits", [False, True])
def test_small_cases(name, friction_limits):
    text, expected = SMALL[name]
    u = highest(text_structure(text), friction_limits=friction_limits, margin=0.0)
    assert u == pytest.approx(expected, abs=6e-5)


# -- single bricks ----------------------------------------------------------------------------

SIZES = {
    (1, 1): 4,
    (2, 1): 8,
    (4, 1): 16,
    (6, 1): 24,
    (8, 1): 32,
    (2, 2): 12,
    (4, 2): 24,
    (6, 2): 36,
}


def on_plate(length: int, width: int):
    return single_component(text_structure(f"{length}x{width} (4,4,0)"))


def load_on_brick(component: int, value: float) -> np.ndarray:
    loads = np.zeros((2, 6))
    loads[1, component] = value
    return loads


@pytest.mark.parametrize(("length", "width"), SIZES)
@pytest.mark.parametrize("friction_limits", [False, True])
def test_pull_off_capacity_is_the_number_of_points_times_their_friction(
    length, width, friction_limits
):
    layout, anchored = on_plate(length, width)
    capacity = SIZES[length, width] * POINT
    for fraction in (0.3, 0.95, 1.0):
        pull = load_on_brick(2, fraction * capacity)
        solution = solve(layout, anchored, pull, friction_limits=friction_limits, margin=0.0)
        assert solution.utilization[0] == pytest.approx(fraction, abs=1e-5)


# Three-stage u at 1.2 times the capacity.
@pytest.mark.parametrize(
    ("size", "expected"),
    [((1, 1), 1.0002), ((4, 1), 1.0028), ((2, 2), 1.2), ((4, 2), 1.2), ((6, 2), 1.2)],
)
def test_overload_is_graded_only_in_wide_bricks(size, expected):
    layout, anchored = on_plate(*size)
    pull = load_on_brick(2, 1.2 * SIZES[size] * POINT)
    assert solve(layout, anchored, pull).utilization[0] == pytest.approx(expected, abs=1e-4)
    graded = solve(layout, anchored, pull, friction_limits=False)
    assert graded.utilization[0] == pytest.approx(1.2, abs=2e-4)


def test_twist_and_tilt_of_a_2x4():
    layout, anchored = on_plate(4, 2)
    twist, strong_twist = load_on_brick(5, 0.05), load_on_brick(5, 0.2)
    free = {"friction_limits": False}
    assert solve(layout, anchored, twist, formula="paper").utilization == pytest.approx(
        0.421, abs=1e-3
    )
    assert solve(layout, anchored, twist).utilization == pytest.approx(0.0, abs=1e-4)
    paper = solve(layout, anchored, strong_twist, formula="paper", **free)
    assert paper.utilization == pytest.approx(1.811, abs=1e-3)
    assert solve(layout, anchored, strong_twist).utilization == OVERFLOW_UTILIZATION
    about_y, about_x = load_on_brick(4, 0.1), load_on_brick(3, 0.1)
    assert solve(layout, anchored, about_y).utilization == pytest.approx(0.543, abs=1e-3)
    assert solve(layout, anchored, about_x, **free).utilization == pytest.approx(1.086, abs=1e-3)
    assert solve(layout, anchored, about_x).utilization == pytest.approx(1.0053, abs=1e-4)


# -- statics ----------------------------------------------------------------------------------


def test_a_tower_pushed_sideways_carries_the_moment_of_statics_at_each_joint():
    count, push = 20, 0.02
    layout, anchored = single_component(
        text_structure("\n".join(f"2x2 (4,4,{i})" for i in range(count)))
    )
    loads = weights(layout)
    loads[-1, 0] = push  # at the COM of the top brick
    system = PaperModel(PaperParameters(solver=EXACT)).system(layout, anchored)
    solution = system.solve(loads)
    assert solution.imbalance < 1e-6
    weight = STABLELEGO_GRAVITY * BrickShape(2, 2).mass
    for c in range(len(layout.connection_ids)):
        centre = overlap_centre(layout, c)
        total = solution.connection_wrench[c].copy()
        for a, point, force in zip(
            system.contacts.part_a, system.contacts.position, solution.contact_force, strict=True
        ):
            if a == layout.stud_index[c]:
                total[2] -= force
                total[3:] += np.cross(point - centre, [0.0, 0.0, -force])
        carried = count + 1 - layout.hole_index[c]  # bricks above the joint
        moment = push * (carried - 0.5) * BRICK_HEIGHT
        expected = [push, 0, -carried * weight, 0, moment, 0]
        assert total == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_internal_forces_balance_the_loads_on_every_part(seed):
    rng = np.random.default_rng(seed)
    graph = random_structure(rng, 12)
    layout = graph.layout(graph.component_of(0))
    anchored = layout.part_ids == 0
    loads = weights(layout) + 0.05 * rng.normal(size=(len(anchored), 6)) * [
        1,
        1,
        1,
        0.01,
        0.01,
        0.01,
    ]
    system = PaperModel(PaperParameters(solver=EXACT)).system(layout, anchored)
    solution = system.solve(loads)
    rest = internal_wrenches(layout, solution, system.contacts) + loads
    assert rest[~anchored] == pytest.approx(np.zeros((len(rest) - 1, 6)), abs=1e-6)
    assert solution.contact_force.min() > -2e-4
    # The world holds the anchored part: it takes the sum of everything.
    held = rest[anchored][0, :3]
    assert held == pytest.approx(loads[:, :3].sum(axis=0), abs=1e-6)


def test_what_cannot_stand_is_told_by_the_imbalance():
    structure = text_structure("4x2 (0,0,0)\n8x2 (3,0,1)", baseplate=None)
    layout, anchored = single_component(structure)
    assert not anchored.any()
    standing = solve(layout, anchored, weights(layout) * [[1], [0.1]], ground=0.0)
    assert standing.imbalance < 1e-6
    tipping = solve(layout, anchored, weights(layout), ground=0.0)
    assert tipping.imbalance > 0.05
    # Hand check: the joint weight tips the stack when its line passes the lower brick's edge.
    masses = layout.masses
    middle = masses @ layout.coms[:, 0] / masses.sum()
    assert middle > layout.footprints[0, 2] * 0.008
    floating = solve(layout, anchored, weights(layout))
    assert floating.imbalance == pytest.approx(1.0, abs=0.2)


def test_parts_that_the_world_holds_load_nothing():
    layout, _ = on_plate(2, 2)
    solution = solve(layout, np.array([True, True]), load_on_brick(2, 100.0))
    assert solution.utilization.tolist() == [0.0] and solution.imbalance == 0.0


def test_side_by_side_bricks_lean_on_each_other():
    """A row of bricks on one column of studs each: the neighbour's push carries part of a tilt."""
    alone = single_component(text_structure("1x1 (4,4,0)"))
    beside = single_component(text_structure("1x1 (4,4,0)\n1x1 (5,4,0)"))
    tilt = 0.01
    loads = np.zeros((3, 6))
    loads[1, 4] = tilt
    u_alone = solve(*alone, loads[:2], friction_limits=False).utilization[0]
    layout, anchored = beside
    assert layout.coms[1, 0] < layout.coms[2, 0]  # it tilts towards its neighbour
    u_beside = solve(layout, anchored, loads, friction_limits=False).utilization[0]
    assert u_beside < 0.8 * u_alone


# -- invariance -------------------------------------------------------------------------------

CROSS = [
    (4, 2, 5, 5, 0),
    (2, 4, 8, 4, 1),
    (1, 6, 9, 1, 2),
    (8, 1, 4, 2, 3),
    (2, 2, 8, 7, 2),
    (2, 2, 4, 2, 4),
]
"""Bricks h, w, x, y, z of an asymmetric, overloaded structure."""


def loaded(bricks, transform=lambda b: b, order=None):
    """Utilization of each connection by its bricks' numbers, in a transformed structure."""
    order = list(range(len(bricks))) if order is None else order
    lines = [transform(bricks[k]) for k in order]
    text = "\n".join(f"{h}x{w} ({x},{y},{z})" for h, w, x, y, z in lines)
    layout, anchored = single_component(text_structure(text, baseplate=(20, 20)))
    solution = solve(layout, anchored, 20.0 * weights(layout), friction_limits=False)
    number = [-1, *order]
    assert layout.part_ids.tolist() == list(range(len(bricks) + 1))
    return {
        (number[a], number[b]): u
        for a, b, u in zip(
            layout.stud_index.tolist(),
            layout.hole_index.tolist(),
            solution.utilization.tolist(),
            strict=True,
        )
    }


TRANSFORMS = {
    "turned 90": lambda b: (b[1], b[0], 20 - b[3] - b[1], b[2], b[4]),
    "turned 180": lambda b: (b[0], b[1], 20 - b[2] - b[0], 20 - b[3] - b[1], b[4]),
    "turned 270": lambda b: (b[1], b[0], b[3], 20 - b[2] - b[0], b[4]),
    "mirrored": lambda b: (b[0], b[1], 20 - b[2] - b[0], b[3], b[4]),
    "moved": lambda b: (b[0], b[1], b[2] + 3, b[3] + 5, b[4]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_turning_mirroring_and_moving_change_nothing(name):
    expected = loaded(CROSS)
    assert max(expected.values()) > 0.1
    assert loaded(CROSS, TRANSFORMS[name]) == pytest.approx(expected, abs=1e-6)


def test_the_order_of_parts_changes_nothing():
    expected = loaded(CROSS)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(CROSS)).tolist()
        assert loaded(CROSS, order=order) == pytest.approx(expected, abs=1e-6)


# -- the quadratic programs -------------------------------------------------------------------


def clarabel_solve(P, q, equalities, b, inequalities, h):
    """min 1/2 x'Px + q'x, equalities x = b, inequalities x <= h."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.ZeroConeT(len(b)), clarabel.NonnegativeConeT(len(h))]
    stacked = sp.csc_matrix(sp.vstack([equalities, inequalities]))
    upper = sp.csc_matrix(sp.triu(P))
    solver = clarabel.DefaultSolver(upper, q, stacked, np.concatenate([b, h]), cones, settings)
    result = solver.solve()
    assert str(result.status) in ("Solved", "AlmostSolved")
    return np.array(result.x)


@pytest.mark.parametrize("seed", range(6))
def test_the_three_programs_agree_with_clarabel(seed):
    rng = np.random.default_rng(100 + seed)
    graph = random_structure(rng, 8)
    layout = graph.layout(graph.component_of(0))
    anchored = layout.part_ids == 0
    loads = weights(layout)
    loads[-1] += [0.1, -0.2, 3.0, 0.002, 0.001, 0.004]  # overloads some
    parameters = PaperParameters(solver=EXACT)
    system = PaperModel(parameters).system(layout, anchored)
    m = system.matrices
    required = -loads[~anchored] / [1, 1, 1, m.length, m.length, m.length]
    required = required.reshape(-1)

    n, rows, c = m.num_variables, m.num_rows, m.num_connections
    x = clarabel_solve(
        sp.block_diag([sp.csc_matrix((n, n)), sp.identity(rows)]),
        np.concatenate([np.zeros(n), -required]),
        sp.hstack([m.equilibrium, -sp.identity(rows)]),
        np.zeros(rows),
        sp.hstack([-m.compression, sp.csc_matrix((m.num_compression, rows))]),
        np.zeros(m.num_compression),
    )
    balanceable = m.equilibrium @ x[:n]
    margin = parameters.margin
    x = clarabel_solve(
        sp.block_diag([parameters.relaxation_regularization * sp.identity(n), sp.identity(c)]),
        np.zeros(n + c),
        sp.hstack([m.equilibrium, sp.csc_matrix((rows, c))]),
        balanceable,
        sp.block_array([[-m.compression, None], [m.friction, -m.excess], [None, -sp.identity(c)]]),
        np.concatenate(
            [
                np.full(m.num_compression, margin),
                np.full(m.num_friction, 1.0 - margin),
                np.zeros(c),
            ]
        ),
    )
    excess = np.maximum(x[n:], 0.0)
    x = clarabel_solve(
        m.energy,
        np.zeros(n),
        m.equilibrium,
        balanceable,
        sp.vstack([-m.compression, m.friction]),
        np.concatenate([np.full(m.num_compression, margin), 1.0 + m.excess @ excess]),
    )
    solution = system.solve(loads)
    num_contacts = len(solution.contact_force)
    assert solution.contact_force == pytest.approx(x[:num_contacts], abs=1e-3)
    expected = system._connection_wrench(x[num_contacts:].reshape(-1, 9))
    assert solution.connection_wrench == pytest.approx(expected, abs=1e-3)
    slack = np.linalg.norm(required - balanceable) / np.linalg.norm(required)
    assert solution.imbalance == pytest.approx(slack, abs=1e-6)


def test_energy_is_half_the_sum_of_squared_point_forces():
    """Q from its definition: with unit weights 1/2 x'Qx = 1/2 sum |F|^2 over all points."""
    graph = random_structure(np.random.default_rng(5), 6)
    layout = graph.layout(graph.component_of(0))
    system = PaperModel().system(layout, layout.part_ids == 0)
    m, studs = system.matrices, stud_contacts(layout)
    contacts = 4 * len(face_contacts(layout))
    x = np.random.default_rng(6).normal(size=m.num_variables)
    expected = 0.05 * np.sum(x[:contacts] ** 2)
    wrench = np.zeros((len(studs.pattern), 6))
    for c in range(len(studs.pattern)):
        points = studs.position[studs.connection == c] - studs.centre[c]
        whitened = x[contacts + 9 * c : contacts + 9 * c + 9].reshape(3, 3)
        values, axes = np.linalg.eigh(np.cov(points[:, :2].T, bias=True))
        slopes = whitened[:, 1:] @ (axes @ np.diag(values**-0.5) @ axes.T)
        fields = whitened[:, :1] + slopes @ points[:, :2].T  # axial, x, y
        forces = fields[[1, 2, 0]].T
        expected += 0.5 * np.sum(forces**2)
        wrench[c] = [*forces.sum(axis=0), *np.cross(points, forces).sum(axis=0)]
    assert 0.5 * x @ (m.energy @ x) == pytest.approx(expected, rel=1e-9)
    found = system._connection_wrench(x[contacts:].reshape(-1, 9))
    assert found == pytest.approx(wrench, abs=1e-9)


# -- solvers ----------------------------------------------------------------------------------


def pushed_stair():
    layout, anchored = single_component(
        data_structure("stablelego/stair_19.json", baseplate=(32, 32))
    )
    return layout, anchored, weights(layout)


def test_no_convergence_is_reported_and_answered_by_the_interior_point_method():
    layout, anchored, loads = pushed_stair()
    hurried = solve(layout, anchored, loads, solver=QpSettings(max_iterations=10))
    assert hurried.status is SolveStatus.FALLBACK
    assert "projection: OSQP maximum iterations reached after 10 iterations" in hurried.message
    exact = solve(layout, anchored, loads)
    assert hurried.utilization == pytest.approx(exact.utilization, abs=1e-5)


def test_if_no_solver_answers_nothing_is_concluded(monkeypatch):
    monkeypatch.setattr(qp, "solve_interior", lambda P, q, *_: (np.zeros_like(q), "numerics"))
    layout, anchored, loads = pushed_stair()
    solution = solve(layout, anchored, loads, solver=QpSettings(max_iterations=10))
    assert solution.status is SolveStatus.FAILED
    assert "interior point numerics" in solution.message
    assert np.isnan(solution.utilization).all() and np.isnan(solution.imbalance)


def test_warm_starts_change_the_answer_within_the_tolerance_only():
    layout, anchored = single_component(text_structure(SMALL["stair of 10"][0]))
    warm = PaperModel().system(layout, anchored)
    for scale in (1.0, 1.02, 1.5, 0.7):
        loads = scale * weights(layout)
        cold = PaperModel().system(layout, anchored).solve(loads)
        assert warm.solve(loads).utilization == pytest.approx(cold.utilization, rel=0.02, abs=1e-3)


def test_a_restored_system_repeats_its_answers_bit_by_bit():
    layout, anchored = single_component(text_structure(SMALL["stair of 10"][0]))
    system = PaperModel().system(layout, anchored)
    system.solve(weights(layout))
    system.solve(1.1 * weights(layout))
    snapshot = system.snapshot()
    first = [system.solve(s * weights(layout)) for s in (1.3, 0.9)]
    system.solve(5.0 * weights(layout))
    system.restore(snapshot)
    again = [system.solve(s * weights(layout)) for s in (1.3, 0.9)]
    other = PaperModel().system(layout, anchored)
    other.restore(snapshot)
    elsewhere = [other.solve(s * weights(layout)) for s in (1.3, 0.9)]
    for a, b, c in zip(first, again, elsewhere, strict=True):
        assert np.array_equal(a.utilization, b.utilization)
        assert np.array_equal(a.connection_wrench, b.connection_wrench)
        assert np.array_equal(a.utilization, c.utilization)


def test_a_part_alone():
    graph = BrickTopologyGraph()
    graph.add_part(BrickShape(4, 2))
    layout: ComponentLayout = graph.layout(graph.component_of(0))
    loads = weights(layout)
    on_ground = solve(layout, np.array([False]), loads, ground=0.0)
    assert on_ground.imbalance < 1e-6
    assert on_ground.contact_force.sum() == pytest.approx(-loads[0, 2])
    assert solve(layout, np.array([False]), loads).imbalance == pytest.approx(1.0)
