# SPDX-License-Identifier: Apache-2.0
"""One component as plain arrays: what mechanics, engines and pictures compute from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology.grid import IntArray, grid_boxes, part_poses

if TYPE_CHECKING:
    from bricksim_core.topology.graph import Connection


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
    def _kinds(self) -> tuple[tuple[BrickShape, ...], IntArray]:
        """All shape objects, each once, and (N,) which of them each part has."""
        place: dict[int, int] = {}
        which = [place.setdefault(id(shape), len(place)) for shape in self.shapes]
        distinct = {id(shape): shape for shape in self.shapes}
        return tuple(distinct.values()), np.array(which, dtype=np.int64)

    @cached_property
    def dimensions(self) -> IntArray:
        """(N, 3) length, width [studs] and height [plates]."""
        shapes, which = self._kinds
        rows = [(s.length, s.width, s.height) for s in shapes]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)[which]

    @cached_property
    def studded(self) -> NDArray[np.bool_]:
        """(N,) which parts have studs."""
        shapes, which = self._kinds
        return np.array([s.has_studs for s in shapes], dtype=np.bool_)[which]

    @cached_property
    def masses(self) -> Array:
        """(N,) masses [kg]."""
        shapes, which = self._kinds
        return np.array([s.mass for s in shapes], dtype=np.float64)[which]

    @cached_property
    def component_T_parts(self) -> Array:
        """(N, 4, 4) poses of the part frames in the component frame [m]."""
        return part_poses(self.grids, self.dimensions[:, :2])

    @cached_property
    def coms(self) -> Array:
        """(N, 3) centres of mass of the parts in the component frame [m]."""
        shapes, which = self._kinds
        local = np.array([s.com for s in shapes]).reshape(-1, 3)[which]
        return transform_points(self.component_T_parts, local)

    @cached_property
    def inertias(self) -> Array:
        """(N, 3, 3) inertias about each part's own centre of mass, component axes [kg m^2]."""
        shapes, which = self._kinds
        local = np.array([s.inertia for s in shapes]).reshape(-1, 3, 3)[which]
        rotation = self.component_T_parts[:, :3, :3]
        return rotation @ local @ np.swapaxes(rotation, -1, -2)

    @cached_property
    def footprints(self) -> IntArray:
        """(N, 4) occupied cells x0, y0, x1, y1 (half open) in the component frame [studs]."""
        return self.boxes[:, :, :2].reshape(-1, 4)

    @cached_property
    def boxes(self) -> IntArray:
        """(N, 2, 3) least and greatest corners of the bodies [studs, studs, plates], component
        frame."""
        return grid_boxes(self.grids, self.dimensions)

    def kept(self, part_ids: IntArray, ended: Collection[int]) -> ComponentLayout:
        """What is left of the component; what is known of its parts is taken over.

        Args:
            part_ids: (M,) sorted ids of the parts that are left.
            ended: Ids of connections that ended between them; those of other parts go anyway.
        """
        from bricksim_core.topology.cutting import connections_left, parts_left

        rows = np.searchsorted(self.part_ids, part_ids)
        shapes, (kinds, which) = self.shapes, self._kinds
        known = [getattr(self, name) for name in _PER_PART]
        grids, which, *own = parts_left(rows, self.grids, which, *known)
        connections = connections_left(
            len(shapes), rows, self.connection_ids, self.stud_index, self.hole_index,
            self.offsets, self.yaws, np.fromiter(ended, dtype=np.int64),
        )  # fmt: skip
        left = tuple([shapes[row] for row in rows.tolist()])
        new = ComponentLayout(part_ids, left, grids, *connections)
        new.__dict__.update(zip(_PER_PART, own, strict=True), _kinds=(kinds, which))
        return new

    def moved(self, grids: IntArray) -> ComponentLayout:
        """The component in another grid frame, where its parts have other (N, 4) grid poses."""
        return ComponentLayout(
            self.part_ids, self.shapes, grids, self.connection_ids, self.stud_index,
            self.hole_index, self.offsets, self.yaws,
        )  # fmt: skip

    def joined(self, other: ComponentLayout, connections: Sequence[Connection]) -> ComponentLayout:
        """One component with another; what is known of the parts of this one is taken over.

        Args:
            other: The other component, in this one's grid frame.
            connections: New ones, between the two.
        """
        part_ids = np.concatenate([self.part_ids, other.part_ids])
        order = np.argsort(part_ids, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        part_ids, start = part_ids[order], len(self.part_ids)
        ids = np.array([c.id for c in connections], dtype=np.int64)
        ends = np.array([(c.stud_part, c.hole_part) for c in connections], dtype=np.int64)
        stud, hole = np.searchsorted(part_ids, ends.reshape(-1, 2)).T
        offsets = np.array([c.offset for c in connections], dtype=np.int64).reshape(-1, 2)
        yaws = np.array([c.yaw for c in connections], dtype=np.int64)
        connection_ids = np.concatenate([self.connection_ids, other.connection_ids, ids])
        turn = np.argsort(connection_ids, kind="stable")

        def of_all(*values: NDArray) -> NDArray:
            return np.concatenate(values)[turn]

        shapes = (*self.shapes, *other.shapes)
        new = ComponentLayout(
            part_ids=part_ids,
            shapes=tuple([shapes[k] for k in order.tolist()]),
            grids=np.concatenate([self.grids, other.grids])[order],
            connection_ids=connection_ids[turn],
            stud_index=of_all(place[self.stud_index], place[start + other.stud_index], stud),
            hole_index=of_all(place[self.hole_index], place[start + other.hole_index], hole),
            offsets=of_all(self.offsets, other.offsets, offsets),
            yaws=of_all(self.yaws, other.yaws, yaws),
        )
        for name in _PER_PART:
            if name in self.__dict__:
                both = getattr(self, name), getattr(other, name)
                new.__dict__[name] = np.concatenate(both)[order]
        return new


_PER_PART = (
    "dimensions",
    "studded",
    "masses",
    "component_T_parts",
    "coms",
    "inertias",
    "boxes",
)
"""Cached properties that pieces and joined components take over."""
