# SPDX-License-Identifier: Apache-2.0
"""The ``bricksim`` command. One module per command, thin over the library."""


def main() -> None:
    """Entry point of the ``bricksim`` command."""
    from bricksim_core.cli.app import run
    from bricksim_core.interrupts import keep_interrupts

    keep_interrupts()
    raise SystemExit(run())
