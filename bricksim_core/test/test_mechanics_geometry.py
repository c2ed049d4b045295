# SPDX-License-Identifier: Apache-2.0
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.mechanics.geometry import (
    GROUND,
    Holder,
    Place,
    face_contacts,
    stud_contacts,
)
from bricksim_core.parts import BRICK_HEIGHT, PLATE_HEIGHT, STUD_PITCH, STUD_RADIUS, BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout

P, H = STUD_PITCH, PLATE_HEIGHT


def stack(lower: BrickShape, upper: BrickShape, offset=(0, 0), yaw=0) -> ComponentLayout:
    graph = BrickTopologyGraph()
    a, b = graph.add_part(lower), graph.add_part(upper)
    graph.connect(a, b, offset, yaw)
    return graph.layout(graph.component_of(a))


def loose(boxes_: list[tuple[int, int, int, int, int, int]]) -> ComponentLayout:
    """A layout of unconnected boxes (x0, y0, z0, x1, y1, z1)."""
    none = np.zeros(0, dtype=np.int64)
    return ComponentLayout(
        part_ids=np.arange(len(boxes_)),
        shapes=tuple(BrickShape(x1 - x0, y1 - y0, z1 - z0) for x0, y0, z0, x1, y1, z1 in boxes_),
        grids=np.array([(x0, y0, z0, 0) for x0, y0, z0, *_ in boxes_], dtype=np.int64),
        connection_ids=none,
        stud_index=none,
        hole_index=none,
        offsets=np.zeros((0, 2), dtype=np.int64),
        yaws=none,
    )


def test_stacked_faces_touch_only_where_both_bricks_are():
    contacts = face_contacts(stack(BrickShape(4, 2), BrickShape(4, 2, 1), offset=(3, 1)))
    assert contacts.part_a.tolist() == [0] and contacts.part_b.tolist() == [1]
    assert contacts.normal.tolist() == [[0.0, 0.0, 1.0]]
    corners = {tuple(v) for v in np.round(contacts.vertices[0], 9).tolist()}
    z = round(BRICK_HEIGHT, 9)
    expected = {(round(x * P, 9), round(y * P, 9), z) for x in (3, 4) for y in (1, 2)}
    assert corners == expected


def test_neighbours_touch_over_their_common_height_only():
    # A plate beside a brick that starts one plate lower.
    contacts = face_contacts(loose([(0, 0, 0, 2, 2, 3), (2, 1, 1, 3, 5, 2)]))
    assert (contacts.part_a[0], contacts.part_b[0], contacts.axis[0]) == (0, 1, 0)
    expected = {(2 * P, y * P, z * H) for y in (1, 2) for z in (1, 2)}
    assert {tuple(v) for v in contacts.vertices[0].tolist()} == expected


def test_a_tile_carries_a_brick_that_nothing_connects():
    graph = BrickTopologyGraph()
    plate = graph.add_part(BrickShape(6, 2, 1))
    tile = graph.add_part(BrickShape(2, 2, 1, has_studs=False))
    plate_2 = graph.add_part(BrickShape(2, 2, 1))
    bridge = graph.add_part(BrickShape(4, 2, 1))
    graph.connect(plate, tile, (0, 0), 0)
    graph.connect(plate, plate_2, (2, 0), 0)
    graph.connect(plate_2, bridge, (-2, 0), 0)
    layout = graph.layout(graph.component_of(plate))
    contacts = face_contacts(layout)
    pairs = set(zip(contacts.part_a.tolist(), contacts.part_b.tolist(), strict=True))
    assert (tile, bridge) in pairs
    joined = set(zip(layout.stud_index.tolist(), layout.hole_index.tolist(), strict=True))
    assert (tile, bridge) not in joined


