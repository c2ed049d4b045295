# SPDX-License-Identifier: Apache-2.0
"""The engine protocol on PhysX: a body per brick, welds, filters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from ovphysx.types import SimObjectType
from pxr import Usd
from scipy.spatial.transform import Rotation

from bricksim_core.engines.boxes import Boxes, brick_boxes, concatenate, penetrating
from bricksim_core.engines.ovphysx import columns
from bricksim_core.engines.ovphysx.contacts import read_contacts
from bricksim_core.engines.ovphysx.robots import Robot, RobotSource, RobotState
from bricksim_core.engines.ovphysx.session import Session
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import (
    BODY_SHAPE,
    NO_PART,
    BodySpec,
    JointState,
    RobotSpec,
    StepReport,
)
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.engines.welded import Body, WeldedScene
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, quaternion_of, transform, transform_points

OVERLAP_TOLERANCE = 2e-4
"""Depth [m] that `OvphysxEngine.overlaps` lets pass."""

_STATE = ("position", "orientation", "linearVelocity", "angularVelocity")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of the engine; of PhysX what it gives away: poses, velocities, joints, targets."""

    time: float
    bodies: tuple[BodySpec, ...]
    seated: frozenset[tuple[int, int]]
    wrenches: Mapping[int, Array]
    robots: Mapping[str, RobotState]


