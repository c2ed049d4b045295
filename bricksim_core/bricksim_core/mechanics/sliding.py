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

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import piqp
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.friction_program import (
    Contacts,
    FrictionJoints,
    Links,
    Program,
    elimination_of,
    moved,
)
from bricksim_core.mechanics.interior_solver import dense_interior_solver, interior_solver
from bricksim_core.mechanics.selection import bodies_joined
from bricksim_core.mechanics.snapfit.balance import balance_of
from bricksim_core.mechanics.snapfit.elastic import PITCHES, wrench_maps
from bricksim_core.mechanics.snapfit.joints import Joints
from bricksim_core.mechanics.snapfit.pushes import Pushes
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import ComponentLayout, IntArray

_PITCH = float(PITCHES[3])

STILL = 1e-6
"""Speed below which nothing slides [m/s]."""

FAINT = 1e-4
"""Part of the greatest sliding speed below which a connection does not slide."""

_DENSE = 40
"""Unknowns up to which the program is kept dense."""

_TOLERANCES = (1e-10, 1e-8)
"""Of the interior point method: wanted, and accepted."""

_NOTHING = 1e-9
"""Slip [m] that an energy can bring which counts as none."""

_EXACT = 1e-9
"""Part of the energy of a motion that the energy of its error may have."""

_CORNERS, _SIDES = 4, 6
"""Inequalities of a joint: its corners do not close, its sideways slip is not less than that along
+x, -x, +y, -y and by turning both ways."""

_SIX = np.arange(6)
"""Unknowns of a body."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a component as bodies.

    Attributes:
        coms: (N, 3) centres of mass [m].
        masses: (N,) [kg].
        inertias: (N, 3, 3) scaled, about the centres of mass [kg].
        moments: (N, 22) what adds up where parts are held together (`Balance.moments`).
        anchored: (N,) parts that the world holds.
        loads: (N, 6) scaled loads less those that accelerate a free component as a whole [N].
    """

    coms: Array
    masses: Array
    inertias: Array
    moments: Array
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
        return Parts(layout.coms, layout.masses, own.inertias, own.moments, anchored, scaled)

    def energy(self, twists: Array) -> float:
        """Kinetic energy [J] by (N, 6) scaled twists."""
        return 0.5 * float((twists * self.momenta(twists)).sum())

    def momenta(self, twists: Array) -> Array:
        """(N, 6) scaled momenta about the COMs by (N, 6) scaled twists."""
        turning = np.matmul(self.inertias, twists[:, 3:, None])[:, :, 0]
        return np.hstack([self.masses[:, None] * twists[:, :3], turning])


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
    # Motions of the parts at the origin differ by what they do against each other.
    shift = twists[:, :3] - cross(twists[:, 3:], parts.coms / _PITCH)
    along = shift[joints.upper] - shift[joints.lower]
    turn = twists[joints.upper, 3:] - twists[joints.lower, 3:]
    along += cross(turn, joints.centre / _PITCH)
    speed = np.maximum(np.abs(along), np.abs(turn)).max(axis=1, initial=0.0)
    return speed > max(STILL, FAINT * float(speed.max(initial=0.0)))


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
    sound = ~yielding
    side = bodies_joined(parts.anchored, joints.lower[sound], joints.upper[sound])
    if not (side[joints.lower] != side[joints.upper]).any():
        return None
    return Bodies(parts, joints, pushes, side)


