# SPDX-License-Identifier: Apache-2.0
"""What of the Isaac Sim engine can be tried without Isaac Sim: refusals and action graphs.

The rest is checked against Isaac Sim's sources (scripts/check_isaacsim.py) and, on a machine with
a GPU, by ``bricksim doctor --engine isaacsim``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bricksim_core.doctor import Check
from bricksim_core.engines import create_engine
from bricksim_core.engines.__main__ import main
from bricksim_core.engines.isaacsim import launch
from bricksim_core.engines.isaacsim.checks import checks
from bricksim_core.engines.isaacsim.graphs import clock_graph, robot_graph
from bricksim_core.engines.isaacsim.launch import IsaacOptions
from bricksim_core.errors import EngineError

STRUCTURE = Path(__file__).parent / "data" / "bricksim" / "demo_assembly_structure1.json"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A workstation installation as far as it is looked at: package, VERSION, licence, GPU."""
    package = tmp_path / "isaacsim" / "__init__.py"
    package.parent.mkdir()
    package.write_text("import sys\nsys.exit('Unable to bootstrap inner kit kernel: no libcarb')\n")
    (tmp_path / "VERSION").write_text("6.2.0-rc.18+release.1234")
    gpu = tmp_path / "gpus"
    (gpu / "0000:01:00.0").mkdir(parents=True)
    monkeypatch.setenv("ISAAC_PATH", str(tmp_path))
    monkeypatch.delenv("OMNI_KIT_ACCEPT_EULA", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(launch, "_GPU_MARKS", (gpu,))
    monkeypatch.delitem(sys.modules, "isaacsim", raising=False)
    return tmp_path


def test_isaac_sim_missing_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"Isaac Sim is not installed for .*python") as error:
        create_engine("isaacsim")
    assert "\n" not in str(error.value)


def test_all_requirements_met(installed):
    launch.require_startable()
    assert launch.require_release() == "6.2.0"


@pytest.mark.parametrize("version", ["5.1.0-rc.1", "6.20.0", "", "7.0.0"])
def test_another_release_is_refused(installed, version):
    (installed / "VERSION").write_text(version)
    with pytest.raises(EngineError, match=r"Isaac Sim is .*, expected 6\.2\.\*"):
        create_engine("isaacsim")


def test_the_licence_has_to_be_accepted_where_pip_installed_it(installed, monkeypatch):
    monkeypatch.delenv("ISAAC_PATH")
    monkeypatch.setattr(launch, "_version", lambda: "6.2.0.0")
    with pytest.raises(EngineError, match="OMNI_KIT_ACCEPT_EULA=YES"):
        launch.require_startable()
    monkeypatch.setenv("OMNI_KIT_ACCEPT_EULA", "no")
    with pytest.raises(EngineError, match="OMNI_KIT_ACCEPT_EULA=YES"):
        launch.require_startable()
    monkeypatch.setenv("OMNI_KIT_ACCEPT_EULA", "Y")
    launch.require_startable()
    monkeypatch.delenv("OMNI_KIT_ACCEPT_EULA")
    mark = installed / "isaacsim" / "kit" / "EULA_ACCEPTED"
    mark.parent.mkdir()
    mark.write_text("yes")
    launch.require_startable()


def test_no_gpu_is_one_clear_line(installed, monkeypatch):
    monkeypatch.setattr(launch, "_GPU_MARKS", (installed / "nothing",))
    with pytest.raises(EngineError, match="there is no NVIDIA GPU"):
        create_engine("isaacsim")


