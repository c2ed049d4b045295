# SPDX-License-Identifier: Apache-2.0
"""Contact parameters of the MuJoCo engine and the reading of its contacts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.contact_lists import no_contacts
from bricksim_core.engines.mujoco.patches import ALONE, spread
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray
from bricksim_core.values import as_number, as_vector


@dataclass(frozen=True)
class ContactParameters:
    """How bodies touch; every default with its reason.

    Attributes:
        time_constant: Time constant of a contact's reference spring-damper [s]. Two steps of
            1/240 s is the stiffest that is stable at that step (MuJoCo, "solref"); shorter steps
            keep it, so that impacts last as long (`solref`). Raised to two steps where it is less.
        damping_ratio: Damping of the same [-]. 1: no bounce; ABS bricks on a table hardly do.
        impedance: Constraint impedance at zero depth and at ``impedance_width`` [-]. A 2 g brick
            pressed with 2 N then sinks by 0.2 mm, less than the assembly tolerances; stiffer
            contacts keep heaps of loose bricks jittering and the solver busy.
        impedance_width: Depth over which the impedance rises [m].
        friction: Sliding friction of bricks, ground and links [-]. ABS on ABS is 0.35 to 0.5.
        pad_friction: Sliding friction of rubber finger pads [-]; the larger of a pair counts.
            BrickSim's demos use 2.0 to 2.5.
        pad_impedance: Impedance of what finger pads touch [-]. Friction of soft contacts creeps: at
            0.97 eleven bricks held at one end turned by 0.3 degrees a second in the pads, at 0.997
            by a quarter of that.
        friction_impedance_ratio: Stiffness of friction over that of the normal force [-]. 10 keeps
            a gripped brick from creeping out of the fingers (MuJoCo, "impratio").
        overlap_tolerance: Depth [m] that `overlaps` lets pass: resting contacts sink by a few
            micrometres and neighbours leave 0.2 mm between their colliders.
        sleep_velocity: Speed [m/s] below which a body at rest falls asleep after ten steps; a
            sleeping body costs nothing. What only creeps on its contacts falls asleep at higher
            speeds, after a second (`creeping`). 0 switches sleeping off.

    Raises:
        EngineError: A value is out of range or of another type.
    """

    time_constant: float = 1.0 / 120.0
    damping_ratio: float = 1.0
    impedance: tuple[float, float] = (0.97, 0.999)
    impedance_width: float = 2e-4
    friction: float = 0.5
    pad_friction: float = 2.0
    pad_impedance: tuple[float, float] = (0.997, 0.9999)
    friction_impedance_ratio: float = 10.0
    overlap_tolerance: float = 2e-4
    sleep_velocity: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("time_constant", "damping_ratio", "impedance_width"):
            as_number(getattr(self, name), name, 0.0, above=True, error=EngineError)
        for name in ("friction", "pad_friction", "overlap_tolerance", "sleep_velocity"):
            as_number(getattr(self, name), name, 0.0, error=EngineError)
        ratio = self.friction_impedance_ratio
        as_number(ratio, "friction_impedance_ratio", 0.0, above=True, error=EngineError)
        for name in ("impedance", "pad_impedance"):
            as_vector(getattr(self, name), name, 2, 1.0, EngineError)

    @property
    def solimp(self) -> list[float]:
        """MuJoCo's five impedance numbers."""
        return [*self.impedance, self.impedance_width, 0.5, 2.0]

    @property
    def pad_solimp(self) -> list[float]:
        """The same for what finger pads touch."""
        return [*self.pad_impedance, self.impedance_width, 0.5, 2.0]

    def duration(self, timestep: float) -> float:
        """Time constant of contacts at a time step [s]: the one set, two steps if that is more."""
        return max(self.time_constant, 2.0 * timestep)

    def solref(self, timestep: float) -> list[float]:
        """MuJoCo's two reference numbers at a time step [s].

        MuJoCo takes damper and spring at their values at the start of a step: at two steps a time
        constant all speed of an impact would be gone after the first one. So they are made such
        that impacts fade from step to step as they would in time, by exp(-step / time constant):
        both eigenvalues of a step of the reference motion, critically damped, have this value.
        """
        decay = math.exp(-timestep / self.duration(timestep))
        damping = (1.0 - decay**2) / timestep
        stiffness = ((1.0 - decay) / timestep) ** 2
        # MuJoCo's numbers count from the greatest impedance, see "solref" in its documentation.
        constant = 2.0 / (self.impedance[1] * damping)
        ratio = self.damping_ratio * damping / (2.0 * math.sqrt(stiffness))
        return [constant, ratio]

    def firm_solref(self, timestep: float) -> list[float]:
        """The same for what must not creep in the first place: pads, and joints of a mimic.

        Friction creeps the more, the weaker the damper is.
        """
        return [self.duration(timestep), self.damping_ratio]


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


