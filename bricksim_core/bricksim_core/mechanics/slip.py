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
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bricksim_core.dynamics import MassProperties, combine
from bricksim_core.mechanics.selection import select_breaks
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES, wrench_maps
from bricksim_core.mechanics.snapfit.joints import TIP_ROWS, Joints, joints_of
from bricksim_core.mechanics.types import Solution
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray


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
        self._joints: WeakKeyDictionary[ComponentLayout, Joints] = WeakKeyDictionary()

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
        ids = layout.connection_ids.tolist()
        utilization = solution.utilization
        failed = np.zeros(len(ids), dtype=bool)
        if not self._slips and not overloaded.any():
            return failed
        sliding = self._cut(layout, anchored, utilization, overloaded)
        if len(sliding):
            self._slide(layout, anchored, solution, sliding, dt)
        for index, connection in enumerate(ids):
            slip = self._slips.get(connection)
            if slip is None:
                continue
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

    def _joints_of(self, layout: ComponentLayout) -> Joints:
        joints = self._joints.get(layout)
        if joints is None:
            joints = self._joints[layout] = joints_of(layout, self._constants)
        return joints

    def _cut(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        utilization: Array,
        overloaded: NDArray[np.bool_],
    ) -> IntArray:
        selection = select_breaks(
            anchored,
            layout.stud_index,
            layout.hole_index,
            utilization,
            overloaded,
            self._joints_of(layout).pull,
        )
        return selection.broken

    def _slide(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        solution: Solution,
        cut: IntArray,
        dt: float,
    ) -> None:
        """Lets a cut slide as one."""
        joints = self._joints_of(layout)
        worst = int(cut[np.argmax(solution.utilization[cut])])
        joint = joints.take(np.array([worst]))
        corners = solution.contact_force[4 * worst : 4 * worst + 4]
        wrench = joint.joined(solution.connection_wrench[[worst]], corners[None])
        row = int(np.argmax((joint.rows @ wrench[:, :, None])[0, :, 0]))
        strength = float(joint.pull[0] if row < TIP_ROWS else joint.shear[0])
        # Sliding by q moves the sides against each other by the twist (row * strength) q.
        direction = joint.rows[0, row] * strength
        share = float(joints.pull[worst] / joints.pull[cut].sum())
        inertia = relative_inertia(layout, anchored, cut, worst, joint.centre[0])
        mass = share * float(direction @ inertia @ direction)
        load = float(solution.utilization[worst])
        for index in cut.tolist():
            connection = int(layout.connection_ids[index])
            known = self._slips.get(connection, Slip(0.0, 0.0, mass, strength))
            moving = replace(known, mass=mass, strength=strength)
            self._slips[connection] = moving.after(load, dt)


def relative_inertia(
    layout: ComponentLayout,
    anchored: NDArray[np.bool_],
    cut: IntArray,
    connection: int,
    point: Array,
) -> Array:
    """(6, 6) inertia of the two sides of a cut against each other, for twists at a point.

    With M the inertias of the sides it is (M_a^-1 + M_b^-1)^-1; a side that the world holds does
    not move.

    Args:
        layout: The component.
        anchored: (N,) parts that the world holds.
        cut: Indices of the connections between the sides.
        connection: Index of one of them.
        point: (3,) [m].
    """
    kept = np.ones(len(layout.connection_ids), dtype=bool)
    kept[cut] = False
    world = np.flatnonzero(anchored)
    rows = np.concatenate([layout.stud_index[kept], world[:-1]])
    columns = np.concatenate([layout.hole_index[kept], world[1:]])
    shape = (len(layout.part_ids),) * 2
    links = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    side = connected_components(links, directed=False)[1]
    mobility = np.zeros((6, 6))
    for part in (layout.stud_index[connection], layout.hole_index[connection]):
        members = side == side[part]
        if anchored[members].any():
            continue
        body = combine(layout.masses[members], layout.coms[members], layout.inertias[members])
        scaled = wrench_maps(point[None], body.com[None])[0]
        to_com = scaled * PITCHES[:, None] / PITCHES
        mobility[:] += to_com.T @ np.linalg.solve(_inertia(body), to_com)
    return np.linalg.inv(mobility)


def _inertia(body: MassProperties) -> Array:
    matrix = np.diag([body.mass] * 3 + [0.0] * 3)
    matrix[3:, 3:] = body.inertia
    return matrix
