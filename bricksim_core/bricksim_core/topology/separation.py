# SPDX-License-Identifier: Apache-2.0
"""How far oriented boxes are apart, axis by axis."""

from __future__ import annotations

import math

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.spatial import Array

_PARALLEL = 1e-6
"""Length of the cross product of two box axes below which it is none of its own."""


def separations(
    offset: Array, axes_a: Array, halves_a: Array, axes_b: Array, halves_b: Array
) -> Array:
    """Separations of P pairs of boxes along the 15 axes of the separating axis theorem.

    Args:
        offset: (P, 3) from the centre of a to that of b [m].
        axes_a: (P, 3, 3) rotations of a; columns are the box axes.
        halves_a: (P, 3) half extents of a [m].
        axes_b: (P, 3, 3) rotations of b.
        halves_b: (P, 3) half extents of b [m].

    Returns:
        (P, 15) gaps [m] along the axes of a, of b and their cross products (-inf where parallel);
        the greatest one of a pair is its separation, negative where the boxes overlap.
    """
    gaps = np.empty((len(offset), 15))
    flat = np.ascontiguousarray
    separate(flat(offset), flat(axes_a), flat(halves_a), flat(axes_b), flat(halves_b), gaps)
    return gaps


@compiled
def separate(
    offset: Array, axes_a: Array, halves_a: Array, axes_b: Array, halves_b: Array, gaps: Array
) -> None:
    """Writes what `separations` hands back; arguments as there."""
    axis = np.empty(3)
    for p in range(len(offset)):
        for k in range(15):
            for i in range(3):
                if k < 6:
                    axis[i] = axes_a[p, i, k] if k < 3 else axes_b[p, i, k - 3]
                else:
                    one, other = (k - 6) // 3, (k - 6) % 3
                    j, m = (i + 1) % 3, (i + 2) % 3
                    axis[i] = (
                        axes_a[p, j, one] * axes_b[p, m, other]
                        - axes_a[p, m, one] * axes_b[p, j, other]
                    )
            length = math.sqrt(axis[0] ** 2 + axis[1] ** 2 + axis[2] ** 2)
            if not length > _PARALLEL:
                gaps[p, k] = -np.inf
                continue
            along = reach = 0.0
            for i in range(3):
                along += offset[p, i] * axis[i]
                a = b = 0.0
                for j in range(3):
                    a += axes_a[p, j, i] * axis[j]
                    b += axes_b[p, j, i] * axis[j]
                reach += halves_a[p, i] * abs(a) + halves_b[p, i] * abs(b)
            gaps[p, k] = (abs(along) - reach) / length
