# SPDX-License-Identifier: Apache-2.0
"""Picking, inserting and taking off with one arm: what works and how failures are told."""

import re
from dataclasses import replace

import numpy as np
import pytest
from arms_support import bench, yawed
from moveit_scene import FollowedScene

from bricksim_core.assembly.types import AssemblyThresholds
from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.simulator import SimulatorConfig
from bricksim_moveit_demo.connections import connections_of, expectation
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.world import Noise

BRICK = BrickShape(4, 2)
GOAL = InsertionGoal(1, 0, (4, 5), 0)


class Offset(Noise):
    """A constant error of every observed seat: exactly 2 mm and 4 degrees off."""

    def sample(self, generator):
        return yawed(0.0014, -0.0014, 0.0, 4.0)


def test_brick_is_inserted_where_it_was_asked_for():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22, 0.0, 25.0)})
    followed = FollowedScene(b.world)
    b.world.listeners.append(followed)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert report.tries == 1
    assert followed.held == [{}, {"fr3": 1}, {}]
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}
    assert report.connection_ids == tuple(c.id for c in b.world.graph.connections_of(1))
    # 12 x 12 plate at (0.5, 0): corner of the seat is 4 and 5 studs from the plate's corner.
    np.testing.assert_allclose(
        b.world.part_pose(1)[:3, 3],
        [0.5 - 0.048 + 0.032 + 0.016, -0.048 + 0.04 + 0.008, 0.0032],
        atol=1e-6,
    )
    order = [
        Stage.PLANNING,
        Stage.APPROACHING,
        Stage.GRASPING,
        Stage.LIFTING,
        Stage.TRANSFERRING,
        Stage.INSERTING,
        Stage.PRESSING,
        Stage.RELEASING,
        Stage.RETREATING,
        Stage.VERIFYING,
    ]
    assert b.stages == order
    assert report.press_force < 10.0
    assert not b.world.held


def test_search_finds_the_seat_two_millimetres_and_four_degrees_off():
    b = bench(
        {1: BRICK},
        {1: yawed(0.42, 0.22)},
        noise=Offset(),
        config=SimulatorConfig(
            assembly=AssemblyThresholds(position_tolerance=0.001, yaw_tolerance=np.radians(3.0))
        ),
    )
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}


def test_stiff_bricks_are_pressed_harder():
    """Real bricks need 15 N: the ramp goes there and no farther than needed."""
    config = SimulatorConfig(assembly=AssemblyThresholds(force=15.0))
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, config=config)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert 12.0 < report.press_force < 22.0


def test_force_limit_ends_an_insertion_that_cannot_succeed():
    config = SimulatorConfig(assembly=AssemblyThresholds(enabled=False))
    parameters = TaskParameters(tries=1, press_force=10.0, search_radius=0.001)
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, config=config, parameters=parameters)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.FORCE_LIMIT
    assert "limit 10.0 N" in report.message
    assert report.press_force < 20.0
    assert not b.world.graph.connections_of(1)


def test_press_ends_at_once_when_far_more_than_wanted_is_felt():
    """The plate comes up by half a millimetre in the middle of the press: 14 N at once."""
    config = SimulatorConfig(assembly=AssemblyThresholds(enabled=False))
    parameters = TaskParameters(tries=1, press_force=10.0)
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, config=config, parameters=parameters)
    felt = []

    def watch(_):
        if felt or (b.stages and b.stages[-1] is Stage.PRESSING):
            felt.append(b.handler.motion.controller.wrench[2])
            if len(felt) == 3:
                b.simulator.teleport(0, yawed(0.5, 0.0, 0.0005), allow_overlap=True)

    b.world.listeners.append(watch)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.FORCE_LIMIT
    assert "N along the insertion axis" in report.message and "limit 10.0 N" in report.message
    assert max(felt[:6]) > 12.0  # 1.2 times the limit
    assert max(felt[12:30]) < 1.0


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (InsertionGoal(9, 0, (4, 5), 0), "part id 9 does not exist"),
        (InsertionGoal(1, 9, (4, 5), 0), "part id 9 does not exist"),
        (InsertionGoal(1, 0, (40, 5), 0), "expected an overlap"),
        (InsertionGoal(1, 1, (0, 0), 0), "itself"),
        (InsertionGoal(0, 1, (0, 0), 0), "held by the world"),
    ],
)
def test_impossible_goals_are_refused_before_anything_moves(goal, words):
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    report = b.handler.pick_and_insert(goal)
    assert report.outcome is Outcome.INVALID_GOAL
    assert words in report.message
    assert report.duration == 0.0


