# SPDX-License-Identifier: Apache-2.0
"""What is joined in one hand is taken in another grip before a press breaks it."""

import pytest
from arms_support import bench, yawed

from bricksim_core.events import EventKind
from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_moveit_demo.aloft import Join
from bricksim_moveit_demo.building import Insertion, StructureBuilder
from bricksim_moveit_demo.connections import connections_of
from bricksim_moveit_demo.description import two_arms
from bricksim_moveit_demo.errors import Outcome
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, grasps
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.reports import InsertionGoal
from bricksim_moveit_demo.world import Noise

LOW, HIGH = 1, 2
ONTO_LOW = InsertionGoal(HIGH, LOW, (2, 0), 0)
ONTO_PLATE = InsertionGoal(LOW, 0, (4, 5), 0)
"""A step of two studs, put onto the plate as one."""


def _table(least_press_force, low=(0.5, 0.25)):
    shapes = {LOW: BrickShape(4, 2), HIGH: BrickShape(4, 2)}
    poses = {LOW: yawed(*low), HIGH: yawed(0.5, -0.25)}
    return bench(
        shapes,
        poses,
        arms=two_arms(),
        noise=Noise.of(1.0, 2.0),
        parameters=TaskParameters(least_press_force=least_press_force),
    )


@pytest.mark.parametrize(("force", "exchanged"), [(2.0, False), (4.0, True)])
def test_the_other_hand_holds_what_would_break_under_the_press(force, exchanged):
    """Held at the upper brick, its joint bears 0.054 N m: 2 N with their margin, 14 mm beside its
    edge, but not 4 N. The new grip leaves room to the studs below for a load that sags."""
    scene = _table(force)
    assert scene.helper is not None
    arms = {h.motion.arm.name: h for h in (scene.handler, scene.helper)}
    held, tips = set(), []

    def watch(_):
        held.update(scene.world.held.items())
        hand = scene.handler.hand
        if hand.motion.held == LOW and hand.grasp is not None:
            tips.append(hand.grasp.part_T_tool[2, 3] - TIP_BEYOND_TOOL)

    scene.world.listeners.append(watch)
    steps = [Insertion(ONTO_LOW, (), release=False), Insertion(ONTO_PLATE, ())]
    summary = StructureBuilder(scene.world, arms).build(steps)
    assert summary.success, summary.message
    first, second = arms
    assert ((second, LOW) in held or (second, HIGH) in held) == exchanged
    assert ((first, LOW) in held) == exchanged
    assert all(end > STUD_HEIGHT + 0.001 for end in tips)
    assert len(connections_of(scene.world.graph, [LOW, HIGH])) == 2
    assert all(event.kind is not EventKind.BROKEN for event in scene.world.events)


def test_brick_out_of_reach_is_brought_before_anything_is_joined():
    scene = _table(2.0, low=(0.85, 0.35))
    assert scene.helper is not None
    joins = [Join(ONTO_LOW), Join(ONTO_PLATE)]
    report = scene.handler.lay_ready(joins, [scene.helper])
    assert report.success, report.message
    assert scene.world.part_pose(LOW)[0, 3] < 0.75


def test_single_brick_in_the_other_hand_is_put_down_and_picked_from_there():
    scene = _table(2.0, low=(0.55, 0.25))
    hand, helper = scene.handler, scene.helper
    assert helper is not None

    def watch(_):
        if helper.motion.held == LOW and scene.world.part_pose(LOW)[2, 3] > 0.03:
            scene.world.listeners.clear()
            scene.world.cancel()

    scene.world.listeners.append(watch)
    assert helper.pick_and_insert(ONTO_PLATE).outcome is Outcome.CANCELED
    assert helper.motion.held == LOW
    report = hand.pick_and_insert(ONTO_PLATE, others=[helper])
    assert report.success and report.tries == 1, (report.message, report.failure_messages)
    assert helper.motion.held is None


def test_brick_out_of_reach_is_brought_while_the_other_hand_holds_what_goes_onto_it():
    scene = _table(2.0, low=(0.85, 0.35))
    hand, helper = scene.handler, scene.helper
    assert helper is not None
    hand.pick(HIGH, grasps(BrickShape(4, 2), hand.parameters))
    report = hand.pick_and_insert(ONTO_LOW, release=False, others=[helper])
    assert report.success and report.tries == 1, (report.message, report.failure_messages)
    assert scene.world.held == {hand.motion.arm.name: HIGH}
    assert len(connections_of(scene.world.graph, [HIGH])) == 1
