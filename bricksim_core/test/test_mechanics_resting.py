# SPDX-License-Identifier: Apache-2.0
"""Components that lie on others: against statics by hand, and the simulator."""

import numpy as np
import pytest

from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.resting import area, footing, touches
from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

BRICK, LONG, COLUMN = BrickShape(4, 2), BrickShape(8, 2), BrickShape(1, 1)
TILE, SMALL_TILE = BrickShape(2, 2, 1, has_studs=False), BrickShape(1, 1, 1, has_studs=False)
GRAVITY = 9.81


def structure(*pieces, fixed=(), turn=0.0):
    """Pieces: lists of (shape, x, y, z of its middle [studs, studs, plates]), from below to above,
    each connected to the one before in the same list by its middle. The last piece is turned [rad].
    """
    graph = BrickTopologyGraph()
    poses = {}
    for number, piece in enumerate(pieces):
        ids = [graph.add_part(shape) for shape, *_ in piece]
        for (low, x0, y0, _), (high, x1, y1, _), below, above in zip(
            piece, piece[1:], ids, ids[1:], strict=False
        ):
            offset = (
                round(x1 - x0 + 0.5 * (low.length - high.length)),
                round(y1 - y0 + 0.5 * (low.width - high.width)),
            )
            graph.connect(below, above, offset, 0)
        _, x, y, z = piece[0]
        half = 0.5 * turn if number == len(pieces) - 1 else 0.0
        place = transform(
            [x * STUD_PITCH, y * STUD_PITCH, z * PLATE_HEIGHT], [0, 0, np.sin(half), np.cos(half)]
        )
        component = graph.component_of(ids[0])
        poses[component] = place @ np.linalg.inv(graph.layout(component).component_T_parts[0])
    return Structure(graph, poses, fixed=frozenset(fixed))


def falls(made):
    """What the simulator says: True if a part has turned by more than a degree after a second."""
    simulator = Simulator()
    ids = simulator.spawn(made)
    before = np.array([simulator.part_pose(i) for i in ids.values()])
    for _ in range(60):
        simulator.step()
    after = np.array([simulator.part_pose(i) for i in ids.values()])
    return bool(np.abs(after - before)[:, :3, :3].max() > np.sin(np.radians(1.0)))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("shift", [0.0, 0.4, 0.9, 1.1, 1.6, 2.4])
def test_a_brick_on_a_tile_tips_where_its_middle_is_beside_it(shift, held):
    made = structure([(TILE, 0, 0, 0)], [(LONG, shift, 0, 1)], fixed={0} if held else ())
    analysis = analyze(made)
    assert analysis.stable is (shift < 1.0)
    assert not analysis.unknown
    assert falls(made) is not analysis.stable
    assert analysis.safety_factor == (np.inf if shift < 1.0 else 0.0)
    if shift > 1.0:
        assert "part 1: only lies on part 0 and tips over the edge" in analysis.reasons[-1]


def test_right_above_the_edge_it_is_open():
    analysis = analyze(structure([(TILE, 0, 0, 0)], [(LONG, 1.0, 0, 1)], fixed={0}))
    assert analysis.marginal


def test_a_turned_brick_tips_over_the_tile_as_it_lies():
    """At 45 degrees the corner of a 2x2 tile is sqrt(2) studs from its middle."""
    for shift, stands in ((0.8, True), (1.1, False)):
        made = structure([(TILE, 0, 0, 0)], [(LONG, shift, shift, 1)], turn=np.pi / 4)
        assert analyze(made).stable is stands
        assert falls(made) is not stands


def test_what_lies_on_a_structure_is_a_load_of_it():
    """A brick on a tile that sticks out of a column's head, against its weight as a load there."""
    stack = [
        (COLUMN, 0, 0, 0),
        (COLUMN, 0, 0, 3),
        (BrickShape(4, 1, 1, has_studs=False), -1.5, 0, 6),
    ]
    heavy = BrickShape(1, 1, mass=0.05)
    whole = analyze(structure(stack, [(heavy, -3, 0, 7)], fixed={0}))
    force = 0.05 * GRAVITY
    load = [0.0, 0.0, -force, 0.0, -force * 1.5 * STUD_PITCH, 0.0]
    alone = analyze(structure(stack, fixed={0}), loads={2: load})
    assert alone.max_utilization > 0.5
    assert whole.max_utilization == pytest.approx(alone.max_utilization, rel=1e-6)
    assert whole.safety_factor == pytest.approx(alone.safety_factor, rel=1e-6)
    assert not whole.unknown
    # Twice over: a brick on a tile on a tile.
    tile = BrickShape(1, 1, 1, has_studs=False, mass=0.02)
    twice = analyze(
        structure(stack, [(tile, -3, 0, 7)], [(BrickShape(1, 1, mass=0.03), -3, 0, 8)], fixed={0})
    )
    assert twice.max_utilization == pytest.approx(alone.max_utilization, rel=1e-6)


def test_a_weight_on_a_tile_breaks_the_column():
    columns = [(COLUMN, 0, 0, 3 * k) for k in range(4)]
    stack = [*columns, (BrickShape(4, 1, 1, has_studs=False), -1.5, 0, 12)]
    made = structure(stack, [(BrickShape(1, 1, mass=0.5), -3, 0, 13)], fixed={0})
    analysis = analyze(made)
    assert not analysis.stable and analysis.max_utilization > 5.0
    assert falls(made)


def bridge(*, fixed=(), plank=LONG):
    """A plank on two towers with smooth tops, without a connection."""
    low = [[(COLUMN, x, 0, 0), (SMALL_TILE, x, 0, 3)] for x in (-3, 3)]
    return structure(*low, [(plank, 0, 0.5, 4)], fixed=fixed)


