# SPDX-License-Identifier: Apache-2.0
"""What a simulator step tells: events, candidates, utilizations, timings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from bricksim_core.assembly.types import Candidate
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import Connection
from bricksim_core.topology.layout import IntArray


class EventKind(StrEnum):
    """Whether a connection began or ended."""

    ASSEMBLED = "assembled"
    BROKEN = "broken"


class Cause(StrEnum):
    """Why a connection began or ended."""

    PRESSED = "pressed"
    CLOSURE = "closure"
    OVERLOAD = "overload"
    COMMAND = "command"
    SPAWNED = "spawned"
    REMOVED = "removed"


@record
class ConnectionEvent:
    """One connection began or ended.

    Attributes:
        sequence: Counts all events of a simulator from 0, without gaps.
        time: Simulation time [s].
        kind: Began or ended.
        cause: Why.
        connection: The connection.
        utilization: Highest utilization since it was overloaded, at least the limit (what slides
            out bears all it can), if it broke; NaN otherwise.
        force: Pressing force for PRESSED, axial force in the connection for OVERLOAD, else NaN [N].
        world_T_connection: (4, 4) frame at the centre of the overlap at the stud plane, axes of the
            stud interface [m].
    """

    sequence: int
    time: float
    kind: EventKind
    cause: Cause
    connection: Connection
    utilization: float
    force: float
    world_T_connection: Array


@dataclass(frozen=True)
class Timings:
    """Wall time of a simulator step [s]."""

    engine: float = 0.0
    assembly: float = 0.0
    mechanics: float = 0.0
    topology: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class SolverNote:
    """A solve that did not go as it should: which component, how, and what was done."""

    component: int
    status: str
    message: str


@record
class StepResult:
    """Everything that happened in one simulator step.

    Attributes:
        time: Simulation time at its end [s].
        step: Number of the step, from 1.
        events: In order.
        candidates: Pairs that the assembly monitor examined, accepted or not.
        connection_ids: (C,) ids of all connections at the end of the step.
        utilization: (C,) highest utilization during the step; NaN where unknown.
        bypassed: (B,) ids of overloaded connections that could not come apart in this step because
            others, within their limits, hold their parts together; sorted.
        part_ids: (N,) ids of all parts, sorted.
        world_T_part: (N, 4, 4) poses at the end [m].
        twist: (N, 6) linear velocity of each part's COM and angular velocity, world [m/s, rad/s].
        component_of: (N,) component id of each part.
        solver_notes: Solves that fell back or failed.
        timings: Wall times.
        topology_changed: True if parts or connections changed in (or since the step before) this
            step.
    """

    time: float
    step: int
    events: tuple[ConnectionEvent, ...]
    candidates: tuple[Candidate, ...]
    connection_ids: IntArray
    utilization: Array
    part_ids: IntArray
    world_T_part: Array
    twist: Array
    component_of: IntArray
    solver_notes: tuple[SolverNote, ...] = field(default=())
    timings: Timings = field(default=Timings())
    topology_changed: bool = False
    bypassed: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
