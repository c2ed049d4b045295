# SPDX-License-Identifier: Apache-2.0
"""Robots of the MuJoCo engine: a gripper on a swinging arm, small enough to compute by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_suite import at, body, brick_layout, tower

from bricksim_core.engines import RobotSpec
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.drives import DriveConstants, StepDrives, resting_drives
from bricksim_core.errors import EngineError
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import inverse

LINK = """
  <link name="{name}">
    <inertial><origin xyz="{com}"/><mass value="{mass}"/>
      <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="package://nowhere/nothing.dae"/></geometry></visual>
    {collision}
  </link>"""
BOX = '<collision><origin xyz="{xyz}"/><geometry><box size="{size}"/></geometry></collision>'
JOINT = """
  <joint name="{name}" type="{kind}">
    <parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>
    <limit lower="-3" upper="3" effort="100" velocity="10"/><dynamics damping="0.5"/>{more}
  </joint>"""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    """An arm of 0.4 m that turns about z and ends in two fingers that close along y."""
    finger = BOX.format(xyz="0 0 0", size="0.02 0.01 0.02")
    text = "".join(
        [
            '<robot name="arm">',
            '<link name="base"/>',
            LINK.format(name="boom", com="0.2 0 0", mass=2.0, collision=""),
            LINK.format(name="left", com="0 0 0", mass=0.1, collision=finger),
            LINK.format(name="right", com="0 0 0", mass=0.1, collision=finger),
            '<link name="tip"/>',
            JOINT.format(
                name="swing",
                kind="revolute",
                parent="base",
                child="boom",
                xyz="0 0 0.3",
                axis="0 0 1",
                more="",
            ),
            JOINT.format(
                name="close",
                kind="prismatic",
                parent="boom",
                child="left",
                xyz="0.4 0.005 0",
                axis="0 1 0",
                more="",
            ),
            JOINT.format(
                name="follow",
                kind="prismatic",
                parent="boom",
                child="right",
                xyz="0.4 -0.005 0",
                axis="0 -1 0",
                more='<mimic joint="close" multiplier="1.0"/>',
            ),
            '<joint name="fixed" type="fixed"><parent link="boom"/><child link="tip"/>'
            '<origin xyz="0.4 0 0"/></joint>',
            "</robot>",
        ]
    )
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return path


def arm(path: Path, **changes: object) -> RobotSpec:
    values = {
        "name": "arm",
        "urdf": path,
        "world_T_base": at(0.1, 0.0, 0.0),
        "joint_positions": {"close": 0.03},
        "drives": {"swing": (400.0, 40.0, 30.0), "close": (2000.0, 80.0, 50.0)},
        "pad_links": ("left", "right"),
    }
    return RobotSpec(**(values | changes))  # type: ignore[arg-type]


def steps(engine: MujocoEngine, seconds: float):
    for _ in range(round(seconds / engine.timestep)):
        report = engine.step()
    return report


def grip(engine: MujocoEngine, force: float = 10.0) -> None:
    """A 4x2 brick between the fingers, held by the world until they have closed."""
    pose = engine.link_pose("arm", "tip") @ at(-0.016, -0.008, -0.0048)
    layout = brick_layout(BrickShape(4, 2))
    engine.update([], [body(0, layout, pose, fixed=True)])
    engine.set_joint_targets("arm", {"close": 0.008 - force / 2000.0})
    steps(engine, 0.5)
    engine.update([0], [body(0, layout, pose)])


def test_joints_and_links_have_their_names(urdf: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    state = engine.joint_state("arm")
    assert state.names == ("swing", "close", "follow")
    np.testing.assert_allclose(state.positions, [0.0, 0.03, 0.03])
    np.testing.assert_allclose(engine.link_pose("arm", "tip"), at(0.5, 0, 0.3), atol=1e-12)
    np.testing.assert_allclose(engine.link_pose("arm", "base"), at(0.1, 0, 0), atol=1e-12)
    engine.set_joint_positions("arm", {"swing": np.pi / 2})
    np.testing.assert_allclose(
        engine.link_pose("arm", "tip"), at(0.1, 0.4, 0.3, (0, 0, np.pi / 2)), atol=1e-12
    )
    steps(engine, 0.2)
    assert engine.joint_state("arm").positions[0] == pytest.approx(np.pi / 2, abs=1e-9)


def test_servo_holds_a_load_as_a_spring(urdf: Path) -> None:
    """Without gravity compensation of a sideways gravity the joint gives way by torque / Kp."""
    engine = MujocoEngine(gravity=(0.0, -9.81, 0.0), ground=None)
    engine.add_robot(arm(urdf, gravity_compensation=False))
    steps(engine, 3.0)
    torque = -9.81 * (2.0 * 0.2 + 0.2 * 0.4)
    state = engine.joint_state("arm")
    angle = state.positions[0]
    assert angle == pytest.approx(torque * np.cos(angle) / 400.0, rel=1e-3)
    assert state.efforts[0] == pytest.approx(-torque * np.cos(angle), rel=1e-3)


def test_gravity_compensation_carries_the_robot(urdf: Path) -> None:
    engine = MujocoEngine(gravity=(0.0, -9.81, 0.0), ground=None)
    engine.add_robot(arm(urdf))
    steps(engine, 1.0)
    state = engine.joint_state("arm")
    assert abs(state.positions[0]) < 1e-9
    assert np.abs(state.efforts).max() < 1e-6


def test_servo_matches_the_differential_equation(urdf: Path) -> None:
    """I q'' = Kp (target - q) - (Kd + d) q', integrated finely."""
    engine = MujocoEngine(timestep=1 / 960, ground=None)
    engine.add_robot(arm(urdf, drives={"swing": (50.0, 4.0, 1e3)}, armature={"swing": 0.05}))
    engine.set_joint_targets("arm", {"swing": 0.3})
    inertia = 0.05 + 1e-3 + 2.0 * 0.2**2 + 2 * (1e-3 + 0.1 * (0.4**2 + 0.035**2))
    angle = speed = 0.0
    fine = 100
    dt = engine.timestep / fine
    for _ in range(240):
        engine.step()
        for _ in range(fine):
            speed += dt * (50.0 * (0.3 - angle) - 4.5 * speed) / inertia
            angle += dt * speed
        assert engine.joint_state("arm").positions[0] == pytest.approx(angle, abs=3e-3)


