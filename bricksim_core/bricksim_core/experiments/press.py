# SPDX-License-Identifier: Apache-2.0
"""Pressing one structure onto another."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bricksim_core.assembly.types import Candidate
from bricksim_core.errors import BrickSimError, CollisionError
from bricksim_core.events import Cause, EventKind, StepResult
from bricksim_core.experiments.recording import ConnectionChange, Recorder, Recording
from bricksim_core.experiments.setup import (
    MAX_SECONDS,
    UNHURRIED,
    Progress,
    extent,
    lowest_parts,
    new_simulator,
    rotation_from_degrees,
    run,
    standing,
)
from bricksim_core.mechanics.analysis import STANDARD_GRAVITY
from bricksim_core.parts import STUD_PITCH
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import Array, inverse, joined, transform_points
from bricksim_core.topology import Structure
from bricksim_core.values import as_number

MAX_FORCE = 1000.0
"""Greatest force of an experiment [N]."""
CLEARANCE = 0.0002
"""Gap between the two structures at the start [m]."""
SEATING = 5.0
"""Force at the start, in multiples of the upper structure's weight: it must not tip over before it
is pressed."""
RAMP = 0.5
"""Time in which the force grows to its greatest value [s]."""


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


def stacked(
    lower: Structure,
    upper: Structure,
    offset: Sequence[float] = (0.0, 0.0),
    yaw: float = 0.0,
    ground: float = 0.0,
) -> tuple[Array, Array]:
    """Poses of two structures of which one hangs just above the other.

    Args:
        lower: Stands on the ground.
        upper: Hangs `CLEARANCE` above its studs.
        offset: Least corner of the upper one's bounding box, after the turn, from that of the lower
            one's [studs].
        yaw: How far the upper one is turned about the vertical [deg].
        ground: Height of the ground [m].

    Returns:
        (4, 4) poses of the lower and of the upper structure's frame [m].
    """
    lower_pose = standing(lower, height=ground)
    lower_low, lower_high = extent(lower, lower_pose)
    upper_pose = standing(upper, rotation_from_degrees(0.0, 0.0, yaw))
    upper_low, _ = extent(upper, upper_pose)
    upper_pose[:2, 3] += lower_low[:2] + STUD_PITCH * np.array(offset) - upper_low[:2]
    upper_pose[2, 3] += lower_high[2] + CLEARANCE - upper_low[2]
    return lower_pose, upper_pose


def press(
    lower: Structure,
    upper: Structure,
    *,
    offset: tuple[float, float] = (0.0, 0.0),
    yaw: float = 0.0,
    force: float = 10.0,
    seconds: float = 1.0,
    hold: bool = True,
    config: SimulatorConfig = UNHURRIED,
    engine: str = "mujoco",
    progress: Progress | None = None,
) -> PressResult:
    """Puts one structure onto another and presses it down over the middle of the studs it covers.

    Args:
        lower: Stands on the ground.
        upper: Is pressed onto it.
        offset: Least corner of the upper one's bounding box, after the turn, from that of the lower
            one's [studs]. Fractions are misalignment.
        yaw: How far the upper one is turned about the vertical [deg]; quarter turns fit the grid.
        force: Greatest force [N]; grows evenly over half a second.
        seconds: Simulated time [s].
        hold: True: the world holds the lowest parts of the lower structure.
        config: Settings of the simulator.
        engine: Name of the rigid-body engine.
        progress: Called after every frame.

    Raises:
        BrickSimError: A number is out of range.
        CollisionError: Parts of one of them are inside of each other.
    """
    force = as_number(force, "force", 0.0, MAX_FORCE, unit="N")
    seconds = as_number(seconds, "seconds", 0.0, MAX_SECONDS, unit="s")
    yaw = as_number(yaw, "yaw", -360.0, 360.0, unit="deg")
    if not all(math.isfinite(o) and abs(o) <= 1e4 for o in offset):
        raise BrickSimError(f"offset is {offset}, expected two numbers of studs")
    simulator = new_simulator(config, engine)
    ground = config.ground or 0.0
    lower_pose, upper_pose = stacked(lower, upper, offset, yaw, ground)
    lower_ids = _spawned(simulator, lower, lower_pose, lowest_parts(lower) if hold else ())
    upper_ids = _spawned(simulator, upper, upper_pose, ())
    a_parts = set(lower_ids.values())
    names = {new: f"a:{old}" for old, new in lower_ids.items()}
    names |= {new: f"b:{old}" for old, new in upper_ids.items()}
    recorder = Recorder(simulator, names)
    masses = {new: upper.graph.part(old).shape.mass for old, new in upper_ids.items()}
    total = sum(masses.values())
    line = _middle_of_covered_studs(lower, lower_pose, upper, upper_pose)
    hardest: Candidate | None = None

    start = min(force, SEATING * total * STANDARD_GRAVITY)

    def push(time: float) -> None:
        down = start + (force - start) * min(time / RAMP, 1.0)
        coms = np.array([_com(simulator, part_id) for part_id in masses])
        arm = line - np.array(list(masses.values())) @ coms[:, :2] / total
        torque = (-down * arm[1], down * arm[0])
        for part_id, mass in masses.items():
            share = mass / total
            wrench = (0.0, 0.0, -share * down, share * torque[0], share * torque[1], 0.0)
            simulator.apply_wrench(part_id, wrench)

    def look(result: StepResult) -> bool:
        nonlocal hardest
        crossing = [
            c for c in result.candidates if c.stud_part in a_parts and c.hole_part in masses
        ]
        hardest = max(crossing, key=lambda c: c.force, default=hardest)
        return False

    run(simulator, recorder, seconds, progress, before=push, after=look)
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


def _spawned(
    simulator: Simulator, structure: Structure, pose: Array, fixed: Collection[int]
) -> dict[int, int]:
    """What `Simulator.spawn` gives; its errors say which structure's ids they name."""
    try:
        return simulator.spawn(structure, pose, fixed)
    except CollisionError as error:
        raise CollisionError(f"{structure.label}: {error}") from None


