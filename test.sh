#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the project, then runs all checks and tests.
# Usage: ./test.sh [pytest arguments]      with arguments only pytest runs, e.g. ./test.sh -k topology
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$root"

case ${1:-} in -h | --help) sed -n '3,4s/^# //p' "$0" && exit 0 ;; esac

scripts/setup.sh --extra ovphysx
# Modules of the user's own must not shadow ours; a sourced ROS 2 needs the path.
[ -n "${AMENT_PREFIX_PATH:-}" ] || unset PYTHONPATH
# shellcheck source=/dev/null
. .venv/bin/activate-ros
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"

failed=()
check() {
  echo "== $*"
  "$@" || failed+=("$1")
}

if [ $# -eq 0 ]; then
  check ruff check .
  check ruff format --check .
  check pyright
  check python scripts/check_isaacsim.py
fi

suites=()
for folder in bricksim_core/test bricksim_ros/test bricksim_moveit_demo/test scripts/test test; do
  [ -d "$folder" ] && suites+=("$folder")
done
check pytest "${suites[@]}" "$@"

# ovphysx brings a USD of its own, which must not meet the other tests' usd-core.
tests_with_ovphysx() {
  local files status=0
  mapfile -t files < <(find "${suites[@]}" -name 'test_*ovphysx*.py')
  PYTHONPATH="$root/.venv/extras/ovphysx:$PYTHONPATH" pytest "${files[@]}" "$@" || status=$?
  # 5: the arguments chose none of these tests.
  [ $status -eq 0 ] || [ $status -eq 5 -a $# -gt 0 ]
}
check tests_with_ovphysx "$@"

if [ ${#failed[@]} -gt 0 ]; then
  echo "test.sh: failed: ${failed[*]}" >&2
  exit 1
fi
