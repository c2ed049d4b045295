# SPDX-License-Identifier: Apache-2.0
"""Forces that press studs into holes, kept over a short window of engine steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.engines.protocol import NO_PART, STUD_SHAPE, StepReport
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@record
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
    if not len(contacts):
        return NO_PRESSES
    pairs = np.empty((len(contacts), 2), dtype=np.int64)
    force, centre = np.empty(len(contacts)), np.empty((len(contacts), 3))
    count = _press(
        contacts.part_a, contacts.part_b, contacts.shape_a, contacts.shape_b,
        contacts.normal, contacts.normal_impulse, contacts.position,
        part_ids, part_component, report.previous_world_T_component, report.dt,
        pairs, force, centre,
    )  # fmt: skip
    return Presses(pairs[:count], force[:count], centre[:count]) if count else NO_PRESSES


@compiled
def _press(
    part_a: IntArray,
    part_b: IntArray,
    shape_a: IntArray,
    shape_b: IntArray,
    normal: Array,
    impulse: Array,
    position: Array,
    part_ids: IntArray,
    part_component: IntArray,
    poses: Array,
    dt: float,
    pairs: IntArray,
    force: Array,
    centre: Array,
) -> int:
    """Writes what `presses` hands back, by pair; returns how many pairs that are.

    Args:
        part_a: (M,) like the next six, see `Contacts`.
        part_b: (M,)
        shape_a: (M,)
        shape_b: (M,)
        normal: (M, 3)
        impulse: (M,) along the normal [N s].
        position: (M, 3) [m].
        part_ids: (N,) see `presses`.
        part_component: (N,)
        poses: (K, 4, 4) of the components at the start of the step.
        dt: Length of the step [s].
        pairs: (M, 2) to be written, as are the others.
        force: (M,) [N].
        centre: (M, 3) [m].
    """
    keys = np.empty(len(part_a), dtype=np.int64)
    rows = np.empty(len(part_a), dtype=np.int64)
    found = 0
    for m in range(len(part_a)):
        a_is_stud = shape_a[m] == STUD_SHAPE
        if part_a[m] == NO_PART or a_is_stud == (shape_b[m] == STUD_SHAPE):
            continue
        lower, upper = (part_a[m], part_b[m]) if a_is_stud else (part_b[m], part_a[m])
        keys[found], rows[found] = lower << 31 | upper, m
        found += 1
    count, last, weights = 0, np.int64(-1), 0.0
    for k in np.argsort(keys[:found], kind="mergesort"):
        m, key = rows[k], keys[k]
        if key != last:
            if count:
                centre[count - 1] /= weights
            pairs[count, 0], pairs[count, 1] = key >> 31, key & (1 << 31) - 1
            force[count], centre[count], weights = 0.0, 0.0, 0.0
            count, last = count + 1, key
            # All parts of a component have its z axis, and so have their studs.
            pose = poses[part_component[np.searchsorted(part_ids, key >> 31)]]
        along = pose[0, 2] * normal[m, 0] + pose[1, 2] * normal[m, 1] + pose[2, 2] * normal[m, 2]
        pressing = along * impulse[m] / dt
        force[count - 1] += pressing if shape_a[m] == STUD_SHAPE else -pressing
        weight = abs(pressing) + 1e-12
        weights += weight
        for i in range(3):
            centre[count - 1, i] += weight * position[m, i]
    if count:
        centre[count - 1] /= weights
    return count


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
        history = np.zeros((self.steps, len(last.pairs)))
        for row, step in enumerate(self._log):
            _enter(last.pairs, step.pairs, step.force, history[row])
        needed = math.ceil(share * self.steps - 1e-9)
        force = np.sort(history, axis=0)[self.steps - needed]
        return Presses(last.pairs, force, last.centre)

    def state(self) -> tuple[Presses, ...]:
        """What `restore` takes."""
        return tuple(self._log)

    def restore(self, state: tuple[Presses, ...]) -> None:
        """Returns to a state."""
        self._log = deque(state, maxlen=self.steps)


@compiled
def _enter(pairs: IntArray, known: IntArray, force: Array, found: Array) -> None:
    """Writes the forces of pairs that are known over zeros.

    Args:
        pairs: (P, 2) sorted pairs.
        known: (K, 2) sorted pairs.
        force: (K,) their forces [N].
        found: (P,) to be written [N].
    """
    k = 0
    for p in range(len(pairs)):
        lower, upper = pairs[p]
        while k < len(known) and (
            known[k, 0] < lower or (known[k, 0] == lower and known[k, 1] < upper)
        ):
            k += 1
        if k < len(known) and known[k, 0] == lower and known[k, 1] == upper:
            found[p] = force[k]
