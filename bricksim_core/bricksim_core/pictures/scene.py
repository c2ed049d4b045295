# SPDX-License-Identifier: Apache-2.0
"""What is in a picture: parts, other solids, and their poses at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from bricksim_core.parts import BrickShape, Color
from bricksim_core.parts.mesh import Surface
from bricksim_core.spatial import Array, transform
from bricksim_core.topology import Structure

if TYPE_CHECKING:
    import mujoco


ABSENT_FROM = 100.0
"""Distance from the origin [m] from which a part counts as not in the scene."""
ABSENT = transform((1e3, 0.0, 0.0))
"""Pose of a part that is not in the scene at a moment."""


class SolidKind(StrEnum):
    """Shapes that are no bricks; sizes as in `Solid.size`."""

    BOX = "box"
    SPHERE = "sphere"
    CYLINDER = "cylinder"
    CAPSULE = "capsule"
    ELLIPSOID = "ellipsoid"
    MESH = "mesh"


@dataclass(frozen=True, eq=False)
class Solid:
    """Something that is drawn beside the bricks: a table, a robot's link.

    Attributes:
        kind: Its shape.
        size: Half extents (box), radius (sphere), radius and half length along z (cylinder,
            capsule), semi-axes (ellipsoid) [m]; unused for meshes.
        color: Its colour.
        surface: The triangles of a mesh, in the solid's frame.
    """

    kind: SolidKind
    size: tuple[float, ...] = ()
    color: Color = (200, 200, 200)
    surface: Surface | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything that can appear, without poses.

    Attributes:
        shapes: The N parts.
        colors: Their N colours.
        solids: The M other solids.
    """

    shapes: tuple[BrickShape, ...]
    colors: tuple[Color, ...]
    solids: tuple[Solid, ...] = field(default=())


def structure_scene(structure: Structure) -> tuple[Scene, list[int], Array]:
    """The parts of a structure.

    Returns:
        The scene, the part ids in its order, and their (N, 4, 4) poses [m].
    """
    poses = structure.part_poses()
    part_ids = sorted(poses)
    parts = [structure.graph.part(i) for i in part_ids]
    scene = Scene(tuple(p.shape for p in parts), tuple(p.color for p in parts))
    return scene, part_ids, np.array([poses[i] for i in part_ids]).reshape(-1, 4, 4)


def part_utilization(
    structure: Structure, utilization: Mapping[int, float], part_ids: Sequence[int]
) -> Array:
    """(N,) highest utilization among each part's connections.

    Args:
        structure: The structure.
        utilization: Load over capacity by connection id.
        part_ids: The N parts.

    Returns:
        One value per part; NaN for parts that the world holds and for parts without a known load.
    """
    index = {part_id: i for i, part_id in enumerate(part_ids)}
    highest = np.full(len(part_ids), np.nan)
    for connection_id, value in utilization.items():
        connection = structure.graph.connection(connection_id)
        for part_id in (connection.stud_part, connection.hole_part):
            if part_id in index and part_id not in structure.fixed:
                highest[index[part_id]] = np.fmax(highest[index[part_id]], value)
    return highest


def model_solids(
    model: mujoco.MjModel, geom_ids: Sequence[int]
) -> tuple[tuple[Solid, ...], list[int]]:
    """Solids that look like geoms of a MuJoCo model (a robot in an engine's scene).

    Args:
        model: The model.
        geom_ids: Which geoms; planes and height fields are left out.

    Returns:
        The solids and the geom ids that they stand for; `geom_poses` gives their poses.
    """
    import mujoco

    kinds = {
        int(mujoco.mjtGeom.mjGEOM_BOX): SolidKind.BOX,
        int(mujoco.mjtGeom.mjGEOM_SPHERE): SolidKind.SPHERE,
        int(mujoco.mjtGeom.mjGEOM_CYLINDER): SolidKind.CYLINDER,
        int(mujoco.mjtGeom.mjGEOM_CAPSULE): SolidKind.CAPSULE,
        int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): SolidKind.ELLIPSOID,
        int(mujoco.mjtGeom.mjGEOM_MESH): SolidKind.MESH,
    }
    lengths = {SolidKind.SPHERE: 1, SolidKind.CYLINDER: 2, SolidKind.CAPSULE: 2, SolidKind.MESH: 0}
    solids, drawn = [], []
    for geom in geom_ids:
        kind = kinds.get(int(model.geom_type[geom]))
        if kind is None:
            continue
        material = int(model.geom_matid[geom])
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        red, green, blue = (int(c) for c in np.round(np.clip(rgba[:3], 0.0, 1.0) * 255))
        size = tuple(float(v) for v in model.geom_size[geom][: lengths.get(kind, 3)])
        surface = _mesh_surface(model, int(model.geom_dataid[geom])) if kind == "mesh" else None
        solids.append(Solid(kind, size, (red, green, blue), surface))
        drawn.append(int(geom))
    return tuple(solids), drawn


def geom_poses(data: mujoco.MjData, geom_ids: Sequence[int]) -> Array:
    """(M, 4, 4) world_T_geom [m] of geoms of a MuJoCo model."""
    poses = np.zeros((len(geom_ids), 4, 4))
    poses[:, :3, :3] = data.geom_xmat[geom_ids].reshape(-1, 3, 3)
    poses[:, :3, 3] = data.geom_xpos[geom_ids]
    poses[:, 3, 3] = 1.0
    return poses


def _mesh_surface(model: mujoco.MjModel, mesh: int) -> Surface:
    """A mesh of a model, with the normals that the model holds."""

    face_rows = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])
    faces, normal_faces = model.mesh_face[face_rows], model.mesh_facenormal[face_rows]
    vertices = model.mesh_vert[model.mesh_vertadr[mesh] :]
    normals = model.mesh_normal[model.mesh_normaladr[mesh] :]
    pairs = np.stack([faces, normal_faces], axis=-1).reshape(-1, 2)
    unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
    return Surface(
        vertices[unique[:, 0]].astype(float),
        normals[unique[:, 1]].astype(float),
        inverse.reshape(-1, 3).astype(np.int64),
    )
