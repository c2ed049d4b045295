# SPDX-License-Identifier: Apache-2.0
"""LDraw: positions by the format's own numbers, what editors write, and what must be refused."""

from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import FormatError
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.formats.ldraw import format_ldraw
from bricksim_core.formats.ldraw_parts import IDS, SHAPES, shape_of
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph, Structure

DATA = Path(__file__).parent / "data"
ONE = "1 0 0 0 1 0 0 0 1"
"""No rotation."""


def lines(*entries):
    return "0 test\n" + "\n".join(entries) + "\n"


def poses(structure):
    """Centre of the bottom and direction of the length [mm] of each part."""
    return {
        p: (np.round(pose[:3, 3] * 1e3, 6).tolist(), np.round(pose[:3, 0], 6).tolist())
        for p, pose in structure.part_poses().items()
    }


def pairs(structure):
    return {(c.stud_part, c.hole_part) for c in structure.graph.connections.values()}


def test_one_brick():
    """A 2x4 whose top is at y = -24 stands on z = 0; z of LDraw is y of the world."""
    structure = parse_structure(lines(f"1 4 40 -24 20 {ONE} 3001.dat"))
    assert poses(structure) == {1: ([16, 8, 0], [1, 0, 0])}
    part = structure.graph.part(1)
    assert part.shape == BrickShape(4, 2, 3)
    assert part.color == (0xC9, 0x1A, 0x09)
    assert structure.origins == {1: "line 2"}
    assert not structure.fixed and structure.ground is None


def test_rotation_about_the_vertical():
    """LDraw's matrix turns x into -z: about -y by 90 degrees, so about the world's z by -90."""
    structure = parse_structure(lines("1 4 0 -24 0 0 0 1 0 1 0 -1 0 0 3001.dat"))
    assert poses(structure) == {1: ([0, 0, 0], [0, -1, 0])}


def test_editor_file():
    structure = read_structure(DATA / "ldraw/editor.mpd")
    graph = structure.graph
    # Plate, two bricks on it, two walls of three parts, a printed tile on the first brick.
    assert [str(p.shape) for p in graph.parts()] == [
        "32x32 plate", "4x2 brick", "2x2 brick",
        "2x1 brick", "2x1 brick", "2x1 tile", "2x1 brick", "2x1 brick", "2x1 tile", "2x2 tile",
    ]  # fmt: skip
    assert pairs(structure) == {
        (1, 2), (1, 3), (1, 4), (4, 5), (5, 6), (1, 7), (7, 8), (8, 9), (2, 10),
    }  # fmt: skip
    # Written as -40.000300: snapped to the stud.
    assert poses(structure)[2] == ([-16, 0, 0], [1, 0, 0])
    colors = [p.color for p in graph.parts()]
    assert colors[2] == (0x33, 0x66, 0x99)
    assert colors[3] == colors[5] == (0xF2, 0xCD, 0x37) and colors[4] == (255, 255, 255)
    assert colors[6] == (0, 0x55, 0xBF)
    assert colors[9] == (0xFF, 0x80, 0x90)
    assert structure.origins[5] == "line 23 in line 13"
    assert structure.skipped == [
        "line 15: part '3040b.dat' is not known",
        "line 17: drawn geometry",
    ]


def test_strict_names_what_would_be_skipped():
    with pytest.raises(FormatError, match=r"line 15: part '3040b\.dat' is not known; line 17"):
        read_structure(DATA / "ldraw/editor.mpd", strict=True)


def test_brickgpt_convention():
    """BrickGPT writes a brick at (20 (x + h/2), -24 z, 20 (y + w/2)) for its cells and layer."""
    turned = "0 0 1 0 1 0 -1 0 0"  # its matrix for h <= w
    structure = parse_structure(
        lines(
            f"1 115 {(3 + 1) * 20} 0 {(5 + 2) * 20} {turned} 3001.DAT",
            "0 STEP",
            f"1 115 {(4 + 1) * 20} -24 {(7 + 2) * 20} {turned} 3001.DAT",
        )
    )
    text = parse_structure("2x4 (3,5,0)\n2x4 (4,7,1)\n", baseplate=None)
    shift = structure.part_poses()[1][:3, 3] - text.part_poses()[1][:3, 3]
    assert np.allclose(shift, [0, 0, -0.0096])  # its layer 0 has the tops at y = 0
    for part_id in (1, 2):
        moved = structure.part_poses()[part_id][:3, 3] - text.part_poses()[part_id][:3, 3]
        assert np.allclose(moved, shift, atol=1e-12)
    assert pairs(structure) == pairs(text) == {(1, 2)}


