# SPDX-License-Identifier: Apache-2.0
"""Colliders that an engine may leave out are enclosed cell by cell, and no others are left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bricksim_core.engines.exposure import exposed_boxes
from bricksim_core.formats import parse_structure


def cells(layout):
    """Occupied cells of each part, one by one."""
    return [
        set(itertools.product(*(range(a, b) for a, b in zip(low, high, strict=True))))
        for low, high in layout.boxes.tolist()
    ]


def only_layout(text):
    graph = parse_structure(text, baseplate=None).graph
    (component,) = graph.component_ids
    return graph.layout(component)


def block(holes=(), layers=5):
    lines = [
        f"4x2 ({4 * i + 2 * (z % 2)},{2 * j + z // 2 % 2},{z})"
        for z in range(layers)
        for i in range(4)
        for j in range(4)
        if (i, j, z) not in holes
    ]
    return only_layout("\n".join(lines))


def expected(layout):
    own = cells(layout)
    taken = set().union(*own)
    bodies, studs = [], []
    for mine, ((_, _, _), (_, _, top)) in zip(own, layout.boxes.tolist(), strict=True):
        around = {
            tuple(np.add(cell, step).tolist())
            for cell in mine
            for step in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
        }
        above = {(x, y, top) for x, y, z in mine if z == top - 1}
        bodies.append(not around <= taken)
        studs.append(not above <= taken)
    return bodies, studs


@pytest.mark.parametrize(
    "holes", [(), {(1, 1, 2)}, {(2, 1, 3), (1, 2, 2)}, {(i, 1, 2) for i in range(4)}]
)
def test_what_is_enclosed_is_what_neighbours_cover(holes):
    layout = block(holes)
    bodies, studs = exposed_boxes(layout.boxes)
    assert (bodies.tolist(), studs.tolist()) == expected(layout)
    assert 0 < np.count_nonzero(~bodies) < np.count_nonzero(~studs) < len(studs)


def test_a_removed_neighbour_exposes():
    layout = block()
    whole = dict(
        zip(layout.part_ids.tolist(), zip(*exposed_boxes(layout.boxes), strict=True), strict=True)
    )
    hidden = [p for p, (body, studs) in whole.items() if not body and not studs]
    above = [
        int(layout.part_ids[h])
        for s, h in zip(layout.stud_index, layout.hole_index, strict=True)
        if layout.part_ids[s] == hidden[0]
    ]
    kept = layout.kept(np.setdiff1d(layout.part_ids, above[:1]), ())
    bodies, studs = exposed_boxes(kept.boxes)
    row = int(np.searchsorted(kept.part_ids, hidden[0]))
    assert bodies[row] and studs[row]


def test_sparse_and_small_components_are_exposed():
    tower = only_layout("\n".join(f"2x2 (0,0,{z})" for z in range(5)))
    assert all(np.all(rows) for rows in exposed_boxes(tower.boxes))
