# SPDX-License-Identifier: Apache-2.0
"""What a knock does to bricks and structures while an arm is at work, and what the arm makes of it.

The world is perturbed through the simulator while it runs.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from arms_support import bench, yawed

from bricksim_core.events import EventKind
from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_moveit_demo.connections import connections_of, expectation
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.grasps import grasps, hand_boxes, lifting_grasps, turning_grasps
from bricksim_moveit_demo.inserting import InsertionTask
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.placing import put_down
from bricksim_moveit_demo.recovering import recover
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.world import Noise

BRICK = BrickShape(4, 2)
GOAL = InsertionGoal(1, 0, (4, 5), 0)
NOISE = Noise.of(1.0, 2.0)


def _turned(pose, axis, degrees, height):
    """A pose turned about an axis of its own, its origin at a height."""
    sine, cosine = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    rotation = {
        "x": [[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]],
        "y": [[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]],
    }[axis]
    turned = pose.copy()
    turned[:3, :3] = pose[:3, :3] @ np.array(rotation)
    turned[2, 3] = height
    return turned


def test_brick_that_lies_upside_down_is_turned_twice_and_inserted():
    lying = _turned(yawed(0.42, 0.22, 0.0, 30.0), "x", 180.0, 0.0114)
    b = bench({1: BRICK}, {1: lying}, noise=NOISE)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}
    assert Stage.RECOVERING in b.stages


def test_brick_on_its_end_has_grasps_that_turn_it():
    """Pads on two opposite sides, hand leaning by as much before and after, above the table."""
    for axis, degrees, height in (("y", -90.0, 0.016), ("x", 90.0, 0.008), ("x", 180.0, 0.0114)):
        lying = _turned(yawed(0.4, 0.2, 0.0, 70.0), axis, degrees, height)
        turns = list(turning_grasps(BRICK, lying, TaskParameters()))
        assert turns
        for turn in turns:
            before = lying @ turn.grasp.part_T_tool
            after = turn.rest @ turn.grasp.part_T_tool
            # The fingers close along a horizontal axis: the brick turns about it by a quarter.
            assert abs(before[2, 1]) < 1e-9 and abs(after[2, 1]) < 1e-9
            tilts = [np.arccos(-pose[2, 2]) for pose in (before, after)]
            assert sum(tilts) == pytest.approx(np.pi / 2)
            for pose in (before, after):
                for tip in hand_boxes(turn.grasp.width)[0::2][:2]:
                    box = pose @ tip.pose
                    lowest = box[2, 3] - np.abs(box[2, :3]) @ (0.5 * np.array(tip.size))
                    assert lowest >= TaskParameters().table_clearance - 1e-6
    assert not list(turning_grasps(BRICK, yawed(0.4, 0.2), TaskParameters()))
    leaning = _turned(yawed(0.4, 0.2), "x", 40.0, 0.01)
    assert not list(turning_grasps(BRICK, leaning, TaskParameters()))


@pytest.mark.parametrize(
    ("axis", "degrees"), [("x", 40.0), ("x", 120.0), ("y", 20.0), ("y", -65.0)]
)
def test_brick_that_leans_is_taken_from_above_and_let_fall_onto_a_face(axis, degrees):
    leaning = _turned(yawed(0.4, 0.2, 0.0, 70.0), axis, degrees, 0.02)
    turns = list(lifting_grasps(BRICK, leaning, TaskParameters()))
    assert turns
    half = 0.5 * np.array(BRICK.size)
    corners = half * np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    corners[:, 2] += half[2]
    corners[corners[:, 2] > half[2], 2] += STUD_HEIGHT
    for turn in turns:
        heights = (corners @ turn.rest[:3, :3].T + turn.rest[:3, 3])[:, 2]
        assert heights.min() == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(turn.rest[2, :3], leaning[2, :3], atol=1e-12)
        tool = turn.rest @ turn.grasp.part_T_tool
        assert abs(tool[2, 1]) < 1e-9 and tool[2, 2] < -0.95
        for tip in hand_boxes(turn.grasp.width)[0::2][:2]:
            box = tool @ tip.pose
            lowest = box[2, 3] - np.abs(box[2, :3]) @ (0.5 * np.array(tip.size))
            assert lowest >= TaskParameters().table_clearance - 1e-6
    assert not list(lifting_grasps(BRICK, yawed(0.4, 0.2), TaskParameters()))


def test_target_that_lies_on_its_side_is_set_upright_before_it_is_pressed_on():
    lying = _turned(yawed(0.42, 0.22), "x", 90.0, 0.008)
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, -0.22), 2: lying}, noise=NOISE)
    report = b.handler.pick_and_insert(InsertionGoal(1, 2, (2, 0), 0))
    assert report.success, report.message
    assert connections_of(b.world.graph, [1]) == {(2, 1, (2, 0), 0)}


def test_brick_is_regrasped_where_no_grasp_fits_pick_and_seat():
    """Its ends are hidden where it lies, its sides where it goes."""
    ends = {2: yawed(0.4535, 0.22), 3: yawed(0.3865, 0.22)}
    poses = {1: yawed(0.42, 0.22), **ends, 4: yawed(0.55, -0.22), 5: yawed(0.55, 0.3)}
    shapes = {part: BRICK if part < 4 else BrickShape(2, 2) for part in poses}
    b = bench(shapes, poses)
    b.simulator.connect(0, 4, (5, 3), 0)
    b.simulator.connect(0, 5, (5, 7), 0)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert report.tries == 1
    assert b.stages.count(Stage.GRASPING) == 2


def _once(b, stage, act, above=0.0):
    """Does something in the first step of a stage in which the hand is above a height."""
    done = []

    def watch(_):
        now = b.stages and b.stages[-1] is stage and b.handler.motion.tool[2, 3] > above
        if now and not done:
            done.append(True)
            act()

    b.world.listeners.append(watch)


def test_brick_on_a_wrong_seat_is_taken_off_and_picked_again():
    """Somebody moves it two studs on while the hand moves away."""
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})

    def move():
        b.simulator.disconnect([c.id for c in b.world.graph.connections_of(1)])
        b.simulator.connect(0, 1, (6, 5), 0)

    _once(b, Stage.RETREATING, move, above=0.035)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert report.failures[0] is Outcome.WRONG_CONNECTION
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}


def test_group_on_a_wrong_seat_is_pulled_off_and_put_on_again():
    """Somebody moves two bricks that hang together two studs on while the hand moves away."""
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    b.simulator.connect(1, 2, (0, 0), 0)

    def move():
        seated = [c.id for c in b.world.graph.connections_of(1) if c.stud_part == 0]
        b.simulator.disconnect(seated)
        b.simulator.connect(0, 1, (6, 5), 0)

    _once(b, Stage.RETREATING, move, above=0.045)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert report.failures[0] is Outcome.WRONG_CONNECTION
    assert connections_of(b.world.graph, [1, 2]) == {(0, 1, (4, 5), 0), (1, 2, (0, 0), 0)}


def test_what_breaks_loose_elsewhere_is_put_back():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    b.simulator.connect(0, 2, (4, 9), 0)

    def knock():
        b.simulator.disconnect([c.id for c in b.world.graph.connections_of(2)])
        b.simulator.teleport(2, yawed(0.45, -0.25))

    _once(b, Stage.INSERTING, knock)
    report = b.handler.pick_and_insert(GOAL)
    assert report.success, report.message
    assert report.failures == (Outcome.STRUCTURE_BROKE,)
    assert "(0, 2, (4, 9), 0)" in report.failure_messages[0]
    assert connections_of(b.world.graph, [1, 2]) == {(0, 1, (4, 5), 0), (0, 2, (4, 9), 0)}


def test_break_that_cannot_be_mended_ends_in_a_clean_stop():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    b.simulator.connect(0, 2, (4, 9), 0)
    _once(b, Stage.INSERTING, lambda: b.simulator.remove([2]))
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.STRUCTURE_BROKE
    assert "putting it back failed: part id 2 does not exist" in report.message
    assert not b.world.held


def test_brick_that_vanishes_is_missing():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    _once(b, Stage.APPROACHING, lambda: b.simulator.remove([1]))
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.BRICK_MISSING
    assert "1" in report.message


def test_gripper_that_does_not_close_is_told():
    """Something keeps the fingers apart."""
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)}, parameters=TaskParameters(tries=1))
    fingers = dict.fromkeys(b.handler.motion.arm.fingers, 0.02)
    b.simulator.before_substep.append(lambda: b.simulator.engine.set_joint_targets("fr3", fingers))
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome in (Outcome.GRASP_FAILED, Outcome.CONTROLLER_FAILED)
    assert "gripper" in report.message
    assert not b.world.held


@pytest.mark.parametrize("stage", [Stage.GRASPING, Stage.TRANSFERRING, Stage.RETREATING])
def test_canceled_task_leaves_a_state_from_which_the_next_one_goes_on(stage):
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    _once(b, stage, b.world.cancel)
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.CANCELED
    for _ in range(20):
        b.world.advance()
    speeds = b.simulator.engine.joint_state("fr3").velocities
    assert np.abs(speeds).max() < 0.02
    again = b.handler.pick_and_insert(GOAL)
    assert again.success, again.message
    assert connections_of(b.world.graph, [1]) == {(0, 1, (4, 5), 0)}


def _canceled(b, goal, stage, above=0.0):
    """Cancels an insertion in a stage."""
    _once(b, stage, b.world.cancel, above)
    report = b.handler.pick_and_insert(goal)
    b.world.listeners.clear()
    b.world.forget_cancel()
    assert report.outcome is Outcome.CANCELED


def test_hand_that_was_canceled_around_a_seated_brick_lets_go_for_the_next_task():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    _canceled(b, GOAL, Stage.RELEASING)
    assert b.world.is_fixed(1) and b.handler.motion.held == 1
    report = b.handler.pick_and_insert(InsertionGoal(2, 0, (4, 1), 0))
    assert report.success, report.message
    assert connections_of(b.world.graph, [1, 2]) == {(0, 1, (4, 5), 0), (0, 2, (4, 1), 0)}


def test_canceled_release_is_finished_when_the_same_goal_comes_again():
    b = bench({1: BRICK}, {1: yawed(0.42, 0.22)})
    _canceled(b, GOAL, Stage.RELEASING)
    assert b.handler.motion.held == 1
    assert b.handler.pick_and_insert(GOAL).success
    assert b.handler.motion.held is None


def test_brick_in_the_hand_is_put_down_before_another_one_is_taken_off():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    b.simulator.connect(0, 2, (4, 9), 0)
    _canceled(b, GOAL, Stage.TRANSFERRING, above=0.08)
    assert b.handler.motion.held == 1
    fastest = [0.0]

    def watch(_):
        if b.handler.motion.held != 1:
            fastest.append(float(np.linalg.norm(b.simulator.part_twist(1)[:3])))

    b.world.listeners.append(watch)
    report = b.handler.take_off(2)
    assert report.success, report.message
    assert max(fastest) < 0.2  # it was not dropped


SQUARE = BrickShape(2, 2)


def _tower(b, top: int) -> None:
    """Stacks bricks 1, 2 ... on the plate."""
    b.simulator.connect(0, 1, (4, 4), 0)
    for upper in range(2, top + 1):
        b.simulator.connect(upper - 1, upper, (0, 0), 0)


@pytest.mark.parametrize("method", ["lift", "twist"])
def test_the_top_of_a_tower_comes_off_alone(method):
    ids = range(1, 5)
    b = bench(dict.fromkeys(ids, SQUARE), {i: yawed(0.3 + 0.1 * i, 0.3) for i in ids})
    _tower(b, 4)
    told = []
    b.world.listeners.append(lambda result: told.extend(result.events))
    report = b.handler.take_off(4, method)
    assert report.success and report.tries == 1, (report.message, report.failure_messages)
    assert len(b.world.graph.connections) == 3
    (broken,) = [event for event in told if event.kind is EventKind.BROKEN]
    if method == "lift":
        # Pulled straight and slowly, it is not torn off: what stands below bears as much.
        assert broken.utilization < 1.2
    # And it is put back onto the same studs, which hold.
    report = b.handler.pick_and_insert(InsertionGoal(4, 3, (0, 0), 0))
    assert report.success and report.tries == 1, (report.message, report.failure_messages)
    for _ in range(30):
        b.world.advance()
    assert len(b.world.graph.connections) == 4


def test_what_comes_along_is_told():
    """Two bricks joined by eight studs on a plate that holds them by one: that lets go first."""
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.55, 0.22)})
    b.simulator.connect(0, 1, (11, 11), 0)
    b.simulator.connect(1, 2, (0, 0), 0)
    report = b.handler.take_off(2)
    assert report.outcome is Outcome.STRUCTURE_BROKE
    assert "(0, 1, (11, 11), 0)" in report.message
    assert not b.world.is_fixed(2)


def test_nothing_is_pulled_off_what_nothing_holds():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.55, 0.22)})
    b.simulator.connect(1, 2, (0, 0), 0)
    report = b.handler.take_off(2)
    assert report.outcome is Outcome.FORCE_LIMIT and report.duration == 0.0
    assert "nothing holds" in report.message
    report = b.handler.take_off(2, "twist")
    assert report.outcome is Outcome.FORCE_LIMIT
    assert "comes along" in report.message
    assert len(b.world.graph.connections) == 1


def test_a_brick_that_vanishes_from_the_hand_is_forgotten():
    b = bench({1: BRICK, 2: BRICK}, {1: yawed(0.42, 0.22), 2: yawed(0.6, 0.22)})
    _once(b, Stage.TRANSFERRING, lambda: b.simulator.remove([1]))
    report = b.handler.pick_and_insert(GOAL)
    assert report.outcome is Outcome.BRICK_MISSING
    report = b.handler.pick_and_insert(replace(GOAL, part=2))
    assert report.success, report.message


@pytest.mark.parametrize("steps", [3, 4])
def test_after_failed_presses_only_what_stands_is_put_down(steps):
    """A stair of four bricks falls over on the table, one of three stands."""
    shapes = dict.fromkeys(range(1, steps + 1), BRICK)
    poses = {part: yawed(0.5, -0.3 - 0.1 * part) for part in shapes}
    poses[1] = yawed(0.45, 0.25, 0.0, 90.0)
    b = bench(shapes, poses)
    for part in range(1, steps):
        b.simulator.connect(part, part + 1, (2, 0), 0)
    b.simulator.hold_fixed(1, True)
    hand = b.handler.hand
    options = ((1, grasp) for grasp in grasps(BRICK, hand.parameters))
    choice = hand.chooser.choose(options, hand.locate)
    hand.reach(choice)
    hand.close(1, choice.grasp)
    b.simulator.hold_fixed(1, False)
    hand.lift()
    hand.attempt = 2
    recover(hand, InsertionTask(GOAL, expectation(b.world.graph, GOAL)))
    assert hand.motion.held == (1 if steps == 4 else None)
    if steps == 4:
        with pytest.raises(TaskError, match="fall over"):
            put_down(hand)
    assert len(b.world.graph.connections) == steps - 1
