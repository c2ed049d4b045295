# SPDX-License-Identifier: Apache-2.0
"""``python -m bricksim_core.engines NAME``: can this Python start an engine?

Exit code 0, or 2 and one line that says what is missing. `bricksim doctor --engine NAME` tries the
engine itself.
"""

from __future__ import annotations

import sys

from bricksim_core.engines.factory import require_engine
from bricksim_core.errors import EngineError


def main(name: str = "mujoco") -> int:
    """The exit code."""
    try:
        require_engine(name)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
