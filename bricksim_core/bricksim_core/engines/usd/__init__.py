# SPDX-License-Identifier: Apache-2.0
"""Stages in OpenUSD: bricks, welds and robots for PhysX engines and for files.

`write_stage` and `read_stage` exchange structures; `StageAuthor` is what the ovphysx and Isaac Sim
engines build their scenes with. Needs OpenUSD's Python modules: the extra ``usd``, or those of
Isaac Sim.
"""

from bricksim_core.errors import EngineError

try:
    import pxr.UsdPhysics  # noqa: F401
except ImportError as error:
    raise EngineError(
        "OpenUSD is not installed: pip install 'bricksim_core[usd]' (package usd-core)"
    ) from error

from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.engines.usd.files import read_stage, write_stage

__all__ = ["PhysxSettings", "StageAuthor", "read_stage", "write_stage"]
