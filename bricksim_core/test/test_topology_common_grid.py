# SPDX-License-Identifier: Apache-2.0
"""Cells of the parts of several components in one grid."""

import numpy as np
import pytest

from bricksim_core.errors import StructureError
from bricksim_core.formats import parse_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure
from bricksim_core.topology.common_grid import common_grid


def two_parts(second, first=None, **options):
    graph = BrickTopologyGraph()
    for shape in (BrickShape(4, 2), BrickShape(2, 2, 1)):
        graph.add_part(shape)
    poses = {0: np.eye(4) if first is None else first, 1: second}
    return Structure(graph, poses, **options)


def test_cells_of_text():
    grid = common_grid(parse_structure("2x4 (3,5,0)\n6x1 (3,5,2)\n"))
    assert np.array_equal(grid.world_T_grid, np.eye(4))
    assert grid.boxes == {0: (3, 5, -1, 9, 9, 0), 1: (3, 5, 0, 5, 9, 3), 2: (3, 5, 6, 9, 6, 9)}
    assert grid.ground == 0 and grid.baseplate == 0


@pytest.mark.parametrize("yaw", range(4))
def test_quarter_turns_are_turned_into_the_world(yaw):
    """4x2 at the world's origin corner, turned about its corner."""
    turn = transform([0, 0, 0], [0, 0, np.sin(yaw * np.pi / 4), np.cos(yaw * np.pi / 4)])
    grid = common_grid(two_parts(transform([0.08, 0.0, 0.0096]), turn))
    expected = [(0, 0, 4, 2), (-2, 0, 0, 4), (-4, -2, 0, 0), (0, -4, 2, 0)][yaw]
    x0, y0, z0, x1, y1, z1 = grid.boxes[0]
    assert (x0, y0, x1, y1) == expected and (z0, z1) == (0, 3)
    assert grid.boxes[1] == (10, 0, 3, 12, 2, 4)
    assert np.array_equal(grid.world_T_grid, np.eye(4))


def test_common_pose_off_the_axes_of_the_world():
    """Both components turned and shifted alike: the grid is theirs."""
    pose = transform([0.123, 0.456, 0.789], [0, 0, 0.3, 0.954])
    grid = common_grid(two_parts(pose @ transform([0.016, 0, 0.0032]), pose))
    assert np.allclose(grid.world_T_grid, pose)
    assert grid.boxes == {0: (0, 0, 0, 4, 2, 3), 1: (2, 0, 1, 4, 2, 2)}


def test_shift_below_a_cell_is_kept_in_the_pose():
    grid = common_grid(two_parts(transform([0.019, 0, 0]), transform([0.003, 0, 0])))
    assert grid.boxes[0][:3] == (0, 0, 0) and grid.boxes[1][:3] == (2, 0, 0)
    assert np.allclose(grid.world_T_grid[:3, 3], [0.003, 0, 0])


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        (transform([0.009, 0, 0]), "part 1 stands off the stud grid"),
        (transform([0, 0, 0.001]), "part 1 stands off the stud grid"),
        (transform([0, 0, 0], [0, 0, 0.01, 0.99995]), "part 1 stands off the stud grid"),
        (transform([0, 0, 0], [0.01, 0, 0, 0.99995]), "part 1 is tilted"),
        (transform([0, 0, 0], [1, 0, 0, 0]), "part 1 is tilted"),
    ],
)
def test_no_common_grid(pose, message):
    with pytest.raises(StructureError, match=message):
        common_grid(two_parts(pose))


def test_what_counts_as_the_base_plate():
    low = transform([0.08, 0, -0.0032])
    assert common_grid(two_parts(low)).baseplate is None  # it does not carry the other
    assert common_grid(two_parts(low)).ground == -1
    assert common_grid(two_parts(low, fixed=frozenset({1}))).baseplate == 1
    assert common_grid(two_parts(low, fixed=frozenset({1}))).ground == 0
    assert common_grid(two_parts(low, ground=-0.032)).ground == -10
    graph = BrickTopologyGraph()
    plate, brick = graph.add_part(BrickShape(6, 6, 1)), graph.add_part(BrickShape(2, 2))
    graph.connect(plate, brick, (0, 0), 0)
    assert common_grid(Structure(graph, {0: np.eye(4)})).baseplate == plate
    # A file that defines its ground below such a plate means it as a part.
    assert common_grid(Structure(graph, {0: np.eye(4)}, ground=0.0)).baseplate is None
