# SPDX-License-Identifier: Apache-2.0
"""Entry points of the programs: linear algebra gets one thread before numpy is loaded."""

from __future__ import annotations

import signal
from importlib import import_module

from bricksim_core.interrupts import keep_interrupts
from bricksim_core.threads import use_single_thread


def simulator() -> int:
    """``ros2 run bricksim_moveit_demo simulator``."""
    # An interrupt while it loads ends it without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _run("nodes.arms_node", "main")


def assemble() -> int:
    """``ros2 run bricksim_moveit_demo assemble``."""
    return _run("commands", "assemble")


def inhand() -> int:
    """``ros2 run bricksim_moveit_demo inhand``."""
    return _run("commands", "inhand")


def benchmark() -> int:
    """``ros2 run bricksim_moveit_demo assembly_benchmark``."""
    return _run("commands", "benchmark")


def _run(module: str, function: str) -> int:
    use_single_thread()
    keep_interrupts()
    return getattr(import_module(f"bricksim_moveit_demo.{module}"), function)()
