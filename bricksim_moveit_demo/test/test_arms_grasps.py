# SPDX-License-Identifier: Apache-2.0
"""Grasps: geometry of the hand, overlap of boxes against coal."""

import coal
import numpy as np
import pytest
from arms_support import yawed
from scipy.spatial.transform import Rotation

from bricksim_core.parts import STUD_PITCH, BrickShape
from bricksim_core.spatial import transform_points
from bricksim_moveit_demo.description import franka
from bricksim_moveit_demo.grasps import (
    TIP_BEYOND_TOOL,
    TIP_WIDTH,
    boxes_overlap,
    end_grasps,
    grasps,
    hand_boxes,
    hand_is_free,
)
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.scene import Box, brick_box

PARAMETERS = TaskParameters()


def _random_box(generator):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(rng=generator).as_matrix()
    pose[:3, 3] = generator.uniform(-0.06, 0.06, 3)
    return Box(tuple(generator.uniform(0.01, 0.08, 3)), pose)


def test_overlap_of_boxes_equals_coal():
    generator = np.random.default_rng(2)
    found = []
    for _ in range(300):
        a, b = _random_box(generator), _random_box(generator)
        request, result = coal.CollisionRequest(), coal.CollisionResult()
        shapes = [coal.Box(*box.size) for box in (a, b)]
        places = [coal.Transform3s(box.pose[:3, :3], box.pose[:3, 3]) for box in (a, b)]
        truth = coal.collide(shapes[0], places[0], shapes[1], places[1], request, result) > 0
        found.append(truth)
        assert bool(boxes_overlap(a, [b])[0]) == truth
    assert 0.2 < np.mean(found) < 0.8


def test_clearance_is_a_gap_between_faces():
    a = Box((0.02, 0.02, 0.02), np.eye(4))
    others = [Box((0.02, 0.02, 0.02), yawed(0.02 + gap, 0.0)) for gap in (0.0009, 0.0011)]
    np.testing.assert_array_equal(boxes_overlap(a, others, 0.001), [True, False])


def test_fingertip_boxes_are_those_of_the_description():
    tip = franka()["shapes"]["finger"][-1]
    top, bottom = (0.0584 + tip["xyz"][2] + s * tip["size"][2] / 2.0 - 0.1034 for s in (-1, 1))
    assert bottom == pytest.approx(TIP_BEYOND_TOOL)
    box = hand_boxes(0.02)[0]
    assert box.size[2] == pytest.approx(bottom - top)
    assert box.pose[1, 3] - box.size[1] / 2.0 == pytest.approx(0.01)


@pytest.mark.parametrize(
    "shape", [BrickShape(4, 2), BrickShape(1, 1), BrickShape(2, 6), BrickShape(4, 4, 1)]
)
def test_grasps_hold_two_opposite_sides_from_above(shape):
    length, width, height = shape.size
    found = list(grasps(shape, PARAMETERS))
    assert found
    for grasp in found:
        tool = grasp.part_T_tool
        np.testing.assert_allclose(tool[:3, 2], [0.0, 0.0, -1.0], atol=1e-12)
        assert np.linalg.det(tool[:3, :3]) == pytest.approx(1.0)
        closing = int(np.abs(tool[:3, 1]).argmax())
        assert grasp.width == pytest.approx((length, width)[closing])
        tips = transform_points(
            tool, [[0.0, s * grasp.width / 2.0, TIP_BEYOND_TOOL] for s in (1, -1)]
        )
        np.testing.assert_allclose(np.sort(tips[:, closing]), [-grasp.width / 2, grasp.width / 2])
        assert height - tips[0, 2] == pytest.approx(grasp.depth)
        assert tips[0, 2] >= PARAMETERS.table_clearance - 1e-12
        # Half a stud of the side is between the tips, at least.
        reach = abs(tool[1 - closing, 3]) - TIP_WIDTH / 2.0
        assert (length, width)[1 - closing] / 2.0 - reach >= STUD_PITCH / 2.0 - 1e-12


def test_deep_central_grasps_come_first_both_ways_round():
    first, second = list(grasps(BrickShape(4, 2), PARAMETERS))[:2]
    assert first.depth == max(PARAMETERS.grip_depths)
    np.testing.assert_allclose(first.part_T_tool[:2, 3], 0.0, atol=1e-12)
    np.testing.assert_allclose(first.part_T_tool[:3, 1], -second.part_T_tool[:3, 1])


def test_too_wide_a_brick_has_no_grasp_across_its_length():
    for grasp in grasps(BrickShape(12, 2), PARAMETERS):
        assert grasp.width == pytest.approx(0.016)
    assert not list(grasps(BrickShape(12, 12), PARAMETERS))


def test_neighbors_leave_room_or_not():
    shape = BrickShape(4, 2)
    grasp = next(iter(grasps(shape, PARAMETERS)))
    opening = grasp.width + 2.0 * grasp.release
    # Fingers close along y: a neighbour beyond x is no hindrance, one beyond y is.
    beside_x = brick_box(shape, yawed(0.032, 0.0))
    beside_y = brick_box(shape, yawed(0.0, 0.016))
    below = brick_box(shape, yawed(0.0, 0.016, -0.0096))
    assert hand_is_free(grasp.part_T_tool, opening, [beside_x, below], 0.0005)
    assert not hand_is_free(grasp.part_T_tool, opening, [beside_y], 0.0005)
    two_away = brick_box(shape, yawed(0.0, 0.032))
    assert not hand_is_free(grasp.part_T_tool, opening, [two_away], 0.0005)
    tight = grasp.width + 2.0 * min(PARAMETERS.release_clearances)
    assert hand_is_free(grasp.part_T_tool, tight, [two_away], 0.0)


@pytest.mark.parametrize("end", [1, -1])
def test_end_grasps_leave_studs_and_the_other_end_free(end):
    shape = BrickShape(4, 2)
    for grasp in end_grasps(shape, end):
        np.testing.assert_allclose(grasp.part_T_tool[:3, 2], [-end, 0.0, 0.0])
        for tip in hand_boxes(grasp.width)[0::2][:2]:
            corners = np.array(np.meshgrid(*([[-0.5, 0.5]] * 3))).reshape(3, -1).T * tip.size
            at = transform_points(grasp.part_T_tool @ tip.pose, corners)
            assert at[:, 2].max() <= shape.size[2]
            assert (end * at[:, 0]).min() > 0.0
    above = brick_box(shape, yawed(0.0, 0.0, 0.0096))
    assert hand_is_free(grasp.part_T_tool, grasp.width, [above], 0.0005)
