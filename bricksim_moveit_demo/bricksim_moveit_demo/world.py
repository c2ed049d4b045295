# SPDX-License-Identifier: Apache-2.0
"""What the task logic sees of the world, and the simulator as such a world."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bricksim_core.events import ConnectionEvent, StepResult
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_moveit_demo.control.arm import ArmController, DriveModel
from bricksim_moveit_demo.control.trajectory import Status
from bricksim_moveit_demo.description import ArmDescription, robot_spec
from bricksim_moveit_demo.errors import CanceledError
from bricksim_moveit_demo.execution import ControllerExecution, Execution
from bricksim_moveit_demo.grasps import boxes_overlap
from bricksim_moveit_demo.planning.scene import (
    TABLE,
    Box,
    PlanningScene,
    brick_box,
    brick_name,
    table_box,
)
from bricksim_moveit_demo.sighting import Sightings

_LIES = 0.003
"""How far a brick may be from what it lies on [m]: more than a stud's height."""
_TRACKING = 0.02
"""Plans start from the reference if the measured position is this close to it [rad]."""


@dataclass(frozen=True)
class Noise:
    """Errors of an observed pose: uniform up to these bounds along x, y and about z.

    Attributes:
        position: Greatest error along each axis [m].
        rotation: Greatest yaw error [rad].
    """

    position: float = 0.0
    rotation: float = 0.0

    @classmethod
    def of(cls, millimetres: float, degrees: float) -> Noise:
        """Noise given in millimetres and degrees."""
        return cls(millimetres * 1e-3, math.radians(degrees))

    def sample(self, generator: np.random.Generator) -> Array:
        """(4, 4) a random error."""
        x, y = generator.uniform(-1.0, 1.0, 2) * self.position
        yaw = generator.uniform(-1.0, 1.0) * self.rotation
        return transform([x, y, 0.0], [0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)])


class Background(Protocol):
    """Does some work beside the simulation."""

    def __call__[T](self, work: Callable[[], T], /) -> T:
        """What the work gives."""
        ...


class World(Protocol):
    """A scene with arms and bricks that advances when asked to."""

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        ...

    @property
    def period(self) -> float:
        """Time that `advance` lets pass [s]."""
        ...

    @property
    def graph(self) -> BrickTopologyGraph:
        """Parts and connections as they are now."""
        ...

    @property
    def arms(self) -> Mapping[str, ArmController]:
        """Controllers by arm name."""
        ...

    @property
    def events(self) -> Sequence[ConnectionEvent]:
        """All connection events so far, in order."""
        ...

    def check(self) -> None:
        """Lets no time pass; raises as `advance` when the task was canceled."""
        ...

    def advance(self) -> None:
        """Lets one control period pass.

        Raises:
            CanceledError: The task was canceled; the arms come to rest and yield.
        """
        ...

    def compute[T](self, work: Callable[[], T]) -> T:
        """What some work gives that neither reads nor changes the scene; time may pass meanwhile.

        Raises:
            CanceledError: As `advance`.
        """
        ...

    @property
    def execution(self) -> Execution:
        """Carries out planned motions."""
        ...

    def part_pose(self, part_id: int) -> Array:
        """(4, 4) world_T_part [m]."""
        ...

    def observe(self, world_T_frame: Array) -> Array:
        """A pose as the perception would report it: with its error."""
        ...

    def planning_scene(self) -> PlanningScene:
        """A snapshot for the planner, all bricks in it."""
        ...

    def is_fixed(self, part_id: int) -> bool:
        """Whether the world holds the component of a part."""
        ...

    @property
    def fixed_parts(self) -> frozenset[int]:
        """Ids of the parts that the world holds."""
        ...

    @property
    def held(self) -> dict[str, int]:
        """Id of a part that each arm holds, by arm name. Kept by the task logic."""
        ...

    @property
    def sightings(self) -> dict[int, Sightings]:
        """What was seen of structures that stand firm, by the part that the world holds. Kept by
        the task logic."""
        ...


def placed_boxes(world: World, part_ids: Iterable[int]) -> list[Box]:
    """Boxes of bricks where they are in a world [m]."""
    graph = world.graph
    return [brick_box(graph.part(p).shape, world.part_pose(p)) for p in part_ids]


def riding(world: World, part_ids: Iterable[int]) -> list[int]:
    """Loose bricks that lie on some bricks and move along with them: what has come off a
    sub-assembly, say."""
    carried = list(part_ids)
    graph, boxes = world.graph, placed_boxes(world, carried)
    tops = [world.part_pose(p)[2, 3] + graph.part(p).shape.size[2] for p in carried]
    riders = []
    for part in graph.part_ids:
        if part in carried or world.is_fixed(part) or part in world.held.values():
            continue
        pose = world.part_pose(part)
        lies = np.abs(pose[2, 3] - np.array(tops)) < _LIES
        if lies.any():
            near = [box for box, on_it in zip(boxes, lies, strict=True) if on_it]
            box = brick_box(graph.part(part).shape, pose)
            # On top of it, not beside its top.
            length, width, height = box.size
            over = Box((length - 2.0 * _LIES, width - 2.0 * _LIES, height), box.pose)
            if boxes_overlap(over, near, _LIES).any():
                riders.append(part)
    return riders


