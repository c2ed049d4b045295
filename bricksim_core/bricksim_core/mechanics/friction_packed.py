# SPDX-License-Identifier: Apache-2.0
"""The program of `friction_program` in two arrays.

A compiled function takes some tenths of a microsecond for each array that it is handed from Python,
and more for each that it hands out. A program has two dozen of them and goes in and out of many
functions, most of which do little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics import friction_program
from bricksim_core.mechanics.elimination import Elimination, products
from bricksim_core.mechanics.friction_program import (
    Contacts,
    FrictionJoints,
    Links,
    Point,
    Program,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_SIZES = 6
"""Of a program: bodies, joints, links, contacts; and blocks of its factored matrix, and products of
these that lead there."""


class Packed(NamedTuple):
    """A program.

    Attributes:
        values: All of its numbers.
        whole: Its sizes and all of its whole numbers.
    """

    values: Array
    whole: IntArray

    @property
    def links(self) -> int:
        """How many links it has."""
        return int(self.whole[2])

    @property
    def products(self) -> int:
        """How many products of blocks a factorization of its matrix takes."""
        return int(self.whole[5])


@compiled
def packed(program: Program) -> Packed:
    """A program in two arrays."""
    mass, mobility, links, joints, contacts, order = program
    bodies, count, many, pushes = len(mass), len(joints.turn), len(links.lower), len(contacts.link)
    blocks = len(order.row)
    values = np.empty(72 * bodies + 14 * count + 6 * many + 6 * pushes)
    whole = np.empty(_SIZES + count + 3 * many + pushes + 2 * bodies + 1 + blocks, dtype=np.int64)
    whole[:_SIZES] = np.array([bodies, count, many, pushes, blocks, products(order)])
    at = _put(values, 0, mass)
    at = _put(values, at, mobility)
    at = _put(values, at, links.from_lower)
    at = _put(values, at, links.from_upper)
    at = _put(values, at, joints.corners)
    at = _put(values, at, joints.turn)
    at = _put(values, at, joints.apex)
    at = _put(values, at, joints.shear)
    at = _put(values, at, joints.pull)
    _put(values, at, contacts.push)
    at = _put(whole, _SIZES, joints.single)
    at = _put(whole, at, links.lower)
    at = _put(whole, at, links.upper)
    at = _put(whole, at, contacts.link)
    at = _put(whole, at, order.place)
    at = _put(whole, at, order.between)
    at = _put(whole, at, order.start)
    _put(whole, at, order.row)
    return Packed(values, whole)


@compiled
def _put(target: NDArray, at: int, source: NDArray) -> int:
    """Writes an array from a place on; the place after it."""
    flat = source.reshape(-1)
    for i in range(len(flat)):
        target[at + i] = flat[i]
    return at + len(flat)


@compiled
def unpacked(program: Packed) -> Program:
    """The program, which has the same memory."""
    values, whole = program
    bodies, count, many = whole[0], whole[1], whole[2]
    pushes = whole[3]
    mass, left = values[: 36 * bodies], values[36 * bodies :]
    mobility, left = left[: 36 * bodies], left[36 * bodies :]
    from_lower, left = left[: 3 * many], left[3 * many :]
    from_upper, left = left[: 3 * many], left[3 * many :]
    corners, left = left[: 8 * count], left[8 * count :]
    turn, left = left[:count], left[count:]
    apex, left = left[: 3 * count], left[3 * count :]
    shear, left = left[:count], left[count:]
    pull, push = left[:count], left[count:]
    single, rest = whole[_SIZES : _SIZES + count] != 0, whole[_SIZES + count :]
    lower, rest = rest[:many], rest[many:]
    upper, rest = rest[:many], rest[many:]
    link, rest = rest[:pushes], rest[pushes:]
    place, rest = rest[:bodies], rest[bodies:]
    between, rest = rest[:many], rest[many:]
    return Program(
        mass.reshape(bodies, 6, 6),
        mobility.reshape(bodies, 6, 6),
        Links(lower, upper, from_lower.reshape(many, 3), from_upper.reshape(many, 3)),
        FrictionJoints(
            corners.reshape(count, 4, 2), turn, single, apex.reshape(count, 3), shear, pull
        ),
        Contacts(link, push.reshape(pushes, 6)),
        Elimination(place, rest[: bodies + 1], rest[bodies + 1 :], between),
    )


def nowhere(program: Packed) -> Array:
    """A `Point` of zeros in one array."""
    bodies, joints, _, contacts = program.whole[:4].tolist()
    return np.zeros(6 * bodies + 24 * joints + 2 * contacts)


@compiled
def _point(values: Array, whole: IntArray) -> Point:
    """The point, which has the same memory."""
    bodies, count, pushes = whole[0], whole[1], whole[3]
    speed, left = values[: 6 * bodies], values[6 * bodies :]
    force, left = left[: 11 * count], left[11 * count :]
    slack, left = left[: 11 * count], left[11 * count :]
    slip, left = left[: 2 * count], left[2 * count :]
    return Point(
        speed,
        force.reshape(count, 11),
        slack.reshape(count, 11),
        slip.reshape(count, 2),
        left[:pushes],
        left[pushes:],
    )


@compiled
def moved(
    program: Packed,
    load: Array,
    unit: float,
    enough: float,
    bound: float,
    exact: float,
    near: Array,
    known: bool,
    state: Array,
    kept: bool,
    first: int,
    last: int,
) -> tuple[int, bool, Array, Array]:
    """`friction_program.moved`, its points in one array each (`nowhere`)."""
    return friction_program.moved(
        unpacked(program), load, unit, enough, bound, exact, _point(near, program.whole), known,
        _point(state, program.whole), kept, first, last,
    )  # fmt: skip
