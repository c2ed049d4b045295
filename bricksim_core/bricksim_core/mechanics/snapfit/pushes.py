# SPDX-License-Identifier: Apache-2.0
"""Contacts that can only push: neighbours side by side, parts on tiles, parts on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.geometry import GROUND, FaceContacts
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.membership import are_in
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
    jointed = are_in(faces.part_a * count + faces.part_b, lower * count + upper)
    kept = (faces.part_a != GROUND) & ~((faces.axis == 2) & jointed)
    return Pushes(
        *_corners(
            np.flatnonzero(kept), faces.part_a, faces.part_b, faces.axis, faces.vertices,
            constants.side_gap,
        )
    )  # fmt: skip


@compiled
def _corners(
    kept: IntArray,
    part_a: IntArray,
    part_b: IntArray,
    axis: IntArray,
    vertices: Array,
    side_gap: float,
) -> tuple[IntArray, IntArray, Array, Array, Array]:
    """The arrays of `Pushes`: four points of each of some `FaceContacts`."""
    low, high = np.empty(4 * len(kept), dtype=np.int64), np.empty(4 * len(kept), dtype=np.int64)
    point, normal = np.empty((4 * len(kept), 3)), np.zeros((4 * len(kept), 3))
    gap = np.empty(4 * len(kept))
    for v in range(len(low)):
        f = kept[v // 4]
        low[v], high[v], point[v] = part_a[f], part_b[f], vertices[f, v % 4]
        normal[v, axis[f]] = 1.0
        gap[v] = 0.0 if axis[f] == 2 else side_gap
    return low, high, point, normal, gap
