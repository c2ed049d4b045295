# SPDX-License-Identifier: Apache-2.0
"""Robots in a PhysX session: joint states, targets and link poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from ovphysx.types import SimObjectType

from bricksim_core.engines.ovphysx.session import Session
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import JointState, RobotSpec
from bricksim_core.engines.set_points import Drives, RobotState, SetPoints
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.robots import RobotModel, robot_stage
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, transform

_JOINT = SimObjectType.ARTICULATION_JOINT


@dataclass(frozen=True, eq=False)
class RobotSource:
    """A robot ready to be added to a session: its stage as text."""

    spec: RobotSpec
    model: RobotModel
    usda: str

    @classmethod
    def of(cls, spec: RobotSpec, settings: PhysxSettings) -> RobotSource:
        """Converts a robot.

        Raises:
            EngineError: As `robot_stage`, or the name is no prim name.
        """
        names.robot(spec.name)
        stage, model = robot_stage(spec, settings)
        return cls(spec, model, stage.GetRootLayer().ExportToString())


def add_robots(
    session: Session, sources: Sequence[RobotSource], timestep: float
) -> dict[str, Robot]:
    """Adds all robots of a session, which has not taken a step yet and takes one.

    PhysX starts joints at zero whatever the stage says, where joint limits may not allow it, and
    gives their states away for writing only before the first step of the first robot.

    Args:
        session: The simulation.
        sources: The robots.
        timestep: Length of the step [s].

    Returns:
        The robots by name.
    """
    if not sources:
        return {}
    with session.editing():
        for source in sources:
            session.reference(source.usda, names.robot(source.spec.name))
    robots = {source.spec.name: Robot(session, source, timestep) for source in sources}
    session.step(timestep)
    for robot in robots.values():
        robot.restore(robot.start)
    return robots


class Robot:
    """A robot of a session; `add_robots` makes them.

    Args:
        session: The simulation, with the robot on its stage.
        source: The robot.
        timestep: Length of a step [s].

    Attributes:
        start: State to begin with.
    """

    def __init__(self, session: Session, source: RobotSource, timestep: float) -> None:
        self.spec, self.model = source.spec, source.model
        spec = source.spec
        self._session = session
        self._root = names.robot(spec.name)
        joints = self.model.joints
        start = self.model.start(spec)
        # A joint that copies another is as fast as it.
        limits = spec.joint_limits
        speeds = [limits.get(j.name, limits.get(j.master or "", np.inf)) for j in joints]
        self._set_points = SetPoints(
            np.array([start[joint.name] for joint in joints]), np.array(speeds)
        )
        self._joints = [session.handle(f"{self._root}/{j.path}") for j in self.model.joints]
        self._links = {
            name: session.handle(f"{self._root}/{link.body}")
            for name, link in self.model.links.items()
            if link.body != "."
        }
        self._units = np.array([joint.usd_unit for joint in joints])
        self._drives = Drives([joint.drive for joint in joints])
        self._dt = timestep
        self._now: Array | None = None
        self._before: Array | None = None
        self._poses: dict[int, Array] | None = None
        positions = self._set_points.now.copy()
        self.start = RobotState(positions, np.zeros(len(positions)), positions, positions)
        self._set({"jointPosition": positions, "jointPositionTarget": positions})

    def link_of(self, path: str) -> str | None:
        """Name of the link whose body is the longest one that a prim path is part of."""
        inside = {
            f"{self._root}/{link.body}": name
            for name, link in reversed(list(self.model.links.items()))
            if path.startswith(f"{self._root}/{link.body}/")
        }
        return inside[max(inside, key=len)] if inside else None

    def state(self) -> JointState:
        """Positions, and mean velocities and drive efforts over the last step, of all joints."""
        positions = self._positions()
        before = positions if self._before is None else self._before
        speeds, efforts = self._drives.speeds_and_efforts(
            self._set_points.now, before, positions, self._dt
        )
        if self._before is None:
            speeds = self._read("jointVelocity")
        joints = tuple(joint.name for joint in self.model.joints)
        return JointState(joints, positions.copy(), speeds, efforts)

    def set_targets(self, targets: Mapping[str, float]) -> None:
        """Position targets by joint name [rad or m]."""
        values = self.model.with_mimics(targets)
        for i, joint in enumerate(self.model.joints):
            self._set_points.targets[i] = values.get(joint.name, self._set_points.targets[i])

    def advance(self, dt: float) -> None:
        """Moves the drives' set points towards their targets for a step of ``dt`` [s]."""
        self._before, self._now, self._dt = self._positions(), None, dt
        self._poses = None
        if self._set_points.advance(dt):
            self._set({"jointPositionTarget": self._set_points.now})

    def set_positions(self, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions [rad or m], targets included."""
        values = self.model.with_mimics(positions)
        named = np.array([joint.name in values for joint in self.model.joints])
        wanted = np.array([values.get(joint.name, 0.0) for joint in self.model.joints])
        now = self.save()
        self.restore(
            RobotState(
                np.where(named, wanted, now.positions),
                np.where(named, 0.0, now.velocities),
                np.where(named, wanted, now.targets),
                np.where(named, wanted, now.set_points),
            )
        )

    def save(self) -> RobotState:
        """The whole state."""
        return RobotState(
            self._positions().copy(),
            self._read("jointVelocity"),
            self._set_points.targets.copy(),
            self._set_points.now.copy(),
        )

    def restore(self, state: RobotState) -> None:
        """Sets the whole state."""
        self._set(
            {
                "jointPosition": state.positions,
                "jointVelocity": state.velocities,
                "jointPositionTarget": state.set_points,
            }
        )
        self._session.update_kinematics()
        self._set_points.put(state.targets, state.set_points)
        self._poses = self._now = self._before = None

    def link_pose(self, link: str) -> Array:
        """(4, 4) world_T_link [m].

        Raises:
            EngineError: There is no such link.
        """
        if link not in self.model.links:
            raise EngineError(
                f"robot {self.spec.name}: link {link!r} is unknown, expected one of"
                f" {', '.join(self.model.links)}"
            )
        body = self.model.links[link].body
        if body == ".":
            return self.spec.world_T_base @ self.model.links[link].body_T_link
        return self._body_poses()[self._links[link]] @ self.model.links[link].body_T_link

    def _body_poses(self) -> dict[int, Array]:
        """(4, 4) poses of all bodies [m] by handle; read once a step."""
        if self._poses is None:
            kind = SimObjectType.ARTICULATION_LINK
            bodies = sorted(set(self._links.values()))
            read = self._session.read(kind, ["position", "orientation"], bodies)
            poses = transform(read["position"], read["orientation"])
            order = self._session.order(kind, "position", bodies)
            self._poses = dict(zip(order, poses, strict=True))
        return self._poses

    def _positions(self) -> Array:
        """(J,) positions [rad or m]; read once a step."""
        if self._now is None:
            self._now = self._read("jointPosition")
        return self._now

    def _read(self, attribute: str) -> Array:
        """An attribute of the model's joints [SI]."""
        session = self._session
        values = session.read(_JOINT, [attribute], self._joints)[attribute].astype(float).ravel()
        row = {h: i for i, h in enumerate(session.order(_JOINT, attribute, self._joints))}
        return values[[row[handle] for handle in self._joints]] * self._units

    def _set(self, values: Mapping[str, Array]) -> None:
        columns = {name: (value / self._units)[:, None] for name, value in values.items()}
        self._session.set(_JOINT, columns, self._joints)
