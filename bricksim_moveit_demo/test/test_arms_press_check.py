# SPDX-License-Identifier: Apache-2.0
"""Before a press: does what stands there bear it, and how hard may it be?"""

import numpy as np
import pytest
from arms_support import bench, yawed

from bricksim_core.assembly.types import AssemblyThresholds
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import SimulatorConfig
from bricksim_moveit_demo.connections import connections_of, expectation
from bricksim_moveit_demo.description import two_arms
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.inserting import InsertionTask, bearable, bearing_holds
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.presscheck import PressCheck
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.world import Noise

BRICK = BrickShape(4, 2)
ON_TOP = InsertionGoal(5, 4, (-2, 0), 0)


def _stair(steps, **more):
    """Bricks on the plate, each two studs nearer to the arm; one more lies on the table."""
    ids = range(1, steps + 1)
    poses = {part: yawed(0.3 + 0.05 * part, 0.3) for part in ids}
    poses[steps + 1] = yawed(0.42, -0.22)
    b = bench(dict.fromkeys(poses, BRICK), poses, **more)
    b.simulator.connect(0, 1, (7, 5), 0)
    for part in ids[:-1]:
        b.simulator.connect(part, part + 1, (-2, 0), 0)
    return b


def _check(b, goal):
    wanted = expectation(b.world.graph, goal)
    return PressCheck(b.world, wanted.parts, {goal.part}, wanted.connections)


@pytest.mark.parametrize("force", [0.5, 2.0, 5.0, 12.0])
def test_verdict_is_that_of_analyze_with_the_same_load(force):
    """The press at the outer rim of the engaged studs, the worst place, computed by hand."""
    b = _stair(4)
    structure = b.simulator.structure().without([5])
    com = BRICK.com
    arm = np.array([-0.012 - 0.0024, 0.0, 0.0096]) - com
    push = np.array([0.0, 0.0, -force])
    load = {4: 1.2 * np.concatenate([push, np.cross(arm, push)])}  # with its margin
    bears = analyze(structure, loads=load, limit=False).stable
    verdict = _check(b, ON_TOP).verdict(force, force)
    assert (verdict.force == force) == bears
    assert bool(verdict.reason) != bears


def test_greatest_force_lies_where_analyze_changes_its_mind():
    check = _check(_stair(4), ON_TOP)
    found = check.verdict(0.01, 25.0)
    assert 0.01 < found.force < 25.0
    assert "times its capacity" in found.reason
    assert check.verdict(found.force, found.force).force == found.force
    beyond = found.force + 0.2
    assert check.verdict(beyond, beyond).force == 0.0


@pytest.mark.parametrize(("place", "good"), [(-0.012, True), (0.0, False)])
def test_push_back_counts_as_a_load_that_lags_or_runs_ahead(place, good):
    """Press at the outer rim, pushed back by five sixths; at the inner rim, by six fifths."""
    b = _stair(4)
    structure = b.simulator.structure().without([5])
    force, com = 2.25, BRICK.com
    point = b.world.part_pose(4) @ [place, 0.0, 0.0, 1.0]

    def load(x, size):
        push = np.array([0.0, 0.0, size])
        return np.concatenate([push, np.cross(np.array([x, 0.0, 0.0]) - com, push)])

    def bears(x, press, push):
        loads = {4: load(x, -press * force) + load(place, push * force)}
        return analyze(structure, loads=loads, limit=False).stable

    rims = (-0.0144, -0.008, -0.0016)
    expected = all(bears(x, 1.2, 1.0) and bears(x, 1.0, 1.2) for x in rims)
    assert expected == good
    check = _check(b, ON_TOP)
    assert check.lower_parts == [4]
    np.testing.assert_allclose(check.middle, b.world.part_pose(4)[:3, 3] + [-0.008, 0.0, 0.0096])
    assert check.verdict(force, force).force == 0.0
    assert (check.pushed(4, point[:3]).verdict(force, force).force == force) == good


def test_press_that_would_break_what_is_there_is_refused_before_anything_moves():
    b = _stair(4)
    report = b.handler.pick_and_insert(ON_TOP)
    assert report.outcome is Outcome.STRUCTURE_UNSTABLE
    assert "pressing brick 5 on with 2.0 N would break what is there" in report.message
    assert report.duration == 0.0


