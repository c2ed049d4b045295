# SPDX-License-Identifier: Apache-2.0
"""System packages: a compiler for the messages, Mesa for pictures without a display."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

from common import SetupError, clean_environment, run, say

COMPILER = {"g++": "g++", "cmake": "cmake", "make": "make"}
"""Debian package by program."""
GRAPHICS = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libEGL_mesa.so.0": "libegl-mesa0",
}
"""Debian package by shared library."""


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _missing(with_compiler: bool) -> tuple[list[str], list[str]]:
    programs = COMPILER if with_compiler else {}
    compiler = [package for program, package in programs.items() if shutil.which(program) is None]
    graphics = [package for library, package in GRAPHICS.items() if not _can_load(library)]
    return compiler, graphics


def _install(names: list[str]) -> None:
    environment = clean_environment(DEBIAN_FRONTEND="noninteractive")
    say(f"installing system packages: {' '.join(names)}")
    run(["apt-get", "update"], "apt-update", environment)
    run(["apt-get", "install", "--yes", "--no-install-recommends", *names], "apt", environment)


def ensure(with_compiler: bool) -> bool:
    """Installs missing system packages if we may, else names them.

    Returns:
        True if something was installed.

    Raises:
        SetupError: There is no compiler and it cannot be installed.
    """
    compiler, graphics = _missing(with_compiler)
    if not compiler and not graphics:
        return False
    names = compiler + graphics + (["libgl1-mesa-dri"] if graphics else [])
    if os.geteuid() == 0 and shutil.which("apt-get"):
        try:
            _install(names)
        except SetupError as error:
            say(str(error))
        else:
            return True
        compiler, graphics = _missing(with_compiler)
    if compiler:
        raise SetupError(
            f"missing to build the ROS messages: {' '.join(compiler)}; install with: sudo apt-get"
            f" install {' '.join(names)} (or use --no-ros)"
        )
    if graphics:
        say(
            f"missing for pictures without a display: {' '.join(graphics)}; install with: sudo"
            f" apt-get install {' '.join(names)}"
        )
    return False


def python_can_make_venv(python: str) -> bool:
    """False for a Debian Python without its venv package."""
    check = [python, "-E", "-s", "-c", "import ensurepip, venv"]
    return subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode == 0


def install_venv_package() -> None:
    """Installs what Debian and Ubuntu leave out of Python.

    Raises:
        SetupError: We may not.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError("Python has no venv module: sudo apt-get install python3.12-venv")
    _install(["python3.12-venv"])
