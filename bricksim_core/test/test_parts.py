# SPDX-License-Identifier: Apache-2.0
"""Masses against StableLego's table and BrickSim's fit, inertia against the cuboid's integral."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bricksim_core.errors import PartError
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape, Part

MEASURED = {
    (1, 1): 0.43,
    (1, 2): 0.81,
    (1, 4): 1.57,
    (1, 6): 2.28,
    (1, 8): 3.03,
    (2, 2): 1.15,
    (2, 4): 2.16,
    (2, 6): 3.23,
}
"""Grams, brick_library of StableLego."""


@pytest.mark.parametrize(("sides", "grams"), MEASURED.items())
def test_measured_masses(sides, grams):
    assert BrickShape(*sides).mass == pytest.approx(grams * 1e-3, rel=1e-12)
    assert BrickShape(*sides[::-1]).mass == BrickShape(*sides).mass


@pytest.mark.parametrize(
    ("dimensions", "grams"),
    [
        ((20, 20, 1), 45.99),  # stated for BrickSim's demo plate
        ((32, 32, 1), 115.6),  # stated for its base plate
        ((2, 4, 1), 0.10937 * 8 + 0.05671 * 6 - 0.02207),
        ((2, 3, 3), 0.1523 * 6 + 0.2498 * 5 - 0.2485),
        # A 1x1 brick of five plates is one brick and two plates of the fit, not the measured 1x1.
        ((1, 1, 5), 0.1523 + 0.2498 * 2 - 0.2485 + 2 * (0.10937 + 0.05671 * 2 - 0.02207)),
    ],
)
def test_estimated_masses(dimensions, grams):
    assert BrickShape(*dimensions).mass == pytest.approx(grams * 1e-3, rel=1e-4)


def test_own_mass():
    assert BrickShape(2, 2, mass=0.2).mass == 0.2
    assert BrickShape(2, 2, mass=0.2) != BrickShape(2, 2)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 9))
def test_inertia_is_that_of_a_solid_cuboid(length, width, height):
    """Against a midpoint sum over the volume, and the same total moment in any orientation."""
    shape = BrickShape(length, width, height)
    n = 20
    axes = [(np.arange(n) + 0.5) / n * s for s in shape.size]
    axes[0] -= shape.size[0] / 2
    axes[1] -= shape.size[1] / 2
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    assert np.allclose(grid.mean(axis=0), shape.com, atol=1e-12)
    r = grid - shape.com
    squares = np.einsum("ni,ni->n", r, r)
    expected = shape.mass * np.mean(
        squares[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :], axis=0
    )
    assert np.allclose(shape.inertia, expected, rtol=2 / n**2, atol=1e-15)
    turned = BrickShape(width, length, height)
    assert np.allclose(np.diag(turned.inertia), np.diag(shape.inertia)[[1, 0, 2]], rtol=1e-12)


def test_size():
    assert BrickShape(2, 4).size == pytest.approx((2 * STUD_PITCH, 4 * STUD_PITCH, 0.0096))
    assert BrickShape(1, 1, 1).size[2] == PLATE_HEIGHT == 0.0032


@pytest.mark.parametrize("value", [0, -1, 1025, 2.0, True, None, "2"])
@pytest.mark.parametrize("dimension", ["length", "width", "height"])
def test_bad_dimensions(dimension, value):
    dimensions: dict[str, Any] = {"length": 2, "width": 4, "height": 3} | {dimension: value}
    with pytest.raises(PartError, match=dimension) as error:
        BrickShape(**dimensions)
    assert str(value) in str(error.value)


@pytest.mark.parametrize("mass", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_mass(mass):
    with pytest.raises(PartError, match="mass"):
        BrickShape(2, 4, mass=mass)


@pytest.mark.parametrize("color", [(0, 0), (0, 0, 256), (-1, 0, 0), (0.5, 0, 0)])
def test_bad_color(color):
    with pytest.raises(PartError, match="colour"):
        Part(0, BrickShape(2, 4), color)


def test_numpy_numbers_become_plain():
    numbers: Any = (np.int64(2), np.int32(4), np.int8(1))
    shape = BrickShape(*numbers)
    assert [type(v) for v in (shape.length, shape.width, shape.height)] == [int, int, int]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (BrickShape(2, 4), "2x4 brick"),
        (BrickShape(2, 4, 1), "2x4 plate"),
        (BrickShape(2, 4, 1, has_studs=False), "2x4 tile"),
        (BrickShape(1, 1, 15), "1x1x15 brick"),
    ],
)
def test_text(shape, text):
    assert str(shape) == text