def test_drive_force_and_set_point_speed_are_limited(urdf: Path) -> None:
    engine = MujocoEngine(ground=None)
    engine.add_robot(arm(urdf, drives={"swing": (400.0, 1.0, 2.0)}, armature={"swing": 0.05}))
    engine.set_joint_targets("arm", {"swing": 2.0})
    inertia = 0.05 + 1e-3 + 2.0 * 0.2**2 + 2 * (1e-3 + 0.1 * (0.4**2 + 0.035**2))
    steps(engine, 0.2)
    state = engine.joint_state("arm")
    assert state.efforts[0] == pytest.approx(2.0, rel=1e-6)
    # Constant torque against the joint's own friction of 0.5 N m s: v = T/d (1 - exp(-d t / I)).
    expected = 2.0 / 0.5 * (1 - np.exp(-0.5 * 0.2 / inertia))
    assert state.velocities[0] == pytest.approx(expected, rel=0.02)

    engine = MujocoEngine(ground=None)
    engine.add_robot(arm(urdf, joint_limits={"swing": 0.5}))
    engine.set_joint_targets("arm", {"swing": 2.0})
    fastest = 0.0
    for _ in range(480):
        engine.step()
        fastest = max(fastest, engine.joint_state("arm").velocities[0])
    assert 0.45 < fastest < 0.51


