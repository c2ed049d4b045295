# SPDX-License-Identifier: Apache-2.0
"""Does a half-built structure stand, and does it bear the press of the next brick?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull

from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.types import ConnectionModel
from bricksim_core.sequencing.workpiece import Joint, Workpiece
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology import Structure

_LAG = 1.0 / 1.2
"""How much of a press [-] another hand that pushes back bears at least, and the other way round
(measured: it follows with a lag of a sixth of a second)."""

_LEAST_FOOTING = 0.001
"""Least distance [m] of a loose component's centre of mass from the edge of what it stands on: one
right above the edge is in balance and falls at a touch."""

_LEVEL = 1e-4
"""Difference of heights of what stands on the same ground [m]."""
_FOOT = np.array([[x, y, 0.0] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
"""(4, 3) corners of a part's lower side [half sizes]."""


@dataclass(frozen=True)
class Verdict:
    """Whether a structure bears its loads.

    Attributes:
        stable: True if it does.
        utilization: Greatest load over capacity of its connections.
        reason: Why not; empty if it does.
    """

    stable: bool
    utilization: float
    reason: str = ""


StaticCheck = Callable[[Structure, Mapping[int, Array]], Verdict]
"""From a structure and the loads on its parts, (6,) force [N] and torque about the part's COM [N m]
in world axes, besides gravity, to the verdict."""


def analysis_check(model: str | ConnectionModel = "default") -> StaticCheck:
    """The check by `mechanics.analyze`.

    Args:
        model: Snap-fit model.
    """

    def check(structure: Structure, loads: Mapping[int, Array]) -> Verdict:
        analysis = analyze(structure, loads=loads, model=model, limit=False)
        tipping = _tipping(structure) if analysis.stable else []
        if tipping:
            reason = f"{', '.join(map(str, tipping))} would tip over"
            return Verdict(False, analysis.max_utilization, reason)
        return Verdict(analysis.stable, analysis.max_utilization, "; ".join(analysis.reasons))

    return check


def _tipping(structure: Structure) -> list[int]:
    """Parts of the components that stand on the ground with hardly any footing."""
    graph, poses = structure.graph, structure.part_poses()
    found: list[int] = []
    for component in graph.component_ids:
        parts = graph.component_parts(component)
        if structure.fixed.intersection(parts):
            continue
        shapes = [graph.part(part).shape for part in parts]
        feet = np.concatenate(
            [
                transform_points(poses[part], 0.5 * np.array(shape.size) * _FOOT)
                for part, shape in zip(parts, shapes, strict=True)
            ]
        )
        middles = [transform_points(poses[p], s.com) for p, s in zip(parts, shapes, strict=True)]
        com = np.average(middles, axis=0, weights=[shape.mass for shape in shapes])
        standing = feet[feet[:, 2] < feet[:, 2].min() + _LEVEL, :2]
        # One that is not upright stands on an edge.
        upright = len(standing) > 2
        if not upright or max(ConvexHull(standing).equations @ [*com[:2], 1.0]) > -_LEAST_FOOTING:
            found += parts
    return found


def no_check(structure: Structure, loads: Mapping[int, Array]) -> Verdict:
    """Everything stands: for plans by geometry alone."""
    return Verdict(True, 0.0)


@dataclass
class Effort:
    """How many checks may still be made; shared by a search and its sub-assemblies."""

    left: int


