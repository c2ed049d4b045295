# SPDX-License-Identifier: Apache-2.0
"""Writes .venv/bin/activate-ros, which makes a shell ready for ROS 2 and this project."""

from __future__ import annotations

import os

import ros
from common import INSTALL, ROS_RUNTIME, STAMPS, VENV

SYSTEM_STAMP = STAMPS / "system-ros"
"""Prefix of the system's ROS 2 that .venv was made for; read by scripts/setup.sh."""
SCRIPT = VENV / "bin" / "activate-ros"

HEAD = """\
# Source this from bash or zsh:  source .venv/bin/activate-ros
# Written by scripts/setup.sh.

case $- in *u*) _bricksim_nounset=1; set +u ;; *) _bricksim_nounset= ;; esac

# Puts a folder in front of a path variable unless it is in it already.
_bricksim_prepend() {
  eval "_bricksim_value=\\${$1:-}"
  case ":$_bricksim_value:" in
    *":$2:"*) ;;
    *) export "$1=$2${_bricksim_value:+:$_bricksim_value}" ;;
  esac
}
"""

PRIVATE = """
. "{venv}/bin/activate"
export ROS_DISTRO=jazzy ROS_VERSION=2 ROS_PYTHON_VERSION=3
export AMENT_PREFIX_PATH="{runtime}"
export RMW_IMPLEMENTATION="${{RMW_IMPLEMENTATION:-rmw_fastrtps_cpp}}"
_bricksim_prepend PYTHONPATH "{runtime}/rclpy"
_bricksim_prepend LD_LIBRARY_PATH "{libpython}"
_bricksim_prepend LD_LIBRARY_PATH "{runtime}/lib"
"""

SYSTEM = """
if [ "${{ROS_DISTRO:-}}" != jazzy ]; then
  COLCON_CURRENT_PREFIX="{prefix}"
  . "{prefix}/setup.sh"
  unset COLCON_CURRENT_PREFIX
fi
. "{venv}/bin/activate"
"""

TAIL = """
COLCON_CURRENT_PREFIX="{install}"
. "{install}/local_setup.sh"
unset COLCON_CURRENT_PREFIX
# Nothing leaves or enters this machine unless asked for.
export ROS_AUTOMATIC_DISCOVERY_RANGE="${{ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}}"

unset -f _bricksim_prepend
[ -z "$_bricksim_nounset" ] || set -u
unset _bricksim_nounset _bricksim_value
"""


def ensure(source: str) -> bool:
    """Writes the script if it is missing or differs.

    Args:
        source: Where ROS 2 comes from.

    Returns:
        True if it was written.
    """
    names = {"venv": VENV, "install": INSTALL, "runtime": ROS_RUNTIME}
    if source == "private":
        SYSTEM_STAMP.unlink(missing_ok=True)
        middle = PRIVATE.format(**names, libpython=ros.libpython_folder())
    else:
        prefix = ros.system_prefixes()[-1]
        SYSTEM_STAMP.write_text(prefix)
        middle = SYSTEM.format(**names, prefix=prefix)
    text = HEAD + middle + TAIL.format(**names)
    if SCRIPT.is_file() and SCRIPT.read_text() == text:
        return False
    part = SCRIPT.with_suffix(".part")
    part.write_text(text)
    os.replace(part, SCRIPT)
    return True