class Bodies:
    """Bodies of parts held together, and what can yield between them.

    Args:
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
        side: (N,) number of the body that each part belongs to; the world's is one of them.
    """

    def __init__(self, parts: Parts, joints: Joints, pushes: Pushes, side: IntArray) -> None:
        self.parts, self._joints, self._pushes = parts, joints, pushes
        held = np.zeros(side.max(initial=-1) + 1, dtype=bool)
        held[side[parts.anchored]] = True
        # The world comes last: it is indexed by -1, too.
        number = np.full(len(held), -1, dtype=np.int64)
        number[~held] = np.arange(np.count_nonzero(~held))
        body = self._body = number[side]
        count = self.count = int(np.count_nonzero(~held))
        mine = self._mine = np.where(body < 0, count, body)
        self._order = np.argsort(mine, kind="stable")
        ordered = mine[self._order]
        self._starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self._present = ordered[self._starts]
        mass, com, self._inertia = self._combined(parts)
        self._arm = (parts.coms - com[mine]) / _PITCH
        self.loads = self._summed(parts.loads)
        self._unit = float(mass[:count].min())

        self.crossing = np.flatnonzero(side[joints.lower] != side[joints.upper])
        crossing = self.between = joints.take(self.crossing)
        self._lower, self._upper = body[crossing.lower], body[crossing.upper]
        self._to_lower = wrench_maps(crossing.centre, com[self._lower])
        self._to_upper = wrench_maps(crossing.centre, com[self._upper])
        self._corners = (joints.corners[self.crossing] - crossing.centre[:, None]) / _PITCH
        self._touching = np.flatnonzero(side[pushes.low] != side[pushes.high])
        self._apex = np.zeros((len(crossing), 6))
        self._apex[:, 2] = crossing.pull
        self._apex[:, 3] = 0.5 / _PITCH * (crossing.tip[:, 2] - crossing.tip[:, 3])
        self._apex[:, 4] = 0.5 / _PITCH * (crossing.tip[:, 1] - crossing.tip[:, 0])
        self._single = np.flatnonzero(crossing.studs == 1)
        self._rows = self._rows_of_joints()
        self._friction = self._friction_per_unknown()
        self._com = com
        self._bounds = (_CORNERS + _SIDES) * len(crossing) + len(self._single) + len(self._touching)
        self._shared = crossing.studs != 1
        self._known: dict[tuple[bytes, float, float], Forces] = {}

    def _combined(self, parts: Parts) -> tuple[Array, Array, Array]:
        """(B + 1, 1) masses of the bodies and the world, (B + 1, 3) their COMs, and the bodies'
        (B, 6, 6) scaled mass matrices."""
        sums = self._sums(parts.moments)
        mass, first = sums[:, :1], sums[:, 1:4]
        com = first / np.where(mass > 0.0, mass, 1.0)
        count = self.count
        own = sums[:count, 4:13].reshape(-1, 3, 3)
        spread = sums[:count, 13:].reshape(-1, 3, 3) - first[:count, :, None] * com[:count, None]
        spread /= _PITCH**2
        inertia = np.zeros((count, 6, 6))
        diagonal = np.einsum("bii->bi", inertia)  # a view
        diagonal[:, :3] = mass[:count]
        inertia[:, 3:, 3:] = own - spread
        around = spread[:, 0, 0] + spread[:, 1, 1] + spread[:, 2, 2]
        diagonal[:, 3:] += around[:, None]
        return mass, com, inertia

    def gathered(self, twists: Array) -> Array:
        """(6 B,) twists of the bodies with the momenta of their parts, of (N, 6) scaled twists."""
        if not twists.any():
            return np.zeros(6 * self.count)
        momenta = self._summed(self.parts.momenta(twists)).reshape(-1, 6, 1)
        return np.linalg.solve(self._inertia, momenta).reshape(-1)

    def spread(self, speed: Array) -> Array:
        """(N, 6) twists of the parts by (6 B,) twists of the bodies."""
        twists = self._padded(speed)[self._mine]
        twists[:, :3] += cross(twists[:, 3:], self._arm)
        return twists

    def moved(self, speed: Array, span: float, share: float = 1.0) -> Forces:
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
            self._known[key] = self._moved(speed, span, share)
        return self._known[key]

    def _moved(self, speed: Array, span: float, share: float) -> Forces:
        """What `moved` gives, worked out."""
        target = self.momenta(speed) / span + share * self.loads
        force = max(float(np.abs(target).max(initial=0.0)), 1.0)
        size, joints = len(target), self._program.joints
        # Energies in multiples of that of a force and of the lightest body.
        least = _NOTHING * float(joints.pull.min()) * self._unit / (span * force) ** 2
        load = (target - self._friction[:size]) / force
        steps, after, upper = moved(*self._program, load, force, least, _EXACT)
        if steps < 0:
            linear = self._friction / force
            linear[:size] -= target / force
            after, upper = self._solved(linear)
        wrench = -force * upper[: len(self.crossing)]
        wrench[self._shared] += self._apex[self._shared]
        return Forces(after * (span * force / self._unit), wrench)

    @cached_property
    def _program(self) -> Program:
        """What `friction_program.moved` needs."""
        joints, single = self.between, ~self._shared
        low, high = (
            self._body[side[self._touching]] for side in (self._pushes.low, self._pushes.high)
        )
        point, normal = (
            values[self._touching] for values in (self._pushes.point, self._pushes.normal)
        )
        # Contacts of the same two bodies act at one point, between them.
        pairs, pair = np.unique(low * (self.count + 1) + high, return_inverse=True)
        order = np.argsort(pair, kind="stable")
        first = order[np.searchsorted(pair[order], np.arange(len(pairs)))]
        middle = point[first]
        push = np.hstack([normal, cross((point - middle[pair]) / _PITCH, normal)])
        at = np.concatenate([joints.centre, middle])
        lower, upper = (
            np.concatenate([mine, other[first]])
            for mine, other in ((self._lower, low), (self._upper, high))
        )
        links = Links(
            lower,
            upper,
            (at - self._com[lower]) / _PITCH,
            (at - self._com[upper]) / _PITCH,
        )
        mass = self._inertia / self._unit
        return Program(
            mass,
            np.linalg.inv(mass),
            links,
            FrictionJoints(
                corners=np.ascontiguousarray(self._corners[:, :, :2]),
                turn=self._rows[:, 8, 5].copy(),
                single=single,
                apex=self._apex[:, 2:5] / joints.pull[:, None],
                shear=joints.shear,
                pull=joints.pull,
            ),
            Contacts(len(joints) + pair[order], push[order]),
            elimination_of(self.count, lower, upper),
        )

    def work(self, speed: Array, after: Array, span: float, share: float) -> float:
        """What the loads do [J] while (6 B,) scaled twists change steadily in a time [s]."""
        return 0.5 * span * share * float(self.loads @ (speed + after))

    def stopping(self, speed: Array, power: Array, energy: float, share: float) -> float:
        """After what time [s] friction and loads as they are stop a motion, exactly where one joint
        slides one way; inf: never."""
        lost = float(power.sum()) - share * float(self.loads @ speed)
        return 2.0 * energy / lost if energy > 0.0 and lost > 0.0 else np.inf

    def difference(self, outset: Outset, twists: Array, share: float) -> float:
        """Energy [J] of the difference between a motion and that of these bodies, at the start.

        Args:
            outset: Of other bodies of the same parts.
            twists: (N, 6) scaled twists at the start [m/s].
            share: Factor of the loads.

        Raises:
            SolverError: The solver found no optimum.
        """
        speed = self.moved(self.gathered(twists), outset.span, share).speed
        return self.parts.energy(self.spread(speed) - outset.soon)

    def momenta(self, speed: Array) -> Array:
        """(6 B,) M v."""
        return np.matmul(self._inertia, speed.reshape(-1, 6, 1)).reshape(-1)

    def _padded(self, speed: Array) -> Array:
        """(B + 1, 6) twists of the bodies and the world."""
        return np.concatenate([speed.reshape(-1, 6), np.zeros((1, 6))])

    def parting(self, speed: Array) -> Array:
        """(K, 6) scaled twists of upper against lower parts at the connections between bodies."""
        twists = self._padded(speed)[:, None, :]
        return (twists[self._upper] @ self._to_upper - twists[self._lower] @ self._to_lower)[:, 0]

    def friction_of(self, parting: Array) -> tuple[Array, Array]:
        """What friction takes at given speeds, the most that the connections can give.

        With the theorem of docs/mechanics.md, section 2: parts that come apart at no corner work
        against the full friction of all points, and sideways against bearing.

        Args:
            parting: (K, 6) motion at the connections.

        Returns:
            (K,) power [W], and mean slip speeds of the studs, power over strength [m/s].
        """
        joints = self.between
        apart = np.maximum((self._apex * parting).sum(axis=1), 0.0)
        twisting = joints.twist / _PITCH * np.abs(parting[:, 5])
        sideways = joints.shear * np.abs(parting[:, :2]).max(axis=1)
        single = joints.studs == 1
        apart = np.where(single, np.maximum(apart, twisting), apart)
        sideways = np.where(single, sideways, np.maximum(sideways, twisting))
        return apart + sideways, apart / joints.pull + sideways / joints.shear

    def ways(self, parting: Array) -> Array:
        """(9 K,) what tells how the joints slide by its signs: the speeds at which the corners part
        and the sides shift along x, y and the diagonals and turn [m/s]."""
        x, y, z, about_x, about_y, turn = parting.T[:, :, None]
        corners = z + about_x * self._corners[:, :, 1] - about_y * self._corners[:, :, 0]
        return np.hstack([corners, x, y, x - y, x + y, turn]).reshape(-1)

    def _rows_of_joints(self) -> Array:
        """(K, 10, 6) the speeds that the inequalities of each joint bound."""
        joints = self.between
        rows = np.zeros((len(joints), _CORNERS + _SIDES, 6))
        rows[:, :_CORNERS, 2] = -1.0
        rows[:, :_CORNERS, 3] = -self._corners[:, :, 1]
        rows[:, :_CORNERS, 4] = self._corners[:, :, 0]
        rows[:, 4, 0], rows[:, 5, 0] = 1.0, -1.0
        rows[:, 6, 1], rows[:, 7, 1] = 1.0, -1.0
        # On one stud friction alone resists turning, and what it takes the pull lacks.
        strength = np.where(joints.studs == 1, joints.pull, joints.shear)
        rows[:, 8, 5] = joints.twist / _PITCH / strength
        rows[:, 9, 5] = -rows[:, 8, 5]
        return rows

    def _friction_per_unknown(self) -> Array:
        """(n,) power of friction per unknown of the program of `moved`: the twists, the joints'
        sideways slip, and what single studs slip along or about themselves."""
        joints, single, size = self.between, self._single, 6 * self.count
        power = np.concatenate([np.zeros(size), joints.shear, joints.pull[single]])
        weight = np.where((joints.studs == 1)[:, None], 0.0, self._apex)[:, :, None]
        twists = np.zeros((self.count + 1, 6))
        np.add.at(twists, self._upper, (self._to_upper @ weight)[:, :, 0])
        np.add.at(twists, self._lower, -(self._to_lower @ weight)[:, :, 0])
        power[:size] = twists[:-1].reshape(-1)
        return power

    def _inequalities(self) -> tuple[Array, IntArray, IntArray]:
        """Values, rows and columns of those of the joints, one more for each single stud, those of
        the contacts, all of them <= 0."""
        joints, single, touching = self.between, self._single, self._touching
        count, size, width = len(joints), 6 * self.count, _CORNERS + _SIDES
        many = width * count
        singles = slice(many, many + len(single))
        contacts = slice(singles.stop, self._bounds)
        value = np.zeros((self._bounds, 13))
        lower, upper, last = np.zeros((3, self._bounds), dtype=np.int64)
        below, above = self._to_lower.swapaxes(1, 2), self._to_upper.swapaxes(1, 2)
        value[:many, :6] = (-self._rows @ below).reshape(-1, 6)
        value[:many, 6:12] = (self._rows @ above).reshape(-1, 6)
        value[:many].reshape(count, width, 13)[:, _CORNERS:, 12] = -1.0
        lower[:many], upper[:many] = self._lower.repeat(width), self._upper.repeat(width)
        last[:many] = (size + np.arange(count)).repeat(width)
        if len(single):
            own = size + count + np.arange(len(single))
            last[:many].reshape(count, width)[single, _SIDES + 2 :] = own[:, None]
            apart = self._apex[single, None, :] / joints.pull[single, None, None]
            value[singles, :6] = (-apart @ below[single])[:, 0]
            value[singles, 6:12] = (apart @ above[single])[:, 0]
            value[singles, 12] = -1.0
            lower[singles], upper[singles] = self._lower[single], self._upper[single]
            last[singles] = own
        if len(touching):
            normal, point = self._pushes.normal[touching], self._pushes.point[touching]
            high = lower[contacts] = self._body[self._pushes.high[touching]]
            low = upper[contacts] = self._body[self._pushes.low[touching]]
            value[contacts, :3], value[contacts, 6:9] = -normal, normal
            value[contacts, 3:6] = -cross((point - self._com[high]) / _PITCH, normal)
            value[contacts, 9:12] = cross((point - self._com[low]) / _PITCH, normal)
        # The world does not move.
        value[lower < 0, :6] = 0.0
        value[upper < 0, 6:12] = 0.0
        column = np.empty(value.shape, dtype=np.int64)
        column[:, :6] = 6 * lower[:, None] + _SIX
        column[:, 6:12] = 6 * upper[:, None] + _SIX
        column[:, 12] = last
        row, place = np.nonzero(value)
        return value[row, place], row, column[row, place]

    def _solved(self, linear: Array) -> tuple[Array, Array]:
        """The optimum with a linear cost by PIQP: speeds, and wrenches as those of the program.

        Raises:
            SolverError: The solver found no optimum.
        """
        status = piqp.PIQP_UNSOLVED
        for tolerance in _TOLERANCES:
            solver = self._set_up(linear, tolerance)
            status = solver.solve()
            if status == piqp.PIQP_SOLVED:
                count, rows = len(self.crossing), _CORNERS + _SIDES
                force = np.array(solver.result.z_u)
                own = force[: rows * count].reshape(count, rows, 1)
                wrench = (own * self._rows).sum(axis=1)
                taken = force[rows * count : rows * count + len(self._single)]
                apex = self._apex[self._single] / self.between.pull[self._single, None]
                wrench[self._single] += taken[:, None] * apex
                return np.array(solver.result.x)[: 6 * self.count], -wrench
        raise SolverError(f"slip: interior point method ended with {status.name}")

    def _set_up(self, linear: Array, tolerance: float) -> piqp.SparseSolver | piqp.DenseSolver:
        unknowns, size, zero = len(linear), 6 * self.count, np.zeros(self._bounds)
        # The mass matrix in units of the lightest body.
        inertia = self._inertia / self._unit
        value, row, column = self._inequalities()
        if unknowns <= _DENSE:
            cost, rows = np.zeros((unknowns, unknowns)), np.zeros((self._bounds, unknowns))
            for first, block in zip(range(0, size, 6), inertia, strict=True):
                cost[first : first + 6, first : first + 6] = block
            rows[row, column] = value
            dense = dense_interior_solver(tolerance)
            dense.setup(cost, linear, None, None, rows, None, zero, None, None)
            return dense
        index = 6 * np.arange(self.count)[:, None, None] + _SIX
        index = np.repeat(index, 6, axis=1).reshape(-1)
        ends = np.minimum(6 * np.arange(unknowns + 1), 6 * size)
        order = np.argsort(column, kind="stable")
        solver = interior_solver(tolerance)
        solver.settings.kkt_solver = piqp.sparse_ldlt_ineq_cond
        solver.setup(
            _by_columns(inertia.reshape(-1), index, ends, unknowns),
            linear,
            None,
            None,
            _by_columns(
                value[order],
                row[order],
                np.concatenate([[0], np.bincount(column, minlength=unknowns).cumsum()]),
                self._bounds,
            ),
            None,
            zero,
            None,
            None,
        )
        return solver

    def _sums(self, values: Array) -> Array:
        """(B + 1, k) sums over the parts of each body of (N, k) values; the world's come last."""
        sums = np.zeros((self.count + 1, values.shape[1]))
        sums[self._present] = np.add.reduceat(values[self._order], self._starts, axis=0)
        return sums

    def _summed(self, wrenches: Array) -> Array:
        """(6 B,) wrenches on the bodies by (N, 6) wrenches on the parts."""
        moved = wrenches.copy()
        moved[:, 3:] += cross(self._arm, wrenches[:, :3])
        return self._sums(moved)[: self.count].reshape(-1)


def _by_columns(value: Array, row: IntArray, ends: IntArray, rows: int) -> sp.csc_matrix:
    """A matrix by its columns; ends: (n + 1,) where they begin and the last one ends."""
    # Narrow indices spare scipy a search for the greatest one.
    parts = value, row.astype(np.int32), ends.astype(np.int32)
    return sp.csc_matrix(parts, shape=(rows, len(ends) - 1))
