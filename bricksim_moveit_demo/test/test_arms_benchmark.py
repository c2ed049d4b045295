# SPDX-License-Identifier: Apache-2.0
"""The table of the benchmark, and the beginnings of structures that it builds."""

import json

import pytest

from bricksim_core.formats import parse_structure
from bricksim_core.sequencing import SequenceError, plan_assembly
from bricksim_moveit_demo.benchmark import Run, beginning, head, read_runs, row
from bricksim_moveit_demo.building import Summary
from bricksim_moveit_demo.commands import benchmark
from bricksim_moveit_demo.errors import Outcome
from bricksim_moveit_demo.reports import Report

TOWER = "2x4 (4,4,0)\n2x6 (4,4,1)\n2x2 (4,5,2)\n"
SQUARE = "2x2 (4,4,0)\n2x2 (6,4,0)\n2x2 (4,6,0)\n2x2 (6,6,0)\n"


def _structure(text):
    return parse_structure(text, baseplate=(12, 14))


def test_beginning_of_a_plan_is_built_first():
    tower = _structure(TOWER)
    assert beginning(tower, 0) is tower
    steps = plan_assembly(tower, arms=1, base=[0]).steps
    wanted = {0, *(part for step in steps[:2] for part in step.parts)}
    assert set(beginning(tower, 2).graph.part_ids) == wanted


def test_beginning_counts_bricks_not_steps():
    """Of a closed ring the last step brings several bricks: it is left out rather than cut."""
    ring = _structure("4x2 (4,4,0)\n2x4 (8,4,0)\n4x2 (6,8,0)\n2x4 (4,6,0)\n2x4 (4,4,1)\n")
    sizes = [len(step.parts) for step in plan_assembly(ring, arms=1, base=[0]).steps]
    assert max(sizes) > 1
    for count in range(1, 6):
        steps = max(n for n in range(len(sizes) + 1) if sum(sizes[:n]) <= count)
        assert len(beginning(ring, count).graph.part_ids) == 1 + sum(sizes[:steps])


@pytest.mark.parametrize("count", [1, 3, 9])
def test_beginning_of_what_cannot_be_built_hangs_together(count):
    """Four bricks in a square leave no room for the fingers."""
    square = _structure(SQUARE)
    with pytest.raises(SequenceError):
        plan_assembly(square, arms=1, base=[0])
    part = beginning(square, count)
    assert len(part.graph.part_ids) == 1 + min(count, 4)
    assert len(part.component_poses) == 1


def _report(outcome, tries, force, failures=()):
    return Report(1, "fr3", outcome, "", tries, 9.0, 0.2, force, 0.005, (1,), failures, ())


def test_row_counts_first_tries_and_causes():
    good = _report(Outcome.SUCCEEDED, 1, 1.5)
    late = _report(Outcome.SUCCEEDED, 2, 2.5, (Outcome.FORCE_LIMIT,))
    lost = _report(Outcome.UNREACHABLE, 1, 0.0)
    runs = [
        Run("tower", 0, Summary(True, "", Outcome.SUCCEEDED, 2, 2, (good, late), 20.0, 0.4), 5.0),
        Run(
            "tower",
            1,
            Summary(False, "x", Outcome.UNREACHABLE, 1, 2, (good, lost), 10.0, 0.4),
            10.0,
        ),
    ]
    cells = row(runs).split()
    assert cells[:4] == ["tower", "1/2", "4", "50.0"]
    assert cells[5:9] == ["75.0", "%", "10.0", "2.5"]
    assert row(runs).endswith("1 force_limit, 1 unreachable")
    assert head().split()[0] == "structure"


def test_a_folder_of_runs_is_continued(tmp_path, capsys):
    """Nothing is built here: the runs that are asked for are in the folder."""
    structure = tmp_path / "tower.txt"
    structure.write_text(TOWER)
    out = tmp_path / "out"
    out.mkdir()
    setup = {"noise_mm": 1.0, "noise_degrees": 2.0, "planner": "embedded", "engine": "mujoco"}
    setup |= {"arms": 1, "bricks": 0}
    good = _report(Outcome.SUCCEEDED, 1, 1.5)
    late = _report(Outcome.SUCCEEDED, 2, 2.5, (Outcome.FORCE_LIMIT,))
    done = [Run("tower", s, Summary.of((good, late), 2, 20.0), 5.0, setup=setup) for s in range(2)]
    file = out / "runs.jsonl"
    file.write_text("".join(json.dumps(run.to_dict()) + "\n" for run in done))
    before = file.read_text()
    assert read_runs(file, setup) == done
    assert benchmark(["--seeds", "2", "--out", str(out), str(structure)]) == 0
    assert row(done) in capsys.readouterr().out
    assert benchmark(["--seeds", "2", "--arms", "2", "--out", str(out), str(structure)]) == 2
    complaint = capsys.readouterr().err
    assert "line 1" in complaint and "arms 1" in complaint and "expected" in complaint
    assert file.read_text() == before
    for option in ("--seeds", "--bricks"):
        assert benchmark([option, "-2", str(structure)]) == 2
        assert f"{option[2:]} is -2, expected" in capsys.readouterr().err
    file.write_text(before + before[:40])  # killed in the middle of a third one
    assert read_runs(file, setup) == done
    file.write_text(before + "{}\n")
    assert benchmark(["--seeds", "2", "--out", str(out), str(structure)]) == 2
    assert "line 3: no run of this version" in capsys.readouterr().err
