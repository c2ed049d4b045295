# SPDX-License-Identifier: Apache-2.0
"""Whole systems: launch files with simulator, markers and recorder; how they start and end."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import launch_pytest
import numpy as np
import pytest
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, Pose, PoseStamped
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch_pytest.actions import ReadyToTest
from launch_ros.actions import Node
from launched import finished, has_node, launch, left, node_pid
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.qos import QoSProfile
from ros_client import RosClient, ros_client
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import Result, SimulationState
from simulation_interfaces.srv import (
    GetEntities,
    ResetSimulation,
    SetSimulationState,
    StepSimulation,
)
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from bricksim_core.episodes.reader import read_episode, verify
from bricksim_core.episodes.replay import episode_recording
from bricksim_core.spatial import transform
from bricksim_msgs import msg, srv
from bricksim_ros.publishing import EVENTS, LATCHED

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
TOWER = DATA / "bricksim" / "demo_assembly_structure1.json"
GUITAR = DATA / "brickgpt" / "texture_guitar.txt"
LAUNCH = Path(get_package_share_directory("bricksim_ros")) / "launch"


def _include(name: str, **arguments: str) -> IncludeLaunchDescription:
    return IncludeLaunchDescription(str(LAUNCH / name), launch_arguments=list(arguments.items()))


def _state(ros: RosClient, state: int) -> None:
    response = ros.call(
        SetSimulationState, "set_simulation_state", state=SimulationState(state=state)
    )
    codes = (Result.RESULT_OK, SetSimulationState.Response.ALREADY_IN_TARGET_STATE)
    assert response.result.result in codes


def _wait_for_recorder(ros: RosClient) -> None:
    """Waits until the simulator and the recorder have found each other."""

    def takes_the_clock() -> bool:
        return any(
            info.node_name == "recorder"
            for info in ros.node.get_subscriptions_info_by_topic("/clock")
        )

    ros.wait_for(takes_the_clock, "the recorder to take the clock")
    ros.spin_for(1.0)


def _wait_for_bag(ros: RosClient, bag: Path) -> None:
    """Waits until a bag has begun: with the next clock, which a paused simulation repeats."""
    ros.wait_for(lambda: list(bag.glob("*.mcap")), "the bag")


# -- recording -----------------------------------------------------------------------------------


@launch_pytest.fixture
def recorded_scene(tmp_path):
    """The scene launch file with a recorder, which begins long after the scene is there."""
    return LaunchDescription(
        [
            _include(
                "scene.launch.py",
                structures=f"{TOWER},{GUITAR}",
                start_paused="true",
                real_time_factor="0",
            ),
            Node(package="bricksim_ros", executable="recorder", output="screen"),
            ReadyToTest(),
        ]
    )


@pytest.mark.launch(fixture=recorded_scene)
def test_an_episode_is_recorded_and_replays_like_the_live_run(recorded_scene, tmp_path) -> None:
    with ros_client() as ros:
        events = ros.collect(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
        states = ros.collect(msg.BrickStateArray, "bricksim/brick_states", 2000)
        topologies = ros.collect(msg.BrickTopology, "bricksim/topology", LATCHED)
        ros.wait_for(lambda: topologies, "the topology")
        _wait_for_recorder(ros)
        ros.call(StepSimulation, "step_simulation", steps=60)
        ros.spin_for(3.0)
        bag = tmp_path / "bag"
        started = ros.call(
            srv.StartRecording,
            "bricksim/start_recording",
            path=str(bag),
            name="late",
            metadata=["operator=test"],
        )
        assert started.success, started.message
        again = ros.call(srv.StartRecording, "bricksim/start_recording", path=str(bag))
        assert not again.success and "running" in again.message
        _wait_for_bag(ros, bag)
        first = len(events)
        ros.call(StepSimulation, "step_simulation", steps=30)
        connection = topologies[-1].connections[0]
        broken = ros.call(srv.Disconnect, "bricksim/disconnect", connection_ids=[connection.id])
        assert broken.success, broken.message
        spawned = ros.call(
            srv.SpawnStructure,
            "bricksim/spawn_structure",
            uri=str(TOWER),
            pose=PoseStamped(pose=Pose(position=Point(y=1.0))),
        )
        assert spawned.success, spawned.message
        ros.call(StepSimulation, "step_simulation", steps=30)
        ros.spin_for(3.0)
        stopped = ros.call(srv.StopRecording, "bricksim/stop_recording")
        assert stopped.success, stopped.message
        assert stopped.dropped == 0
        live_events, live_states = events[first:], list(states)
        idle = ros.call(srv.StopRecording, "bricksim/stop_recording")
        assert not idle.success

    episode = read_episode(bag)
    assert verify(episode) == []
    assert [e.sequence for e in episode.events] == [e.sequence for e in live_events]
    assert episode.metadata["operator"] == "test"
    assert "structure.json" in episode.attachments
    # 60 steps of 1/60 s: the clock of the first one is the beginning.
    assert stopped.duration == pytest.approx(1.0, abs=1.001 / 60)
    assert episode.end - episode.start == pytest.approx(stopped.duration, abs=1e-9)
    assert episode.topologies[0][0] == pytest.approx(episode.start)
    assert all(t >= episode.start for t, _ in episode.topologies)

    # A copy of a split that was left in the folder counts once.
    shutil.copy(bag / "bag_0.mcap", bag / "bag_0 (copy).mcap")
    again = read_episode(bag)
    assert [e.sequence for e in again.events] == [e.sequence for e in episode.events]
    assert len(again.states) == len(episode.states)

    last = live_states[-1]
    recording = episode_recording(episode)
    live = transform(
        np.array(last.positions).reshape(-1, 3), np.array(last.orientations).reshape(-1, 4)
    )
    assert list(recording.parts) == list(last.part_ids)
    assert np.allclose(recording.world_T_part[-1], live, atol=1e-12)

    with AnyReader([bag]) as reader:
        types = {c.topic: c.msgtype for c in reader.connections}
        times = [t for _, t, _ in reader.messages()]
        clocks = [t for c, t, _ in reader.messages() if c.topic == "/clock"]
    assert types["/bricksim/topology"] == "bricksim_msgs/msg/BrickTopology"
    assert min(times) == min(clocks), "no message precedes the first clock"
    assert (bag / "metadata.yaml").read_text().count("transient_local") >= 1

    done = subprocess.run(
        [sys.executable, "-m", "bricksim_core", "replay", str(bag), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equals the events" in done.stdout
    assert (tmp_path / "out" / "strip.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "video.mp4").stat().st_size > 5_000


@pytest.mark.launch(fixture=recorded_scene)
def test_a_reset_of_time_begins_a_new_bag(recorded_scene, tmp_path) -> None:
    with ros_client() as ros:
        bag = tmp_path / "bag"
        _wait_for_recorder(ros)
        ros.call(srv.StartRecording, "bricksim/start_recording", path=str(bag))
        _wait_for_bag(ros, bag)
        for scope in (ResetSimulation.Request.SCOPE_ALL, ResetSimulation.Request.SCOPE_TIME):
            ros.call(StepSimulation, "step_simulation", steps=60)
            ros.spin_for(1.0)
            ros.call(ResetSimulation, "reset_simulation", scope=scope)
        ros.call(StepSimulation, "step_simulation", steps=10)
        _wait_for_bag(ros, tmp_path / "bag_2")
        ros.spin_for(1.0)
        stopped = ros.call(srv.StopRecording, "bricksim/stop_recording")
        assert stopped.success, stopped.message
    episodes = [read_episode(tmp_path / name) for name in ("bag", "bag_1", "bag_2")]
    for episode in episodes:
        assert verify(episode) == []
        assert len(episode.topologies) >= 1
    assert episodes[1].start < episodes[0].end
    assert episodes[2].start < episodes[1].end


# -- markers -------------------------------------------------------------------------------------


@launch_pytest.fixture
def scene_with_markers():
    """The scene launch file, playing."""
    return LaunchDescription([_include("scene.launch.py", structures=str(TOWER)), ReadyToTest()])


@pytest.mark.launch(fixture=scene_with_markers)
def test_a_restarted_viewer_sees_everything_and_then_only_changes(scene_with_markers) -> None:
    def bricks(arrays: list[MarkerArray]) -> set[int]:
        return {m.id for a in arrays for m in a.markers if m.ns == "bricks"}

    for _ in range(2):
        with ros_client() as ros:
            arrays = ros.collect(MarkerArray, "bricksim/markers", LATCHED)
            ros.wait_for(lambda: len(bricks(arrays)) == 5, "markers of five bricks")  # noqa: B023
    with ros_client() as ros:
        arrays = ros.collect(MarkerArray, "bricksim/markers", LATCHED)
        ros.wait_for(lambda: len(bricks(arrays)) == 5, "markers of five bricks")
        ros.spin_for(1.5)
        del arrays[:]
        ros.spin_for(1.5)
        assert not bricks(arrays), "nothing changed, yet bricks are sent again"
        ros.call(
            srv.Disconnect,
            "bricksim/disconnect",
            connection_ids=[0],
        )
        ros.wait_for(
            lambda: [m for a in arrays for m in a.markers if m.action == Marker.DELETE],
            "the deletion of the connection's marker",
        )


# -- robots --------------------------------------------------------------------------------------


@launch_pytest.fixture
def scene_with_arm():
    """The shared scene of a Franka beside a crane, as fast as possible."""
    scene = "package://bricksim_ros/config/scenes/arm_and_crane.yaml"
    return LaunchDescription(
        [_include("scene.launch.py", scene=scene, real_time_factor="0"), ReadyToTest()]
    )


@pytest.mark.launch(fixture=scene_with_arm)
def test_an_arm_moves_where_joint_commands_say(scene_with_arm) -> None:
    with ros_client() as ros:
        states = ros.collect(JointState, "joint_states", 10)
        tf = ros.collect(TFMessage, "/tf", 10)
        description = ros.collect(String, "robot_description", LATCHED)
        ros.wait_for(lambda: states and tf and description, "the arm")
        assert "fr3_joint7" in description[-1].data
        names = list(states[-1].name)
        start = dict(zip(names, states[-1].position, strict=True))
        goal = {"fr3_joint1": start["fr3_joint1"] + 0.4, "fr3_joint4": start["fr3_joint4"] + 0.2}
        commands = ros.node.create_publisher(JointState, "joint_commands", 10)
        ros.wait_for(commands.get_subscription_count, "the simulator to take commands")
        commands.publish(JointState(name=list(goal), position=list(goal.values())))

        def there() -> bool:
            now = dict(zip(states[-1].name, states[-1].position, strict=True))
            return all(abs(now[joint] - goal[joint]) < 0.01 for joint in goal)

        ros.wait_for(there, "the arm to be where it was sent")
        now = dict(zip(states[-1].name, states[-1].position, strict=True))
        assert now["fr3_joint2"] == pytest.approx(start["fr3_joint2"], abs=0.02)
        # One parent for each frame, one root.
        parents: dict[str, set[str]] = {}
        for message in tf:
            for item in message.transforms:
                parents.setdefault(item.child_frame_id, set()).add(item.header.frame_id)
        assert all(len(found) == 1 for found in parents.values())
        assert set().union(*parents.values()) - set(parents) == {"world"}
        assert {"fr3_link0", "fr3_hand_tcp", "brick_0"} <= set(parents)


# -- clock, namespaces, load ---------------------------------------------------------------------


@launch_pytest.fixture
def two_namespaces():
    """Two simulators side by side; one of them has the clock."""
    return LaunchDescription(
        [
            Node(
                package="bricksim_ros",
                executable="simulator",
                namespace=name,
                parameters=[
                    {
                        "publish_clock": name == "left",
                        "frame_prefix": f"{name}/",
                        "structures": [str(TOWER)],
                    },
                ],
                output="screen",
            )
            for name in ("left", "right")
        ]
        + [ReadyToTest()]
    )


@pytest.mark.launch(fixture=two_namespaces)
def test_two_simulators_in_two_namespaces_do_not_meet(two_namespaces) -> None:
    with ros_client("left") as left, ros_client("right") as right:
        clocks = left.collect(Clock, "/clock")
        left.wait_for(lambda: clocks, "the clock", timeout=30)
        tf = left.collect(TFMessage, "/tf", 100)
        wanted = {f"{name}/brick_{i}" for name in ("left", "right") for i in range(5)}
        left.wait_for(
            lambda: {t.child_frame_id for m in tf for t in m.transforms} == wanted,
            "frames of both simulators, apart by their prefix",
        )
        assert left.node.count_publishers("/clock") == 1
        pose = PoseStamped(pose=Pose(position=Point(y=1.0)))
        spawned = left.call(
            srv.SpawnStructure, "bricksim/spawn_structure", uri=str(TOWER), pose=pose
        )
        assert spawned.success, spawned.message
        counts = [len(ros.call(GetEntities, "get_entities").entities) for ros in (left, right)]
        assert counts == [2 + 10, 1 + 5]


@launch_pytest.fixture
def many_bricks(tmp_path):
    """Two hundred loose bricks, in real time."""
    rows = [f"2x4 ({3 * (i % 20)},{5 * (i // 20)},0)" for i in range(200)]
    path = tmp_path / "many.txt"
    path.write_text("\n".join(rows) + "\n")
    scene = tmp_path / "scene.yaml"
    scene.write_text(f"structures: [{{file: {path}, baseplate: none}}]\n")
    return LaunchDescription(
        [
            Node(
                package="bricksim_ros",
                executable="simulator",
                parameters=[{"scene": str(scene), "start_paused": True}],
                output="screen",
            ),
            ReadyToTest(),
        ]
    )


@pytest.mark.launch(fixture=many_bricks)
def test_every_event_arrives_once_and_in_order(many_bricks) -> None:
    with ros_client() as ros:
        events = ros.collect(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
        states = ros.collect(msg.BrickStateArray, "bricksim/brick_states", QoSProfile(depth=1000))
        _state(ros, SimulationState.STATE_PLAYING)
        ros.wait_for(lambda: states and len(states[-1].part_ids) == 200, "200 bricks")
        topology = ros.collect(msg.BrickTopology, "bricksim/topology", LATCHED)
        ros.wait_for(lambda: topology, "the topology")
        parts = [p.id for p in topology[-1].parts]
        made = 0
        for low, high in zip(parts[0::2], parts[1::2], strict=True):
            answer = ros.call(
                srv.Connect, "bricksim/connect", stud_part=low, hole_part=high, offset=(0, 0), yaw=0
            )
            assert answer.success, answer.message
            made += len(answer.connection_ids)
            if made >= 40:
                break
        ros.wait_for(lambda: len(events) >= made, "all events")
        ros.spin_for(0.5)
        assert [e.sequence for e in events] == list(range(made))
        stamps = [e.header.stamp.sec + 1e-9 * e.header.stamp.nanosec for e in events]
        assert stamps == sorted(stamps) and stamps[0] > 0


# -- starting and ending -------------------------------------------------------------------------


@launch_pytest.fixture
def sleeping_simulator():
    """A simulator that is not configured yet."""
    return LaunchDescription(
        [
            Node(
                package="bricksim_ros",
                executable="simulator",
                parameters=[{"autostart": False, "structures": [str(TOWER)]}],
                output="screen",
            ),
            ReadyToTest(),
        ]
    )


@pytest.mark.launch(fixture=sleeping_simulator)
def test_lifecycle_goes_round_ten_times(sleeping_simulator) -> None:
    cycle = {
        Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
        Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
        Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
        Transition.TRANSITION_CLEANUP: State.PRIMARY_STATE_UNCONFIGURED,
    }
    with ros_client() as ros:
        topics: list[int] = []
        for _ in range(10):
            for transition, expected in cycle.items():
                answer = ros.call(
                    ChangeState, "simulator/change_state", transition=Transition(id=transition)
                )
                assert answer.success
                # Once more it is not possible, which must be an answer and not the end of the node.
                again = ros.call(
                    ChangeState, "simulator/change_state", transition=Transition(id=transition)
                )
                assert not again.success
                state = ros.call(GetState, "simulator/get_state").current_state.id
                assert state == expected
                if transition == Transition.TRANSITION_ACTIVATE:
                    received = ros.collect(msg.BrickTopology, "bricksim/topology", LATCHED)
                    ros.wait_for(lambda: received, "the topology")  # noqa: B023
                    assert len(received[-1].parts) == 5
            ros.wait_for(
                lambda: ros.node.count_publishers("bricksim/topology") == 0,
                "the publishers to be gone",
            )
            topics.append(len(ros.node.get_topic_names_and_types()))
        assert len(set(topics[1:])) == 1, "topics are left behind"


def test_ctrl_c_ends_everything_soon_and_the_next_launch_works(ros_domain_id) -> None:
    for _ in range(2):
        process = launch("bricksim_ros", "scene.launch.py", f"structures:={TOWER}", "record:=false")
        try:
            with ros_client() as ros:
                clocks = ros.collect(Clock, "/clock")
                # A process that Python still imports for cannot answer Ctrl-C yet.
                ros.wait_for(
                    lambda: clocks and ros.node.count_publishers("bricksim/markers"),  # noqa: B023
                    "the clock and the markers",
                )
            start = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            output = finished(process, 30.0)
            assert time.monotonic() - start < 10.0  # 3 s on a machine that does nothing else
            assert process.returncode in (0, 130, -signal.SIGINT), output
            assert "Traceback" not in output, output
            assert "has died" not in output, output  # launch's word for another code than 0
            assert left(process) == []
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.06, 0.1])
def test_ctrl_c_while_the_python_of_nodes_starts_ends_them_without_a_traceback(
    delay, ros_domain_id
) -> None:
    process = launch("bricksim_ros", "scene.launch.py", f"structures:={TOWER}")
    try:
        until = time.monotonic() + 30.0
        while not has_node(process, "markers") and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process, 30.0)
        assert "process started" in output
        assert "Traceback" not in output, output
        assert "has died" not in output, output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("program", ["simulator", "markers", "recorder"])
def test_an_interrupt_that_is_repeated_until_the_end_is_one(
    program, ros_domain_id, tmp_path
) -> None:
    """Launch repeats what a terminal has sent, at any time until the process has ended."""
    executable = Path(get_package_prefix("bricksim_ros")) / "lib" / "bricksim_ros" / program
    with (
        ros_client() as ros,
        subprocess.Popen(
            [executable], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path, text=True
        ) as process,
    ):
        try:
            ros.wait_for(lambda: program in ros.node.get_node_names(), "the node")
            ros.spin_for(1.0)
            until = time.monotonic() + 20.0
            while process.poll() is None and time.monotonic() < until:
                process.send_signal(signal.SIGINT)
                time.sleep(0.001)
            assert process.poll() == 0
            assert process.stdout is not None
            output = process.stdout.read()
            assert "Traceback" not in output, output
        finally:
            process.kill()


def test_nobody_waits_busily_for_a_paused_simulation(ros_domain_id, tmp_path) -> None:
    arguments = [f"structures:={GUITAR}", "start_paused:=true", "record:=true"]
    process = launch("bricksim_ros", "scene.launch.py", *arguments, f"bag:={tmp_path / 'bag'}")
    try:
        with ros_client() as ros:
            _wait_for_bag(ros, tmp_path / "bag")
        nodes = {name: node_pid(process, name) for name in ("simulator", "markers", "recorder")}
        before = {name: _processor_time(pid) for name, pid in nodes.items()}
        begin = time.monotonic()
        time.sleep(2.0)
        lasted = time.monotonic() - begin
        for name, pid in nodes.items():
            assert _processor_time(pid) - before[name] < 0.4 * lasted, name
    finally:
        os.killpg(process.pid, signal.SIGINT)
        finished(process)


def _processor_time(pid: int) -> float:
    """What a process has used so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_simulator_that_is_killed_fails_the_launch(ros_domain_id) -> None:
    process = launch("bricksim_ros", "scene.launch.py", f"structures:={TOWER}")
    with ros_client() as ros:
        clocks = ros.collect(Clock, "/clock")
        ros.wait_for(lambda: clocks, "time to flow")
    os.kill(node_pid(process, "simulator"), signal.SIGKILL)
    output = finished(process)
    assert process.returncode == 1, output
    assert "simulator-1 was killed by signal 9" in output
    assert left(process) == []


