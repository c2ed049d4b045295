# SPDX-License-Identifier: Apache-2.0
"""Engine steps in a row, some of them divided, as arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bricksim_core.engines.contact_lists import take_contacts
from bricksim_core.engines.protocol import Contacts, StepParts, StepReport
from bricksim_core.mechanics.steps import Steps, steps_of


def contacts_with(impulses) -> Contacts:
    """Contacts of part 1 with the ground that push it up."""
    up, sizes = np.array([0.0, 0.0, 1.0]), np.array(impulses)
    part, zeros = np.full(len(sizes), 1), np.zeros(len(sizes), dtype=np.int64)
    normals = np.tile(up, (len(sizes), 1))
    return Contacts(
        zeros - 1, part, zeros, zeros, zeros, ("ground",), 0.0 * normals, normals, sizes,
        sizes[:, None] * normals,
    )  # fmt: skip


def moving(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Poses and velocities of two components at so many times."""
    rng = np.random.default_rng(4)
    return rng.normal(size=(count, 2, 4, 4)), rng.normal(size=(count, 2, 6))


def reports() -> list[StepReport]:
    """A step of 1 s as a whole and one in three parts, of which the second has no contacts. What
    is still has one more contact in each step."""
    poses, twists = moving(5)
    ids = np.arange(2)
    whole, divided = contacts_with([1.0, 2.0, 30.0]), contacts_with([3.0, 4.0, 5.0, 60.0])
    parts = StepParts(poses[1:], twists[1:], np.array([0, 2, 2, 3]))
    first = StepReport(
        1.0, 1.0, ids, poses[1], twists[1], poses[0], twists[0], whole,
        fresh=take_contacts(whole, slice(2)),
    )  # fmt: skip
    second = StepReport(
        2.0, 1.0, ids, poses[4], twists[4], poses[1], twists[1], divided,
        fresh=take_contacts(divided, slice(3)), parts=parts,
    )  # fmt: skip
    return [first, second]


def impulses_in(steps: Steps) -> list[list[float]]:
    """Impulses along the normals by step [N s]."""
    each = np.split(steps.contacts.normal_impulse, steps.first[1:-1])
    for own, pushes in zip(each, np.split(steps.contacts.impulse, steps.first[1:-1]), strict=True):
        np.testing.assert_array_equal(pushes[:, 2], own)
    return [own.tolist() for own in each]


def test_parts_of_a_divided_step_are_steps() -> None:
    steps, (poses, twists) = steps_of(reports()), moving(5)
    assert len(steps) == 4
    np.testing.assert_array_equal(steps.poses, poses[:-1])
    np.testing.assert_array_equal(steps.next_poses, poses[1:])
    np.testing.assert_array_equal(steps.twists, twists[:-1])
    np.testing.assert_array_equal(steps.next_twists, twists[1:])
    assert steps.dt == pytest.approx([1.0, 1 / 3, 1 / 3, 1 / 3])


def test_what_is_still_presses_in_every_part_or_is_left_out() -> None:
    every = [[1.0, 2.0, 30.0], [3.0, 4.0, 20.0], [20.0], [5.0, 20.0]]
    assert impulses_in(steps_of(reports())) == every
    assert impulses_in(steps_of(reports(), still=False)) == [[1.0, 2.0], [3.0, 4.0], [], [5.0]]
    untold = [replace(report, fresh=None, parts=None) for report in reports()]
    assert impulses_in(steps_of(untold, still=False)) == [[1.0, 2.0, 30.0], [3.0, 4.0, 5.0, 60.0]]
