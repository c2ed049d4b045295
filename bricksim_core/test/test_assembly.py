# SPDX-License-Identifier: Apache-2.0
"""The assembly monitor: geometry, forces and their window, one criterion at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from engine_suite import placed, random_pose

from bricksim_core.assembly import AssemblyMonitor, AssemblyThresholds, Candidate
from bricksim_core.assembly.alignment import align
from bricksim_core.engines.protocol import BODY_SHAPE, NO_PART, STUD_SHAPE, Contacts, StepReport
from bricksim_core.errors import BrickSimError
from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology import BrickTopologyGraph

DT = 1.0 / 240.0
STUD, HOLE = BrickShape(4, 2), BrickShape(3, 2)


def sizes(*shapes: BrickShape) -> np.ndarray:
    return np.array([(s.length, s.width, s.height) for s in shapes])


def align_one(stud: BrickShape, hole: BrickShape, world_T_hole: Array, world_T_stud: Array):
    return align(np.array([world_T_stud, world_T_hole]), sizes(stud, hole), np.array([[0, 1]]))


# -- geometry -------------------------------------------------------------------------------


@pytest.mark.parametrize("yaw", range(4))
def test_alignment_of_exact_connections(yaw: int) -> None:
    """Every exact pose gives back its offset and yaw without an error, wherever the pair is."""
    rng = np.random.default_rng(yaw)
    for x in range(-6, 7):
        for y in range(-6, 7):
            graph = BrickTopologyGraph()
            below, above = graph.add_part(STUD), graph.add_part(HOLE)
            try:
                graph.connect(below, above, (x, y), yaw)
            except BrickSimError:
                continue
            world = random_pose(rng, [-1, -1, -1], [1, 1, 1])
            pose, _ = placed(STUD, HOLE, (x, y), yaw)
            found = align_one(STUD, HOLE, world @ pose, world)
            assert tuple(found.offset[0]) == (x, y)
            assert found.yaw[0] == yaw
            assert found.overlapping[0]
            for error in (found.height_error, found.tilt, found.yaw_error, found.position_error):
                assert abs(error[0]) < 1e-7


def test_alignment_of_a_brick_on_its_side():
    """Seen along the studs its holes have no area; the tilt is a quarter turn all the same."""
    pose = np.eye(4)
    pose[:3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    found = align_one(STUD, HOLE, pose, np.eye(4))
    assert found.tilt[0] == pytest.approx(0.5 * math.pi)
    assert all(
        np.isfinite(error[0])
        for error in (found.height_error, found.yaw_error, found.position_error)
    )


@pytest.mark.parametrize("seed", range(8))
def test_alignment_reads_errors_as_they_are_made(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shift = np.append(rng.uniform(-2e-3, 2e-3, 2), rng.uniform(-8e-4, 8e-4))
    yaw_error, tilt = rng.uniform(-0.08, 0.08, 2)
    yaw = int(rng.integers(4))
    pose, _ = placed(STUD, HOLE, (1, 1), yaw, shift, yaw_error, tilt)
    found = align_one(STUD, HOLE, pose, np.eye(4))
    assert found.yaw[0] == yaw
    assert found.yaw_error[0] == pytest.approx(yaw_error, abs=4e-3 * abs(tilt) + 1e-9)
    assert found.tilt[0] == pytest.approx(abs(tilt), abs=1e-9)
    # The overlap's middle moves with the shift, so errors count there to second order.
    assert found.position_error[0] == pytest.approx(math.hypot(*shift[:2]), abs=3e-4)
    assert found.height_error[0] == pytest.approx(shift[2], abs=2.5e-4)


def test_long_bricks_are_judged_where_they_overlap() -> None:
    """3 degrees of yaw of a 16 stud brick over its own end studs: the far end is 6 mm off."""
    stud, hole = BrickShape(2, 2), BrickShape(16, 2)
    pose, _ = placed(stud, hole, (0, 0), 0, yaw_error=math.radians(3.0))
    found = align_one(stud, hole, pose, np.eye(4))
    assert found.position_error[0] < 1e-4
    assert tuple(found.offset[0]) == (0, 0)


def test_offset_beside_the_studs_does_not_overlap() -> None:
    pose, _ = placed(STUD, HOLE, (3, 0), 0, (6e-3, 0, 0))
    found = align_one(STUD, HOLE, pose, np.eye(4))
    assert tuple(found.offset[0]) == (4, 0)
    assert not found.overlapping[0]


# -- forces ---------------------------------------------------------------------------------


def report(
    force: float, points: Array | None = None, *, swapped: bool = False, sideways: bool = False
) -> StepReport:
    """A step in which part 1's body presses on part 0's studs at some points."""
    points = np.array([[0.0, 0.0, 0.0113]]) if points is None else points
    count = len(points)
    normal = np.tile([1.0, 0.0, 0.0] if sideways else [0.0, 0.0, 1.0], (count, 1))
    impulse = np.full(count, force * DT / count)
    first, second = (1, 0) if swapped else (0, 1)
    shapes = {0: STUD_SHAPE, 1: BODY_SHAPE}
    if swapped:
        normal = -normal
    contacts = Contacts(
        part_a=np.full(count, first),
        part_b=np.full(count, second),
        shape_a=np.full(count, shapes[first]),
        shape_b=np.full(count, shapes[second]),
        other=np.full(count, -1),
        names=("ground",),
        position=points,
        normal=normal,
        normal_impulse=impulse,
        impulse=normal * impulse[:, None],
    )
    poses, twists = np.tile(np.eye(4), (2, 1, 1)), np.zeros((2, 6))
    ids = np.array([0, 1])
    return StepReport(0.0, DT, ids, poses, twists, poses, twists, contacts)


def nothing() -> StepReport:
    full = report(0.0)
    empty: dict[str, Any] = {
        name: value[:0] if isinstance(value, np.ndarray) else value
        for name, value in vars(full.contacts).items()
    }
    return StepReport(**{**vars(full), "contacts": Contacts(**empty)})


def judge(
    steps: list[StepReport],
    thresholds: AssemblyThresholds = AssemblyThresholds(),
    pose: Array | None = None,
    dt: float = DT,
    shapes: tuple[BrickShape, BrickShape] = (STUD, HOLE),
) -> tuple[Candidate, ...]:
    monitor = AssemblyMonitor(thresholds, dt)
    ids = np.array([0, 1])
    for step in steps:
        monitor.observe(step, ids, ids)
    if pose is None:
        pose, _ = placed(*shapes, (1, 0), 0)
    return monitor.candidates(ids, np.array([np.eye(4), pose]), sizes(*shapes))


def test_sustained_force_is_accepted_whichever_way_round_it_is_reported() -> None:
    for swapped in (False, True):
        (found,) = judge([report(1.5, swapped=swapped)] * 4)
        assert found.accepted
        assert (found.stud_part, found.hole_part, found.offset, found.yaw) == (0, 1, (1, 0), 0)
        assert found.force == pytest.approx(1.5)
        assert found.reason == ""


def test_force_has_to_last() -> None:
    """Three of four steps are enough, two are not, whatever the peak."""
    strong, weak = report(50.0), report(0.5)
    (found,) = judge([strong, strong, weak, strong])
    assert found.accepted
    (found,) = judge([strong, weak, weak, strong])
    assert not found.accepted
    assert found.force == pytest.approx(0.5)
    assert "is less than 1 N" in found.reason
    (found,) = judge([nothing(), nothing(), strong, strong])
    assert found.force == 0.0


def test_coarse_steps_need_two_in_a_row() -> None:
    """At 60 Hz a window of one frame would be a single step: a spike."""
    (found,) = judge([report(50.0)], dt=1 / 60)
    assert not found.accepted
    (found,) = judge([report(50.0)] * 2, dt=1 / 60)
    assert found.accepted


def test_what_let_go_is_no_candidate() -> None:
    assert judge([report(2.0), report(2.0), report(2.0), nothing()]) == ()


def test_sideways_force_does_not_press() -> None:
    (found,) = judge([report(5.0, sideways=True)] * 4)
    assert not found.accepted
    assert found.force == pytest.approx(0.0)


def test_pulling_counts_as_negative() -> None:
    (found,) = judge([report(-3.0)] * 4)
    assert found.force == pytest.approx(-3.0)
    assert not found.accepted


def test_other_contacts_are_no_candidates() -> None:
    step = report(5.0)
    for change in (
        {"part_a": np.array([NO_PART]), "other": np.array([0])},
        {"shape_a": np.array([BODY_SHAPE])},
        {"shape_b": np.array([STUD_SHAPE])},
    ):
        contacts = Contacts(**{**vars(step.contacts), **change})
        assert judge([StepReport(**{**vars(step), "contacts": contacts})] * 4) == ()


@pytest.mark.parametrize(
    ("shift", "yaw_error", "tilt", "reason"),
    [
        ((0, 0, 1.2e-3), 0.0, 0.0, "height above the studs 1.2 mm is more than 1 mm"),
        ((0, 0, -1.2e-3), 0.0, 0.0, "depth below the studs' tops 1.2 mm is more than 1 mm"),
        ((0, 0, 0), 0.0, math.radians(6), "tilt 6 deg is more than 5 deg"),
        ((0, 0, 0), math.radians(-8), 0.0, "yaw error 8 deg is more than 5 deg"),
        ((3e-3, 0, 0), 0.0, 0.0, "position error 3 mm is more than 2 mm"),
        ((1.5e-3, 1.5e-3, 0), 0.0, 0.0, "position error 2.12 mm is more than 2 mm"),
        ((0.9e-3, 0, 0.9e-3), math.radians(4.5), math.radians(4.5), ""),
    ],
)
def test_criteria(shift, yaw_error: float, tilt: float, reason: str) -> None:
    """Defaults of the paper: 1 mm, 5 deg, 5 deg, 2 mm (reference C)."""
    pose, _ = placed(STUD, HOLE, (1, 0), 0, shift, yaw_error, tilt)
    (found,) = judge([report(2.0)] * 4, pose=pose)
    assert found.reason == reason
    assert found.accepted is (reason == "")


def test_off_the_studs_is_said() -> None:
    pose, _ = placed(STUD, HOLE, (3, 0), 0, (7e-3, 0, 0))
    (found,) = judge([report(2.0)] * 4, pose=pose)
    assert "do not overlap" in found.reason


def test_eccentric_force_is_refused_where_asked_for() -> None:
    """The centre of pressure at 80 % of the way to the overlap's edge."""
    pose, centre = placed(STUD, HOLE, (1, 0), 0)
    point = (centre + np.array([0.8 * 0.012, 0.0, 0.0]))[None]
    (found,) = judge([report(2.0, point)] * 4, pose=pose)
    assert found.accepted
    assert found.eccentricity == pytest.approx(0.8)
    (found,) = judge([report(2.0, point)] * 4, AssemblyThresholds(eccentricity=0.7), pose)
    assert "eccentricity of the force 0.8 is more than 0.7" in found.reason


