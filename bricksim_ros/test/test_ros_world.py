# SPDX-License-Identifier: Apache-2.0
"""Entities of several pieces are moved as one."""

import numpy as np
import pytest

from bricksim_core.errors import CollisionError, PoseError
from bricksim_core.formats import parse_structure
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import transform
from bricksim_ros.world import EntityState, World

PAIR = "2x4 (0,0,0)\n2x4 (3,0,0)\n"
"""Two bricks one stud apart, not connected."""


@pytest.fixture
def world():
    world = World(Simulator(), lambda result: None)
    structure = parse_structure(PAIR, baseplate=None)
    world.spawn("pair", structure, np.eye(4))
    world.spawn("wall", structure, transform([0.5, 0, 0]))
    return world


def place(x, twist=(0.0,) * 6):
    return EntityState(transform([x, 0.0, 0.0]), np.array(twist))


def test_pieces_may_go_where_others_of_them_were(world):
    before = world.simulator.poses()
    world.set_entity_state("pair", place(0.02))
    for part, pose in world.simulator.poses().items():
        assert pose[0, 3] - before[part][0, 3] == pytest.approx(0.02 if part < 2 else 0.0)


@pytest.mark.parametrize(
    ("state", "error"),
    [(place(0.476), CollisionError), (place(0.01, (600.0, 0, 0, 0, 0, 0)), PoseError)],
    ids=["the second piece has no room", "too fast"],
)
def test_all_pieces_stay_where_one_cannot_go(world, state, error):
    before = world.simulator.poses()
    with pytest.raises(error):
        world.set_entity_state("pair", state)
    for part, pose in world.simulator.poses().items():
        assert np.array_equal(pose, before[part])
