# SPDX-License-Identifier: Apache-2.0
"""StableLego tasks: its own files, its library, wrong fields."""

import json
from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import FormatError
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.formats.stablelego import LIBRARY, BrickType, read_library
from bricksim_core.parts import BrickShape

DATA = Path(__file__).parent / "data/stablelego"
BRICK = {"x": 0, "y": 0, "z": 0, "brick_id": 2, "ori": 0}


@pytest.mark.parametrize(
    ("name", "bricks", "layers"),
    [
        ("stair_19", 19, 19),
        ("stair_20", 20, 20),
        ("stick_light", 13, 5),
        ("stick_heavy", 14, 6),
        ("external_weight_good", 4, 4),
    ],
)
def test_files_of_the_authors(name, bricks, layers):
    """Counts as the authors state them; each is one piece on its plate."""
    structure = read_structure(DATA / f"{name}.json")
    ids = [p for p in structure.graph.part_ids if p != 0]
    assert ids == list(range(1, bricks + 1))
    heights = {round(structure.part_poses()[p][2, 3] / 0.0096) for p in ids}
    assert heights == set(range(layers))
    assert len(structure.graph.component_ids) == 1
    assert structure.origins[1] == "field 1"


def test_the_weight():
    structure = read_structure(DATA / "external_weight_good.json")
    masses = [p.shape.mass for p in structure.graph.parts() if p.id]
    assert masses == [0.00216, 0.00216, 0.00216, 0.2]


def test_built_in_library_is_the_authors():
    assert read_library(DATA / "lego_library.json") == LIBRARY


@pytest.mark.parametrize(("ori", "along_x", "along_y"), [(0, 2, 6), (1, 6, 2)])
def test_orientation(ori, along_x, along_y):
    """ori 0: height (2) along x; ori 1: swapped."""
    data = {"1": BRICK | {"x": 4, "y": 7, "z": 1, "brick_id": 3, "ori": ori}}
    structure = parse_structure(json.dumps(data), baseplate=None)
    pose = structure.part_poses()[1]
    assert np.allclose(pose[:3, 3], [(4 + along_x / 2) * 8e-3, (7 + along_y / 2) * 8e-3, 9.6e-3])
    assert abs(pose[0, 0]) == pytest.approx(float(along_x > along_y))


def test_order_is_that_of_the_numbers():
    data = {"10": BRICK | {"z": 2}, "2": BRICK | {"z": 1}, "1": BRICK}
    structure = parse_structure(json.dumps(data))
    assert list(structure.graph.graph.nodes) == [0, 1, 2, 10]


def test_own_library(tmp_path):
    path = tmp_path / "library.json"
    path.write_text('{"77": {"height": 3, "width": 5, "mass": 0.01, "inventory": 4}}')
    data = json.dumps({"1": BRICK | {"brick_id": 77}})
    expected = BrickShape(5, 3, mass=0.01)
    assert parse_structure(data, library=path).graph.part(1).shape == expected
    types = {77: BrickType(3, 5, 0.01)}
    assert parse_structure(data, library=types).graph.part(1).shape == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"1": {"height": 2, "width": 4}}', "1.mass is missing"),
        ('{"1": {"height": 2, "width": 4, "mass": 0}}', "1.mass is 0, expected a positive mass"),
        ('{"1": {"height": 0, "width": 4, "mass": 1}}', "1.height is 0"),
        ('{"a": {"height": 2, "width": 4, "mass": 1}}', "field 'a'"),
        ("[]", r"top level is \[\], expected an object"),
        ("", "line 1 column 1: not JSON"),
    ],
)
def test_bad_library(tmp_path, text, message):
    path = tmp_path / "library.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        parse_structure(json.dumps({"1": BRICK}), library=path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"brick_id": 7}, r"2\.brick_id is 7, expected a type of the library: 1, 2, 3, 4, 5, 6, 9"),
        ({"brick_id": True}, r"2\.brick_id is true"),
        ({"ori": 2}, r"2\.ori is 2, expected an integer of 0 to 1"),
        ({"z": -1}, r"2\.z is -1"),
        ({"x": 1.0}, r"2\.x is 1\.0"),
        ({"y": 10**9}, r"2\.y is 1000000000"),
        ({"z": 0, "x": 1}, r"field 2: .* overlaps .* of field 1"),
    ],
)
def test_wrong_fields(change, message):
    data = {"1": BRICK, "2": BRICK | {"z": 1} | change}
    with pytest.raises(FormatError, match=message):
        parse_structure(json.dumps(data), name="task.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "holds no brick"),
        ('{"0": {}}', "field '0': expected a name like '1'"),
        ('{"01": {}}', "field '01'"),
        ('{"1": {}, "x": {}}', "field 'x'"),
        ('{"x": {}}', "cannot tell the format: a JSON object with the fields 'x'"),
        ('{"1": {"x": 0}}', r"1\.brick_id is missing"),
        ('{"1": 5}', "1 is 5, expected an object"),
    ],
)
def test_wrong_files(text, message):
    with pytest.raises(FormatError, match=message):
        parse_structure(text, name="task.json")
