# SPDX-License-Identifier: Apache-2.0
"""Closed-loop insertion: descend until contact, press with a force ramp, search, pull off."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from bricksim_core.events import ConnectionEvent, EventKind
from bricksim_core.parts import SIDE_CLEARANCE, STUD_HEIGHT
from bricksim_core.spatial import Array
from bricksim_moveit_demo.connections import ConnectionKey, connection_key
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.motion import ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters

_COMPLIANCE = 5e-4
"""Pressing speed per missing force [m/s/N]: a tenth of a second for an arm of 20 kN/m."""
_LANDING = 1900.0
"""Force between brick and studs on landing per speed [N s/m] (measured: 2.6 to 3.8 N at 2 mm/s, of
which the wrist feels 0.8 to 1.8 N)."""
_LEAST_SPEED = 5e-4
"""Speed [m/s] with which pressing goes on however little is left of the limit: landing adds 1 N."""
_LANDING_SHARE = 0.5
"""Share of the greatest force that may have been met when contact is felt [-], and that landing may
add to it."""
_SIDLE_SPEED = 0.001
"""Speed of moving up to a neighbour [m/s]: touching it takes 0.7 N then."""
_TOUCH = 0.5
"""Force across the axis that counts as touching it [N]."""
_LEAD = 0.04
"""How far ahead the force is looked at while pressing [s]: the arm's answer comes that late."""
_OVERTRAVEL = 0.004
"""How far below the expected height [m] contact is awaited."""
_EARLY = 0.006
"""Contact this far above the studs [m] is with something else."""
_LEDGE = STUD_HEIGHT + 0.0005
"""How far below the tops of the studs beside it a brick has passed the body's edge, too [m]."""
_BEYOND = 2.0
"""How far it moves back where it came down off its seat, by that distance [-]."""
_EDGES = 4
"""How often the brick may rest on an edge on its way down."""
_LOOSE = 0.25
"""Share of the force that counts as contact [-] below which it rests on the edge no more."""
_DROP = 0.001
"""Height that it must lose to count as past an edge [m]."""
_STUCK = 0.5
"""Time without motion [s] after which a straight motion is given up: a joint is at its limit."""
_TRACKING = 5.0
"""How fast errors on the search path are corrected [1/s]."""
_EXCESS = 1.2
"""Force over the greatest one that is allowed [-] at which pressing is given up at once."""
_SWING = 0.8
"""Share of it that is wanted at most while searching: passing studs makes the force swing."""
_CATCH_SPEED = 1.25e-3
"""Greatest speed of the search per force that is left below the limit [m/s/N]: a brick that catches
on a stud adds 0.4 to 0.8 N per mm/s before the arm answers."""
_LEAST_SEARCH = 0.002
"""Speed of the search [m/s] however little is left."""
_EASE = 1.25
"""Force over the wanted one [-] at which the search waits until the arm has given way."""
_PATIENCE = 0.2
"""How long it waits at most [s]: then the way on is the way out."""
_SIDE_FORCE = 2.0
"""Force across the axis [N] above which the arm yields sideways, at most."""
_SIDE_SHARE = 0.04
"""The same as a share of the greatest force along it [-]: a column that hardly bears the press from
above bears less from the side."""
_DRAG_SHARE = 0.2
"""Share of the greatest force along it [-] that a search may meet from the side before it slows
down: a column of 1x2 bricks that bears 2.4 N from above bears 0.47 N from the side (`analyze`)."""
_SIDE_COMPLIANCE = 1e-3
"""How fast it does [m/s/N]."""
_BREAKAWAY_SPEED, _BREAKAWAY_RATE = 3e-4, 1e-4
"""Speed of pulling while something holds the brick [m/s], and how it grows with the force [m/s/N].
An arm that sets off with 10 mm/s is stopped with 28 N within a frame (measured), and takes weak
joints below the pulled one along."""
_ALONG, _BENDING = 0.002, 1e-4
"""Way up after which what holds the brick has come along [m], and what is added to it for the force
[m/N], of which the arm bends by half."""
_LEVELLING = 6e-3
"""How fast the hand turns with a moment about axes across the pull meanwhile [rad/s/(N m)]: an arm
that pulls straight up without giving way to it tilts what it pulls, with 26 mm for a lever."""
_TILT_SPEED = 0.3
"""Turning speed of twisting off [rad/s]."""
_TABLE_TOUCH = 0.3
"""Force [N] that counts as touching the table with what was joined: its far end comes first, and
1.1 N there broke the joint of two studs that an 8x1 hung by."""
_TABLE_SPEED = 5e-4
"""Speed [m/s] at which it is set down there: force grows by 3 N per mm then."""
_CALM = 8
"""Control periods after which the force of a press that is over is no longer felt."""
_SAME = 1e-3
"""Distance of a place from the pivot [m] below which there is nothing to tilt to."""
_ROCK_DWELL = 0.05
"""How long a brick stays tilted [s]: three times what a press has to last to connect."""
_DWELL = 0.15
"""How long a reached force is held before the next thing is tried [s]."""


