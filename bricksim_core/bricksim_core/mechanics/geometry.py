# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a component touch: faces against faces, studs inside holes.

Everything is computed on the integer grid and is therefore exact: two faces touch or they do not.
All positions are in the component frame. Because studs and holes look the same after quarter turns,
the axes of the component frame serve as axes of every connection.

Contact points of studs follow BrickSim (arXiv 2603.16853): a stud is held at three or four points,
depending on where in the hole brick it sits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, STUD_RADIUS
from bricksim_core.spatial import Array
from bricksim_core.topology.faces import facing_pairs
from bricksim_core.topology.grid import GRID_CELL
from bricksim_core.topology.layout import ComponentLayout, IntArray

GROUND = -1
"""Stands for the ground where the index of a part is expected."""

GROUND_TOLERANCE = 1e-6
"""Greatest distance of a bottom face from the ground plane that counts as touching [m]."""


@dataclass(frozen=True, eq=False)
class FaceContacts:
    """Rectangles in which parts touch face to face; F rows, sorted by `part_a`, then `part_b`.

    Attributes:
        part_a: (F,) index of the part on the low side of the plane, GROUND for the ground.
        part_b: (F,) index of the part on the high side.
        axis: (F,) 0, 1 or 2: the normal is the component frame's +x, +y or +z, from a to b.
        vertices: (F, 4, 3) corners in order around the rectangle [m].
    """

    part_a: IntArray
    part_b: IntArray
    axis: IntArray
    vertices: Array

    def __len__(self) -> int:
        return len(self.part_a)

    @property
    def normal(self) -> Array:
        """(F, 3) unit normals from a to b."""
        return np.eye(3)[self.axis]


def face_contacts(layout: ComponentLayout, ground: float | None = None) -> FaceContacts:
    """All pairs of coplanar, opposite faces of different parts that share an area.

    These are the stacked faces of connected parts, parts that rest on tiles, and neighbours side by
    side (parts are taken at their nominal size, without clearance).

    Args:
        layout: The component.
        ground: Height of a horizontal ground in the component frame [m]; bottom faces in that plane
            touch it. None for no ground.

    Returns:
        The contacts, the ground's first.
    """
    boxes = layout.boxes
    pairs = [facing_pairs(boxes, axis) for axis in range(3)]
    axes = [0, 1, 2]
    if ground is not None:
        bottom = boxes[:, 0, 2] * PLATE_HEIGHT
        resting = np.flatnonzero(np.abs(bottom - ground) <= GROUND_TOLERANCE)
        pairs.append((np.full_like(resting, GROUND), resting))
        axes.append(2)
    part_a, part_b = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    axis = np.repeat(axes, [len(a) for a, _ in pairs])
    order = np.argsort(part_a * len(boxes) + part_b, kind="stable")
    part_a, part_b, axis = part_a[order], part_b[order], axis[order]
    return FaceContacts(part_a, part_b, axis, _rectangles(boxes, part_a, part_b, axis))


@compiled
def _rectangles(boxes: IntArray, part_a: IntArray, part_b: IntArray, axis: IntArray) -> Array:
    """`FaceContacts.vertices`, from its other arrays and (N, 2, 3) boxes [studs, studs, plates]."""
    vertices = np.empty((len(axis), 4, 3))
    for f in range(len(axis)):
        a, b, normal = part_a[f], part_b[f], axis[f]
        u, v = (normal + 1) % 3, (normal + 2) % 3
        for side, along in ((u, (0, 1, 1, 0)), (v, (0, 0, 1, 1))):
            low, high = boxes[b, 0, side], boxes[b, 1, side]
            if a != GROUND:
                low, high = max(low, boxes[a, 0, side]), min(high, boxes[a, 1, side])
            for corner in range(4):
                vertices[f, corner, side] = (high if along[corner] else low) * GRID_CELL[side]
        vertices[f, :, normal] = boxes[b, 0, normal] * GRID_CELL[normal]
    return vertices


class Holder(IntEnum):
    """What of the hole brick presses on a stud at a contact point."""

    WALL = 0
    """An outer wall."""
    TUBE = 1
    """A tube between four studs (bricks two or more studs wide)."""
    PIN = 2
    """A pin between two studs (bricks one stud wide)."""


