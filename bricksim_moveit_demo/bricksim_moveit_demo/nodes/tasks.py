# SPDX-License-Identifier: Apache-2.0
"""Handling bricks as actions: pick_and_insert, build_structure, disassemble."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle

from bricksim_core.errors import BrickSimError, EngineError
from bricksim_core.formats import Format, parse_structure, read_structure
from bricksim_core.spatial import Array
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import BuildLog, StructureBuilder, Summary, needed
from bricksim_moveit_demo.errors import Outcome, TaskError, outcome_of
from bricksim_moveit_demo.foreseeing import plan_bearable, within_reach
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.layout import packing
from bricksim_moveit_demo.matching import find_base, match_bricks, require_all
from bricksim_moveit_demo.nodes.parameters import FEEDBACK_RATE, task_parameters
from bricksim_moveit_demo.nodes.supplies import put_down
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.protocol import MotionPlanner
from bricksim_moveit_demo.reports import HandlingStage, InsertionGoal, Report
from bricksim_moveit_demo.supplying import Supply
from bricksim_moveit_demo.world import SimulatedWorld
from bricksim_msgs import action, msg
from bricksim_ros import conversions, parameters
from bricksim_ros.publishing import EVENTS, Rate
from bricksim_ros.running import unexpected
from bricksim_ros.scene import resolve_uri
from bricksim_ros.server import Advance, Server
from bricksim_ros.simulator_node import SimulationEndedError, SimulatorNode

_MAX_TEXT = 20_000_000
"""Longest structure file as text [characters]."""


@dataclass(frozen=True, eq=False)
class _Task:
    """An accepted goal and what carries it out."""

    handle: ServerGoalHandle
    run: Callable[[ServerGoalHandle], Any]
    refuse: Callable[[ServerGoalHandle, str, Outcome], Any]

    def refused(self, text: str, outcome: Outcome = Outcome.INVALID_GOAL) -> Any:
        """The result that says why it was not carried out."""
        return self.refuse(self.handle, text, outcome)


class TaskServer(Server):
    """Serves the actions that handle bricks, one goal at a time, and publishes how far they are.

    Args:
        node: Node that owns the actions and the parameters.
        world: The scene.
        planner: Plans the motions of all arms.
        preempt: Called when a task begins, so that other goals of the arms end.
    """

    def __init__(
        self,
        node: SimulatorNode,
        world: SimulatedWorld,
        planner: MotionPlanner,
        preempt: Callable[[str], None],
    ) -> None:
        self._node = node
        self._world = world
        self._preempt = preempt
        self._queue: deque[_Task] = deque()
        self._running = ""
        self._feedback: Callable[[str, HandlingStage], None] | None = None
        self._rate = Rate(FEEDBACK_RATE)
        self._told: dict[str, HandlingStage] = {}
        self._stages = {
            name: node.create_publisher(msg.HandlingStage, f"{name}/handling_stage", EVENTS)
            for name in world.arms
        }
        self.handlers: dict[str, BrickHandler] = {
            name: BrickHandler(world, planner, name, feedback=self._told_by(name))
            for name in world.arms
        }
        kinds = {
            "pick_and_insert": (action.PickAndInsert, self._pick_and_insert, _no_insertion),
            "disassemble": (action.Disassemble, self._disassemble, _no_removal),
            "build_structure": (action.BuildStructure, self._build, _nothing_built),
        }
        self._servers = [
            ActionServer(
                node,
                kind,
                name,
                handle_accepted_callback=self._accepting(run, refuse),
                cancel_callback=self._cancel,
            )
            for name, (kind, run, refuse) in kinds.items()
        ]

    def destroy(self) -> None:
        """Takes the actions away; goals end."""
        while self._queue:
            task = self._queue.popleft()
            task.handle.abort(task.refused("the node shuts down", Outcome.INTERRUPTED))
        for server in self._servers:
            server.destroy()
        for publisher in self._stages.values():
            self._node.destroy_publisher(publisher)

    def busy(self) -> str:
        """What is being done, as a reason to refuse something else; empty if nothing is."""
        return f"the arms are busy with {self._running}" if self._running else ""

    def take_job(self) -> Callable[[Advance], None] | None:
        """The next goal."""
        if not self._queue:
            return None
        task = self._queue.popleft()
        return lambda advance: self._work(task, advance)

    def reset(self, reason: str) -> None:
        """The scene was put back to its beginning: nothing is held, a running task ends."""
        self._world.reset()
        for handler in self.handlers.values():
            handler.hand.forget_grip()
        if self._running:
            self._world.cancel(reason)

    def running(self, name: str, advance: Advance, work: Callable[[], None]) -> None:
        """Does some work with the arms, making steps through ``advance``."""
        self._preempt(f"preempted by {name}")
        self._running = name
        self._world.step = advance
        self._world.forget_cancel()
        try:
            work()
            self._rest()
        finally:
            self._running = ""
            self._feedback = None
            self._told.clear()
            self._world.step = self._world.simulator.step
            self._world.forget_cancel()

    def prepare(self, parameters: TaskParameters | None = None) -> None:
        """Gives the handlers the node's parameters as they are now, and has them forget what has
        left the scene.

        Raises:
            TaskError: One is not acceptable.
        """
        chosen = parameters or task_parameters(self._node)
        for handler in self.handlers.values():
            handler.parameters = chosen
            handler.hand.forget_missing()

    # -- goals --------------------------------------------------------------------------------

    def _accepting(
        self,
        run: Callable[[ServerGoalHandle], Any],
        refuse: Callable[[ServerGoalHandle, str, Outcome], Any],
    ) -> Callable[[ServerGoalHandle], None]:
        def accepted(handle: ServerGoalHandle) -> None:
            handle.executing()
            task = _Task(handle, run, refuse)
            reason = self.busy() or ("another goal waits" if self._queue else "")
            if reason:
                handle.abort(task.refused(reason))
            else:
                self._queue.append(task)

        return accepted

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        if self._running and not any(task.handle == handle for task in self._queue):
            self._world.cancel()
        return CancelResponse.ACCEPT

    def _work(self, task: _Task, advance: Advance) -> None:
        handle = task.handle

        def work() -> None:
            if handle.is_cancel_requested:
                handle.canceled(task.refused("canceled before it began", Outcome.CANCELED))
                return
            try:
                self.prepare()
                result = task.run(handle)
            except EngineError as error:
                handle.abort(task.refused(str(error)))
                raise
            except SimulationEndedError:
                handle.abort(task.refused("the simulation has ended", Outcome.INTERRUPTED))
                raise
            except BrickSimError as error:
                result = task.refused(str(error), outcome_of(error))
            except ValueError as error:
                result = task.refused(str(error))
            except Exception as error:
                result = task.refused(unexpected(self._node, error))
            if result.success:
                handle.succeed(result)
            elif handle.is_cancel_requested:
                handle.canceled(result)
            else:
                handle.abort(result)

        self.running(_name(handle), advance, work)

    def _pick_and_insert(self, handle: ServerGoalHandle) -> action.PickAndInsert.Result:
        request = handle.request
        chosen = _with_limits(
            task_parameters(self._node),
            max_press_force=request.max_press_force,
            timeout=request.timeout,
        )
        goal = InsertionGoal(
            request.part_id,
            request.target_part,
            (int(request.offset[0]), int(request.offset[1])),
            request.yaw % 4,
        )

        def tell(_arm: str, now: HandlingStage) -> None:
            handle.publish_feedback(
                action.PickAndInsert.Feedback(
                    stage=now.stage, attempt=now.attempt, press_force=now.force
                )
            )

        self._feedback = tell
        report = self._first_that_reaches(
            request.arm, goal.part, lambda h: h.pick_and_insert(goal, parameters=chosen)
        )
        return action.PickAndInsert.Result(success=report.success, report=report_message(report))

    def _disassemble(self, handle: ServerGoalHandle) -> action.Disassemble.Result:
        request = handle.request
        place = self._place(request.place)

        def tell(_arm: str, now: HandlingStage) -> None:
            handle.publish_feedback(
                action.Disassemble.Feedback(stage=now.stage, pull_force=-now.force)
            )

        def take_off(handler: BrickHandler) -> Report:
            methods = [request.method] if request.method else ["lift", "twist"]
            for method in methods:
                report = handler.take_off(request.part_id, method, place=place)
                if report.outcome is not Outcome.FORCE_LIMIT:
                    break
            return report

        self._feedback = tell
        report = self._first_that_reaches(request.arm, request.part_id, take_off)
        return action.Disassemble.Result(success=report.success, report=report_message(report))

    def _build(self, handle: ServerGoalHandle) -> action.BuildStructure.Result:
        request = handle.request
        structure = _structure(request)
        arms = self._arms(request.arms)
        base = None if request.base_part < 0 else request.base_part
        state = action.BuildStructure.Feedback()

        def tell(arm: str, now: HandlingStage) -> None:
            state.arm, state.stage = arm, now.stage
            handle.publish_feedback(state)

        def starting(part_id: int, arm: str, inserted: int, total: int) -> None:
            state.part_id, state.arm = part_id, arm
            state.inserted, state.total = inserted, total

        self._feedback = tell
        try:
            supply = self._supply(structure, base, len(arms)) if request.supply else None
            summary = self.build(
                structure, arms, base, starting, request.stop_at_failure, supply=supply
            )
        except EngineError:
            raise
        except BrickSimError as error:
            summary = BuildLog(structure).cut_off(outcome_of(error), str(error), 0.0)
        return action.BuildStructure.Result(
            success=summary.success,
            message=summary.message,
            outcome=str(summary.outcome),
            inserted=summary.inserted,
            total=summary.total,
            reports=[report_message(report) for report in summary.reports],
        )

    def build(
        self,
        structure: Structure,
        arms: Mapping[str, BrickHandler] | None = None,
        base: int | None = None,
        starting: Callable[[int, str, int, int], None] | None = None,
        stop_at_failure: bool = False,
        progress: Callable[[Report, int, int], None] | None = None,
        supply: Supply | None = None,
    ) -> Summary:
        """Builds a structure from bricks of the scene, or from those of a supply.

        Raises:
            BrickSimError: It cannot be built, or bricks are missing.
        """
        handlers = arms or self.handlers
        parameters = next(iter(handlers.values())).parameters
        count = len(handlers)
        steps = self._world.compute(lambda: plan_bearable(structure, parameters, count))
        order = needed(steps)
        if supply is None:
            fixed, graph = self._world.fixed_parts, self._world.graph
            chosen = find_base(structure, graph, fixed, base)
            ids = match_bricks(structure, graph, fixed, chosen, order)
            require_all(structure, ids)
        else:
            supply.begin(order)
            ids = supply.ids
        hands = [handler.hand for handler in handlers.values()]
        steps = within_reach(structure, steps, self._world, hands, ids)
        builder = StructureBuilder(self._world, handlers, progress, starting, supply)
        return builder.build(steps, ids, stop_at_failure)

    # -- inside -------------------------------------------------------------------------------

    def _supply(self, structure: Structure, base: int | None, arms: int) -> Supply:
        """What puts those bricks of a structure on the table that the scene lacks.

        Raises:
            TaskError: The base is not acceptable, or has no room.
        """
        fixed, graph = self._world.fixed_parts, self._world.graph
        there: dict[int, int] = {}
        try:
            chosen = find_base(structure, graph, fixed, base)
            there = match_bricks(structure, graph, fixed, chosen)
        except TaskError as error:
            if error.outcome is not Outcome.BRICK_MISSING:
                raise
        return Supply(
            self._world.simulator,
            structure,
            packing(arms, structure),
            parameters.value(self._node, "seed"),
            put=partial(put_down, self._node, self._world.simulator),
            there=there,
        )

    def _told_by(self, arm: str) -> Callable[[HandlingStage], None]:
        def told(now: HandlingStage) -> None:
            last = self._told.get(arm)
            self._told[arm] = now
            news = last is None or last != replace(now, force=last.force)
            # A change is always told, a force only now and then.
            if not (self._rate.due(self._world.time) or news):
                return
            self._publish(arm, now.stage, now)
            if self._feedback is not None:
                self._feedback(arm, now)

        return told

    def _rest(self) -> None:
        """Tells that the arms have no task any more."""
        for arm, last in self._told.items():
            self._publish(arm, msg.HandlingStage.IDLE, replace(last, force=0.0))

    def _publish(self, arm: str, stage: str, now: HandlingStage) -> None:
        self._stages[arm].publish(
            msg.HandlingStage(
                header=conversions.header(conversions.time_message(self._world.time), ""),
                part_id=now.part_id,
                stage=stage,
                attempt=now.attempt,
                force=float(now.force),
            )
        )

    def _arms(self, names: list[str]) -> dict[str, BrickHandler]:
        for name in names:
            if name not in self.handlers:
                known = ", ".join(self.handlers)
                raise TaskError(f"arm is {name!r}, expected one of {known}")
        return {n: h for n, h in self.handlers.items() if not names or n in names}

    def _first_that_reaches(
        self, arm: str, part_id: int, task: Callable[[BrickHandler], Report]
    ) -> Report:
        """Lets the named arm do it, or the one that holds the brick, or the first that reaches."""
        handlers = self._arms([arm] if arm else [])
        holding = [n for n, h in handlers.items() if part_id in h.motion.carried()]
        if not arm and holding:
            handlers = {holding[0]: handlers[holding[0]]}
        report: Report | None = None
        for handler in handlers.values():
            report = task(handler)
            if report.outcome is not Outcome.UNREACHABLE:
                break
        assert report is not None
        return report

    def _place(self, message: Any) -> Array | None:
        if not message.header.frame_id:
            return None
        frame = parameters.value(self._node, "world_frame")
        if message.header.frame_id != frame:
            raise TaskError(f"frame of place is {message.header.frame_id!r}, expected {frame!r}")
        return conversions.checked_pose(message.pose)


def report_message(report: Report) -> msg.InsertionReport:
    """bricksim_msgs/InsertionReport."""
    return msg.InsertionReport(
        part_id=report.part_id,
        arm=report.arm,
        outcome=str(report.outcome),
        message=report.message,
        tries=report.tries,
        duration=report.duration,
        planning_time=report.planning_time,
        press_force=float(report.press_force),
        clearance=float(report.clearance),
        connection_ids=list(report.connection_ids),
    )


def _name(handle: ServerGoalHandle) -> str:
    kind = type(handle.request).__name__.removesuffix("_Goal")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind).strip("_")


def _with_limits(base: TaskParameters, max_press_force: float, timeout: float) -> TaskParameters:
    """The parameters with those limits of a goal that are not 0.

    Raises:
        TaskError: Names the limit.
    """
    for name, value in (("max_press_force", max_press_force), ("timeout", timeout)):
        if not (math.isfinite(value) and value >= 0.0):
            raise TaskError(f"{name} of the goal is {value}, expected a number from 0")
    if 0.0 < max_press_force < base.least_press_force:
        raise TaskError(
            f"max_press_force of the goal is {max_press_force:g} N, expected 0 or at least"
            f" {base.least_press_force:g} N (parameter least_press_force)"
        )
    return replace(
        base,
        press_force=max_press_force or base.press_force,
        timeout=timeout or base.timeout,
    )


def _structure(request: action.BuildStructure.Goal) -> Structure:
    if bool(request.text) == bool(request.uri):
        raise TaskError("exactly one of text and uri is expected")
    if len(request.text) > _MAX_TEXT:
        raise TaskError(f"text has {len(request.text)} characters, expected at most {_MAX_TEXT}")
    try:
        kind = Format(request.format) if request.format else None
    except ValueError:
        known = ", ".join(str(f) for f in Format)
        raise TaskError(f"format is {request.format!r}, expected one of {known}") from None
    if request.uri:
        return read_structure(resolve_uri(request.uri), format=kind)
    return parse_structure(request.text, name="text", format=kind)


def _refusal(part_id: int, text: str, outcome: Outcome) -> msg.InsertionReport:
    return msg.InsertionReport(part_id=part_id, outcome=str(outcome), message=text)


def _no_insertion(
    handle: ServerGoalHandle, text: str, outcome: Outcome
) -> action.PickAndInsert.Result:
    return action.PickAndInsert.Result(report=_refusal(handle.request.part_id, text, outcome))


def _no_removal(handle: ServerGoalHandle, text: str, outcome: Outcome) -> action.Disassemble.Result:
    return action.Disassemble.Result(report=_refusal(handle.request.part_id, text, outcome))


def _nothing_built(
    _handle: ServerGoalHandle, text: str, outcome: Outcome
) -> action.BuildStructure.Result:
    return action.BuildStructure.Result(message=text, outcome=str(outcome))
