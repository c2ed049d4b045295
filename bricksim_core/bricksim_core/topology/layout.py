# SPDX-License-Identifier: Apache-2.0
"""One component as plain arrays: what mechanics, engines and pictures compute from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology.grid import part_poses

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ComponentLayout:
    """Parts and connections of one component, in its grid frame (the *component frame*).

    Parts are sorted by id, connections by id. Arrays are read only by convention.

    Attributes:
        part_ids: (N,) part ids.
        shapes: The N shapes.
        grids: (N, 4) grid poses of the parts' hole interface frames: x, y [studs], z [plates],
            yaw [quarter turns].
        connection_ids: (C,) connection ids.
        stud_index: (C,) index into the parts of the lower part of each connection.
        hole_index: (C,) index into the parts of the upper part.
        offsets: (C, 2) hole interface origin in the stud interface frame [studs].
        yaws: (C,) yaw of the hole interface in the stud interface frame [quarter turns].
    """

    part_ids: IntArray
    shapes: tuple[BrickShape, ...]
    grids: IntArray
    connection_ids: IntArray
    stud_index: IntArray
    hole_index: IntArray
    offsets: IntArray
    yaws: IntArray

    @cached_property
    def dimensions(self) -> IntArray:
        """(N, 3) length, width [studs] and height [plates]."""
        rows = [(s.length, s.width, s.height) for s in self.shapes]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    @cached_property
    def masses(self) -> Array:
        """(N,) masses [kg]."""
        return np.array([s.mass for s in self.shapes])

    @cached_property
    def component_T_parts(self) -> Array:
        """(N, 4, 4) poses of the part frames in the component frame [m]."""
        return part_poses(self.grids, self.dimensions[:, :2])

    @cached_property
    def coms(self) -> Array:
        """(N, 3) centres of mass of the parts in the component frame [m]."""
        local = np.array([s.com for s in self.shapes]).reshape(-1, 3)
        return transform_points(self.component_T_parts, local)

    @cached_property
    def inertias(self) -> Array:
        """(N, 3, 3) inertias about each part's own centre of mass, component axes [kg m^2]."""
        local = np.array([s.inertia for s in self.shapes]).reshape(-1, 3, 3)
        rotation = self.component_T_parts[:, :3, :3]
        return rotation @ local @ np.swapaxes(rotation, -1, -2)

    @cached_property
    def footprints(self) -> IntArray:
        """(N, 4) occupied cells x0, y0, x1, y1 (half open) in the component frame [studs]."""
        turned = self.grids[:, 3] % 2 == 1
        extent = np.where(turned[:, None], self.dimensions[:, 1::-1], self.dimensions[:, :2])
        # Quarter turns carry the origin corner to a different corner of the footprint.
        negative_x = np.isin(self.grids[:, 3] % 4, (1, 2))
        negative_y = np.isin(self.grids[:, 3] % 4, (2, 3))
        low = self.grids[:, :2] - extent * np.stack([negative_x, negative_y], axis=1)
        return np.concatenate([low, low + extent], axis=1)
