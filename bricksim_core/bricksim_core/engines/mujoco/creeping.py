# SPDX-License-Identifier: Apache-2.0
"""What lies still but for the creep of soft contacts, and falls asleep.

MuJoCo lets bodies sleep that are slower than a speed. Its friction is a damper as long as it holds:
what leans on others creeps, at speeds in proportion to gravity, and where boxes touch edge to edge
the points that they touch in may come and go from step to step for ever. Neither gets anywhere. So
what counts here is the way of a body's mean place from one block of steps to the next:

- It is short. Bodies in free fall, and those that slide or tip over, are faster than that in the
  second block.
- It does not become longer, from block to block: what tips over from where it balanced, or slides
  just above the angle of friction, does.
- Within a block the body does not stray far.

In balance a body's mean load over a block is that of statics, whatever its contacts do from step to
step: momentum is neither gained nor lost. So that is what it bears while it sleeps.
"""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.contact_lists import (
    join_contacts,
    take_contacts,
    weaker_contacts,
    with_links,
)
from bricksim_core.engines.mujoco.index import SceneIndex
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.spatial import Array

BLOCK = 0.25
"""Duration of a block [s]. Three quiet ones in a row are rest."""
_LEAST_STEPS = 10
CREEP = 5e-5
"""Speed of the mean place over gravity [s] up to which it is creep: 0.5 mm/s on earth. Heaps of
bricks and of structures creep at up to 0.3 mm/s."""
_GROWTH = 1.1
"""Ratio of the ways in two blocks up to which they do not become longer."""
_SWAY = 5e-4
"""Distance [m] up to which a body may stray in a block, the depth that overlaps may have."""
_SAME_PLACE = 2e-4
"""Distance [m] between contacts up to which they are one."""
_MANY = 64
"""Lists of contacts that are made one, to take less room."""


class Creep:
    """Which of F free bodies only creep.

    Args:
        count: F.
        gravity: [m/s^2]; 0 where there is no friction, and so no creep.
        timestep: [s].
        least: Speed [m/s] up to which bodies fall asleep anyway.

    Attributes:
        tired: (F,) which bodies have only crept up to the last step and may fall asleep in the
            next one.
        some: Whether there are such.
    """

    def __init__(self, count: int, gravity: float, timestep: float, least: float) -> None:
        self._block = max(_LEAST_STEPS, round(BLOCK / timestep))
        duration = self._block * timestep
        self._longest, self._noise = CREEP * gravity * duration, least * duration
        self._steps = 0
        self._first, self._sum = np.zeros((count, 7)), np.zeros((count, 7))
        self._mean, self._way = np.full((count, 7), np.nan), np.full(count, np.nan)
        self._restless = np.zeros(count, dtype=np.bool_)
        self._promising = self._quiet = self.some = False
        self._contacts: tuple[Contacts, ...] = ()
        self._told = 0
        self.tired = np.zeros(count, dtype=np.bool_)

    def copy(self) -> Creep:
        """The same for another future."""
        copied = Creep.__new__(Creep)
        copied.__dict__.update(self.__dict__)
        for name in ("_first", "_sum", "_mean", "_way", "_restless", "tired"):
            setattr(copied, name, getattr(self, name).copy())
        return copied

    def observe(
        self, data: mujoco.MjData, index: SceneIndex, contacts: Contacts, pushed: NDArray[np.bool_]
    ) -> None:
        """Takes in a step.

        Args:
            data: Right after it.
            index: Of the model.
            contacts: What touched in it.
            pushed: (F,) which bodies a wrench acted on.
        """
        if self._steps == 0:
            self._contacts, self._told, self.some, self._quiet = (), 0, False, True
        if self._quiet and self._promising:
            self._contacts = (*self._contacts, contacts)
            self._told += 1
            if len(self._contacts) == _MANY:
                self._contacts = (_together(join_contacts(self._contacts)),)
        # Where all move, the rest of the block is not looked at.
        if self._quiet:
            self._quiet = _take_in(
                data.qpos, index.qpos, index.around.reach, data.tree_asleep, data.tree_island,
                index.tree, pushed, self._steps == 0, self._first, self._sum, self._restless,
            )  # fmt: skip
        self._steps += 1
        if self._steps == self._block:
            self._steps = 0
            self._promising, self.some = _compare(
                self._block, self._longest, self._noise, index.around.reach, self._first,
                self._sum, self._restless, self._mean, self._way, self.tired,
            )  # fmt: skip

    def borne(self, index: SceneIndex, lulled: NDArray[np.bool_], last: Contacts) -> Contacts:
        """Contacts of a step with those of the bodies that fell asleep in it as they were in the
        mean of the block. Where something left these in the block they stay as they are.

        Args:
            index: Of the model.
            lulled: (F,) the bodies.
            last: The contacts of the step.
        """
        block = join_contacts(self._contacts)
        own, apart = _ends(index, lulled, block)
        if (apart & (block.normal_impulse > 0.0)).any():
            return last
        others = take_contacts(last, ~_ends(index, lulled, last)[0])
        borne = _together(take_contacts(block, own))
        return join_contacts([others, weaker_contacts(borne, 1.0 / self._told)])


