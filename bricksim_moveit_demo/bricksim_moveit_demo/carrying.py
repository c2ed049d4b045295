# SPDX-License-Identifier: Apache-2.0
"""How fast an arm may carry what hangs together: as its joints bear, by gravity and inertia.

A motion that is stretched in time by a factor has all of its inertial loads divided by the square
of it, whatever its path. Which joint gives way is asked of the model of connections, with what the
fingers hold taken as held.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.models import get_model
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology.layout import ComponentLayout
from bricksim_moveit_demo.kinematics import ArmKinematics
from bricksim_moveit_demo.planning.protocol import Trajectory

_SHARE = 0.5
"""Share of the capacity that gravity leaves which a planned motion may use [-]: the rest is for how
the drives follow it."""
_CREEPING = 8.0
"""Greatest factor by which a motion is stretched [-]: its loads are 1.6 % then."""
_BISECTIONS = 8
"""How often the range of factors is halved: 0.03 of it is left open."""


class Load:
    """What hangs together in a hand.

    Args:
        layout: It.
        between: Parts between the fingers.
        tool_T_component: (4, 4) how it is held [m].
    """

    def __init__(
        self, layout: ComponentLayout, between: Collection[int], tool_T_component: Array
    ) -> None:
        held = np.isin(layout.part_ids, list(between))
        self._layout = layout
        self._tool_T_component = tool_T_component
        self._system = get_model("default").system(layout, held, None)

    def forces(self, tool: Array, twist: Array, acceleration: Array) -> tuple[Array, Array]:
        """Loads of gravity, and of a motion of the tool, on each part.

        Args:
            tool: (4, 4) world_T_tool [m].
            twist: (6,) of the tool [m/s, rad/s], world axes.
            acceleration: (6,) of the tool [m/s^2, rad/s^2], world axes.

        Returns:
            (N, 6) each, about the parts' COM, component axes [N, N m].
        """
        layout = self._layout
        pose = tool @ self._tool_T_component
        turn, masses = pose[:3, :3], layout.masses[:, None]
        arms = transform_points(pose, layout.coms) - tool[:3, 3]
        spin, spinning = twist[3:], acceleration[3:]
        moved = acceleration[:3] + np.cross(spinning, arms) + np.cross(spin, np.cross(spin, arms))
        weight, inertial = np.zeros((2, len(masses), 6))
        weight[:, :3] = masses * (turn.T @ [0.0, 0.0, -STANDARD_GRAVITY])
        inertial[:, :3] = -masses * (moved @ turn)
        inertial[:, 3:] = -layout.inertias @ (turn.T @ spinning)
        return weight, inertial

    def utilization(self, loads: Array) -> float:
        """Greatest utilization of a joint under loads of the parts ((N, 6), as `forces`)."""
        return float(np.nan_to_num(self._system.solve(loads).utilization, nan=np.inf).max())


def slowed(trajectory: Trajectory, factor: float) -> Trajectory:
    """A trajectory that takes longer by a factor [-], on the same path."""
    return Trajectory(
        trajectory.joints,
        factor * trajectory.times,
        trajectory.positions,
        trajectory.velocities / factor,
        trajectory.accelerations / factor**2,
    )


def gentle(trajectory: Trajectory, kinematics: ArmKinematics, load: Load) -> Trajectory:
    """A trajectory, as slow as the joints of what is carried need it.

    Where they hardly bear its weight on the way, or do not, it creeps.

    Args:
        trajectory: Of the arm's joints, in their order.
        kinematics: The arm's.
        load: What it carries.
    """
    states = zip(trajectory.positions, trajectory.velocities, trajectory.accelerations, strict=True)
    critical = []
    for state in states:
        weight, inertial = load.forces(*kinematics.tool_motion(*state))
        rest = load.utilization(weight)
        limit = rest + _SHARE * max(1.0 - rest, 0.0)
        if load.utilization(weight + inertial) > limit:
            critical.append((weight, inertial, limit))
    if not critical:
        return trajectory

    def borne(share: float) -> bool:
        """Whether a share of the motion's own loads is, everywhere."""
        return all(
            load.utilization(weight + share * inertial) <= limit
            for weight, inertial, limit in critical
        )

    low, high = 1.0, _CREEPING
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if borne(1.0 / middle**2) else (middle, high)
    return slowed(trajectory, high)
