# SPDX-License-Identifier: Apache-2.0
"""``bricksim replay``: what happened in a recorded episode?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bricksim_core.cli.console import print_json
from bricksim_core.cli.options import JsonOption, OptionalFolder, UtilizationOption, examples
from bricksim_core.errors import BrickSimError

NAME = "replay"
EXAMPLES = examples(
    "bricksim replay episodes/episode_20260101_120000 --out out/",
    "bricksim replay bag/bag_0.mcap --json",
)


def command(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a bag, or one .mcap file.")],
    out: OptionalFolder = None,
    utilization: UtilizationOption = False,
    json: JsonOption = False,
) -> int:
    """Re-create a recorded episode without ROS, check it and draw it.

    The topology over time must equal what the events say. Exit code: 0 it does, 1 it does not.
    """
    from bricksim_core.cli.summaries import recording_data, save

    try:
        from bricksim_core.episodes.reader import read_episode, verify
        from bricksim_core.episodes.replay import episode_recording
    except ModuleNotFoundError as error:
        raise BrickSimError(
            f"{error.name} is not installed: pip install 'bricksim_core[episodes]'"
        ) from None

    episode = read_episode(bag)
    problems = verify(episode)
    recording = episode_recording(episode)
    data = {
        "bag": str(bag),
        "start": episode.start,
        "end": episode.end,
        "truncated": episode.truncated,
        "parts": len(recording.parts),
        "events": len(episode.events),
        "problems": problems,
        "metadata": episode.metadata,
        "simulation": recording_data(recording),
    }
    if out is not None:
        save(recording, data, out, by_utilization=utilization)
    if json:
        print_json(data)
        return 1 if problems else 0
    print(f"bag          {bag}{' (cut short or damaged)' if episode.truncated else ''}")
    print(f"time         {episode.start:.3f} s to {episode.end:.3f} s")
    print(f"parts        {len(recording.parts)}")
    print(f"events       {len(episode.events)}, {len(recording.broken)} of them breaks")
    print(f"pieces       {len(recording.pieces)} at the end")
    print(f"topology     {'differs from the events' if problems else 'equals the events'}")
    for problem in problems:
        print(f"             {problem}")
    if out is not None:
        print(f"pictures     {out}")
    return 1 if problems else 0
