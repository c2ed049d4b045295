# SPDX-License-Identifier: Apache-2.0
"""NVIDIA Isaac Sim 6.2 as an engine.

Runs in Isaac Sim's own Python 3.12 on a machine with an NVIDIA RTX GPU (docs/engines.md). The
application has to be started before anything of Omniverse or OpenUSD is imported: `start` does so.
"""

from bricksim_core.engines.isaacsim.launch import IsaacOptions, start

__all__ = ["IsaacOptions", "start"]
