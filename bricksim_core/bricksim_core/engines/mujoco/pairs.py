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

from bricksim_core.compiled import compiled
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE
from bricksim_core.spatial import Array

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
    """Writes all pairs into a model, which has room for them; yielding ones do not touch until
    `set_margins` says so.

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
    geoms = find([geom for pair in frictions for geom in pair]).reshape(-1, 2)
    order = _write_pairs(
        geoms, np.fromiter(frictions.values(), dtype=np.float64), unused, model.geom_bodyid,
        model.pair_signature, model.pair_geom1, model.pair_geom2,
        model.pair_friction, model.pair_margin,
    )  # fmt: skip
    names = list(frictions)
    return {names[i]: row for row, i in enumerate(order.tolist())}


@compiled
def _write_pairs(
    geoms: NDArray[np.intp],
    frictions: Array,
    unused: int,
    body_of: NDArray[np.int32],
    signatures: NDArray[np.int32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    friction: Array,
    margins: Array,
) -> NDArray[np.intp]:
    """Writes pairs as MuJoCo wants them: each sorted by bodies, all by these and by geoms.

    Args:
        geoms: (N, 2) of the pairs; sorted here.
        frictions: (N,) sliding friction [-].
        unused: Geom of pairs that are not used.
        body_of: (G,) bodies of the geoms.
        signatures: (R,) of the model's pairs, to be written as are the next ones.
        first: (R,) their geoms.
        second: (R,)
        friction: (R, 5) [-].
        margins: (R,) gaps below which they touch: never [m].

    Returns:
        (N,) the pair in each of the first rows.
    """
    keys = np.empty(len(geoms), dtype=np.int64)
    for n in range(len(geoms)):
        one, other = geoms[n]
        if body_of[one] > body_of[other]:
            geoms[n, 0], geoms[n, 1] = other, one
        keys[n] = (np.int64(body_of[geoms[n, 0]]) << 16) + body_of[geoms[n, 1]]
    order = np.argsort(geoms[:, 1], kind="mergesort")
    order = order[np.argsort(geoms[order, 0], kind="mergesort")]
    order = order[np.argsort(keys[order], kind="mergesort")]
    for row in range(len(order)):
        n = order[row]
        signatures[row], first[row], second[row] = keys[n], geoms[n, 0], geoms[n, 1]
        friction[row, 0] = friction[row, 1] = frictions[n]
    signatures[len(order) :] = _LAST
    first[len(order) :] = second[len(order) :] = unused
    margins[:] = -_NEVER
    return order


def set_margins(
    model: mujoco.MjModel,
    rows: Mapping[GeomPair, int],
    yielding: Mapping[GeomPair, Yielding],
    time: float,
) -> None:
    """Writes at which depths the yielding pairs of a model begin to touch."""
    for names, pair in yielding.items():
        model.pair_margin[rows[names]] = -pair.depth_at(time)
