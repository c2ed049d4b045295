# SPDX-License-Identifier: Apache-2.0
"""Drop, press and pull against free fall, the paper's thresholds and its pull-off capacities."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

from bricksim_core.engines import create_engine
from bricksim_core.errors import BrickSimError, CollisionError, EngineError, UnknownIdError
from bricksim_core.events import EventKind
from bricksim_core.experiments import recording
from bricksim_core.experiments.drop import drop
from bricksim_core.experiments.film import film, film_strip, moments, nearest, varied_colors
from bricksim_core.experiments.press import CLEARANCE, press, stacked
from bricksim_core.experiments.pull import pull
from bricksim_core.experiments.setup import (
    extent,
    lowest_parts,
    rotation_from_degrees,
    standing,
)
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import SimulatorConfig
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

DATA = Path(__file__).parent / "data"
CRANE = Path(create_engine.__code__.co_filename).parents[1] / "data" / "crane.json"
GRAVITY = 9.81
PAPER = SimulatorConfig(model="paper")


def brick(text="4x2 (0,0,0)\n"):
    return parse_structure(text, baseplate=None)


# -- placing --------------------------------------------------------------------------------


def test_standing_puts_the_lowest_point_at_the_height_over_the_origin():
    structure = brick("4x2 (3,5,0)\n2x2 (3,5,1)\n")
    pose = standing(structure, rotation_from_degrees(30.0, -50.0, 70.0), 0.2)
    low, high = extent(structure, pose)
    assert low[2] == pytest.approx(0.2)
    assert low[:2] + high[:2] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_tilt_angles_are_about_fixed_axes_in_degrees():
    turn = rotation_from_degrees(90.0, 0.0, 90.0)  # about x, then about z
    assert turn @ [0.0, 1.0, 0.0] == pytest.approx([0.0, 0.0, 1.0])
    assert turn @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0])


def test_lowest_parts_are_those_on_the_ground():
    assert lowest_parts(brick("2x2 (0,0,0)\n2x2 (4,0,0)\n6x2 (0,0,1)\n")) == {1, 2}


# -- drop -----------------------------------------------------------------------------------


def test_fall_follows_gravity_until_the_ground_and_ends_there():
    height = 0.1
    recording = drop(brick("4x2 (0,0,0)\n4x2 (0,0,1)\n"), height=height, seconds=1.0)
    assert recording.parts == (1, 2)
    z, times = recording.world_T_part[:, 0, 2, 3], recording.times
    falling = times < math.sqrt(2.0 * height / GRAVITY) - 1.0 / 60.0
    assert falling.sum() > 5
    # Semi-implicit Euler at 240 Hz is ahead of the parabola by g t dt / 2.
    expected = height - 0.5 * GRAVITY * times**2
    assert z[falling] == pytest.approx(expected[falling], abs=GRAVITY * times[falling].max() / 240)
    assert z[-1] == pytest.approx(0.0, abs=5e-4)
    assert times == pytest.approx(np.arange(61) / 60.0)
    assert recording.pieces == ((1, 2),) and recording.broken == ()
    statistics = recording.frame_times()
    assert 0.0 < statistics["median"] <= statistics["p99"] <= statistics["max"]


def test_fixed_parts_are_released_and_ids_are_the_files():
    structure = parse_structure("2x2 (0,0,0)\n", name="on a plate")
    assert structure.fixed == {0}
    recording = drop(structure, height=0.05, seconds=0.1)
    assert recording.parts == (0, 1)
    assert not recording.fixed.any()
    assert (np.diff(recording.world_T_part[:, :, 2, 3], axis=0)[1:] < 0.0).all()


def test_high_drop_breaks_the_crane_and_tells_each_break():
    structure = read_structure(CRANE)
    recording = drop(
        structure, height=0.5, rotation=rotation_from_degrees(0.0, 90.0, 0.0), seconds=1.0
    )
    assert len(recording.pieces) > 1
    assert sorted(p for piece in recording.pieces for p in piece) == structure.graph.part_ids
    pairs = {(c.stud_part, c.hole_part) for c in structure.graph.connections.values()}
    impact = math.sqrt(2.0 * 0.5 / GRAVITY)
    for change in recording.broken:
        assert (change.stud_part, change.hole_part) in pairs
        assert change.time > impact - 1.0 / 60.0
    assert recording.max_utilization > 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": math.nan}, "height is nan m, expected 0 to 100 m"),
        ({"height": -0.1}, "height is -0.1 m"),
        ({"seconds": math.inf}, "seconds is inf s"),
        ({"rotation": np.ones((3, 3))}, "rotation"),
    ],
)
def test_impossible_drops_are_refused(options, message):
    with pytest.raises(BrickSimError, match=message):
        drop(brick(), **options)


def test_unknown_engine_is_refused():
    with pytest.raises(EngineError, match="engine is 'bullet'"):
        drop(brick(), engine="bullet")


def test_frames_that_load_loops_are_no_frame_times(monkeypatch):
    """A loop is ready that was not before the fifth frame."""
    frames = iter(range(100))
    monkeypatch.setattr(recording, "loaded", lambda: {"loop": int(next(frames) >= 5)})
    film = drop(brick(), height=0.001, seconds=0.2)
    assert np.flatnonzero(film.loading).tolist() == [4] and len(film.timings) == 12
    times = np.array([1e3 * t.total for t in film.timings])
    statistics = film.frame_times()
    assert statistics["loading"] == pytest.approx(times[4])
    assert statistics["mean"] == pytest.approx(np.delete(times, 4).mean())


# -- press ----------------------------------------------------------------------------------


def moved(structure, x, y, z):
    poses = {c: transform([x, y, z]) @ pose for c, pose in structure.component_poses.items()}
    return dataclasses.replace(structure, component_poses=poses)


@pytest.mark.parametrize("yaw", [0.0, 90.0])
@pytest.mark.parametrize("height", [-0.0032, 0.0, 0.096])
def test_the_upper_structure_starts_just_above_the_studs_wherever_its_file_puts_it(height, yaw):
    lower, upper = moved(brick(), 0.1, 0.2, -height), moved(brick(), 0.3, -0.1, height)
    below, above = stacked(lower, upper, (1.0, 0.5), yaw)
    low, high = extent(lower, below)
    assert low[2] == pytest.approx(0.0, abs=1e-12)
    start, _ = extent(upper, above)
    assert start - [low[0], low[1], high[2]] == pytest.approx([0.008, 0.004, CLEARANCE], abs=1e-9)


def test_a_structure_file_that_does_not_start_on_the_ground_connects():
    result = press(brick(), moved(brick(), 0.0, 0.0, -0.0032), force=5.0, seconds=0.6)
    assert result.connected


def test_parts_that_are_inside_of_each_other_are_named_with_their_file():
    inside = brick("4x2 (0,0,0)\n2x2 (8,0,0)\n")
    for component in inside.component_poses:
        inside.component_poses[component] = np.eye(4)
    poses = inside.part_poses()
    second = inside.graph.component_of(2)
    inside.component_poses[second] = transform(poses[1][:3, 3] - poses[2][:3, 3])
    for label, pair in (("lower", (inside, brick())), ("upper", (brick(), inside))):
        inside.file = label
        with pytest.raises(CollisionError, match=rf"{label}: .*inside of"):
            press(*pair)


@pytest.mark.parametrize(("offset", "yaw"), [((0, 0), 0.0), ((2, 1), 90.0), ((3, -1), 180.0)])
def test_aligned_brick_connects_with_the_offset_asked_for(offset, yaw):
    result = press(brick(), brick(), offset=offset, yaw=yaw, force=5.0, seconds=0.7)
    assert result.connected and result.reason == ""
    (change,) = result.connections
    assert (change.stud_part, change.hole_part) == ("a:1", "b:1")
    assert change.yaw == yaw / 90.0
    assert change.force >= 1.0
    lower = result.recording.world_T_part[-1][result.recording.parts.index("a:1")]
    upper = result.recording.world_T_part[-1][result.recording.parts.index("b:1")]
    turned = yaw == 90.0
    size = np.array([0.016, 0.032]) if turned else np.array([0.032, 0.016])
    centre = np.array([-0.016, -0.008]) + 0.008 * np.array(offset) + 0.5 * size
    assert (upper - lower)[:2, 3] == pytest.approx(centre, abs=1e-6)
    assert (upper - lower)[2, 3] == pytest.approx(0.0096, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"offset": (0.45, 0.0)}, "position error"),
        ({"yaw": 8.0}, "yaw error"),
        ({"force": 0.5}, "force .* is less than 1 N"),
        ({"offset": (30.0, 0.0)}, "no studs .* touched"),
    ],
)
def test_misaligned_or_weak_presses_do_not_connect_and_say_why(options, reason):
    result = press(brick(), brick(), **{"force": 5.0, "seconds": 0.6, **options})
    assert not result.connected
    assert result.connections == ()
    assert re.search(reason, result.reason), result.reason


def test_tile_takes_no_brick():
    lower = brick()
    part = lower.graph.part(1)
    tile = dataclasses.replace(part, shape=dataclasses.replace(part.shape, has_studs=False))
    lower.graph.graph.nodes[1]["part"] = tile
    assert not press(lower, brick(), force=10.0, seconds=0.6).connected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"force": math.nan}, "force is nan N"),
        ({"offset": (math.inf, 0)}, "offset"),
        ({"yaw": 1e3}, "yaw"),
    ],
)
def test_impossible_presses_are_refused(options, message):
    with pytest.raises(BrickSimError, match=message):
        press(brick(), brick(), **options)


# -- pull -----------------------------------------------------------------------------------


def test_the_limit_is_not_known_where_the_bearers_shares_are_not():
    """A brick on the smooth tops of two towers, which it need not load alike."""
    graph = BrickTopologyGraph()
    poses = {}
    for place in (0.0, 0.048):
        foot = graph.add_part(BrickShape(2, 2))
        top = graph.add_part(BrickShape(2, 2, 1, has_studs=False))
        graph.connect(foot, top, (0, 0), 0)
        poses[graph.component_of(foot)] = transform([place, 0.0, 0.0])
    brick_id = graph.add_part(BrickShape(8, 2))
    poses[graph.component_of(brick_id)] = transform([0.0, 0.0, 0.0128])
    result = pull(Structure(graph, poses), brick_id, force=0.05, direction=(0.0, 0.0, -1.0))
    assert math.isnan(result.limit) and result.overloaded == ()
    assert result.break_force is None


@pytest.mark.parametrize(
    ("text", "points"), [("1x1 (0,0,0)\n", 4), ("4x1 (0,0,0)\n", 16), ("2x2 (0,0,0)\n", 12)]
)
def test_paper_model_pulls_off_at_its_contact_points_times_0_7_newton(text, points):
    # Reference: pure pull-off capacity of a single brick = contact points x 0.7 N; its weight too.
    structure = parse_structure(text)
    weight = structure.graph.part(1).shape.mass * GRAVITY
    result = pull(structure, 1, force=30.0, config=PAPER)
    assert result.limit == pytest.approx(0.7 * points + weight, rel=0.02)
    assert result.overloaded == ((0, 1),)
    assert [(c.stud_part, c.hole_part) for c in result.broken] == [(0, 1)]
    assert result.break_force == pytest.approx(result.limit, rel=0.03)
    # It came off and moved away.
    row = result.recording.parts.index(1)
    assert result.recording.world_T_part[-1, row, 2, 3] > 0.01


def test_what_holds_is_said_to_hold():
    result = pull(parse_structure("4x2 (0,0,0)\n"), 1, force=2.0)
    assert result.limit == math.inf and result.overloaded == ()
    assert result.break_force is None and result.broken == ()
    assert not any(c.kind is EventKind.BROKEN for c in result.recording.changes)


def test_without_fixed_parts_the_lowest_are_held():
    result = pull(brick("4x2 (0,0,0)\n1x1 (0,0,1)\n"), 2, force=6.0, config=PAPER)
    weight = 0.43e-3 * GRAVITY
    assert result.limit == pytest.approx(4 * 0.7 + weight, rel=0.02)


@pytest.mark.parametrize(
    ("part", "options", "error", "message"),
    [
        (9, {}, UnknownIdError, "part id 9"),
        (0, {}, BrickSimError, "part 0 is held"),
        (1, {"force": math.nan}, BrickSimError, "force is nan"),
        (1, {"direction": (0, 0, 0)}, BrickSimError, "direction"),
        (1, {"direction": (0, math.nan, 1)}, BrickSimError, "direction"),
    ],
)
def test_impossible_pulls_are_refused(part, options, error, message):
    with pytest.raises(error, match=message):
        pull(parse_structure("2x2 (0,0,0)\n"), part, **options)


# -- film -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def falling():
    return drop(
        read_structure(CRANE), height=0.144, rotation=rotation_from_degrees(0, 90, 0), seconds=0.6
    )


def test_film_runs_in_real_time(falling):
    frames = list(film(falling, fps=10.0, size=(96, 72)))
    assert len(frames) == 7
    assert all(f.shape == (72, 96, 3) for f in frames)
    assert (frames[0] != frames[2]).any()


def test_strip_shows_start_break_and_end(falling):
    chosen = moments(falling, 5)
    assert len(chosen) == 5 and chosen[0] == 0 and chosen[-1] == len(falling.times) - 1
    assert falling.broken
    first_break = nearest(falling, np.array([falling.broken[0].time]))[0]
    assert first_break in chosen
    image = film_strip(falling, pictures=3)
    assert image.shape == (480, 3 * 480 + 2 * 4, 3)


def test_nearest_frames():
    recording = drop(brick(), height=0.01, seconds=0.1)
    assert nearest(recording, np.array([-1.0, 0.0, 0.0249, 0.0251, 9.0])) == [0, 0, 1, 2, 6]


def test_palette_replaces_only_missing_colours():
    fixed = np.array([True, False, False])
    plain = [(9, 9, 9), (255, 255, 255), (255, 255, 255)]
    varied = varied_colors(plain, fixed)
    assert varied[0] == (9, 9, 9) and varied[1] != varied[2]
    own = [(9, 9, 9), (1, 2, 3), (3, 2, 1)]
    assert varied_colors(own, fixed) == tuple(own)
