# SPDX-License-Identifier: Apache-2.0
"""``bricksim info``: what is in a structure file?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bricksim_core.cli.console import print_json
from bricksim_core.cli.options import (
    BaseplateOption,
    FileArgument,
    JsonOption,
    StrictOption,
    examples,
    parse_baseplate,
)

if TYPE_CHECKING:
    from bricksim_core.topology import Structure

NAME = "info"
EXAMPLES = examples("bricksim info car.ldr", "bricksim info --json - < tower.txt")


def command(
    file: FileArgument,
    json: JsonOption = False,
    baseplate: BaseplateOption = "auto",
    strict: StrictOption = False,
) -> int:
    """Say what a structure file holds: parts by kind, connections, pieces, size, mass."""
    plate = parse_baseplate(baseplate)

    from bricksim_core.formats import read_structure

    data = _describe(file, read_structure(file, baseplate=plate, strict=strict))
    if json:
        print_json(data)
        return 0
    size = " × ".join(f"{1e3 * side:.1f}" for side in data["size"])
    print(f"file         {file}")
    print(f"parts        {data['parts']}, {len(data['fixed'])} of them fixed")
    print(f"connections  {data['connections']}")
    print(f"pieces       {data['components']}")
    print(f"size         {size} mm, studs not counted")
    print(f"mass         {1e3 * data['mass']:.2f} g")
    for kind, count in data["kinds"].items():
        print(f"{count:11d}  {kind}")
    for line in data["skipped"]:
        print(f"skipped      {line}")
    return 0


def _describe(file: str, structure: Structure) -> dict[str, Any]:
    from bricksim_core.topology.boxes import part_boxes

    graph = structure.graph
    shapes = [part.shape for part in graph.parts()]
    boxes = part_boxes(structure)
    low = (boxes.centres - boxes.reach).min(axis=0, initial=float("inf"))
    high = (boxes.centres + boxes.reach).max(axis=0, initial=float("-inf"))
    return {
        "file": file,
        "name": structure.name,
        "parts": len(graph),
        "fixed": sorted(structure.fixed),
        "connections": len(graph.connections),
        "components": len(graph.component_ids),
        "size": (high - low).tolist() if shapes else [0.0, 0.0, 0.0],
        "mass": sum(shape.mass for shape in shapes),
        "kinds": dict(Counter(str(shape) for shape in shapes).most_common()),
        "skipped": list(structure.skipped),
    }
