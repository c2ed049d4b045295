# SPDX-License-Identifier: Apache-2.0
"""Building a whole structure brick by brick from bricks on the table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.sequencing.plan import AssemblyPlan, Step, SubAssembly
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.aloft import HeldGroup, Join
from bricksim_moveit_demo.connections import connections_of, goal_key
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.grasps import Grasp, planned_grasps
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.reports import InsertionGoal, Report
from bricksim_moveit_demo.world import World


@dataclass(frozen=True, eq=False)
class Insertion:
    """One step of building.

    Attributes:
        goal: What goes where; the part brings along all that it is connected to by then.
        grasps: Parts to hold and how, best first.
        release: False: the next step goes on with what is in the hand.
        holder: Part that a second hand holds in the air meanwhile; the first step without it goes
            on with the whole. None: there is none.
    """

    goal: InsertionGoal
    grasps: tuple[tuple[int, Grasp], ...]
    release: bool = True
    holder: int | None = None


@dataclass(frozen=True)
class Summary:
    """How building went.

    Attributes:
        success: True if the whole structure stands.
        message: What went wrong first; empty on success.
        outcome: Its cause.
        inserted: Insertions that succeeded.
        total: Insertions to be made.
        reports: One per insertion that was tried, in order.
        duration: Simulation time [s].
        planning_time: Wall time spent planning motions [s].
    """

    success: bool
    message: str
    outcome: Outcome
    inserted: int
    total: int
    reports: tuple[Report, ...]
    duration: float
    planning_time: float

    @classmethod
    def of(
        cls,
        reports: Sequence[Report],
        total: int,
        duration: float,
        failure: tuple[Outcome, str] | None = None,
    ) -> Summary:
        """The summary of some reports.

        Args:
            reports: One per insertion that was tried, in order.
            total: Insertions to be made.
            duration: Simulation time [s].
            failure: What went wrong first, cause and text; None: nothing did.
        """
        outcome, message = failure or (Outcome.SUCCEEDED, "")
        return cls(
            failure is None,
            message,
            outcome,
            sum(report.success for report in reports),
            total,
            tuple(reports),
            duration,
            sum(report.planning_time for report in reports),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for summary.json."""
        return asdict(self)


class BuildLog:
    """What is known of a building that may end at any time: its methods are called by the builder.

    Args:
        structure: What is built.
    """

    def __init__(self, structure: Structure) -> None:
        self._total = len(structure.graph) - 1
        self._reports: list[Report] = []
        self._part: int | None = None

    def starting(self, part_id: int, _arm: str, _inserted: int, total: int) -> None:
        """A brick's turn comes."""
        self._part, self._total = part_id, total

    def progress(self, report: Report, _inserted: int, total: int) -> None:
        """A brick's turn is over."""
        self._reports.append(report)
        self._part, self._total = None, total

    def cut_off(self, outcome: Outcome, message: str, duration: float) -> Summary:
        """The summary of a building that ended before its end.

        Args:
            outcome: Why.
            message: The same in words.
            duration: Simulation time that it took [s].
        """
        place = "" if self._part is None else f"brick {self._part}: "
        return Summary.of(self._reports, self._total, duration, (outcome, f"{place}{message}"))


def base_part(structure: Structure) -> int:
    """Id of the part that the structure stands on.

    The fixed part; without one, the largest of the lowest parts.

    Raises:
        StructureError: Several parts are fixed.
    """
    if len(structure.fixed) > 1:
        raise StructureError(
            f"{structure.name}: parts {sorted(structure.fixed)} are fixed, expected one base"
        )
    if structure.fixed:
        return next(iter(structure.fixed))
    poses = structure.part_poses()

    def rank(part_id: int) -> tuple[float, int, int]:
        shape = structure.graph.part(part_id).shape
        return round(float(poses[part_id][2, 3]), 6), -shape.length * shape.width, part_id

    return min(poses, key=rank)


