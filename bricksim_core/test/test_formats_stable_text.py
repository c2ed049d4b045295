# SPDX-License-Identifier: Apache-2.0
"""StableText2Brick text: cells by the format's definition, files of its authors, wrong lines."""

from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import FormatError
from bricksim_core.formats import format_structure, parse_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

DATA = Path(__file__).parent / "data/brickgpt"
FILES = {
    "fewshot_0_ac97ffc6": (73, 7),
    "fewshot_1_f23d3a85": (62, 18),
    "fewshot_3_109567d7": (96, 7),
    "demo_table": (59, 9),
    "demo_sofa": (77, 8),
    "demo_car": (92, 5),
    "mesh2brick_car": (99, 7),
    "texture_guitar": (28, 18),
}
"""Bricks and layers, as stated by the authors."""


@pytest.mark.parametrize(("name", "counts"), FILES.items())
def test_files_of_the_authors(name, counts):
    structure = read_structure(DATA / f"{name}.txt")
    bricks = [p for p in structure.graph.part_ids if p != 0]
    assert len(bricks) == counts[0]
    tops = structure.part_poses()
    layers = {round(tops[p][2, 3] / 0.0096) for p in bricks}
    assert layers == set(range(counts[1]))
    assert len(structure.graph.component_ids) == 1
    assert structure.fixed == {0} and structure.ground == 0.0
    text = (DATA / f"{name}.txt").read_text()
    assert format_structure(structure, "text").strip() == text.strip()


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 2), (2, 4), (6, 2), (8, 1)])
def test_cells(size):
    """h lies along x and w along y, from (x, y) on, layer z is z bricks up."""
    h, w = size
    structure = parse_structure(f"{h}x{w} (3,5,2)", baseplate=None)
    shape, pose = structure.graph.part(1).shape, structure.part_poses()[1]
    assert (shape.length, shape.width, shape.height) == (max(size), min(size), 3)
    corners = np.array([[i, j] for i in (-1, 1) for j in (-1, 1)]) * (shape.length, shape.width) / 2
    world = corners * 0.008 @ pose[:2, :2].T + pose[:2, 3]
    assert np.allclose(world.min(axis=0), [0.024, 0.040])
    assert np.allclose(world.max(axis=0), [(3 + h) * 0.008, (5 + w) * 0.008])
    assert pose[2, 3] == pytest.approx(2 * 0.0096)


def test_spaces_blank_lines_and_windows_line_ends_do_not_matter():
    plain = parse_structure("2x4 (0,0,0)\n2x4 (1,2,1)\n")
    messy = parse_structure("\ufeff\r\n  2 x 4\t( 0 ,0, 0 )  \r\n\r\n\r\n2x4(1,2,1)")
    assert format_structure(messy, "text") == format_structure(plain, "text")
    assert messy.origins[1] == "line 2" and messy.origins[2] == "line 5"


def test_connections_are_the_touching_pairs():
    """A bridge: two piers, a beam, a brick beside it that touches nothing above."""
    structure = parse_structure(
        "2x2 (0,0,0)\n2x2 (6,0,0)\n8x2 (0,0,1)\n2x2 (2,2,0)\n", baseplate=None
    )
    found = {(c.stud_part, c.hole_part): c.offset for c in structure.graph.connections.values()}
    assert found == {(1, 3): (0, 0), (2, 3): (-6, 0)}


@pytest.mark.parametrize(
    ("option", "size", "corner"),
    [
        ("auto", (8, 5), (2, 1)),
        (None, None, None),
        ((20, 20), (20, 20), (-4, -7)),  # floor((2 + 10 - 20) / 2), floor((1 + 6 - 20) / 2)
        ((9, 6), (9, 6), (1, 0)),
        ((4, 20), (4, 20), (2, -7)),  # too short along x: at the least cell
    ],
)
def test_base_plate(option, size, corner):
    structure = parse_structure("4x2 (2,1,0)\n4x2 (6,4,0)\n", baseplate=option)
    if size is None:
        assert structure.graph.part_ids == [1, 2] and structure.fixed == frozenset()
        return
    plate = structure.graph.part(0).shape
    assert plate == BrickShape(size[0], size[1], 1)
    centre = structure.part_poses()[0][:3, 3]
    assert np.allclose(centre[:2] / 0.008, np.array(corner) + np.array(size) / 2)
    assert centre[2] == pytest.approx(-0.0032)
    assert structure.fixed == {0}


