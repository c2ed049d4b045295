# SPDX-License-Identifier: Apache-2.0
"""Flat patches of contacts: which are constrained, and what each point then bears."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest
from engine_suite import at, body, brick_layout, slab
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from bricksim_core.engines.mujoco import MujocoEngine, engine
from bricksim_core.engines.mujoco.contact import GeomTable
from bricksim_core.engines.mujoco.patches import ALONE, keep_corners, spread
from bricksim_core.engines.mujoco.stepping import step_on_corners
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.parts import BRICK_HEIGHT, STUD_HEIGHT, BrickShape
from bricksim_core.simulator import Simulator

FIRM = np.array([0.97, 0.999, 2e-4, 0.5, 2.0])
"""MuJoCo's impedance of contacts between bricks."""


class Found(NamedTuple):
    """Patches of contacts, which touch, which of these are constrained, how many fewer that are."""

    patch: np.ndarray
    touching: np.ndarray
    kept: np.ndarray
    saved: int
    contacts: Any


def patches_in(scene: MujocoEngine, geoms: np.ndarray | None = None) -> Found:
    """What is found in an engine's state, with its own bricks and ground or other geoms."""
    model, data = scene.model, copy.copy(scene.data)
    mujoco.mj_step1(model, data)
    all_of_them = data.contact
    touching = all_of_them.exclude == 0
    patch, saved = keep_corners(
        all_of_them.geom, all_of_them.frame, all_of_them.pos, all_of_them.dist,
        all_of_them.exclude, all_of_them.efc_address,
        model.geom_bodyid, data.geom_xpos, data.geom_xmat, model.geom_size,
        scene._index.geoms.other if geoms is None else geoms,
    )  # fmt: skip
    kept = touching & (all_of_them.exclude == 0)
    return Found(patch, touching, kept, saved, all_of_them)


def lying(euler: tuple[float, float, float], sunk: float) -> MujocoEngine:
    """A slab lying on another one that is turned by some degrees, a little inside."""
    simulator = Simulator()
    low = slab()
    top = simulator.spawn(low, standing(low, np.eye(3), 0.0), fixed=())
    height = max(pose[2, 3] for pose in simulator.poses().values()) + BRICK_HEIGHT + STUD_HEIGHT
    height -= sunk
    simulator.spawn(low, standing(low, rotation_from_degrees(*euler), height), fixed=())
    assert len(top) == len(low.graph.part_ids)
    assert isinstance(simulator.engine, MujocoEngine)
    return simulator.engine


@given(st.floats(-180.0, 180.0), st.sampled_from([0.0, 90.0, 180.0]), st.floats(-1e-4, 1e-4))
@settings(max_examples=25, deadline=None)
def test_what_is_excluded_lies_between_corners_of_the_same_patch(yaw, roll, sunk) -> None:
    """In place and in depth: so it can neither come closer nor sink deeper than they do."""
    patch, touching, kept, saved, contacts = patches_in(lying((roll, 0.0, yaw), sunk))
    gone = touching & ~kept
    assert saved == np.count_nonzero(gone)
    assert not np.any(gone & (patch == ALONE))
    for c in np.flatnonzero(gone):
        corners = np.flatnonzero((patch == patch[c]) & kept)
        points = np.column_stack([contacts.pos[corners], contacts.dist[corners]])
        here = np.append(contacts.pos[c], contacts.dist[c])
        # Weights, one in all, that miss the place by the least sum of distances along the axes.
        n = len(corners)
        cost = np.r_[np.zeros(n), np.ones(8)]
        weights, missed = np.vstack([points.T, np.ones((1, n))]), np.eye(5)[:, :4]
        result = linprog(
            cost, A_eq=np.hstack([weights, missed, -missed]), b_eq=np.append(here, 1.0)
        )
        assert result.status == 0
        assert result.fun < 5e-7
        normals = contacts.frame[corners, :3]
        np.testing.assert_allclose(normals, np.tile(contacts.frame[c, :3], (n, 1)), atol=1e-2)


