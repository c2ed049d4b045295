# SPDX-License-Identifier: Apache-2.0
"""Motion planning: the embedded planner, checked with an independent collision model."""

from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from arms_support import bench, resting_scene, tool_down, yawed
from scipy.spatial.transform import Rotation

from bricksim_core.parts import BrickShape
from bricksim_core.spatial import inverse, transform
from bricksim_moveit_demo.description import (
    READY,
    franka,
    one_arm,
    robot_srdf,
    robot_urdf,
    two_arms,
)
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.grasps import TIP_BEYOND_TOOL, boxes_overlap, hand_boxes
from bricksim_moveit_demo.kinematics import ArmKinematics
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions, create_planner
from bricksim_moveit_demo.planning.scene import (
    TABLE,
    Box,
    PlanningScene,
    brick_box,
    brick_name,
    table_box,
)

ARM = one_arm()[0]
WALL = Box((0.3, 0.02, 0.5), yawed(0.5, 0.0, 0.25))


@pytest.fixture(scope="module")
def planner():
    return EmbeddedPlanner(one_arm(), PlanningOptions())


@pytest.fixture(scope="module")
def kinematics():
    return ArmKinematics(ARM)


class Witness:
    """Collisions between arm and boxes by Pinocchio and coal alone."""

    def __init__(self, boxes):
        urdf = robot_urdf(one_arm())
        self.model = pinocchio.buildModelFromXML(urdf)
        self.geometry = pinocchio.buildGeomFromUrdfString(
            self.model, urdf, pinocchio.GeometryType.COLLISION
        )
        own = self.geometry.ngeoms
        for name, box in boxes.items():
            placement = pinocchio.SE3(box.pose)
            shape = pinocchio.hppfcl.Box(*box.size)
            self.geometry.addGeometryObject(pinocchio.GeometryObject(name, 0, placement, shape))
        self.geometry.addAllCollisionPairs()
        pinocchio.removeCollisionPairsFromXML(
            self.model, self.geometry, robot_srdf(one_arm()), False
        )
        self.own = own
        self.data, self.results = self.model.createData(), self.geometry.createData()

    def collides(self, arm_positions, finger=0.04):
        q = np.array([*arm_positions, finger, finger])
        return pinocchio.computeCollisions(
            self.model, self.data, self.geometry, self.results, q, True
        )


def _with(positions):
    return dict(zip(ARM.joints, np.asarray(positions).tolist(), strict=True))


def test_free_motion_reaches_the_pose_around_a_wall(planner, kinematics):
    scene = resting_scene([ARM], objects={TABLE: table_box(), "wall": WALL})
    start = planner.reach(scene, ARM, tool_down(0.45, 0.3, 0.1))[0]
    scene = scene.with_positions(_with(start))
    goal = tool_down(0.45, -0.3, 0.1)
    trajectory = planner.plan_to_pose(scene, ARM, goal)
    np.testing.assert_allclose(trajectory.positions[0], start, atol=1e-9)
    reached = kinematics.tool_pose(trajectory.positions[-1])
    np.testing.assert_allclose(reached, goal, atol=2e-4)
    witness = Witness({"wall": WALL})
    # Between the start and the goal the straight way in joint space goes through the wall.
    direct = [
        witness.collides(start + s * (trajectory.positions[-1] - start))
        for s in np.linspace(0.0, 1.0, 50)
    ]
    assert any(direct)
    fine = np.linspace(0.0, trajectory.duration, 400)
    assert not any(witness.collides(trajectory.sample(t)[0]) for t in fine)


def test_thin_columns_are_not_brushed(planner):
    """Wherever a column of 1x2 bricks stands in the way, also where it lies between two checks of
    the search or within a rounded corner."""
    start = planner.reach(resting_scene([ARM]), ARM, tool_down(0.5, 0.15, 0.08))[0]
    goal = planner.reach(resting_scene([ARM]), ARM, tool_down(0.5, -0.15, 0.08))[0]
    brushed = []
    for x in np.linspace(0.485, 0.5375, 8):
        column = Box((0.016, 0.008, 0.1), yawed(x, 0.0, 0.05))
        scene = resting_scene([ARM], objects={TABLE: table_box(), "column": column})
        trajectory = planner.plan_to_joints(scene.with_positions(_with(start)), ARM, [goal])
        witness = Witness({"column": column})
        fine = np.linspace(0.0, trajectory.duration, 600)
        hits = [t for t in fine if witness.collides(trajectory.sample(t)[0])]
        if hits:
            brushed.append((x, len(hits)))
    assert not brushed


