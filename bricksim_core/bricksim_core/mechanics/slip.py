# SPDX-License-Identifier: Apache-2.0
"""When overloaded connections have come apart: after they have slid out.

An overloaded connection does not vanish, it slides: friction goes on acting while what exceeds it
accelerates the two sides against each other, and stops them again when the overload is over
(Newmark's sliding block). The connection is broken once its studs have slid by their engagement.
An impact must therefore bring the work of friction over that way; a high but short force alone does
nothing. In the limit of short impacts the slip is the square of the impulse that the connection
lacked, over twice the mass that slides and the friction: contact time and time step drop out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from bricksim_core.dynamics import MassProperties, combine
from bricksim_core.mechanics.selection import bodies_joined, select_breaks
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES, RigidPair, wrench_maps
from bricksim_core.mechanics.snapfit.joints import TIP_ROWS, Joints, joints_of
from bricksim_core.mechanics.snapfit.yielding import Equations, YieldSolver, limits_of
from bricksim_core.mechanics.types import Solution
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

_CUTS = 64
"""Cuts that are looked at in a step, worst first, until one is found that cannot hold. Walls of 45
bricks needed more than four."""

_NO_PUSHES = sp.csc_array((RigidPair.size, 0))

_SOFTNESS = 1e-8
"""Relative regularization where rows of a joint stand for the same motion."""


@dataclass(frozen=True)
class Slip:
    """How far a connection has slid.

    Attributes:
        distance: Mean slip of its studs [m].
        speed: [m/s].
        mass: What slides against what, as a mass at the studs [kg].
        strength: Force against which it slides [N].
    """

    distance: float
    speed: float
    mass: float
    strength: float

    def after(self, utilization: float, dt: float) -> Slip:
        """The slip after a time of constant load.

        Args:
            utilization: Load over strength; below 1 friction stops the slip.
            dt: [s]
        """
        acceleration = (utilization - 1.0) * self.strength / self.mass
        speed = self.speed + acceleration * dt
        if speed > 0.0:
            distance = 0.5 * (self.speed + speed) * dt
            return replace(self, distance=self.distance + distance, speed=speed)
        stopped = -0.5 * self.speed**2 / acceleration if self.speed > 0.0 else 0.0
        return replace(self, distance=self.distance + stopped, speed=0.0)


class SlipCriterion:
    """Breaks what has slid out; see `BreakCriterion`.

    What slides is the cut that would break: the weakest set of overloaded connections around the
    worst one (`select_breaks`). It slides as one, in the direction in which the worst connection
    yields, the parts on either side being rigid.

    Args:
        constants: Strengths of the joints.
    """

    def __init__(self, constants: SnapFitConstants = SnapFitConstants()) -> None:
        self._constants = constants
        self._slips: dict[int, Slip] = {}

    def failed(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        solution: Solution,
        overloaded: NDArray[np.bool_],
        engagement: float,
        dt: float,
    ) -> NDArray[np.bool_]:
        """Connections that have slid out (see `BreakCriterion.failed`)."""
        if engagement <= 0.0:
            return overloaded
        ids, utilization = layout.connection_ids, solution.utilization
        failed = np.zeros(len(ids), dtype=bool)
        if not self._slips and not overloaded.any():
            return failed
        sliding = set(self._slide(layout, anchored, solution, overloaded, dt).tolist())
        known = np.fromiter(self._slips, dtype=np.int64, count=len(self._slips))
        rows = np.searchsorted(ids, known)
        rows[rows == len(ids)] = 0
        here = ids[rows] == known
        for connection, index in zip(known[here].tolist(), rows[here].tolist(), strict=True):
            slip = self._slips[connection]
            if index not in sliding and slip.speed > 0.0:
                # Another cut slides; this one runs out under what it carries.
                slip = slip.after(min(float(utilization[index]), 1.0), dt)
                self._slips[connection] = slip
            failed[index] = slip.distance >= engagement
        return failed

    def forget(self, connection_ids: tuple[int, ...]) -> None:
        """Drops the slip of connections that have ended."""
        for connection in connection_ids:
            self._slips.pop(connection, None)

    def slip(self, connection_id: int) -> float:
        """How far a connection has slid in all [m]."""
        slip = self._slips.get(connection_id)
        return 0.0 if slip is None else slip.distance

    def snapshot(self) -> object:
        """All slips."""
        return dict(self._slips)

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot."""
        self._slips = dict(snapshot)

    def _slide(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        solution: Solution,
        overloaded: NDArray[np.bool_],
        dt: float,
    ) -> IntArray:
        """Lets the worst cut that cannot hold slide; indices of its connections."""
        joints = joints_of(layout, self._constants)
        overloaded = overloaded.copy()
        for _ in range(_CUTS):
            cut = select_breaks(
                anchored,
                layout.stud_index,
                layout.hole_index,
                solution.utilization,
                overloaded,
                joints.pull,
            ).broken
            if not len(cut):
                break
            side = sides_of(layout, anchored, cut)
            crossing = joints.take(cut)
            carried = solution.joint_wrench
            wrench = (solution.connection_wrench if carried is None else carried)[cut]
            wrench = shared(
                crossing, side[crossing.lower] == side[crossing.lower[0]], wrench, self._constants
            )
            utilization = crossing.utilization(wrench)
            worst = int(np.argmax(utilization))
            if utilization[worst] > 1.0:
                self._move(layout, anchored, side, cut, crossing, wrench, worst, dt)
                return cut
            # Its connections help each other; the next one may not.
            overloaded[cut] = False
        return np.zeros(0, dtype=np.int64)

    def _move(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        side: IntArray,
        cut: IntArray,
        crossing: Joints,
        wrench: Array,
        worst: int,
        dt: float,
    ) -> None:
        """Lets a cut slide as one, in the direction in which its worst connection yields."""
        joint = crossing.take(np.array([worst]))
        share = float(joint.pull[0] / crossing.pull.sum())
        ends = (int(side[joint.lower[0]]), int(side[joint.upper[0]]))
        inertia = share * relative_inertia(layout, anchored, side, ends, joint.centre[0])
        yielding = yield_rates(joint.rows[0], wrench[worst], inertia)
        tipping = yielding[:TIP_ROWS].sum() > yielding[TIP_ROWS:].sum()
        strength = float(joint.pull[0] if tipping else joint.shear[0])
        load = float(joint.utilization(wrench[[worst]])[0])
        # The work of a yielding row per time is its rate, the slip is work over strength.
        mass = (load - 1.0) * strength**2 / float(yielding.sum())
        for connection in layout.connection_ids[cut].tolist():
            known = self._slips.get(connection, Slip(0.0, 0.0, mass, strength))
            moving = replace(known, mass=mass, strength=strength)
            self._slips[connection] = moving.after(load, dt)


