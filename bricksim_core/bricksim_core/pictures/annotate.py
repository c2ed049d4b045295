# SPDX-License-Identifier: Apache-2.0
"""Text, markers and colour bars on pictures, and pictures side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from bricksim_core.pictures.camera import Camera
from bricksim_core.pictures.palette import OVERLOAD_COLOR, SCALE_TOP, utilization_colors
from bricksim_core.pictures.renderer import Image

_INK = (28, 32, 38)
_FAINT = (92, 98, 106)
_HALO = (255, 255, 255)


class MarkerKind(StrEnum):
    """What a marker says about the place where it stands."""

    OVERLOADED = "overloaded"
    BROKEN = "broken"
    LABEL = "label"


@dataclass(frozen=True)
class Marker:
    """A sign at a point of the scene, drawn over everything.

    Attributes:
        point: Where [m], world.
        kind: Ring (overloaded), cross (broken) or text only.
        text: A short text beside it.
    """

    point: tuple[float, float, float]
    kind: MarkerKind
    text: str = ""


def add_markers(image: Image, camera: Camera, markers: Sequence[Marker]) -> Image:
    """The picture with markers at the places where their points appear."""
    if not markers:
        return image
    height, width = image.shape[:2]
    picture, draw = _canvas(image)
    radius = max(5, round(height / 90))
    stroke = max(2, round(height / 300))
    font = _font(height / 42)
    places = camera.project(np.array([m.point for m in markers]), (width, height))
    for marker, (x, y, depth) in zip(markers, places, strict=True):
        if depth <= 0.0:
            continue
        box = (x - radius, y - radius, x + radius, y + radius)
        if marker.kind is MarkerKind.OVERLOADED:
            draw.ellipse(_grown(box, stroke), outline=_HALO, width=3 * stroke)
            draw.ellipse(box, outline=OVERLOAD_COLOR, width=stroke)
        elif marker.kind is MarkerKind.BROKEN:
            for color, extra in ((_HALO, 2 * stroke), (OVERLOAD_COLOR, 0)):
                for sign in (-1, 1):
                    ends = (x - radius, y - sign * radius, x + radius, y + sign * radius)
                    draw.line(ends, fill=color, width=stroke + extra)
        if marker.text:
            is_label = marker.kind is MarkerKind.LABEL
            at = (x, y) if is_label else (x + 1.6 * radius, y)
            draw.text(
                at,
                marker.text,
                fill=_INK,
                font=font,
                anchor="mm" if is_label else "lm",
                stroke_width=stroke,
                stroke_fill=_HALO,
            )
    return np.asarray(picture)


def add_text(image: Image, *, title: str = "", caption: str = "") -> Image:
    """The picture with a title in the upper and a caption in the lower left corner."""
    height, width = image.shape[:2]
    picture, draw = _canvas(image)
    edge = round(height / 40)
    room = width - 2 * edge
    if title:
        font = _font(height / 24)
        draw.text((edge, edge), _shortened(title, font, room), fill=_INK, font=font)
    if caption:
        font = _font(height / 36)
        text = "\n".join(_shortened(line, font, room) for line in caption.splitlines())
        draw.multiline_text(
            (edge, height - edge), text, fill=_FAINT, font=font, anchor="ld", spacing=edge / 4
        )
    return np.asarray(picture)


def add_colorbar(image: Image, label: str = "utilization") -> Image:
    """The picture with the scale of utilization at its right border."""
    height, width = image.shape[:2]
    picture, draw = _canvas(image)
    font = _font(height / 40)
    bar = max(10, round(width / 60))
    right = width - round(width * COLORBAR_MARGIN * 0.52)
    top, bottom = round(0.22 * height), round(0.80 * height)
    values = np.linspace(SCALE_TOP, 0.0, bottom - top)
    strip = np.repeat(utilization_colors(values)[:, None], bar, axis=1)
    picture.paste(PillowImage.fromarray(strip), (right - bar, top))
    draw.rectangle((right - bar - 1, top - 1, right, bottom), outline=_FAINT)
    for value, text in ((0.0, "0"), (0.5, "0.5"), (1.0, "1"), (SCALE_TOP, f"{SCALE_TOP:g}+")):
        y = round(bottom - (bottom - top) * value / SCALE_TOP)
        draw.line((right, y, right + bar / 3, y), fill=_FAINT)
        draw.text((right + bar / 2, y), text, fill=_INK, font=font, anchor="lm")
    limit = round(bottom - (bottom - top) / SCALE_TOP)
    draw.line((right - bar, limit, right, limit), fill=_HALO, width=max(1, height // 360))
    edge = width - round(height / 40)
    draw.text((edge, top - round(height / 28)), label, fill=_FAINT, font=font, anchor="rs")
    return np.asarray(picture)


COLORBAR_MARGIN = 0.13
"""Share of the picture's width that the colour bar takes at the right."""


def strip(images: Sequence[Image], labels: Sequence[str], *, gap: int = 4) -> Image:
    """Pictures of equal size side by side, each with a label in its upper left corner."""
    return sheet(images, labels, columns=len(images), gap=gap)


def sheet(images: Sequence[Image], labels: Sequence[str], *, columns: int, gap: int = 4) -> Image:
    """Pictures of equal size in rows, each with a label in its upper left corner."""
    height, width = images[0].shape[:2]
    rows = -(-len(images) // columns)
    size = (rows * (height + gap) - gap, columns * (width + gap) - gap, 3)
    page = np.full(size, 255, dtype=np.uint8)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        row, column = divmod(number, columns)
        y, x = row * (height + gap), column * (width + gap)
        page[y : y + height, x : x + width] = add_text(image, title=label)
    return page


def _canvas(image: Image) -> tuple[PillowImage.Image, ImageDraw.ImageDraw]:
    picture = PillowImage.fromarray(image)
    return picture, ImageDraw.Draw(picture)


def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(max(9.0, size))


def _grown(box: tuple[float, ...], by: float) -> tuple[float, float, float, float]:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _shortened(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, room: float) -> str:
    """The text, cut with an ellipsis where it is wider than the room."""
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(text + "…") > room:
        text = text[:-1]
    return text + "…"
