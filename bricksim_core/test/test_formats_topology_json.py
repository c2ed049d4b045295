# SPDX-License-Identifier: Apache-2.0
"""Topology JSON against BrickSim's demo file, its stated poses, every kind of wrong field."""

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import FormatError, StructureError
from bricksim_core.formats import check_supported, format_structure, parse_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import quaternion_of, transform

DEMO = Path(__file__).parent / "data/bricksim/demo_assembly_structure1.json"


@pytest.fixture
def demo():
    return json.loads(DEMO.read_text())


def parse(data, **options):
    return parse_structure(json.dumps(data), name="file.json", **options)


def test_demo_poses():
    """Positions [m] and yaws of the parts in the plate's frame, stated for BrickSim's demo."""
    structure = read_structure(DEMO)
    expected = {
        0: ((0, 0, 0), 0),
        1: ((-0.024, -0.008, 0.0032), 90),
        2: ((-0.040, -0.008, 0.0128), 90),
        3: ((-0.048, -0.008, 0.0224), 90),
        4: ((-0.032, 0.000, 0.0320), 90),
    }
    for part_id, pose in structure.part_poses().items():
        position, yaw = expected[part_id]
        assert np.allclose(pose[:3, 3], position, atol=1e-12)
        assert np.allclose(pose[:2, 0], (np.cos(np.radians(yaw)), np.sin(np.radians(yaw))))
    assert structure.name == "demo_assembly_structure1"
    assert structure.graph.part(1).shape == BrickShape(2, 4, 3)
    assert structure.graph.part(3).color == (252, 151, 172)
    assert structure.origins[3] == "parts[3]"
    assert structure.fixed == frozenset()


def test_demo_is_written_byte_for_byte():
    assert format_structure(read_structure(DEMO), "topology") == DEMO.read_text()


@pytest.mark.parametrize("yaw", range(-5, 9))
def test_yaw_is_taken_modulo_a_turn(demo, yaw):
    """Part 2 onto part 1 at any yaw: pose by the schema's formula."""
    demo["connections"] = [demo["connections"][0] | {"yaw": yaw, "offset": [1, 2]}]
    demo["pose_hints"] = [{"part": 1, "pos": [0, 0, 0], "rot": [1, 0, 0, 0]}]
    pose = parse(demo).part_poses()[2]
    k = yaw % 4
    r = np.array([[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]])[k]
    xy = np.array([-8, -16]) + np.array([8, 16]) - r @ np.array([-8, -16])
    assert np.allclose(pose[:3, 3] * 1e3, [*xy, 9.6])
    quaternions = [
        (0, 0, 0, 1),
        (0, 0, 0.5**0.5, 0.5**0.5),
        (0, 0, 1, 0),
        (0, 0, -(0.5**0.5), 0.5**0.5),
    ]
    assert np.allclose(pose, transform(pose[:3, 3], quaternions[k]))


def test_hint_of_any_part_places_the_component(demo):
    position, rotation = [0.3, -0.2, 0.1], [0.5, 0.5, -0.5, 0.5]
    demo["pose_hints"] = [{"part": 3, "pos": position, "rot": rotation}]
    structure = parse(demo)
    pose = structure.part_poses()[3]
    assert np.allclose(pose[:3, 3], position)
    assert np.allclose(quaternion_of(pose), [0.5, -0.5, 0.5, 0.5])
    assert json.loads(format_structure(structure, "topology")) == demo


def test_last_hint_wins(demo):
    demo["pose_hints"] = [
        {"part": 0, "pos": [9, 9, 9], "rot": [1, 0, 0, 0]},
        {"part": 1, "pos": [1, 2, 3], "rot": [1, 0, 0, 0]},
    ]
    structure = parse(demo)
    assert np.allclose(structure.part_poses()[1][:3, 3], [1, 2, 3])
    assert structure.skipped == ["pose_hints[0]: pose_hints[1] places the same component"]
    demo["pose_hints"] += [{"part": 0, "pos": [0, 0, z], "rot": [1, 0, 0, 0]} for z in range(3)]
    (line,) = parse(demo).skipped
    assert line == "pose_hints[0]: pose_hints[1] places the same component, and 3 more like it"


def test_without_hints_the_first_part_is_at_the_origin(demo):
    del demo["pose_hints"], demo["connections"]
    demo["parts"].reverse()
    structure = parse(demo)
    assert all(np.array_equal(p, np.eye(4)) for p in structure.part_poses().values())
    written = json.loads(format_structure(structure, "topology"))
    assert written == demo | {"connections": [], "pose_hints": []}


def test_moved_component_is_written_at_its_new_pose(demo):
    structure = parse(demo)
    (component,) = structure.graph.component_ids
    move = transform([0.1, 0.2, 0.3], [0, 0, 0.6, 0.8])
    structure.component_poses[component] = move @ structure.component_poses[component]
    again = parse_structure(format_structure(structure, "topology"))
    for part_id, pose in structure.part_poses().items():
        assert np.allclose(again.part_poses()[part_id], pose, atol=1e-11)


