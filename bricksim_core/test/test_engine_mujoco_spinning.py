# SPDX-License-Identifier: Apache-2.0
"""The free spin keeps the angular momentum in the world over a step, for any inertia."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bricksim_core.engines.mujoco.spinning import load_spin, spin_torque

STEP = 1.0 / 240.0


@pytest.mark.parametrize(("speed", "error"), [(3.0, 1e-12), (20.0, 1e-9), (50.0, 1e-6)])
def test_angular_momentum_at_the_end_of_a_step_is_that_at_its_start(speed: float, error: float):
    rng = np.random.default_rng(5)
    inertia = rng.uniform(0.5, 1.5, (200, 3)) * 1e-6
    angular = rng.normal(size=(200, 3)) * speed
    torque = np.array(
        [spin_torque(tuple(i), tuple(w), STEP) for i, w in zip(inertia, angular, strict=True)]
    )
    moment = inertia * angular
    after = angular + STEP * (torque - np.cross(angular, moment)) / inertia
    turned = Rotation.from_rotvec(STEP * after).apply(inertia * after)
    explicit = angular - STEP * np.cross(angular, moment) / inertia
    wrong = Rotation.from_rotvec(STEP * explicit).apply(inertia * explicit)
    size = np.linalg.norm(moment, axis=1).max()
    assert np.abs(turned - moment).max() < error * size
    assert np.abs(wrong - moment).max() > 1e-5 * size


def test_only_fast_bodies_are_pushed():
    inertia = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]) * 1e-6
    velocities = np.zeros(14)
    spin = np.array([[10, 11, 12], [3, 4, 5]])
    velocities[spin[0]], velocities[spin[1]] = [1.0, 1.0, 1.0], [10.0, 20.0, 30.0]
    applied = np.ones(14)
    load_spin(velocities, spin, inertia, STEP, applied)
    torque = spin_torque(tuple(inertia[1]), (10.0, 20.0, 30.0), STEP)
    expected = np.zeros(14)
    expected[spin[1]] = torque
    np.testing.assert_array_equal(applied, expected)
    assert np.all(np.abs(torque) > 1e-9)
