# SPDX-License-Identifier: Apache-2.0
"""Dropping a structure onto the ground."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bricksim_core.experiments.recording import Recorder, Recording
from bricksim_core.experiments.setup import (
    MAX_SECONDS,
    UNHURRIED,
    Progress,
    new_simulator,
    run,
    standing,
)
from bricksim_core.simulator import SimulatorConfig
from bricksim_core.topology import Structure
from bricksim_core.values import as_number

MAX_HEIGHT = 100.0
"""Greatest height of a drop [m]."""


def drop(
    structure: Structure,
    *,
    height: float = 0.144,
    rotation: ArrayLike | None = None,
    seconds: float = 2.0,
    config: SimulatorConfig = UNHURRIED,
    engine: str = "mujoco",
    progress: Progress | None = None,
) -> Recording:
    """Lets a structure fall from rest.

    Args:
        structure: What to drop; parts that its file fixes are released.
        height: From the ground to its lowest point [m].
        rotation: (3, 3) how it is turned from where it stands; None: not at all.
        seconds: Simulated time [s].
        config: Settings of the simulator; needs a ground.
        engine: Name of the rigid-body engine.
        progress: Called after every frame.

    Returns:
        All frames, in the structure's part ids.

    Raises:
        BrickSimError: A number is out of range.
        CollisionError: Components of the structure are inside of each other.
    """
    height = as_number(height, "height", 0.0, MAX_HEIGHT, unit="m")
    seconds = as_number(seconds, "seconds", 0.0, MAX_SECONDS, unit="s")
    simulator = new_simulator(config, engine)
    pose = standing(structure, rotation, height + (config.ground or 0.0))
    ids = simulator.spawn(structure, pose, fixed=())
    recorder = Recorder(simulator, {new: old for old, new in ids.items()})
    run(simulator, recorder, seconds, progress)
    return recorder.finish()
