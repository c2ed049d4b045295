# SPDX-License-Identifier: Apache-2.0
"""Bricks on the table: all at once, or in portions where they do not fit there all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bricksim_core.errors import CollisionError
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, transform
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import base_part, loose_bricks
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.layout import TableLayout, arrange, arrange_some, circle

Put = Callable[[Structure], Mapping[int, int]]
"""Puts a structure into the scene; returns ids of its parts there by its own."""


class Supply:
    """Puts a structure's base and its bricks on the table; what does not fit comes when needed.

    What fits all at once lies there from the start. Otherwise only bricks whose place is given do,
    and the rest comes in portions after `begin`.

    Args:
        simulator: The simulator, with nothing where the bricks go.
        structure: What is to be built.
        layout: Where things go.
        seed: Seed of the layout.
        noise: Further error of each brick's place, e.g. `Noise.sample`; None: none.
        put: How bricks get into the scene; None: `Simulator.spawn`, with the structure's ids.
        there: Part ids in a scene that holds other things, by part id of the structure, of what is
            there already; the base is put down if it is not, bricks after `begin`. None: the table
            is empty.

    Attributes:
        ids: Part id in the scene by part id of the structure, of all that is there.

    Raises:
        TaskError: Places are given for bricks that the structure does not have, or where the base
            or another brick is, or something lies where the base goes.
    """

    def __init__(
        self,
        simulator: Simulator,
        structure: Structure,
        layout: TableLayout,
        seed: int = 0,
        noise: Callable[[np.random.Generator], Array] | None = None,
        put: Put | None = None,
        there: Mapping[int, int] | None = None,
    ) -> None:
        self.ids: dict[int, int] = dict(there or {})
        self._alone = there is None
        self._simulator = simulator
        self._structure = structure
        self._noise = noise
        self._put = put or self._spawn
        self._generator = np.random.default_rng([seed, 0x7AB1E])
        self._base = base_part(structure)
        # Places that are given are for what lies there from the start.
        self._layout = replace(layout, places={})
        parts = structure.graph.part_ids
        self._waiting = [p for p in parts if p != self._base and p not in self.ids]
        base = {self._base: transform([*layout.seat, 0.0])}
        if there is not None:
            if self._base not in self.ids:
                self._require_room(base[self._base])
                self._lay({}, base)
            return
        untouched = self._generator.bit_generator.state
        try:
            places = arrange(self._shapes(self._waiting), layout, self._generator)
        except TaskError:
            self._generator.bit_generator.state = untouched
            given = [part for part in self._waiting if part in layout.places]
            if len(given) < len(layout.places):  # it names what is none of the bricks
                raise
            places = arrange(self._shapes(given), layout, self._generator)
        self._lay(places, base)

    def begin(self, order: Iterable[int]) -> None:
        """Puts the first portion on the table.

        Args:
            order: Bricks in the order in which they are needed; others come last.

        Raises:
            TaskError: Not even one brick fits.
        """
        needed = dict.fromkeys([*order, *self._waiting])
        self._waiting = [part for part in needed if part in self._waiting]
        self._portion()

    def __call__(self, *parts: int) -> None:
        """Puts further portions on free places of the table until some bricks are there.

        Args:
            parts: Ids of the structure.

        Raises:
            TaskError: What lies there leaves no room.
        """
        self._waiting.sort(key=lambda part: part not in parts)
        while any(part in self._waiting for part in parts):
            self._portion()

    # -- inside -----------------------------------------------------------------------------

    def _portion(self) -> None:
        if self._waiting:
            self._lay(
                arrange_some(
                    self._shapes(self._waiting), self._layout, self._generator, self._obstacles()
                )
            )

    def _lay(self, places: Mapping[int, Array], firm: Mapping[int, Array] | None = None) -> None:
        """Puts bricks about where they are to lie, and others exactly there."""
        if self._noise is not None:
            places = {part: pose @ self._noise(self._generator) for part, pose in places.items()}
        try:
            self.ids |= self._put(loose_bricks(self._structure, {**places, **(firm or {})}))
        except CollisionError as error:
            raise TaskError(
                f"the layout of the table puts parts into each other (the base is part"
                f" {self._base}): {error}"
            ) from error
        self._waiting = [part for part in self._waiting if part not in places]

    def _shapes(self, parts: Sequence[int]) -> dict[int, BrickShape]:
        return {part: self._structure.graph.part(part).shape for part in parts}

    def _obstacles(self) -> list[tuple[float, float, float]]:
        """x, y and radius [m] of all that is there; on a table that was empty, but the base: no
        bricks are laid out close to it."""
        graph = self._simulator.graph
        return [
            circle(graph.part(part).shape, self._simulator.part_pose(part))
            for part in graph.part_ids
            if not (self._alone and part == self.ids[self._base])
        ]

    def _require_room(self, base: Array) -> None:
        x, y, radius = circle(self._structure.graph.part(self._base).shape, base)
        if any(np.hypot(x - a, y - b) < radius + other for a, b, other in self._obstacles()):
            raise TaskError(
                f"{self._structure.name}: no part that the world holds has the base's shape, and"
                f" something lies where it would be put, about x, y = {x:.2f}, {y:.2f} m",
                Outcome.BRICK_MISSING,
            )

    def _spawn(self, structure: Structure) -> Mapping[int, int]:
        own = {part: part for part in structure.graph.part_ids}
        return self._simulator.spawn(structure, np.eye(4), part_ids=own)