def test_two_slabs_bear_on_few_contacts() -> None:
    found = patches_in(lying((0.0, 0.0, 30.0), 5e-5))
    assert np.count_nonzero(found.touching) > 100
    assert np.count_nonzero(found.kept) < 10


def test_a_brick_alone_takes_the_steps_of_mujoco() -> None:
    scene = MujocoEngine()
    brick = body(1, brick_layout(BrickShape(4, 2, 3), 7), at(0, 0, 0.02, (0.4, 0.2, 1)))
    scene.update([], [brick])
    touched = 0
    for _ in range(40):
        one, other = copy.copy(scene.data), copy.copy(scene.data)
        mujoco.mj_step(scene.model, one)
        found = step_on_corners(scene.model, other, scene._index.geoms)
        assert found is None
        for name in ("qpos", "qvel", "qacc_warmstart", "tree_asleep", "efc_force"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        touched += other.ncon > 0
        scene.step()
    assert touched > 10


def test_links_of_robots_keep_all_their_contacts() -> None:
    scene = lying((0.0, 0.0, 30.0), 5e-5)
    found = patches_in(scene, geoms=np.ones(scene.model.ngeom, dtype=np.int64))
    assert found.saved == 0
    np.testing.assert_array_equal(found.kept, found.touching)
    assert np.all(found.patch == ALONE)


points = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 6), st.floats(0.0, 1.0)),
    min_size=3,
    max_size=25,
    unique_by=lambda p: p[:2],
)


