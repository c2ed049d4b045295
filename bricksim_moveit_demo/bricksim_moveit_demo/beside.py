# SPDX-License-Identifier: Apache-2.0
"""What stands beside a seat: edges that a brick, or fingers around it, may meet on the way down.

A brick that comes down off by the noise lands on a neighbour's edge, or wedges it aside; so does a
fingertip, wider than the side that it grips, on what stands flush with that side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array, inverse, transform_points
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.connections import relative_pose
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, TIP_WIDTH, Grasp, boxes_overlap
from bricksim_moveit_demo.planning.scene import brick_box
from bricksim_moveit_demo.presscheck import bears
from bricksim_moveit_demo.world import World, placed_boxes

_NEARBY = 0.012
"""Bricks this close to a brick [m] may be touched while it slides in or out."""
_OFF = 0.001
"""How far a brick comes down from the weaker of two neighbours that enclose it [m]: three times the
error of a seat and of a grip along the fingers."""
_LEVEL = 1e-4
"""Difference of heights that count as one [m]."""
_BESIDE = 0.002
"""Gap of bricks that stand beside each other, and least overlap along the other axes [m]."""


def near(
    world: World, part_id: int, world_T_part: Array | None = None, within: float = _NEARBY
) -> list[int]:
    """Other bricks within a distance [m] of a brick where it is or at another pose ((4, 4) [m])."""
    pose = world.part_pose(part_id) if world_T_part is None else world_T_part
    box = brick_box(world.graph.part(part_id).shape, pose)
    others = [other for other in world.graph.part_ids if other != part_id]
    close = boxes_overlap(box, placed_boxes(world, others), within)
    return [other for other, is_near in zip(others, close, strict=True) if is_near]


def aside(
    world: World,
    moving: Collection[int],
    seat: tuple[int, Array],
    grip: tuple[int, Grasp],
    clearance: float,
    landing: float,
) -> tuple[Array, Array]:
    """How far beside its seat a brick comes down so that nothing meets edges there.

    It keeps off neighbours that the moving bricks, or the fingertips, have on one side only, and
    of two that enclose them off the one that does not bear being landed on.

    Args:
        world: The scene.
        moving: The moving parts, one component.
        seat: One of them and its (4, 4) pose in the seat [m].
        grip: One of them and how it is held.
        clearance: The distance along each axis [m].
        landing: Force [N] that one has to bear to be landed on.

    Returns:
        (3,) how far it keeps off neighbours on one side only and (3,) off the weaker of two [m],
        world.
    """
    part, world_T_seat = seat
    neighbors = list(_neighbors(world, moving, part, world_T_seat))
    flush = _flush(world, moving, part, world_T_seat, grip)
    sides = {_main_axis(direction) for direction in (*(n.direction for n in neighbors), *flush)}
    enclosed = [n for n in neighbors if _main_axis(-n.direction) in sides]
    weak = {_main_axis(n.direction) for n in enclosed if not bears(world, n.part, n.edge, landing)}

    def away(from_sides: set[tuple[int, int]], distance: float) -> Array:
        offset = np.zeros(3)
        for axis, side in from_sides:
            if (axis, -side) not in from_sides:
                offset -= side * distance * world_T_seat[:3, axis]
        return offset

    return away(sides, clearance), away(weak, _OFF)


def edges(world: World, moving: Collection[int], seat: tuple[int, Array]) -> tuple[float, ...]:
    """Heights above the seat [m] at which moving bricks may meet studs, there or beside it, lowest
    first.

    Args:
        world: The scene.
        moving: The moving parts, one component.
        seat: One of them and its (4, 4) pose in the seat [m].
    """
    tops = set()
    for _, pose, other in _pairs(world, moving, *seat):
        shape = world.graph.part(other).shape
        top = world.part_pose(other) @ [0.0, 0.0, shape.size[2] + STUD_HEIGHT, 1.0]
        tops.add(round(float((top[:3] - pose[:3, 3]) @ pose[:3, 2]), 4))
    return tuple(sorted(top for top in tops if top > STUD_HEIGHT - _LEVEL))


# -- inside ---------------------------------------------------------------------------------------


def _pairs(
    world: World, moving: Collection[int], part: int, world_T_seat: Array
) -> Iterator[tuple[int, Array, int]]:
    """Moving parts, their (4, 4) poses in the seat [m], and other parts close to them there."""
    for own in moving:
        pose = world_T_seat @ relative_pose(world.graph, part, own)
        for other in set(near(world, own, pose)).difference(moving):
            yield own, pose, other


@dataclass(frozen=True, eq=False)
class _Neighbor:
    """A part right beside a moving one in its seat.

    Attributes:
        part: Its id.
        direction: (3,) where it is, in the frame of the part that is seated.
        edge: (3,) middle of its edge along the moving one [m], world.
    """

    part: int
    direction: Array
    edge: Array


def _neighbors(
    world: World, moving: Collection[int], part: int, world_T_seat: Array
) -> Iterator[_Neighbor]:
    """What stands right beside the moving parts in their seat."""
    graph = world.graph
    for own, pose, other in _pairs(world, moving, part, world_T_seat):
        low, high = _extent(graph, own, np.eye(4))
        other_low, other_high = _extent(graph, other, inverse(pose) @ world.part_pose(other))
        # How far the two are apart along each axis [m]: less than nothing where they overlap.
        gaps = np.maximum(other_low - high, low - other_high)
        for axis in (0, 1):
            if np.all(np.delete(gaps, axis) < -_BESIDE) and abs(gaps[axis]) < _BESIDE:
                side = 1.0 if other_low[axis] + other_high[axis] > 0.0 else -1.0
                edge = 0.5 * (np.maximum(low, other_low) + np.minimum(high, other_high))
                edge[2] = other_high[2]
                direction = side * relative_pose(graph, part, own)[:3, axis]
                yield _Neighbor(other, direction, transform_points(pose, edge))


def _flush(
    world: World,
    moving: Collection[int],
    part: int,
    world_T_seat: Array,
    grip: tuple[int, Grasp],
) -> Iterator[Array]:
    """(3,) directions in the part's frame in which fingertips have bricks that are flush with the
    sides that they grip."""
    held, grasp = grip
    part_T_tool = relative_pose(world.graph, part, held) @ grasp.part_T_tool
    tool_T_world = inverse(world_T_seat @ part_T_tool)
    pose = world_T_seat @ relative_pose(world.graph, part, held)
    for other in set(near(world, held, pose)).difference(moving):
        low, high = _extent(world.graph, other, tool_T_world @ world.part_pose(other))
        met = low[2] - STUD_HEIGHT < TIP_BEYOND_TOOL
        if met and low[0] < 0.5 * TIP_WIDTH and high[0] > -0.5 * TIP_WIDTH:
            for finger, face in ((1.0, high[1]), (-1.0, -low[1])):
                if abs(face - 0.5 * grasp.width) < _BESIDE:
                    yield -finger * part_T_tool[:3, 1]


def _main_axis(direction: Array) -> tuple[int, int]:
    """Axis, 0 or 1, and sign of a direction across the studs."""
    axis = int(np.argmax(np.abs(direction[:2])))
    return axis, int(np.sign(direction[axis]))


def _extent(graph: BrickTopologyGraph, part: int, pose: Array) -> tuple[Array, Array]:
    """(3,) least and greatest coordinates [m] of a brick's body at a pose, turned by quarters."""
    size = np.array(graph.part(part).shape.size)
    corners = np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]]) * size
    corners = corners @ pose[:3, :3].T + pose[:3, 3]
    return corners.min(axis=0), corners.max(axis=0)
