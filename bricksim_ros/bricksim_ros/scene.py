# SPDX-License-Identifier: Apache-2.0
"""Scenes: which structures and robots a simulation starts with, read from YAML.

structures:
  - file: tower.json            # relative to the scene file, or package://, or absolute
    name: tower                 # unique; default: the file's stem
    position: [0.3, 0.0, 0.0]   # [m]
    rpy_deg: [0, 0, 90]         # roll, pitch, yaw [deg]
    fixed: true                 # true: the world holds the root part of each component;
                                # false: nothing is held; default: what the file says
    baseplate: none             # for formats without one: auto or none; default: auto
    height: 0.144               # [m] puts the lowest point there, the middle over position's x, y
robots:
  - name: arm
    description: fr3.urdf.xacro
    position: [0.0, 0.0, 0.0]
    rpy_deg: [0, 0, 0]
    arguments: {prefix: left_}           # of the xacro file
    joint_positions: {fr3_joint1: 0.0}   # [rad or m]
    drives: {fr3_joint1: [3000, 160, 87]} # stiffness, damping, greatest force (SI); default: from
                                          # the description's effort limits
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from scipy.spatial.transform import Rotation

from bricksim_core.errors import BrickSimError
from bricksim_core.spatial import Array, transform
from bricksim_ros.world import valid_name
from bricksim_ros.yaml_files import read_yaml


class SceneError(BrickSimError):
    """A scene file is wrong; the text names file, entry, value and expectation."""


@dataclass(frozen=True, eq=False)
class StructureEntry:
    """A structure of a scene."""

    file: Path
    name: str
    world_T_structure: Array
    fixed: bool | None = None
    baseplate: Literal["auto"] | None = "auto"
    height: float | None = None


@dataclass(frozen=True, eq=False)
class RobotEntry:
    """A robot of a scene."""

    name: str
    description: Path
    world_T_base: Array
    joint_positions: Mapping[str, float] = field(default_factory=dict)
    drives: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """What a simulation starts with."""

    structures: tuple[StructureEntry, ...] = ()
    robots: tuple[RobotEntry, ...] = ()


def resolve_uri(uri: str, base: Path | None = None) -> Path:
    """Path of a plain path, ``file://`` or ``package://`` address.

    Args:
        uri: The address.
        base: Folder that relative paths refer to; None: the working directory.

    Raises:
        SceneError: The scheme, the package or the user of a home folder is not known.
    """
    if uri.startswith("package://"):
        package, _, rest = uri.removeprefix("package://").partition("/")
        try:
            return Path(get_package_share_directory(package)) / rest
        except (PackageNotFoundError, ValueError):
            raise SceneError(f"{uri}: package {package!r} is not installed") from None
    if "://" in uri and not uri.startswith("file://"):
        scheme = uri.partition("://")[0]
        raise SceneError(f"{uri}: scheme {scheme!r}, expected a path, file:// or package://")
    plain = unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
    try:
        path = Path(plain).expanduser()
    except RuntimeError:
        raise SceneError(f"{uri}: there is no such home folder") from None
    return path if base is None else base / path


def read_scene(path: Path) -> Scene:
    """Reads a scene file.

    Raises:
        SceneError: The file cannot be read or an entry is not acceptable.
    """
    data = read_yaml(path, SceneError)
    check = _Checker(path)
    check.keys(data or {}, "scene", {"structures", "robots"})
    structures = [_structure(check, e, i) for i, e in enumerate(check.rows(data, "structures"))]
    robots = [_robot(check, e, i) for i, e in enumerate(check.rows(data, "robots"))]
    names = [e.name for e in (*structures, *robots)]
    for name in names:
        if names.count(name) > 1:
            check.fail("name", name, "a name that is used once")
    return Scene(tuple(structures), tuple(robots))


def _structure(check: _Checker, entry: Any, index: int) -> StructureEntry:
    where = f"structures[{index}]"
    check.keys(
        entry, where, {"file", "name", "position", "rpy_deg", "fixed", "baseplate", "height"}
    )
    file = resolve_uri(check.text(entry, where, "file"), check.path.parent)
    name = check.text(entry, where, "name", valid_name(file.name.split(".")[0]))
    fixed = entry.get("fixed")
    if fixed is not None and not isinstance(fixed, bool):
        check.fail(f"{where}.fixed", fixed, "true or false")
    baseplate = entry.get("baseplate", "auto")
    if baseplate not in ("auto", "none"):
        check.fail(f"{where}.baseplate", baseplate, "auto or none")
    plate = "auto" if baseplate == "auto" else None
    height = entry.get("height")
    if height is not None:
        height = check.number(height, f"{where}.height")
    return StructureEntry(file, name, check.pose(entry, where), fixed, plate, height)


def _robot(check: _Checker, entry: Any, index: int) -> RobotEntry:
    where = f"robots[{index}]"
    check.keys(
        entry,
        where,
        {"name", "description", "position", "rpy_deg", "joint_positions", "drives", "arguments"},
    )
    description = resolve_uri(check.text(entry, where, "description"), check.path.parent)
    joints = check.mapping(entry, where, "joint_positions")
    positions = {k: check.number(v, f"{where}.joint_positions.{k}") for k, v in joints.items()}
    drives = {}
    for joint, values in check.mapping(entry, where, "drives").items():
        place = f"{where}.drives.{joint}"
        if not isinstance(values, list) or len(values) != 3:
            check.fail(place, values, "stiffness, damping and greatest force")
        stiffness, damping, force = (check.number(v, place) for v in values)
        drives[joint] = (stiffness, damping, force)
    name = check.text(entry, where, "name")
    arguments = {k: str(v) for k, v in check.mapping(entry, where, "arguments").items()}
    pose = check.pose(entry, where)
    return RobotEntry(name, description, pose, positions, drives, arguments)


class _Checker:
    """Reads entries of one file and says where what is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, where: str, value: object, expected: str) -> None:
        raise SceneError(f"{self.path}: {where} is {value!r}, expected {expected}")

    def keys(self, entry: Any, where: str, known: set[str]) -> None:
        if not isinstance(entry, dict):
            self.fail(where, entry, f"a mapping with {', '.join(sorted(known))}")
        for key in entry:
            if key not in known:
                self.fail(f"{where}.{key}", entry[key], f"one of {', '.join(sorted(known))}")

    def rows(self, data: Any, key: str) -> Sequence[Any]:
        rows = (data or {}).get(key) or []
        if not isinstance(rows, list):
            self.fail(key, rows, "a list")
        return rows

    def text(self, entry: dict, where: str, key: str, default: str | None = None) -> str:
        value = entry.get(key, default)
        if not isinstance(value, str) or not value:
            self.fail(f"{where}.{key}", value, "a text")
        return value

    def mapping(self, entry: dict, where: str, key: str) -> dict[str, Any]:
        value = entry.get(key) or {}
        if not isinstance(value, dict):
            self.fail(f"{where}.{key}", value, "a mapping of names")
        return {str(k): v for k, v in value.items()}

    def number(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(where, value, "a number")
        if not math.isfinite(value):
            self.fail(where, value, "a finite number")
        return float(value)

    def pose(self, entry: dict, where: str) -> Array:
        vectors = []
        for key in ("position", "rpy_deg"):
            value = entry.get(key, [0.0, 0.0, 0.0])
            if not isinstance(value, list) or len(value) != 3:
                self.fail(f"{where}.{key}", value, "three numbers")
            vectors.append([self.number(v, f"{where}.{key}[{i}]") for i, v in enumerate(value)])
        # Fixed axes x, y, z as in URDF (REP 103).
        rotation = Rotation.from_euler("xyz", vectors[1], degrees=True)
        return transform(vectors[0], rotation.as_quat())
