# SPDX-License-Identifier: Apache-2.0
"""Robots of the MuJoCo engine: from a URDF and drives to a specification.

A joint that mimics another is held to it by an equality constraint, as the fingers of a hand are
coupled. Links of one robot do not collide with each other: the planner sees to that.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.mujoco.bodies import wxyz
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.mujoco.drives import DriveConstants, drive_constants
from bricksim_core.engines.protocol import RobotSpec
from bricksim_core.errors import EngineError

_MOVABLE = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: position = multiplier * leader + offset."""

    joint: str
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as the engine holds it.

    Attributes:
        spec: What it was given.
        xml: Its URDF, ready for MuJoCo.
        links: Names of its links.
        joints: Names of the joints that can move, in the URDF's order.
        drives: Drives of these joints.
        mimics: Joints that follow others.
    """

    spec: RobotSpec
    xml: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    drives: DriveConstants
    mimics: tuple[Mimic, ...]


@dataclass(frozen=True, eq=False)
class RobotIndex:
    """Where the compiled model keeps a robot.

    Attributes:
        qpos: (J,) addresses of joint positions, by `Robot.joints`.
        dof: (J,) addresses of joint velocities.
        bodies: Body by link name.
        geoms: Geoms of all links.
    """

    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]
    bodies: dict[str, int]
    geoms: NDArray[np.intp]


def load_robot(spec: RobotSpec) -> Robot:
    """Reads a robot's URDF.

    Raises:
        EngineError: The file cannot be read, or the spec names joints or links that it lacks.
    """
    try:
        root = ElementTree.parse(spec.urdf).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise EngineError(f"robot {spec.name}: cannot read {spec.urdf}: {error}") from error
    if root.tag != "robot":
        raise EngineError(f"robot {spec.name}: {spec.urdf} holds <{root.tag}>, expected <robot>")
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    for mesh in root.iter("mesh"):
        mesh.set("filename", str(_mesh_path(spec, mesh.get("filename", ""))))
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    # Fixed links stay bodies of their own, so that their poses can be asked for.
    ElementTree.SubElement(
        extension, "compiler", {"strippath": "false", "fusestatic": "false", "angle": "radian"}
    )
    elements = [j for j in root.iter("joint") if j.get("type") in _MOVABLE]
    joints = tuple(j.get("name", "") for j in elements)
    links = tuple(link.get("name", "") for link in root.findall("link"))
    mimics = tuple(
        Mimic(
            j.get("name", ""),
            m.get("joint", ""),
            float(m.get("multiplier", "1")),
            float(m.get("offset", "0")),
        )
        for j in elements
        if (m := j.find("mimic")) is not None
    )
    named = {*spec.joint_positions, *spec.drives, *spec.joint_limits, *spec.armature}
    for kind, names, known in (("joint", named, joints), ("link", set(spec.pad_links), links)):
        unknown = sorted(names - set(known))
        if unknown:
            raise EngineError(
                f"robot {spec.name} has no {kind} {', '.join(unknown)}, expected one of"
                f" {', '.join(known)}"
            )
    dynamics = [j.find("dynamics") for j in elements]
    friction = [0.0 if d is None else float(d.get("damping", "0")) for d in dynamics]
    for element in dynamics:
        if element is not None:
            # The drives take care of it: MuJoCo would apply it after it has solved the contacts.
            element.set("damping", "0")
    return Robot(
        spec,
        ElementTree.tostring(root, encoding="unicode"),
        links,
        joints,
        drive_constants(spec, joints, friction),
        mimics,
    )


def _mesh_path(spec: RobotSpec, address: str) -> Path:
    if address.startswith("package://"):
        package, _, path = address.removeprefix("package://").partition("/")
        if package not in spec.package_dirs:
            raise EngineError(
                f"robot {spec.name}: mesh {address} is in package {package}, expected one of"
                f" {', '.join(spec.package_dirs) or 'none'}"
            )
        return Path(spec.package_dirs[package]) / path
    path = Path(address.removeprefix("file://"))
    return path if path.is_absolute() else Path(spec.urdf).resolve().parent / path


def attach_robot(
    scene: mujoco.MjSpec, robot: Robot, contact: ContactParameters, timestep: float
) -> None:
    """Adds a robot to a specification; its names get the prefix ``<robot>/``.

    Raises:
        EngineError: MuJoCo cannot read the description.
    """
    spec = robot.spec
    try:
        child = mujoco.MjSpec.from_string(robot.xml)
    except ValueError as error:
        raise EngineError(f"robot {spec.name}: {error}") from error
    solref, firm = contact.solref(timestep), contact.firm_solref(timestep)
    for body in child.bodies[1:]:
        if body.joints and not _moves(body.parent):
            body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
        body.gravcomp = float(spec.gravity_compensation)
        is_pad = body.name in spec.pad_links
        friction = contact.pad_friction if is_pad else contact.friction
        for i, geom in enumerate(body.geoms):
            geom.name = f"{body.name}:{i}"
            geom.condim = 3
            geom.friction = [friction, 0.0, 0.0]
            geom.solref = firm if is_pad else solref
            geom.solimp = contact.pad_solimp if is_pad else contact.solimp
            geom.priority = int(is_pad)
    for mimic in robot.mimics:
        equality = child.add_equality(
            type=mujoco.mjtEq.mjEQ_JOINT,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=mimic.joint,
            name2=mimic.leader,
            solref=firm,
            # As stiff as MuJoCo goes: the gears or the belt between the joints.
            solimp=[0.999, 0.9999, 1e-4, 0.5, 2.0],
        )
        equality.data[:5] = [mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0]
    for first, second in combinations([b.name for b in child.bodies[1:] if b.geoms], 2):
        child.add_exclude(bodyname1=first, bodyname2=second)
    base = spec.world_T_base
    frame = scene.worldbody.add_frame()
    frame.pos = base[:3, 3]
    frame.quat = wxyz(base[:3, :3])
    scene.attach(child, prefix=f"{spec.name}/", frame=frame)


def _moves(body: mujoco.MjsBody) -> bool:
    """Whether a body hangs on a joint."""
    return bool(body.name) and body.name != "world" and (bool(body.joints) or _moves(body.parent))


def index_robot(model: mujoco.MjModel, robot: Robot) -> RobotIndex:
    """Finds a robot in a compiled model."""
    prefix = f"{robot.spec.name}/"
    joints = [model.joint(prefix + name).id for name in robot.joints]
    bodies = {
        link: model.body(prefix + link).id
        for link in robot.links
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, prefix + link) >= 0
    }
    return RobotIndex(
        qpos=model.jnt_qposadr[joints].astype(np.intp),
        dof=model.jnt_dofadr[joints].astype(np.intp),
        bodies=bodies,
        geoms=np.flatnonzero(np.isin(model.geom_bodyid, list(bodies.values()))),
    )