def test_extension_keeps_tiles_masses_and_fixed_parts(demo):
    demo["parts"][4]["bricksim_ros"] = {"studs": False, "mass": 0.2}
    demo["parts"][0]["bricksim_ros"] = {"fixed": True}
    demo["bricksim_ros"] = {"ground": 0.0032}
    structure = parse(demo)
    assert structure.graph.part(4).shape == BrickShape(2, 2, 3, has_studs=False, mass=0.2)
    assert structure.fixed == {0} and structure.ground == 0.0032
    assert json.loads(format_structure(structure, "topology")) == demo


def test_unknown_keys_do_not_matter(demo):
    expected = format_structure(parse(demo), "topology")
    demo["more"] = demo["parts"][0]["more"] = demo["connections"][0]["more"] = {"x": None}
    assert format_structure(parse(demo), "topology") == expected


def test_unknown_part_types_are_left_out_with_what_refers_to_them(demo):
    demo["parts"][4]["type"] = "gear"
    demo["pose_hints"].append({"part": 4, "pos": [0, 0, 0], "rot": [1, 0, 0, 0]})
    structure = parse(demo)
    assert structure.graph.part_ids == [0, 1, 2, 3]
    assert [line.split(":")[0] for line in structure.skipped] == [
        "parts[4]", "connections[3]", "pose_hints[1]",
    ]  # fmt: skip
    with pytest.raises(FormatError, match=r"parts\[4\]: type is 'gear'"):
        parse(demo, strict=True)


@pytest.mark.parametrize("change", ["no overlap", "repeated"])
def test_harmless_connections_are_left_out(demo, change):
    extra = dict(demo["connections"][1], id=9)
    if change == "no overlap":
        demo["connections"][3]["offset"] = [2, 0]
    else:
        demo["connections"].append(extra)
    structure = parse(demo)
    assert len(structure.graph.connections) == (3 if change == "no overlap" else 4)
    place = "connections[3]" if change == "no overlap" else "connections[4]"
    assert structure.skipped[0].startswith(place)
    with pytest.raises(FormatError, match=place.replace("[", r"\[").replace("]", r"\]")):
        parse(demo, strict=True)


def edit(data, path, value):
    """The data with the value at a path like parts.1.payload.L; Ellipsis deletes it."""
    data = copy.deepcopy(data)
    *parents, last = path.split(".")
    entry = data
    for key in parents:
        entry = entry[int(key) if key.isdigit() else key]
    key = int(last) if last.isdigit() else last
    if value is ...:
        del entry[key]
    else:
        entry[key] = value
    return data


BAD_INTEGERS = [0, -1, 1025, 2.0, 2.5, True, None, "2", [2], 10**400]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", ..., "schema is missing"),
        ("schema", "bricksim/lego_topology@3", "schema is 'bricksim/lego_topology@3', expected"),
        ("parts", {}, "parts is an object of 0 fields, expected an array"),
        ("parts.1", 5, r"parts\[1\] is 5, expected an object"),
        ("parts.1.id", ..., r"parts\[1\]\.id is missing"),
        ("parts.1.id", 0, r"parts\[1\]\.id is 0, expected a new id; parts\[0\] has it"),
        ("parts.1.id", True, r"parts\[1\]\.id is true"),
        ("parts.1.id", 2**64, r"parts\[1\]\.id is 18446744073709551616"),
        ("parts.1.type", 7, r"parts\[1\]\.type is 7, expected a string"),
        ("parts.1.payload", None, r"parts\[1\]\.payload is null, expected an object"),
        *(("parts.3.payload.L", v, r"parts\[3\]\.payload\.L is .*, expected an integer of 1 to")
          for v in BAD_INTEGERS),
        ("parts.3.payload.W", 0, r"parts\[3\]\.payload\.W is 0"),
        ("parts.3.payload.H", -3, r"parts\[3\]\.payload\.H is -3"),
        ("parts.3.payload.color", [1, 2], r"color is \[1, 2\], expected an array of 3"),
        ("parts.3.payload.color.1", 256, r"color\[1\] is 256, expected an integer of 0 to 255"),
        ("parts.3.bricksim_ros", {"mass": 0}, r"parts\[3\]: mass is 0"),
        ("parts.3.bricksim_ros", {"mass": "1"}, r"bricksim_ros\.mass is '1', expected a number"),
        ("parts.3.bricksim_ros", {"studs": 0}, r"bricksim_ros\.studs is 0, expected true or false"),
        ("parts.3.bricksim_ros", {"fixed": 1}, r"bricksim_ros\.fixed is 1, expected true or false"),
        ("connections.0.id", 1, r"connections\[1\]\.id is 1, expected a new id; connections\[0\]"),
        ("connections.0.stud_id", 77, r"connections\[0\]\.stud_id is 77, expected the id of one"),
        ("connections.0.hole_id", "2", r"connections\[0\]\.hole_id is '2'"),
        ("connections.0.stud_iface", 0, r"connections\[0\]\.stud_iface is 0, expected 1"),
        ("connections.0.hole_iface", 1, r"connections\[0\]\.hole_iface is 1, expected 0"),
        ("connections.0.offset", [0.0, 2], r"connections\[0\]\.offset\[0\] is 0\.0"),
        ("connections.0.offset", [0, 10**30], r"connections\[0\]\.offset\[1\]"),
        ("connections.0.yaw", 0.5, r"connections\[0\]\.yaw is 0\.5"),
        ("connections.0.stud_id", 2, r"connections\[0\]: .* connects a part with itself"),
        ("parts.1.bricksim_ros", {"studs": False}, r"connections\[0\]: .* has no studs"),
        ("pose_hints.0.part", 77, r"pose_hints\[0\]\.part is 77"),
        ("pose_hints.0.pos", [0, 0], r"pose_hints\[0\]\.pos is \[0, 0\], expected an array of 3"),
        ("pose_hints.0.pos.2", 1e300, r"pose_hints\[0\]\.pos\[2\] is 1e\+300"),
        ("pose_hints.0.pos.2", True, r"pose_hints\[0\]\.pos\[2\] is true, expected a number"),
        ("pose_hints.0.rot", [0, 0, 0, 0], r"hints\[0\]\.rot is .*, expected a unit quaternion"),
        ("pose_hints.0.rot", [1, 1, 0, 0], r"pose_hints\[0\]\.rot"),
        ("bricksim_ros", {"ground": None}, r"bricksim_ros\.ground is null, expected a number"),
        ("bricksim_ros", [], r"bricksim_ros is \[\], expected an object"),
    ],
)  # fmt: skip
def test_wrong_fields(demo, path, value, message):
    with pytest.raises(FormatError, match=message) as error:
        parse(edit(demo, path, value))
    assert str(error.value).startswith("file.json: ")
    assert len(str(error.value)) < 500


