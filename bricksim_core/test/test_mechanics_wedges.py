# SPDX-License-Identifier: Apache-2.0
"""Contacts that press against each other: least forces, and pieces that fall into each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import piqp
import pytest
from engine_suite import total_energy
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.engines.protocol import Contacts, StepReport
from bricksim_core.events import Cause
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.bodies import bodies_of
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.mechanics.wedges import least_forces, relieved, without_wedges
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.topology.graph import BrickTopologyGraph


def resultant_of(arms, forces) -> np.ndarray:
    return np.concatenate([forces.sum(axis=0), np.cross(arms, forces).sum(axis=0)])


def mechanical_energy(simulator: Simulator) -> float:
    """Kinetic energy and that of height [J]."""
    result = simulator.result()
    shapes = [simulator.graph.part(p).shape for p in result.part_ids.tolist()]
    masses = np.array([shape.mass for shape in shapes])
    coms = np.array([shape.com for shape in shapes])
    heights = result.world_T_part[:, 2, 3] + np.einsum(
        "pj,pj->p", result.world_T_part[:, 2, :3], coms
    )
    return total_energy(simulator) + STANDARD_GRAVITY * float(masses @ heights)


def by_interior_points(normals, arms, resultant) -> np.ndarray:
    """The same program, with three unknowns per contact and its equations as they stand."""
    count = len(normals)
    balance = np.zeros((6, 3 * count))
    for c, arm in enumerate(arms):
        x, y, z = arm
        balance[:3, 3 * c : 3 * c + 3] = np.eye(3)
        balance[3:, 3 * c : 3 * c + 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    weight = np.zeros((3 * count, 3 * count))
    pushing = np.zeros((count, 3 * count))
    for c, normal in enumerate(normals):
        along = np.outer(normal, normal)
        weight[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] = along + (np.eye(3) - along) / 0.3**2
        pushing[c, 3 * c : 3 * c + 3] = normal
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.setup(
        weight, np.zeros(3 * count), balance, resultant, pushing, np.zeros(count),
        np.full(count, 1e30),
    )  # fmt: skip
    assert solver.solve() == piqp.PIQP_SOLVED
    return np.asarray(solver.result.x).reshape(-1, 3)


@given(st.integers(0, 2**32 - 1), st.integers(4, 40))
@settings(max_examples=60, deadline=None)
def test_least_forces_are_those_of_an_interior_point_method(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    normals = random.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    arms = random.normal(size=(count, 3))
    resultant = resultant_of(arms, random.exponential(size=(count, 1)) * normals)
    there, found = least_forces(normals, arms, resultant)
    assert there
    size = np.linalg.norm(resultant)
    np.testing.assert_allclose(resultant_of(arms, found), resultant, atol=1e-8 * size)
    assert np.einsum("ci,ci->c", normals, found).min() >= -1e-12 * size
    expected = by_interior_points(normals, arms, resultant)
    np.testing.assert_allclose(found, expected, atol=1e-6 * size)


def test_a_tooth_in_its_gap_carries_what_moves_it() -> None:
    """Both sides press with 1000 N, one of them with 2 N more, at four places each."""
    places = np.array([(x, 0.0, z) for x in (-0.004, 0.004) for z in (0.0, 0.01)])
    sides = np.array([(1.0, 0.0, 0.0)] * 2 + [(-1.0, 0.0, 0.0)] * 2)
    forces = np.array([501.0, 501.0, 500.0, 500.0])[:, None] * sides
    least = relieved(sides, places, forces)
    np.testing.assert_allclose(least, [(1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)], atol=1e-9)
    alone = relieved(sides[:2], places[:2], forces[:2])
    np.testing.assert_array_equal(alone, forces[:2])


def test_only_steps_with_wedges_are_relieved() -> None:
    """A tooth in its gap, tight in the second of three steps and loose in the others."""
    graph = BrickTopologyGraph()
    parts = [graph.add_part(BrickShape(2, 2)) for _ in range(2)]
    bodies = bodies_of({graph.component_of(p): graph.layout(graph.component_of(p)) for p in parts})
    bodies = replace(bodies, mass=np.array([graph.part(p).shape.mass for p in parts]))
    places = np.array([(x, 0.0, z) for x in (-0.004, 0.004) for z in (0.0, 0.01)])
    sides = np.array([(1.0, 0.0, 0.0)] * 2 + [(-1.0, 0.0, 0.0)] * 2)
    reports = []
    for tightness in (1e-4, 1.0, 1e-4):
        sizes = tightness * np.array([5.01, 5.01, 5.0, 5.0])
        lower, upper = (np.full(4, part) for part in parts)
        shapes, impulses = np.zeros(4, dtype=np.int64), sizes[:, None] * sides
        contacts = Contacts(
            lower, upper, shapes, shapes, shapes - 1, ("ground",), places, sides, sizes, impulses
        )
        poses, twists = np.tile(np.eye(4), (2, 1, 1)), np.zeros((2, 6))
        reports.append(StepReport(0.0, 0.01, np.arange(2), poses, twists, poses, twists, contacts))
    steps = steps_of(reports)
    found = without_wedges(steps, bodies).contacts
    expected = steps.contacts.impulse.copy()
    expected[4:8] = 0.01 * np.array([(1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)])
    np.testing.assert_allclose(found.impulse, expected, atol=1e-9)
    np.testing.assert_allclose(found.normal_impulse, np.abs(expected[:, 0]), atol=1e-9)


@pytest.mark.parametrize("height", [0.3, 0.5])
def test_pieces_that_fall_into_each_other_do_not_burst(height: float) -> None:
    """A block falls on its edge, breaks along its bond, and the halves' teeth miss their gaps."""
    block = parse_structure(running_bond(3, 5, 14), baseplate=None)
    simulator = Simulator()
    pose = standing(block, rotation_from_degrees(45.0, 0.0, 20.0), height)
    simulator.spawn(block, pose, fixed=())
    before, breaks = mechanical_energy(simulator), 0
    for _ in range(round(60 * (0.25 + height))):
        events = simulator.step().events
        breaks += sum(event.cause is Cause.OVERLOAD for event in events)
        assert mechanical_energy(simulator) <= before * (1.0 + 1e-6)
    assert 0 < breaks < 60
