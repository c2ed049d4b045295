# SPDX-License-Identifier: Apache-2.0
"""Where things stand on the table: the base plate and, around it, the loose bricks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bricksim_core.parts import STUD_PITCH, BrickShape
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.errors import TaskError
from bricksim_ros.yaml_files import read_yaml


@dataclass(frozen=True)
class Region:
    """A rectangle of the table [m], world axes."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class TableLayout:
    """Where the structure is built and where bricks may lie.

    Attributes:
        seat: x, y of the middle of the structure's base [m].
        regions: Where bricks are laid out.
        gap: Least distance of bricks [m]: fingers must fit between them.
        spread: How far bricks may be off their packed place, at random [m].
        places: Bricks by part id that lie at x, y [m] with a yaw [rad]; the others are packed.
    """

    seat: tuple[float, float] = (0.5, 0.0)
    regions: tuple[Region, ...] = (
        Region(0.30, 0.13, 0.66, 0.42),
        Region(0.30, -0.42, 0.66, -0.13),
    )
    gap: float = 0.042
    spread: float = 0.004
    places: Mapping[int, tuple[float, float, float]] = field(default_factory=dict)


_ROOM_BESIDE = 0.05
"""What a sub-assembly needs on either side [m]: fingers, and tolerance of its place."""


def packing(arms: int = 1, structure: Structure | None = None) -> TableLayout:
    """Where things stand for one arm, or for two that face each other across the structure.

    Two arms join what hangs in a structure on the table: between both of them, beside the
    structure, there is room for that.

    Args:
        arms: How many arms there are.
        structure: What is to be built; None: nothing is joined on the table.
    """
    if arms == 1:
        return TableLayout()
    low, high, aside = 0.13, 0.42, -0.42
    depth = 0.0 if structure is None else _joining_depth(structure)
    near = Region(0.30, low + depth, 0.80, high)
    far = Region(0.30, aside, 0.80, -low)
    return TableLayout(seat=(0.55, 0.0), regions=(near, far) if near.y0 < near.y1 else (far,))


def _joining_depth(structure: Structure) -> float:
    """How much of the table [m] along y sub-assemblies need: nothing where each part stands on
    others, else what the whole structure would take."""
    graph, poses = structure.graph, structure.part_poses()
    lowest = min(float(pose[2, 3]) for pose in poses.values())
    standing = {p for p in graph.part_ids if poses[p][2, 3] < lowest + 1e-6}
    waiting = list(standing)
    while waiting:
        for joint in graph.connections_of(waiting.pop()):
            if joint.stud_part in standing and joint.hole_part not in standing:
                standing.add(joint.hole_part)
                waiting.append(joint.hole_part)
    if standing.issuperset(graph.part_ids):
        return 0.0
    edges = []
    for part in (p for p in graph.part_ids if poses[p][2, 3] > lowest + 1e-6):
        length, width, _ = graph.part(part).shape.size
        half = 0.5 * (abs(poses[part][1, 0]) * length + abs(poses[part][1, 1]) * width)
        edges += [poses[part][1, 3] - half, poses[part][1, 3] + half]
    return float(max(edges) - min(edges)) + 2.0 * _ROOM_BESIDE


_SHRINK = 0.8
"""Share of the bricks that is tried next where a portion does not fit on the table."""


def arrange_some(
    shapes: Mapping[int, BrickShape],
    layout: TableLayout,
    generator: np.random.Generator,
    obstacles: Sequence[tuple[float, float, float]] = (),
) -> dict[int, Array]:
    """Lays out as many bricks as fit, the first ones first, and those whose place is given.

    Args:
        shapes: Shapes by part id, in the order in which they are needed.
        layout: As the others, see `arrange`.
        generator: Source of its random numbers.
        obstacles: What lies there.

    Raises:
        TaskError: Not even one fits.
    """
    order = sorted(shapes, key=lambda part_id: part_id not in layout.places)
    count, least = len(order), max(1, sum(part_id in shapes for part_id in layout.places))
    while True:
        try:
            chosen = {part_id: shapes[part_id] for part_id in order[:count]}
            return arrange(chosen, layout, generator, obstacles)
        except TaskError:
            if count <= least:
                raise
            count = max(least, int(_SHRINK * count))


def arrange(
    shapes: Mapping[int, BrickShape],
    layout: TableLayout,
    generator: np.random.Generator,
    obstacles: Sequence[tuple[float, float, float]] = (),
) -> dict[int, Array]:
    """Lays bricks out on the table in rows, in random order, turned and shifted at random.

    Args:
        shapes: Shapes by part id.
        layout: The regions.
        generator: Source of all randomness.
        obstacles: x, y and radius [m] of what lies there already.

    Returns:
        (4, 4) world_T_part [m] by part id.

    Raises:
        TaskError: They do not fit.
    """
    unknown = sorted(set(layout.places) - set(shapes))
    if unknown:
        raise TaskError(f"layout names bricks {unknown}, expected some of {sorted(shapes)}")
    places: dict[int, Array] = {
        part_id: flat(x, y, yaw) for part_id, (x, y, yaw) in sorted(layout.places.items())
    }
    order = generator.permutation(sorted(set(shapes) - set(places))).tolist()
    taken = [*obstacles, *(circle(shapes[i], pose) for i, pose in places.items())]
    free = [_Shelf(region, layout.gap, taken) for region in layout.regions]
    for part_id in order:
        shape = shapes[part_id]
        turned = bool(generator.integers(2))
        sides = (shape.length * STUD_PITCH, shape.width * STUD_PITCH)
        size = sides[::-1] if turned else sides
        shelves = [free[i] for i in generator.permutation(len(free))]
        place = next((p for p in (shelf.place(size) for shelf in shelves) if p is not None), None)
        if place is None:
            raise TaskError(
                f"brick {part_id} ({shape}) does not fit on the table after {len(places)} others"
            )
        shift = generator.uniform(-1.0, 1.0, 2) * layout.spread
        wobble = generator.uniform(-0.1, 0.1)
        yaw = 0.5 * np.pi * turned + np.pi * generator.integers(2) + wobble
        places[part_id] = flat(place[0] + shift[0], place[1] + shift[1], yaw)
    return places


