# SPDX-License-Identifier: Apache-2.0
"""Programs leave linear algebra one thread, unless told otherwise, and refuse bad numbers."""

import os
import subprocess
import sys

import pytest

from bricksim_core.threads import SINGLE_THREAD
from bricksim_moveit_demo.commands import inhand

HELP = """
import os, sys
from bricksim_moveit_demo import programs
assert "numpy" not in sys.modules
sys.argv = ["assemble", "--help"]
try:
    programs.assemble()
except SystemExit as end:
    print(end.code, os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.parametrize("wanted", [None, "2"])
def test_programs_settle_the_threads_before_numpy_is_loaded(wanted: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in SINGLE_THREAD}
    if wanted is not None:
        environment |= dict.fromkeys(SINGLE_THREAD, wanted)
    done = subprocess.run(
        [sys.executable, "-c", HELP], env=environment, capture_output=True, text=True, check=True
    )
    assert "structure file" in done.stdout
    assert done.stdout.splitlines()[-1] == f"0 {wanted or 1}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--seed", "-3"], "seed is -3, expected 0 or more"),
        (["--noise", "-1", "2"], "noise is -1 mm, 2 degrees, expected two finite numbers"),
        (["--noise", "nan", "2"], "noise is nan mm, 2 degrees, expected two finite numbers"),
    ],
)
def test_bad_numbers_are_refused_by_name(words, expected, capsys) -> None:
    assert inhand(words) == 2
    assert expected in capsys.readouterr().err
