# SPDX-License-Identifier: Apache-2.0
"""Parts that slide against each other: one step of Moreau's time stepping (docs/mechanics.md).

The parts of a component are rigid, its connections rigid and perfectly plastic. With v the
velocities of the parts against the rigid motion of the component, M their masses, f the loads and
w, lambda the forces of connections and contacts, a time h with constant forces gives

    M (v1 - v0) / h = f - J w + B lambda,   w, lambda such that 1/2 v1' M v1 is least
                                            subject to R w <= 1, lambda >= 0.

Without motion v1 = 0 exactly if the loads can be balanced: what slides is what limit analysis says.
The dual problem has the velocities as unknowns and the work of friction as cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.mechanics.body_motion import (
    energy_of,
    fastest,
    friction_at,
    full_wrenches,
    gathered,
    momenta_by,
    momenta_of,
    moves_at,
    parting_at,
    pushed,
    slid_at,
    spread_over,
    summed,
    ways_at,
)
from bricksim_core.mechanics.friction_fallback import moved_by_piqp
from bricksim_core.mechanics.friction_packed import moved, nowhere, unpacked
from bricksim_core.mechanics.friction_program import UNFINISHED
from bricksim_core.mechanics.friction_setup import JointArrays, PartArrays, PushArrays, laid_out
from bricksim_core.mechanics.portions import Portions
from bricksim_core.mechanics.selection import sides
from bricksim_core.mechanics.snapfit.balance import balance_of
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.joints import Joints
from bricksim_core.mechanics.snapfit.pushes import Pushes
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

_PITCH = float(PITCHES[3])

STILL = 1e-6
"""Speed below which nothing slides [m/s]."""

FAINT = 1e-4
"""Part of the greatest sliding speed below which a connection does not slide."""

_HARDLY = 1e-3
"""The same part for connections that are not looked at under smaller loads."""

_NOTHING = 1e-9
"""Slip [m] that an energy can bring which counts as none."""

_EXACT = 1e-9
"""Part of the energy of a motion that the energy of its error may have."""

_BEGIN, _STEP, _STEP_EACH, _STEP_PRODUCT = 0.15, 0.007, 0.0005, 0.0001
"""Cost of what is done before and after the steps of the solver, of each of them, and more of it
for each link and each product of two blocks of the matrix."""

_PORTION, _USUAL = 1.0, 10
"""Cost of the steps that are done at a time; how many are usual."""


@record
class Parts:
    """The parts of a component as bodies.

    Attributes:
        coms: (N, 3) centres of mass [m].
        masses: (N,) [kg].
        inertias: (N, 3, 3) scaled, about the centres of mass [kg].
        anchored: (N,) parts that the world holds.
        loads: (N, 6) scaled loads less those that accelerate a free component as a whole [N].
    """

    coms: Array
    masses: Array
    inertias: Array
    anchored: NDArray[np.bool_]
    loads: Array

    @staticmethod
    def of(layout: ComponentLayout, anchored: NDArray[np.bool_], loads: Array) -> Parts:
        """The parts of a component under (N, 6) loads about their COMs [N, N m]."""
        own, scaled = balance_of(layout), loads / PITCHES
        if anchored.any():
            scaled[anchored] = 0.0
        else:
            scaled, _ = own.taken(scaled)
        return Parts(layout.coms, layout.masses, own.inertias, anchored, scaled)

    def under(self, loads: Array) -> Parts:
        """The same parts under other (N, 6) scaled loads [N]."""
        return Parts(self.coms, self.masses, self.inertias, self.anchored, loads)

    def energy(self, twists: Array) -> float:
        """Kinetic energy [J] by (N, 6) scaled twists."""
        return energy_of(self.masses, self.inertias, twists)

    def momenta(self, twists: Array) -> Array:
        """(N, 6) scaled momenta about the COMs by (N, 6) scaled twists."""
        return momenta_of(self.masses, self.inertias, twists)


class Outset(NamedTuple):
    """How parts begin to move.

    Attributes:
        span: Time for which the forces are constant [s].
        soon: (N, 6) scaled twists of the parts after that time [m/s].
        borne: (N, 6) scaled loads meanwhile, less those that accelerate the parts [N].
    """

    span: float
    soon: Array
    borne: Array


class Forces(NamedTuple):
    """Where constant forces lead.

    Attributes:
        speed: (6 B,) scaled twists of the bodies after them [m/s].
        wrench: (K, 6) scaled wrenches of the connections between bodies [N].
    """

    speed: Array
    wrench: Array


def moving(joints: Joints, parts: Parts, twists: Array) -> NDArray[np.bool_]:
    """(C,) connections whose ends move against each other."""
    return moves_at(joints.lower, joints.upper, joints.centre, parts.coms, twists, STILL, FAINT)


def bodies_between(
    parts: Parts, joints: Joints, pushes: Pushes, yielding: NDArray[np.bool_]
) -> Bodies | None:
    """The bodies that are left if some connections can yield; None if nothing comes apart.

    Args:
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
        yielding: (C,) connections that can yield.
    """
    apart, side = sides(parts.anchored, joints.lower, joints.upper, yielding)
    return Bodies(parts, joints, pushes, side) if apart else None


class Bodies:
    """Bodies of parts held together, and what can yield between them.

    Args:
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
        side: (N,) number of the body that each part belongs to; the world's is one of them.

    Attributes:
        parts: The parts.
        count: B, how many bodies move.
        crossing: (K,) indices of the connections between bodies.
        weakest: Least pull-off strength of the connections between bodies [N].
        loads: (6 B,) scaled loads on the bodies [N].
    """

    def __init__(self, parts: Parts, joints: Joints, pushes: Pushes, side: IntArray) -> None:
        self.parts = parts
        laid = laid_out(
            side,
            PartArrays(parts.coms, parts.masses, parts.inertias, parts.anchored),
            JointArrays(
                joints.lower,
                joints.upper,
                joints.centre,
                joints.half,
                joints.studs,
                joints.pull,
                joints.tip,
                joints.shear,
                joints.twist,
            ),
            PushArrays(pushes.low, pushes.high, pushes.point, pushes.normal),
        )
        self._laid, self._program = laid, laid.program
        self._connections = len(joints)
        self.count = len(laid.friction) // 6
        self.crossing, self.weakest = laid.crossing, laid.weakest
        self.loads = summed(laid.body, laid.arm, parts.loads, self.count)
        self._near, self._begun = nowhere(laid.program), False
        self._known: dict[tuple[bytes, float, float], Forces] = {}

    def gathered(self, twists: Array) -> Array:
        """(6 B,) twists of the bodies with the momenta of their parts, of (N, 6) scaled twists."""
        laid, parts = self._laid, self.parts
        return gathered(
            self._program, laid.unit, laid.body, laid.arm, parts.masses, parts.inertias, twists
        )

    def spread(self, speed: Array) -> Array:
        """(N, 6) twists of the parts by (6 B,) twists of the bodies."""
        return spread_over(self._laid.body, self._laid.arm, speed)

    def fastest(self, speed: Array) -> float:
        """Greatest speed of a part's COM [m/s] by (6 B,) scaled twists of the bodies."""
        return fastest(self._laid.body, self._laid.arm, speed)

    def moved(self, speed: Array, span: float, share: float = 1.0) -> Portions[Forces]:
        """Where constant forces lead: least 1/2 v'Mv - v'(M v0 + h f) + h (power of friction)
        subject to no corner of a connection and no contact closing.

        Args:
            speed: (6 B,) scaled twists before [m/s].
            span: Time h [s].
            share: Factor of the loads.

        Raises:
            SolverError: The solver found no optimum.
        """
        key = speed.tobytes(), span, share
        if key not in self._known:
            self._known[key] = yield from self._moved(speed, span, share)
        return self._known[key]

    def _moved(
        self, speed: Array, span: float, share: float, bound: float = 0.0
    ) -> Portions[Forces]:
        """What `moved` gives, worked out; no motion if it has no more energy than a bound [J]."""
        laid = self._laid
        load, force = pushed(
            self._program, laid.unit, laid.friction, self.loads, speed, span, share
        )
        # Energies in multiples of that of a force and of the lightest body.
        one = (span * force) ** 2 / laid.unit
        least = _NOTHING * self.weakest / one
        found = None
        for known in (True, False) if self._begun else (False,):
            found = yield from self._followed(load, force, least, bound / one, known)
            self._begun = found is not None
            if self._begun:
                break
        after, upper = found or moved_by_piqp(unpacked(self._program), load, force)
        wrench = full_wrenches(self._program, upper, force)
        return Forces(after * (span * force / laid.unit), wrench)

    def _followed(
        self, load: Array, force: float, least: float, bound: float, known: bool
    ) -> Portions[tuple[Array, Array] | None]:
        """Steps of `friction_program.moved`; None if they were in vain."""
        program = self._program
        each = _STEP + _STEP_EACH * program.links + _STEP_PRODUCT * program.products
        portion = max(1, round(_PORTION / each))
        state, kept = nowhere(program), False
        first = 0
        while True:
            yield each * min(portion, _USUAL) + (0.0 if first else _BEGIN)
            steps, kept, after, upper = moved(
                program, load, force, least, bound, _EXACT, self._near, known,
                state, kept, first, first + portion,
            )  # fmt: skip
            if steps != UNFINISHED:
                return (after, upper) if steps >= 0 else None
            first += portion

    def work(self, speed: Array, after: Array, span: float, share: float) -> float:
        """What the loads do [J] while (6 B,) scaled twists change steadily in a time [s]."""
        return 0.5 * span * share * float(self.loads @ (speed + after))

    def stopping(self, speed: Array, power: Array, energy: float, share: float) -> float:
        """After what time [s] friction and loads as they are stop a motion, exactly where one joint
        slides one way; inf: never."""
        lost = float(power.sum()) - share * float(self.loads @ speed)
        return 2.0 * energy / lost if energy > 0.0 and lost > 0.0 else np.inf

    def differs(self, outset: Outset, twists: Array, share: float, little: float) -> Portions[bool]:
        """Whether these bodies begin to move otherwise than others, between which less could yield.

        Args:
            outset: Of the others; of the same parts.
            twists: (N, 6) scaled twists at the start [m/s].
            share: Factor of the loads.
            little: Energy of a difference that is none [J].

        Raises:
            SolverError: The solver found no optimum.
        """
        # Of the motions that forces allow the true one has the least energy. Of those that more
        # forces allow it is the nearest to theirs: the energy of the difference is no more than the
        # difference of the energies, and a motion need not be known to have no more than that.
        speed, bound = self.gathered(twists), self.parts.energy(outset.soon) + little
        key = speed.tobytes(), outset.span, share
        forces = self._known.get(key)
        if forces is None:
            forces = yield from self._moved(speed, outset.span, share, bound)
        if not forces.speed.any():
            return False
        self._known[key] = forces
        return self.parts.energy(self.spread(forces.speed) - outset.soon) > little

    def momenta(self, speed: Array) -> Array:
        """(6 B,) M v."""
        return momenta_by(self._program, self._laid.unit, speed)

    def parting(self, speed: Array) -> Array:
        """(K, 6) scaled twists of upper against lower parts at the connections between bodies."""
        return parting_at(self._program, speed)

    def still(self, speed: Array) -> NDArray[np.bool_]:
        """(C,) connections between bodies that next to nothing slides at, of all."""
        parting = np.abs(self.parting(speed)).max(axis=1)
        still = np.zeros(self._connections, dtype=bool)
        still[self.crossing[parting <= _HARDLY * parting.max()]] = True
        return still

    def slid(self, speed: Array) -> tuple[Array, Array, Array]:
        """What `parting` and, of that, `friction_of` give; zeros if no more than next to nothing
        moves."""
        return slid_at(self._program, speed, STILL)

    def friction_of(self, parting: Array) -> tuple[Array, Array]:
        """What friction takes at given speeds, the most that the connections can give.

        With the theorem of docs/mechanics.md, section 2: parts that come apart at no corner work
        against the full friction of all points, and sideways against bearing.

        Args:
            parting: (K, 6) motion at the connections.

        Returns:
            (K,) power [W], and mean slip speeds of the studs, power over strength [m/s].
        """
        return friction_at(self._program, parting)

    def ways(self, parting: Array) -> Array:
        """(9 K,) what tells how the joints slide by its signs: the speeds at which the corners part
        and the sides shift along x, y and the diagonals and turn [m/s]."""
        return ways_at(self._program, parting)
