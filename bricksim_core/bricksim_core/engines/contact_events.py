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


def no_contacts() -> Contacts:
    """None."""
    none, vectors = np.zeros(0, dtype=np.int64), np.zeros((0, 3))
    return Contacts(none, none, none, none, none, (), vectors, vectors, np.zeros(0), vectors)


def contacts(events: ContactEvents, identify: Callable[[int], Identity]) -> Contacts:
    """Contacts with at least one brick; those without an impulse are left out.

    Args:
        events: Each pair of colliders once.
        identify: What a collider is.
    """
    count = len(events.first)
    handles, places = np.unique(np.concatenate([events.first, events.second]), return_inverse=True)
    known = [identify(int(handle)) for handle in handles]
    names = tuple(sorted({name for part, _, name in known if part == NO_PART}))
    parts, shapes, others = (
        np.array(column, dtype=np.int64)[places].reshape(2, count) if count else
        np.zeros((2, 0), dtype=np.int64)
        for column in (
            [part for part, _, _ in known],
            [BODY_SHAPE if part == NO_PART else shape for part, shape, _ in known],
            [names.index(name) if part == NO_PART else -1 for part, _, name in known],
        )
    )  # fmt: skip
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
