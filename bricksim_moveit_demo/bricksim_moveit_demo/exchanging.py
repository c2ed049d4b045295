# SPDX-License-Identifier: Apache-2.0
"""What two hands do with each other: making room, taking a brick over."""

from __future__ import annotations

import numpy as np

from bricksim_moveit_demo.description import READY
from bricksim_moveit_demo.errors import PlanningError
from bricksim_moveit_demo.grasps import Grasp
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.reports import Stage

_THERE = 0.02
"""Distance from the ready pose [rad] within which an arm stands there."""


def stand_back(hand: Hand) -> None:
    """Moves an arm that holds nothing to its ready pose, where another one has room to work.

    Raises:
        TaskError: It cannot get there.
    """
    motion = hand.motion
    if motion.held is not None:
        return
    if np.abs(motion.controller.reference.positions - READY).max() < _THERE:
        return
    try:
        motion.go_to_joints([np.array(READY)])
    except PlanningError:
        # A task that failed may have left the hand among bricks.
        hand.clear_off()
        motion.go_to_joints([np.array(READY)])


def take(hand: Hand, part_id: int, grasp: Grasp, giver: Hand) -> None:
    """Takes a brick out of another arm's gripper.

    Args:
        hand: The arm that takes it.
        part_id: The brick, held by the other arm in free space.
        grasp: How to take it.
        giver: The arm that holds it; it lets go and moves back.

    Raises:
        TaskError: The place cannot be reached or the gripper did not close on the brick.
    """
    p, motion, world = hand.parameters, hand.motion, hand.world
    hand.enter(Stage.APPROACHING)
    motion.move_gripper(hand.chooser.opening(grasp), p.grip_force)
    tool = world.observe(world.part_pose(part_id)) @ grasp.part_T_tool
    before = tool.copy()
    before[:3, 3] -= 2.0 * p.approach_height * tool[:3, 2]
    near = motion.touching(giver.motion.carried())
    scene = world.planning_scene()
    motion.go_to_joints([hand.chooser.line_start(scene, scene.allowing(near), before, tool)])
    scene = world.planning_scene().allowing(near)
    motion.go_straight([tool], p.approach_speed, scene, p.collision_force)
    hand.enter(Stage.GRASPING)
    # Both hands on one brick: the one that gives yields, so that they do not pull at it.
    giver.motion.controller.give_way(True)
    hand.close(part_id, grasp)
    hand.look_at_grip()
    giver.let_go()
