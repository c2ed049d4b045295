# SPDX-License-Identifier: Apache-2.0
"""Options of the rigid-body engine as parameters and launch arguments, the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bricksim_core.errors import EngineError

ENGINES = ("mujoco", "ovphysx", "isaacsim")
"""Names of the engines."""


@dataclass(frozen=True)
class EngineOption:
    """An option of Isaac Sim; the other engines have none that a scene would choose.

    Attributes:
        name: Name of the parameter and of the launch argument.
        default: Value if nothing is given.
        description: One line.
    """

    name: str
    default: bool | str
    description: str


ENGINE_OPTIONS = (
    EngineOption("headless", True, "No window of the engine (isaacsim only)"),
    EngineOption("window", "", "Size of the window, WIDTHxHEIGHT [px] (isaacsim, headless:=false)"),
    EngineOption("ros_bridge", False, "Isaac Sim's own ROS 2 bridge besides (isaacsim only)"),
    EngineOption("sim_control", False, "Isaac Sim's own simulation_interfaces (isaacsim only)"),
    EngineOption("assets_root", "", "Where Isaac Sim's assets are; empty: its own (isaacsim only)"),
    EngineOption("bridge_clock", "isaac_clock", "Clock topic of the bridge (isaacsim only)"),
    EngineOption("bridge_tf", "isaac_tf", "TF topic of the bridge (isaacsim only)"),
    EngineOption(
        "bridge_joint_states",
        "isaac_{robot}/joint_states",
        "Joint state topic of the bridge for each robot (isaacsim only)",
    ),
    EngineOption(
        "bridge_joint_commands",
        "isaac_{robot}/joint_commands",
        "Joint command topic of the bridge for each robot (isaacsim only)",
    ),
)
"""What can be chosen beside the engine itself."""

_TOPICS = {
    "bridge_clock": "clock_topic",
    "bridge_tf": "tf_topic",
    "bridge_joint_states": "joint_states_topic",
    "bridge_joint_commands": "joint_commands_topic",
}
_TOPIC = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_WINDOW = re.compile(r"([1-9]\d{1,4})x([1-9]\d{1,4})")


def engine_options(engine: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What `create_engine` is given.

    Args:
        engine: Name of the engine.
        values: Values of `ENGINE_OPTIONS` by name, and ``publish_clock``: whether the simulator
            publishes /clock. Options that are not named have their defaults.

    Returns:
        Keyword arguments, and a line for each option that was given and means nothing here.

    Raises:
        EngineError: There is no such engine, or a value is not acceptable; the text names the
            option, its value and what is expected.
    """
    if engine not in ENGINES:
        raise EngineError(f"engine is {engine!r}, expected one of {', '.join(ENGINES)}")
    chosen = {option.name: values.get(option.name, option.default) for option in ENGINE_OPTIONS}
    given = [option.name for option in ENGINE_OPTIONS if chosen[option.name] != option.default]
    if engine != "isaacsim":
        return {}, [f"{name} is an option of isaacsim, ignored with {engine}" for name in given]
    ignored = []
    launch: dict[str, int] = {}
    if chosen["window"]:
        size = _WINDOW.fullmatch(chosen["window"])
        if size is None:
            raise EngineError(f"window is {chosen['window']!r}, expected WIDTHxHEIGHT in pixels")
        if chosen["headless"]:
            ignored.append("window is ignored without a window: give headless:=false")
        else:
            launch = {"window_width": int(size[1]), "window_height": int(size[2])}
    topics = {option: chosen[name] for name, option in _TOPICS.items()}
    if chosen["ros_bridge"]:
        _check_topics(chosen, bool(values.get("publish_clock", True)))
    else:
        without = [name for name in _TOPICS if name in given]
        ignored += [
            f"{name} is ignored without the bridge: give ros_bridge:=true" for name in without
        ]
    own = {name: chosen[name] for name in ("headless", "ros_bridge", "sim_control", "assets_root")}
    return {**own, **topics, "launch": launch}, ignored


def _check_topics(chosen: Mapping[str, Any], publish_clock: bool) -> None:
    for name in _TOPICS:
        topic = chosen[name]
        if not _TOPIC.fullmatch(topic.replace("{robot}", "robot")):
            raise EngineError(f"{name} is {topic!r}, expected the name of a topic")
    if publish_clock and chosen["bridge_clock"].lstrip("/") == "clock":
        raise EngineError(
            "bridge_clock is 'clock', which the simulator publishes: give publish_clock:=false"
        )
