# SPDX-License-Identifier: Apache-2.0
"""Markers follow RViz's rules: frames, lifetimes, ids, deletion, only changes."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
import yaml
from visualization_msgs.msg import Marker

from bricksim_core.formats import read_structure
from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH, BrickShape
from bricksim_msgs import msg
from bricksim_ros import conversions
from bricksim_ros.marker_builder import (
    FLASH_TIME,
    MarkerBuilder,
    MarkerOptions,
    level_color,
)
from bricksim_ros.meshes import mesh_file, mesh_folder, mesh_points

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"


@pytest.fixture
def topology() -> msg.BrickTopology:
    structure = read_structure(DATA / "bricksim" / "demo_assembly_structure1.json")
    head = conversions.header(conversions.time_message(2.0), "world")
    return conversions.topology_message(structure.graph, structure.part_poses(), (), 4, head)


def _utilization(
    topology: msg.BrickTopology, values: list[float]
) -> msg.ConnectionUtilizationArray:
    return msg.ConnectionUtilizationArray(
        header=topology.header,
        connection_ids=[c.id for c in topology.connections],
        utilization=values,
    )


def _check_rules(markers: list[Marker]) -> None:
    keys = [(m.ns, m.id) for m in markers]
    assert len(keys) == len(set(keys)), "a namespace and id occur twice in one array"
    for marker in markers:
        assert marker.header.frame_id
        assert marker.header.stamp.sec or marker.header.stamp.nanosec
        assert (marker.lifetime.sec, marker.lifetime.nanosec) == (0, 0)
        if marker.action == Marker.ADD:
            q = marker.pose.orientation
            assert math.isclose(q.x**2 + q.y**2 + q.z**2 + q.w**2, 1.0)
            assert min(marker.scale.x, marker.scale.y, marker.scale.z) > 0 or (
                marker.type == Marker.TEXT_VIEW_FACING and marker.scale.z > 0
            )
            assert marker.color.a > 0


def test_topology_gives_one_brick_and_one_sphere_each(topology: msg.BrickTopology) -> None:
    markers = MarkerBuilder(MarkerOptions()).set_topology(topology)
    _check_rules(markers)
    bricks = [m for m in markers if m.ns == "bricks"]
    assert {m.header.frame_id for m in bricks} == {f"brick_{i}" for i in range(5)}
    assert all(m.frame_locked and m.type == Marker.MESH_RESOURCE for m in bricks)
    assert sum(m.ns == "connections" for m in markers) == 4


def test_only_changes_are_sent(topology: msg.BrickTopology) -> None:
    builder = MarkerBuilder(MarkerOptions())
    builder.set_topology(topology)
    assert builder.set_topology(topology) == []
    first = builder.set_utilization(_utilization(topology, [0.1, 0.2, 0.3, 0.4]))
    assert len(first) == 4
    assert builder.set_utilization(_utilization(topology, [0.1001, 0.2, 0.3, 0.4])) == []
    changed = builder.set_utilization(_utilization(topology, [0.1, 0.2, 0.3, 0.9]))
    assert [m.id for m in changed] == [3]
    assert len(builder.all_markers()) == 9


def test_what_vanishes_is_deleted_and_nothing_else(topology: msg.BrickTopology) -> None:
    builder = MarkerBuilder(MarkerOptions())
    builder.set_topology(topology)
    topology.parts = list(topology.parts)[:4]
    topology.connections = [c for c in topology.connections if c.hole_part != 4]
    gone = builder.set_topology(topology)
    _check_rules(gone)
    assert {(m.ns, m.id, m.action) for m in gone} == {
        ("bricks", 4, Marker.DELETE),
        ("connections", 3, Marker.DELETE),
    }


def test_sphere_sits_at_the_overlap(topology: msg.BrickTopology) -> None:
    markers = MarkerBuilder(MarkerOptions()).set_topology(topology)
    sphere = next(m for m in markers if (m.ns, m.id) == ("connections", 3))
    # Connection 3 engages a 1x2 column of the 2x6 brick 3 with offset (1, 0): studs x 1..2, y 0..2.
    p = sphere.pose.position
    assert sphere.header.frame_id == "brick_3"
    assert (p.x, p.y, p.z) == pytest.approx(
        ((1.5 - 1.0) * STUD_PITCH, (1.0 - 3.0) * STUD_PITCH, 3 * PLATE_HEIGHT)
    )


def test_broken_connection_flashes_and_goes(topology: msg.BrickTopology) -> None:
    builder = MarkerBuilder(MarkerOptions())
    builder.set_topology(topology)
    event = msg.ConnectionEvent(
        header=topology.header,
        kind="broken",
        cause="overload",
        connection=next(iter(topology.connections)),
    )
    event.pose.orientation.w = 1.0
    (first,) = builder.add_event(event)
    assert (first.ns, first.header.frame_id) == ("broken", "world")
    colors = []
    for step in range(60):
        for marker in builder.advance(2.0 + step / 60 * FLASH_TIME * 0.99):
            colors.append(marker.color.g)
    assert 0.0 in colors and 1.0 in colors
    (last,) = builder.advance(2.0 + FLASH_TIME)
    assert last.action == Marker.DELETE
    assert builder.advance(3.0 + FLASH_TIME) == []


def test_labels_on_demand(topology: msg.BrickTopology) -> None:
    builder = MarkerBuilder(MarkerOptions(labels=True))
    markers = builder.set_topology(topology)
    assert sorted(m.text for m in markers if m.ns == "labels") == list("01234")
    gone = builder.set_options(MarkerOptions(labels=False), topology.header)
    assert {(m.ns, m.action) for m in gone} == {("labels", Marker.DELETE)}


def test_colour_scale_runs_from_green_to_red() -> None:
    assert (level_color(0).r, level_color(0).g) == (0.0, 1.0)
    assert (level_color(20).r, level_color(20).g) == (1.0, 0.0)
    unknown = level_color(-1)
    assert unknown.r == unknown.g == unknown.b


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Mesh files go where nobody else looks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_bricks_name_mesh_files_that_are_there(cache: Path, topology: msg.BrickTopology) -> None:
    """RViz does not draw what is embedded in markers: it has to find files."""
    builder = MarkerBuilder(MarkerOptions())
    bricks = [m for m in builder.set_topology(topology) if m.ns == "bricks"]
    assert len(bricks) == 5
    for marker in bricks:
        assert marker.type == Marker.MESH_RESOURCE and not marker.mesh_file.data
        path = Path(marker.mesh_resource.removeprefix("file://"))
        assert path.parent == mesh_folder() == cache / "bricksim" / "meshes"
        shape = next(p for p in topology.parts if p.id == marker.id)
        expected = mesh_file(BrickShape(shape.length, shape.width, shape.height))
        assert (path.name, path.read_bytes()) == expected
    again = MarkerBuilder(MarkerOptions()).set_topology(topology)
    assert [m.mesh_resource for m in again if m.ns == "bricks"] == [m.mesh_resource for m in bricks]


@pytest.mark.parametrize("asked", [True, False])
def test_bricks_carry_triangles_where_files_cannot_be_read(
    asked: bool, tmp_path: Path, topology: msg.BrickTopology
) -> None:
    """Asked for, or because there is a file where the folder has to be."""
    (tmp_path / "taken").write_text("a file")
    folder = None if asked else tmp_path / "taken" / "meshes"
    options = MarkerOptions(mesh_files=not asked, mesh_folder=folder)
    markers = MarkerBuilder(options).set_topology(topology)
    _check_rules(markers)
    for marker in markers:
        if marker.ns == "bricks":
            assert marker.type == Marker.TRIANGLE_LIST and not marker.mesh_resource
            assert len(marker.points) % 3 == 0


def test_options_exchange_files_for_triangles(topology: msg.BrickTopology) -> None:
    builder = MarkerBuilder(MarkerOptions(connections=False))
    builder.set_topology(topology)
    sent = builder.set_options(MarkerOptions(connections=False, mesh_files=False), topology.header)
    assert [m.type for m in sent] == [Marker.TRIANGLE_LIST] * 5


@pytest.mark.parametrize(
    "shape", [BrickShape(4, 2), BrickShape(1, 1, 1), BrickShape(2, 2, 1, False)]
)
def test_triangles_enclose_the_brick(shape: BrickShape) -> None:
    corners = np.array([(p.x, p.y, p.z) for p in mesh_points(shape)]).reshape(-1, 3, 3)
    assert len(corners) < 20 * shape.length * shape.width + 13
    extent = np.ptp(corners.reshape(-1, 3), axis=0)
    top = shape.size[2] + STUD_HEIGHT * shape.has_studs
    assert extent == pytest.approx([*np.array(shape.size[:2]), top], abs=4e-4)
    volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    prism = 3 * math.sin(math.pi / 3) * 0.0024**2 * STUD_HEIGHT
    studs = shape.length * shape.width * prism * shape.has_studs
    # Studs are open below: their undersides are in the top face.
    assert volume == pytest.approx(math.prod(shape.size) + studs, rel=0.12)


def test_mesh_is_a_closed_stl_of_the_right_size() -> None:
    name, data = mesh_file(BrickShape(4, 2))
    assert name.startswith("brick_4x2x3_") and name.endswith(".stl")
    (count,) = struct.unpack_from("<I", data, 80)
    assert len(data) == 84 + 50 * count
    record = np.dtype([("v", "<f4", (4, 3)), ("a", "<u2")])
    triangles = np.frombuffer(data, record, offset=84)["v"][:, 1:].astype(float)
    extent = np.ptp(triangles.reshape(-1, 3), axis=0)
    assert extent == pytest.approx([0.032, 0.016, 3 * PLATE_HEIGHT + STUD_HEIGHT], abs=4e-4)
    # Outward normals: the signed volume is that of body and eight studs, within the visual gap.
    volume = np.einsum("ij,ij->i", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2]))
    expected = 0.032 * 0.016 * 0.0096 + 8 * math.pi * 0.0024**2 * STUD_HEIGHT
    assert volume.sum() / 6 == pytest.approx(expected, rel=0.06)


def test_the_rviz_configuration_shows_topics_that_exist() -> None:
    file = Path(__file__).parents[2] / "config" / "bricksim.rviz"
    displays = yaml.safe_load(file.read_text())["Visualization Manager"]["Displays"]
    shown = {d["Class"].rpartition("/")[2]: d for d in displays if d["Enabled"]}
    assert {"MarkerArray", "RobotModel", "TF"} <= set(shown)
    assert shown["MarkerArray"]["Topic"]["Value"] == "bricksim/markers"
    assert shown["RobotModel"]["Description Topic"]["Value"] == "robot_description"
    for topic in (shown["MarkerArray"]["Topic"], shown["RobotModel"]["Description Topic"]):
        assert topic["Durability Policy"] == "Transient Local"