def insertions(structure: Structure, plan: AssemblyPlan, arms: int = 1) -> list[Insertion]:
    """What arms have to do, one after the other, to carry out a plan.

    Sub-assemblies are joined on the table where one of their parts lies, and then put in place
    whole. A part that is to join several that lie there apart is pressed onto one, then, with all
    that it has by then, onto the next.

    Args:
        structure: The structure.
        plan: How it is built.
        arms: How many arms there are: with two, one may bear what the other one presses.

    Raises:
        StructureError: The plan needs a second hand that is not there, or a third one, or bricks
            upside down, or leaves out a part; the text names the parts.
    """
    joining = _Joining(structure, frozenset(plan.base), arms)
    standing = set(plan.base)
    for step in plan.steps:
        joining.add(step, standing)
        standing.update(step.parts)
    outside = set(structure.graph.part_ids) - standing
    if outside:
        raise StructureError(f"{structure.name}: parts {sorted(outside)} are not in the plan")
    apart = standing - joining.together[min(plan.base)]
    if apart:
        raise StructureError(
            f"{structure.name}: parts {sorted(apart)} have nothing below them to be pressed onto"
        )
    return joining.insertions


def needed(steps: Iterable[Insertion]) -> list[int]:
    """Parts in the order in which insertions need them."""
    return list(dict.fromkeys(p for step in steps for p in (step.goal.target, step.goal.part)))


class _Joining:
    """Insertions so far, and which parts they join.

    Attributes:
        insertions: The insertions.
        together: The parts that each part is connected with by then, itself included.
    """

    def __init__(self, structure: Structure, base: frozenset[int], arms: int) -> None:
        self._arms = arms
        self.insertions: list[Insertion] = []
        self.together = {part: {part} for part in structure.graph.part_ids}
        self._structure = structure
        self._base = base
        self._joined: list[Step] = []
        for part in base:
            self.together[part] = set(base)

    def add(
        self,
        step: Step,
        standing: Collection[int],
        holder: int | None = None,
        keep: bool = False,
    ) -> None:
        """Carries out a step, pressing onto some of the parts that stand there.

        Args:
            step: The step.
            standing: The parts that are there.
            holder: The part that a second hand holds in the air meanwhile; None: there is none.
            keep: True: all stays in the hand.

        Raises:
            StructureError: It needs what the arms cannot do.
        """
        refusal = self._refusal(step, holder)
        if refusal:
            raise StructureError(f"{self._structure.name}: parts {step.parts} {refusal}")
        inner = step.subassembly
        if inner is not None and step not in self._joined:
            self._join(step, inner)
        graph = self._structure.graph
        links = [
            c
            for part in step.parts
            for c in graph.connections_of(part)
            if c.hole_part in step.parts and c.stud_part in standing
        ]
        # What is greater stays where it is: the base, above all.
        links.sort(
            key=lambda c: (
                not self._base.isdisjoint(self.together[c.stud_part]),
                len(self.together[c.stud_part]),
            )
        )
        goals = []
        for link in links:
            joined = self.together[link.hole_part]
            if link.stud_part in joined:
                continue
            joined |= self.together[link.stud_part]
            self.together.update(dict.fromkeys(joined, joined))
            goals.append(InsertionGoal(link.hole_part, link.stud_part, link.offset, link.yaw))
        # What hangs from a brick that is still in the hand cannot topple.
        self.insertions += [
            Insertion(goal, self._holds(step), goal is goals[-1] and not keep, holder)
            for goal in goals
        ]

    def _join(self, step: Step, inner: SubAssembly) -> None:
        """Joins a sub-assembly, parts of it that are sub-assemblies first."""
        inside: set[int] = set()
        if inner.holder is not None:
            inside.add(inner.holder)
            # Both hands are needed for the rest.
            for part in inner.steps:
                if part.subassembly is not None:
                    self._join(part, part.subassembly)
        for part in inner.steps:
            if inner.in_hand:
                self.add(part, part.supports, keep=True)
            else:
                self.add(part, inside, inner.holder)
                inside.update(part.parts)
        self._joined.append(step)

    def _refusal(self, step: Step, holder: int | None) -> str:
        """Why the arms cannot carry out a step; empty if they can."""
        inner, needed = step.subassembly, step.needs_support
        if needed is not None and (self._arms < 2 or holder is not None):
            which = "second" if holder is None else "third"
            return f"need a {which} hand at part {needed} while they are pressed on"
        if inner is None:
            return ""
        if inner.in_hand and self._arms < 2:
            return "need a second hand that holds them while the first one takes them lower down"
        if inner.from_below:
            return "are put on from below, which the arms do not do"
        if inner.holder is None:
            return ""
        if self._arms < 2 or holder is not None:
            which = "second" if holder is None else "third"
            return (
                f"need a {which} hand that holds part {inner.holder} in the air while the others"
                " are joined to it"
            )
        if not step.supports:
            return "are joined in the air and then put on the table, which the arms do not do"
        return ""

    def _holds(self, step: Step) -> tuple[tuple[int, Grasp], ...]:
        graph = self._structure.graph
        return tuple(
            (planned.part, grasp)
            for planned in step.grasps
            if not planned.from_below
            for grasp in planned_grasps(planned, graph.part(planned.part).shape)
        )


