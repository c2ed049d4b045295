# SPDX-License-Identifier: Apache-2.0
"""The compiled program of sliding bodies against a solver that knows nothing of it."""

import numpy as np
import pytest
from mechanics_cases import random_structure, weights

from bricksim_core.mechanics import sliding
from bricksim_core.mechanics.friction_packed import nowhere, packed, unpacked
from bricksim_core.mechanics.friction_program import (
    Contacts,
    Elimination,
    FrictionJoints,
    Links,
    Program,
)
from bricksim_core.mechanics.geometry import face_contacts
from bricksim_core.mechanics.portions import at_once
from bricksim_core.mechanics.sliding import Parts, bodies_between
from bricksim_core.mechanics.snapfit import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.joints import joints_of
from bricksim_core.mechanics.snapfit.pushes import pushes_of


@pytest.mark.parametrize("seed", range(60))
def test_bodies_move_as_with_another_solver(seed, monkeypatch):
    """Random structures, held and free, from rest and moving, under loads that nothing or
    everything yields to, with single studs and contacts between them."""
    rng = np.random.default_rng(seed)
    constants = SnapFitConstants()
    graph = random_structure(rng, int(rng.integers(2, 45 if seed % 10 == 0 else 14)))
    layout = graph.layout(graph.component_of(0))
    anchored = (layout.part_ids == 0) & (seed % 3 > 0)
    loads = weights(layout)
    hit = rng.integers(0, len(loads), 3)
    loads[hit] += 10 ** rng.uniform(-1, 3) * rng.normal(size=(3, 6)) * [1, 1, 1, 0.01, 0.01, 0.01]
    parts = Parts.of(layout, anchored, loads)
    joints = joints_of(layout, constants)
    pushes = pushes_of(face_contacts(layout), joints.lower, joints.upper, constants)
    yielding = rng.random(len(joints)) < rng.uniform(0.3, 1.0)
    yielding[0] = True
    bodies = bodies_between(parts, joints, pushes, yielding)
    if bodies is None:
        bodies = bodies_between(parts, joints, pushes, np.ones(len(joints), dtype=bool))
    assert bodies is not None
    speed = np.zeros(6 * bodies.count)
    if seed % 2:
        speed = 0.3 * rng.normal(size=len(speed))
    span = 10 ** rng.uniform(-4, -2)
    found = at_once(bodies.moved(speed, span))
    monkeypatch.setattr(sliding, "_PORTION", 0.0)
    stepwise = bodies_between(parts, joints, pushes, between(bodies, joints))
    assert stepwise is not None
    costs = list(stepwise.moved(speed, span))
    again = at_once(stepwise.moved(speed, span))
    assert (again.speed == found.speed).all() and (again.wrench == found.wrench).all()
    assert len(costs) > 2

    monkeypatch.setattr(sliding, "moved", lambda *_: (-1, False, None, None))
    same = bodies_between(parts, joints, pushes, between(bodies, joints))
    assert same is not None
    want = at_once(same.moved(speed, span))

    def energy(twists):
        return 0.5 * float(twists @ same.momenta(twists))

    least = 1e-9 * joints.pull.min()  # that of a slip of a nanometre
    assert energy(found.speed - want.speed) <= 1e-8 * energy(want.speed) + least
    # What it takes for the wrenches can be carried, and is what friction takes at these speeds.
    assert joints.take(bodies.crossing).utilization(found.wrench * PITCHES).max() <= 1.0 + 1e-9
    parting = bodies.parting(found.speed)
    power, _ = bodies.friction_of(parting)
    assert (found.wrench * parting).sum() == pytest.approx(
        power.sum(), rel=1e-4, abs=1e-6 * joints.pull.min()
    )


def between(bodies, joints):
    """(C,) the connections between bodies, which leave the same bodies if they can yield."""
    yielding = np.zeros(len(joints), dtype=bool)
    yielding[bodies.crossing] = True
    return yielding


def test_a_program_in_two_arrays_is_the_same():
    rng = np.random.default_rng(5)
    bodies, joints, links, contacts = 3, 2, 4, 5

    def whole(count):
        return rng.integers(-1, 100, count)

    program = Program(
        mass=rng.random((bodies, 6, 6)),
        mobility=rng.random((bodies, 6, 6)),
        links=Links(whole(links), whole(links), rng.random((links, 3)), rng.random((links, 3))),
        joints=FrictionJoints(
            corners=rng.random((joints, 4, 2)),
            turn=rng.random(joints),
            single=np.array([True, False]),
            apex=rng.random((joints, 3)),
            shear=rng.random(joints),
            pull=rng.random(joints),
        ),
        contacts=Contacts(whole(contacts), rng.random((contacts, 6))),
        order=Elimination(
            place=whole(bodies),
            start=np.array([0, 2, 3, 4]),
            row=whole(4),
            between=whole(links),
        ),
    )

    def arrays(part):
        return [a for p in part for a in arrays(p)] if isinstance(part, tuple) else [part]

    two = packed(program)
    for one, other in zip(arrays(program), arrays(unpacked(two)), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert (two.links, two.products) == (links, 3 + 1 + 1)
    assert len(nowhere(two)) == 6 * bodies + 24 * joints + 2 * contacts
