# SPDX-License-Identifier: Apache-2.0
"""What can go wrong when arms handle bricks, each with a named cause."""

from __future__ import annotations

from enum import StrEnum

from bricksim_core.errors import BrickSimError


class Outcome(StrEnum):
    """How handling a brick ended (the constants of bricksim_msgs/InsertionReport)."""

    SUCCEEDED = "succeeded"
    INVALID_GOAL = "invalid_goal"
    BRICK_MISSING = "brick_missing"
    UNREACHABLE = "unreachable"
    PLANNING_FAILED = "planning_failed"
    STRUCTURE_UNSTABLE = "structure_unstable"
    GRASP_FAILED = "grasp_failed"
    BRICK_LOST = "brick_lost"
    BRICK_SLIPPED = "brick_slipped"
    FORCE_LIMIT = "force_limit"
    WRONG_CONNECTION = "wrong_connection"
    STRUCTURE_BROKE = "structure_broke"
    COLLISION = "collision"
    CONTROLLER_FAILED = "controller_failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    INTERRUPTED = "interrupted"


class DescriptionError(BrickSimError):
    """A robot description or configuration file is missing or cannot be read."""


class TaskError(BrickSimError):
    """Handling a brick failed; `outcome` is the cause."""

    outcome = Outcome.INVALID_GOAL

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        if outcome is not None:
            self.outcome = outcome


class PlanningError(TaskError):
    """No motion was found; the text lists the tries and why each failed."""

    outcome = Outcome.PLANNING_FAILED


class UnreachableError(PlanningError):
    """No joint position reaches the goal, or none without collision."""

    outcome = Outcome.UNREACHABLE


class ControllerError(TaskError):
    """The controller rejected a motion or left its tolerances."""

    outcome = Outcome.CONTROLLER_FAILED


class CanceledError(TaskError):
    """The caller canceled; the arm holds still."""

    outcome = Outcome.CANCELED


def outcome_of(error: BrickSimError) -> Outcome:
    """The cause that an error stands for: what cannot be read or planned is an invalid goal."""
    return error.outcome if isinstance(error, TaskError) else Outcome.INVALID_GOAL
