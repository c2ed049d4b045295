# SPDX-License-Identifier: Apache-2.0
"""Contacts between two geoms that begin only at some depth.

*Seated* pairs are the studs of one brick and the body of another that stands in them without a
connection: they do not touch until the simulator says that they came apart. *Yielding* pairs are a
robot link and a brick that was put into it by a snap, by a millimetre or two: real pads and studs
deform there. The contact takes the depth at the snap for its zero and forgets it within
`YIELD_TIME`, so that the robot has time to give way instead of being hit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import mujoco

from bricksim_core.engines.mujoco.bodies import geom_name
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE

YIELD_TIME = 0.2
"""Time [s] in which a yielding contact becomes a usual one; an arm lets go in a tenth of that."""
_NEVER = 1.0
"""Depth [m] at which a seated pair would touch."""

GeomPair = tuple[str, str]
"""Names of two geoms."""


@dataclass(frozen=True)
class Yielding:
    """A contact that begins at a depth which vanishes in time.

    Attributes:
        depth: At the start [m].
        since: Start [s].
        friction: Sliding friction of the pair [-].
    """

    depth: float
    since: float
    friction: float

    def depth_at(self, time: float) -> float:
        """Depth at which the contact begins [m]."""
        return self.depth * min(max(1.0 - (time - self.since) / YIELD_TIME, 0.0), 1.0)


def seat_geoms(seated: Collection[tuple[int, int]]) -> list[GeomPair]:
    """Geoms of seated pairs (lower, upper part), sorted by part ids."""
    return [
        (geom_name(below, STUD_SHAPE), geom_name(above, BODY_SHAPE))
        for below, above in sorted(seated)
    ]


def set_pairs(
    spec: mujoco.MjSpec,
    seated: Collection[tuple[int, int]],
    yielding: Mapping[GeomPair, Yielding],
    contact: ContactParameters,
    timestep: float,
) -> dict[GeomPair, int]:
    """Replaces the pairs of a specification.

    Returns:
        The row of each pair in the compiled model.
    """
    for pair in list(spec.pairs):
        spec.delete(pair)
    frictions = dict.fromkeys(seat_geoms(seated), contact.friction)
    frictions |= {names: pair.friction for names, pair in yielding.items()}
    for (first, second), friction in frictions.items():
        spec.add_pair(
            geomname1=first,
            geomname2=second,
            condim=3,
            friction=[friction, friction, 0.0, 0.0, 0.0],
            solref=contact.solref(timestep),
            solimp=contact.solimp,
            margin=0.0,
            gap=0.0,
        )
    return {names: row for row, names in enumerate(frictions)}


def set_margins(
    model: mujoco.MjModel,
    rows: Mapping[GeomPair, int],
    seated: Collection[tuple[int, int]],
    yielding: Mapping[GeomPair, Yielding],
    time: float,
) -> None:
    """Writes at which depths the pairs of a compiled model begin to touch."""
    if not rows:
        return
    model.pair_margin[:] = 0.0
    for names in seat_geoms(seated):
        model.pair_margin[rows[names]] = -_NEVER
    for names, pair in yielding.items():
        model.pair_margin[rows[names]] = -pair.depth_at(time)
