# SPDX-License-Identifier: Apache-2.0
"""The simulator node as a ROS engineer uses it: real processes, real DDS, standard services."""

import functools
import inspect
import math
from pathlib import Path

import launch_pytest
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import (
    Point,
    Pose,
    PoseStamped,
    Quaternion,
    Twist,
    Vector3,
    WrenchStamped,
)
from launch import LaunchDescription
from launch_pytest.actions import ReadyToTest
from launch_ros.actions import Node
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, ListParameters, SetParameters
from rclpy import parameter
from rclpy.clock import ClockType
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from rclpy.time import Time
from ros_client import RosClient, ros_client
from rosgraph_msgs.msg import Clock
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    EntityState,
    Result,
    SimulationState,
    TagsFilter,
)
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
)
from tf2_msgs.msg import TFMessage
from tf2_ros import Buffer, TransformListener

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.formats import (
    format_structure,
    parse_structure,
    read_structure,
    write_structure,
)
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_msgs import msg, srv
from bricksim_ros.publishing import EVENTS, LATCHED
from bricksim_ros.simulation_interfaces_server import FEATURES, UNSUPPORTED_SERVICES

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
TOWER = DATA / "bricksim" / "demo_assembly_structure1.json"
GUITAR = DATA / "brickgpt" / "texture_guitar.txt"
BRICK = "2x4 (0,0,0)\n"


def _interlaced() -> str:
    """Two bricks, the second one 10 mm aside of the first."""
    graph = BrickTopologyGraph()
    first, second = (graph.component_of(graph.add_part(BrickShape(4, 2))) for _ in range(2))
    poses = {first: np.eye(4), second: transform([0.01, 0.0, 0.0])}
    return format_structure(Structure(graph, poses), "topology")


def _bridge(end: float) -> str:
    """A plank on two tiles on the ground, in the middle and at an end [m] of it."""
    graph = BrickTopologyGraph()
    tile = BrickShape(1, 1, 1, has_studs=False)
    parts = [graph.component_of(graph.add_part(s)) for s in (tile, tile, BrickShape(8, 1))]
    places = ([0.0, 0.0, 0.0], [end, 0.0, 0.0], [-0.028, 0.0, 0.0032])
    poses = {part: transform(place) for part, place in zip(parts, places, strict=True)}
    return format_structure(Structure(graph, poses), "topology")


FRAME = 1.0 / 60.0


@launch_pytest.fixture(scope="module")
def simulator(module_ros_domain_id):
    """A paused simulator, as fast as possible."""
    return LaunchDescription(
        [
            Node(
                package="bricksim_ros",
                executable="simulator",
                parameters=[{"start_paused": True, "real_time_factor": 0.0}],
                output="screen",
            ),
            ReadyToTest(),
        ]
    )


pytestmark = [
    pytest.mark.launch(fixture=simulator),
    pytest.mark.usefixtures("module_ros_domain_id"),
]


def with_simulator(test):
    """Calls a test with a client of the simulator, which was reset, is paused and empty.

    Not a fixture, since launched processes live only while a test function runs.
    """

    @functools.wraps(test)
    def wrapped(*args, **kwargs) -> None:
        with ros_client() as ros:
            set_state(ros, SimulationState.STATE_PAUSED)
            reset = ros.call(ResetSimulation, "reset_simulation", scope=7)
            assert reset.result.result == Result.RESULT_OK
            test(ros, *args, **kwargs)

    signature = inspect.signature(test)
    others = [p for name, p in signature.parameters.items() if name != "ros"]
    wrapped.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return wrapped


def set_state(ros: RosClient, state: int) -> int:
    target = SimulationState(state=state)
    return ros.call(SetSimulationState, "set_simulation_state", state=target).result.result


def step(ros: RosClient, steps: int) -> None:
    response = ros.call(StepSimulation, "step_simulation", steps=steps)
    assert response.result.result == Result.RESULT_OK, response.result.error_message


def spawn_text(ros: RosClient, text: str, z: float = 0.0, **fields) -> srv.SpawnStructure.Response:
    pose = PoseStamped(pose=Pose(position=Point(z=z)))
    response = ros.call(
        srv.SpawnStructure, "bricksim/spawn_structure", text=text, pose=pose, **fields
    )
    assert response.success, response.message
    return response


def latest_topology(ros: RosClient) -> msg.BrickTopology:
    received = ros.collect(msg.BrickTopology, "bricksim/topology", LATCHED)
    ros.wait_for(lambda: received, "the latched topology")
    ros.spin_for(0.2)
    return received[-1]


