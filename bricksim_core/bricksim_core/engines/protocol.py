# SPDX-License-Identifier: Apache-2.0
"""What the simulator asks of a rigid-body engine.

The engine knows components as rigid bodies and reports poses, twists and contacts per brick. It
knows nothing of connections: the simulator replaces bodies when the topology changes. How a
component is held together (one composite body, or one body per brick with welds) is the engine's
own affair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bricksim_core.errors import BrickSimError, EngineError
from bricksim_core.parts import Color
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray
from bricksim_core.values import as_number, as_numbers, as_vector, shown

NO_PART = -1
"""Stands for "not a brick" (ground, table, robot link) where a part id is expected."""

MAX_SPEED = 1e3
"""Speed of a body's points [m/s] or of a robot's joints [rad/s, m/s] above which a state counts as
unstable. A brick of one stud that catches the ground with an edge at 10 m/s spins at more rad/s."""

MAX_POSITION = 1e6
"""Greatest coordinate [m] at which bricks and the ground are put: rounding is 1e-10 m there. From
1e12 m on MuJoCo's steps go wrong without an error."""
MAX_GRAVITY = 1e4
"""Greatest component of gravity [m/s^2]."""

BODY_SHAPE = 0
"""Contact shape id of a brick's body box."""
STUD_SHAPE = 1
"""Contact shape id of the slab that stands for a brick's studs."""


def require_world(gravity: Any, ground: Any, *, error: type[BrickSimError] = BrickSimError) -> None:
    """Checks what every engine is made with: gravity [m/s^2], height of the ground [m] or None.

    Raises:
        BrickSimError: One is out of range.
    """
    as_vector(gravity, "gravity", 3, MAX_GRAVITY, error)
    if ground is not None:
        as_number(ground, "ground", -MAX_POSITION, MAX_POSITION, error=error)


@record
class BodySpec:
    """A component as the engine is given it.

    Attributes:
        component: Component id.
        layout: Its parts and connections in the component frame.
        world_T_component: (4, 4) pose [m].
        twist: (6,) linear velocity of the component's COM and angular velocity, world axes
            [m/s, rad/s].
        fixed: True if the world holds it: it does not move whatever pushes it.
        colors: Colour of each part, in the layout's order.
    """

    component: int
    layout: ComponentLayout
    world_T_component: Array
    twist: Array
    fixed: bool
    colors: tuple[Color, ...]


@record
class Contacts:
    """Contacts of one engine step that touch at least one brick; M rows.

    Contacts between bricks of one component are never listed.

    Attributes:
        part_a: (M,) part id or NO_PART.
        part_b: (M,) part id, always a brick.
        shape_a: (M,) BODY_SHAPE or STUD_SHAPE of part_a.
        shape_b: (M,) the same of part_b.
        other: (M,) index into `names` of what part_a is when it is no brick, else -1.
        names: Names of the non-brick things (``ground``, ``<robot>/<link>``).
        position: (M, 3) point [m], world.
        normal: (M, 3) unit normal from a to b, world.
        normal_impulse: (M,) impulse along the normal over the step [N s], >= 0.
        impulse: (M, 3) whole impulse on b over the step [N s], world; a receives its opposite.
    """

    part_a: IntArray
    part_b: IntArray
    shape_a: IntArray
    shape_b: IntArray
    other: IntArray
    names: tuple[str, ...]
    position: Array
    normal: Array
    normal_impulse: Array
    impulse: Array

    def __len__(self) -> int:
        return len(self.part_a)


@record
class StepParts:
    """A step as the engine took it where it divided it: D shorter ones in a row, all as long.

    Attributes:
        world_T_component: (D + 1, K, 4, 4) poses at the start of each and at the end of the last
            [m].
        twist: (D + 1, K, 6) velocities there [m/s, rad/s].
        first: (D + 1,) where the contacts of each begin in the step's `StepReport.fresh`, which
            lists those of one part after the other, and how many there are.
    """

    world_T_component: Array
    twist: Array
    first: IntArray

    def __len__(self) -> int:
        return len(self.first) - 1


@record
class StepReport:
    """What one engine step did. K components, sorted by id.

    Attributes:
        time: Simulation time at the end of the step [s].
        dt: Length of the step [s].
        component_ids: (K,) ids.
        world_T_component: (K, 4, 4) poses at the end [m].
        twist: (K, 6) velocities at the end: COM linear, angular; world axes [m/s, rad/s].
        previous_world_T_component: (K, 4, 4) poses at the start [m].
        previous_twist: (K, 6) velocities at the start [m/s, rad/s].
        contacts: Contacts with the impulses that acted during the step. Their lever arms refer to
            the poses at the start of the step.
        still: (K,) True for components whose pose, twist and contacts are bit by bit those of the
            last step, and which no wrench acted on; None if the engine does not tell.
        fresh: All contacts of free components that are not still, the first of `contacts`; None if
            the engine does not tell.
        parts: The parts of the step, None if it was taken as a whole.
        cost: Of the step: milliseconds of a core, told by how much there was to do and never by a
            clock, so that what goes by it is the same on every machine; 0 if the engine does not
            tell.
    """

    time: float
    dt: float
    component_ids: IntArray
    world_T_component: Array
    twist: Array
    previous_world_T_component: Array
    previous_twist: Array
    contacts: Contacts
    still: NDArray[np.bool_] | None = None
    fresh: Contacts | None = None
    parts: StepParts | None = None
    cost: float = 0.0


_MAX_DRIVE = 1e9
"""Greatest number of a robot's drive or joint, in SI units."""


