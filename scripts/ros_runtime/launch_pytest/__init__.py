# SPDX-License-Identifier: Apache-2.0
"""Tests of launched processes with pytest, over launch.LaunchService.

Offers what BrickSim's tests use of the package of this name in ROS 2 (`fixture`, the ``launch``
mark, the fixtures ``launch_service`` and ``launch_context``, `actions.ReadyToTest`, `tools`), for a
runtime that lacks it. With the real package the same tests run on it.
"""

from launch_pytest import actions, tools
from launch_pytest.fixtures import fixture

__all__ = ["actions", "fixture", "tools"]