@pytest.mark.parametrize("angle", [10.0, 45.0, 89.0])
def test_turned_group_is_a_component_of_its_own(angle):
    """Two stacked bricks, turned by any angle about the vertical and rounded as editors do."""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    matrix = f"{c:.6f} 0 {s:.6f} 0 1 0 {-s:.6f} 0 {c:.6f}"
    offset = np.array([20.0, 20.0]) @ np.array([[c, -s], [s, c]])
    structure = parse_structure(
        lines(
            f"1 1 500 -24 500 {matrix} 3001.dat",
            f"1 1 {500 + offset[0]:.4f} -48 {500 + offset[1]:.4f} {matrix} 3003.dat",
            f"1 1 0 -24 0 {ONE} 3001.dat",
        )
    )
    assert pairs(structure) == {(1, 2)}
    assert len(structure.graph.component_ids) == 2
    length = structure.part_poses()[1][:3, 0]
    assert np.allclose(length, [c, -s, 0], atol=1e-5)
    assert structure.graph.relative_grid_pose(1, 2)[:3] == (2, 1, 3)


def test_upside_down_and_sideways_stacks():
    for matrix, step in (("1 0 0 0 -1 0 0 0 -1", (0, 24, 0)), ("0 -1 0 1 0 0 0 0 1", (24, 0, 0))):
        x, y, z = step
        structure = parse_structure(
            lines(f"1 1 0 0 0 {matrix} 3001.dat", f"1 1 {x} {y} {z} {matrix} 3001.dat")
        )
        assert pairs(structure) == {(1, 2)}, matrix
        assert np.allclose(structure.part_poses()[2][:3, 3] - structure.part_poses()[1][:3, 3],
                           np.array([x, z, -y]) * 0.0004)  # fmt: skip


def test_half_stud_offset_does_not_connect():
    structure = parse_structure(
        lines(f"1 1 0 -24 0 {ONE} 3001.dat", f"1 1 10 -48 0 {ONE} 3001.dat")
    )
    assert pairs(structure) == set() and len(structure.graph.component_ids) == 2


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("3005", (1, 1, 3)), ("3004", (2, 1, 3)), ("3622", (3, 1, 3)), ("3010", (4, 1, 3)),
        ("3009", (6, 1, 3)), ("3008", (8, 1, 3)), ("3003", (2, 2, 3)), ("3002", (3, 2, 3)),
        ("3001", (4, 2, 3)), ("2456", (6, 2, 3)), ("2356", (6, 4, 3)), ("4201", (8, 8, 3)),
        ("14716", (1, 1, 9)), ("3245c", (2, 1, 6)), ("3755", (3, 1, 15)), ("2453", (1, 1, 15)),
        ("3024", (1, 1, 1)), ("3023", (2, 1, 1)), ("3710", (4, 1, 1)), ("3666", (6, 1, 1)),
        ("3460", (8, 1, 1)), ("3022", (2, 2, 1)), ("3021", (3, 2, 1)), ("3020", (4, 2, 1)),
        ("3795", (6, 2, 1)), ("3034", (8, 2, 1)), ("3832", (10, 2, 1)), ("4282", (16, 2, 1)),
        ("3031", (4, 4, 1)), ("3032", (6, 4, 1)), ("3035", (8, 4, 1)), ("3030", (10, 4, 1)),
        ("3029", (12, 4, 1)), ("3958", (6, 6, 1)), ("3036", (8, 6, 1)), ("3033", (10, 6, 1)),
        ("3028", (12, 6, 1)), ("3027", (16, 6, 1)), ("3026", (24, 6, 1)), ("91405", (16, 16, 1)),
        ("3811", (32, 32, 1)), ("4186", (48, 48, 1)), ("3867", (16, 16, 1)),
    ],
)  # fmt: skip
def test_ids_with_studs(name, size):
    """Numbers and sizes of the LDraw parts library."""
    assert shape_of(f"{name}.dat") == BrickShape(*size)
    assert shape_of(f"{name}.DAT") == BrickShape(*size)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("3070b", (1, 1)), ("3069b", (2, 1)), ("63864", (3, 1)), ("2431", (4, 1)), ("6636", (6, 1)),
        ("4162", (8, 1)), ("3068b", (2, 2)), ("87079", (4, 2)), ("3068bp80", (2, 2)),
        ("26603d0p", (3, 2)),
    ],
)  # fmt: skip
def test_ids_of_tiles(name, size):
    assert shape_of(f"{name}.dat") == BrickShape(size[0], size[1], 1, has_studs=False)


