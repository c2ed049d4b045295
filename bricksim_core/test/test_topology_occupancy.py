# SPDX-License-Identifier: Apache-2.0
"""Boxes, hashed and in a list, against sets of cells."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.parts import BrickShape
from bricksim_core.topology.grid import GridPose
from bricksim_core.topology.occupancy import BoxList, Occupancy, _box

# Around multiples of 16, where the hash's blocks meet.
positions = st.integers(-20, 20)
grids = st.builds(GridPose, positions, positions, st.integers(-3, 3), st.integers(0, 3))
shapes = st.builds(BrickShape, st.integers(1, 20), st.integers(1, 4), st.integers(1, 4))


def cells(grid, shape):
    x0, y0, x1, y1 = grid.footprint(shape)
    return set(
        itertools.product(range(x0, x1), range(y0, y1), range(grid.z, grid.z + shape.height))
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(grids, shapes), max_size=8), grids, shapes, st.data())
def test_against_sets_of_cells(entries, grid, shape, data):
    occupancy = Occupancy()
    for part_id, entry in enumerate(entries):
        occupancy.add(part_id, *entry)
    removed = data.draw(st.sets(st.sampled_from(range(len(entries))))) if entries else set()
    for part_id in removed:
        occupancy.remove(part_id, *entries[part_id])
    kept = {i: e for i, e in enumerate(entries) if i not in removed}

    wanted = cells(grid, shape)
    overlapping = [i for i, e in kept.items() if cells(*e) & wanted]
    boxes = np.array([_box(*entry) for entry in kept.values()], dtype=np.int64).reshape(-1, 2, 3)
    listed = BoxList(np.array(list(kept), dtype=np.int64), boxes)
    top = {(x, y) for x, y, z in wanted if z == grid.z}
    above = [
        i for i, (g, s) in kept.items()
        if g.z == grid.z + shape.height and top & {(x, y) for x, y, _ in cells(g, s)}
    ]  # fmt: skip
    below = [
        i for i, (g, s) in kept.items()
        if g.z + s.height == grid.z and top & {(x, y) for x, y, _ in cells(g, s)}
    ]  # fmt: skip
    for occupied in (occupancy, listed):
        assert occupied.collision(grid, shape) == min(overlapping, default=None)
        assert occupied.touching(grid, shape, above=True) == above
        assert occupied.touching(grid, shape, above=False) == below


def test_removing_leaves_nothing_behind():
    occupancy = Occupancy()
    entry = (GridPose(-17, 3, 0, 1), BrickShape(32, 32, 1))
    occupancy.add(7, *entry)
    occupancy.remove(7, *entry)
    assert occupancy.collision(*entry) is None
    occupancy.add(7, *entry)
    assert occupancy.collision(*entry) == 7
