# SPDX-License-Identifier: Apache-2.0
"""Engine steps in a row as arrays, so that what is computed in all of them takes one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from bricksim_core.engines.contact_lists import join_contacts, take_contacts, weaker_contacts
from bricksim_core.engines.protocol import Contacts, StepParts, StepReport
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@record
class Steps:
    """S steps of the same K components.

    Attributes:
        dt: (S,) their lengths [s].
        poses: (S, K, 4, 4) world_T_component at the start of each [m].
        twists: (S, K, 6) COM linear and angular velocities there, world [m/s, rad/s].
        next_poses: (S, K, 4, 4) poses at the end of each [m].
        next_twists: (S, K, 6) velocities there [m/s, rad/s].
        contacts: Of all steps, in their order.
        first: (S + 1,) where those of each step begin, and how many there are.
    """

    dt: Array
    poses: Array
    twists: Array
    next_poses: Array
    next_twists: Array
    contacts: Contacts
    first: IntArray

    def __len__(self) -> int:
        return len(self.dt)


def steps_of(reports: Sequence[StepReport], still: bool = True) -> Steps:
    """Steps in a row, at least one, between which no component came or went.

    Args:
        reports: The steps; of those that were divided the parts are taken.
        still: Whether contacts of what is still count, where the engine tells them apart.
    """
    dt: list[float] = []
    contacts: list[Contacts] = []
    counts = [0]
    for report in reports:
        parts, fresh = report.parts, report.fresh
        own = report.contacts if still or fresh is None else fresh
        each, number = [own], [len(own)]
        if parts is not None and len(own) == parts.first[-1]:
            number = [end - start for start, end in pairwise(parts.first.tolist())]
        elif parts is not None:
            each = _spread(own, parts)
            number = [len(one) for one in each]
        dt += [report.dt / len(number)] * len(number)
        contacts += each
        counts += number
    states = zip(*map(_states, reports), strict=True)
    poses, twists, next_poses, next_twists = map(np.concatenate, states)
    return Steps(
        dt=np.array(dt),
        poses=poses,
        twists=twists,
        next_poses=next_poses,
        next_twists=next_twists,
        contacts=join_contacts(contacts),
        first=np.array([*accumulate(counts)]),
    )


def _states(report: StepReport) -> tuple[Array, Array, Array, Array]:
    """Poses and velocities at the start of each part of a step and at the end of each."""
    parts = report.parts
    if parts is not None:
        poses, twists = parts.world_T_component, parts.twist
        return poses[:-1], twists[:-1], poses[1:], twists[1:]
    before = report.previous_world_T_component[None], report.previous_twist[None]
    return *before, report.world_T_component[None], report.twist[None]


def _spread(contacts: Contacts, parts: StepParts) -> list[Contacts]:
    """Contacts of the parts of a step: their own ones, and those of what is still in each."""
    *_, own = bounds = parts.first.tolist()
    rest = weaker_contacts(take_contacts(contacts, slice(own, None)), 1.0 / len(parts))
    return [
        join_contacts([take_contacts(contacts, slice(*ends)), rest]) for ends in pairwise(bounds)
    ]
