# SPDX-License-Identifier: Apache-2.0
"""Bricks, welds and filters as columns of the stage: what `StageAuthor` authors, at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from ovphysx.population import PrimBatch

from bricksim_core.engines.ovphysx.session import Column, Session
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import STUD_SHAPE
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.author import part_boxes
from bricksim_core.engines.welded import Body, FilterPrim, Weld
from bricksim_core.spatial import Array, quaternion_of

_BRICK_SCHEMAS = (
    "PhysicsFilteredPairsAPI",
    "PhysicsMassAPI",
    "PhysicsRigidBodyAPI",
    "PhysxContactReportAPI",
    "PhysxRigidBodyAPI",
)
_STUD_SCHEMAS = (
    "MaterialBindingAPI",
    "PhysicsCollisionAPI",
    "PhysicsFilteredPairsAPI",
    "PhysxCollisionAPI",
)


def create_bricks(session: Session, bodies: Sequence[Body], settings: PhysxSettings) -> None:
    """Makes bricks."""
    if not bodies:
        return
    n = len(bodies)
    shapes = [body.shape for body in bodies]

    def same(value: float) -> list[float]:
        return [value] * n

    batch = PrimBatch(session.paths, [names.brick(b.part_id) for b in bodies])
    batch.define_xform(local_matrix=_matrices(np.array([b.world_T_part for b in bodies])))
    batch.apply_physics_rigid_body_api(
        kinematic_enabled=[b.fixed for b in bodies],
        velocity=np.array([b.twist[:3] for b in bodies], dtype=np.float32),
        angular_velocity=np.degrees([b.twist[3:] for b in bodies]).astype(np.float32),
    )
    batch.apply_physx_rigid_body_api(
        linear_damping=same(0.0),
        angular_damping=same(0.0),
        sleep_threshold=same(0.0),
        stabilization_threshold=same(0.0),
        solver_position_iteration_count=[settings.position_iterations] * n,
        solver_velocity_iteration_count=[settings.velocity_iterations] * n,
        max_depenetration_velocity=same(settings.depenetration_velocity),
    )
    batch.apply_physics_mass_api(
        mass=np.array([s.mass for s in shapes], dtype=np.float32),
        center_of_mass=np.array([s.com for s in shapes], dtype=np.float32),
        diagonal_inertia=np.array([np.diag(s.inertia) for s in shapes], dtype=np.float32),
        principal_axes=[[0.0, 0.0, 0.0, 1.0]] * n,
    )
    batch.apply_physx_contact_report_api(threshold=same(0.0))
    batch.apply_physics_filtered_pairs_api(filtered_pairs=[[]] * n)
    batch.write(session.stage, session.ordinal)

    for kind in names.COLLIDERS:
        owners = [b for b in bodies if kind in part_boxes(b.shape).shapes]
        if owners:
            _create_colliders(session, owners, kind, settings)


def _create_colliders(
    session: Session, bodies: Sequence[Body], kind: int, settings: PhysxSettings
) -> None:
    n = len(bodies)
    matrices = np.zeros((n, 4, 4))
    for matrix, body in zip(matrices, bodies, strict=True):
        boxes = part_boxes(body.shape)
        row = boxes.shapes.tolist().index(kind)
        matrix[:] = np.diag([*(2.0 * boxes.halves[row]), 1.0])
        matrix[3, :3] = boxes.centres[row]
    batch = PrimBatch(session.paths, [names.collider(b.part_id, kind) for b in bodies])
    batch.define_cube(size=[1.0] * n, local_matrix=matrices.reshape(n, 16))
    batch.apply_physics_collision_api()
    batch.apply_physx_collision_api(
        contact_offset=[settings.contact_offset] * n, rest_offset=[0.0] * n
    )
    batch.apply_material_binding_api(material_binding_physics=[[names.PLASTIC]] * n)
    if kind == STUD_SHAPE:
        batch.apply_physics_filtered_pairs_api(filtered_pairs=[[]] * n)
    batch.write(session.stage, session.ordinal)


def create_welds(session: Session, welds: Sequence[Weld]) -> None:
    """Makes welds."""
    if not welds:
        return
    n = len(welds)
    joint = session.paths.intern_token("PhysicsFixedJoint")
    frames = {0: np.array([w.a_T_weld for w in welds]), 1: np.array([w.b_T_weld for w in welds])}
    columns = [
        Column("physics:collisionEnabled", np.zeros(n, dtype=np.bool_)),
        Column("physics:excludeFromArticulation", np.ones(n, dtype=np.bool_)),
        Column("usd-prim-type", np.full(n, joint, dtype=np.uint64)),
    ]
    for side, frame in frames.items():
        position, rotation = frame[:, :3, 3], quaternion_of(frame)
        bodies = [np.array([session.handle(names.brick(w.pair[side]))], np.uint64) for w in welds]
        columns += [
            Column(f"physics:localPos{side}", position.astype(np.float32), "POINT"),
            Column(f"physics:localRot{side}", rotation.astype(np.float32), "QUATERNION"),
            Column(f"physics:body{side}", bodies, "RELATIONSHIP_PATH_ID"),
        ]
    session.write([names.weld(w.pair) for w in welds], columns)


def set_filters(session: Session, filters: Mapping[FilterPrim, Sequence[FilterPrim]]) -> None:
    """Sets what filter prims do not collide with."""
    for schemas, studs in ((_BRICK_SCHEMAS, False), (_STUD_SCHEMAS, True)):
        chosen = {p: t for p, t in filters.items() if (p.shape == "studs") == studs}
        if not chosen:
            continue
        targets = [
            np.array([session.handle(names.filter_prim(t)) for t in v], dtype=np.uint64)
            for v in chosen.values()
        ]
        # PhysX looks at the pairs again only when the list of schemas is written with them.
        tokens = np.array([session.paths.intern_token(s) for s in schemas], dtype=np.uint64)
        session.write(
            [names.filter_prim(p) for p in chosen],
            [
                Column("physics:filteredPairs", targets, "RELATIONSHIP_PATH_ID"),
                Column("usd-schemas", [tokens] * len(chosen)),
            ],
        )


def set_held(session: Session, held: Mapping[int, bool]) -> None:
    """Fixes bricks to the world or lets them go."""
    if held:
        values = np.array(list(held.values()), dtype=np.bool_)
        session.write([names.brick(p) for p in held], [Column("physics:kinematicEnabled", values)])


def delete_bricks(session: Session, part_ids: Sequence[int]) -> None:
    """Deletes bricks with their colliders."""
    if part_ids:
        colliders = [names.collider(p, kind) for p in part_ids for kind in names.COLLIDERS]
        session.delete([*(names.brick(p) for p in part_ids), *colliders])


def delete_welds(session: Session, pairs: Sequence[tuple[int, int]]) -> None:
    """Deletes welds."""
    if pairs:
        session.delete([names.weld(pair) for pair in pairs])


def _matrices(poses: Array) -> Array:
    """(N, 16) matrices for row vectors, row major, as USD has them."""
    return np.ascontiguousarray(np.swapaxes(poses, 1, 2)).reshape(len(poses), 16)
