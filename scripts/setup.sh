#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up everything that run.sh and test.sh need; a second run takes a second.
# Usage: scripts/setup.sh [--no-ros] [--extra NAME]...
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# What was set up with the system's ROS 2 stays with it, also in a shell that has not sourced it.
system_ros=$scripts/../.venv/stamps/system-ros
if [ -z "${ROS_DISTRO:-}" ] && [ -f "$system_ros" ]; then
  set +u
  # shellcheck source=/dev/null
  . "$(<"$system_ros")/setup.sh" || true
  set -u
fi

# Prints the interpreter behind $1 (not a virtual environment's) if it is a CPython 3.12.
base_python() {
  "$1" -E -s - 2>/dev/null <<'PY'
import os, sys
if sys.version_info[:2] != (3, 12) or sys.implementation.name != "cpython":
    sys.exit(1)
base = os.path.join(sys.base_prefix, "bin", "python3.12")
print(base if os.path.exists(base) else sys.executable)
PY
}

find_python() {
  local candidates=(python3.12 python3 "$HOME"/.pyenv/versions/3.12*/bin/python3.12)
  # The modules of a system ROS 2 are made for the system's Python.
  [ "${ROS_DISTRO:-}" = jazzy ] && candidates=(/usr/bin/python3.12 "${candidates[@]}")
  local candidate
  for candidate in "${candidates[@]}"; do
    command -v "$candidate" >/dev/null && base_python "$candidate" && return
  done
  return 1
}

if ! python=$(find_python); then
  echo "setup: Python 3.12 was not found (PATH, ~/.pyenv/versions/3.12*); install it, on Ubuntu" \
    "24.04 with: apt-get install python3.12 python3.12-venv" >&2
  exit 2
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" -E -s "$scripts/setup" "$@"
