# SPDX-License-Identifier: Apache-2.0
"""Joints: strengths by hand, and the tipping rows against free friction at every contact point."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from mechanics_cases import single_component, text_structure
from scipy.optimize import linprog
from snapfit_truth import stud_points

from bricksim_core.mechanics.snapfit import ConstantsError, SnapFitConstants
from bricksim_core.mechanics.snapfit.joints import joints_of, pull_moments
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph

T = 0.2 * 3.5
NARROW = 4 * T
"""Four equal contacts [N]."""
SIDE = (1 + np.sqrt(2)) * T
"""One strong contact against two at right angles, each weaker by sqrt 2 [N]."""
PITCH = 0.008


def joint_of(lower: BrickShape, upper: BrickShape, offset=(0, 0), yaw=0, constants=None):
    graph = BrickTopologyGraph()
    a, b = graph.add_part(lower), graph.add_part(upper)
    graph.connect(a, b, offset, yaw)
    (component,) = graph.component_ids
    return joints_of(graph.layout(component), constants or SnapFitConstants()), graph.layout(
        component
    )


@pytest.mark.parametrize(
    ("length", "width", "pull"),
    [
        (1, 1, NARROW),
        (2, 1, 2 * NARROW),
        (8, 1, 8 * NARROW),
        (2, 2, 4 * SIDE),
        (4, 2, 8 * SIDE),
        (6, 2, 12 * SIDE),
        (4, 4, 12 * SIDE + 4 * NARROW),
    ],
)
@pytest.mark.parametrize("height", [1, 3])
def test_pull_off_strength_is_the_sum_over_the_studs(length, width, height, pull):
    joints, _ = joint_of(BrickShape(10, 10, 1), BrickShape(length, width, height), (1, 2))
    assert joints.pull == pytest.approx([pull])
    utilization = joints.utilization(np.array([[0.0, 0.0, 1.2 * pull, 0.0, 0.0, 0.0]]))
    assert utilization == pytest.approx([1.2], rel=1e-12)


def test_hole_brick_decides_how_studs_are_held():
    wide_on_narrow, _ = joint_of(BrickShape(4, 1), BrickShape(4, 2))
    narrow_on_wide, _ = joint_of(BrickShape(4, 2), BrickShape(4, 1))
    assert wide_on_narrow.pull == pytest.approx([4 * SIDE])
    assert narrow_on_wide.pull == pytest.approx([4 * NARROW])


def test_tipping_strengths_of_the_built_joints():
    """M = sum of stud strength times distance from the edge: 2x2 of wide, 1x2 of narrow bricks."""
    stair, _ = joint_of(BrickShape(4, 2), BrickShape(4, 2), (2, 0))
    assert stair.tip[0] == pytest.approx(np.full(4, 2 * SIDE * (0.5 + 1.5) * PITCH))
    stick, _ = joint_of(BrickShape(8, 1), BrickShape(4, 1), (6, 0))
    assert stick.tip[0, :2] == pytest.approx(np.full(2, NARROW * (0.5 + 1.5) * PITCH))
    assert stick.tip[0, 2:] == pytest.approx(np.full(2, 2 * NARROW * 0.5 * PITCH))


def test_one_stud_resists_turning_by_friction_alone():
    joints, _ = joint_of(BrickShape(1, 1), BrickShape(1, 1))
    torque = 0.0024 * NARROW
    twist = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.7 * torque])
    pull = np.array([0.0, 0.0, 0.2 * NARROW, 0.0, 0.0, 0.0])
    push = np.array([0.0, 0.0, -5.0, 0.0, 0.0, 0.0])
    for sign in (1.0, -1.0):
        assert joints.utilization((sign * twist)[None]) == pytest.approx([0.7])
        assert joints.utilization((sign * twist + pull)[None]) == pytest.approx([0.9])
        assert joints.utilization((sign * twist + push)[None]) == pytest.approx([0.7])


def test_bearing_grows_with_the_studs():
    joints, _ = joint_of(BrickShape(4, 2), BrickShape(4, 2))
    assert joints.shear == pytest.approx([8 * 30.0])
    x, y = np.array([0.5, 1.5]) * PITCH, 0.5 * PITCH
    lever = 4 * np.hypot(x, y).sum()
    assert joints.twist == pytest.approx([30.0 * lever + 0.0024 * 8 * SIDE])
    sideways = np.array([[120.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    assert joints.utilization(sideways) == pytest.approx([0.5])


OVERLAPS = [
    (BrickShape(1, 1), BrickShape(2, 2), (0, 0), 0),
    (BrickShape(4, 2), BrickShape(4, 2), (1, 1), 0),
    (BrickShape(4, 2), BrickShape(4, 2), (2, 0), 1),
    (BrickShape(8, 1), BrickShape(4, 1), (6, 0), 0),
    (BrickShape(6, 6, 1), BrickShape(4, 4), (-1, -2), 0),  # strength is not symmetric here
    (BrickShape(6, 6, 1), BrickShape(6, 4), (5, 1), 1),
    (BrickShape(3, 1), BrickShape(3, 3), (0, -1), 0),
]


@pytest.mark.parametrize(("lower", "upper", "offset", "yaw"), OVERLAPS)
def test_tipping_rows_are_exact(lower, upper, offset, yaw):
    """Greatest load by free friction at all points and free pushes at the corners (HiGHS)."""
    joints, layout = joint_of(lower, upper, offset, yaw)
    plans = layout.footprints
    hole = tuple(plans[layout.hole_index[0]])
    low = np.maximum(plans[0, :2], plans[1, :2])
    high = np.minimum(plans[0, 2:], plans[1, 2:])
    points = [
        point
        for i in range(low[0], high[0])
        for j in range(low[1], high[1])
        for point in stud_points((i, j), hole)
    ]
    x, y, strength = np.array(points).T
    x, y = x - 0.5 * (low + high)[0] * PITCH, y - 0.5 * (low + high)[1] * PITCH
    corners = np.array(
        [[sx * joints.half[0, 0], sy * joints.half[0, 1]] for sx in (-1, 1) for sy in (-1, 1)]
    )
    columns = np.vstack(
        [
            np.append(np.ones(len(x)), -np.ones(4)),
            np.append(x, -corners[:, 0]),
            np.append(y, -corners[:, 1]),
        ]
    )
    rng = np.random.default_rng(5)
    scale = np.array([1.0, *joints.half[0]])
    for _ in range(40):
        need = rng.normal(size=3) * scale + [0.5, 0.0, 0.0]
        wrench = np.array([[0.0, 0.0, need[0], need[2], -need[1], 0.0]])
        assert pull_moments(wrench)[0] == pytest.approx(need)
        utilization = joints.utilization(wrench)[0]
        # Unknowns: forces, multiple of the wrench.
        result = linprog(
            np.append(np.zeros(columns.shape[1]), -1.0),
            A_eq=np.column_stack([columns / scale[:, None], -need / scale]),
            b_eq=np.zeros(3),
            bounds=[*((0.0, s) for s in strength), *[(0.0, None)] * 5],
        )
        if result.status == 3:  # unbounded
            assert utilization == pytest.approx(0.0, abs=1e-9)
        else:
            assert result.status == 0
            assert 1.0 / utilization == pytest.approx(-result.fun, rel=1e-7)


def test_split_gives_the_wrench_back():
    joints, _ = joint_of(BrickShape(6, 6, 1), BrickShape(4, 4), (-1, -2))
    rng = np.random.default_rng(3)
    for wrench in rng.normal(size=(50, 1, 6)) * [1.0, 1.0, 2.0, 0.02, 0.02, 0.02]:
        studs, corners = joints.split(wrench)
        assert np.all(corners >= 0.0)
        arm = joints.corners[0] - joints.centre[0]
        total = studs[0].copy()
        total[2] -= corners.sum()
        total[3] -= arm[:, 1] @ corners[0]
        total[4] += arm[:, 0] @ corners[0]
        assert total == pytest.approx(wrench[0], abs=1e-12)
        assert pull_moments(studs)[0, 0] <= joints.pull[0] * joints.utilization(wrench)[0] + 1e-12


def test_strengths_scale_with_friction_and_preload():
    base, _ = joint_of(BrickShape(4, 2), BrickShape(4, 2))
    double, _ = joint_of(
        BrickShape(4, 2), BrickShape(4, 2), constants=SnapFitConstants(friction=0.4)
    )
    assert double.pull == pytest.approx(2 * base.pull)
    assert double.tip == pytest.approx(2 * base.tip)


def test_layout_order_is_kept():
    layout, _ = single_component(text_structure("4x2 (0,0,0)\n2x2 (0,0,1)\n2x2 (2,0,1)\n"))
    joints = joints_of(layout, SnapFitConstants())
    assert joints.lower.tolist() == layout.stud_index.tolist()
    assert joints.studs.tolist() == [8, 4, 4]


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(SnapFitConstants)])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_constants_are_validated(field, value):
    with pytest.raises(ConstantsError, match=field):
        SnapFitConstants(**{field: value})
