# SPDX-License-Identifier: Apache-2.0
"""The planning scene: a snapshot of the robots and of everything they must not touch.

A scene is made anew from the simulator for every request: no plan starts from a stale state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bricksim_core.parts import STUD_HEIGHT, BrickShape
from bricksim_core.spatial import Array, inverse, transform

TABLE = "table"
"""Name of the table top in every scene."""

_TABLE_THICKNESS = 0.1


@dataclass(frozen=True, eq=False)
class Box:
    """A box.

    Attributes:
        size: Extents [m].
        pose: (4, 4) pose of its centre [m]: in the world, or in the tool frame when attached.
    """

    size: tuple[float, float, float]
    pose: Array

    def larger(self, margin: float) -> Box:
        """The same box, larger by a margin [m] on every side."""
        length, width, height = self.size
        return replace(
            self, size=(length + 2.0 * margin, width + 2.0 * margin, height + 2.0 * margin)
        )


def brick_name(part_id: int) -> str:
    """Name of a brick as a collision object."""
    return f"brick_{part_id}"


def brick_box(shape: BrickShape, parent_T_part: Array) -> Box:
    """The box of a brick with its studs."""
    length, width, height = shape.size
    if shape.has_studs:
        height += STUD_HEIGHT
    return Box((length, width, height), parent_T_part @ transform([0.0, 0.0, 0.5 * height]))


def table_box(height: float = -0.001, extent: float = 3.0) -> Box:
    """The table top: a slab whose upper face is at ``height`` [m], a little below the true one so
    that what lies on the table does not count as a collision."""
    centre = transform([0.0, 0.0, height - 0.5 * _TABLE_THICKNESS])
    return Box((extent, extent, _TABLE_THICKNESS), centre)


@dataclass(frozen=True, eq=False)
class PlanningScene:
    """What a planner is told.

    Attributes:
        positions: Position of every joint of every arm by name [rad, m].
        objects: Boxes in the world by name.
        attached: For each arm's name, the boxes that its tool carries, poses in the tool frame.
            The hand may touch them.
        allowed: Pairs of names (objects or links) that may touch.
    """

    positions: Mapping[str, float]
    objects: Mapping[str, Box] = field(default_factory=dict)
    attached: Mapping[str, Mapping[str, Box]] = field(default_factory=dict)
    allowed: frozenset[tuple[str, str]] = frozenset()

    def allowing(self, pairs: Iterable[tuple[str, str]]) -> PlanningScene:
        """The same scene with more pairs allowed to touch."""
        ordered = {(min(pair), max(pair)) for pair in pairs}
        return replace(self, allowed=self.allowed | ordered)

    def with_positions(self, positions: Mapping[str, float]) -> PlanningScene:
        """The same scene with some joints elsewhere."""
        return replace(self, positions={**self.positions, **positions})

    def attaching(self, arm: str, names: Iterable[str], world_T_tool: Array) -> PlanningScene:
        """The same scene with objects of the world carried by an arm's tool."""
        names = list(names)
        tool_T_world = inverse(world_T_tool)
        carried = {
            name: Box(self.objects[name].size, tool_T_world @ self.objects[name].pose)
            for name in names
        }
        objects = {name: box for name, box in self.objects.items() if name not in carried}
        attached = {**self.attached, arm: {**self.attached.get(arm, {}), **carried}}
        return replace(self, objects=objects, attached=attached)

    def without(self, names: Iterable[str]) -> PlanningScene:
        """The same scene without some objects of the world."""
        gone = set(names)
        return replace(self, objects={n: b for n, b in self.objects.items() if n not in gone})

    def padded(self, names: Iterable[str], margin: float) -> PlanningScene:
        """The same scene with some boxes, of the world or carried, larger by a margin [m] on every
        side."""
        wanted = set(names)

        def larger(boxes: Mapping[str, Box]) -> dict[str, Box]:
            return {
                name: box.larger(margin) if name in wanted else box for name, box in boxes.items()
            }

        loads = {arm: larger(boxes) for arm, boxes in self.attached.items()}
        return replace(self, objects=larger(self.objects), attached=loads)

    def surrounding(self, arm: str, margin: float) -> PlanningScene:
        """The same scene where what an arm carries keeps a margin [m] to other arms: larger boxes
        move along with it, which may touch all that is no link."""
        load = self.attached.get(arm, {})
        room = {f"{name}_room": box.larger(margin) for name, box in load.items()}
        others = [name for a, boxes in self.attached.items() if a != arm for name in boxes]
        pairs = list(itertools.product(room, [*self.objects, *others]))
        for first, second in self.allowed:
            pairs += [(f"{a}_room", b) for a, b in ((first, second), (second, first)) if a in load]
        surrounded = replace(self, attached={**self.attached, arm: {**load, **room}})
        return surrounded.allowing(pairs)

    def arm_positions(self, joints: Iterable[str]) -> Array:
        """Positions [rad, m] of named joints."""
        return np.array([self.positions[joint] for joint in joints])
