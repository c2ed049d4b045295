# SPDX-License-Identifier: Apache-2.0
"""Where a structure that stands firm is, from all looks at it.

Each look has its error. What does not move is seen with every brick that goes there, and what is
independent from look to look averages out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bricksim_core.spatial import Array, inverse

_LEVER = 0.03
"""Error of a look's position per error of its yaw [m/rad]: 1 mm at 2 degrees."""
_MOVED = 0.005
"""A look this far from what is remembered [m] tells that the structure was moved."""
_MOVED_YAW = np.radians(10.0)
"""The same for its yaw [rad]."""
_LOOKS = 5
"""How often a place is looked at each time: the error of one look is more than a stud's play."""


@dataclass
class Sightings:
    """Looks at one frame that stands still, the base, by the places of others in it.

    Attributes:
        base: (4, 4) world_T_base [m]: the least squares of all looks; None before the first.
    """

    base: Array | None = None
    _first: Array = field(default_factory=lambda: np.eye(4))
    _rows: list[Array] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def look(self, world_T_seen: Array, base_T_place: Array) -> Array:
        """Takes in a look; one far from what was seen before begins anew.

        Args:
            world_T_seen: (4, 4) where a place was seen [m]; its height and tilt are taken as exact.
            base_T_place: (4, 4) where it is in the base [m].

        Returns:
            (4, 4) world_T_place [m] from all looks.
        """
        if self.base is None or self._contradicts(world_T_seen, base_T_place):
            self._first = world_T_seen @ inverse(base_T_place)
            self._rows, self._values = [], []
        expected = self._first @ base_T_place
        off = world_T_seen[:3, 3] - expected[:3, 3]
        turn = _turn(expected, world_T_seen)
        # x, y and yaw by which the first estimate is corrected: the base turns about its origin.
        arm = expected[:3, 3] - self._first[:3, 3]
        self._rows += [
            np.array([1.0, 0.0, -arm[1]]),
            np.array([0.0, 1.0, arm[0]]),
            np.array([0.0, 0.0, _LEVER]),
        ]
        self._values += [float(off[0]), float(off[1]), _LEVER * turn]
        x, y, yaw = np.linalg.lstsq(np.array(self._rows), np.array(self._values), rcond=None)[0]
        self.base = self._first.copy()
        self.base[:3, :3] = _about_z(yaw) @ self.base[:3, :3]
        self.base[:2, 3] += [x, y]
        return self.base @ base_T_place

    def _contradicts(self, world_T_seen: Array, base_T_place: Array) -> bool:
        assert self.base is not None
        expected = self.base @ base_T_place
        apart = float(np.linalg.norm(world_T_seen[:3, 3] - expected[:3, 3]))
        lever = float(np.linalg.norm(base_T_place[:2, 3]))
        turn = abs(_turn(expected, world_T_seen))
        return apart > _MOVED + 0.5 * lever * _MOVED_YAW or turn > _MOVED_YAW


def averaged(
    observe: Callable[[Array], Array],
    world_T_place: Array,
    base_T_place: Array | None = None,
    looks: Sightings | None = None,
) -> Array:
    """(4, 4) where what stands still for now is [m], from several looks at it.

    Args:
        observe: Looks at a pose once; see `World.observe`.
        world_T_place: (4, 4) where it really is [m].
        base_T_place: (4, 4) where it is in a base [m]; None: it is the base.
        looks: All that was seen of that base before; None: nothing was.
    """
    looks, seen = looks or Sightings(), world_T_place
    base_T_place = np.eye(4) if base_T_place is None else base_T_place
    for _ in range(_LOOKS):
        seen = looks.look(observe(world_T_place), base_T_place)
    return seen


def _turn(expected: Array, seen: Array) -> float:
    """Turn about z [rad] from one pose to another, both almost upright."""
    rotation = seen[:3, :3] @ expected[:3, :3].T
    return float(np.arctan2(rotation[1, 0] - rotation[0, 1], rotation[0, 0] + rotation[1, 1]))


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