def test_occupied_seat_is_refused():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.55, 0.22)})
    b.simulator.connect(0, 2, (5, 5), 0)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.INVALID_GOAL
    assert "would put part" in report.message


def test_brick_out_of_reach_is_told():
    b = bench({1: BRICK}, {1: yawed(1.3, 0.5)})
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.UNREACHABLE
    assert "no joint position puts the tool" in report.message
    assert report.duration < 0.1


def test_brick_without_room_for_fingers_is_told():
    around = {
        2: yawed(0.42, 0.2365),
        3: yawed(0.42, 0.2035),
        4: yawed(0.4525, 0.22),
        5: yawed(0.3875, 0.22),
    }
    b = bench({1: BRICK, **dict.fromkeys(around, BRICK)}, {1: yawed(0.42, 0.22), **around})
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.UNREACHABLE
    assert "no room for the fingers at the pick" in report.message


def test_gripper_that_closes_on_nothing_is_told_and_tried_again():
    """The brick is moved away behind the arm's back while it comes."""
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    moved = []

    def watch(_):
        if b.stages and b.stages[-1] is Stage.GRASPING and not moved:
            moved.append(True)
            b.simulator.teleport(1, yawed(0.55, -0.25))

    b.world.listeners.append(watch)
    report = b.handler.pick_and_insert(GOAL)
    assert report.failures[0] is Outcome.GRASP_FAILED
    assert re.match(r"gripper closed to 0\.\d mm on brick 1", report.failure_messages[0])
    assert report.success, report.message


def test_lost_brick_is_picked_again():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    moved = []

    def watch(_):
        if b.stages and b.stages[-1] is Stage.TRANSFERRING and not moved:
            moved.append(True)
            b.simulator.teleport(1, yawed(0.55, -0.25))

    b.world.listeners.append(watch)
    report = b.handler.pick_and_insert(GOAL)
    assert report.failures[0] is Outcome.BRICK_LOST
    assert report.success, report.message


def test_cancel_in_mid_press_leaves_a_safe_state():
    config = SimulatorConfig(assembly=AssemblyThresholds(force=15.0))
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, config=config)
    motion = b.handler.motion

    def watch(_):
        if b.stages and b.stages[-1] is Stage.PRESSING and motion.controller.wrench[2] > 3.0:
            b.world.listeners.clear()
            b.world.cancel()

    b.world.listeners.append(watch)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.CANCELED
    for _ in range(30):
        b.world.advance()
    assert np.linalg.norm(motion.controller.wrench[:3]) < 1.0
    assert np.abs(b.simulator.engine.joint_state("fr3").velocities).max() < 0.05


def test_cancel_while_the_gripped_brick_settles_goes_on_with_it_in_the_hand():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})

    def watch(_):
        if b.handler.motion.held == 1:
            b.world.listeners.clear()
            b.world.cancel()

    b.world.listeners.append(watch)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.CANCELED
    assert b.stages[-1] is Stage.GRASPING and b.handler.motion.held == 1
    b.stages.clear()
    report = b.handler.pick_and_insert(GOAL)
    assert report.success and report.tries == 1, report.message
    assert Stage.GRASPING not in b.stages


PLACE = yawed(0.45, -0.25)


