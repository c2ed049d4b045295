# SPDX-License-Identifier: Apache-2.0
"""The program of `sliding`, compiled: bodies under constant forces and the friction between them.

    least 1/2 v' M v - q' v + sum over joints of (shear t + pull u),

where t and u bound how fast a joint slips, and no corner of a joint and no contact closes.
Mehrotra's predictor-corrector method (SIAM J. Optim. 2, 1992) with one matrix of six unknowns a
body: what belongs to a joint is eliminated where it is. The friction that it goes through is
admissible from the start, so that the energy of the motion is known to be no more than that of what
it leaves unbalanced (Gauss): where nothing moves, it ends long before it has converged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.elimination import Elimination, factor, solved
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_SLOTS = 11
"""Inequalities of a joint: its four corners do not close; its sideways slip is not less than that
along +x, -x, +y, -y and by turning both ways; where one stud alone is held, turning both ways and
coming apart are bounded together, apart from the rest."""

_CORNERS, _TURNING, _APART = 4, 8, 10

_START = 0.1, 0.03
"""Forces of corners and contacts at the start, as parts of the pull-off strength and of the
greatest load, and speeds at which inequalities hold there. Any will do; these need few steps."""

_STEP = 0.995
"""Part of the way to the boundary that a step takes: nearer to it rounding ends it too early."""

_SOFTNESS = 1e-11
"""By how much what a step adds to a force may give way: slack per force, of bodies of mass 1. Near
the solution inequalities that hold with force have next to no slack, and bodies between which no
motion is left are as one to the matrix; beyond some 1e13 their mass, and with that the matrix's
being positive definite, would be lost by rounding. What a step misses by it counts as missed, so
that the next one makes up for it."""

_ACCEPTED = 1e3
"""How much more than wanted an error may be where rounding lets it fall no further."""

_SLIGHT = 100.0
"""Times the energy that counts as none that the energy of an error may be in any case there."""

_WARM = 1e-4
"""Mean product of forces and slacks at which a point is good to start from under other loads."""

_ROUNDING = 1e-4
"""Part of an energy that counts as none that the energy of an error may be in any case."""

STEPS = 40
"""Points of the method that are looked at; 5 to 20 are usual."""

UNFINISHED = -2
"""Instead of a number of steps: there are more to take."""


class Links(NamedTuple):
    """Where forces act between two bodies each: joints first, then pairs of bodies in contact.

    Attributes:
        lower: (L,) number of the lower body, -1 for the world.
        upper: (L,) of the upper one.
        from_lower: (L, 3) from the lower body's COM to the link [pitches].
        from_upper: (L, 3) from the upper one's.
    """

    lower: IntArray
    upper: IntArray
    from_lower: Array
    from_upper: Array


class FrictionJoints(NamedTuple):
    """The joints, the first K of the links.

    Attributes:
        corners: (K, 4, 2) of the overlaps, from their centres [pitches].
        turn: (K,) torsional strength over shear or, of single studs, pull-off strength.
        single: (K,) one stud holds, so that what turning takes the pull lacks.
        apex: (K, 3) full friction of all points, over pull-off strength: pull, moments about x, y.
        shear: (K,) strength [N].
        pull: (K,) strength [N].
    """

    corners: Array
    turn: Array
    single: NDArray[np.bool_]
    apex: Array
    shear: Array
    pull: Array


class Contacts(NamedTuple):
    """What can only push.

    Attributes:
        link: (V,) the link of each.
        push: (V, 6) scaled wrench of a unit push on the upper body about the link's point.
    """

    link: IntArray
    push: Array


class Program(NamedTuple):
    """Bodies and what is between them, in multiples of the mass of a body.

    Attributes:
        mass: (B, 6, 6) mass matrices of the bodies.
        mobility: (B, 6, 6) their inverses.
        links: Where forces act.
        joints: Of these, the first ones.
        contacts: At the others, sorted by them.
        order: In which bodies are eliminated.
    """

    mass: Array
    mobility: Array
    links: Links
    joints: FrictionJoints
    contacts: Contacts
    order: Elimination


class Point(NamedTuple):
    """Speeds of bodies, multipliers and slacks of the inequalities of joints and contacts, and
    bounds of slips; or their changes.

    Attributes:
        speed: (6 B,).
        force: (K, 11).
        slack: (K, 11).
        slip: (K, 2).
        push: (V,).
        gap: (V,).
    """

    speed: Array
    force: Array
    slack: Array
    slip: Array
    push: Array
    gap: Array


@compiled
def _parting(links: Links, speed: Array, parting: Array) -> None:
    """Writes (L, 6) twists of upper against lower bodies at the links."""
    lower, upper, from_lower, from_upper = links
    for k in range(len(lower)):
        for c in range(6):
            parting[k, c] = 0.0
        for side in range(2):
            body = upper[k] if side else lower[k]
            if body < 0:
                continue
            arm = from_upper if side else from_lower
            sign = 1.0 if side else -1.0
            at = 6 * body
            x, y, z = speed[at + 3], speed[at + 4], speed[at + 5]
            parting[k, 0] += sign * (speed[at] + y * arm[k, 2] - z * arm[k, 1])
            parting[k, 1] += sign * (speed[at + 1] + z * arm[k, 0] - x * arm[k, 2])
            parting[k, 2] += sign * (speed[at + 2] + x * arm[k, 1] - y * arm[k, 0])
            parting[k, 3] += sign * x
            parting[k, 4] += sign * y
            parting[k, 5] += sign * z


@compiled
def parted(links: Links, speed: Array) -> Array:
    """(L, 6) scaled twists of upper against lower bodies at the links, by (6 B,) of the bodies."""
    parting = np.empty((len(links.lower), 6))
    _parting(links, speed, parting)
    return parting


@compiled
def _add_loads(links: Links, wrench: Array, loads: Array) -> None:
    """Adds to (6 B,) loads what (L, 6) wrenches on the upper bodies at the links do."""
    lower, upper, from_lower, from_upper = links
    for k in range(len(lower)):
        x, y, z = wrench[k, 0], wrench[k, 1], wrench[k, 2]
        for side in range(2):
            body = upper[k] if side else lower[k]
            if body < 0:
                continue
            arm = from_upper if side else from_lower
            sign = 1.0 if side else -1.0
            at = 6 * body
            loads[at] += sign * x
            loads[at + 1] += sign * y
            loads[at + 2] += sign * z
            loads[at + 3] += sign * (wrench[k, 3] + arm[k, 1] * z - arm[k, 2] * y)
            loads[at + 4] += sign * (wrench[k, 4] + arm[k, 2] * x - arm[k, 0] * z)
            loads[at + 5] += sign * (wrench[k, 5] + arm[k, 0] * y - arm[k, 1] * x)


@compiled
def _values(
    joints: FrictionJoints, contacts: Contacts, parting: Array, value: Array, closing: Array
) -> None:
    """Writes (K, 11) speeds that the inequalities of the joints bound, and (V,) at which contacts
    close, by (L, 6) twists at the links."""
    corners, turn, apex = joints.corners, joints.turn, joints.apex
    for k in range(len(turn)):
        e, f, along = parting[k, 0], parting[k, 1], parting[k, 2]
        about_x, about_y, turning = parting[k, 3], parting[k, 4], turn[k] * parting[k, 5]
        for i in range(_CORNERS):
            value[k, i] = corners[k, i, 0] * about_y - corners[k, i, 1] * about_x - along
        value[k, 4], value[k, 5], value[k, 6], value[k, 7] = e, -e, f, -f
        value[k, 8], value[k, 9] = turning, -turning
        value[k, _APART] = apex[k, 0] * along + apex[k, 1] * about_x + apex[k, 2] * about_y
    link, push = contacts
    for v in range(len(closing)):
        k, total = link[v], 0.0
        for c in range(6):
            total -= push[v, c] * parting[k, c]
        closing[v] = total


@compiled
def _wrenches(
    joints: FrictionJoints, contacts: Contacts, force: Array, push: Array, wrench: Array
) -> None:
    """Writes (L, 6) wrenches on the upper bodies by (K, 11) and (V,) multipliers."""
    corners, turn, apex, single = joints.corners, joints.turn, joints.apex, joints.single
    count = len(turn)
    for k in range(count, len(wrench)):
        for c in range(6):
            wrench[k, c] = 0.0
    for k in range(count):
        apart = force[k, _APART] if single[k] else 0.0
        along, about_x = -apart * apex[k, 0], -apart * apex[k, 1]
        about_y = -apart * apex[k, 2]
        for i in range(_CORNERS):
            along += force[k, i]
            about_x += corners[k, i, 1] * force[k, i]
            about_y -= corners[k, i, 0] * force[k, i]
        wrench[k, 0], wrench[k, 1] = force[k, 5] - force[k, 4], force[k, 7] - force[k, 6]
        wrench[k, 2], wrench[k, 3], wrench[k, 4] = along, about_x, about_y
        wrench[k, 5] = turn[k] * (force[k, 9] - force[k, 8])
    link, unit = contacts
    for v in range(len(push)):
        k = link[v]
        for c in range(6):
            wrench[k, c] += unit[v, c] * push[v]


@compiled
def _resistances(joints: FrictionJoints, weights: Array, matrices: Array) -> None:
    """Writes the (6, 6) matrices sum of weight row row' of joints, their slips eliminated."""
    corners, turns, single, apex = joints.corners, joints.turn, joints.single, joints.apex
    c, weight = np.empty((6, 6)), np.empty(_SLOTS)
    for k in range(len(turns)):
        c[:] = 0.0
        for i in range(_SLOTS):
            weight[i] = weights[k, i]
        for i in range(_CORNERS):
            w, y, x = weight[i], corners[k, i, 1], -corners[k, i, 0]
            c[2, 2] += w
            c[2, 3] += w * y
            c[2, 4] += w * x
            c[3, 3] += w * y * y
            c[3, 4] += w * y * x
            c[4, 4] += w * x * x
        # Slips eliminated: sum of w r r' - (sum of w r) (sum of w r)' / sum of w, without
        # differences of large numbers.
        turn = turns[k]
        along, across = weight[4] + weight[5], weight[6] + weight[7]
        about = weight[8] + weight[9]
        one, other = weight[4] - weight[5], weight[6] - weight[7]
        twist = turn * (weight[8] - weight[9])
        total, rest = along + across, 0.0
        if single[k]:
            w = weight[_APART]
            both = about + w
            for i in range(3):
                for j in range(i, 3):
                    c[2 + i, 2 + j] += w * about / both * apex[k, i] * apex[k, j]
                c[2 + i, 5] = -w * twist / both * apex[k, i]
            c[5, 5] = turn * turn * (4.0 * weight[8] * weight[9] + about * w) / both
        else:
            rest = about
            total += rest
            left = 4.0 * weight[8] * weight[9] + about * (along + across)
            c[5, 5] = turn * turn * left / total
            c[0, 5], c[1, 5] = -one * twist / total, -other * twist / total
        c[0, 0] = (4.0 * weight[4] * weight[5] + along * (across + rest)) / total
        c[1, 1] = (4.0 * weight[6] * weight[7] + across * (along + rest)) / total
        c[0, 1] = -one * other / total
        for i in range(6):
            for j in range(6):
                matrices[k, i, j] = c[min(i, j), max(i, j)]


