# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos of recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bricksim_core.experiments.recording import Recording
from bricksim_core.parts import Color
from bricksim_core.pictures import (
    VIDEO,
    Image,
    Marker,
    MarkerKind,
    Quality,
    Scene,
    add_colorbar,
    draw_motion,
    strip,
    utilization_colors,
)
from bricksim_core.spatial import transform_points

MARK_SECONDS = 0.35
"""How long a broken connection stays marked [s]."""
STRIP_SIZE = (480, 480)
"""Width and height of each picture of a strip [pixels]."""
STRIP_QUALITY = Quality(shadow_size=2048, segments=16)
"""Soft shadows, at less cost than a single large picture."""


def film(
    recording: Recording,
    *,
    fps: float = 30.0,
    by_utilization: bool = False,
    size: tuple[int, int] = (640, 480),
) -> Iterator[Image]:
    """Frames of a recording in real time.

    Args:
        recording: What to show.
        fps: Frames per second.
        by_utilization: True: colours of utilization instead of the parts' own.
        size: Width and height [pixels].
    """
    end = recording.times[-1] - recording.times[0]
    count = max(2, round(end * fps) + 1)
    wanted = recording.times[0] + np.arange(count) / fps
    frames = nearest(recording, wanted)
    captions = [f"t = {recording.times[f]:.2f} s{_broken(recording, f, ' · ')}" for f in frames]
    images = _draw(recording, frames, captions, by_utilization, size, VIDEO)
    return map(add_colorbar, images) if by_utilization else images


def film_strip(recording: Recording, *, pictures: int = 5, by_utilization: bool = False) -> Image:
    """A few moments side by side: the start, the breaks or the course, and the end.

    Args:
        recording: What to show.
        pictures: How many moments.
        by_utilization: True: colours of utilization instead of the parts' own.
    """
    frames = moments(recording, pictures, before_break=by_utilization)
    captions = [_broken(recording, f) for f in frames]
    images = list(_draw(recording, frames, captions, by_utilization, STRIP_SIZE, STRIP_QUALITY))
    if by_utilization:
        images[-1] = add_colorbar(images[-1])
    return strip(images, [f"{recording.times[f]:.2f} s" for f in frames])


_JUMP = 10.0
"""Distance in one frame [m] that is no motion: a part came or went."""


def moments(recording: Recording, count: int, *, before_break: bool = False) -> list[int]:
    """Frames that tell the story: the first, that of the first break, the last, and others.

    The others are spread evenly over the path that the parts travel, so that a rest takes none.

    Args:
        recording: What to show.
        count: How many frames at most, 3 or more.
        before_break: True: the last frame before the first break instead of that of the break.
    """
    last = len(recording.times) - 1
    chosen = {0, last}
    if recording.broken:
        frame = nearest(recording, np.array([recording.broken[0].time]))[0]
        chosen.add(max(frame - int(before_break), 0))
    steps = np.linalg.norm(np.diff(recording.world_T_part[:, :, :3, 3], axis=0), axis=-1)
    path = np.concatenate([[0.0], np.cumsum(np.where(steps < _JUMP, steps, 0.0).mean(axis=1))])
    # Candidates from coarse to fine, until there are enough that are not neighbours in time.
    for parts in range(2, 4 * count):
        for share in np.arange(1, parts) / parts:
            frame = int(np.searchsorted(path, share * path[-1]))
            if len(chosen) < count and min(abs(frame - other) for other in chosen) > 2:
                chosen.add(frame)
    return sorted(chosen)


def nearest(recording: Recording, times: np.ndarray) -> list[int]:
    """The frames nearest to some times [s]."""
    after = np.clip(np.searchsorted(recording.times, times), 1, len(recording.times) - 1)
    closer = times - recording.times[after - 1] < recording.times[after] - times
    return np.where(closer, after - 1, after).tolist()


def varied_colors(colors: Sequence[Color], fixed: np.ndarray) -> tuple[Color, ...]:
    """The colours; a palette instead if the format has none and all parts are alike."""
    loose = {color for color, held in zip(colors, fixed, strict=True) if not held}
    if len(loose) > 1 or len(colors) < 3:
        return tuple(colors)
    return tuple(
        color if held else PALETTE[i % len(PALETTE)]
        for i, (color, held) in enumerate(zip(colors, fixed, strict=True))
    )


PALETTE: tuple[Color, ...] = (
    (201, 26, 9),
    (242, 205, 55),
    (0, 85, 191),
    (244, 244, 244),
    (35, 120, 65),
    (254, 138, 24),
    (90, 147, 219),
)
"""Red, yellow, blue, white, green, orange, light blue."""


def _draw(
    recording: Recording,
    frames: Sequence[int],
    captions: Sequence[str],
    by_utilization: bool,
    size: tuple[int, int],
    quality: Quality,
) -> Iterator[Image]:
    scene = Scene(recording.shapes, varied_colors(recording.colors, recording.fixed))
    # Nothing is known before the first step.
    utilization = recording.utilization[np.maximum(frames, 1)]
    utilization = np.where(recording.fixed, np.nan, utilization)
    lowest = float(recording.world_T_part[0, recording.fixed, 2, 3].min(initial=0.0))
    return draw_motion(
        scene,
        recording.world_T_part[frames],
        captions=captions,
        markers=[_markers(recording, f) for f in frames],
        colors=list(utilization_colors(utilization)) if by_utilization else None,
        ground=lowest,
        size=size,
        quality=quality,
    )


def _broken(recording: Recording, frame: int, before: str = "") -> str:
    """How many connections have broken so far; nothing if none has."""
    count = sum(c.time <= recording.times[frame] for c in recording.broken)
    return f"{before}{count} broken" if count else ""


def _markers(recording: Recording, frame: int) -> list[Marker]:
    """Crosses where connections broke a moment ago."""
    time, markers = recording.times[frame], []
    for change in recording.broken:
        if 0.0 <= time - change.time < MARK_SECONDS:
            pose = recording.world_T_part[frame, change.part_index]
            x, y, z = transform_points(pose, change.local).tolist()
            markers.append(Marker((x, y, z), MarkerKind.BROKEN))
    return markers
