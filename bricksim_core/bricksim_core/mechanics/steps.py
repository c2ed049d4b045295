# SPDX-License-Identifier: Apache-2.0
"""Engine steps in a row as arrays, so that what is computed in all of them takes one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bricksim_core.engines.contact_lists import join_contacts, take_contacts, weaker_contacts
from bricksim_core.engines.protocol import Contacts, StepParts, StepReport
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@dataclass(frozen=True, eq=False)
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
            number = np.diff(parts.first).tolist()
        elif parts is not None:
            each = _spread(own, parts)
            number = [len(one) for one in each]
        dt += [report.dt / len(number)] * len(number)
        contacts += each
        counts += number
    states = [_states(report) for report in reports]
    return Steps(
        dt=np.array(dt),
        poses=np.array([pose for poses, _ in states for pose in poses[:-1]]),
        twists=np.array([twist for _, twists in states for twist in twists[:-1]]),
        next_poses=np.array([pose for poses, _ in states for pose in poses[1:]]),
        next_twists=np.array([twist for _, twists in states for twist in twists[1:]]),
        contacts=join_contacts(contacts),
        first=np.cumsum(counts),
    )


def _states(report: StepReport) -> tuple[Sequence[Array], Sequence[Array]]:
    """Poses and velocities at the start of a step, at the end of it, and between its parts."""
    parts = report.parts
    if parts is not None:
        return list(parts.world_T_component), list(parts.twist)
    poses = report.previous_world_T_component, report.world_T_component
    return poses, (report.previous_twist, report.twist)


def _spread(contacts: Contacts, parts: StepParts) -> list[Contacts]:
    """Contacts of the parts of a step: their own ones, and those of what is still in each."""
    *_, own = bounds = parts.first.tolist()
    rest = weaker_contacts(take_contacts(contacts, slice(own, None)), 1.0 / len(parts))
    return [
        join_contacts([take_contacts(contacts, slice(*ends)), rest]) for ends in pairwise(bounds)
    ]
