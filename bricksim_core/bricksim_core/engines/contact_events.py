# SPDX-License-Identifier: Apache-2.0
"""PhysX contact events as the protocol's contacts.

An event is a pair of touching colliders. Its points carry the normal impulses, its friction
anchors the friction impulses. Both become rows of `Contacts`, so that forces and torques on a brick
are complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import BODY_SHAPE, NO_PART, Contacts
from bricksim_core.spatial import Array

Identity = tuple[int, int, str]
"""What a collider is: part id (or NO_PART), contact shape, name of what is no brick."""


@dataclass(frozen=True, eq=False)
class ContactEvents:
    """E pairs of colliders with their P points and A friction anchors, end to end.

    Attributes:
        first: (E,) collider that the impulses act on and the normals point to.
        second: (E,) the other one, which receives the opposite.
        points: (E,) number of points of each pair.
        anchors: (E,) number of friction anchors of each pair.
        position: (P, 3) [m], world.
        normal: (P, 3) unit vectors.
        impulse: (P, 3) normal impulses [N s].
        anchor_position: (A, 3) [m], world.
        anchor_impulse: (A, 3) friction impulses [N s].
    """

    first: NDArray[Any]
    second: NDArray[Any]
    points: NDArray[Any]
    anchors: NDArray[Any]
    position: Array
    normal: Array
    impulse: Array
    anchor_position: Array
    anchor_impulse: Array


class Colliders:
    """What colliders are, by their handles; each is looked up once.

    Args:
        identify: What a collider is.
    """

    def __init__(self, identify: Callable[[int], Identity]) -> None:
        self._identify = identify
        self._handles: NDArray[Any] = np.zeros(0, dtype=np.uint64)
        self._rows: NDArray[np.int64] = np.zeros((0, 3), dtype=np.int64)
        self.names: list[str] = []

    def of(self, handles: NDArray[Any]) -> NDArray[np.int64]:
        """(..., 3) part id or NO_PART, contact shape, and index into `names` or -1."""
        places = np.searchsorted(self._handles, handles)
        known = places < len(self._handles)
        if not known.all() or not np.array_equal(self._handles[places], handles):
            self._learn(handles)
            places = np.searchsorted(self._handles, handles)
        return self._rows[places]

    def _learn(self, handles: NDArray[Any]) -> None:
        for handle in np.setdiff1d(handles, self._handles).tolist():
            part, shape, name = self._identify(handle)
            if part == NO_PART and name not in self.names:
                self.names.append(name)
            place = int(np.searchsorted(self._handles, handle))
            row = (
                (part, BODY_SHAPE, self.names.index(name)) if part == NO_PART else (part, shape, -1)
            )
            self._handles = np.insert(self._handles, place, handle)
            self._rows = np.insert(self._rows, place, row, axis=0)


def contacts(events: ContactEvents, colliders: Colliders) -> Contacts:
    """Contacts with at least one brick; those without an impulse are left out.

    Args:
        events: Each pair of colliders once.
        colliders: What the colliders are.
    """
    count = len(events.first)
    known = colliders.of(np.array([events.first, events.second]))
    parts, shapes, others = known[..., 0], known[..., 1], known[..., 2]
    present = sorted(set(others[parts == NO_PART].tolist()), key=colliders.names.__getitem__)
    names = tuple(colliders.names[i] for i in present)
    if list(present) != list(range(len(colliders.names))):
        place = np.full(len(colliders.names) + 1, -1)  # the last is that of a brick, -1
        place[present] = np.arange(len(present))
        others = place[others]
    # Side b is a brick: the first one where it is one, else the second.
    flipped = parts[0] == NO_PART
    side_b = flipped.astype(int)
    sign = np.where(flipped, -1.0, 1.0)

    point_event = np.repeat(np.arange(count), events.points)
    anchor_event = np.repeat(np.arange(count), events.anchors)
    first_point = np.cumsum(events.points) - events.points
    event = np.concatenate([point_event, anchor_event])
    position = np.concatenate([events.position, events.anchor_position])
    impulse = np.concatenate([events.impulse, events.anchor_impulse]) * sign[event, None]
    anchor_normal = events.normal[first_point[anchor_event]]
    normal = np.concatenate([events.normal, anchor_normal]) * sign[event, None]
    rows = np.any(impulse != 0.0, axis=1) & (parts[side_b, np.arange(count)] != NO_PART)[event]
    pressing = (np.arange(len(event)) < len(point_event))[rows]
    event, position, impulse, normal = event[rows], position[rows], impulse[rows], normal[rows]
    b, a = side_b[event], 1 - side_b[event]
    return Contacts(
        part_a=parts[a, event],
        part_b=parts[b, event],
        shape_a=shapes[a, event],
        shape_b=shapes[b, event],
        other=others[a, event],
        names=names,
        position=position,
        normal=normal,
        normal_impulse=np.where(pressing, np.einsum("ni,ni->n", impulse, normal), 0.0),
        impulse=impulse,
    )
