# SPDX-License-Identifier: Apache-2.0
"""assemble.launch.py and inhand.launch.py as users start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from launched import finished, launch, left
from ros_client import ros_client
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import SetSimulationState

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.episodes.reader import read_episode, verify
from bricksim_msgs import action
from bricksim_msgs.msg import HandlingStage

DATA = Path(__file__).parents[2] / "bricksim_core/test/data"
TOWER = DATA / "bricksim/demo_assembly_structure1.json"
FLOATING = DATA / "brickgpt/test_floating.txt"

PACKAGE = "bricksim_moveit_demo"
TIMEOUT = 240.0
"""Longest episode [s]."""


def summary_in(folder: Path) -> dict:
    """The summary of an episode but for wall times."""
    summary = json.loads((folder / "summary.json").read_text())
    reports = [summary.get("join"), summary.get("place"), *summary.get("reports", [])]
    for document in filter(None, (summary, *reports)):
        del document["planning_time"]
    return summary


def well_ended(folder: Path, *arguments: str) -> dict:
    """The summary that an episode which ends well leaves in a folder."""
    process = launch(PACKAGE, *arguments, f"out:={folder}")
    output = finished(process, TIMEOUT)
    assert process.returncode == 0, output
    assert "Traceback" not in output, output
    assert left(process) == []
    return summary_in(folder)


def events(folder: Path) -> list[tuple]:
    """Stamps, kinds and connections of the events in an episode's bag."""
    return [
        (e.header.stamp.sec, e.header.stamp.nanosec, e.kind, e.connection.hole_part, e.force)
        for e in read_episode(folder / "bag").events
    ]


def recorded(folder: Path, topic: str) -> list[tuple[float, Any]]:
    """Time stamps [s] and messages of a topic in an episode's bag."""
    with AnyReader([folder / "bag"]) as reader:
        connections = [c for c in reader.connections if c.topic == topic]
        read: list[Any] = [
            reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(connections)
        ]
    return [(m.header.stamp.sec + m.header.stamp.nanosec * 1e-9, m) for m in read]


def test_one_arm_builds_a_structure_of_five_bricks(ros_domain_id, tmp_path) -> None:
    """The table is too small for all bricks: some come when others are used."""
    bricks = tmp_path / "five.txt"
    bricks.write_text("2x4 (4,4,0)\n2x4 (4,8,0)\n2x6 (4,5,1)\n2x2 (4,5,2)\n4x2 (3,7,2)\n")
    layout = tmp_path / "layout.yaml"
    layout.write_text("regions: [[0.40, 0.15, 0.56, 0.25]]\n")
    process = launch(
        PACKAGE,
        "assemble.launch.py",
        f"structure:={bricks}",
        f"layout:={layout}",
        f"out:={tmp_path}",
        "film:=false",
        "seed:=3",
    )
    output = finished(process, TIMEOUT)
    assert process.returncode == 0, output
    assert "Traceback" not in output, output
    assert "context is invalid" not in output
    assert left(process) == []
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["success"] and summary["inserted"] == summary["total"] == 5
    for report in summary["reports"]:
        assert report["outcome"] == "succeeded"
        assert report["duration"] > 1.0 and report["tries"] >= 1 and report["press_force"] > 0.0
    episode = read_episode(tmp_path / "bag")
    assert verify(episode) == []
    assert episode.end - episode.start == pytest.approx(summary["duration"], abs=0.1)
    there = [len(message.parts) for _, message in episode.topologies]
    assert 1 <= there[0] < 6 and there == sorted(there)
    built = structure_from_topology(episode.topologies[-1][1]).graph
    assert len(built) == 6 and len(built.component_ids) == 1
    # The bag labels what the arm did, and its wrench is the force that the summary tells.
    stages = recorded(tmp_path, "/fr3/handling_stage")
    assert stages[-1][1].stage == "idle"
    wrenches = recorded(tmp_path, "/fr3/wrench")
    for report in summary["reports"]:
        own = [(t, m.stage) for t, m in stages if m.part_id == report["part_id"]]
        told = list(dict.fromkeys(stage for _, stage in own))
        wanted = ["planning", "approaching", "grasping", "lifting", "transferring", "inserting"]
        assert told[:8] == [*wanted, "pressing", "releasing"], told
        pressing = [t for t, stage in own if stage == "pressing"]
        released = next(t for t, stage in own if stage == "releasing")
        felt = [abs(m.wrench.force.z) for t, m in wrenches if pressing[0] <= t <= released]
        assert max(felt) == pytest.approx(report["press_force"], rel=0.2)


def test_two_arms_build_with_the_bricks_on_their_sides(ros_domain_id, tmp_path) -> None:
    """One brick lies beside each arm: each takes its own and presses it onto the shared plate."""
    bricks = tmp_path / "zwei Stück.txt"
    bricks.write_text("2x4 (4,4,0)\n2x4 (4,8,0)\n")
    layout = tmp_path / "layout.yaml"
    layout.write_text("bricks: {1: [0.36, -0.25, 0], 2: [0.74, 0.25, 20]}\n")
    arguments = [
        "assemble.launch.py",
        "arms:=2",
        f"structure:={bricks}",
        f"layout:={layout}",
        "film:=false",
        "seed:=1",
    ]
    first, second = tmp_path / "first", tmp_path / "second"
    summary = well_ended(first, *arguments)
    assert summary["success"] and summary["inserted"] == summary["total"] == 2
    arms = {report["part_id"]: report["arm"] for report in summary["reports"]}
    assert arms == {1: "left", 2: "right"}
    # A seed gives the same run again, as far as it goes: the second one ends at 14 s.
    process = launch(PACKAGE, *arguments, f"out:={second}", "duration:=14")
    output = finished(process, TIMEOUT)
    assert process.returncode == 1, output
    again = summary_in(second)
    assert not again["success"] and again["outcome"] == "interrupted"
    assert again["reports"] == summary["reports"][:1] and again["total"] == 2
    assert len(events(first)) == 2 and events(second) == events(first)[:1]