class Pressing:
    """Moves along the insertion axis of one seat, watching force and events.

    Args:
        motion: The arm's motions.
        axis: (3,) unit vector from the seat to the brick, world.
        parameters: Speeds and forces.
        report_force: Is told the force [N] each control period.
        limit: Greatest force that is allowed [N]; None: that of the parameters.
        partner: Is told the force [N] before each control period: another arm that bears it.
        moving: Ids of the parts that are pressed as one: they must stay so. Empty: whatever comes
            apart is left to the caller.

    Attributes:
        force: Force along the axis now [N], positive when the seat pushes back.
        greatest: Greatest such force so far [N].
        least: Least such force so far [N]; negative if the seat pulled.
    """

    def __init__(
        self,
        motion: ArmMotion,
        axis: Array,
        parameters: TaskParameters,
        report_force: Callable[[float], None],
        limit: float | None = None,
        partner: Callable[[float], None] | None = None,
        moving: Collection[int] = (),
    ) -> None:
        self._moving = frozenset(moving)
        self._partner = partner
        self._motion = motion
        self._axis = axis
        self._parameters = parameters
        self._report = report_force
        self._limit = parameters.press_force if limit is None else limit
        self._contact = min(parameters.contact_force, _LANDING_SHARE * self._limit)
        self._landing = min(parameters.contact_speed, _LANDING_SHARE * self._limit / _LANDING)
        self._rate = 0.0
        self._mark = len(motion.world.events)
        self._still = 0.0
        self._tilt = np.zeros(3)
        self.force = 0.0
        self.greatest = 0.0
        self.least = 0.0

    def events(self) -> Sequence[ConnectionEvent]:
        """Connection events since this object was made."""
        return self._motion.world.events[self._mark :]

    def formed(self) -> list[ConnectionKey]:
        """Connections that began since."""
        return [
            connection_key(event.connection)
            for event in self.events()
            if event.kind is EventKind.ASSEMBLED
        ]

    def bear(self, force: float) -> None:
        """Pushes along the axis with a force [N] for the next control period, which is the
        caller's to let pass: two arms push at the same time."""
        self.force = float(self._motion.controller.wrench[:3] @ self._axis)
        limit = self._parameters.press_speed
        speed = float(np.clip(_COMPLIANCE * (max(force, 0.0) + self.force), -limit, limit))
        self._motion.controller.servo(np.concatenate([speed * self._axis, np.zeros(3)]))

    def lean(self, pivot: Array, place: Array) -> None:
        """Tilts towards a place, so that the brick comes down there first.

        Args:
            pivot: (3,) what it turns about [m], world.
            place: (3,) the place [m], world.
        """
        wanted, spin = self._tilt_to(pivot, place), np.ones(3)
        while spin.any():
            moving, spin = self._tilting(pivot, wanted)
            self._motion.controller.servo(np.concatenate([moving, spin]))
            self._advance()

    def descend(
        self,
        distance: float,
        studs: bool = True,
        edges: Sequence[float] = (),
        aside: Array | None = None,
        off: Array | None = None,
    ) -> None:
        """Moves down until contact with the seat, past edges of what stands beside it.

        Args:
            distance: How far above its seat the brick is [m].
            studs: False if there are no studs to meet first (the table).
            edges: Heights above the seat at which the brick may meet studs, its own among them [m].
            aside: (3,) how far from its seat the brick comes down, across the axis [m]; just above
                the studs it moves back. None: not at all.
            off: (3,) how far from its seat it comes down besides, onto what stands beside it, and
                slips back there.

        Raises:
            TaskError: Contact came too early (COLLISION) or not at all (BRICK_LOST).
        """
        p = self._parameters
        limit = distance + _OVERTRAVEL
        start = self._height()
        seat = distance - (STUD_HEIGHT if studs else 0.0)
        # What stands there bears that much, or the brick would not come down on it.
        borne = p.least_press_force if off is not None and off.any() else self._limit
        edge_speed = min(p.edge_speed, _landing_speed(_LANDING_SHARE * borne))
        touch = min(self._contact, _LANDING_SHARE * borne)
        for _ in range(_EDGES):
            while self.force < touch and not self.formed():
                travelled = start - self._height()
                if travelled > limit:
                    self._motion.controller.hold()
                    raise TaskError(
                        f"no contact {1e3 * _OVERTRAVEL:.0f} mm below the seat: the brick or its"
                        " seat is not there",
                        Outcome.BRICK_LOST,
                    )
                above = seat - travelled
                if aside is not None and above < p.contact_zone:
                    self._sidle(-aside)
                    aside = None
                self._step(-self._coming_down(above, edges, edge_speed))
            above = seat - (start - self._height())
            if above <= _EARLY or self.formed():
                return
            if not studs or not self._slip_past(off):
                break
        self._motion.controller.hold()
        raise TaskError(
            f"contact {1e3 * above:.1f} mm above the seat: something is in the way",
            Outcome.COLLISION,
        )

    def set_down(self) -> None:
        """Moves down until what the brick was joined to stands on the table again: in the grip it
        is taken up to it by the height of the studs."""
        for _ in range(_CALM):
            self._step(0.0)
        start = self._height()
        touch, speed = min(_TABLE_TOUCH, self._contact), min(_TABLE_SPEED, self._landing)
        while self.force < touch and start - self._height() < STUD_HEIGHT + _DROP:
            self._step(-speed)

    def press(self, force: float) -> bool:
        """Raises the force to a limit [N] and dwells there; True as soon as something connects."""
        target = max(self.force, self._contact)
        dwell = 0.0
        period = self._period()
        while dwell < _DWELL:
            if self.formed():
                return True
            target = min(target + self._parameters.press_ramp * period, force)
            if target >= force:
                dwell += period
            self._push(target)
        return bool(self.formed())

    def rock(self, force: float, pivot: Array, places: Sequence[Array]) -> bool:
        """Tilts towards some places while pressing with a force [N]; True when something connects.

        Joints that share a press get all of it in turn, without being pushed sideways. Ends level.

        Args:
            force: The force.
            pivot: (3,) middle of the studs that are to engage [m], world.
            places: (3,) middles of joints that bear the force alone [m], world.
        """
        force = min(force, max(_SWING * self._limit, self._contact))
        tilts = [tilt for place in places if (tilt := self._tilt_to(pivot, place)).any()]
        if not tilts and not self._tilt.any():
            return False
        for wanted in (*tilts, np.zeros(3)):
            dwell = 0.0
            while dwell < _ROCK_DWELL:
                moving, spin = self._tilting(pivot, wanted)
                if not spin.any():
                    dwell += self._period()
                self._push(force, moving, spin)
                if self.formed():
                    return True
        return False

    def search(self, force: float) -> bool:
        """Moves along a spiral while pressing with a force [N]; True when something connects.

        Ends where it began.
        """
        for _ in self._searching(force):
            if self.formed():
                return True
        return bool(self.formed())

    def _searching(self, force: float, way: Array | None = None) -> Iterator[None]:
        """Follows the search path while pressing with a force [N], a control period at a time; or a
        straight way ((3,) [m]) and back."""
        start = self._motion.tool
        before, yaw_before = np.zeros(3), 0.0
        force = min(force, max(_SWING * self._limit, self._contact))
        room = self._limit - force
        speed = min(max(_CATCH_SPEED * room, _LEAST_SEARCH), self._parameters.search_speed)
        for offset, yaw in self._spiral(speed) if way is None else self._straight(way, speed):
            here = self._motion.tool
            missing = self._across(start[:3, 3] + offset - here[:3, 3])
            turn = yaw - _yaw_between(start, here, self._axis)
            back = _TRACKING * missing
            back *= min(1.0, speed / max(np.linalg.norm(back), 1e-9))
            lateral = ((offset - before) / self._period() + back) * self._give()
            spin = (yaw - yaw_before) / self._period() + _TRACKING * turn
            self._push(force, lateral, spin * self._axis)
            before, yaw_before = offset, yaw
            yield
            waited = 0.0
            while self.force > _EASE * force and waited < _PATIENCE:
                self._push(force)
                waited += self._period()
                yield

    def pull(self, force: float, distance: float, free: Callable[[], bool] = lambda: True) -> bool:
        """Moves up.

        Args:
            force: Greatest force [N].
            distance: How far to go [m] once nothing holds the brick any more.
            free: Whether nothing holds it.

        Returns:
            False if the force limit was met first, or what holds the brick came along.
        """
        begin = start = self._height()
        while self._height() - start < distance:
            if -self.force > force:
                self._motion.controller.hold()
                return False
            speed, spin = self._parameters.pull_speed, np.zeros(3)
            if not free():
                start = self._height()
                if start - begin > _ALONG - _BENDING * self.force:
                    break
                speed = min(speed, max(_BREAKAWAY_SPEED, -_BREAKAWAY_RATE * self.force))
                spin = _LEVELLING * self._across(self._motion.controller.wrench[3:])
            self._step(speed, spin)
        self._motion.controller.hold()
        return free()

    def tilt(self, edge: Array, about: Array, angle: float, done: Callable[[], bool]) -> None:
        """Turns the tool about a line until the brick is free or the angle is reached.

        Args:
            edge: (3,) a point of the line [m], world.
            about: (3,) its unit direction.
            angle: How far to turn [rad].
            done: Whether the brick is free.
        """
        turned = 0.0
        while turned < angle and not done():
            spin = about * _TILT_SPEED
            velocity = np.cross(spin, self._motion.tool[:3, 3] - edge)
            self._motion.controller.servo(np.concatenate([velocity, spin]))
            self._advance()
            turned += _TILT_SPEED * self._period()
        self._motion.controller.hold()

    # -- inside -----------------------------------------------------------------------------

    def _coming_down(self, above: float, edges: Sequence[float], edge_speed: float) -> float:
        """Speed [m/s] at a height above the contact with the seat's studs [m].

        Args:
            above: The height.
            edges: Heights above the seat at which the brick may meet studs [m].
            edge_speed: Speed there [m/s].
        """
        p = self._parameters
        if above < p.contact_zone:
            return self._landing
        over = [above + STUD_HEIGHT - edge for edge in edges]
        if any(-_LEDGE < height < p.contact_zone for height in over):
            return edge_speed
        near = any(height < p.contact_zone + STUD_HEIGHT for height in over)
        return p.edge_speed if near else p.descend_speed

    def _tilt_to(self, pivot: Array, place: Array) -> Array:
        """(3,) tilt [rad] about a pivot towards a place ((3,) [m]); none where that is above it."""
        about = np.cross(self._axis, self._across(place - pivot))
        size = float(np.linalg.norm(about))
        return self._parameters.rock_tilt * about / size if size > _SAME else np.zeros(3)

    def _tilting(self, pivot: Array, wanted: Array) -> tuple[Array, Array]:
        """Velocities [m/s, rad/s] towards a tilt ((3,) [rad]) about a pivot for a control period;
        none when it is reached."""
        missing = wanted - self._tilt
        step = self._parameters.rock_speed * self._period()
        change = missing * min(1.0, step / max(float(np.linalg.norm(missing)), 1e-9))
        self._tilt = self._tilt + change
        spin = change / self._period()
        return np.cross(spin, self._motion.tool[:3, 3] - pivot), spin

    def _slip_past(self, off: Array | None) -> bool:
        """Moves sideways, pressing lightly, until the brick drops: back where it came down off its
        seat ((3,) [m]), then along the search path.

        Returns:
            False if it stays where it is.
        """
        edge = self._height()

        def dropped() -> bool:
            return edge - self._height() > _DROP or bool(self.formed())

        back = [] if off is None or not off.any() else [-_BEYOND * off]
        falling = math.ceil(_DROP / (_LEAST_SPEED * self._period()))
        for way in (*back, None):
            for _ in self._searching(self._contact, way):
                # Over the gap it goes straight down: moved on meanwhile, it would land beyond.
                for _ in range(falling):
                    if self.force > _LOOSE * self._contact or dropped():
                        break
                    self._push(self._contact)
                if dropped():
                    return True
        return False

    def _sidle(self, offset: Array) -> None:
        """Moves across the axis ((3,) [m]) until something there is touched, and back by the gap
        that bricks leave beside each other."""
        size = float(np.linalg.norm(offset))
        if size == 0.0:
            return
        direction = offset / size
        controller, start = self._motion.controller, self._motion.tool[:3, 3]

        def push() -> float:
            return -float(controller.wrench[:3] @ direction)

        def go(speed: float) -> float:
            controller.servo(np.concatenate([speed * direction, np.zeros(3)]))
            self._advance()
            return float((self._motion.tool[:3, 3] - start) @ direction)

        travelled = 0.0
        while travelled < size and push() < _TOUCH and self.force < self._contact:
            travelled = go(_SIDLE_SPEED)
        touched = push() >= _TOUCH
        while travelled > 0.0 and push() > 0.5 * _TOUCH:
            travelled = go(-_SIDLE_SPEED)
        # Left at the neighbour, the brick would push it aside more and more while pressing.
        clear = travelled - 2.0 * SIDE_CLEARANCE if touched else travelled
        while travelled > clear:
            travelled = go(-_SIDLE_SPEED)

    def _height(self) -> float:
        return float(self._motion.tool[:3, 3] @ self._axis)

    def _period(self) -> float:
        return self._motion.world.period

    def _step(self, speed: float, spin: Array | None = None) -> None:
        before = self._height()
        linear = speed * self._axis + self._yielding()
        turning = np.zeros(3) if spin is None else spin
        self._motion.controller.servo(np.concatenate([linear, turning]))
        self._advance()
        moved = abs(self._height() - before) > 0.1 * abs(speed) * self._period()
        self._still = 0.0 if moved else self._still + self._period()
        if self._still > _STUCK:
            self._motion.controller.hold()
            raise TaskError(
                f"the arm cannot move on along the insertion axis at joints"
                f" {np.round(self._motion.controller.reference.positions, 2).tolist()}",
                Outcome.CONTROLLER_FAILED,
            )

    def _push(self, force: float, moving: Array | None = None, spin: Array | None = None) -> None:
        """Presses with a force [N] for a control period, moving ((3,) [m/s]) and turning ((3,)
        [rad/s]) besides."""
        limit = self._parameters.press_speed
        coming = self.force + _LEAD * self._rate
        # What slips off an edge lands, and adds to the force that is there already.
        room = self._limit - max(force, self.force)
        down = min(limit, _landing_speed(room))
        speed = float(np.clip(_COMPLIANCE * (coming - force), -down, limit))
        linear = speed * self._axis + self._yielding()
        if moving is not None:
            linear = linear + moving
        turning = np.zeros(3) if spin is None else spin
        self._motion.controller.servo(np.concatenate([linear, turning]))
        self._advance()
        allowed, side = _EXCESS * self._limit, self._side()
        if self.force > allowed or side > self._parameters.collision_force:
            self._motion.controller.give_way(True)
            raise TaskError(
                f"{self.force:.1f} N along the insertion axis and {side:.1f} N across it while"
                f" {force:.1f} N were wanted (limit {self._limit:.1f} N)",
                Outcome.FORCE_LIMIT,
            )

    def _side(self) -> float:
        """Force across the axis [N]."""
        return float(np.linalg.norm(self._across(self._motion.controller.wrench[:3])))

    def _give(self) -> float:
        """Share of the search's speed [-] that is left against a force from the side: what does
        not give way is not dragged along."""
        allowed = min(_SIDE_FORCE, _DRAG_SHARE * self._limit)
        return float(np.clip(2.0 - self._side() / allowed, 0.0, 1.0))

    def _across(self, vector: Array) -> Array:
        """The part of a vector across the axis."""
        return vector - self._axis * (vector @ self._axis)

    def _yielding(self) -> Array:
        """(3,) speed [m/s] with which the arm gives way to a force from the side."""
        push = self._across(self._motion.controller.wrench[:3])
        size = float(np.linalg.norm(push))
        allowed = min(_SIDE_FORCE, _SIDE_SHARE * self._limit)
        return push * (_SIDE_COMPLIANCE * max(size - allowed, 0.0) / max(size, 1e-9))

    def _advance(self) -> None:
        if self._partner is not None:
            self._partner(self.force)
        self._motion.world.advance()
        before = self.force
        self.force = float(self._motion.controller.wrench[:3] @ self._axis)
        self._rate = (self.force - before) / self._period()
        self.greatest = max(self.greatest, self.force)
        self.least = min(self.least, self.force)
        self._report(self.force)
        self._require_whole()

    def _require_whole(self) -> None:
        """Ends the press when what is pressed comes apart: more would only drag the pieces about.

        Raises:
            TaskError: It did (STRUCTURE_BROKE).
        """
        for event in self.events() if self._moving else ():
            stud, hole, *_ = key = connection_key(event.connection)
            if event.kind is EventKind.BROKEN and self._moving.issuperset((stud, hole)):
                self._motion.controller.give_way(True)
                raise TaskError(
                    f"connection {key} of what is in the hand broke under {self.force:.1f} N",
                    Outcome.STRUCTURE_BROKE,
                )

    def _straight(self, way: Array, speed: float) -> Iterator[tuple[Array, float]]:
        """Offsets [m] along a way ((3,) [m]) and back at a speed [m/s], and no yaws."""
        steps = math.ceil(float(np.linalg.norm(way)) / (speed * self._period()))
        for step in (*range(1, steps + 1), *range(steps - 1, -1, -1)):
            yield way * (step / steps), 0.0

    def _spiral(self, speed: float) -> Iterator[tuple[Array, float]]:
        """Offsets [m] across the axis and yaws [rad] at a speed [m/s]: outwards on a spiral and
        straight back, as it is, then turned a little to either side."""
        p = self._parameters
        first = np.cross(self._axis, [0.0, 1.0, 0.0])
        if np.linalg.norm(first) < 0.5:
            first = np.cross(self._axis, [1.0, 0.0, 0.0])
        first = first / np.linalg.norm(first)
        second = np.cross(self._axis, first)
        step = speed * self._period()
        turn = p.search_turn_speed * self._period()
        yaw = 0.0
        for wanted in (0.0, p.search_yaw, -p.search_yaw):
            while abs(wanted - yaw) > turn:
                yaw += math.copysign(turn, wanted - yaw)
                yield np.zeros(3), yaw
            angle, radius, offset = 0.0, 0.0, np.zeros(3)
            while radius < p.search_radius:
                angle += step / max(radius, 0.5 * p.search_pitch)
                radius = p.search_pitch * angle / (2.0 * math.pi)
                offset = radius * (math.cos(angle) * first + math.sin(angle) * second)
                yield offset, yaw
            for share in np.linspace(1.0, 0.0, max(int(radius / step), 2)):
                yield share * offset, yaw


def _landing_speed(force: float) -> float:
    """Speed [m/s] of a landing that is to bring no more than a force [N]."""
    return max(force / _LANDING, _LEAST_SPEED)


def _yaw_between(start: Array, here: Array, axis: Array) -> float:
    """Turn [rad] about an axis from one orientation to another close to it."""
    difference = here[:3, :3] @ start[:3, :3].T
    vector = 0.5 * np.array(
        [
            difference[2, 1] - difference[1, 2],
            difference[0, 2] - difference[2, 0],
            difference[1, 0] - difference[0, 1],
        ]
    )
    return float(vector @ axis)