def test_trajectories_respect_the_limits(planner):
    scene = resting_scene([ARM], objects={TABLE: table_box()})
    trajectory = planner.plan_to_pose(scene, ARM, tool_down(0.3, -0.45, 0.2))
    numbers = franka()["joints"]
    for i in range(7):
        limits = numbers[f"joint{i + 1}"]
        assert np.abs(trajectory.velocities[:, i]).max() <= 0.6 * limits["velocity"] * 1.001
        assert np.abs(trajectory.accelerations[:, i]).max() <= 0.4 * limits["acceleration"] * 1.001
    # Positions, velocities and accelerations belong together.
    t, v = trajectory.times, trajectory.velocities
    slope = np.gradient(trajectory.positions, t, axis=0)
    np.testing.assert_allclose(slope[2:-2], v[2:-2], atol=0.02)
    np.testing.assert_allclose(v[[0, -1]], 0.0, atol=1e-9)


def test_small_things_do_not_slip_through_between_collision_checks(planner, kinematics):
    """A bead at the tip of what is carried swings past others that are as small."""
    bead, way = (0.002, 0.002, 0.002), transform([0.0, 0.0, 0.12])
    start, goal = np.array(READY), np.array(READY)
    start[0], goal[0] = -0.6, 0.6  # sixty steps of the search

    def tip(positions):
        return (kinematics.tool_pose(positions) @ way)[:3, 3]

    scene = resting_scene([ARM]).with_positions(_with(start))
    for share in (0.2083, 0.375, 0.5083, 0.625, 0.7917):
        place = transform(tip(start + share * (goal - start)))
        loaded = replace(
            scene,
            objects={"bead": Box(bead, place)},
            attached={ARM.name: {"tip": Box(bead, way)}},
        )
        planned = planner.plan_to_joints(loaded, ARM, [goal])
        times = np.arange(0.0, planned.duration, 0.001)
        apart = [np.linalg.norm(tip(planned.sample(t)[0]) - place[:3, 3]) for t in times]
        # Spheres inside them must stay apart; 5 mrad between checks are 3 mm here.
        assert min(apart) > 0.001, share


def test_straight_motion_is_straight_level_and_slow(planner, kinematics):
    scene = resting_scene([ARM], objects={TABLE: table_box()})
    start = planner.reach(scene, ARM, tool_down(0.5, 0.1, 0.2))[0]
    scene = scene.with_positions(_with(start))
    trajectory = planner.plan_straight(scene, ARM, [tool_down(0.5, 0.1, 0.05)], speed=0.05)
    poses = np.array([kinematics.tool_pose(q) for q in trajectory.positions])
    assert np.abs(poses[:, :2, 3] - [0.5, 0.1]).max() < 6e-4
    angles = Rotation.from_matrix(poses[:, :3, :3] @ poses[0, :3, :3].T).magnitude()
    assert angles.max() < 6e-3
    np.testing.assert_allclose(poses[-1, 2, 3], 0.05, atol=6e-4)
    speeds = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1) / np.diff(trajectory.times)
    assert speeds.max() < 0.055


def test_held_brick_collides_and_may_be_allowed(planner, kinematics):
    shape = BrickShape(4, 2)
    at_tool = kinematics.tool_pose(np.array(READY))
    held = brick_box(shape, at_tool @ inverse(yawed(0.0, 0.0, 0.012)))
    below = tool_down(0.5, 0.1, 0.1)
    # Just under the place where the held brick ends up, clear of the fingers.
    obstacle = Box((0.03, 0.015, 0.01), yawed(0.5, 0.1, 0.1 - 0.03))
    scene = resting_scene(
        [ARM], objects={brick_name(7): Box(held.size, at_tool), "obstacle": obstacle}
    ).with_positions(dict.fromkeys(ARM.fingers, 0.012))
    assert planner.reach(scene.without([brick_name(7)]), ARM, below)
    longer = Box((0.03, 0.015, 0.06), at_tool)
    carrying = scene.without([brick_name(7)])
    carrying = PlanningScene(carrying.positions, {**carrying.objects, "rod": longer}).attaching(
        ARM.name, ["rod"], at_tool
    )
    with pytest.raises(UnreachableError, match="obstacle"):
        planner.reach(carrying, ARM, below)
    assert planner.reach(carrying.allowing([("rod", "obstacle")]), ARM, below)
    # Put down again, nothing is in the way.
    assert planner.reach(scene.without([brick_name(7)]), ARM, below)


