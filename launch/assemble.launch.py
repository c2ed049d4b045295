# SPDX-License-Identifier: Apache-2.0
"""Franka arms build a structure from bricks on the table; the launch ends when they are done.

ros2 launch bricksim_moveit_demo assemble.launch.py structure:=tower.json out:=out/tower
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument

from bricksim_moveit_demo.nodes import launching as episodes
from bricksim_ros import launching


def _nodes(context: LaunchContext) -> list:
    layout = launching.value(context, "layout")
    return episodes.episode(
        context,
        "assemble",
        structure=episodes.absolute(launching.value(context, "structure")),
        layout=layout if layout == "packing" else episodes.absolute(layout),
        arms=int(launching.value(context, "arms")),
    )


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    return launching.checked(
        [
            DeclareLaunchArgument("structure", description="Structure file of any known format"),
            launching.argument("arms", "1", "Number of arms", ("1", "2")),
            launching.argument(
                "layout",
                "packing",
                "How the bricks lie: packing (at random, by the seed) or a YAML file",
            ),
            *episodes.episode_arguments(),
        ],
        _nodes,
    )
