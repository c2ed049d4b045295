# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos on disk: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path

from PIL import Image as PillowImage

from bricksim_core.atomic import replacing
from bricksim_core.errors import PictureError
from bricksim_core.pictures.renderer import Image


def write_png(image: Image, path: str | os.PathLike[str]) -> Path:
    """Writes a picture.

    Raises:
        PictureError: The file cannot be written.
    """
    with _replacing(path) as temporary:
        PillowImage.fromarray(image).save(temporary, format="PNG")
    return Path(path)


def write_video(frames: Iterable[Image], path: str | os.PathLike[str], *, fps: float) -> Path:
    """Writes an MP4 (H.264, yuv420p), which every browser plays.

    Args:
        frames: Pictures of one size; an odd last row or column is cut off. A generator is closed
            in any case: left alone after an error, it would free its renderer when OpenGL is gone.
        path: The file.
        fps: Frames per second.

    Raises:
        PictureError: There are no frames, or the file cannot be written.
    """
    with ExitStack() as stack:
        if isinstance(frames, Generator):
            stack.enter_context(closing(frames))
        _write_video(iter(frames), path, fps)
    return Path(path)


def _write_video(frames: Iterator[Image], path: str | os.PathLike[str], fps: float) -> None:
    import av

    first = next(frames, None)
    if first is None:
        raise PictureError(f"{path}: a video needs at least one frame")
    height, width = (side // 2 * 2 for side in first.shape[:2])
    with (
        _replacing(path) as temporary,
        av.open(str(temporary), "w", format="mp4", options={"movflags": "faststart"}) as file,
    ):
        rate = Fraction(fps).limit_denominator(1000)
        stream = file.add_stream("libx264", rate, {"crf": "20", "preset": "fast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for image in chain([first], frames):
            picture = av.VideoFrame.from_ndarray(image[:height, :width].copy(), "rgb24")
            file.mux(stream.encode(picture))
        file.mux(stream.encode())


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise PictureError(f"{path}: cannot be written: {error.strerror or error}") from None
