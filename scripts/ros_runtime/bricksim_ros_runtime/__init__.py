# SPDX-License-Identifier: Apache-2.0
"""What the private ROS 2 runtime lacks of the ``ros2`` program."""
