# SPDX-License-Identifier: Apache-2.0
"""The virtual environment .venv."""

from __future__ import annotations

import subprocess
import sys

import system
from common import PYTHON, VENV, clean_environment, remove, run, say


def _is_sound(system_site_packages: bool) -> bool:
    """True if .venv is a virtual environment made here, of Python 3.12, with a working pip."""
    config, activate = VENV / "pyvenv.cfg", VENV / "bin" / "activate"
    if not (config.is_file() and activate.is_file() and PYTHON.exists()):
        return False
    wanted = f"include-system-site-packages = {str(system_site_packages).lower()}"
    # Scripts in a virtual environment hold its path: one that was moved or copied is of no use.
    if wanted not in config.read_text() or str(VENV) not in activate.read_text():
        return False
    code = "import sys; assert sys.version_info[:2] == (3, 12); import pip, encodings.idna"
    check = subprocess.run(
        [PYTHON, "-c", code], env=clean_environment(), stderr=subprocess.DEVNULL, check=False
    )
    return check.returncode == 0


def ensure(system_site_packages: bool) -> bool:
    """Makes .venv unless there is a sound one.

    Returns:
        True if it was made.

    Raises:
        SetupError: Python cannot make one.
    """
    if _is_sound(system_site_packages):
        return False
    if not system.python_can_make_venv(sys.executable):
        system.install_venv_package()
    say(f"making .venv with {sys.executable}")
    remove(VENV)
    flags = ["--system-site-packages"] if system_site_packages else []
    run([sys.executable, "-m", "venv", *flags, VENV], "venv")
    return True
