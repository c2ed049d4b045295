# SPDX-License-Identifier: Apache-2.0
"""Two Franka arms join two bricks in the air and put them onto a plate; ends when they are done.

ros2 launch bricksim_moveit_demo inhand.launch.py out:=out/inhand
"""

from launch import LaunchContext, LaunchDescription

from bricksim_moveit_demo.nodes import launching as episodes
from bricksim_ros import launching


def _nodes(context: LaunchContext) -> list:
    return episodes.episode(context, "inhand", arms=2)


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    return launching.checked(episodes.episode_arguments(), _nodes)