def yield_rates(rows: Array, wrench: Array, inertia: Array) -> Array:
    """How a joint at rest begins to yield under more than it can carry.

    Of all wrenches that it can carry the joint gives the one that leaves the sides the least
    acceleration in the metric of their inertia; they move by R^T mu (Gauss's principle).

    Args:
        rows: (ROWS, 6) R [1/N, 1/(N m)].
        wrench: (6,) what rigid sides need [N, N m].
        inertia: (6, 6) of the sides against each other.

    Returns:
        (ROWS,) mu >= 0: second derivative of the work of each row [J/s^2].
    """
    excess = rows @ wrench - 1.0
    # Least 1/2 mu'(R M R' + e) mu - excess'mu is a nonnegative least squares problem.
    lifted = np.linalg.cholesky(inertia).T @ rows.T
    softness = _SOFTNESS * float((lifted * lifted).sum()) / len(rows)
    lifted = np.vstack([lifted, np.sqrt(softness) * np.eye(len(rows))])
    target = np.concatenate([np.zeros(6), excess / np.sqrt(softness)])
    return nnls(lifted, target)[0]


def sides_of(layout: ComponentLayout, anchored: NDArray[np.bool_], cut: IntArray) -> IntArray:
    """(N,) number of the body that each part belongs to once a cut is open; what the world holds
    is one body."""
    kept = np.ones(len(layout.connection_ids), dtype=bool)
    kept[cut] = False
    return bodies_joined(anchored, layout.stud_index[kept], layout.hole_index[kept])


def shared(
    crossing: Joints, below: NDArray[np.bool_], wrench: Array, constants: SnapFitConstants
) -> Array:
    """How the connections of a cut share what it has to carry, with rigid sides.

    Args:
        crossing: The K connections of the cut.
        below: (K,) True where the lower part is on the first side.
        wrench: (K, 6) some wrenches with the right sum [N, N m].
        constants: For softness and stiffness.

    Returns:
        (K, 6) wrenches of least overload [N, N m].
    """
    if len(crossing) == 1:
        return wrench
    pair = RigidPair(below, crossing.centre, crossing.stiffness)
    ones = np.ones(len(crossing))
    rows = crossing.rows * PITCHES
    limits = limits_of(rows.__getitem__, ones, crossing.pull, constants, crossing.greatest)
    solver = YieldSolver(Equations(pair, limits, _NO_PUSHES, np.zeros(0), np.zeros(0)))
    used = np.abs(rows).max(axis=2) > 0.0
    bonded = pair.displacements(pair.total(wrench / PITCHES))
    yielded = solver.solve(bonded, solver.likely(bonded, np.flatnonzero(used)))
    return wrench if yielded is None else yielded.wrench * PITCHES


def relative_inertia(
    layout: ComponentLayout,
    anchored: NDArray[np.bool_],
    side: IntArray,
    ends: tuple[int, int],
    point: Array,
) -> Array:
    """(6, 6) inertia of two bodies against each other, for twists at a point.

    With M the inertias of the bodies it is (M_a^-1 + M_b^-1)^-1; what the world holds does not
    move.

    Args:
        layout: The component.
        anchored: (N,) parts that the world holds.
        side: (N,) number of the body that each part belongs to.
        ends: The two bodies.
        point: (3,) [m].
    """
    mobility = np.zeros((6, 6))
    for end in ends:
        members = side == end
        if anchored[members].any():
            continue
        body = combine(layout.masses[members], layout.coms[members], layout.inertias[members])
        scaled = wrench_maps(point[None], body.com[None])[0]
        to_com = scaled * PITCHES[:, None] / PITCHES
        mobility += to_com.T @ np.linalg.solve(_inertia(body), to_com)
    return np.linalg.inv(mobility)


def _inertia(body: MassProperties) -> Array:
    matrix = np.diag([body.mass] * 3 + [0.0] * 3)
    matrix[3:, 3:] = body.inertia
    return matrix