def test_shares_of_several_bearers_are_not_known():
    analysis = analyze(bridge())
    assert analysis.unknown and not analysis.stable and not analysis.marginal
    assert [c.unknown for c in analysis.components] == [True, True, False]
    assert np.isnan(analysis.safety_factor) and np.isnan(analysis.max_utilization)
    assert all("not analysed: part 4 lies on part" in reason for reason in analysis.reasons)
    assert "part 4 lies on part 1 without a connection" in analysis.reasons[0]


def test_bearers_that_the_world_holds_need_no_shares():
    """A plank whose middle is between two held tiles; one tile alone does not bear it."""
    tiles = [[(SMALL_TILE, x, 0, 0)] for x in (-3, 3)]
    assert analyze(structure(*tiles, [(LONG, 0, 0.5, 1)], fixed={0, 1})).stable
    analysis = analyze(structure(tiles[0], [(LONG, 0, 0.5, 1)], fixed={0}))
    assert not analysis.stable and not analysis.unknown


@pytest.mark.parametrize("load", [(0.01, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1e-3)])
def test_pushed_sideways_it_is_not_known(load):
    made = structure([(TILE, 0, 0, 0)], [(BRICK, 0, 0, 1)])
    analysis = analyze(made, loads={1: load})
    assert analysis.unknown and len(analysis.reasons) == 2


def test_what_is_pulled_up_lifts_off():
    made = structure([(TILE, 0, 0, 0)], [(BRICK, 0, 0, 1)], fixed={0})
    weight = BRICK.mass * GRAVITY
    assert analyze(made, loads={1: (0, 0, 0.9 * weight, 0, 0, 0)}).stable
    lifted = analyze(made, loads={1: (0, 0, 1.1 * weight, 0, 0, 0)})
    assert not lifted.stable and "lifts off" in lifted.reasons[0]


def test_what_lies_loose_on_studs_is_not_known():
    made = structure([(BRICK, 0, 0, 0)], [(BRICK, 0.4, 0, 3 + STUD_HEIGHT / PLATE_HEIGHT)])
    assert analyze(made).unknown
    above = structure([(TILE, 0, 0, 0)], [(BRICK, 0, 0, 1 + STUD_HEIGHT / PLATE_HEIGHT)])
    assert touches(above) == []  # a tile has no studs


def test_a_piece_of_several_feet_on_a_part():
    """On a large tile: all of its sole lies there, or one foot only."""
    table = BrickShape(8, 8, 1, has_studs=False)
    stool = [(COLUMN, 0, 0, 1), (BrickShape(4, 2), 1.5, 0.5, 4)]
    assert analyze(structure([(table, 0, 0, 0)], stool)).stable is False  # its middle is beside
    stack = [(BRICK, 0, 0, 1), (BRICK, 2, 0, 4)]
    analysis = analyze(structure([(table, 0, 0, 0)], stack))
    assert analysis.stable and analysis.max_utilization > 0.0


def test_what_stands_without_the_others_is_judged_without_them():
    """A held arm that touches a tower's smooth top; overloaded it may rest there."""
    arm = [(BrickShape(2, 2), 0, 0, 0), (BrickShape(8, 2, 3), 3, 0, 3)]
    tower = [(BrickShape(2, 2, 2), 6, 0, 0), (TILE, 6, 0, 2)]
    made = structure(tower, arm, fixed={2})
    assert analyze(made).stable
    pressed = analyze(made, loads={3: (0, 0, -30.0, 0, 0.3, 0)})
    assert pressed.unknown and not pressed.stable
    assert "part 3 lies on part 1" in pressed.reasons[0]


def test_pieces_that_lie_on_each_other_are_not_known():
    """Two brackets that grip into each other; one stands on the ground."""
    wide = BrickShape(4, 1, 1)
    first = [(wide, 0, 0, 0), (BrickShape(1, 1, 3), -1.5, 0, 1), (wide, 0, 0, 4)]
    second = [(wide, 0.5, 0, 1), (BrickShape(1, 1, 1), 2, 0, 2), (wide, 0.5, 0, 3)]
    made = structure(first, second)
    a, b = made.graph.component_ids
    assert {(t.upper, t.lower) for t in touches(made)} == {(a, b), (b, a)}
    analysis = analyze(made)
    assert analysis.unknown and len(analysis.reasons) == 2


def test_sides_that_touch_bear_nothing():
    made = structure([(BRICK, 0, 0, 0)], [(BRICK, 4, 0, 0)])
    assert touches(made) == [] and analyze(made).stable


def test_faces_meet_in_what_they_share():
    made = structure([(TILE, 0, 0, 0)], [(LONG, 4, 0, 1)])
    (touch,) = touches(made)
    assert (touch.upper_part, touch.lower_part) == (1, 0)
    assert area(touch.corners) == pytest.approx(2 * STUD_PITCH**2)
    low, high = touch.corners.min(axis=0), touch.corners.max(axis=0)
    assert low == pytest.approx([0.0, -STUD_PITCH]) and high == pytest.approx([STUD_PITCH] * 2)
    # Half a millimetre inside of the left edge, then outside.
    assert footing([touch], np.array([0, 0, -1.0, 0, 0.0005, 0])) == pytest.approx(0.0005)
    assert footing([touch], np.array([0, 0, -1.0, 0, -0.0005, 0])) == pytest.approx(-0.0005)
    assert np.isnan(footing([touch], np.array([0.1, 0, -1.0, 0, 0, 0])))
    octagon = structure([(TILE, 0, 0, 0)], [(TILE, 0, 0, 1)], turn=np.pi / 4)
    (touch,) = touches(octagon)
    assert len(touch.corners) == 8
    assert area(touch.corners) == pytest.approx(8 * (np.sqrt(2) - 1) * STUD_PITCH**2)
