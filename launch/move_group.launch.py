# SPDX-License-Identifier: Apache-2.0
"""MoveIt's move_group for one or two FR3 arms: for planner:=move_group, RViz or own programs.

ros2 launch bricksim_moveit_demo move_group.launch.py arms:=1
"""

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch_ros.actions import Node

from bricksim_moveit_demo.description import arms_of
from bricksim_moveit_demo.planning.moveit_configuration import move_group_parameters
from bricksim_ros import launching

_PACKAGE = "moveit_ros_move_group"


def _nodes(context: LaunchContext) -> list:
    try:
        get_package_prefix(_PACKAGE)
    except PackageNotFoundError:
        raise RuntimeError(f"{_PACKAGE} is not installed, expected a ROS 2 with MoveIt") from None
    arms = arms_of(int(launching.value(context, "arms")))
    parameters = move_group_parameters(arms, use_sim_time=launching.flag(context, "use_sim_time"))
    move_group = Node(
        package=_PACKAGE,
        executable="move_group",
        namespace=launching.value(context, "namespace"),
        output="screen",
        parameters=[parameters],
    )
    return [move_group]


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    return launching.checked(
        [
            launching.argument("arms", "1", "Number of arms", ("1", "2")),
            launching.argument("namespace", "", "Namespace of move_group"),
            launching.argument("use_sim_time", "true", "Follow /clock", ("true", "false")),
        ],
        _nodes,
    )
