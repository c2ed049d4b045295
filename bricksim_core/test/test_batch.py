# SPDX-License-Identifier: Apache-2.0
"""Analysis of many files: order, errors, processes, published outcomes."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from bricksim_core.batch import (
    AnalysisOptions,
    analyze_file,
    analyze_files,
    summary,
    verdict,
)
from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics.snapfit import limit

DATA = Path(__file__).parent / "data"
GOOD = [str(p) for p in sorted((DATA / "brickgpt").glob("demo_*.txt"))]
BAD = [str(DATA / "brickgpt" / f"test_{k}.txt") for k in ("collision", "floating", "disconnected")]
FAST = AnalysisOptions(safety_factor=False)


@pytest.mark.parametrize(
    ("name", "stands"),
    [("stair_19", True), ("stair_20", False), ("stick_light", True), ("stick_heavy", False)],
)
def test_built_structures_get_their_known_outcome(name, stands):
    report = analyze_file(str(DATA / "stablelego" / f"{name}.json"), AnalysisOptions())
    assert report.stable is stands
    assert (report.max_utilization <= 1.0 + 1e-6) is stands
    assert report.safety_factor is not None and (report.safety_factor >= 1.0) is stands
    assert bool(report.reasons) is not stands
    assert 0.0 < report.solve_ms <= report.total_ms


@pytest.mark.parametrize("model", ["default", "paper"])
def test_the_first_file_of_a_process_takes_as_long_as_the_second(model, tmp_path):
    pieces = tmp_path / "pieces.txt"
    pieces.write_text("2x2 (0,0,0)\n2x2 (2,0,0)\n")
    code = (
        "from bricksim_core.batch import AnalysisOptions, analyze_file\n"
        f"for file in {[str(DATA / 'stablelego' / 'stair_20.json'), str(pieces)]}:\n"
        f"    options = AnalysisOptions(model={model!r}, baseplate=None)\n"
        "    print(*(analyze_file(file, options).total_ms for _ in range(4)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        first, *others = map(float, line.split())
        # Loading a single loop takes longer than the rest of this.
        assert first < 3.0 * max(others) + 20.0


def test_report_counts_bricks_without_the_plate():
    report = analyze_file(str(DATA / "brickgpt" / "texture_guitar.txt"), FAST)
    assert (report.bricks, report.components) == (28, 1)
    assert report.safety_factor is None
    assert verdict(report) == "stable"
    assert summary(report).startswith("28 bricks")


def test_why_there_is_no_safety_factor_is_said(tmp_path, monkeypatch):
    large = tmp_path / "large.txt"
    large.write_text(
        "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(26) for i in range(58))
    )
    unasked = AnalysisOptions(safety_factor=None)
    report = analyze_file(str(large), unasked)
    assert report.bricks == 26 * 58 and report.stable
    assert report.safety_factor is None
    assert "with more than 1500 parts unless asked for" in report.safety_factor_lacks

    small = str(DATA / "brickgpt" / "texture_guitar.txt")
    report = analyze_file(small, unasked)
    assert report.safety_factor is not None and report.safety_factor_lacks == ""
    monkeypatch.setattr(limit.LimitProgram, "_optimum", lambda *_: None)
    report = analyze_file(small, unasked)
    assert report.safety_factor is None
    assert report.safety_factor_lacks == "the solver did not find it"
    assert "safety factor" not in summary(report)


def test_load_can_turn_the_verdict():
    file = str(DATA / "brickgpt" / "texture_guitar.txt")
    options = AnalysisOptions(loads={28: (5.0, 0.0, 0.0, 0.0, 0.0, 0.0)}, safety_factor=False)
    assert analyze_file(file, FAST).stable
    pushed = analyze_file(file, options)
    assert verdict(pushed) == "unstable" and pushed.max_utilization > 1.0


def test_files_that_fail_do_not_stop_the_others_and_order_is_kept():
    files = [BAD[0], GOOD[0], "missing.txt", BAD[1], GOOD[1], str(DATA), BAD[2]]
    reports = list(analyze_files(files, FAST))
    assert [r.file for r in reports] == files
    assert [bool(r.error) for r in reports] == [True, False, True, True, False, True, True]
    assert "overlaps" in reports[0].error and "line 2" in reports[0].error
    assert "no such file" in reports[2].error
    assert "floating" in reports[3].error
    assert "is a directory" in reports[5].error
    assert "not connected to the ground" in reports[6].error
    assert all(r.error.startswith(f"{r.file}: ") for r in reports if r.error)


def test_processes_give_the_same_answers_in_the_same_order():
    files = [GOOD[k % 3] for k in range(9)] + [BAD[0]]
    alone = list(analyze_files(files, FAST, workers=1))
    together = list(analyze_files(files, FAST, workers=2))
    assert [r.file for r in together] == files
    for one, other in zip(alone, together, strict=True):
        assert other.error == one.error
        if not one.error:
            assert other.max_utilization == pytest.approx(one.max_utilization, rel=1e-9)
            assert other.worst_connection == one.worst_connection


def killed_where_read(pipe: str, kills: list[int], over: threading.Event) -> None:
    """Kills every process that reads a named pipe."""
    while not over.wait(0.02):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(OSError):  # it may have ended
                if any(os.readlink(fd) == pipe for fd in Path(f"/proc/{process.pid}/fd").iterdir()):
                    os.kill(process.pid, signal.SIGKILL)
                    kills.append(process.pid)


def test_file_that_kills_its_worker_is_named_and_the_others_go_on(tmp_path):
    pipe = str(tmp_path / "huge.txt")
    os.mkfifo(pipe)
    files = [*GOOD * 3, pipe, *GOOD * 3, BAD[0]]
    kills: list[int] = []
    over = threading.Event()
    killer = threading.Thread(target=killed_where_read, args=(pipe, kills, over))
    killer.start()
    # A pipe opens for its reader once somebody writes.
    writer = os.open(pipe, os.O_RDWR)
    try:
        reports = list(analyze_files(files, FAST, workers=2))
    finally:
        over.set()
        killer.join()
        os.close(writer)
    assert [r.file for r in reports] == files
    assert reports[9].error == f"{pipe}: its worker process was killed (out of memory?)"
    assert "overlaps" in reports[-1].error
    assert not any(r.error for r in reports[:9] + reports[10:-1])
    assert len(kills) >= 2  # among others, and alone


def test_unknown_part_or_model_is_an_error_of_the_file():
    with pytest.raises(BrickSimError, match=rf"^{re.escape(GOOD[0])}: part id 99 .*0 to \d+$"):
        analyze_file(GOOD[0], AnalysisOptions(loads={99: (0.0,) * 6}))
    with pytest.raises(BrickSimError, match="model is 'oracle'"):
        analyze_file(GOOD[0], AnalysisOptions(model="oracle"))
    with pytest.raises(BrickSimError, match="gravity"):
        analyze_file(GOOD[0], AnalysisOptions(gravity=math.nan))


def test_picture_is_written_where_asked(tmp_path):
    report = analyze_file(GOOD[0], FAST, tmp_path / "p.png")
    assert report.picture == str(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
