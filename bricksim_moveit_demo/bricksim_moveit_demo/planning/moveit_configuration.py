# SPDX-License-Identifier: Apache-2.0
"""Configuration of MoveIt for one or two arms, and its check before MoveIt is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from bricksim_moveit_demo.description import (
    ArmDescription,
    franka,
    robot_srdf,
    robot_urdf,
    share_file,
)
from bricksim_moveit_demo.errors import DescriptionError

FREE = ("free_rrt_connect", "free_ptp")
"""Plan requests tried together for free motions."""
STRAIGHT = "straight_lin"
"""Plan request of straight motions."""

_CLOCK = {
    "depth": 1,
    "durability": "volatile",
    "history": "keep_last",
    "reliability": "best_effort",
}
"""Quality of service of the subscription of /clock."""


def moveit_configuration(
    arms: Sequence[ArmDescription], *, looks: str = "primitives", use_sim_time: bool = True
) -> dict[str, Any]:
    """All parameters of a MoveItPy or move_group node.

    Args:
        arms: One or two arms.
        looks: As in `robot_urdf`.
        use_sim_time: MoveItPy makes a node of its own: it has to be told in its own parameters.
    """
    general = _yaml("moveit_cpp.yaml")
    pipelines = _yaml("moveit_pipelines.yaml")
    ompl = {**pipelines["ompl"]}
    for arm in arms:
        ompl[arm.group] = {"planner_configs": list(pipelines["ompl"]["planner_configs"])}
    return {
        **general,
        "robot_description": robot_urdf(arms, looks),
        "robot_description_semantic": robot_srdf(arms),
        "robot_description_kinematics": {arm.group: pipelines["kinematics"] for arm in arms},
        "robot_description_planning": {
            "joint_limits": joint_limits(arms),
            "cartesian_limits": pipelines["cartesian_limits"],
        },
        "ompl": ompl,
        "pilz_industrial_motion_planner": pipelines["pilz_industrial_motion_planner"],
        "moveit_manage_controllers": False,
        "trajectory_execution": pipelines["trajectory_execution"],
        "moveit_controller_manager": (
            "moveit_simple_controller_manager/MoveItSimpleControllerManager"
        ),
        "moveit_simple_controller_manager": controllers(arms),
        "use_sim_time": use_sim_time,
        # rclcpp's defaults. With use_sim_time and without them MoveItPy ends in an
        # InvalidParameterValueException (moveit2 issues 2220 and 2940; seen with 2.12.4).
        **{f"qos_overrides./clock.subscription.{key}": value for key, value in _CLOCK.items()},
    }


def namespace_of(argv: Sequence[str]) -> str:
    """Namespace that a ROS program's arguments put its nodes into; empty if they do not."""
    found = [word.removeprefix("__ns:=") for word in argv if word.startswith("__ns:=")]
    return found[-1] if found else ""


def parameter_file(config: Mapping[str, Any], namespace: str, node: str) -> str:
    """Text of a parameter file for one node.

    Args:
        config: Its parameters.
        namespace: As `namespace_of` tells it.
        node: Its name.
    """
    name = f"{namespace.rstrip('/')}/{node}"
    return yaml.safe_dump({name: {"ros__parameters": dict(config)}})


def move_group_parameters(arms: Sequence[ArmDescription], **options: Any) -> dict[str, Any]:
    """Parameters of a move_group node: those of `moveit_configuration`, where it has other names.

    Args:
        arms: One or two arms.
        **options: As `moveit_configuration`.
    """
    parameters = moveit_configuration(arms, **options)
    pipelines = parameters.pop("planning_pipelines")["pipeline_names"]
    return {
        **parameters,
        "planning_pipelines": pipelines,
        "default_planning_pipeline": pipelines[0],
        "publish_planning_scene": True,
        "publish_geometry_updates": True,
        "publish_state_updates": True,
        "publish_transforms_updates": True,
    }


def request_parameters(name: str) -> dict[str, Any]:
    """``plan_request_params`` of one of the plan requests in config/moveit_cpp.yaml."""
    return dict(_yaml("moveit_cpp.yaml")[name]["plan_request_params"])


