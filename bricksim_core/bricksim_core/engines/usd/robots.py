# SPDX-License-Identifier: Apache-2.0
"""Robots from URDF as USD articulations with drives.

NVIDIA's urdf-usd-converter makes links, joints and colliders; this module adds what a simulation
needs beyond: drives, initial joint positions, armature, rubber pads, gravity compensation. USD
counts angles in degrees: stiffness is N m per degree.
"""

from __future__ import annotations

import math
import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import RobotSpec
from bricksim_core.engines.usd.author import apply_schema, set_pose
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array

_BOOL, _FLOAT, _INT = Sdf.ValueTypeNames.Bool, Sdf.ValueTypeNames.Float, Sdf.ValueTypeNames.Int


@dataclass(frozen=True)
class RobotJoint:
    """A joint that can move.

    Attributes:
        name: Its name in the URDF.
        path: Its prim below the robot's, such as ``Physics/fr3_joint1``.
        angular: True for a revolute joint.
        master: The joint that it copies (URDF ``mimic``), None if it moves by itself.
        multiplier: Its position is ``multiplier`` times the master's plus ``offset``.
        offset: See there [rad or m].
        drive: Stiffness, damping, greatest force [SI]; None if it has no drive.
    """

    name: str
    path: str
    angular: bool
    master: str | None
    multiplier: float
    offset: float
    drive: tuple[float, float, float] | None

    @property
    def usd_unit(self) -> float:
        """Radians or metres of one unit in USD (a degree or a metre)."""
        return math.pi / 180.0 if self.angular else 1.0


@dataclass(frozen=True, eq=False)
class RobotLink:
    """A link: the body it is part of (path below the robot's prim) and its place there."""

    body: str
    body_T_link: Array


@dataclass(frozen=True, eq=False)
class RobotModel:
    """What an engine needs to know of a robot on a stage."""

    name: str
    joints: tuple[RobotJoint, ...]
    links: Mapping[str, RobotLink]

    def start(self, spec: RobotSpec) -> dict[str, float]:
        """Initial positions of all joints [rad or m]: zero where the robot does not say."""
        free = {joint.name: 0.0 for joint in self.joints if joint.master is None}
        return self.with_mimics(free | dict(spec.joint_positions))

    def with_mimics(self, values: Mapping[str, float]) -> dict[str, float]:
        """Values by joint name, and those of the joints that copy them.

        Raises:
            EngineError: A joint is unknown, or a value is not finite.
        """
        known = {joint.name for joint in self.joints}
        for name, value in values.items():
            if name not in known:
                raise EngineError(
                    f"robot {self.name}: joint {name!r} is unknown, expected one of"
                    f" {', '.join(sorted(known))}"
                )
            if not math.isfinite(value):
                raise EngineError(f"robot {self.name}: joint {name} is set to {value}")
        result = {name: float(value) for name, value in values.items()}
        for joint in self.joints:
            if joint.master is not None and joint.master in values:
                result[joint.name] = joint.multiplier * values[joint.master] + joint.offset
        return result


def robot_stage(spec: RobotSpec, settings: PhysxSettings) -> tuple[Usd.Stage, RobotModel]:
    """A stage in memory whose default prim is the robot.

    Args:
        spec: The robot.
        settings: Physics of the scene it will join.

    Raises:
        EngineError: The converter is not installed, or the URDF cannot be read or names a joint or
            link that it does not have.
    """
    try:
        with warnings.catch_warnings():
            # usd-core may be installed too, elsewhere on the path.
            warnings.simplefilter("ignore", RuntimeWarning)
            import usdex.core  # type: ignore[import-not-found]
            from urdf_usd_converter import Converter  # type: ignore[import-not-found]
    except ImportError:
        raise EngineError(
            "robots need urdf-usd-converter: pip install 'bricksim_core[ovphysx]'"
        ) from None
    usdex.core.activateDiagnosticsDelegate()
    usdex.core.setDiagnosticsLevel(usdex.core.DiagnosticsLevel.eWarning)
    packages = [{"name": name, "path": str(path)} for name, path in spec.package_dirs.items()]
    with tempfile.TemporaryDirectory(prefix="bricksim-urdf-") as folder:
        try:
            converter = Converter(layer_structure=False, scene=False, ros_packages=packages)
            asset = converter.convert(str(spec.urdf), folder)
            converted = Usd.Stage.Open(asset.path)
        except Exception as error:  # the converter raises whatever its parsers raise
            raise EngineError(f"{spec.urdf}: cannot be converted to USD: {error}") from None
        # Prototypes would be left behind when the robot is referenced by its default prim.
        for prim in list(converted.Traverse()):
            prim.SetInstanceable(False)
        stage = Usd.Stage.Open(converted.Flatten())
    root = stage.GetDefaultPrim()
    model = _model(spec, root)
    _author_joints(spec, root, model, settings)
    _author_bodies(spec, root, settings)
    set_pose(UsdGeom.Xformable(root), spec.world_T_base)
    return stage, model


