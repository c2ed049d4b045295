# SPDX-License-Identifier: Apache-2.0
"""Isaac Sim's own ROS 2 bridge.

Its graphs run at every update of the application (``IsaacOptions.frame_steps``), on the timeline's
tick.
"""

from __future__ import annotations

from isaacsim.core.experimental.utils.app import enable_extension

from bricksim_core.engines.isaacsim import graphs, kit
from bricksim_core.engines.isaacsim.launch import IsaacOptions
from bricksim_core.errors import EngineError


def enable(options: IsaacOptions) -> None:
    """Enables the extensions that the options ask for and publishes the clock.

    Raises:
        EngineError: An extension cannot be enabled.
    """
    wanted = ((options.ros_bridge, graphs.BRIDGE), (options.sim_control, graphs.SIM_CONTROL))
    for asked, name in wanted:
        if asked and not enable_extension(name):
            raise EngineError(f"Isaac Sim's extension {name} cannot be enabled")
    if options.ros_bridge:
        kit.build_graph(graphs.clock_graph(options))


def connect_robot(options: IsaacOptions, robot: str, root: str) -> None:
    """Adds the graph of a robot; see `graphs.robot_graph`."""
    kit.build_graph(graphs.robot_graph(options, robot, root))
