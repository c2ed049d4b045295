# SPDX-License-Identifier: Apache-2.0
"""Before anything moves: an order of building in which every state bears its next press.

An arm's press may act in the middle of the engaged studs or on their rims (`presscheck`). The
sequence planner searches for an order that bears that; a structure for which there is none is
refused as a whole. So is one where a second hand does not get to where it has to push back, unless
there is an order that does without.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.events import ConnectionEvent
from bricksim_core.sequencing import SequenceError, plan_assembly
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.aloft import Join
from bricksim_moveit_demo.building import Insertion, base_part, insertions, join_of
from bricksim_moveit_demo.connections import expectation, joined, relative_pose
from bricksim_moveit_demo.errors import TaskError
from bricksim_moveit_demo.exchanging import Brace
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import InsertionTask
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.scene import PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.presscheck import MARGIN, PressCheck
from bricksim_moveit_demo.sighting import Sightings
from bricksim_moveit_demo.world import World

_APART = 2.0
"""Distance at which what is not connected yet stands [m]."""


class _Planned:
    """A state of the building: each component stands on the table, apart from all others."""

    def __init__(self, structure: Structure) -> None:
        self.graph = BrickTopologyGraph()
        for part in structure.graph.parts():
            self.graph.add_part(part.shape, part.color, part_id=part.id)
        self.fixed_parts = frozenset({base_part(structure)})

    def part_pose(self, part_id: int) -> Array:
        """(4, 4) world_T_part [m]."""
        component = self.graph.component_of(part_id)
        layout = self.graph.layout(component)
        lowest = float(layout.component_T_parts[:, 2, 3].min())
        row = int(np.flatnonzero(np.asarray(layout.part_ids) == part_id)[0])
        return transform([_APART * component, 0.0, -lowest]) @ layout.component_T_parts[row]


class _FutureWorld:
    """A scene as it will be: more is joined, nothing is in the hands.

    What stands firm by then is where it will be; what will be joined apart from it, together.
    """

    def __init__(self, world: World, graph: BrickTopologyGraph) -> None:
        self._world = world
        self.graph = graph
        self.time, self.period = world.time, world.period
        self.arms, self.execution = world.arms, world.execution
        self.fixed_parts = world.fixed_parts
        self.held: dict[str, int] = {}
        self.events: tuple[ConnectionEvent, ...] = ()
        self.sightings: dict[int, Sightings] = {}
        self._first: dict[int, int] = {}
        for component in graph.component_ids:
            parts = graph.component_parts(component)
            first = min(self.fixed_parts.intersection(parts) or parts)
            self._first.update(dict.fromkeys(parts, first))

    def check(self) -> None:
        """See `World.check`."""
        self._world.check()

    def advance(self) -> None:
        """See `World.advance`."""
        self._world.advance()

    def compute[T](self, work: Callable[[], T]) -> T:
        """See `World.compute`."""
        return self._world.compute(work)

    def part_pose(self, part_id: int) -> Array:
        """See `World.part_pose`."""
        first = self._first[part_id]
        return self._world.part_pose(first) @ relative_pose(self.graph, first, part_id)

    def observe(self, world_T_frame: Array) -> Array:
        """See `World.observe`: nothing is to be seen yet."""
        return world_T_frame

    def is_fixed(self, part_id: int) -> bool:
        """See `World.is_fixed`."""
        return self._first[part_id] in self.fixed_parts

    def planning_scene(self) -> PlanningScene:
        """See `World.planning_scene`."""
        scene, graph = self._world.planning_scene(), self.graph
        boxes = {
            brick_name(part): brick_box(graph.part(part).shape, self.part_pose(part))
            for part in graph.part_ids
        }
        return replace(scene, objects={**scene.objects, **boxes}, attached={})


def within_reach(
    structure: Structure,
    steps: Sequence[Insertion],
    world: World,
    hands: Sequence[Hand],
    ids: Mapping[int, int] | None = None,
) -> list[Insertion]:
    """Insertions for which a second hand gets to where it has to push back.

    Args:
        structure: What is to be built.
        steps: How; where a second hand has no place, an order without that press is looked for.
        world: The scene; nothing moves.
        hands: Its arms, one or two.
        ids: World part ids by structure part ids; None: they are the same. What is not on the
            table yet is not looked at.

    Raises:
        StructureError: There is no such order; the text names the brick and why.
    """
    alone: dict[int, str] = {}
    steps = list(steps)
    while (stuck := _first_without_hold(steps, world, hands, ids or {})) is not None:
        part, reason = stuck
        try:
            if part in alone:
                raise SequenceError("no other order was found", proven=False)
            alone[part] = reason
            steps = plan_bearable(structure, hands[0].parameters, len(hands), alone)
        except (SequenceError, StructureError) as error:
            raise StructureError(
                f"{structure.name}: brick {part}: {reason}; without that: {error}"
            ) from error
    return steps


def _first_without_hold(
    steps: Iterable[Insertion], world: World, hands: Sequence[Hand], ids: Mapping[int, int]
) -> tuple[int, str] | None:
    """The first brick for whose press a second hand is needed and has no place, and why."""
    graph = world.graph
    for step in steps if len(hands) > 1 else ():
        join = join_of(step, ids)
        if join.goal.part not in graph or join.goal.target not in graph:
            return None
        if step.holder is None and graph.component_of(join.goal.part) != graph.component_of(
            join.goal.target
        ):
            reason = _no_hold(_FutureWorld(world, graph), hands, join)
            if reason:
                return step.goal.part, reason
        graph = joined(graph, [join.goal])
    return None


def _no_hold(future: _FutureWorld, hands: Sequence[Hand], join: Join) -> str:
    """Why no second hand can push back where one is needed; empty if one can or none is needed."""
    reason = ""
    for presser, helper in itertools.permutations(hands, 2):
        job = InsertionTask(join.goal, expectation(future.graph, join.goal), join.candidates)
        brace = Brace(helper.elsewhere(future), presser.elsewhere(future), job)
        if not brace.needed():
            return ""
        try:
            brace.foresee()
            return ""
        except TaskError as error:
            reason = reason or str(error)
    return reason


def plan_bearable(
    structure: Structure,
    parameters: TaskParameters,
    arms: int = 1,
    alone: Iterable[int] = (),
) -> list[Insertion]:
    """Insertions that build a structure, each with a press that what stands there by then bears.

    Args:
        structure: What is to be built.
        parameters: Forces.
        arms: How many arms there are.
        alone: Bricks for whose press no second hand has a place.

    Raises:
        SequenceError: No order was found; the text names the bricks and why.
        StructureError: It needs more than these arms can do, or does not bear a press.
    """
    plan = plan_assembly(
        structure,
        arms=arms,
        base=[base_part(structure)],
        press_force=MARGIN * parameters.least_press_force,
        press_on_rims=True,
        alone=alone,
    )
    steps = insertions(structure, plan, arms)
    require_bearable(structure, steps, parameters, arms)
    return steps


def require_bearable(
    structure: Structure, steps: Sequence[Insertion], parameters: TaskParameters, arms: int = 1
) -> None:
    """Checks the presses of all insertions with the state that each of them meets.

    Args:
        structure: What is to be built.
        steps: How.
        parameters: Forces.
        arms: With two, one pushes back where it helps; whether it gets there `within_reach` tells.

    Raises:
        StructureError: A state does not bear the least press; the text names the brick and what
            gives way.
    """
    state = _Planned(structure)
    for number, step in enumerate(steps, 1):
        goal, force = step.goal, parameters.least_press_force
        wanted = expectation(state.graph, goal)
        reason, held = "", () if step.holder is None else (step.holder,)
        holds = [grasp.held_with(part) for part, grasp in step.grasps]
        for between in dict.fromkeys([frozenset({goal.part}), *holds]):
            check = PressCheck(state, wanted.parts, between, wanted.connections, held)
            checks = [check]
            if arms > 1 and step.holder is None:
                checks += [check.pushed(part, check.middle) for part in check.lower_parts]
            verdict, *with_push = (c.verdict(force, force) for c in checks)
            if not verdict.reason or not all(v.reason for v in with_push):
                break
            reason = reason or verdict.reason
        else:
            raise StructureError(
                f"{structure.name}: brick {goal.part} (insertion {number} of {len(steps)}):"
                f" pressing it onto brick {goal.target} with {force:.1f} N would break what is"
                f" there by then: {reason}"
            )
        state.graph.connect(goal.target, goal.part, goal.offset, goal.yaw)
