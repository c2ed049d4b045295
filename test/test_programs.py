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
    script = LOADING.format(package=package, program=program)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("loads")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20.0)
    assert (process.returncode, errors) == (0, "")
