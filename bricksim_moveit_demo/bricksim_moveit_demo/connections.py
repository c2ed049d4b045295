# SPDX-License-Identifier: Apache-2.0
"""Which connections an insertion is to make, and where its seat is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bricksim_core.errors import TopologyError
from bricksim_core.events import ConnectionEvent, EventKind
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology.graph import BrickTopologyGraph, Connection
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.planning.scene import Box, brick_box
from bricksim_moveit_demo.reports import InsertionGoal

ConnectionKey = tuple[int, int, tuple[int, int], int]
"""Stud part, hole part, offset, yaw: what makes a connection the wanted one."""


def connection_key(connection: Connection) -> ConnectionKey:
    """What a connection is about."""
    return (connection.stud_part, connection.hole_part, connection.offset, connection.yaw)


def goal_key(goal: InsertionGoal) -> ConnectionKey:
    """The connection that a goal asks for."""
    return (goal.target, goal.part, goal.offset, goal.yaw % 4)


def connections_of(graph: BrickTopologyGraph, part_ids: Iterable[int]) -> set[ConnectionKey]:
    """All connections that some parts have, among themselves and with others."""
    return {
        connection_key(connection)
        for part_id in part_ids
        if part_id in graph
        for connection in graph.connections_of(part_id)
    }


def connections_to_others(
    graph: BrickTopologyGraph, part_ids: Collection[int]
) -> list[ConnectionKey]:
    """Connections of some parts with parts that are none of them, sorted."""
    own = set(part_ids)
    return sorted(key for key in connections_of(graph, own) if not own.issuperset(key[:2]))


def lost_connections(
    graph: BrickTopologyGraph, events: Iterable[ConnectionEvent]
) -> list[ConnectionKey]:
    """Connections that broke according to events and are still missing."""
    broken = dict.fromkeys(
        connection_key(event.connection) for event in events if event.kind is EventKind.BROKEN
    )
    return [key for key in broken if key not in connections_of(graph, key[:1])]


@dataclass(frozen=True)
class Expectation:
    """What an insertion is to lead to.

    Attributes:
        parts: The parts that move: the goal's part with all that it is connected to.
        connections: All connections that these parts have in the end.
    """

    parts: tuple[int, ...]
    connections: frozenset[ConnectionKey]

    def parts_apart_from(self, key: ConnectionKey) -> bool:
        """Whether a connection has nothing to do with these parts."""
        return not set(key[:2]).intersection(self.parts)

    def is_met(self, graph: BrickTopologyGraph) -> bool:
        """Whether exactly these connections exist."""
        return connections_of(graph, self.parts) == self.connections


def expectation(graph: BrickTopologyGraph, goal: InsertionGoal) -> Expectation:
    """The connections of a brick in its seat: the wanted one and those that close with it.

    Raises:
        TaskError: The goal is impossible; the text says why.
    """
    if goal_key(goal) in connections_of(graph, [goal.part]):
        return Expectation((goal.part,), frozenset(connections_of(graph, [goal.part])))
    trial = graph.copy()
    _connect(trial, goal)
    parts = tuple(graph.component_parts(graph.component_of(goal.part)))
    return Expectation(parts, frozenset(connections_of(trial, parts)))


def joined(graph: BrickTopologyGraph, goals: Iterable[InsertionGoal]) -> BrickTopologyGraph:
    """A copy of a scene's graph in which insertions are made.

    Raises:
        TaskError: One is impossible.
    """
    trial = graph.copy()
    for goal in goals:
        if trial.component_of(goal.part) != trial.component_of(goal.target):
            _connect(trial, goal)
    return trial


def _connect(graph: BrickTopologyGraph, goal: InsertionGoal) -> None:
    """Makes an insertion in a graph.

    Raises:
        TaskError: It is impossible; the text says why.
    """
    try:
        graph.connect(goal.target, goal.part, goal.offset, goal.yaw)
    except TopologyError as error:
        raise TaskError(str(error), Outcome.INVALID_GOAL) from error


def relative_pose(graph: BrickTopologyGraph, part: int, other: int) -> Array:
    """(4, 4) part_T_other [m] of two parts of one component."""
    relative = graph.relative_grid_pose(part, other)
    part_T_corner = inverse(part_pose(GridPose(), graph.part(part).shape))
    return part_T_corner @ part_pose(relative, graph.part(other).shape)


def component_boxes(graph: BrickTopologyGraph, part: int, world_T_part: Array) -> dict[int, Box]:
    """Boxes of all that a part is connected to, itself included, when it is at a pose, by id."""
    return {
        other: brick_box(graph.part(other).shape, world_T_part @ relative_pose(graph, part, other))
        for other in graph.component_parts(graph.component_of(part))
    }


def seat_in_target(graph: BrickTopologyGraph, goal: InsertionGoal) -> Array:
    """(4, 4) target_T_part of the brick in its seat [m]."""
    target, shape = graph.part(goal.target).shape, graph.part(goal.part).shape
    corner_T_seat = part_pose(GridPose(*goal.offset, target.height, goal.yaw % 4), shape)
    return inverse(part_pose(GridPose(), target)) @ corner_T_seat
