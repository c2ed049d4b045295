# SPDX-License-Identifier: Apache-2.0
"""Separation of oriented boxes against a quadratic program, and against all pairs."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_core.topology.boxes import near_pairs, part_boxes


def random_structure(seed, count=2, spread=0.03):
    rng = np.random.default_rng(seed)
    graph, poses = BrickTopologyGraph(), {}
    for i in range(count):
        graph.add_part(BrickShape(*rng.integers(1, 5, size=3)))
        poses[i] = transform(rng.uniform(-spread, spread, 3), rng.normal(size=4))
    return Structure(graph, poses)


def distance(boxes, i, j):
    """Euclidean distance of two boxes: least squares over the points of both."""
    a = boxes.axes[i] * boxes.halves[i]
    b = boxes.axes[j] * boxes.halves[j]
    offset = boxes.centres[j] - boxes.centres[i]
    result = lsq_linear(1e3 * np.c_[a, -b], 1e3 * offset, bounds=(-1, 1), method="bvls")
    return 1e-3 * np.sqrt(2 * result.cost)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9))
def test_sign_and_bound_of_the_gap(seed):
    boxes = part_boxes(random_structure(seed))
    apart = distance(boxes, 0, 1)
    pairs = near_pairs(boxes, 1.0)
    (gap,) = pairs.gap
    if apart > 1e-6:
        assert 0.0 < gap <= apart + 1e-9
    else:
        assert gap <= 1e-6
        # Moving one box by the depth (and a bit) along some direction separates them.
        directions = np.concatenate([boxes.axes[0].T, boxes.axes[1].T])
        crossed = [np.cross(u, v) for u, v in itertools.product(directions[:3], directions[3:])]
        best = np.inf
        for d in (*directions, *crossed):
            if np.linalg.norm(d) < 1e-3:
                continue
            step = d / np.linalg.norm(d) * (-gap + 1e-4)
            for sign in (1, -1):
                moved = part_boxes(random_structure(seed))
                moved.centres[1] += sign * step
                best = min(best, -distance(moved, 0, 1))
        assert best < 0.0


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**9))
def test_sweep_finds_every_near_pair(seed):
    boxes = part_boxes(random_structure(seed, count=12, spread=0.08))
    pairs = near_pairs(boxes, 0.002)
    found = {
        tuple(sorted((int(i), int(j)))) for i, j in zip(pairs.first, pairs.second, strict=True)
    }
    for i, j in itertools.combinations(range(12), 2):
        apart = distance(boxes, i, j)
        if apart < 0.002 - 1e-6:
            assert (i, j) in found
        if (i, j) not in found:
            assert apart > 0.002 - 1e-6


def test_touching_faces_and_sides():
    """4x2 bricks: face to face above, side by side, and at a gap of one plate."""
    graph = BrickTopologyGraph()
    places = [(0, 0, 0), (0.004, 0.004, 0.0096), (0.032, 0, 0), (0, 0.016 + 0.0032, 0)]
    for _ in places:
        graph.add_part(BrickShape(4, 2))
    structure = Structure(graph, {i: transform(p) for i, p in enumerate(places)})
    pairs = near_pairs(part_boxes(structure), 0.004)
    gaps = {
        (int(min(i, j)), int(max(i, j))): (round(g, 9), round(s, 9))
        for i, j, g, s in zip(pairs.first, pairs.second, pairs.gap, pairs.side_gap, strict=True)
    }
    assert gaps[0, 1] == (0.0, -0.012)  # overlap of 12 mm along y below the touching faces
    assert gaps[0, 2] == (0.0, 0.0)
    assert gaps[0, 3] == (0.0032, 0.0032)


def test_parts_of_one_component_are_no_pair():
    graph = BrickTopologyGraph()
    for _ in range(2):
        graph.add_part(BrickShape(4, 2))
    graph.connect(0, 1, (0, 0), 0)
    assert len(near_pairs(part_boxes(Structure(graph, {0: np.eye(4)})), 1.0).gap) == 0