@pytest.mark.parametrize("speed", [0.3, 0.6, 1.12, 2.5])
@pytest.mark.parametrize("acceleration", [0.0, 540.0, -540.0])
def test_fast_light_joint_comes_to_rest(speed: float, acceleration: float) -> None:
    """A finger of 0.13 kg whose drive switched from limit to limit for ever, at 1.12 m/s."""
    one, none = np.ones(1), np.zeros(1)
    drive = DriveConstants(4000.0 * one, 120.0 * one, 70.0 * one, np.inf * one, 0.1 * one, none)
    state = resting_drives(1)
    state.acceleration = np.array([acceleration])
    position, velocity, dt = none.copy(), np.array([speed]), 1.0 / 240.0
    for _ in range(240):
        step = StepDrives(drive, state, position, velocity, dt)
        change = step.force / (0.03 + step.armature)
        velocity = velocity + dt * change
        position = position + dt * velocity
        step.finish(change)
    assert abs(velocity[0]) < 1e-6
    assert abs(position[0]) < 1e-6


def test_fingers_are_coupled_and_grip_with_their_force(urdf: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    grip(engine, 10.0)
    report = steps(engine, 0.5)
    position = engine.joint_state("arm").positions
    assert position[1] == pytest.approx(position[2], abs=5e-5)
    by_link = {
        name: report.contacts.normal_impulse[report.contacts.other == i].sum() / engine.timestep
        for i, name in enumerate(report.contacts.names)
        if name != "ground"
    }
    # One drive closes both fingers: each presses with half of its force.
    assert by_link["arm/left"] == pytest.approx(by_link["arm/right"], rel=0.01)
    assert by_link["arm/left"] == pytest.approx(engine.joint_state("arm").efforts[1] / -2, rel=0.02)
    weight = 0.00216 * 9.81 * engine.timestep
    assert report.contacts.impulse[:, 2].sum() == pytest.approx(weight, rel=1e-3)


def test_grip_holds_under_motion(urdf: Path) -> None:
    """Less than 0.2 mm in 10 s of swinging at up to 0.8 m/s (user expectation 10)."""
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    grip(engine)
    start = inverse(engine.link_pose("arm", "tip")) @ engine.poses[0]
    fastest = 0.0
    for i in range(2400):
        engine.set_joint_targets("arm", {"swing": 0.7 * np.sin(3.0 * i * engine.timestep)})
        fastest = max(fastest, np.linalg.norm(engine.step().twist[0, :3]))
    end = inverse(engine.link_pose("arm", "tip")) @ engine.poses[0]
    assert fastest > 0.7
    assert np.linalg.norm(end[:3, 3] - start[:3, 3]) < 2e-4


def test_brick_put_into_a_finger_is_not_thrown(urdf: Path) -> None:
    """A snap by 1.5 mm into a finger: the force grows over 0.2 s, it does not strike."""
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    grip(engine)
    steps(engine, 0.3)
    usual = np.abs(engine.joint_state("arm").efforts[1])
    pose = engine.poses[0] @ at(0, 1.5e-3, 0)
    engine.update([0], [body(0, brick_layout(BrickShape(4, 2)), pose, fixed=True)])
    for _ in range(12):
        force = engine.step().contacts.normal_impulse.sum() / engine.timestep
        assert force < 2.5 * usual
    engine.set_joint_targets("arm", {"close": 0.03})
    report = steps(engine, 0.5)
    assert not len(report.contacts)


def test_only_what_can_be_touched_yields(urdf: Path) -> None:
    """Studs inside of other bricks are in no body of the model: they would stand in the way."""
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    structure = tower(8)
    layout = structure.graph.layout(structure.graph.component_ids[0])
    pose = engine.link_pose("arm", "left") @ at(-0.016, 0.003, -0.048)
    engine.update([], [body(0, layout, pose)])
    model = engine.model
    rows = [engine._pair_rows[pair] for pair in engine._yielding]
    geoms = np.concatenate([model.pair_geom1[rows], model.pair_geom2[rows]])
    assert len(rows) > 0
    assert (model.geom_bodyid[geoms] != 0).all()


def test_overlaps_count_robots_unless_told_not_to(urdf: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    inside = [body(0, brick_layout(), engine.link_pose("arm", "left"))]
    assert engine.overlaps(inside)[0]
    assert not engine.overlaps(inside, robots=False)[0]
    assert not engine.overlaps([body(0, brick_layout(), at(0.3, 0.3, 0.3))])[0]
    engine.set_joint_positions("arm", {"swing": 1.0})
    assert not engine.overlaps(inside)[0]


def test_snapshot_and_changes_of_the_scene_keep_the_robot(urdf: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    engine.set_joint_targets("arm", {"swing": 0.5})
    steps(engine, 0.1)
    snapshot = engine.snapshot()

    def future(add: bool) -> list[np.ndarray]:
        found = []
        for i in range(30):
            if add and i == 10:
                engine.update([], [body(3, brick_layout(part_id=3), at(2, 2, 0))])
            engine.step()
            state = engine.joint_state("arm")
            found += [state.positions, state.velocities, state.efforts]
        return found

    first = future(add=False)
    for add in (False, True):
        engine.restore(snapshot)
        for a, b in zip(first, future(add), strict=True):
            np.testing.assert_array_equal(a, b)


def test_two_robots(urdf: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    engine.add_robot(arm(urdf, name="other", world_T_base=at(0, 1, 0)))
    engine.set_joint_targets("other", {"swing": 0.4})
    steps(engine, 1.0)
    assert engine.joint_state("other").positions[0] == pytest.approx(0.4, abs=1e-3)
    assert abs(engine.joint_state("arm").positions[0]) < 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"urdf": Path("/nowhere/arm.urdf")}, "cannot read"),
        ({"name": "a/b"}, "slash"),
        ({"drives": {"elbow": (1.0, 1.0, 1.0)}}, "no joint elbow"),
        ({"pad_links": ("thumb",)}, "no link thumb"),
        ({"world_T_base": np.full((4, 4), np.nan)}, "base pose"),
    ],
)
def test_bad_robots_are_refused(urdf: Path, change: dict[str, object], message: str) -> None:
    engine = MujocoEngine()
    with pytest.raises(EngineError, match=message):
        engine.add_robot(arm(urdf, **change))
    engine.add_robot(arm(urdf))
    engine.step()


