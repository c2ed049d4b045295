# SPDX-License-Identifier: Apache-2.0
"""Contacts that can only push: neighbours side by side, parts on tiles, parts on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.geometry import GROUND, FaceContacts
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@dataclass(frozen=True, eq=False)
class Pushes:
    """V points at which one part can push another.

    Attributes:
        low: (V,) index of the part on the low side of the contact plane.
        high: (V,) index of the part on the high side.
        point: (V, 3) [m].
        normal: (V, 3) from low to high.
        gap: (V,) distance that closes before they touch [m].
    """

    low: IntArray
    high: IntArray
    point: Array
    normal: Array
    gap: Array

    def __len__(self) -> int:
        return len(self.low)

    def within(self, index: IntArray) -> Pushes:
        """Those between parts that a piece has.

        Args:
            index: (N,) index of each part in the piece, negative for others.
        """
        return Pushes(*_within(index, self.low, self.high, self.point, self.normal, self.gap))

    @property
    def wrench(self) -> Array:
        """(V, 6) scaled wrench of a unit push about its point, on the high part."""
        return np.column_stack([self.normal, np.zeros_like(self.normal)])


@compiled
def _within(
    index: IntArray, low: IntArray, high: IntArray, point: Array, normal: Array, gap: Array
) -> tuple[IntArray, IntArray, Array, Array, Array]:
    """Arrays of `Pushes.within`."""
    kept = np.empty(len(low), dtype=np.int64)
    count = 0
    for v in range(len(low)):
        if index[low[v]] >= 0 and index[high[v]] >= 0:
            kept[count] = v
            count += 1
    kept = kept[:count]
    return index[low[kept]], index[high[kept]], point[kept], normal[kept], gap[kept]


def pushes_of(
    faces: FaceContacts, lower: IntArray, upper: IntArray, constants: SnapFitConstants
) -> Pushes:
    """The corners of all face contacts that neither a joint nor the ground accounts for.

    Args:
        faces: Every face contact of the component.
        lower: (C,) lower parts of the joints.
        upper: (C,) upper parts.
        constants: For the side gap.
    """
    count = 1 + max(faces.part_b.max(initial=0), upper.max(initial=0))
    jointed = np.isin(faces.part_a * count + faces.part_b, lower * count + upper)
    kept = (faces.part_a != GROUND) & ~((faces.axis == 2) & jointed)
    side = np.where(faces.axis[kept] == 2, 0.0, constants.side_gap)
    return Pushes(
        low=np.repeat(faces.part_a[kept], 4),
        high=np.repeat(faces.part_b[kept], 4),
        point=faces.vertices[kept].reshape(-1, 3),
        normal=np.repeat(faces.normal[kept], 4, axis=0),
        gap=np.repeat(side, 4),
    )
