# SPDX-License-Identifier: Apache-2.0
"""Rigid-body engines behind one protocol."""

from bricksim_core.engines.factory import create_engine, require_engine
from bricksim_core.engines.protocol import (
    NO_PART,
    BodySpec,
    Contacts,
    Engine,
    JointState,
    RobotSpec,
    StepReport,
)

__all__ = [
    "NO_PART",
    "BodySpec",
    "Contacts",
    "Engine",
    "JointState",
    "RobotSpec",
    "StepReport",
    "create_engine",
    "require_engine",
]
