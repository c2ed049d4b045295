# SPDX-License-Identifier: Apache-2.0
"""Kinematics of an arm against finite differences and statics."""

import numpy as np
import pytest
from arms_support import yawed
from scipy.spatial.transform import Rotation

from bricksim_moveit_demo.description import READY, one_arm
from bricksim_moveit_demo.kinematics import ArmKinematics


@pytest.fixture(scope="module")
def kinematics():
    return ArmKinematics(one_arm(yawed(0.1, 0.2, 0.3, 40.0))[0])


def _configurations(kinematics, count=5):
    generator = np.random.default_rng(1)
    return [np.array(READY) + generator.uniform(-0.4, 0.4, 7) for _ in range(count)]


def test_jacobian_is_the_derivative_of_the_pose(kinematics):
    step = 1e-6
    for q in _configurations(kinematics):
        jacobian = kinematics.jacobian(q)
        for joint in range(7):
            forward, back = q.copy(), q.copy()
            forward[joint] += step
            back[joint] -= step
            a, b = kinematics.tool_pose(forward), kinematics.tool_pose(back)
            linear = (a[:3, 3] - b[:3, 3]) / (2.0 * step)
            spin = Rotation.from_matrix(a[:3, :3] @ b[:3, :3].T).as_rotvec() / (2.0 * step)
            np.testing.assert_allclose(jacobian[:3, joint], linear, atol=1e-7)
            np.testing.assert_allclose(jacobian[3:, joint], spin, atol=1e-7)


def test_joint_velocities_give_the_twist(kinematics):
    twist = np.array([0.02, -0.05, 0.03, 0.1, -0.2, 0.3])
    for q in _configurations(kinematics):
        reached = kinematics.jacobian(q) @ kinematics.joint_velocities(q, twist)
        np.testing.assert_allclose(reached, twist, rtol=0.03, atol=2e-3)


def test_wrench_is_recovered_from_joint_torques(kinematics):
    wrench = np.array([3.0, -4.0, 12.0, 0.1, 0.2, -0.3])
    for q in _configurations(kinematics):
        torques = kinematics.jacobian(q).T @ wrench
        np.testing.assert_allclose(kinematics.tool_wrench(q, torques), wrench, atol=1e-8)


def test_a_stretched_arm_tells_the_wrench_that_it_feels(kinematics):
    """What a singular configuration does not feel is taken as nothing."""
    stretched = np.zeros(7)
    jacobian = kinematics.jacobian(stretched)
    torques = jacobian.T @ np.array([3.0, -4.0, 12.0, 0.1, 0.2, -0.3])
    felt = np.linalg.pinv(jacobian.T, rcond=0.02) @ torques
    assert np.linalg.svd(jacobian)[1][-1] < 1e-9
    np.testing.assert_allclose(kinematics.tool_wrench(stretched, torques), felt, atol=1e-8)


def test_errors_of_torques_are_no_forces_near_a_singular_configuration(kinematics):
    nearly = np.zeros(7)
    nearly[3] = -0.002
    least = np.linalg.svd(kinematics.jacobian(nearly))[1][-1]
    assert 0.0 < least < 0.005
    generator = np.random.default_rng(5)
    for error in generator.uniform(-0.03, 0.03, (20, 7)):
        assert np.linalg.norm(kinematics.tool_wrench(nearly, error)[:3]) < 2.0


def test_no_torque_is_needed_to_stand_still(kinematics):
    for q in _configurations(kinematics):
        torques = kinematics.inertial_torques(q, np.zeros(7), np.zeros(7))
        np.testing.assert_allclose(torques, 0.0, atol=1e-12)


def test_power_equals_the_change_of_kinetic_energy(kinematics):
    """d/dt (1/2 v^T M v) = v^T tau, with M from unit accelerations."""
    generator = np.random.default_rng(3)
    q, v, a = np.array(READY), generator.uniform(-1, 1, 7), generator.uniform(-2, 2, 7)

    def energy(positions, velocities):
        columns = [kinematics.inertial_torques(positions, np.zeros(7), axis) for axis in np.eye(7)]
        return 0.5 * velocities @ np.column_stack(columns) @ velocities

    h = 1e-6
    later, earlier = energy(q + h * v, v + h * a), energy(q - h * v, v - h * a)
    power = v @ kinematics.inertial_torques(q, v, a)
    assert (later - earlier) / (2.0 * h) == pytest.approx(power, rel=1e-5)
