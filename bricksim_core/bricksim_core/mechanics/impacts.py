# SPDX-License-Identifier: Apache-2.0
"""How much shorter than in the engine real impacts are.

A rigid-body engine spreads an impact over its own contact time, some milliseconds; real bricks on a
table are in contact for about one (docs/mechanics.md). Impulses are the same, so real forces are
that much higher for that much shorter. This holds for what hits at speed only: forces that press,
carry or drive last as long as the engine says.

An impact is an approach at speed and the rebound after it: the engine's contact pushes out again
what has gone into it, with a force that falls. Bodies that come near at speed once more, with the
same brick or another one, hit anew: the second hit may bend them the other way, which a mean of
both would hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.mechanics.steps import Steps
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

HIT_SPEED = 0.1
"""Closing speed from which a contact is an impact [m/s]: that of a fall from half a millimetre."""

REBOUND_FORCE = 2.0
"""Of a rebound at least [weights of the component]: what carries it presses with about one."""


class Touch(NamedTuple):
    """How components touch things in S steps. Robots do not count: they drive what they push.

    Attributes:
        speed: (S, W) at which each loaded component comes nearer to what it touches at the start of
            a step [m/s]: along each contact's normal, averaged with the contacts' impulses as
            weights; 0 without contacts.
        force: (S, W) sum of the contacts' normal forces [N]; 0 where a robot presses, too.
    """

    speed: Array
    force: Array


@dataclass(frozen=True)
class Span:
    """What of an impact lies within a frame.

    Attributes:
        steps: Indices of the frame's steps that are part of it.
        over: Whether it ended in the frame.
    """

    steps: list[int]
    over: bool


def rebounding(touch: Touch, before: Array, weight: Array) -> NDArray[np.bool_]:
    """(S, W) steps in which contacts push off what has hit them: more than carries it, ever less.

    Args:
        touch: The steps.
        before: (W,) force in the step before them [N].
        weight: (W,) of the components [N].
    """
    return _rebounding(touch.speed, touch.force, before, weight)


@compiled
def _rebounding(speed: Array, force: Array, before: Array, weight: Array) -> NDArray[np.bool_]:
    """See `rebounding`."""
    found = np.empty(force.shape, dtype=np.bool_)
    for s in range(len(force)):
        for k in range(len(weight)):
            earlier = force[s - 1, k] if s else before[k]
            falling = force[s, k] > REBOUND_FORCE * weight[k] and force[s, k] < earlier
            found[s, k] = falling and speed[s, k] <= HIT_SPEED
    return found


def split_impacts(
    hits: NDArray[np.bool_],
    rebounds: NDArray[np.bool_],
    lengths: Array,
    before: float,
    rebounds_before: bool,
    longest: float,
) -> list[Span]:
    """The impacts of a component in a frame, in their order.

    Args:
        hits: (S,) steps in which the component hit something at speed.
        rebounds: (S,) steps in which it is pushed off, none of the others.
        lengths: (S,) durations of the steps, in any unit.
        before: For how long an impact has gone on when the frame begins, 0 for none.
        rebounds_before: Whether it was pushed off then.
        longest: Duration after which an impact ends in any case.
    """
    spans: list[Span] = []
    if not before and not hits.any():
        return spans
    steps: list[int] = []
    off = rebounds_before
    each = zip(hits.tolist(), rebounds.tolist(), lengths.tolist(), strict=True)
    for step, (hit, rebound, length) in enumerate(each):
        goes_on = hit or rebound
        if before and (not goes_on or (hit and off)):
            spans.append(Span(steps, True))
            steps, before = [], 0.0
        if hit or (rebound and before):
            steps.append(step)
            before += length
        off = rebound
        if before >= longest:
            spans.append(Span(steps, True))
            steps, before = [], 0.0
    if before or steps:
        spans.append(Span(steps, False))
    return spans


def touch_of(steps: Steps, bodies: Bodies) -> Touch:
    """How each loaded component touches things in S steps."""
    contacts = steps.contacts
    robots = np.array([name != "ground" for name in contacts.names], dtype=np.bool_)
    return Touch(
        *_touch(
            contacts.part_a, contacts.part_b, contacts.other, robots, contacts.normal,
            contacts.position, contacts.normal_impulse, steps.first, bodies.part_ids, bodies.row,
            bodies.coms, bodies.loaded, steps.poses, steps.twists, steps.dt,
        )
    )  # fmt: skip


@compiled
def _touch(
    part_a: IntArray,
    part_b: IntArray,
    other: IntArray,
    robots: NDArray[np.bool_],
    normal: Array,
    position: Array,
    impulse: Array,
    first: IntArray,
    part_ids: IntArray,
    rows: IntArray,
    coms: Array,
    loaded: IntArray,
    poses: Array,
    twists: Array,
    dt: Array,
) -> tuple[Array, Array]:
    """(S, W) speeds and forces; see `Touch`.

    Args:
        part_a: (C,) like the six after it but `robots`, see `Contacts`.
        part_b: (C,)
        other: (C,)
        robots: (N,) which of the things that are no brick are robots' links.
        normal: (C, 3)
        position: (C, 3) [m].
        impulse: (C,) along the normals [N s].
        first: (S + 1,) where the contacts of each step begin; see `Steps`.
        part_ids: (A,) like the three after it, see `Bodies`.
        rows: (A,)
        coms: (K, 3) [m].
        loaded: (W,)
        poses: (S, K, 4, 4) world_T_component at the start of the steps [m].
        twists: (S, K, 6) velocities there [m/s, rad/s].
        dt: (S,) lengths of the steps [s].
    """
    speeds, forces = np.zeros((len(dt), len(coms))), np.zeros((len(dt), len(coms)))
    for s in range(len(dt)):
        own = slice(first[s], first[s + 1])
        if own.stop > own.start:
            _touch_in_step(
                part_a[own], part_b[own], other[own], robots, normal[own], position[own],
                impulse[own], part_ids, rows, coms, poses[s], twists[s], dt[s],
                speeds[s], forces[s],
            )  # fmt: skip
    return speeds[:, loaded], forces[:, loaded]


@compiled
def _touch_in_step(
    part_a: IntArray,
    part_b: IntArray,
    other: IntArray,
    robots: NDArray[np.bool_],
    normal: Array,
    position: Array,
    impulse: Array,
    part_ids: IntArray,
    rows: IntArray,
    coms: Array,
    poses: Array,
    twists: Array,
    dt: float,
    speeds: Array,
    forces: Array,
) -> None:
    """Writes the (K,) speeds and forces of all components in one step; the other arguments are
    those of `_touch`, of the step."""
    total, weighted = np.zeros(len(coms)), np.zeros(len(coms))
    driven = np.zeros(len(coms), dtype=np.bool_)
    ends = np.empty(2, dtype=np.int64)
    for c in range(len(part_b)):
        if not impulse[c] > 0.0:
            continue
        robot = other[c] >= 0 and robots[other[c]]
        speed = 0.0
        for end in range(2):
            brick = part_a[c] if end == 0 else part_b[c]
            ends[end] = -1
            if brick < 0:
                continue
            at = np.searchsorted(part_ids, brick)
            if at == len(part_ids):  # compiled code does not look where it reads
                raise IndexError("a contact names a part that is not in the scene")
            row = rows[at]
            if robot:
                driven[row] = True
                continue
            pose, twist, com = poses[row], twists[row], coms[row]
            x, y, z = position[c]
            x -= pose[0, 3] + pose[0, 0] * com[0] + pose[0, 1] * com[1] + pose[0, 2] * com[2]
            y -= pose[1, 3] + pose[1, 0] * com[0] + pose[1, 1] * com[1] + pose[1, 2] * com[2]
            z -= pose[2, 3] + pose[2, 0] * com[0] + pose[2, 1] * com[1] + pose[2, 2] * com[2]
            along = normal[c, 0] * (twist[0] + twist[4] * z - twist[5] * y)
            along += normal[c, 1] * (twist[1] + twist[5] * x - twist[3] * z)
            along += normal[c, 2] * (twist[2] + twist[3] * y - twist[4] * x)
            speed += along if end == 0 else -along
            ends[end] = row
        for row in ends:
            if row >= 0:
                total[row] += impulse[c]
                weighted[row] += impulse[c] * speed
    for k in range(len(coms)):
        if total[k] > 0.0:
            speeds[k] = weighted[k] / total[k]
            forces[k] = 0.0 if driven[k] else total[k] / dt
