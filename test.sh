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

mapfile -t files < <(find bricksim_*/test test -name 'test_*.py' | sort)
# Nodes and launched programs keep an eye on the clock: they have the machine for themselves.
with_clock='^(bricksim_ros|test)/|_ros_'
mapfile -t alone < <(printf '%s\n' "${files[@]}" | grep -E "$with_clock")
mapfile -t together < <(printf '%s\n' "${files[@]}" | grep -vE "$with_clock")
mapfile -t with_ovphysx < <(printf '%s\n' "${files[@]}" | grep ovphysx)

# pytest; the user's arguments may leave out all tests of some runs, but not of all.
empty=0
tests() {
  local status=0
  pytest "$@" || status=$?
  [ $status -ne 5 ] || empty=$((empty + 1))
  [ $status -eq 0 ] || [ $status -eq 5 -a $empty -lt 3 -a ${#chosen[@]} -gt 0 ]
}
chosen=("$@")
check tests -n auto --dist worksteal "${together[@]}" "${chosen[@]}"
check tests "${alone[@]}" "${chosen[@]}"
# ovphysx brings a USD of its own, which must not meet the other tests' usd-core.
export PYTHONPATH="$root/.venv/extras/ovphysx:$PYTHONPATH"
check tests "${with_ovphysx[@]}" "${chosen[@]}"

if [ ${#failed[@]} -gt 0 ]; then
  echo "test.sh: failed: ${failed[*]}" >&2
  exit 1
fi
