# SPDX-License-Identifier: Apache-2.0
"""What the launch files of episodes share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.action import Action
from launch.actions import DeclareLaunchArgument

from bricksim_moveit_demo.description import arms_of
from bricksim_ros import launching

_ARGUMENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "out": ("", "Folder for summary.json, pictures, video and bag; empty: none are written", ()),
    "planner": ("embedded", "Motion planner", ("embedded", "moveit", "move_group", "auto")),
    "execution": (
        "auto",
        "What carries plans out: the arms' controllers or MoveIt; auto: what goes with the planner",
        ("auto", "controller", "moveit", "move_group"),
    ),
    "noise": ("1.0,2.0", "Greatest errors of places and observations: mm,degrees", ()),
    "seed": ("0", "Seed of layout, noise and planner", ()),
    "film": ("true", "Make a video and a picture in the folder out", ("true", "false")),
}


def episode_arguments() -> list[DeclareLaunchArgument]:
    """Declares the arguments of every episode."""
    own = [launching.argument(name, *entry) for name, entry in _ARGUMENTS.items()]
    common = launching.common_arguments(real_time_factor="0.0", record="true", markers="false")
    return [*own, *common]


def episode(context: LaunchContext, kind: str, **parameters: Any) -> list[Action]:
    """The simulator with arms, carrying out an episode, and what records it.

    Args:
        context: Launch context with the arguments.
        kind: ``assemble`` or ``inhand``.
        parameters: Further parameters of the node.
    """
    out = launching.value(context, "out")
    folder = str(Path(out).expanduser().resolve()) if out else ""
    if folder and not launching.value(context, "bag"):
        context.launch_configurations["bag"] = str(_new(Path(folder) / "bag"))
    millimetres, degrees = _noise(launching.value(context, "noise"))
    return launching.simulation(
        context,
        {
            "episode": kind,
            "out": folder,
            "planner": launching.value(context, "planner"),
            "execution": launching.value(context, "execution"),
            "noise_mm": millimetres,
            "noise_deg": degrees,
            "seed": int(launching.number(context, "seed")),
            "film": bool(folder) and launching.flag(context, "film"),
            **parameters,
        },
        launching.ARMS_PACKAGE,
        arm_topics(parameters["arms"]),
    )


def arm_topics(arms: int, robots: Iterable[str] = ()) -> list[str]:
    """Topics of arms for a recorder, each ``NAME TYPE``.

    Args:
        arms: How many arms the node puts into the scene.
        robots: Names of those that the scene has.
    """
    names = [*(arm.name for arm in arms_of(arms)), *robots]
    return [
        topic
        for name in names
        for topic in (
            f"{name}/wrench geometry_msgs/msg/WrenchStamped",
            f"{name}/handling_stage bricksim_msgs/msg/HandlingStage",
        )
    ]


def absolute(path: str) -> str:
    """A path as the node understands it wherever it runs; addresses stay as they are."""
    return path if "://" in path or not path else str(Path(path).expanduser().resolve())


def _noise(text: str) -> tuple[float, float]:
    try:
        millimetres, degrees = (float(word) for word in text.split(","))
    except ValueError:
        raise ValueError(
            f"launch argument noise is {text!r}, expected two numbers: mm,degrees"
        ) from None
    return millimetres, degrees


def _new(folder: Path) -> Path:
    """The folder, or with a number behind its name if it exists: a bag is never written over."""
    names = (folder.with_name(f"{folder.name}_{i}") for i in range(1, 1_000_000))
    return folder if not folder.exists() else next(name for name in names if not name.exists())
