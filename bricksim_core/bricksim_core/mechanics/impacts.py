# SPDX-License-Identifier: Apache-2.0
"""How much shorter than in the engine real impacts are.

A rigid-body engine spreads an impact over its own contact time, some milliseconds; real bricks on a
table are in contact for about one (docs/mechanics.md). Impulses are the same, so real forces are
that much higher for that much shorter. This holds for what hits at speed only: forces that press,
carry or drive last as long as the engine says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import StepReport
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import IntArray

HIT_SPEED = 0.1
"""Closing speed from which a contact is an impact [m/s]: that of a fall from half a millimetre."""


@dataclass(frozen=True)
class Span:
    """What of an impact lies within a frame.

    Attributes:
        steps: Indices of the frame's steps that are part of it.
        over: Whether it ended in the frame.
    """

    steps: list[int]
    over: bool


def split_impacts(hits: NDArray[np.bool_], before: int, longest: int) -> list[Span]:
    """The impacts of a component in a frame, in their order.

    Args:
        hits: (S,) steps in which the component hit something at speed.
        before: Steps that an impact has gone on for when the frame begins, 0 for none.
        longest: Steps after which an impact ends in any case.
    """
    spans: list[Span] = []
    if not before and not hits.any():
        return spans
    steps: list[int] = []
    for step, hit in enumerate(hits.tolist()):
        if hit:
            steps.append(step)
        count = before + len(steps)
        if count and (not hit or count >= longest):
            spans.append(Span(steps, True))
            steps, before = [], 0
    if before or steps:
        spans.append(Span(steps, False))
    return spans


def closing_speeds(reports: Sequence[StepReport], bodies: Bodies) -> Array:
    """(S, K) speeds at which each component hits things in S steps [m/s].

    The speed at the start of a step along each contact's normal, averaged with the contacts'
    impulses as weights; 0 without contacts. Robots do not count: they drive what they push.
    """
    shape = (len(reports), len(bodies.coms))
    contacts = [_hitting(report) for report in reports]
    step = np.repeat(np.arange(len(reports)), [len(rows) for rows in contacts])
    if not len(step):
        return np.zeros(shape)
    taken = list(zip(reports, contacts, strict=True))

    def gathered(name: str) -> NDArray:
        return np.concatenate([getattr(r.contacts, name)[rows] for r, rows in taken])

    normal, position, impulse = (gathered(n) for n in ("normal", "position", "normal_impulse"))
    poses = np.array([r.previous_world_T_component for r in reports])
    twists = np.array([r.previous_twist for r in reports]).reshape(-1, 6)
    coms = np.matmul(poses[..., :3, :3], bodies.coms[:, :, None])[..., 0] + poses[..., :3, 3]
    coms = coms.reshape(-1, 3)
    speed = np.zeros(len(step))
    ends = []
    for parts, sign in ((gathered("part_a"), 1.0), (gathered("part_b"), -1.0)):
        bricks = np.flatnonzero(parts >= 0)
        flat = step[bricks] * shape[1] + bodies.row[bodies.find(parts[bricks])]
        twist = twists[flat]
        velocity = twist[:, :3] + cross(twist[:, 3:], position[bricks] - coms[flat])
        speed[bricks] += sign * np.einsum("ci,ci->c", velocity, normal[bricks])
        ends.append((bricks, flat))
    flat = np.concatenate([flat for _, flat in ends])
    rows = np.concatenate([bricks for bricks, _ in ends])
    size = shape[0] * shape[1]
    total = np.bincount(flat, impulse[rows], size)
    weighted = np.bincount(flat, (impulse * speed)[rows], size)
    mean = np.divide(weighted, total, out=np.zeros(size), where=total > 0.0)
    return mean.reshape(shape)


def _hitting(report: StepReport) -> IntArray:
    """Rows of the contacts that push and are no robot's."""
    contacts = report.contacts
    kept = contacts.normal_impulse > 0.0
    robots = np.array([name != "ground" for name in contacts.names], dtype=bool)
    if robots.any():
        kept &= ~((contacts.other >= 0) & robots[contacts.other])
    return np.flatnonzero(kept)
