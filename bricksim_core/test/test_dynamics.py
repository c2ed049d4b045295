# SPDX-License-Identifier: Apache-2.0
"""Rigid-body dynamics of joins and breaks against mechanics by hand."""

from __future__ import annotations

import numpy as np
import pytest
from engine_suite import at, brick_layout, random_pose, tower

from bricksim_core.dynamics import (
    MassProperties,
    combine,
    in_world,
    kinetic_energy,
    mass_properties,
    merged_twist,
    momentum,
    piece_twists,
)
from bricksim_core.parts import BRICK_HEIGHT, BrickShape


def random_body(rng: np.random.Generator) -> MassProperties:
    shape = BrickShape(int(rng.integers(1, 7)), int(rng.integers(1, 3)), int(rng.integers(1, 4)))
    pose = random_pose(rng, [-1, -1, -1], [1, 1, 1])
    return in_world(mass_properties(brick_layout(shape)), pose)


def test_single_brick_is_a_cuboid() -> None:
    """I = m / 12 (b^2 + c^2) about the middle (reference A3)."""
    mass, com, inertia = mass_properties(brick_layout(BrickShape(4, 2)))
    assert mass == 0.00216
    np.testing.assert_allclose(com, [0.016, 0.008, 0.0048])
    squares = np.square([0.032, 0.016, 0.0096])
    expected = mass / 12 * (squares.sum() - squares)
    np.testing.assert_allclose(inertia, np.diag(expected), rtol=1e-12, atol=1e-20)


def test_tower_is_one_tall_cuboid() -> None:
    """n equal bricks on top of each other are a cuboid n times as tall."""
    structure = tower(7)
    (component,) = structure.graph.component_ids
    mass, com, inertia = mass_properties(structure.graph.layout(component))
    assert mass == pytest.approx(7 * 0.00216)
    squares = np.square([0.032, 0.016, 7 * BRICK_HEIGHT])
    np.testing.assert_allclose(
        inertia, np.diag(mass / 12 * (squares.sum() - squares)), rtol=1e-9, atol=1e-18
    )
    world = structure.component_poses[component] @ np.append(com, 1.0)
    np.testing.assert_allclose(world[:3], [0.016, 0.008, 3.5 * BRICK_HEIGHT], atol=1e-12)


def test_inertia_turns_with_the_body() -> None:
    body = mass_properties(brick_layout(BrickShape(4, 1)))
    turned = in_world(body, at(0, 0, 0, (0, 0, np.pi / 2)))
    expected = np.diag(body.inertia)[[1, 0, 2]]
    np.testing.assert_allclose(turned.inertia, np.diag(expected), atol=1e-18)


@pytest.mark.parametrize("seed", range(5))
def test_join_keeps_momentum_and_loses_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bodies = [random_body(rng) for _ in range(3)]
    twists = [rng.normal(size=6) for _ in bodies]
    whole = combine(
        np.array([b.mass for b in bodies]),
        np.array([b.com for b in bodies]),
        np.array([b.inertia for b in bodies]),
    )
    twist = merged_twist(bodies, twists, whole)
    point = rng.normal(size=3)
    before = [momentum(b, t, point) for b, t in zip(bodies, twists, strict=True)]
    after = momentum(whole, twist, point)
    np.testing.assert_allclose(after.linear, sum(m.linear for m in before), rtol=1e-9)
    np.testing.assert_allclose(after.angular, sum(m.angular for m in before), rtol=1e-6)
    # A perfectly plastic join can only lose energy.
    energy = sum(kinetic_energy(b, t) for b, t in zip(bodies, twists, strict=True))
    assert kinetic_energy(whole, twist) <= energy * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_break_keeps_momentum_and_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [random_body(rng) for _ in range(4)]
    whole = combine(
        np.array([b.mass for b in pieces]),
        np.array([b.com for b in pieces]),
        np.array([b.inertia for b in pieces]),
    )
    twist = rng.normal(size=6)
    own = piece_twists(twist, whole.com, np.array([b.com for b in pieces]))
    point = rng.normal(size=3)
    after = [momentum(b, t, point) for b, t in zip(pieces, own, strict=True)]
    before = momentum(whole, twist, point)
    np.testing.assert_allclose(sum(m.linear for m in after), before.linear, rtol=1e-9)
    np.testing.assert_allclose(sum(m.angular for m in after), before.angular, rtol=1e-6)
    energy = sum(kinetic_energy(b, t) for b, t in zip(pieces, own, strict=True))
    assert energy == pytest.approx(kinetic_energy(whole, twist), rel=1e-9)


def test_joining_what_moves_together_changes_nothing() -> None:
    rng = np.random.default_rng(9)
    pieces = [random_body(rng) for _ in range(2)]
    whole = combine(
        np.array([b.mass for b in pieces]),
        np.array([b.com for b in pieces]),
        np.array([b.inertia for b in pieces]),
    )
    twist = rng.normal(size=6)
    own = list(piece_twists(twist, whole.com, np.array([b.com for b in pieces])))
    np.testing.assert_allclose(merged_twist(pieces, own, whole), twist, rtol=1e-9)


def test_bodies_that_a_join_brings_together_win_no_energy() -> None:
    """Two that fly past each other 0.3 m apart: all of their angular momentum would turn one pair
    of bricks with 500 times their energy. The common motion stays as it is."""
    body = in_world(mass_properties(brick_layout(BrickShape(2, 2))), np.eye(4))
    far = body._replace(com=body.com + np.array([0.3, 0, 0]))
    above = body._replace(com=body.com + np.array([0, 0, BRICK_HEIGHT]))
    whole = combine(
        np.array([body.mass, above.mass]),
        np.array([body.com, above.com]),
        np.array([body.inertia, above.inertia]),
    )
    twists = [np.array([3.0, side, 0, 0, 0, 0]) for side in (-1.0, 1.0)]
    twist = merged_twist([body, far], twists, whole)
    np.testing.assert_allclose(twist[:5], [3.0, 0, 0, 0, 0], atol=1e-9)
    energy = sum(kinetic_energy(b, t) for b, t in zip((body, far), twists, strict=True))
    assert kinetic_energy(whole, twist) == pytest.approx(energy, rel=1e-9)
    assert twist[5] > 0.0


def test_falling_brick_caught_by_a_resting_one() -> None:
    """Equal masses, one at 2 m/s: both go on at 1 m/s (plastic collision)."""
    body = in_world(mass_properties(brick_layout(BrickShape(2, 2))), np.eye(4))
    above = body._replace(com=body.com + np.array([0, 0, BRICK_HEIGHT]))
    whole = combine(
        np.array([body.mass, above.mass]),
        np.array([body.com, above.com]),
        np.array([body.inertia, above.inertia]),
    )
    twist = merged_twist([body, above], [np.zeros(6), np.array([0, 0, -2.0, 0, 0, 0])], whole)
    np.testing.assert_allclose(twist, [0, 0, -1.0, 0, 0, 0], atol=1e-12)
