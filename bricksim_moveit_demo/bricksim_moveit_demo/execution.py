# SPDX-License-Identifier: Apache-2.0
"""How planned motions are carried out: by the arm's own controller, or by somebody in between."""

from __future__ import annotations

from typing import Protocol, Self

from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.control.trajectory import Status, Tolerances
from bricksim_moveit_demo.errors import ControllerError
from bricksim_moveit_demo.planning.protocol import Trajectory


class Motion(Protocol):
    """A motion under way; left before its end, it is stopped."""

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        ...

    def require_success(self) -> None:
        """Raises unless it ended where it was to end.

        Raises:
            ControllerError: The text says why.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Execution(Protocol):
    """Starts motions."""

    def start(self, controller: ArmController, trajectory: Trajectory, time: float) -> Motion:
        """Starts a motion of an arm at rest.

        Args:
            controller: The arm.
            trajectory: Begins where the arm is.
            time: Simulation time [s].

        Raises:
            ControllerError: It is refused.
        """
        ...


class ControllerExecution(Execution):
    """The arm's controller follows the trajectory."""

    def start(self, controller: ArmController, trajectory: Trajectory, time: float) -> Motion:
        """See `Execution.start`."""
        here = controller.reference.positions
        controller.follower.start(trajectory, time, here, Tolerances())
        return _Followed(controller)


class _Followed(Motion):
    def __init__(self, controller: ArmController) -> None:
        self._controller = controller

    @property
    def active(self) -> bool:
        return self._controller.follower.status is Status.ACTIVE

    def require_success(self) -> None:
        follower = self._controller.follower
        if follower.status is not Status.SUCCEEDED:
            raise ControllerError(
                f"{self._controller.arm.name}: {follower.message or follower.status}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.active:
            self._controller.hold()