class ContactReader:
    """Reads contacts of MuJoCo steps in a row into arrays that it hands out and writes no more."""

    def __init__(self) -> None:
        self._count = 0
        self._make_room(256)

    def clear(self) -> None:
        """Makes ready for the next row of steps."""
        if self._count:
            room, self._count = max(256, 2 * self._count), 0
            self._make_room(room)

    def read(
        self, data: mujoco.MjData, geoms: GeomTable, dt: float, patches: IntArray | None = None
    ) -> slice:
        """Takes in the contacts of the last step that touch a brick, with the impulses that acted
        in it, spread over the patches that were borne at their corners if there are such; returns
        which ones those are."""
        start, most = self._count, int(data.ncon)
        if most:
            if start + most > len(self._sizes):
                self._make_room(2 * (start + most))
            found = data.contact
            # MuJoCo's arrays of contacts are columns of a table of records.
            frame, position = found.frame, found.pos
            bearing, pressing, force = _forces(found.efc_address, frame, data.efc_force)
            if patches is not None:
                gap, impedance = found.dist, found.solimp
                spread(patches, bearing, frame, position, gap, impedance, pressing, force)
                bearing |= patches != ALONE
            self._count = _collect(
                found.geom, frame, position, bearing, pressing, force, dt,
                geoms.part, geoms.shape, geoms.other,
                start, self._numbers, self._vectors, self._sizes,
            )  # fmt: skip
        return slice(start, self._count)

    def contacts(self, geoms: GeomTable, rows: slice | None = None) -> Contacts:
        """Contacts of some rows, of all if none are given."""
        rows = slice(0, self._count) if rows is None else rows
        if rows.start == rows.stop:
            return geoms.no_contacts
        part_a, part_b, shape_a, shape_b, other = self._numbers[:, rows]
        position, normal, impulse = self._vectors[:, rows]
        return Contacts(
            part_a=part_a,
            part_b=part_b,
            shape_a=shape_a,
            shape_b=shape_b,
            other=other,
            names=geoms.names,
            position=position,
            normal=normal,
            normal_impulse=self._sizes[rows],
            impulse=impulse,
        )

    def followed_by(self, geoms: GeomTable, more: Contacts) -> Contacts:
        """All contacts and then others of the same model, which are none of its own."""
        start, stop = self._count, self._count + len(more)
        if not start:
            return more
        if stop > len(self._sizes):
            self._make_room(2 * stop)
        own, numbers, vectors = slice(start, stop), self._numbers, self._vectors
        numbers[0, own], numbers[1, own] = more.part_a, more.part_b
        numbers[2, own], numbers[3, own] = more.shape_a, more.shape_b
        numbers[4, own], self._sizes[own] = more.other, more.normal_impulse
        vectors[0, own], vectors[1, own], vectors[2, own] = more.position, more.normal, more.impulse
        return self.contacts(geoms, slice(0, stop))

    def _make_room(self, count: int) -> None:
        kept = self._count
        numbers, vectors = np.empty((5, count), dtype=np.int64), np.empty((3, count, 3))
        sizes = np.empty(count)
        if kept:
            numbers[:, :kept], vectors[:, :kept] = self._numbers[:, :kept], self._vectors[:, :kept]
            sizes[:kept] = self._sizes[:kept]
        self._numbers, self._vectors, self._sizes = numbers, vectors, sizes


@compiled
def _forces(
    address: NDArray[np.int32], frame: Array, constraint: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Forces of contacts from the first body on the second.

    The friction cone is elliptic, so the constraint forces of a contact are its normal and its two
    tangential forces themselves.

    Args:
        address: (N,) where those of all contacts are, negative for those without.
        frame: (N, 9) their axes, one after the other; the first is the normal.
        constraint: Of all constraints [N].

    Returns:
        (N,) which have any, (N,) normal and (N, 3) whole forces [N].
    """
    count = len(address)
    bearing, pressing, force = address >= 0, np.zeros(count), np.zeros((count, 3))
    for c in range(count):
        if bearing[c]:
            pressing[c] = constraint[address[c]]
            for k in range(3):
                for i in range(3):
                    force[c, i] += constraint[address[c] + k] * frame[c, 3 * k + i]
    return bearing, pressing, force


@compiled
def _collect(
    pair: NDArray[np.int32],
    frame: Array,
    position: Array,
    bearing: NDArray[np.bool_],
    pressing: Array,
    force: Array,
    dt: float,
    part: IntArray,
    shape: IntArray,
    other: IntArray,
    count: int,
    numbers: IntArray,
    vectors: Array,
    sizes: Array,
) -> int:
    """Writes what `ContactReader` reads; returns how many contacts it has then.

    Args:
        pair: (N, 2) geoms of all contacts.
        frame: (N, 9) their axes, one after the other; the first is the normal.
        position: (N, 3) [m].
        bearing: (N,) which of them have forces.
        pressing: (N,) normal forces [N].
        force: (N, 3) whole forces on the second geoms [N].
        dt: Length of the step [s].
        part: (G,) part ids of the geoms; see `GeomTable`.
        shape: (G,) their shape ids.
        other: (G,) what those are that are no brick.
        count: How many contacts it has already.
        numbers: (5, M) parts a and b, their shapes, what a is when it is no brick.
        vectors: (3, M, 3) places [m], normals and impulses [N s].
        sizes: (M,) impulses along the normals [N s].
    """
    for c in range(len(bearing)):
        a, b = pair[c, 0], pair[c, 1]
        if not bearing[c] or (part[a] == NO_PART and part[b] == NO_PART):
            continue
        # MuJoCo's normal points from the first geom to the second; a brick has to be the second.
        sign = 1.0
        if part[b] == NO_PART:
            a, b, sign = b, a, -1.0
        numbers[0, count], numbers[1, count] = part[a], part[b]
        numbers[2, count], numbers[3, count] = shape[a], shape[b]
        numbers[4, count] = other[a]
        for i in range(3):
            vectors[0, count, i] = position[c, i]
            vectors[1, count, i] = sign * frame[c, i]
            vectors[2, count, i] = sign * dt * force[c, i]
        sizes[count] = dt * pressing[c]
        count += 1
    return count
