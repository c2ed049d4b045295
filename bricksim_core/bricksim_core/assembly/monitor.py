# SPDX-License-Identifier: Apache-2.0
"""AssemblyMonitor: which bricks that press on each other click together."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from bricksim_core.assembly.alignment import Alignment, align
from bricksim_core.assembly.pressing import Presses, PressWindow, presses
from bricksim_core.assembly.types import AssemblyThresholds, Candidate
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
        stud, hole = np.searchsorted(part_ids, found.pairs).T
        alignment = align(world_T_part[stud], sizes[stud], world_T_part[hole], sizes[hole])
        eccentricity = _eccentricity(found, alignment, world_T_part[stud], sizes[stud])
        ordered = np.lexsort((found.pairs[:, 1], found.pairs[:, 0], -found.force))
        pairs = found.pairs.tolist()
        return tuple(
            self._judge(found, alignment, eccentricity, i)
            for i in ordered.tolist()
            if tuple(pairs[i]) not in excluded
        )

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
        self, found: Presses, alignment: Alignment, eccentricity: Array, i: int
    ) -> Candidate:
        reason = self._reason(found, alignment, eccentricity, i)
        stud, hole = found.pairs[i].tolist()
        x, y = alignment.offset[i].tolist()
        return Candidate(
            stud_part=stud,
            hole_part=hole,
            offset=(x, y),
            yaw=int(alignment.yaw[i]),
            height_error=float(alignment.height_error[i]),
            tilt=float(alignment.tilt[i]),
            yaw_error=float(alignment.yaw_error[i]),
            position_error=float(alignment.position_error[i]),
            force=float(found.force[i]),
            accepted=not reason,
            reason=reason,
            eccentricity=float(eccentricity[i]),
        )

    def _reason(self, found: Presses, alignment: Alignment, eccentricity: Array, i: int) -> str:
        """The first criterion that a pair fails, empty if none."""
        limits = self._thresholds
        height, tilt = alignment.height_error[i], alignment.tilt[i]
        yaw, position = abs(alignment.yaw_error[i]), alignment.position_error[i]
        if height > limits.height_tolerance:
            return _above("height above the studs", height, limits.height_tolerance, "mm")
        if -height > limits.penetration_tolerance:
            return _above(
                "depth below the studs' tops", -height, limits.penetration_tolerance, "mm"
            )
        if tilt > limits.tilt_tolerance:
            return _above("tilt", tilt, limits.tilt_tolerance, "deg")
        if yaw > limits.yaw_tolerance:
            return _above("yaw error", yaw, limits.yaw_tolerance, "deg")
        if position > limits.position_tolerance:
            return _above("position error", position, limits.position_tolerance, "mm")
        if not alignment.overlapping[i]:
            return "the grids do not overlap at the nearest offset"
        if found.force[i] < limits.force:
            return f"force {found.force[i]:.3g} N is less than {limits.force:.3g} N"
        if eccentricity[i] > limits.eccentricity:
            return _above("eccentricity of the force", eccentricity[i], limits.eccentricity, "")
        return ""


def _eccentricity(
    found: Presses, alignment: Alignment, world_T_stud: Array, sizes: IntArray
) -> Array:
    """(P,) distance of the centre of pressure from the overlap's centre, in halves of its sides."""
    arm = found.centre - world_T_stud[:, :3, 3]
    local = np.einsum("pji,pj->pi", world_T_stud[:, :3, :3], arm)[:, :2]
    place = local / STUD_PITCH + 0.5 * sizes[:, :2]
    low, high = alignment.overlap[:, :2], alignment.overlap[:, 2:]
    half = np.maximum(0.5 * (high - low), 0.5)
    return np.max(np.abs(place - 0.5 * (low + high)) / half, axis=1)


def _above(name: str, value: float, limit: float, unit: str) -> str:
    factor = {"mm": 1e3, "deg": 180.0 / math.pi, "": 1.0}[unit]
    space = " " if unit else ""
    return (
        f"{name} {value * factor:.3g}{space}{unit} is more than {limit * factor:.3g}{space}{unit}"
    )
