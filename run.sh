#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

usage() {
  cat <<'TEXT'
Sets up the project on first use, then runs the demo or a launch file, without a display.

Usage:
  ./run.sh                                                  the demo: a Franka builds a structure
  ./run.sh [--engine NAME] LAUNCH_FILE [name:=value]...     a launch file (a path, or a name in launch/)

Options:
  --engine NAME   mujoco (default), ovphysx (installs NVIDIA's ovphysx, NVIDIA Omniverse licence,
                  1.1 GB) or isaacsim (needs Isaac Sim's Python)
  --help          this text

Examples:
  ./run.sh assemble.launch.py structure:=tower.json out:=out/tower
  ./run.sh demo_drop.launch.py height:=0.3
  ./run.sh demo_drop.launch.py --show-args
TEXT
}

fail() {
  echo "run.sh: $*" >&2
  exit 2
}

engine=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --engine) engine=${2:-} && shift $(($# > 1 ? 2 : 1)) ;;
    --engine=*) engine=${1#*=} && shift ;;
    -*) fail "unknown option $1; see ./run.sh --help" ;;
    *) break ;;
  esac
  case $engine in
    '' | mujoco | ovphysx | isaacsim) ;;
    *) fail "unknown engine '$engine', expected mujoco, ovphysx or isaacsim" ;;
  esac
done

launch_file=
if [ $# -gt 0 ]; then
  for candidate in "$1" "$root/launch/$1"; do
    [ -f "$candidate" ] && launch_file=$candidate && break
  done
  if [ -z "$launch_file" ]; then
    names=$(cd "$root/launch" && echo *.launch.py)
    fail "launch file '$1' does not exist, expected a path or one of: $names"
  fi
  shift
fi
if [ -z "$launch_file" ] && [ "${engine:-mujoco}" != mujoco ]; then
  fail "the demo runs on mujoco; --engine $engine needs a launch file, see ./run.sh --help"
fi

setup_options=()
[ "$engine" = ovphysx ] && setup_options=(--extra ovphysx)
"$root/scripts/setup.sh" ${setup_options[@]+"${setup_options[@]}"}
# Modules of the user's own must not shadow ours; a sourced ROS 2 needs the path.
[ -n "${AMENT_PREFIX_PATH:-}" ] || unset PYTHONPATH
# shellcheck source=/dev/null
. "$root/.venv/bin/activate-ros"
if [ "$engine" = ovphysx ]; then
  export PYTHONPATH="$root/.venv/extras/ovphysx:$PYTHONPATH"
fi

if [ "${engine:-mujoco}" != mujoco ]; then
  python -m bricksim_core.engines "$engine" > /dev/null || exit 2
fi

if [ -n "$launch_file" ]; then
  exec ros2 launch "$launch_file" ${engine:+"engine:=$engine"} "$@"
fi

# What ./run.sh shows: a Franka builds a structure; the episode is recorded and checked.
main_demo() {
  local out=$root/out/demo code=0
  rm -rf "$out/bag"
  ros2 launch bricksim_moveit_demo assemble.launch.py \
    structure:="$root/bricksim_core/test/data/bricksim/demo_assembly_structure1.json" \
    out:="$out" bag:="$out/bag" || code=$?
  bricksim replay "$out/bag" || code=$?
  exit "$code"
}

main_demo
