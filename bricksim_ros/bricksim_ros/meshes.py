# SPDX-License-Identifier: Apache-2.0
"""Meshes of bricks as RViz takes them.

RViz loads meshes from an address only: what a marker carries in ``mesh_file`` is not drawn
(ros2/rviz issue 1494). So there is a file for each shape in the user's cache, which markers name;
for a viewer that cannot read it the triangles are put into the marker.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
from geometry_msgs.msg import Point

from bricksim_core.atomic import replacing
from bricksim_core.parts import BrickShape
from bricksim_core.parts.mesh import brick_mesh, plain_mesh
from bricksim_core.spatial import Array


def mesh_folder() -> Path:
    """Where mesh files are kept: ``bricksim/meshes`` in the user's cache (``XDG_CACHE_HOME``)."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "bricksim" / "meshes"


def mesh_address(shape: BrickShape, folder: Path) -> str:
    """``file://`` address of a part's mesh; written if it is not there.

    The name tells the content, as viewers keep what they have loaded under a name.

    Raises:
        OSError: The file cannot be written.
    """
    name, data = mesh_file(shape)
    path = folder.absolute() / name
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    return path.as_uri()


@lru_cache(maxsize=256)
def mesh_file(shape: BrickShape) -> tuple[str, bytes]:
    """Name and binary STL [m] of a part with its studs."""
    vertices, faces = brick_mesh(shape, segments=12)
    top = "" if shape.has_studs else "_tile"
    data = binary_stl(vertices, faces)
    digest = hashlib.sha256(data).hexdigest()[:8]
    return f"brick_{shape.length}x{shape.width}x{shape.height}{top}_{digest}.stl", data


@lru_cache(maxsize=256)
def mesh_points(shape: BrickShape) -> tuple[Point, ...]:
    """Corners of a part's triangles [m], three each, with few of them."""
    vertices, faces = plain_mesh(shape)
    return tuple(Point(x=x, y=y, z=z) for x, y, z in vertices[faces].reshape(-1, 3).tolist())


def binary_stl(vertices: Array, faces: np.ndarray) -> bytes:
    """A triangle mesh as binary STL.

    Args:
        vertices: (V, 3) corners.
        faces: (F, 3) indices, counter-clockwise from outside.
    """
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    record = np.dtype([("vectors", "<f4", (4, 3)), ("attribute", "<u2")])
    rows = np.zeros(len(faces), dtype=record)
    rows["vectors"][:, 0] = normals
    rows["vectors"][:, 1:] = corners
    return bytes(80) + len(faces).to_bytes(4, "little") + rows.tobytes()
