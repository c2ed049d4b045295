# SPDX-License-Identifier: Apache-2.0
"""A planner, or what executes its plans, in a process of its own: if it crashes, at work or at its
end, nothing else does."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import ArmDescription
from bricksim_moveit_demo.errors import PlanningError, TaskError
from bricksim_moveit_demo.planning.protocol import (
    MotionPlanner,
    PlanningOptions,
    Trajectory,
    TrajectoryExecutor,
)
from bricksim_moveit_demo.planning.scene import PlanningScene

_START_TIMEOUT = 60.0
"""Longest start of the planner [s]; MoveIt waits 10 s for the first robot state."""
_CALL_TIMEOUT = 120.0
"""Longest answer to a request [s]."""
_END_TIMEOUT = 5.0
"""How long the process may take to end before it is killed [s]."""

Factory = Callable[[Sequence[ArmDescription], PlanningOptions], MotionPlanner | TrajectoryExecutor]


class Isolated(TrajectoryExecutor):
    """`TrajectoryExecutor` that passes every call to one in a child process.

    Args:
        factory: Makes what answers there; a module's function or class.
        arms: Given to the factory.
        options: Given to the factory.

    Raises:
        PlanningError: It did not start; the text is its own.
    """

    def __init__(
        self, factory: Factory, arms: Sequence[ArmDescription], options: PlanningOptions
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, remote = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(remote, factory, tuple(arms), options), daemon=True
        )
        with _interrupts_blocked():
            self._process.start()
        remote.close()
        self._answer(_START_TIMEOUT)

    def execute(self, arm: ArmDescription, trajectory: Trajectory) -> None:
        """See `TrajectoryExecutor.execute`."""
        # As long as the motion takes: the caller, who knows simulation time, gives up by itself.
        self._call("execute", arm, trajectory, timeout=None)

    def close(self) -> None:
        """Ends the process; kills it if it does not end by itself."""
        with contextlib.suppress(OSError):  # gone already: just what is wanted
            self._pipe.send(None)
        self._process.join(_END_TIMEOUT)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _call(self, method: str, *arguments: Any, timeout: float | None = _CALL_TIMEOUT) -> Any:
        try:
            self._pipe.send((method, arguments))
        except OSError as error:
            raise PlanningError(f"the planner's process has ended: {error}") from error
        return self._answer(timeout)

    def _answer(self, timeout: float | None) -> Any:
        try:
            if not self._pipe.poll(timeout):
                # What it answers later would be taken for the answer to another request.
                self._process.kill()
                raise PlanningError(f"the planner's process gave no answer within {timeout:.0f} s")
            result, error = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(_END_TIMEOUT)
            raise PlanningError(
                f"the planner's process ended with code {self._process.exitcode}"
            ) from None
        if error is not None:
            raise error
        return result


class IsolatedPlanner(Isolated, MotionPlanner):
    """`MotionPlanner` that passes every call to a planner in a child process."""

    def reach(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, count: int = 1
    ) -> list[Array]:
        """See `MotionPlanner.reach`."""
        return self._call("reach", scene, arm, world_T_tool, count)

    def plan_to_joints(
        self, scene: PlanningScene, arm: ArmDescription, goals: Sequence[Array]
    ) -> Trajectory:
        """See `MotionPlanner.plan_to_joints`."""
        return self._call("plan_to_joints", scene, arm, list(goals))

    def plan_straight(
        self,
        scene: PlanningScene,
        arm: ArmDescription,
        poses: Sequence[Array],
        speed: float | None = None,
    ) -> Trajectory:
        """See `MotionPlanner.plan_straight`."""
        return self._call("plan_straight", scene, arm, list(poses), speed)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """What is started here never sees Ctrl-C, which goes to all processes of a terminal: who
    started it ends it. Handlers stay as they are: rclpy's are not Python's, and would be lost."""
    resource_tracker.ensure_running()  # when it starts, it unblocks them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _requests(pipe: Connection) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Method and arguments of each request, until there are no more or who asks is gone."""
    with contextlib.suppress(EOFError):
        while (request := pipe.recv()) is not None:
            yield request


def _serve(
    pipe: Connection,
    factory: Factory,
    arms: Sequence[ArmDescription],
    options: PlanningOptions,
) -> None:
    """Body of the child process: answers calls until told to end."""
    try:
        planner = factory(arms, options)
    except Exception as error:
        pipe.send((None, PlanningError(f"the planner did not start: {error}")))
        return
    pipe.send((None, None))
    for method, arguments in _requests(pipe):
        try:
            pipe.send((getattr(planner, method)(*arguments), None))
        except TaskError as error:
            pipe.send((None, error))
        except Exception as error:
            pipe.send((None, PlanningError(f"{method}: {type(error).__name__}: {error}")))
    planner.close()
