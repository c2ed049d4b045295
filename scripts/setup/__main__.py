# SPDX-License-Identifier: Apache-2.0
"""Sets up the project: virtual environment, system packages, ROS 2, colcon workspace."""

from __future__ import annotations

import argparse
import sys
import time

import activation
import packages
import ros
import system
import venv_dir
import workspace
from common import LOCK_FILE, SetupError, exclusive, say


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/setup.sh", description=__doc__)
    parser.add_argument("--no-ros", action="store_true", help="Python packages only")
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        choices=packages.available_extras(),
        help="also install an optional part",
    )
    options = parser.parse_args()
    started = time.monotonic()
    try:
        with exclusive(LOCK_FILE):
            source = None if options.no_ros else ros.find_source()
            changed = system.ensure(with_compiler=not options.no_ros)
            changed |= venv_dir.ensure(system_site_packages=source == "system")
            changed |= packages.ensure(options.extra, source)
            if source is not None:
                if source == "private":
                    changed |= ros.ensure_private_runtime()
                changed |= workspace.ensure(source)
                changed |= activation.ensure(source)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("setup: interrupted; start it again to go on", file=sys.stderr)
        return 130
    if changed:
        say(f"ready after {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
