# SPDX-License-Identifier: Apache-2.0
"""The engine protocol on NVIDIA's ovphysx: PhysX on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from ovphysx.types import SimObjectType
from pxr import Usd
from scipy.spatial.transform import Rotation

from bricksim_core.engines.boxes import Boxes
from bricksim_core.engines.ovphysx import columns
from bricksim_core.engines.ovphysx.contacts import read_contacts
from bricksim_core.engines.ovphysx.robots import RobotSource, add_robots
from bricksim_core.engines.ovphysx.session import Session
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import Contacts, RobotSpec
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.engines.welded import Body, Edits
from bricksim_core.engines.welded_engine import OVERLAP_TOLERANCE, WeldedEngine, WeldedRobot
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, quaternion_of, transform

_BODY = SimObjectType.RIGID_BODY
_ASLEEP = "isSleeping"
_MOTION = ("position", "orientation", "linearVelocity", "angularVelocity")


class OvphysxEngine(WeldedEngine):
    """PhysX on the CPU through NVIDIA's ovphysx.

    Args:
        settings: Numbers of the scene.

    Raises:
        EngineError: PhysX does not start.
    """

    def __init__(self, settings: PhysxSettings = PhysxSettings()) -> None:
        super().__init__(settings)
        self._sources: list[RobotSource] = []
        self._handles: list[int] = []
        self._rows: dict[str, NDArray[np.intp]] = {}
        self._state: Mapping[str, NDArray] | None = None
        self._session = self._new_session()

    def carry_out(self, edits: Edits) -> None:
        """Makes PhysX's scene what the edits say."""
        session = self._session
        # PhysX takes a prim that goes and comes back only in two edits.
        again = {weld.pair for weld in edits.welded}.intersection(edits.unwelded)
        if again:
            with session.editing():
                columns.delete_welds(session, sorted(again))
        unwelded = [pair for pair in edits.unwelded if pair not in again]
        of_stage = (edits.deleted, edits.created, edits.held, edits.filters, edits.welded)
        if unwelded or any(of_stage):
            with session.editing():
                columns.delete_welds(session, unwelded)
                columns.delete_bricks(session, edits.deleted)
                columns.create_bricks(session, edits.created, self.settings)
                columns.set_held(session, edits.held)
                columns.set_filters(session, edits.filters)
                columns.create_welds(session, edits.welded)
        parts = self.scene.groups.part_ids.tolist()
        self._handles = [session.handle(names.brick(part_id)) for part_id in parts]
        self._rows, self._state = {}, None
        self._move(edits.moved)

    def part_motion(self) -> tuple[Array, Array]:
        """Motions of the bodies themselves; see `WeldedEngine.part_motion`."""
        if not self._handles:
            return np.zeros((0, 4, 4)), np.zeros((0, 6))
        state, rows = self._read_state(), self._rows_of(_MOTION[0])
        values = (state[name][rows].astype(float) for name in _MOTION)
        position, orientation, linear, angular = values
        return transform(position, orientation), np.concatenate([linear, angular], axis=1)

    def place(self, poses: Array, twists: Array) -> None:
        """Puts all bodies; see `WeldedEngine.place`."""
        for fixed in (True, False):
            rows = np.flatnonzero(self.part_fixed == fixed)
            self._put(rows, poses[rows], twists[rows], fixed)

    def push(self, part_ids: Sequence[int], wrenches: Array, points: Array) -> None:
        """Applies forces and torques, next step only."""
        values = np.concatenate([wrenches, points], axis=1)
        handles = [self._session.handle(names.brick(part_id)) for part_id in part_ids]
        self._session.set(_BODY, {"wrench": values}, handles)

    def put_to_sleep(self, part_ids: Sequence[int], sleep: bool) -> None:
        """Lets free bricks sleep, or wakes them."""
        handles = [self._session.handle(names.brick(part_id)) for part_id in part_ids]
        command = np.full((len(handles), 1), not sleep, dtype=np.uint8)
        self._state = None
        self._session.set(_BODY, {"wake": command}, handles)

    def read_sleeping(self) -> NDArray[np.bool_]:
        """(N,) which bricks sleep."""
        return self._read_state()[_ASLEEP].ravel().astype(bool)[self._rows_of(_ASLEEP)]

    def advance(self) -> None:
        """Advances PhysX by one time step."""
        self._state = None
        self._session.step(self.timestep)

    def read_contacts(self) -> Contacts:
        """Contacts of the last step."""
        return read_contacts(self._session, self.colliders)

    def path_of(self, handle: int) -> str:
        """Path of a collider that a contact names by number."""
        return self._session.paths.path_to_string(handle)

    def hits_robot(self, boxes: Boxes) -> bool:
        """Whether one of the boxes overlaps a robot."""
        rotations = Rotation.from_matrix(boxes.axes).as_quat()
        halves = boxes.halves - 0.5 * OVERLAP_TOLERANCE
        return any(
            path.startswith(f"{names.ROBOTS}/")
            for box in zip(boxes.centres, halves, rotations, strict=True)
            for path in self._session.overlapping(*box)
        )

    def make_robot(self, robot: RobotSpec) -> WeldedRobot:
        """Adds a robot: a new session takes in all robots before its first step."""
        source = RobotSource.of(robot, self.settings)
        before = self.snapshot()
        self._sources.append(source)
        try:
            self.restart()
        except EngineError:
            self._sources.remove(source)
            self.restart()
            raise
        finally:
            self.take_over(before)
        return self.robots[robot.name]

    def restart(self) -> None:
        """Takes all bodies out: a new session with nothing but the robots in it."""
        self._session.close()
        self.clear()
        self._session = self._new_session()
        self.robots = {**add_robots(self._session, self._sources, self.timestep)}

    def close(self) -> None:
        """Frees what the engine holds."""
        self._session.close()

    def _read_state(self) -> Mapping[str, NDArray]:
        """State of all bricks; read once a step."""
        if self._state is None:
            self._state = self._session.read(_BODY, (*_MOTION, _ASLEEP))
        return self._state

    def _rows_of(self, attribute: str) -> NDArray[np.intp]:
        """(N,) where a read of an attribute has the bricks, in the order of the scene's groups."""
        if attribute not in self._rows:
            place = {handle: i for i, handle in enumerate(self._session.order(_BODY, attribute))}
            rows = [place[handle] for handle in self._handles]
            self._rows[attribute] = np.array(rows, dtype=np.intp)
        return self._rows[attribute]

    def _new_session(self) -> Session:
        settings = self.settings
        if settings.enhanced_determinism is None:
            settings = replace(settings, enhanced_determinism=bool(self._sources))
        author = StageAuthor(Usd.Stage.CreateInMemory(), settings)
        author.scene()
        return Session(author.stage.GetRootLayer().ExportToString())

    def _move(self, bodies: Sequence[Body]) -> None:
        row = {part_id: i for i, part_id in enumerate(self.scene.groups.part_ids.tolist())}
        for fixed in (True, False):
            chosen = [body for body in bodies if body.fixed == fixed]
            rows = np.array([row[body.part_id] for body in chosen], dtype=np.intp)
            poses = np.array([body.world_T_part for body in chosen]).reshape(-1, 4, 4)
            twists = np.array([body.twist for body in chosen]).reshape(-1, 6)
            self._put(rows, poses, twists, fixed)

    def _put(self, rows: NDArray[np.intp], poses: Array, twists: Array, fixed: bool) -> None:
        """Sets poses and, of free bricks, twists; by rows of the scene's groups."""
        self._state = None
        if not len(rows):
            return
        values = {"position": poses[:, :3, 3], "orientation": quaternion_of(poses)}
        if not fixed:
            values |= {"linearVelocity": twists[:, :3], "angularVelocity": twists[:, 3:]}
        self._session.set(_BODY, values, [self._handles[row] for row in rows])
