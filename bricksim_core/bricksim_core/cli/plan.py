# SPDX-License-Identifier: Apache-2.0
"""``bricksim plan``: in which order can a structure be built?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bricksim_core.cli.console import print_json, warn
from bricksim_core.cli.options import (
    BaseplateOption,
    FileArgument,
    JsonOption,
    StrictOption,
    examples,
    parse_baseplate,
)
from bricksim_core.errors import NoGraphicsError

NAME = "plan"
EXAMPLES = examples(
    "bricksim plan tower.txt",
    "bricksim plan chair.txt --picture plan.png",
    "bricksim plan bridge.json --arms 1 --no-gripper --json",
)


def command(
    file: FileArgument,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="PNG", help="Draw the steps, one picture each."),
    ] = None,
    arms: Annotated[int, typer.Option("--arms", min=1, max=2, help="Arms that may be used.")] = 2,
    press: Annotated[
        float, typer.Option("--press", metavar="N", help="Force of each press [N].")
    ] = 5.0,
    gripper: Annotated[
        bool,
        typer.Option("--gripper/--no-gripper", help="Leave room for a gripper beside each brick."),
    ] = True,
    json: JsonOption = False,
    baseplate: BaseplateOption = "auto",
    strict: StrictOption = False,
) -> int:
    """Find an order of insertions in which every state stands and bears the press.

    A structure that cannot be built so is an error that says which brick is in the way, and why.
    """
    plate = parse_baseplate(baseplate)

    from bricksim_core.formats import read_structure
    from bricksim_core.sequencing import GripperModel, plan_assembly

    structure = read_structure(file, baseplate=plate, strict=strict)
    plan = plan_assembly(
        structure, gripper=GripperModel() if gripper else None, press_force=press, arms=arms
    )
    if picture is not None:
        from bricksim_core.pictures import draw_sequence, write_png

        groups = [plan.base, *(step.parts for step in plan.steps)]
        if not plan.base:
            groups = groups[1:]
        labels = [] if not plan.base else ["base"]
        for number, step in enumerate(plan.steps, 1):
            labels.append(f"{number}: {' + '.join(map(str, step.parts))}")
        try:
            image = draw_sequence(structure, groups, labels)
        except NoGraphicsError as error:
            warn(f"no picture: {error}")
            picture = None
        else:
            write_png(image, picture)
    if json:
        print_json(plan.to_dict())
    else:
        print(plan.table(), end="")
        if picture is not None:
            print(f"picture in {picture}")
    return 0
