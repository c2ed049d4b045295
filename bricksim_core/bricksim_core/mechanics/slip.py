# SPDX-License-Identifier: Apache-2.0
"""When overloaded connections have come apart: after they have slid out.

An overloaded connection does not vanish, it slides: friction goes on acting while what exceeds it
accelerates the parts against each other, and stops them again when the overload is over (Newmark's
sliding block, for any number of blocks). The connection is broken once its studs have slid by their
engagement. An impact must therefore bring the work of friction over that way; a high but short
force alone does nothing.

The parts of a component are rigid, its connections rigid and perfectly plastic. With v the
velocities of the parts against the rigid motion of the component, M their masses, f the loads and
w, lambda the forces of connections and contacts, a time h with constant forces gives (Moreau's time
stepping)

    M (v1 - v0) / h = f - J w + B lambda,   w, lambda such that 1/2 v1' M v1 is least
                                            subject to R w <= 1, lambda >= 0.

Without motion v1 = 0 exactly if the loads can be balanced: what slides is what limit analysis says.
The dual problem has the velocities as unknowns and the work of friction as cost (`slide`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import piqp
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.dynamics import mass_properties
from bricksim_core.errors import SolverError
from bricksim_core.mechanics.geometry import face_contacts
from bricksim_core.mechanics.selection import bodies_joined
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES, wrench_maps
from bricksim_core.mechanics.snapfit.joints import Joints, joints_of
from bricksim_core.mechanics.snapfit.pushes import Pushes, pushes_of
from bricksim_core.mechanics.snapfit.system import SnapFitSystem, balanced
from bricksim_core.mechanics.snapfit.whole import interior_point
from bricksim_core.mechanics.types import ComponentSystem, Solution, SolveStatus
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import ComponentLayout, IntArray

_AT_LIMIT = 1e-4
"""What is missing to utilization 1 [-] in connections that may slide with overloaded ones."""

_OVER = 1e-4
"""Overload of a connection taken to be sound [-] from which it is let slide as well."""

_ROUNDS = 4
"""Motions tried in a step, each with more that may slide."""

_CONSISTENT = 1e-4
"""Part of the friction's power by which forces may miss what the motion at the start of a span asks
for, as numbers of an interior point method do."""

_SOFTER = 8
"""Tries at how much softer a pulse has to be which is too hard for its impact."""

_CLOSE = 0.1
"""How near its bounds [-] such a pulse has to come."""

_SPANS = 24
"""Spans of constant forces in a step; the last one goes to its end."""

_SHORTEST = 0.1
"""Shortest span, as a part of the time until all stops, or of what is left of the step."""

_STILL = 1e-6
"""Speed below which nothing slides [m/s]."""

_FAINT = 1e-4
"""Part of the greatest sliding speed below which a connection does not slide."""


class Sliding(NamedTuple):
    """What a criterion says of the connections of a component.

    Attributes:
        failed: (C,) those that have come apart.
        loose: (C,) those that can part together with them.
        severity: (C,) which of the failed ones is the worst.
    """

    failed: NDArray[np.bool_]
    loose: NDArray[np.bool_]
    severity: Array


class SlipCriterion:
    """Breaks what has slid out; see `BreakCriterion`.

    Args:
        constants: Strengths of the joints.
    """

    def __init__(self, constants: SnapFitConstants = SnapFitConstants()) -> None:
        self._constants = constants
        self._slips: dict[int, float] = {}
        # Scaled twist of a part against its component, and the part's grid pose in it.
        self._twists: dict[int, tuple[Array, Array]] = {}

    def failed(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: ComponentSystem,
        loads: Array,
        solution: Solution,
        overloaded: NDArray[np.bool_],
        engagement: float,
        dt: float,
        brief: bool,
        change: Array | None = None,
    ) -> Sliding:
        """Connections that have slid out (see `BreakCriterion.failed`).

        Raises:
            SolverError: No motion was found; what is known of the component stays as it was.
        """
        if engagement <= 0.0:
            return Sliding(overloaded, overloaded, solution.utilization)
        twists = self._known(layout)
        loose = np.zeros(len(overloaded), dtype=bool)
        if twists is not None or overloaded.any():
            loose = self._slide(
                layout, anchored, system, loads, solution, overloaded, twists, dt, brief, change
            )
        slips = self._slips
        if not slips:
            return Sliding(loose, loose, np.zeros(len(loose)))
        ids = layout.connection_ids.tolist()
        distance = np.array([slips.get(i, 0.0) for i in ids])
        failed = distance >= engagement
        return Sliding(failed, loose | failed, distance)

    def forget(self, connection_ids: tuple[int, ...]) -> None:
        """Drops the slip of connections that have ended."""
        for connection in connection_ids:
            self._slips.pop(connection, None)

    def slip(self, connection_id: int) -> float:
        """How far a connection has slid in all: mean slip of its studs [m]."""
        return self._slips.get(connection_id, 0.0)

    def twists(self, layout: ComponentLayout) -> Array:
        """(N, 6) velocities of the parts' COMs and spins against the rigid motion of their
        component, in its frame [m/s, rad/s]."""
        known = self._known(layout)
        return np.zeros((len(layout.part_ids), 6)) if known is None else known / PITCHES

    def snapshot(self) -> object:
        """All slips and motions."""
        return dict(self._slips), dict(self._twists)

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot."""
        slips, twists = snapshot
        self._slips, self._twists = dict(slips), dict(twists)

    def _known(self, layout: ComponentLayout) -> Array | None:
        """(N, 6) scaled twists of the parts, None if none slides."""
        if not self._twists:
            return None
        twists = np.zeros((len(layout.part_ids), 6))
        for index, part in enumerate(layout.part_ids.tolist()):
            known = self._twists.get(part)
            # A join may put a component into another frame; what little still slid ends then.
            if known is not None and np.array_equal(known[1], layout.grids[index]):
                twists[index] = known[0]
        return twists if twists.any() else None

    def _slide(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        system: ComponentSystem,
        loads: Array,
        solution: Solution,
        overloaded: NDArray[np.bool_],
        twists: Array | None,
        dt: float,
        brief: bool,
        change: Array | None,
    ) -> NDArray[np.bool_]:
        """Takes the motion through a step; (C,) connections that slide."""
        parts = Parts.of(layout, anchored, loads)
        joints = joints_of(layout, self._constants)
        if isinstance(system, SnapFitSystem):
            pushes = system.pushes
        else:
            pushes = pushes_of(face_contacts(layout), joints.lower, joints.upper, self._constants)
        yielding = overloaded | (solution.utilization >= 1.0 - _AT_LIMIT)
        if twists is not None:
            yielding |= moving(joints, parts, twists)
        start = np.zeros_like(parts.loads) if twists is None else twists
        bounds = None
        if brief and change is not None and not anchored.any():
            bounds = impact_bounds(parts, change)
        # What brakes or hits is gone before much else could yield: the bonded structure will do.
        quick = brief or twists is not None
        for attempt in range(_ROUNDS):
            motion = slide(parts, joints, pushes, yielding, start, dt, bounds)
            parts = replace(parts, loads=motion.share * parts.loads)
            if yielding.all() or attempt == _ROUNDS - 1:
                break
            # The loads less what accelerates: connections taken to be sound must bear them, too.
            left = (parts.loads - motion.inertial) * PITCHES
            check = system.bonded(left) if quick else _solved_apart(system, left)
            if check.status is SolveStatus.FAILED:
                raise SolverError(check.message)
            over = (check.utilization > 1.0 + _OVER) & ~yielding
            if not over.any():
                break
            yielding = yielding | over | (check.utilization >= 1.0 - _AT_LIMIT)

        for index in np.flatnonzero(motion.slip).tolist():
            connection = int(layout.connection_ids[index])
            self._slips[connection] = self._slips.get(connection, 0.0) + float(motion.slip[index])
        still = float(np.abs(motion.twists).max(initial=0.0)) < _STILL
        for index, part in enumerate(layout.part_ids.tolist()):
            if still:
                self._twists.pop(part, None)
            else:
                self._twists[part] = motion.twists[index], layout.grids[index].copy()
        return motion.slip > 0.0