@compiled
def _firmnesses(contacts: Contacts, first: int, firmness: Array, matrices: Array) -> None:
    """Writes the (6, 6) matrices sum of firmness push push' of the links from the first one on."""
    link, push = contacts
    for k in range(first, len(matrices)):
        for i in range(6):
            for j in range(6):
                matrices[k, i, j] = 0.0
    for v in range(len(firmness)):
        k = link[v]
        for i in range(6):
            force = firmness[v] * push[v, i]
            for j in range(6):
                matrices[k, i, j] += force * push[v, j]


@compiled
def _assemble(
    blocks: Array, order: Elimination, mass: Array, links: Links, matrices: Array
) -> None:
    """Writes the lower triangle of the matrix of the bodies by (L, 6, 6) symmetric ones at the
    links, as transposed blocks."""
    place, start, _, between = order
    lower, upper, from_lower, from_upper = links
    blocks[:] = 0.0
    for b in range(len(mass)):
        block = blocks[start[place[b]]]
        for p in range(6):
            for q in range(6):
                block[p, q] = mass[b, p, q]
    # T C T' with T the map from wrenches at the end of an arm to those at its start.
    half, arms = np.empty((6, 6)), np.empty((2, 3))
    for k in range(len(lower)):
        for c in range(3):
            arms[0, c], arms[1, c] = from_lower[k, c], from_upper[k, c]
        for side in range(2):
            body = upper[k] if side else lower[k]
            if body < 0:
                continue
            for j in range(6):
                x, y, z = matrices[k, 0, j], matrices[k, 1, j], matrices[k, 2, j]
                half[0, j], half[1, j], half[2, j] = x, y, z
                half[3, j] = matrices[k, 3, j] + (arms[side, 1] * z - arms[side, 2] * y)
                half[4, j] = matrices[k, 4, j] + (arms[side, 2] * x - arms[side, 0] * z)
                half[5, j] = matrices[k, 5, j] + (arms[side, 0] * y - arms[side, 1] * x)
            for across in range(2):
                end = 1 - side if across else side
                other = upper[k] if end else lower[k]
                if other < 0 or place[body] > place[other]:
                    continue
                sign = -1.0 if across else 1.0
                block = blocks[between[k] if across else start[place[body]]]
                for p in range(6):
                    x, y, z = half[p, 0], half[p, 1], half[p, 2]
                    block[p, 0] += sign * x
                    block[p, 1] += sign * y
                    block[p, 2] += sign * z
                    block[p, 3] += sign * (half[p, 3] + (arms[end, 1] * z - arms[end, 2] * y))
                    block[p, 4] += sign * (half[p, 4] + (arms[end, 2] * x - arms[end, 0] * z))
                    block[p, 5] += sign * (half[p, 5] + (arms[end, 0] * y - arms[end, 1] * x))


