# SPDX-License-Identifier: Apache-2.0
"""Robots of Isaac Sim: USD assets, driven as the protocol says.

A robot is described by a URDF and simulated as Isaac Sim's asset of the same arm. Names of the
asset are those of the URDF without a prefix (``fr3_joint1`` for ``left_fr3_joint1``).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

import numpy as np
from isaacsim.core.experimental.prims import Articulation, RigidPrim, XformPrim
from isaacsim.core.experimental.utils.stage import add_reference_to_stage
from isaacsim.storage.native import get_assets_root_path
from pxr import Usd
from scipy.spatial.transform import Rotation

from bricksim_core.engines.isaacsim.launch import IsaacOptions
from bricksim_core.engines.protocol import JointState, RobotSpec
from bricksim_core.engines.set_points import Drives, RobotState, SetPoints
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, position_of, quaternion_of, transform

FRANKAS = {
    "fr3_joint1": "/Isaac/Robots/FrankaRobotics/FrankaFR3/fr3.usd",
    "panda_joint1": "/Isaac/Robots_Multiphysics/FrankaRobotics/FrankaPanda/franka/franka.usda",
}
"""Isaac Sim's assets by the name of their first joint."""


class Robot:
    """A robot on the stage.

    Args:
        author: Writes the stage.
        spec: The robot.
        options: Where its asset is.

    Raises:
        EngineError: There is no asset for it, or the asset lacks a joint or link that is named.
    """

    def __init__(self, author: StageAuthor, spec: RobotSpec, options: IsaacOptions) -> None:
        self.spec = spec
        self.root = names.robot(spec.name)
        asset = asset_path(spec, options)
        add_reference_to_stage(usd_path=asset, path=self.root)
        self._stage = author.stage
        for prim in Usd.PrimRange(self._stage.GetPrimAtPath(self.root)):
            if prim.GetTypeName() == "PhysicsScene":  # of the asset's own: ours is the only one
                prim.SetActive(False)
        place = position_of(spec.world_T_base)[None], _wxyz(spec.world_T_base)
        XformPrim(
            self.root,
            positions=place[0],
            orientations=place[1],
            reset_xform_op_properties=True,
        )
        # The articulation may be a prim below: where it stands is told to PhysX itself, which knows
        # what its links hang on.
        self._view = Articulation(self.root)
        if not self._view.is_physics_tensor_entity_valid():
            raise EngineError(f"{asset}: Isaac Sim has no physics view of it as an articulation")
        self._view.set_world_poses(*place)
        self._links: dict[str, RigidPrim] = {}
        own = list(self._view.dof_names)
        self._names = tuple(_full_name(name, _joint_names(spec)) or name for name in own)
        for what in (spec.joint_positions, spec.drives, spec.joint_limits, spec.armature):
            if missing := sorted(set(what) - set(self._names)):
                raise EngineError(f"{asset}: has no joint {missing[0]!r}, expected one of {own}")
        self._drives = Drives([spec.drives.get(name) for name in self._names])
        self._before: Array | None = None
        self._dt = author.settings.timestep
        start = np.array([spec.joint_positions.get(name, 0.0) for name in self._names])
        speeds = np.array([spec.joint_limits.get(name, np.inf) for name in self._names])
        self._set_points = SetPoints(start, speeds)
        self._prepare(author)
        self.restore(RobotState(start, np.zeros(len(start)), start, start))

    def state(self) -> JointState:
        """Positions, and mean velocities and drive efforts over the last step, of all joints."""
        positions, velocities = self._motion()
        before = positions if self._before is None else self._before
        speeds, efforts = self._drives.speeds_and_efforts(
            self._set_points.now, before, positions, self._dt
        )
        if self._before is None:
            speeds = velocities
        return JointState(self._names, positions, speeds, efforts)

    def set_targets(self, targets: Mapping[str, float]) -> None:
        """Position targets by joint name [rad or m]."""
        for name, value in targets.items():
            self._set_points.targets[self._index(name)] = value

    def advance(self, dt: float) -> None:
        """Moves the drives' set points towards their targets for a step of ``dt`` [s]."""
        self._before, self._dt = self._motion()[0], dt
        if self._set_points.advance(dt):
            self._view.set_dof_position_targets(self._set_points.now[None])

    def set_positions(self, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions [rad or m], targets included."""
        state = self.save()
        for name, value in positions.items():
            index = self._index(name)
            state.positions[index] = state.targets[index] = state.set_points[index] = value
            state.velocities[index] = 0.0
        self.restore(state)

    def save(self) -> RobotState:
        """The whole state."""
        points = self._set_points
        return RobotState(*self._motion(), points.targets.copy(), points.now.copy())

    def restore(self, state: RobotState) -> None:
        """Sets the whole state."""
        self._view.set_dof_positions(state.positions[None])
        self._view.set_dof_velocities(state.velocities[None])
        self._view.set_dof_position_targets(state.set_points[None])
        self._set_points.put(state.targets, state.set_points)
        self._before = None

    def link_pose(self, link: str) -> Array:
        """(4, 4) world_T_link [m].

        Raises:
            EngineError: There is no such link.
        """
        body, body_T_link = self._body(link)
        if body not in self._links:
            self._links[body] = RigidPrim(body)
        positions, orientations = self._links[body].get_world_poses()
        w, x, y, z = orientations.numpy()[0]
        return transform(positions.numpy()[0], (x, y, z, w)) @ body_T_link

    def link_of(self, path: str) -> str | None:
        """Name of the link that a prim is part of, None if it is not of this robot."""
        if not path.startswith(f"{self.root}/"):
            return None
        links = {str(p.GetPath()): p.GetName() for p in self._bodies()}
        inside = [body for body in links if path.startswith(f"{body}/") or path == body]
        if not inside:
            return None
        own = links[max(inside, key=len)]
        return _full_name(own, _link_names(self.spec)) or own

    def _motion(self) -> tuple[Array, Array]:
        positions = self._view.get_dof_positions().numpy()[0].astype(float)
        return positions, self._view.get_dof_velocities().numpy()[0].astype(float)

    def _prepare(self, author: StageAuthor) -> None:
        """Drives, armature, gravity compensation, collisions and rubber pads."""
        view, spec = self._view, self.spec
        for index, name in enumerate(self._names):
            drive = spec.drives.get(name)
            armature = spec.armature.get(name, author.settings.armature)
            view.set_dof_armatures([armature], dof_indices=[index])
            if drive is not None:
                stiffness, damping, force = drive
                view.set_dof_gains([stiffness], [damping], dof_indices=[index])
                view.set_dof_max_efforts([force], dof_indices=[index])
        view.set_solver_iteration_counts(
            [author.settings.robot_iterations], [author.settings.velocity_iterations]
        )
        view.set_enabled_self_collisions([False])
        view.set_link_enabled_gravities([not spec.gravity_compensation])
        for link in spec.pad_links:
            body, _ = self._body(link)
            author.bind_physics_material(self._stage.GetPrimAtPath(body), names.RUBBER)

    def _index(self, name: str) -> int:
        if name not in self._names:
            raise EngineError(
                f"robot {self.spec.name}: joint {name!r} is unknown, expected one of {self._names}"
            )
        return self._names.index(name)

    def _bodies(self) -> list[Usd.Prim]:
        root = self._stage.GetPrimAtPath(self.root)
        return [p for p in Usd.PrimRange(root) if p.HasAPI("PhysicsRigidBodyAPI")]

    def _body(self, link: str) -> tuple[str, Array]:
        """Path of the body that a link is part of, and the link's pose in it [m]."""
        bodies = {p.GetName(): str(p.GetPath()) for p in self._bodies()}
        body_T_link = np.eye(4)
        name = link
        fixed = _fixed_joints(self.spec)
        while True:
            own = next((b for b in bodies if name == b or name.endswith(f"_{b}")), None)
            if own is not None:
                return bodies[own], body_T_link
            if name not in fixed:
                raise EngineError(
                    f"robot {self.spec.name}: link {link!r} is unknown, expected one of"
                    f" {', '.join(sorted(bodies))}"
                )
            name, parent_T_link = fixed[name]
            body_T_link = parent_T_link @ body_T_link


def asset_path(spec: RobotSpec, options: IsaacOptions) -> str:
    """Where the USD asset of a robot is.

    Raises:
        EngineError: There is none, or Isaac Sim's assets cannot be reached.
    """
    asset = options.assets.get(spec.name)
    if asset is None:
        joints = _joint_names(spec)
        asset = next((a for j, a in FRANKAS.items() if _full_name(j, joints)), None)
    if asset is None:
        raise EngineError(
            f"robot {spec.name}: no asset of Isaac Sim is known for it, name one in option assets"
        )
    return asset if not asset.startswith("/Isaac/") else assets_root(options) + asset


def assets_root(options: IsaacOptions) -> str:
    """Folder or address that holds ``/Isaac/Robots``.

    Raises:
        EngineError: Isaac Sim's assets cannot be reached.
    """
    if options.assets_root:
        return options.assets_root.rstrip("/")
    try:
        return get_assets_root_path()
    except RuntimeError as error:
        raise EngineError(f"Isaac Sim's assets cannot be reached: {error}") from None


def _urdf(spec: RobotSpec) -> ElementTree.Element:
    try:
        return ElementTree.parse(spec.urdf).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise EngineError(f"{spec.urdf}: cannot be read: {error}") from None


def _joint_names(spec: RobotSpec) -> list[str]:
    return [joint.get("name", "") for joint in _urdf(spec).iter("joint")]


def _link_names(spec: RobotSpec) -> list[str]:
    return [link.get("name", "") for link in _urdf(spec).iter("link")]


def _full_name(own: str, wanted: Sequence[str]) -> str | None:
    """The URDF's name of something that the asset calls ``own``."""
    return next((name for name in wanted if name == own or name.endswith(f"_{own}")), None)


def _fixed_joints(spec: RobotSpec) -> dict[str, tuple[str, Array]]:
    """Parent link and parent_T_link [m] of each link on a fixed joint."""
    found = {}
    for joint in _urdf(spec).iter("joint"):
        parent, child, origin = (joint.find(tag) for tag in ("parent", "child", "origin"))
        if joint.get("type") != "fixed" or parent is None or child is None:
            continue
        pose = np.eye(4)
        if origin is not None:
            pose[:3, 3] = [float(v) for v in origin.get("xyz", "0 0 0").split()]
            angles = [float(v) for v in origin.get("rpy", "0 0 0").split()]
            pose[:3, :3] = Rotation.from_euler("xyz", angles).as_matrix()
        found[child.get("link", "")] = (parent.get("link", ""), pose)
    return found


def _wxyz(pose: Array) -> Array:
    """(1, 4) quaternion as Isaac Sim orders it."""
    return np.roll(quaternion_of(pose), 1)[None]
