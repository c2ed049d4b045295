# SPDX-License-Identifier: Apache-2.0
"""How bodies slide through a step: spans of constant forces, one after the other.

Speeds are linear in time as long as the forces are constant. These change where a joint stops or
slides another way; there the step is cut, so that long steps give what short ones do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.portions import Portions
from bricksim_core.mechanics.sliding import FAINT, STILL, Bodies, Outset
from bricksim_core.spatial import Array

_CONSISTENT = 1e-4
"""Part of the friction's power by which forces may miss what the motion at the start of a span asks
for, as numbers of an interior point method do."""

_SPANS = 24
"""Spans of constant forces in a step; the last one goes to its end."""

_WORTH = 1.5
"""Times the shortest span up to which one in which forces change is not tried again with that."""

_STEADY = 2
"""Joints that slide up to which forces may well be the same until all stops."""

_GONE = 1e-5
"""Part of the energy at the start of a step that counts as none."""


class Precision(NamedTuple):
    """How closely a motion is followed.

    Attributes:
        slip: Error of the slip [m] for which a step is cut where forces change.
        shortest: Shortest span, as a part of the time until all stops, or of what is left of the
            step.
        rest: Part of the energy at the start of a step below which what is left of it stops in one
            span.
    """

    slip: float
    shortest: float
    rest: float


_FINE = Precision(slip=1e-6, shortest=0.3, rest=3e-3)

_ROUGH = Precision(slip=3e-5, shortest=0.6, rest=2e-2)
"""Where no connection comes near the slip that matters: errors are some hundredths of the slip."""

_FAR, _MANY = 0.2, 6
"""Part of the way to coming apart below which a motion may be followed roughly, and the number of
bodies from which that saves anything."""


class Motion(NamedTuple):
    """How the parts of a component move against each other in a step.

    Attributes:
        twists: (N, 6) scaled twists at its end [m/s].
        slip: (C,) mean slip of the connections' studs in it >= 0 [m].
    """

    twists: Array
    slip: Array


class Course:
    """Bodies that slide under constant loads. The first span is found by `begin`, the others by
    `end`.

    Args:
        bodies: What slides.
        twists: (N, 6) scaled twists of the parts at the start [m/s].
        dt: Length of the step [s].
        share: Factor of the loads.
        rests: Whether the loads are carried by what does not slide.
        spare: (C,) how far each connection may still slide until it comes apart [m].
        through: Whether the motion goes through all of the step, whatever comes apart in it; else
            it ends with the first connection that does.

    Attributes:
        way: How far the energy at the start lets the weakest connection slide without loads [m].
    """

    def __init__(
        self,
        bodies: Bodies,
        twists: Array,
        dt: float,
        share: float,
        rests: bool,
        spare: Array,
        through: bool,
    ) -> None:
        self._bodies, self._dt, self._share, self._rests = bodies, dt, share, rests
        self._slip = np.zeros(len(spare))
        self._spare = np.full(len(bodies.crossing), np.inf) if through else spare[bodies.crossing]
        self._speed = bodies.gathered(twists)
        self._parting, self._power, self._rate = bodies.slid(self._speed)
        self._energy = self._whole = 0.5 * float(self._speed @ bodies.momenta(self._speed))
        self._weakest = bodies.weakest
        self._ways: Array | None = None
        self._left, self._number = dt, 0
        self.way = self._whole / self._weakest
        stops = bodies.stopping(self._speed, self._power, self._energy, share)
        # With forces as they are.
        likely = 0.5 * self._rate * min(stops, dt)
        far = bodies.count >= _MANY and bool((likely <= _FAR * spare[bodies.crossing]).all())
        self._precision = _ROUGH if far else _FINE
        self._span = min(dt, stops)
        if not through and np.count_nonzero(self._rate > FAINT * self._rate.max()) > _STEADY:
            self._span *= self._precision.shortest  # which it would be cut to

    def begin(self) -> Portions[Outset]:
        """The first span, as long as nothing came apart.

        Raises:
            SolverError: The solver found no optimum.
        """
        bodies = self._bodies
        span, change, speed = yield from self._advance()
        inertial = bodies.parts.momenta(bodies.spread(change))
        return Outset(span, bodies.spread(speed), self._share * bodies.parts.loads - inertial)

    def end(self) -> Portions[Motion]:
        """The motion to the end of the step.

        Raises:
            SolverError: The solver found no optimum.
        """
        while self._left > 0.0:
            yield from self._advance()
        slip = self._slip
        slip[slip < FAINT * slip.max()] = 0.0
        return Motion(self._bodies.spread(self._speed), slip)

    def _advance(self) -> Portions[tuple[float, Array, Array]]:
        """Goes to the end of a span.

        Returns:
            Its length [s], (6 B,) scaled accelerations in it, and (6 B,) scaled twists after it.
        """
        bodies, share, power, energy = self._bodies, self._share, self._power, self._energy
        precision, weakest = self._precision, self._weakest
        total = float(power.sum())
        stops = bodies.stopping(self._speed, power, energy, share)
        shortest = precision.shortest * min(self._left, stops)
        span, little = self._span, precision.rest * self._whole
        while True:
            last = self._number == _SPANS - 1
            span = self._left if last else span
            self._number += 1
            forces = yield from bodies.moved(self._speed, span, share)
            missing = total - float((forces.wrench * self._parting).sum())
            changing = missing > _CONSISTENT * total + STILL * weakest
            # What that can do to the slip at most.
            changing &= missing * energy > precision.slip * weakest * total
            if not changing or last or span <= _WORTH * shortest or energy <= little:
                break
            # Forces change on the way.
            span = max(stops if stops < 0.99 * span else 0.2 * span, shortest)
        change = (forces.speed - self._speed) / span
        then, later, faster = bodies.slid(forces.speed)
        speed = forces.speed if then.any() else np.zeros_like(forces.speed)
        after = 0.5 * float(speed @ bodies.momenta(speed))
        sliding = span
        if changing:
            # As long as friction needs for what the motion has lost.
            lost = 0.5 * float((power + later).sum())
            lost -= 0.5 * share * float(bodies.loads @ (self._speed + speed))
            if lost > 0.0:
                sliding = min(max((energy - after) / lost, 0.0), span)
        gone = self._slip[bodies.crossing] + 0.5 * sliding * (self._rate + faster)
        if (gone >= self._spare).any():
            self._part(sliding, speed, faster)
            return span, change, speed
        self._slip[bodies.crossing] = gone
        before, self._parting = self._parting, then
        self._speed, self._power, self._rate, self._energy = speed, later, faster, after
        self._left -= span
        if self._rests and after <= _GONE * self._whole:
            self._speed, self._left = np.zeros_like(speed), 0.0
        if self._left <= 1e-9 * self._dt:
            self._left = 0.0
        else:
            self._span = min(max(self._turning(before) * span, shortest), self._left)
        return span, change, speed

    def _part(self, span: float, speed: Array, rate: Array) -> None:
        """Ends where the first connection comes apart: what follows hangs on it no more.

        Args:
            span: Length of the span in which that happens [s].
            speed: (6 B,) scaled twists at its end [m/s].
            rate: (K,) mean slip speeds of the studs there [m/s].
        """
        crossing = self._bodies.crossing
        left = np.maximum(self._spare - self._slip[crossing], 0.0)
        growth = (rate - self._rate) / span
        # Slip grows by r t + g t^2 / 2.
        root = np.sqrt(np.maximum(self._rate**2 + 2.0 * growth * left, 0.0))
        apart = self._slip[crossing] + 0.5 * span * (self._rate + rate) >= self._spare
        times = 2.0 * left[apart] / (self._rate + root)[apart]
        time = min(float(times.min()), span)
        gone = self._slip[crossing] + time * (self._rate + 0.5 * growth * time)
        first = np.flatnonzero(apart)[times <= time]
        gone[first] = self._spare[first]
        self._slip[crossing] = gone
        self._speed = self._speed + (speed - self._speed) * (time / span)
        self._left = 0.0

    def _turning(self, before: Array) -> float:
        """When the next joint slides another way than before, which is as long as the forces are
        the same, over the length of the last span.

        Args:
            before: (K, 6) motion at the connections at the start of that span.
        """
        bodies = self._bodies
        first = bodies.ways(before) if self._ways is None else self._ways
        ways = self._ways = bodies.ways(self._parting)
        return _soonest(first, ways)


@compiled
def _soonest(first: Array, last: Array) -> float:
    """When the next one of some speeds that fall evenly comes to nothing, in times of a span, from
    its end on; those that are next to nothing there do not count.

    Args:
        first: (n,) at the start of the span.
        last: (n,) at its end.
    """
    most, soonest = 0.0, np.inf
    for i in range(len(first)):
        most = max(most, abs(first[i]))
    for i in range(len(first)):
        a, b = first[i], last[i]
        if abs(b) < abs(a) and a * b > 0.0 and abs(b) > FAINT * most:
            soonest = min(soonest, b / (a - b))
    return soonest
