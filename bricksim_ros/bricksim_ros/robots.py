# SPDX-License-Identifier: Apache-2.0
"""Robots of a scene: reading their descriptions, their frames."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xacro

from bricksim_core.engines import Engine, RobotSpec
from bricksim_core.spatial import Array, inverse
from bricksim_ros.scene import RobotEntry, SceneError

_FULL_EFFORT_AT = 0.03
"""Error of a position drive at which it gives all its effort [rad or m], unless a scene says
otherwise: a stiff industrial servo."""
WORLD = "world"
"""Name of a root link that stands for the world."""
_DAMPING_TIME = 0.05
"""Damping over stiffness of such a drive [s]."""


def default_drives(urdf: str) -> dict[str, tuple[float, float, float]]:
    """Position drives of all joints that can move, from the effort limits of a URDF.

    Args:
        urdf: Text of the description.

    Returns:
        Stiffness, damping and greatest force by joint name, as `RobotSpec` takes them.
    """
    drives = {}
    for joint in ElementTree.fromstring(urdf).findall("joint"):
        limit = joint.find("limit")
        if joint.get("type") not in ("revolute", "continuous", "prismatic") or limit is None:
            continue
        effort = float(limit.get("effort", "0"))
        if effort > 0.0:
            stiffness = effort / _FULL_EFFORT_AT
            drives[joint.attrib["name"]] = (stiffness, stiffness * _DAMPING_TIME, effort)
    return drives


def expanded(entry: RobotEntry) -> str:
    """URDF text of a robot of a scene.

    Raises:
        SceneError: The description cannot be read.
    """
    path = entry.description
    if not path.is_file():
        raise SceneError(f"robot {entry.name!r}: {path} is not a file")
    try:
        if path.suffix == ".xacro":
            document: Any = xacro.process_file(str(path), mappings=dict(entry.arguments))
            return document.toxml()
        return path.read_text(encoding="utf-8")
    except Exception as error:  # xacro raises whatever its expressions raise
        raise SceneError(f"robot {entry.name!r}: {path}: {error}") from None


def robot_spec(entry: RobotEntry) -> RobotSpec:
    """A robot of a scene with drives made from its description.

    Raises:
        SceneError: The description cannot be read.
    """
    path, text = entry.description, expanded(entry)
    if path.suffix == ".xacro":
        with tempfile.NamedTemporaryFile("w", suffix=".urdf", delete=False) as file:
            file.write(text)
        path = Path(file.name)
    try:
        drives = default_drives(text)
    except (ElementTree.ParseError, ValueError, KeyError) as error:
        raise SceneError(f"robot {entry.name!r}: {entry.description}: {error}") from None
    return RobotSpec(
        name=entry.name,
        urdf=path,
        world_T_base=entry.world_T_base,
        joint_positions=dict(entry.joint_positions),
        drives=drives | dict(entry.drives),
    )


class RobotFrames:
    """The tree of link frames of one robot."""

    def __init__(self, robot: RobotSpec) -> None:
        self._robot = robot.name
        root = ElementTree.parse(robot.urdf).getroot()
        self._parent: dict[str, str | None] = {
            link.attrib["name"]: None for link in root.iter("link") if "name" in link.attrib
        }
        for joint in root.findall("joint"):
            child, parent = joint.find("child"), joint.find("parent")
            if child is not None and parent is not None:
                self._parent[child.attrib["link"]] = parent.attrib["link"]

    def transforms(self, engine: Engine) -> Iterator[tuple[str, str | None, Array]]:
        """(link, parent link, parent_T_link) of every link; the root's parent is None, the world.

        A root that is called ``world`` is left out: its children's parent is the world itself.
        """
        world_T_link = {link: engine.link_pose(self._robot, link) for link in self._parent}
        for link, parent in self._parent.items():
            pose = world_T_link[link]
            if parent is None and link == WORLD:
                continue
            if parent is None or (parent == WORLD and self._parent[parent] is None):
                # The description's own world stands where the robot's base was put.
                yield link, None, pose
            else:
                yield link, parent, inverse(world_T_link[parent]) @ pose
