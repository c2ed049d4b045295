# SPDX-License-Identifier: Apache-2.0
"""What of its loads accelerates a free component as a whole."""

from __future__ import annotations

import math
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.dynamics import mass_properties
from bricksim_core.mechanics.loads import STANDARD_GRAVITY
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout

_PITCH = float(PITCHES[3])


class Balance:
    """The parts of a component as bodies, with torques and turns in stud pitches (`PITCHES`).

    Args:
        layout: The component.

    Attributes:
        inertias: (N, 3, 3) of the parts about their centres of mass, scaled [kg].
    """

    def __init__(self, layout: ComponentLayout) -> None:
        self.inertias = layout.inertias / _PITCH**2
        self._masses = layout.masses
        self._arm = (layout.coms - mass_properties(layout).com) / _PITCH
        self._least = STANDARD_GRAVITY * float(np.linalg.norm(layout.masses))

    def taken(self, loads: Array) -> tuple[Array, float]:
        """Takes the acceleration of the component out of its loads.

        Args:
            loads: (N, 6) scaled wrenches about the parts' COMs [N].

        Returns:
            (N, 6) scaled loads with zero resultant: the given ones less mass times rigid-body
            acceleration, and the norm of what was taken over the norm of the loads or, if greater,
            of the weights.
        """
        rigid, shares, _ = self._maps
        left, share, _ = _taken(rigid, shares, loads, self._least)
        return left, share

    def apart(self, loads: Array) -> tuple[Array, Array]:
        """(N, 6) scaled loads less what accelerates the component, as `taken`, and (6,) scaled
        acceleration by that, as `acceleration`."""
        rigid, shares, mobility = self._maps
        left, _, resultant = _taken(rigid, shares, loads, self._least)
        return left, mobility @ resultant

    def acceleration(self, loads: Array) -> Array:
        """(6,) scaled acceleration of the COM and of the turn that (N, 6) scaled loads give."""
        rigid, _, mobility = self._maps
        return mobility @ (loads.reshape(-1) @ rigid)

    def relative(self, twists: Array, momenta: Array) -> Array:
        """(N, 6) scaled twists of the parts against the rigid motion that has their momentum.

        Args:
            twists: (N, 6) scaled twists [m/s].
            momenta: (N, 6) scaled momenta about the parts' COMs by these.
        """
        rigid, _, _ = self._maps
        return twists - (rigid @ self.acceleration(momenta)).reshape(-1, 6)

    @cached_property
    def _maps(self) -> tuple[Array, Array, Array]:
        """(6 N, 6) twists of the parts by a rigid one about the centre of mass, (6 N, 6) their
        momenta by unit of its resultant, and (6, 6) that twist by unit of it."""
        rigid, momenta = _rigid(self._arm, self._masses, self.inertias)
        mobility = np.linalg.inv(rigid.T @ momenta)
        return rigid, momenta @ mobility, mobility


@compiled
def _rigid(arms: Array, masses: Array, inertias: Array) -> tuple[Array, Array]:
    """(6 N, 6) twists of the parts by rigid twists about the centre of mass, and their momenta.

    Args:
        arms: (N, 3) scaled places from there.
        masses: (N,) [kg].
        inertias: (N, 3, 3) scaled [kg].
    """
    twists, momenta = np.zeros((6 * len(arms), 6)), np.zeros((6 * len(arms), 6))
    for n in range(len(arms)):
        for i in range(6):
            twists[6 * n + i, i] = 1.0
        x, y, z = arms[n]
        for i, j, lever in ((0, 4, z), (0, 5, -y), (1, 3, -z), (1, 5, x), (2, 3, y), (2, 4, -x)):
            twists[6 * n + i, j] = lever
        for i in range(3):
            for j in range(6):
                momenta[6 * n + i, j] = masses[n] * twists[6 * n + i, j]
            momenta[6 * n + 3 + i, 3:] = inertias[n, i]
    return twists, momenta


@compiled
def _taken(rigid: Array, shares: Array, loads: Array, least: float) -> tuple[Array, float, Array]:
    """What `Balance.taken` gives, and the (6,) resultant about the centre of mass.

    Args:
        rigid: As the next one, see `Balance._maps`.
        shares: (6 N, 6)
        loads: (N, 6) scaled [N].
        least: Norm of the weights [N].
    """
    total, left = np.zeros(6), np.empty_like(loads)
    for n in range(len(loads)):
        for c in range(6):
            for i in range(6):
                total[i] += rigid[6 * n + c, i] * loads[n, c]
    inertial = given = 0.0
    for n in range(len(loads)):
        for c in range(6):
            share = 0.0
            for i in range(6):
                share += shares[6 * n + c, i] * total[i]
            left[n, c] = loads[n, c] - share
            inertial += share * share
            given += loads[n, c] * loads[n, c]
    return left, math.sqrt(inertial) / max(math.sqrt(given), least), total


def balance_of(layout: ComponentLayout) -> Balance:
    """That of a component."""
    known = _KNOWN.get(layout)
    if known is None:
        known = _KNOWN[layout] = Balance(layout)
    return known


_KNOWN: WeakKeyDictionary[ComponentLayout, Balance] = WeakKeyDictionary()
"""Of the layouts that are alive."""
