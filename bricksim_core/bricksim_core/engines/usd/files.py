# SPDX-License-Identifier: Apache-2.0
"""Structures as USD files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pxr import Gf, Tf, Usd, UsdGeom, UsdPhysics

from bricksim_core.atomic import replacing
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import BodySpec
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.engines.usd.lego import (
    BrickPrim,
    ConnectionPrim,
    author_connection,
    read_brick,
    read_connection,
)
from bricksim_core.engines.welded import WeldedScene
from bricksim_core.errors import BrickSimError, FormatError, TopologyError
from bricksim_core.formats.registry import USD_SUFFIXES
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology import BrickTopologyGraph, Structure

_SAME_PLACE = 1e-4
"""How far a brick of a stage may stand from where its connections put it [m]."""


def write_stage(
    structure: Structure, path: str | os.PathLike[str], *, settings: PhysxSettings | None = None
) -> None:
    """Writes a structure as a USD stage that PhysX can simulate and any viewer can show.

    Args:
        structure: The structure.
        path: The file, .usda, .usdc or .usd; replaced whole or not at all.
        settings: Physics; None: the defaults, with the ground at the structure's.

    Raises:
        FormatError: The file's name ends otherwise.
        OSError: The file cannot be written.
    """
    path = Path(path)
    if path.suffix not in USD_SUFFIXES:
        raise FormatError(f"{path}: ends with {path.suffix!r}, expected one of {USD_SUFFIXES}")
    author = StageAuthor(
        Usd.Stage.CreateInMemory(), settings or PhysxSettings(ground=_ground(structure))
    )
    author_structure(author, structure)
    with replacing(path) as draft:
        author.stage.GetRootLayer().Export(str(draft))


def author_structure(author: StageAuthor, structure: Structure) -> None:
    """Authors the scene with the bricks, connections, welds and filters of a structure.

    Bricks that the world holds are kinematic; what is connected to them is welded like the rest.
    """
    author.scene()
    graph, scene = structure.graph, WeldedScene()
    specs = []
    for component in graph.component_ids:
        layout = graph.layout(component)
        colors = tuple(graph.part(p).color for p in layout.part_ids.tolist())
        pose = structure.component_poses[component]
        specs.append(BodySpec(component, layout, pose, np.zeros(6), False, colors))
    edits = scene.update([], specs)
    for body in edits.created:
        author.brick(body)
        if body.part_id in structure.fixed:
            author.hold(body.part_id, True)
    author.filters(edits.filters)
    for weld in edits.welded:
        author.weld(weld)
    for connection in graph.connections.values():
        author_connection(author.stage, connection)


def _where(error: Tf.ErrorException) -> str:
    """Line and reason of OpenUSD's parser, empty where it tells none (no text, not its header)."""
    for part in error.args:
        if found := re.search(r":(\d+):\d+: (.+)", part.commentary):
            return ": line {}: {}".format(*found.groups())
    return ""


