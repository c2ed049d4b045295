# SPDX-License-Identifier: Apache-2.0
"""AssemblyMonitor: which bricks that press on each other click together."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from bricksim_core.assembly.alignment import align
from bricksim_core.assembly.pressing import PressWindow, presses
from bricksim_core.assembly.types import AssemblyThresholds, Candidate
from bricksim_core.compiled import compiled
from bricksim_core.engines.protocol import StepReport
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


class AssemblyMonitor:
    """Judges every pair (stud slab of one brick, body of another) in contact.

    It observes each engine step and decides once a frame; it changes nothing itself.

    Args:
        thresholds: When a pair connects.
        dt: Length of an engine step [s].
    """

    def __init__(self, thresholds: AssemblyThresholds, dt: float) -> None:
        self._dt = dt
        self._thresholds = thresholds
        self._window = PressWindow(thresholds.window, dt)

    @property
    def thresholds(self) -> AssemblyThresholds:
        """When a pair connects; may be replaced at any time."""
        return self._thresholds

    @thresholds.setter
    def thresholds(self, thresholds: AssemblyThresholds) -> None:
        if thresholds.window != self._thresholds.window:
            self._window = PressWindow(thresholds.window, self._dt)
        self._thresholds = thresholds

    def observe(self, report: StepReport, part_ids: IntArray, part_component: IntArray) -> None:
        """Takes in one engine step; see `presses` for the arguments."""
        self._window.add(presses(report, part_ids, part_component))

    def forget(self, part_ids: Collection[int]) -> None:
        """Drops what was observed of parts that were moved or removed."""
        self._window.forget(part_ids)

    def candidates(
        self, part_ids: IntArray, world_T_part: Array, sizes: IntArray, excluded: Collection = ()
    ) -> tuple[Candidate, ...]:
        """Judges the pairs that are in contact now, the hardest pressed first.

        Args:
            part_ids: (N,) sorted ids of all parts.
            world_T_part: (N, 4, 4) their poses now [m].
            sizes: (N, 3) their lengths, widths [studs] and heights [plates].
            excluded: Pairs (lower, upper) that are not judged.
        """
        if not self._thresholds.enabled:
            return ()
        found = self._window.sustained(self._thresholds.sustained)
        if not len(found.pairs):
            return ()
        rows = np.searchsorted(part_ids, found.pairs)
        alignment = align(world_T_part, sizes, rows)
        eccentricity = _eccentricity(world_T_part, sizes, rows, alignment.overlap, found.centre)
        # Numbers out of arrays one by one cost more than all that is done with them.
        numbers = zip(
            found.pairs.tolist(),
            alignment.offset.tolist(),
            alignment.yaw.tolist(),
            alignment.height_error.tolist(),
            alignment.tilt.tolist(),
            alignment.yaw_error.tolist(),
            alignment.position_error.tolist(),
            found.force.tolist(),
            eccentricity.tolist(),
            alignment.overlapping.tolist(),
            strict=True,
        )
        judged = [self._judge(*row) for row in numbers if tuple(row[0]) not in excluded]
        return tuple(sorted(judged, key=lambda c: (-c.force, c.stud_part, c.hole_part)))

    def snapshot(self) -> object:
        """What `restore` takes."""
        return self._thresholds, self._window.state()

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot."""
        assert isinstance(snapshot, tuple)
        thresholds, state = snapshot
        self._thresholds = thresholds
        self._window = PressWindow(thresholds.window, self._dt)
        self._window.restore(state)

    def _judge(
        self,
        pair: Sequence[int],
        offset: Sequence[int],
        yaw: int,
        height: float,
        tilt: float,
        yaw_error: float,
        position: float,
        force: float,
        eccentricity: float,
        overlapping: bool,
    ) -> Candidate:
        """What is said of a pair; see `Candidate`."""
        limits = self._thresholds
        reason = ""  # the first criterion that it fails
        if height > limits.height_tolerance:
            reason = _above("height above the studs", height, limits.height_tolerance, "mm")
        elif -height > limits.penetration_tolerance:
            reason = _above(
                "depth below the studs' tops", -height, limits.penetration_tolerance, "mm"
            )
        elif tilt > limits.tilt_tolerance:
            reason = _above("tilt", tilt, limits.tilt_tolerance, "deg")
        elif abs(yaw_error) > limits.yaw_tolerance:
            reason = _above("yaw error", abs(yaw_error), limits.yaw_tolerance, "deg")
        elif position > limits.position_tolerance:
            reason = _above("position error", position, limits.position_tolerance, "mm")
        elif not overlapping:
            reason = "the grids do not overlap at the nearest offset"
        elif force < limits.force:
            reason = f"force {force:.3g} N is less than {limits.force:.3g} N"
        elif eccentricity > limits.eccentricity:
            reason = _above("eccentricity of the force", eccentricity, limits.eccentricity, "")
        return Candidate(
            stud_part=pair[0],
            hole_part=pair[1],
            offset=(offset[0], offset[1]),
            yaw=yaw,
            height_error=height,
            tilt=tilt,
            yaw_error=yaw_error,
            position_error=position,
            force=force,
            accepted=not reason,
            reason=reason,
            eccentricity=eccentricity,
        )


@compiled
def _eccentricity(
    world_T_part: Array, sizes: IntArray, pairs: IntArray, overlap: IntArray, centre: Array
) -> Array:
    """(P,) distance of the centre of pressure from the overlap's centre, in halves of its sides.

    Args:
        world_T_part: (N, 4, 4) poses of all parts [m].
        sizes: (N, 3) their sizes [studs, plates].
        pairs: (P, 2) which of them are the lower and the upper parts.
        overlap: (P, 4) see `Alignment`.
        centre: (P, 3) centres of pressure, world [m].
    """
    found = np.zeros(len(pairs))
    for p in range(len(pairs)):
        pose = world_T_part[pairs[p, 0]]
        for k in range(2):
            local = 0.0
            for i in range(3):
                local += pose[i, k] * (centre[p, i] - pose[i, 3])
            place = local / STUD_PITCH + 0.5 * sizes[pairs[p, 0], k]
            low, high = overlap[p, k], overlap[p, 2 + k]
            half = max(0.5 * (high - low), 0.5)
            found[p] = max(found[p], abs(place - 0.5 * (low + high)) / half)
    return found


def _above(name: str, value: float, limit: float, unit: str) -> str:
    factor = {"mm": 1e3, "deg": 180.0 / math.pi, "": 1.0}[unit]
    space = " " if unit else ""
    return (
        f"{name} {value * factor:.3g}{space}{unit} is more than {limit * factor:.3g}{space}{unit}"
    )