def circle(shape: BrickShape, world_T_part: Array) -> tuple[float, float, float]:
    """x, y and radius [m] of the circle about a brick, seen from above."""
    x, y = world_T_part[:2, 3].tolist()
    return x, y, 0.5 * math.hypot(*shape.size[:2])


def flat(x: float, y: float, yaw: float) -> Array:
    """(4, 4) pose [m] on the table, turned about z [rad]."""
    return transform([x, y, 0.0], [0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)])


def read_layout(path: Path, default: TableLayout | None = None) -> TableLayout:
    """Reads a layout from YAML.

        seat: [0.5, 0.0]                        # x, y of the middle of the structure's base [m]
        regions: [[0.30, 0.13, 0.66, 0.42]]     # x0, y0, x1, y1 where bricks are packed [m]
        gap: 0.042                              # least distance of packed bricks [m]
        spread: 0.004                           # random shift of packed bricks [m]
        bricks: {3: [0.4, 0.2, 90]}             # part id: x, y [m], yaw [deg]; others are packed

    Every entry may be left out.

    Args:
        path: The file.
        default: What holds for entries that are left out; None: the layout for one arm.

    Raises:
        TaskError: The file cannot be read or an entry is not acceptable.
    """
    data = read_yaml(path, TaskError) or {}
    known = {"seat", "regions", "gap", "spread", "bricks"}
    if not isinstance(data, dict) or not set(data) <= known:
        raise TaskError(f"{path}: layout is {data!r}, expected keys {', '.join(sorted(known))}")
    default = default or TableLayout()
    regions, bricks = data.get("regions"), data.get("bricks") or {}
    if not isinstance(bricks, dict) or not all(isinstance(k, int) for k in bricks):
        raise TaskError(f"{path}: bricks is {bricks!r}, expected a mapping of part ids")
    if regions is not None and not isinstance(regions, list):
        raise TaskError(f"{path}: regions is {regions!r}, expected a list")
    places = {}
    for part_id, place in bricks.items():
        x, y, degrees = _numbers(path, f"bricks.{part_id}", place, 3)
        places[part_id] = (x, y, float(np.radians(degrees)))
    seat = _numbers(path, "seat", data.get("seat", list(default.seat)), 2)
    return TableLayout(
        seat=(seat[0], seat[1]),
        regions=default.regions
        if regions is None
        else tuple(_region(path, f"regions[{i}]", region) for i, region in enumerate(regions)),
        gap=_length(path, "gap", data.get("gap", default.gap)),
        spread=_length(path, "spread", data.get("spread", default.spread)),
        places=places,
    )


def _numbers(path: Path, where: str, value: Any, count: int) -> list[float]:
    good = isinstance(value, list) and len(value) == count
    if not good or not all(isinstance(v, int | float) and np.isfinite(v) for v in value):
        raise TaskError(f"{path}: {where} is {value!r}, expected {count} finite numbers")
    return [float(v) for v in value]


def _length(path: Path, where: str, value: Any) -> float:
    length = _numbers(path, where, [value], 1)[0]
    if length < 0.0:
        raise TaskError(f"{path}: {where} is {value!r}, expected 0 or more")
    return length


def _region(path: Path, where: str, value: Any) -> Region:
    region = Region(*_numbers(path, where, value, 4))
    if not (region.x0 < region.x1 and region.y0 < region.y1):
        raise TaskError(f"{path}: {where} is {value!r}, expected x0 < x1 and y0 < y1")
    return region


class _Shelf:
    """Fills a region row by row."""

    def __init__(
        self, region: Region, gap: float, obstacles: Sequence[tuple[float, float, float]]
    ) -> None:
        self._region = region
        self._obstacles = obstacles
        self._gap = gap
        self._x = region.x0
        self._y = region.y0
        self._row = 0.0

    def place(self, size: Sequence[float]) -> tuple[float, float] | None:
        """Centre of the next free place, None if the region is full."""
        region = self._region
        while True:
            if self._x + size[0] > region.x1:
                self._x = region.x0
                self._y += (self._row or size[1]) + self._gap
                self._row = 0.0
            if self._x + size[0] > region.x1 or self._y + size[1] > region.y1:
                return None
            centre = (self._x + 0.5 * size[0], self._y + 0.5 * size[1])
            if self._is_clear(centre, 0.5 * math.hypot(*size)):
                break
            self._x += STUD_PITCH
        self._x += size[0] + self._gap
        self._row = max(self._row, size[1])
        return centre

    def _is_clear(self, centre: tuple[float, float], radius: float) -> bool:
        return all(
            math.hypot(centre[0] - x, centre[1] - y) > radius + other + self._gap
            for x, y, other in self._obstacles
        )
