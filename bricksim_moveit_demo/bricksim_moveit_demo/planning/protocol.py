# SPDX-License-Identifier: Apache-2.0
"""What the executor asks of a motion planner, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import ArmDescription
from bricksim_moveit_demo.errors import PlanningError
from bricksim_moveit_demo.planning.scene import PlanningScene

GREATEST_SEED = 2**31 - 2**16
"""The planners' generators take numbers of 31 bits; tries count on from the seed."""


@dataclass(frozen=True)
class PlanningOptions:
    """How plans are made.

    Attributes:
        velocity_scale: Share of the joints' velocity limits that free motions use, (0, 1].
        acceleration_scale: Share of their acceleration limits, (0, 1].
        linear_speed: Speed of the tool on straight lines [m/s].
        angular_speed: Turning speed of the tool on straight lines [rad/s].
        tries: How often a failed search is repeated with another random seed.
        seed: Seed of all random numbers, 0 to `GREATEST_SEED`.
    """

    velocity_scale: float = 0.6
    acceleration_scale: float = 0.4
    linear_speed: float = 0.15
    angular_speed: float = 0.8
    tries: int = 4
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Joint positions over time, starting at time 0. T points of J joints.

    Attributes:
        joints: Names of the joints.
        times: (T,) increasing [s].
        positions: (T, J) [rad].
        velocities: (T, J) [rad/s].
        accelerations: (T, J) [rad/s^2].
    """

    joints: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def sample(self, time: float) -> tuple[Array, Array, Array]:
        """(J,) positions [rad], velocities and accelerations at a time; at rest after the end."""
        if time >= self.duration:
            return self.positions[-1], np.zeros(len(self.joints)), np.zeros(len(self.joints))
        i = max(int(np.searchsorted(self.times, time, side="right")) - 1, 0)
        step = self.times[i + 1] - self.times[i]
        s = max(time - self.times[i], 0.0) / step
        # Cubic Hermite: passes through the points with their velocities.
        p0, p1 = self.positions[i], self.positions[i + 1]
        v0, v1 = self.velocities[i] * step, self.velocities[i + 1] * step
        c2 = 3.0 * (p1 - p0) - 2.0 * v0 - v1
        c3 = 2.0 * (p0 - p1) + v0 + v1
        position = p0 + s * (v0 + s * (c2 + s * c3))
        velocity = (v0 + s * (2.0 * c2 + 3.0 * s * c3)) / step
        acceleration = (1.0 - s) * self.accelerations[i] + s * self.accelerations[i + 1]
        return position, velocity, acceleration


class MotionPlanner(Protocol):
    """Plans motions of one arm in a scene. Stateless for the caller: all is in the scene.

    Planners inherit from it.
    """

    def reach(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, count: int = 1
    ) -> list[Array]:
        """Joint positions without collision that put the tool at a pose.

        Args:
            scene: The scene; solutions close to its joint positions come first.
            arm: The arm.
            world_T_tool: (4, 4) pose [m].
            count: How many different ones to look for.

        Returns:
            (7,) positions [rad] each.

        Raises:
            UnreachableError: There are none; the text says whether collision is the reason.
        """
        ...

    def plan_to_joints(
        self, scene: PlanningScene, arm: ArmDescription, goals: Sequence[Array]
    ) -> Trajectory:
        """A free motion to the first of ``goals`` ((7,) positions [rad]) that can be reached.

        Raises:
            PlanningError: None was found; the text lists the tries.
        """
        ...

    def plan_to_pose(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array
    ) -> Trajectory:
        """A free motion of the tool to a pose ((4, 4) [m]).

        Raises:
            UnreachableError: No joint position reaches it.
            PlanningError: No motion was found.
        """
        return self.plan_to_joints(scene, arm, self.reach(scene, arm, world_T_tool, count=3))

    def plan_straight(
        self,
        scene: PlanningScene,
        arm: ArmDescription,
        poses: Sequence[Array],
        speed: float | None = None,
    ) -> Trajectory:
        """A motion of the tool along straight lines through poses ((4, 4) [m]).

        Args:
            scene: The scene.
            arm: The arm.
            poses: Where to go from the present pose, one after the other.
            speed: Speed of the tool [m/s], None: that of the options.

        Raises:
            PlanningError: The line leaves the joint limits, jumps, or collides.
        """
        ...

    def close(self) -> None:
        """Ends the planner."""
        ...


class TrajectoryExecutor(Protocol):
    """Carries out plans through MoveIt, which sends them to the arms' controllers."""

    def execute(self, arm: ArmDescription, trajectory: Trajectory) -> None:
        """Moves an arm; returns when it is at the end.

        Raises:
            ControllerError: It did not get there; the text says why.
        """
        ...

    def close(self) -> None:
        """Ends it."""
        ...


