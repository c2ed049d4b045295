# SPDX-License-Identifier: Apache-2.0
"""Recordings as JSON, pictures and video, for the commands that simulate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bricksim_core.cli.console import json_text, progress, warn
from bricksim_core.errors import NoGraphicsError

if TYPE_CHECKING:
    from bricksim_core.experiments.recording import ConnectionChange, Recording
    from bricksim_core.pictures import Image

STRIP = "strip.png"
VIDEO = "video.mp4"
FILM = (STRIP, VIDEO)
"""What `write_film` may write."""
FPS = 30.0


def changes_data(changes: Sequence[ConnectionChange]) -> list[dict[str, Any]]:
    """Connections that began or ended, for JSON."""
    return [
        {
            "time": round(c.time, 6),
            "cause": c.cause,
            "stud_part": c.stud_part,
            "hole_part": c.hole_part,
            "offset": list(c.offset),
            "yaw": c.yaw,
            "utilization": c.utilization,
            "force": c.force,
        }
        for c in changes
    ]


def recording_data(recording: Recording) -> dict[str, Any]:
    """What every simulation tells: pieces, connections that broke or began, frame times."""
    from bricksim_core.events import EventKind

    made = [c for c in recording.changes if c.kind is EventKind.ASSEMBLED]
    return {
        "seconds": float(recording.times[-1] - recording.times[0]),
        "pieces": [list(piece) for piece in recording.pieces],
        "broken": changes_data(recording.broken),
        "connected": changes_data(made),
        "max_utilization": recording.max_utilization,
        "frame_ms": recording.frame_times(),
        "solver_notes": [f"{note.status}: {note.message}" for note in recording.solver_notes],
    }


class Pictures:
    """Writes pictures into a folder; without headless OpenGL a warning, once, and none.

    Args:
        folder: Where they go.

    Attributes:
        possible: False once a picture could not be drawn.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.possible = True

    def write(self, name: str, draw: Callable[[], Image]) -> None:
        """Draws and writes a picture."""
        from bricksim_core.pictures import write_png

        if not self.possible:
            return
        try:
            write_png(draw(), self._folder / name)
        except NoGraphicsError as error:
            warn(f"no pictures: {error}")
            self.possible = False


def write_film(
    recording: Recording, folder: Path, *, by_utilization: bool = False, video: bool = True
) -> list[str]:
    """Writes the picture strip and the video of a recording.

    Args:
        recording: What to show.
        folder: Where they go.
        by_utilization: True: colours of utilization.
        video: False: only the strip.

    Returns:
        Names of the files; none, and a warning, where there is no headless OpenGL.
    """
    from bricksim_core.experiments.film import film_strip

    pictures = Pictures(folder)
    pictures.write(STRIP, lambda: film_strip(recording, by_utilization=by_utilization))
    if not pictures.possible:
        return []
    if not video:
        return [STRIP]
    write_video_of(recording, folder / VIDEO, by_utilization=by_utilization)
    return [STRIP, VIDEO]


def write_video_of(recording: Recording, path: Path, *, by_utilization: bool = False) -> None:
    """Writes the video of a recording, in real time."""
    from bricksim_core.experiments.film import film
    from bricksim_core.pictures import write_video

    count = max(2, round(float(recording.times[-1] - recording.times[0]) * FPS) + 1)
    with progress("drawing", count) as show:

        def counted() -> Iterator[Image]:
            frames = film(recording, fps=FPS, by_utilization=by_utilization)
            for number, image in enumerate(frames):
                show(number + 1)
                yield image

        write_video(counted(), path, fps=FPS)


def write_json(data: dict[str, Any], path: Path) -> None:
    """Writes a summary."""
    path.write_text(json_text(data, indent=2) + "\n", encoding="utf-8")


def save(
    recording: Recording,
    data: dict[str, Any],
    out: Path,
    *,
    by_utilization: bool = False,
    video: bool = True,
) -> None:
    """Writes a summary and the film of a recording into a folder."""
    from bricksim_core.cli.output_folder import LAST, output_folder

    with output_folder(out, FILM) as folder:
        write_film(recording, folder, by_utilization=by_utilization, video=video)
        write_json(data, folder / LAST)
