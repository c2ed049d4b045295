# SPDX-License-Identifier: Apache-2.0
"""Read, write, read again: nothing changes, for random structures in every format."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bricksim_core.errors import FormatError
from bricksim_core.formats import format_structure, parse_structure, read_structure, write_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform

FILES = sorted((Path(__file__).parent / "data").glob("*/*.*"))
STRUCTURES = [p for p in FILES if p.name not in ("test_collision.txt", "lego_library.json")]

sides = st.integers(1, 4)
cells = st.integers(0, 9)


@st.composite
def bricks(draw):
    """Bricks (h, w, x, y, layer) without overlap, in any order, floating ones included."""
    taken, result = set(), []
    for h, w, x, y, z in draw(
        st.lists(st.tuples(sides, sides, cells, cells, st.integers(0, 4)), min_size=1, max_size=12)
    ):
        own = {(i, j, z) for i in range(x, x + h) for j in range(y, y + w)}
        if not own & taken:
            taken |= own
            result.append((h, w, x, y, z))
    return result


def same(a, b, atol=0.0):
    """Equal parts, connections, poses and order; ids as well."""
    assert list(a.graph.graph.nodes) == list(b.graph.graph.nodes)
    assert list(a.graph.parts()) == list(b.graph.parts())
    assert list(a.graph.connections.values()) == list(b.graph.connections.values())
    assert a.fixed == b.fixed and a.ground == b.ground
    poses_a, poses_b = a.part_poses(), b.part_poses()
    assert all(np.allclose(poses_a[p], poses_b[p], rtol=0.0, atol=atol) for p in poses_a)


@settings(deadline=None, max_examples=60)
@given(bricks(), st.sampled_from(["auto", None, (12, 14)]))
def test_text(entries, baseplate):
    text = "".join(f"{h}x{w} ({x},{y},{z})\n" for h, w, x, y, z in entries)
    structure = parse_structure(text, baseplate=baseplate)
    assert format_structure(structure, "text") == text


@st.composite
def topologies(draw):
    """Topology JSON of random stacks: any ids, order, colours, hints, tiles, masses."""
    count = draw(st.integers(1, 8))
    ids = draw(st.lists(st.integers(-9, 99), min_size=count, max_size=count, unique=True))
    channel = st.integers(0, 255)
    parts = []
    for part_id in ids:
        payload = {k: draw(st.integers(1, 6)) for k in "LWH"}
        part = {
            "id": part_id,
            "type": "brick",
            "payload": payload | {"color": [draw(channel) for _ in range(3)]},
        }
        extension = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "studs": st.just(False),
                    "mass": st.floats(1e-5, 10.0),
                    "fixed": st.just(True),
                },
            )
        )
        shape = BrickShape(payload["L"], payload["W"], payload["H"])
        if extension.get("mass") == shape.mass:
            del extension["mass"]
        if extension:
            part["bricksim_ros"] = extension
        parts.append(part)
    data = {"schema": "bricksim/lego_topology@2", "parts": parts, "connections": []}
    connection_ids = draw(st.permutations(range(50)))
    for connection_id in connection_ids[: draw(st.integers(0, 8))]:
        stud, hole = draw(st.sampled_from(ids)), draw(st.sampled_from(ids))
        attempt = {
            "id": connection_id,
            "stud_id": stud,
            "stud_iface": 1,
            "hole_id": hole,
            "hole_iface": 0,
            "offset": [draw(st.integers(-3, 3)), draw(st.integers(-3, 3))],
            "yaw": draw(st.integers(0, 3)),
        }
        trial = data | {"connections": [*data["connections"], attempt]}
        try:
            parse_structure(json.dumps(trial), strict=True)
        except FormatError:
            continue
        data = trial
    graph = parse_structure(json.dumps(data)).graph
    metres = st.floats(-1.0, 1.0)
    hints = []
    for component in draw(st.permutations(graph.component_ids)):
        if draw(st.booleans()):
            q = np.array([draw(st.floats(-1, 1)) for _ in range(4)])
            q = q / np.linalg.norm(q) if np.linalg.norm(q) > 0.1 else np.array([1.0, 0, 0, 0])
            part_id = draw(st.sampled_from(graph.component_parts(component)))
            position = [draw(metres) for _ in range(3)]
            hints.append({"part": part_id, "pos": position, "rot": q.tolist()})
    return data | {"pose_hints": hints}


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(topologies())
def test_topology_json(data):
    """The JSON objects are equal: ids, order, colours, offsets, hints to the last bit."""
    structure = parse_structure(json.dumps(data), strict=True)
    text = format_structure(structure, "topology")
    assert json.loads(text) == data
    same(structure, parse_structure(text))


@settings(deadline=None, max_examples=40)
@given(topologies(), st.integers(0, 2**32 - 1))
def test_topology_json_of_moved_components(data, seed):
    """Poses that no hint states are written too, to 1e-11."""
    structure = parse_structure(json.dumps(data))
    rng = np.random.default_rng(seed)
    for component in structure.graph.component_ids:
        structure.component_poses[component] = transform(rng.normal(size=3), rng.normal(size=4))
    text = format_structure(structure, "topology")
    again = parse_structure(text)
    same(structure, again, atol=1e-11)
    assert format_structure(again, "topology") == text


def corners(structure, part_id):
    """Extent of a part's body in the world: LDraw turns parts so that they are long in x."""
    pose, size = structure.part_poses()[part_id], structure.graph.part(part_id).shape.size
    half = np.abs(pose[:3, :3] @ np.diag(size)).sum(axis=1) / 2
    centre = pose[:3, 3] + pose[:3, 2] * size[2] / 2
    return np.array([centre - half, centre + half])


