# SPDX-License-Identifier: Apache-2.0
"""Parts that stand on a rigid horizontal ground: joints that only push, with Coulomb friction."""

from __future__ import annotations

import numpy as np

from bricksim_core.mechanics.geometry import GROUND, FaceContacts
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.joints import BEARING_SIGNS, EDGE_SIGNS, ROWS, TIP_ROWS
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


def ground_footprints(faces: FaceContacts) -> tuple[IntArray, Array, Array]:
    """Where parts rest on the ground.

    Returns:
        (G,) parts, (G, 3) centres of their footprints [m], (G, 2) half sides [m].
    """
    resting = faces.part_a == GROUND
    corners = faces.vertices[resting]
    low, high = corners.min(axis=1), corners.max(axis=1)
    return faces.part_b[resting], 0.5 * (low + high), 0.5 * (high - low)[:, :2]


def ground_rows(half: Array, weight: float, constants: SnapFitConstants) -> Array:
    """(G, ROWS, 6) what a footprint cannot do, in units of the weight; all rows must be <= 0.

    The resultant must lie within the footprint (no pull about any edge), and friction obeys
    |Fx| + |Fy| + |Mz| / rho <= mu N with rho half the distance of the corners from the centre: an
    inner approximation of Coulomb's cone for a rectangle under an even pressure.

    Args:
        half: (G, 2) half sides [m].
        weight: Weight of the component [N].
        constants: For the friction.
    """
    rows = np.zeros((len(half), ROWS, 6))
    if not len(half):
        return rows
    sides = np.repeat(half, 2, axis=1)
    tips = rows[:, :4]
    tips[:, :, 2] = 1.0
    tips[:, :, 3:5] = EDGE_SIGNS / sides[:, :, None]
    friction = rows[:, TIP_ROWS:]
    friction[:, :, :2] = BEARING_SIGNS[:, :2]
    friction[:, :, 5] = BEARING_SIGNS[:, 2] / friction_lever(half)[:, None]
    friction[:, :, 2] = constants.ground_friction
    return rows / weight


def friction_lever(half: Array) -> Array:
    """(G,) rho [m]: torque about a footprint's centre per friction that resists turning."""
    return 0.5 * np.hypot(*half.T)