def test_two_arms_join_two_bricks_in_the_air(ros_domain_id, tmp_path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    summary = well_ended(first, "inhand.launch.py", "record:=false")
    assert summary["success"] and summary["outcome"] == "succeeded" and summary["handed_over"]
    assert (first / "final.png").stat().st_size > 10_000
    assert (first / "video.mp4").stat().st_size > 10_000
    # A seed gives the same run again, with a film or without.
    assert well_ended(second, "inhand.launch.py", "record:=false", "film:=false") == summary


def test_what_cannot_be_built_ends_with_its_cause_and_exit_code_1(ros_domain_id, tmp_path) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text("bricks: {77: [0.45, 0.25, 30]}\n")
    floating = tmp_path / "floating"
    cases = [
        (["structure:=nowhere.json", "arm:=2"], "nowhere.json", "arm:= is not known; is arms:="),
        ([f"structure:={FLOATING}", f"out:={floating}"], "not connected to the ground"),
        ([f"structure:={TOWER}", f"layout:={layout}"], "77"),
        ([f"structure:={TOWER}", "noise:=little"], "noise"),
    ]
    for arguments, *texts in cases:
        process = launch(PACKAGE, "assemble.launch.py", "record:=false", *arguments)
        output = finished(process, TIMEOUT)
        assert process.returncode == 1, output
        assert all(text in output for text in texts), output
        assert "Traceback" not in output, output
        assert left(process) == []
    summary = json.loads((floating / "summary.json").read_text())
    assert not summary["success"] and summary["outcome"] == "invalid_goal"
    assert (summary["inserted"], summary["total"]) == (0, 2)
    assert "part 2" in summary["message"] and "not connected" in summary["message"]


def test_ctrl_c_in_the_middle_ends_everything(ros_domain_id, tmp_path) -> None:
    process = launch(PACKAGE, "assemble.launch.py", f"structure:={TOWER}", f"out:={tmp_path}")
    try:
        with ros_client() as ros:
            clocks = ros.collect(Clock, "/clock")
            ros.wait_for(lambda: clocks and clocks[-1].clock.sec >= 2, "the arm to be at work")
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process, 60.0)
        assert time.monotonic() - start < 20.0  # 3 s on a machine that does nothing else
        assert "Traceback" not in output, output
        assert left(process) == []
        assert read_episode(tmp_path / "bag").end > 1.0
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert not summary["success"] and summary["outcome"] == "interrupted"
        assert "brick" in summary["message"] and "interrupted" in summary["message"]
        assert (summary["inserted"], summary["total"]) == (len(summary["reports"]), 4)
        assert summary["duration"] > 1.0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_an_episode_begins_when_the_simulation_goes(ros_domain_id, tmp_path) -> None:
    """Who lets it go, as a recorder does once it listens, misses nothing of it."""
    held = ["start_paused:=true", "record:=false", "film:=false"]
    process = launch(
        PACKAGE, "assemble.launch.py", f"structure:={TOWER}", f"out:={tmp_path}", *held
    )
    try:
        with ros_client() as ros:
            clocks = ros.collect(Clock, "/clock")
            stages = ros.collect(HandlingStage, "/fr3/handling_stage")
            ros.wait_for(lambda: clocks, "the simulator to be ready")
            ros.spin_for(3.0)
            assert not stages
            state = SimulationState(state=SimulationState.STATE_PLAYING)
            ros.call(SetSimulationState, "set_simulation_state", state=state)
            ros.wait_for(lambda: len(stages) > 1, "the arm to be at work")
        assert [stage.stage for stage in stages[:2]] == ["planning", "approaching"]
    finally:
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process, 60.0)
    assert "Traceback" not in output, output
    assert json.loads((tmp_path / "summary.json").read_text())["outcome"] == "interrupted"


@pytest.mark.parametrize("name", ["assemble", "inhand"])
def test_arguments_are_described(name: str) -> None:
    done = subprocess.run(
        ["ros2", "launch", "bricksim_moveit_demo", f"{name}.launch.py", "--show-args"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for argument in ("engine", "out", "planner", "noise", "seed", "film", "record", "rviz"):
        assert f"'{argument}'" in done.stdout
    assert "No description" not in done.stdout


def test_structures_of_a_scene_stand_in_reach_of_its_arm(ros_domain_id) -> None:
    process = launch("bricksim_ros", "scene.launch.py", f"structures:={TOWER}", "arms:=1")
    try:
        with ros_client() as ros:
            take_off = ros.action(action.Disassemble, "disassemble")
            answer = ros.result(ros.goal(take_off, action.Disassemble.Goal(part_id=4)))
        assert answer.result.success, answer.result
    finally:
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process, 60.0)
    assert "Traceback" not in output, output
    assert left(process) == []
