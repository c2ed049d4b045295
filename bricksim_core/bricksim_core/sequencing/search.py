# SPDX-License-Identifier: Apache-2.0
"""Takes a workpiece apart, last part first.

A part can have been put on last if

- nothing stands in the columns above it (bricks are put on from above),
- it stands on studs (or the ground), and what is left is still connected to the ground,
- a gripper has room to hold it among the others,
- what is left stands, and bears the press.

The first and third condition get weaker with every part that is taken away, so for them it does not
matter in which order free parts are taken. The others may need another order. At a dead end the
search begins again, with priority for the parts that could not be taken: they are taken earlier,
while more of the structure is there. No dead end is entered twice.

A part that hangs from another cannot be put on alone, nor one that all sides hide from the gripper.
Then the smallest groups are tried that can be taken away as one: some parts, with all that would
lose its connection to the ground and all that stands above those. A group is planned in the same
way, standing on the table or held by a second hand. One that has no such way may be joined in one
hand, from the top down: all of it is pressed onto its next part below, which lies on the table.

The blocking relations are those of disassembly planning: R. H. Wilson and J.-C. Latombe, "Geometric
reasoning about mechanical assembly", Artificial Intelligence 71 (1994).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bricksim_core.errors import BrickSimError
from bricksim_core.sequencing.gripper import Grasp, GripperModel, Held, blockers, find_grasps
from bricksim_core.sequencing.plan import Step, SubAssembly, part_name
from bricksim_core.sequencing.statics import Effort, StaticCheck, Statics, Verdict
from bricksim_core.sequencing.workpiece import Joint, Workpiece, mask_of, rows_of, workpiece

_LARGEST_GROUP = 12
"""Parts of the largest sub-assembly that is tried."""
_DEEPEST = 2
"""Levels of sub-assemblies."""
_BEGINNINGS = (8, 2, 2)
"""How often the search begins at most, by level."""
_HELD_LOW = 3
"""How many of the lowest parts of what is joined in one hand may be between the fingers."""
_SHOWN = 3
_SCRAPES = (0, 1, 3)
"""What it costs if none, one or both fingertips scrape along neighbours: one can be kept off."""
_NARROW = 3
"""What it costs if the fingers hardly open."""
_NO_ROOM = 8
"""What it costs if there is no room for them."""
_FINGER = 5
"""Distance [studs] that an open finger does not bridge."""


class SequenceError(BrickSimError):
    """A structure cannot be built as asked; the text says which brick and why.

    Attributes:
        reasons: Why each part that is left cannot be put on, by part id.
        proven: True if no order exists; False if none was found.
    """

    def __init__(
        self, message: str, reasons: dict[int, str] | None = None, *, proven: bool = True
    ) -> None:
        super().__init__(message)
        self.reasons = reasons or {}
        self.proven = proven


@dataclass(frozen=True)
class SearchOptions:
    """What a plan has to respect.

    Attributes:
        gripper: The gripper; None for hands that find room everywhere.
        check: Verdict on half-built structures.
        press_force: Force of each press [N].
        arms: 1, or 2: a second arm can push back during a press, hold a sub-assembly while others
            are joined to it, or while the first one takes it elsewhere.
        effort: Checks that may be made.
        rims: True: a press may act on each side of the engaged studs, too.
        careful: True: grasps with which both fingertips scrape are none: a hand cannot keep off
            both sides.
        alone: Parts for whose press no second hand has a place.
    """

    gripper: GripperModel | None
    check: StaticCheck
    press_force: float
    arms: int
    effort: Effort
    rims: bool = False
    careful: bool = False
    alone: frozenset[int] = frozenset()


_Reason = str | Callable[[], str]
"""Text, or what makes it: most reasons are never asked for."""


@dataclass
class _State:
    """Parts that are there, and what hinders taking them away.

    Attributes:
        parts: The parts.
        verdict: Verdict on them.
        covered: What is above a part, by row.
        room: Why a part cannot be put on alone although nothing is above it, by row.
        static: What would not stand or break, by row.
        joint: A group that a part cannot be put on with, and why, by row.
    """

    parts: int
    verdict: Verdict
    covered: dict[int, str] = field(default_factory=dict)
    room: dict[int, _Reason] = field(default_factory=dict)
    static: dict[int, str] = field(default_factory=dict)
    joint: dict[int, tuple[int, _Reason]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Candidate:
    """Something that can be taken away as far as room goes."""

    group: int
    grasps: list[Grasp]
    inner: SubAssembly | None = None


class Search:
    """Finds the steps that build one workpiece.

    Args:
        piece: The workpiece.
        base: Ids of the parts that are there from the start.
        fixed: Ids of the parts that the world or a hand holds.
        ground: Height on which parts may be put down [plates], None if there is no ground.
        options: What to respect.
        level: How many sub-assemblies this one is in; or the deepest level, to allow none in it.
    """

    def __init__(
        self,
        piece: Workpiece,
        base: frozenset[int],
        fixed: frozenset[int],
        ground: int | None,
        options: SearchOptions,
        level: int = 0,
    ) -> None:
        self._piece = piece
        self._base = piece.mask(base)
        self._options = options
        self._level = level
        self._statics = Statics(
            piece, options.check, options.press_force, fixed, options.effort, options.rims
        )
        count = len(piece.part_ids)
        self._everything = (1 << count) - 1
        on_ground = [] if ground is None else np.flatnonzero(piece.boxes[:, 2] == ground)
        self._grounded = mask_of(int(i) for i in on_ground)
        self._priority: Counter[int] = Counter()
        self._inner: dict[int, SubAssembly | SequenceError] = {}

    def run(self) -> tuple[Step, ...]:
        """The steps in the order of assembly.

        Raises:
            SequenceError: There are none, or none were found.
        """
        piece = self._piece
        floating = self._everything & ~self._connected(self._everything)
        if floating:
            reasons = dict.fromkeys(piece.ids(floating), "it is not connected to the ground")
            raise self._error(reasons)
        finished = self._statics.stands(self._everything)
        if not finished.stable:
            raise SequenceError(
                f"{_opening(piece)}it does not stand when finished: {finished.reason}",
                proven=self._level == 0,
            )
        dead: set[int] = set()
        ends: list[_State] = []
        while len(ends) < _BEGINNINGS[self._level] and self._options.effort.left > 0:
            steps, end = self._descend(finished, dead)
            if end is None:
                return steps
            dead.add(end.parts)
            ends.append(end)
            if end.parts == self._everything:
                break
            for row in (*end.room, *end.static):
                for i in (row, *rows_of(piece.over[row])):
                    self._priority[i] += 1
        if not ends:
            message = f"{_opening(piece)}no order was found with the checks allowed"
            raise SequenceError(message, proven=False)
        best = min(ends, key=lambda end: end.parts.bit_count())
        raise self._error(self._reasons(best), proven=False)

    def _descend(self, finished: Verdict, dead: set[int]) -> tuple[tuple[Step, ...], _State | None]:
        """Takes parts away until only the base is left, or up to a dead end, which it returns."""
        state, steps = _State(self._everything, finished), []
        while state.parts != self._base:
            self._statics.focus(state.parts)
            for step, rest in self._moves(state):
                if rest not in dead:
                    steps.append(step)
                    state = _State(rest, self._statics.stands(rest))
                    break
            else:
                return (), state
        return tuple(reversed(steps)), None

    def _connected(self, parts: int) -> int:
        """The parts that are connected to the base or the ground."""
        return self._piece.reach(self._base | self._grounded, parts)

    # -- moves -------------------------------------------------------------------------------------

    def _moves(self, state: _State) -> Iterator[tuple[Step, int]]:
        """What can be taken away and what is left then.

        Layer by layer from the top: single parts, those with much room first, then those that give
        room to others; groups; then all again with a second hand that pushes back against the
        press. In the end groups of any size that are joined in one hand.
        """
        piece, parts = self._piece, state.parts
        layers: dict[tuple[int, int], list[int]] = {}
        for i in sorted(rows_of(parts & ~self._base), key=self._rank):
            layers.setdefault((self._priority[i], int(piece.boxes[i, 2])), []).append(i)
        for rows in layers.values():
            candidates = [c for i in rows if (c := self._candidate(state, i)) is not None]
            tight = [c for c in candidates if self._tightness(c.grasps)]
            for candidate in (c for c in candidates if not self._tightness(c.grasps)):
                yield from self._take(state, candidate)
            for candidate in self._freeing_first(state, tight, rows):
                yield from self._take(state, candidate)
            for group in self._groups(parts, [i for i in rows if i not in state.covered]):
                candidate = self._group_candidate(state, group)
                if candidate is not None:
                    candidates.append(candidate)
                    yield from self._take(state, candidate)
            if self._options.arms == 2:
                for candidate in candidates:
                    yield from self._take(state, candidate, supported=True)
        if self._options.arms == 2 and self._level == 0:
            groups = self._all_groups(parts)
            for supported, group in itertools.product((False, True), groups):
                hanging = self._hanging(state, group, supported)
                if hanging is not None:
                    yield from self._take(state, hanging, supported=supported)

    def _rank(self, i: int) -> tuple[int, int, int, int]:
        box = self._piece.boxes[i]
        return -self._priority[i], -int(box[2]), -int(box[5]), -i

    def _tightness(self, grasps: list[Grasp] | None) -> int:
        """How little room there is for the best of some grasps, None: for any."""
        gripper = self._options.gripper
        if gripper is None:
            return 0
        if grasps is None:
            return _NO_ROOM
        best = grasps[0]
        return _SCRAPES[best.scrapes] + (_NARROW if best.opening < gripper.release else 0)

    def _freeing_first(
        self, state: _State, tight: list[_Candidate], rows: list[int]
    ) -> list[_Candidate]:
        """Candidates with little room: those that lack least first, of those the ones without which
        others of the layer gain most.

        Greedy: whatever is left then has more room when its turn comes.
        """
        if len(tight) < 2:
            return tight
        piece, parts = self._piece, state.parts
        open_rows = [i for i in rows if i not in state.covered]

        def lack(i: int, rest: int) -> int:
            return self._tightness(self._grasps(rest & ~(1 << i), piece.held(i)))

        lacking = {i: now for i in open_rows if (now := lack(i, parts))}

        def cost(candidate: _Candidate) -> tuple[int, int]:
            own = next(rows_of(candidate.group))
            rest = parts & ~candidate.group
            gained = (
                now - lack(i, rest)
                for i, now in lacking.items()
                if i != own and self._close(i, own)
            )
            return lacking[own], -sum(gained)

        return sorted(tight, key=cost)

    def _close(self, i: int, j: int) -> bool:
        """Whether two parts are so close that one may be in the way of fingers at the other."""
        a, b = self._piece.boxes[i], self._piece.boxes[j]
        return bool(np.all(np.maximum(a[:2] - b[3:5], b[:2] - a[3:5]) < _FINGER))

    def _candidate(self, state: _State, i: int) -> _Candidate | None:
        piece, parts = self._piece, state.parts
        covering = piece.over[i] & parts
        if covering:
            state.covered[i] = f"it is under {_listed(piece.ids(covering))}"
            return None
        rest = parts & ~(1 << i)
        hanging = rest & ~self._connected(rest)
        if hanging:
            state.room[i] = f"without it {_listed(piece.ids(hanging))} would hang in the air"
            return None
        if not self._joints(rest, 1 << i) and not self._grounded >> i & 1:
            state.room[i] = "it has nothing below to be pressed on"
            return None
        held = piece.held(i)
        grasps = self._grasps(rest, held)
        if grasps is None:
            state.room[i] = partial(self._no_room, rest, held)
            return None
        return _Candidate(1 << i, grasps)

    def _joints(self, rest: int, group: int) -> list[Joint]:
        """Connections by which a group stands on the rest."""
        below = self._piece.joints_below
        return [j for i in rows_of(group) for j in below[i] if rest >> j.lower & 1]

    def _grasps(self, obstacles: int, held: Held) -> list[Grasp] | None:
        """Grasps of a part among others, none without a gripper; None if there is no room."""
        gripper = self._options.gripper
        if gripper is None:
            return []
        rows = list(rows_of(obstacles))
        found = find_grasps(gripper, held, self._piece.obstacles[rows])
        if self._options.careful:
            found = [grasp for grasp in found if grasp.scrapes < 2]
        return found or None

    def _no_room(self, obstacles: int, held: Held) -> str:
        """Why a part cannot be held among others."""
        gripper, piece = self._options.gripper, self._piece
        if gripper is None:
            return ""
        rows = list(rows_of(obstacles))
        causes = []
        for axis, blocking in blockers(gripper, held, piece.obstacles[rows]):
            ids = sorted(piece.part_ids[rows[k]] for k in blocking)
            cause = f"{_listed(ids)} in the way" if ids else "it does not fit between the fingers"
            causes.append(f"along its {'xy'[axis]} {cause}")
        return "no room for the fingers: " + ", ".join(causes)

    def _take(
        self, state: _State, candidate: _Candidate, *, supported: bool = False
    ) -> Iterator[tuple[Step, int]]:
        """The move, if what is left stands and bears the press."""
        piece, statics, group = self._piece, self._statics, candidate.group
        rest = state.parts & ~group
        joints = self._joints(rest, group)
        if self._options.effort.left <= 0:
            self._blame(state, group, "it was not tried: the checks allowed are used up")
            return
        if supported and not self._options.alone.isdisjoint(piece.ids(group)):
            return
        stands = statics.stands(rest)
        if not stands.stable:
            self._blame(state, group, f"what is there before it does not stand: {stands.reason}")
            return
        press, support = self._pressed(rest, group, joints, supported)
        if not press.stable:
            force = self._options.press_force
            reason = f"pressing it on with {force:g} N breaks what is there: {press.reason}"
            self._blame(state, group, reason)
            return
        inner = candidate.inner
        step = Step(
            parts=piece.ids(group) if inner is None else inner.order,
            supports=tuple(dict.fromkeys(piece.part_ids[j.lower] for j in joints)),
            connections=tuple(sorted(j.connection for j in joints)),
            grasps=tuple(candidate.grasps),
            press_utilization=max(press.utilization, stands.utilization),
            utilization=state.verdict.utilization,
            needs_support=support,
            subassembly=inner,
        )
        yield step, rest

    def _pressed(
        self, rest: int, group: int, joints: list[Joint], supported: bool
    ) -> tuple[Verdict, int | None]:
        """Verdict on the press of a group on the rest, and the part at which a second hand pushes
        back if it is to."""
        piece, statics = self._piece, self._statics
        verdict = Verdict(True, 0.0)
        if joints and not supported:
            verdict = statics.bears_press(rest, group, joints)
        elif joints:
            for joint in sorted(joints, key=lambda j: -j.studs):
                verdict = statics.bears_press(rest, group, joints, joint.lower)
                if verdict.stable:
                    return verdict, piece.part_ids[joint.lower]
        return verdict, None

    def _blame(self, state: _State, group: int, reason: str) -> None:
        single = group.bit_count() == 1
        for i in rows_of(group):
            if single:
                state.static[i] = reason
            else:
                state.static.setdefault(i, f"put on as a group, {reason}")

    # -- groups ------------------------------------------------------------------------------------

    def _groups(self, parts: int, rows: Iterable[int]) -> list[int]:
        """Groups with some of the parts that could be put on as one, the smallest first.

        They grow from a part itself, which brings what hangs from it, and from each part below it,
        which brings what else stands there.
        """
        seeds: dict[int, None] = {}
        for i in rows:
            seeds[i] = None
            seeds.update(dict.fromkeys(j.lower for j in self._joints(parts, 1 << i)))
        groups = dict.fromkeys(g for i in seeds if (g := self._closure(parts, 1 << i)))
        return sorted(groups, key=lambda g: (g.bit_count(), -g))

    def _all_groups(self, parts: int) -> list[int]:
        """Groups of any size that some part brings along, the smallest first."""
        closures = (self._closure(parts, 1 << i, len(self._piece.part_ids)) for i in rows_of(parts))
        return sorted(dict.fromkeys(g for g in closures if g), key=lambda g: (g.bit_count(), -g))

    def _closure(self, parts: int, group: int, most: int = _LARGEST_GROUP) -> int:
        """The least group with these parts that leaves nothing above it or in the air; 0 if that
        is no proper group of connected parts, or one of more than some parts."""
        piece = self._piece
        grown = group & parts
        while group := grown:
            if group & self._base or group.bit_count() > most:
                return 0
            for i in rows_of(group):
                grown |= piece.over[i] & parts
            rest = parts & ~grown
            grown |= rest & ~self._connected(rest)
            if grown == group:
                break
        rest = parts & ~group
        if group.bit_count() < 2 or not rest or piece.reach(group & -group, group) != group:
            return 0
        return group if self._joints(rest, group) or self._grounded & group else 0

    def _group_candidate(self, state: _State, group: int) -> _Candidate | None:
        piece, rest = self._piece, state.parts & ~group
        joints = self._joints(rest, group)
        reasons: list[_Reason] = []
        grips = [(1 << i, piece.held(i)) for i in rows_of(group)]
        grips += piece.held_pairs(group)
        grips.sort(key=lambda grip: -grip[1].high[2])
        for between, held in grips:
            others = rest | group & ~between
            grasps = self._grasps(others, held)
            if grasps is None:
                reasons.append(partial(self._no_room, others, held))
                continue
            inner = self._joined(group)
            if isinstance(inner, SequenceError):
                cause = str(inner).removeprefix(_opening(piece))
                reasons.append(f"they cannot be joined before: {cause}")
                break
            verdict = self._statics.holds_together(group, between, joints)
            if verdict.stable:
                return _Candidate(group, grasps, inner)
            reason = f"held at {_listed(piece.ids(between))} they break: {verdict.reason}"
            reasons.append(reason)
            self._blame(state, group, reason)
        for i in rows_of(group):
            state.joint.setdefault(i, (group, reasons[0]))
        return None

    def _hanging(self, state: _State, group: int, supported: bool) -> _Candidate | None:
        """A group that is joined in one hand and put on from there, if all goes that way."""
        rest = state.parts & ~group
        joints = self._joints(rest, group)
        if not joints or self._options.effort.left <= 0:
            return None
        if not self._pressed(rest, group, joints, supported)[0].stable:
            return None
        grasps, _ = self._bearing_grasps(rest, group, joints)
        steps: list[Step] = []
        hanging = group
        while grasps and hanging.bit_count() > 1:
            step = self._step_in_hand(hanging)
            if step is None:
                return None
            steps.append(step)
            hanging = self._piece.mask(step.parts)
        if not steps:
            return None
        return _Candidate(group, grasps, SubAssembly(tuple(reversed(steps)), in_hand=True))

    def _step_in_hand(self, group: int) -> Step | None:
        """How the lowest part of a group comes to it: from the table, the others pressed onto it;
        None if it does not."""
        piece = self._piece
        bottom = piece.boxes[:, 2]
        low, second, *_ = sorted(rows_of(group), key=lambda i: int(bottom[i]))
        upper = group & ~(1 << low)
        # What is as low would meet the table.
        if bottom[second] == bottom[low] or piece.reach(upper & -upper, upper) != upper:
            return None
        joints = self._joints(1 << low, upper)
        grasps, press = self._bearing_grasps(1 << low, upper, joints)
        if not grasps:
            return None
        whole = self._statics.holds_together(group, piece.mask([grasps[0].part]), [])
        if not whole.stable:
            return None
        return Step(
            parts=piece.ids(upper),
            supports=(piece.part_ids[low],),
            connections=tuple(sorted(j.connection for j in joints)),
            grasps=tuple(grasps),
            press_utilization=press,
            utilization=whole.utilization,
        )

    def _bearing_grasps(
        self, rest: int, group: int, joints: list[Joint]
    ) -> tuple[list[Grasp], float]:
        """Grasps of a group that hangs in one hand and bears the press there, the lowest first:
        what it is pressed onto comes along. And the utilization with the first of them."""
        piece, statics = self._piece, self._statics
        found: list[Grasp] = []
        press: list[float] = []
        if self._options.gripper is None:
            return found, 0.0
        for i in sorted(rows_of(group), key=lambda i: int(piece.boxes[i, 2]))[:_HELD_LOW]:
            grasps = self._grasps(rest | group & ~(1 << i), piece.held(i))
            if not grasps:
                continue
            verdict = statics.holds_together(group, 1 << i, joints)
            if verdict.stable:
                found += grasps
                press.append(verdict.utilization)
        return found, press[0] if press else 0.0

    def _joined(self, group: int) -> SubAssembly | SequenceError:
        """How to join a group aside, or why that is not possible."""
        if group not in self._inner:
            self._inner[group] = self._join(group)
        return self._inner[group]

    def _join(self, group: int) -> SubAssembly | SequenceError:
        if self._level >= _DEEPEST:
            return SequenceError("too many sub-assemblies within each other", proven=False)
        piece = self._piece
        outside = piece.ids(self._everything & ~group)
        structure = replace(piece.structure.without(outside), ground=None)
        ways: list[tuple[int | None, bool]] = [(None, False)]
        if self._options.arms == 2:
            ways += ((holder, below) for below in (False, True) for holder in piece.ids(group))
        errors = []
        # Sub-assemblies within this one only if it cannot be joined part by part in any way.
        for level in range(_DEEPEST, self._level, -1):
            for holder, from_below in ways:
                turned = workpiece(structure, from_below=from_below)
                held = frozenset() if holder is None else frozenset({holder})
                ground = int(turned.boxes[:, 2].min()) if holder is None else None
                # With one hand at the holder only one is left.
                options = self._options if holder is None else replace(self._options, arms=1)
                search = Search(turned, held, held, ground, options, level)
                try:
                    return SubAssembly(search.run(), holder, from_below)
                except SequenceError as error:
                    errors.append(error)
        return errors[0]

    # -- errors ------------------------------------------------------------------------------------

    def _reasons(self, state: _State) -> dict[int, str]:
        """Why each part that is left cannot be taken away, by part id."""
        reasons = {}
        for i in sorted(rows_of(state.parts & ~self._base), key=self._rank):
            texts = [_text(kind[i]) for kind in (state.room, state.static) if i in kind]
            if i in state.joint:
                group, reason = state.joint[i]
                ids = _listed(self._piece.ids(group))
                texts.append(f"as a group of {ids}, {_text(reason)}")
            reasons[self._piece.part_ids[i]] = "; ".join(texts) or state.covered.get(i, "")
        return reasons

    def _error(self, reasons: dict[int, str], *, proven: bool = True) -> SequenceError:
        structure = self._piece.structure
        hard = [p for p, reason in reasons.items() if not reason.startswith("it is under")]
        named = hard or list(reasons)
        texts = [f"part {part_name(structure, p)}: {reasons[p]}" for p in named[:_SHOWN]]
        if len(named) > _SHOWN:
            texts.append(f"and {len(named) - _SHOWN} more")
        if not proven:
            texts.append("no order was found that avoids it")
        message = _opening(self._piece) + "; ".join(texts)
        return SequenceError(message, reasons, proven=proven)


def _text(reason: _Reason) -> str:
    return reason if isinstance(reason, str) else reason()


def _opening(piece: Workpiece) -> str:
    return f"{piece.structure.label}: cannot be built: "


def _listed(part_ids: Iterable[int]) -> str:
    ids = list(part_ids)
    shown = ", ".join(map(str, ids[:_SHOWN]))
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"part{'s' if len(ids) > 1 else ''} {shown}{more}"
