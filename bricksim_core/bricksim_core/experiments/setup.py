# SPDX-License-Identifier: Apache-2.0
"""What the experiments share: placing, running."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.engines import create_engine
from bricksim_core.engines.protocol import MAX_POSITION
from bricksim_core.errors import BrickSimError, StructureError
from bricksim_core.events import StepResult
from bricksim_core.experiments.recording import Recorder
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.pictures.camera import corner_points
from bricksim_core.pictures.scene import structure_scene
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import Array
from bricksim_core.topology import Structure
from bricksim_core.values import as_number, as_numbers

MAX_SECONDS = 120.0
"""Longest simulated time of an experiment [s]."""

UNHURRIED = SimulatorConfig(breakage=BreakageThresholds(lateness=0.0))
"""Settings of an experiment: nobody waits for its frames, so that nothing breaks late."""

Progress = Callable[[float], None]
"""Is told the share of the work that is done, 0 to 1."""


def new_simulator(config: SimulatorConfig, engine: str) -> Simulator:
    """An empty simulator on an engine of this name.

    Raises:
        EngineError: There is no such engine here.
    """
    return Simulator(
        create_engine(
            engine, timestep=config.timestep, gravity=config.gravity, ground=config.ground
        ),
        config,
    )


def rotation_from_degrees(roll: float, pitch: float, yaw: float) -> Array:
    """(3, 3) rotation by roll about x, then pitch about y, then yaw about z, fixed axes [deg]."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("xyz", [roll, pitch, yaw], degrees=True).as_matrix()


def standing(structure: Structure, rotation: ArrayLike | None = None, height: float = 0.0) -> Array:
    """(4, 4) pose for a structure's frame that turns it and puts its lowest point at a height.

    Args:
        structure: The structure.
        rotation: (3, 3) how to turn it; None: not at all.
        height: Where its lowest point goes [m]; its middle goes over the origin.

    Raises:
        BrickSimError: The rotation is none, or the height is no number.
    """
    as_number(height, "height", -MAX_POSITION, MAX_POSITION, unit="m")
    turn = as_numbers(np.eye(3) if rotation is None else rotation)
    if (
        turn is None
        or turn.shape != (3, 3)
        or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-9)
        or np.linalg.det(turn) < 0.0
    ):
        raise BrickSimError(f"rotation is {rotation!r}, expected a 3x3 rotation matrix")
    pose = np.eye(4)
    pose[:3, :3] = turn
    low, high = extent(structure, pose)
    pose[:2, 3] = -0.5 * (low + high)[:2]
    pose[2, 3] = height - low[2]
    return pose


def extent(structure: Structure, world_T_structure: Array) -> tuple[Array, Array]:
    """Least and greatest coordinates [m] of a structure, studs included, at a pose.

    Raises:
        StructureError: The structure holds no part.
    """
    scene, _, poses = structure_scene(structure)
    if not len(poses):
        raise StructureError(f"{structure.label}: holds no part")
    corners = corner_points(scene.shapes, world_T_structure @ poses).reshape(-1, 3)
    return corners.min(axis=0), corners.max(axis=0)


def lowest_parts(structure: Structure) -> frozenset[int]:
    """Ids of the parts whose underside is the lowest of all."""
    bottoms = {part_id: float(pose[2, 3]) for part_id, pose in structure.part_poses().items()}
    lowest = min(bottoms.values())
    return frozenset(part_id for part_id, z in bottoms.items() if z <= lowest + 1e-6)


def run(
    simulator: Simulator,
    recorder: Recorder,
    seconds: float,
    progress: Progress | None = None,
    *,
    before: Callable[[float], None] | None = None,
    after: Callable[[StepResult], bool] | None = None,
) -> None:
    """Steps a simulator and records every frame.

    Args:
        simulator: The simulator.
        recorder: Takes in its steps.
        seconds: Simulated time [s].
        progress: Called after every step.
        before: Called with the time since the start [s] before every step.
        after: Called with the result of every step; True ends the run.
    """
    start = simulator.time
    steps = max(1, round(seconds * simulator.config.frame_rate))
    for step in range(steps):
        if before is not None:
            before(simulator.time - start)
        result = simulator.step()
        recorder.add(result)
        if progress is not None:
            progress((step + 1) / steps)
        if after is not None and after(result):
            break
