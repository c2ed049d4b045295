# SPDX-License-Identifier: Apache-2.0
"""What a single connection carries of one kind of load."""

from __future__ import annotations

from dataclasses import dataclass

from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.joints import joints_of
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph


@dataclass(frozen=True)
class ConnectionLimits:
    """Greatest loads of one kind, about the centre of the overlap at the stud plane.

    Attributes:
        studs: Engaged studs.
        pull: Pure pull [N].
        shear: Pure lateral force along a stud axis [N].
        twist: Pure torque about the stud axis [N m].
        tilt_x: Pure moment about the lower part's x axis [N m].
        tilt_y: Pure moment about its y axis [N m].
    """

    studs: int
    pull: float
    shear: float
    twist: float
    tilt_x: float
    tilt_y: float


def connection_limits(
    lower: BrickShape,
    upper: BrickShape,
    offset: tuple[int, int] = (0, 0),
    yaw: int = 0,
    constants: SnapFitConstants = SnapFitConstants(),
) -> ConnectionLimits:
    """Limits of the connection of two parts.

    Args:
        lower: Part whose studs hold.
        upper: Part whose holes hold.
        offset: Hole interface origin in the stud interface frame [studs].
        yaw: Of the hole interface [quarter turns].
        constants: The model's constants.

    Raises:
        TopologyError: They do not connect there.
    """
    graph = BrickTopologyGraph()
    below, above = graph.add_part(lower), graph.add_part(upper)
    graph.connect(below, above, offset, yaw, keep=graph.component_of(below))
    joints = joints_of(graph.layout(graph.component_of(below)), constants)
    minus_x, plus_x, minus_y, plus_y = joints.tip[0].tolist()
    return ConnectionLimits(
        studs=int(joints.studs[0]),
        pull=float(joints.pull[0]),
        shear=float(joints.shear[0]),
        twist=float(joints.twist[0]),
        tilt_x=min(minus_y, plus_y),
        tilt_y=min(minus_x, plus_x),
    )
