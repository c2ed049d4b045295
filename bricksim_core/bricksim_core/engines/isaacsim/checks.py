# SPDX-License-Identifier: Apache-2.0
"""Tries everything that the engine relies on in Isaac Sim, one call after the other.

For a machine with a GPU: the first run finds all that differs at once. Truth is mechanics (weight,
free fall) and what the engine was told.
"""

from __future__ import annotations

import itertools
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bricksim_core.doctor import Check
from bricksim_core.engines.isaacsim.launch import REQUIREMENTS, IsaacOptions, start
from bricksim_core.engines.protocol import BodySpec, RobotSpec, StepReport
from bricksim_core.errors import BrickSimError
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, inverse, transform
from bricksim_core.topology import BrickTopologyGraph

if TYPE_CHECKING:
    from bricksim_core.engines.isaacsim.engine import IsaacEngine

_STEPS = 60


def checks(options: IsaacOptions | None = None) -> Iterator[Check]:
    """Everything, in order; what comes after the start only where it starts.

    Args:
        options: How to run the application; None: headless, with the ROS 2 bridge.
    """
    options = options or IsaacOptions(ros_bridge=True)
    for requirement in REQUIREMENTS:
        check = _tried(requirement.__name__.removeprefix("require_"), requirement)
        yield check
        if not check.ok:
            return
    started: list[IsaacEngine] = []

    def begin() -> str:
        started.append(start(**vars(options)))
        return "application, stage, physics, clock graph"

    yield _tried("start", begin)
    if not started:
        return
    engine = started[0]
    try:
        for name, function in _CALLS.items():
            yield _tried(name, lambda function=function: function(engine))
    finally:
        engine.close()


