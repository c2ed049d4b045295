# SPDX-License-Identifier: Apache-2.0
"""Engine steps in a row as arrays, so that what is computed in all of them takes one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bricksim_core.engines.contact_lists import join_contacts
from bricksim_core.engines.protocol import Contacts, StepReport
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
        reports: The steps.
        still: Whether contacts of what is still count, where the engine tells them apart.
    """
    contacts = [
        report.contacts if still or report.fresh is None else report.fresh for report in reports
    ]
    first = np.zeros(len(reports) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in contacts], out=first[1:])
    return Steps(
        dt=np.array([report.dt for report in reports]),
        poses=np.array([report.previous_world_T_component for report in reports]),
        twists=np.array([report.previous_twist for report in reports]),
        next_poses=np.array([report.world_T_component for report in reports]),
        next_twists=np.array([report.twist for report in reports]),
        contacts=join_contacts(contacts),
        first=first,
    )
