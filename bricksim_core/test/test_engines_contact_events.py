# SPDX-License-Identifier: Apache-2.0
"""PhysX contact events as contacts: signs, sides and what counts."""

from __future__ import annotations

import numpy as np
import pytest

from bricksim_core.engines.contact_events import Colliders, ContactEvents, contacts
from bricksim_core.engines.contact_lists import join_contacts, no_contacts
from bricksim_core.engines.protocol import BODY_SHAPE, NO_PART, STUD_SHAPE

COLLIDERS = {
    10: (7, BODY_SHAPE, ""),
    11: (7, STUD_SHAPE, ""),
    20: (8, BODY_SHAPE, ""),
    30: (NO_PART, BODY_SHAPE, "ground"),
    31: (NO_PART, BODY_SHAPE, "arm/hand"),
}
UP = np.array([0.0, 0.0, 1.0])


def _events(pairs, impulses, anchors=()):
    """One point a pair with a normal impulse on its first side, and friction anchors of some."""
    count = np.zeros(len(pairs), dtype=int)
    for pair, _ in anchors:
        count[pair] += 1
    n = len(pairs)
    return ContactEvents(
        first=np.array([a for a, _ in pairs]),
        second=np.array([b for _, b in pairs]),
        points=np.ones(n, dtype=int),
        anchors=count,
        position=np.arange(3.0 * n).reshape(n, 3),
        normal=np.tile(UP, (n, 1)),
        impulse=np.array(impulses)[:, None] * UP,
        anchor_position=np.zeros((len(anchors), 3)),
        anchor_impulse=np.array([i for _, i in anchors], dtype=float).reshape(-1, 3),
    )


def test_the_brick_is_side_b_whichever_side_of_the_pair_it_is():
    for pair, sign in (((10, 30), 1.0), ((30, 10), -1.0)):
        found = contacts(_events([pair], [2.0]), Colliders(COLLIDERS.__getitem__))
        assert found.part_b.tolist() == [7]
        assert found.part_a.tolist() == [NO_PART]
        assert found.names == ("ground",)
        assert found.other.tolist() == [0]
        # The impulse is on the first side; on the brick it is that or its opposite.
        np.testing.assert_allclose(found.impulse[0], sign * 2.0 * UP)
        np.testing.assert_allclose(found.normal[0], sign * UP)
        assert found.normal_impulse[0] == pytest.approx(2.0)


def test_two_bricks_keep_their_shapes_and_the_reaction_is_opposite():
    found = contacts(_events([(11, 20)], [3.0]), Colliders(COLLIDERS.__getitem__))
    assert (found.part_a[0], found.part_b[0]) == (8, 7)
    assert (found.shape_a[0], found.shape_b[0]) == (BODY_SHAPE, STUD_SHAPE)
    assert found.other.tolist() == [-1]
    np.testing.assert_allclose(found.impulse[0], 3.0 * UP)


def test_friction_anchors_are_rows_without_a_normal_impulse_and_force_is_complete():
    drag = np.array([0.4, 0.0, 0.0])
    events = _events([(10, 30), (10, 31)], [2.0, 1.0], anchors=[(1, drag), (1, drag)])
    found = contacts(events, Colliders(COLLIDERS.__getitem__))
    np.testing.assert_allclose(found.impulse.sum(axis=0), [0.8, 0.0, 3.0])
    np.testing.assert_allclose(found.normal_impulse, [2.0, 1.0, 0.0, 0.0])
    assert [found.names[i] for i in found.other] == ["ground", "arm/hand", "arm/hand", "arm/hand"]
    np.testing.assert_allclose(found.normal, np.tile(UP, (4, 1)))


def test_points_without_impulse_and_pairs_without_a_brick_are_left_out():
    found = contacts(
        _events([(10, 30), (30, 31), (20, 10)], [0.0, 5.0, 1.0]), Colliders(COLLIDERS.__getitem__)
    )
    assert len(found) == 1
    assert (found.part_a[0], found.part_b[0]) == (7, 8)


def test_nothing():
    assert len(contacts(_events([], np.zeros(0)), Colliders(COLLIDERS.__getitem__))) == 0
    assert len(no_contacts()) == 0


def test_lists_with_other_names_are_joined_by_name():
    colliders = Colliders(COLLIDERS.__getitem__)
    hand = contacts(_events([(10, 31)], [1.0]), colliders)
    both = contacts(_events([(20, 30), (11, 20)], [2.0, 3.0]), colliders)
    joined = join_contacts([both, no_contacts(), hand])
    assert [joined.names[i] if i >= 0 else "" for i in joined.other] == ["ground", "", "arm/hand"]
    assert joined.part_b.tolist() == [8, 7, 7]
    np.testing.assert_array_equal(joined.normal_impulse, [2.0, 3.0, 1.0])