@pytest.mark.parametrize(
    "name", ["3040.dat", "3062b.dat", "3794a.dat", "3001", "3001.ldr", "pd.dat"]
)
def test_other_parts_are_not_known(name):
    assert shape_of(name) is None


def test_every_id_is_written_back_as_its_shape():
    assert all(SHAPES[part_id] == shape for shape, part_id in IDS.items())
    assert all(s.length >= s.width for s in IDS)


def test_shapes_without_an_id_keep_their_size_and_mass():
    graph = BrickTopologyGraph()
    plate = graph.add_part(BrickShape(20, 7, 1), (1, 2, 3))
    weight = graph.add_part(BrickShape(2, 2, mass=0.2))
    tile = graph.add_part(BrickShape(3, 5, 2, has_studs=False))
    graph.connect(plate, weight, (4, 4), 1)
    graph.connect(weight, tile, (-1, 2), 3)
    structure = Structure(graph, {graph.component_of(plate): np.eye(4)})
    text = format_ldraw(structure)
    again = parse_structure(text, strict=True)
    assert [p.shape for p in again.graph.parts()] == [p.shape for p in graph.parts()]
    assert [p.color for p in again.graph.parts()] == [p.color for p in graph.parts()]
    for old, new in zip(graph.part_ids, again.graph.part_ids, strict=True):
        assert np.allclose(structure.part_poses()[old], again.part_poses()[new], atol=1e-12)
    assert format_ldraw(again).splitlines()[4:] == text.splitlines()[4:]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["1 4 0 0 0 1 0 0 0 1 0 0 0 3001.dat"], "line 2 has 14 fields, expected 15"),
        ([f"1 4 nan 0 0 {ONE} 3001.dat"], "line 2: x is 'nan'"),
        ([f"1 4 0 inf 0 {ONE} 3001.dat"], "line 2: y is 'inf'"),
        ([f"1 4 0 0 1e9 {ONE} 3001.dat"], "line 2: z is '1e9'"),
        (["1 4 0 0 0 1 0 0 0 1_0 0 0 0 1 3001.dat"], "line 2: e is '1_0'"),
        ([f"1 red 0 0 0 {ONE} 3001.dat"], "line 2: colour is 'red'"),
        ([f"1 -4 0 0 0 {ONE} 3001.dat"], "line 2: colour is '-4'"),
        (["1 4 0 0 0 -1 0 0 0 1 0 0 0 1 3001.dat"], "line 2: .* mirrors"),
        (["1 4 0 0 0 2 0 0 0 2 0 0 0 2 3001.dat"], "line 2: .* scales or shears"),
        (["1 4 0 0 0 0 0 0 0 0 0 0 0 0 3001.dat"], "line 2: .* scales or shears"),
        (["6 1 2 3"], "line 2 starts with '6'"),
        (["2x4 (0,0,0)"], "line 2 starts with '2x4'"),
        (["0 !COLOUR x CODE 7"], "line 2: expected '0 !COLOUR"),
        (["0 FILE"], "line 2: 0 FILE without a name"),
        (["0 FILE a.ldr", "0 FILE A.LDR"], "line 3: a second file named 'A.LDR'"),
        (["0 !BRICKSIM PART 2 0 3"], "line 2: width is 0"),
        (["0 !BRICKSIM PART 2 2"], "line 2: expected"),
        (["0 !BRICKSIM PART 2 2 3 MASS -1"], "line 2: mass is -1"),
        ([f"1 4 0 0 0 {ONE} 3040.dat"], r"no part that is known: line 2: part '3040\.dat'"),
        (["0 STEP"], "holds no part"),
        (
            [f"1 4 0 0 0 {ONE} 3001.dat", "0 STEP", f"1 4 20 0 0 {ONE} 3001.dat"],
            r"line 4: the 4x2 part .* overlaps the 4x2 part .* of line 2",
        ),
        (
            [f"1 4 0 0 0 {ONE} 3001.dat", f"1 4 10 4 0 {ONE} 3001.dat"],
            "line 3: the 4x2 brick overlaps the 4x2 brick of line 2 by 20.0",
        ),
        (
            ["0 FILE a.ldr", f"1 4 0 0 0 {ONE} b.ldr", "0 FILE b.ldr", f"1 4 0 0 0 {ONE} a.ldr"],
            r"contains itself: 'a\.ldr' -> 'b\.ldr' -> 'a\.ldr'",
        ),
    ],
)
def test_refused(entries, message):
    with pytest.raises(FormatError, match=message) as error:
        parse_structure(lines(*entries), name="model.ldr")
    assert str(error.value).startswith("model.ldr: ")


