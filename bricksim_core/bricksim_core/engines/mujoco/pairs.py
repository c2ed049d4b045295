# SPDX-License-Identifier: Apache-2.0
"""Contacts between two geoms that begin only at some depth.

*Seated* pairs are the studs of one brick and the body of another that stands in them without a
connection: they do not touch until the simulator says that they came apart. *Yielding* pairs are a
robot link and a brick that was put into it by a snap, by a millimetre or two: real pads and studs
deform there. The contact takes the depth at the snap for its zero and forgets it within
`YIELD_TIME`, so that the robot has time to give way instead of being hit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE

YIELD_TIME = 0.2
"""Time [s] in which a yielding contact becomes a usual one; an arm lets go in a tenth of that."""
_NEVER = 1.0
"""Depth [m] at which a seated pair would touch."""
_LAST = 2**31 - 1
"""Signature of unused pairs: MuJoCo wants them sorted by it."""

Geom = str | tuple[int, int]
"""A geom: a robot's by its name, a brick's by part and contact shape id."""
GeomPair = tuple[Geom, Geom]


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
    return [((below, STUD_SHAPE), (above, BODY_SHAPE)) for below, above in sorted(seated)]


def set_pairs(
    model: mujoco.MjModel,
    seated: Collection[tuple[int, int]],
    yielding: Mapping[GeomPair, Yielding],
    contact: ContactParameters,
    find: Callable[[Sequence[Geom]], NDArray[np.intp]],
    unused: int,
) -> dict[GeomPair, int]:
    """Writes all pairs into a model, which has room for them.

    Args:
        model: Compiled with pairs to spare.
        seated: Seated pairs (lower, upper part).
        yielding: Yielding pairs.
        contact: Contact parameters.
        find: Finds geoms in the model.
        unused: A static geom that touches nothing.

    Returns:
        The row of each pair.
    """
    frictions = dict.fromkeys(seat_geoms(seated), contact.friction)
    frictions |= {names: pair.friction for names, pair in yielding.items()}
    used, rest = slice(0, len(frictions)), slice(len(frictions), None)
    geoms = find([geom for pair in frictions for geom in pair]).reshape(-1, 2)
    bodies = model.geom_bodyid[geoms]
    turned = bodies[:, 0] > bodies[:, 1]
    geoms[turned], bodies[turned] = geoms[turned, ::-1], bodies[turned, ::-1]
    signature = (bodies[:, 0] << 16) + bodies[:, 1]
    order = np.lexsort((geoms[:, 1], geoms[:, 0], signature))
    model.pair_signature[used] = signature[order]
    model.pair_geom1[used], model.pair_geom2[used] = geoms[order].T
    model.pair_friction[used, :2] = np.array(list(frictions.values()))[order, None]
    model.pair_signature[rest] = _LAST
    model.pair_geom1[rest] = model.pair_geom2[rest] = unused
    model.pair_margin[rest] = -_NEVER
    names = list(frictions)
    return {names[i]: row for row, i in enumerate(order.tolist())}


def set_margins(
    model: mujoco.MjModel,
    rows: Mapping[GeomPair, int],
    seated: Collection[tuple[int, int]],
    yielding: Mapping[GeomPair, Yielding],
    time: float,
) -> None:
    """Writes at which depths the pairs of a model begin to touch."""
    if not rows:
        return
    model.pair_margin[: len(rows)] = 0.0
    for names in seat_geoms(seated):
        model.pair_margin[rows[names]] = -_NEVER
    for names, pair in yielding.items():
        model.pair_margin[rows[names]] = -pair.depth_at(time)
