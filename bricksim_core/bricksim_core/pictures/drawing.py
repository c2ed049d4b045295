# SPDX-License-Identifier: Apache-2.0
"""Pictures of structures and of motions, from plain arrays to a finished image."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bricksim_core.errors import PictureError
from bricksim_core.parts import Color
from bricksim_core.pictures.annotate import (
    COLORBAR_MARGIN,
    Marker,
    MarkerKind,
    add_colorbar,
    add_markers,
    add_text,
    sheet,
)
from bricksim_core.pictures.camera import Camera, corner_points, fit_camera
from bricksim_core.pictures.palette import OVERLOAD_FROM, utilization_colors
from bricksim_core.pictures.renderer import STILL, VIDEO, Image, Quality, Renderer
from bricksim_core.pictures.scene import (
    ABSENT,
    ABSENT_FROM,
    Scene,
    part_utilization,
    structure_scene,
)
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology import Structure
from bricksim_core.topology.frames import stud_T_connection

STILL_SIZE = (960, 720)
"""Width and height of a picture [pixels]."""
VIDEO_SIZE = (640, 480)
"""Width and height of a video [pixels]."""
TILE_SIZE = (320, 300)
"""Width and height of a picture on a sheet [pixels]."""
_PALE = 0.65
"""How far the colours of earlier parts go towards white."""
_TEXT_MARGIN = 0.12
"""Share of the height that a title or caption takes."""
_VISIBLE = 0.05
"""Part of a pixel by which something has to move to be drawn again."""
_LONG = 0.1
"""Length for which a turn counts as a motion [m]: that of a brick of twelve studs."""
_EDGE = 0.05
_FAR_AWAY = 2.5
"""Parts that roll farther than this many extents from where they were leave the picture."""


def draw_structure(
    structure: Structure,
    *,
    utilization: Mapping[int, float] | None = None,
    markers: Sequence[Marker] = (),
    title: str = "",
    caption: str = "",
    size: tuple[int, int] = STILL_SIZE,
    camera: Camera | None = None,
    colors: Mapping[int, Color] | None = None,
    quality: Quality = STILL,
) -> Image:
    """A picture of a structure as it stands.

    Args:
        structure: What to draw.
        utilization: Load over capacity by connection id: parts take the colour of their highest
            one, overloaded connections get a ring, and a colour bar is added. None: real colours.
        markers: More signs to draw.
        title: Text in the upper left corner.
        caption: Text in the lower left corner.
        size: Width and height [pixels].
        camera: Where it is taken from; None fits the structure.
        colors: Colours by part id, instead of those of the parts.
        quality: How much work goes into it.

    Returns:
        The picture.

    Raises:
        PictureError: The structure holds no part, or (NoGraphicsError) no headless OpenGL is here.
    """
    scene, part_ids, poses = structure_scene(structure)
    if not part_ids:
        raise PictureError(f"{structure.label}: holds no part, nothing to draw")
    if utilization is not None:
        values = utilization_colors(part_utilization(structure, utilization, part_ids))
        scene = Scene(scene.shapes, tuple((int(r), int(g), int(b)) for r, g, b in values))
        markers = [*overload_markers(structure, utilization), *markers]
    if colors is not None:
        shown = (colors.get(i, c) for i, c in zip(part_ids, scene.colors, strict=True))
        scene = Scene(scene.shapes, tuple(shown))
    corners = corner_points(scene.shapes, poses)
    if camera is None:
        camera = fit_camera(
            corners, size, margins=_margins(title, caption, utilization is not None)
        )
    with Renderer(
        scene,
        size,
        extent_of(corners),
        ground=float(corners[..., 2].min()),
        quality=quality,
        pixel=camera.pixel(size[1]),
    ) as renderer:
        image = renderer.frame(camera, poses)
    image = add_markers(image, camera, markers)
    if utilization is not None:
        image = add_colorbar(image)
    return add_text(image, title=title, caption=caption)


def draw_motion(
    scene: Scene,
    world_T_part: Array,
    *,
    captions: Sequence[str] | None = None,
    markers: Sequence[Sequence[Marker]] | None = None,
    colors: Sequence[Array] | None = None,
    world_T_solid: Array | None = None,
    ground: float | None = 0.0,
    size: tuple[int, int] = VIDEO_SIZE,
    camera: Camera | None = None,
    quality: Quality = VIDEO,
    hollow: bool = True,
) -> Iterator[Image]:
    """Frames of a motion, seen from one fixed camera.

    Args:
        scene: What can appear.
        world_T_part: (F, N, 4, 4) poses of the parts in each frame [m]; `ABSENT` for those that are
            not there.
        captions: F texts for the lower left corner.
        markers: F lists of signs.
        colors: F arrays (N, 3) of colours 0-255; None keeps the scene's.
        world_T_solid: (F, M, 4, 4) poses of the other solids [m].
        ground: Height of the ground [m], None for none.
        size: Width and height [pixels].
        camera: Where it is taken from; None fits the whole motion.
        quality: How much work goes into each frame.
        hollow: True draws the open underside of bricks, for when they tumble.

    Yields:
        The frames, in order.

    Raises:
        NoGraphicsError: There is no headless OpenGL here.
    """
    seen = _points_of_interest(scene, np.asarray(world_T_part))
    if camera is None:
        camera = fit_camera(seen, size, margins=_margins("label", "time", colors is not None))
    with Renderer(
        scene,
        size,
        extent_of(seen),
        ground=ground,
        quality=quality,
        hollow=hollow,
        pixel=camera.pixel(size[1]),
    ) as renderer:
        drawn: tuple[_Look, Image] | None = None
        visible = _VISIBLE * camera.pixel(size[1])
        for frame, poses in enumerate(world_T_part):
            solids = () if world_T_solid is None else (world_T_solid[frame],)
            look = _Look((poses, *solids), None if colors is None else colors[frame])
            # What rests is not drawn again: most of a long episode looks like the frame before.
            if drawn is None or look.differs(drawn[0], visible):
                image = renderer.frame(
                    camera, poses, world_T_solid=solids[0] if solids else None, colors=look.colors
                )
                drawn = look, image
            image = add_markers(drawn[1], camera, markers[frame] if markers else ())
            yield add_text(image, caption=captions[frame] if captions else "")


class _Look(NamedTuple):
    """What a frame shows.

    Attributes:
        poses: Poses of the parts, and of the other solids if there are any, (N, 4, 4) each [m].
        colors: (N, 3) colours of the parts; None: the scene's.
    """

    poses: tuple[Array, ...]
    colors: Array | None

    def differs(self, other: _Look, distance: float) -> bool:
        """Whether anything has another colour, or has moved or turned by more than a distance [m]
        at the size of a long brick."""
        colors, before = self.colors, other.colors
        if colors is not None and before is not None and not np.array_equal(colors, before):
            return True
        limit = distance / np.array([_LONG, _LONG, _LONG, 1.0])
        return any(
            (np.abs(now - then)[:, :3] > limit).any()
            for now, then in zip(self.poses, other.poses, strict=True)
        )


def draw_sequence(
    structure: Structure,
    groups: Sequence[Collection[int]],
    labels: Sequence[str],
    *,
    columns: int = 6,
    size: tuple[int, int] = TILE_SIZE,
) -> Image:
    """A sheet of pictures in which parts appear group by group.

    Args:
        structure: The finished structure.
        groups: Part ids that appear in each picture; those of earlier ones are pale.
        labels: A text for each picture.
        columns: Pictures in a row.
        size: Width and height of each picture [pixels].

    Raises:
        NoGraphicsError: There is no headless OpenGL here.
    """
    scene, part_ids, poses = structure_scene(structure)
    row = {part_id: i for i, part_id in enumerate(part_ids)}
    full = np.array(scene.colors, dtype=float)
    pale = full + _PALE * (235.0 - full)
    now = np.tile(ABSENT, (len(part_ids), 1, 1))
    motion, colors = [], []
    for group in groups:
        shown = pale.copy()
        rows = [row[part_id] for part_id in group]
        now = now.copy()
        now[rows], shown[rows] = poses[rows], full[rows]
        motion.append(now)
        colors.append(shown)
    lowest = float(corner_points(scene.shapes, poses)[..., 2].min())
    images = draw_motion(
        scene, np.stack(motion), colors=colors, ground=lowest, size=size, hollow=False
    )
    return sheet(list(images), labels, columns=min(columns, len(groups)))


def _points_of_interest(scene: Scene, world_T_part: Array) -> Array:
    """(K, 3) corners of the parts in all frames, without those that roll far away [m].

    Near is what is near the places where the parts were when they were first there.
    """
    corners = np.stack([corner_points(scene.shapes, poses) for poses in world_T_part])
    present = np.linalg.norm(world_T_part[..., :3, 3], axis=-1) < ABSENT_FROM
    if not present.any():
        return np.zeros((1, 3))
    first = present.argmax(axis=0)
    ever = np.flatnonzero(present.any(axis=0))
    start = corners[first[ever], ever].reshape(-1, 3)
    middle = 0.5 * (start.min(axis=0) + start.max(axis=0))
    away = np.linalg.norm(corners[..., :2] - middle[:2], axis=-1) > _FAR_AWAY * extent_of(start)
    return corners[present[..., None] & ~away]


def overload_markers(structure: Structure, utilization: Mapping[int, float]) -> list[Marker]:
    """A ring at every overloaded connection."""
    over = [i for i, value in utilization.items() if value > OVERLOAD_FROM]
    return connection_markers(structure, over, MarkerKind.OVERLOADED)


def connection_markers(
    structure: Structure, connection_ids: Collection[int], kind: MarkerKind
) -> list[Marker]:
    """A marker at the centre of each of these connections."""
    poses = structure.part_poses() if connection_ids else {}
    markers = []
    for connection_id in connection_ids:
        connection = structure.graph.connection(connection_id)
        stud = structure.graph.part(connection.stud_part).shape
        hole = structure.graph.part(connection.hole_part).shape
        local = stud_T_connection(connection, stud, hole)[:3, 3]
        x, y, z = transform_points(poses[connection.stud_part], local).tolist()
        markers.append(Marker((x, y, z), kind))
    return markers


def extent_of(points: Array) -> float:
    """Radius [m] of the ball around the bounding box of (..., 3) points, at least 2 cm."""
    points = points.reshape(-1, 3)
    return max(0.5 * float(np.linalg.norm(np.ptp(points, axis=0))), 0.02)


def _margins(title: str, caption: str, colorbar: bool) -> tuple[float, float, float, float]:
    return (
        _EDGE,
        COLORBAR_MARGIN if colorbar else _EDGE,
        _TEXT_MARGIN if title else _EDGE,
        _TEXT_MARGIN if caption else _EDGE,
    )