def test_centre_of_pressure_is_weighted_by_force() -> None:
    pose, centre = placed(STUD, HOLE, (1, 0), 0)
    half = np.array([0.012, 0.0, 0.0])
    left, right = centre - half, centre + half
    points = np.array([left, right, right, right])
    (found,) = judge([report(2.0, points)] * 4, pose=pose)
    assert found.eccentricity == pytest.approx(0.5)


def test_disabled_monitor_finds_nothing() -> None:
    assert judge([report(5.0)] * 4, AssemblyThresholds(enabled=False)) == ()


def test_forgetting_and_excluding() -> None:
    monitor = AssemblyMonitor(AssemblyThresholds(), DT)
    ids = np.array([0, 1])
    pose, _ = placed(STUD, HOLE, (1, 0), 0)
    poses = np.array([np.eye(4), pose])
    for _ in range(4):
        monitor.observe(report(2.0), ids, ids)
    snapshot = monitor.snapshot()
    assert monitor.candidates(ids, poses, sizes(STUD, HOLE), excluded={(0, 1)}) == ()
    monitor.forget([1])
    assert monitor.candidates(ids, poses, sizes(STUD, HOLE)) == ()
    monitor.observe(report(2.0), ids, ids)
    assert not monitor.candidates(ids, poses, sizes(STUD, HOLE))[0].accepted
    monitor.restore(snapshot)
    assert monitor.candidates(ids, poses, sizes(STUD, HOLE))[0].accepted