@compiled
def _slips(single: bool, number: int) -> tuple[int, int]:
    """First of the inequalities that a slip of a joint bounds, and the first after them."""
    if number:
        return _TURNING, _SLOTS
    return _CORNERS, _TURNING if single else _APART


@compiled
def nowhere(bodies: int, joints: int, contacts: int) -> Point:
    """A point of zeros."""
    return Point(
        np.zeros(6 * bodies),
        np.zeros((joints, _SLOTS)),
        np.zeros((joints, _SLOTS)),
        np.zeros((joints, 2)),
        np.zeros(contacts),
        np.zeros(contacts),
    )


@compiled
def _begin(joints: FrictionJoints, unit: float, point: Point) -> None:
    """Writes a point well within all inequalities; unit: force of which all are multiples [N]."""
    small, speed = _START
    for k in range(len(joints.turn)):
        for i in range(_CORNERS):
            point.force[k, i] = small * joints.pull[k] / unit
        for number in range(1 + joints.single[k]):
            begin, end = _slips(joints.single[k], number)
            strength = joints.pull[k] if number else joints.shear[k]
            for i in range(begin, end):
                point.force[k, i] = strength / unit / (end - begin)
        for i in range(_SLOTS):
            point.slack[k, i] = speed
        point.slip[k, 0] = point.slip[k, 1] = speed
    for v in range(len(point.push)):
        point.push[v], point.gap[v] = small, speed


