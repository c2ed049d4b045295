# SPDX-License-Identifier: Apache-2.0
"""Solutions of inverse kinematics that are worth a plan."""

from __future__ import annotations

import numpy as np

from bricksim_core.spatial import Array

_DISTINCT = 0.2
"""Joint positions that differ by less than this [rad] are one solution."""


class Solutions:
    """Distinct joint positions that reach a pose, as they are found.

    Args:
        here: (J,) where the arm is [rad].
        count: How many are wanted.
    """

    def __init__(self, here: Array, count: int) -> None:
        self._here = here
        self._count = count
        self._found: list[Array] = []

    def add(self, solution: Array) -> bool:
        """Takes in (J,) positions [rad]; True once there are enough."""
        if all(np.abs(solution - other).max() > _DISTINCT for other in self._found):
            self._found.append(solution)
        return len(self._found) == self._count

    def nearest_first(self) -> list[Array]:
        """What was found, the ones next to where the arm is first."""
        return sorted(self._found, key=lambda q: float(np.linalg.norm(q - self._here)))