def joint_limits(arms: Sequence[ArmDescription]) -> dict[str, dict[str, Any]]:
    """Velocity and acceleration limits by joint name [SI], from urdf/fr3.yaml."""
    numbers = franka()
    limits = {}
    for arm in arms:
        sources = [numbers["joints"][f"joint{i}"] for i in range(1, 8)]
        sources += [numbers["finger"], numbers["finger"]]
        for joint, source in zip((*arm.joints, *arm.fingers), sources, strict=True):
            limits[joint] = {
                "has_velocity_limits": True,
                "max_velocity": float(source["velocity"]),
                "has_acceleration_limits": True,
                "max_acceleration": float(source["acceleration"]),
            }
    return limits


def controllers(arms: Sequence[ArmDescription]) -> dict[str, Any]:
    """Action servers of the arms as MoveIt's simple controller manager wants to know them."""
    table: dict[str, Any] = {"controller_names": []}
    for arm in arms:
        table["controller_names"] += [controller_name(arm), gripper_name(arm)]
        table[controller_name(arm)] = {
            "type": "FollowJointTrajectory",
            "action_ns": "follow_joint_trajectory",
            "default": True,
            "joints": list(arm.joints),
        }
        table[gripper_name(arm)] = {
            "type": "GripperCommand",
            "action_ns": "gripper_cmd",
            "default": True,
            "joints": [arm.fingers[0]],
        }
    return table


def controller_name(arm: ArmDescription) -> str:
    """Namespace of the arm's trajectory action."""
    return f"{arm.name}_controller"


def gripper_name(arm: ArmDescription) -> str:
    """Namespace of the arm's gripper action."""
    return f"{arm.name}_gripper"


def parallel_gripper_name(arm: ArmDescription) -> str:
    """Namespace of the arm's gripper action of type ParallelGripperCommand."""
    return f"{arm.name}_parallel_gripper"


def validate_configuration(config: Mapping[str, Any], arms: Sequence[ArmDescription]) -> None:
    """Checks what MoveItPy would otherwise fail on, or worse, run without.

    Raises:
        DescriptionError: A key is missing or has a wrong value; the text names it.
    """
    wanted: list[tuple[str, ...]] = [
        ("robot_description",),
        ("robot_description_semantic",),
        ("use_sim_time",),
        ("planning_scene_monitor_options", "joint_state_topic"),
        ("planning_pipelines", "pipeline_names"),
        ("moveit_controller_manager",),
        ("robot_description_planning", "cartesian_limits", "max_trans_vel"),
    ]
    wanted += [(f"qos_overrides./clock.subscription.{key}",) for key in _CLOCK]
    wanted += [("robot_description_kinematics", a.group, "kinematics_solver") for a in arms]
    wanted += [(name, "plan_request_params", "planner_id") for name in (*FREE, STRAIGHT)]
    for arm in arms:
        for joint in arm.joints:
            limits = ("robot_description_planning", "joint_limits", joint, "max_acceleration")
            wanted.append(limits)
        wanted.append(("moveit_simple_controller_manager", controller_name(arm), "joints"))
    for path in wanted:
        _require(config, path)
    for pipeline in config["planning_pipelines"]["pipeline_names"]:
        _require(config, (pipeline, "planning_plugins"))
    for name in (*FREE, STRAIGHT):
        pipeline = config[name]["plan_request_params"]["planning_pipeline"]
        if pipeline not in config["planning_pipelines"]["pipeline_names"]:
            raise DescriptionError(
                f"MoveIt parameter {name}.plan_request_params.planning_pipeline is {pipeline!r},"
                " expected one of planning_pipelines.pipeline_names"
            )
    if not isinstance(config["use_sim_time"], bool):
        raise DescriptionError(
            f"MoveIt parameter use_sim_time is {config['use_sim_time']!r}, expected true or false"
        )


def _require(config: Mapping[str, Any], path: Sequence[str]) -> None:
    value: Any = config
    for depth, key in enumerate(path, 1):
        if not isinstance(value, Mapping) or key not in value:
            raise DescriptionError(f"MoveIt parameter {'.'.join(path[:depth])} is missing")
        value = value[key]
    if value in ("", [], {}, None):
        raise DescriptionError(f"MoveIt parameter {'.'.join(path)} is empty")


def _yaml(name: str) -> dict[str, Any]:
    return yaml.safe_load(share_file("config", name).read_text(encoding="utf-8"))
