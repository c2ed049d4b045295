# SPDX-License-Identifier: Apache-2.0
"""Picking bricks, inserting them and taking them off again, with one arm."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from bricksim_core.errors import UnknownIdError
from bricksim_core.spatial import Array
from bricksim_moveit_demo.aloft import (
    HeldGroup,
    Join,
    clear_hands,
    hold_aloft,
    holds_aloft,
    relieve,
    take_whole,
)
from bricksim_moveit_demo.connections import (
    ConnectionKey,
    connections_of,
    expectation,
    goal_key,
    lost_connections,
)
from bricksim_moveit_demo.errors import Outcome, TaskError, UnreachableError
from bricksim_moveit_demo.exchanging import Brace, let_loose, stand_back, take
from bricksim_moveit_demo.grasps import Grasp
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import InsertionTask, broken_inside, try_insertion
from bricksim_moveit_demo.motion import CLEARANCES, ArmMotion
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.placing import put_down
from bricksim_moveit_demo.planning.protocol import MotionPlanner
from bricksim_moveit_demo.recovering import clear_hand, recover
from bricksim_moveit_demo.regripping import bring_target, lay_ready, ready_grip
from bricksim_moveit_demo.removing import require_removable, try_removal
from bricksim_moveit_demo.reports import Feedback, InsertionGoal, Report, Stage
from bricksim_moveit_demo.siting import prepare
from bricksim_moveit_demo.world import World

_HOPELESS = (
    Outcome.INVALID_GOAL,
    Outcome.BRICK_MISSING,
    Outcome.UNREACHABLE,
    Outcome.STRUCTURE_UNSTABLE,
    Outcome.CANCELED,
    Outcome.TIMEOUT,
)
"""Causes that another try does not mend."""
_STUCK = (Outcome.UNREACHABLE, Outcome.PLANNING_FAILED, Outcome.CONTROLLER_FAILED)
"""What keeps an arm from mending says less than what was to be mended, which stays the cause."""
_REPAIRS = 3
"""How many connections that broke elsewhere are made again after one task."""


class BrickHandler:
    """Handles bricks with one arm.

    Errors of a try are recovered where possible; what remains is told in the report.

    Attributes:
        hand: The arm and what it holds.
        parameters: All numbers; a task may be given its own.
    """

    def __init__(
        self,
        world: World,
        planner: MotionPlanner,
        arm: str,
        parameters: TaskParameters | None = None,
        feedback: Feedback | None = None,
    ) -> None:
        self.parameters = parameters or TaskParameters()
        self.hand = Hand(world, planner, arm, self.parameters, feedback)
        self._world = world

    @property
    def motion(self) -> ArmMotion:
        """The arm's motions."""
        return self.hand.motion

    # -- whole tasks --------------------------------------------------------------------------

    def pick_and_insert(
        self,
        goal: InsertionGoal,
        candidates: Iterable[tuple[int, Grasp]] = (),
        release: bool = True,
        *,
        others: Sequence[BrickHandler] = (),
        then: Sequence[InsertionGoal] = (),
        parameters: TaskParameters | None = None,
    ) -> Report:
        """Picks a brick, or all that it is connected to, and presses it onto another.

        Args:
            goal: What goes where. What the arm holds already is not picked again.
            candidates: Parts and grasps to try before all others.
            release: False: keep holding afterwards.
            others: Other arms, which make room first; one of them pushes back where what stands
                there does not bear the press.
            then: Where the brick goes next, kept in the hand: the grasp is chosen for all.
            parameters: Numbers of this task; None: the handler's.
        """
        candidates = tuple(candidates)

        def task(record: _Record) -> tuple[int, ...]:
            wanted = expectation(self._world.graph, goal)
            _require_loose(self._world, goal)
            job = InsertionTask(goal, wanted, candidates, release, tuple(then))
            try:
                self._insert(record, job, others)
            except TaskError:
                for other in others:
                    let_loose(other.hand)
                raise
            return tuple(c.id for c in self._world.graph.connections_of(goal.part))

        return self._run(goal.part, parameters, task)

    def take_off(
        self,
        part_id: int,
        method: str = "lift",
        *,
        place: Array | None = None,
        parameters: TaskParameters | None = None,
    ) -> Report:
        """Takes a brick off a structure and puts it on the table, also one that a canceled task
        has in the hand already.

        Args:
            part_id: The brick; nothing may stand on it.
            method: ``lift`` pulls straight up; ``twist`` tilts it about an edge first, which
                takes less force.
            place: (4, 4) world_T_part [m] where it goes; None: a free place of the table.
            parameters: Numbers of this task; None: the handler's.
        """

        def task(record: _Record) -> tuple[int, ...]:
            require_removable(self.hand, part_id, method)
            broken = tuple(c.id for c in self._world.graph.connections_of(part_id))
            if broken:
                put_down(self.hand)
            mark = len(self._world.events)

            def others() -> list[ConnectionKey]:
                lost = lost_connections(self._world.graph, self._world.events[mark:])
                return [key for key in lost if part_id not in key[:2]]

            try:
                self._try(
                    record,
                    lambda: try_removal(self.hand, part_id, method, place),
                    lambda: clear_hand(self.hand, part_id),
                )
            except TaskError as error:
                if error.outcome in (Outcome.CANCELED, Outcome.TIMEOUT) or not others():
                    raise
                raise TaskError(f"connections {others()} broke", Outcome.STRUCTURE_BROKE) from error
            self.hand.enter(Stage.VERIFYING)
            if others():
                raise TaskError(f"connections {others()} broke, too", Outcome.STRUCTURE_BROKE)
            return broken

        return self._run(part_id, parameters, task)

    def make_room(
        self,
        goals: Sequence[InsertionGoal],
        later: Sequence[InsertionGoal] = (),
        others: Sequence[BrickHandler] = (),
        *,
        seats: Sequence[InsertionGoal] = (),
        most: int | None = None,
    ) -> Report:
        """Moves bricks on the table to where others can be joined to them; see `siting.prepare`.

        Args:
            goals: Insertions of one part, which stays in the hand from one to the next.
            later: What is joined afterwards.
            others: Other arms, which may move the bricks, too.
            seats: How what was joined is put on what stands firm then.
            most: How many bricks that hang together may be moved; 0: nothing moves, the report
                tells whether all lies well. None: all.
        """
        hands = [self.hand, *(other.hand for other in others)]
        for hand in hands:
            hand.use(self.parameters)

        def task(_record: _Record) -> tuple[int, ...]:
            try:
                prepare(self.hand, hands, goals, later, seats, most=most)
            except TaskError:
                for hand in hands if most != 0 else ():
                    hand.motion.relax()
                raise
            return ()

        return self._run(goals[0].target, None, task)

    # -- pieces, for tasks of two arms ----------------------------------------------------------

    def pick(self, part_id: int, candidates: Iterable[Grasp]) -> Grasp:
        """Picks a brick from the table with the first of some grasps that works.

        Raises:
            TaskError: None works, or the brick was not gripped.
        """
        self.hand.enter(Stage.PLANNING)
        choice = self.hand.chooser.choose(((part_id, g) for g in candidates), self.hand.locate)
        self.hand.grip(choice)
        return choice.grasp

    def take(self, part_id: int, grasp: Grasp, giver: BrickHandler) -> None:
        """Takes a brick out of another arm's gripper; raises as `exchanging.take`."""
        take(self.hand, part_id, grasp, giver.hand)

    def lay_ready(self, joins: Sequence[Join], others: Sequence[BrickHandler]) -> Report:
        """Moves bricks to where this arm joins them in the hand; see `regripping.lay_ready`.

        Args:
            joins: What is pressed onto what: the part of each is the target of the one before.
            others: Other arms, which may move the bricks, too.
        """
        hands = [self.hand, *(other.hand for other in others)]

        def task(_record: _Record) -> tuple[int, ...]:
            for hand in hands:
                hand.use(self.parameters)
                put_down(hand)
                stand_back(hand)
            lay_ready(self.hand, hands, joins)
            return ()

        return self._run(joins[0].goal.target, None, task)

    def hand_over(self, group: HeldGroup, taker: BrickHandler, *, bring: bool = False) -> Report:
        """Picks the part that a group is joined to and has another arm hold it in the air.

        Args:
            group: What will be joined there.
            taker: The arm that is to hold it.
            bring: True: what this arm does not reach the other one brings first.
        """
        taker.hand.use(self.parameters)

        def task(record: _Record) -> tuple[int, ...]:
            self._try(
                record,
                lambda: hold_aloft(taker.hand, self.hand, group, bring),
                lambda: clear_hands(taker.hand, self.hand),
            )
            return ()

        return self._run(group.holder, None, task)

    def take_over(self, group: HeldGroup, holder: BrickHandler) -> Report:
        """Takes what was joined out of the hand of the arm that holds it."""

        def task(record: _Record) -> tuple[int, ...]:
            self._try(
                record,
                lambda: take_whole(self.hand, holder.hand, group),
                lambda: clear_hands(holder.hand, self.hand),
            )
            return ()

        return self._run(group.holder, None, task)

    def relieve(self, holder: BrickHandler) -> Report:
        """Takes what another arm holds in the air and puts it on the table."""
        part = holder.motion.held or self.motion.held or 0

        def task(_record: _Record) -> tuple[int, ...]:
            relieve(holder.hand, self.hand)
            return ()

        return self._run(part, None, task)

    def holds_aloft(self, part_id: int) -> bool:
        """Whether the arm holds a brick in the air from the side, for another one to press on."""
        return holds_aloft(self.hand, part_id)

    def let_go(self) -> None:
        """Opens the gripper around a brick that something else holds and moves back."""
        self.hand.let_go()

    def carry(self, world_T_part: Array) -> None:
        """Moves the held brick to a pose ((4, 4) [m]) in free space.

        Raises:
            TaskError: Nothing is held or the pose cannot be reached.
        """
        grasp = self.hand.grasp
        if grasp is None:
            raise TaskError(f"{self.motion.arm.name} holds no brick", Outcome.BRICK_LOST)
        self.hand.enter(Stage.TRANSFERRING)
        self.motion.go_to_pose(world_T_part @ grasp.part_T_tool)

    # -- inside -------------------------------------------------------------------------------

    def _run(
        self,
        part_id: int,
        parameters: TaskParameters | None,
        task: Callable[[_Record], tuple[int, ...]],
    ) -> Report:
        """Runs a task from beginning to report; the arm rests in the end, whatever happens."""
        self.hand.use(parameters or self.parameters)
        record = _Record(self.hand, part_id)
        connections: tuple[int, ...] = ()
        try:
            connections = task(record)
            record.succeeded()
        except TaskError as error:
            self.motion.relax()
            record.gave_up(error)
        except UnknownIdError as error:
            self.motion.relax()
            record.gave_up(TaskError(f"gone from the scene: {error}", Outcome.BRICK_MISSING))
        finally:
            self.hand.support = None
            self.motion.controller.hold()
            self.hand.end()
        return record.report(connections)

    def _try(self, record: _Record, attempt: Callable[[], None], mend: Callable[[], None]) -> None:
        """Tries until it works.

        Raises:
            TaskError: It did not, in all tries, or mending failed.
        """
        for number in itertools.count(self.hand.attempt):
            self.hand.attempt = number
            try:
                return attempt()
            except TaskError as error:
                record.failed(error)
                try:
                    mend()
                except TaskError as stuck:
                    if stuck.outcome not in _STUCK:
                        raise
                    raise TaskError(str(stuck), error.outcome) from stuck
                if number >= self.hand.parameters.tries:
                    raise

    def _insert(self, record: _Record, job: InsertionTask, others: Sequence[BrickHandler]) -> None:
        """Inserts and puts back what broke loose elsewhere."""
        mark = len(self._world.events)
        self._try_insertion(record, job, others)
        for _ in range(_REPAIRS):
            lost = [
                key
                for key in lost_connections(self._world.graph, self._world.events[mark:])
                # What the bricks were wrongly connected to is not missed.
                if key in job.wanted.connections or job.wanted.parts_apart_from(key)
            ]
            if not lost:
                return
            broke = TaskError(f"connections {lost} broke", Outcome.STRUCTURE_BROKE)
            record.failed(broke)
            stud, hole, offset, yaw = lost[0]
            goal = InsertionGoal(hole, stud, offset, yaw)
            self.hand.attempt += 1
            try:
                repair = InsertionTask(goal, expectation(self._world.graph, goal))
                self._try_insertion(record, repair, others)
            except TaskError as error:
                if error.outcome in (Outcome.CANCELED, Outcome.TIMEOUT):
                    raise
                raise TaskError(
                    f"{broke}; putting it back failed: {error}", Outcome.STRUCTURE_BROKE
                ) from error
        raise TaskError(
            f"connections still break after {_REPAIRS} repairs", Outcome.STRUCTURE_BROKE
        )

    @staticmethod
    def _may_help(other: BrickHandler, job: InsertionTask) -> bool:
        """Whether another arm is free, or holds what is to be inserted."""
        return other.motion.held is None or job.goal.part in other.motion.carried()

    def _try_insertion(
        self, record: _Record, job: InsertionTask, others: Sequence[BrickHandler]
    ) -> None:
        """All tries of one insertion, another arm pushing back where it has to."""

        def stand_aside() -> None:
            self.hand.support = None
            for other in others:
                stand_back(other.hand)

        def attempt() -> None:
            stand_aside()
            # What came apart in another try is joined again first.
            for part in (*broken_inside(self._world.graph, job), job):
                free = next((o.hand for o in others if self._may_help(o, part)), None)
                if free is not None:
                    ready_grip(self.hand, free, part)
                brace = None if free is None else Brace(free, self.hand, part)
                try:
                    try_insertion(self.hand, part, brace)
                except UnreachableError:
                    if free is None or not bring_target(self.hand, free, part):
                        raise
                    try_insertion(self.hand, part, brace)
                stand_aside()

        def mend() -> None:
            # The press is over: what pushed back would push the structure up now.
            self.hand.support = None
            recover(self.hand, job)

        self._try(record, attempt, mend)


