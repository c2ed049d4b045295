# SPDX-License-Identifier: Apache-2.0
"""Scenes for the tests of the arms: the real simulator, planner and controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import Array, inverse, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.description import READY, ArmDescription, one_arm
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions
from bricksim_moveit_demo.planning.scene import PlanningScene
from bricksim_moveit_demo.reports import HandlingStage, Stage
from bricksim_moveit_demo.world import Noise, SimulatedWorld

DOWN = np.diag([1.0, -1.0, -1.0])
"""Orientation of a tool that points down, fingers moving along y."""


def yawed(x: float, y: float, z: float = 0.0, degrees: float = 0.0) -> Array:
    """A pose turned about z."""
    half = np.radians(degrees) / 2.0
    return transform([x, y, z], [0.0, 0.0, np.sin(half), np.cos(half)])


def tool_down(x: float, y: float, z: float) -> Array:
    """A tool pose that points down."""
    pose = np.eye(4)
    pose[:3, :3] = DOWN
    pose[:3, 3] = [x, y, z]
    return pose


def resting_scene(arms: Sequence[ArmDescription], **more: object) -> PlanningScene:
    """A planning scene with the arms in their ready pose, grippers open."""
    positions: dict[str, float] = {}
    for arm in arms:
        positions |= dict(zip(arm.joints, READY, strict=True))
        positions |= dict.fromkeys(arm.fingers, 0.04)
    return PlanningScene(positions, **more)  # type: ignore[arg-type]


def bricks(
    shapes: Mapping[int, BrickShape], poses: Mapping[int, Array], fixed: Sequence[int] = ()
) -> Structure:
    """Unconnected bricks at poses (world_T_part)."""
    graph = BrickTopologyGraph()
    component_poses = {}
    for part_id, shape in shapes.items():
        graph.add_part(shape, part_id=part_id)
        corner = inverse(part_pose(GridPose(), shape))
        component_poses[graph.component_of(part_id)] = poses[part_id] @ corner
    return Structure(graph, component_poses, frozenset(fixed), "test")


@dataclass
class Bench:
    """One arm, or two, at a table with a fixed plate (part 0) and bricks."""

    simulator: Simulator
    world: SimulatedWorld
    planner: EmbeddedPlanner
    handler: BrickHandler
    stages: list[Stage]
    helper: BrickHandler | None = None


def bench(
    shapes: Mapping[int, BrickShape],
    poses: Mapping[int, Array],
    *,
    config: SimulatorConfig | None = None,
    parameters: TaskParameters | None = None,
    noise: Noise | None = None,
    seed: int = 0,
    arms: Sequence[ArmDescription] | None = None,
) -> Bench:
    """A plate of 12 x 12 studs in front of an arm, or between two, with loose bricks."""
    simulator = Simulator(config=config or SimulatorConfig())
    shapes = {0: BrickShape(12, 12, 1), **shapes}
    poses = {0: yawed(0.5, 0.0), **poses}
    simulator.spawn(bricks(shapes, poses, [0]), part_ids={p: p for p in shapes})
    arms = arms or one_arm()
    world = SimulatedWorld(simulator, arms, noise, seed)
    planner = EmbeddedPlanner(arms, PlanningOptions(seed=seed))
    stages: list[Stage] = []

    def feedback(now: HandlingStage) -> None:
        if not stages or stages[-1] is not now.stage:
            stages.append(now.stage)

    handler = BrickHandler(world, planner, arms[0].name, parameters, feedback)
    helper = BrickHandler(world, planner, arms[1].name, parameters) if len(arms) > 1 else None
    return Bench(simulator, world, planner, handler, stages, helper)