@compiled
def _add(point: Point, change: Point, forth: float, along: float) -> None:
    """Adds a change, of the forces as much as `forth`, of the others as much as `along`."""
    for k in range(len(point.force)):
        for i in range(_SLOTS):
            point.force[k, i] += forth * change.force[k, i]
            point.slack[k, i] += along * change.slack[k, i]
        point.slip[k, 0] += along * change.slip[k, 0]
        point.slip[k, 1] += along * change.slip[k, 1]
    for v in range(len(point.push)):
        point.push[v] += forth * change.push[v]
        point.gap[v] += along * change.gap[v]
    for i in range(len(point.speed)):
        point.speed[i] += along * change.speed[i]


@compiled
def _energy(matrices: Array, values: Array) -> float:
    """Half of x' A x with A the (B, 6, 6) blocks of a matrix."""
    total = 0.0
    for b in range(len(matrices)):
        for i in range(6):
            for j in range(6):
                total += values[6 * b + i] * matrices[b, i, j] * values[6 * b + j]
    return 0.5 * total


@compiled
def _missed(
    joints: FrictionJoints, state: Point, value: Array, closing: Array, over: Array, late: Array
) -> tuple[float, float]:
    """Writes by how much (K, 11) and (V,) inequalities and their slacks miss each other.

    Returns:
        Products of forces and slacks, and of forces and what is missed, summed up.
    """
    product, missed = 0.0, 0.0
    for k in range(len(joints.turn)):
        for i in range(_CORNERS):
            over[k, i] = -value[k, i] - state.slack[k, i]
        for number in range(1 + joints.single[k]):
            begin, end = _slips(joints.single[k], number)
            for i in range(begin, end):
                over[k, i] = state.slip[k, number] - value[k, i] - state.slack[k, i]
        for i in range(_SLOTS):
            product += state.force[k, i] * state.slack[k, i]
            missed += state.force[k, i] * abs(over[k, i])
    for v in range(len(late)):
        late[v] = -closing[v] - state.gap[v]
        product += state.push[v] * state.gap[v]
        missed += state.push[v] * abs(late[v])
    return product, missed