def test_scene_of_each_request_counts_alone(planner):
    goal = tool_down(0.5, 0.1, 0.1)
    free = resting_scene([ARM])
    blocked = resting_scene([ARM], objects={"block": Box((0.1, 0.1, 0.2), yawed(0.5, 0.1, 0.1))})
    for _ in range(3):
        assert planner.reach(free, ARM, goal)
        with pytest.raises(UnreachableError, match="touches block"):
            planner.reach(blocked, ARM, goal)


def test_same_request_same_answer():
    scene = resting_scene([ARM], objects={"wall": WALL})
    answers = []
    for _ in range(2):
        planner = EmbeddedPlanner(one_arm(), PlanningOptions(seed=5))
        start = planner.reach(scene, ARM, tool_down(0.45, 0.3, 0.1))[0]
        at = scene.with_positions(_with(start))
        answers.append(planner.plan_to_pose(at, ARM, tool_down(0.45, -0.3, 0.1)))
    np.testing.assert_array_equal(answers[0].positions, answers[1].positions)


def test_reach_offers_different_solutions_away_from_the_limits(planner, kinematics):
    solutions = planner.reach(resting_scene([ARM]), ARM, tool_down(0.5, 0.0, 0.1), count=3)
    assert len(solutions) == 3
    for i, a in enumerate(solutions):
        np.testing.assert_allclose(kinematics.tool_pose(a), tool_down(0.5, 0.0, 0.1), atol=2e-4)
        assert np.minimum(a - kinematics.lower, kinematics.upper - a).min() >= 0.15
        assert all(np.abs(a - b).max() > 0.1 for b in solutions[:i])


def test_the_farthest_poses_that_there_are_are_reached(planner, kinematics):
    """What is refused for its distance is out of reach for sure."""
    generator = np.random.default_rng(5)
    low, high = kinematics.lower + 0.2, kinematics.upper - 0.2
    poses = generator.uniform(low, high, (2000, len(low)))
    tools = {tuple(q): kinematics.tool_pose(q) for q in poses}
    shoulder = [0.0, 0.0, 0.333]

    def distance(q):
        return np.linalg.norm(tools[q][:3, 3] - shoulder)

    farthest = sorted(tools, key=distance)[-5:]
    assert distance(farthest[0]) > 0.85
    for q in farthest:
        scene = resting_scene([ARM]).with_positions(_with(np.array(q)))
        (found, *_) = planner.reach(scene, ARM, tools[q])
        np.testing.assert_allclose(kinematics.tool_pose(found), tools[q], atol=2e-4)


def test_reasons_of_failure(planner):
    scene = resting_scene([ARM], objects={TABLE: table_box()})
    with pytest.raises(
        UnreachableError, match=r"no joint position puts the tool at x, y, z = 1\.5"
    ):
        planner.plan_to_pose(scene, ARM, tool_down(1.5, 0.0, 0.1))
    with pytest.raises(UnreachableError, match=r"in collision: .*touches table"):
        planner.plan_to_pose(scene, ARM, tool_down(0.5, 0.0, -0.02))
    with pytest.raises(PlanningError, match="straight motion"):
        planner.plan_straight(scene, ARM, [tool_down(1.2, 0.0, 0.3)])
    inside = resting_scene([ARM], objects={"block": Box((0.2, 0.2, 0.2), yawed(0.3, 0.0, 0.45))})
    with pytest.raises(PlanningError, match=r"start is in collision: .*touches block"):
        planner.plan_to_joints(inside, ARM, [np.array(READY) + 0.1])


def test_two_arms_avoid_each_other():
    arms = two_arms()
    planner = EmbeddedPlanner(arms, PlanningOptions())
    scene = resting_scene(arms)
    middle = tool_down(0.55, 0.0, 0.2)
    left = planner.reach(scene, arms[0], middle)[0]
    there = scene.with_positions(dict(zip(arms[0].joints, left.tolist(), strict=True)))
    with pytest.raises(UnreachableError, match="in collision"):
        planner.reach(there, arms[1], middle)
    aside = tool_down(0.55, 0.3, 0.2)
    assert planner.plan_to_pose(there, arms[1], aside).joints == arms[1].joints


