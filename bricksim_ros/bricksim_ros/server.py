# SPDX-License-Identifier: Apache-2.0
"""What the simulator node asks of a group of services or actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from bricksim_core.events import StepResult

Advance = Callable[[], StepResult]
"""Makes one step of the simulation, at the wanted pace, and serves callbacks meanwhile."""


class Server(ABC):
    """A group of services or actions of the simulator node; most need nothing but `destroy`."""

    @abstractmethod
    def destroy(self) -> None:
        """Takes services and actions away."""

    def take_job(self) -> Callable[[Advance], None] | None:
        """Work that has to run between callbacks, if there is some."""
        return None

    def wants_step(self) -> bool:
        """True if a paused simulation has to make the next step."""
        return False

    def after_step(self) -> None:  # noqa: B027 (most servers have nothing to do)
        """Called after every step."""
