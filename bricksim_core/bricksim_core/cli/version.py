# SPDX-License-Identifier: Apache-2.0
"""``bricksim version``."""

from __future__ import annotations

from bricksim_core.cli.options import examples

NAME = "version"
EXAMPLES = examples("bricksim version")


def command() -> int:
    """Print the version."""
    print(f"bricksim {installed_version()}")
    return 0


def installed_version() -> str:
    """Version of the installed package, or what stands for it in a checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("bricksim_core")
    except PackageNotFoundError:
        return "(not installed)"
