# SPDX-License-Identifier: Apache-2.0
"""Does everything in a structure hang together and reach the ground?"""

from __future__ import annotations

import networkx as nx
import numpy as np

from bricksim_core.errors import StructureError
from bricksim_core.formats.source import left_out
from bricksim_core.parts import PLATE_HEIGHT
from bricksim_core.topology import Structure
from bricksim_core.topology.boxes import PartBoxes, near_pairs, part_boxes

_LISTED = 5
"""Problems that one message names."""
_TOLERANCE = 0.1 * PLATE_HEIGHT
"""Gap that counts as touching, and overlap that counts as none [m]."""


def check_supported(structure: Structure) -> None:
    """Refuses what cannot stand as given: floating, disconnected and overlapping components.

    A component is supported when a part of it is fixed or stands on the ground, or when it rests on
    or leans against a supported component. A component of one part that nothing carries *floats*;
    a larger one is *not connected to the ground*.

    Raises:
        StructureError: Names each such part with its place in the file.
    """
    boxes = part_boxes(structure)
    if len(boxes.part_ids) == 0:
        raise StructureError(f"{structure.label}: holds no part{left_out(structure.skipped)}")
    pairs = near_pairs(boxes, _TOLERANCE)
    problems = []
    for i, j, gap in zip(pairs.first, pairs.second, pairs.gap, strict=True):
        if gap < -_TOLERANCE:
            a, b = sorted((int(boxes.part_ids[i]), int(boxes.part_ids[j])))
            problems.append(
                f"{describe_part(structure, a)} overlaps {describe_part(structure, b)} by"
                f" {-gap * 1e3:.1f} mm"
            )
    resting = pairs.side_gap < -_TOLERANCE
    touching = zip(
        boxes.components[pairs.first[resting]].tolist(),
        boxes.components[pairs.second[resting]].tolist(),
        strict=True,
    )
    problems += _unsupported(structure, boxes, list(touching))
    if problems:
        more = len(problems) - _LISTED
        text = "; ".join(problems[:_LISTED]) + (f"; and {more} more" if more > 0 else "")
        raise StructureError(f"{structure.label}: {text}{left_out(structure.skipped)}")


def describe_part(structure: Structure, part_id: int) -> str:
    """A part by its place in the file, its id and its shape."""
    origin = structure.origins.get(part_id)
    text = f"part {part_id} ({structure.graph.part(part_id).shape})"
    return f"{origin}: {text}" if origin else text


def _unsupported(
    structure: Structure, boxes: PartBoxes, touching: list[tuple[int, int]]
) -> list[str]:
    bottom = boxes.centres[:, 2] - boxes.reach[:, 2]
    ground = bottom.min() if structure.ground is None else structure.ground
    grounded = set(boxes.components[np.abs(bottom - ground) <= _TOLERANCE].tolist())
    grounded |= {structure.graph.component_of(p) for p in structure.fixed}
    links = nx.Graph()
    links.add_nodes_from(structure.graph.component_ids)
    links.add_edges_from(touching)
    problems = []
    for group in nx.connected_components(links):
        if group & grounded:
            continue
        for component in sorted(group):
            first, *others = structure.graph.component_parts(component)
            part = describe_part(structure, first)
            if others or len(group) > 1:
                with_others = f" and the {len(others)} connected to it" if others else ""
                problems.append(f"{part}{with_others}: not connected to the ground")
            else:
                problems.append(f"{part}: floating, nothing above or below it")
    return problems
