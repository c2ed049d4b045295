# SPDX-License-Identifier: Apache-2.0
"""The default snap-fit model."""

from bricksim_core.mechanics.snapfit.constants import ConstantsError, SnapFitConstants
from bricksim_core.mechanics.snapfit.system import SnapFitModel, SnapFitSystem

__all__ = [
    "ConstantsError",
    "SnapFitConstants",
    "SnapFitModel",
    "SnapFitSystem",
]
