# SPDX-License-Identifier: Apache-2.0
"""What hangs together is carried no faster than its joints bear."""

import numpy as np
import pytest
from arms_support import bench, resting_scene, yawed

from bricksim_core.events import EventKind
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.carrying import Load, gentle
from bricksim_moveit_demo.description import one_arm
from bricksim_moveit_demo.grasps import grasps
from bricksim_moveit_demo.kinematics import ArmKinematics
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions

HANGING, HELD = 1, 2
OFFSET = (-3, 0)
"""The lower brick hangs by two studs at its end."""
AT_REST = np.zeros(6)


def _shapes(mass):
    return {HANGING: BrickShape(8, 2, mass=mass), HELD: BrickShape(4, 2)}


def _group(mass):
    graph = BrickTopologyGraph()
    for part, shape in _shapes(mass).items():
        graph.add_part(shape, part_id=part)
    graph.connect(HANGING, HELD, OFFSET, 0)
    return graph


def _load(mass):
    graph = _group(mass)
    return Load(graph.layout(graph.component_of(HELD)), {HELD}, np.eye(4))


@pytest.mark.parametrize("acceleration", [(0.0, 0.0, 2.0), (1.5, 0.0, 0.5), (0.0, -3.0, -1.0)])
def test_accelerating_loads_joints_as_gravity_from_elsewhere(acceleration):
    graph, load = _group(0.03), _load(0.03)
    weight, inertial = load.forces(np.eye(4), AT_REST, np.array([*acceleration, 0.0, 0.0, 0.0]))
    fixed = Structure(graph, {graph.component_of(HELD): np.eye(4)}, frozenset({HELD}))
    gravity = np.array([0.0, 0.0, -9.81]) - acceleration
    expected = analyze(fixed, gravity=gravity, limit=False).max_utilization
    assert load.utilization(weight + inertial) == pytest.approx(expected, rel=1e-6)
    assert load.utilization(weight) == pytest.approx(0.697, abs=1e-3)


def test_turning_loads_what_is_far_from_the_axis():
    """About the tool's z axis at w: mass w^2 r outwards, mass alpha r across, and -I alpha."""
    load, mass, spin, change = _load(0.03), 0.03, 2.0, 5.0
    graph = _group(0.03)
    layout = graph.layout(graph.component_of(HELD))
    motion = np.array([0.0, 0.0, 0.0, 0.0, 0.0, spin]), np.array([0.0, 0.0, 0.0, 0.0, 0.0, change])
    _, inertial = load.forces(np.eye(4), *motion)
    x, y, _ = layout.coms[0]
    expected = mass * (spin**2 * np.array([x, y]) - change * np.array([-y, x]))
    np.testing.assert_allclose(inertial[0, :2], expected, atol=1e-12)
    about = mass / 12.0 * (0.064**2 + 0.016**2)
    assert inertial[0, 5] == pytest.approx(-about * change)


def _planned(goal=(0.8, -0.2, 0.3, -2.0, 0.3, 1.9, 1.5)):
    arms = one_arm()
    planner = EmbeddedPlanner(arms, PlanningOptions())
    trajectory = planner.plan_to_joints(resting_scene(arms), arms[0], [np.array(goal)])
    return trajectory, ArmKinematics(arms[0])


def test_motion_is_stretched_until_half_of_what_gravity_leaves_bears_it():
    trajectory, arm = _planned()
    held = np.diag([1.0, -1.0, -1.0, 1.0])
    graph = _group(0.04)
    load = Load(graph.layout(graph.component_of(HELD)), {HELD}, held)

    def highest(motion):
        rows = zip(motion.positions, motion.velocities, motion.accelerations, strict=True)
        forces = [load.forces(*arm.tool_motion(*row)) for row in rows]
        rest = max(load.utilization(weight) for weight, _ in forces)
        return rest, max(load.utilization(np.sum(both, axis=0)) for both in forces)

    rest, before = highest(trajectory)
    motion = gentle(trajectory, arm, load)
    _, after = highest(motion)
    assert before > 1.0 and after < 1.0
    assert after <= rest + 0.5 * (1.0 - rest) + 1e-6
    np.testing.assert_array_equal(motion.positions, trajectory.positions)
    assert 1.0 < motion.duration / trajectory.duration < 3.0


def test_carried_group_keeps_together_with_little_capacity_left():
    """At rest its joint bears 1.01 times its weight; at the planner's speed it broke on the way."""
    b = bench(_shapes(0.0425), {HANGING: yawed(0.5, -0.25), HELD: yawed(0.5, 0.3)})
    b.simulator.connect(HANGING, HELD, OFFSET, 0)
    used = []
    b.handler.pick(HELD, grasps(BrickShape(4, 2), b.handler.parameters))
    b.world.listeners.append(lambda result: used.append(result.utilization.max(initial=0.0)))
    for place in (yawed(0.5, -0.25, 0.25), yawed(0.45, 0.3, 0.25)):
        b.handler.carry(place)
    assert 0.97 < max(used) < 1.0
    assert all(event.kind is not EventKind.BROKEN for event in b.world.events)
