# SPDX-License-Identifier: Apache-2.0
"""Action graphs of Isaac Sim's ROS 2 bridge, as plain data.

scripts/check_isaacsim.py compares them with the descriptions of the nodes in Isaac Sim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bricksim_core.engines.isaacsim.launch import IsaacOptions

BRIDGE = "isaacsim.ros2.bridge"
"""Extension that brings the nodes."""
SIM_CONTROL = "isaacsim.ros2.sim_control"
"""Extension that serves simulation_interfaces."""

_GRAPHS = "/World/Graphs"
_NODE_TYPES = {
    "Tick": "omni.graph.action.OnPlaybackTick",
    "Time": "isaacsim.core.nodes.IsaacReadSimulationTime",
    "Context": f"{BRIDGE}.ROS2Context",
    "Clock": f"{BRIDGE}.ROS2PublishClock",
    "States": f"{BRIDGE}.ROS2PublishJointState",
    "Transforms": f"{BRIDGE}.ROS2PublishTransformTree",
    "Commands": f"{BRIDGE}.ROS2SubscribeJointState",
    "Controller": "isaacsim.core.nodes.IsaacArticulationController",
}

Target = tuple[str, ...]
"""Value of a target attribute: paths of prims."""


@dataclass(frozen=True)
class Graph:
    """An action graph.

    Attributes:
        path: Its prim.
        nodes: Node types by node name.
        values: Values by attribute (``Node.inputs:name``).
        connections: Pairs of attributes.
    """

    path: str
    nodes: Mapping[str, str]
    values: Mapping[str, bool | str | Target]
    connections: tuple[tuple[str, str], ...]


def clock_graph(options: IsaacOptions) -> Graph:
    """Publishes the clock at every tick."""
    return Graph(
        path=f"{_GRAPHS}/Clock",
        nodes={name: _NODE_TYPES[name] for name in ("Tick", "Time", "Context", "Clock")},
        values={"Clock.inputs:topicName": options.clock_topic, "Time.inputs:resetOnStop": False},
        connections=(
            ("Tick.outputs:tick", "Clock.inputs:execIn"),
            ("Context.outputs:context", "Clock.inputs:context"),
            ("Time.outputs:simulationTime", "Clock.inputs:timeStamp"),
        ),
    )


def robot_graph(options: IsaacOptions, robot: str, root: str) -> Graph:
    """Publishes a robot's joint states and transforms and lets joint commands move it.

    Args:
        options: Topics.
        robot: The robot's name.
        root: Path of its prim.
    """
    publishers = ("States", "Transforms")
    connections = []
    for name in (*publishers, "Commands"):
        connections.append(("Tick.outputs:tick", f"{name}.inputs:execIn"))
        connections.append(("Context.outputs:context", f"{name}.inputs:context"))
    for name in publishers:
        connections.append(("Time.outputs:simulationTime", f"{name}.inputs:timeStamp"))
    connections.append(("Commands.outputs:execOut", "Controller.inputs:execIn"))
    for column in ("jointNames", "positionCommand", "velocityCommand", "effortCommand"):
        connections.append((f"Commands.outputs:{column}", f"Controller.inputs:{column}"))
    return Graph(
        path=f"{_GRAPHS}/{robot}",
        nodes={name: kind for name, kind in _NODE_TYPES.items() if name != "Clock"},
        values={
            "Time.inputs:resetOnStop": False,
            "States.inputs:topicName": options.joint_states_topic.format(robot=robot),
            "States.inputs:targetPrim": (root,),
            "Transforms.inputs:topicName": options.tf_topic,
            "Transforms.inputs:targetPrims": (root,),
            "Commands.inputs:topicName": options.joint_commands_topic.format(robot=robot),
            "Controller.inputs:targetPrim": (root,),
        },
        connections=tuple(connections),
    )
