# SPDX-License-Identifier: Apache-2.0
"""Entry points of the programs. An interrupt while they load ends them without a traceback."""

from __future__ import annotations

from importlib import import_module

from bricksim_core.interrupts import end_when_interrupted
from bricksim_core.threads import use_single_thread


def simulator() -> int:
    """``ros2 run bricksim_ros simulator``."""
    return _run("simulator_node")


def markers() -> int:
    """``ros2 run bricksim_ros markers``."""
    return _run("markers_node")


def recorder() -> int:
    """``ros2 run bricksim_ros recorder``."""
    return _run("recorder_node")


def press_demo() -> int:
    """``ros2 run bricksim_ros press_demo``."""
    return _run("press_demo")


def _run(module: str) -> int:
    end_when_interrupted()
    use_single_thread()
    return import_module(f"bricksim_ros.{module}").main()
