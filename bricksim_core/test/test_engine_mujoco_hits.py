# SPDX-License-Identifier: Apache-2.0
"""Hits of bricks on bricks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from engine_suite import at, body, brick_layout, slab

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.experiments.setup import standing
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.parts import BRICK_HEIGHT, STUD_HEIGHT, BrickShape
from bricksim_core.simulator import Simulator, SimulatorConfig

PHASES = np.arange(8) / 8


def sideways(height: float, place: tuple[float, float]) -> float:
    """Sum of the normal impulses along the ground over the upward one [-] on a slab that falls flat
    on another one, which the world holds.

    Args:
        height: How far it falls [m].
        place: Where it hits, from the middle of the other one [m].
    """
    unbroken = BreakageThresholds(engagement=1.0, lateness=0.0)
    simulator, structure = Simulator(config=SimulatorConfig(breakage=unbroken)), slab()
    simulator.spawn(structure, standing(structure), fixed=structure.graph.part_ids)
    pose = standing(structure, height=2.0 * BRICK_HEIGHT + STUD_HEIGHT + height)
    pose[:2, 3] += place
    parts = list(simulator.spawn(structure, pose, fixed=()).values())
    engine, impulse, across = simulator.engine, 0.0, 0.0
    while simulator.time < math.sqrt(2.0 * height / 9.81) + 0.1:
        contacts = engine.step().contacts
        sign = np.isin(contacts.part_b, parts) * 1.0 - np.isin(contacts.part_a, parts)
        flat = np.linalg.norm(contacts.normal[:, :2], axis=1)
        across += float((abs(sign) * contacts.normal_impulse * flat).sum())
        impulse += float(sign @ contacts.impulse[:, 2])
    return across / impulse


@pytest.mark.parametrize("place", [(0.5e-3, 0.5e-3), (7.5e-3, 1e-3), (1e-3, -6e-3), (0.015, 0.012)])
@pytest.mark.parametrize("height", [0.02, 0.05, 0.5])
def test_what_falls_flat_is_not_pushed_sideways(place: tuple[float, float], height: float):
    """Boxes that overlap by less than they sink are not on the sides of each other."""
    assert sideways(height, place) < 1e-3


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
