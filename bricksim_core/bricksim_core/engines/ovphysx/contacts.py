# SPDX-License-Identifier: Apache-2.0
"""Contacts of a step from PhysX's contact events.

Every brick is a contact sensor. An event is a pair of touching colliders as one of the two sees
it; its points carry the normal impulses, its friction anchors the friction impulses. Both become
rows of `Contacts`, so that forces and torques are complete.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ovphysx.types import SimObjectType

from bricksim_core.engines.ovphysx.session import Session
from bricksim_core.engines.protocol import BODY_SHAPE, NO_PART, Contacts

EVENTS = (
    "contactEventSensorSide",
    "contactEventCollider",
    "contactEventOtherCollider",
    "contactEventPointCount",
    "contactEventAnchorCount",
)
DETAILS = (
    "contactEventPointPosition",
    "contactEventPointNormal",
    "contactEventPointImpulse",
    "contactEventAnchorPosition",
    "contactEventAnchorImpulse",
)


def no_contacts() -> Contacts:
    """None."""
    none = np.zeros(0, dtype=np.int64)
    return Contacts(
        none, none, none, none, none, (), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0),
        np.zeros((0, 3)),
    )  # fmt: skip


def read_contacts(session: Session, identify: Callable[[int], tuple[int, int, str]]) -> Contacts:
    """Contacts of the last step.

    Args:
        session: The simulation.
        identify: Part id (or NO_PART), contact shape and name of a collider's handle.
    """
    found = session.read(SimObjectType.CONTACT_SENSOR, [*EVENTS, *DETAILS])
    if "contactEventPointPosition" not in found:
        return no_contacts()
    side, own, other, points, anchors = (found[name] for name in EVENTS)
    handles, inverse = np.unique(np.concatenate([own, other]), return_inverse=True)
    known = [identify(int(handle)) for handle in handles]
    parts = np.array([k[0] for k in known], dtype=np.int64)[inverse]
    shapes = np.array([k[1] for k in known], dtype=np.int64)[inverse]
    count = len(own)
    # A pair of bricks is seen by both; the first side's view is kept.
    keep = (side == 0) | (parts[count:] == NO_PART)
    # Impulses are those on the first side, normals point towards it.
    sign = np.where(side == 0, 1.0, -1.0)

    event_of_point = np.repeat(np.arange(count), points)
    event_of_anchor = np.repeat(np.arange(count), anchors)
    position, normal, impulse = (found[n].astype(float) for n in DETAILS[:3])
    if "contactEventAnchorPosition" in found:
        anchor_position, anchor_impulse = (found[n].astype(float) for n in DETAILS[3:])
    else:
        anchor_position = anchor_impulse = np.zeros((0, 3))
    first_point = np.cumsum(points) - points
    event = np.concatenate([event_of_point, event_of_anchor])
    position = np.concatenate([position, anchor_position])
    impulse = np.concatenate([impulse, anchor_impulse]) * sign[event, None]
    normal = np.concatenate([normal, normal[first_point[event_of_anchor]]]) * sign[event, None]
    rows = keep[event] & np.any(impulse != 0.0, axis=1)
    event, position, impulse, normal = event[rows], position[rows], impulse[rows], normal[rows]
    pressing = np.arange(len(rows))[rows] < len(event_of_point)

    part_a = parts[count:][event]
    names = sorted({k[2] for k in known if k[0] == NO_PART})
    index = np.array([names.index(k[2]) if k[0] == NO_PART else -1 for k in known], dtype=np.int64)
    return Contacts(
        part_a=part_a,
        part_b=parts[:count][event],
        shape_a=np.where(part_a == NO_PART, BODY_SHAPE, shapes[count:][event]),
        shape_b=shapes[:count][event],
        other=index[inverse][count:][event],
        names=tuple(names),
        position=position,
        normal=normal,
        normal_impulse=np.where(pressing, np.einsum("ni,ni->n", impulse, normal), 0.0),
        impulse=impulse,
    )