def test_a_number_that_no_float_holds_is_named_with_its_field(demo):
    text = json.dumps(edit(demo, "pose_hints.0.pos.2", "LARGE")).replace('"LARGE"', "1e999")
    message = r"pose_hints\[0\]\.pos\[2\] is beyond 1\.8e308 in size, expected a number of at most"
    with pytest.raises(FormatError, match=message):
        parse_structure(text, name="file.json")


def test_contradicting_connection(demo):
    """A fifth connection that puts part 4 elsewhere than the chain 0-1-2-3-4 does."""
    extra = dict(demo["connections"][0], id=9, stud_id=4, hole_id=2, offset=[0, 0])
    demo["connections"].append(extra)
    with pytest.raises(FormatError, match=r"connections\[4\]: .* path 4 - 3 - 2 implies"):
        parse(demo)


def test_repeated_pair_with_another_offset(demo):
    demo["connections"].append(dict(demo["connections"][0], id=9, offset=[0, 1]))
    message = r"connections\[4\]: .* connection 0 with offset \[0, 2\] and yaw 0, got \[0, 1\]"
    with pytest.raises(FormatError, match=message):
        parse(demo)


def test_colliding_parts(demo):
    """Part 4 onto the plate where part 1 stands."""
    demo["connections"][3] |= {"stud_id": 0, "offset": [8, 8]}
    with pytest.raises(FormatError, match=r"connections\[3\]: .* would put part 4 into part 1"):
        parse(demo)


def test_errors_tell_what_was_left_out(demo):
    """A contradiction, or a floating part, may come from what the reader did not know."""
    unknown = dict(demo["parts"][3], type="gear")
    demo["parts"][3] = unknown
    structure = parse(demo)
    with pytest.raises(StructureError, match=r"\(left out: parts\[3\]: type is 'gear'.*and 1 more"):
        check_supported(dataclasses.replace(structure, skipped=[*structure.skipped * 3][:6]))
    demo["connections"][0]["yaw"] = 0.5
    with pytest.raises(FormatError, match=r"yaw is 0\.5, .* \(left out: parts\[3\]: type"):
        parse(demo)


def test_a_repeated_connection_does_not_change_what_is_read(demo):
    """One by one gives the same graph as all at once."""
    expected = parse(demo)
    demo["connections"].append(dict(demo["connections"][0], id=9))
    again = parse(demo)
    assert len(again.skipped) == 1 and "already connected" in again.skipped[0]
    assert again.graph.component_ids == expected.graph.component_ids
    for component in again.graph.component_ids:
        ours, theirs = again.graph.layout(component), expected.graph.layout(component)
        assert np.array_equal(ours.grids, theirs.grids)
        assert np.array_equal(ours.connection_ids, theirs.connection_ids)
