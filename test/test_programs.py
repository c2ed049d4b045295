# SPDX-License-Identifier: Apache-2.0
"""How the nodes' programs start."""

import signal
import subprocess
import sys

import pytest

LOADING = """
import time
from {package} import programs

def load(name):
    print("loads", name, flush=True)
    time.sleep(60.0)

programs.import_module = load
programs.{program}()
"""


COMPILING = """
import time
from bricksim_core import rehearsal
from {package} import programs

def rehearse():
    print("loads", flush=True)
    time.sleep(60.0)

rehearsal.rehearse = rehearse
programs.simulator()
"""


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("bricksim_ros", "simulator"),
        ("bricksim_ros", "markers"),
        ("bricksim_ros", "recorder"),
        ("bricksim_ros", "press_demo"),
        ("bricksim_moveit_demo", "simulator"),
    ],
)
def test_an_interrupt_while_a_program_loads_ends_it_well(package, program) -> None:
    """Its libraries take seconds; launch calls a process with another exit code dead."""
    ends_well(LOADING.format(package=package, program=program))


@pytest.mark.parametrize("package", ["bricksim_ros", "bricksim_moveit_demo"])
def test_an_interrupt_while_loops_are_compiled_ends_a_simulator_well(package) -> None:
    """Right after an installation that takes minutes."""
    ends_well(COMPILING.format(package=package))


def ends_well(script: str) -> None:
    """Interrupts a program that says that it loads, and expects it to end at once."""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("loads")
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=20.0)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")
