# SPDX-License-Identifier: Apache-2.0
"""A structure as the compiled loops for small ones take it."""

from __future__ import annotations

from typing import NamedTuple

from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


class Plain(NamedTuple):
    """J joints that yield and V contacts between parts, as plain arrays; R = 6 J + V.

    Attributes:
        value: (E,) entries of the (R, F) matrix of strains and of how far contacts close by
            displacements.
        column: (E,) their columns.
        start: (R + 1,) where its rows begin.
        weight: (R,) stiffness of all [N/m].
        every: (J, ROWS, 6) rows of all joints.
        softness: (J,) of the joints.
    """

    value: Array
    column: IntArray
    start: IntArray
    weight: Array
    every: Array
    softness: Array
