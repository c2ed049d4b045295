# SPDX-License-Identifier: Apache-2.0
"""Taking a brick off a structure: pulled straight up, or tilted about an edge first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.connections import (
    connections_to_others,
    relative_pose,
)
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, Grasp, grasps, is_upright
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.placing import put_down, turn_upright
from bricksim_moveit_demo.planning.scene import brick_box
from bricksim_moveit_demo.presscheck import stays_whole
from bricksim_moveit_demo.reports import Stage
from bricksim_moveit_demo.world import World

METHODS = ("lift", "twist")
"""Ways to take a brick off."""


def require_removable(hand: Hand, part_id: int, method: str) -> None:
    """Refuses what cannot be taken off, but what a canceled task took off and still holds.

    Raises:
        TaskError: Names what is in the way.
    """
    world, graph = hand.world, hand.world.graph
    if part_id not in graph:
        raise TaskError(f"brick {part_id} does not exist", Outcome.INVALID_GOAL)
    if method not in METHODS:
        raise TaskError(
            f"method is {method!r}, expected {' or '.join(METHODS)}", Outcome.INVALID_GOAL
        )
    if not graph.connections_of(part_id):
        if part_id == hand.motion.held:
            return
        raise TaskError(f"brick {part_id} is not connected", Outcome.INVALID_GOAL)
    if part_id in world.fixed_parts:
        raise TaskError(f"brick {part_id} is held by the world", Outcome.INVALID_GOAL)
    if method == "lift" and not _is_held_firm(hand, part_id) and _hangs_together(hand, part_id):
        raise TaskError(
            f"nothing holds what brick {part_id} is connected to: lifted, it would come along",
            Outcome.FORCE_LIMIT,
        )
    above = sorted({c.hole_part for c in graph.connections_of(part_id) if c.stud_part == part_id})
    if above:
        raise TaskError(f"bricks {above} stand on brick {part_id}", Outcome.INVALID_GOAL)
    if not is_upright(world.part_pose(part_id)):
        raise TaskError(f"brick {part_id} does not stand upright", Outcome.INVALID_GOAL)
    covering = _above(world, part_id)
    if covering:
        raise TaskError(f"bricks {covering} are above brick {part_id}", Outcome.INVALID_GOAL)


def try_removal(hand: Hand, part_id: int, method: str, place: Array | None = None) -> None:
    """Takes a brick off and puts it on the table.

    Args:
        hand: The arm.
        part_id: The brick.
        method: One of `METHODS`.
        place: (4, 4) world_T_part [m] where it goes; None: a free place.

    Raises:
        TaskError: It did not work.
    """
    world, p = hand.world, hand.parameters
    shape = world.graph.part(part_id).shape
    options = [(part_id, grasp) for grasp in grasps(shape, p)]
    if not world.graph.connections_of(part_id):
        hand.enter(Stage.PLANNING)
        if hand.motion.held != part_id:
            # It came off in another try and was lost.
            turn_upright(hand, part_id)
            hand.grip(hand.chooser.choose(options, hand.locate))
        put_down(hand, place)
        return
    require_removable(hand, part_id, method)
    pull_off(hand, [part_id], options, method, place)


def pull_off(
    hand: Hand,
    parts: Collection[int],
    options: Sequence[tuple[int, Grasp]],
    method: str = "lift",
    place: Array | None = None,
) -> None:
    """Takes hold of what the world holds, pulls it off and puts it on the table.

    Args:
        hand: The arm.
        parts: What is to come off, together.
        options: Ways to hold one of them.
        method: One of `METHODS`.
        place: (4, 4) world_T_part [m] where the held part goes; None: a free place.

    Raises:
        TaskError: It did not come off, or not alone, or was lost.
    """
    p, motion = hand.parameters, hand.motion
    hand.enter(Stage.PLANNING)
    choice = hand.chooser.choose(options, hand.locate, skip=hand.attempt - 1)
    hand.reach(choice)
    hand.enter(Stage.GRASPING)
    # It stands firm: the arm yields while the fingers find their place on it.
    motion.controller.give_way(True)
    hand.close(choice.part, choice.grasp, p.pull_grip_force)
    hand.enter(Stage.LIFTING)
    motion.controller.give_way(False)
    motion.tare(p.settle_time)
    if method == "twist":
        _twist(hand, choice.grasp)
    pull_free(hand, parts)
    if _sits(hand, parts):
        motion.controller.give_way(True)
        motion.move_gripper(hand.chooser.opening(choice.grasp), p.grip_force)
        hand.forget_grip()
        firm = any(_is_held_firm(hand, part) for part in parts)
        name = f"brick {' with '.join(map(str, parts))}"
        reason = f"with {hand.greatest:.0f} N" if firm else "what it sits on comes along"
        raise TaskError(f"{name} does not come off: {reason}", Outcome.FORCE_LIMIT)
    motion.wait(p.settle_time)
    hand.require_held()
    hand.look_at_grip()
    put_down(hand, place)


def pull_free(hand: Hand, part_ids: Iterable[int]) -> None:
    """Pulls until some parts hang on nothing else, what they sit on comes along, or the limit of
    force is met."""
    p = hand.parameters
    parts = tuple(part_ids)
    pressing = hand.pressing(-hand.motion.tool[:3, 2])
    pressing.pull(
        p.pull_force,
        p.approach_height,
        free=lambda: not _sits(hand, parts),
    )
    hand.greatest = max(hand.greatest, pressing.greatest, -pressing.least)


def _twist(hand: Hand, grasp: Grasp) -> None:
    """Tilts the held brick about a lower edge, away from the studs."""
    held = hand.motion.held
    assert held is not None
    tool = hand.motion.tool
    closing, up = tool[:3, 1], -tool[:3, 2]
    along = np.cross(closing, up)
    # The edge under one pad: the fingers' faces stay parallel to it.
    height = hand.world.graph.part(held).shape.size[2]
    bottom = tool[:3, 3] - (TIP_BEYOND_TOOL + height - grasp.depth) * up
    edge = bottom + 0.5 * grasp.width * closing
    pressing = hand.pressing(up)
    pressing.tilt(
        edge,
        -along,
        hand.parameters.twist_angle,
        done=lambda: not _sits(hand, [held]),
    )
    hand.greatest = max(hand.greatest, pressing.greatest, -pressing.least)


def _above(world: World, part_id: int) -> list[int]:
    """Bricks of the same component that stand in the columns above a brick."""
    graph = world.graph
    box = brick_box(graph.part(part_id).shape, np.eye(4))
    half = 0.5 * np.array(box.size[:2])
    top = graph.part(part_id).shape.size[2]
    found = []
    for other in graph.component_parts(graph.component_of(part_id)):
        pose = relative_pose(graph, part_id, other)
        size = np.abs(pose[:2, :2]) @ np.array(graph.part(other).shape.size[:2])
        gap = np.abs(pose[:2, 3]) - half - 0.5 * size
        if pose[2, 3] >= top - 1e-6 and gap.max() < -1e-6:
            found.append(other)
    return sorted(found)


def _is_held_firm(hand: Hand, part_id: int) -> bool:
    """Whether the world or another arm holds what a part is connected to."""
    world, graph = hand.world, hand.world.graph
    together = graph.component_parts(graph.component_of(part_id))
    return world.is_fixed(part_id) or not hand.held_by_others.isdisjoint(together)


def _sits(hand: Hand, parts: Collection[int]) -> bool:
    """Whether some parts are connected to others."""
    return bool(connections_to_others(hand.world.graph, parts))


def _hangs_together(hand: Hand, part_id: int) -> bool:
    """Whether all that a part is connected to hangs on to it."""
    graph = hand.world.graph
    together = graph.component_parts(graph.component_of(part_id))
    return stays_whole(hand.world, together, (part_id,))