@compiled
def _product(
    joints: FrictionJoints, state: Point, change: Point, forth: float, along: float
) -> float:
    """Products of forces and slacks after a step, summed up."""
    total = 0.0
    for k in range(len(joints.turn)):
        for i in range(_SLOTS if joints.single[k] else _APART):
            force = state.force[k, i] + forth * change.force[k, i]
            total += force * (state.slack[k, i] + along * change.slack[k, i])
    for v in range(len(state.push)):
        push = state.push[v] + forth * change.push[v]
        total += push * (state.gap[v] + along * change.gap[v])
    return total


@compiled
def _level(single: bool, k: int, weight: Array, force: Array, slip: Array, share: float) -> None:
    """Makes changes of forces of a joint sum up to nothing for each of its slips, by these.

    Args:
        single: Whether it is one stud.
        k: Which it is.
        weight: (K, 11) of the inequalities.
        force: (K, 11) changes, written.
        slip: (K, 2) changes, written.
        share: Of the slips before, which are added to.
    """
    for number in range(1 + single):
        begin, end = _slips(single, number)
        total, whole = 0.0, 0.0
        for i in range(begin, end):
            total += force[k, i]
            whole += weight[k, i]
        level = total / whole
        slip[k, number] = share * slip[k, number] + level
        for i in range(begin, end):
            force[k, i] -= weight[k, i] * level


