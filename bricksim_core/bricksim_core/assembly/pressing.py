# SPDX-License-Identifier: Apache-2.0
"""Forces that press studs into holes, kept over a short window of engine steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from bricksim_core.engines.protocol import NO_PART, STUD_SHAPE, StepReport
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@dataclass(frozen=True, eq=False)
class Presses:
    """Pressing forces of P pairs.

    Attributes:
        pairs: (P, 2) lower part, upper part.
        force: (P,) force along the stud normal [N], >= 0 where it presses together.
        centre: (P, 3) centre of pressure, world [m].
    """

    pairs: IntArray
    force: Array
    centre: Array


NO_PRESSES = Presses(np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros((0, 3)))


def presses(report: StepReport, part_ids: IntArray, part_component: IntArray) -> Presses:
    """Pairs (stud slab, body) of different bricks in contact, and how hard they press.

    Only normal forces count, projected on the stud normal. All parts of a component have its z
    axis, so the stud normal is the z axis of the lower part's component.

    Args:
        report: One engine step.
        part_ids: (N,) sorted ids of all parts.
        part_component: (N,) row of each part's component in the report.
    """
    contacts = report.contacts
    stud_a, stud_b = contacts.shape_a == STUD_SHAPE, contacts.shape_b == STUD_SHAPE
    rows = np.flatnonzero((contacts.part_a != NO_PART) & (stud_a != stud_b))
    if not len(rows):
        return NO_PRESSES
    a_is_stud = stud_a[rows]
    part_a, part_b = contacts.part_a[rows], contacts.part_b[rows]
    lower, upper = np.where(a_is_stud, part_a, part_b), np.where(a_is_stud, part_b, part_a)
    component = part_component[np.searchsorted(part_ids, lower)]
    normal = report.previous_world_T_component[component, :3, 2]
    along = np.einsum("ci,ci->c", contacts.normal[rows], normal)
    force = np.where(a_is_stud, along, -along) * contacts.normal_impulse[rows] / report.dt
    _, first, inverse = np.unique(_keys(lower, upper), return_index=True, return_inverse=True)
    unique = np.stack([lower[first], upper[first]], axis=1)
    total = np.bincount(inverse, force, len(unique))
    weight = np.abs(force) + 1e-12
    norm = np.bincount(inverse, weight, len(unique))
    sums = [
        np.bincount(inverse, moment, len(unique))
        for moment in (weight[:, None] * contacts.position[rows]).T
    ]
    centre = np.stack(sums, axis=1) / norm[:, None]
    return Presses(unique, total, centre)


class PressWindow:
    """Presses of the last steps.

    Args:
        duration: Length of the window [s].
        dt: Length of a step [s].
    """

    def __init__(self, duration: float, dt: float) -> None:
        self.steps = max(2, round(duration / dt))
        self._log: deque[Presses] = deque(maxlen=self.steps)

    def add(self, step: Presses) -> None:
        """Enters the presses of one step."""
        self._log.append(step)

    def forget(self, part_ids: Collection[int]) -> None:
        """Drops what is known of some parts: they were moved."""
        gone = list(part_ids)

        def kept(step: Presses) -> Presses:
            keep = ~np.isin(step.pairs, gone).any(axis=1)
            return Presses(step.pairs[keep], step.force[keep], step.centre[keep])

        self._log = deque((kept(step) for step in self._log), maxlen=self.steps)

    def sustained(self, share: float) -> Presses:
        """Forces that were reached in a share of the window's steps, at the last centre seen.

        Pairs that did not touch in the last step are left out.
        """
        if not self._log or not len(self._log[-1].pairs):
            return NO_PRESSES
        last = self._log[-1]
        keys = _keys(*last.pairs.T)
        history = np.zeros((self.steps, len(keys)))
        for row, step in enumerate(self._log):
            if step is last:
                history[row] = step.force
            elif len(step.pairs):
                other = _keys(*step.pairs.T)
                place = np.minimum(np.searchsorted(other, keys), len(other) - 1)
                history[row] = np.where(other[place] == keys, step.force[place], 0.0)
        needed = math.ceil(share * self.steps - 1e-9)
        force = np.sort(history, axis=0)[self.steps - needed]
        return Presses(last.pairs, force, last.centre)

    def state(self) -> tuple[Presses, ...]:
        """What `restore` takes."""
        return tuple(self._log)

    def restore(self, state: tuple[Presses, ...]) -> None:
        """Returns to a state."""
        self._log = deque(state, maxlen=self.steps)


def _keys(lower: IntArray, upper: IntArray) -> IntArray:
    """(P,) one number for each pair of ids, in the order of the pairs."""
    return lower << 31 | upper