@with_simulator
def test_late_joiner_gets_the_topology_and_can_rebuild_it(ros: RosClient) -> None:
    spawn_text(ros, TOWER.read_text())
    rebuilt = structure_from_topology(latest_topology(ros))
    expected = read_structure(TOWER)
    assert [p.shape for p in rebuilt.graph.parts()] == [p.shape for p in expected.graph.parts()]
    first = rebuilt.graph.part_ids[0]
    for ours, theirs in zip(rebuilt.graph.part_ids, expected.graph.part_ids, strict=True):
        root = expected.graph.part_ids[0]
        assert rebuilt.graph.relative_grid_pose(first, ours) == (
            expected.graph.relative_grid_pose(root, theirs)
        )


@with_simulator
def test_clock_is_monotonic_and_steps_are_exact(ros: RosClient) -> None:
    clocks = ros.collect(Clock, "/clock")
    ros.wait_for(lambda: ros.node.count_publishers("/clock"), "a clock")
    assert ros.node.count_publishers("/clock") == 1
    ros.spin_for(0.3)
    del clocks[:]
    step(ros, 30)
    ros.wait_for(lambda: len(clocks) >= 30, "30 clocks")
    # While nothing moves the time is told again now and then.
    ros.spin_for(1.0)
    times = [c.clock.sec + 1e-9 * c.clock.nanosec for c in clocks]
    assert times == sorted(times)
    moved = np.unique(times)[-30:]
    assert np.allclose(np.diff(moved), FRAME, atol=1e-8)
    assert len(np.unique(times)) in (30, 31)


@with_simulator
def test_a_brick_falls_as_galileo_says(ros: RosClient) -> None:
    spawned = spawn_text(ros, BRICK, z=1.0, format="")
    loose = spawned.part_ids[-1]
    ros.call(srv.HoldFixed, "bricksim/hold_fixed", part_ids=spawned.part_ids, fixed=False)
    before = ros.call(GetEntityState, "get_entity_state", entity=f"brick_{loose}").state
    step(ros, 18)
    after = ros.call(GetEntityState, "get_entity_state", entity=f"brick_{loose}").state
    t = 18 * FRAME
    fallen = before.pose.position.z - after.pose.position.z
    assert fallen == pytest.approx(0.5 * 9.81 * t * t, rel=0.02)
    assert after.twist.linear.z == pytest.approx(-9.81 * t, rel=0.01)
    assert after.header.frame_id == "world"


@with_simulator
def test_features_are_exactly_what_works(ros: RosClient) -> None:
    features = ros.call(GetSimulatorFeatures, "get_simulator_features").features
    assert list(features.features) == list(FEATURES)
    for name, kind in UNSUPPORTED_SERVICES.items():
        response = ros.call(kind, name)
        assert response.result.result == Result.RESULT_FEATURE_UNSUPPORTED, name


@with_simulator
def test_run_states(ros: RosClient) -> None:
    codes = SetSimulationState.Response
    assert set_state(ros, SimulationState.STATE_PAUSED) == codes.ALREADY_IN_TARGET_STATE
    assert set_state(ros, SimulationState.STATE_PLAYING) == Result.RESULT_OK
    state = ros.call(GetSimulationState, "get_simulation_state").state.state
    assert state == SimulationState.STATE_PLAYING
    refused = ros.call(StepSimulation, "step_simulation", steps=1).result
    assert refused.result == Result.RESULT_OPERATION_FAILED
    assert "not paused" in refused.error_message
    assert set_state(ros, SimulationState.STATE_STOPPED) == Result.RESULT_OK
    assert set_state(ros, SimulationState.STATE_PAUSED) == codes.INCORRECT_TRANSITION
    assert set_state(ros, SimulationState.STATE_PLAYING) == Result.RESULT_OK
    assert set_state(ros, SimulationState.STATE_PAUSED) == Result.RESULT_OK
    assert set_state(ros, 77) == codes.INCORRECT_TRANSITION