class Statics:
    """Verdicts on parts of one workpiece, each computed once.

    Args:
        piece: The workpiece. Upside down, gravity acts the other way round.
        check: The check.
        press_force: Force of a press [N].
        rims: True: a press may act on each side of the engaged studs, too.
        fixed: Ids of parts that the world or a gripper holds.
        effort: Is reduced by each check.
    """

    def __init__(
        self,
        piece: Workpiece,
        check: StaticCheck,
        press_force: float,
        fixed: Iterable[int],
        effort: Effort,
        rims: bool = False,
    ) -> None:
        self._piece = piece
        self._check = check
        self._press_force = press_force
        self._effort = effort
        self._rims = rims
        structure = replace(piece.structure, fixed=frozenset(fixed))
        if piece.from_below:
            turn = np.diag([1.0, -1.0, -1.0, 1.0])
            poses = {c: turn @ pose for c, pose in structure.component_poses.items()}
            structure = replace(structure, component_poses=poses, ground=None)
        self._structure = structure
        self._focus = ((1 << len(piece.part_ids)) - 1, structure)
        self._verdicts: dict[tuple[int, int, frozenset[int], int | None], Verdict] = {}

    def focus(self, parts: int) -> None:
        """Tells that the next sets to be asked for are parts of this one: they are made from it."""
        self._focus = (parts, self._only(parts))

    def stands(self, parts: int) -> Verdict:
        """Verdict on a set of parts under its own weight."""
        return self._verdict(parts, 0, frozenset(), [{}])

    def bears_press(
        self, parts: int, group: int, joints: Sequence[Joint], supported: int | None = None
    ) -> Verdict:
        """Verdict on a set of parts while a group of others is pressed on it.

        The force is shared by the engaged studs.

        Args:
            parts: The parts that are there.
            group: The parts that are pressed on.
            joints: The connections that are to form.
            supported: Row of a part at which a second hand pushes back: a rigid structure leaves
                nothing to one that only holds. Its push lags behind the press or runs ahead.
        """
        loads = self._presses({(j, j.lower): -1.0 for j in joints})
        if supported is None:
            return self._verdict(parts, group, frozenset(), loads)
        push = self._press({(j, j.lower): 1.0 for j in joints if j.lower == supported}, 0)
        both = [
            _added({part: pressed * wrench for part, wrench in press.items()}, push, pushed)
            for press in loads
            for pressed, pushed in ((1.0, _LAG), (_LAG, 1.0))
        ]
        return self._verdict(parts, group, frozenset(), both, supported)

    def holds_together(self, group: int, held: int, joints: Sequence[Joint]) -> Verdict:
        """Verdict on a group that is held at some parts and pressed on others by them.

        Of several parts between the fingers each has to bear the press alone: a pad holds only the
        one that it touches, and gently, as more would strain the joints between them.

        Args:
            group: The parts of the group.
            held: The parts between the fingers.
            joints: The connections that are to form.
        """
        between = frozenset(self._piece.ids(held))
        lifted = self._verdict(group, -1, between, [{}])
        if not lifted.stable or not joints:
            return lifted
        loads = self._presses({(j, j.upper): 1.0 for j in joints})
        verdicts = (self._verdict(group, -2, frozenset({part}), loads) for part in between)
        return max(verdicts, key=lambda verdict: (not verdict.stable, verdict.utilization))

    def _only(self, parts: int) -> Structure:
        known, structure = self._focus
        if parts & ~known:
            known, structure = (1 << len(self._piece.part_ids)) - 1, self._structure
        gone = known & ~parts
        return structure.without(self._piece.ids(gone)) if gone else structure

    def _presses(self, ends: Mapping[tuple[Joint, int], float]) -> list[dict[int, Array]]:
        """Loads on the parts at one end of joints, by part id, for each place of the press."""
        places = 1 + (len(next(iter(ends))[0].rims) if self._rims and ends else 0)
        return [self._press(ends, place) for place in range(places)]

    def _press(self, ends: Mapping[tuple[Joint, int], float], place: int) -> dict[int, Array]:
        """The loads if the press acts in the middle (0) or on a side (1 to 4) of each joint."""
        graph, poses = self._structure.graph, self._poses
        studs = sum(joint.studs for joint, _ in ends)
        loads: dict[int, Array] = {}
        for (joint, row), sign in ends.items():
            part_id = self._piece.part_ids[row]
            centre = np.array((joint.centre, *joint.rims)[place])
            if self._piece.from_below:
                centre = centre * [1.0, -1.0, -1.0]
            com = transform_points(poses[part_id], graph.part(part_id).shape.com)
            force = np.array([0.0, 0.0, sign * self._press_force * joint.studs / studs])
            wrench = np.concatenate([force, np.cross(centre - com, force)])
            loads[part_id] = loads.get(part_id, np.zeros(6)) + wrench
        return loads

    @cached_property
    def _poses(self) -> dict[int, Array]:
        return self._structure.part_poses()

    def _verdict(
        self,
        parts: int,
        case: int,
        held: frozenset[int],
        cases: Iterable[Mapping[int, Array]],
        supported: int | None = None,
    ) -> Verdict:
        """The worst verdict of some loads; the first one that is not borne."""
        if not parts:
            return Verdict(True, 0.0)
        key = (parts, case, held, supported)
        if key not in self._verdicts:
            rest = self._only(parts)
            rest = replace(rest, fixed=rest.fixed | held)
            self._effort.left -= 1
            worst = Verdict(True, 0.0)
            for loads in cases:
                verdict = self._check(rest, loads)
                if not verdict.stable or verdict.utilization > worst.utilization:
                    worst = verdict
                if not verdict.stable:
                    break
            self._verdicts[key] = worst
        return self._verdicts[key]


def _added(loads: dict[int, Array], others: Mapping[int, Array], share: float) -> dict[int, Array]:
    """Loads [N, N m] by part id with a share of others on top."""
    for part_id, wrench in others.items():
        loads[part_id] = loads.get(part_id, np.zeros(6)) + share * wrench
    return loads
