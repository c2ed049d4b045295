# SPDX-License-Identifier: Apache-2.0
"""How hard an impact can be on parts that give way.

An engine's impulse is that of a rigid body. On a few bricks that can give way it would do work
without end, though they soon move as what they hit does. Against the component they get no faster
than the impact changed its motion, and the energy of sliding comes from that motion: it is at most
that of the change, which is lost where nothing bounces. So a pulse is taken softer until it keeps
both bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed, length
from bricksim_core.mechanics.body_motion import energy_of
from bricksim_core.mechanics.portions import Portions
from bricksim_core.mechanics.sliding import Bodies, Parts
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array

_TRIES = 10
"""Tries at how much softer a pulse has to be which is too hard for its impact."""

_CLOSE = 0.02
"""How near its bounds [-] such a pulse has to come."""

_FEW, _SOME_MORE = 24, 100
"""Overloaded connections up to which all of a pulse is tried first, and where it is a mild one."""

_GROWTH, _FASTER = 2.0, 4.0
"""Factors of the share while too little slides, and while nothing does of what little can."""

_LITTLE = 8
"""Bodies up to which that is little."""

MILD = 8.0
"""Greatest utilization [-] of the bonded structure up to which all of a pulse is tried first."""

_SOME = 8
"""Bodies from which on those that do not slide against each other are one where less loads them."""

_NOTHING = 0.01
"""Part of its bounds [-] below which a pulse makes nothing slide."""


class ImpactBounds(NamedTuple):
    """What an impact can make of the parts of a free component.

    Attributes:
        speed: Greatest speed that a part gains against the component [m/s].
        energy: Greatest work on what slides [J].
    """

    speed: float
    energy: float


def impact_bounds(parts: Parts, change: Array) -> ImpactBounds | None:
    """The bounds of an impact, None if it changed nothing.

    Args:
        parts: The parts of a free component.
        change: (6,) of the velocity of its COM and of its spin [m/s, rad/s].
    """
    weight = parts.masses
    com = weight @ parts.coms / weight.sum()
    speed, energy = _rigid_motion(parts.coms, weight, parts.inertias, com, change)
    return ImpactBounds(speed, energy) if energy > 0.0 else None


@compiled
def _rigid_motion(
    coms: Array, masses: Array, inertias: Array, com: Array, change: Array
) -> tuple[float, float]:
    """Greatest speed of a part's COM [m/s] and kinetic energy [J] of parts that move as one body.

    Args:
        coms: (N, 3) [m].
        masses: (N,) [kg].
        inertias: (N, 3, 3) scaled [kg].
        com: (3,) of all [m].
        change: (6,) velocity of that and spin [m/s, rad/s].
    """
    twists, most = np.empty((len(coms), 6)), 0.0
    for i in range(len(coms)):
        turning = crossed(change[3:], coms[i] - com)
        for c in range(3):
            twists[i, c] = change[c] + turning[c]
            twists[i, 3 + c] = change[3 + c] * STUD_PITCH
        most = max(most, length(twists[i]))
    return most, energy_of(masses, inertias, twists)


@compiled
def _freest(loads: Array, masses: Array) -> float:
    """Greatest acceleration of a part without friction [m/s^2], by (N, 6) loads [N]."""
    most = 0.0
    for i in range(len(masses)):
        most = max(most, length(loads[i]) / masses[i])
    return most


class Pulse:
    """A short pulse of loads on a free component that may be too hard.

    Args:
        parts: The parts under its loads.
        bounds: What it can make of them.
        twists: (N, 6) scaled twists of the parts before it [m/s].
        span: How long it lasts [s].
        utilization: (C,) of the bonded structure under its loads.
    """

    def __init__(
        self, parts: Parts, bounds: ImpactBounds, twists: Array, span: float, utilization: Array
    ) -> None:
        self._bounds, self._twists, self._span = bounds, twists, span
        # At this share something may begin to slide, and with no friction so much more would do.
        highest = float(utilization.max(initial=0.0))
        self._onset = 1.0 / max(highest, 1.0)
        free = span * _freest(parts.loads, parts.masses)
        self._first = 1.0
        if np.count_nonzero(utilization > 1.0) > (_FEW if highest > MILD else _SOME_MORE):
            self._first = min(1.0, self._onset + bounds.speed / max(free, bounds.speed))

    @staticmethod
    def of(
        parts: Parts, change: Array, twists: Array, span: float, utilization: Array
    ) -> Pulse | None:
        """The pulse of an impact, None if the impact changed nothing.

        Args:
            parts: The parts under its loads.
            change: (6,) of the velocity of the COM and of the spin of all [m/s, rad/s].
            twists: (N, 6) scaled twists of the parts before it [m/s].
            span: How long it lasts [s].
            utilization: (C,) of the bonded structure under its loads.
        """
        bounds = impact_bounds(parts, change)
        return None if bounds is None else Pulse(parts, bounds, twists, span, utilization)

    def share(
        self,
        bodies_at: Callable[[float], Bodies | None],
        hold: Callable[[NDArray[np.bool_]], None],
    ) -> Portions[float]:
        """Part of the loads that makes of the bodies what an impact can make of them.

        Args:
            bodies_at: The bodies that a share of the loads leaves; None: nothing comes apart.
            hold: Takes (C,) connections that need not slide under smaller shares.

        Raises:
            SolverError: No motion was found.
        """
        low, high = 0.0, np.inf
        lower: Bodies | None = None
        before, known, share = self._onset, 0.0, self._first
        for _ in range(_TRIES):
            bodies = bodies_at(share)
            found, begins, still = yield from self._excess(bodies, share)
            if abs(found - 1.0) <= _CLOSE or (share >= 1.0 and found <= 1.0):
                break
            if found > 1.0:
                high = share
                if still is not None:
                    hold(still)
            else:
                low, lower = share, bodies
            # Speeds grow linearly with the loads, from where they make anything slide, and faster
            # where they make more slide.
            likely = _reaches(share, found, before, known)
            if begins is not None:
                own = _reaches(share, found, begins, 0.0)
                likely = min(likely, own) if known > _NOTHING else own
            if high == np.inf:
                nothing = found <= _NOTHING and (bodies is None or bodies.count <= _LITTLE)
                likely = min(likely, (_FASTER if nothing else _GROWTH) * share, 1.0)
            elif begins is None and min(found, known) <= _NOTHING:
                # Where sliding begins lies somewhere between.
                likely = 0.5 * (low + high)
            elif not low < likely < high:
                # What too little did for fewer bodies says nothing of these.
                if lower is bodies or likely <= self._onset:
                    likely = 0.5 * (low + high)
                else:
                    low = 0.0
            before, known, share = share, found, likely
        self._first = share
        return share

    def _excess(
        self, bodies: Bodies | None, share: float
    ) -> Portions[tuple[float, float | None, NDArray[np.bool_] | None]]:
        """What a share of the loads makes of bodies.

        Returns:
            The greater of the speed that a part gains and the root of the work, each over its
            bound; the share from which on the loads would bring what friction takes from such a
            motion, None where nothing moves or something did before; and (C,) the connections
            between bodies that do not slide, None where some did before or the bodies are few.
        """
        if bodies is None:
            return 0.0, None, None
        speed = bodies.gathered(self._twists)
        after = (yield from bodies.moved(speed, self._span, share)).speed
        work = bodies.work(speed, after, self._span, share)
        # What slides already would be braked without it.
        slides = bool(speed.any())
        braked = (yield from bodies.moved(speed, self._span, 0.0)).speed if slides else speed
        gained = bodies.fastest(after - braked)
        bounds = self._bounds
        begins, still = None, None
        if not slides and after.any():
            friction, _ = bodies.friction_of(bodies.parting(after))
            begins = float(friction.sum()) / float(bodies.loads @ after)
            still = bodies.still(after) if bodies.count > _SOME else None
        excess = max(gained / bounds.speed, float(np.sqrt(max(work, 0.0) / bounds.energy)))
        return excess, begins, still


def _reaches(x: float, y: float, before: float, known: float) -> float:
    """Where a line through two points gets to 1; inf if it does not rise."""
    rising = (y - known) * (x - before) > 0.0
    return x + (1.0 - y) * (before - x) / (known - y) if rising else np.inf
