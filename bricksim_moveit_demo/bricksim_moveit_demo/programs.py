# SPDX-License-Identifier: Apache-2.0
"""Entry points of the programs: linear algebra gets one thread before numpy is loaded."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from bricksim_core.interrupts import INTERRUPTED, end_when_interrupted, keep_interrupts
from bricksim_core.threads import use_single_thread


def simulator() -> int:
    """``ros2 run bricksim_moveit_demo simulator``."""
    end_when_interrupted()
    return _run("nodes.arms_node", "main")


def assemble() -> int:
    """``ros2 run bricksim_moveit_demo assemble``."""
    return _command("assemble")


def inhand() -> int:
    """``ros2 run bricksim_moveit_demo inhand``."""
    return _command("inhand")


def benchmark() -> int:
    """``ros2 run bricksim_moveit_demo assembly_benchmark``."""
    return _command("benchmark")


def _command(function: str) -> int:
    keep_interrupts()
    try:
        return _run("commands", function)
    except KeyboardInterrupt:
        print(f"{Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(module: str, function: str) -> int:
    use_single_thread()
    return getattr(import_module(f"bricksim_moveit_demo.{module}"), function)()
