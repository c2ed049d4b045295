# SPDX-License-Identifier: Apache-2.0
"""Thresholds and findings of the assembly monitor."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bricksim_core.errors import BrickSimError
from bricksim_core.records import record


@dataclass(frozen=True)
class AssemblyThresholds:
    """When two bricks pressed together connect (arXiv 2603.16853; the paper's defaults).

    The paper's monitor judges one step. Here the force has to last: it counts as the value that
    was reached in the share ``sustained`` of the steps of the last ``window`` (at least two
    steps), so a numerical spike or the tap of a falling brick does not connect.

    Attributes:
        enabled: False: nothing connects by contact.
        height_tolerance: Greatest height of the hole plane above the studs that it rests on [m].
        penetration_tolerance: Greatest depth below their tops [m].
        tilt_tolerance: Greatest angle between the interface normals [rad].
        yaw_tolerance: Greatest yaw error from a quarter turn [rad].
        position_tolerance: Greatest lateral error from the grid [m].
        force: Least force pressing the interfaces together [N].
        window: Time that the force has to last [s]: one frame at 60 Hz.
        sustained: Share of the window's steps in which it has to be reached, in (0, 1].
        eccentricity: Greatest distance of the centre of pressure from the centre of the overlap,
            in halves of its sides [-]. A force at the very edge (1) tips the brick instead of
            seating it. Infinity switches the check off, as in the paper.

    Raises:
        BrickSimError: A value is out of range.
    """

    enabled: bool = True
    height_tolerance: float = 0.001
    penetration_tolerance: float = 0.001
    tilt_tolerance: float = math.radians(5.0)
    yaw_tolerance: float = math.radians(5.0)
    position_tolerance: float = 0.002
    force: float = 1.0
    window: float = 1.0 / 60.0
    sustained: float = 0.75
    eccentricity: float = math.inf

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self) if f.name != "enabled"):
            value = getattr(self, name)
            if math.isnan(value) or value < 0.0:
                raise BrickSimError(f"assembly threshold {name} is {value}, expected at least 0")
        if not 0.0 < self.sustained <= 1.0:
            raise BrickSimError(
                f"assembly threshold sustained is {self.sustained}, expected more than 0, at most 1"
            )


@record
class Candidate:
    """A pair of interfaces in contact and how it compares with the thresholds.

    Attributes:
        stud_part: Lower part.
        hole_part: Upper part.
        offset: Nearest grid offset [studs].
        yaw: Nearest yaw [quarter turns].
        height_error: Hole plane above (+) or below (-) the tops of the studs [m].
        tilt: Angle between the normals [rad].
        yaw_error: Signed yaw error from the nearest quarter turn [rad].
        position_error: Lateral distance from the nearest grid offset [m].
        force: Force pressing the interfaces together that lasted long enough [N].
        accepted: True if it connects.
        reason: The first criterion that failed and by how much; empty if accepted.
        eccentricity: Distance of the centre of pressure from the centre of the overlap, in halves
            of its sides [-].
    """

    stud_part: int
    hole_part: int
    offset: tuple[int, int]
    yaw: int
    height_error: float
    tilt: float
    yaw_error: float
    position_error: float
    force: float
    accepted: bool
    reason: str = ""
    eccentricity: float = 0.0
