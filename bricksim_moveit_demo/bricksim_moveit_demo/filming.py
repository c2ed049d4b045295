# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos of arms at work."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bricksim_core.events import StepResult
from bricksim_core.parts.mesh import Surface
from bricksim_core.pictures import (
    STILL,
    Camera,
    Scene,
    Solid,
    SolidKind,
    corner_points,
    draw_motion,
    fit_camera,
    write_png,
    write_video,
)
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, transform
from bricksim_moveit_demo.description import ArmDescription, franka, mesh_dir

_WHITE = (235, 235, 235)
_DARK = (60, 62, 66)
_LINKS = (*(f"link{i}" for i in range(8)), "hand", "leftfinger", "rightfinger")
_SPEED = 6.0
"""How much faster than the simulation the video runs."""
_RATE = 15.0
"""Frames of the video per second."""
_ABSENT = -50.0
"""Height of bricks that are not on the table yet [m]."""
_PICTURE_SIZE = (800, 600)
"""Width and height of the picture [pixels]."""


class Film:
    """Collects what a video shows; a listener of `SimulatedWorld`.

    Args:
        simulator: The simulator.
        arms: Its robots.
    """

    def __init__(self, simulator: Simulator, arms: Sequence[ArmDescription]) -> None:
        self._simulator = simulator
        self._period = _SPEED / _RATE
        self._next = 0.0
        self._times: list[float] = []
        self._ids: list[tuple[int, ...]] = []
        self._parts: list[Array] = []
        self._solids: list[Array] = []
        self._links = [(arm, link) for arm in arms for link in _LINKS]
        pieces = [_link_solids(link) for _, link in self._links]
        self._pieces = tuple(solid for link in pieces for solid, _ in link)
        self._local = [[pose for _, pose in link] for link in pieces]

    def __call__(self, result: StepResult) -> None:
        """Takes a frame if one is due."""
        if result.time >= self._next:
            self._next = result.time + self._period
            self.take(result.time, result.world_T_part)

    def take(self, time: float, world_T_part: Array) -> None:
        """Takes a frame."""
        engine = self._simulator.engine
        poses = []
        for (arm, link), local in zip(self._links, self._local, strict=True):
            world_T_link = engine.link_pose(arm.name, f"{arm.prefix}fr3_{link}")
            poses += [world_T_link @ pose for pose in local]
        self._times.append(time)
        self._ids.append(tuple(self._simulator.graph.part_ids))
        self._parts.append(world_T_part.copy())
        self._solids.append(np.array(poses))

    @property
    def frames(self) -> int:
        """How many frames the video has so far."""
        return len(self._times)

    def write(self, video: Path, picture: Path) -> None:
        """Writes the video, and a picture of how the bricks are in the end from near by.

        Raises:
            PictureError: There is no headless OpenGL here, or a file cannot be written.
        """
        end = self._simulator.result()
        self.take(end.time, end.world_T_part)
        ids, solids = self._ids[-1], np.array(self._solids)
        parts = np.array([_rows(ids, *frame) for frame in zip(self._ids, self._parts, strict=True)])
        models = [self._simulator.graph.part(part) for part in ids]
        scene = Scene(tuple(m.shape for m in models), tuple(m.color for m in models), self._pieces)
        camera = _camera(len({arm.name for arm, _ in self._links}))
        frames = draw_motion(
            scene,
            parts,
            captions=[f"{time:.1f} s, shown {_SPEED:g}x as fast" for time in self._times],
            world_T_solid=solids,
            camera=camera,
        )
        write_video(frames, video, fps=_RATE)
        bricks = corner_points(scene.shapes, parts[-1])
        (still,) = draw_motion(
            scene,
            parts[-1:],
            world_T_solid=solids[-1:],
            size=_PICTURE_SIZE,
            camera=fit_camera(
                bricks, _PICTURE_SIZE, azimuth=camera.azimuth, elevation=camera.elevation
            ),
            quality=STILL,
        )
        write_png(still, picture)


def _rows(ids: Sequence[int], there: Sequence[int], world_T_part: Array) -> Array:
    """(N, 4, 4) poses [m] in the order of ids; what is not there is far below the table."""
    poses = dict(zip(there, world_T_part, strict=True))
    absent = transform([0.0, 0.0, _ABSENT])
    return np.array([poses.get(part_id, absent) for part_id in ids])


def _camera(arms: int) -> Camera:
    """Looks at the work place from the side of the arm's shoulder, at two arms from aside."""
    if arms > 1:
        return Camera(
            target=(0.55, 0.0, 0.3), distance=2.4, azimuth=np.radians(115.0), elevation=0.35
        )
    return Camera(target=(0.42, 0.0, 0.12), distance=1.7, azimuth=np.radians(145.0), elevation=0.42)


def _link_solids(link: str) -> list[tuple[Solid, Array]]:
    """What a link looks like, poses in the link frame [m]."""
    if link.endswith("finger"):
        return [
            (Solid(SolidKind.BOX, tuple(0.5 * s for s in shape["size"]), _DARK), _pose(shape))
            for shape in franka()["shapes"]["finger"]
        ]
    path = Path(mesh_dir().removeprefix("file://")) / "collision" / f"{link}.stl"
    color = _DARK if link == "hand" else _WHITE
    return [(Solid(SolidKind.MESH, color=color, surface=_stl_surface(path)), np.eye(4))]


def _pose(shape: dict) -> Array:
    return transform(shape["xyz"], Rotation.from_euler("xyz", shape["rpy"]).as_quat())


def _stl_surface(path: Path) -> Surface:
    """The triangles of a binary STL file, flat shaded."""
    data = path.read_bytes()
    (count,) = struct.unpack("<I", data[80:84])
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")])
    triangles = np.frombuffer(data[84:], record, count)
    corners = triangles["corners"].astype(float)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]
    return Surface(
        corners.reshape(-1, 3),
        np.repeat(normals, 3, axis=0),
        np.arange(3 * count).reshape(-1, 3),
    )
