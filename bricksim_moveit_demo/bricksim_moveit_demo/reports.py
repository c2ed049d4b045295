# SPDX-License-Identifier: Apache-2.0
"""Stages of handling a brick and the report of how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bricksim_moveit_demo.errors import Outcome


class Stage(StrEnum):
    """What an arm is doing (the constants of bricksim_msgs/PickAndInsert's feedback)."""

    PLANNING = "planning"
    APPROACHING = "approaching"
    GRASPING = "grasping"
    LIFTING = "lifting"
    TRANSFERRING = "transferring"
    INSERTING = "inserting"
    PRESSING = "pressing"
    RELEASING = "releasing"
    RETREATING = "retreating"
    VERIFYING = "verifying"
    RECOVERING = "recovering"


@dataclass(frozen=True)
class HandlingStage:
    """How far an arm is with a brick.

    Attributes:
        part_id: The brick.
        stage: What the arm is doing.
        attempt: Which try this is, from 1.
        force: Force along the insertion axis [N]; a pull is negative.
    """

    part_id: int
    stage: Stage
    attempt: int
    force: float


Feedback = Callable[[HandlingStage], None]
"""Told each new stage and, within one, the force each control period."""


@dataclass(frozen=True)
class InsertionGoal:
    """Where a brick is to go.

    Attributes:
        part: The brick.
        target: The part whose studs it goes onto.
        offset: Origin of its hole interface in the target's stud interface [studs].
        yaw: Its yaw there [quarter turns].
    """

    part: int
    target: int
    offset: tuple[int, int]
    yaw: int


@dataclass(frozen=True)
class Report:
    """How handling one brick went (bricksim_msgs/InsertionReport).

    Attributes:
        part_id: The brick.
        arm: The arm.
        outcome: Why it ended.
        message: The same in words; empty on success.
        tries: How often it was picked or pressed.
        duration: Simulation time [s].
        planning_time: Wall time spent planning [s].
        press_force: Greatest force along the insertion axis [N].
        clearance: Gap [m] that all its free motions kept to bricks and table, as planned; less
            than 5 mm where there was no room for that.
        connection_ids: Connections that it made, or broke when removed.
        failures: Causes of the failed tries, in order.
        failure_messages: The same in words.
    """

    part_id: int
    arm: str
    outcome: Outcome
    message: str
    tries: int
    duration: float
    planning_time: float
    press_force: float
    clearance: float
    connection_ids: tuple[int, ...]
    failures: tuple[Outcome, ...] = ()
    failure_messages: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """True if it went well."""
        return self.outcome is Outcome.SUCCEEDED

    def line(self, inserted: int, total: int) -> str:
        """The report in one line, with the bricks in place and in all by then."""
        text = f"{inserted}/{total} brick {self.part_id}: {self.outcome} by {self.arm},"
        text += f" {self.duration:.1f} s, {self.press_force:.1f} N, tries {self.tries}"
        return f"{text}  {self.message}".rstrip()
