# SPDX-License-Identifier: Apache-2.0
"""The compiled program of sliding bodies against a solver that knows nothing of it."""

import numpy as np
import pytest
from mechanics_cases import random_structure, weights

from bricksim_core.mechanics import sliding
from bricksim_core.mechanics.friction_packed import nowhere, packed, unpacked
from bricksim_core.mechanics.friction_program import (
    STEPS,
    UNFINISHED,
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


def squeezed(seed, force):
    """Bodies of a loose structure that is pulled at and squeezed at all of its connections, by one
    to two times a force [N]."""
    rng = np.random.default_rng(seed)
    graph, constants = random_structure(rng, 16), SnapFitConstants()
    layout = graph.layout(graph.component_of(0))
    joints = joints_of(layout, constants)
    loads = np.zeros((len(layout.part_ids), 6))
    for ends, sign in ((joints.lower, 1.0), (joints.upper, -1.0)):
        wrenches = np.zeros((len(joints), 6))
        wrenches[:, 2] = sign * force * np.linspace(1.0, 2.0, len(joints))
        wrenches[:, 3:] = np.cross(joints.centre - layout.coms[ends], wrenches[:, :3])
        np.add.at(loads, ends, wrenches)
    loads[rng.integers(0, len(loads), 2), :3] += 20.0 * rng.normal(size=(2, 3))
    parts = Parts.of(layout, np.zeros(len(loads), dtype=bool), loads)
    pushes = pushes_of(face_contacts(layout), joints.lower, joints.upper, constants)
    bodies = bodies_between(parts, joints, pushes, np.ones(len(joints), dtype=bool))
    assert bodies is not None
    return bodies


@pytest.mark.parametrize("seed", range(6))
def test_what_is_squeezed_hard_loses_no_mass_by_rounding(seed, monkeypatch):
    """Where no connection can open it makes no difference how hard they are squeezed, though the
    contacts that push so are up to 1e22 times as stiff as bodies are heavy."""
    bodies, taken = squeezed(seed, 1e7), counted(monkeypatch)
    rest = np.zeros(6 * bodies.count)
    found = at_once(bodies.moved(rest, 1e-4))
    assert 0 < taken[0] < STEPS - 1
    monkeypatch.setattr(sliding, "moved", lambda *_: (-1, False, None, None))
    want = at_once(squeezed(seed, 1e3).moved(rest, 1e-4))
    apart, whole = [
        0.5 * float(v @ bodies.momenta(v)) for v in (found.speed - want.speed, want.speed)
    ]
    assert apart <= 1e-7 * whole


def counted(monkeypatch):
    """What each call comes to from now on: steps taken, or -1."""
    steps, taken = sliding.moved, []

    def moved(*arguments):
        result = steps(*arguments)
        if result[0] != UNFINISHED:
            taken.append(result[0])
        return result

    monkeypatch.setattr(sliding, "moved", moved)
    return taken


SEEDS = [3, 8, 15, 21, 33, 39]


def test_the_answer_is_right_where_rounding_ends_it(monkeypatch):
    """More is asked for than double precision mostly has: the error falls no further at last."""
    cases = [Case(seed) for seed in SEEDS]
    wanted = [by_another_solver(case, monkeypatch) for case in cases]
    monkeypatch.setattr(sliding, "_EXACT", 1e-16)
    monkeypatch.setattr(sliding, "_NOTHING", 1e-14)
    taken = counted(monkeypatch)
    for case, want in zip(cases, wanted, strict=True):
        apart, whole = case.difference(case.found(), want)
        assert apart <= 1e-8 * whole + case.least
    assert -1 not in taken and taken.count(STEPS - 1) > len(SEEDS) // 2


@pytest.mark.parametrize("seed", SEEDS)
def test_another_solver_answers_where_rounding_ends_it_too_early(seed, monkeypatch):
    case = Case(seed)
    want = by_another_solver(case, monkeypatch)
    monkeypatch.setattr(sliding, "_EXACT", 1e-22)
    monkeypatch.setattr(sliding, "_NOTHING", 1e-22)
    taken = counted(monkeypatch)
    assert (case.found().speed == want.speed).all()
    assert taken == [-1]


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