@compiled
def moved(
    program: Program,
    load: Array,
    unit: float,
    enough: float,
    bound: float,
    exact: float,
    near: Point,
    known: bool,
    state: Point,
    kept: bool,
    first: int,
    last: int,
) -> tuple[int, bool, Array, Array]:
    """Solves a program in multiples of a force and of the mass of a body, or goes on with that.

    Args:
        program: Bodies and what is between them.
        load: (6 B,) forces on the bodies, those that would give them what they have at the start
            included, less the full friction of joints with more than one stud.
        unit: The force [N].
        enough: Energy that counts as none.
        bound: Energy up to which a motion need not be known and is given as none.
        exact: Part of the energy of a motion that the energy of its error may have.
        near: A point on the way to a solution, forces in [N]; written anew.
        known: Whether to start from it: it was on the way to that under other loads.
        state: Zeros at the first step; where the steps have led.
        kept: Whether the point has been written.
        first: Number of the first step to take.
        last: Number of steps after which to leave it.

    Returns:
        Steps taken in all, `UNFINISHED`, or -1 if they were in vain; whether the point has been
        written; (6 B,) speeds; (L, 6) scaled wrenches at the links on the upper bodies, all but
        that friction of joints with more than one stud.
    """
    mass, mobility, links, joints, contacts, order = program
    count, bodies = len(joints.turn), len(mass)
    speed = state.speed
    if first == 0:
        if known:
            _add(state, near, 1.0 / unit, 1.0)
        else:
            _begin(joints, unit, state)
    wrench, parting = np.zeros((len(links.lower), 6)), np.zeros((len(links.lower), 6))
    value, closing = np.zeros((count, _SLOTS)), np.zeros(len(contacts.link))
    blocks = np.zeros((len(order.row), 6, 6))
    matrices = np.empty((len(links.lower), 6, 6))
    inequalities = len(closing) + _APART * count
    for k in range(count):
        inequalities += joints.single[k]
    over, late = np.zeros((count, _SLOTS)), np.zeros(len(closing))
    centre, aim = np.zeros((count, _SLOTS)), np.zeros(len(closing))
    weight, firmness = np.zeros((count, _SLOTS)), np.zeros(len(closing))
    change, inverse = nowhere(bodies, count, len(closing)), nowhere(bodies, count, len(closing))
    for step in range(first, min(last, STEPS)):
        _parting(links, speed, parting)
        _values(joints, contacts, parting, value, closing)
        product, missed = _missed(joints, state, value, closing, over, late)
        _wrenches(joints, contacts, state.force, state.push, wrench)
        left = load.copy()
        _add_loads(links, wrench, left)
        rests = _energy(mobility, left) <= max(enough, bound)
        if not kept and (rests or product <= _WARM * inequalities):
            kept = True
            _add(near, near, -1.0, -1.0)
            _add(near, state, unit, 1.0)
        if rests:
            return step, kept, np.zeros(6 * bodies), wrench
        for b in range(bodies):
            for i in range(6):
                for j in range(6):
                    left[6 * b + i] -= mass[b, i, j] * speed[6 * b + j]
        close = max(_ROUNDING * enough, exact * _energy(mass, speed))
        error = max(product + missed, _energy(mobility, left)) / close
        if error <= 1.0:
            return step, kept, speed, wrench
        vain = error > max(_ACCEPTED, _SLIGHT * enough / close)
        if step == STEPS - 1:
            return -1 if vain else step, kept, speed, wrench

        for k in range(count):
            for i in range(_SLOTS if joints.single[k] else _APART):
                y, s = state.force[k, i], state.slack[k, i]
                inverse.force[k, i], inverse.slack[k, i] = 1.0 / y, 1.0 / s
                weight[k, i] = 1.0 / (s * inverse.force[k, i] + _SOFTNESS)
                centre[k, i] = -y * s
        for v in range(len(closing)):
            y, s = state.push[v], state.gap[v]
            inverse.push[v], inverse.gap[v] = 1.0 / y, 1.0 / s
            firmness[v] = 1.0 / (s * inverse.push[v] + _SOFTNESS)
            aim[v] = -y * s
        _resistances(joints, weight, matrices)
        _firmnesses(contacts, count, firmness, matrices)
        _assemble(blocks, order, mass, links, matrices)
        if not factor(blocks, order):
            return -1 if vain else step, kept, speed, wrench
        for turn in range(2):
            # What is to be balanced if nothing else changed.
            for k in range(count):
                for i in range(_SLOTS if joints.single[k] else _APART):
                    aside = centre[k, i] * inverse.force[k, i] - over[k, i]
                    change.force[k, i] = weight[k, i] * aside
                _level(joints.single[k], k, weight, change.force, change.slip, 0.0)
            for v in range(len(closing)):
                change.push[v] = firmness[v] * (aim[v] * inverse.push[v] - late[v])
            _wrenches(joints, contacts, change.force, change.push, wrench)
            right = left.copy()
            _add_loads(links, wrench, right)
            faster = solved(blocks, order, right)
            _parting(links, faster, parting)
            _values(joints, contacts, parting, value, closing)
            # How fast what is left of the forces and slacks goes, at most.
            falling, closer = 0.0, 0.0
            for k in range(count):
                for i in range(_SLOTS):
                    change.force[k, i] += weight[k, i] * value[k, i]
                _level(joints.single[k], k, weight, change.force, change.slip, 1.0)
                for i in range(_SLOTS if joints.single[k] else _APART):
                    dy = change.force[k, i]
                    ds = (centre[k, i] - state.slack[k, i] * dy) * inverse.force[k, i]
                    change.slack[k, i] = ds
                    fall, nearer = -dy * inverse.force[k, i], -ds * inverse.slack[k, i]
                    if fall > falling:
                        falling = fall
                    if nearer > closer:
                        closer = nearer
            for v in range(len(closing)):
                dy = change.push[v] + firmness[v] * closing[v]
                ds = (aim[v] - state.gap[v] * dy) * inverse.push[v]
                change.push[v], change.gap[v] = dy, ds
                fall, nearer = -dy * inverse.push[v], -ds * inverse.gap[v]
                if fall > falling:
                    falling = fall
                if nearer > closer:
                    closer = nearer
            forth, along = 1.0 / falling, 1.0 / closer
            if turn:
                break
            # Mehrotra: how far the plain step comes says how far to aim at the centre.
            forth, along = min(forth, 1.0), min(along, 1.0)
            after = _product(joints, state, change, forth, along)
            target = (after / product) ** 3 * product / inequalities
            for k in range(count):
                for i in range(_SLOTS if joints.single[k] else _APART):
                    centre[k, i] += target - change.force[k, i] * change.slack[k, i]
            for v in range(len(closing)):
                aim[v] += target - change.push[v] * change.gap[v]
        forth, along = min(_STEP * forth, 1.0), min(_STEP * along, 1.0)
        for i in range(6 * bodies):
            change.speed[i] = faster[i]
        _add(state, change, forth, along)
    return UNFINISHED, kept, speed, wrench
