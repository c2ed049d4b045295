# SPDX-License-Identifier: Apache-2.0
"""How well two interfaces are aligned: pure geometry of many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_QUARTER = 0.5 * np.pi


@dataclass(frozen=True, eq=False)
class Alignment:
    """Alignment of P stud interfaces with hole interfaces.

    Attributes:
        offset: (P, 2) nearest grid offset [studs].
        yaw: (P,) nearest yaw [quarter turns, 0-3].
        height_error: (P,) hole plane above the tops of the studs, at the overlap [m].
        tilt: (P,) angle between the interface normals [rad].
        yaw_error: (P,) signed error from the nearest quarter turn [rad].
        position_error: (P,) lateral distance from the nearest grid offset [m].
        overlap: (P, 4) overlapped stud cells x0, y0, x1, y1 at the nearest offset [studs]; empty
            where x1 <= x0 or y1 <= y0.
    """

    offset: IntArray
    yaw: IntArray
    height_error: Array
    tilt: Array
    yaw_error: Array
    position_error: Array
    overlap: IntArray

    @property
    def overlapping(self) -> NDArray[np.bool_]:
        """(P,) whether the grids overlap."""
        return (self.overlap[:, 2] > self.overlap[:, 0]) & (self.overlap[:, 3] > self.overlap[:, 1])


def align(
    world_T_stud: Array, stud_size: IntArray, world_T_hole: Array, hole_size: IntArray
) -> Alignment:
    """Compares pairs of parts with the nearest exact connection.

    Height and lateral error are taken at the middle of the overlap, where the studs are, not at the
    origin of the hole interface as in BrickSim: at the far corner of a long brick a small yaw or
    tilt would read as a large shift. Without yaw and tilt error the two are the same.

    Args:
        world_T_stud: (P, 4, 4) part frames of the lower parts [m].
        stud_size: (P, 3) their lengths, widths [studs] and heights [plates].
        world_T_hole: (P, 4, 4) part frames of the upper parts [m].
        hole_size: (P, 3) their sizes.
    """
    stud_rotation = world_T_stud[:, :3, :3]
    rotation = stud_rotation.mT @ world_T_hole[:, :3, :3]
    shift = np.einsum("pji,pj->pi", stud_rotation, world_T_hole[:, :3, 3] - world_T_stud[:, :3, 3])
    # Centre of the hole interface in the stud interface frame, in studs from the least corner.
    centre = shift[:, :2] / STUD_PITCH + 0.5 * stud_size[:, :2]
    angle = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])
    turns = np.round(angle / _QUARTER).astype(np.int64)
    turned = turns % 2 == 1
    extent = np.where(turned[:, None], hole_size[:, 1::-1], hole_size[:, :2])

    low = np.maximum(centre - 0.5 * extent, 0.0)
    high = np.minimum(centre + 0.5 * extent, stud_size[:, :2])
    middle = 0.5 * (low + high)
    # Where the hole interface has the point that is over the middle of the overlap, and where an
    # exact connection would have it.
    planar = rotation[:, :2, :2]
    local = np.linalg.solve(planar, (middle - centre)[:, :, None])[:, :, 0]
    cosine, sine = np.cos(turns * _QUARTER).round(), np.sin(turns * _QUARTER).round()
    exact = np.stack(
        [cosine * local[:, 0] - sine * local[:, 1], sine * local[:, 0] + cosine * local[:, 1]],
        axis=1,
    )
    least = middle - exact - 0.5 * extent
    nearest = np.round(least)
    start = nearest.astype(np.int64)
    overlap = np.concatenate(
        [np.maximum(start, 0), np.minimum(start + extent, stud_size[:, :2])], axis=1
    )
    # The hole interface's origin is the corner that its quarter turns carry away from the least.
    yaw = turns % 4
    corner = extent * np.stack([np.isin(yaw, (1, 2)), np.isin(yaw, (2, 3))], axis=1)
    height = shift[:, 2] + np.einsum("pi,pi->p", rotation[:, 2, :2], local * STUD_PITCH)
    return Alignment(
        offset=start + corner,
        yaw=yaw,
        height_error=height - stud_size[:, 2] * PLATE_HEIGHT - STUD_HEIGHT,
        tilt=np.arctan2(np.hypot(rotation[:, 0, 2], rotation[:, 1, 2]), rotation[:, 2, 2]),
        yaw_error=np.asarray(angle - turns * _QUARTER, dtype=np.float64),
        position_error=np.linalg.norm(least - nearest, axis=1) * STUD_PITCH,
        overlap=overlap,
    )
