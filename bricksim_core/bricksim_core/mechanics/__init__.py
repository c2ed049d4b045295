# SPDX-License-Identifier: Apache-2.0
"""From a component and its loads to utilization: do the studs hold?"""

from bricksim_core.mechanics.analysis import Analysis, analyze

__all__ = ["Analysis", "analyze"]