def test_faces_that_share_an_edge_or_a_corner_do_not_touch():
    assert len(face_contacts(loose([(0, 0, 0, 1, 1, 1), (1, 1, 0, 2, 2, 1)]))) == 0
    assert len(face_contacts(loose([(0, 0, 0, 1, 1, 1), (1, 1, 1, 2, 2, 2)]))) == 0


def test_the_ground_touches_the_bottom_faces_in_its_plane():
    layout = loose([(0, 0, 0, 2, 2, 1), (5, 0, 1, 6, 3, 2)])
    contacts = face_contacts(layout, ground=H)
    assert contacts.part_a.tolist() == [GROUND] and contacts.part_b.tolist() == [1]
    assert contacts.normal[0].tolist() == [0.0, 0.0, 1.0]
    assert np.all(contacts.vertices[0][:, 2] == H)
    assert np.ptp(contacts.vertices[0], axis=0) == pytest.approx([P, 3 * P, 0.0])
    assert len(face_contacts(layout, ground=-1.0)) == 0


@st.composite
def packed_boxes(draw):
    found: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(1, 14))):
        low = [draw(st.integers(-4, 4)) for _ in range(3)]
        size = [draw(st.integers(1, 4)) for _ in range(3)]
        box = (*low, *(a + b for a, b in zip(low, size, strict=True)))
        if all(any(box[i] >= o[i + 3] or o[i] >= box[i + 3] for i in range(3)) for o in found):
            found.append(box)
    return found


@settings(max_examples=150, deadline=None)
@given(packed_boxes())
def test_faces_equal_those_found_cell_by_cell(packed):
    """Truth: count unit faces between neighbouring cells of different boxes."""
    layout = loose(packed)
    owner = {}
    for k, (low, high) in enumerate(layout.boxes.tolist()):
        for cell in itertools.product(*(range(a, b) for a, b in zip(low, high, strict=True))):
            owner[cell] = k
    expected: dict[tuple[int, int, int], int] = {}
    for cell, a in owner.items():
        for axis in range(3):
            beyond = tuple(c + (i == axis) for i, c in enumerate(cell))
            b = owner.get(beyond, a)
            if b != a:
                expected[a, b, axis] = expected.get((a, b, axis), 0) + 1
    contacts = face_contacts(layout)
    found = {}
    for a, b, axis, quad in zip(
        contacts.part_a.tolist(),
        contacts.part_b.tolist(),
        contacts.axis.tolist(),
        contacts.vertices / [P, P, H],
        strict=True,
    ):
        area = np.linalg.norm(np.cross(quad[1] - quad[0], quad[3] - quad[0]))
        found[a, b, axis] = round(float(area))
        assert np.cross(quad[1] - quad[0], quad[3] - quad[0])[axis] > 0.0
    assert found == expected


# Contact points of a fully engaged brick (reference: 0.7 N each gives the pull-off capacity).
@pytest.mark.parametrize(
    ("length", "width", "points"),
    [(1, 1, 4), (2, 1, 8), (4, 1, 16), (6, 1, 24), (8, 1, 32), (2, 2, 12), (4, 2, 24), (6, 2, 36)],
)
def test_number_of_contact_points_by_size(length, width, points):
    for yaw in range(4):
        layout = stack(BrickShape(20, 20, 1), BrickShape(length, width), (9, 9), yaw)
        assert stud_contacts(layout).counts.tolist() == [points]


def test_points_lie_on_the_studs_at_the_stud_plane():
    layout = stack(BrickShape(8, 8, 1), BrickShape(4, 3), (2, 3), 1)
    studs = stud_contacts(layout)
    centre = studs.centre[0]
    assert centre == pytest.approx([P, 5 * P, H])  # cells x -1..1, clipped to 0..1, y 3..6
    offset = (studs.position - [0.5 * P, 0.5 * P, H]) / P
    radial = offset - np.round(offset)
    assert np.linalg.norm(radial, axis=1) * P == pytest.approx(np.full(len(radial), STUD_RADIUS))
    assert radial * P + studs.normal * STUD_RADIUS == pytest.approx(np.zeros_like(radial))
    assert studs.tangent == pytest.approx(np.cross([0, 0, 1], studs.normal))