class SimulatedWorld:
    """The simulator in this process.

    Args:
        simulator: The simulator.
        arms: The arms.
        noise: Errors of what is observed; None: none.
        seed: Seed of these errors.
        drives: Drives of the arms; see `DriveModel`.
        add_robots: False: the arms are in the simulator already.

    Attributes:
        simulator: The simulator.
        held: See `World.held`.
        sightings: See `World.sightings`.
        listeners: Called with every step's result (recording, pictures).
        step: Makes one step of the simulator.
        background: Does some work, letting time pass or not; None: time stands.
        execution: See `World.execution`.
    """

    def __init__(
        self,
        simulator: Simulator,
        arms: Sequence[ArmDescription],
        noise: Noise | None = None,
        seed: int = 0,
        drives: DriveModel | None = DriveModel(),
        *,
        add_robots: bool = True,
    ) -> None:
        self.simulator = simulator
        self.step: Callable[[], StepResult] = simulator.step
        self.listeners: list[Callable[[StepResult], None]] = []
        self.background: Background | None = None
        self.execution: Execution = ControllerExecution()
        self._noise = noise or Noise()
        self._generator = np.random.default_rng([seed, 0x0B5])
        self._events: list[ConnectionEvent] = []
        self._canceled = ""
        self.held: dict[str, int] = {}
        self.sightings: dict[int, Sightings] = {}
        self._arms = {arm.name: ArmController(arm, drives) for arm in arms}
        if add_robots:
            for arm in arms:
                simulator.engine.add_robot(robot_spec(arm))
        simulator.before_substep.append(self._control)
        self._control()

    @property
    def time(self) -> float:
        """See `World.time`."""
        return self.simulator.time

    @property
    def period(self) -> float:
        """See `World.period`."""
        return 1.0 / self.simulator.config.frame_rate

    @property
    def graph(self) -> BrickTopologyGraph:
        """See `World.graph`."""
        return self.simulator.graph

    @property
    def arms(self) -> Mapping[str, ArmController]:
        """See `World.arms`."""
        return self._arms

    @property
    def events(self) -> Sequence[ConnectionEvent]:
        """See `World.events`."""
        return self._events

    def cancel(self, reason: str = "canceled by the caller") -> None:
        """Ends the running task at its next control period."""
        self._canceled = self._canceled or reason

    def reset(self) -> None:
        """The scene was put back to its beginning: nothing moves or is held any more."""
        self.held.clear()
        self.sightings.clear()
        for controller in self._arms.values():
            controller.reset()
        self._control()

    def forget_cancel(self) -> None:
        """No task is running that could be canceled."""
        self._canceled = ""

    def check(self) -> None:
        """See `World.check`."""
        if self._canceled:
            reason = self._canceled
            self._yield()
            self._canceled = ""
            raise CanceledError(reason)

    def advance(self) -> None:
        """See `World.advance`."""
        self.check()
        self._step()
        # What was asked for meanwhile may have changed the scene: nothing goes on with it.
        self.check()

    def compute[T](self, work: Callable[[], T]) -> T:
        """See `World.compute`."""
        self.check()
        result = work() if self.background is None else self.background(work)
        self.check()
        return result

    def part_pose(self, part_id: int) -> Array:
        """See `World.part_pose`."""
        return self.simulator.part_pose(part_id)

    def observe(self, world_T_frame: Array) -> Array:
        """See `World.observe`."""
        return world_T_frame @ self._noise.sample(self._generator)

    def is_fixed(self, part_id: int) -> bool:
        """See `World.is_fixed`."""
        graph = self.graph
        carried = graph.component_parts(graph.component_of(part_id))
        return not self.simulator.fixed_parts.isdisjoint(carried)

    @property
    def fixed_parts(self) -> frozenset[int]:
        """See `World.fixed_parts`."""
        return self.simulator.fixed_parts

    def planning_scene(self) -> PlanningScene:
        """See `World.planning_scene`."""
        positions: dict[str, float] = {}
        for name, controller in self._arms.items():
            state = self.simulator.engine.joint_state(name)
            positions |= dict(zip(state.names, state.positions.tolist(), strict=True))
            wanted = controller.reference.positions
            joints = controller.arm.joints
            measured = np.array([positions[joint] for joint in joints])
            # Drives lag a little behind: starting from their reference avoids a jump.
            if np.abs(wanted - measured).max() <= _TRACKING:
                positions |= dict(zip(joints, wanted.tolist(), strict=True))
        graph = self.graph
        objects: dict[str, Box] = {TABLE: table_box()}
        for part_id in graph.part_ids:
            shape = graph.part(part_id).shape
            objects[brick_name(part_id)] = brick_box(shape, self.part_pose(part_id))
        scene = PlanningScene(positions, objects)
        for name, part_id in self.held.items():
            arm = self._arms[name].arm
            carried = graph.component_parts(graph.component_of(part_id))
            names = [brick_name(p) for p in carried]
            # What two arms hold together hangs on the first; the second may touch it. So may a
            # hand that holds a part of what stands firm.
            scene = scene.allowing((link, brick) for link in arm.hand_links for brick in names)
            if self.is_fixed(part_id):
                continue
            tool = self._arms[name].kinematics.tool_pose(scene.arm_positions(arm.joints))
            names += map(brick_name, riding(self, carried))
            scene = scene.attaching(name, [n for n in names if n in scene.objects], tool)
        return scene

    # -- inside -----------------------------------------------------------------------------

    def _step(self) -> None:
        result = self.step()
        self._events.extend(result.events)
        for listener in self.listeners:
            listener(result)

    def _control(self) -> None:
        engine = self.simulator.engine
        for name, controller in self._arms.items():
            targets = controller.update(self.time, engine.joint_state(name))
            engine.set_joint_targets(name, targets)

    def _yield(self) -> None:
        """Brings moving arms and fingers to rest; an arm that presses on something gives way."""
        for controller in self._arms.values():
            controller.gripper.stop()
            following = controller.follower.status is Status.ACTIVE
            controller.hold()
            if not following:
                controller.give_way(True)
        while any(c.follower.status is Status.ACTIVE for c in self._arms.values()):
            self._step()
