# SPDX-License-Identifier: Apache-2.0
"""Bricks come onto the table in portions where they do not fit there all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import base_part, loose_bricks
from bricksim_moveit_demo.layout import TableLayout, arrange_some


class Supply:
    """Puts a structure's base and as many of its bricks as fit on the table, more when needed.

    Ids are those of the structure. What fits all at once lies as `building.laid_out` has it.

    Args:
        simulator: The simulator, empty.
        structure: What is to be built.
        order: Its bricks in the order in which they are needed; others come last.
        layout: Where things go.
        seed: Seed of the layout.
        noise: Further error of each brick's place, e.g. `Noise.sample`; None: none.

    Raises:
        TaskError: Not even one brick fits.
    """

    def __init__(
        self,
        simulator: Simulator,
        structure: Structure,
        order: Sequence[int],
        layout: TableLayout,
        seed: int = 0,
        noise: Callable[[np.random.Generator], Array] | None = None,
    ) -> None:
        self._simulator = simulator
        self._structure = structure
        self._layout = layout
        self._noise = noise
        self._generator = np.random.default_rng([seed, 0x7AB1E])
        self._base = base_part(structure)
        needed = dict.fromkeys([*order, *structure.graph.part_ids])
        self._waiting = [part for part in needed if part != self._base]
        self._portion({self._base: transform([*layout.seat, 0.0])}, [])
        # Places that are given are for what lies there from the start.
        self._layout = replace(layout, places={})

    def __call__(self, part_id: int) -> None:
        """Puts the next portion on free places of the table if a brick is not there yet.

        Raises:
            TaskError: What lies there leaves no room.
        """
        if part_id in self._waiting:
            self._waiting.sort(key=lambda part: part != part_id)
            self._portion({}, self._obstacles())

    # -- inside -----------------------------------------------------------------------------

    def _portion(
        self, poses: dict[int, Array], obstacles: Sequence[tuple[float, float, float]]
    ) -> None:
        graph = self._structure.graph
        if self._waiting:
            shapes = {part: graph.part(part).shape for part in self._waiting}
            found = arrange_some(shapes, self._layout, self._generator, obstacles)
            if self._noise is not None:
                found = {part: pose @ self._noise(self._generator) for part, pose in found.items()}
            poses = poses | found
        scene = loose_bricks(self._structure, poses)
        self._simulator.spawn(scene, np.eye(4), part_ids={part: part for part in poses})
        self._waiting = [part for part in self._waiting if part not in poses]

    def _obstacles(self) -> list[tuple[float, float, float]]:
        """x, y and radius [m] of all that is there but the base."""
        graph = self._simulator.graph
        return [
            _circle(graph.part(part).shape, self._simulator.part_pose(part))
            for part in graph.part_ids
            if part != self._base
        ]


def _circle(shape: BrickShape, pose: Array) -> tuple[float, float, float]:
    return float(pose[0, 3]), float(pose[1, 3]), 0.5 * float(np.hypot(*shape.size[:2]))
