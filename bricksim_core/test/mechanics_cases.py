# SPDX-License-Identifier: Apache-2.0
"""Structures and hand statics that the tests of mechanics share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bricksim_core.errors import TopologyError
from bricksim_core.experiments.bond import running_bond
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.mechanics.types import ContactVertices, Solution
from bricksim_core.parts import PLATE_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.topology.structure import Structure

DATA = Path(__file__).parent / "data"
STABLELEGO_GRAVITY = 9.8
"""With which StableLego and the reference figures were computed [m/s^2]."""


def data_structure(name: str, **options) -> Structure:
    """A structure of the test data by folder and file name."""
    return read_structure(DATA / name, **options)


def text_structure(text: str, baseplate: tuple[int, int] | None = (32, 32)) -> Structure:
    """A structure in StableText2Brick text on a fixed base plate (part 0)."""
    return parse_structure(text, baseplate=baseplate)


def single_component(structure: Structure) -> tuple[ComponentLayout, np.ndarray]:
    """Layout and anchored parts of a structure of one component."""
    (component_id,) = structure.graph.component_ids
    layout = structure.graph.layout(component_id)
    return layout, np.isin(layout.part_ids, list(structure.fixed))


def bonded_block(layers: int, rows: int) -> tuple[ComponentLayout, np.ndarray]:
    """Layout and anchored parts (none) of a loose block: layers of 4 x rows 4x2 bricks, each laid
    over the joints of the one below."""
    return single_component(text_structure(running_bond(4, rows, layers), None))


def weights(layout: ComponentLayout, gravity: float = STABLELEGO_GRAVITY) -> np.ndarray:
    """(N, 6) weights of the parts [N]."""
    loads = np.zeros((len(layout.part_ids), 6))
    loads[:, 2] = -gravity * layout.masses
    return loads


def overlap_centre(layout: ComponentLayout, connection: int) -> np.ndarray:
    """(3,) centre of a connection's overlap at the stud plane [m], by hand."""
    stud, hole = layout.stud_index[connection], layout.hole_index[connection]
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = layout.footprints[[stud, hole]]
    top = layout.grids[stud, 2] + layout.dimensions[stud, 2]
    return np.array(
        [
            0.5 * (max(ax0, bx0) + min(ax1, bx1)) * STUD_PITCH,
            0.5 * (max(ay0, by0) + min(ay1, by1)) * STUD_PITCH,
            top * PLATE_HEIGHT,
        ]
    )


def internal_wrenches(
    layout: ComponentLayout, solution: Solution, contacts: ContactVertices
) -> np.ndarray:
    """(N, 6) sum of all connection and contact forces on each part about its COM [N, N m]."""
    total = np.zeros((len(layout.part_ids), 6))

    def act(part: int, sign: float, point: np.ndarray, wrench: np.ndarray) -> None:
        if part >= 0:
            total[part, :3] += sign * wrench[:3]
            arm = np.cross(point - layout.coms[part], wrench[:3])
            total[part, 3:] += sign * (wrench[3:] + arm)

    for c, wrench in enumerate(solution.connection_wrench):
        centre = overlap_centre(layout, c)
        act(layout.stud_index[c], 1.0, centre, wrench)
        act(layout.hole_index[c], -1.0, centre, wrench)
    for a, b, point, normal, force in zip(
        contacts.part_a,
        contacts.part_b,
        contacts.position,
        contacts.normal,
        solution.contact_force,
        strict=True,
    ):
        push = np.concatenate([force * normal, np.zeros(3)])
        act(a, -1.0, point, push)
        act(b, 1.0, point, push)
    return total


def random_structure(rng: np.random.Generator, bricks: int) -> BrickTopologyGraph:
    """Random connected bricks and plates on a 16 x 16 plate (part 0), by trial and error."""
    graph = BrickTopologyGraph()
    graph.add_part(BrickShape(16, 16, 1))
    sides = ((1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (6, 2), (3, 3))
    while len(graph) <= bricks:
        lower = int(rng.choice(graph.part_ids))
        side = sides[rng.integers(len(sides))]
        part = graph.add_part(BrickShape(*side, int(rng.choice([1, 3]))))
        shape = graph.part(lower).shape
        offset = (int(rng.integers(-1, shape.length + 1)), int(rng.integers(-1, shape.width + 1)))
        try:
            graph.connect(lower, part, offset, int(rng.integers(4)))
        except TopologyError:
            graph.remove_part(part)
    return graph
