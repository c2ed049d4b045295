# SPDX-License-Identifier: Apache-2.0
"""Parameters of the simulator with arms: declared, typed, ranged, described."""

from __future__ import annotations

import dataclasses

from rclpy.node import Node

from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_ros import parameters
from bricksim_ros.parameters import Declared

TASK = "task"
"""Prefix of the numbers of picking and inserting."""
EPISODES = ("", "assemble", "inhand")
"""What the node can do by itself: nothing, build a structure, join two bricks in the air."""

NODE_PARAMETERS = (
    Declared("arms", 0, "Arms put into the scene: one (fr3) or two (left, right)", 0, 2, True),
    Declared(
        "planner",
        "embedded",
        "Motion planner: embedded, moveit, move_group or auto",
        read_only=True,
    ),
    Declared(
        "execution",
        "auto",
        "What carries plans out: controller (the arms' own), moveit (MoveItPy), move_group (action"
        " execute_trajectory); auto: what belongs to the planner",
        read_only=True,
    ),
    Declared(
        "time_runs_while_planning",
        True,
        "Simulation time goes on while motions are planned, where it keeps a pace"
        " (real_time_factor > 0)",
    ),
    Declared("noise_mm", 0.0, "Greatest error of observed poses [mm]", 0, 100, True),
    Declared("noise_deg", 0.0, "Greatest yaw error of observed poses [deg]", 0, 180, True),
    Declared(
        "episode", "", "What to do by itself: assemble or inhand; empty: none", None, None, True
    ),
    Declared("structure", "", "Structure file that an assemble episode builds", read_only=True),
    Declared("layout", "packing", "How its bricks lie: packing, or a YAML file", read_only=True),
    Declared("lower", "4x2", "Brick that an inhand episode hands over [studs]", read_only=True),
    Declared("upper", "4x2", "Brick that it presses onto it [studs]", read_only=True),
    Declared("out", "", "Folder for an episode's results; empty: none are written", read_only=True),
    Declared("film", False, "Make a video and a picture of the episode", read_only=True),
)

FEEDBACK_RATE = 20.0
"""Feedback messages a second of simulation time of an action that goes on without news."""


def declare(node: Node) -> None:
    """Declares the parameters of the arms."""
    docs = parameters.attribute_docs(TaskParameters.__doc__ or "")
    defaults = TaskParameters()
    tasks = [
        Declared(f"{TASK}.{field.name}", _plain(getattr(defaults, field.name)), docs[field.name])
        for field in dataclasses.fields(TaskParameters)
    ]
    for item in (*NODE_PARAMETERS, *tasks):
        node.declare_parameter(item.name, item.default, parameters.descriptor(item))


def task_parameters(node: Node) -> TaskParameters:
    """The numbers of picking and inserting as they are now.

    Raises:
        TaskError: One is not acceptable.
    """
    values = {}
    for field in dataclasses.fields(TaskParameters):
        value = parameters.value(node, f"{TASK}.{field.name}")
        values[field.name] = value if isinstance(value, int | float) else tuple(value)
    return TaskParameters(**values)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
