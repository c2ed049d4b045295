# SPDX-License-Identifier: Apache-2.0
"""The MuJoCo specification of a whole scene."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.mujoco.masking import GROUND_TYPE
from bricksim_core.engines.mujoco.probe import add_probe
from bricksim_core.engines.mujoco.robots import Robot, attach_robot
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array

GROUND = "ground"
"""Name of the ground plane, among contacts' names and geoms."""
HELD = "held"
"""Name of the static body that carries all that the world holds."""


@dataclass(frozen=True, eq=False)
class SceneOptions:
    """What a scene has besides bodies.

    Attributes:
        timestep: Length of one step [s].
        gravity: (3,) [m/s^2].
        ground: Height of a rigid horizontal ground plane [m], None for none.
        contact: Contact parameters.
    """

    timestep: float
    gravity: Array
    ground: float | None
    contact: ContactParameters


@dataclass(frozen=True)
class Capacity:
    """How much a model has room for.

    Attributes:
        bodies: Free components.
        boxes: Boxes of bricks, two for a brick with studs.
        pairs: Pairs of boxes that touch from some depth on.
    """

    bodies: int = 0
    boxes: int = 0
    pairs: int = 0

    def holds(self, other: Capacity) -> bool:
        """Whether something of another size fits."""
        return (
            other.bodies <= self.bodies and other.boxes <= self.boxes and other.pairs <= self.pairs
        )

    def with_room(self) -> Capacity:
        """With room to spare: growing by an eighth each time, all compiling together costs as much
        as a few times the last. Many boxes may be in a pair: where a component breaks across a
        layer, the new pieces stand in each other's studs, and there is no time to compile."""
        pairs = max(self.pairs, min(self.boxes, 64) + self.boxes // 8)
        return Capacity(*(n + n // 8 + _LEAST_ROOM for n in (self.bodies, self.boxes, pairs)))


_LEAST_ROOM = 32
MOST_BODIES = 32_000
"""Room for free components at most: MuJoCo tells pairs of bodies apart by 15 bits of one."""


def slot_name(slot: int) -> str:
    """Name of a free body."""
    return f"slot_{slot}"


def scene_spec(options: SceneOptions, robots: Iterable[Robot], capacity: Capacity) -> mujoco.MjSpec:
    """Specification of a scene: robots and what bricks are made of at run time, see `pool`.

    Raises:
        EngineError: A robot's description cannot be read.
    """
    spec = mujoco.MjSpec()
    option, contact = spec.option, options.contact
    option.timestep = options.timestep
    option.gravity = options.gravity
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    # Impulses then explain the change of momentum to about 1e-5.
    option.tolerance = 1e-9
    option.impratio = contact.friction_impedance_ratio
    # Velocities are then exactly those that the contact solver found; see drives.py.
    option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    # Fast bodies meet what is in their way in this step instead of passing through it. Without
    # robots `masking.look_ahead` says when.
    option.enableflags |= mujoco.mjtEnableBit.mjENBL_SPECULATIVE
    # An unstable state is reported, not silently reset.
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    if contact.sleep_velocity > 0.0:
        option.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP
        option.sleep_tolerance = contact.sleep_velocity
    geom = spec.default.geom
    geom.solref = contact.solref(options.timestep)
    geom.solimp = contact.solimp
    geom.friction = [contact.friction, 0.0, 0.0]
    geom.condim = 3
    if options.ground is not None:
        spec.worldbody.add_geom(
            name=GROUND,
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            pos=[0.0, 0.0, options.ground],
            contype=GROUND_TYPE,
        )
    robots = list(robots)
    for robot in robots:
        attach_robot(spec, robot, contact, options.timestep)
    if robots:
        add_probe(spec)
    held = spec.worldbody.add_body(name=HELD)
    for i in range(capacity.boxes + 1):  # the first one stays unused
        held.add_geom(name=f"box_{i}", type=mujoco.mjtGeom.mjGEOM_BOX, size=[1e-3, 1e-3, 1e-3])
    for i in range(capacity.bodies):
        body = spec.worldbody.add_body(name=slot_name(i))
        body.add_freejoint()
        body.explicitinertial = True
        body.mass, body.inertia = 1.0, np.ones(3)
        body.ipos, body.iquat = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        body.gravcomp = 1.0
    for _ in range(capacity.pairs):
        spec.add_pair(
            geomname1="box_0",
            geomname2="box_0",
            condim=3,
            solref=contact.solref(options.timestep),
            solimp=contact.solimp,
        )
    return spec


def compile_spec(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compiles a specification.

    Raises:
        EngineError: MuJoCo refuses.
    """
    try:
        return spec.compile()
    except Exception as error:
        raise EngineError(f"MuJoCo cannot build the scene: {error}") from error
