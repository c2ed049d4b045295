# SPDX-License-Identifier: Apache-2.0
"""Before anything moves: an order of building in which every state bears its next press.

An arm's press may act in the middle of the engaged studs or on their rims (`presscheck`). The
sequence planner searches for an order that bears that; a structure for which there is none is
refused as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.sequencing import plan_assembly
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import Insertion, base_part, insertions
from bricksim_moveit_demo.connections import expectation
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.presscheck import MARGIN, PressCheck

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


def plan_bearable(
    structure: Structure, parameters: TaskParameters, arms: int = 1
) -> list[Insertion]:
    """Insertions that build a structure, each with a press that what stands there by then bears.

    Args:
        structure: What is to be built.
        parameters: Forces.
        arms: How many arms there are.

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
        arms: With two, one pushes back where it helps; whether it gets there is found out when the
            brick's turn comes.

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
