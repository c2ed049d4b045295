# SPDX-License-Identifier: Apache-2.0
"""Launch files started as users start them, in a session of their own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path


def launch(package: str, *arguments: str | Path) -> subprocess.Popen:
    """Starts a launch file of a package."""
    return subprocess.Popen(
        ["ros2", "launch", package, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen, timeout: float = 120.0) -> str:
    """What a launch prints until it ends; it is killed with all its processes if it does not."""
    try:
        return process.communicate(timeout=timeout)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def left(process: subprocess.Popen) -> list[str]:
    """Command lines of what still runs in the launch's session."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--sid", str(process.pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in found.stdout.splitlines() if "<defunct>" not in line]


def has_node(process: subprocess.Popen, name: str) -> bool:
    """Whether Python runs for a node in the launch's session."""
    return any("python" in line and f"__node:={name}" in line for line in left(process))


def node_pid(process: subprocess.Popen, name: str) -> int:
    """Process id of a node in the launch's session."""
    found = subprocess.run(
        ["pgrep", "--session", str(process.pid), "-f", f"__node:={name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(found.stdout)
