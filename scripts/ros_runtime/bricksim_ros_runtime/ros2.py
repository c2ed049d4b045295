# SPDX-License-Identifier: Apache-2.0
"""The ``ros2`` program."""

from __future__ import annotations

import sys


def main() -> int | str | None:
    """Runs ros2cli.

    Returns:
        Its exit code, or a text for stderr if the runtime is not on the path.
    """
    try:
        from ros2cli.cli import main as ros2
    except ImportError as error:
        return f"ros2: {error}; first: source {sys.prefix}/bin/activate-ros"
    return ros2()
