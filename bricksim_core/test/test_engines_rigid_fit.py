# SPDX-License-Identifier: Apache-2.0
"""The rigid fit: exact on rigid motion, momentum kept on any motion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bricksim_core.engines.rigid_fit import RigidGroups
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import rotation_angle, transform, transform_points
from bricksim_core.topology import BrickTopologyGraph


def _layouts():
    graph = BrickTopologyGraph()
    tower = [graph.add_part(BrickShape(4, 2)) for _ in range(5)]
    for i, (low, high) in enumerate(itertools.pairwise(tower)):
        graph.connect(low, high, (1 + (i % 2), 1), i)
    single = graph.add_part(BrickShape(1, 1, 1))
    plate = graph.add_part(BrickShape(8, 8, 1))
    graph.connect(plate, graph.add_part(BrickShape(2, 2, mass=0.2)), (3, 3), 1)
    assert graph.component_of(single) != graph.component_of(plate)
    return [graph.layout(c) for c in graph.component_ids]


def _random_motion(rng, k):
    poses = transform(rng.normal(size=(k, 3)), rng.normal(size=(k, 4)))
    return poses, rng.normal(size=(k, 6))


def _momentum(groups, poses, twists):
    coms = transform_points(poses, groups.local_coms)
    linear = groups.masses[:, None] * twists[:, :3]
    inertia = poses[:, :3, :3] @ groups.local_inertias @ np.swapaxes(poses[:, :3, :3], 1, 2)
    angular = np.cross(coms, linear) + np.einsum("nij,nj->ni", inertia, twists[:, 3:])
    sums = [
        np.concatenate([linear, angular], axis=1)[groups.group == k].sum(axis=0)
        for k in range(len(groups))
    ]
    return np.array(sums)


@pytest.mark.parametrize("seed", range(5))
def test_a_rigid_motion_is_found_exactly(seed):
    groups = RigidGroups.of(_layouts())
    poses, twists = _random_motion(np.random.default_rng(seed), len(groups))
    found_poses, found_twists = groups.fit(*groups.part_motion(poses, twists))
    np.testing.assert_allclose(found_poses, poses, atol=1e-12)
    np.testing.assert_allclose(found_twists, twists, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_momentum_of_deformed_components_is_kept(seed):
    rng = np.random.default_rng(seed)
    groups = RigidGroups.of(_layouts())
    poses, twists = _random_motion(rng, len(groups))
    parts, part_twists = groups.part_motion(poses, twists)
    parts = parts @ transform(
        1e-5 * rng.normal(size=(len(parts), 3)),
        Rotation.from_rotvec(1e-4 * rng.normal(size=(len(parts), 3))).as_quat(),
    )
    part_twists = part_twists + 0.05 * rng.normal(size=part_twists.shape)
    fitted = groups.part_motion(*groups.fit(parts, part_twists))
    before, after = _momentum(groups, parts, part_twists), _momentum(groups, *fitted)
    np.testing.assert_allclose(after[:, :3], before[:, :3], rtol=1e-9, atol=1e-15)
    # The arms of the fit are the exact ones: the difference is of the order of the deformation.
    assert np.abs(after - before)[:, 3:].max() < 1e-4 * np.abs(before[:, :3]).max()


def test_the_pose_fit_is_the_least_squares_one():
    rng = np.random.default_rng(3)
    layout = _layouts()[0]
    groups = RigidGroups.of([layout])
    parts, twists = groups.part_motion(*_random_motion(rng, 1))
    parts = parts @ transform(1e-3 * rng.normal(size=(len(parts), 3)))
    best, _ = groups.fit(parts, twists)

    def cost(pose):
        rigid = pose @ layout.component_T_parts
        gaps = transform_points(rigid, groups.local_coms) - transform_points(
            parts, groups.local_coms
        )
        turned = np.swapaxes(rigid[:, :3, :3], 1, 2) @ parts[:, :3, :3]
        # |R - R'|^2 = 2 tr(1 - R^T R')
        angle = 2.0 * (3.0 - np.trace(turned, axis1=1, axis2=2))
        return np.sum(groups.masses * (np.square(gaps).sum(axis=1) + groups.spread * angle))

    for _ in range(50):
        # About the centre of mass, where translation and rotation do not mix.
        centre = transform(transform_points(best[0], groups.com[0]))
        turn = Rotation.from_rotvec(1e-3 * rng.normal(size=3)).as_quat()
        nudge = transform(1e-5 * rng.normal(size=3), turn)
        assert cost(best[0]) < cost(centre @ nudge @ np.linalg.inv(centre) @ best[0])


def test_no_reflections():
    groups = RigidGroups.of(_layouts()[:1])
    poses = np.tile(np.diag([1.0, 1.0, -1.0, 1.0]), (len(groups.part_ids), 1, 1))
    found, _ = groups.fit(poses, np.zeros((len(groups.part_ids), 6)))
    assert np.linalg.det(found[0, :3, :3]) == pytest.approx(1.0)
    assert rotation_angle(found[:, :3, :3]).shape == (1,)


def test_nothing():
    groups = RigidGroups.of([])
    poses, twists = groups.fit(np.zeros((0, 4, 4)), np.zeros((0, 6)))
    assert poses.shape == (0, 4, 4)
    assert twists.shape == (0, 6)
