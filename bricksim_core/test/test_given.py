# SPDX-License-Identifier: Apache-2.0
"""Poses, motions and wrenches that users give: what cannot be is refused, and nothing changes."""

import numpy as np
import pytest

from bricksim_core.engines.protocol import MAX_POSITION
from bricksim_core.errors import BrickSimError, CollisionError, PoseError, TopologyError
from bricksim_core.formats import parse_structure
from bricksim_core.given import MAX_GIVEN_SPEED
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import transform

STACK = "2x4 (0,0,0)\n2x4 (0,2,1)\n"


def two_stacks():
    """A simulator with two stacks half a metre apart, and its parts."""
    simulator = Simulator()
    structure = parse_structure(STACK, baseplate=None)
    first = simulator.spawn(structure)
    second = simulator.spawn(structure, transform([0.5, 0, 0]))
    return simulator, [*first.values(), *second.values()]


def state_of(simulator):
    return {part: pose.tobytes() for part, pose in simulator.poses().items()}


BAD_TWISTS = [
    ([1e3, 0, 0, 0, 0, 0], "1000 m/s"),
    ([0, 0, MAX_GIVEN_SPEED * 1.001, 0, 0, 0], "expected at most 500 m/s"),
    ([0, 0, 0, 1e5, 0, 0], "m/s at its corners"),
    ([1e200, 0, 0, 0, 0, 0], "m/s at its corners"),
    ([np.nan, 0, 0, 0, 0, 0], "six finite numbers"),
    ("fast", "twist is 'fast'"),
    (None, "twist is None"),
    ([[1, 2], [3]], "six finite numbers"),
]
BAD_POSES = [
    (transform([MAX_POSITION, 0, 0]), "coordinates of at most 1e\\+06 m"),
    (transform([0, -1e12, 0]), "coordinates of at most 1e\\+06 m"),
    (transform([0, 0, 1e300]), "coordinates of at most 1e\\+06 m"),
    ("there", "pose is 'there', expected a finite 4x4 matrix"),
    (None, "pose is None"),
    (np.eye(3), "4x4"),
    (np.full((4, 4), 1e200), "orthonormal"),
]


@pytest.mark.parametrize(("twist", "told"), BAD_TWISTS)
def test_a_teleport_refuses_motions_that_no_engine_bears(twist, told):
    simulator, parts = two_stacks()
    before = state_of(simulator)
    with pytest.raises(PoseError, match=told):
        simulator.teleport(parts[0], transform([0, 0, 1]), twist)
    assert state_of(simulator) == before
    simulator.step()


@pytest.mark.parametrize(("pose", "told"), BAD_POSES)
def test_a_teleport_and_a_spawn_refuse_places_that_no_engine_bears(pose, told):
    """MuJoCo resets everything where a coordinate is 1e10 m: all other bricks went back."""
    simulator, parts = two_stacks()
    before = state_of(simulator)
    with pytest.raises(PoseError, match=told):
        simulator.teleport(parts[0], pose)
    if pose is not None:  # there it is the identity, where others are
        with pytest.raises(PoseError, match=told):
            simulator.spawn(parse_structure(STACK, baseplate=None), pose)
    assert state_of(simulator) == before
    simulator.step()


def test_the_fastest_motion_that_is_taken_can_be_followed():
    simulator, parts = two_stacks()
    simulator.teleport(parts[0], transform([0, 0, 1]), [0, 0, MAX_GIVEN_SPEED, 0, 0, 0])
    for _ in range(30):
        simulator.step()
    assert simulator.poses()[parts[0]][2, 3] == pytest.approx(1 + 0.5 * 500 - 9.81 / 8, abs=0.02)


@pytest.mark.parametrize("wrench", ["abc", None, [1, 2, 3], [np.inf] * 6, [[0] * 6], [1, "x"]])
def test_wrenches_that_are_none_are_refused(wrench):
    simulator, parts = two_stacks()
    with pytest.raises(PoseError, match=r"wrench is .*, expected six finite numbers"):
        simulator.apply_wrench(parts[0], wrench)


def test_several_are_moved_at_once_or_none():
    simulator, parts = two_stacks()
    simulator.spawn(parse_structure(STACK, baseplate=None), transform([1, 0, 0]))
    poses = simulator.poses()
    # Each goes where the other one is.
    a, b = parts[0], parts[2]
    simulator.teleport_all({a: (poses[b], [0.0] * 6), b: (poses[a], [0.0] * 6)})
    assert np.allclose(simulator.part_pose(a), poses[b], atol=1e-12)
    assert np.allclose(simulator.part_pose(b), poses[a], atol=1e-12)

    before = state_of(simulator)
    far = transform([0, 0, 1])
    with pytest.raises(CollisionError, match="inside of part"):
        simulator.teleport_all({a: (far, [0.0] * 6), b: (transform([1, 0, 0]), [0.0] * 6)})
    with pytest.raises(CollisionError, match=r"would be .* mm inside of each other"):
        simulator.teleport_all({a: (far, [0.0] * 6), b: (far, [0.0] * 6)})
    with pytest.raises(TopologyError, match=f"part {parts[1]} moves with another"):
        simulator.teleport_all({a: (far, [0.0] * 6), parts[1]: (far, [0.0] * 6)})
    assert state_of(simulator) == before


def test_pieces_in_each_others_studs_stay_there_when_they_are_moved_together():
    simulator = Simulator()
    pieces = simulator.spawn(parse_structure("2x4 (0,0,0)\n2x4 (0,0,1)", baseplate=None)).values()
    simulator.disconnect([0])
    moved = {p: transform([0.01, 0, 0]) @ simulator.part_pose(p) for p in pieces}
    simulator.teleport_all({p: (pose, [0.0] * 6) for p, pose in moved.items()})
    for _ in range(30):
        result = simulator.step()
        assert np.abs(result.twist[:, :3]).max() < 0.05  # they settle, and are not thrown out
    for part, pose in moved.items():
        assert simulator.part_pose(part)[:3, 3] == pytest.approx(pose[:3, 3], abs=1e-4)


def test_an_engine_refuses_snapshots_of_others():
    (one, _), (other, _) = two_stacks(), two_stacks()
    before = state_of(one)
    for snapshot in (other.engine.snapshot(), "yesterday", None):
        with pytest.raises(BrickSimError, match="snapshot"):
            one.engine.restore(snapshot)
    assert state_of(one) == before
    one.engine.restore(one.engine.snapshot())
    one.step()
