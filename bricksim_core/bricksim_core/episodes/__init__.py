# SPDX-License-Identifier: Apache-2.0
"""Recorded assembly episodes: reading them back without ROS."""
