# SPDX-License-Identifier: Apache-2.0
"""The standard services of simulation_interfaces, as far as they make sense for bricks.

Names, result codes and texts follow simulation_interfaces 1.5. What is not listed by
GetSimulatorFeatures answers RESULT_FEATURE_UNSUPPORTED.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, Vector3
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    EntityInfo,
    EntityState,
    Result,
    SimulationState,
    SimulatorFeatures,
    SpawnResult,
    TagsFilter,
)
from simulation_interfaces.srv import (
    DeleteEntity,
    GetAvailableWorlds,
    GetCurrentWorld,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetNamedPoseBounds,
    GetNamedPoses,
    GetSimulationState,
    GetSimulatorFeatures,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetEntityInfo,
    SetEntityState,
    SetSimulationState,
    SpawnEntities,
    SpawnEntity,
    StepSimulation,
    UnloadWorld,
)

from bricksim_core.errors import (
    BrickSimError,
    CollisionError,
    EngineError,
    FormatError,
    PoseError,
)
from bricksim_core.formats import Format, parse_structure, read_structure
from bricksim_core.spatial import Array
from bricksim_ros import conversions, parameters
from bricksim_ros.frames import Frames
from bricksim_ros.running import unexpected
from bricksim_ros.scene import SceneError, resolve_uri
from bricksim_ros.server import Server
from bricksim_ros.world import (
    NameInvalidError,
    NameTakenError,
    NotFoundError,
    ResetScope,
    RunState,
    TransitionError,
    World,
)

FEATURES = (
    SimulatorFeatures.SPAWNING,
    SimulatorFeatures.DELETING,
    SimulatorFeatures.ENTITY_TAGS,
    SimulatorFeatures.ENTITY_BOUNDS,
    SimulatorFeatures.ENTITY_BOUNDS_BOX,
    SimulatorFeatures.ENTITY_CATEGORIES,
    SimulatorFeatures.SPAWNING_RESOURCE_STRING,
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.ENTITY_INFO_GETTING,
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_RESET_STATE,
    SimulatorFeatures.SIMULATION_RESET_SPAWNED,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
    SimulatorFeatures.STEP_SIMULATION_ACTION,
    SimulatorFeatures.SPAWNING_ENTITIES,
)

UNSUPPORTED_SERVICES = {
    "get_named_poses": GetNamedPoses,
    "get_named_pose_bounds": GetNamedPoseBounds,
    "get_spawnables": GetSpawnables,
    "set_entity_info": SetEntityInfo,
    "load_world": LoadWorld,
    "unload_world": UnloadWorld,
    "get_current_world": GetCurrentWorld,
    "get_available_worlds": GetAvailableWorlds,
}

MAX_TWIST = 100.0
"""Greatest velocity [m/s, rad/s] that can be set: ten times that counts as unstable in a step."""

MAX_BLOCKING_STEPS = 100_000
"""More steps than this have to go through the action, which can be cancelled."""


@dataclass
class _Stepping:
    """A SimulateSteps goal that is being worked on."""

    goal: ServerGoalHandle
    total: int
    done: int
    finished: Future


class SimulationInterfacesServer(Server):
    """Serves simulation_interfaces for a `World`.

    Args:
        node: Node that owns the services; names are relative to it.
        world: What they act on.
    """

    def __init__(self, node: LifecycleNode, world: World) -> None:
        self._node = node
        self._world = world
        self._frame: str = parameters.value(node, "world_frame")
        self._frames = Frames(node, world)
        self._stepping: _Stepping | None = None
        handlers: dict[str, tuple[type, Callable[[Any, Any], Any]]] = {
            "get_simulator_features": (GetSimulatorFeatures, self._features),
            "spawn_entity": (SpawnEntity, self._spawn_entity),
            "spawn_entities": (SpawnEntities, self._spawn_entities),
            "delete_entity": (DeleteEntity, self._delete_entity),
            "get_entities": (GetEntities, self._get_entities),
            "get_entities_states": (GetEntitiesStates, self._get_entities_states),
            "get_entity_state": (GetEntityState, self._get_entity_state),
            "get_entity_info": (GetEntityInfo, self._get_entity_info),
            "get_entity_bounds": (GetEntityBounds, self._get_entity_bounds),
            "set_entity_state": (SetEntityState, self._set_entity_state),
            "get_simulation_state": (GetSimulationState, self._get_simulation_state),
            "set_simulation_state": (SetSimulationState, self._set_simulation_state),
            "reset_simulation": (ResetSimulation, self._reset),
            "step_simulation": (StepSimulation, self._step),
        }
        for name, kind in UNSUPPORTED_SERVICES.items():
            handlers[name] = (kind, self._unsupported)
        self._services = [
            node.create_service(kind, name, self._guarded(handler))
            for name, (kind, handler) in handlers.items()
        ]
        self._action = ActionServer(
            node,
            SimulateSteps,
            "simulate_steps",
            execute_callback=self._simulate_steps,
            goal_callback=self._accept_steps,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def destroy(self) -> None:
        """Takes services and action away; a running goal is aborted."""
        self._finish_stepping()
        for service in self._services:
            self._node.destroy_service(service)
        self._action.destroy()

    # -- stepping, driven by the node's loop ----------------------------------------------------

    def wants_step(self) -> bool:
        """True if a SimulateSteps goal needs the next step now."""
        self._end_if_over()
        return self._stepping is not None

    def after_step(self) -> None:
        """Counts a step for the running goal and gives feedback."""
        job = self._stepping
        if job is None:
            return
        job.done += 1
        job.goal.publish_feedback(
            SimulateSteps.Feedback(completed_steps=job.done, remaining_steps=job.total - job.done)
        )
        self._end_if_over()

    def _end_if_over(self) -> None:
        job = self._stepping
        if job is None:
            return
        interrupted = self._world.state != RunState.PAUSED
        if job.done >= job.total or job.goal.is_cancel_requested or interrupted:
            self._finish_stepping()

    def _finish_stepping(self) -> None:
        job, self._stepping = self._stepping, None
        if job is not None and not job.finished.done():
            job.finished.set_result(None)

    def _accept_steps(self, request: SimulateSteps.Goal) -> GoalResponse:
        return GoalResponse.REJECT if self._stepping is not None else GoalResponse.ACCEPT

    async def _simulate_steps(self, goal: ServerGoalHandle) -> SimulateSteps.Result:
        total = int(goal.request.steps)
        if self._world.state != RunState.PAUSED:
            goal.abort()
            return SimulateSteps.Result(result=_failed("the simulation is not paused"))
        job = self._stepping = _Stepping(goal, total, 0, Future())
        await job.finished
        if job.done >= job.total:
            goal.succeed()
            return SimulateSteps.Result(result=_ok())
        text = f"ended after {job.done} of {total} steps"
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return SimulateSteps.Result(result=_failed(text))

    # -- services -------------------------------------------------------------------------------

    def _guarded(self, handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A handler whose errors become results; the node goes on whatever was asked."""

        def serve(request: Any, response: Any) -> Any:
            try:
                handler(request, response)
            except NotFoundError as error:
                response.result = Result(result=Result.RESULT_NOT_FOUND, error_message=str(error))
            except (BrickSimError, ValueError, OSError) as error:
                response.result = _failed(str(error))
            except Exception as error:
                response.result = _failed(unexpected(self._node, error))
            return response

        return serve

    def _unsupported(self, _request: Any, response: Any) -> None:
        response.result = Result(
            result=Result.RESULT_FEATURE_UNSUPPORTED,
            error_message="not supported, see get_simulator_features",
        )

    def _features(self, _request: Any, response: GetSimulatorFeatures.Response) -> None:
        response.features = SimulatorFeatures(
            features=list(FEATURES),
            spawn_formats=[str(f) for f in Format],
            custom_info="Entities are structures, robots and single bricks (brick_<id>)",
        )

    def _spawn_entity(self, request: SpawnEntity.Request, response: SpawnEntity.Response) -> None:
        response.result, response.entity_name = self._spawn(
            request.name,
            request.allow_renaming,
            request.uri,
            request.resource_string,
            request.entity_namespace,
            request.initial_pose,
        )

    def _spawn_entities(
        self, request: SpawnEntities.Request, response: SpawnEntities.Response
    ) -> None:
        results = []
        for item in request.spawn_requests:
            result, name = self._spawn(
                item.name,
                item.allow_renaming,
                item.entity_resource.uri,
                item.entity_resource.resource_string,
                item.entity_namespace,
                item.initial_pose,
            )
            results.append(SpawnResult(result=result, entity_name=name))
        response.results = results
        failed = sum(r.result.result != Result.RESULT_OK for r in results)
        response.result = _ok()
        if failed:
            response.result = Result(
                result=SpawnEntities.Response.ENTITIES_SPAWN_FAILED,
                error_message=f"{failed} of {len(results)} requests failed",
            )

    def _spawn(
        self,
        name: str,
        allow_renaming: bool,
        uri: str,
        text: str,
        namespace: str,
        initial_pose: PoseStamped,
    ) -> tuple[Result, str]:
        codes = SpawnEntity.Response
        if namespace:
            return Result(
                result=codes.NAMESPACE_INVALID,
                error_message=f"namespace is {namespace!r}, expected none: bricks have no topics",
            ), ""
        if not uri and not text:
            return Result(
                result=codes.NO_RESOURCE, error_message="uri and resource_string are empty"
            ), ""
        try:
            pose = self._frames.state(
                initial_pose.header.frame_id, initial_pose.pose
            ).world_T_entity
        except ValueError as error:
            return Result(result=codes.INVALID_POSE, error_message=str(error)), ""
        try:
            structure = (
                read_structure(_existing(resolve_uri(uri)))
                if uri
                else parse_structure(text, name="resource_string")
            )
            entity = self._world.spawn(name, structure, pose, rename=allow_renaming)
        except NameTakenError as error:
            return Result(result=codes.NAME_NOT_UNIQUE, error_message=str(error)), ""
        except NameInvalidError as error:
            return Result(result=codes.NAME_INVALID, error_message=str(error)), ""
        except (FormatError, SceneError) as error:
            return Result(result=codes.RESOURCE_PARSE_ERROR, error_message=str(error)), ""
        except (CollisionError, EngineError, PoseError) as error:
            return Result(result=codes.INVALID_POSE, error_message=str(error)), ""
        self._changed()
        return _ok(), entity.name

    def _delete_entity(self, request: DeleteEntity.Request, response: Any) -> None:
        self._world.delete(request.entity)
        self._changed()
        response.result = _ok()

    def _get_entities(self, request: GetEntities.Request, response: Any) -> None:
        response.entities = self._matching(request.filters)
        response.result = _ok()

    def _get_entities_states(self, request: GetEntitiesStates.Request, response: Any) -> None:
        response.entities = self._matching(request.filters)
        response.states = [self._state_message(name) for name in response.entities]
        response.result = _ok()

    def _get_entity_state(self, request: GetEntityState.Request, response: Any) -> None:
        response.state = self._state_message(request.entity)
        response.result = _ok()

    def _get_entity_info(self, request: GetEntityInfo.Request, response: Any) -> None:
        response.info = self._info(request.entity)
        response.result = _ok()

    def _get_entity_bounds(self, request: GetEntityBounds.Request, response: Any) -> None:
        low, high = self._world.bounds(request.entity)
        response.bounds = Bounds(
            type=Bounds.TYPE_BOX,
            points=[conversions.vector_message(low), conversions.vector_message(high)],
        )
        response.result = _ok()

    def _set_entity_state(self, request: SetEntityState.Request, response: Any) -> None:
        try:
            twist = _twist_array(request.state.twist)
            state = self._frames.state(request.state.header.frame_id, request.state.pose, twist)
            self._world.set_entity_state(request.entity, state)
        except (ValueError, PoseError) as error:
            response.result = Result(
                result=SetEntityState.Response.INVALID_POSE, error_message=str(error)
            )
            return
        self._changed()
        response.result = _ok()

    def _get_simulation_state(self, _request: Any, response: Any) -> None:
        response.state = SimulationState(state=int(self._world.state))
        response.result = _ok()

    def _set_simulation_state(self, request: SetSimulationState.Request, response: Any) -> None:
        codes = SetSimulationState.Response
        wanted = request.state.state
        if wanted not in {int(s) for s in RunState}:
            response.result = Result(
                result=codes.INCORRECT_TRANSITION,
                error_message=f"state is {wanted}, expected 0 stopped, 1 playing, 2 paused"
                " or 3 quitting",
            )
        elif wanted == self._world.state:
            response.result = Result(
                result=codes.ALREADY_IN_TARGET_STATE,
                error_message=f"already {RunState(wanted).name.lower()}",
            )
        else:
            try:
                self._world.set_state(RunState(wanted))
            except TransitionError as error:
                response.result = Result(
                    result=codes.INCORRECT_TRANSITION, error_message=str(error)
                )
                return
            self._changed()
            response.result = _ok()

    def _reset(self, request: ResetSimulation.Request, response: Any) -> None:
        if request.scope not in (int(ResetScope.ALL), *range(8)):
            raise BrickSimError(
                f"scope is {request.scope}, expected 0 or 255 (all), or a sum of 1 (time),"
                " 2 (state) and 4 (spawned)"
            )
        self._world.reset(ResetScope(request.scope))
        self._changed()
        response.result = _ok()

    def _step(self, request: StepSimulation.Request, response: Any) -> None:
        if self._world.state != RunState.PAUSED:
            raise BrickSimError("the simulation is not paused")
        if self._stepping is not None:
            raise BrickSimError("a simulate_steps goal is running")
        if not 1 <= request.steps <= MAX_BLOCKING_STEPS:
            raise BrickSimError(
                f"steps is {request.steps}, expected 1 to {MAX_BLOCKING_STEPS};"
                " use the action simulate_steps for more"
            )
        for _ in range(request.steps):
            self._world.step()
        response.result = _ok()

    # -- entities as messages ---------------------------------------------------------------------

    def _state_message(self, name: str) -> EntityState:
        state = self._world.entity_state(name)
        message = EntityState(pose=conversions.pose_message(state.world_T_entity))
        message.header = conversions.header(conversions.time_message(self._world.time), self._frame)
        message.twist = Twist(
            linear=conversions.vector_message(state.twist[:3]),
            angular=conversions.vector_message(state.twist[3:]),
        )
        return message

    def _info(self, name: str) -> EntityInfo:
        if name in self._world.robots:
            return EntityInfo(
                category=EntityCategory(category=EntityCategory.CATEGORY_ROBOT),
                description="robot",
                tags=["robot"],
            )
        entity = self._world.entity(name)
        parts = self._world.parts_of(name)
        held = set(parts) & set(self._world.simulator.fixed_parts)
        category = EntityCategory.CATEGORY_STATIC_OBJECT if held else EntityCategory.CATEGORY_OBJECT
        description = f"structure of {len(parts)} parts"
        tags = ["structure"]
        if entity is None:
            description = str(self._world.simulator.graph.part(parts[0]).shape)
            tags = ["brick"]
        elif not entity.initial:
            tags.append("spawned")
        return EntityInfo(
            category=EntityCategory(category=category), description=description, tags=tags
        )

    def _matching(self, filters: EntityFilters) -> list[str]:
        names = self._world.entity_names()
        if filters.filter:
            try:
                pattern = re.compile(filters.filter)
            except (re.error, OverflowError, RecursionError) as error:
                shown = filters.filter[:80]
                raise BrickSimError(f"filter {shown!r} is no pattern: {error}") from None
            names = [n for n in names if pattern.search(n)]
        if filters.categories or filters.tags.tags:
            wanted = {c.category for c in filters.categories}
            infos = {n: self._info(n) for n in names}
            names = [
                n
                for n in names
                if (not wanted or infos[n].category.category in wanted)
                and _tags_match(filters.tags, list(infos[n].tags))
            ]
        if filters.bounds.type != Bounds.TYPE_EMPTY:
            low, high = _box(filters.bounds)
            names = [n for n in names if self._touches(n, low, high)]
        return names

    def _touches(self, name: str, low: Array, high: Array) -> bool:
        if name in self._world.robots:
            origin = self._world.entity_state(name).world_T_entity[:3, 3]
            return bool(np.all(origin >= low) and np.all(origin <= high))
        least, greatest = self._world.bounds(name)
        return bool(np.all(least <= high) and np.all(greatest >= low))

    def _changed(self) -> None:
        self._node.publish_now()  # type: ignore[attr-defined]


