# SPDX-License-Identifier: Apache-2.0
"""Robots of a scene: reading their descriptions, their frames."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import xacro

from bricksim_core.engines import Engine, RobotSpec
from bricksim_core.spatial import Array, inverse
from bricksim_ros.scene import RobotEntry, SceneError


def robot_spec(entry: RobotEntry) -> RobotSpec:
    """A robot of a scene with its description expanded.

    Raises:
        SceneError: The description cannot be read.
    """
    path = entry.description
    if not path.is_file():
        raise SceneError(f"robot {entry.name!r}: {path} is not a file")
    if path.suffix == ".xacro":
        try:
            text = xacro.process_file(str(path), mappings={"name": entry.name}).toxml()
        except Exception as error:
            raise SceneError(f"robot {entry.name!r}: {path}: {error}") from None
        with tempfile.NamedTemporaryFile("w", suffix=".urdf", delete=False) as file:
            file.write(text)
        path = Path(file.name)
    return RobotSpec(
        name=entry.name,
        urdf=path,
        world_T_base=entry.world_T_base,
        joint_positions=dict(entry.joint_positions),
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
        """(link, parent link, parent_T_link) of every link; the root has no parent."""
        world_T_link = {link: engine.link_pose(self._robot, link) for link in self._parent}
        for link, parent in self._parent.items():
            pose = world_T_link[link]
            yield link, parent, pose if parent is None else inverse(world_T_link[parent]) @ pose
