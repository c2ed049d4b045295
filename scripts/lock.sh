#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes requirements/*.txt anew from requirements/*.in (exact versions with hashes).
# Usage: scripts/lock.sh [NAME...]      e.g. scripts/lock.sh core dev
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../requirements"
unset PYTHONPATH

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
../.venv/bin/python -m venv "$tools"
"$tools/bin/pip" install --quiet pip-tools

compile() {
  "$tools/bin/pip-compile" --quiet --strip-extras --allow-unsafe --generate-hashes --no-header \
    --no-emit-find-links --no-emit-index-url --no-emit-trusted-host --annotation-style line "$@"
}

# The wheels' start-up hook re-executes every Python, and their Python dependencies are those of the
# virtual environment already: only the ROS packages themselves are kept.
keep_ros_wheels() {
  awk '/^[a-z]/ { keep = /^ros-/ && !/^ros-wheels-bootstrapper/ } keep' "$1" >"$1.kept"
  mv "$1.kept" "$1"
}

# One wheel of which only a folder is used; what it depends on is not wanted.
lock_single_wheel() {
  local folder requirement
  folder=$(mktemp -d -p "$tools")
  requirement=$(grep -v '^#' "$1.in")
  "$tools/bin/pip" download --quiet --no-deps --dest "$folder" "$requirement"
  printf '%s \\\n    --hash=sha256:%s\n' "$requirement" \
    "$(sha256sum "$folder"/*.whl | cut -d' ' -f1)" >"$1.txt"
}

# An extra lies in a folder of its own beside .venv's packages: what .venv has is not wanted again.
drop_locked() {
  awk -F== 'NR == FNR { if (/^[a-z]/) locked[$1]; next }
    /^[a-z]/ { keep = !($1 in locked) } keep' <(cat core.txt dev.txt ros.txt) "$1" >"$1.kept"
  mv "$1.kept" "$1"
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(core dev ros ros-build ros-runtime extra-ovphysx)
for name in "${names[@]}"; do
  echo "locking $name"
  case $name in
    ros-runtime) lock_single_wheel "$name" ;;
    ros-build) compile --output-file "$name.txt" "$name.in" && keep_ros_wheels "$name.txt" ;;
    extra-*) compile --output-file "$name.txt" "$name.in" && drop_locked "$name.txt" ;;
    *) compile --output-file "$name.txt" "$name.in" ;;
  esac
done