@with_simulator
def test_spawn_codes(ros: RosClient) -> None:
    codes = SpawnEntity.Response

    def spawn(**fields) -> SpawnEntity.Response:
        return ros.call(SpawnEntity, "spawn_entity", **fields)

    good = spawn(name="wall", resource_string=BRICK)
    assert (good.result.result, good.entity_name) == (Result.RESULT_OK, "wall")
    apart = PoseStamped(pose=Pose(position=Point(x=0.5)))
    taken = spawn(name="wall", resource_string=BRICK, initial_pose=apart)
    assert taken.result.result == codes.NAME_NOT_UNIQUE
    renamed = spawn(name="wall", allow_renaming=True, resource_string=BRICK, initial_pose=apart)
    assert renamed.result.result == Result.RESULT_OK
    assert renamed.entity_name not in ("wall", "")
    assert spawn(name="a b", resource_string=BRICK).result.result == codes.NAME_INVALID
    assert spawn(name="brick_3", resource_string=BRICK).result.result == codes.NAME_INVALID
    assert spawn(name="x").result.result == codes.NO_RESOURCE
    for junk in ("nonsense", "2x4 (0,0,0", "{", "2x4 (0,0,0)\n2x4 (0,0,0)\n"):
        assert spawn(name="x", resource_string=junk).result.result == codes.RESOURCE_PARSE_ERROR
    nowhere = spawn(name="x", uri="/no/such/file.json")
    assert nowhere.result.result == codes.RESOURCE_PARSE_ERROR
    assert "/no/such/file.json" in nowhere.result.error_message
    bad = PoseStamped(pose=Pose(position=Point(x=math.nan)))
    assert spawn(name="x", resource_string=BRICK, initial_pose=bad).result.result == (
        codes.INVALID_POSE
    )
    other = PoseStamped(pose=Pose(position=Point(x=1.0)))
    other.header.frame_id = "map"
    assert spawn(name="x", resource_string=BRICK, initial_pose=other).result.result == (
        codes.INVALID_POSE
    )
    # In the same place as the first one: nothing is added.
    count = len(ros.call(GetEntities, "get_entities").entities)
    assert spawn(name="x", resource_string=BRICK).result.result == codes.INVALID_POSE
    assert len(ros.call(GetEntities, "get_entities").entities) == count
    namespaced = spawn(name="x", resource_string=BRICK, entity_namespace="ns")
    assert namespaced.result.result == codes.NAMESPACE_INVALID


def _yawed(x: float, degrees: float) -> Pose:
    half = math.radians(degrees) / 2.0
    turn = Quaternion(z=math.sin(half), w=math.cos(half))
    return Pose(position=Point(x=x), orientation=turn)


@with_simulator
def test_poses_may_be_told_in_the_frames_of_entities(ros: RosClient) -> None:
    def told(frame: str, pose: Pose) -> PoseStamped:
        stamped = PoseStamped(pose=pose)
        stamped.header.frame_id = frame
        return stamped

    def found(name: str) -> tuple[float, float, float]:
        state = ros.call(GetEntityState, "get_entity_state", entity=name).state
        turn = 2.0 * math.atan2(state.pose.orientation.z, state.pose.orientation.w)
        return (state.pose.position.x, state.pose.position.y, math.degrees(turn))

    def spawn(name: str, pose: PoseStamped) -> Result:
        fields = {"name": name, "resource_string": BRICK, "initial_pose": pose}
        return ros.call(SpawnEntity, "spawn_entity", **fields).result

    set_state(ros, SimulationState.STATE_PAUSED)
    assert spawn("a", told("world", _yawed(0.5, 90.0))).result == Result.RESULT_OK
    assert spawn("b", told("a", _yawed(0.2, 90.0))).result == Result.RESULT_OK
    assert found("b") == pytest.approx((0.5, 0.2, 180.0), abs=1e-6)
    at = told("b", _yawed(0.1, 0.0))
    on_plate = ros.call(srv.SpawnStructure, "bricksim/spawn_structure", text=BRICK, pose=at)
    assert on_plate.success, on_plate.message
    assert found("text")[:2] == pytest.approx((0.4, 0.2), abs=1e-6)
    loose = [_loose_brick(ros, z=z) for z in (1.0, 2.0)]
    first, second = (f"brick_{i}" for i in loose)
    moved = EntityState(pose=_yawed(0.3, 0.0), twist=Twist(linear=Vector3(x=0.5)))
    moved.header.frame_id = "a"
    answer = ros.call(SetEntityState, "set_entity_state", entity=first, state=moved)
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message
    assert found(first) == pytest.approx((0.5, 0.3, 90.0), abs=1e-6)
    state = ros.call(GetEntityState, "get_entity_state", entity=first).state
    assert (state.twist.linear.x, state.twist.linear.y) == pytest.approx((0.0, 0.5), abs=1e-6)
    # At rest relative to a brick that moves: with its velocity.
    beside = EntityState(pose=_yawed(0.1, 0.0))
    beside.header.frame_id = first
    answer = ros.call(SetEntityState, "set_entity_state", entity=second, state=beside)
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message
    assert found(second) == pytest.approx((0.5, 0.4, 90.0), abs=1e-6)
    state = ros.call(GetEntityState, "get_entity_state", entity=second).state
    assert (state.twist.linear.x, state.twist.linear.y) == pytest.approx((0.0, 0.5), abs=1e-6)
    unknown = spawn("x", told("brick_99999", Pose()))
    assert unknown.result == SpawnEntity.Response.INVALID_POSE
    assert "brick_99999" in unknown.error_message


