# SPDX-License-Identifier: Apache-2.0
"""The rigid bodies of a scene as arrays, constant while the topology is.

Everything that is computed in every engine step for every component is computed from these for all
components and all steps of a frame at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.dynamics import mass_properties
from bricksim_core.membership import places_in
from bricksim_core.spatial import Array, joined
from bricksim_core.topology.layout import ComponentLayout, IntArray


@dataclass(frozen=True, eq=False)
class Bodies:
    """K components by the rows of step reports; A parts; W *loaded* components with P parts.

    Attributes:
        part_ids: (A,) all part ids, sorted.
        row: (A,) row of each part's component in a step report.
        coms: (K, 3) centre of mass of each component in its frame [m].
        place: (A,) index into the P loaded parts, -1 for parts of other components.
        loaded: (W,) rows of the loaded components.
        first: (W + 1,) first of each loaded component's parts among the P.
        owner: (P,) index into the loaded components.
        held: (W,) True where the world holds the component: nothing accelerates.
        masses: (P,) [kg].
        local: (P, 3) centres of mass of the parts, component frame [m].
        arms: (P, 3) from the component's centre of mass to the part's, component axes [m].
        inertias: (P, 3, 3) about each part's own centre of mass, component axes [kg m^2].
        mass: (W,) [kg].
        mobility: (W, 3, 3) inverse of the component's inertia about its centre of mass.
        inertia: (W, 3, 3) that inertia [kg m^2].
    """

    part_ids: IntArray
    row: IntArray
    coms: Array
    place: IntArray
    loaded: IntArray
    first: IntArray
    owner: IntArray
    held: NDArray[np.bool_]
    masses: Array
    local: Array
    arms: Array
    inertias: Array
    mass: Array
    inertia: Array
    mobility: Array

    def find(self, part_ids: IntArray) -> IntArray:
        """Positions of existing parts among the A."""
        return np.searchsorted(self.part_ids, part_ids)

    def parts_of(self, loaded: int) -> slice:
        """Where the parts of a loaded component are among the P, in its layout's order."""
        return slice(int(self.first[loaded]), int(self.first[loaded + 1]))

    def only(self, wanted: NDArray[np.bool_]) -> Bodies:
        """The same with some of the loaded components only; ``wanted``: (W,)."""
        if wanted.all():
            return self
        kept = wanted[self.owner]
        place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last one is for -1
        return replace(
            self,
            place=place[self.place],
            loaded=self.loaded[wanted],
            first=np.concatenate([[0], np.cumsum(np.diff(self.first)[wanted])]),
            owner=(np.cumsum(wanted) - 1)[self.owner[kept]],
            held=self.held[wanted],
            masses=self.masses[kept],
            local=self.local[kept],
            arms=self.arms[kept],
            inertias=self.inertias[kept],
            mass=self.mass[wanted],
            inertia=self.inertia[wanted],
            mobility=self.mobility[wanted],
        )


def bodies_of(
    layouts: Mapping[int, ComponentLayout],
    loaded: Collection[int] = (),
    held: Collection[int] = (),
) -> Bodies:
    """The bodies of a scene.

    Args:
        layouts: All components by id.
        loaded: Ids of the components whose loads are wanted.
        held: Ids of the components that the world holds.
    """
    ids = sorted(layouts)
    bodies = [mass_properties(layouts[component]) for component in ids]
    part_ids = joined([layouts[component].part_ids for component in ids], dtype=np.int64)
    counts = [len(layouts[component].part_ids) for component in ids]
    rows = [row for row, component in enumerate(ids) if component in loaded]
    chosen = [layouts[ids[row]] for row in rows]
    local = joined([layout.coms for layout in chosen], (3,))
    coms = np.array([body.com for body in bodies], dtype=float).reshape(-1, 3)
    inertia = np.array([bodies[row].inertia for row in rows], dtype=float).reshape(-1, 3, 3)
    here = np.array(rows, dtype=np.int64)
    order, row, place, first, owner, arms = _places(
        part_ids, np.array(counts, dtype=np.int64), here, coms, local
    )
    return Bodies(
        part_ids=order,
        row=row,
        coms=coms,
        place=place,
        loaded=here,
        first=first,
        owner=owner,
        held=np.array([ids[row] in held for row in rows], dtype=bool),
        masses=joined([layout.masses for layout in chosen]),
        local=local,
        arms=arms,
        inertias=joined([layout.inertias for layout in chosen], (3, 3)),
        mass=np.array([bodies[row].mass for row in rows], dtype=float),
        inertia=inertia,
        mobility=np.linalg.inv(inertia),
    )


@compiled
def _places(
    part_ids: IntArray, counts: IntArray, loaded: IntArray, coms: Array, local: Array
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, Array]:
    """What `Bodies` has of the order of parts: `part_ids`, `row`, `place`, `first`, `owner`,
    `arms`.

    Args:
        part_ids: (A,) parts of the components, one after the other.
        counts: (K,) how many each has.
        loaded: (W,) like the next two, see `Bodies`.
        coms: (K, 3)
        local: (P, 3)
    """
    row, place = np.empty(len(part_ids), dtype=np.int64), np.full(len(part_ids), -1)
    first, owner = np.zeros(len(loaded) + 1, dtype=np.int64), np.empty(len(local), dtype=np.int64)
    arms, start, w = np.empty((len(local), 3)), 0, 0
    for k in range(len(counts)):
        stop = start + counts[k]
        row[start:stop] = k
        if w < len(loaded) and loaded[w] == k:
            for n in range(counts[k]):
                p = first[w] + n
                place[start + n], owner[p] = p, w
                for i in range(3):
                    arms[p, i] = local[p, i] - coms[k, i]
            first[w + 1] = first[w] + counts[k]
            w += 1
        start = stop
    order = np.argsort(part_ids, kind="mergesort")
    return part_ids[order], row[order], place[order], first, owner, arms


@compiled
def most(part_ids: IntArray, row: IntArray, components: int, wanted: IntArray) -> int:
    """The row of the component that most of some parts are in, -1 if all are unknown.

    Args:
        part_ids: (A,) like the next one, see `Bodies`.
        row: (A,)
        components: How many there are.
        wanted: Ids of the parts.
    """
    counts, found = np.zeros(components, dtype=np.int64), -1
    for at in places_in(part_ids, wanted):
        if at >= 0:
            counts[row[at]] += 1
    for k in range(components):
        if counts[k] > 0 and (found < 0 or counts[k] > counts[found]):
            found = k
    return found
