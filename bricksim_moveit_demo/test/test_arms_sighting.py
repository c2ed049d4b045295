# SPDX-License-Identifier: Apache-2.0
"""Many looks at a structure that stands firm."""

import numpy as np
import pytest
from arms_support import yawed

from bricksim_core.spatial import inverse
from bricksim_moveit_demo.sighting import Sightings
from bricksim_moveit_demo.world import Noise

BASE = yawed(0.5, -0.1, 0.02, 130.0)
NOISE = Noise.of(1.0, 2.0)


def _error(estimate, place):
    """Error across [m] and of the yaw [rad] of the estimate of a place in the base."""
    off = inverse(BASE @ place) @ estimate
    return np.linalg.norm(off[:2, 3]), abs(np.arctan2(off[1, 0], off[0, 0]))


def _places(generator, count):
    middles = generator.uniform(-0.03, 0.03, (count, 2)).tolist()
    return [yawed(x, y, 0.0096 * (i % 3), 90.0 * (i % 4)) for i, (x, y) in enumerate(middles)]


def test_one_look_is_taken_as_it_is():
    place, seen = yawed(0.02, 0.01, 0.0, 90.0), yawed(0.4, 0.1, 0.0, 12.0)
    np.testing.assert_allclose(Sightings().look(seen, place), seen, atol=1e-12)


def test_exact_looks_give_the_exact_place():
    sightings, generator = Sightings(), np.random.default_rng(3)
    for place in _places(generator, 5):
        np.testing.assert_allclose(sightings.look(BASE @ place, place), BASE @ place, atol=1e-9)


def test_independent_errors_average_out():
    first, last = [], []
    for seed in range(40):
        generator, sightings = np.random.default_rng(seed), Sightings()
        for place in _places(generator, 16):
            estimate = sightings.look(BASE @ place @ NOISE.sample(generator), place)
            if len(first) == len(last):
                first.append(_error(estimate, place))
        last.append(_error(estimate, place))
    # Sixteen looks, three unknowns: errors shrink by about sqrt(16), less at the edge.
    assert np.all(np.mean(last, axis=0) < 0.45 * np.mean(first, axis=0))


@pytest.mark.parametrize(("shift", "degrees"), [(0.012, 0.0), (0.0, 15.0)])
def test_structure_that_was_moved_is_seen_where_it_is(shift, degrees):
    sightings, place = Sightings(), yawed(0.01, 0.0)
    for _ in range(20):
        sightings.look(BASE @ place, place)
    moved = BASE @ yawed(shift, 0.0, 0.0, degrees) @ place
    np.testing.assert_allclose(sightings.look(moved, place), moved, atol=1e-12)
