# SPDX-License-Identifier: Apache-2.0
"""The free spin keeps the angular momentum in the world over a step, for any inertia."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bricksim_core.engines.mujoco.spinning import spin_torque

STEP = 1.0 / 240.0


@pytest.mark.parametrize(("speed", "error"), [(3.0, 1e-12), (20.0, 1e-9), (50.0, 1e-6)])
def test_angular_momentum_at_the_end_of_a_step_is_that_at_its_start(speed: float, error: float):
    rng = np.random.default_rng(5)
    inertia = rng.uniform(0.5, 1.5, (200, 3)) * 1e-6
    angular = rng.normal(size=(200, 3)) * speed
    torque = spin_torque(inertia, angular, STEP)
    moment = inertia * angular
    after = angular + STEP * (torque - np.cross(angular, moment)) / inertia
    turned = Rotation.from_rotvec(STEP * after).apply(inertia * after)
    explicit = angular - STEP * np.cross(angular, moment) / inertia
    wrong = Rotation.from_rotvec(STEP * explicit).apply(inertia * explicit)
    size = np.linalg.norm(moment, axis=1).max()
    assert np.abs(turned - moment).max() < error * size
    assert np.abs(wrong - moment).max() > 1e-5 * size


@pytest.mark.parametrize("speed", [1.0, 30.0, 900.0])
def test_few_bodies_get_the_torque_that_many_get(speed: float):
    rng = np.random.default_rng(6)
    inertia = rng.uniform(0.5, 1.5, (40, 3)) * 1e-6
    angular = rng.normal(size=(40, 3)) * speed
    many = spin_torque(inertia, angular, STEP)
    few = np.concatenate(
        [spin_torque(inertia[i : i + 5], angular[i : i + 5], STEP) for i in range(0, 40, 5)]
    )
    np.testing.assert_allclose(few, many, rtol=1e-6, atol=1e-9 * np.abs(many).max())