def test_a_bad_scene_ends_with_one_clear_line(ros_domain_id, tmp_path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("structures: [{file: nowhere.json}]\n")
    process = launch("bricksim_ros", "scene.launch.py", f"scene:={bad}")
    output = finished(process)
    assert process.returncode == 1
    assert "nowhere.json" in output
    assert "Traceback" not in output, output
    assert left(process) == []


def test_a_recording_that_cannot_begin_ends_the_launch(ros_domain_id, tmp_path) -> None:
    """It must not hold the simulation for ever."""
    process = launch(
        "bricksim_ros",
        "scene.launch.py",
        "record:=true",
        f"bag:={tmp_path}",
        "markers:=false",
        "recrod:=true",
    )
    output = finished(process)
    assert process.returncode == 1
    assert "exists, expected a new folder" in output
    assert "Traceback" not in output, output
    assert "recrod:= is not known; is record:= meant?" in output
    assert left(process) == []


@launch_pytest.fixture
def recorder_on_a_full_disk():
    """A scene whose recorder may write no file beyond 64 KiB."""
    recorder = Node(
        package="bricksim_ros",
        executable="recorder",
        name="recorder",
        prefix='bash -c \'ulimit -f 64; exec "$0" "$@"\'',
        output="screen",
    )
    scene = _include("scene.launch.py", structures=str(GUITAR), markers="false")
    return LaunchDescription([scene, recorder, ReadyToTest()])


@pytest.mark.launch(fixture=recorder_on_a_full_disk)
def test_a_full_disk_ends_the_recording_and_nothing_else(recorder_on_a_full_disk, tmp_path) -> None:
    with ros_client() as ros:
        reports = ros.collect(DiagnosticArray, "/diagnostics")
        _wait_for_recorder(ros)
        bag = tmp_path / "bag"
        started = ros.call(srv.StartRecording, "bricksim/start_recording", path=str(bag))
        assert started.success, started.message
        ros.wait_for(
            lambda: any("ended early" in s.message for r in reports for s in r.status),
            "the recorder to say so",
        )
        stopped = ros.call(srv.StopRecording, "bricksim/stop_recording")
        assert not stopped.success
        assert "ended early" in stopped.message
        assert stopped.messages > 10
        again = ros.call(srv.StartRecording, "bricksim/start_recording", path="/proc/no/bag")
        assert not again.success
        assert "/proc/no/bag cannot be written" in again.message
    assert len(read_episode(bag).states) > 10


def test_a_parameter_out_of_range_ends_with_one_clear_line(ros_domain_id) -> None:
    process = launch("bricksim_ros", "scene.launch.py", "real_time_factor:=-1.0", "markers:=false")
    output = finished(process)
    assert "real_time_factor" in output and "-1.0" in output
    assert "Traceback" not in output, output
    assert left(process) == []


def test_the_press_demo_connects(ros_domain_id) -> None:
    process = launch(
        "bricksim_ros", "demo_press.launch.py", "real_time_factor:=1.0", "markers:=false"
    )
    output = finished(process)
    assert "connected: part" in output, output
    assert process.returncode == 0
    assert left(process) == []


def test_the_drop_demo_ends_by_itself(ros_domain_id, tmp_path) -> None:
    process = launch(
        "bricksim_ros",
        "demo_drop.launch.py",
        f"structure:={GUITAR}",
        "roll_deg:=40",
        "duration:=0.5",
        "record:=true",
        f"bag:={tmp_path / 'bag'}",
    )
    output = finished(process)
    assert "Traceback" not in output, output
    assert left(process) == []
    episode = read_episode(tmp_path / "bag")
    assert verify(episode) == []
    first, last = episode.states[0], episode.states[-1]
    assert first.world_T_part[:, 2, 3].min() > last.world_T_part[:, 2, 3].min()


@pytest.mark.parametrize("name", ["scene", "demo_drop", "demo_press"])
def test_arguments_are_described(name: str) -> None:
    done = subprocess.run(
        ["ros2", "launch", "bricksim_ros", f"{name}.launch.py", "--show-args"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for argument in ("engine", "use_sim_time", "namespace", "rviz", "record", "frame_prefix"):
        assert f"'{argument}'" in done.stdout
    assert "No description" not in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("isaacsim") is not None, reason="Isaac Sim is here")
def test_an_engine_that_is_missing_is_told_before_anything_starts(tmp_path):
    bag = tmp_path / "bag"
    process = launch(
        "bricksim_ros", "demo_drop.launch.py", "engine:=isaacsim", "record:=true", f"bag:={bag}"
    )
    text = finished(process)
    assert process.returncode != 0
    (line,) = [line for line in text.splitlines() if "ERROR" in line]
    assert "Isaac Sim is not installed for" in line
    assert "process started" not in text
    assert not bag.exists()