def test_mirror_of_a_submodel_names_its_line():
    text = (
        "0 FILE a.ldr\n1 4 0 0 0 -1 0 0 0 1 0 0 0 1 b.ldr\n0 FILE b.ldr\n"
        + f"1 4 0 0 0 {ONE} 3001.dat"
    )
    with pytest.raises(FormatError, match=r"line 2: the matrix of 'b\.ldr' mirrors"):
        parse_structure(text)


def test_unknown_colours_become_grey_and_are_listed():
    structure = parse_structure(lines(f"1 99999 0 0 0 {ONE} 3001.dat"))
    assert structure.graph.part(1).color == (127, 127, 127)
    assert structure.skipped == ["line 2: colour 99999 is not known, grey instead"]
    with pytest.raises(FormatError, match="colour 99999"):
        parse_structure(lines(f"1 99999 0 0 0 {ONE} 3001.dat"), strict=True)


def test_exponential_nesting_is_refused_at_once():
    """Thirty lines that stand for 10^9 bricks."""
    blocks = ["0 FILE main.ldr"]
    for level in range(10):
        target = f"m{level + 1}.ldr" if level < 9 else "3001.dat"
        if level:
            blocks.append(f"0 FILE m{level}.ldr")
        blocks += [f"1 4 {100 * i} 0 0 {ONE} {target}" for i in range(10)]
    with pytest.raises(FormatError, match="more than 100000 parts"):
        parse_structure("\n".join(blocks))


def test_deep_nesting_is_refused():
    blocks = [f"0 FILE m{i}.ldr\n1 4 0 0 0 {ONE} m{i + 1}.ldr" for i in range(5000)]
    with pytest.raises(FormatError, match="nested more than"):
        parse_structure("\n".join(blocks))


def test_packed_files_prefer_the_known_part():
    """A file that carries the drawing of its parts, as packers for web viewers write it."""
    text = (
        f"1 4 0 0 0 {ONE} 3001.dat\n1 4 80 0 0 {ONE} 3040.dat\n0 NOFILE\n"
        "0 FILE parts/3001.dat\n0 Brick 2 x 4\n3 16 0 0 0 1 0 0 0 1 0\n"
        "0 FILE parts/3040.dat\n0 Slope\n3 16 0 0 0 1 0 0 0 1 0\n"
    )
    structure = parse_structure("0 packed\n" + text)
    assert [str(p.shape) for p in structure.graph.parts()] == ["4x2 brick"]
    assert structure.skipped == ["line 3: part '3040.dat' is not known"]


def test_old_encoding_of_an_author(tmp_path):
    path = tmp_path / "old.ldr"
    path.write_bytes(f"0 Ger\xfcst\n1 4 0 0 0 {ONE} 3001.dat\n".encode("latin-1"))
    assert len(read_structure(path).graph) == 1
