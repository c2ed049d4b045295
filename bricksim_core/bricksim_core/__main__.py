# SPDX-License-Identifier: Apache-2.0
"""``python -m bricksim_core`` is the command ``bricksim``."""

import sys

from bricksim_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
