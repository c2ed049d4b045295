# SPDX-License-Identifier: Apache-2.0
"""An arm lifts a brick on the ovphysx engine; PhysX's friction creeps a little more."""

import importlib.util

import pytest

if importlib.util.find_spec("ovphysx") is None:
    pytest.skip("extra [ovphysx] is not installed", allow_module_level=True)

from arm_lift import lift

from bricksim_core.engines import create_engine


def test_arm_lifts_a_brick():
    engine = create_engine("ovphysx")
    result = lift(engine)
    engine.close()
    assert result.rise > 0.1
    assert result.slip < 1.5e-4
    assert result.turn < 1e-2
    assert result.carried == pytest.approx(1.0, abs=1e-2)
    assert result.apart
    # Fingers that press on a brick stand still, and say so: grippers wait for it.
    assert result.finger_speed < 1e-3
    # PhysX's own twist of a brick in a grip is 0.1 m/s and 20 rad/s.
    assert result.brick_speed < 2e-3
    assert result.brick_spin < 0.2
