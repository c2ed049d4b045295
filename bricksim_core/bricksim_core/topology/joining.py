# SPDX-License-Identifier: Apache-2.0
"""Many connections at once: where they put the parts, and whether they agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bricksim_core.parts import HOLE_INTERFACE, STUD_INTERFACE, BrickShape
from bricksim_core.topology.grid import GridPose, IntArray, compose, grid_boxes
from bricksim_core.topology.neighbours import overlapping_pairs

if TYPE_CHECKING:
    from bricksim_core.topology.graph import Connection


class Merged(NamedTuple):
    """A component after the connections.

    Attributes:
        absorbed: Ids of the components that ended in it.
        parts: Grid poses of all its parts in its frame, by part id.
    """

    absorbed: list[int]
    parts: dict[int, GridPose]


def merged_components(
    components: Mapping[int, Mapping[int, GridPose]],
    shapes: Mapping[int, BrickShape],
    connections: Sequence[Connection],
) -> dict[int, Merged] | None:
    """Where new connections put the parts of the components that they touch.

    Of two components that a connection joins, the one with more parts stays with its id and frame,
    the lower one of two equals; connections count in their order.

    Args:
        components: Grid poses by part id of each component that is touched, by component id.
        shapes: Shapes of the parts, by part id.
        connections: New connections between parts that had none.

    Returns:
        Each component that is left, by its id; None if something speaks against a connection: no
        studs, no overlap, twice the same parts, contradictory poses, or two parts in one place.
    """
    names = list(components)
    ids = [part_id for parts in components.values() for part_id in parts]
    sizes = [len(parts) for parts in components.values()]
    component = np.arange(len(names)).repeat(sizes)
    index = {part_id: i for i, part_id in enumerate(ids)}
    own = [grid for parts in components.values() for grid in parts.values()]
    poses = np.array(own, dtype=np.int64).reshape(-1, 4)
    outer = [(s.length, s.width, s.height) for s in map(shapes.__getitem__, ids)]
    dimensions = np.array(outer, dtype=np.int64).reshape(-1, 3)
    stud = np.array([index[c.stud_part] for c in connections], dtype=np.int64)
    hole = np.array([index[c.hole_part] for c in connections], dtype=np.int64)
    entries = [(*c.offset, 0, c.yaw) for c in connections]
    stud_T_hole = np.array(entries, dtype=np.int64).reshape(-1, 4)
    stud_T_hole[:, 2] = dimensions[stud, 2]
    if not _each_is_possible(connections, shapes, stud_T_hole, dimensions[stud], dimensions[hole]):
        return None

    kept = ends_in(sizes, component[stud].tolist(), component[hole].tolist())
    if not np.array_equal(compose(poses[stud], stud_T_hole), poses[hole]):
        frames = _frames(kept, component, own, stud, hole, stud_T_hole)
        poses = compose(frames[component], poses)
        if not np.array_equal(compose(poses[stud], stud_T_hole), poses[hole]):
            return None
        own = [GridPose(*pose) for pose in poses.tolist()]
    boxes = grid_boxes(poses, dimensions)
    # Parts of different components are in nobody's way: each gets a storey of its own.
    height = boxes[:, :, 2].max(initial=0) - boxes[:, :, 2].min(initial=0) + 1
    boxes[:, :, 2] += height * np.array(kept, dtype=np.int64)[component][:, None]
    if len(overlapping_pairs(boxes)[0]):
        return None

    # The parts of the component that stays come first, as if the others had been added to it.
    merged = {names[k]: Merged([], {}) for k in kept}
    place = dict.fromkeys(kept)
    first = np.cumsum([0, *sizes]).tolist()
    for k in [*place, *(k for k, root in enumerate(kept) if k != root)]:
        target = merged[names[kept[k]]]
        if kept[k] != k:
            target.absorbed.append(names[k])
        rows = range(first[k], first[k + 1])
        target.parts.update((ids[i], own[i]) for i in rows)
    return merged


def _each_is_possible(
    connections: Sequence[Connection],
    shapes: Mapping[int, BrickShape],
    stud_T_hole: IntArray,
    lower: IntArray,
    upper: IntArray,
) -> bool:
    """True if every connection alone joins two parts by studs in holes."""
    for c in connections:
        plain = c.stud_interface == STUD_INTERFACE and c.hole_interface == HOLE_INTERFACE
        if not plain or c.stud_part == c.hole_part or not shapes[c.stud_part].has_studs:
            return False
    pairs = {(c.stud_part, c.hole_part) for c in connections}
    over = grid_boxes(stud_T_hole, upper)[:, :, :2]
    overlap = np.minimum(over[:, 1], lower[:, :2]) > np.maximum(over[:, 0], 0)
    yaws = stud_T_hole[:, 3]
    possible = overlap.all() and yaws.min(initial=0) >= 0 and yaws.max(initial=0) < 4
    return len(pairs) == len(connections) and bool(possible)


def ends_in(sizes: list[int], lower: list[int], upper: list[int]) -> list[int]:
    """Which component each one ends in, if connections join them one after the other.

    Args:
        sizes: Parts of each component.
        lower: For each connection the component of its lower part.
        upper: And that of its upper part.
    """
    parent, total = list(range(len(sizes))), list(sizes)

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = k = parent[parent[k]]
        return k

    for a, b in zip(lower, upper, strict=True):
        a, b = root(a), root(b)
        if a != b:
            if total[b] > total[a]:
                a, b = b, a
            parent[b] = a
            total[a] += total[b]
    return [root(k) for k in range(len(sizes))]


def _frames(
    kept: list[int],
    component: IntArray,
    own: Sequence[GridPose],
    stud: IntArray,
    hole: IntArray,
    stud_T_hole: IntArray,
) -> IntArray:
    """(K, 4) poses of the components in the frames of those that they end in."""
    links: dict[int, list[tuple[int, int, int, GridPose]]] = {}
    for i, j, entry in zip(stud.tolist(), hole.tolist(), stud_T_hole.tolist(), strict=True):
        a, b = int(component[i]), int(component[j])
        links.setdefault(a, []).append((i, j, b, GridPose(*entry)))
        links.setdefault(b, []).append((j, i, a, GridPose(*entry).inverse()))
    frames = {k: GridPose() for k, root in enumerate(kept) if k == root}
    queue = deque(frames)
    while queue:
        a = queue.popleft()
        for i, j, b, step in links.get(a, ()):
            if b not in frames:
                frames[b] = frames[a] @ own[i] @ step @ own[j].inverse()
                queue.append(b)
    return np.array([frames[k] for k in range(len(kept))], dtype=np.int64).reshape(-1, 4)
