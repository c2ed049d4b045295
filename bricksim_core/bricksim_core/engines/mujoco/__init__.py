# SPDX-License-Identifier: Apache-2.0
"""The default engine: MuJoCo with one composite body per component."""

from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.mujoco.engine import MujocoEngine

__all__ = ["ContactParameters", "MujocoEngine"]