def test_a_start_that_fails_does_not_end_the_process(installed, monkeypatch):
    for name in [n for n in sys.modules if n == "pxr" or n.startswith("pxr.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EngineError, match="does not start: Unable to bootstrap inner kit kernel"):
        create_engine("isaacsim")


def test_the_application_takes_neither_the_command_line_nor_ctrl_c(installed, monkeypatch):
    """Kit would read our arguments as its own; its handler ends everything with exit code 0."""
    package = installed / "isaacsim" / "__init__.py"
    package.write_text(
        "import signal, sys\n"
        "class SimulationApp:\n"
        "    def __init__(self, configuration, experience):\n"
        "        self.seen = list(sys.argv), dict(configuration)\n"
        "        signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    )
    for name in [n for n in sys.modules if n == "pxr" or n.startswith("pxr.")]:
        monkeypatch.delitem(sys.modules, name)
    words = ["simulator", "--ros-args", "-p", "engine:=isaacsim"]
    monkeypatch.setattr(sys, "argv", words)
    before = signal.getsignal(signal.SIGINT)
    app = launch.launch(IsaacOptions(headless=False, launch={"width": 800}))
    arguments, configuration = app.seen
    assert arguments == ["simulator"] and sys.argv == words
    assert configuration == {"headless": False, "fast_shutdown": False, "width": 800}
    assert signal.getsignal(signal.SIGINT) is before


def test_openusd_must_not_be_loaded_before_kit(installed, monkeypatch):
    monkeypatch.setitem(
        sys.modules,
        "pxr.Usd",
        importlib.util.module_from_spec(importlib.machinery.ModuleSpec("pxr.Usd", None)),
    )
    with pytest.raises(EngineError, match="was imported before Isaac Sim was started"):
        create_engine("isaacsim")


def test_unknown_options_are_refused_before_anything_starts():
    with pytest.raises(EngineError, match="unexpected keyword argument 'speed'"):
        create_engine("isaacsim", speed=3)
    with pytest.raises(EngineError, match="frame_steps is 0"):
        create_engine("isaacsim", frame_steps=0)
    with pytest.raises(EngineError, match="engine is 'bullet', expected one of mujoco, ovphysx"):
        create_engine("bullet")


def test_whether_an_engine_can_start_is_told_in_one_line(capsys):
    assert main("mujoco") == main() == 0
    assert capsys.readouterr().err == ""
    for name, message in (("isaacsim", "Isaac Sim is "), ("bullet", "engine is 'b")):
        assert main(name) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(message)


def test_steps_that_isaac_sim_would_cut_are_refused_before_anything_starts(installed):
    with pytest.raises(EngineError, match=r"400\.16 steps a second: Isaac Sim takes whole numbers"):
        create_engine("isaacsim", timestep=1.0 / 400.16)
    with pytest.raises(EngineError, match=r"does not start|was imported before"):
        create_engine("isaacsim", timestep=1.0 / 420.0)


@pytest.mark.parametrize(
    ("files", "environment", "message"),
    [
        ({}, {}, "Isaac Sim is not installed for "),
        ({"VERSION": "5.1.0-rc.1"}, {"ISAAC_PATH": "{}"}, "Isaac Sim is 5.1.0, expected 6.2.*"),
        ({"METADATA": "6.2.0.0"}, {}, "set OMNI_KIT_ACCEPT_EULA=YES"),
        ({"METADATA": "6.2.0.0"}, {"OMNI_KIT_ACCEPT_EULA": "YES"}, "there is no NVIDIA GPU"),
    ],
    ids=["missing", "release", "licence", "gpu"],
)
def test_commands_refuse_in_one_line(tmp_path, files, environment, message):
    if "GPU" in message and any(mark.exists() for mark in launch._GPU_MARKS):
        pytest.skip("this machine has a GPU")
    place = tmp_path / "python"
    for name, text in files.items():
        package = place / "isaacsim" / "__init__.py"
        package.parent.mkdir(parents=True, exist_ok=True)
        package.write_text("raise SystemExit('started')\n")
        if name == "VERSION":
            (place / name).write_text(text)
        else:
            info = place / f"isaacsim-{text}.dist-info"
            info.mkdir()
            (info / name).write_text(f"Metadata-Version: 2.1\nName: isaacsim\nVersion: {text}\n")
    known = {k: v for k, v in os.environ.items() if k not in ("ISAAC_PATH", "OMNI_KIT_ACCEPT_EULA")}
    paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    known |= {"PYTHONPATH": os.pathsep.join(paths)}
    known |= {name: value.format(place) for name, value in environment.items()}
    out = tmp_path / "out"
    words = ["drop", str(STRUCTURE), "--engine", "isaacsim", "--out", str(out)]
    code = "from bricksim_core.cli import main; main()"
    line = [sys.executable, "-c", code, *words]
    done = subprocess.run(line, env=known, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not out.exists()


def test_the_doctor_stops_at_the_first_requirement_that_fails(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = list(checks())
    assert [type(c) for c in found] == [Check]
    assert found[0].ok is False
    assert "not installed" in found[0].detail


def test_graphs_are_wired_from_outputs_to_inputs_of_their_own_nodes():
    options = IsaacOptions(joint_commands_topic="{robot}/commands")
    robot = robot_graph(options, "left", "/World/Robots/left")
    for graph in (clock_graph(options), robot):
        for source, sink in graph.connections:
            assert source.partition(".")[0] in graph.nodes
            assert sink.partition(".")[0] in graph.nodes
            assert ".outputs:" in source
            assert ".inputs:" in sink
        sinks = [sink for _, sink in graph.connections]
        assert len(sinks) == len(set(sinks))
        assert {attribute.partition(".")[0] for attribute in graph.values} <= set(graph.nodes)
    assert robot.values["Commands.inputs:topicName"] == "left/commands"
    assert robot.values["States.inputs:topicName"] == "left/joint_states"
    assert robot.values["Controller.inputs:targetPrim"] == ("/World/Robots/left",)