def test_unknown_planner_is_named():
    with pytest.raises(PlanningError, match="planner is 'magic', expected 'auto', 'embedded'"):
        create_planner("magic", one_arm())


def test_free_motions_keep_off_what_another_arm_carries(monkeypatch):
    """The straight way passes 1 mm over what the other arm holds: drives lag by more."""
    b = bench({}, {}, arms=two_arms())
    motion, other = b.handler.motion, two_arms()[1]
    start = motion.controller.reference.positions
    goal, middle = start.copy(), start.copy()
    goal[0], middle[0] = start[0] + 0.8, start[0] + 0.4
    below = transform([0.0, 0.0, TIP_BEYOND_TOOL + 0.001 + 0.02])
    load = Box((0.04, 0.04, 0.04), motion.controller.kinematics.tool_pose(middle) @ below)
    held = b.world.arms[other.name].measured_tool
    carried = {other.name: {"load": Box(load.size, inverse(held) @ load.pose)}}
    planned = []
    monkeypatch.setattr(motion, "follow", lambda trajectory, _limit: planned.append(trajectory))
    motion.go_to_joints([goal], replace(b.world.planning_scene(), attached=carried))
    for positions in planned[0].positions:
        tool = motion.controller.kinematics.tool_pose(positions)
        hand = [Box(box.size, tool @ box.pose) for box in hand_boxes(motion.controller.width)]
        assert not any(boxes_overlap(box, [load], 0.0024).any() for box in hand)
    assert motion.clearance >= 0.0025


def test_what_is_carried_keeps_off_other_arms(monkeypatch):
    """The straight way passes 1 mm before the other hand: a load of 17 bricks lagged into it."""
    b = bench({}, {}, arms=two_arms())
    motion, arm = b.handler.motion, b.handler.motion.arm
    middle = motion.controller.reference.positions
    start, goal = middle.copy(), middle.copy()
    start[0], goal[0] = middle[0] - 0.4, middle[0] + 0.4
    scene = b.world.planning_scene()

    def carrying(length, gap=0.0):
        """The scene with a board that sticks out towards the other arm's fingers."""
        board = Box((length, 0.12, 0.03), transform([0.5 * length, 0.0, 0.0])).larger(gap)
        return replace(scene, attached={arm.name: {"board": board}})

    def touches(length, positions, gap=0.0):
        there = carrying(length, gap).with_positions(dict(zip(arm.joints, positions, strict=True)))
        try:
            b.planner.plan_to_joints(there, arm, [positions])
        except PlanningError:
            return True
        return False

    turns = np.linspace(-0.15, 0.15, 31)[:, None] * np.eye(7)[0]
    short, long = 0.4, 0.5
    while long - short > 1e-4:
        half = 0.5 * (short + long)
        met = any(touches(half, middle + turn) for turn in turns)
        short, long = (short, half) if met else (half, long)
    length = short - 0.001
    planned = []
    monkeypatch.setattr(motion, "follow", lambda trajectory, _limit: planned.append(trajectory))
    motion.go_to_joints(
        [goal],
        carrying(length).with_positions(dict(zip(arm.joints, start.tolist(), strict=True))),
    )
    assert not any(touches(length, q, 0.0024) for q in planned[0].positions)


def test_straight_motions_give_up_a_posture_that_draws_them_off_the_line(planner, kinematics):
    """With 0.1 % more error than is allowed a hand could not let go of what it had given away."""
    here = [1.6340719, 0.12280267, -1.71720424, -1.57786568, 0.12656802, 1.55956853, 2.2681583]
    scene = resting_scene([ARM]).with_positions(dict(zip(ARM.joints, here, strict=True)))
    up = kinematics.tool_pose(np.array(here))
    up[2, 3] += 0.03
    line = planner.plan_straight(scene, ARM, [up])
    tools = np.array([kinematics.tool_pose(q) for q in line.positions])
    np.testing.assert_allclose(tools[-1], up, atol=6e-4)
    assert np.abs(tools[:, :2, 3] - up[:2, 3]).max() < 6e-4
