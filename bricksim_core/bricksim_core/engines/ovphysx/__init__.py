# SPDX-License-Identifier: Apache-2.0
"""PhysX on the CPU without Omniverse Kit: the twin of the Isaac Sim engine.

Needs the extra ``ovphysx``. NVIDIA's package of that name comes under the NVIDIA Omniverse
licence; it is not part of BrickSim.
"""

from bricksim_core.errors import EngineError

VERSION = "0.7.0"
"""Release of ovphysx that this engine was written for and tested with; it uses parts of the
package that are not public."""

try:
    import ovphysx
    import ovstage  # noqa: F401
    import physx_usd_schemas  # noqa: F401
except ImportError as error:
    raise EngineError(
        f"{error.name} is not installed: pip install 'bricksim_core[ovphysx]' in an environment"
        " of its own (NVIDIA Omniverse licence)"
    ) from None
if not ovphysx.__version__.startswith(f"{VERSION}."):
    raise EngineError(f"ovphysx is {ovphysx.__version__}, expected {VERSION}.*")

from bricksim_core.engines.ovphysx.engine import OvphysxEngine  # noqa: E402

__all__ = ["OvphysxEngine"]