def _ok() -> Result:
    return Result(result=Result.RESULT_OK)


def _failed(text: str) -> Result:
    return Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise SceneError(f"{path} is not a file")
    return path


def _twist_array(twist: Twist) -> Array:
    linear, angular = twist.linear, twist.angular
    numbers = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"twist is {numbers.tolist()}, expected finite numbers")
    if np.abs(numbers).max() > MAX_TWIST:
        raise ValueError(
            f"twist is {numbers.tolist()}, expected at most {MAX_TWIST:g} m/s and rad/s each"
        )
    return numbers


def _tags_match(wanted: TagsFilter, tags: Collection[str]) -> bool:
    if not wanted.tags:
        return True
    hits = [tag in tags for tag in wanted.tags]
    return all(hits) if wanted.filter_mode == TagsFilter.FILTER_MODE_ALL else any(hits)


def _box(bounds: Bounds) -> tuple[Array, Array]:
    points: list[Vector3] = list(bounds.points)
    if bounds.type != Bounds.TYPE_BOX or len(points) != 2:
        raise BrickSimError(
            f"bounds are of type {bounds.type} with {len(points)} points, expected a box of 2"
        )
    corners = np.array([[p.x, p.y, p.z] for p in points])
    return corners.min(axis=0), corners.max(axis=0)
