# SPDX-License-Identifier: Apache-2.0
"""LDraw ids of rectangular bricks, plates, tiles and base plates.

In LDraw's own frame these parts have the centre of their top face at the origin and their longer
side along x. Ids and sizes are those of the LDraw parts library. Base plates are half a plate thin
there; here they are one plate, which changes nothing above them.
"""

from __future__ import annotations

import re

from bricksim_core.parts import PLATES_PER_BRICK, BrickShape

_BRICKS = {
    (1, 1): "3005",
    (1, 2): "3004 3065",
    (1, 3): "3622",
    (1, 4): "3010 3066",
    (1, 6): "3009 3067",
    (1, 8): "3008",
    (1, 10): "6111",
    (1, 12): "6112",
    (1, 16): "2465",
    (2, 2): "3003",
    (2, 3): "3002",
    (2, 4): "3001",
    (2, 6): "2456 44237",
    (2, 8): "3007 93888",
    (2, 10): "3006 92538",
    (4, 6): "2356",
    (4, 10): "6212",
    (4, 12): "4202",
    (8, 8): "4201",
    (8, 16): "4204",
    (10, 10): "733",
    (12, 24): "30072",
}
_TALL_BRICKS = {
    (1, 1, 3): "14716",
    (1, 1, 5): "2453b 2453 2453a",
    (1, 2, 2): "3245c 3245 3245a 3245b 772",
    (1, 2, 3): "22886",
    (1, 2, 5): "2454a 2454 2454b 46212 46212a 46212b",
    (1, 3, 5): "3755a 3755 3755b",
    (1, 4, 3): "49311",
    (1, 5, 2): "39266",
    (1, 6, 5): "3754",
    (2, 2, 3): "30145",
    (2, 4, 3): "30144 97492",
    (2, 6, 3): "6213",
}
"""By width, length and height in bricks."""
_PLATES = {
    (1, 1): "3024",
    (1, 2): "3023 3023a 3023b",
    (1, 3): "3623",
    (1, 4): "3710",
    (1, 5): "78329",
    (1, 6): "3666",
    (1, 8): "3460",
    (1, 10): "4477",
    (1, 12): "60479",
    (2, 2): "3022",
    (2, 3): "3021",
    (2, 4): "3020",
    (2, 6): "3795",
    (2, 8): "3034",
    (2, 10): "3832",
    (2, 12): "2445",
    (2, 14): "91988",
    (2, 16): "4282",
    (3, 3): "11212",
    (4, 4): "3031",
    (4, 6): "3032",
    (4, 8): "3035",
    (4, 10): "3030",
    (4, 12): "3029",
    (6, 6): "3958",
    (6, 8): "3036",
    (6, 10): "3033",
    (6, 12): "3028",
    (6, 14): "3456",
    (6, 16): "3027",
    (6, 24): "3026",
    (8, 8): "41539",
    (8, 16): "92438",
    (16, 16): "91405",
}
_TILES = {
    (1, 1): "3070b 3070 3070a",
    (1, 2): "3069b 3069 3069a",
    (1, 3): "63864",
    (1, 4): "2431",
    (1, 6): "6636",
    (1, 8): "4162",
    (2, 2): "3068b 3068 3068a",
    (2, 3): "26603",
    (2, 4): "87079",
    (2, 6): "69729",
    (4, 4): "1751",
    (6, 6): "10202 6881 6881a 6881b",
    (8, 16): "90498",
}
_BASEPLATES = {
    (8, 16): "3865",
    (8, 24): "3497",
    (8, 32): "4187",
    (16, 16): "3867",
    (16, 24): "3334",
    (16, 32): "3857",
    (24, 40): "3645",
    (32, 32): "3811",
    (48, 48): "4186",
    (50, 50): "782",
}

_DECORATED = re.compile(r"(?P<plain>\d+[abc]?)[pd][0-9a-z]{2,3}")
"""Ids of printed (p) and stickered (d) parts: the plain part's id and a code."""


def _table() -> tuple[dict[str, BrickShape], dict[BrickShape, str]]:
    groups = [
        *(((w, n, PLATES_PER_BRICK, True), ids) for (w, n), ids in _BRICKS.items()),
        *(((w, n, PLATES_PER_BRICK * h, True), ids) for (w, n, h), ids in _TALL_BRICKS.items()),
        *(((w, n, 1, True), ids) for (w, n), ids in _PLATES.items()),
        *(((w, n, 1, False), ids) for (w, n), ids in _TILES.items()),
        *(((w, n, 1, True), ids) for (w, n), ids in _BASEPLATES.items()),
    ]
    by_id: dict[str, BrickShape] = {}
    by_shape: dict[BrickShape, str] = {}
    for (width, length, height, has_studs), ids in groups:
        shape = BrickShape(length, width, height, has_studs)
        by_shape.setdefault(shape, ids.split()[0])
        by_id.update(dict.fromkeys(ids.split(), shape))
    return by_id, by_shape


SHAPES, IDS = _table()
"""Shapes (length along LDraw's x) by id, and the id that is written for a shape."""


def shape_of(file_name: str) -> BrickShape | None:
    """Shape of a part by the file name that a model refers to, None if it is not known.

    Args:
        file_name: As in ``3001.dat``; letter case does not matter, printed and stickered parts
            count as the plain ones.
    """
    name = file_name.lower()
    if not name.endswith(".dat"):
        return None
    part_id = name.removesuffix(".dat")
    if part_id in SHAPES:
        return SHAPES[part_id]
    match = _DECORATED.fullmatch(part_id)
    return SHAPES.get(match["plain"]) if match else None
