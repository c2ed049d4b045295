# SPDX-License-Identifier: Apache-2.0
"""What tests wait for and assert."""

from launch_pytest.tools import process

__all__ = ["process"]
