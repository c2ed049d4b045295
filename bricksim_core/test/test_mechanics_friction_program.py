# SPDX-License-Identifier: Apache-2.0
"""The compiled program of sliding bodies against a solver that knows nothing of it."""

import numpy as np
import pytest
from mechanics_cases import random_structure, weights

from bricksim_core.mechanics import friction_packed, friction_program, sliding
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


class Case:
    """A random structure, held or free, from rest or moving, under loads that nothing or everything
    yields to, with single studs and contacts between them."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        constants = SnapFitConstants()
        graph = random_structure(rng, int(rng.integers(2, 45 if seed % 10 == 0 else 14)))
        layout = graph.layout(graph.component_of(0))
        anchored = (layout.part_ids == 0) & (seed % 3 > 0)
        loads = weights(layout)
        hit = rng.integers(0, len(loads), 3)
        scale = [1, 1, 1, 0.01, 0.01, 0.01]
        loads[hit] += 10 ** rng.uniform(-1, 3) * rng.normal(size=(3, 6)) * scale
        self.parts = Parts.of(layout, anchored, loads)
        self.joints = joints_of(layout, constants)
        contacts = face_contacts(layout)
        self.pushes = pushes_of(contacts, self.joints.lower, self.joints.upper, constants)
        yielding = rng.random(len(self.joints)) < rng.uniform(0.3, 1.0)
        yielding[0] = True
        first = self._between(yielding) or self._between(np.ones(len(yielding), dtype=bool))
        assert first is not None
        # The connections between bodies leave the same bodies if they can yield.
        self.yielding = np.zeros(len(self.joints), dtype=bool)
        self.yielding[first.crossing] = True
        self.speed = np.zeros(6 * first.count)
        if seed % 2:
            self.speed = 0.3 * rng.normal(size=len(self.speed))
        self.span = 10 ** rng.uniform(-4, -2)
        self.least = 1e-9 * self.joints.pull.min()  # energy of a slip of a nanometre

    def _between(self, yielding):
        return bodies_between(self.parts, self.joints, self.pushes, yielding)

    def bodies(self):
        """Bodies that know of no motion yet."""
        bodies = self._between(self.yielding)
        assert bodies is not None
        return bodies

    def found(self):
        return at_once(self.bodies().moved(self.speed, self.span))

    def difference(self, found, want):
        """Energy of a difference of speeds, and that of the motion."""
        bodies = self.bodies()
        apart = found.speed - want.speed
        return [0.5 * float(v @ bodies.momenta(v)) for v in (apart, want.speed)]


def by_another_solver(case, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sliding, "moved", lambda *_: (-1, False, None, None))
        return case.found()


@pytest.mark.parametrize("seed", range(60))
def test_bodies_move_as_with_another_solver(seed, monkeypatch):
    case = Case(seed)
    bodies, joints = case.bodies(), case.joints
    found = at_once(bodies.moved(case.speed, case.span))
    with monkeypatch.context() as patch:
        patch.setattr(sliding, "_PORTION", 0.0)
        stepwise = case.bodies()
        costs = list(stepwise.moved(case.speed, case.span))
        again = at_once(stepwise.moved(case.speed, case.span))
    assert (again.speed == found.speed).all() and (again.wrench == found.wrench).all()
    assert len(costs) > 2

    apart, whole = case.difference(found, by_another_solver(case, monkeypatch))
    assert apart <= 1e-8 * whole + case.least
    # What it takes for the wrenches can be carried, and is what friction takes at these speeds.
    assert joints.take(bodies.crossing).utilization(found.wrench * PITCHES).max() <= 1.0 + 1e-9
    parting = bodies.parting(found.speed)
    power, _ = bodies.friction_of(parting)
    assert (found.wrench * parting).sum() == pytest.approx(
        power.sum(), rel=1e-4, abs=1e-6 * joints.pull.min()
    )


def uncompiled(monkeypatch):
    """Takes the steps in Python from now on; what each factorization and each call came to."""
    factor, factored, taken = friction_program.factor, [], []
    packed_steps, steps = friction_packed.moved.py_func, friction_program.moved.py_func

    def factoring(blocks, order):
        factored.append(factor(blocks, order))
        return factored[-1]

    def moved(*arguments):
        with np.errstate(divide="ignore"):
            result = packed_steps(*arguments)
        taken.append(result[0])
        return result

    monkeypatch.setattr(friction_program, "factor", factoring)
    monkeypatch.setattr(friction_program, "moved", steps)
    monkeypatch.setattr(sliding, "moved", moved)
    return factored, taken


SEEDS = [3, 5, 8, 12, 13, 16]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_answer_is_right_where_rounding_ends_it(seed, monkeypatch):
    """More is asked for than double precision has: the matrix is singular by rounding at last."""
    case = Case(seed)
    want = by_another_solver(case, monkeypatch)
    monkeypatch.setattr(sliding, "_EXACT", 1e-15)
    monkeypatch.setattr(sliding, "_NOTHING", 1e-13)
    found = case.found()
    apart, whole = case.difference(found, want)
    assert apart <= 1e-8 * whole + case.least
    factored, taken = uncompiled(monkeypatch)
    again = case.found()
    assert not factored[-1] and taken == [len(factored) - 1]
    assert case.difference(again, found)[0] <= 1e-12 * whole


@pytest.mark.parametrize("seed", SEEDS)
def test_another_solver_answers_where_rounding_ends_it_too_early(seed, monkeypatch):
    case = Case(seed)
    want = by_another_solver(case, monkeypatch)
    monkeypatch.setattr(sliding, "_EXACT", 1e-22)
    monkeypatch.setattr(sliding, "_NOTHING", 1e-22)
    assert (case.found().speed == want.speed).all()
    factored, taken = uncompiled(monkeypatch)
    case.found()
    assert not factored[-1] and taken == [-1]


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
