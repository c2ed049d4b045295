# SPDX-License-Identifier: Apache-2.0
"""Where tests find moveit_msgs: in the ROS 2 that is sourced; else what they need is built."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parent / "moveit_interfaces"
BUILD = ROOT / "build" / "moveit_interfaces"

IN_BUILD_ENVIRONMENT = """
import os, sys
sys.path.insert(0, sys.argv[1])
import ros
os.execvpe(sys.argv[2], sys.argv[2:], ros.build_environment(ros.find_source()))
"""


def moveit_environment() -> dict[str, str]:
    """Environment of processes that import moveit_msgs. The first call takes a quarter minute."""
    if importlib.util.find_spec("moveit_msgs") is not None:
        return dict(os.environ)
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        key, stamp = _digest(), BUILD / "stamp"
        if not stamp.exists() or stamp.read_text() != key:
            _build()
            stamp.write_text(key)
    prefix = BUILD / "install"
    more = {
        "AMENT_PREFIX_PATH": prefix,
        "LD_LIBRARY_PATH": prefix / "lib",
        "PYTHONPATH": prefix / "lib" / "python3.12" / "site-packages",
    }
    before = os.environ
    return {**before, **{k: f"{v}:{before[k]}" if k in before else f"{v}" for k, v in more.items()}}


def _build() -> None:
    command = [
        *(sys.executable, "-E", "-s", "-c", IN_BUILD_ENVIRONMENT, ROOT / "scripts" / "setup"),
        *(sys.executable, "-m", "colcon", "--log-base", BUILD / "log", "build", "--merge-install"),
        *("--paths", SOURCE, "--build-base", BUILD / "build", "--install-base", BUILD / "install"),
        *("--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=OFF"),
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _digest() -> str:
    value = hashlib.sha256(f"{ROOT} {sys.prefix} {os.environ.get('AMENT_PREFIX_PATH')}".encode())
    for file in sorted(path for path in SOURCE.rglob("*") if path.is_file()):
        value.update(file.read_bytes())
    return value.hexdigest()
