# SPDX-License-Identifier: Apache-2.0
"""Planning and executing beside the simulation, which goes on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from bricksim_moveit_demo.control.arm import ArmController
from bricksim_moveit_demo.errors import ControllerError
from bricksim_moveit_demo.execution import Execution, Motion
from bricksim_moveit_demo.planning.protocol import Trajectory, TrajectoryExecutor
from bricksim_moveit_demo.world import SimulatedWorld
from bricksim_ros import parameters
from bricksim_ros.simulator_node import SimulatorNode

RUNS = "time_runs_while_planning"
"""Name of the parameter that lets time run."""
_PATIENCE = 10.0
"""How much longer than planned an execution may take [s of simulation time], besides as long again:
MoveIt itself gives up after 1.5 times the duration and 2 s."""


class PlanningBackground:
    """Lets time run while motions are planned.

    Where the simulation keeps a pace, a thread plans and time goes on, as it does for a real arm:
    the arms hold still, everything else moves, callbacks are served. Where it runs as fast as it
    can, no span of simulation time belongs to the time that planning takes: time stands, and a seed
    gives the same run again.

    Args:
        node: The simulator.
        scene: What the arms are in.
    """

    def __init__(self, node: SimulatorNode, scene: SimulatedWorld) -> None:
        self._node = node
        self._scene = scene
        self._pool = ThreadPoolExecutor(1, "planner")
        self._canceled: set[Future] = set()

    def __call__[T](self, work: Callable[[], T], /) -> T:
        """What the work gives."""
        # A planner that a canceled task has left at work has to end first.
        wait(self._canceled)
        self._canceled.clear()
        if not self._runs():
            return work()
        future = self._pool.submit(work)
        try:
            while not wait([future], self._node.until_step()).done:
                self._node.serve_waiting()
                self._scene.advance()
        finally:
            if not future.done():
                self._canceled.add(future)
        return future.result()

    def close(self) -> None:
        """Ends the thread after what it does now."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _runs(self) -> bool:
        paced = parameters.value(self._node, "real_time_factor") > 0.0
        return paced and parameters.value(self._node, RUNS)


class ForeignExecution(Execution):
    """Lets MoveIt execute plans: it sends them to the trajectory servers of this simulator.

    Args:
        executor: MoveIt.
        clock: Simulation time [s].
    """

    def __init__(self, executor: TrajectoryExecutor, clock: Callable[[], float]) -> None:
        self._executor = executor
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, "executor")
        self._motions: dict[str, _Executed] = {}

    def start(self, controller: ArmController, trajectory: Trajectory, time: float) -> Motion:
        """See `Execution.start`."""
        future = self._pool.submit(self._executor.execute, controller.arm, trajectory)
        late = _Deadline(self._clock, 2.0 * trajectory.duration + _PATIENCE)
        motion = self._motions[controller.arm.name] = _Executed(controller, future, late)
        return motion

    def refusal(self, arm: str, busy: str) -> str:
        """Why an arm takes no trajectory now; empty if it does.

        Args:
            arm: Name of the arm.
            busy: Why it takes none of anybody else.
        """
        motion = self._motions.get(arm)
        if motion is None or motion.answered:
            return busy
        # What was stopped before it came here must not begin afterwards.
        return "the motion was stopped before it began" if motion.stopped else ""

    def close(self) -> None:
        """Ends the thread after what it does now."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Deadline:
    """Some simulation time from now [s], and as much wall time: a simulation may be fast."""

    def __init__(self, clock: Callable[[], float], delay: float) -> None:
        self._clock = clock
        self._ends = clock() + delay, time.monotonic() + delay

    @property
    def over(self) -> bool:
        return self._clock() > self._ends[0] and time.monotonic() > self._ends[1]


class _Executed(Motion):
    def __init__(self, controller: ArmController, future: Future[None], late: _Deadline) -> None:
        self._controller = controller
        self._future = future
        self._late = late
        self.stopped = False

    @property
    def active(self) -> bool:
        return not (self.answered or self._late.over)

    @property
    def answered(self) -> bool:
        """Whether MoveIt has said how it went."""
        return self._future.done()

    def require_success(self) -> None:
        if not self.answered:
            raise ControllerError(
                f"{self._controller.arm.name}: MoveIt did not end the motion in time"
            )
        self._future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.answered:
            self.stopped = True
            self._controller.hold()