def test_group_is_held_at_the_part_that_bears_the_press():
    """The press acts on the lower brick and, beside it, on the upper one: held at the lower one
    the joint between both would break."""
    small, square = BrickShape(2, 1), BrickShape(2, 2)
    poses = {part: yawed(0.3 + 0.05 * part, 0.3) for part in (1, 2, 3, 4)}
    b = bench({1: small, 2: small, 3: square, 4: square}, poses)
    b.simulator.connect(0, 1, (5, 5), 0)
    b.simulator.connect(1, 2, (2, 0), 1)
    b.simulator.connect(3, 4, (1, 0), 0)
    goal = InsertionGoal(3, 1, (-1, 0), 0)
    job = InsertionTask(goal, expectation(b.world.graph, goal))
    assert {key[:2] for key in job.wanted.connections} == {(1, 3), (2, 4), (3, 4)}
    with pytest.raises(TaskError, match="would break what is there"):
        bearable(b.handler.hand, job, {3})
    assert bearing_holds(b.handler.hand, job) == {frozenset({4})}


def test_each_of_two_bricks_between_the_fingers_has_to_bear_the_press_alone():
    """One of them hangs by one stud, the other one by eight."""
    shapes = {1: BrickShape(6, 2), 2: BRICK, 3: BRICK}
    b = bench(shapes, {1: yawed(0.45, 0.25), 2: yawed(0.3, 0.25), 3: yawed(0.6, 0.25)})
    b.simulator.connect(1, 2, (1, 0), 0)
    b.simulator.connect(1, 3, (1, -3), 1)
    wanted = expectation(b.world.graph, InsertionGoal(1, 0, (4, 5), 0))

    def bearable(*between):
        return PressCheck(b.world, wanted.parts, between, wanted.connections).verdict(0.01, 25.0)

    weak, firm = bearable(3).force, bearable(2).force
    assert weak < 0.5 * firm
    assert bearable(2, 3).force == weak


def _gangway(tip):
    """A column and, beside it, one that carries a long brick whose end bears hardly any press: the
    next brick goes onto both. Bench and goal.

    Args:
        tip: How far the long brick reaches out over its column [studs].
    """
    square = BrickShape(2, 2)
    poses = {part: yawed(0.3 + 0.07 * part, 0.3) for part in (1, 2, 3, 4)}
    poses[5] = yawed(0.42, -0.22)
    b = bench(
        {1: square, 2: square, 3: square, 4: BrickShape(8, 2), 5: BrickShape(6, 2)},
        poses,
        noise=Noise.of(1.0, 2.0),
    )
    b.simulator.connect(0, 1, (1, 4), 0)
    b.simulator.connect(1, 2, (0, 0), 0)
    b.simulator.connect(0, 3, (10, 4), 0)
    b.simulator.connect(3, 4, (-tip, 0), 0)
    return b, InsertionGoal(5, 2, (0, 0), 0)


@pytest.mark.parametrize("tip", [5, 6])
def test_brick_comes_down_first_where_the_press_is_borne(tip):
    """By `analyze`: 2.4 N on the studs at the end break the long brick's joint, on the column they
    do not."""
    b, goal = _gangway(tip)
    check, structure = _check(b, goal), b.simulator.structure().without([5])
    poses = structure.part_poses()
    column = poses[2][:3, 3] + [0.0, 0.0, 0.0096]
    end = poses[4][:3, 3] + [-0.032 + 0.004 * (tip - 3), 0.0, 0.0096]
    for part, place, bears in ((2, column, True), (4, end, False)):
        com = (poses[part] @ [*structure.graph.part(part).shape.com, 1.0])[:3]
        push = np.array([0.0, 0.0, -2.4])
        load = {part: np.concatenate([push, np.cross(place - com, push)])}
        assert analyze(structure, loads=load, limit=False).stable == bears
    first = check.first(2.0)
    assert first is not None
    np.testing.assert_allclose(first, column, atol=1e-9)


def test_press_is_met_by_the_joint_that_bears_it_alone():
    """1 N connects. Level, the brick needs 1.6 N, as both joints share it, and breaks the weak one
    where it comes down there first."""
    b, goal = _gangway(5)
    report = b.handler.pick_and_insert(goal)
    assert report.success and report.tries == 1, report.message
    assert report.press_force < 1.2
    assert {key[:2] for key in connections_of(b.world.graph, [5])} == {(2, 5), (4, 5)}