@pytest.mark.parametrize(
    ("go_on", "place"),
    [
        (lambda handler: handler.take_off(1, place=PLACE), PLACE),
        (lambda handler: handler.pick_and_insert(GOAL), None),
        (lambda handler: handler.pick_and_insert(replace(GOAL, part=2)), None),
    ],
    ids=["put down", "put on again", "another one"],
)
def test_goals_go_on_with_a_brick_that_a_canceled_task_took_off(go_on, place):
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.52, 0.22)})
    b.simulator.connect(0, 1, (2, 3), 0)

    def watch(_):
        if not b.world.graph.connections_of(1):
            b.world.listeners.clear()
            b.world.cancel()

    b.world.listeners.append(watch)
    assert b.handler.take_off(1).outcome is Outcome.CANCELED
    assert b.handler.motion.held == 1
    report = go_on(b.handler)
    assert report.success and report.tries == 1, (report.message, report.failure_messages)
    assert b.handler.motion.held is None
    if place is not None:
        np.testing.assert_allclose(b.world.part_pose(1)[:3, 3], place[:3, 3], atol=2e-3)


def test_time_limit():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, parameters=TaskParameters(timeout=3.0))
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.TIMEOUT
    assert report.duration < 10.0


@pytest.mark.parametrize("method", ["lift", "twist"])
def test_brick_is_taken_off_and_put_on_the_table(method):
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    made = b.simulator.connect(0, 1, (4, 5), 0)
    followed = FollowedScene(b.world)
    b.world.listeners.append(followed)
    report = b.handler.take_off(1, method)
    assert report.success, (report.message, report.failure_messages)
    assert followed.held == [{}, {"fr3": 1}, {}]
    assert report.connection_ids == tuple(c.id for c in made)
    assert not b.world.graph.connections_of(1)
    pose = b.world.part_pose(1)
    assert abs(pose[2, 3]) < 1e-3
    assert np.abs(pose[:2, 3] - [0.5, 0.0]).max() > 0.06


def test_covered_brick_cannot_be_taken_off():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.55, 0.22)})
    b.simulator.connect(0, 1, (4, 5), 0)
    b.simulator.connect(1, 2, (0, 0), 0)
    report = b.handler.take_off(1)
    assert report.outcome is Outcome.INVALID_GOAL
    assert "bricks [2] stand on brick 1" in report.message


def test_expectation_counts_closing_connections():
    b = bench({1: BRICK, 2: BRICK, 3: BRICK}, {i: yawed(0.42, 0.2 + 0.05 * i) for i in (1, 2, 3)})
    b.simulator.connect(0, 1, (2, 5), 0)
    b.simulator.connect(0, 2, (6, 5), 0)
    wanted = expectation(b.world.graph, InsertionGoal(3, 1, (2, 0), 0))
    assert wanted.connections == {(1, 3, (2, 0), 0), (2, 3, (-2, 0), 0)}
    assert not wanted.is_met(b.world.graph)


def test_parameters_are_checked():
    with pytest.raises(TaskError, match="parameter press_force is -1"):
        TaskParameters(press_force=-1.0)


def test_what_lies_on_the_load_comes_along_and_what_stands_beside_it_does_not():
    """A brick that came off lies on the studs; one beside the load, as high as its top, stays an
    obstacle."""
    top = 0.0096
    poses = {
        1: yawed(0.4, 0.3),
        2: yawed(0.4, 0.304, top + STUD_HEIGHT),
        3: yawed(0.4162, 0.3, top),
    }
    shapes = {1: BrickShape(2, 2, 3), 2: BrickShape(2, 1, 3), 3: BrickShape(2, 2, 3)}
    world = bench(shapes, poses).world
    world.held["fr3"] = 1
    scene = world.planning_scene()
    assert set(scene.attached["fr3"]) == {"brick_1", "brick_2"}
    assert "brick_3" in scene.objects
