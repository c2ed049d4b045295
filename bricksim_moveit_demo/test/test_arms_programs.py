# SPDX-License-Identifier: Apache-2.0
"""Programs leave linear algebra one thread, unless told otherwise, and refuse bad numbers."""

import json
import os
import subprocess
import sys

import pytest

from bricksim_core.interrupts import INTERRUPTED
from bricksim_core.threads import SINGLE_THREAD
from bricksim_moveit_demo.commands import assemble, benchmark, inhand

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
        (["--seed", "-3"], "seed is -3, expected 0 to"),
        (["--seed", "99999999999999999999"], "seed is 99999999999999999999, expected 0 to"),
        (["--noise", "-1", "2"], "noise is -1 mm, 2 degrees, expected two finite numbers"),
        (["--noise", "nan", "2"], "noise is nan mm, 2 degrees, expected two finite numbers"),
        (["--lower", "red"], "size of a brick is 'red', expected two numbers of studs such as 4x2"),
        (["--upper", "0x2"], "size of a brick is '0x2', expected two numbers of studs such as 4x2"),
        (["--lower", "2x4"], "lower brick is 2x4 brick, expected at least 3 studs along its first"),
        (["--lower", "8x8"], "lower brick is 8x8 brick, expected at most 7 studs between the"),
        (["--upper", "14x2"], "upper brick is 14x2 brick, expected no more than the plate's 12x12"),
    ],
)
def test_bad_numbers_are_refused_by_name(words, expected, capsys) -> None:
    assert inhand(words) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_built(out, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    structure = tmp_path / "one.txt"
    structure.write_text("2x4 (4,4,0)\n")
    for command, words in ((inhand, []), (assemble, [structure]), (benchmark, [structure])):
        assert command([*map(str, words), "--out", str(tmp_path / out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{tmp_path / out}: results cannot be written there" in line


def test_a_layout_that_puts_a_brick_into_the_base_is_named(tmp_path, capsys) -> None:
    structure, layout = tmp_path / "one.txt", tmp_path / "layout.yaml"
    structure.write_text("2x4 (4,4,0)\n")
    layout.write_text("bricks: {1: [0.5, 0.0, 0]}")
    assert assemble([str(structure), "--layout", str(layout)]) == 2
    assert "the layout of the table puts parts into each other" in capsys.readouterr().err


def test_a_layout_file_says_where_the_bricks_of_assemble_lie(tmp_path, capsys) -> None:
    """One that lies out of reach is named; a bad file is refused before anything is laid out."""
    structure, layout = tmp_path / "one.txt", tmp_path / "layout.yaml"
    structure.write_text("2x4 (4,4,0)\n")
    words = [str(structure), "--layout", str(layout), "--out", str(tmp_path / "out")]
    layout.write_text("bricks: {1: [1.4, 0.2, 0]}")
    assert assemble(words) == 1
    assert "0/1 brick 1: unreachable by fr3" in capsys.readouterr().out
    layout.write_text("seat: [0.5]")
    assert assemble(words) == 2
    assert f"{layout}: seat is [0.5], expected 2 finite numbers" in capsys.readouterr().err


def test_what_is_told_to_end_leaves_what_it_has_done(tmp_path) -> None:
    """A supervisor's SIGTERM is as good as Ctrl-C."""
    structure, out = tmp_path / "two.txt", tmp_path / "out"
    structure.write_text("2x4 (4,4,0)\n2x4 (4,8,0)\n")
    out.mkdir()
    (out / "video.mp4").write_text("of an earlier run")
    code = "import sys; from bricksim_moveit_demo.programs import assemble; sys.exit(assemble())"
    command = [sys.executable, "-c", code, str(structure), "--out", str(out)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("1/2 brick")
        process.terminate()
        assert process.wait(60) == INTERRUPTED
        assert process.stderr.read() == "-c: interrupted\n"
    assert [path.name for path in out.iterdir()] == ["summary.json"]
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["outcome"], summary["inserted"], summary["total"]) == ("interrupted", 1, 2)
