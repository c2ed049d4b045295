# SPDX-License-Identifier: Apache-2.0
"""Rest of components: what may sleep, with whom, and what wakes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from engine_suite import at, brick_layout

from bricksim_core.engines.contact_lists import join_contacts, no_contacts
from bricksim_core.engines.protocol import BODY_SHAPE, NO_PART, Contacts
from bricksim_core.engines.rest import BLOCK, DRIFT, SWAY, Rest
from bricksim_core.engines.rigid_fit import RigidGroups

STEP = 1.0 / 240.0
STEPS = round(BLOCK / STEP)


def _groups(count: int) -> RigidGroups:
    """Components of one brick each; part i is component i."""
    return RigidGroups.of([brick_layout(part_id=i) for i in range(count)])


def _rest(count: int, fixed: Sequence[int] = ()) -> Rest:
    return Rest(_groups(count), np.arange(count), np.isin(np.arange(count), fixed), STEP)


def _contacts(*pairs: tuple[int | str, int]) -> Contacts:
    """One contact a pair: what is below, part above, with 1 N s and more for each later one."""
    found = no_contacts()
    for i, (below, above) in enumerate(pairs):
        named = isinstance(below, str)
        up = np.array([[0.0, 0.0, 1.0]])
        one = Contacts(
            part_a=np.array([NO_PART if isinstance(below, str) else below]),
            part_b=np.array([above]),
            shape_a=np.array([BODY_SHAPE]),
            shape_b=np.array([BODY_SHAPE]),
            other=np.array([0 if named else -1]),
            names=(below,) if isinstance(below, str) else (),
            position=np.zeros((1, 3)),
            normal=up,
            normal_impulse=np.array([1.0 + i]),
            impulse=(1.0 + i) * up,
        )
        found = join_contacts([found, one])
    return found


def _run(rest: Rest, motion, contacts: Contacts, steps: int, pushed=()) -> set[int]:
    """Components that fell asleep; ``motion(component, step)`` is the height of each [m]."""
    slept: set[int] = set()
    for step in range(steps):
        poses = np.array([at(0, 0, motion(i, step)) for i in range(len(rest.asleep))])
        slept |= set(np.flatnonzero(rest.observe(poses, contacts, pushed)).tolist())
    return slept


def _still(component: int, step: int) -> float:
    return 0.1 * component


def test_what_stands_sleeps_after_two_blocks_and_no_earlier():
    rest, contacts = _rest(1), _contacts(("ground", 0))
    assert _run(rest, _still, contacts, 2 * STEPS - 1) == set()
    assert _run(rest, _still, contacts, 1) == {0}
    assert rest.nothing_moves
    assert rest.sleepers == {0}
    np.testing.assert_array_equal(rest.contacts.normal_impulse, [1.0])


@pytest.mark.parametrize(("speed", "sleeps"), [(0.8, True), (1.2, False)])
def test_slow_motion_is_no_rest(speed, sleeps):
    """The limit is a speed: DRIFT in the time between the means of two blocks."""
    rest, contacts = _rest(1), _contacts(("ground", 0))
    slept = _run(rest, lambda _, step: speed * DRIFT / BLOCK * step * STEP, contacts, 6 * STEPS)
    assert (slept == {0}) == sleeps


@pytest.mark.parametrize(("width", "sleeps"), [(0.4, True), (1.1, False)])
def test_a_sway_about_one_place_is_rest_if_it_is_small(width, sleeps):
    """From where a block begins at a turning point, the other one is twice the amplitude away."""
    rest, contacts = _rest(1), _contacts(("ground", 0))

    def sway(_, step):
        return 0.5 * width * SWAY * np.cos(2.0 * np.pi * step / 30)

    assert (_run(rest, sway, contacts, 6 * STEPS) == {0}) == sleeps


def test_a_turn_about_the_centre_of_mass_counts():
    rest, contacts = _rest(1), _contacts(("ground", 0))
    com = at(*brick_layout().coms[0])
    rate = 2.0 * DRIFT / BLOCK / 0.016  # [rad/s], of the brick's ends at twice the limit
    for step in range(4 * STEPS):
        turned = com @ at(0, 0, 0, (0, 0, rate * step * STEP)) @ np.linalg.inv(com)
        assert not rest.observe(turned[None], contacts, ()).any()


def test_what_touches_something_restless_does_not_sleep():
    """0 stands, 1 is pushed, 2 leans on 1, 3 on 2; 4 is in a hand, 5 leans on it."""
    rest = _rest(6)
    contacts = _contacts(
        ("ground", 0), ("ground", 1), (1, 2), (2, 3), ("ground", 3), ("arm/finger", 4), (4, 5)
    )
    assert _run(rest, _still, contacts, 3 * STEPS, pushed=[1]) == {0}
    assert not rest.nothing_moves
    assert rest.sleepers == {0}
    assert len(rest.contacts) == 1


def test_only_what_stands_on_something_sleeps():
    """1 on 0 on a held brick do; two that float together without anything below do not."""
    rest = _rest(5, fixed=[2])
    contacts = _contacts((2, 0), (0, 1), (3, 4))
    assert _run(rest, _still, contacts, 3 * STEPS) == {0, 1}
    assert len(rest.contacts) == 2


def test_what_the_engine_woke_has_to_come_to_rest_again():
    rest = _rest(2)
    contacts = _contacts(("ground", 0), ("ground", 1))
    assert _run(rest, _still, contacts, 2 * STEPS) == {0, 1}
    rest.keep(np.array([True, False]))
    assert rest.sleepers == {0}
    assert rest.contacts.part_b.tolist() == [0]
    assert _run(rest, _still, _contacts(("ground", 1)), 2 * STEPS) == {1}
    assert sorted(rest.contacts.part_b.tolist()) == [0, 1]


def test_waking_spreads_through_what_sleeps_and_not_through_what_is_held():
    """A stack of four, and one of two beside it on the same held plate."""
    rest = _rest(7, fixed=[0])
    contacts = _contacts((0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6))
    assert _run(rest, _still, contacts, 2 * STEPS) == {1, 2, 3, 4, 5, 6}
    after = rest.after(_groups(7), np.arange(7), np.arange(7) == 0, changed=[2])
    assert after.sleepers == {5, 6}
    asleep = rest.asleep.copy()
    asleep[1] = False
    stirred = rest.keep(asleep)
    assert np.flatnonzero(stirred).tolist() == [2, 3, 4]
    assert rest.sleepers == {2, 3, 4, 5, 6}  # in the step that has been
    rest.wake(stirred)
    assert rest.sleepers == {5, 6}
    assert sorted(rest.contacts.part_b.tolist()) == [5, 6]


def test_edits_wake_what_they_touch_and_leave_the_rest():
    """Three stacks of two; one loses its upper brick."""
    rest = _rest(6)
    contacts = _contacts(*[p for i in (0, 2, 4) for p in (("ground", i), (i, i + 1))])
    assert _run(rest, _still, contacts, 2 * STEPS) == set(range(6))
    ids = np.array([0, 1, 2, 4, 5])
    groups = RigidGroups.of([brick_layout(part_id=i) for i in ids])
    after = rest.after(groups, ids, np.zeros(5, dtype=bool), changed=[3])
    assert after.sleepers == {0, 1, 4, 5}
    assert set(after.contacts.part_b.tolist()) == {0, 1, 4, 5}


def test_edits_of_what_the_world_holds_wake_everything():
    rest = _rest(2, fixed=[0])
    assert _run(rest, _still, _contacts((0, 1)), 2 * STEPS) == {1}
    assert rest.after(_groups(2), np.arange(2), np.array([True, False]), [0]).sleepers == set()
