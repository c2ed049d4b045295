# SPDX-License-Identifier: Apache-2.0
"""Assembly: which bricks that press on each other click together."""

from bricksim_core.assembly.monitor import AssemblyMonitor
from bricksim_core.assembly.types import AssemblyThresholds, Candidate

__all__ = ["AssemblyMonitor", "AssemblyThresholds", "Candidate"]