def test_what_holds_a_stud_depends_on_its_place_in_the_hole_brick():
    studs = stud_contacts(stack(BrickShape(9, 9, 1), BrickShape(3, 3), (3, 3)))
    by_place = {
        place: sorted(studs.holder[studs.place == place].tolist())
        for place in (Place.CORNER, Place.EDGE, Place.INTERIOR)
    }
    wall, tube = Holder.WALL, Holder.TUBE
    assert by_place[Place.CORNER] == [wall] * 8 + [tube] * 4
    assert by_place[Place.EDGE] == [wall] * 4 + [tube] * 8
    assert by_place[Place.INTERIOR] == [tube] * 4
    # Walls press inwards from outside, tubes from inside.
    walls = studs.holder == wall
    outward = np.einsum("ij,ij->i", studs.position - studs.centre[0], studs.normal)
    assert np.all(outward[walls] < 0.0) and np.all(outward[~walls & (studs.place == 1)] > 0.0)

    row = stud_contacts(stack(BrickShape(9, 9, 1), BrickShape(3, 1), (3, 3)))
    assert set(row.place.tolist()) == {Place.NARROW}
    assert sorted(row.holder.tolist()) == [wall] * 8 + [Holder.PIN] * 4


def test_only_engaged_studs_of_a_brick_count_and_keep_their_place():
    # One corner stud of a 4 x 2 brick on a lone stud: two walls and a tube, not a narrow brick.
    studs = stud_contacts(stack(BrickShape(1, 1), BrickShape(4, 2)))
    assert studs.overlap.tolist() == [[1, 1]]
    assert studs.place.tolist() == [Place.CORNER] * 3
    directions = {tuple(np.sign(np.round(-n, 9)).astype(int)) for n in studs.normal[:, :2]}
    assert directions == {(-1, 0), (0, -1), (1, 1)}


def test_hull_is_that_of_the_corner_studs():
    wide = stud_contacts(stack(BrickShape(9, 9, 1), BrickShape(4, 2), (2, 2)))
    hull = wide.position[wide.hull]
    assert len(hull) == 8 and set(wide.holder[wide.hull].tolist()) == {Holder.WALL}
    row = stud_contacts(stack(BrickShape(9, 9, 1), BrickShape(4, 1), (2, 2)))
    assert len(row.hull) == 6
    assert len(stud_contacts(stack(BrickShape(1, 1), BrickShape(1, 1))).hull) == 4


@pytest.mark.parametrize("yaw", [1, 2, 3])
def test_turning_a_structure_turns_its_points(yaw):
    """The same brick put on a square plate at another yaw has the turned points."""
    base = BrickShape(8, 8, 1)
    straight = stud_contacts(stack(base, BrickShape(4, 2), (2, 3)))
    offsets = {1: (5, 2), 2: (6, 5), 3: (3, 6)}
    turned = stud_contacts(stack(base, BrickShape(4, 2), offsets[yaw], yaw))
    c, s = np.cos(yaw * np.pi / 2), np.sin(yaw * np.pi / 2)
    rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    middle = np.array([4 * P, 4 * P, 0])
    expected = (straight.position - middle) @ rotation.T + middle

    def rows(position, normal, holder):
        table = np.column_stack([position / P, normal, holder])
        return sorted(np.round(table, 6).tolist())

    assert np.array(rows(expected, straight.normal @ rotation.T, straight.holder)) == pytest.approx(
        np.array(rows(turned.position, turned.normal, turned.holder)), abs=2e-6
    )


def test_a_component_without_connections_has_no_points():
    studs = stud_contacts(loose([(0, 0, 0, 1, 1, 1)]))
    assert studs.position.shape == (0, 3) and studs.hull.shape == (0,)