def _com(simulator: Simulator, part_id: int) -> Array:
    """(3,) centre of mass of a part [m], world."""
    return transform_points(simulator.part_pose(part_id), simulator.graph.part(part_id).shape.com)


def _middle_of_covered_studs(
    lower: Structure, lower_pose: Array, upper: Structure, upper_pose: Array
) -> Array:
    """(2,) where the force acts, world [m]: over the mean of the highest studs of the lower
    structure that are under the lowest parts of the upper one; over the latter's middle if none is.
    """
    studs = []
    poses = {i: lower_pose @ pose for i, pose in lower.part_poses().items()}
    tops = {i: float(p[2, 3]) + lower.graph.part(i).shape.size[2] for i, p in poses.items()}
    for part_id, top in tops.items():
        shape = lower.graph.part(part_id).shape
        if top > max(tops.values()) - 1e-6 and shape.has_studs:
            x, y = np.meshgrid(np.arange(shape.length), np.arange(shape.width), indexing="ij")
            cells = np.stack([x.ravel(), y.ravel()], axis=1) + 0.5
            local = (cells - 0.5 * np.array([shape.length, shape.width])) * STUD_PITCH
            flat = np.concatenate([local, np.zeros((len(local), 1))], axis=1)
            studs.append(transform_points(poses[part_id], flat))
    points = joined(studs, (3,))
    covered = np.zeros(len(points), dtype=np.bool_)
    for part_id in lowest_parts(upper):
        pose = upper_pose @ upper.part_poses()[part_id]
        half = 0.5 * np.array(upper.graph.part(part_id).shape.size[:2])
        local = transform_points(inverse(pose), points)[:, :2]
        covered |= (np.abs(local) < half).all(axis=1)
    if not covered.any():
        low, high = extent(upper, upper_pose)
        return 0.5 * (low + high)[:2]
    return points[covered, :2].mean(axis=0)
