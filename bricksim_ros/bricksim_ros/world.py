# SPDX-License-Identifier: Apache-2.0
"""The simulated world as services see it: named entities, run state, resets. No ROS in here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np

from bricksim_core.engines import RobotSpec
from bricksim_core.errors import BrickSimError
from bricksim_core.events import StepResult
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import (
    Array,
    inverse,
    point_velocity,
    position_of,
    transform_points,
)
from bricksim_core.topology import Structure

BRICK_PREFIX = "brick_"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}")
_BRICK_NAME = re.compile(rf"{BRICK_PREFIX}(0|[1-9][0-9]{{0,18}})")


class RunState(IntEnum):
    """Values of simulation_interfaces/SimulationState."""

    STOPPED = 0
    PLAYING = 1
    PAUSED = 2
    QUITTING = 3


class ResetScope(IntFlag):
    """Values of simulation_interfaces/ResetSimulation; 0 and ALL are the same."""

    TIME = 1
    STATE = 2
    SPAWNED = 4
    ALL = 255


class NameTakenError(BrickSimError):
    """The entity name is in use."""


class NameInvalidError(BrickSimError):
    """The entity name does not follow the rules."""


class NotFoundError(BrickSimError):
    """There is no such entity."""


class TransitionError(BrickSimError):
    """The run state cannot be reached from the present one."""


@dataclass(frozen=True, eq=False)
class Entity:
    """A structure that was put into the world under a name.

    Attributes:
        name: Unique name.
        structure: What was spawned.
        world_T_structure: (4, 4) where, at the start [m].
        hold: What the world holds, as `World.spawn` takes it.
        part_ids: Simulator part id by the structure's own part id.
        initial: True if it belongs to the scene, False if a service spawned it.
    """

    name: str
    structure: Structure
    world_T_structure: Array
    hold: bool | None
    part_ids: dict[int, int]
    initial: bool


@dataclass(frozen=True, eq=False)
class EntityState:
    """Pose [m] and twist [m/s, rad/s] (at the frame's origin) of an entity, world."""

    world_T_entity: Array
    twist: Array


class World:
    """A simulator with named entities, a run state and resets.

    Args:
        simulator: The simulator, empty.
        on_step: Called with the result of every step.

    Attributes:
        simulator: The simulator.
        state: Whether it runs.
        on_reset: Each is called after a reset with its scope.
    """

    def __init__(self, simulator: Simulator, on_step: Callable[[StepResult], None]) -> None:
        self.simulator = simulator
        self.state = RunState.PAUSED
        self.on_reset: list[Callable[[ResetScope], None]] = []
        self._on_step = on_step
        self._entities: dict[str, Entity] = {}
        self._scene: dict[str, Entity] = {}
        self._robots: dict[str, RobotSpec] = {}
        self._epoch = 0.0

    # -- time and run state -------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]: monotonic but for a reset of time."""
        return self.simulator.time - self._epoch

    def simulator_time(self, time: float) -> float:
        """The simulator's own time [s], which no reset turns back, at a simulation time [s]."""
        return time + self._epoch

    def step(self) -> StepResult:
        """One simulator step."""
        result = self.simulator.step()
        self._on_step(result)
        return result

    def set_state(self, target: RunState) -> None:
        """Changes the run state; STOPPED resets everything.

        Raises:
            TransitionError: A stopped simulation cannot be paused.
        """
        if target == RunState.PAUSED and self.state == RunState.STOPPED:
            raise TransitionError("the simulation is stopped and cannot be paused, only played")
        if target == RunState.STOPPED:
            self.reset(ResetScope.ALL)
        self.state = target

    def reset(self, scope: ResetScope) -> None:
        """Resets what the scope names; ids of parts that stay are kept.

        TIME sets the clock to 0. STATE puts every entity back to where and how it began. SPAWNED
        removes what services spawned. ALL also brings back what was deleted of the scene.
        """
        scope = scope or ResetScope.ALL
        if scope == ResetScope.ALL:
            keep = dict(self._scene)
        elif scope & ResetScope.SPAWNED:
            keep = {n: e for n, e in self._entities.items() if e.initial}
        else:
            keep = dict(self._entities)
        if scope & ResetScope.STATE:
            self.simulator.remove(self.simulator.graph.part_ids)
            for entity in keep.values():
                self._put(entity.structure, entity.world_T_structure, entity.hold, entity.part_ids)
            for name, robot in self._robots.items():
                self.simulator.engine.set_joint_positions(name, robot.joint_positions)
                self.simulator.engine.set_joint_targets(name, robot.joint_positions)
        else:
            dropped = [p for n, e in self._entities.items() if n not in keep for p in self._live(e)]
            self.simulator.remove(dropped)
        self._entities = keep
        if scope & ResetScope.TIME:
            self._epoch = self.simulator.time
        for listener in self.on_reset:
            listener(scope)

    # -- entities -----------------------------------------------------------------------------

    @property
    def robots(self) -> dict[str, RobotSpec]:
        """Robots of the scene by name."""
        return self._robots

    def entity_names(self) -> list[str]:
        """Names of spawned structures, robots and single bricks, each group sorted."""
        return [
            *sorted(n for n in self._entities if self._parts(n)),
            *sorted(self._robots),
            *part_names(self.simulator.graph.part_ids),
        ]

    def entity(self, name: str) -> Entity | None:
        """The structure entity of this name, None for a robot or a single brick.

        Raises:
            NotFoundError: There is no entity of this name.
        """
        if name in self._robots or self._brick(name) is not None:
            return None
        if name not in self._entities or not self._parts(name):
            raise NotFoundError(f"entity {name!r} does not exist")
        return self._entities[name]

    def parts_of(self, name: str) -> list[int]:
        """Sorted ids of the parts that an entity still consists of; empty for a robot.

        Raises:
            NotFoundError: There is no entity of this name.
        """
        entity = self.entity(name)
        if entity is not None:
            return self._live(entity)
        brick = self._brick(name)
        return [] if brick is None else [brick]

    def add_robot(self, robot: RobotSpec) -> None:
        """Adds a robot to the scene.

        Raises:
            NameTakenError, NameInvalidError, EngineError: It cannot be added.
        """
        self._require_free(robot.name)
        self.simulator.engine.add_robot(robot)
        self._robots[robot.name] = robot

    def spawn(
        self,
        name: str,
        structure: Structure,
        world_T_structure: Array,
        *,
        hold: bool | None = None,
        rename: bool = False,
        initial: bool = False,
        part_ids: Mapping[int, int] | None = None,
    ) -> Entity:
        """Puts a structure into the world.

        Args:
            name: Wanted name; empty makes one from the structure's name.
            structure: What to spawn.
            world_T_structure: (4, 4) where [m].
            hold: True: the world holds the root part of each component too; False: it holds
                nothing; None: what the structure says.
            rename: Take another name if this one is in use.
            initial: It belongs to the scene.
            part_ids: See `Simulator.spawn`.

        Raises:
            NameTakenError, NameInvalidError: The name cannot be used.
            BrickSimError: The simulator refuses it (overlap, bad pose); nothing was added.
        """
        wanted = name or valid_name(structure.name)
        if (rename or not name) and self._taken(wanted):
            wanted = next(n for i in itertools.count(1) if not self._taken(n := f"{wanted}_{i}"))
        self._require_free(wanted)
        ids = self._put(structure, world_T_structure, hold, part_ids)
        entity = Entity(wanted, structure, world_T_structure.copy(), hold, ids, initial)
        self._entities[wanted] = entity
        if initial:
            self._scene[wanted] = entity
        return entity

    def delete(self, name: str) -> None:
        """Removes a structure or a single brick.

        Raises:
            NotFoundError: There is no entity of this name.
            BrickSimError: It is a robot.
        """
        if name in self._robots:
            raise BrickSimError(f"entity {name!r} is a robot, which cannot be removed at run time")
        self.simulator.remove(self.parts_of(name))
        self._entities.pop(name, None)

    def entity_state(self, name: str) -> EntityState:
        """Pose and twist of an entity.

        Raises:
            NotFoundError: There is no entity of this name.
        """
        if name in self._robots:
            return EntityState(self._robots[name].world_T_base, np.zeros(6))
        entity = self.entity(name)
        part_id = self.parts_of(name)[0]
        world_T_part = self.simulator.part_pose(part_id)
        com = transform_points(world_T_part, self.simulator.graph.part(part_id).shape.com)
        frame = world_T_part
        if entity is not None:
            frame = world_T_part @ inverse(self._structure_T_part(entity, part_id))
        twist = self.simulator.part_twist(part_id)
        linear = point_velocity(twist, position_of(frame) - com)
        return EntityState(frame, np.concatenate([linear, twist[3:]]))

    def in_world(self, frame: str, state: EntityState) -> EntityState:
        """A state observed in the frame of an entity, as it is in the world.

        Args:
            frame: Name of the entity; where it moves, its motion is added.
            state: Pose [m] and twist [m/s, rad/s] relative to it, in its axes.

        Raises:
            NotFoundError: There is no entity of this name.
        """
        base = self.entity_state(frame)
        pose = base.world_T_entity @ state.world_T_entity
        rotation = base.world_T_entity[:3, :3]
        arm = position_of(pose) - position_of(base.world_T_entity)
        linear = point_velocity(base.twist, arm) + rotation @ state.twist[:3]
        return EntityState(
            pose, np.concatenate([linear, base.twist[3:] + rotation @ state.twist[3:]])
        )

    def set_entity_state(self, name: str, state: EntityState) -> None:
        """Moves an entity, with all that is connected to it.

        Raises:
            NotFoundError: There is no entity of this name.
            BrickSimError: It is a robot or the simulator refuses the pose; nothing is moved then.
        """
        if name in self._robots:
            raise BrickSimError(f"entity {name!r} is a robot, whose base cannot be moved")
        entity = self.entity(name)
        graph = self.simulator.graph
        moved: dict[int, int] = {}
        for part_id in self.parts_of(name):
            moved.setdefault(graph.component_of(part_id), part_id)
        places: dict[int, tuple[Array, Array]] = {}
        for part_id in moved.values():
            pose = state.world_T_entity
            if entity is not None:
                pose = pose @ self._structure_T_part(entity, part_id)
            com = self.simulator.component_com(graph.component_of(part_id))
            com = transform_points(pose @ inverse(self.simulator.part_pose(part_id)), com)
            linear = point_velocity(state.twist, com - position_of(state.world_T_entity))
            twist = np.concatenate([linear, state.twist[3:]])
            places[part_id] = (pose, twist)
        self.simulator.teleport_all(places)

    def bounds(self, name: str) -> Array:
        """(2, 3) least and greatest corner [m] of an entity's bricks, world axes.

        Raises:
            NotFoundError: There is no entity of this name.
            BrickSimError: It is a robot.
        """
        parts = self.parts_of(name)
        if not parts:
            raise BrickSimError(f"entity {name!r} is a robot, whose bounds are not known")
        corners = np.concatenate([self._corners(p) for p in parts])
        return np.stack([corners.min(axis=0), corners.max(axis=0)])

    # -- inside -------------------------------------------------------------------------------

    def _corners(self, part_id: int) -> Array:
        shape = self.simulator.graph.part(part_id).shape
        x, y, z = shape.size
        z += STUD_HEIGHT if shape.has_studs else 0.0
        signs = np.array(list(itertools.product((-0.5, 0.5), (-0.5, 0.5), (0.0, 1.0))))
        return transform_points(self.simulator.part_pose(part_id), signs * (x, y, z))

    def _put(
        self,
        structure: Structure,
        world_T_structure: Array,
        hold: bool | None,
        part_ids: Mapping[int, int] | None,
    ) -> dict[int, int]:
        fixed = set() if hold is False else set(structure.fixed)
        if hold:
            graph = structure.graph
            fixed |= {graph.component_parts(c)[0] for c in graph.component_ids}
        return self.simulator.spawn(structure, world_T_structure, fixed, part_ids)

    def _structure_T_part(self, entity: Entity, part_id: int) -> Array:
        own_id = next(k for k, v in entity.part_ids.items() if v == part_id)
        return entity.structure.part_poses()[own_id]

    def _live(self, entity: Entity) -> list[int]:
        return sorted(p for p in entity.part_ids.values() if p in self.simulator.graph)

    def _parts(self, name: str) -> list[int]:
        return self._live(self._entities[name])

    def _brick(self, name: str) -> int | None:
        if not _BRICK_NAME.fullmatch(name):
            return None
        part_id = int(name.removeprefix(BRICK_PREFIX))
        return part_id if part_id in self.simulator.graph else None

    def _taken(self, name: str) -> bool:
        return name in self._robots or (name in self._entities and bool(self._parts(name)))

    def _require_free(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise NameInvalidError(
                f"name is {name[:80]!r}, expected 1-255 letters, digits, _ . / -"
            )
        if re.fullmatch(rf"{BRICK_PREFIX}\d+", name):
            raise NameInvalidError(f"name {name!r} is kept for the bricks themselves")
        if self._taken(name):
            raise NameTakenError(f"name {name!r} is in use")


def part_names(part_ids: Iterable[int]) -> list[str]:
    """Entity names of single bricks."""
    return [f"{BRICK_PREFIX}{i}" for i in part_ids]


def valid_name(text: str) -> str:
    """A name that an entity can have, as like a given one (of a file, say) as possible."""
    return re.sub(r"[^A-Za-z0-9_./-]|^[./-]", "_", text)[:200] or "structure"