class ImpactBounds(NamedTuple):
    """What an impact can make of the parts of a free component.

    An engine's impulse is that of a rigid body. On a few bricks that can give way it would do work
    without end, though they soon move as what they hit does. Against the component they get no
    faster than the impact changed its motion, and the energy of sliding comes from that motion: it
    is at most that of the change, which is lost where nothing bounces.

    Attributes:
        speed: Greatest speed that a part gains against the component [m/s].
        energy: Greatest work on what slides [J].
    """

    speed: float
    energy: float


def impact_bounds(parts: Parts, change: Array) -> ImpactBounds | None:
    """The bounds of an impact, None if it changed nothing.

    Args:
        parts: The parts of a free component.
        change: (6,) of the velocity of its COM and of its spin [m/s, rad/s].
    """
    weight = parts.masses[:, 0, 0]
    arm = parts.coms - weight @ parts.coms / weight.sum()
    rigid = np.empty_like(parts.loads)
    rigid[:, :3] = change[:3] + cross(change[3:], arm)
    rigid[:, 3:] = change[3:] * PITCHES[3]
    energy = 0.5 * float((rigid * parts.momenta(rigid)).sum())
    speed = float(np.linalg.norm(rigid[:, :3], axis=1).max())
    return ImpactBounds(speed, energy) if energy > 0.0 else None