@settings(deadline=None, max_examples=60)
@given(bricks(), st.sampled_from(["auto", None]))
def test_ldraw(entries, baseplate):
    """Against the text format, then to itself: parts, colours, poses and connections."""
    text = "".join(f"{h}x{w} ({x},{y},{z})\n" for h, w, x, y, z in entries)
    source = parse_structure(text, baseplate=baseplate)
    written = format_structure(source, "ldraw")
    read = parse_structure(written, strict=True)
    new_id = dict(zip(source.graph.graph.nodes, read.graph.graph.nodes, strict=True))
    for old, new in new_id.items():
        assert source.graph.part(old).color == read.graph.part(new).color
        assert np.allclose(corners(source, old), corners(read, new), atol=1e-12)
    assert {(c.stud_part, c.hole_part) for c in read.graph.connections.values()} == {
        (new_id[c.stud_part], new_id[c.hole_part]) for c in source.graph.connections.values()
    }
    assert format_structure(read, "ldraw") == written
    same(read, parse_structure(written))


@settings(deadline=None, max_examples=30)
@given(bricks(), st.integers(0, 2**32 - 1))
def test_ldraw_at_any_pose(entries, seed):
    """A tilted component survives to the nanometre that the written decimals leave."""
    text = "".join(f"{h}x{w} ({x},{y},{z})\n" for h, w, x, y, z in entries)
    source = parse_structure(text, baseplate=None)
    rng = np.random.default_rng(seed)
    pose = transform(rng.normal(size=3), rng.normal(size=4))
    for component in source.graph.component_ids:
        source.component_poses[component] = pose
    read = parse_structure(format_structure(source, "ldraw"), strict=True)
    for part_id, expected in source.part_poses().items():
        assert np.allclose(read.part_poses()[part_id], expected, atol=2e-9)
    assert len(read.graph.component_ids) == len(source.graph.component_ids)
    again = parse_structure(format_structure(read, "ldraw"))
    same(read, again, atol=2e-9)


@pytest.mark.parametrize("path", STRUCTURES, ids=lambda p: p.stem)
@pytest.mark.parametrize("suffix", [".json", ".ldr"])
def test_every_file_through_every_format(path, suffix, tmp_path):
    structure = read_structure(path)
    write_structure(structure, tmp_path / f"a{suffix}")
    read = read_structure(tmp_path / f"a{suffix}", strict=True)
    if suffix == ".json":
        same(structure, read, atol=1e-12)
    assert len(read.graph) == len(structure.graph)
    assert len(read.graph.connections) == len(structure.graph.connections)
    assert sorted(p.shape.mass for p in read.graph.parts()) == sorted(
        p.shape.mass for p in structure.graph.parts()
    )
    write_structure(read, tmp_path / f"b{suffix}")
    first, second = ((tmp_path / f"{n}{suffix}").read_text().splitlines() for n in "ab")
    titles = 3 if suffix == ".ldr" else 0  # an LDraw file says its own name
    assert second[titles:] == first[titles:]
