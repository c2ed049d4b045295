# SPDX-License-Identifier: Apache-2.0
"""Authors a scene of bricks on a USD stage, the same for files, ovphysx and Isaac Sim.

Every brick is an Xform with the rigid body on it and two Cubes below it as colliders (body box and
stud slab): body prims are not scaled, because PhysX joints measure in unscaled frames. PhysX's own
schemas are applied by name, so that plain OpenUSD can write them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from bricksim_core.engines.boxes import Boxes, brick_boxes
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import STUD_SHAPE
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.lego import author_attributes
from bricksim_core.engines.usd.looks import author_looks
from bricksim_core.engines.welded import Body, FilterPrim, Weld
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, inverse, quaternion_of
from bricksim_core.topology.layout import ComponentLayout

_BOOL, _FLOAT, _INT, _TOKEN = (
    Sdf.ValueTypeNames.Bool,
    Sdf.ValueTypeNames.Float,
    Sdf.ValueTypeNames.Int,
    Sdf.ValueTypeNames.Token,
)


class StageAuthor:
    """Writes the scene, bricks, welds and filters onto one stage."""

    def __init__(self, stage: Usd.Stage, settings: PhysxSettings = PhysxSettings()) -> None:
        self.stage = stage
        self.settings = settings

    def scene(self) -> None:
        """Units, physics scene, materials, the ground and the groups that hold the rest."""
        stage, settings = self.stage, self.settings
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(round(1.0 / settings.timestep))
        stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, names.WORLD).GetPrim())
        for path in (names.BRICKS, names.WELDS, names.CONNECTIONS, names.ROBOTS):
            UsdGeom.Xform.Define(stage, path)

        scene = UsdPhysics.Scene.Define(stage, names.SCENE)
        gravity = np.array(settings.gravity)
        size = float(np.linalg.norm(gravity))
        direction = gravity / size if size else np.array([0.0, 0.0, -1.0])
        scene.CreateGravityDirectionAttr(Gf.Vec3f(*direction.tolist()))
        scene.CreateGravityMagnitudeAttr(size)
        apply_schema(
            scene.GetPrim(),
            "PhysxSceneAPI",
            {
                "physxScene:enableGPUDynamics": (_BOOL, False),
                "physxScene:broadphaseType": (_TOKEN, "MBP"),
                "physxScene:solverType": (_TOKEN, "TGS"),
                "physxScene:enableCCD": (_BOOL, False),
                # Nothing falls asleep by itself, with thresholds of 0: only when told to.
                "physxScene:disableSleeping": (_BOOL, not settings.sleeping),
                "physxScene:enableEnhancedDeterminism": (
                    _BOOL,
                    settings.enhanced_determinism is not False,
                ),
                "physxScene:timeStepsPerSecond": (
                    Sdf.ValueTypeNames.UInt,
                    round(1.0 / settings.timestep),
                ),
                # A restitution of 0 everywhere, but PhysX wants a positive threshold.
                "physxScene:bounceThreshold": (_FLOAT, 0.2),
                # Defaults are meant for metre-sized bodies: anchors would be merged over 25 mm.
                "physxScene:frictionCorrelationDistance": (_FLOAT, 0.002),
                "physxScene:frictionOffsetThreshold": (_FLOAT, 2.0 * settings.contact_offset),
            },
        )
        self._physics_material(names.PLASTIC, settings.friction)
        self._physics_material(names.RUBBER, settings.pad_friction)
        if settings.ground is not None:
            self.ground(settings.ground)

    def ground(self, height: float) -> None:
        """An infinite ground plane at a height [m]."""
        plane = UsdGeom.Plane.Define(self.stage, names.GROUND)
        plane.CreateAxisAttr(UsdGeom.Tokens.z)
        plane.CreatePurposeAttr(UsdGeom.Tokens.guide)
        plane.AddTranslateOp().Set(Gf.Vec3d(0.0, 0.0, height))
        self._collider(plane.GetPrim())

    def brick(self, body: Body) -> Usd.Prim:
        """A brick: rigid body, mass, colliders, looks and attributes ``lego:*``."""
        stage, shape = self.stage, body.shape
        path = names.brick(body.part_id)
        xform = UsdGeom.Xform.Define(stage, path)
        prim = xform.GetPrim()
        set_pose(xform, body.world_T_part)
        rigid = UsdPhysics.RigidBodyAPI.Apply(prim)
        rigid.CreateKinematicEnabledAttr(body.fixed)
        if not body.fixed:
            rigid.CreateVelocityAttr(Gf.Vec3f(*body.twist[:3].tolist()))
            rigid.CreateAngularVelocityAttr(Gf.Vec3f(*np.degrees(body.twist[3:]).tolist()))
        mass = UsdPhysics.MassAPI.Apply(prim)
        mass.CreateMassAttr(shape.mass)
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*shape.com.tolist()))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*np.diag(shape.inertia).tolist()))
        mass.CreatePrincipalAxesAttr(Gf.Quatf(1.0))
        apply_schema(prim, "PhysxRigidBodyAPI", self._rigid_attributes())
        apply_schema(prim, "PhysxContactReportAPI", {"physxContactReport:threshold": (_FLOAT, 0.0)})
        UsdPhysics.FilteredPairsAPI.Apply(prim)
        boxes = part_boxes(shape)
        for kind, centre, halves in zip(
            boxes.shapes.tolist(), boxes.centres, boxes.halves, strict=True
        ):
            cube = UsdGeom.Cube.Define(stage, names.collider(body.part_id, kind))
            cube.CreateSizeAttr(1.0)
            cube.CreateExtentAttr([Gf.Vec3f(-0.5), Gf.Vec3f(0.5)])
            cube.CreatePurposeAttr(UsdGeom.Tokens.guide)
            cube.AddTranslateOp().Set(Gf.Vec3d(*centre.tolist()))
            cube.AddScaleOp().Set(Gf.Vec3f(*(2.0 * halves).tolist()))
            self._collider(cube.GetPrim())
            if kind == STUD_SHAPE:
                UsdPhysics.FilteredPairsAPI.Apply(cube.GetPrim())
        author_looks(stage, path, shape, body.color)
        author_attributes(prim, body.part_id, shape, body.color)
        return prim

    def weld(self, weld: Weld) -> UsdPhysics.FixedJoint:
        """A weld with exact frames on both sides."""
        joint = UsdPhysics.FixedJoint.Define(self.stage, names.weld(weld.pair))
        joint.CreateBody0Rel().SetTargets([names.brick(weld.pair[0])])
        joint.CreateBody1Rel().SetTargets([names.brick(weld.pair[1])])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*weld.a_T_weld[:3, 3].tolist()))
        joint.CreateLocalPos1Attr(Gf.Vec3f(*weld.b_T_weld[:3, 3].tolist()))
        joint.CreateLocalRot0Attr(gf_quaternion(weld.a_T_weld))
        joint.CreateLocalRot1Attr(gf_quaternion(weld.b_T_weld))
        joint.CreateCollisionEnabledAttr(False)
        joint.CreateExcludeFromArticulationAttr(True)
        return joint

    def filters(self, filters: Mapping[FilterPrim, Sequence[FilterPrim]]) -> None:
        """Sets what each filter prim does not collide with (all of it)."""
        for prim, targets in filters.items():
            api = UsdPhysics.FilteredPairsAPI.Apply(
                self.stage.GetPrimAtPath(names.filter_prim(prim))
            )
            api.CreateFilteredPairsRel().SetTargets([names.filter_prim(t) for t in targets])

    def hold(self, part_id: int, fixed: bool) -> None:
        """Fixes a brick to the world or lets it go."""
        prim = self.stage.GetPrimAtPath(names.brick(part_id))
        UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Set(fixed)

    def bind_physics_material(self, prim: Usd.Prim, path: str) -> None:
        """Binds a physics material to a prim and to what below it has none of its own."""
        UsdShade.MaterialBindingAPI.Apply(prim).Bind(
            UsdShade.Material.Get(self.stage, path), materialPurpose="physics"
        )

    def _collider(self, prim: Usd.Prim) -> None:
        UsdPhysics.CollisionAPI.Apply(prim)
        apply_schema(
            prim,
            "PhysxCollisionAPI",
            {
                "physxCollision:contactOffset": (_FLOAT, self.settings.contact_offset),
                "physxCollision:restOffset": (_FLOAT, 0.0),
            },
        )
        self.bind_physics_material(prim, names.PLASTIC)

    def _physics_material(self, path: str, friction: float) -> None:
        prim = UsdShade.Material.Define(self.stage, path).GetPrim()
        material = UsdPhysics.MaterialAPI.Apply(prim)
        material.CreateStaticFrictionAttr(friction)
        material.CreateDynamicFrictionAttr(friction)
        material.CreateRestitutionAttr(0.0)
        apply_schema(
            prim, "PhysxMaterialAPI", {"physxMaterial:frictionCombineMode": (_TOKEN, "max")}
        )

    def _rigid_attributes(self) -> dict[str, tuple[Sdf.ValueTypeName, object]]:
        return {
            "physxRigidBody:linearDamping": (_FLOAT, 0.0),
            "physxRigidBody:angularDamping": (_FLOAT, 0.0),
            "physxRigidBody:sleepThreshold": (_FLOAT, 0.0),
            "physxRigidBody:stabilizationThreshold": (_FLOAT, 0.0),
            "physxRigidBody:solverPositionIterationCount": (
                _INT,
                self.settings.position_iterations,
            ),
            "physxRigidBody:solverVelocityIterationCount": (
                _INT,
                self.settings.velocity_iterations,
            ),
            "physxRigidBody:maxDepenetrationVelocity": (
                _FLOAT,
                self.settings.depenetration_velocity,
            ),
        }


def apply_schema(
    prim: Usd.Prim, schema: str, attributes: Mapping[str, tuple[Sdf.ValueTypeName, object]]
) -> None:
    """Applies a schema by name, known to this OpenUSD or not, and sets attributes of it."""
    prim.AddAppliedSchema(schema)
    for name, (kind, value) in attributes.items():
        prim.CreateAttribute(name, kind, False).Set(value)


@lru_cache(maxsize=256)
def part_boxes(shape: BrickShape) -> Boxes:
    """Colliders of one brick in its part frame [m]; axes are those of the part."""
    none = np.zeros(0, dtype=np.int64)
    layout = ComponentLayout(
        part_ids=np.zeros(1, dtype=np.int64),
        shapes=(shape,),
        grids=np.zeros((1, 4), dtype=np.int64),
        connection_ids=none,
        stud_index=none,
        hole_index=none,
        offsets=none.reshape(0, 2),
        yaws=none,
    )
    return brick_boxes(layout).moved(inverse(layout.component_T_parts[0]))


def gf_quaternion(pose: Array) -> Gf.Quatf:
    """Rotation of a (4, 4) pose."""
    x, y, z, w = quaternion_of(pose).tolist()
    return Gf.Quatf(w, x, y, z)


def set_pose(xform: UsdGeom.Xformable, pose: Array) -> None:
    """Places a prim in its parent by a translation and an orientation op."""
    x, y, z, w = quaternion_of(pose).tolist()
    ops = {op.GetOpType(): op for op in xform.GetOrderedXformOps()}
    translate = ops.get(UsdGeom.XformOp.TypeTranslate) or xform.AddTranslateOp()
    orient = ops.get(UsdGeom.XformOp.TypeOrient) or xform.AddOrientOp(
        UsdGeom.XformOp.PrecisionDouble
    )
    translate.Set(Gf.Vec3d(*pose[:3, 3].tolist()))
    orient.Set(Gf.Quatd(w, x, y, z))
