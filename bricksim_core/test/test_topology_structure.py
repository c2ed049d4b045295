# SPDX-License-Identifier: Apache-2.0
"""Taking parts out of a structure leaves the others where they are."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bricksim_core.errors import UnknownIdError
from bricksim_core.formats import read_structure
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

TABLE = Path(__file__).parent / "data/brickgpt/demo_table.txt"


@settings(deadline=None, max_examples=20)
@given(st.sets(st.integers(0, 59), max_size=30))
def test_without(removed):
    structure = read_structure(TABLE)
    pose = transform([1.0, 2.0, 3.0], [0.1, 0.2, 0.3, 0.9])
    structure.component_poses = dict.fromkeys(structure.component_poses, pose)
    before = structure.part_poses()
    rest = structure.without(removed)
    assert rest.graph.part_ids == [p for p in range(60) if p not in removed]
    assert all(np.array_equal(pose, before[p]) for p, pose in rest.part_poses().items())
    assert rest.fixed == {0} - removed
    assert set(rest.component_poses) == set(rest.graph.component_ids)
    assert len(structure.graph) == 60 and set(structure.part_poses()) == set(before)
    left = {
        i for i, c in structure.graph.connections.items()
        if not {c.stud_part, c.hole_part} & removed
    }  # fmt: skip
    assert set(rest.graph.connections) == left


def test_without_an_unknown_part():
    with pytest.raises(UnknownIdError, match="999"):
        read_structure(TABLE).without([999])


def test_errors_call_a_structure_by_its_file():
    from_file = read_structure(TABLE)
    assert (from_file.name, from_file.label) == ("demo_table", str(TABLE))
    assert from_file.without([1]).label == str(TABLE)
    assert Structure(BrickTopologyGraph(), {}, name="tower").label == "tower"


def test_check_part_names_file_and_ids():
    structure = read_structure(TABLE)
    structure.check_part(59)
    with pytest.raises(UnknownIdError, match=rf"^{re.escape(str(TABLE))}: part id 60 .*0 to 59$"):
        structure.check_part(60)
    with pytest.raises(UnknownIdError, match="a structure with parts"):
        Structure(BrickTopologyGraph(), {}).check_part(0)