def _require_loose(world: World, goal: InsertionGoal) -> None:
    """Refuses to pick what the world holds, unless it sits where it is wanted already.

    Raises:
        TaskError: Names what is held.
    """
    seated = goal_key(goal) in connections_of(world.graph, [goal.part])
    if seated or not world.is_fixed(goal.part):
        return
    if goal.part in world.fixed_parts:
        raise TaskError(f"brick {goal.part} is held by the world", Outcome.INVALID_GOAL)
    raise TaskError(
        f"brick {goal.part} sits on something that is held by the world: take it off first",
        Outcome.INVALID_GOAL,
    )


class _Record:
    """Collects what a report says."""

    def __init__(self, hand: Hand, part_id: int) -> None:
        self._hand = hand
        self._part_id = part_id
        self._begin = hand.world.time
        self._planning = hand.motion.planning_time
        self._failures: list[TaskError] = []
        self._outcome = Outcome.SUCCEEDED
        self._message = ""
        hand.motion.clearance = CLEARANCES[0]
        hand.begin(part_id)

    def failed(self, error: TaskError) -> None:
        """A try failed; raises the error again if another one is hopeless."""
        if error.outcome in _HOPELESS:
            raise error
        self._failures.append(error)

    def gave_up(self, error: TaskError) -> None:
        """No further try is possible."""
        self._outcome = error.outcome
        self._message = str(error)
        if self._failures and str(self._failures[-1]) != str(error):
            self._message = f"{self._failures[-1]}; then: {error}"

    def succeeded(self) -> None:
        """It went well in the end."""
        self._outcome, self._message = Outcome.SUCCEEDED, ""

    def report(self, connection_ids: tuple[int, ...]) -> Report:
        """The report."""
        hand = self._hand
        return Report(
            self._part_id,
            hand.motion.arm.name,
            self._outcome,
            self._message,
            hand.attempt,
            hand.world.time - self._begin,
            hand.motion.planning_time - self._planning,
            hand.greatest,
            hand.motion.clearance,
            connection_ids,
            tuple(error.outcome for error in self._failures),
            tuple(str(error) for error in self._failures),
        )
