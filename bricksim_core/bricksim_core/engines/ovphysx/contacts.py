# SPDX-License-Identifier: Apache-2.0
"""Contacts of a step: every brick is a contact sensor and tells what touched it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from ovphysx.types import SimObjectType

from bricksim_core.engines.contact_events import Colliders, ContactEvents, contacts
from bricksim_core.engines.contact_lists import no_contacts
from bricksim_core.engines.ovphysx.session import Session
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.spatial import Array

_EVENTS = (
    "contactEventSensorSide",
    "contactEventCollider",
    "contactEventOtherCollider",
    "contactEventPointCount",
    "contactEventAnchorCount",
)
_POINTS = ("contactEventPointPosition", "contactEventPointNormal", "contactEventPointImpulse")
_ANCHORS = ("contactEventAnchorPosition", "contactEventAnchorImpulse")
_ATTRIBUTES = (*_EVENTS, *_POINTS, *_ANCHORS)


def read_contacts(session: Session, colliders: Colliders) -> Contacts:
    """Contacts of the last step.

    Args:
        session: The simulation.
        colliders: What the colliders are, by their handles.
    """
    found = session.read(SimObjectType.CONTACT_SENSOR, _ATTRIBUTES)
    if _POINTS[0] not in found:
        return no_contacts()
    touching = found["contactEventPointCount"] > 0  # the others have just come apart
    side, own, other, points, anchors = (found[name][touching] for name in _EVENTS)
    # A pair of bricks is seen by both of them: the view of the pair's first side is kept.
    kept = (side == 0) | (colliders.of(other)[:, 0] == NO_PART)
    on_point = np.repeat(kept, points)
    position, normal, impulse = (_doubles(found[name][on_point]) for name in _POINTS)
    if _ANCHORS[0] in found:
        on_anchor = np.repeat(kept, anchors)
        anchor = [_doubles(found[name][on_anchor]) for name in _ANCHORS]
    else:
        anchor = [np.zeros((0, 3))] * 2
    # Impulses act on the pair's first side, which is the sensor or the other.
    first, second = np.where(side == 0, own, other), np.where(side == 0, other, own)
    events = ContactEvents(
        first[kept], second[kept], points[kept], anchors[kept], position, normal, impulse, *anchor
    )
    return contacts(events, colliders)


def _doubles(values: NDArray) -> Array:
    return np.asarray(values, dtype=np.float64)
