# SPDX-License-Identifier: Apache-2.0
"""The order in which a structure can be built, brick by brick from above."""

from bricksim_core.sequencing.gripper import Grasp, GripperError, GripperModel
from bricksim_core.sequencing.plan import AssemblyPlan, Step, SubAssembly
from bricksim_core.sequencing.planner import plan_assembly
from bricksim_core.sequencing.search import SequenceError
from bricksim_core.sequencing.statics import StaticCheck, Verdict, analysis_check, no_check

__all__ = [
    "AssemblyPlan",
    "Grasp",
    "GripperError",
    "GripperModel",
    "SequenceError",
    "StaticCheck",
    "Step",
    "SubAssembly",
    "Verdict",
    "analysis_check",
    "no_check",
    "plan_assembly",
]
