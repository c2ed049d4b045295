# SPDX-License-Identifier: Apache-2.0
"""The default snap-fit model."""

from bricksim_core.mechanics.snapfit.capacity import ConnectionLimits, connection_limits
from bricksim_core.mechanics.snapfit.constants import ConstantsError, SnapFitConstants
from bricksim_core.mechanics.snapfit.system import SnapFitModel, SnapFitSystem

__all__ = [
    "ConnectionLimits",
    "ConstantsError",
    "SnapFitConstants",
    "SnapFitModel",
    "SnapFitSystem",
    "connection_limits",
]
