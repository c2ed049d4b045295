# SPDX-License-Identifier: Apache-2.0
"""How far the forces in a bonded structure can change with its loads, without solving for them.

Of all wrenches that balance given loads the elastic ones have the least energy (Castigliano), so
the energy of any others is an upper bound. Those that flow along a spanning tree of the joints take
sums only. The energy bounds every wrench, and with it every row of a utilization and, by virtual
work, every displacement (Cauchy and Schwarz):

    |r' w| <= |D^(1/2) r| sqrt(w' D^-1 w)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed
from bricksim_core.mechanics.incidence import ends_at
from bricksim_core.mechanics.snapfit.joints import Joints
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray


class ChangeBound:
    """Bounds for a component whose joints do not yield.

    Args:
        layout: The component.
        held: (N,) parts that do not move.
        joints: Its connections, all joints that it has.

    Attributes:
        per_utilization: (C,) greatest change of each connection's utilization over the root of the
            energy [1/sqrt(J)].
        per_displacement: Greatest displacement of any point of a part over that root
            [m/sqrt(J)].
    """

    def __init__(self, layout: ComponentLayout, held: NDArray[np.bool_], joints: Joints) -> None:
        self._coms = layout.coms / STUD_PITCH
        self._parts, self._onto, joint = _spanning_tree(joints.lower, joints.upper, held)
        self._centre = joints.centre[joint] / STUD_PITCH
        # A unit force anywhere on a part has no longer lever than the component's diameter.
        size = (
            np.linalg.norm(np.ptp(layout.coms, axis=0))
            + np.linalg.norm(layout.dimensions, axis=1).max(initial=0.0) * STUD_PITCH
        )
        self._compliance, longest, self.per_utilization = _per_energy(
            joints.stiffness, joints.twist, joints.half, joints.tip, joints.shear, joint,
            float(size),
        )  # fmt: skip
        self.per_displacement = float(np.sqrt(_farthest(self._parts, self._onto, longest)))

    def root_energy(self, change: Array) -> float:
        """Upper bound of sqrt(w' D^-1 w) for the wrenches by a change of loads [sqrt(J)].

        Args:
            change: (N, 6) scaled loads about the parts' COMs [N]; what acts on held parts goes into
                the world, and the rest has to be in balance with that.
        """
        flow = _energy(
            self._parts, self._onto, self._coms, self._centre, self._compliance, change.copy()
        )
        return math.sqrt(flow)

    def bears(self, root_energy: float, utilization: Array, tolerance: float) -> bool:
        """Whether no utilization can change by more than a tolerance, nor any get beyond 1.

        Args:
            root_energy: Of the change.
            utilization: (C,) before it.
            tolerance: [-]
        """
        return _bears(self.per_utilization, root_energy, utilization, tolerance)


@compiled
def _bears(
    per_utilization: Array, root_energy: float, utilization: Array, tolerance: float
) -> bool:
    """See `ChangeBound.bears`."""
    for c in range(len(utilization)):
        error = per_utilization[c] * root_energy
        if not (error <= tolerance and utilization[c] + error <= 1.0):
            return False
    return True


@compiled
def _per_energy(
    stiffness: Array,
    twist: Array,
    half: Array,
    tip: Array,
    shear: Array,
    joint: IntArray,
    size: float,
) -> tuple[Array, Array, Array]:
    """What follows from the energy of joints.

    Args:
        stiffness: (C, 6) as in `Joints`.
        twist: (C,) as there.
        half: (C, 2) as there.
        tip: (C, 4) as there.
        shear: (C,) as there.
        joint: (M,) those of a tree.
        size: The longest lever of a force [m].

    Returns:
        (M, 6) scaled compliance of the tree's joints [m/N], (M,) of these how far the end of the
        lever moves at most by a unit force there [m/N], and (C,) `ChangeBound.per_utilization`.
    """
    compliance, longest = np.empty((len(joint), 6)), np.empty(len(joint))
    for j in range(len(joint)):
        for c in range(6):
            k = stiffness[joint[j], c]
            compliance[j, c] = 1.0 / (k if c < 3 else k / STUD_PITCH**2)
        shift = max(max(compliance[j, 0], compliance[j, 1]), compliance[j, 2])
        turn = min(min(stiffness[joint[j], 3], stiffness[joint[j], 4]), stiffness[joint[j], 5])
        longest[j] = shift + (size / STUD_PITCH) ** 2 / (turn / STUD_PITCH**2)
    per_utilization = np.empty(len(half))
    for c in range(len(half)):
        k = stiffness[c]
        about_y = (half[c, 0] ** 2 * k[2] + k[4]) / min(tip[c, 0], tip[c, 1]) ** 2
        about_x = (half[c, 1] ** 2 * k[2] + k[3]) / min(tip[c, 2], tip[c, 3]) ** 2
        bearing = (k[0] + k[1]) / shear[c] ** 2
        worst = max(max(about_x, about_y), bearing) + k[5] / twist[c] ** 2
        per_utilization[c] = math.sqrt(worst)
    return compliance, longest, per_utilization


@compiled
def _spanning_tree(
    lower: IntArray, upper: IntArray, held: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray]:
    """Shortest ways from all parts to held ones.

    Args:
        lower: (C,) lower part of each joint.
        upper: (C,) upper part.
        held: (N,) parts that do not move.

    Returns:
        (N - H,) parts that move, near ones first; (N,) the part that each of them hangs on, and
        (N - H,) the joint that it does by. Of equally short ways it is those by the first parts and
        joints.
    """
    parts, count = len(held), len(lower)
    start, ends = ends_at(parts, lower, upper)
    # Told by the others, one after the other, neighbours are sorted.
    at, near = start[:-1].copy(), np.empty(2 * count, dtype=np.int64)
    for i in range(parts):
        for end in ends[start[i] : start[i + 1]]:
            j = end // 2
            other = lower[j] if end % 2 else upper[j]
            near[at[other]] = j
            at[other] += 1
    onto, seen = np.full(parts, -1, dtype=np.int64), held.copy()
    queue, by = np.empty(parts, dtype=np.int64), np.full(parts, -1, dtype=np.int64)
    first = 0
    for i in range(parts):
        if held[i]:
            queue[first] = i
            first += 1
    head, tail = 0, first
    while head < tail:
        i = queue[head]
        head += 1
        for j in near[start[i] : start[i + 1]]:
            other = upper[j] if lower[j] == i else lower[j]
            if not seen[other]:
                seen[other], onto[other], by[tail], queue[tail] = True, i, j, other
                tail += 1
    return queue[first:tail], onto, by[first:tail]


@compiled
def _farthest(moving: IntArray, onto: IntArray, length: Array) -> float:
    """Greatest sum of the lengths of a tree's joints on a way to what is held.

    Args:
        moving: See `_spanning_tree`.
        onto: See there.
        length: (N - H,) of each joint.
    """
    way, farthest = np.zeros(len(onto)), 0.0
    for k in range(len(moving)):
        way[moving[k]] = way[onto[moving[k]]] + length[k]
        farthest = max(farthest, float(way[moving[k]]))
    return farthest


@compiled
def _energy(
    moving: IntArray, onto: IntArray, coms: Array, centre: Array, compliance: Array, loads: Array
) -> float:
    """Twice the energy [J] of loads that flow along a tree.

    Args:
        moving: See `_spanning_tree`.
        onto: See there.
        coms: (N, 3) of the parts [pitches].
        centre: (N - H, 3) of the joints [pitches].
        compliance: (N - H, 6) of the joints, scaled [m/N].
        loads: (N, 6) scaled, about the parts' COMs [N]; overwritten.
    """
    for i in range(len(coms)):
        moment = crossed(coms[i], loads[i])
        for c in range(3):
            loads[i, 3 + c] += moment[c]
    energy = 0.0
    for k in range(len(moving) - 1, -1, -1):
        own, below = loads[moving[k]], loads[onto[moving[k]]]
        for c in range(6):
            below[c] += own[c]
        moment = crossed(centre[k], own)
        for c in range(3):
            own[3 + c] -= moment[c]
        for c in range(6):
            energy += compliance[k, c] * own[c] * own[c]
    return energy
