# SPDX-License-Identifier: Apache-2.0
"""Simulates any structures: files side by side, or a scene file that says where they stand.

ros2 launch bricksim_ros scene.launch.py structures:=tower.json,bridge.txt
ros2 launch bricksim_ros scene.launch.py scene:=my_scene.yaml rviz:=true record:=true
ros2 launch bricksim_ros scene.launch.py structures:=tower.json arms:=1

With arms, also those of the scene file, the simulator of bricksim_moveit_demo runs where that
package is installed: it has their controllers and the actions that handle bricks.
"""

from launch import LaunchContext, LaunchDescription

from bricksim_ros import launching
from bricksim_ros.scene import SceneError, read_scene, resolve_uri


def _nodes(context: LaunchContext) -> list:
    files = [f for f in launching.value(context, "structures").split(",") if f]
    scene = launching.value(context, "scene")
    parameters = {"scene": scene, "structures": files or [""]}
    arms = int(launching.value(context, "arms"))
    robots = _robots(scene)
    package = launching.arms_package() if arms or robots else ""
    topics: list[str] = []
    if package:
        from bricksim_moveit_demo.nodes.launching import arm_topics

        parameters |= {"arms": arms, "planner": launching.value(context, "planner")}
        topics = arm_topics(arms, robots)
    elif arms:
        raise RuntimeError(f"arms:={arms} needs the package {launching.ARMS_PACKAGE}")
    return launching.simulation(context, parameters, package or "bricksim_ros", topics)


def _robots(scene: str) -> list[str]:
    """Names of a scene file's robots; what is wrong with it the simulator will say."""
    try:
        return [robot.name for robot in read_scene(resolve_uri(scene)).robots] if scene else []
    except SceneError:
        return []


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    arguments = {
        "scene": ("", "Scene file (YAML); empty: none"),
        "structures": ("", "Structure files, separated by commas, put side by side"),
        "arms": ("0", "Franka arms put into the scene", ("0", "1", "2")),
        "planner": (
            "embedded",
            "Motion planner of the arms",
            ("embedded", "moveit", "move_group", "auto"),
        ),
    }
    return launching.description(arguments, _nodes)
