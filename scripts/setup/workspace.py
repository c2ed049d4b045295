# SPDX-License-Identifier: Apache-2.0
"""Builds the project's ROS packages with colcon into build/ and install/."""

from __future__ import annotations

import contextlib
from pathlib import Path

import ros
from common import (
    INSTALL,
    PYTHON,
    ROOT,
    SITE_PACKAGES,
    SetupError,
    digest,
    doing,
    is_done,
    remove,
    run,
    say,
)

CMAKE_PACKAGES = ("bricksim_msgs",)
PYTHON_PACKAGES = ("bricksim_core", "bricksim_ros", "bricksim_moveit_demo")
SHARED_FOLDERS = ("launch", "urdf", "config")
"""Installed by the Python packages; linked, so only the names of their files matter."""
BUILD_FILES = ("package.xml", "pyproject.toml", "setup.cfg", "setup.py")


def _files(folder: Path) -> list[Path]:
    found = (f for f in folder.rglob("*") if f.is_file())
    return [f for f in found if "__pycache__" not in f.parts and ".egg-info" not in str(f.parent)]


def _step(package: str) -> str:
    return f"colcon-{package}"


def _key(package: str, source: str) -> str:
    folder = ROOT / package
    toolchain = (source, SITE_PACKAGES, *ros.system_prefixes()[-1:])
    meta = ROOT / "colcon.meta"
    if package in CMAKE_PACKAGES:
        locks = [ROOT / "requirements" / "ros-build.txt"]
        return digest([*_files(folder), meta, *locks], *toolchain)
    linked = [f.relative_to(ROOT) for name in SHARED_FOLDERS for f in _files(ROOT / name)]
    sources = [folder / name for name in BUILD_FILES if (folder / name).exists()]
    return digest([*sources, meta], *toolchain, *sorted(linked))


def _colcon(packages: list[str], source: str) -> None:
    run(
        [
            *(PYTHON, "-m", "colcon", "build", "--merge-install", "--symlink-install"),
            "--continue-on-error",
            *("--base-paths", *packages),
            *("--cmake-args", f"-DPython3_EXECUTABLE={PYTHON}", "--no-warn-unused-cli"),
        ],
        f"colcon-{'-'.join(packages)}",
        ros.build_environment(source),
    )


def _build(packages: list[str], source: str) -> None:
    try:
        _colcon(packages, source)
    except SetupError:
        folders = [ROOT / "build" / package for package in packages]
        if not any(folder.exists() for folder in folders):
            raise
        # What is left of an interrupted build, or of one for another Python, can be in the way.
        for folder in folders:
            remove(folder)
        _colcon(packages, source)


def ensure(source: str) -> bool:
    """Builds the packages whose inputs changed.

    Args:
        source: Where ROS 2 comes from.

    Returns:
        True if something was built.

    Raises:
        SetupError: The build failed.
    """
    stale = []
    # The messages first: a Python package that does not build does not cost them.
    for group in (CMAKE_PACKAGES, PYTHON_PACKAGES):
        keys = {p: _key(p, source) for p in group if (ROOT / p / "package.xml").exists()}
        packages = [
            package
            for package, key in keys.items()
            if not is_done(_step(package), key) or not (INSTALL / "share" / package).is_dir()
        ]
        if not packages:
            continue
        say(f"building {', '.join(packages)}")
        with contextlib.ExitStack() as stack:
            for package in packages:
                stack.enter_context(doing(_step(package), keys[package]))
            _build(packages, source)
        stale += packages
    return bool(stale)