class Place(IntEnum):
    """Where in the hole brick a stud sits."""

    NARROW = 0
    """In a brick one stud wide: four axis points."""
    CORNER = 1
    """Two outer walls and one tube: three points."""
    EDGE = 2
    """One outer wall and two tubes: three points."""
    INTERIOR = 3
    """Four tubes: four points."""


@dataclass(frozen=True, eq=False)
class StudPattern:
    """Contact points of one connection relative to the centre of its overlap; P points.

    Connections with equal overlap at equal sides of the hole brick share one pattern.

    Attributes:
        position: (P, 2) [m].
        normal: (P, 2) unit normal into the stud.
        cell: (P,) which stud of the overlap (row by row along x, then y).
        holder: (P,) `Holder` of each point.
        place: (P,) `Place` of the point's stud.
        hull: (H,) indices of the convex hull of the points of the overlap's corner studs,
            counterclockwise.
    """

    position: Array
    normal: Array
    cell: IntArray
    holder: IntArray
    place: IntArray
    hull: IntArray

    @property
    def tangent(self) -> Array:
        """(P, 2) z cross normal."""
        return np.column_stack([-self.normal[:, 1], self.normal[:, 0]])


@dataclass(frozen=True, eq=False)
class StudContacts:
    """Contact points of all connections: patterns and which connection has which.

    Attributes:
        patterns: The distinct patterns.
        pattern: (C,) index of each connection's pattern.
        centre: (C, 3) centre of each overlap at the stud plane (top face of the lower part) [m].
        overlap: (C, 2) studs of each overlap along x and y.
    """

    patterns: tuple[StudPattern, ...]
    pattern: IntArray
    centre: Array
    overlap: IntArray

    def _gather(self, name: str) -> NDArray:
        if not len(self.pattern):
            empty = np.zeros((0, 2)) if name in ("position", "normal") else np.zeros(0, np.int64)
            return empty
        return np.concatenate([getattr(self.patterns[k], name) for k in self.pattern])

    @property
    def counts(self) -> IntArray:
        """(C,) number of contact points of each connection."""
        sizes = np.array([len(p.position) for p in self.patterns], dtype=np.int64)
        return sizes[self.pattern]

    @property
    def connection(self) -> IntArray:
        """(P,) index of the connection of each point."""
        return np.repeat(np.arange(len(self.pattern)), self.counts)

    @property
    def position(self) -> Array:
        """(P, 3) points [m]."""
        points = self.centre[self.connection]
        points[:, :2] += self._gather("position")
        return points

    @property
    def normal(self) -> Array:
        """(P, 3) unit normals into the stud."""
        plane = self._gather("normal")
        return np.column_stack([plane, np.zeros(len(plane))])

    @property
    def tangent(self) -> Array:
        """(P, 3) z cross normal."""
        return np.cross([0.0, 0.0, 1.0], self.normal)

    @property
    def holder(self) -> IntArray:
        """(P,) `Holder` of each point."""
        return self._gather("holder")

    @property
    def place(self) -> IntArray:
        """(P,) `Place` of each point's stud."""
        return self._gather("place")

    @property
    def hull(self) -> IntArray:
        """Indices into the points: the hull points of all connections, in order."""
        counts = self.counts
        first = np.cumsum(counts) - counts
        parts = [self.patterns[k].hull + f for k, f in zip(self.pattern, first, strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def stud_contacts(layout: ComponentLayout, rows: IntArray | None = None) -> StudContacts:
    """Contact points of the studs of every connection, in the layout's order of connections, or of
    some of them: (C,) rows."""
    lower, upper = layout.stud_index, layout.hole_index
    if rows is not None:
        lower, upper = lower[rows], upper[rows]
    stud, hole = layout.footprints[lower], layout.footprints[upper]
    low = np.maximum(stud[:, :2], hole[:, :2])
    high = np.minimum(stud[:, 2:], hole[:, 2:])
    narrow = (hole[:, 2:] - hole[:, :2]).min(axis=1, initial=1 << 40) == 1
    sides = np.column_stack([narrow, low == hole[:, :2], high == hole[:, 2:]])
    size = (high - low).astype(np.int64)
    keys = ((size[:, 0] << 16 | size[:, 1]) << 5) | (sides @ (1 << np.arange(5)))
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    patterns = tuple(_pattern(*size[k].tolist(), *sides[k].tolist()) for k in first)
    top = layout.grids[lower, 2] + layout.dimensions[lower, 2]
    centre = np.column_stack([0.5 * (low + high), top]) * GRID_CELL
    return StudContacts(patterns, pattern.reshape(-1), centre, high - low)


_AXES = ((1, 0), (0, 1), (-1, 0), (0, -1))
_DIAGONALS = ((1, 1), (-1, 1), (-1, -1), (1, -1))


@lru_cache(maxsize=4096)
def _pattern(
    nx: int, ny: int, narrow: int, at_x0: int, at_y0: int, at_x1: int, at_y1: int
) -> StudPattern:
    """Pattern of an overlap of nx by ny studs that reaches the given sides of the hole brick."""
    directions: list[tuple[int, int]] = []
    centres: list[tuple[float, float]] = []
    cells: list[int] = []
    places: list[Place] = []
    holders: list[Holder] = []
    corner_points: list[int] = []
    for i in range(nx):
        for j in range(ny):
            sides = (
                int(at_x1 and i == nx - 1) - int(at_x0 and i == 0),
                int(at_y1 and j == ny - 1) - int(at_y0 and j == 0),
            )
            walls = {
                (1, 0): at_x1 and i == nx - 1,
                (0, 1): at_y1 and j == ny - 1,
                (-1, 0): at_x0 and i == 0,
                (0, -1): at_y0 and j == 0,
            }
            place, points = _points_of_stud(bool(narrow), sides)
            for direction in points:
                if i in (0, nx - 1) and j in (0, ny - 1):
                    corner_points.append(len(directions))
                directions.append(direction)
                centres.append((i - 0.5 * (nx - 1), j - 0.5 * (ny - 1)))
                cells.append(i * ny + j)
                places.append(place)
                if direction in _DIAGONALS:
                    holders.append(Holder.TUBE)
                else:
                    holders.append(Holder.WALL if walls[direction] else Holder.PIN)
    outward = np.array(directions, dtype=float)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    position = np.array(centres) * STUD_PITCH + outward * STUD_RADIUS
    corner = np.array(corner_points, dtype=np.int64)
    pattern = StudPattern(
        position=position,
        normal=-outward,
        cell=np.array(cells, dtype=np.int64),
        holder=np.array(holders, dtype=np.int64),
        place=np.array(places, dtype=np.int64),
        hull=corner[_convex_hull(position[corner])],
    )
    for array in vars(pattern).values():
        array.setflags(write=False)
    return pattern


def _points_of_stud(
    narrow: bool, sides: tuple[int, int]
) -> tuple[Place, tuple[tuple[int, int], ...]]:
    """Place of a stud and the directions of its contact points.

    Args:
        narrow: The hole brick is one stud wide.
        sides: Which sides of the hole brick the stud sits at, -1, 0 or 1 along x and y.
    """
    if narrow:
        return Place.NARROW, _AXES
    x, y = sides
    if x and y:
        return Place.CORNER, ((x, 0), (0, y), (-x, -y))
    if x:
        return Place.EDGE, ((x, 0), (-x, -1), (-x, 1))
    if y:
        return Place.EDGE, ((0, y), (-1, -y), (1, -y))
    return Place.INTERIOR, _DIAGONALS


def _convex_hull(points: Array) -> list[int]:
    """Indices of the convex hull, counterclockwise, without collinear points (monotone chain)."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()

    def turn(a: int, b: int, c: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = points[a], points[b], points[c]
        return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

    tolerance = 1e-9 * STUD_PITCH**2
    halves = []
    for sequence in (order, order[::-1]):
        half: list[int] = []
        for k in sequence:
            while len(half) > 1 and turn(half[-2], half[-1], k) <= tolerance:
                half.pop()
            half.append(k)
        halves.append(half[:-1])
    return halves[0] + halves[1]
