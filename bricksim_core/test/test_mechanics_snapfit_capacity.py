# SPDX-License-Identifier: Apache-2.0
"""Limits of single connections, and that the published tables are what the model says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from bricksim_core.errors import NoOverlapError
from bricksim_core.mechanics.snapfit import SnapFitConstants, SnapFitModel, connection_limits
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph

ROOT = Path(__file__).parents[2]
TABLES = {
    "docs/mechanics.md": (10, ("studs", "pull", "tilt_y", "tilt_x", "twist", "shear")),
    "README.md": (7, ("pull", "shear", "twist", "tilt_y", "tilt_x")),
}
"""Bricks and columns; the x axis is a brick's long one."""


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the package without its repository")
@pytest.mark.parametrize("document", TABLES)
def test_the_documented_tables_are_what_the_model_says(document):
    text, (count, columns) = (ROOT / document).read_text(), TABLES[document]
    rows = re.findall(r"^\| (\d)x(\d) \|(.*)\|$", text, flags=re.MULTILINE)
    assert len(rows) == count
    for length, width, cells in rows:
        brick = BrickShape(int(length), int(width))
        limits = connection_limits(brick, brick)
        found = [float(cell) for cell in cells.split("|")]
        moments = ("tilt_x", "tilt_y", "twist")  # in N mm
        expected = [(1e3 if c in moments else 1.0) * getattr(limits, c) for c in columns]
        assert found == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("mode", ["pull", "shear", "twist", "tilt_x", "tilt_y"])
@pytest.mark.parametrize("size", [(1, 1), (4, 1), (4, 2)])
def test_a_load_at_its_limit_reads_one(mode, size):
    """The same load through the equations of a component: applied at the joint's centre."""
    lower, upper = BrickShape(8, 8, 1), BrickShape(*size)
    graph = BrickTopologyGraph()
    plate, brick = graph.add_part(lower), graph.add_part(upper)
    graph.connect(plate, brick, (2, 3), 0)
    layout = graph.layout(graph.component_of(plate))
    limit = getattr(connection_limits(lower, upper, (2, 3)), mode)
    load = np.zeros(6)
    axis = {"pull": 2, "shear": 0, "twist": 5, "tilt_x": 3, "tilt_y": 4}[mode]
    load[axis] = limit
    # The joint is half a brick below the COM.
    load[3:] += np.cross([0.0, 0.0, -0.0048], load[:3])
    loads = np.zeros((2, 6))
    for factor in (1.0, 0.5):
        loads[brick] = factor * load
        solution = SnapFitModel().system(layout, layout.part_ids == plate).solve(loads)
        assert solution.utilization == pytest.approx([factor], rel=1e-9)


def test_partial_overlap_and_turned_bricks():
    """Half of a 4x2 on a 4x2, as in the stairs: 0.0541 N m about the edge, whatever the yaw."""
    brick = BrickShape(4, 2)
    moment = 2 * (1 + math.sqrt(2)) * 0.7 * (0.004 + 0.012)
    assert connection_limits(brick, brick, (2, 0)).tilt_y == pytest.approx(moment)
    # Turned by a quarter, its 2 x 2 end covers the same studs.
    assert connection_limits(brick, brick, (4, 0), 1).tilt_y == pytest.approx(moment)


def test_friction_scales_what_friction_holds():
    brick = BrickShape(2, 2)
    base = connection_limits(brick, brick)
    weak = connection_limits(brick, brick, constants=SnapFitConstants(preload=1.75))
    assert weak.pull == pytest.approx(0.5 * base.pull)
    assert weak.tilt_x == pytest.approx(0.5 * base.tilt_x)
    assert weak.shear == base.shear


def test_bricks_that_do_not_meet():
    with pytest.raises(NoOverlapError):
        connection_limits(BrickShape(2, 2), BrickShape(2, 2), (5, 0))
