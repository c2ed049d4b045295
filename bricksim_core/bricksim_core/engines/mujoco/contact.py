# SPDX-License-Identifier: Apache-2.0
"""Contact parameters of the MuJoCo engine and the reading of its contacts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.contact_lists import no_contacts
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@dataclass(frozen=True)
class ContactParameters:
    """How bodies touch; every default with its reason.

    Attributes:
        time_constant: Time constant of a contact's reference spring-damper [s]. Two steps of
            1/240 s is the stiffest that is stable at that step (MuJoCo, "solref"); shorter steps
            keep it, so that impacts last as long. Raised to two steps where it is less.
        damping_ratio: Damping of the same [-]. 1: no bounce; ABS bricks on a table hardly do.
        impedance: Constraint impedance at zero depth and at ``impedance_width`` [-]. A 2 g brick
            pressed with 2 N then sinks by 0.2 mm, less than the assembly tolerances; stiffer
            contacts keep heaps of loose bricks jittering and the solver busy.
        impedance_width: Depth over which the impedance rises [m].
        friction: Sliding friction of bricks, ground and links [-]. ABS on ABS is 0.35 to 0.5.
        pad_friction: Sliding friction of rubber finger pads [-]; the larger of a pair counts.
            BrickSim's demos use 2.0 to 2.5.
        friction_impedance_ratio: Stiffness of friction over that of the normal force [-]. 10 keeps
            a gripped brick from creeping out of the fingers (MuJoCo, "impratio").
        overlap_tolerance: Depth [m] that `overlaps` lets pass: resting contacts sink by a few
            micrometres and neighbours leave 0.2 mm between their colliders.
        sleep_velocity: Speed [m/s] below which a body at rest falls asleep after ten steps; a
            sleeping body costs nothing. 0 switches sleeping off.
    """

    time_constant: float = 1.0 / 120.0
    damping_ratio: float = 1.0
    impedance: tuple[float, float] = (0.97, 0.999)
    impedance_width: float = 2e-4
    friction: float = 0.5
    pad_friction: float = 2.0
    friction_impedance_ratio: float = 10.0
    overlap_tolerance: float = 2e-4
    sleep_velocity: float = 1e-5

    @property
    def solimp(self) -> list[float]:
        """MuJoCo's five impedance numbers."""
        return [*self.impedance, self.impedance_width, 0.5, 2.0]

    def solref(self, timestep: float) -> list[float]:
        """MuJoCo's two reference numbers at a time step [s]."""
        return [max(self.time_constant, 2.0 * timestep), self.damping_ratio]


@dataclass(frozen=True, eq=False)
class GeomTable:
    """What each geom of the compiled model stands for; G rows.

    Attributes:
        part: (G,) part id or NO_PART.
        shape: (G,) BODY_SHAPE or STUD_SHAPE, 0 for what is no brick.
        other: (G,) index into ``names``, -1 for bricks.
        names: Names of what is no brick.
    """

    part: IntArray
    shape: IntArray
    other: IntArray
    names: tuple[str, ...]

    @cached_property
    def no_contacts(self) -> Contacts:
        """None."""
        return no_contacts(self.names)


_AXES = np.arange(3)


def read_contacts(data: mujoco.MjData, geoms: GeomTable, dt: float) -> Contacts:
    """Contacts of the last step that touch a brick, with the impulses that acted in it.

    The friction cone is elliptic, so the constraint forces of a contact are its normal and its two
    tangential forces themselves.
    """
    if not data.ncon:
        return geoms.no_contacts
    contact = data.contact
    pair: NDArray[np.int32] = contact.geom
    address: NDArray[np.int32] = contact.efc_address
    rows = ((address >= 0) & (geoms.part[pair] != NO_PART).any(axis=1)).nonzero()[0]
    if not len(rows):
        return geoms.no_contacts
    pair, address = pair[rows], address[rows]
    frame: Array = contact.frame[rows].reshape(-1, 3, 3)
    force = data.efc_force[address[:, None] + _AXES] * dt
    impulse = np.einsum("ci,cij->cj", force, frame)
    normal = frame[:, 0]
    # MuJoCo's normal points from the first geom to the second; a brick has to be the second.
    flip = geoms.part[pair[:, 1]] == NO_PART
    if flip.any():
        pair[flip] = pair[flip, ::-1]
        normal[flip] *= -1.0
        impulse[flip] *= -1.0
    part, shape = geoms.part[pair], geoms.shape[pair]
    return Contacts(
        part_a=part[:, 0],
        part_b=part[:, 1],
        shape_a=shape[:, 0],
        shape_b=shape[:, 1],
        other=geoms.other[pair[:, 0]],
        names=geoms.names,
        position=contact.pos[rows],
        normal=normal,
        normal_impulse=force[:, 0],
        impulse=impulse,
    )
