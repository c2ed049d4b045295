# SPDX-License-Identifier: Apache-2.0
"""Hits of bricks on bricks."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from engine_suite import at, body, brick_layout

from bricksim_core.dynamics import mass_properties
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.experiments.setup import standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.parts import BRICK_HEIGHT, STUD_HEIGHT, BrickShape
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.topology import Structure

GRAVITY = 9.81
UNBROKEN = SimulatorConfig(breakage=BreakageThresholds(engagement=1.0, lateness=0.0))
"""Nothing breaks."""
PHASES = np.arange(8) / 8


class Hit(NamedTuple):
    """What came of a fall.

    Attributes:
        force: Greatest force that the falling structure bore from below, mean of a step [N].
        momentum: What it got from below [N s], and what its fall and its weight make of it.
        sideways: Sum of the normal impulses along the ground over that upward [-].
        depth: How deep it was in what it fell on, at most [m].
        utilization: Greatest in its joints [-].
    """

    force: float
    momentum: tuple[float, float]
    sideways: float
    depth: float
    utilization: float


def slab() -> Structure:
    """Twelve bricks side by side, held together by six on top."""
    below = [f"4x2 ({4 * i},{2 * j},0)" for i in range(3) for j in range(4)]
    above = [f"4x2 ({4 * i + 2},{2 * j + 1},1)" for i in range(2) for j in range(3)]
    return parse_structure("\n".join(below + above), baseplate=None)


def fall(
    onto: str, height: float, phase: float = 0.0, place: tuple[float, float] = (3e-3, 2e-3)
) -> Hit:
    """A slab that falls flat.

    Args:
        onto: "ground", "free" for another slab that lies on it, "held" for one that the world
            holds.
        height: How far it falls [m].
        phase: Part of an engine step by which it is released earlier.
        place: Where it hits, from the middle of the other one [m].
    """
    simulator, structure = Simulator(config=UNBROKEN), slab()
    engine, top = simulator.engine, 0.0
    if onto != "ground":
        held = structure.graph.part_ids if onto == "held" else ()
        simulator.spawn(structure, standing(structure), fixed=held)
        top = 2.0 * BRICK_HEIGHT + STUD_HEIGHT
    late = phase * engine.timestep
    pose = standing(structure, height=top + height - 0.5 * GRAVITY * late**2)
    pose[:2, 3] += place
    parts = np.array(sorted(simulator.spawn(structure, pose, fixed=()).values()))
    first = int(parts[0])
    component = simulator.graph.component_of(first)
    mass = mass_properties(simulator.graph.layout(component)).mass
    speed = [0.0, 0.0, -GRAVITY * late, 0.0, 0.0, 0.0]
    simulator.teleport(first, simulator.part_pose(first), speed)
    reports, utilization, lowest = [], 0.0, math.inf
    simulator.before_substep.append(lambda: reports.append(simulator._last))
    start = simulator.time
    while simulator.time < start + math.sqrt(2.0 * height / GRAVITY) + 0.1:
        result = simulator.step()
        own = [simulator.graph.connections[c].stud_part in parts for c in result.connection_ids]
        utilization = max(utilization, np.nan_to_num(result.utilization[own]).max(initial=0.0))
    force = impulse = across = time = 0.0
    twist = np.zeros(6)
    for report in [*reports[1:], simulator._last]:
        steps = steps_of([report])
        contacts = steps.contacts
        sign = np.isin(contacts.part_b, parts) * 1.0 - np.isin(contacts.part_a, parts)
        upward = sign * contacts.impulse[:, 2]
        flat = np.linalg.norm(contacts.normal[:, :2], axis=1)
        across += float((abs(sign) * contacts.normal_impulse * flat).sum())
        for k, (a, b) in enumerate(itertools.pairwise(steps.first.tolist())):
            force = max(force, float(upward[a:b].sum() / steps.dt[k]))
        row = report.component_ids.tolist().index(component)
        poses = steps.next_poses[:, row]
        lowest = min(lowest, float(poses[:, 2, 3].min()))
        twist, impulse, time = report.twist[row], impulse + upward.sum(), time + report.dt
    gained = mass * (twist[2] + GRAVITY * (late + time))
    rest = simulator.graph.layout(component).component_T_parts[0, 2, 3]
    depth = top - lowest - rest
    return Hit(force, (float(impulse), gained), across / float(impulse), depth, utilization)


@pytest.mark.parametrize("place", [(0.5e-3, 0.5e-3), (7.5e-3, 1e-3), (1e-3, -6e-3), (0.015, 0.012)])
@pytest.mark.parametrize("height", [0.02, 0.05, 0.5])
def test_what_falls_flat_is_not_pushed_sideways(place: tuple[float, float], height: float):
    """Boxes that overlap by less than they sink are not on the sides of each other."""
    assert fall("held", height, place=place).sideways < 1e-3


@pytest.mark.parametrize("turned", [0.0, math.pi])
@pytest.mark.parametrize("shape", [BrickShape(2, 2, 1), BrickShape(1, 1, 1), BrickShape(4, 2, 3)])
@pytest.mark.parametrize("rate", [240.0, 960.0])
def test_nothing_passes_through_a_plate(turned: float, shape: BrickShape, rate: float):
    """Thrown flat or upside down, at up to 20 m/s, from eight heights within a step."""
    for speed in (0.7, 1.0, 2.0, 5.0, 10.0, 20.0):
        for phase in PHASES:
            engine = MujocoEngine(timestep=1.0 / rate, ground=None)
            plate = body(1, brick_layout(BrickShape(8, 8, 1), 1), at(0, 0, 0), fixed=True)
            high = 0.02 + phase * speed / rate
            thrown = body(2, brick_layout(shape, 2), at(0.021, 0.038, high, (turned, 0, 0)))
            thrown = replace(thrown, twist=np.array([0.0, 0.0, -speed, 0.0, 0.0, 0.0]))
            engine.update([], [plate, thrown])
            for _ in range(round(0.05 * rate)):
                report = engine.step()
            assert report.world_T_component[1, 2, 3] > 0.0
