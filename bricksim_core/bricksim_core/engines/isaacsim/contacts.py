# SPDX-License-Identifier: Apache-2.0
"""Contacts of a step from PhysX's full contact report, friction anchors included."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from omni.physx import get_physx_simulation_interface
from omni.physx.bindings._physx import (
    ContactDataVector,
    ContactEventHeaderVector,
    ContactEventType,
    FrictionAnchorsDataVector,
)

from bricksim_core.engines.contact_events import Colliders, ContactEvents, contacts
from bricksim_core.engines.contact_lists import no_contacts
from bricksim_core.engines.protocol import Contacts
from bricksim_core.spatial import Array


def read_contacts(colliders: Colliders) -> Contacts:
    """Contacts of the last step.

    Args:
        colliders: What the colliders are, by PhysX's numbers for their paths.
    """
    headers, points, anchors = get_physx_simulation_interface().get_full_contact_report()
    events = _events(headers, points, anchors)
    return contacts(events, colliders) if events else no_contacts()


def _events(
    headers: ContactEventHeaderVector,
    points: ContactDataVector,
    anchors: FrictionAnchorsDataVector,
) -> ContactEvents | None:
    touching = [h for h in headers if h.type != ContactEventType.CONTACT_LOST]
    if not touching:
        return None
    chosen = [
        points[i]
        for h in touching
        for i in range(h.contact_data_offset, h.contact_data_offset + h.num_contact_data)
    ]
    grips = [
        anchors[i]
        for h in touching
        for i in range(
            h.friction_anchors_offset, h.friction_anchors_offset + h.num_friction_anchors_data
        )
    ]
    return ContactEvents(
        first=np.array([h.collider0 for h in touching], dtype=np.uint64),
        second=np.array([h.collider1 for h in touching], dtype=np.uint64),
        points=np.array([h.num_contact_data for h in touching]),
        anchors=np.array([h.num_friction_anchors_data for h in touching]),
        position=_vectors(p.position for p in chosen),
        normal=_vectors(p.normal for p in chosen),
        impulse=_vectors(p.impulse for p in chosen),
        anchor_position=_vectors(a.position for a in grips),
        anchor_impulse=_vectors(a.impulse for a in grips),
    )


def _vectors(values: Iterable[object]) -> Array:
    """(M, 3) array of Carbonite's vectors, which can be indexed."""
    rows = [(v[0], v[1], v[2]) for v in values]  # type: ignore[index]
    return np.array(rows, dtype=float).reshape(-1, 3)
