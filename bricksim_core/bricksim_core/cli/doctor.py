# SPDX-License-Identifier: Apache-2.0
"""``bricksim doctor``: does everything work here?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bricksim_core.cli.console import print_json
from bricksim_core.cli.options import JsonOption, examples

NAME = "doctor"
EXAMPLES = examples("bricksim doctor", "bricksim doctor --engine isaacsim")


def command(
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Also try each call that an engine relies on: `ovphysx` or `isaacsim`.",
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Try what BrickSim relies on, on this machine.

    Exit code: 0 all works, 2 something does not.
    """
    from bricksim_core.doctor import checks

    words = {True: "ok", False: "FAILED", None: "skipped"}
    results = []
    for check in checks(engine):
        results.append(check)
        if not json:  # at once: what is tried next may end the process
            print(f"{check.name:36}{words[check.ok]:9}{check.detail}".rstrip(), flush=True)
    if json:
        print_json([asdict(check) for check in results])
    return 2 if any(check.ok is False for check in results) else 0