@with_simulator
def test_the_analysis_tells_what_moves_and_a_structure_at_rest_is_stable(ros: RosClient) -> None:
    set_state(ros, SimulationState.STATE_PAUSED)
    spawned = ros.call(srv.SpawnStructure, "bricksim/spawn_structure", uri=str(TOWER), fixed=False)
    assert spawned.success, spawned.message
    step(ros, 120)  # on its own base plate, which contacts tilt by some 1e-6
    rest = ros.call(srv.AnalyzeStability, "bricksim/analyze_stability")
    assert (rest.verdict, rest.message) == ("stable", "")
    falling = _loose_brick(ros, z=2.0)
    step(ros, 12)
    answer = ros.call(srv.AnalyzeStability, "bricksim/analyze_stability")
    # 0.2 s of free fall
    assert answer.success and f"part {falling} " in answer.message
    assert "moving at 1.9" in answer.message or "moving at 2" in answer.message


@with_simulator
def test_the_analysis_says_where_it_does_not_know_the_forces(ros: RosClient) -> None:
    answer = ros.call(srv.AnalyzeStability, "bricksim/analyze_stability", text=_bridge(0.024))
    assert answer.success and answer.verdict == srv.AnalyzeStability.Response.UNKNOWN
    assert "not analysed: part 2 lies on part 0 without a connection" in answer.message
    assert math.isnan(answer.safety_factor)
    answer = ros.call(srv.AnalyzeStability, "bricksim/analyze_stability", text=_bridge(0.1))
    assert (answer.verdict, answer.message) == ("stable", "")  # on the middle one alone


@with_simulator
def test_entities_filters_info_bounds_and_delete(ros: RosClient) -> None:
    def names(**fields) -> list[str]:
        response = ros.call(GetEntities, "get_entities", filters=EntityFilters(**fields))
        assert response.result.result == Result.RESULT_OK, response.result.error_message
        return list(response.entities)

    far = PoseStamped(pose=Pose(position=Point(x=2.0, z=0.0)))
    ros.call(SpawnEntity, "spawn_entity", name="near", uri=str(TOWER))
    ros.call(SpawnEntity, "spawn_entity", name="far", uri=str(GUITAR), initial_pose=far)
    assert {"near", "far"} <= set(names())
    assert names(filter="^near$") == ["near"]
    assert sorted(names(tags=TagsFilter(tags=["spawned"]))) == ["far", "near"]
    assert len(names(tags=TagsFilter(tags=["brick"]))) == 5 + 29
    static = EntityCategory(category=EntityCategory.CATEGORY_STATIC_OBJECT)
    assert "far" in names(categories=[static])
    box = Bounds(type=Bounds.TYPE_BOX, points=[_v(-0.5, -0.5, -1), _v(0.5, 0.5, 1)])
    assert "near" in names(bounds=box) and "far" not in names(bounds=box)
    wrong = ros.call(GetEntities, "get_entities", filters=EntityFilters(filter="("))
    assert wrong.result.result == Result.RESULT_OPERATION_FAILED

    bounds = ros.call(GetEntityBounds, "get_entity_bounds", entity="near").bounds
    low, high = bounds.points
    # A 20 x 20 base plate of 8 mm pitch.
    assert high.x - low.x == pytest.approx(0.16, abs=1e-6)
    info = ros.call(GetEntityInfo, "get_entity_info", entity="near").info
    assert "structure" in info.tags

    states = ros.call(
        GetEntitiesStates, "get_entities_states", filters=EntityFilters(filter="^far$")
    )
    assert states.states[0].pose.position.x == pytest.approx(2.0, abs=1e-6)

    assert ros.call(DeleteEntity, "delete_entity", entity="far").result.result == Result.RESULT_OK
    assert "far" not in names()
    gone = ros.call(DeleteEntity, "delete_entity", entity="far").result
    assert gone.result == Result.RESULT_NOT_FOUND
    unknown = ros.call(GetEntityState, "get_entity_state", entity="brick_99999").result
    assert unknown.result == Result.RESULT_NOT_FOUND


def _v(x: float, y: float, z: float):
    from geometry_msgs.msg import Vector3

    return Vector3(x=float(x), y=float(y), z=float(z))


@with_simulator
def test_set_entity_state_moves_the_whole_component(ros: RosClient) -> None:
    ros.call(SpawnEntity, "spawn_entity", name="tower", uri=str(TOWER))
    state = ros.call(GetEntityState, "get_entity_state", entity="tower").state
    state.pose.position.x += 0.25
    moved = ros.call(SetEntityState, "set_entity_state", entity="tower", state=state)
    assert moved.result.result == Result.RESULT_OK, moved.result.error_message
    topology = latest_topology(ros)
    (component,) = topology.components
    assert component.root_pose.position.x == pytest.approx(0.25, abs=1e-6)
    state.pose.position.y = math.inf
    refused = ros.call(SetEntityState, "set_entity_state", entity="tower", state=state)
    assert refused.result.result == SetEntityState.Response.INVALID_POSE


