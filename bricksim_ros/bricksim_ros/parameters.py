# SPDX-License-Identifier: Apache-2.0
"""Parameters of the simulator node: declared, typed, ranged, described; thresholds at run time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from bricksim_core.assembly.types import AssemblyThresholds
from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_ros.engine_options import ENGINE_OPTIONS

THRESHOLD_GROUPS = {"assembly": AssemblyThresholds, "breakage": BreakageThresholds}
"""Parameter prefix and the dataclass whose fields it holds."""


@dataclasses.dataclass(frozen=True)
class Declared:
    """One parameter: name, default, description, range of numbers, fixed after configuring."""

    name: str
    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    read_only: bool = False


NODE_PARAMETERS = (
    Declared("scene", "", "Scene file (YAML) to start with; empty: an empty scene", read_only=True),
    Declared("structures", [""], "Structure files to start with, side by side", read_only=True),
    Declared("engine", "mujoco", "Rigid-body engine: mujoco, ovphysx or isaacsim", read_only=True),
    Declared("model", "default", "Snap-fit model: default or paper", read_only=True),
    Declared("seed", 0, "Seed of everything random", 0, 2**31 - 1, read_only=True),
    Declared("real_time_factor", 1.0, "Simulated over wall time; 0: as fast as possible", 0, 1000),
    Declared("duration", 0.0, "Quit after so many simulated seconds; 0: never", 0, 1e9),
    *(Declared(o.name, o.default, o.description, read_only=True) for o in ENGINE_OPTIONS),
    Declared("start_paused", False, "Wait for play before the first step", read_only=True),
    Declared("autostart", True, "Configure and activate by itself at start", read_only=True),
    Declared("world_frame", "world", "Name of the root frame", read_only=True),
    Declared("frame_prefix", "", "Put in front of every other frame name", read_only=True),
    Declared("publish_clock", True, "Publish /clock (one publisher a domain)", read_only=True),
    Declared("publish_candidates", False, "Publish assembly candidates at every step"),
    Declared("states_rate", 60.0, "Brick states a second at most, simulated [Hz]", 0, 1000),
    Declared("utilization_rate", 60.0, "Utilizations a second at most, simulated [Hz]", 0, 1000),
    Declared(
        "topology_rate",
        10.0,
        "Topologies a second at most, simulated [Hz]; events tell more",
        1,
        1000,
    ),
    Declared("tf_rate", 30.0, "TF of bricks and links a second at most, simulated [Hz]", 0, 1000),
    Declared("joint_states_topic", "joint_states", "Name of the joint state topic", read_only=True),
    Declared("joint_commands_topic", "joint_commands", "Name of the command topic", read_only=True),
)


def declare(node: Node) -> None:
    """Declares all parameters of the simulator node with descriptions and ranges."""
    for item in NODE_PARAMETERS:
        node.declare_parameter(item.name, item.default, descriptor(item))
    for prefix, thresholds in THRESHOLD_GROUPS.items():
        for item in _threshold_parameters(prefix, thresholds):
            node.declare_parameter(item.name, item.default, descriptor(item))


def value(node: Node, name: str) -> Any:
    """Value of a declared parameter, of the type it was declared with."""
    return node.get_parameter(name).value


def thresholds(node: Node, prefix: str, changes: Iterable[Parameter] = ()) -> Any:
    """The thresholds of a group as its dataclass.

    Args:
        node: Node with the parameters.
        prefix: ``assembly`` or ``breakage``.
        changes: Parameters that are about to change.

    Raises:
        BrickSimError: A value is not acceptable.
    """
    kind = THRESHOLD_GROUPS[prefix]
    values = {p.name: p.value for p in changes}
    chosen = {}
    for field in dataclasses.fields(kind):
        name = f"{prefix}.{field.name}"
        chosen[field.name] = values.get(name, value(node, name))
        if chosen[field.name] != chosen[field.name]:
            raise BrickSimError(f"{name} is nan, expected a number")
        if getattr(kind(), field.name) is None and chosen[field.name] < 0.0:
            chosen[field.name] = None
    return kind(**chosen)


def threshold_group(name: str) -> str | None:
    """Group that a parameter belongs to, None if it is no threshold."""
    prefix = name.partition(".")[0]
    return prefix if prefix in THRESHOLD_GROUPS and "." in name else None


def _threshold_parameters(prefix: str, kind: type) -> Iterable[Declared]:
    docs = attribute_docs(kind.__doc__ or "")
    for field in dataclasses.fields(kind):
        default = getattr(kind(), field.name)
        description = docs.get(field.name, field.name.replace("_", " "))
        if default is None:
            text = f"{description} -1 stands for None."
            yield Declared(f"{prefix}.{field.name}", -1.0, text, -1, math.inf)
            continue
        numeric = isinstance(default, (int, float)) and not isinstance(default, bool)
        low, high = (0, math.inf) if numeric else (None, None)
        yield Declared(f"{prefix}.{field.name}", default, description, low, high)


def attribute_docs(doc: str) -> dict[str, str]:
    """Descriptions in the ``Attributes:`` section of a Google-style docstring."""
    docs: dict[str, str] = {}
    name = ""
    for line in doc.partition("Attributes:")[2].splitlines():
        head, colon, rest = line.strip().partition(": ")
        if colon and head.isidentifier():
            name, docs[head] = head, rest
        elif name and line.strip():
            docs[name] += f" {line.strip()}"
        elif not line.strip() and name:
            name = ""
    return docs


def descriptor(item: Declared) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=item.description, read_only=item.read_only)
    if item.low is not None and item.high is not None:
        if isinstance(item.default, float):
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(item.low), to_value=float(item.high))
            ]
        else:
            descriptor.integer_range = [
                IntegerRange(from_value=int(item.low), to_value=int(min(item.high, 2**62)))
            ]
    return descriptor
