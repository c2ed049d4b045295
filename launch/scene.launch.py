# SPDX-License-Identifier: Apache-2.0
"""Simulates any structures: files side by side, or a scene file that says where they stand.

ros2 launch bricksim_ros scene.launch.py structures:=tower.json,bridge.txt
ros2 launch bricksim_ros scene.launch.py scene:=my_scene.yaml rviz:=true record:=true
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from bricksim_ros import launching


def _nodes(context: LaunchContext) -> list:
    files = [f for f in launching.value(context, "structures").split(",") if f]
    return launching.simulation(
        context, {"scene": launching.value(context, "scene"), "structures": files or [""]}
    )


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "scene", default_value="", description="Scene file (YAML); empty: none"
            ),
            DeclareLaunchArgument(
                "structures",
                default_value="",
                description="Structure files, separated by commas, put side by side",
            ),
            *launching.common_arguments(),
            OpaqueFunction(function=_nodes),
        ]
    )
