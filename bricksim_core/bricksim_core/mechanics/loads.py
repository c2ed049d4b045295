# SPDX-License-Identifier: Apache-2.0
"""Loads on the parts of a moving component: what its connections have to carry in a step.

By d'Alembert a part is in equilibrium under the internal forces and its *load*: gravity, contacts
and applied wrenches less the rate of change of its own momentum. All parts of a component share one
rigid motion, so their momentum rates follow from the component's: its acceleration under the
external forces (Newton and Euler) and its measured angular velocity. The loads of a free component
are therefore in balance to rounding, and velocities that were set from outside (a teleport, a
reset) load nothing, because no difference of velocities between steps enters. What the measured
change of velocity says beyond the known forces is reported, never hidden.

Loads are averages over steps, in component axes at each step's start (where the engine evaluates
the contacts' lever arms). They are linear in what happens in a step, so a frame's steps are summed
up by component before anything is computed by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import Vector, compiled, crossed
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.mechanics.steps import Steps
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

STANDARD_GRAVITY = 9.81
"""[m/s^2]"""


class StepLoads:
    """What loads the W loaded components in S engine steps.

    Args:
        bodies: The scene during the steps.
        steps: The steps.
        gravity: (3,) world [m/s^2].
        applied: For each step, (6,) force [N] and torque about the part's COM [N m], world axes,
            by part id; ids of other components are passed over.
    """

    def __init__(
        self,
        bodies: Bodies,
        steps: Steps,
        gravity: Array,
        applied: Sequence[Mapping[int, Array]] = (),
    ) -> None:
        self._bodies = bodies
        self._part, self._step, self._wrench = _acting(bodies, steps, applied)
        self._rates, self._squares, self._against = _accelerations(
            self._part, self._step, self._wrench, bodies.owner, bodies.arms,
            bodies.loaded, bodies.held, bodies.mass, bodies.inertia, bodies.mobility, gravity,
            steps.poses, steps.twists, steps.next_poses, steps.next_twists,
        )  # fmt: skip

    @property
    def acceleration(self) -> Array:
        """(S, W, 3) of the COM under all forces, component axes [m/s^2]; 0 if held."""
        return self._rates[..., :3]

    @property
    def spin(self) -> Array:
        """(S, W, 3) angular acceleration, component axes [rad/s^2]; 0 if held."""
        return self._rates[..., 3:]

    def summed(self, weights: Array, step: float) -> tuple[Array, Array]:
        """T sums over the steps, component axes.

        Args:
            weights: (T, S, W) how much each step counts.
            step: Time for which a weight of 1 stands [s].

        Returns:
            (T, P, 6) loads on the loaded parts [N, N m], and (T, W, 6) how much the velocity of the
            components' COMs and their spin changed [m/s, rad/s].
        """
        bodies = self._bodies
        return _summed(
            weights, step, self._against, self._rates, self._squares, bodies.owner, bodies.masses,
            bodies.arms, bodies.inertias, self._part, self._step, self._wrench,
        )  # fmt: skip


def _acting(
    bodies: Bodies, steps: Steps, applied: Sequence[Mapping[int, Array]]
) -> tuple[IntArray, IntArray, Array]:
    """Contacts and applied wrenches on loaded parts.

    Returns:
        (M,) indices of the loaded parts, (M,) steps and (M, 6) mean wrenches about the parts'
        COMs, component axes [N, N m].
    """
    pushed = [(s, wrenches) for s, wrenches in enumerate(applied) if wrenches]
    given = [(s, *one) for s, wrenches in pushed for one in _loaded(bodies, wrenches)]
    contacts = steps.contacts
    most = 2 * len(contacts) + len(given)
    part, step = np.empty((2, most), dtype=np.int64)
    wrench, count = np.empty((most, 6)), 0
    if len(contacts):
        count = _act(
            contacts.part_a, contacts.part_b, contacts.impulse, contacts.position, steps.first,
            steps.dt, bodies.part_ids, bodies.place, bodies.owner, bodies.loaded, bodies.local,
            steps.poses, part, step, wrench,
        )  # fmt: skip
    for s, place, value in given:
        row = bodies.loaded[bodies.owner[place]]
        rotation = steps.poses[s, row, :3, :3]
        part[count], step[count] = place, s
        wrench[count] = (np.reshape(value, (2, 3)) @ rotation).ravel()
        count += 1
    return part[:count], step[:count], wrench[:count]


def _loaded(bodies: Bodies, wrenches: Mapping[int, Array]) -> list[tuple[int, Array]]:
    """Wrenches on loaded parts, by index of the part."""
    found = []
    for part_id, wrench in wrenches.items():
        at = int(bodies.find(np.array(part_id)))
        if at < len(bodies.part_ids) and bodies.part_ids[at] == part_id:
            found.append((int(bodies.place[at]), wrench))
    return [(place, wrench) for place, wrench in found if place >= 0]


@compiled
def _act(
    part_a: IntArray,
    part_b: IntArray,
    impulse: Array,
    position: Array,
    first: IntArray,
    dt: Array,
    part_ids: IntArray,
    place: IntArray,
    owner: IntArray,
    loaded: IntArray,
    local: Array,
    poses: Array,
    part: IntArray,
    step: IntArray,
    wrench: Array,
) -> int:
    """Writes what the contacts of S steps do to loaded parts; returns how many rows that are.

    Args:
        part_a: (C,) parts that get the opposite of the impulses, negative for what is no brick.
        part_b: (C,) parts that get them.
        impulse: (C, 3) world [N s].
        position: (C, 3) world [m].
        first: (S + 1,) where the contacts of each step begin; see `Steps`.
        dt: (S,) lengths of the steps [s].
        part_ids: (A,) like the four after it, see `Bodies`.
        place: (A,)
        owner: (P,)
        loaded: (W,)
        local: (P, 3) [m].
        poses: (S, K, 4, 4) world_T_component at the start of each step [m].
        part: (M,) indices of loaded parts, to be written.
        step: (M,) steps, to be written.
        wrench: (M, 6) wrenches about the parts' COMs, component axes [N, N m], to be written.
    """
    lever, count, s = np.empty(3), 0, 0
    for c in range(len(part_b)):
        while c >= first[s + 1]:
            s += 1
        for end in range(2):
            brick = part_b[c] if end == 0 else part_a[c]
            if brick < 0:
                continue
            at = np.searchsorted(part_ids, brick)
            if at == len(part_ids):  # compiled code does not look where it reads
                raise IndexError("a contact names a part that is not in the scene")
            p = place[at]
            if p < 0:
                continue
            k = loaded[owner[p]]
            factor = (1.0 if end == 0 else -1.0) / dt[s]
            x, y, z = impulse[c, 0], impulse[c, 1], impulse[c, 2]
            u, v, w = (
                position[c, 0] - poses[s, k, 0, 3],
                position[c, 1] - poses[s, k, 1, 3],
                position[c, 2] - poses[s, k, 2, 3],
            )
            for i in range(3):
                along_x, along_y, along_z = poses[s, k, 0, i], poses[s, k, 1, i], poses[s, k, 2, i]
                wrench[count, i] = factor * (x * along_x + y * along_y + z * along_z)
                lever[i] = u * along_x + v * along_y + w * along_z - local[p, i]
            force = wrench[count, 0], wrench[count, 1], wrench[count, 2]
            moment = crossed((lever[0], lever[1], lever[2]), force)
            wrench[count, 3], wrench[count, 4], wrench[count, 5] = moment
            part[count], step[count] = p, s
            count += 1
    return count


@compiled
def _add_up(
    part: IntArray, step: IntArray, wrench: Array, owner: IntArray, arms: Array, total: Array
) -> None:
    """Adds (M, 6) wrenches on parts to the (S, W, 6) ones on components about their COMs."""
    for m in range(len(part)):
        s, p = step[m], part[m]
        k = owner[p]
        arm = arms[p, 0], arms[p, 1], arms[p, 2]
        moment = crossed(arm, (wrench[m, 0], wrench[m, 1], wrench[m, 2]))
        for i in range(3):
            total[s, k, i] += wrench[m, i]
            total[s, k, 3 + i] += wrench[m, 3 + i] + moment[i]


@compiled
def _accelerations(
    part: IntArray,
    step: IntArray,
    wrench: Array,
    owner: IntArray,
    arms: Array,
    loaded: IntArray,
    held: NDArray[np.bool_],
    mass: Array,
    inertia: Array,
    mobility: Array,
    gravity: Array,
    poses: Array,
    twists: Array,
    next_poses: Array,
    next_twists: Array,
) -> tuple[Array, Array, Array]:
    """(S, W, ...) `rates`, `squares` and `against` of S steps.

    Arguments from ``loaded`` on and results are those of `_accelerate`, for each step; the first
    five are those of `_add_up`.
    """
    shape = (len(poses), len(loaded))
    total = np.zeros((*shape, 6))
    _add_up(part, step, wrench, owner, arms, total)
    rates = np.empty((*shape, 6))
    squares, against = np.empty((*shape, 3, 3)), np.empty((*shape, 3))
    for s in range(len(poses)):
        _accelerate(
            loaded, held, mass, inertia, mobility, gravity, poses[s], twists[s], next_poses[s],
            next_twists[s], total[s], rates[s], squares[s], against[s],
        )  # fmt: skip
    return rates, squares, against


@compiled
def _accelerate(
    loaded: IntArray,
    held: NDArray[np.bool_],
    mass: Array,
    inertia: Array,
    mobility: Array,
    gravity: Array,
    poses: Array,
    twists: Array,
    next_poses: Array,
    next_twists: Array,
    total: Array,
    rates: Array,
    squares: Array,
    against: Array,
) -> None:
    """Newton and Euler for the loaded components in a step; all results in component axes.

    Args:
        loaded: (W,) like the four after it, see `Bodies`.
        held: (W,)
        mass: (W,) [kg].
        inertia: (W, 3, 3) [kg m^2].
        mobility: (W, 3, 3) its inverse.
        gravity: (3,) world [m/s^2].
        poses: (K, 4, 4) world_T_component at the start [m].
        twists: (K, 6) velocities at the start, world [m/s, rad/s].
        next_poses: (K, 4, 4) at the end.
        next_twists: (K, 6) at the end.
        total: (W, 6) forces and torques about the COM but for gravity, component axes [N, N m].
        rates: (W, 6) acceleration and angular acceleration, to be written [m/s^2, rad/s^2].
        squares: (W, 3, 3) mean of w w' for the angular velocity w, to be written [rad^2/s^2].
        against: (W, 3) acceleration less gravity, to be written [m/s^2].
    """
    before, after, weight, turn = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(len(loaded)):
        row = loaded[k]
        now, later, twist, next_twist = poses[row], next_poses[row], twists[row], next_twists[row]
        for i in range(3):
            weight[i] = gravity[0] * now[0, i] + gravity[1] * now[1, i] + gravity[2] * now[2, i]
            before[i] = twist[3] * now[0, i] + twist[4] * now[1, i] + twist[5] * now[2, i]
            after[i] = (
                next_twist[3] * later[0, i]
                + next_twist[4] * later[1, i]
                + next_twist[5] * later[2, i]
            )
        if held[k]:
            rates[k], squares[k], against[k] = 0.0, 0.0, -weight
            continue
        # If the angular velocity changes linearly in component axes.
        for i in range(3):
            for j in range(3):
                squares[k, i, j] = (before[i] * before[j] + after[i] * after[j]) / 3.0 + (
                    before[i] * after[j] + before[j] * after[i]
                ) / 6.0
        torque = _gyroscopic(inertia[k], squares[k])
        for i in range(3):
            # Gravity and the part of the acceleration that it causes cancel to the last bit.
            against[k, i] = total[k, i] / mass[k]
            rates[k, i] = weight[i] + against[k, i]
            turn[i] = total[k, 3 + i] - torque[i]
        for i in range(3):
            rates[k, 3 + i] = (
                mobility[k, i, 0] * turn[0]
                + mobility[k, i, 1] * turn[1]
                + mobility[k, i, 2] * turn[2]
            )


@compiled
def _summed(
    weights: Array,
    duration: float,
    against: Array,
    rates: Array,
    squares: Array,
    owner: IntArray,
    masses: Array,
    arms: Array,
    inertias: Array,
    part: IntArray,
    step: IntArray,
    wrench: Array,
) -> tuple[Array, Array]:
    """See `StepLoads.summed`.

    Args:
        weights: (T, S, W)
        duration: Time for which a weight of 1 stands [s].
        against: (S, W, 3) acceleration less gravity [m/s^2].
        rates: (S, W, 6) acceleration and angular acceleration [m/s^2, rad/s^2].
        squares: (S, W, 3, 3) mean of w w' for the angular velocity w [rad^2/s^2].
        owner: (P,) like the three after it, see `Bodies`.
        masses: (P,) [kg].
        arms: (P, 3) [m].
        inertias: (P, 3, 3) [kg m^2].
        part: (M,) loaded parts with wrenches.
        step: (M,) in which step.
        wrench: (M, 6) about the part's COM [N, N m].
    """
    sums, steps, components = weights.shape
    loads, changes = np.empty((sums, len(owner), 6)), np.zeros((sums, components, 6))
    push, turn = np.empty((components, 3)), np.empty((components, 3))
    square = np.empty((components, 3, 3))
    for t in range(sums):
        push[:], turn[:], square[:] = 0.0, 0.0, 0.0
        for k in range(components):
            for s in range(steps):
                weight = weights[t, s, k]
                for i in range(6):
                    changes[t, k, i] += weight * duration * rates[s, k, i]
                for i in range(3):
                    push[k, i] += weight * against[s, k, i]
                    turn[k, i] += weight * rates[s, k, 3 + i]
                    for j in range(3):
                        square[k, i, j] += weight * squares[s, k, i, j]
        _write_inertial(push, turn, square, owner, masses, arms, inertias, loads[t])
        for m in range(len(part)):
            p = part[m]
            weight = weights[t, step[m], owner[p]]
            for i in range(6):
                loads[t, p, i] += weight * wrench[m, i]
    return loads, changes


@compiled
def _write_inertial(
    push: Array,
    turn: Array,
    square: Array,
    owner: IntArray,
    masses: Array,
    arms: Array,
    inertias: Array,
    loads: Array,
) -> None:
    """Writes (P, 6) loads by gravity and motion [N, N m].

    Args:
        push: (W, 3) like the next two, sums over the steps: acceleration less gravity [m/s^2].
        turn: (W, 3) angular acceleration [rad/s^2].
        square: (W, 3, 3) w w' for the angular velocity w [rad^2/s^2].
        owner: (P,) like the three after it, see `_summed`.
        masses: (P,)
        arms: (P, 3)
        inertias: (P, 3, 3)
        loads: (P, 6)
    """
    # Of w x (w x r) the squares are all that the place r in the component does not decide.
    outward = square.copy()
    for k in range(len(square)):
        trace = square[k, 0, 0] + square[k, 1, 1] + square[k, 2, 2]
        for i in range(3):
            outward[k, i, i] -= trace
    for p in range(len(owner)):
        k = owner[p]
        arm, alpha = arms[p], turn[k]
        tangential = crossed(alpha, arm)
        torque = _gyroscopic(inertias[p], square[k])
        for i in range(3):
            inward = (
                arm[0] * outward[k, 0, i] + arm[1] * outward[k, 1, i] + arm[2] * outward[k, 2, i]
            )
            loads[p, i] = -masses[p] * (push[k, i] + tangential[i] + inward)
            loads[p, 3 + i] = -torque[i] - (
                inertias[p, i, 0] * alpha[0]
                + inertias[p, i, 1] * alpha[1]
                + inertias[p, i, 2] * alpha[2]
            )


@compiled
def _gyroscopic(inertia: Array, squares: Array) -> Vector:
    """Mean of w x (I w), given the mean of w w': twice the axial vector of I (w w')."""
    xy = yx = xz = zx = yz = zy = 0.0
    for i in range(3):
        xy += inertia[0, i] * squares[i, 1]
        yx += inertia[1, i] * squares[i, 0]
        xz += inertia[0, i] * squares[i, 2]
        zx += inertia[2, i] * squares[i, 0]
        yz += inertia[1, i] * squares[i, 2]
        zy += inertia[2, i] * squares[i, 1]
    return zy - yz, xz - zx, yx - xy


def gravity_loads(layout: ComponentLayout, gravity: Array) -> Array:
    """(N, 6) weights of the parts at their COMs [N]; ``gravity`` (3,) in component axes [m/s^2]."""
    loads = np.zeros((len(layout.part_ids), 6))
    loads[:, :3] = layout.masses[:, None] * gravity
    return loads
