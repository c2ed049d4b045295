# SPDX-License-Identifier: Apache-2.0
"""Controllers of one arm: trajectories, the gripper, Cartesian servoing, wrist force."""
