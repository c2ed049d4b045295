# SPDX-License-Identifier: Apache-2.0
"""Which numbers the ids of parts and connections may be."""

from __future__ import annotations

from typing import SupportsIndex

from bricksim_core.errors import TopologyError
from bricksim_core.values import as_whole

MAX_ID = 2**53
"""Ids are whole numbers of -MAX_ID to MAX_ID: what every JSON reader keeps exactly."""
MAX_SCENE_ID = 2**31 - 1
"""Greatest id of a part in a simulator, where they begin at 0: two of them make one key of 64 bit,
markers in ROS have 31, and -1 stands for no part."""


def as_id(value: SupportsIndex, name: str, low: int = -MAX_ID, high: int = MAX_ID) -> int:
    """An id given by a user, checked.

    Raises:
        TopologyError: It is not a whole number of low to high.
    """
    return as_whole(value, name, low, high, TopologyError)
