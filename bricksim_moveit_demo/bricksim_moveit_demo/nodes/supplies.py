# SPDX-License-Identifier: Apache-2.0
"""How bricks of a supply get into the scene of a node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bricksim_core.simulator import Simulator
from bricksim_core.topology.structure import Structure
from bricksim_ros.simulator_node import SimulatorNode


def free_ids(simulator: Simulator, structure: Structure) -> dict[int, int]:
    """Scene id by part id of the parts that can keep theirs."""
    return {part: part for part in structure.graph.part_ids if part not in simulator.graph}


def put_down(node: SimulatorNode, simulator: Simulator, structure: Structure) -> Mapping[int, int]:
    """Puts bricks into a scene that is at work already, and tells of them at once.

    They are no part of the scene that a reset goes back to.

    Args:
        node: Tells of them.
        simulator: The scene.
        structure: The bricks, where they are to lie.

    Returns:
        Scene id by part id.
    """
    ids = free_ids(simulator, structure)
    placed = simulator.spawn(structure, np.eye(4), part_ids=ids)
    node.publish_now()
    return placed
