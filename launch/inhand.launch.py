# SPDX-License-Identifier: Apache-2.0
"""Two Franka arms join two bricks in the air and put them onto a plate; ends when they are done.

ros2 launch bricksim_moveit_demo inhand.launch.py out:=out/inhand
"""

from launch import LaunchContext, LaunchDescription

from bricksim_moveit_demo.nodes import launching as episodes
from bricksim_ros import launching

_BRICKS = {"lower": "Brick that is handed over [studs]", "upper": "Brick that is pressed onto it"}


def _nodes(context: LaunchContext) -> list:
    sizes = {name: launching.value(context, name) for name in _BRICKS}
    return episodes.episode(context, "inhand", arms=2, **sizes)


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    own = [launching.argument(name, "4x2", text) for name, text in _BRICKS.items()]
    return launching.checked([*own, *episodes.episode_arguments()], _nodes)