@with_simulator
def test_reset_scopes(ros: RosClient) -> None:
    def entities() -> list[str]:
        return [n for n in ros.call(GetEntities, "get_entities").entities if "brick_" not in n]

    ros.call(SpawnEntity, "spawn_entity", name="tower", uri=str(TOWER))
    ids = {p.id for p in latest_topology(ros).parts}
    state = ros.call(GetEntityState, "get_entity_state", entity="tower").state
    moved = ros.call(GetEntityState, "get_entity_state", entity="tower").state
    moved.pose.position.z += 0.3
    ros.call(SetEntityState, "set_entity_state", entity="tower", state=moved)
    step(ros, 3)
    ros.call(ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_STATE)
    again = ros.call(GetEntityState, "get_entity_state", entity="tower").state
    assert again.pose == state.pose
    assert again.header.stamp != state.header.stamp, "time goes on over a reset of the state"
    assert {p.id for p in latest_topology(ros).parts} == ids, "ids are kept"
    ros.call(ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_TIME)
    stamp = ros.call(GetEntityState, "get_entity_state", entity="tower").state.header.stamp
    assert (stamp.sec, stamp.nanosec) == (0, 0)
    assert entities() == ["tower"]
    ros.call(ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_SPAWNED)
    assert entities() == []


@with_simulator
def test_a_hundred_resets_in_a_row(ros: RosClient) -> None:
    ros.call(SpawnEntity, "spawn_entity", name="tower", uri=str(TOWER))
    for _ in range(100):
        response = ros.call(
            ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_STATE
        )
        assert response.result.result == Result.RESULT_OK
    step(ros, 2)


@with_simulator
def test_after_fifty_time_resets_transforms_are_found(ros: RosClient) -> None:
    """By tf2's own buffer, at the time of the new clock, which begins at 0 each time."""
    ros.node.set_parameters([parameter.Parameter("use_sim_time", value=True)])
    buffer = Buffer()
    listener = TransformListener(buffer, ros.node)
    clocks = ros.collect(Clock, "/clock")
    try:
        spawn_text(ros, TOWER.read_text())
        brick = f"brick_{max(p.id for p in latest_topology(ros).parts)}"
        for _ in range(50):
            step(ros, 3)
            reset = ros.call(
                ResetSimulation, "reset_simulation", scope=ResetSimulation.Request.SCOPE_TIME
            )
            assert reset.result.result == Result.RESULT_OK
        ros.spin_for(0.2)
        del clocks[:]
        step(ros, 30)
        late = Time(nanoseconds=int(0.4e9), clock_type=ClockType.ROS_TIME)
        ros.wait_for(lambda: buffer.can_transform("world", brick, late), "the brick at 0.4 s")
        found = buffer.lookup_transform("world", brick, late)
        assert found.header.stamp == late.to_msg()
        assert found.transform.translation.z > 0.0
        assert clocks and all(c.clock.sec < 1 for c in clocks)
    finally:
        listener.unregister()


@with_simulator
def test_simulate_steps_gives_feedback_and_can_be_cancelled(ros: RosClient) -> None:
    client = ros.action(SimulateSteps, "simulate_steps")
    feedback: list = []
    handle = ros.goal(client, SimulateSteps.Goal(steps=20), feedback)
    # First: with the result rclpy's client drops feedback that it has not taken yet.
    ros.wait_for(lambda: feedback and feedback[-1].remaining_steps == 0, "the last feedback")
    result = ros.result(handle)
    assert result.result.result.result == Result.RESULT_OK
    assert [f.completed_steps for f in feedback][-1] == 20

    handle = ros.goal(client, SimulateSteps.Goal(steps=10**9))
    ros.spin_for(0.3)
    cancelled = handle.cancel_goal_async()
    ros.wait_for(cancelled.done, "the cancel to be answered")
    result = ros.result(handle).result.result
    assert result.result == Result.RESULT_OPERATION_FAILED
    assert "of 1000000000 steps" in result.error_message

    set_state(ros, SimulationState.STATE_PLAYING)
    result = ros.result(ros.goal(client, SimulateSteps.Goal(steps=3))).result.result
    assert result.result == Result.RESULT_OPERATION_FAILED
    set_state(ros, SimulationState.STATE_PAUSED)