def _tried(name: str, function: Callable[[], str]) -> Check:
    try:
        return Check(f"isaacsim: {name}", True, function())
    except BrickSimError as error:
        return Check(f"isaacsim: {name}", False, str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        return Check(f"isaacsim: {name}", False, f"{type(error).__name__}: {error} ({where})")


def _tower(count: int, pose: Array, first: int = 0, fixed: bool = False) -> BodySpec:
    graph = BrickTopologyGraph()
    ids = [graph.add_part(BrickShape(4, 2), part_id=first + i) for i in range(count)]
    for below, above in itertools.pairwise(ids):
        graph.connect(below, above, (0, 0), 0)
    layout = graph.layout(graph.component_of(ids[0]))
    return BodySpec(first, layout, pose, np.zeros(6), fixed, ((200, 30, 30),) * count)


def _expect(what: str, found: Array | float, expected: Array | float, tolerance: float) -> str:
    gap = float(np.max(np.abs(np.asarray(found) - np.asarray(expected))))
    if not gap <= tolerance:
        raise BrickSimError(f"{what}: {found}, expected {expected} within {tolerance}")
    return f"{what} within {gap:.1e}"


def _run(engine: IsaacEngine, steps: int) -> StepReport:
    for _ in range(steps - 1):
        engine.step()
    return engine.step()


def _clear(engine: IsaacEngine) -> None:
    engine.update(engine.scene.component_ids, [])


def _scene(engine: IsaacEngine) -> str:
    from isaacsim.core.simulation_manager import SimulationManager

    from bricksim_core.engines.usd import names

    physics = SimulationManager.get_active_physics_engine()
    if physics != "physx":
        raise BrickSimError(f"the physics engine is {physics}, expected physx")
    paths = [scene.path for scene in SimulationManager.get_physics_scenes()]
    if paths != [names.SCENE]:
        raise BrickSimError(f"the physics scenes are {paths}, expected {names.SCENE} alone")
    if not SimulationManager.get_device().is_cpu:
        raise BrickSimError(f"physics runs on {SimulationManager.get_device()}, expected the CPU")
    _expect("step [s]", SimulationManager.get_physics_dt(), engine.timestep, 1e-9)
    fabric = "on" if SimulationManager.is_fabric_enabled() else "off"
    return f"one PhysX scene on the CPU, Fabric {fabric}"


def _clock(engine: IsaacEngine) -> str:
    """Time and number of steps as Isaac Sim counts them: its action graphs tell these."""
    from isaacsim.core.simulation_manager import SimulationManager

    _clear(engine)
    begin, count = (
        SimulationManager.get_simulation_time(),
        SimulationManager.get_num_physics_steps(),
    )
    _run(engine, 24)
    _expect("steps", float(SimulationManager.get_num_physics_steps() - count), 24.0, 0.0)
    passed = SimulationManager.get_simulation_time() - begin
    return _expect("time of 24 steps [s]", passed, 24 * engine.timestep, 1e-6)


def _views(engine: IsaacEngine) -> str:
    """Rows of the view are the bricks in the scene's order, read from PhysX and not from USD."""
    _clear(engine)
    towers = {i: _tower(1, transform([0.1 * i, 0, 0.5]), i) for i in (11, 2, 0, 5)}
    engine.update([], list(towers.values()))
    _run(engine, 2)
    _at_tenths(engine, [0, 2, 5, 11])
    # The scene's order is that of components, the view's the one that it was made with.
    swapped = [replace(towers[2], component=5), replace(towers[5], component=2)]
    engine.update([2, 5], swapped)
    engine.step()
    return _at_tenths(engine, [0, 5, 2, 11])


def _at_tenths(engine: IsaacEngine, part_ids: list[int]) -> str:
    if engine.scene.groups.part_ids.tolist() != part_ids:
        raise BrickSimError(f"order is {engine.scene.groups.part_ids}, expected {part_ids}")
    origin = _tower(1, np.eye(4)).layout.component_T_parts[0, 0, 3]
    places = engine.part_motion()[0][:, 0, 3] - origin
    return _expect("places in the view [m]", places, 0.1 * np.array(part_ids), 1e-4)


def _free_fall(engine: IsaacEngine) -> str:
    _clear(engine)
    engine.update([], [_tower(1, transform([0, 0, 1]))])
    report = _run(engine, 24)
    speed = 9.81 * 24 * engine.timestep
    return _expect("speed of fall [m/s]", report.twist[0, 2], -speed, 1e-3)


def _rest(engine: IsaacEngine) -> str:
    _clear(engine)
    spec = _tower(1, np.eye(4))
    engine.update([], [spec])
    report = _run(engine, _STEPS)
    if report.contacts.names != ("ground",):
        raise BrickSimError(f"contacts are with {report.contacts.names}, expected the ground")
    weight = spec.layout.masses.sum() * 9.81 * engine.timestep
    return _expect("impulse [N s]", report.contacts.impulse.sum(axis=0)[2], weight, 0.01 * weight)


def _friction(engine: IsaacEngine) -> str:
    """A push that friction takes: the friction anchors carry it, against the push."""
    _clear(engine)
    spec = _tower(1, np.eye(4))
    engine.update([], [spec])
    _run(engine, _STEPS)
    push = 0.2 * spec.layout.masses.sum() * 9.81
    found = 0.0
    for _ in range(12):
        engine.apply_wrench(0, np.array([push, 0.0, 0.0, 0.0, 0.0, 0.0]))
        found = engine.step().contacts.impulse.sum(axis=0)[0]
    return _expect("impulse [N s]", found, -push * engine.timestep, 0.02 * push * engine.timestep)


def _velocity(engine: IsaacEngine) -> str:
    _clear(engine)
    spec = _tower(1, transform([0, 0, 1]))
    twist = np.array([0.1, -0.2, 0.3, 0.0, 0.0, 1.0])
    engine.update([], [BodySpec(0, spec.layout, spec.world_T_component, twist, False, spec.colors)])
    _, twists = engine.part_motion()
    return _expect("twist as given", twists[0], twist, 1e-4)


def _welds(engine: IsaacEngine) -> str:
    _clear(engine)
    engine.update([], [_tower(10, transform([0, 0, 0.3]))])
    _run(engine, _STEPS)
    return _expect("gap of ten welded bricks [m]", engine.deformation().max(), 0.0, 2e-4)


def _join_and_break(engine: IsaacEngine) -> str:
    _clear(engine)
    engine.update([], [_tower(1, transform([0, 0, 0.3])), _tower(1, transform([1, 0, 0.3]), 5)])
    engine.update([0, 5], [_tower(2, transform([0, 0, 0.3]), 10)])
    engine.step()
    engine.update([10], [_tower(1, transform([0, 0, 0.3]), 10)])
    report = engine.step()
    return _expect("components", float(len(report.component_ids)), 1.0, 0.0)


def _seated(engine: IsaacEngine) -> str:
    _clear(engine)
    low = _tower(1, transform([0, 0, 0.3]), fixed=True)
    high = _tower(1, transform([0, 0, 0.3096]), 1)
    engine.update([], [low, high], [(0, 1)])
    report = _run(engine, 12)
    return _expect("height of seated studs [m]", report.world_T_component[1, 2, 3], 0.3096, 2e-4)


def _filters_at_run_time(engine: IsaacEngine) -> str:
    """Filters that are set and taken away while bricks exist."""
    _clear(engine)
    seat = transform([0, 0, 0.3096])
    high = _tower(1, seat, 1)
    away = replace(high, world_T_component=transform([0, 0, 1]))
    engine.update([], [_tower(1, transform([0, 0, 0.3]), fixed=True), away])
    engine.step()
    engine.update([1], [high], [(0, 1)])
    height = _run(engine, 12).world_T_component[1, 2, 3]
    _expect("height of studs seated later [m]", height, seat[2, 3], 2e-4)
    engine.update([1], [high], [])
    height = _run(engine, 24).world_T_component[1, 2, 3]
    if height < seat[2, 3] + 1e-3:
        raise BrickSimError("a filter that was taken away still holds: studs stay in the brick")
    return f"studs push the brick {1e3 * (height - seat[2, 3]):.1f} mm up once they are felt"


def _hold(engine: IsaacEngine) -> str:
    _clear(engine)
    pose = transform([0, 0, 0.5])
    engine.update([], [_tower(1, pose)])
    engine.update([0], [_tower(1, pose, fixed=True)])
    _run(engine, _STEPS)
    poses, _ = engine.part_motion()
    groups = engine.scene.groups
    expected, _ = groups.part_motion(pose[None], np.zeros((1, 6)))
    return _expect("place of a held brick [m]", poses[0, :3, 3], expected[0, :3, 3], 1e-6)


def _wrench(engine: IsaacEngine) -> str:
    _clear(engine)
    spec = _tower(1, transform([0, 0, 1]))
    engine.update([], [spec])
    mass = spec.layout.masses.sum()
    engine.apply_wrench(0, np.array([0.0, 0.0, 2 * mass * 9.81, 0, 0, 0]))
    speed = engine.step().twist[0, 2]
    return _expect("speed after a push [m/s]", speed, 9.81 * engine.timestep, 1e-4)


def _scene_query(engine: IsaacEngine) -> str:
    from bricksim_core.engines.boxes import brick_boxes

    boxes = brick_boxes(_tower(1, transform([0, 0, 5])).layout)
    if engine.hits_robot(boxes):
        raise BrickSimError("a box in an empty place overlaps a robot")
    return "overlap_box"


def _snapshot(engine: IsaacEngine) -> str:
    _clear(engine)
    engine.update([], [_tower(3, transform([0, 0, 0.05]))])
    _run(engine, 6)
    snapshot, before = engine.snapshot(), engine.part_motion()[0]
    _run(engine, 12)
    engine.restore(snapshot)
    return _expect("bricks where they were [m]", engine.part_motion()[0], before, 1e-5)


def _franka(engine: IsaacEngine) -> str:
    from isaacsim.core.experimental.prims import Articulation
    from isaacsim.core.experimental.utils.stage import add_reference_to_stage

    from bricksim_core.engines.isaacsim.robots import FRANKAS, assets_root

    found = []
    for joint, asset in FRANKAS.items():
        path = f"/World/Robots/check_{joint}"
        add_reference_to_stage(usd_path=assets_root(engine.options) + asset, path=path)
        names = Articulation(path).dof_names
        if joint not in names:
            raise BrickSimError(f"{asset} has the joints {names}, expected {joint} among them")
        found.append(f"{asset.rpartition('/')[2]}: {len(names)} joints")
        engine.author.stage.RemovePrim(path)
    return ", ".join(found)


def _arm(engine: IsaacEngine) -> str:
    """The FR3 on the stage, with its bridge graph: stands where it should, moves a joint, and its
    links follow."""
    _clear(engine)
    base = transform([0.3, -0.2, 0.1], [0.0, 0.0, np.sin(0.25), np.cos(0.25)])
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "fr3.urdf"
        urdf.write_text(_FR3)
        engine.add_robot(
            RobotSpec(
                name="fr3",
                urdf=urdf,
                world_T_base=base,
                joint_positions=_READY,
                drives=dict.fromkeys(_READY, (2000.0, 100.0, 87.0)),
            )
        )
    _run(engine, _STEPS)
    _expect("base [m]", engine.link_pose("fr3", "fr3_link0")[:3], base[:3], 1e-4)
    before = inverse(base) @ engine.link_pose("fr3", "fr3_link7")
    engine.set_joint_targets("fr3", {"fr3_joint1": 0.3})
    _run(engine, 240)
    state = engine.joint_state("fr3")
    turn = state.positions[state.names.index("fr3_joint1")]
    _expect("joint 1 [rad]", turn, 0.3, 0.02)
    after = inverse(base) @ engine.link_pose("fr3", "fr3_link7")
    angle = np.arctan2(after[1, 3], after[0, 3]) - np.arctan2(before[1, 3], before[0, 3])
    return _expect("turn of link 7 about the base [rad]", angle, 0.3, 0.02)


def _arm_contact(engine: IsaacEngine) -> str:
    """A brick that falls onto the hand: the contact report names a link, and it is felt."""
    place = engine.link_pose("fr3", "fr3_link7")
    place[:3, :3] = np.eye(3)
    place[2, 3] += 0.15
    engine.update([], [_tower(1, place)])
    names: set[str] = set()
    for _ in range(120):
        names.update(engine.step().contacts.names)
    links = sorted(name for name in names if name.startswith("fr3/"))
    if not links:
        raise BrickSimError(f"a brick that fell on the arm touched {sorted(names)}, expected fr3/*")
    return ", ".join(links)


def _graphs(engine: IsaacEngine) -> str:
    """Nodes of the bridge's action graphs, and that they were computed."""
    if not engine.options.ros_bridge:
        return "not asked for (ros_bridge)"
    from bricksim_core.engines.isaacsim import kit
    from bricksim_core.engines.isaacsim.graphs import clock_graph, robot_graph

    graphs = [clock_graph(engine.options)]
    graphs += [robot_graph(engine.options, name, "") for name in engine.robots]
    _run(engine, 4 * engine.options.frame_steps)
    idle = []
    for graph in graphs:
        counts = kit.compute_counts(graph)
        idle += [f"{graph.path}/{node}" for node, count in counts.items() if not count]
    # Commands arrive when somebody publishes them.
    idle = [node for node in idle if not node.endswith("/Controller")]
    if idle:
        raise BrickSimError(f"action graph nodes that never ran: {', '.join(idle)}")
    return f"{len(graphs)} graphs run"


_READY = {
    "fr3_joint1": 0.0,
    "fr3_joint2": -0.785,
    "fr3_joint3": 0.0,
    "fr3_joint4": -2.356,
    "fr3_joint5": 0.0,
    "fr3_joint6": 1.571,
    "fr3_joint7": 0.785,
}
_FR3 = (
    "<robot name='fr3'><link name='fr3_link0'/>"
    + "".join(
        f"<link name='fr3_link{i}'/><joint name='fr3_joint{i}' type='revolute'>"
        f"<parent link='fr3_link{i - 1}'/><child link='fr3_link{i}'/></joint>"
        for i in range(1, 8)
    )
    + "</robot>"
)
"""Names of the arm's joints and links: all that is taken from a URDF where there is an asset."""

MECHANICS: dict[str, Callable[[IsaacEngine], str]] = {
    "views": _views,
    "free fall": _free_fall,
    "rest impulse": _rest,
    "friction anchors": _friction,
    "velocities": _velocity,
    "welds": _welds,
    "join and break": _join_and_break,
    "collision filters": _seated,
    "collision filters at run time": _filters_at_run_time,
    "hold": _hold,
    "wrench": _wrench,
    "scene query": _scene_query,
    "snapshot": _snapshot,
}
"""What is tried through the engine alone; its twin ovphysx has to pass it, too."""

_CALLS: dict[str, Callable[[IsaacEngine], str]] = {
    "physics scene": _scene,
    "clock": _clock,
    **MECHANICS,
    "Franka assets": _franka,
    "moving arm": _arm,
    "contact with the arm": _arm_contact,
    "action graphs": _graphs,
}
"""What is tried once the application runs."""
