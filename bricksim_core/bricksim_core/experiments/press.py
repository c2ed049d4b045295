# SPDX-License-Identifier: Apache-2.0
"""Pressing one structure onto another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bricksim_core.assembly.types import Candidate
from bricksim_core.errors import BrickSimError
from bricksim_core.events import Cause, EventKind, StepResult
from bricksim_core.experiments.recording import ConnectionChange, Recorder, Recording
from bricksim_core.experiments.setup import (
    MAX_SECONDS,
    Progress,
    checked,
    extent,
    lowest_parts,
    new_simulator,
    rotation_from_degrees,
    run,
    standing,
)
from bricksim_core.parts import STUD_PITCH
from bricksim_core.simulator import SimulatorConfig
from bricksim_core.topology import Structure

MAX_FORCE = 1000.0
"""Greatest force of an experiment [N]."""
CLEARANCE = 0.0005
"""Gap between the two structures at the start [m]."""
SETTLING = 0.15
"""Time in which the upper one comes to rest on the studs before it is pressed [s]."""
RAMP = 0.5
"""Time in which the force grows from nothing [s]."""


@dataclass(frozen=True, eq=False)
class PressResult:
    """Whether two structures connected.

    Attributes:
        connections: The connections that were made, in order.
        reason: Why there are none; empty if there are.
        candidate: The hardest pressed pair of the last frame in which studs of the lower structure
            touched the upper one, in ids of the simulator; None if they never did.
        recording: All frames; parts are named "a:ID" (lower) and "b:ID" (upper).
    """

    connections: tuple[ConnectionChange, ...]
    reason: str
    candidate: Candidate | None
    recording: Recording

    @property
    def connected(self) -> bool:
        """True if at least one connection was made."""
        return bool(self.connections)


def press(
    lower: Structure,
    upper: Structure,
    *,
    offset: tuple[float, float] = (0.0, 0.0),
    yaw: float = 0.0,
    force: float = 10.0,
    seconds: float = 1.0,
    hold: bool = True,
    config: SimulatorConfig = SimulatorConfig(),
    engine: str = "mujoco",
    progress: Progress | None = None,
) -> PressResult:
    """Puts one structure onto another, lets it settle and presses it down at its centre of mass.

    Args:
        lower: Stands on the ground.
        upper: Is pressed onto it.
        offset: Least corner of the upper one's bounding box, after the turn, from that of the lower
            one's [studs]. Fractions are misalignment.
        yaw: How far the upper one is turned about the vertical [deg]; quarter turns fit the grid.
        force: Greatest force [N]; grows evenly over half a second.
        seconds: Simulated time from the moment when the force begins [s].
        hold: True: the world holds the lowest parts of the lower structure.
        config: Settings of the simulator.
        engine: Name of the rigid-body engine.
        progress: Called after every frame.

    Raises:
        BrickSimError: A number is out of range.
    """
    force = checked("force", force, 0.0, MAX_FORCE, "N")
    seconds = checked("seconds", seconds, 0.0, MAX_SECONDS, "s")
    yaw = checked("yaw", yaw, -360.0, 360.0, "deg")
    if not all(math.isfinite(o) and abs(o) <= 1e4 for o in offset):
        raise BrickSimError(f"offset is {offset}, expected two numbers of studs")
    simulator = new_simulator(config, engine)
    ground = config.ground or 0.0
    lower_pose = standing(lower, height=ground)
    lower_low, lower_high = extent(lower, lower_pose)
    upper_pose = standing(upper, rotation_from_degrees(0.0, 0.0, yaw))
    upper_low, _ = extent(upper, upper_pose)
    upper_pose[:2, 3] += lower_low[:2] + STUD_PITCH * np.array(offset) - upper_low[:2]
    upper_pose[2, 3] = lower_high[2] + CLEARANCE - upper_low[2]
    lower_ids = simulator.spawn(lower, lower_pose, fixed=lowest_parts(lower) if hold else ())
    upper_ids = simulator.spawn(upper, upper_pose, fixed=())
    a_parts = set(lower_ids.values())
    names = {new: f"a:{old}" for old, new in lower_ids.items()}
    names |= {new: f"b:{old}" for old, new in upper_ids.items()}
    recorder = Recorder(simulator, names)
    masses = {new: upper.graph.part(old).shape.mass for old, new in upper_ids.items()}
    total = sum(masses.values())
    hardest: Candidate | None = None

    def push(time: float) -> None:
        share = min(max((time - SETTLING) / RAMP, 0.0), 1.0)
        for part_id, mass in masses.items():
            down = share * force * mass / total
            simulator.apply_wrench(part_id, (0.0, 0.0, -down, 0.0, 0.0, 0.0))

    def look(result: StepResult) -> bool:
        nonlocal hardest
        crossing = [
            c for c in result.candidates if c.stud_part in a_parts and c.hole_part in masses
        ]
        hardest = max(crossing, key=lambda c: c.force, default=hardest)
        return False

    run(simulator, recorder, SETTLING + seconds, progress, before=push, after=look)
    recording = recorder.finish()
    pressed = (str(Cause.PRESSED), str(Cause.CLOSURE))
    made = tuple(
        c for c in recording.changes if c.kind is EventKind.ASSEMBLED and c.cause in pressed
    )
    if made:
        reason = ""
    elif hardest is None:
        reason = "no studs of the lower structure touched the upper one's underside"
    else:
        reason = hardest.reason
    return PressResult(made, reason, hardest, recording)