def loose_bricks(structure: Structure, poses: Mapping[int, Array]) -> Structure:
    """Some bricks of a structure, connected to nothing, the base held by the world.

    Args:
        structure: Where they come from; ids stay.
        poses: (4, 4) world_T_part [m] by part id.
    """
    graph, loose = structure.graph, BrickTopologyGraph()
    component_poses = {}
    for part_id in (p for p in graph.part_ids if p in poses):
        part = graph.part(part_id)
        loose.add_part(part.shape, part.color, part_id=part_id)
        part_T_component = inverse(part_pose(GridPose(), part.shape))
        component_poses[loose.component_of(part_id)] = poses[part_id] @ part_T_component
    fixed = frozenset({base_part(structure)}).intersection(poses)
    return Structure(loose, component_poses, fixed, structure.name)


@dataclass(frozen=True, eq=False)
class _InAir:
    """What is being joined in the air, and by whom."""

    group: HeldGroup
    giver: BrickHandler
    taker: BrickHandler


def _held_together(steps: Sequence[Insertion]) -> tuple[Insertion, ...]:
    """The first steps, as long as a second hand holds the same part."""
    holder = steps[0].holder
    same = itertools.takewhile(lambda step: step.holder == holder, steps)
    return tuple(same) if holder is not None else ()


def _in_hand(steps: Sequence[Insertion]) -> tuple[Insertion, ...]:
    """The first step and those that follow while its part stays in the hand."""
    part, chain = steps[0].goal.part, []
    for step in steps:
        if step.goal.part != part:
            break
        chain.append(step)
        if step.release:
            break
    return tuple(chain)


def _hanging(steps: Sequence[Insertion]) -> tuple[Insertion, ...]:
    """The first step and those that go on with all that it leaves in the hand: each presses it onto
    the next brick below."""
    chain = [steps[0]]
    for step in steps[1:]:
        last = chain[-1]
        if last.release or step.goal.part != last.goal.target:
            break
        chain.append(step)
    return tuple(chain)


def _before_firm(steps: Sequence[Insertion], firm: Collection[int]) -> list[Insertion]:
    """Steps that join parts to what does not stand firm yet."""
    standing, loose = set(firm), []
    for step in steps:
        if step.goal.target in standing or step.holder is not None:
            standing.add(step.goal.part)
        else:
            loose.append(step)
    return loose


def join_of(step: Insertion, ids: Mapping[int, int]) -> Join:
    """A step in ids of the scene.

    Args:
        step: In ids of the structure.
        ids: World part ids by structure part ids; those that are not named are the same.
    """
    goal = replace(
        step.goal,
        part=ids.get(step.goal.part, step.goal.part),
        target=ids.get(step.goal.target, step.goal.target),
    )
    grasps = []
    for part, grasp in step.grasps:
        beside = None if grasp.beside is None else ids.get(grasp.beside, grasp.beside)
        grasps.append((ids.get(part, part), replace(grasp, beside=beside)))
    return Join(goal, tuple(grasps))


def _named(parts: Iterable[int], ids: Mapping[int, int]) -> set[int]:
    """Parts of the scene in ids of the structure."""
    names = {there: here for here, there in ids.items()}
    return {names.get(part, part) for part in parts}


