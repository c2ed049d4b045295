# SPDX-License-Identifier: Apache-2.0
"""Motion planning behind one interface: `embedded` (roboplan) and `moveit`."""

from bricksim_moveit_demo.planning.protocol import (
    MotionPlanner,
    PlanningOptions,
    Trajectory,
    create_planner,
)
from bricksim_moveit_demo.planning.scene import Box, PlanningScene

__all__ = [
    "Box",
    "MotionPlanner",
    "PlanningOptions",
    "PlanningScene",
    "Trajectory",
    "create_planner",
]