def _ends(
    index: SceneIndex, lulled: NDArray[np.bool_], contacts: Contacts
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which contacts are of some bodies, and which of these are with bodies that move or with a
    robot."""
    # One more entry for what the world holds and for what is no brick.
    own = np.append(lulled, False)
    a = np.where(contacts.part_a == NO_PART, -1, index.free_of(contacts.part_a))
    b = index.free_of(contacts.part_b)
    some = own[a] | own[b]
    moved = ((a >= 0) & ~own[a]) | ((b >= 0) & ~own[b]) | with_links(contacts)
    return some, some & moved


def _together(contacts: Contacts) -> Contacts:
    """Contacts of some steps in a row as one list, in which points of the same two shapes that are
    in the same place are one, with the sum of the impulses."""
    keys = np.column_stack(
        (contacts.part_a, contacts.part_b, contacts.shape_a, contacts.shape_b, contacts.other)
    )
    position, normal = contacts.position.copy(), contacts.normal.copy()
    pressing, impulse = contacts.normal_impulse.copy(), contacts.impulse.copy()
    first = _add_up(keys, position, normal, pressing, impulse)
    return replace(
        take_contacts(contacts, first),
        position=position[first],
        normal=normal[first],
        normal_impulse=pressing[first],
        impulse=impulse[first],
    )


@compiled
def _add_up(
    keys: NDArray[np.int64], position: Array, normal: Array, pressing: Array, impulse: Array
) -> NDArray[np.intp]:
    """Adds contacts up to the first ones of the same shapes in the same place.

    Args:
        keys: (M, 5) what tells the shapes apart.
        position: (M, 3) [m]; written, as are the next three: means by impulse and sums.
        normal: (M, 3) unit vectors.
        pressing: (M,) normal impulses [N s].
        impulse: (M, 3) [N s].

    Returns:
        The first ones.
    """
    first, places = np.empty(len(keys), dtype=np.intp), position.copy()
    count, last = 0, -1
    for m in range(len(keys)):
        # In the next step they mostly come in the same order.
        tried, at = 0, 0
        while tried < count:
            last = last + 1 if last + 1 < count else 0
            at = first[last]
            same = True
            for k in range(5):
                same = same and keys[at, k] == keys[m, k]
            away = 0.0
            for i in range(3):
                away = max(away, abs(places[at, i] - places[m, i]))
            if same and away <= _SAME_PLACE:
                break
            tried += 1
        if tried == count:
            first[count], last = m, count
            count += 1
            continue
        total = pressing[at] + pressing[m]
        share = pressing[m] / total if total > 0.0 else 0.0
        length = 0.0
        for i in range(3):
            position[at, i] += share * (position[m, i] - position[at, i])
            normal[at, i] += share * (normal[m, i] - normal[at, i])
            impulse[at, i] += impulse[m, i]
            length += normal[at, i] ** 2
        for i in range(3):
            normal[at, i] /= math.sqrt(length)
        pressing[at] = total
    return first[:count]


@compiled
def _take_in(
    positions: Array,
    at: NDArray[np.intp],
    reach: Array,
    asleep: NDArray[np.int32],
    island: NDArray[np.int32],
    tree: NDArray[np.intp],
    pushed: NDArray[np.bool_],
    begins: bool,
    first: Array,
    total: Array,
    restless: NDArray[np.bool_],
) -> bool:
    """Adds a step to a block.

    Args:
        positions: Of the model.
        at: (F, 7) addresses of the free bodies' positions.
        reach: (F or more,) how far each reaches [m].
        asleep: (T,) MuJoCo's counts (`tree_asleep`) of trees, not negative for what sleeps.
        island: (T,) what they are linked with by contacts, -1: nothing.
        tree: (F,) trees of the free bodies.
        pushed: (F,) which a wrench acted on.
        begins: Whether it is the first step of the block.
        first: (F, 7) where they were in that; written, as are the next two.
        total: (F, 7) sum of how far they were from there.
        restless: (F,) which slept, strayed or were pushed, also through others.

    Returns:
        Whether any is not restless.
    """
    for f in range(len(at)):
        if begins:
            for i in range(7):
                first[f, i] = positions[at[f, i]]
                total[f, i] = 0.0
            restless[f] = False
        if asleep[tree[f]] >= 0:
            restless[f] = True
        if restless[f]:
            continue
        moved = turned = 0.0
        for i in range(7):
            way = positions[at[f, i]] - first[f, i]
            total[f, i] += way
            if i < 3:
                moved += way * way
            else:
                turned += way * way
        if not math.sqrt(moved) + 2.0 * reach[f] * math.sqrt(turned) <= _SWAY:
            restless[f] = True
    for f in range(len(at)):
        if pushed[f]:
            for g in range(len(at)):
                same = island[tree[g]] == island[tree[f]] and island[tree[f]] >= 0
                restless[g] = restless[g] or same or g == f
    return not restless.all()


@compiled
def _compare(
    steps: int,
    longest: float,
    noise: float,
    reach: Array,
    first: Array,
    total: Array,
    restless: NDArray[np.bool_],
    mean: Array,
    ways: Array,
    tired: NDArray[np.bool_],
) -> tuple[bool, bool]:
    """Compares a block with the ones before.

    Args:
        steps: In the block.
        longest: Way [m] up to which it is creep.
        noise: Way [m] up to which it may become longer.
        reach: See `_take_in`, as for the next three.
        first: (F, 7).
        total: (F, 7).
        restless: (F,).
        mean: (F, 7) mean places in the block before, not numbers if that was restless; written.
        ways: (F,) ways to there from the block before it; written.
        tired: (F,) which bodies rest; written.

    Returns:
        Whether some may rest after the next block, and whether some rest.
    """
    promising = False
    for f in range(len(first)):
        moved = turned = 0.0
        for i in range(7):
            now = math.nan if restless[f] else first[f, i] + total[f, i] / steps
            way = now - mean[f, i]
            mean[f, i] = now
            if i < 3:
                moved += way * way
            else:
                turned += way * way
        way = math.sqrt(moved) + 2.0 * reach[f] * math.sqrt(turned)
        # What is not a number compares as false.
        tired[f] = way <= longest and way <= max(_GROWTH * ways[f], noise) and ways[f] >= 0.0
        ways[f] = way
        promising = promising or way >= 0.0
    return promising, bool(tired.any())
