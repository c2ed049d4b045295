# SPDX-License-Identifier: Apache-2.0
"""Seats between flush neighbours: where a brick and the fingers around it come down."""

import numpy as np
import pytest
from arms_support import yawed

from bricksim_core.events import EventKind
from bricksim_core.formats import parse_structure
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import inverse
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.beside import aside, edges, near
from bricksim_moveit_demo.building import loose_bricks
from bricksim_moveit_demo.connections import connections_of
from bricksim_moveit_demo.description import one_arm
from bricksim_moveit_demo.grasps import grasps
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.inserting import seat_pose
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions
from bricksim_moveit_demo.reports import InsertionGoal
from bricksim_moveit_demo.world import Noise, SimulatedWorld

P = TaskParameters()
LENGTHWISE = "2x6 (4,3,0)\n2x2 (2,3,0)\n2x2 (6,3,0)\n2x2 (1,9,0)"
"""A brick of 2 x 6 studs between two that are flush with one of its ends."""
ENCLOSED = "2x6 (4,4,1)\n2x2 (4,6,0)\n2x2 (4,2,0)\n2x2 (4,2,1)\n1x2 (4,16,0)\n2x8 (4,10,1)"
"""A seat between a brick that stands firm and one that hangs on its far end."""


def _scene(text: str, noise: Noise | None = None) -> tuple[SimulatedWorld, InsertionGoal]:
    """All bricks of a text on a plate but the first, which lies on the table."""
    whole = parse_structure(text)
    graph = whole.graph
    plate = next(iter(whole.fixed))
    stands = whole.without([1])
    move = yawed(0.5, 0.0) @ inverse(stands.part_poses()[plate])
    poses = {c: move @ pose for c, pose in stands.component_poses.items()}
    simulator = Simulator()
    placed = Structure(stands.graph, poses, stands.fixed, "placed")
    simulator.spawn(placed, part_ids={p: p for p in placed.graph.part_ids})
    loose = loose_bricks(whole, {1: yawed(0.42, 0.28)})
    simulator.spawn(loose, np.eye(4), part_ids={1: 1})
    (link,) = graph.connections_of(1)
    goal = InsertionGoal(1, link.stud_part, link.offset, link.yaw)
    return SimulatedWorld(simulator, one_arm(), noise), goal


def test_fingertips_keep_off_what_is_flush_with_the_gripped_side():
    """Gripped at its ends the brick comes down beyond the flush one; gripped at its sides, or at
    the ends away from both neighbours, nothing is flush with the tips."""
    world, goal = _scene(LENGTHWISE)
    seat = (1, seat_pose(world, goal))
    shape = world.graph.part(1).shape
    ends = next(g for g in grasps(shape, P) if g.width == pytest.approx(shape.size[0]))
    sides = next(g for g in grasps(shape, P) if g.width == pytest.approx(shape.size[1]))
    assert set(near(world, *seat)) == {0, 2, 3, 4}
    # Both neighbours stand on its two sides: no way across. Its end is at less y than its middle.
    apart, off = aside(world, [1], seat, (1, ends), P.side_clearance, 2.0)
    np.testing.assert_allclose(apart, [0.0, -P.side_clearance, 0.0])
    assert not off.any()  # both neighbours stand on the plate
    assert not np.any(aside(world, [1], seat, (1, sides), P.side_clearance, 2.0))
    assert edges(world, [1], seat) == pytest.approx((0.0017, 0.0096 + 0.0017))


def test_brick_comes_down_off_the_weaker_of_two_neighbors():
    """One of them hangs on two studs, 56 mm from the edge that may be landed on: it bears 0.1 N
    there, but not 2 N."""
    world, goal = _scene(ENCLOSED)
    seat = (1, seat_pose(world, goal))
    grip = (1, next(iter(grasps(world.graph.part(1).shape, P))))
    weak, gentle = (aside(world, [1], seat, grip, P.side_clearance, f) for f in (2.0, 0.1))
    assert not np.any(gentle) and not weak[0].any()
    np.testing.assert_allclose(weak[1], [0.0, -0.001, 0.0], atol=1e-9)


def test_what_hardly_bears_itself_is_not_landed_on():
    """Landed on at 10 mm/s, or run into from the gap, its foot breaks (this seed, without)."""
    world, goal = _scene(ENCLOSED, Noise.of(1.0, 2.0))
    planner = EmbeddedPlanner(one_arm(), PlanningOptions(seed=0))
    report = BrickHandler(world, planner, one_arm()[0].name).pick_and_insert(goal)
    assert report.success and report.tries == 1, report.message
    assert not [event for event in world.events if event.kind is EventKind.BROKEN]


def test_brick_between_flush_neighbors_is_inserted_with_noise():
    world, goal = _scene(LENGTHWISE, Noise.of(1.0, 2.0))
    planner = EmbeddedPlanner(one_arm(), PlanningOptions(seed=0))
    handler = BrickHandler(world, planner, one_arm()[0].name)
    ends = [g for g in grasps(world.graph.part(1).shape, P) if g.width > 0.04]
    report = handler.pick_and_insert(goal, [(1, grasp) for grasp in ends])
    assert report.success and report.tries == 1, report.message
    key = (goal.target, 1, goal.offset, goal.yaw)
    assert connections_of(world.graph, [1]) == {key}
    assert len(world.graph.connections) == 4  # nothing else came off