def test_hardest_pressed_comes_first() -> None:
    """Three bricks side by side on a plate."""
    plate, brick = BrickShape(8, 2, 1), BrickShape(2, 2)
    monitor = AssemblyMonitor(AssemblyThresholds(), DT)
    forces = [1.5, 4.0, 2.5]
    one = report(1.0)
    tripled: dict[str, Any] = {
        name: np.repeat(value, 3, axis=0) if isinstance(value, np.ndarray) else value
        for name, value in vars(one.contacts).items()
    }
    tripled |= {"part_b": np.array([1, 2, 3]), "normal_impulse": np.array(forces) * DT}
    rest = {
        "component_ids": np.arange(4),
        "world_T_component": np.tile(np.eye(4), (4, 1, 1)),
        "previous_world_T_component": np.tile(np.eye(4), (4, 1, 1)),
        "contacts": Contacts(**tripled),
    }
    step = StepReport(**{**vars(one), **rest})
    for _ in range(4):
        monitor.observe(step, np.arange(4), np.arange(4))
    world = np.array([np.eye(4), *(placed(plate, brick, (2 * i, 0), 0)[0] for i in range(3))])
    found = monitor.candidates(np.arange(4), world, sizes(plate, brick, brick, brick))
    assert [c.hole_part for c in found] == [2, 3, 1]
    assert [c.force for c in found] == pytest.approx([4.0, 2.5, 1.5])


@pytest.mark.parametrize(
    "values",
    [{"force": -1.0}, {"tilt_tolerance": math.nan}, {"sustained": 0.0}, {"sustained": 1.5}],
)
def test_thresholds_are_checked(values: dict[str, float]) -> None:
    with pytest.raises(BrickSimError, match=next(iter(values))):
        AssemblyThresholds(**values)  # type: ignore[arg-type]


def test_resting_height_is_on_top_of_the_studs() -> None:
    """Zero height error means the hole plane is one stud height over the stud interface."""
    pose, _ = placed(STUD, HOLE, (0, 0), 0)
    assert pose[2, 3] == pytest.approx(STUD.height * PLATE_HEIGHT + STUD_HEIGHT)
