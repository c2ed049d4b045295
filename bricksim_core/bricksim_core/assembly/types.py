# SPDX-License-Identifier: Apache-2.0
"""Thresholds and findings of the assembly monitor."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class AssemblyThresholds:
    """When two bricks pressed together connect (arXiv 2603.16853; the paper's defaults).

    Attributes:
        enabled: False: nothing connects by contact.
        height_tolerance: Greatest distance of the hole plane above its seated height [m].
        penetration_tolerance: Greatest distance below it [m].
        tilt_tolerance: Greatest angle between the interface normals [rad].
        yaw_tolerance: Greatest yaw error from a quarter turn [rad].
        position_tolerance: Greatest lateral error from the grid [m].
        force: Least force pressing the interfaces together [N].
    """

    enabled: bool = True
    height_tolerance: float = 0.001
    penetration_tolerance: float = 0.001
    tilt_tolerance: float = math.radians(5.0)
    yaw_tolerance: float = math.radians(5.0)
    position_tolerance: float = 0.002
    force: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A pair of interfaces in contact and how it compares with the thresholds.

    Attributes:
        stud_part: Lower part.
        hole_part: Upper part.
        offset: Nearest grid offset [studs].
        yaw: Nearest yaw [quarter turns].
        height_error: Hole plane above (+) or below (-) its seated height [m].
        tilt: Angle between the normals [rad].
        yaw_error: Signed yaw error from the nearest quarter turn [rad].
        position_error: Lateral distance from the nearest grid offset [m].
        force: Force pressing the interfaces together [N].
        accepted: True if it connects.
        reason: The first criterion that failed and by how much; empty if accepted.
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
