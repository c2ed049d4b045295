# SPDX-License-Identifier: Apache-2.0
"""The ``bricksim`` command. One module per command, thin over the library."""

import sys


def main() -> None:
    """Entry point of the ``bricksim`` command."""
    from bricksim_core.interrupts import INTERRUPTED, keep_interrupts

    keep_interrupts()
    try:
        from bricksim_core.cli.app import run

        code = run()
    except KeyboardInterrupt:  # while it loads
        print("bricksim: interrupted", file=sys.stderr)
        code = INTERRUPTED
    raise SystemExit(code)
