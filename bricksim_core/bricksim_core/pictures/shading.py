# SPDX-License-Identifier: Apache-2.0
"""Darkening of corners and seams, computed from the depth of a finished picture.

Ambient light reaches concave places less. For each pixel, pairs of opposite neighbours are
compared with it: inverse depth is linear in the picture on every plane, so the mean of a pair
exceeds the pixel's own value only where the surface is concave. (Screen-space ambient occlusion,
with this pairwise test instead of normals.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

REACHES = (0.0008, 0.002, 0.0045)
"""Distances at which neighbours are compared [m]: seams, studs, corners."""
DIRECTIONS = 4
"""Pairs of opposite neighbours per distance."""
BIAS = 0.06
"""Concavity, as a fraction of the distance, that counts as none (noise of the depth)."""
MOST = 0.6
"""Greatest concavity that is counted, as a fraction of the distance."""
STRENGTH = 1.6
"""Loss of light per mean concavity."""
DARKEST = 0.5
"""Greatest loss of light."""
SILHOUETTE = 1.6
"""Neighbours that are nearer to the camera by more than this multiple of the distance belong to
something in front and darken nothing; the effect fades over one distance before that."""

_Float = NDArray[np.float32]


def occlusion(inverse_depth: _Float, pixel: float) -> _Float:
    """Loss of ambient light.

    Args:
        inverse_depth: (H, W) one over the depth along the view [1/m].
        pixel: Width of a pixel at the middle of the scene [m].

    Returns:
        (H, W) 0 (none) to `DARKEST`.
    """
    height, width = inverse_depth.shape
    if not inverse_depth.size:
        return inverse_depth
    spans = [(round(reach / pixel), round(reach / pixel) * pixel) for reach in REACHES]
    pad = max(max(steps for steps, _ in spans), 1)
    # Continued straight beyond the border, so that planes stay planes there.
    padded = np.pad(inverse_depth, pad, mode="reflect", reflect_type="odd")
    depth_squared = 1.0 / np.square(inverse_depth)
    total, mean, nearer = (np.empty_like(inverse_depth) for _ in range(3))
    total.fill(0.0)
    for steps, span in spans:
        if steps < 1:
            continue
        turned = 0.5 if steps > 2 else 0.0
        for k in range(DIRECTIONS):
            angle = math.pi * (k + turned) / DIRECTIONS
            down, right = round(steps * math.sin(angle)), round(steps * math.cos(angle))
            one = padded[pad + down :, pad + right :][:height, :width]
            two = padded[pad - down :, pad - right :][:height, :width]
            np.add(one, two, out=mean)
            mean *= 0.5
            np.maximum(one, two, out=nearer)
            for array in (mean, nearer):  # from inverse depths to distances towards the camera [m]
                array -= inverse_depth
                array *= depth_squared
            mean *= 1.0 / span
            mean -= BIAS
            np.clip(mean, 0.0, MOST, out=mean)
            nearer *= -1.0 / span
            nearer += SILHOUETTE
            np.clip(nearer, 0.0, 1.0, out=nearer)
            mean *= nearer
            total += mean
    total *= STRENGTH / (DIRECTIONS * len(REACHES))
    return np.minimum(total, DARKEST, out=total)
