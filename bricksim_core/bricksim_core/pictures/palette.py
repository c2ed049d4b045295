# SPDX-License-Identifier: Apache-2.0
"""Colours of utilization.

Up to 1 a light-to-dark scale whose lightness falls steadily (ColorBrewer's YlGnBu, safe with every
kind of colour blindness); above 1 vermilion to dark red, which no colour below 1 resembles in hue
or lightness next to the dark blue of 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNKNOWN_COLOR = (176, 176, 176)
"""Parts that carry no known load."""
OVERLOAD_COLOR = (230, 73, 16)
"""A connection just above its limit."""
OVERLOAD_FROM = 1.0 + 1e-6
"""Utilization above which a connection counts as overloaded: 1 and the solvers' tolerance."""
SCALE_TOP = 1.5
"""Utilization from which the colour does not change any more."""

_SOUND = np.array(
    [
        (255, 255, 217),
        (237, 248, 177),
        (199, 233, 180),
        (127, 205, 187),
        (65, 182, 196),
        (29, 145, 192),
        (34, 94, 168),
        (37, 52, 148),
        (8, 29, 88),
    ],
    dtype=float,
)
_OVERLOADED = np.array([OVERLOAD_COLOR, (122, 4, 30)], dtype=float)


def utilization_colors(utilization: ArrayLike) -> NDArray[np.uint8]:
    """Colours of utilizations.

    Args:
        utilization: (...) load over capacity, >= 0; NaN where unknown.

    Returns:
        (..., 3) sRGB.
    """
    values = np.asarray(utilization, dtype=float)
    known = np.nan_to_num(values, nan=0.0, posinf=SCALE_TOP)
    sound = _blend(_SOUND, known)
    overloaded = _blend(_OVERLOADED, (known - 1.0) / (SCALE_TOP - 1.0))
    colors = np.where((known > OVERLOAD_FROM)[..., None], overloaded, sound)
    colors = np.where(np.isnan(values)[..., None], UNKNOWN_COLOR, colors)
    return np.round(colors).astype(np.uint8)


def _blend(anchors: NDArray[np.float64], fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    places = np.linspace(0.0, 1.0, len(anchors))
    return np.stack([np.interp(fraction, places, anchors[:, k]) for k in range(3)], axis=-1)