class OvphysxEngine:
    """PhysX on the CPU through NVIDIA's ovphysx.

    Args:
        settings: Numbers of the scene.

    Raises:
        EngineError: PhysX does not start.
    """

    def __init__(self, settings: PhysxSettings = PhysxSettings()) -> None:
        self.settings = settings
        self._sources: list[RobotSource] = []
        self._session = self._begin()

    def _begin(self) -> Session:
        """A new session with nothing but the robots in it."""
        author = StageAuthor(Usd.Stage.CreateInMemory(), self.settings)
        author.scene()
        session = Session(author.stage.GetRootLayer().ExportToString())
        self._scene = WeldedScene()
        self._robots = {source.spec.name: Robot(session, source) for source in self._sources}
        self._wrenches: dict[int, Array] = {}
        self._time = 0.0
        self._poses = np.zeros((0, 4, 4))
        self._twists = np.zeros((0, 6))
        self._colliders: dict[int, tuple[int, int, str]] = {}
        self._handles: list[int] = []
        return session

    # -- protocol ---------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return self._time

    @property
    def timestep(self) -> float:
        """Length of one step [s]."""
        return self.settings.timestep

    @property
    def gravity(self) -> Array:
        """(3,) gravity [m/s^2], world."""
        return np.array(self.settings.gravity)

    def update(
        self,
        removed: Sequence[int],
        added: Sequence[BodySpec],
        seated: Collection[tuple[int, int]] | None = None,
    ) -> None:
        """Takes bodies out and puts bodies in; see `Engine.update`."""
        motions = zip(self._poses, self._twists, strict=True)
        before = dict(zip(self._scene.component_ids, motions, strict=True))
        edits = self._scene.update(removed, added, seated)
        session = self._session
        with session.editing():
            columns.delete_welds(session, edits.unwelded)
            columns.delete_bricks(session, edits.deleted)
            columns.create_bricks(session, edits.created, self.settings)
            columns.set_held(session, edits.held)
            columns.set_filters(session, edits.filters)
        self._move(edits.moved)
        # Welds come last, when the bodies are where the welds want them.
        with session.editing():
            columns.create_welds(session, edits.welded)
        for spec in added:
            twist = np.zeros(6) if spec.fixed else np.asarray(spec.twist, dtype=float)
            before[spec.component] = (np.asarray(spec.world_T_component, dtype=float), twist)
        ids = self._scene.component_ids
        self._poses = np.array([before[c][0] for c in ids]).reshape(-1, 4, 4)
        self._twists = np.array([before[c][1] for c in ids]).reshape(-1, 6)
        for part_id in edits.deleted:
            self._wrenches.pop(part_id, None)
        self._handles = [
            session.handle(names.brick(p)) for p in self._scene.groups.part_ids.tolist()
        ]

    def apply_wrench(self, part_id: int, wrench: Array) -> None:
        """Applies (6,) force and torque at a brick's COM, next step only."""
        wrench = np.asarray(wrench, dtype=float)
        if wrench.shape != (6,) or not np.all(np.isfinite(wrench)):
            raise EngineError(f"part {part_id}: wrench is {wrench}, expected six finite numbers")
        if part_id not in self._scene.groups.part_ids:
            raise EngineError(f"part {part_id} is unknown, expected one of this engine")
        self._wrenches[part_id] = self._wrenches.get(part_id, np.zeros(6)) + wrench

    def step(self) -> StepReport:
        """Advances by one `timestep`."""
        for robot in self._robots.values():
            robot.advance(self.timestep)
        self._push_wrenches()
        self._session.step(self.timestep)
        self._time += self.timestep
        poses, twists = self._scene.groups.fit(*self.part_motion())
        previous_poses, previous_twists = self._poses, self._twists
        fixed = np.array([self._scene.bodies[c].fixed for c in self._scene.component_ids], bool)
        poses[fixed] = previous_poses[fixed]
        twists[fixed] = 0.0
        if not np.all(np.isfinite(poses)) or not np.all(np.isfinite(twists)):
            raise EngineError(f"the state at {self._time:.4f} s is not finite")
        self._poses, self._twists = poses, twists
        return StepReport(
            time=self._time,
            dt=self.timestep,
            component_ids=np.array(self._scene.component_ids, dtype=np.int64),
            world_T_component=poses,
            twist=twists,
            previous_world_T_component=previous_poses,
            previous_twist=previous_twists,
            contacts=read_contacts(self._session, self._identify),
        )

    def snapshot(self) -> Snapshot:
        """The state as far as PhysX gives it away.

        What the solver remembers of the last step (contact caches) is not part of it: a run goes
        on from a snapshot the same way every time, but not bit by bit as it would have without.
        """
        bodies = [self._scene.bodies[c] for c in self._scene.component_ids]
        return Snapshot(
            time=self._time,
            bodies=tuple(
                replace(spec, world_T_component=pose.copy(), twist=twist.copy())
                for spec, pose, twist in zip(bodies, self._poses, self._twists, strict=True)
            ),
            seated=self._scene.seated,
            wrenches=dict(self._wrenches),
            robots={name: robot.save() for name, robot in self._robots.items()},
        )

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot of this engine."""
        if not isinstance(snapshot, Snapshot) or snapshot.robots.keys() != self._robots.keys():
            raise EngineError("the snapshot is not one of this engine with the same robots")
        # A new session, so that PhysX remembers nothing of what happened in between.
        self._session.close()
        self._session = self._begin()
        self.update([], snapshot.bodies, snapshot.seated)
        for name, state in snapshot.robots.items():
            self._robots[name].restore(state)
        self._wrenches = dict(snapshot.wrenches)
        self._time = snapshot.time

    def overlaps(
        self, bodies: Sequence[BodySpec], ignore: Sequence[int] = (), *, robots: bool = True
    ) -> NDArray[np.bool_]:
        """For each body: would it penetrate anything in the scene?"""
        skipped = set(ignore)
        present = concatenate(
            [
                brick_boxes(self._scene.bodies[c].layout).moved(pose)
                for c, pose in zip(self._scene.component_ids, self._poses, strict=True)
                if c not in skipped
            ]
        )
        result = np.zeros(len(bodies), dtype=np.bool_)
        for i, spec in enumerate(bodies):
            boxes = brick_boxes(spec.layout).moved(spec.world_T_component)
            low = (boxes.centres - boxes.reach)[:, 2].min()
            ground = self.settings.ground
            result[i] = (
                len(penetrating(boxes, present, OVERLAP_TOLERANCE)[0]) > 0
                or (ground is not None and low < ground - OVERLAP_TOLERANCE)
                or (robots and self._hits_robot(boxes))
            )
        return result

    def add_robot(self, robot: RobotSpec) -> None:
        """Adds a robot."""
        if robot.name in self._robots:
            raise EngineError(f"robot name {robot.name!r} is taken")
        source = RobotSource.of(robot, self.settings)
        self._robots[robot.name] = Robot(self._session, source)
        self._sources.append(source)
        self._colliders.clear()

    def joint_state(self, robot: str) -> JointState:
        """State of all joints of a robot that can move."""
        return self._robot(robot).state()

    def set_joint_targets(self, robot: str, targets: Mapping[str, float]) -> None:
        """Sets position targets by joint name [rad or m]."""
        self._robot(robot).set_targets(targets)

    def set_joint_positions(self, robot: str, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions [rad or m], targets included, at once."""
        self._robot(robot).set_positions(positions)

    def link_pose(self, robot: str, link: str) -> Array:
        """(4, 4) world_T_link [m]."""
        return self._robot(robot).link_pose(link)

    def close(self) -> None:
        """Frees what the engine holds."""
        self._session.close()

    # -- beyond the protocol ----------------------------------------------------------------

    def part_motion(self) -> tuple[Array, Array]:
        """Motions of the bodies themselves, before the rigid fit, in the order of
        `WeldedScene.groups`: (N, 4, 4) poses [m] and (N, 6) twists of the COMs, world."""
        if not self._handles:
            return np.zeros((0, 4, 4)), np.zeros((0, 6))
        session, kind = self._session, SimObjectType.RIGID_BODY
        state = session.read(kind, _STATE)
        row = {handle: i for i, handle in enumerate(session.order(kind, _STATE[0]))}
        order = [row[handle] for handle in self._handles]
        position, orientation, linear, angular = (state[n][order].astype(float) for n in _STATE)
        return transform(position, orientation), np.concatenate([linear, angular], axis=1)

    def deformation(self) -> Array:
        """(N,) how far each brick's body is from where its component's rigid fit has it [m]."""
        poses, _ = self.part_motion()
        groups = self._scene.groups
        exact, _ = groups.part_motion(self._poses, self._twists)
        gaps = transform_points(poses, groups.local_coms) - transform_points(
            exact, groups.local_coms
        )
        return np.linalg.norm(gaps, axis=1)

    # -- inside -----------------------------------------------------------------------------

    def _move(self, bodies: Sequence[Body]) -> None:
        for held in (True, False):
            chosen = [body for body in bodies if body.fixed == held]
            if not chosen:
                continue
            poses = np.array([body.world_T_part for body in chosen])
            twists = np.array([body.twist for body in chosen])
            values = {"position": poses[:, :3, 3], "orientation": quaternion_of(poses)}
            if not held:
                values |= {"linearVelocity": twists[:, :3], "angularVelocity": twists[:, 3:]}
            handles = [self._session.handle(names.brick(body.part_id)) for body in chosen]
            self._session.set(SimObjectType.RIGID_BODY, values, handles)

    def _push_wrenches(self) -> None:
        fixed = {p for s in self._scene.bodies.values() if s.fixed for p in s.layout.part_ids}
        wrenches = {p: w for p, w in self._wrenches.items() if p not in fixed}
        self._wrenches = {}
        if not wrenches:
            return
        groups = self._scene.groups
        poses, _ = groups.part_motion(self._poses, self._twists)
        index = {p: i for i, p in enumerate(groups.part_ids.tolist())}
        rows = [index[p] for p in wrenches]
        points = transform_points(poses[rows], groups.local_coms[rows])
        values = np.concatenate([np.array(list(wrenches.values())), points], axis=1)
        handles = [self._session.handle(names.brick(p)) for p in wrenches]
        self._session.set(SimObjectType.RIGID_BODY, {"wrench": values}, handles)

    def _hits_robot(self, boxes: Boxes) -> bool:
        if not self._robots:
            return False
        rotations = Rotation.from_matrix(boxes.axes).as_quat()
        halves = boxes.halves - 0.5 * OVERLAP_TOLERANCE
        return any(
            path.startswith(f"{names.ROBOTS}/")
            for box in zip(boxes.centres, halves, rotations, strict=True)
            for path in self._session.overlapping(*box)
        )

    def _identify(self, handle: int) -> tuple[int, int, str]:
        """Part id, contact shape and name of a collider."""
        if handle not in self._colliders:
            path = self._session.paths.path_to_string(handle)
            self._colliders[handle] = self._identify_path(path)
        return self._colliders[handle]

    def _identify_path(self, path: str) -> tuple[int, int, str]:
        if part := names.part_of(path):
            return (*part, "")
        for name, robot in self._robots.items():
            if link := robot.link_of(path):
                return NO_PART, BODY_SHAPE, f"{name}/{link}"
        return NO_PART, BODY_SHAPE, "ground" if path == names.GROUND else path

    def _robot(self, name: str) -> Robot:
        try:
            return self._robots[name]
        except KeyError:
            raise EngineError(
                f"robot {name!r} is unknown, expected one of {list(self._robots)}"
            ) from None
