# SPDX-License-Identifier: Apache-2.0
"""run.sh, scripts/setup.sh and the script that they write, called as users call them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ACTIVATE = Path(sys.prefix) / "bin" / "activate-ros"


def _run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_the_launch_files_form(flag, tmp_path):
    result = _run(ROOT / "run.sh", flag, cwd=tmp_path)
    assert result.returncode == 0
    assert "./run.sh [--engine NAME] LAUNCH_FILE [name:=value]..." in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nothing.launch.py"], "launch file 'nothing.launch.py' does not exist"),
        (["--engine", "bullet"], "unknown engine 'bullet', expected mujoco, ovphysx or isaacsim"),
        (["--engine=bullet"], "unknown engine 'bullet'"),
        (["--engine", "ovphysx"], "needs a launch file"),
        (["--fast"], "unknown option --fast"),
    ],
)
def test_run_refuses_what_it_does_not_know(arguments, complaint, tmp_path):
    result = _run(ROOT / "run.sh", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_setup_without_python_312_says_so_in_one_line(tmp_path):
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    result = _run(ROOT / "scripts" / "setup.sh", env=environment)
    assert result.returncode == 2
    assert "Python 3.12 was not found" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_setup_passes_over_other_pythons(tmp_path):
    """A python3 that is not 3.12, and a python3.12 that fails as pyenv's shims do."""
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    for name, text in (("python3", "exit 1"), ("python3.12", "echo not found >&2; exit 127")):
        (tmp_path / name).write_text(f"#!/usr/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    result = _run(ROOT / "scripts" / "setup.sh", env=environment)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


def test_an_interrupted_step_is_known_as_such(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "setup"))
    import common  # pyright: ignore[reportMissingImports]

    monkeypatch.setattr(common, "STAMPS", tmp_path)
    with pytest.raises(KeyboardInterrupt), common.doing("step", "key"):
        raise KeyboardInterrupt
    assert common.was_interrupted("step")
    assert not common.is_done("step", "key")
    with common.doing("step", "key"):
        pass
    assert not common.was_interrupted("step")
    assert common.is_done("step", "key")
    assert not common.is_done("step", "another key")


def test_own_runtime_is_not_taken_for_a_system_ros(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "setup"))
    import ros  # pyright: ignore[reportMissingImports]

    own = f"{ROOT / 'install'}:{ROOT / '.venv' / 'ros' / 'jazzy'}"
    (tmp_path / "share" / "rclpy").mkdir(parents=True)
    cases = [
        ("jazzy", own, "private"),
        ("jazzy", f"{own}:{tmp_path}", "system"),
        ("humble", str(tmp_path), "private"),
        ("jazzy", str(tmp_path / "without-rclpy"), "private"),
        ("", "", "private"),
    ]
    for distro, prefixes, expected in cases:
        monkeypatch.setenv("ROS_DISTRO", distro)
        monkeypatch.setenv("AMENT_PREFIX_PATH", prefixes)
        assert ros.find_source() == expected, (distro, prefixes)


@pytest.mark.skipif(not ACTIVATE.exists(), reason="set up without ROS 2")
def test_activation_twice_in_a_strict_shell_changes_nothing_more(tmp_path):
    names = "PATH PYTHONPATH LD_LIBRARY_PATH AMENT_PREFIX_PATH ROS_DISTRO"
    show = f'for n in {names}; do eval "echo $n=\\$$n"; done; echo "$ROS_AUTOMATIC_DISCOVERY_RANGE"'
    once = f'. "{ACTIVATE}"; {show}'
    script = f"set -eu; {once}; echo ==; {once}; case $- in *u*) echo strict;; esac"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    result = _run("bash", "-c", script, env=environment, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.split("==\n")
    assert second == first + "strict\n"
    assert "LOCALHOST" in first
    environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
    result = _run("bash", "-c", script, env=environment, cwd=tmp_path)
    assert "LOCALHOST" not in result.stdout


@pytest.mark.skipif(not ACTIVATE.exists(), reason="set up without ROS 2")
@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["pkg", "list"], 0, "bricksim_msgs"),
        (["pkg", "prefix", "bricksim_msgs"], 0, "install"),
        (["launch", "{file}", "--show-args"], 0, "'count':"),
        (["launch", "{file}"], 0, "counted to 3"),
        (["launch", "{file}", "count:=5"], 0, "counted to 5"),
        (["launch", "{file}", "count=5"], 1, "malformed launch argument 'count=5'"),
        (["launch", "no_such_package", "x.launch.py"], 1, "package 'no_such_package'"),
        (["launch", "bricksim_msgs", "x.launch.py"], 1, "x.launch.py"),
    ],
)
def test_ros2_verbs(arguments, code, text, tmp_path):
    file = tmp_path / "count.launch.py"
    file.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import DeclareLaunchArgument, LogInfo\n"
        "from launch.substitutions import LaunchConfiguration\n"
        "def generate_launch_description():\n"
        "    count = DeclareLaunchArgument('count', default_value='3', description='how far')\n"
        "    text = ['counted to ', LaunchConfiguration('count')]\n"
        "    return LaunchDescription([count, LogInfo(msg=text)])\n"
    )
    words = " ".join(word.format(file=file) for word in arguments)
    environment = {**os.environ, "ROS_LOG_DIR": str(tmp_path)}
    result = _run("bash", "-c", f'. "{ACTIVATE}"; ros2 {words}', env=environment, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    assert text in result.stdout + result.stderr


LOST = """
import signal, time
import {entry} as entry
class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def work(*_):
    Lost()
    time.sleep(60)
{start}
"""


@pytest.mark.parametrize(
    ("entry", "start"),
    [
        (
            "bricksim_core.cli.app",
            "entry.run = work; import bricksim_core.cli; bricksim_core.cli.main()",
        ),
        (
            "bricksim_moveit_demo.programs",
            "entry._run = work; exit(entry._command('work'))",
        ),
    ],
)
def test_an_interrupt_that_strikes_in_a_finalizer_is_not_lost(entry, start):
    code = LOST.format(entry=entry, start=start)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 130
    assert done.stderr.endswith(": interrupted\n") and len(done.stderr.splitlines()) == 1
