# SPDX-License-Identifier: Apache-2.0
"""Where ROS 2 Jazzy comes from: a sourced system installation, or a private runtime from PyPI.

The private runtime has two halves. The ``ros-jazzy-*`` wheels hold what builds messages
(generators, CMake packages, headers). The ``isaacsim-ros2`` wheel holds what runs them: rclpy,
launch, ros2cli, tf2, simulation_interfaces. Neither half is put on the path of .venv itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from common import (
    PYTHON,
    REQUIREMENTS,
    ROOT,
    ROS,
    ROS_BUILD,
    ROS_RUNTIME,
    SITE_PACKAGES,
    SetupError,
    clean_environment,
    digest,
    doing,
    is_done,
    remove,
    run,
    say,
)

WHEELS_PYTHON = "/opt/python/cp312-cp312"
"""Where the Python stood that built the wheels; their CMake files name its header folders."""
BUNDLE = Path("isaacsim") / "exts" / "isaacsim.ros2.core" / "jazzy"


def system_prefixes() -> list[str]:
    """Prefixes of a sourced ROS 2 Jazzy that is not this project's own runtime."""
    if os.environ.get("ROS_DISTRO") != "jazzy":
        return []
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if p]
    return [p for p in prefixes if not Path(p).resolve().is_relative_to(ROOT)]


def find_source() -> str:
    """``system`` if a ROS 2 Jazzy with rclpy is sourced, else ``private``."""
    if any((Path(p) / "share" / "rclpy").is_dir() for p in system_prefixes()):
        return "system"
    return "private"


def libpython_folder() -> str:
    """Folder of libpython3.12.so, which the private runtime's libraries link to.

    Raises:
        SetupError: This Python has none.
    """
    for name in ("LIBDIR", "LIBPL"):
        folder = sysconfig.get_config_var(name)
        if folder and (Path(folder) / "libpython3.12.so.1.0").exists():
            return folder
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch and (Path("/usr/lib") / multiarch / "libpython3.12.so.1.0").exists():
        return f"/usr/lib/{multiarch}"
    raise SetupError(
        "this Python has no shared library libpython3.12.so.1.0, which ROS 2 needs; install the"
        " package libpython3.12 or build Python with --enable-shared"
    )


def build_environment(source: str) -> dict[str, str]:
    """Environment in which colcon builds against the system's ROS 2 or the private runtime."""
    if source == "system":
        return dict(os.environ) | {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}
    packages = ROS_BUILD / "lib" / "python3.12" / "site-packages"
    libraries = [ROS_BUILD / "lib", *sorted(packages.glob("ros_*.libs")), libpython_folder()]
    kept = {n: v for n, v in clean_environment().items() if not n.startswith(("ROS_", "AMENT_"))}
    return kept | {
        "AMENT_PREFIX_PATH": str(ROS_BUILD),
        "CMAKE_PREFIX_PATH": str(ROS_BUILD),
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "PATH": f"{PYTHON.parent}:{ROS_BUILD / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(packages),
        "ROS_DISTRO": "jazzy",
        "ROS_PYTHON_VERSION": "3",
        "ROS_VERSION": "2",
    }


def _header_folders() -> tuple[str, str]:
    code = "import numpy, sysconfig; print(sysconfig.get_path('include'), numpy.get_include())"
    output = subprocess.run(
        [PYTHON, "-c", code], env=clean_environment(), capture_output=True, text=True, check=True
    ).stdout
    python, numpy = output.split()
    return python, numpy


def _name_local_headers(prefix: Path) -> None:
    python, numpy = _header_folders()
    for file in prefix.glob("share/*/cmake/*_generator_pyExport.cmake"):
        text = file.read_text()
        text = text.replace(
            f"{WHEELS_PYTHON}/lib/python3.12/site-packages/numpy/_core/include", numpy
        )
        text = text.replace(f"{WHEELS_PYTHON}/include/python3.12", python)
        if WHEELS_PYTHON in text:
            raise SetupError(f"{file} names an unknown folder in {WHEELS_PYTHON}")
        file.write_text(text)


def _install_build_half() -> bool:
    lock = REQUIREMENTS / "ros-build.txt"
    key = digest([lock], SITE_PACKAGES, *_header_folders())
    if is_done("ros-build", key):
        return False
    say("installing the private ROS 2 runtime, build half (ros-jazzy wheels)")
    part = ROS / "build.part"
    remove(part)
    with doing("ros-build", key):
        flags = ["--no-deps", "--require-hashes", "--ignore-installed", "--no-warn-script-location"]
        run(
            [PYTHON, "-m", "pip", "install", *flags, "--prefix", part, "--requirement", lock],
            "pip-ros-build",
        )
        _name_local_headers(part)
        remove(ROS_BUILD)
        part.rename(ROS_BUILD)
    return True


def _install_run_half() -> bool:
    lock = REQUIREMENTS / "ros-runtime.txt"
    key = digest([lock])
    if is_done("ros-runtime", key):
        return False
    say(
        "installing the private ROS 2 runtime, run half: the isaacsim-ros2 wheel, NVIDIA"
        " proprietary licence (ROS 2 itself: Apache-2.0, BSD), text in .venv/ros/LICENSE.txt"
    )
    part = ROS / "runtime.part"
    remove(part)
    with doing("ros-runtime", key):
        flags = ["--no-deps", "--require-hashes", "--no-compile"]
        run(
            [PYTHON, "-m", "pip", "install", *flags, "--target", part, "--requirement", lock],
            "pip-ros-runtime",
        )
        remove(ROS_RUNTIME)
        shutil.copy(part / "isaacsim" / "LICENSE.txt", ROS / "LICENSE.txt")
        (part / BUNDLE).rename(ROS_RUNTIME)
        remove(part)
    return True


def ensure_private_runtime() -> bool:
    """Installs the private runtime.

    Returns:
        True if something was installed.

    Raises:
        SetupError: This Python has no shared library, or a download failed.
    """
    libpython_folder()
    ROS.mkdir(exist_ok=True)
    changed = _install_build_half()
    return _install_run_half() or changed