@pytest.mark.parametrize(
    "option", ["large", (0, 5), (5,), (2.0, 2), (True, 2), [32, 32], (5, 5000)]
)
def test_bad_base_plate(option):
    with pytest.raises(FormatError, match="baseplate is"):
        parse_structure("2x4 (0,0,0)", baseplate=option)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2x4 (0,0)", "line 2 is '2x4"),
        ("2x4 (0,0,0", "line 2 is"),
        ("2x4 0,0,0", "line 2 is"),
        ("2x4 (0,0,0) red", "line 2 is"),
        ("2x4 (0,0,-1)", "line 2 is"),
        ("-2x4 (0,0,1)", "line 2 is"),
        ("2x4 (0.5,0,1)", "line 2 is"),
        ("2x4 (nan,0,1)", "line 2 is"),
        ("2x4 (1e3,0,1)", "line 2 is"),
        ("2X4 (0,0,1)", "line 2 is"),
        ("2x\u0664 (0,0,1)", "line 2 is"),
        ("# comment", "line 2 is"),
        ("0x4 (0,0,1)", "line 2: h is '0', expected 1 to 1024"),
        ("2x1025 (0,0,1)", "line 2: w is '1025'"),
        ("2x4 (100001,0,1)", "line 2: x is '100001', expected 0 to 100000"),
        (f"2x4 (0,0,{'9' * 5000})", "line 2: z is '9999"),
        ("2x4 (1,0,0)", r"line 2: the 2x4 part at \(1, 0\).* overlaps the 2x4 part .* of line 1"),
        ("2x4 (0,0,0)", "line 2: .* of line 1"),
        ("2x4 (5000,0,0)", "span 5002 x 4 studs"),
    ],
)
def test_refused(line, message):
    with pytest.raises(FormatError, match=message) as error:
        parse_structure(f"2x4 (0,0,0)\n{line}\n", name="bad.txt")
    assert str(error.value).startswith("bad.txt: ")
    assert len(str(error.value)) < 300


def test_authors_collision_case():
    with pytest.raises(FormatError, match=r"line 2: .* overlaps .* line 1"):
        read_structure(DATA / "test_collision.txt")


def single(shape, pose=None):
    graph = BrickTopologyGraph()
    graph.add_part(shape)
    return Structure(graph, {0: np.eye(4) if pose is None else pose})


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (BrickShape(4, 2, 1), "it is 1 plates high"),
        (BrickShape(1, 1, 15), "it is 15 plates high"),
        (BrickShape(4, 2, has_studs=False), "it has no studs"),
        (BrickShape(2, 2, mass=0.2), "its mass is 0.2 kg"),
    ],
)
def test_what_text_cannot_express(shape, message):
    with pytest.raises(FormatError, match=message):
        format_structure(single(shape), "text")


def test_turned_components_cannot_be_expressed():
    for quaternion in ([0, 0, 0.1, 0.995], [1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]):
        with pytest.raises(FormatError, match=r"turned off the axes|tilted"):
            format_structure(single(BrickShape(4, 2), transform([0, 0, 0], quaternion)), "text")


def test_components_off_each_others_grid_cannot_be_expressed():
    graph = BrickTopologyGraph()
    for _ in range(2):
        graph.add_part(BrickShape(2, 2))
    structure = Structure(graph, {0: np.eye(4), 1: transform([0.1, 0, 0])})
    with pytest.raises(FormatError, match="part 1 stands off the stud grid"):
        format_structure(structure, "text")
    structure.component_poses[1] = transform([0.096, 0, 0.0096])
    assert format_structure(structure, "text") == "2x2 (0,0,0)\n2x2 (12,0,1)\n"
    structure.component_poses[1] = transform([0.096, 0, 0.0032])
    with pytest.raises(FormatError, match="its bottom is 1 plates high"):
        format_structure(structure, "text")


def test_negative_cells_move_the_whole():
    graph = BrickTopologyGraph()
    for length in (2, 4):
        graph.add_part(BrickShape(length, 2))
    graph.connect(0, 1, (-2, -1), 0)
    assert (
        format_structure(Structure(graph, {0: np.eye(4)}), "text") == "2x2 (2,1,0)\n4x2 (0,0,1)\n"
    )


def test_plate_under_everything_is_the_ground():
    """BrickSim's demo stands on a plate that its file does not call fixed."""
    demo = read_structure(DATA.parent / "bricksim/demo_assembly_structure1.json")
    again = parse_structure(format_structure(demo, "text"), baseplate=None)
    below = demo.part_poses()[1][:3, 3] - again.part_poses()[1][:3, 3]
    for part_id in (2, 3, 4):
        moved = demo.part_poses()[part_id][:3, 3] - again.part_poses()[part_id][:3, 3]
        assert np.allclose(moved, below, atol=1e-12)
