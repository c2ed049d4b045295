# SPDX-License-Identifier: Apache-2.0
"""The ``bricksim`` command: answers, exit codes, JSON, bad input, signals."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from bricksim_core.cli.app import COMMANDS, run
from bricksim_core.formats import read_structure

DATA = Path(__file__).parent / "data"
GUITAR = str(DATA / "brickgpt" / "texture_guitar.txt")
STANDS = str(DATA / "stablelego" / "stair_19.json")
FALLS = str(DATA / "stablelego" / "stair_20.json")
COLLIDES = str(DATA / "brickgpt" / "test_collision.txt")
FLOATS = str(DATA / "brickgpt" / "test_floating.txt")


@pytest.fixture
def cli(capsys):
    """Runs a command line: exit code, standard output, standard error."""

    def call(*words):
        code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def command(*words, **options):
    """The command in a process of its own."""
    code = "from bricksim_core.cli import main; main()"
    return [sys.executable, "-c", code, *map(str, words)], {
        "text": True,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **options,
    }


def process(*words, **options):
    line, settings = command(*words, **options)
    return subprocess.run(line, timeout=120, check=False, **settings)


def is_one_line(text):
    """One line; those of progress, which a slow machine adds, do not count."""
    lines = [line for line in text.splitlines() if not re.fullmatch(r"\w+: +\d+%", line)]
    return len(lines) == 1 and "Traceback" not in text


# -- every command --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [c.NAME for c in COMMANDS])
def test_help_explains_and_shows_examples(cli, name):
    code, out, err = cli(name, "--help")
    assert (code, err) == (0, "")
    assert f"bricksim {name}" in out and "Examples" in out
    assert len(out.splitlines()) > 8


def test_no_command_shows_help_and_a_wrong_one_an_error(cli):
    code, out, err = cli()
    assert err == "bricksim: no command, expected one of those above\n"
    assert code in (0, 2) and "analyze" in out
    code, out, err = cli("analyse")
    assert code == 2 and out == "" and is_one_line(err)
    assert "analyse" in err


def test_version(cli):
    code, out, _ = cli("version")
    assert code == 0 and out.startswith("bricksim ")
    assert cli("--version")[:2] == (0, out)


def test_help_and_info_do_not_load_what_they_do_not_need():
    code = (
        "import sys\nfrom bricksim_core.cli.app import run\n"
        "run({words})\nprint([m for m in {modules} if m in sys.modules], file=sys.stderr)\n"
    )
    for words, modules in (
        (["--help"], ["numpy", "mujoco", "scipy", "networkx", "osqp", "PIL"]),
        (["info", GUITAR], ["mujoco", "scipy", "osqp", "PIL", "matplotlib"]),
    ):
        script = code.format(words=words, modules=modules)
        result = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
        )
        assert result.stderr == "[]\n"


# -- analyze --------------------------------------------------------------------------------


def test_analyze_tells_the_known_outcomes(cli):
    code, out, err = cli("analyze", STANDS, FALLS)
    assert (code, err) == (1, "")
    rows = out.splitlines()
    assert rows[0].split() == [
        "file", "bricks", "pieces", "verdict", "utilization", "worst", "safety", "ms",
    ]  # fmt: skip
    assert rows[1].split()[:3] == [STANDS, "19", "1"]
    assert rows[2].split()[:3] == [FALLS, "20", "1"]
    assert "times its capacity" in rows[3]
    assert rows[4].startswith(f"{FALLS}: comes apart at 1 – 2")
    assert "connection 1 – 2 carries" in rows[3]  # as the table names them
    assert cli("analyze", STANDS)[0] == 0


def test_analyze_json_has_one_object_per_file_in_order(cli):
    files = [GUITAR, FALLS, "missing.txt", COLLIDES]
    code, out, err = cli("analyze", "--json", *files)
    assert code == 2
    objects = [json.loads(line) for line in out.splitlines()]
    assert [o["file"] for o in objects] == files
    good, bad = objects[:2], objects[2:]
    for value in good:
        assert {
            "file": str, "bricks": int, "components": int, "stable": bool, "marginal": bool,
            "max_utilization": float, "worst_connection": int, "solve_ms": float,
            "total_ms": float, "safety_factor": float,
        }.items() <= {k: type(v) for k, v in value.items()}.items()  # fmt: skip
    assert [o["stable"] for o in good] == [True, False]
    assert [bool(o["breaking"]) for o in good] == [False, True]
    assert good[1]["worst_connection"] in good[1]["breaking"]
    assert good[0]["bricks"] == 28 and good[0]["max_utilization"] < 1.0
    assert all(set(o) == {"file", "error"} for o in bad)
    assert err.count("\n") == 2 and "missing.txt: no such file" in err


def test_analyze_draws_a_picture_per_file(cli, tmp_path):
    twin = tmp_path / "texture_guitar.txt"
    twin.write_text(Path(GUITAR).read_text())
    code, out, _ = cli("analyze", GUITAR, twin, "--picture", tmp_path / "a" / "b")
    assert code == 0 and "texture_guitar-2.png" in out
    pictures = sorted((tmp_path / "a" / "b").iterdir())
    assert [p.name for p in pictures] == ["texture_guitar-2.png", "texture_guitar.png"]
    for path in pictures:
        assert np.asarray(Image.open(path)).shape == (720, 960, 3)


def test_analyze_takes_loads_models_and_standard_input(cli, monkeypatch):
    assert cli("analyze", GUITAR, "--load", "28=0,0,-0.1")[0] == 0
    assert cli("analyze", GUITAR, "--load", "28=5,0,0,0,0,0")[0] == 1
    code, out, _ = cli("analyze", GUITAR, "--model", "paper", "--baseplate", "32x32", "--json")
    assert code == 0
    # Reference: the paper's formulation on a 32x32 plate gives this structure 0.0038.
    assert json.loads(out)["max_utilization"] == pytest.approx(0.0038, abs=4e-4)
    result = process("analyze", "-", "--json", input=Path(GUITAR).read_text())
    assert result.returncode == 0 and json.loads(result.stdout)["bricks"] == 28


@pytest.mark.parametrize("part", ["99", "9" * 16, "9" * 17, "9" * 5000], ids=len)
def test_a_load_on_a_part_that_is_not_there_is_refused(cli, part):
    code, _, errors = cli("analyze", GUITAR, "--load", f"{part}=0,0,1")
    assert code == 2 and ("does not exist" if len(part) < 17 else "expected PART=") in errors


def test_loads_on_one_part_add_up(cli):
    def used(*loads):
        words = [word for load in loads for word in ("--load", load)]
        return json.loads(cli("analyze", GUITAR, "--json", *words)[1])["max_utilization"]

    together = used("28=0,0,2,0.001,0,0")
    assert used("28=0,0,1.5", "28=0,0,0.5,0.001,0,0") == pytest.approx(together, rel=1e-9)
    assert together > 1.05 * used("28=0,0,1.5")


def test_analyze_reads_names_from_a_list(cli, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text(f"{STANDS}\n\n  {GUITAR}\n")
    code, out, _ = cli("analyze", "--files-from", names, "--json", "--no-safety-factor")
    assert code == 0
    objects = [json.loads(line) for line in out.splitlines()]
    assert [o["file"] for o in objects] == [STANDS, GUITAR]
    # Of the first it decides the verdict.
    assert objects[0]["safety_factor"] == pytest.approx(1.0425, rel=1e-3)
    assert objects[1]["safety_factor"] is None and objects[1]["safety_factor_lacks"] == ""


def test_a_large_batch_tells_the_safety_factors_that_decide_and_why_others_lack(cli):
    code, out, _ = cli("analyze", "--json", *[STANDS, GUITAR] * 11)
    objects = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(objects) == 22
    decided, left = objects[0], objects[1]
    assert decided["max_utilization"] > 0.9
    assert decided["safety_factor"] == pytest.approx(1.0425, rel=1e-3)
    assert decided["safety_factor_lacks"] == "" and decided["mechanism"]
    assert left["safety_factor"] is None
    assert left["safety_factor_lacks"] == "not looked for in more than 20 files unless asked for"
    text = cli("analyze", *[STANDS, GUITAR] * 11)[1]
    assert text.count("not looked for in more than 20 files") == 1
    assert text.splitlines()[1].split()[-2] == "1.04"


def test_what_lies_on_others_in_an_unknown_way_gets_no_verdict(cli, tmp_path):
    """A 2x4 brick on two tiles."""
    file = tmp_path / "plank.ldr"
    tiles = "".join(f"1 1 {x} -8 0 1 0 0 0 1 0 0 0 1 3070b.dat\n" for x in (-30, 30))
    file.write_text(f"0 plank\n{tiles}1 4 0 -32 -10 1 0 0 0 1 0 0 0 1 3001.dat\n")
    code, out, _ = cli("analyze", "--json", "--baseplate", "none", file)
    data = json.loads(out)
    assert code == 1 and data["unknown"] and not data["stable"] and not data["marginal"]
    assert data["safety_factor"] is None
    assert data["safety_factor_lacks"] == "not all forces are known"
    assert "part 3 lies on part 1 without a connection" in data["reasons"][0]
    _, out, _ = cli("analyze", "--baseplate", "none", file)
    assert out.splitlines()[1].split()[3] == "unknown"


def test_what_never_fails_is_told_from_what_was_not_asked_for(cli, tmp_path):
    tower = tmp_path / "tower.txt"
    tower.write_text("2x2 (0,0,0)\n2x2 (0,0,1)\n")
    assert json.loads(cli("analyze", "--json", tower)[1])["safety_factor"] == "infinity"
    asked = cli("analyze", "--json", "--no-safety-factor", tower)[1]
    assert json.loads(asked)["safety_factor"] is None


def test_analyze_on_all_cores_keeps_order_and_silence():
    files = [STANDS, GUITAR] * 5 + [FLOATS]
    result = process("analyze", "--json", "-j", "2", *files)
    assert result.returncode == 2
    assert [json.loads(line)["file"] for line in result.stdout.splitlines()] == files
    # Machines that are busy for longer than `QUIET` seconds tell how far it is.
    said = [s for s in result.stderr.splitlines(True) if not s.startswith("analysing: ")]
    assert len(said) == 1 and "floating" in said[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no files"),
        ([GUITAR, "--load", "28"], "--load is '28', expected PART="),
        ([GUITAR, "--load", "--28=0,0,1"], "expected PART="),
        ([GUITAR, "--load", "28=1,2"], "expected 3 or 6 finite numbers"),
        ([GUITAR, "--load", "28=1,2,nan"], "expected 3 or 6 finite numbers"),
        ([GUITAR, "--load", "99=0,0,1"], "99"),
        ([GUITAR, "--model", "oracle"], "expected 'default' or 'paper'"),
        ([GUITAR, "--baseplate", "3"], "expected auto, none or LxW"),
        ([GUITAR, "--baseplate", "0x3"], "baseplate"),
        ([GUITAR, "--gravity", "nan"], "gravity"),
        ([GUITAR, "--jobs", "0"], "'--jobs'"),
        ([GUITAR, "--nonsense"], "--nonsense"),
        ([str(DATA)], "is a directory"),
        (["--files-from", "missing.list"], "missing.list: cannot be read"),
        ([GUITAR, "--picture", GUITAR], "cannot be made"),
    ],
)
def test_analyze_refuses_bad_input_in_one_line(cli, words, message):
    code, _, err = cli("analyze", *words)
    assert code == 2
    assert is_one_line(err) and err.startswith("bricksim: ") and message in err


def test_without_opengl_answers_come_without_pictures(tmp_path):
    """PyOpenGL on GLX cannot make a context without a display."""
    blind = {**os.environ, "PYOPENGL_PLATFORM": "glx"}
    result = process("analyze", "--json", FALLS, "--picture", tmp_path / "pictures", env=blind)
    report = json.loads(result.stdout)
    assert (result.returncode, report["stable"], report["picture"]) == (1, False, None)
    assert "EGL" in report["picture_error"] and is_one_line(result.stderr)
    assert result.stderr.startswith("bricksim: no pictures: ")
    out = tmp_path / "out"
    result = process("drop", GUITAR, "--seconds", 0.05, "--out", out, env=blind)
    assert result.returncode == 0 and is_one_line(result.stderr) and "EGL" in result.stderr
    assert [path.name for path in out.iterdir()] == ["summary.json"]
    assert json.loads((out / "summary.json").read_text())["files"] == []
    picture = tmp_path / "plan.png"
    file = DATA / "bricksim" / "demo_assembly_structure1.json"
    result = process("plan", file, "--picture", picture, env=blind)
    assert result.returncode == 0 and "4 steps" in result.stdout and not picture.exists()
    assert is_one_line(result.stderr) and "EGL" in result.stderr
    result = process("demo", "--out", out, "--json", env=blind)
    assert result.returncode == 0 and is_one_line(result.stderr) and "EGL" in result.stderr
    assert [path.name for path in out.iterdir()] == ["summary.json"]
    assert json.loads(result.stdout)["files"] == [] and json.loads(result.stdout)["stable"]


def test_progress_in_a_log_is_a_line_now_and_then(capfd, monkeypatch):
    from bricksim_core.cli import console

    with console.progress("drawing", 40) as show:
        show(10)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(console, "QUIET", 0.0)
    with console.progress("drawing", 40) as show:
        show(10)
        show(40)
    assert capfd.readouterr().err == "drawing: 25% (10 of 40)\ndrawing: 100% (40 of 40)\n"


# -- drop, press, pull ----------------------------------------------------------------------


def test_drop_writes_summary_strip_and_video(cli, tmp_path):
    out_folder = tmp_path / "new" / "out"
    code, out, err = cli(
        "drop",
        GUITAR,
        "--height",
        "0.05",
        "--tilt",
        "0,90,0",
        "--seconds",
        "0.5",
        "--out",
        out_folder,
    )
    assert (code, err) == (0, "")
    assert str(out_folder) in out
    assert sorted(p.name for p in out_folder.iterdir()) == [
        "strip.png",
        "summary.json",
        "video.mp4",
    ]
    data = json.loads((out_folder / "summary.json").read_text())
    assert sorted(p for piece in data["pieces"] for p in piece) == list(range(1, 29))
    assert data["bricks"] == 28 and data["seconds"] == pytest.approx(0.5)
    assert {"mean", "median", "p99", "max", "loading"} == set(data["frame_ms"])
    for change in data["broken"]:
        assert {"time", "stud_part", "hole_part", "utilization", "force", "cause"} <= set(change)
    with av.open(str(out_folder / "video.mp4")) as file:
        assert sum(1 for _ in file.decode(video=0)) == 16
    assert Image.open(out_folder / "strip.png").size[1] == 480
    (out_folder / "notes.txt").write_text("mine")
    again = cli("drop", GUITAR, "--seconds", "0.1", "--no-video", "--out", out_folder)
    assert again[0] == 0
    left = sorted(p.name for p in out_folder.iterdir())
    assert left == ["notes.txt", "strip.png", "summary.json"]


def test_drop_keeps_other_files_and_changes_nothing_when_it_fails(cli, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "summary.json").write_text("old")
    words = ["--seconds", "0.1", "--no-video", "--out", folder]
    code, _, err = cli("drop", GUITAR, "--height", "nan", *words)
    assert code == 2 and is_one_line(err) and "height is nan m" in err
    assert (folder / "summary.json").read_text() == "old"
    code, out, _ = cli("drop", GUITAR, "--json", *words)
    assert code == 0 and json.loads(out)["height"] == 0.144
    assert sorted(p.name for p in folder.iterdir()) == ["notes.txt", "strip.png", "summary.json"]
    assert json.loads((folder / "summary.json").read_text())["files"] == ["strip.png"]


def test_failed_drop_leaves_no_new_folder(cli, tmp_path):
    code, _, _ = cli(
        "drop", FLOATS, "--tilt", "1,2,3", "--seconds", "-1", "--out", tmp_path / "a" / "b"
    )
    assert code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.txt", "--out", "OUT"], "no such file"),
        ([GUITAR], "--out"),
        ([GUITAR, "--out", GUITAR], "cannot be written"),
        ([GUITAR, "--out", "/proc/nowhere"], "/proc/nowhere: cannot be written"),
        ([GUITAR, "--tilt", "90", "--out", "OUT"], "--tilt is '90', expected 3"),
        ([GUITAR, "--seconds", "1e9", "--out", "OUT"], "seconds is 1000000000.0 s"),
        ([GUITAR, "--engine", "bullet", "--out", "OUT"], "engine is 'bullet'"),
        ([GUITAR, "--model", "x", "--out", "OUT"], "model is 'x'"),
        ([COLLIDES, "--out", "OUT"], "overlaps"),
    ],
)
def test_drop_refuses_bad_input_in_one_line(cli, tmp_path, words, message):
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    code, out, err = cli("drop", *words)
    assert (code, out) == (2, "")
    assert is_one_line(err) and message in err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def two(tmp_path):
    """Files of a 4x2 and a 2x2 brick."""
    for name, text in (("a", "4x2 (0,0,0)\n"), ("b", "2x2 (0,0,0)\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path / "a.txt", tmp_path / "b.txt"


def test_press_connects_or_says_why_not(cli, two, tmp_path):
    code, out, _ = cli("press", *two, "--offset", "1,0", "--force", "5")
    assert code == 0 and out.startswith("connected at") and "offset 1,0" in out
    code, out, _ = cli(
        "press", *two, "--force", "0.3", "--json", "--no-video", "--out", tmp_path / "out"
    )
    data = json.loads(out)
    assert code == 1 and not data["connected"] and "force" in data["reason"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == data
    code, out, _ = cli("press", *two, "--yaw", "20")
    assert code == 1 and out.startswith("not connected: yaw error")
    for words in (["--force", "nan"], ["--offset", "1"], ["--yaw", "inf"]):
        code, _, err = cli("press", *two, *words)
        assert code == 2 and is_one_line(err)


def test_pull_tells_force_and_first_break(cli, two, tmp_path):
    # Reference: a 4x2 brick has 24 contact points of 0.7 N in the paper's model.
    code, out, _ = cli("pull", two[0], "--part", "1", "--force", "30", "--model", "paper", "--json")
    data = json.loads(out)
    assert code == 1
    assert data["limit"] == pytest.approx(16.8, rel=0.02)
    assert data["overloaded"] == [[0, 1]]
    assert [[c["stud_part"], c["hole_part"]] for c in data["broken"]] == [[0, 1]]
    code, out, _ = cli(
        "pull", two[0], "--part", "1", "--force", "2", "--no-video", "--out", tmp_path / "o"
    )
    assert code == 0 and "holds 2 N" in out and "nothing breaks" in out
    assert {p.name for p in (tmp_path / "o").iterdir()} == {"strip.png", "summary.json"}
    for words in (["--part", "7"], ["--part", "0"], ["--part", "1", "--direction", "0,0,0"]):
        code, _, err = cli("pull", two[0], *words)
        assert code == 2 and is_one_line(err)


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "EMPTY"],
        ["drop", "EMPTY", "--out", "OUT"],
        ["press", "EMPTY", GUITAR],
        ["press", GUITAR, "EMPTY"],
        ["pull", "EMPTY", "--part", "1"],
        ["plan", "EMPTY", "--picture", "OUT"],
    ],
)
def test_structure_without_parts_is_refused(cli, tmp_path, words):
    empty = tmp_path / "empty.json"
    empty.write_text('{"schema": "bricksim/lego_topology@2", "parts": [], "connections": []}')
    names = {"EMPTY": str(empty), "OUT": str(tmp_path / "out")}
    code, _, err = cli(*[names.get(word, word) for word in words])
    assert code == 2 and is_one_line(err) and "internal" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["empty.json"]


# -- info, convert --------------------------------------------------------------------------


def test_info_counts_and_measures(cli):
    code, out, _ = cli("info", GUITAR, "--json")
    data = json.loads(out)
    assert code == 0
    assert (data["parts"], data["fixed"], data["components"]) == (29, [0], 1)
    assert sum(data["kinds"].values()) == 29
    structure = read_structure(GUITAR)
    assert data["mass"] == pytest.approx(sum(p.shape.mass for p in structure.graph.parts()))
    # 7 x 2 studs and 18 bricks high on a plate of its footprint.
    assert data["size"] == pytest.approx([0.056, 0.016, 18 * 0.0096 + 0.0032])
    code, out, _ = cli("info", GUITAR)
    assert code == 0 and "29, 1 of them fixed" in out
    assert cli("info", "missing.txt")[0] == 2


@pytest.mark.parametrize("suffix", [".json", ".ldr", ".usda"])
def test_convert_there_and_back(cli, tmp_path, suffix):
    if suffix == ".usda":
        pytest.importorskip("pxr")
    there, back = tmp_path / f"guitar{suffix}", tmp_path / "back.json"
    assert cli("convert", GUITAR, there, "--baseplate", "none")[0] == 0
    code, out, _ = cli("convert", there, back)
    assert code == 0 and "28 parts" in out
    assert cli("analyze", there)[0] == 0
    original, returned = read_structure(GUITAR, baseplate=None), read_structure(back)
    assert len(returned.graph.connections) == len(original.graph.connections)
    assert sorted(str(p.shape) for p in returned.graph.parts()) == sorted(
        str(p.shape) for p in original.graph.parts()
    )


def test_convert_to_standard_output(cli, tmp_path):
    code, out, _ = cli("convert", GUITAR, "-", "--to", "topology")
    assert code == 0 and json.loads(out)["schema"] == "bricksim/lego_topology@2"
    code, _, err = cli("convert", GUITAR, "-")
    assert code == 2 and "--to" in err
    code, _, err = cli("convert", GUITAR, tmp_path / "x.docx")
    assert code == 2 and "x.docx" in err
    code, _, err = cli("convert", GUITAR, tmp_path / "no" / "x.json")
    assert code == 2 and "cannot be written" in err and is_one_line(err)


# -- plan, demo, doctor, bench --------------------------------------------------------------


def test_plan_lists_and_draws_the_steps(cli, tmp_path):
    picture = tmp_path / "plan.png"
    code, out, _ = cli(
        "plan", DATA / "bricksim" / "demo_assembly_structure1.json", "--picture", picture
    )
    assert code == 0 and "4 steps" in out
    assert Image.open(picture).size == (5 * 320 + 4 * 4, 300)
    code, out, _ = cli("plan", DATA / "bricksim" / "demo_assembly_structure1.json", "--json")
    assert code == 0 and [s["parts"] for s in json.loads(out)["steps"]] == [[1], [2], [3], [4]]
    code, _, err = cli("plan", GUITAR, "--press", "nan")
    assert code == 2 and is_one_line(err)


def test_demo_shows_the_crane_stand_bend_and_break(cli, tmp_path):
    code, out, _ = cli("demo", "--out", tmp_path / "demo", "--no-video", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["stable"] and data["safety_factor"] > 1.0
    assert 0.0 < data["loaded_utilization"] <= 1.0 + 1e-6
    assert data["hook_broken"] and 0.9 < data["hook_break_force"] / data["hook_limit"] < 1.2
    assert len(data["drop"]["pieces"]) > 1
    names = {"crane.png", "load.png", "pull.png", "drop.png", "summary.json"}
    assert {p.name for p in (tmp_path / "demo").iterdir()} == names


def test_doctor_finds_this_machine_sound(cli):
    code, out, _ = cli("doctor", "--json")
    checks = {c["name"]: c for c in json.loads(out)}
    failed = {name: c["detail"] for name, c in checks.items() if c["ok"] is False}
    assert (code, failed) == (0, {})
    assert {"python", "statics", "engine mujoco", "pictures", "video"} <= set(checks)
    code, _, err = cli("doctor", "--engine", "bullet")
    assert code == 2 and is_one_line(err) and "bullet" in err


def test_doctor_reports_what_does_not_work():
    result = process("doctor", env={**os.environ, "PYOPENGL_PLATFORM": "glx"})
    assert result.returncode == 2
    line = next(row for row in result.stdout.splitlines() if row.startswith("pictures"))
    assert "FAILED" in line and "EGL" in line


def test_bench_collects_modules(cli, tmp_path):
    (tmp_path / "bench_one.py").write_text(
        "def helper():\n    pass\n\n\ndef run(quick):\n    return [dict(name='sum', unit='ms',"
        " value=2.0 if quick else 4.0, baseline=8.0, ratio=4.0),"
        " dict(name='alone', unit='s', value=1.5, baseline=None, ratio=None)]\n"
    )
    (tmp_path / "helper.py").write_text("x = 1\n")
    code, out, err = cli("bench", "--folder", tmp_path, "--quick", "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)["results"]
    assert [(r["module"], r["name"], r["value"]) for r in results] == [
        ("bench_one", "sum", 2.0),
        ("bench_one", "alone", 1.5),
    ]
    code, out, _ = cli("bench", "--folder", tmp_path)
    assert code == 0 and "4 ×" in out and "8 ms" in out
    (tmp_path / "bench_two.py").write_text("\ndef run(quick):\n    return [dict(name='x')]\n")
    code, out, err = cli("bench", "--folder", tmp_path)
    assert code == 2 and "sum" in out and is_one_line(err) and "lacks unit" in err
    assert cli("bench", "--folder", tmp_path, "--only", "zzz")[0] == 2


# -- errors and signals ---------------------------------------------------------------------


def test_fault_of_ours_is_one_line_with_a_hint_and_debug_shows_it(cli, monkeypatch):
    import bricksim_core.formats

    def fail(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(bricksim_core.formats, "read_structure", fail)
    code, _, err = cli("info", GUITAR)
    assert code == 2 and is_one_line(err)
    assert "internal error: ZeroDivisionError: oops" in err and "--debug" in err
    code, _, err = cli("--debug", "info", GUITAR)
    assert code == 2 and "Traceback" in err


def test_reader_that_goes_away_is_no_error():
    line, settings = command("analyze", "--json", *[STANDS] * 40)
    line += ["-j", "1", "--no-safety-factor"]
    with subprocess.Popen(line, **settings) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        errors = child.stderr.read()
        assert child.wait(60) == 141
    assert errors == ""


def test_progress_is_shown_on_a_terminal_only():
    leader, follower = pty.openpty()
    line, settings = command("analyze", "--json", "--no-safety-factor", *[STANDS] * 9)
    settings["stderr"] = follower
    with subprocess.Popen([*line, "-j", "1"], **settings) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            shown += block
        assert child.stdout is not None
        assert len(child.stdout.read().splitlines()) == 9
        assert child.wait(60) == 0
    os.close(leader)
    assert b"analysing" in shown


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupt_ends_quietly_and_leaves_no_process(workers):
    line, settings = command("analyze", "--json", *[STANDS] * 3000)
    line += ["-j", str(workers)]
    with subprocess.Popen(line, start_new_session=True, **settings) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        os.killpg(child.pid, signal.SIGINT)
        child.stdout.read()
        errors = child.stderr.read()
        assert child.wait(60) == 130
    assert errors == "bricksim: interrupted\n"
    for _ in range(100):  # the last helper processes see the closed pipe
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("processes of the group are left")


def test_interrupted_drop_leaves_no_folder(tmp_path):
    line, settings = command("drop", GUITAR, "--seconds", "120", "--out", tmp_path / "a" / "out")
    with subprocess.Popen(line, **settings) as child:
        assert child.stderr is not None
        while not list(tmp_path.glob("a/out/.bricksim-*")):
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr.read() == "bricksim: interrupted\n"
    assert list(tmp_path.iterdir()) == []
