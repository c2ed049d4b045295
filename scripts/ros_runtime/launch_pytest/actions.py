# SPDX-License-Identifier: Apache-2.0
"""Actions for the launch descriptions of tests."""

from launch_testing.actions import ReadyToTest

__all__ = ["ReadyToTest"]
