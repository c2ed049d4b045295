# SPDX-License-Identifier: Apache-2.0
"""Messages carry exactly what the simulator's data says."""

import math
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.formats import Format, format_structure, read_structure
from bricksim_core.spatial import transform
from bricksim_ros import conversions

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
FILES = [
    DATA / "bricksim" / "demo_assembly_structure1.json",
    DATA / "brickgpt" / "texture_guitar.txt",
    DATA / "stablelego" / "stick_light.json",
]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_topology_message_alone_rebuilds_the_structure(path: Path) -> None:
    structure = read_structure(path)
    head = conversions.header(conversions.time_message(1.5), "world")
    message = conversions.topology_message(
        structure.graph, structure.part_poses(), structure.fixed, 7, head
    )
    wire = deserialize_message(serialize_message(message), type(message))
    rebuilt = structure_from_topology(wire)
    assert rebuilt.fixed == structure.fixed
    assert list(rebuilt.graph.parts()) == list(structure.graph.parts())
    assert rebuilt.graph.connections == structure.graph.connections
    poses = structure.part_poses()
    for part_id, pose in rebuilt.part_poses().items():
        assert np.allclose(pose, poses[part_id], atol=1e-12)
    # As files they are the same but for the name: all formats see one structure.
    as_text = [format_structure(s, Format.TOPOLOGY) for s in (rebuilt, structure)]
    assert as_text[0].count('"stud_id"') == as_text[1].count('"stud_id"')


@given(st.floats(0, 1e6))
def test_time_is_kept_to_the_nanosecond(seconds: float) -> None:
    stamp = conversions.time_message(seconds)
    assert 0 <= stamp.nanosec < 10**9
    assert stamp.sec + 1e-9 * stamp.nanosec == pytest.approx(seconds, abs=1e-9, rel=1e-15)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_poses_go_there_and_back(position: list[float], seed: int) -> None:
    quaternion = np.random.default_rng(seed).normal(size=4)
    pose = transform(position, quaternion)
    assert np.allclose(conversions.checked_pose(conversions.pose_message(pose)), pose, atol=1e-12)


@pytest.mark.parametrize(
    ("pose", "text"),
    [
        (Pose(position=Point(x=math.nan)), "finite"),
        (Pose(position=Point(z=math.inf)), "finite"),
        (Pose(orientation=Quaternion(w=2.0)), "length 2"),
        (Pose(orientation=Quaternion(w=0.0)), "length 0"),
    ],
)
def test_poses_from_outside_are_checked(pose: Pose, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        conversions.checked_pose(pose)


def test_all_zero_quaternion_can_stand_for_no_rotation() -> None:
    pose = Pose(orientation=Quaternion(w=0.0), position=Point(x=1.0))
    assert np.allclose(conversions.checked_pose(pose, zero_is_identity=True), transform((1, 0, 0)))
