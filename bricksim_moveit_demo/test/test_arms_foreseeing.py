# SPDX-License-Identifier: Apache-2.0
"""Structures that do not bear a press on the way are refused before anything moves."""

import re
from pathlib import Path

import pytest
from arms_support import yawed

from bricksim_core.errors import StructureError
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.sequencing import SequenceError, plan_assembly
from bricksim_core.simulator import Simulator
from bricksim_moveit_demo.building import base_part, insertions, loose_bricks
from bricksim_moveit_demo.description import two_arms
from bricksim_moveit_demo.foreseeing import plan_bearable, require_bearable, within_reach
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions
from bricksim_moveit_demo.scenes import SceneOptions, assemble
from bricksim_moveit_demo.world import SimulatedWorld

HARD = TaskParameters(least_press_force=3.0)
DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"


def _steps(structure):
    base = [base_part(structure)]
    plan = plan_assembly(structure, arms=1, base=base, press_force=0.0)
    return insertions(structure, plan)


def _stair(steps):
    """Bricks of 2x4 studs, each two studs farther out than the one below."""
    lines = "".join(f"2x4 (4,{2 + 2 * z},{z})\n" for z in range(steps))
    return parse_structure(lines, baseplate=(12, 8))


def test_stair_is_refused_where_its_lowest_joint_would_give_way():
    structure = _stair(5)
    steps = _steps(structure)
    gentle = TaskParameters(least_press_force=0.01)
    require_bearable(structure, steps, gentle)  # it would stand
    with pytest.raises(StructureError) as caught:
        require_bearable(structure, steps, HARD)
    found = re.search(r"brick (\d+) \(insertion (\d+) of 5\): pressing it onto", str(caught.value))
    assert found is not None
    assert "times its capacity" in str(caught.value)
    # Up to the brick before, all is well.
    require_bearable(structure, steps[: int(found[2]) - 1], HARD)
    assert steps[int(found[2]) - 1].goal.part == int(found[1])


def test_stair_that_a_second_hand_bears_is_refused_to_one_arm_only():
    structure = _stair(5)
    steps = _steps(structure)
    with pytest.raises(StructureError, match="would break what is there"):
        require_bearable(structure, steps, TaskParameters())
    require_bearable(structure, steps, TaskParameters(), arms=2)
    with pytest.raises(StructureError, match="would break what is there"):
        require_bearable(structure, steps, TaskParameters(least_press_force=8.0), arms=2)


def test_assemble_refuses_before_anything_moves():
    reports = []
    structure = read_structure(DATA / "stablelego" / "stick_light.json")
    with pytest.raises(SequenceError, match=r"part 12 .*pressing it on with 3.6 N breaks what is"):
        assemble(
            structure,
            SceneOptions(parameters=HARD),
            progress=lambda *report: reports.append(report),
        )
    assert not reports
    assert len(plan_bearable(structure, TaskParameters())) == 13  # it bears 2 N


def test_guitar_is_planned_for_gentle_presses_only():
    structure = read_structure(DATA / "brickgpt" / "texture_guitar.txt")
    with pytest.raises(SequenceError, match=r"with 3.6 N breaks what is there"):
        plan_bearable(structure, HARD)
    steps = plan_bearable(structure, TaskParameters())
    joined = {part for step in steps for part in (step.goal.part, step.goal.target)}
    assert joined == set(structure.graph.part_ids)


def test_press_without_a_place_for_the_second_hand_is_planned_anew():
    """Long bricks, each at the end of the one below: the hand that is to push back at the third
    one would stand in the table."""
    lines = "2x2 (4,4,0)\n6x2 (4,4,1)\n2x2 (8,4,2)\n6x2 (8,4,3)\n"
    structure = parse_structure(lines)
    base, parameters = base_part(structure), TaskParameters()
    poses = {p: yawed(0.3 + 0.1 * p, 0.3) for p in structure.graph.part_ids}
    simulator = Simulator()
    simulator.spawn(
        loose_bricks(structure, {**poses, base: yawed(0.55, 0.0)}), part_ids={p: p for p in poses}
    )
    arms = two_arms()
    world, planner = SimulatedWorld(simulator, arms), EmbeddedPlanner(arms, PlanningOptions())
    hands = [BrickHandler(world, planner, arm.name, parameters).hand for arm in arms]
    steps = plan_bearable(structure, parameters, 2)
    assert all(step.release for step in steps)
    found = within_reach(structure, steps, world, hands)
    assert [(step.goal.part, step.goal.target) for step in found if not step.release] == [
        (4, 3),
        (3, 2),
    ]
    assert simulator.time == 0.0 and not world.held
    # Where hands get to all places nothing is planned anew.
    assert within_reach(structure, found, world, hands) == found
