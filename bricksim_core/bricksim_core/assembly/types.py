# SPDX-License-Identifier: Apache-2.0
"""Thresholds and findings of the assembly monitor."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bricksim_core.records import record
from bricksim_core.values import as_number, require_flag

_LONGEST_WINDOW = 60.0
"""Greatest time [s] that a force may have to last: the forces of all its steps are kept."""


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
            as_number(getattr(self, name), f"assembly threshold {name}", 0.0, finite=False)
        as_number(self.window, "assembly threshold window", 0.0, _LONGEST_WINDOW)
        as_number(self.sustained, "assembly threshold sustained", 0.0, 1.0, above=True)
        require_flag(self.enabled, "assembly threshold enabled")


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