def _solved_apart(system: ComponentSystem, loads: Array) -> Solution:
    """Internal forces under other loads, without a trace in what the next solve starts from."""
    state = system.snapshot()
    solution = system.solve(loads)
    system.restore(state)
    return solution


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a component as bodies.

    Attributes:
        coms: (N, 3) centres of mass [m].
        masses: (N, 6, 6) scaled inertia matrices about them [kg].
        anchored: (N,) parts that the world holds.
        loads: (N, 6) scaled loads less those that accelerate a free component as a whole [N].
    """

    coms: Array
    masses: Array
    anchored: NDArray[np.bool_]
    loads: Array

    @staticmethod
    def of(layout: ComponentLayout, anchored: NDArray[np.bool_], loads: Array) -> Parts:
        """The parts of a component under (N, 6) loads about their COMs [N, N m]."""
        if not anchored.any():
            loads, _ = balanced(layout, mass_properties(layout), loads)
        masses = np.zeros((len(loads), 6, 6))
        masses[:, range(3), range(3)] = layout.masses[:, None]
        masses[:, 3:, 3:] = layout.inertias / PITCHES[3] ** 2
        scaled = np.where(anchored[:, None], 0.0, loads / PITCHES)
        return Parts(layout.coms, masses, anchored, scaled)

    def momenta(self, twists: Array) -> Array:
        """(N, 6) scaled momenta about the COMs by (N, 6) scaled twists."""
        return np.matmul(self.masses, twists[:, :, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class Motion:
    """How the parts of a component move against each other in a step.

    Attributes:
        twists: (N, 6) scaled twists at its end [m/s].
        inertial: (N, 6) scaled loads that accelerate the parts at its end [N].
        slip: (C,) mean slip of the connections' studs in it >= 0 [m].
        share: Part of the loads that was taken.
    """

    twists: Array
    inertial: Array
    slip: Array
    share: float = 1.0


def moving(joints: Joints, parts: Parts, twists: Array) -> NDArray[np.bool_]:
    """(C,) connections whose ends move against each other."""
    speed = np.abs(
        _at(joints.centre, parts.coms[joints.upper], twists[joints.upper])
        - _at(joints.centre, parts.coms[joints.lower], twists[joints.lower])
    ).max(axis=1, initial=0.0)
    return speed > max(_STILL, _FAINT * float(speed.max(initial=0.0)))


def slide(
    parts: Parts,
    joints: Joints,
    pushes: Pushes,
    yielding: NDArray[np.bool_],
    twists: Array,
    dt: float,
    bounds: ImpactBounds | None = None,
) -> Motion:
    """How parts slide under constant loads while some of the connections can yield.

    Parts that other connections hold together are one body. Speeds are linear in time as long as
    the forces are constant: where they change within the step, it is cut there.

    Args:
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
        yielding: (C,) connections that can yield.
        twists: (N, 6) scaled twists at the start [m/s].
        dt: Length of the step [s].
        bounds: Loads that would make more than this of the parts are scaled down to it.

    Raises:
        SolverError: The solver found no optimum.
    """
    slip = np.zeros(len(joints))
    sound = ~yielding
    side = bodies_joined(parts.anchored, joints.lower[sound], joints.upper[sound])
    if not (side[joints.lower] != side[joints.upper]).any():
        still = np.zeros_like(twists)
        return Motion(still, still, slip)
    bodies = _Bodies(parts, joints, pushes, side)
    speed = bodies.gathered(twists)
    share = 1.0
    if bounds is not None:
        share = bodies.share_of(speed, dt, bounds)
        bodies.loads *= share
    power, rate = bodies.friction(speed)
    change = np.zeros_like(speed)
    faint = _STILL * float(joints.pull.min())
    left = span = dt
    for number in range(_SPANS):
        if number == _SPANS - 1:
            span = left
        after, wrench = bodies.moved(speed, span)
        total = float(power.sum())
        missing = total - float(wrench @ (bodies.relative @ speed))
        sliding = span
        # One body stops after twice its energy over the power lost.
        lost = total - float(bodies.loads @ speed)
        stops = float(speed @ (bodies.mass @ speed)) / lost if lost > 0.0 else span
        shortest = _SHORTEST * min(left, stops)
        if missing > _CONSISTENT * total + faint:
            # Forces change on the way.
            if number < _SPANS - 1 and span > shortest:
                span = max(stops if 0.0 < stops < 0.99 * span else 0.2 * span, shortest)
                continue
            sliding = min(span, stops)
        change = (after - speed) / span
        then, faster = bodies.friction(after)
        slip[bodies.crossing] += 0.5 * sliding * (rate + faster)
        # The forces are the same until a joint slides another way than before.
        ways, ways_then = bodies.ways(speed), bodies.ways(after)
        faint_way = _FAINT * np.abs(ways).max(initial=0.0)
        turning = (np.abs(ways_then) < np.abs(ways)) & (ways * ways_then > 0.0)
        turning &= np.abs(ways_then) > faint_way
        kept = ways_then[turning]
        until = float((kept / (ways[turning] - kept)).min(initial=np.inf)) * span
        speed, power, rate, left = after, then, faster, left - span
        if left <= 1e-9 * dt:
            break
        span = min(max(until, shortest), left)
    moved = bodies.spread(speed)
    slip[slip < _FAINT * slip.max()] = 0.0
    return Motion(moved, parts.momenta(bodies.spread(change)), slip, share)


class _Bodies:
    """Bodies of parts held together, and what can yield between them.

    Args:
        parts: The parts.
        joints: The connections.
        pushes: Contacts beside them.
        side: (N,) number of the body that each part belongs to; the world's is one of them.

    Attributes:
        crossing: Indices of the connections between bodies.
        mass: (6 B, 6 B) sparse mass matrix of the bodies that move [kg].
        loads: (6 B,) scaled loads on them [N].
        relative: (6 K, 6 B) sparse: motion of upper against lower parts at crossing connections.
    """

    def __init__(self, parts: Parts, joints: Joints, pushes: Pushes, side: IntArray) -> None:
        self._parts = parts
        held = np.zeros(side.max(initial=-1) + 1, dtype=bool)
        held[side[parts.anchored]] = True
        number = np.full(len(held), -1, dtype=np.int64)
        number[~held] = np.arange(np.count_nonzero(~held))
        body = self._body = number[side]
        count = self._count = int(np.count_nonzero(~held))
        self._free = np.flatnonzero(body >= 0)
        weight = parts.masses[:, 0, 0]
        mine = body[self._free]
        mass = np.bincount(mine, weight[self._free], count)
        com = np.column_stack(
            [np.bincount(mine, (weight * c)[self._free], count) / mass for c in parts.coms.T]
        )
        # Wrenches about the COMs of the parts to wrenches about those of their bodies.
        self._maps = wrench_maps(parts.coms[self._free], com[mine])
        inertia = np.zeros((count, 6, 6))
        own = self._maps @ parts.masses[self._free] @ self._maps.transpose(0, 2, 1)
        np.add.at(inertia, mine, own)
        every = np.arange(count)
        self.mass = _block_matrix([inertia], [every], [every], (count, count))
        self._inertia = inertia
        self.loads = self._summed(parts.loads)

        self.crossing = np.flatnonzero(side[joints.lower] != side[joints.upper])
        crossing = self._crossing = joints.take(self.crossing)
        self._corners = (crossing.corners - crossing.centre[:, None]) / PITCHES[3]
        blocks, rows, columns = [], [], []
        for ends, sign in ((crossing.lower, -1.0), (crossing.upper, 1.0)):
            own = np.flatnonzero(body[ends] >= 0)
            at = body[ends[own]]
            blocks.append(sign * wrench_maps(crossing.centre[own], com[at]).transpose(0, 2, 1))
            rows.append(own)
            columns.append(at)
        self.relative = _block_matrix(blocks, rows, columns, (len(crossing), count))
        scaled = crossing.rows * PITCHES
        joint, row = np.nonzero(np.abs(scaled).sum(axis=2))
        wrench = scaled[joint, row]
        index = (6 * joint[:, None] + np.arange(6)).reshape(-1)
        at = np.repeat(np.arange(len(wrench)), 6)
        flow = sp.csc_array(
            sp.coo_array((wrench.reshape(-1), (index, at)), shape=(6 * len(crossing), len(wrench)))
        )
        between = np.flatnonzero(side[pushes.low] != side[pushes.high])
        unit = pushes.wrench[between]
        blocks, rows, columns = [], [], []
        for ends, sign in ((pushes.low[between], 1.0), (pushes.high[between], -1.0)):
            own = np.flatnonzero(body[ends] >= 0)
            at = body[ends[own]]
            maps = wrench_maps(pushes.point[between][own], com[at])
            blocks.append(sign * np.matmul(maps, unit[own, :, None]).transpose(0, 2, 1))
            rows.append(own)
            columns.append(at)
        closing = _block_matrix(blocks, rows, columns, (len(between), count))

        # The program of `moved`, in units of the lightest body.
        self._unit = float(mass.min())
        rest = len(wrench)
        self._cost = sp.block_array(
            [[self.mass / self._unit, None], [None, sp.csc_array((rest, rest))]], format="csc"
        )
        self._equal = sp.hstack([self.relative, -flow], format="csc")
        self._closing = sp.hstack([closing, sp.csc_array((len(between), rest))], format="csc")
        self._contacts = len(between)
        self._lower = np.repeat([-np.inf, 0.0], [6 * count, rest])

    def gathered(self, twists: Array) -> Array:
        """(6 B,) twists of the bodies with the momenta of their parts."""
        momenta = self._summed(self._parts.momenta(twists)).reshape(-1, 6, 1)
        return np.linalg.solve(self._inertia, momenta).reshape(-1)

    def spread(self, speed: Array) -> Array:
        """(N, 6) twists of the parts by (6 B,) twists of the bodies."""
        twists = np.zeros((len(self._body), 6))
        mine = speed.reshape(-1, 6)[self._body[self._free]]
        twists[self._free] = np.matmul(self._maps.transpose(0, 2, 1), mine[:, :, None])[:, :, 0]
        return twists

    def friction(self, speed: Array) -> tuple[Array, Array]:
        """What friction takes at given speeds, the most that the connections can give.

        With the theorem of docs/mechanics.md, section 2: parts that come apart at no corner work
        against the full friction of all points, and sideways against bearing.

        Args:
            speed: (6 B,) scaled twists.

        Returns:
            (K,) power [W], and mean slip speeds of the studs, power over strength [m/s].
        """
        joints = self._crossing
        x, y, z, about_x, about_y, turn = np.reshape(self.relative @ speed, (-1, 6)).T
        pitch = PITCHES[3]
        apart = joints.pull * z + 0.5 / pitch * (
            (joints.tip[:, 2] - joints.tip[:, 3]) * about_x
            + (joints.tip[:, 1] - joints.tip[:, 0]) * about_y
        )
        apart = np.maximum(apart, 0.0)
        twisting = joints.twist / pitch * np.abs(turn)
        sideways = joints.shear * np.maximum(np.abs(x), np.abs(y))
        single = joints.studs == 1
        apart = np.where(single, np.maximum(apart, twisting), apart)
        sideways = np.where(single, sideways, np.maximum(sideways, twisting))
        return apart + sideways, apart / joints.pull + sideways / joints.shear

    def ways(self, speed: Array) -> Array:
        """(9 K,) what tells how the joints slide by its signs: the speeds at which the corners part
        and the sides shift along x, y and the diagonals and turn [m/s]."""
        parting = np.reshape(self.relative @ speed, (-1, 6)).T
        x, y, z, about_x, about_y, turn = parting[:, :, None]
        corners = z + about_x * self._corners[:, :, 1] - about_y * self._corners[:, :, 0]
        return np.hstack([corners, x, y, x - y, x + y, turn]).reshape(-1)

    def share_of(self, speed: Array, span: float, bounds: ImpactBounds) -> float:
        """Part of the loads that makes of the bodies what an impact can make of them.

        Args:
            speed: (6 B,) scaled twists before [m/s].
            span: How long the loads act [s].
            bounds: What it can.

        Raises:
            SolverError: The solver found no optimum.
        """

        def excess(share: float) -> float:
            after, _ = self.moved(speed, span, share)
            work = 0.5 * span * share * float(self.loads @ (speed + after))
            gained = np.linalg.norm(self.spread(after - speed)[:, :3], axis=1).max()
            return max(float(gained) / bounds.speed, np.sqrt(max(work, 0.0) / bounds.energy))

        low, high = 0.0, 1.0
        share, found = 1.0, excess(1.0)
        if found <= 1.0 + _CLOSE:
            return share
        before, known = 0.0, 0.0
        for _ in range(_SOFTER):
            # Speeds grow linearly with the loads, from where they make anything slide.
            after = 0.5 * (low + high)
            if min(known, found) > 0.0 and known != found:
                likely = share + (1.0 - found) * (before - share) / (known - found)
                after = likely if low < likely < high else after
            before, known = share, found
            share, found = after, excess(after)
            if abs(found - 1.0) <= _CLOSE:
                break
            low, high = (low, share) if found > 1.0 else (share, high)
        return share

    def moved(self, speed: Array, span: float, share: float = 1.0) -> tuple[Array, Array]:
        """Where constant forces lead: least 1/2 v'Mv - v'(M v0 + h f) + h 1'mu over v and mu >= 0
        subject to J'v = R'mu and no contact closing.

        Args:
            speed: (6 B,) scaled twists before [m/s].
            span: Time h [s].
            share: Factor of the loads.

        Returns:
            (6 B,) twists after [m/s], (6 K,) wrenches w of the crossing connections [N].

        Raises:
            SolverError: The solver found no optimum.
        """
        size, count = len(speed), len(self._lower)
        target = self.mass @ speed / span + share * self.loads
        force = max(float(np.abs(target).max()), 1.0)
        linear = np.full(count, 1.0 / force)
        linear[:size] = -target / force
        contacts = self._contacts
        answer = interior_point(
            self._cost,
            linear,
            self._equal,
            np.zeros(6 * len(self.crossing)),
            self._closing if contacts else None,
            np.zeros(contacts) if contacts else None,
            self._lower,
        )
        if answer.status != piqp.PIQP_SOLVED:
            raise SolverError(f"slip: interior point method ended with {answer.status.name}")
        unit = span * force / self._unit
        return answer.x[:size] * unit, answer.multiplier * force

    def _summed(self, wrenches: Array) -> Array:
        """(6 B,) wrenches on the bodies by (N, 6) wrenches on the parts."""
        total = np.zeros((self._count, 6))
        own = np.matmul(self._maps, wrenches[self._free][:, :, None])[:, :, 0]
        np.add.at(total, self._body[self._free], own)
        return total.reshape(-1)


def _block_matrix(
    blocks: list[Array], rows: list[IntArray], columns: list[IntArray], shape: tuple[int, int]
) -> sp.csc_array:
    """A sparse matrix of (M, r, c) blocks at given places, (rows, columns) of blocks in all."""
    value = np.concatenate(blocks)
    _, high, wide = value.shape
    row = high * np.concatenate(rows)[:, None, None] + np.arange(high)[:, None]
    column = wide * np.concatenate(columns)[:, None, None] + np.arange(wide)
    place = [np.broadcast_to(index, value.shape).reshape(-1) for index in (row, column)]
    full = (high * shape[0], wide * shape[1])
    return sp.csc_array(sp.coo_array((value.reshape(-1), tuple(place)), shape=full))


def _at(points: Array, coms: Array, twists: Array) -> Array:
    """(K, 6) scaled twists of bodies at (K, 3) points, by those at their COMs."""
    maps = wrench_maps(points, coms).transpose(0, 2, 1)
    return np.matmul(maps, twists[:, :, None])[:, :, 0]
