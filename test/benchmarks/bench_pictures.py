# SPDX-License-Identifier: Apache-2.0
"""Time of a picture: a frame of a video against one of the quality of single pictures."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bricksim_core.parts import BrickShape
from bricksim_core.pictures import STILL, VIDEO, Quality, Renderer, Scene, corner_points, fit_camera
from bricksim_core.spatial import Array, transform

SIZE = (640, 480)


def run(quick: bool) -> list[dict[str, Any]]:
    """A row per number of bricks; value and baseline in milliseconds per 640 x 480 frame."""
    rows = []
    for count in (30, 100) if quick else (30, 100, 300, 1000):
        scene, poses = heap(count)
        value = frame_time(scene, poses, VIDEO, 3 if quick else 10)
        baseline = frame_time(scene, poses, STILL, 1 if quick else 3)
        rows.append(
            {
                "name": f"frame of a video, {count} bricks",
                "unit": "ms",
                "value": 1e3 * value,
                "baseline": 1e3 * baseline,
                "ratio": baseline / value,
            }
        )
    return rows


def heap(count: int) -> tuple[Scene, Array]:
    """Bricks of several sizes and colours lying about on top of each other."""
    random = np.random.default_rng(0)
    sizes = [(4, 2), (2, 2), (1, 2), (6, 1), (1, 1)]
    shapes = tuple(BrickShape(*sizes[i % len(sizes)]) for i in range(count))
    colors = tuple((int(r), int(g), int(b)) for r, g, b in random.integers(0, 255, (count, 3)))
    spread = 0.016 * np.cbrt(count)
    places = random.uniform(-spread, spread, (count, 3)) + np.array([0.0, 0.0, spread])
    turns = random.normal(size=(count, 4))
    poses = transform(places, turns / np.linalg.norm(turns, axis=1, keepdims=True))
    return Scene(shapes, colors), poses


def frame_time(scene: Scene, poses: Array, quality: Quality, frames: int) -> float:
    """Median time of a frame [s]; the first, which compiles shaders, does not count."""
    corners = corner_points(scene.shapes, poses)
    camera = fit_camera(corners, SIZE)
    extent = 0.5 * float(np.linalg.norm(np.ptp(corners.reshape(-1, 3), axis=0)))
    times = []
    with Renderer(
        scene, SIZE, extent, quality=quality, hollow=True, pixel=camera.pixel(SIZE[1])
    ) as renderer:
        renderer.frame(camera, poses)
        for _ in range(frames):
            start = time.perf_counter()
            renderer.frame(camera, poses)
            times.append(time.perf_counter() - start)
    return float(np.median(times))
