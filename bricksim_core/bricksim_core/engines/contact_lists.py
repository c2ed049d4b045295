# SPDX-License-Identifier: Apache-2.0
"""Lists of contacts: none, some of one, several as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import NO_PART, Contacts


def no_contacts(names: tuple[str, ...] = ()) -> Contacts:
    """None, with the names of what is no brick."""
    none, vectors = np.zeros(0, dtype=np.int64), np.zeros((0, 3))
    return Contacts(none, none, none, none, none, names, vectors, vectors, np.zeros(0), vectors)


def take_contacts(
    contacts: Contacts, rows: NDArray[np.bool_] | NDArray[np.intp] | slice
) -> Contacts:
    """Some of the contacts."""
    return Contacts(
        part_a=contacts.part_a[rows],
        part_b=contacts.part_b[rows],
        shape_a=contacts.shape_a[rows],
        shape_b=contacts.shape_b[rows],
        other=contacts.other[rows],
        names=contacts.names,
        position=contacts.position[rows],
        normal=contacts.normal[rows],
        normal_impulse=contacts.normal_impulse[rows],
        impulse=contacts.impulse[rows],
    )


def weaker_contacts(contacts: Contacts, share: float) -> Contacts:
    """The same contacts with a share of their impulses."""
    return replace(
        contacts,
        normal_impulse=share * contacts.normal_impulse,
        impulse=share * contacts.impulse,
    )


def with_links(contacts: Contacts) -> NDArray[np.bool_]:
    """(M,) which contacts are with a robot's link."""
    links = np.array(["/" in name for name in (*contacts.names, "")], dtype=np.bool_)
    return (contacts.part_a == NO_PART) & links[contacts.other]


def join_contacts(lists: Sequence[Contacts]) -> Contacts:
    """All contacts of several lists (at least one), in order."""
    filled = [c for c in lists if len(c)]
    if len(filled) < 2:
        return filled[0] if filled else lists[0]
    names = filled[0].names
    others = [c.other for c in filled]
    if any(c.names != names for c in filled):
        names = tuple(sorted({name for c in filled for name in c.names}))
        # The last entry is that of a brick, -1.
        places = [np.array([*map(names.index, c.names), -1], dtype=np.int64) for c in filled]
        others = [place[other] for place, other in zip(places, others, strict=True)]
    return Contacts(
        part_a=np.concatenate([c.part_a for c in filled]),
        part_b=np.concatenate([c.part_b for c in filled]),
        shape_a=np.concatenate([c.shape_a for c in filled]),
        shape_b=np.concatenate([c.shape_b for c in filled]),
        other=np.concatenate(others),
        names=names,
        position=np.concatenate([c.position for c in filled]),
        normal=np.concatenate([c.normal for c in filled]),
        normal_impulse=np.concatenate([c.normal_impulse for c in filled]),
        impulse=np.concatenate([c.impulse for c in filled]),
    )