def _model(spec: RobotSpec, root: Usd.Prim) -> RobotModel:
    urdf = ElementTree.parse(spec.urdf).getroot()
    mimics = {j.get("name"): j.find("mimic") for j in urdf.iter("joint")}
    by_name = {_name(prim): prim for prim in Usd.PrimRange(root)}
    joints = []
    for prim in Usd.PrimRange(root):
        kind = prim.GetTypeName()
        if kind not in ("PhysicsRevoluteJoint", "PhysicsPrismaticJoint"):
            continue
        mimic = mimics.get(_name(prim))
        master = None if mimic is None else mimic.get("joint")
        joints.append(
            RobotJoint(
                name=_name(prim),
                path=_below(root, prim),
                angular=kind == "PhysicsRevoluteJoint",
                master=master,
                multiplier=1.0 if mimic is None else float(mimic.get("multiplier", "1")),
                offset=0.0 if mimic is None else float(mimic.get("offset", "0")),
                drive=spec.drives.get(_name(prim)) or spec.drives.get(master or ""),
            )
        )
    names = [link.get("name", "") for link in urdf.iter("link")]
    links = {n: _link(root, by_name[n]) for n in names if n in by_name}
    model = RobotModel(spec.name, tuple(joints), links)
    known = {joint.name for joint in joints}
    for what in (spec.drives, spec.joint_positions, spec.joint_limits, spec.armature):
        for name in what:
            if name not in known:
                raise EngineError(
                    f"{spec.urdf}: has no joint {name!r} that moves, expected one of"
                    f" {', '.join(sorted(known))}"
                )
    for name in spec.pad_links:
        if name not in links:
            raise EngineError(f"{spec.urdf}: has no link {name!r} for finger pads")
    return model


def _name(prim: Usd.Prim) -> str:
    """URDF name of a prim: names that are no identifiers are its display name."""
    return prim.GetDisplayName() or prim.GetName()


def _below(root: Usd.Prim, prim: Usd.Prim) -> str:
    return str(prim.GetPath().MakeRelativePath(root.GetPath()))


def _link(root: Usd.Prim, prim: Usd.Prim) -> RobotLink:
    body = prim
    while body != root and not body.HasAPI("PhysicsRigidBodyAPI"):
        body = body.GetParent()
    matrix, _ = UsdGeom.XformCache().ComputeRelativeTransform(prim, body)
    return RobotLink(_below(root, body), np.array(matrix).T)


def _author_joints(
    spec: RobotSpec, root: Usd.Prim, model: RobotModel, settings: PhysxSettings
) -> None:
    positions = model.start(spec)
    for joint in model.joints:
        prim = root.GetStage().GetPrimAtPath(root.GetPath().AppendPath(joint.path))
        token = "angular" if joint.angular else "linear"
        position = positions[joint.name] / joint.usd_unit
        prim.AddAppliedSchema(f"PhysicsJointStateAPI:{token}")
        prim.CreateAttribute(f"state:{token}:physics:position", _FLOAT).Set(position)
        if joint.drive:
            stiffness, damping, force = joint.drive
            drive = UsdPhysics.DriveAPI.Apply(prim, token)
            drive.CreateTypeAttr("force")
            drive.CreateStiffnessAttr(stiffness * joint.usd_unit)
            drive.CreateDampingAttr(damping * joint.usd_unit)
            drive.CreateMaxForceAttr(force)
            drive.CreateTargetPositionAttr(position)
        axis = {
            f"physxJointAxis:{token}:armature": (
                _FLOAT,
                spec.armature.get(joint.name, settings.armature),
            )
        }
        apply_schema(prim, f"PhysxJointAxisAPI:{token}", axis)


def _author_bodies(spec: RobotSpec, root: Usd.Prim, settings: PhysxSettings) -> None:
    stage = root.GetStage()
    plastic = _material(stage, root, "Links", settings.friction)
    rubber = _material(stage, root, "Pads", settings.pad_friction)
    _bind(root, plastic)
    for prim in Usd.PrimRange(root):
        if prim.HasAPI("PhysicsRigidBodyAPI"):
            gravity = {
                "physxRigidBody:disableGravity": (_BOOL, spec.gravity_compensation),
                "physxRigidBody:angularDamping": (_FLOAT, 0.0),
            }
            apply_schema(prim, "PhysxRigidBodyAPI", gravity)
        if prim.HasAPI("PhysicsArticulationRootAPI"):
            articulation = {
                "physxArticulation:enabledSelfCollisions": (_BOOL, False),
                "physxArticulation:solverPositionIterationCount": (
                    _INT,
                    settings.robot_iterations,
                ),
                "physxArticulation:sleepThreshold": (_FLOAT, 0.0),
                "physxArticulation:stabilizationThreshold": (_FLOAT, 0.0),
            }
            apply_schema(prim, "PhysxArticulationAPI", articulation)
        if prim.HasAPI("PhysicsCollisionAPI"):
            offsets = {
                "physxCollision:contactOffset": (_FLOAT, settings.contact_offset),
                "physxCollision:restOffset": (_FLOAT, 0.0),
            }
            apply_schema(prim, "PhysxCollisionAPI", offsets)
        if prim.GetTypeName() == "Xform" and _name(prim) in spec.pad_links:
            _bind(prim, rubber)


def _material(stage: Usd.Stage, root: Usd.Prim, name: str, friction: float) -> UsdShade.Material:
    path = root.GetPath().AppendPath(f"Physics/{name}")
    material = UsdShade.Material.Define(stage, path)
    api = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
    api.CreateStaticFrictionAttr(friction)
    api.CreateDynamicFrictionAttr(friction)
    api.CreateRestitutionAttr(0.0)
    combine = {"physxMaterial:frictionCombineMode": (Sdf.ValueTypeNames.Token, "max")}
    apply_schema(material.GetPrim(), "PhysxMaterialAPI", combine)
    return material


def _bind(prim: Usd.Prim, material: UsdShade.Material) -> None:
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")