def test_bad_requests_are_refused(urdf: Path, tmp_path: Path) -> None:
    engine = MujocoEngine()
    engine.add_robot(arm(urdf))
    for request, message in (
        (lambda: engine.add_robot(arm(urdf)), "already"),
        (lambda: engine.set_joint_targets("arm", {"elbow": 0.0}), "elbow"),
        (lambda: engine.set_joint_targets("arm", {"follow": 0.0}), "follow"),
        (lambda: engine.set_joint_targets("arm", {"swing": np.nan}), "swing of robot arm is nan"),
        (lambda: engine.set_joint_positions("arm", {"elbow": 0.0}), "elbow"),
        (lambda: engine.link_pose("arm", "thumb"), "thumb"),
        (lambda: engine.joint_state("leg"), "leg"),
    ):
        with pytest.raises(EngineError, match=message):
            request()
    text = tmp_path / "text.urdf"
    text.write_text("no robot")
    with pytest.raises(EngineError, match="cannot read"):
        engine.add_robot(arm(text, name="x"))
    text.write_text("<model/>")
    with pytest.raises(EngineError, match="expected <robot>"):
        engine.add_robot(arm(text, name="x"))
    mesh = '<collision><geometry><mesh filename="package://p/a.stl"/></geometry></collision>'
    text.write_text(
        urdf.read_text().replace(
            "</robot>", LINK.format(name="odd", com="0 0 0", mass=1, collision=mesh) + "</robot>"
        )
    )
    with pytest.raises(EngineError, match="package"):
        engine.add_robot(arm(text, name="x"))
    engine.step()