@dataclass(frozen=True)
class RobotSpec:
    """A robot to add to the scene.

    Attributes:
        name: Unique name; prefixes its joints and links in the engine.
        urdf: Path of its URDF (meshes resolved relative to it or through `package_dirs`).
        world_T_base: (4, 4) pose of its root link [m].
        joint_positions: Initial positions by joint name [rad or m].
        drives: Position drives by joint name: stiffness, damping, greatest force
            [N m/rad, N m s/rad, N m or N/m, N s/m, N].
        joint_limits: Optional velocity limits by joint name [rad/s or m/s]: a drive's set point
            moves no faster.
        armature: Inertia of the motors, seen from the joint, by joint name [kg m^2 or kg]; joints
            not named have 0.1, about what the gears of an arm of this size make of their rotors.
        package_dirs: Folders by package name for ``package://`` mesh addresses.
        gravity_compensation: True if the robot's own controller carries its weight.
        pad_links: Links whose collision shapes are rubber finger pads (high friction).

    Raises:
        EngineError: A number of a joint is none or out of range.
    """

    name: str
    urdf: Path
    world_T_base: Array
    joint_positions: Mapping[str, float] = field(default_factory=dict)
    drives: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    joint_limits: Mapping[str, float] = field(default_factory=dict)
    armature: Mapping[str, float] = field(default_factory=dict)
    package_dirs: Mapping[str, Path] = field(default_factory=dict)
    gravity_compensation: bool = True
    pad_links: Sequence[str] = ()

    def __post_init__(self) -> None:
        for joint, position in self.joint_positions.items():
            name = f"{joint} of robot {self.name}"
            as_number(position, name, -MAX_POSITION, MAX_POSITION, error=EngineError)
        for joint, drive in self.drives.items():
            numbers = as_numbers(drive, finite=False)  # force may have no limit
            if (
                numbers is None
                or numbers.shape != (3,)
                or numbers.min() < 0.0
                or numbers[:2].max() > _MAX_DRIVE
            ):
                raise EngineError(
                    f"drive of {joint} of robot {self.name} is {shown(drive)}, expected stiffness"
                    f" and damping of 0 to {_MAX_DRIVE:g} and a greatest force"
                )
        for what, values in (("joint limit", self.joint_limits), ("armature", self.armature)):
            for joint, value in values.items():
                name = f"{what} of {joint} of robot {self.name}"
                as_number(value, name, 0.0, _MAX_DRIVE, error=EngineError)


@dataclass(frozen=True, eq=False)
class JointState:
    """State of the joints of one robot that can move, J rows.

    Attributes:
        names: Joint names as in the URDF.
        positions: (J,) [rad or m].
        velocities: (J,) [rad/s or m/s].
        efforts: (J,) drive force in the last step, gravity compensation left out [N m or N].
    """

    names: tuple[str, ...]
    positions: Array
    velocities: Array
    efforts: Array


class Engine(Protocol):
    """A rigid-body engine. Names of bodies are component ids, names of bricks are part ids."""

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        ...

    @property
    def timestep(self) -> float:
        """Length of one step [s]."""
        ...

    @property
    def contact_time(self) -> float:
        """Time constant of contacts [s]: over about which time an impact is spread."""
        ...

    @property
    def gravity(self) -> Array:
        """(3,) gravity [m/s^2], world."""
        ...

    def update(
        self,
        removed: Sequence[int],
        added: Sequence[BodySpec],
        seated: Collection[tuple[int, int]] | None = None,
    ) -> None:
        """Takes bodies out and puts bodies in, all at once, time and all else unchanged.

        A component that changed (join, break, teleport, hold) is in both lists. Velocities are
        taken exactly as given.

        Args:
            removed: Component ids.
            added: New components.
            seated: All pairs (lower part, upper part) of different components whose studs stand in
                each other without a connection (a broken joint before it came apart): the stud
                slab of the lower one and the body of the upper one do not touch. None leaves the
                pairs as they are; pairs with a removed part end by themselves.

        Raises:
            EngineError: A component id is unknown, given twice, or a pose is not rigid and finite.
        """
        ...

    def apply_wrench(self, part_id: int, wrench: Array) -> None:
        """Applies (6,) force [N] and torque [N m] at a brick's COM, world axes, next step only."""
        ...

    def step(self) -> StepReport:
        """Advances by one `timestep`.

        Raises:
            EngineError: The state stopped being finite.
        """
        ...

    def snapshot(self) -> object:
        """The complete state, to be given to `restore` (bitwise)."""
        ...

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot of this engine, whatever happened in between.

        Raises:
            EngineError: It is none; nothing is changed then.
        """
        ...

    def overlaps(
        self, bodies: Sequence[BodySpec], ignore: Sequence[int] = (), *, robots: bool = True
    ) -> NDArray[np.bool_]:
        """For each body: would it penetrate anything in the scene?

        The state is not disturbed. Seated pairs and, for fixed bodies, the ground do not count.

        Args:
            bodies: Candidates; they are not compared with each other.
            ignore: Ids of components that do not count.
            robots: Whether robots count.

        Returns:
            (len(bodies),) answers.
        """
        ...

    def add_robot(self, robot: RobotSpec) -> None:
        """Adds a robot.

        Raises:
            EngineError: The name is taken or the description cannot be read.
        """
        ...

    def joint_state(self, robot: str) -> JointState:
        """State of all joints of a robot that can move."""
        ...

    def set_joint_targets(self, robot: str, targets: Mapping[str, float]) -> None:
        """Sets position targets by joint name [rad or m]; joints not named keep theirs."""
        ...

    def set_joint_positions(self, robot: str, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions [rad or m], targets included, at once (for resets)."""
        ...

    def link_pose(self, robot: str, link: str) -> Array:
        """(4, 4) world_T_link [m]."""
        ...

    def close(self) -> None:
        """Frees what the engine holds. It cannot be used afterwards."""
        ...
