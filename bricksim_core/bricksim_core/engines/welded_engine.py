# SPDX-License-Identifier: Apache-2.0
"""What the engines with a body per brick have in common: the protocol, less PhysX itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.boxes import Boxes, brick_boxes, concatenate, penetrating
from bricksim_core.engines.contact_events import Colliders, Identity
from bricksim_core.engines.contact_lists import (
    join_contacts,
    no_contacts,
    take_contacts,
    with_links,
)
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import (
    BODY_SHAPE,
    NO_PART,
    BodySpec,
    Contacts,
    JointState,
    RobotSpec,
    StepReport,
)
from bricksim_core.engines.rest import Rest
from bricksim_core.engines.usd import names
from bricksim_core.engines.welded import Edits, WeldedScene
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, transform_points

OVERLAP_TOLERANCE = 2e-4
"""Depth [m] that `WeldedEngine.overlaps` lets pass."""


class WeldedRobot(Protocol):
    """A robot of such an engine."""

    def state(self) -> JointState:
        """Positions, velocities and drive efforts of all joints."""
        ...

    def set_targets(self, targets: Mapping[str, float]) -> None:
        """Position targets by joint name [rad or m]."""
        ...

    def set_positions(self, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions [rad or m], targets included."""
        ...

    def advance(self, dt: float) -> None:
        """Moves the drives' set points towards their targets for a step of ``dt`` [s]."""
        ...

    def link_pose(self, link: str) -> Array:
        """(4, 4) world_T_link [m]."""
        ...

    def link_of(self, path: str) -> str | None:
        """Name of the link that a prim is part of, None if it is not of this robot."""
        ...

    def save(self) -> Any:
        """The whole state, for `restore`."""
        ...

    def restore(self, state: Any) -> None:
        """Sets the whole state."""
        ...


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of the engine; of PhysX what it gives away: poses, velocities, joints, targets.

    ``part_motion`` is that of the bodies themselves, in the order of the scene's groups;
    ``asleep`` the components that sleep and ``resting`` the contacts that they keep.
    """

    time: float
    bodies: tuple[BodySpec, ...]
    part_motion: tuple[Array, Array]
    seated: frozenset[tuple[int, int]]
    wrenches: Mapping[int, Array]
    robots: Mapping[str, object]
    asleep: frozenset[int]
    resting: Contacts


class WeldedEngine(ABC):
    """The engine protocol; a subclass carries out edits, steps and reads.

    Args:
        settings: Numbers of the scene.
    """

    def __init__(self, settings: PhysxSettings) -> None:
        self.settings = settings
        self.robots: dict[str, WeldedRobot] = {}
        self.clear()

    def clear(self) -> None:
        """Forgets all bodies (of this side, not of PhysX)."""
        self.scene = WeldedScene()
        self._wrenches: dict[int, Array] = {}
        self._time = 0.0
        self._poses = np.zeros((0, 4, 4))
        self._twists = np.zeros((0, 6))
        scene = self.scene
        self._rest = Rest(scene.groups, scene.ids, scene.fixed, self.timestep)
        self._held = self._rest.contacts
        self.colliders = Colliders(self._identify)

    # -- for subclasses -----------------------------------------------------------------------

    @abstractmethod
    def carry_out(self, edits: Edits) -> None:
        """Makes PhysX's scene what the edits say."""

    @abstractmethod
    def part_motion(self) -> tuple[Array, Array]:
        """Motions of the bodies themselves, before the rigid fit, in the order of the scene's
        groups: (N, 4, 4) poses [m] and (N, 6) twists of the COMs, world [m/s, rad/s]."""

    @abstractmethod
    def place(self, poses: Array, twists: Array) -> None:
        """Puts all bodies where `part_motion` has told that they were."""

    @abstractmethod
    def push(self, part_ids: Sequence[int], wrenches: Array, points: Array) -> None:
        """Applies (M, 6) forces and torques at (M, 3) points [m] to free bricks, next step only."""

    @abstractmethod
    def advance(self) -> None:
        """Advances PhysX by one time step."""

    @abstractmethod
    def read_contacts(self) -> Contacts:
        """Contacts of the last step."""

    @abstractmethod
    def path_of(self, handle: int) -> str:
        """Path of a collider that a contact names by number."""

    @abstractmethod
    def hits_robot(self, boxes: Boxes) -> bool:
        """Whether one of the boxes overlaps a robot."""

    @abstractmethod
    def make_robot(self, robot: RobotSpec) -> WeldedRobot:
        """Adds a robot to PhysX's scene."""

    @abstractmethod
    def restart(self) -> None:
        """Takes all bodies out, so that PhysX remembers nothing of them; robots stay."""

    def put_to_sleep(self, part_ids: Sequence[int], sleep: bool) -> None:
        """Lets free bricks sleep, or wakes them; only if `PhysxSettings.sleeping`."""
        raise NotImplementedError

    def read_sleeping(self) -> NDArray[np.bool_]:
        """(N,) which bricks sleep, in the order of the scene's groups; as `put_to_sleep`."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Frees what the engine holds."""

    @property
    def part_states(self) -> tuple[Array, Array]:
        """(N, 4, 4) poses [m] and (N, 6) twists of all bricks as the rigid fit has them."""
        return self.scene.groups.part_motion(self._poses, self._twists)

    @property
    def part_fixed(self) -> NDArray[np.bool_]:
        """(N,) whether each brick is held by the world."""
        return self.scene.fixed[self.scene.groups.group]

    # -- protocol -----------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return self._time

    @property
    def timestep(self) -> float:
        """Length of one step [s]."""
        return self.settings.timestep

    @property
    def contact_time(self) -> float:
        """An impact is over within a step [s]."""
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
        motion = dict(zip(self.scene.component_ids, motions, strict=True))
        edits = self.scene.update(removed, added, seated)
        for spec in added:
            twist = np.zeros(6) if spec.fixed else np.asarray(spec.twist, dtype=float)
            motion[spec.component] = (np.asarray(spec.world_T_component, dtype=float), twist)
        ids = self.scene.component_ids
        self._poses = np.array([motion[c][0] for c in ids]).reshape(-1, 4, 4)
        self._twists = np.array([motion[c][1] for c in ids]).reshape(-1, 6)
        for part_id in edits.deleted:
            self._wrenches.pop(part_id, None)
        self.carry_out(edits)
        self._wake(edits)

    def apply_wrench(self, part_id: int, wrench: Array) -> None:
        """Applies (6,) force and torque at a brick's COM, next step only."""
        wrench = np.asarray(wrench, dtype=float)
        if wrench.shape != (6,) or not np.all(np.isfinite(wrench)):
            raise EngineError(f"part {part_id}: wrench is {wrench}, expected six finite numbers")
        if part_id not in self.scene.groups.part_ids:
            raise EngineError(f"part {part_id} is unknown, expected one of this engine")
        self._wrenches[part_id] = self._wrenches.get(part_id, np.zeros(6)) + wrench

    def step(self) -> StepReport:
        """Advances by one `timestep`."""
        for robot in self.robots.values():
            robot.advance(self.timestep)
        pushed = self._push_wrenches()
        rest = self._rest
        previous_poses, previous_twists = self._poses, self._twists
        stirred = np.zeros(len(self._poses), dtype=np.bool_)
        if rest.nothing_moves and not pushed and not self.robots:
            found = no_contacts()
            if previous_twists.any():  # what has just fallen asleep
                self._twists = np.zeros_like(previous_twists)
        else:
            self.advance()
            if rest.asleep.any():
                stirred = rest.keep(self.scene.groups.all_parts(self.read_sleeping()))
            self._poses, self._twists = self._read_motion()
            found = self.read_contacts()
            if self.robots:
                self._correct_gripped(found, previous_poses)
        self._time += self.timestep
        touching = join_contacts([found, rest.contacts])
        still = rest.asleep & ~previous_twists.any(axis=1)
        # What the world holds is still if its contacts are: those of sleepers, and no others.
        still |= self.scene.fixed & (rest.contacts is self._held)
        still[rest.components_of(found)] = False
        self._held = rest.contacts
        if stirred.any():
            self.put_to_sleep(self._parts_of(stirred), False)
            rest.wake(stirred)
        if self.settings.sleeping and not rest.nothing_moves:
            sleep = rest.observe(self._poses, found, pushed)
            if sleep.any():
                self.put_to_sleep(self._parts_of(sleep), True)
        return StepReport(
            time=self._time,
            dt=self.timestep,
            component_ids=self.scene.ids,
            world_T_component=self._poses,
            twist=self._twists,
            previous_world_T_component=previous_poses,
            previous_twist=previous_twists,
            contacts=touching,
            still=still,
            fresh=found,
        )

    def snapshot(self) -> Snapshot:
        """The state as far as PhysX gives it away.

        What the solver remembers of the last step (contact caches, friction anchors) is not part of
        it: a run goes on from a snapshot the same way every time, but where bodies touch or are
        welded not bit by bit as it would have without. How far apart the two are: docs/engines.md.
        """
        bodies = [self.scene.bodies[c] for c in self.scene.component_ids]
        return Snapshot(
            time=self._time,
            bodies=tuple(
                replace(spec, world_T_component=pose.copy(), twist=twist.copy())
                for spec, pose, twist in zip(bodies, self._poses, self._twists, strict=True)
            ),
            part_motion=self.part_motion(),
            seated=self.scene.seated,
            wrenches=dict(self._wrenches),
            robots={name: robot.save() for name, robot in self.robots.items()},
            asleep=frozenset(self.scene.ids[self._rest.asleep].tolist()),
            resting=self._rest.contacts,
        )

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot of this engine."""
        if not isinstance(snapshot, Snapshot) or snapshot.robots.keys() != self.robots.keys():
            raise EngineError("the snapshot is not one of this engine with the same robots")
        self.restart()
        self.take_over(snapshot)
        if snapshot.asleep:
            asleep = np.isin(self.scene.ids, list(snapshot.asleep))
            self.put_to_sleep(self._parts_of(asleep), True)
            self._rest.resume(asleep, snapshot.resting)

    def take_over(self, snapshot: Snapshot) -> None:
        """Puts what a snapshot holds into an empty scene; robots that it does not know stay."""
        self.update([], snapshot.bodies, snapshot.seated)
        self.place(*snapshot.part_motion)
        for name, state in snapshot.robots.items():
            self.robots[name].restore(state)
        self._wrenches = dict(snapshot.wrenches)
        self._time = snapshot.time

    def overlaps(
        self, bodies: Sequence[BodySpec], ignore: Sequence[int] = (), *, robots: bool = True
    ) -> NDArray[np.bool_]:
        """For each body: would it penetrate anything in the scene?"""
        skipped = set(ignore)
        present = concatenate(
            [
                brick_boxes(self.scene.bodies[c].layout).moved(pose)
                for c, pose in zip(self.scene.component_ids, self._poses, strict=True)
                if c not in skipped
            ]
        )
        return np.array([self._overlaps(body, present, robots) for body in bodies], dtype=np.bool_)

    def add_robot(self, robot: RobotSpec) -> None:
        """Adds a robot."""
        if robot.name in self.robots:
            raise EngineError(f"robot name {robot.name!r} is taken")
        names.robot(robot.name)
        self.robots[robot.name] = self.make_robot(robot)
        self.colliders = Colliders(self._identify)

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

    # -- beyond the protocol ------------------------------------------------------------------

    def deformation(self) -> Array:
        """(N,) how far each brick's body is from where its component's rigid fit has it [m]."""
        poses, _ = self.part_motion()
        groups = self.scene.groups
        exact, _ = self.part_states
        gaps = transform_points(poses, groups.local_coms) - transform_points(
            exact, groups.local_coms
        )
        return np.linalg.norm(gaps, axis=1)

    # -- inside -------------------------------------------------------------------------------

    def _identify(self, handle: int) -> Identity:
        path = self.path_of(handle)
        if part := names.part_of(path):
            return (*part, "")
        for name, robot in self.robots.items():
            if link := robot.link_of(path):
                return NO_PART, BODY_SHAPE, f"{name}/{link}"
        return NO_PART, BODY_SHAPE, "ground" if path == names.GROUND else path

    def _read_motion(self) -> tuple[Array, Array]:
        """Poses and twists of the components after a step.

        Raises:
            EngineError: They are not finite.
        """
        poses, twists = self._poses.copy(), np.zeros_like(self._twists)
        moves = ~(self.scene.fixed | self._rest.asleep)
        if moves.any():
            found = self.scene.groups.fit(*self.part_motion())
            poses[moves], twists[moves] = found[0][moves], found[1][moves]
            if not np.all(np.isfinite(poses)) or not np.all(np.isfinite(twists)):
                raise EngineError(f"the state at {self._time + self.timestep:.4f} s is not finite")
        return poses, twists

    def _correct_gripped(self, contacts: Contacts, before: Array) -> None:
        """Gives what a robot touches the mean twist of the step.

        PhysX's own is what the last of the fingers' opposing constraints left, 0.1 m/s and 20 rad/s
        for a brick of 2 g that stands still in a grip of 20 N.
        """
        rows = self._rest.components_of(take_contacts(contacts, with_links(contacts)))
        rows = np.unique(rows[~self.scene.fixed[rows]])
        if len(rows):
            means = self.scene.groups.mean_twists(before, self._poses, self.timestep)
            self._twists[rows] = means[rows]

    def _wake(self, edits: Edits) -> None:
        """Goes on with what rests after edits."""
        changed = {*edits.deleted, *edits.held}
        changed |= {body.part_id for body in (*edits.created, *edits.moved)}
        for prim, targets in edits.filters.items():
            changed |= {prim.part_id, *(target.part_id for target in targets)}
        changed |= {part for pair in edits.unwelded for part in pair}
        changed |= {part for weld in edits.welded for part in weld.pair}
        scene, slept = self.scene, self._rest.sleepers
        self._rest = self._rest.after(scene.groups, scene.ids, scene.fixed, changed)
        woken = (slept - self._rest.sleepers) & set(scene.groups.part_ids.tolist())
        if woken:
            self.put_to_sleep(sorted(woken), False)

    def _parts_of(self, components: NDArray[np.bool_]) -> list[int]:
        """Ids of the parts of some of the (K,) components."""
        groups = self.scene.groups
        return groups.part_ids[components[groups.group]].tolist()

    def _push_wrenches(self) -> Collection[int]:
        """Hands over the wrenches of the next step; returns the parts that they act on."""
        if not self._wrenches:
            return ()
        fixed = {p for s in self.scene.bodies.values() if s.fixed for p in s.layout.part_ids}
        wrenches = {p: w for p, w in self._wrenches.items() if p not in fixed}
        self._wrenches = {}
        if not wrenches:
            return ()
        groups = self.scene.groups
        poses, _ = self.part_states
        index = {p: i for i, p in enumerate(groups.part_ids.tolist())}
        rows = [index[p] for p in wrenches]
        points = transform_points(poses[rows], groups.local_coms[rows])
        self.push(list(wrenches), np.array(list(wrenches.values())), points)
        return wrenches.keys()

    def _overlaps(self, body: BodySpec, present: Boxes, robots: bool) -> bool:
        boxes = brick_boxes(body.layout).moved(body.world_T_component)
        low = (boxes.centres - boxes.reach)[:, 2].min()
        ground = self.settings.ground
        if not body.fixed and ground is not None and low < ground - OVERLAP_TOLERANCE:
            return True
        for part_id in body.layout.part_ids.tolist():
            own, others = boxes.take(boxes.part_ids == part_id), self._not_seated(part_id, present)
            if len(penetrating(own, others, OVERLAP_TOLERANCE)[0]):
                return True
        return robots and bool(self.robots) and self.hits_robot(boxes)

    def _not_seated(self, part_id: int, present: Boxes) -> Boxes:
        """Boxes less those that stand in, or hold, the studs of a part."""
        mates = {b if a == part_id else a for a, b in self.scene.seated if part_id in (a, b)}
        return present.take(~np.isin(present.part_ids, list(mates))) if mates else present

    def _robot(self, name: str) -> WeldedRobot:
        try:
            return self.robots[name]
        except KeyError:
            raise EngineError(
                f"robot {name!r} is unknown, expected one of {list(self.robots)}"
            ) from None