class StructureBuilder:
    """Builds structures with one or more arms, one brick after the other.

    The arm whose base is nearest to a brick takes it, another one where it does not reach. The
    others stand back meanwhile.

    Args:
        world: The scene.
        handlers: Arms by name.
        progress: Called after each brick with its report, bricks in place and bricks in all.
        starting: Called before each brick with its id, the arm, bricks in place and in all.
        supply: Called before each insertion with what is pressed on and what is inserted, in ids
            of the structure: puts them on the table if they are not there yet.
    """

    def __init__(
        self,
        world: World,
        handlers: Mapping[str, BrickHandler],
        progress: Callable[[Report, int, int], None] | None = None,
        starting: Callable[[int, str, int, int], None] | None = None,
        supply: Callable[[int, int], None] | None = None,
    ) -> None:
        self._world = world
        self._supply = supply
        self._handlers = handlers
        self._progress = progress
        self._starting = starting
        self._air: _InAir | None = None

    def build(
        self,
        steps: Sequence[Insertion],
        ids: Mapping[int, int] | None = None,
        stop_at_failure: bool = False,
    ) -> Summary:
        """Inserts bricks in order.

        Args:
            steps: What to insert, in ids of the structure.
            ids: World part ids by structure part ids, as they are when a brick's turn comes; None:
                they are the same.
            stop_at_failure: End at the first brick that fails; else go on with what can be built.
        """
        begin = self._world.time
        reports: list[Report] = []
        failed: set[int] = set()
        failure: tuple[Outcome, str] | None = None
        for index, step in enumerate(steps):
            if step.goal.target in failed or step.goal.part in failed:
                failed.add(step.goal.part)
                continue
            done = sum(r.success for r in reports)
            # With both hands in the air no further bricks can come.
            coming = _held_together(steps[index:]) or _in_hand(steps[index:])
            if self._supply is not None:
                try:
                    for each in coming:
                        self._supply(each.goal.target, each.goal.part)
                except TaskError as error:
                    failure = failure or (error.outcome, f"brick {step.goal.part}: {error}")
                    break
            # What hangs together with a brick that does not get to its seat does not, either.
            together = self._together(step.goal.part, ids or {})
            report, first = self._raise(steps[index:], ids or {}), None
            if report is None:
                first, report = self._site(steps[index:], ids or {})
            report = report or self._insert(
                _in_hand(steps[index:]), ids or {}, done, len(steps), first
            )
            reports.append(report)
            if not report.success:
                failed |= together
                for each in coming if step.holder is not None else ():
                    failed |= {each.goal.part, each.goal.target}
                self._give_up(report)
                failure = failure or (report.outcome, f"brick {report.part_id}: {report.message}")
            if self._progress is not None:
                self._progress(report, sum(r.success for r in reports), len(steps))
            if report.outcome is Outcome.CANCELED or (failed and stop_at_failure):
                break
        return Summary.of(reports, len(steps), self._world.time - begin, failure)

    def _together(self, part: int, ids: Mapping[int, int]) -> set[int]:
        """A part and all that it is connected to, in ids of the structure."""
        graph, own = self._world.graph, ids.get(part, part)
        if own not in graph:
            return {part}
        return _named(graph.component_parts(graph.component_of(own)), ids) | {part}

    def _site(
        self, steps: Sequence[Insertion], ids: Mapping[int, int]
    ) -> tuple[str | None, Report | None]:
        """Sees to it that what a part is joined to on the table lies well for that.

        Returns:
            The arm for which it does, None if it does for none; the report of a canceled task.
        """
        part = steps[0].goal.part
        hanging = [join_of(step, ids) for step in _hanging(steps)]
        if len(hanging) > 1 and len(self._order(hanging[0].goal.part)) == len(self._handlers):
            return self._lay_ready(hanging)
        if steps[0].holder is not None or len(self._order(ids.get(part, part))) < len(
            self._handlers
        ):
            return None, None
        chain = _in_hand(steps)
        goals = [join_of(step, ids).goal for step in chain]
        graph, world = self._world.graph, self._world
        firm = _named((p for p in graph.part_ids if world.is_fixed(p)), ids)
        loose = _before_firm(steps[len(chain) :], firm)
        later = [join_of(step, ids).goal for step in loose]
        seats = [join_of(step, ids).goal for step in steps[len(chain) :] if step not in loose]
        if any(p not in graph for g in goals for p in (g.part, g.target)) or all(
            world.is_fixed(g.target) for g in goals
        ):
            return None, None
        later, seats = (
            [g for g in found if g.part in graph and g.target in graph] for found in (later, seats)
        )
        # What was joined already may break on its way.
        for most, name in itertools.product((0, 1, None), self._order(goals[0].part)):
            others = [handler for other, handler in self._handlers.items() if other != name]
            report = self._handlers[name].make_room(goals, later, others, seats=seats, most=most)
            if report.success:
                return name, None
            if report.outcome is Outcome.CANCELED:
                return None, report
        return None, None

    def _lay_ready(self, joins: Sequence[Join]) -> tuple[str | None, Report | None]:
        """Sees to it that bricks that are joined in one hand lie where it gets to them: the hand
        that is nearest to where all goes in the end. Returns as `_site`."""
        report: Report | None = None
        for name in self._order(joins[-1].goal.target):
            others = [handler for other, handler in self._handlers.items() if other != name]
            report = self._handlers[name].lay_ready(joins, others)
            if report.success:
                return name, None
            if report.outcome is not Outcome.UNREACHABLE:
                break
        return None, report

    def _insert(
        self,
        chain: Sequence[Insertion],
        ids: Mapping[int, int],
        done: int,
        total: int,
        first: str | None = None,
    ) -> Report:
        """Lets the nearest arm that reaches do the first step of those for which its part stays in
        the hand, or a given one first."""
        step, join = chain[0], join_of(chain[0], ids)
        then = [join_of(later, ids).goal for later in chain[1:]]
        then = [goal for goal in then if goal.target in self._world.graph]
        report: Report | None = None
        order = sorted(self._order(join.goal.part), key=lambda name: name != first)
        # What was joined in the air before a task was canceled stays in the hand.
        done_before = step.holder is not None and self._air is None
        for arm in order if self._air is None else [self._air.giver.motion.arm.name]:
            if self._starting is not None:
                self._starting(join.goal.part, arm, done, total)
            others = [handler for name, handler in self._handlers.items() if name != arm]
            report = self._handlers[arm].pick_and_insert(
                join.goal,
                join.candidates,
                step.release and not done_before,
                # One that holds what this one presses on stays where it is.
                others=others if step.holder is None else (),
                then=then,
            )
            if report.outcome is not Outcome.UNREACHABLE:
                break
        assert report is not None
        return report

    def _raise(self, steps: Sequence[Insertion], ids: Mapping[int, int]) -> Report | None:
        """Gets a part that is to be held in the air there, or what was joined there out of that
        hand; what went wrong, None if nothing did or nothing is to be done."""
        holder = steps[0].holder
        if self._air is None and holder is not None:
            return self._hold(ids.get(holder, holder), steps, ids)
        if self._air is not None and holder is None:
            report = self._air.giver.take_over(self._air.group, self._air.taker)
            if not report.success:
                return report
            self._air = None
        return None

    def _hold(
        self, holder: int, steps: Sequence[Insertion], ids: Mapping[int, int]
    ) -> Report | None:
        held = _held_together(steps)
        onto = join_of(steps[len(held)], ids)
        group = HeldGroup(holder, tuple(join_of(step, ids) for step in held), onto)
        report: Report | None = None
        # A canceled task left it there.
        holding = [name for name, h in self._handlers.items() if h.holds_aloft(holder)]
        graph = self._world.graph
        if not holding and all(
            goal_key(join.goal) in connections_of(graph, [join.goal.part])
            for join in group.joins
            if join.goal.part in graph
        ):
            return None
        order = [n for n in self._handlers if n not in holding] if holding else self._order(holder)
        for bring, name in itertools.product((False, True), order):
            giver = self._handlers[name]
            for taker in (h for n, h in self._handlers.items() if n != name):
                report = giver.hand_over(group, taker, bring=bring)
                if report.success:
                    self._air = _InAir(group, giver, taker)
                    return None
                if report.outcome is not Outcome.UNREACHABLE:
                    return report
        return report

    def _give_up(self, report: Report) -> None:
        """After a failure: nothing stays in the air. A canceled task leaves it where it is."""
        if self._air is not None and report.outcome is not Outcome.CANCELED:
            self._air.giver.relieve(self._air.taker)
        self._air = None

    def _order(self, part: int) -> list[str]:
        """Names of the arms that may insert a part: the one that holds it, else nearest first."""
        for name, handler in self._handlers.items():
            if part in handler.motion.carried():
                return [name]
        if part not in self._world.graph:
            return list(self._handlers)
        place = self._world.part_pose(part)[:2, 3]

        def distance(name: str) -> float:
            base = self._handlers[name].motion.arm.world_T_base
            return round(float(np.linalg.norm(base[:2, 3] - place)), 6)

        return sorted(self._handlers, key=distance)