@with_simulator
def test_events_connect_and_disconnect(ros: RosClient) -> None:
    events = ros.collect(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
    spawned = spawn_text(ros, TOWER.read_text())
    ros.wait_for(lambda: len(events) >= 4, "events of the spawned connections")
    assert {e.cause for e in events} == {msg.ConnectionEvent.SPAWNED}
    broken = ros.call(
        srv.Disconnect, "bricksim/disconnect", connection_ids=[spawned.connection_ids[-1]]
    )
    assert broken.success, broken.message
    assert len(broken.component_ids) == 2
    last = next(c for c in (e.connection for e in events) if c.id == spawned.connection_ids[-1])
    again = ros.call(
        srv.Connect,
        "bricksim/connect",
        stud_part=last.stud_part,
        hole_part=last.hole_part,
        offset=last.offset,
        yaw=int(last.yaw),
    )
    assert again.success, again.message
    step(ros, 2)
    ros.wait_for(lambda: len(events) >= 6, "events of both services")
    assert [e.sequence for e in events] == list(
        range(events[0].sequence, events[0].sequence + len(events))
    )
    assert [e.kind for e in events[-2:]] == ["broken", "assembled"]
    assert {e.cause for e in events[-2:]} == {msg.ConnectionEvent.COMMAND}
    topology = latest_topology(ros)
    assert topology.next_event == events[-1].sequence + 1


@with_simulator
def test_pressing_connects_with_an_event(ros: RosClient) -> None:
    events = ros.collect(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
    lower = spawn_text(ros, "4x4 (0,0,0)\n", fixed=True)
    # The upper brick comes to rest on the studs, 1.7 mm above the seat, before it is pressed.
    upper = _loose_brick(ros, 0.0096 + 0.0017 + 0.0001)
    step(ros, 10)
    wrench = WrenchStamped()
    wrench.header.frame_id = f"brick_{upper}"
    wrench.wrench.force.z = -3.0
    publisher = ros.node.create_publisher(WrenchStamped, "bricksim/apply_wrench", 10)
    ros.wait_for(publisher.get_subscription_count, "the simulator to take wrenches")
    pressed: list = []
    for _ in range(240):
        publisher.publish(wrench)
        ros.spin_for(0.02)
        step(ros, 1)
        pressed = [e for e in events if e.cause == msg.ConnectionEvent.PRESSED]
        if pressed:
            break
    assert pressed, "pressed with 3 N and still not connected"
    assert pressed[0].connection.hole_part == upper
    assert pressed[0].connection.stud_part in lower.part_ids
    assert pressed[0].force >= 1.0


def _loose_brick(ros: RosClient, z: float) -> int:
    text = (
        '{"schema": "bricksim/lego_topology@2", "parts": [{"id": 0, "type": "brick",'
        ' "payload": {"L": 4, "W": 2, "H": 3, "color": [200, 0, 0]}}], "connections": [],'
        f' "pose_hints": [{{"part": 0, "pos": [0.016, 0.016, {z}], "rot": [1, 0, 0, 0]}}]}}'
    )
    return spawn_text(ros, text).part_ids[0]


@with_simulator
def test_utilization_matches_analyze(ros: RosClient) -> None:
    received = ros.collect(msg.ConnectionUtilizationArray, "bricksim/connection_utilization", 10)
    spawned = spawn_text(ros, GUITAR.read_text())
    step(ros, 60)
    ros.wait_for(lambda: received and len(received[-1].connection_ids), "utilizations")
    ros.spin_for(0.3)
    live = dict(zip(received[-1].connection_ids, received[-1].utilization, strict=True))
    answer = ros.call(srv.AnalyzeStability, "bricksim/analyze_stability")
    assert answer.success, answer.message
    assert answer.verdict == srv.AnalyzeStability.Response.STABLE
    service = dict(zip(answer.connection_ids, answer.utilization, strict=True))
    offline = analyze(read_structure(GUITAR))
    assert set(live) == set(service) == set(spawned.connection_ids)
    assert answer.max_utilization == pytest.approx(offline.max_utilization, rel=1e-3)
    for connection_id, value in service.items():
        assert live[connection_id] == pytest.approx(value, abs=2e-3)


@with_simulator
def test_parameters_are_described_take_effect_and_are_checked(ros: RosClient) -> None:
    def set_parameter(name: str, value: ParameterValue):
        return ros.call(
            SetParameters,
            "simulator/set_parameters",
            parameters=[Parameter(name=name, value=value)],
        ).results[0]

    def number(value: float) -> ParameterValue:
        return ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)

    names = ros.call(ListParameters, "simulator/list_parameters").result.names
    ours = [n for n in names if not n.startswith(("qos_overrides", "use_sim_time", "start_type"))]
    for item in ros.call(
        DescribeParameters, "simulator/describe_parameters", names=ours
    ).descriptors:
        assert item.description, item.name
    assert not set_parameter("assembly.force", number(-1.0)).successful
    assert not set_parameter("assembly.force", number(math.nan)).successful
    assert not set_parameter(
        "engine", ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="other")
    ).successful
    refused = set_parameter(
        "assembly.force", ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="much")
    )
    assert not refused.successful and refused.reason
    # With a threshold that the press does not reach nothing connects.
    assert set_parameter("assembly.force", number(50.0)).successful
    try:
        events = ros.collect(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
        spawn_text(ros, "4x4 (0,0,0)\n", fixed=True)
        upper = _loose_brick(ros, 0.0096 + 0.0017 + 0.0001)
        step(ros, 10)
        publisher = ros.node.create_publisher(WrenchStamped, "bricksim/apply_wrench", 10)
        ros.wait_for(publisher.get_subscription_count, "the simulator to take wrenches")
        wrench = WrenchStamped()
        wrench.header.frame_id = f"brick_{upper}"
        wrench.wrench.force.z = -3.0
        for _ in range(40):
            publisher.publish(wrench)
            ros.spin_for(0.02)
            step(ros, 1)
        assert not [e for e in events if e.cause == msg.ConnectionEvent.PRESSED]
    finally:
        assert set_parameter("assembly.force", number(1.0)).successful


@pytest.mark.parametrize(
    ("kind", "name", "fields"),
    [
        (srv.SpawnStructure, "spawn_structure", {}),
        (srv.SpawnStructure, "spawn_structure", {"text": "x" * 1_000_000}),
        (srv.SpawnStructure, "spawn_structure", {"text": BRICK, "uri": "/x"}),
        (srv.SpawnStructure, "spawn_structure", {"text": BRICK, "format": "no such format"}),
        (
            srv.SpawnStructure,
            "spawn_structure",
            {"text": BRICK, "pose": PoseStamped(pose=Pose(position=Point(x=math.nan)))},
        ),
        (
            srv.SpawnStructure,
            "spawn_structure",
            {"text": BRICK, "pose": PoseStamped(pose=Pose(orientation=Quaternion(w=3.0)))},
        ),
        (
            srv.SpawnStructure,
            "spawn_structure",
            {"text": BRICK, "pose": PoseStamped(pose=Pose(position=Point(x=1e12)))},
        ),
        (srv.SpawnStructure, "spawn_structure", {"uri": "~nobody_of_this_name/tower.json"}),
        (srv.SpawnStructure, "spawn_structure", {"uri": f"/{'a' * 5000}"}),
        (srv.ExportTopology, "export_topology", {"path": "~nobody_of_this_name/tower.json"}),
        (srv.Connect, "connect", {"stud_part": 99, "hole_part": 98}),
        (srv.Disconnect, "disconnect", {"connection_ids": [-5]}),
        (srv.HoldFixed, "hold_fixed", {"part_ids": [123456], "fixed": True}),
        (srv.ExportTopology, "export_topology", {"component_ids": [77]}),
        (srv.ExportTopology, "export_topology", {"format": "no such format"}),
        (srv.ExportTopology, "export_topology", {"path": "/no/such/folder/x.json"}),
        (srv.AnalyzeStability, "analyze_stability", {"text": "{"}),
        (srv.AnalyzeStability, "analyze_stability", {"text": f"{BRICK}4x2 (0,0,5)\n"}),
        (srv.AnalyzeStability, "analyze_stability", {"text": _interlaced()}),
        (srv.AnalyzeStability, "analyze_stability", {"load_part_ids": [1]}),
        (
            srv.AnalyzeStability,
            "analyze_stability",
            {"load_part_ids": [5555], "load_wrenches": [0.0] * 6},
        ),
    ],
)
@with_simulator
def test_bad_requests_are_answered_and_the_node_goes_on(ros, kind, name, fields) -> None:
    before = ros.call(GetEntities, "get_entities").entities
    response = ros.call(kind, f"bricksim/{name}", **fields)
    assert not response.success
    assert response.message
    assert ros.call(GetEntities, "get_entities").entities == before
    step(ros, 1)


@with_simulator
def test_scopes_of_resets_that_do_not_exist_are_refused(ros: RosClient) -> None:
    before = ros.call(GetEntities, "get_entities").entities
    for scope in (8, 99, 254):
        response = ros.call(ResetSimulation, "reset_simulation", scope=scope)
        assert response.result.result == Result.RESULT_OPERATION_FAILED
        assert f"scope is {scope}, expected" in response.result.error_message
    assert ros.call(GetEntities, "get_entities").entities == before


@with_simulator
def test_names_and_filters_are_taken_literally_or_refused(ros: RosClient) -> None:
    part_id = _loose_brick(ros, 0.1)
    assert ros.call(GetEntityState, "get_entity_state", entity=f"brick_{part_id}").result.result
    arabic = "".join(chr(0x660 + int(digit)) for digit in str(part_id))
    for name in (f"brick_0{part_id}", f"brick_{arabic}", f"brick_{'9' * 5000}"):
        response = ros.call(GetEntityState, "get_entity_state", entity=name)
        assert response.result.result == Result.RESULT_NOT_FOUND, name
    for pattern in ("(" * 10_000, "a{99999999999}"):
        response = ros.call(GetEntities, "get_entities", filters=EntityFilters(filter=pattern))
        assert response.result.result == Result.RESULT_OPERATION_FAILED
        assert "pattern" in response.result.error_message
    fast = EntityState(twist=Twist(linear=Vector3(x=1e9)))
    response = ros.call(SetEntityState, "set_entity_state", entity=f"brick_{part_id}", state=fast)
    assert response.result.result == SetEntityState.Response.INVALID_POSE
    assert "twist" in response.result.error_message
    step(ros, 1)


@with_simulator
def test_overloads_of_single_frames_that_others_bear_reach_the_diagnostics(
    ros: RosClient, tmp_path
) -> None:
    reports = ros.collect(DiagnosticArray, "/diagnostics")
    bricks = "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(8) for i in range(2))
    file = tmp_path / "wall.json"
    write_structure(parse_structure(bricks, baseplate=None), file)
    connections: set[int] = set()
    angle = 0.6  # one frame of each of these landings overloads what others bear
    for x, z in enumerate([0.9, 1.0, 1.2, 1.5]):
        on_edge = Quaternion(x=math.sin(0.5 * angle), w=math.cos(0.5 * angle))
        pose = PoseStamped(pose=Pose(position=Point(x=0.3 * x, z=z), orientation=on_edge))
        spawned = ros.call(srv.SpawnStructure, "bricksim/spawn_structure", uri=str(file), pose=pose)
        assert spawned.success, spawned.message
        connections.update(spawned.connection_ids)
    step(ros, 60)  # they fall on an edge and hold
    told: set[int] = set()

    def has_been_told() -> bool:
        for report in reports:
            values = {value.key: value.value for value in report.status[0].values}
            told.update(map(int, values["overloaded_but_held"].split()))
        return bool(told)

    ros.wait_for(has_been_told, "what was overloaded")
    assert told <= connections
    assert {c.id for c in latest_topology(ros).connections} == connections


@with_simulator
def test_a_step_that_the_engine_cannot_make_pauses_the_simulation(ros: RosClient) -> None:
    reports = ros.collect(DiagnosticArray, "/diagnostics")
    upper = _loose_brick(ros, 0.1)
    publisher = ros.node.create_publisher(WrenchStamped, "bricksim/apply_wrench", 10)
    ros.wait_for(publisher.get_subscription_count, "the simulator to take wrenches")
    set_state(ros, SimulationState.STATE_PLAYING)
    wrench = WrenchStamped()
    wrench.header.frame_id = f"brick_{upper}"
    wrench.wrench.force.x = 1e9
    publisher.publish(wrench)

    def state() -> int:
        return ros.call(GetSimulationState, "get_simulation_state").state.state

    ros.wait_for(lambda: state() == SimulationState.STATE_PAUSED, "the simulation to pause")
    ros.wait_for(
        lambda: any("unstable" in r.status[0].message for r in reports), "the reason as diagnostics"
    )
    assert all(
        r.status[0].level == DiagnosticStatus.ERROR
        for r in reports
        if "unstable" in r.status[0].message
    )
    step(ros, 1)


@with_simulator
def test_export_is_what_a_reader_takes(ros: RosClient, tmp_path: Path) -> None:
    spawn_text(ros, TOWER.read_text())
    path = tmp_path / "out.json"
    response = ros.call(srv.ExportTopology, "bricksim/export_topology", path=str(path))
    assert response.success, response.message
    exported = read_structure(path)
    assert len(exported.graph) == 5
    assert len(exported.graph.connections) == 4


@with_simulator
def test_streams_reach_a_best_effort_subscriber_and_tf_follows(ros: RosClient) -> None:
    states = ros.collect(
        msg.BrickStateArray,
        "bricksim/brick_states",
        QoSProfile(depth=50, reliability=QoSReliabilityPolicy.BEST_EFFORT),
    )
    tf = ros.collect(TFMessage, "/tf")
    spawn_text(ros, TOWER.read_text())
    ros.spin_for(1.0)
    for _ in range(20):
        step(ros, 2)
        ros.spin_for(0.02)
    ros.wait_for(lambda: states and tf, "states and transforms")
    last = states[-1]
    count = len(last.part_ids)
    assert count == 5
    assert len(last.positions) == len(last.linear_velocities) == 3 * count
    assert len(last.orientations) == 4 * count
    frames = {t.child_frame_id for m in tf for t in m.transforms}
    assert frames == {f"brick_{i}" for i in last.part_ids}
    assert {t.header.frame_id for m in tf for t in m.transforms} == {"world"}