def chosen_planner(name: str) -> str:
    """The planner that a name stands for: ``auto`` is ``moveit`` where MoveItPy is installed."""
    if name != "auto":
        return name
    from bricksim_moveit_demo.planning.moveit import moveit_available

    return "moveit" if moveit_available() else "embedded"


def create_planner(
    name: str, arms: Sequence[ArmDescription], options: PlanningOptions | None = None
) -> MotionPlanner:
    """A planner by name.

    Args:
        name: ``embedded``; ``moveit`` (MoveItPy, configured here); ``move_group`` (a running
            move_group); ``auto``: ``moveit`` where MoveItPy is installed, else ``embedded``.
        arms: The arms.
        options: How plans are made.

    Raises:
        PlanningError: The name is unknown or the planner is not installed.
    """
    options = options or PlanningOptions()
    name = chosen_planner(name)
    if name == "embedded":
        from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner

        return EmbeddedPlanner(arms, options)
    if name == "moveit":
        from bricksim_moveit_demo.planning.isolated import IsolatedPlanner
        from bricksim_moveit_demo.planning.moveit import MoveItPlanner

        return IsolatedPlanner(MoveItPlanner, arms, options)
    if name == "move_group":
        from bricksim_moveit_demo.planning.isolated import IsolatedPlanner
        from bricksim_moveit_demo.planning.move_group import MoveGroupPlanner

        return IsolatedPlanner(MoveGroupPlanner, arms, options)
    expected = "'auto', 'embedded', 'moveit' or 'move_group'"
    raise PlanningError(f"planner is {name!r}, expected {expected}")


def create_executor(
    name: str, planner_name: str, planner: MotionPlanner, arms: Sequence[ArmDescription]
) -> TrajectoryExecutor | None:
    """What carries out plans, by name; None: the arms' controllers do it themselves.

    Args:
        name: ``controller``; ``moveit`` (MoveItPy, for plans of the planner ``moveit``);
            ``move_group`` (a running move_group's action execute_trajectory); ``auto``: what
            belongs to the planner.
        planner_name: As `create_planner` takes it.
        planner: The planner.
        arms: The arms.

    Raises:
        PlanningError: The name is unknown, or does not go with the planner, or is not installed.
    """
    planner_name = chosen_planner(planner_name)
    if name == "auto":
        name = planner_name if planner_name in ("moveit", "move_group") else "controller"
    if name == "controller":
        return None
    if name == "moveit":
        if planner_name != "moveit":
            raise PlanningError(f"execution is 'moveit', planner {planner_name!r}: expected both")
        return cast(TrajectoryExecutor, planner)
    if name == "move_group":
        from bricksim_moveit_demo.planning.isolated import Isolated
        from bricksim_moveit_demo.planning.move_group import MoveGroupExecutor

        return Isolated(MoveGroupExecutor, arms, PlanningOptions())
    expected = "'auto', 'controller', 'moveit' or 'move_group'"
    raise PlanningError(f"execution is {name!r}, expected {expected}")
