# SPDX-License-Identifier: Apache-2.0
"""Free spin: Euler's equations at any speed, with the momentum and the energy that they keep."""

from __future__ import annotations

import numpy as np
import pytest
from engine_suite import at, body, brick_layout
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from bricksim_core.dynamics import mass_properties
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.spinning import load_spin, spun
from bricksim_core.formats import parse_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout

STEP = 1.0 / 240.0


def composite() -> ComponentLayout:
    lines = "4x2 (0,0,0)\n2x4 (1,0,1)\n1x1 (0,0,1)\n"
    graph = parse_structure(lines, baseplate=None).graph
    return graph.layout(graph.component_of(graph.part_ids[0]))


LAYOUTS = {
    "1x1": brick_layout(BrickShape(1, 1)),
    "4x2": brick_layout(BrickShape(4, 2)),
    "plate": brick_layout(BrickShape(4, 2, height=1)),
    "long": brick_layout(BrickShape(1, 8)),
    "composite": composite(),
}


def true_motion(inertia: Array, angular: Array, duration: float) -> tuple[Array, Rotation]:
    """Euler's equations, integrated finely: (3,) body velocity [rad/s] and how the body turned."""

    def rates(_: float, state: Array) -> Array:
        w, turn = state[:3], state[3:]
        half = 0.5 * np.cross(turn[:3], w) + 0.5 * turn[3] * w
        return np.r_[-np.cross(w, inertia * w) / inertia, half, -0.5 * turn[:3] @ w]

    start = np.r_[angular, 0.0, 0.0, 0.0, 1.0]
    found = solve_ivp(rates, (0.0, duration), start, "DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:3, -1], Rotation.from_quat(found.y[3:, -1])


def random_spins(
    seed: int, count: int, speed: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N, 3) moments of bodies, and angular velocities of a speed."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.2, 1.0, (count, 3)) ** 2
    angular = rng.normal(size=(count, 3))
    angular *= speed / np.linalg.norm(angular, axis=1, keepdims=True)
    return (size.sum(axis=1, keepdims=True) - size) * 1e-6, angular


@pytest.mark.parametrize(("speed", "error"), [(3.0, 1e-9), (50.0, 1e-5), (400.0, 1e-3)])
def test_a_free_body_turns_as_eulers_equations_have_it(speed: float, error: float) -> None:
    for inertia, angular in zip(*random_spins(5, 8, speed), strict=True):
        found, turn = spun(tuple(inertia), tuple(angular), 4 * STEP)
        expected, turned = true_motion(inertia, angular, 4 * STEP)
        np.testing.assert_allclose(found, expected, atol=error * speed)
        off = Rotation.from_quat(turn, scalar_first=True).inv() * turned
        assert off.magnitude() < error


@pytest.mark.parametrize("speed", [3.0, 50.0, 2000.0, 1e5])
def test_momentum_is_kept_to_rounding_and_energy_over_thousands_of_turns(speed: float) -> None:
    for inertia, start in zip(*random_spins(6, 5, speed), strict=True):
        angular, turned = start, Rotation.identity()
        for _ in range(240):
            found, turn = spun(tuple(inertia), tuple(angular), STEP)
            angular = np.array(found)
            turned = turned * Rotation.from_quat(turn, scalar_first=True)
        moment = inertia * start
        now = turned.apply(inertia * angular)
        assert np.linalg.norm(now - moment) < 1e-10 * np.linalg.norm(moment)
        # From 3e4 rad/s on the turns that are composed at once are larger.
        assert angular @ (inertia * angular) == pytest.approx(
            start @ moment, rel=1e-4 if speed < 1e4 else 1e-2
        )


@pytest.mark.parametrize("gravity", [0.0, -9.81])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("speed", [50.0, 300.0, 2000.0])
def test_bricks_in_free_flight_keep_momentum_and_energy(
    name: str, speed: float, gravity: float
) -> None:
    layout = LAYOUTS[name]
    rng = np.random.default_rng(7)
    for _ in range(3):
        spin = rng.normal(size=3)
        spin *= speed / np.linalg.norm(spin)
        engine = MujocoEngine(gravity=(0.0, 0.0, gravity), ground=None)
        engine.update([], [body(0, layout, at(0, 0, 1), (0.1, 0.2, 0.3, *spin))])
        moment, energy = momentum_and_energy(engine, layout)
        for _ in range(240):
            report = engine.step()
        after, left = momentum_and_energy(engine, layout)
        assert np.linalg.norm(after - moment) < 1e-10 * np.linalg.norm(moment)
        assert left == pytest.approx(energy, rel=1e-4)
        np.testing.assert_allclose(
            report.twist[0, :3], [0.1, 0.2, 0.3 + gravity], rtol=1e-9, atol=1e-9
        )


def momentum_and_energy(engine: MujocoEngine, layout: ComponentLayout) -> tuple[Array, float]:
    """(3,) angular momentum about the COM, world [kg m^2/s], and energy of the spin [J]."""
    turn, spin = engine.poses[0, :3, :3], engine.twists[0, 3:]
    moment = turn @ mass_properties(layout).inertia @ turn.T @ spin
    return moment, 0.5 * float(spin @ moment)


@pytest.mark.parametrize("speed", [30.0, 600.0])
def test_a_brick_in_flight_lies_as_eulers_equations_have_it(speed: float) -> None:
    layout = LAYOUTS["4x2"]
    moments, axes = np.linalg.eigh(mass_properties(layout).inertia)
    axes[:, 0] *= np.linalg.det(axes)
    spin = speed * np.array([0.4, 0.8, 0.4])
    engine = MujocoEngine(gravity=(0.0, 0.0, 0.0), ground=None)
    engine.update([], [body(0, layout, at(0, 0, 1), (0.0, 0.0, 0.0, *spin))])
    for _ in range(48):
        engine.step()
    expected, turned = true_motion(moments, axes.T @ spin, 48 * STEP)
    body_axes = Rotation.from_matrix(axes)
    pose = body_axes * turned * body_axes.inv()
    off = Rotation.from_matrix(engine.poses[0, :3, :3]).inv() * pose
    assert off.magnitude() < 1e-3
    now = (body_axes * turned).apply(expected)
    np.testing.assert_allclose(engine.twists[0, 3:], now, atol=1e-3 * speed)


def test_a_push_changes_the_momentum_of_what_spins_fast_by_its_impulse() -> None:
    layout = LAYOUTS["4x2"]
    engine = MujocoEngine(gravity=(0.0, 0.0, 0.0), ground=None)
    # About a principal axis, so that the push along it finds the body as it was.
    engine.update([], [body(0, layout, at(0, 0, 1), (0.0, 0.0, 0.0, 0.0, 0.0, 900.0))])
    moment, _ = momentum_and_energy(engine, layout)
    push = np.array([0.0, 0.0, 2e-3])
    for _ in range(10):
        engine.apply_wrench(0, np.r_[0.0, 0.0, 0.0, push])
        engine.step()
    after, _ = momentum_and_energy(engine, layout)
    np.testing.assert_allclose(after - moment, 10 * STEP * push, atol=1e-6 * 10 * STEP * 2e-3)


def test_only_fast_bodies_are_pushed() -> None:
    inertia = np.array([[1.0, 2.0, 2.5], [1.0, 2.0, 2.5]]) * 1e-6
    velocities = np.zeros(14)
    spin = np.array([[10, 11, 12], [3, 4, 5]])
    slow, fast = np.array([1.0, 1.0, 1.0]), np.array([10.0, 20.0, 30.0])
    velocities[spin[0]], velocities[spin[1]] = slow, fast
    applied = np.ones(14)
    free = load_spin(velocities, spin, inertia, STEP, applied)
    end, turn = spun(tuple(inertia[1]), tuple(fast), STEP)
    np.testing.assert_array_equal(free, [np.zeros(7), [*end, *turn]])
    # What MuJoCo makes of the torque: it takes the gyroscopic one at the start.
    gyroscopic = np.cross(fast, inertia[1] * fast)
    found = fast + STEP * (applied[spin[1]] - gyroscopic) / inertia[1]
    np.testing.assert_allclose(found, end, rtol=1e-12)
    applied[spin[1]] = 0.0
    np.testing.assert_array_equal(applied, np.zeros(14))
    velocities[spin[1]] = slow
    assert not len(load_spin(velocities, spin, inertia, STEP, applied))
