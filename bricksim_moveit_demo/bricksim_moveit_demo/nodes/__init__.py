# SPDX-License-Identifier: Apache-2.0
"""ROS 2: the simulator with its arms' controllers, the tasks as actions, whole episodes."""
