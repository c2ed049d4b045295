# SPDX-License-Identifier: Apache-2.0
"""Grasps against boxes of the gripper moved down by hand, and against a search by steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.sequencing.gripper import (
    Grasp,
    GripperError,
    GripperModel,
    Held,
    blockers,
    find_grasps,
)

GRIPPER = GripperModel()
STUD = 0.008


def brick(x0, y0, z0, x1, y1, z1, studs=1.7):
    """A box [studs, studs, plates] with its studs, in metres."""
    return np.array(
        [x0 * STUD, y0 * STUD, z0 * 0.0032, x1 * STUD, y1 * STUD, z1 * 0.0032 + studs * 1e-3]
    )


def held(length, width, height=3, z=0, yaw=0, **options):
    """A part whose least corner is at x = y = 0."""
    x, y = (length, width) if yaw % 2 == 0 else (width, length)
    high = (x * STUD, y * STUD, (z + height) * 0.0032)
    middle = (0.5 * high[0], 0.5 * high[1])
    return Held(7, middle, yaw, (0.0, 0.0, z * 0.0032), high, **options)


def swept(part, grasp, gripper=GRIPPER):
    """Boxes that the gripper sweeps on its way down to a grasp, in the frame of the obstacles.

    Built from the grasp alone: directions in the part frame, turned by the part's yaw.
    """
    angle = part.yaw * np.pi / 2
    turn = np.round([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    closing = turn @ np.eye(2)[grasp.closing_axis]
    side = turn @ np.eye(2)[1 - grasp.closing_axis]
    centre = np.array(part.middle) + turn @ grasp.centre
    end = part.high[2] - grasp.depth
    half = 0.5 * grasp.width
    boxes = []

    def add(near, far, width, bottom):
        points = [
            centre + closing * along + side * across
            for along in (near, far)
            for across in (-0.5 * width, 0.5 * width)
        ]
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        boxes.append([*low, end + bottom, *high, 1.0])

    for sign in (1.0, -1.0):
        thick = gripper.tip_thickness + grasp.opening
        add(sign * half, sign * (half + thick), gripper.tip_width, 0.0)
        near, far = gripper.finger_near, gripper.finger_far + grasp.opening
        add(sign * (half + near), sign * (half + far), gripper.finger_width, gripper.finger_height)
    reach = 0.5 * gripper.hand_length
    add(-reach, reach, gripper.hand_width, gripper.hand_height)
    return np.array(boxes)


def hits(boxes, obstacles, margin=1e-7):
    a, b = boxes[:, None, :], obstacles[None, :, :]
    overlap = (a[..., :3] + margin < b[..., 3:]) & (b[..., :3] + margin < a[..., 3:])
    return overlap.all(axis=2).any(axis=0)


@pytest.mark.parametrize("yaw", range(4))
def test_free_brick(yaw):
    """Alone on the table: held in the middle, as deep as preferred, first across the short side."""
    first, second = find_grasps(GRIPPER, held(4, 2, yaw=yaw), np.zeros((0, 6)))
    assert (first.closing_axis, first.centre, first.width) == (1, (0.0, 0.0), 0.016)
    assert (second.closing_axis, second.centre, second.width) == (0, (0.0, 0.0), 0.032)
    assert first.depth == GRIPPER.depths[0] and first.opening == GRIPPER.release


@pytest.mark.parametrize(
    ("shape", "count"),
    [((8, 2), 2), ((9, 2), 2), ((10, 2), 1), ((10, 10), 0), ((9, 9), 2)],
)
def test_width_limit(shape, count):
    """80 mm less twice the opening: 9 studs (72 mm) fit, 10 do not."""
    assert len(find_grasps(GRIPPER, held(*shape), np.zeros((0, 6)))) == count


def test_depth_leaves_room_above_the_table():
    """Plates are 3.2 mm high: 2.2 mm is the deepest grip that stays 1 mm off the table."""
    assert {g.depth for g in find_grasps(GRIPPER, held(4, 2, 1), np.zeros((0, 6)))} == {0.0022}


def test_depth_leaves_room_above_studs():
    """A plate on a base plate: between its top and the studs beside it are 1.5 mm."""
    base = brick(-20, -20, -1, 20, 20, 0)[None]
    assert {g.depth for g in find_grasps(GRIPPER, held(4, 2, 1), base)} == {0.001}
    assert {g.depth for g in find_grasps(GRIPPER, held(4, 2, 3), base)} == {0.007}


def test_neighbours_on_opposite_sides_leave_the_other_direction():
    beside = np.array([brick(4, 0, 0, 8, 2, 3), brick(-4, 0, 0, 0, 2, 3)])
    assert [g.closing_axis for g in find_grasps(GRIPPER, held(4, 2), beside)] == [1]
    below = np.array([brick(4, 0, -3, 8, 2, 0), brick(-4, 0, -3, 0, 2, 0)])
    assert len(find_grasps(GRIPPER, held(4, 2), below)) == 2


def test_corner_between_two_neighbours_has_no_grasp():
    beside = np.array([brick(-4, 0, 0, 0, 2, 3), brick(0, -2, 0, 4, 0, 3)])
    part = held(4, 2)
    assert find_grasps(GRIPPER, part, beside) == []
    assert blockers(GRIPPER, part, beside) == [(0, [0]), (1, [1])]


@pytest.mark.parametrize(("gap", "opening"), [(1, None), (2, 0.0003), (3, 0.0025)])
def test_gap_of_studs(gap, opening):
    """Fingers are 15.2 mm thick: two studs are narrow, three are enough."""
    walls = np.array([
        brick(-9, y, 0, 13, y + 1, 3) for y in (2 + gap, -1 - gap)
    ])  # fmt: skip
    found = {g.closing_axis: g.opening for g in find_grasps(GRIPPER, held(4, 2), walls)}
    assert found.get(1) == opening


@pytest.mark.parametrize(("yaw", "axis", "sign"), [(0, 0, -1), (1, 1, 1), (2, 0, 1), (3, 1, -1)])
def test_grip_moves_aside_along_the_brick(yaw, axis, sign):
    """A neighbour at one end of a long side: the grip moves to the other end of the part."""
    # In the world the part lies along x, its neighbour stands at y > 2 and x > 5.
    part = held(8, 2, yaw=yaw) if yaw % 2 == 0 else held(2, 8, yaw=yaw)
    beside = brick(5, 2, 0, 9, 4, 3)[None]
    best = next(g for g in find_grasps(GRIPPER, part, beside) if g.closing_axis != axis)
    assert best.centre[1 - axis] == 0.0
    # The neighbour begins 8 mm past the middle: half the tip and both gaps short of that.
    expected = 0.008 - 0.5 * GRIPPER.tip_width - GRIPPER.clearance - GRIPPER.spare
    assert best.centre[axis] == pytest.approx(-sign * expected, abs=1e-6)


def test_hand_needs_room_above_high_neighbours():
    """A wall 5 bricks higher, 8 studs away: the hand reaches 102 mm when it closes across."""
    wall = brick(-20, 10, 0, 20, 12, 18)[None]
    assert [g.closing_axis for g in find_grasps(GRIPPER, held(4, 2), wall)] == [0]
    low = brick(-20, 10, 0, 20, 12, 12)[None]
    assert len(find_grasps(GRIPPER, held(4, 2), low)) == 2


def test_pair_is_held_across_both():
    pair = Held(7, (0.016, 0.008), 0, (0.0, 0.0, 0.0), (0.032, 0.032, 0.0096), beside=8, closing=1)
    (grasp,) = find_grasps(GRIPPER, pair, np.zeros((0, 6)))
    assert (grasp.closing_axis, grasp.width, grasp.beside) == (1, 0.032, 8)
    assert grasp.centre == (0.0, 0.008)  # on the seam, half a brick from the first part's middle


cells = st.integers(-6, 9)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.sampled_from([1, 3, 9]))
boxes = st.builds(
    lambda x, y, z, s: brick(x, y, z, x + s[0], y + s[1], z + s[2]),
    cells, cells, st.sampled_from([-3, 0, 1, 3, 6, 12, 15]), sizes,
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(sizes, st.integers(0, 3), st.lists(boxes, min_size=1, max_size=5))
def test_grasps_are_free_and_none_is_missed(size, yaw, others):
    part = held(*size, yaw=yaw)
    obstacles = np.array([o for o in others if not hits(_body(part), o[None])[0]]).reshape(-1, 6)
    grasps = find_grasps(GRIPPER, part, obstacles)
    for grasp in grasps:
        assert not hits(swept(part, grasp), obstacles).any()
        contact = _contact(part, grasp)
        assert contact >= min(GRIPPER.least_contact, size[1 - grasp.closing_axis] * STUD) - 1e-9
    # Step through all grips: a direction without grasp has none with a finger's clearance to spare.
    spare = GripperModel(release=0.0025, least_release=0.0025, clearance=0.001)
    for axis in {0, 1} - {g.closing_axis for g in grasps}:
        for grasp in _all_grips(part, axis, size):
            grown = swept(part, grasp)
            grown[:, :2] -= spare.clearance
            grown[:, 3:5] += spare.clearance
            grown[:, 2] -= spare.clearance
            assert hits(grown, obstacles).any()


def _body(part):
    return np.array([[*part.low, *part.high]])


def _contact(part, grasp):
    tips = swept(part, grasp)[[0, 2]]
    side = int(np.argmax(np.abs(tips[0, :2] - tips[1, :2]) < 1e-9))
    low, high = part.low[side], part.high[side]
    return min(min(t[side + 3], high) - max(t[side], low) for t in tips)


def _all_grips(part, axis, size):
    width = size[axis] * STUD
    if width + 2 * GRIPPER.release > GRIPPER.max_opening:
        return
    half = 0.5 * size[1 - axis] * STUD
    for offset in np.linspace(-half, half, 9):
        centre = (offset, 0.0) if axis == 1 else (0.0, offset)
        for depth in GRIPPER.depths:
            if depth <= size[2] * 0.0032 - GRIPPER.table_clearance:
                yield Grasp(7, axis, centre, depth, GRIPPER.release, width)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tip_width": 0.0}, "tip_width is 0.0"),
        ({"max_opening": -0.1}, "max_opening"),
        ({"clearance": float("nan")}, "clearance is nan"),
        ({"depths": ()}, "depths"),
        ({"depths": (0.005, 0.0)}, "depths"),
        ({"least_release": 0.01}, "least_release is 0.01 m, expected at most release"),
    ],
)
def test_bad_models(change, message):
    with pytest.raises(GripperError, match=message):
        GripperModel(**change)


def test_tips_keep_off_what_stands_flush_with_the_gripped_sides():
    """A brick of two studs at the end of a row: the tips are wider than it and reach over its
    free end; between two others there is no such place."""
    part = held(1, 2)
    beside = brick(1, 0, 0, 7, 2, 3)
    grasp = find_grasps(GRIPPER, part, beside[None])[0]
    assert grasp.closing_axis == 1
    assert grasp.centre[0] + 0.5 * GRIPPER.tip_width <= 0.5 * STUD - GRIPPER.clearance + 1e-8
    assert grasp.opening == GRIPPER.release
    assert not grasp.scrapes
    both = np.array([beside, brick(-6, 0, 0, 0, 2, 3)])
    between = find_grasps(GRIPPER, part, both)[0]
    assert between.centre == (0.0, 0.0)
    assert between.scrapes == 2
    # Set back by a stud at one end, one neighbour leaves the tip there free.
    both[1, 1] += STUD
    assert find_grasps(GRIPPER, part, both)[0].scrapes == 1
