# SPDX-License-Identifier: Apache-2.0
"""Set points of drives."""

from __future__ import annotations

import numpy as np
import pytest

from bricksim_core.engines.set_points import Drives, SetPoints


def test_set_points_move_at_their_speed_and_stop_at_the_target():
    points = SetPoints(np.array([0.0, 1.0, 0.0]), np.array([2.0, 0.5, np.inf]))
    points.targets[:] = [1.0, 0.0, 3.0]
    for _ in range(30):
        assert points.advance(0.01)
    np.testing.assert_allclose(points.now, [0.6, 0.85, 3.0])
    for _ in range(300):
        points.advance(0.01)
    np.testing.assert_allclose(points.now, [1.0, 0.0, 3.0])
    assert not points.advance(0.01)


def test_put_sets_both_and_copies():
    points = SetPoints(np.zeros(1), np.ones(1))
    place = np.array([2.0])
    points.put(place, place)
    place[0] = 5.0
    assert points.targets.tolist() == points.now.tolist() == [2.0]


def test_speeds_and_efforts_are_the_means_of_a_step():
    drives = Drives([(100.0, 10.0, 50.0), (100.0, 10.0, 50.0), None])
    before, now = np.array([0.0, -3.0, 0.0]), np.array([0.01, -3.0, 0.5])
    speeds, efforts = drives.speeds_and_efforts(np.array([0.2, 0.0, 1.0]), before, now, 0.02)
    assert speeds == pytest.approx([0.5, 0.0, 25.0])
    assert efforts == pytest.approx([100 * (0.2 - 0.005) - 10 * 0.5, 50.0, 0.0])