def read_stage(path: str | os.PathLike[str]) -> Structure:
    """Reads bricks and connections marked by ``lego:*`` attributes from a USD stage.

    Bricks keep the ids that `write_stage` gave them; where a stage has none, they are numbered in
    the stage's order. Connections that contradict each other are left out and listed in
    ``Structure.skipped``, as in BrickSim.

    Raises:
        FormatError: The file is no stage, has no bricks, or an attribute is not acceptable.
    """
    file = str(path)
    if not Path(path).is_file():
        raise FormatError(f"{file}: no such file")
    try:
        stage = Usd.Stage.Open(file)
    except Tf.ErrorException as error:
        raise FormatError(f"{file}: not a USD stage{_where(error)}") from None
    up = UsdGeom.GetStageUpAxis(stage)
    if up != UsdGeom.Tokens.z:
        raise FormatError(f"{file}: upAxis is {up}, expected Z")
    prims = [p for p in stage.Traverse() if p.IsActive()]
    bricks = [b for b in (read_brick(p, file) for p in prims) if b]
    connections = [c for c in (read_connection(p, file) for p in prims) if c]
    if not bricks:
        raise FormatError(f"{file}: no prim has lego:part_kind = brick")

    graph = BrickTopologyGraph()
    ids = _add_parts(graph, bricks, file)
    skipped = [s for c in connections for s in _connect(graph, c, ids, file)]
    cache = UsdGeom.XformCache()
    scale = UsdGeom.GetStageMetersPerUnit(stage)
    poses = {ids[b.path]: _pose(cache, stage.GetPrimAtPath(b.path), scale, file) for b in bricks}
    component_poses = {}
    for component in graph.component_ids:
        layout = graph.layout(component)
        parts = layout.part_ids.tolist()
        pose = poses[parts[0]] @ inverse(layout.component_T_parts[0])
        component_poses[component] = pose
        expected = pose @ layout.component_T_parts
        for part, where in zip(parts, expected, strict=True):
            gap = float(np.linalg.norm(where[:3, 3] - poses[part][:3, 3]))
            if gap > _SAME_PLACE:
                skipped.append(
                    f"part {part} stands {gap * 1e3:.2f} mm from where its connections put it;"
                    " the connections count"
                )
    fixed = frozenset(ids[b.path] for b in bricks if _is_fixed(stage.GetPrimAtPath(b.path)))
    return Structure(
        graph=graph,
        component_poses=component_poses,
        fixed=fixed,
        name=Path(path).stem,
        origins={ids[b.path]: b.path for b in bricks},
        skipped=skipped,
        file=str(path),
    )


def _ground(structure: Structure) -> float:
    """Height of the ground: the structure's own, else its lowest point [m]."""
    if structure.ground is not None:
        return structure.ground
    heights = []
    for part_id, pose in structure.part_poses().items():
        half = 0.5 * np.array(structure.graph.part(part_id).shape.size)
        centre = pose[2, :3] @ [0.0, 0.0, half[2]] + pose[2, 3]
        heights.append(centre - np.abs(pose[2, :3]) @ half)
    return float(min(heights, default=0.0))


def _add_parts(graph: BrickTopologyGraph, bricks: Iterable[BrickPrim], file: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    # Those with ids first, so that none of them is taken by a brick without one.
    for brick in sorted(bricks, key=lambda b: b.part_id is None):
        try:
            ids[brick.path] = graph.add_part(brick.shape, brick.color, part_id=brick.part_id)
        except TopologyError as error:
            raise FormatError(f"{file}: {brick.path}: {error}") from None
    return ids


def _connect(
    graph: BrickTopologyGraph, connection: ConnectionPrim, ids: dict[str, int], file: str
) -> list[str]:
    for name, path in (("conn_stud", connection.stud), ("conn_hole", connection.hole)):
        if path not in ids:
            raise FormatError(
                f"{file}: {connection.path}.lego:{name} is {path}, expected the path of a brick"
            )
    if (connection.stud_interface, connection.hole_interface) != (1, 0):
        raise FormatError(
            f"{file}: {connection.path}: interfaces are {connection.stud_interface} (stud) and"
            f" {connection.hole_interface} (hole), expected 1 and 0"
        )
    try:
        graph.connect(
            ids[connection.stud],
            ids[connection.hole],
            connection.offset,
            connection.yaw,
            connection_id=connection.connection_id,
            closure=False,
        )
    except BrickSimError as error:
        return [f"{connection.path}: {error}"]
    return []


def _pose(cache: UsdGeom.XformCache, prim: Usd.Prim, scale: float, file: str) -> Array:
    # Gf matrices act on row vectors.
    matrix: Gf.Matrix4d = cache.GetLocalToWorldTransform(prim)
    pose = np.array(matrix).T
    if not np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-4):
        raise FormatError(f"{file}: {prim.GetPath()}: is scaled or sheared, expected a rigid pose")
    u, _, vt = np.linalg.svd(pose[:3, :3])
    pose[:3, :3] = u @ vt
    pose[:3, 3] *= scale
    return pose


def _is_fixed(prim: Usd.Prim) -> bool:
    if not prim.HasAPI("PhysicsRigidBodyAPI"):
        return False
    return bool(UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Get())
