# SPDX-License-Identifier: Apache-2.0
"""Components that lie on others without being connected to them, and what they pass on.

Static analysis takes components one by one. Where one lies on another the push between them is part
of the loads of both. It is known without knowing how either of them bends where one rigid part lies
on another: its resultant balances all other loads of what lies there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH
from bricksim_core.spatial import Array, joined
from bricksim_core.topology.boxes import PartBoxes, near_pairs, part_boxes
from bricksim_core.topology.structure import Structure

TOUCHING = 0.1 * PLATE_HEIGHT
"""Gap that counts as touching, and overlap that counts as none [m]."""
_TILT = 0.005
"""Greatest slope of faces that lie on each other [rad]; in a simulator's soft contacts they lean by
up to 0.001."""
_SIDEWAYS = 1e-6
"""Share of a load that may act sideways in one that is passed on without friction."""
EDGE = 1e-4
"""Distance of a load from the edge of what bears it [m] below which it is open whether it tips."""


@dataclass(frozen=True, eq=False)
class Touch:
    """A part that lies on a part of another component.

    Attributes:
        upper: Component that lies on top.
        lower: Component that bears it.
        upper_part: Its part.
        lower_part: The bearing part.
        corners: (K, 2) the polygon in which their faces meet, x and y in the world [m]; empty where
            it is no face that lies on a face but an edge that leans on something, or studs' tops.
        bottom: Height of the upper part's lower face [m].
    """

    upper: int
    lower: int
    upper_part: int
    lower_part: int
    corners: Array
    bottom: float


def touches(structure: Structure) -> list[Touch]:
    """Where components lie on others. Sides that touch upright sides are left out: they bear none
    of what stands by itself."""
    if len(structure.graph.component_ids) < 2:
        return []
    boxes = part_boxes(structure)
    pairs = near_pairs(boxes, STUD_HEIGHT + TOUCHING)
    level = boxes.axes[:, 2, 2] > 1.0 - 0.5 * _TILT**2
    found = []
    for i, j, gap in zip(
        pairs.first.tolist(), pairs.second.tolist(), pairs.gap.tolist(), strict=True
    ):
        high, low = (i, j) if boxes.centres[i, 2] > boxes.centres[j, 2] else (j, i)
        if gap > TOUCHING and not structure.graph.part(int(boxes.part_ids[low])).shape.has_studs:
            continue
        corners = np.zeros((0, 2))
        if level[i] and level[j]:
            if not len(_common(_outline(boxes, high, TOUCHING), _outline(boxes, low, TOUCHING))):
                continue
            if abs(gap) <= TOUCHING:
                corners = _common(_outline(boxes, high), _outline(boxes, low))
        found.append(
            Touch(
                upper=int(boxes.components[high]),
                lower=int(boxes.components[low]),
                upper_part=int(boxes.part_ids[high]),
                lower_part=int(boxes.part_ids[low]),
                corners=corners,
                bottom=float(boxes.centres[high, 2] - boxes.halves[high, 2]),
            )
        )
    return found


def top_down(components: Iterable[int], found: Sequence[Touch]) -> list[tuple[int, ...]]:
    """All components, each before those that bear it; together those that bear each other."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(components)
    graph.add_edges_from((t.upper, t.lower) for t in found)
    condensed = nx.condensation(graph)
    return [
        tuple(sorted(condensed.nodes[node]["members"])) for node in nx.topological_sort(condensed)
    ]


def footing(places: Sequence[Touch], load: Array) -> float:
    """How far inside of what bears it a load acts [m]; negative: it tips; NaN: not known.

    Args:
        places: Where what carries the load lies on others.
        load: (6,) force [N] and torque about the world's origin [N m], world axes.
    """
    from scipy.spatial import ConvexHull

    force, torque = load[:3], load[3:]
    size = float(np.linalg.norm(force))
    sideways = max(float(np.hypot(*force[:2])), abs(float(torque[2])) / STUD_PITCH)
    if sideways > _SIDEWAYS * size or not all(len(place.corners) for place in places):
        return np.nan
    if force[2] >= 0.0:  # nothing there pulls
        return -np.inf if load.any() else np.inf
    hull = ConvexHull(joined([place.corners for place in places], (2,)))
    at = np.array([-torque[1], torque[0]]) / force[2]
    return -float(np.max(hull.equations @ [*at, 1.0]))


def area(corners: Array) -> float:
    """Area of a convex polygon ((K, 2), counter-clockwise) [m^2]."""
    x, y = corners.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _outline(boxes: PartBoxes, index: int, less: float = 0.0) -> Array:
    """(4, 2) corners of a level box seen from above, counter-clockwise [m]."""
    signs = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
    half = boxes.halves[index, :2] - 0.5 * less
    return boxes.centres[index, :2] + signs * half @ boxes.axes[index, :2, :2].T


def _common(polygon: Array, clip: Array) -> Array:
    """(K, 2) what two convex polygons (counter-clockwise) have in common; empty if nothing."""
    for start, end in zip(clip, np.roll(clip, -1, axis=0), strict=True):
        edge = end - start
        side = edge[0] * (polygon[:, 1] - start[1]) - edge[1] * (polygon[:, 0] - start[0])
        kept = []
        for k in range(len(polygon)):
            a, b = side[k - 1], side[k]
            if a * b < 0.0:
                kept.append(polygon[k - 1] + a / (a - b) * (polygon[k] - polygon[k - 1]))
            if b >= 0.0:
                kept.append(polygon[k])
        polygon = np.array(kept).reshape(-1, 2)
    return polygon if len(polygon) > 2 else np.zeros((0, 2))