def test_brick_that_each_joint_bears_comes_down_level():
    square = BrickShape(2, 2)
    poses = {part: yawed(0.3 + 0.07 * part, 0.3) for part in (1, 2, 3)}
    b = bench({1: square, 2: square, 3: BrickShape(6, 2)}, poses)
    b.simulator.connect(0, 1, (2, 4), 0)
    b.simulator.connect(0, 2, (6, 4), 0)
    check = _check(b, InsertionGoal(3, 1, (0, 0), 0))
    assert check.lower_parts == [1, 2]
    assert check.first(2.0) is None


def _overhang(force, **more):
    """A column of five bricks, on it three, each two studs farther out, and one to be pressed on
    with a force [N]; what stands there bears 0.8 N. Bench and goal."""
    config = SimulatorConfig(assembly=AssemblyThresholds(force=force))
    tower, top = 5, 8
    poses = {part: yawed(0.3 + 0.06 * part, 0.36) for part in range(1, top + 1)}
    poses[top + 1] = yawed(0.6, -0.22)
    shapes = dict.fromkeys(poses, BRICK)
    noise = Noise.of(0.5, 1.0)
    b = bench(shapes, poses, config=config, arms=two_arms(), noise=noise, seed=1, **more)
    b.simulator.connect(0, 1, (6, 5), 3)
    for part in range(1, top):
        b.simulator.connect(part, part + 1, (0, 0) if part < tower else (-2, 0), 0)
    return b, InsertionGoal(top + 1, top, (-2, 0), 0)


def test_second_arm_pushes_back_where_the_structure_does_not_bear_the_press():
    """Bricks that connect at 1.9 N, on an overhang that bears 0.8 N."""
    b, goal = _overhang(1.9)
    assert b.helper is not None
    top = goal.target
    before = connections_of(b.world.graph, range(top + 1))
    assert b.helper.pick_and_insert(goal).outcome is Outcome.STRUCTURE_UNSTABLE
    pushes = []
    b.world.listeners.append(lambda _: pushes.append(-b.world.arms["left"].wrench[2]))
    report = b.helper.pick_and_insert(goal, others=[b.handler])
    assert report.success, report.message
    assert report.tries == 1
    assert report.press_force > 1.7
    assert max(pushes) > report.press_force / 1.2
    assert connections_of(b.world.graph, range(top + 2)) == before | {(top, top + 1, (-2, 0), 0)}
    assert not b.world.held


def test_second_arm_lets_go_when_the_first_one_is_canceled_and_the_same_goal_goes_on():
    b, goal = _overhang(1.9)
    presser, helper = b.helper, b.handler
    assert presser is not None
    pushing = []

    def press_begins(_):
        if "left" in b.world.held and presser.hand.stage is Stage.PRESSING:
            pushing.append(helper.motion.controller.measured_tool[:3, 3])
            b.world.listeners.clear()
            b.world.cancel()

    b.world.listeners.append(press_begins)
    before = connections_of(b.world.graph, range(goal.part))
    assert presser.pick_and_insert(goal, others=[helper]).outcome is Outcome.CANCELED
    assert b.world.held == {"right": goal.part}
    assert helper.motion.controller.width > 0.02  # the brick has 16 mm
    moved = np.linalg.norm(helper.motion.controller.measured_tool[:3, 3] - pushing[0])
    assert moved == pytest.approx(0.03, abs=0.003)
    assert connections_of(b.world.graph, range(goal.part)) == before

    # The brick over its seat stands where the second hand has to go.
    report = presser.pick_and_insert(goal, others=[helper])
    assert report.success, report.message
    added = {(goal.target, goal.part, (-2, 0), 0)}
    assert connections_of(b.world.graph, range(goal.part + 1)) == before | added


def test_press_stays_below_what_the_structure_bears():
    """Bricks that need more than that are not pressed in; nothing breaks."""
    config = SimulatorConfig(assembly=AssemblyThresholds(force=15.0))
    b = _stair(
        2,
        config=config,
        parameters=TaskParameters(tries=1, search_radius=0.0005, least_press_force=1.0),
    )
    goal = InsertionGoal(3, 2, (-2, 0), 0)
    before = connections_of(b.world.graph, [0, 1, 2])
    bound = _check(b, goal).verdict(1.0, 25.0).force
    assert 1.0 < bound < 15.0
    report = b.handler.pick_and_insert(goal)
    assert report.outcome is Outcome.FORCE_LIMIT
    assert "more would break what is there" in report.message
    assert report.press_force < bound + 1.5
    assert connections_of(b.world.graph, [0, 1, 2]) == before
