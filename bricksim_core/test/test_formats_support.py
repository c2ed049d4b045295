# SPDX-License-Identifier: Apache-2.0
"""What cannot stand as given: BrickGPT's unit test cases and constructed ones."""

from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import StructureError
from bricksim_core.formats import check_supported, parse_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

DATA = Path(__file__).parent / "data"
STANDING = sorted(
    p
    for folder in ("brickgpt", "stablelego", "bricksim")
    for p in (DATA / folder).iterdir()
    if not p.name.startswith("test_") and p.name != "lego_library.json"
)


@pytest.mark.parametrize("path", STANDING, ids=lambda p: p.stem)
@pytest.mark.parametrize("baseplate", ["auto", None])
def test_real_structures_hang_together(path, baseplate):
    """Whether they carry their load is another question: stair_20 passes here."""
    check_supported(read_structure(path, baseplate=baseplate))


@pytest.mark.parametrize("baseplate", ["auto", None])
def test_authors_floating_case(baseplate):
    structure = read_structure(DATA / "brickgpt/test_floating.txt", baseplate=baseplate)
    with pytest.raises(StructureError, match=r"line 2: part 2 \(6x2 brick\): floating, nothing"):
        check_supported(structure)


@pytest.mark.parametrize("baseplate", ["auto", None])
def test_authors_disconnected_case(baseplate):
    structure = read_structure(DATA / "brickgpt/test_disconnected.txt", baseplate=baseplate)
    message = r"line 1: part 1 \(6x2 brick\) and the 1 connected to it: not connected to the ground"
    with pytest.raises(StructureError, match=message):
        check_supported(structure)


def structure(*entries, **options):
    """Parts (shape, position [studs, studs, plates]) as components of their own."""
    graph = BrickTopologyGraph()
    poses = {}
    for shape, (x, y, z) in entries:
        part_id = graph.add_part(shape)
        poses[graph.component_of(part_id)] = transform([x * 0.008, y * 0.008, z * 0.0032])
    return Structure(graph, poses, **options)


BRICK, TILE = BrickShape(4, 2), BrickShape(4, 2, 1, has_studs=False)


def test_resting_without_connection_is_support():
    """A brick on a tile, off the grid and turned: nothing connects, but it rests."""
    stacked = structure((TILE, (0, 0, 0)), (BRICK, (1.3, 0.4, 1)))
    check_supported(stacked)
    turn = transform([0, 0, 0], [0, 0, 0.3, 0.954])
    component = stacked.graph.component_of(1)
    stacked.component_poses[component] = stacked.component_poses[component] @ turn
    check_supported(stacked)


@pytest.mark.parametrize("position", [(5, 0, 1), (0, 0, 2), (4, 0, 0.5), (2, 2, 1)])
def test_beside_or_above_is_not(position):
    with pytest.raises(StructureError, match=r"part 1 \(4x2 brick\): floating"):
        check_supported(structure((TILE, (0, 0, 0)), (BRICK, position)))


def test_leaning_is_support():
    """A brick at 45 degrees, a little above the ground, its top edge at another's side."""
    lean = structure((BRICK, (0, 0, 0)), (BRICK, (0, 0, 0)))
    half = np.pi / 8
    x = 0.032 + 0.0096 * np.sin(np.pi / 4)
    lean.component_poses[1] = transform([x, 0, 0.001], [0, -np.sin(half), 0, np.cos(half)])
    check_supported(lean)
    lean.component_poses[1] = transform([x, 0, 0.01], [0, -np.sin(half), 0, np.cos(half)])
    with pytest.raises(StructureError, match="part 1"):
        check_supported(lean)


def test_fixed_parts_need_no_ground():
    shelf = structure((BRICK, (0, 0, 0)), (BRICK, (9, 0, 20)), fixed=frozenset({1}))
    check_supported(shelf)


def test_ground_of_the_format():
    """Alone and lowest, but above the ground that the file defines."""
    check_supported(structure((BRICK, (0, 0, 5))))
    with pytest.raises(StructureError, match="floating"):
        check_supported(structure((BRICK, (0, 0, 5)), ground=0.0))


def test_overlapping_components():
    with pytest.raises(StructureError, match=r"part 0 .* overlaps part 1 .* by 4\.0 mm"):
        check_supported(structure((BRICK, (0, 0, 0)), (BRICK, (0, 1.5, 0))))


def test_long_lists_are_cut():
    text = "\n".join(["2x2 (0,0,0)", *(f"2x2 ({4 * i},0,2)" for i in range(1, 12))])
    with pytest.raises(StructureError, match=r"and 6 more$"):
        check_supported(parse_structure(text))


def test_empty():
    with pytest.raises(StructureError, match="holds no part"):
        check_supported(Structure(BrickTopologyGraph(), {}))
