# SPDX-License-Identifier: Apache-2.0
"""What a knock does to bricks and structures while an arm is at work, and what the arm makes of it.

The world is perturbed through the simulator while it runs.
"""

import numpy as np
import pytest
from arms_support import bench, yawed

from bricksim_core.parts import BrickShape
from bricksim_moveit_demo.connections import connections_of
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.world import Noise

BRICK = BrickShape(4, 2)
GOAL = InsertionGoal(1, 0, (4, 5), 0)
NOISE = Noise.of(1.0, 2.0)


def _turned(pose, axis, degrees, height):
    """A pose turned about an axis of its own, its origin at a height."""
    half = np.radians(degrees) / 2.0
    sine, cosine = np.sin(degrees * np.pi / 180.0), np.cos(2.0 * half)
    rotation = {
        "x": [[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]],
        "y": [[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]],
    }[axis]
    turned = pose.copy()
    turned[:3, :3] = pose[:3, :3] @ np.array(rotation)
    turned[2, 3] = height
    return turned


@pytest.mark.parametrize(
    ("axis", "degrees", "height"),
    [("x", 90.0, 0.008), ("x", 180.0, 0.0114), ("y", -90.0, 0.016)],
    ids=["on its side", "upside down", "on its end"],
)
def test_knocked_over_brick_is_turned_and_inserted(axis, degrees, height):
    lying = _turned(yawed(0.42, 0.22, 0.0, 30.0), axis, degrees, height)
    b = bench({1: BRICK}, {1: lying}, noise=NOISE)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}
    assert Stage.RECOVERING in b.stages
