# SPDX-License-Identifier: Apache-2.0
"""What a part looks like: a triangle surface with real studs, rounded edges and a hollow underside.

Only for the eye (pictures, RViz markers, stages): colliders are boxes. Neighbours at the exact
stud pitch are drawn with a small gap between them so that bricks of one colour can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bricksim_core.parts.brick import STUD_HEIGHT, STUD_PITCH, STUD_RADIUS, BrickShape
from bricksim_core.spatial import Array

VISUAL_GAP = 0.00015
"""Gap left at each side face and at the top [m]; real bricks have about 0.1 mm at the sides."""
EDGE_RADIUS = 0.0003
"""Width of the rounded strip along the edges of bodies and studs [m]."""
WALL_THICKNESS = 0.0015
"""Thickness of the side walls [m]."""
ROOF_THICKNESS = 0.001
"""Thickness of the top [m]."""
TUBE_RADIUS = 0.00651 / 2
"""Outer radius of the tubes below a part that is two or more studs wide [m]."""
PLAIN_STUDS_FROM = 64 * 64
"""Parts with more studs than this get hexagonal ones: each is tiny in any picture."""
MOST_STUDS = 128 * 128
"""Parts with more studs than this are drawn flat."""
PIN_RADIUS = 0.0016
"""Radius of the pins below a part that is one stud wide [m]."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles with vertex normals, in the part frame.

    Attributes:
        vertices: (V, 3) points [m]; points with two normals are in it twice.
        normals: (V, 3) outward unit normals.
        faces: (F, 3) vertex indices, counter-clockwise seen from outside.
    """

    vertices: Array
    normals: Array
    faces: NDArray[np.int64]


def brick_mesh(shape: BrickShape, *, segments: int = 12) -> tuple[Array, NDArray[np.int64]]:
    """A part's surface without normals.

    Args:
        shape: The part.
        segments: Sides of the prism that stands for a stud.

    Returns:
        (V, 3) vertices [m] in the part frame and (F, 3) vertex indices.
    """
    surface = brick_surface(shape, segments=segments)
    return surface.vertices, surface.faces


def plain_mesh(shape: BrickShape, *, segments: int = 6) -> tuple[Array, NDArray[np.int64]]:
    """A part's surface of as few triangles as show what it is: a box and a prism for each stud.

    Args:
        shape: The part.
        segments: Sides of a prism.

    Returns:
        (V, 3) vertices [m] in the part frame and (F, 3) vertex indices, counter-clockwise seen
        from outside.
    """
    length, width, height = shape.size
    x, y, top = 0.5 * length - VISUAL_GAP, 0.5 * width - VISUAL_GAP, height - VISUAL_GAP
    ring = np.array([(-x, -y, 0.0), (x, -y, 0.0), (x, y, 0.0), (-x, y, 0.0)])
    vertices = [ring, ring + np.array([0.0, 0.0, top])]
    faces = [_strip(0, 4, 4), _fan(4, 4), _fan(0, 4)[:, ::-1]]
    if shape.has_studs and shape.length * shape.width <= MOST_STUDS:
        angles = 2.0 * np.pi * np.arange(segments) / segments
        around = STUD_RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        for i, centre in enumerate(_cell_centres(shape.length, shape.width)):
            for z in (top, height + STUD_HEIGHT):
                vertices.append(np.column_stack([around + centre, np.full(segments, z)]))
            start = 8 + 2 * segments * i
            faces += [_strip(start, start + segments, segments), _fan(start + segments, segments)]
    return np.concatenate(vertices), np.concatenate(faces)


@lru_cache(maxsize=256)
def brick_surface(
    shape: BrickShape, *, segments: int = 16, hollow: bool = False, gap: float = VISUAL_GAP
) -> Surface:
    """A part's surface.

    Args:
        shape: The part.
        segments: Sides of the prism that stands for a stud, 3 or more.
        hollow: True: the underside is open, with tubes or pins; False: it is closed, which is
            enough for parts that stand.
        gap: Gap left at the sides and the top [m].

    Returns:
        The surface. Its arrays are shared: do not write into them.
    """
    length, width, height = shape.size
    high = np.array([0.5 * length - gap, 0.5 * width - gap, height - gap])
    low = np.array([-high[0], -high[1], 0.0])
    studs = shape.length * shape.width
    if studs > PLAIN_STUDS_FROM:
        segments, hollow = min(segments, 6), False
    pieces = [_rounded_box(low, high, EDGE_RADIUS, bottom=not hollow)]
    if shape.has_studs and studs <= MOST_STUDS:
        centres = _cell_centres(shape.length, shape.width)
        stud = _pillar(STUD_RADIUS, high[2], high[2] + STUD_HEIGHT, segments)
        pieces.append(_copies(stud, centres))
    if hollow:
        pieces += _underside(shape, low, high, segments)
    surface = _joined(pieces)
    for array in (surface.vertices, surface.normals, surface.faces):
        array.setflags(write=False)
    return surface


def _cell_centres(length: int, width: int) -> Array:
    """(length x width, 2) centres of a stud grid around the origin [m]."""
    x = (np.arange(length, dtype=float) - 0.5 * (length - 1)) * STUD_PITCH
    y = (np.arange(width, dtype=float) - 0.5 * (width - 1)) * STUD_PITCH
    return np.stack([np.repeat(x, width), np.tile(y, length)], axis=1)


def _rounded_box(low: Array, high: Array, radius: float, *, bottom: bool) -> Surface:
    """A box whose edges are cut by strips that are shaded as if round.

    Each corner has one vertex per adjacent face, moved in by ``radius`` along that face; normals
    are those of the faces, so they blend across the strips.
    """
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = np.where(signs > 0, high, low)
    axes = np.eye(3)
    inset = radius * (1.0 - axes)  # for each face axis: how far to move along the two others
    vertices = corners[:, None, :] - signs[:, None, :] * inset
    normals = np.broadcast_to(signs[:, None, :] * axes, vertices.shape)

    def vertex(face: int, axis: int, end: int, a: int, b: int) -> int:
        """Vertex of the given face axis at the corner with these sides (0 or 1) along each axis."""
        place = [0, 0, 0]
        place[axis], place[(axis + 1) % 3], place[(axis + 2) % 3] = end, a, b
        return 3 * (4 * place[0] + 2 * place[1] + place[2]) + face

    polygons = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for end in (0, 1):
            if bottom or (axis, end) != (2, 0):
                ring = [(0, 0), (1, 0), (1, 1), (0, 1)]
                polygons.append([vertex(axis, axis, end, a, b) for a, b in ring])
        for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]:  # strips along the edges parallel to the axis
            ring = [(u, 0), (u, 1), (v, 1), (v, 0)]
            polygons.append([vertex(face, axis, end, a, b) for face, end in ring])
    polygons += [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(8)]
    faces = [(p[0], p[k], p[k + 1]) for p in polygons for k in range(1, len(p) - 1)]
    return _outward(vertices.reshape(-1, 3), normals.reshape(-1, 3), np.array(faces))


def _pillar(radius: float, bottom: float, top: float, segments: int) -> Surface:
    """A closed round pillar around the z axis with a rounded upper edge; nothing below."""
    angles = 2.0 * np.pi * np.arange(segments) / segments
    out = np.stack([np.cos(angles), np.sin(angles), np.zeros(segments)], axis=1)
    up = np.broadcast_to([0.0, 0.0, 1.0], out.shape)
    edge = min(EDGE_RADIUS, 0.5 * (top - bottom))
    rings = [
        (out * radius + up * bottom, out),
        (out * radius + up * (top - edge), out),
        (out * (radius - edge) + up * top, up),
    ]
    faces = [_strip(k * segments, (k + 1) * segments, segments) for k in range(2)]
    faces.append(_fan(2 * segments, segments))
    return Surface(
        np.concatenate([vertices for vertices, _ in rings]),
        np.concatenate([normals for _, normals in rings]),
        np.concatenate(faces),
    )


def _strip(lower: int, upper: int, segments: int) -> NDArray[np.int64]:
    """Two triangles for each side between two rings of vertices, the upper ring above."""
    k = np.arange(segments)
    n = (k + 1) % segments
    first = np.stack([lower + k, lower + n, upper + n], axis=1)
    second = np.stack([lower + k, upper + n, upper + k], axis=1)
    return np.concatenate([first, second])


def _fan(start: int, segments: int) -> NDArray[np.int64]:
    """Triangles that fill a ring of vertices, counter-clockwise."""
    ring = start + np.arange(segments)
    return np.stack([np.full(segments - 2, start), ring[1:-1], ring[2:]], axis=1)


def _underside(shape: BrickShape, low: Array, high: Array, segments: int) -> list[Surface]:
    """Rim, inner walls, ceiling and tubes of the open underside."""
    wall = np.array([WALL_THICKNESS, WALL_THICKNESS])
    outer_low, outer_high = low[:2] + EDGE_RADIUS, high[:2] - EDGE_RADIUS
    inner_low, inner_high = low[:2] + wall, high[:2] - wall
    ceiling = high[2] - ROOF_THICKNESS
    ring = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    outer = np.where(ring, outer_high, outer_low)
    inner = np.where(ring, inner_high, inner_low)
    pieces = []
    for k in range(4):
        n = (k + 1) % 4
        along = inner[n] - inner[k]
        inward = np.array([-along[1], along[0], 0.0]) / np.linalg.norm(along)
        rim = [(*outer[k], 0.0), (*inner[k], 0.0), (*inner[n], 0.0), (*outer[n], 0.0)]
        face = [(*inner[k], 0.0), (*inner[k], ceiling), (*inner[n], ceiling), (*inner[n], 0.0)]
        pieces += [_quad(rim, (0.0, 0.0, -1.0)), _quad(face, inward)]
    pieces.append(_quad([(*p, ceiling) for p in inner], (0.0, 0.0, -1.0)))
    narrow = min(shape.length, shape.width) == 1
    centres = _cell_centres(shape.length - (shape.length > 1), shape.width - (shape.width > 1))
    if max(shape.length, shape.width) > 1:
        tube = _tube(PIN_RADIUS if narrow else TUBE_RADIUS, narrow, ceiling, segments)
        pieces.append(_copies(tube, centres))
    return pieces


def _tube(radius: float, filled: bool, ceiling: float, segments: int) -> Surface:
    """A tube (or filled pin) that hangs from the ceiling down to z = 0."""
    angles = 2.0 * np.pi * np.arange(segments) / segments
    out = np.stack([np.cos(angles), np.sin(angles), np.zeros(segments)], axis=1)
    up = np.broadcast_to([0.0, 0.0, 1.0], out.shape)
    rings = [
        (out * radius, out),
        (out * radius + up * ceiling, out),
        (out * radius, -up),
        (out * STUD_RADIUS, -up),
        (out * STUD_RADIUS, -out),
        (out * STUD_RADIUS + up * ceiling, -out),
    ]
    faces = [_strip(0, segments, segments)]
    if filled:
        rings = rings[:3]
        faces.append(_fan(2 * segments, segments)[:, ::-1])
    else:
        faces.append(_strip(3 * segments, 2 * segments, segments))
        faces.append(_strip(5 * segments, 4 * segments, segments))
    return Surface(
        np.concatenate([vertices for vertices, _ in rings]),
        np.concatenate([normals for _, normals in rings]),
        np.concatenate(faces),
    )


def _quad(points: list[tuple[float, ...]], normal: tuple[float, float, float] | Array) -> Surface:
    vertices = np.array(points, dtype=float)
    normals = np.broadcast_to(np.asarray(normal, dtype=float), vertices.shape)
    return _outward(vertices, normals, np.array([(0, 1, 2), (0, 2, 3)]))


def _outward(vertices: Array, normals: Array, faces: NDArray[np.int64]) -> Surface:
    """The surface with each triangle turned so that it faces along its vertex normals."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    facing = np.einsum("fi,fi->f", np.cross(b - a, c - a), normals[faces].sum(axis=1))
    return Surface(vertices, normals, np.where(facing[:, None] < 0.0, faces[:, ::-1], faces))


def _copies(surface: Surface, centres: Array) -> Surface:
    """The surface repeated at (K, 2) places of the x-y plane."""
    count, size = len(centres), len(surface.vertices)
    offsets = np.concatenate([centres, np.zeros((count, 1))], axis=1)
    return Surface(
        (surface.vertices[None] + offsets[:, None]).reshape(-1, 3),
        np.tile(surface.normals, (count, 1)),
        (surface.faces[None] + size * np.arange(count)[:, None, None]).reshape(-1, 3),
    )


def _joined(pieces: list[Surface]) -> Surface:
    starts = np.cumsum([0, *(len(p.vertices) for p in pieces[:-1])])
    return Surface(
        np.concatenate([p.vertices for p in pieces]),
        np.concatenate([p.normals for p in pieces]),
        np.concatenate([p.faces + start for p, start in zip(pieces, starts, strict=True)]),
    )
