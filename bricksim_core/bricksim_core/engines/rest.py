# SPDX-License-Identifier: Apache-2.0
"""Which components rest, so that an engine with a body per brick may let them sleep.

PhysX lets bodies sleep whose speed is low. Bricks of a welded component keep what is left of the
solver's corrections, millimetres per second each, while the component as a whole stands. So what
counts here is whether a component gets anywhere: its mean place in one block of steps is that in
the block before, and it never strays far. It has to stand on something that does not move, and
all that touches it has to rest as well; a robot's link never does.

A sleeping component has no contacts in PhysX: they stay as they were in its last step awake.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.contact_lists import (
    join_contacts,
    no_contacts,
    take_contacts,
    with_links,
)
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.engines.rigid_fit import RigidGroups
from bricksim_core.spatial import Array, transform_points

BLOCK = 0.5
"""Duration over which places are averaged [s]. Welds are not damped: a wall of 50 bricks that
stands on one of them sways about its place with a period of 0.45 s."""
DRIFT = 1e-5
"""Distance [m] between the means of two blocks up to which a component rests: 20 um/s."""
SWAY = 2e-4
"""Distance [m] up to which a component may stray in a block, the depth that overlaps may have: that
wall sways by 0.13 mm."""


class Rest:
    """Rest and sleep of K components, by their index in the scene's groups.

    Args:
        groups: The components.
        ids: (K,) their ids.
        fixed: (K,) which of them the world holds.
        timestep: Length of a step [s].

    Attributes:
        asleep: (K,) which components sleep.
        contacts: Contacts of sleeping components, as they were last.
    """

    def __init__(
        self,
        groups: RigidGroups,
        ids: NDArray[np.int64],
        fixed: NDArray[np.bool_],
        timestep: float,
    ) -> None:
        self._groups = groups
        self._ids = ids
        self._fixed = fixed
        self._timestep = timestep
        self._order = np.argsort(groups.part_ids)
        self._parts = groups.part_ids[self._order]
        # A rotation counts as the way of a point at the component's size.
        moments = np.trace(groups.local_inertias, axis1=1, axis2=2)
        sizes = np.sqrt(0.5 * moments / groups.masses)
        largest = np.maximum.reduceat(sizes, groups.starts) if len(ids) else sizes
        self._reach = np.sqrt(2.0 * groups.spread) + largest
        self._block = max(1, round(BLOCK / timestep))
        self._steps = 0
        shape = (len(ids), 12)
        self._mean = np.full(shape, np.nan)
        self._first, self._sum = np.zeros(shape), np.zeros(shape)
        self._restless = np.zeros(len(ids), dtype=np.bool_)
        self.asleep = np.zeros(len(ids), dtype=np.bool_)
        self.contacts = no_contacts()

    @property
    def nothing_moves(self) -> bool:
        """Whether all components sleep or are held."""
        return bool(np.all(self.asleep | self._fixed))

    @property
    def sleepers(self) -> set[int]:
        """Ids of the parts that sleep."""
        return set(self._groups.part_ids[self.asleep[self._groups.group]].tolist())

    def components_of(self, contacts: Contacts) -> NDArray[np.intp]:
        """Components that contacts touch."""
        rows = self._rows(np.concatenate([contacts.part_a, contacts.part_b]))
        return rows[rows >= 0]

    def after(
        self,
        groups: RigidGroups,
        ids: NDArray[np.int64],
        fixed: NDArray[np.bool_],
        changed: Collection[int],
    ) -> Rest:
        """What rests after an update of the scene, without the components that it woke.

        Args:
            groups: The components that there are now.
            ids: (K,) their ids.
            fixed: (K,) which of them the world holds.
            changed: Parts that are new, gone, moved or filtered anew. They wake, and so does all
                that touches them, also through others; everything if the world holds or held one.
        """
        new = Rest(groups, ids, fixed, self._timestep)
        if self._fixed[self._rows_of(changed)].any() or fixed[new._rows_of(changed)].any():
            return new
        _, old, now = np.intersect1d(self._ids, ids, assume_unique=True, return_indices=True)
        stirred = np.zeros(len(self._ids), dtype=np.bool_)
        stirred[self._rows_of(changed)] = True
        stays = ~(self._spread(stirred)[old] | np.isin(now, new._rows_of(changed)))
        old, now = old[stays], now[stays]
        new._mean[now] = self._mean[old]
        new.asleep[now] = self.asleep[old]
        new.contacts = take_contacts(self.contacts, new._of_sleepers(self.contacts))
        return new

    def keep(self, asleep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Takes over which (K,) components the engine says are asleep still.

        Returns:
            (K,) sleeping components that touch, also through others, what the engine woke. What
            they stand on may go, of which PhysX does not tell all: they have to `wake` after the
            step.
        """
        woken = self.asleep & ~asleep
        if not woken.any():
            return woken
        stirred = self._spread(woken) & ~woken
        self.wake(woken)
        return stirred

    def wake(self, woken: NDArray[np.bool_]) -> None:
        """Some of the (K,) components are awake from now on."""
        self.asleep = self.asleep & ~woken
        self._mean[woken] = np.nan
        self._restless |= woken
        self.contacts = take_contacts(self.contacts, self._of_sleepers(self.contacts))

    def resume(self, asleep: NDArray[np.bool_], contacts: Contacts) -> None:
        """Lets those of the (K,) components sleep that did in a snapshot, with their contacts."""
        self.asleep, self.contacts = asleep, contacts

    def observe(
        self, poses: Array, contacts: Contacts, pushed: Collection[int]
    ) -> NDArray[np.bool_]:
        """Takes in a step.

        Args:
            poses: (K, 4, 4) world_T_component at its end [m].
            contacts: Its contacts, without those of sleeping components.
            pushed: Parts that a wrench acted on.

        Returns:
            (K,) components that sleep from now on; the engine has to see to it.
        """
        place = np.empty((len(poses), 12))
        place[:, :3] = transform_points(poses, self._groups.com)
        place[:, 3:] = poses[:, :3, :3].reshape(-1, 9) * self._reach[:, None]
        if self._steps == 0:
            self._first = place
            self._sum = np.zeros_like(place)
            self._restless[:] = False
        deviation = place - self._first
        self._sum += deviation
        self._restless |= np.abs(deviation).max(axis=1, initial=0.0) > SWAY
        if pushed:
            self._restless[self._rows_of(pushed)] = True
        self._steps += 1
        if self._steps < self._block:
            return np.zeros(len(poses), dtype=np.bool_)
        self._steps = 0
        mean = self._first + self._sum / self._block
        # Compared the other way round, NaN would be rest.
        rests = np.abs(mean - self._mean).max(axis=1, initial=0.0) < DRIFT
        self._mean = mean
        tired = rests & ~self._restless & ~self.asleep & ~self._fixed
        if not tired.any():
            return tired
        tired = self._together(tired, contacts)
        if tired.any():
            self.asleep = self.asleep | tired
            held = take_contacts(contacts, self._of_sleepers(contacts))
            self.contacts = join_contacts([self.contacts, held])
        return tired

    def _together(self, tired: NDArray[np.bool_], contacts: Contacts) -> NDArray[np.bool_]:
        """Those of the tired components that stand, through others as tired, on what is at rest."""
        still = np.append(self.asleep | self._fixed, True)  # the last is what is no brick
        a, b = self._rows(contacts.part_a), self._rows(contacts.part_b)
        tired = tired.copy()
        tired[b[with_links(contacts)]] = False
        while True:
            quiet = np.append(tired, False) | still
            stirred = np.concatenate([a[~quiet[b]], b[~quiet[a]]])
            stirred = stirred[stirred >= 0]
            if not tired[stirred].any():
                break
            tired[stirred] = False
        standing = still.copy()
        while True:
            more = np.concatenate([a[standing[b]], b[standing[a]]])
            if standing[more].all():
                return tired & standing[:-1]
            standing[more] = True

    def _of_sleepers(self, contacts: Contacts) -> NDArray[np.bool_]:
        """Contacts of sleeping components with each other or with what does not move."""
        asleep = np.append(self.asleep, False)
        still = asleep | np.append(self._fixed, True)
        a, b = self._rows(contacts.part_a), self._rows(contacts.part_b)
        known = (a >= 0) | (contacts.part_a == NO_PART)
        return known & (b >= 0) & still[a] & still[b] & (asleep[a] | asleep[b])

    def _spread(self, stirred: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(K,) components, and those that sleep in touch with them or with each other."""
        sleeps = np.append(self.asleep, False)
        a, b = self._rows(self.contacts.part_a), self._rows(self.contacts.part_b)
        between = sleeps[a] & sleeps[b]
        a, b = a[between], b[between]
        stirred = stirred.copy()
        while True:
            more = np.concatenate([a[stirred[b]], b[stirred[a]]])
            if stirred[more].all():
                return stirred
            stirred[more] = True

    def _rows_of(self, parts: Collection[int]) -> NDArray[np.intp]:
        """Components of parts, of those that exist."""
        rows = self._rows(np.array(sorted(parts), dtype=np.int64))
        return rows[rows >= 0]

    def _rows(self, parts: NDArray[np.int64]) -> NDArray[np.intp]:
        """Component of each part, -1 for what is none."""
        if not len(self._parts):
            return np.full(len(parts), -1, dtype=np.intp)
        places = np.searchsorted(self._parts, parts)
        places = np.minimum(places, len(self._parts) - 1)
        found = self._groups.group[self._order[places]]
        return np.where(self._parts[places] == parts, found, -1)