@given(
    points, st.floats(-0.1, 0.1), st.floats(-0.1, 0.1), st.lists(st.floats(-0.5, 0.5), min_size=50)
)
@settings(max_examples=60, deadline=None)
def test_pressure_is_the_least_one_that_bears_the_same(grid, tilt_x, tilt_y, rubbing) -> None:
    """Against a general solver of such programs (SciPy); force and moment stay."""
    place = np.array([[0.008 * x, 0.008 * y, 0.0] for x, y, _ in grid])
    gap = -1e-4 + 0.01 * (tilt_x * place[:, 0] + tilt_y * place[:, 1])
    pressing = np.array([max(p - 0.3, 0.0) for _, _, p in grid])
    count = len(grid)
    force = np.zeros((count, 3))
    force[:, 2] = pressing
    force[:, :2] = pressing[:, None] * np.array(rubbing[: 2 * count]).reshape(count, 2)
    frame = np.tile([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0], (count, 1))
    # Half-way between surfaces that are tilted against each other.
    place[:, 2] = 0.5 * gap
    before = force.copy()
    got, whole = pressing.copy(), force.copy()
    patch, none = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    spread(patch, none, frame, place, gap, np.tile(FIRM, (count, 1)), got, whole)
    total = pressing.sum()
    if total == 0.0:
        assert not got.any() and not whole.any()
        return
    assert got.min() >= 0.0
    np.testing.assert_allclose(whole[:, 2], got, atol=1e-12)
    np.testing.assert_allclose(whole.sum(axis=0), before.sum(axis=0), atol=1e-6 * total)
    np.testing.assert_allclose(
        np.cross(place, whole).sum(axis=0), np.cross(place, before).sum(axis=0), atol=1e-7 * total
    )
    depth = np.minimum(np.abs(gap) / FIRM[2], 1.0)
    rise = np.where(depth <= 0.5, 2.0 * depth**2, 1.0 - 2.0 * (1.0 - depth) ** 2)
    impedance = FIRM[0] + rise * (FIRM[1] - FIRM[0])
    firm = impedance / (1.0 - impedance)
    firm = firm / firm.max()
    sums = np.vstack([np.ones(count), place[:, 0] / 0.08, place[:, 1] / 0.08])
    wanted = sums @ (pressing / total)
    truth = minimize(
        lambda g: 0.5 * np.sum(g**2 / firm),
        pressing / total,
        jac=lambda g: g / firm,
        bounds=[(0.0, None)] * count,
        constraints={"type": "eq", "fun": lambda g: sums @ g - wanted, "jac": lambda g: sums},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    cost = 0.5 * np.sum((got / total) ** 2 / firm)
    assert np.abs(sums @ (got / total) - wanted).max() < 1e-6
    if truth.success:
        assert cost <= truth.fun * (1.0 + 1e-5) + 1e-9


def all_contacts(model: mujoco.MjModel, data: mujoco.MjData, geoms: GeomTable) -> None:
    """A step in which every point bears."""
    mujoco.mj_step(model, data)


def landed(euler: tuple[float, float, float]) -> tuple[dict[int, float], float, np.ndarray]:
    """A slab that falls by 5 cm: upward impulse on each brick from the ground up to rest [N s], the
    greatest of a step, and where it comes to lie."""
    simulator = Simulator()
    structure = slab()
    pose = standing(structure, rotation_from_degrees(*euler), 0.05)
    parts = simulator.spawn(structure, pose, fixed=()).values()
    borne, greatest, report = dict.fromkeys(parts, 0.0), 0.0, None
    for _ in range(80):
        report = simulator.engine.step()
        contacts = report.contacts
        greatest = max(greatest, float(contacts.normal_impulse.sum()))
        for part, impulse in zip(contacts.part_b.tolist(), contacts.impulse[:, 2], strict=True):
            borne[part] += float(impulse)
    assert report is not None
    return borne, greatest, report.world_T_component[-1]


@pytest.mark.parametrize("euler", [(0, 0, 0), (3, 0, 0), (0, 2, 0), (10, 15, 0), (180, 0, 0)])
def test_a_slab_lands_as_if_every_point_bore(euler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Motion, peak force, and what each brick gets of it; corners alone would put all on four."""
    few, few_peak, few_pose = landed(euler)
    monkeypatch.setattr(engine, "step_on_corners", all_contacts)
    every, peak, pose = landed(euler)
    total = sum(every.values())
    assert few_peak == pytest.approx(peak, rel=0.005)
    assert sum(few.values()) == pytest.approx(total, rel=1e-4)
    for part, impulse in every.items():
        assert abs(few[part] - impulse) < 0.06 * total
    np.testing.assert_allclose(few_pose, pose, rtol=0, atol=2e-3)


def resting(place: tuple[float, float], yaw: float) -> dict[int, float]:
    """What each brick of a slab bears of another one that has come to rest on it [N]."""
    simulator = Simulator()
    low = slab()
    below = set(simulator.spawn(low, standing(low, np.eye(3), 0.0), fixed=()).values())
    height = max(pose[2, 3] for pose in simulator.poses().values()) + BRICK_HEIGHT + STUD_HEIGHT
    pose = standing(low, rotation_from_degrees(0.0, 0.0, yaw), height)
    pose[:2, 3] += place
    simulator.spawn(low, pose, fixed=())
    for _ in range(120):
        simulator.step()
    report = simulator.engine.step()
    borne = dict.fromkeys(below, 0.0)
    contacts = report.contacts
    for part, other, impulse in zip(
        contacts.part_a.tolist(), contacts.part_b.tolist(), contacts.impulse[:, 2], strict=True
    ):
        if part in below and other not in below:
            borne[part] += float(impulse) / report.dt
    return borne


@pytest.mark.parametrize(("place", "yaw"), [((0.01, 0.01), 0.0), ((0.016, 0.008), 90.0)])
def test_a_slab_at_rest_presses_as_if_every_point_bore(place, yaw, monkeypatch) -> None:
    """By then it is tilted by a ten thousandth, and contacts have the normals of either's faces."""
    few = resting(place, yaw)
    monkeypatch.setattr(engine, "step_on_corners", all_contacts)
    every = resting(place, yaw)
    weight = sum(every.values())
    assert sum(few.values()) == pytest.approx(weight, rel=1e-4)
    for part, force in every.items():
        assert abs(few[part] - force) < 0.03 * weight
