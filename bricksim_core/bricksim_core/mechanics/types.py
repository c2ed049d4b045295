# SPDX-License-Identifier: Apache-2.0
"""What goes into and comes out of every snap-fit model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bricksim_core.mechanics.portions import Portions
from bricksim_core.records import record
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray


class SolveStatus(StrEnum):
    """How an answer came about. Never silent: the simulator reports everything but SOLVED."""

    SOLVED = "solved"
    REUSED = "reused"
    """The last answer is certified to hold for the new loads too."""
    FALLBACK = "fallback"
    """The first solver did not converge; the robust one answered."""
    FAILED = "failed"
    """No solver answered; utilizations are NaN and nothing may be concluded."""


@record
class Solution:
    """Internal forces of one component under given loads.

    Attributes:
        status: How the answer came about.
        message: What went wrong, empty if nothing did.
        utilization: (C,) load over capacity per connection; > 1 is overloaded; by the layout's
            order of connections.
        forces: Gives `connection_wrench` and `contact_force`, which few answers are asked for.
        imbalance: Norm of the part of the loads that no internal force can balance over the norm
            of the loads.
        solve_time: Wall time [s].
    """

    status: SolveStatus
    message: str
    utilization: Array
    forces: Callable[[], tuple[Array, Array]]
    imbalance: float
    solve_time: float

    @property
    def connection_wrench(self) -> Array:
        """(C, 6) wrench that the connection's studs exert on its lower (stud) part, about the
        centre of its overlap at the stud plane, component axes [N, N m]; what its faces push is in
        `contact_force`."""
        return self._forces[0]

    @property
    def contact_force(self) -> Array:
        """(V,) compressive force at each of the system's `contacts` [N]."""
        return self._forces[1]

    @cached_property
    def _forces(self) -> tuple[Array, Array]:
        return self.forces()


@dataclass(frozen=True, eq=False)
class ContactVertices:
    """Where a model lets faces push on each other.

    Attributes:
        part_a: (V,) index of the part on the low side, -1 for the ground.
        part_b: (V,) index of the part on the high side.
        position: (V, 3) component frame [m].
        normal: (V, 3) unit normal from a to b: a compressive force acts along it on b.
    """

    part_a: IntArray
    part_b: IntArray
    position: Array
    normal: Array


@dataclass(frozen=True)
class LimitLoad:
    """Result of limit analysis.

    Attributes:
        factor: Multiple of the loads at which the component fails: inf if it never does, 0 if the
            loads cannot be carried at any size, NaN if no solver answered.
        mechanism: Indices of the connections that give way then, most work first.
    """

    factor: float
    mechanism: tuple[int, ...]


@dataclass(frozen=True)
class VerdictLimits:
    """What static analysis calls stable and marginal.

    Attributes:
        utilization: Highest utilization of a structure that stands [-].
        imbalance: Greatest part of the loads that may be left unbalanced in one that stands [-];
            above the accuracy of the model's solver.
        marginal_low: Utilization from which the verdict is too close to call [-].
        marginal_high: Utilization up to which it is [-].
    """

    utilization: float = 1.0 + 1e-6
    imbalance: float = 1e-3
    marginal_low: float = 0.9
    marginal_high: float = 1.1


class ComponentSystem(Protocol):
    """A model's equations for one component: constant while the topology is."""

    @property
    def contacts(self) -> ContactVertices:
        """Where the forces of `Solution.contact_force` act."""
        ...

    @property
    def strength(self) -> Array:
        """(C,) what it takes to break each connection; only ratios matter (break selection)."""
        ...

    def solve(self, loads: Array, tolerance: float = 0.0) -> Solution:
        """Internal forces that balance the loads.

        Args:
            tolerance: Error of the utilizations [-] up to which an earlier answer is given again
                (status REUSED), provided that it is certain and that nothing is overloaded.
                Where more than 0 is allowed, a model may estimate overloads that would take long
                (status FALLBACK).
            loads: (N, 6) wrench that acts on each part from outside (gravity, contacts, inertia
                forces -m a by d'Alembert), about the part's COM, component axes [N, N m]. Rows of
                anchored parts are ignored: the world takes what is left.
        """
        ...

    def bonded(self, loads: Array) -> Solution:
        """Internal forces if nothing yields: quick, and an upper estimate of what is overloaded.
        To about 1e-4 of the greatest utilization.

        Args:
            loads: (N, 6) as for `solve`.
        """
        ...

    def solving(self, loads: Array, tolerance: float = 0.0) -> Portions[Solution]:
        """What `solve` gives, in portions."""
        ...

    def factor(self) -> Portions[None]:
        """Does the first part of what `prepare` does."""
        ...

    def prepare(self) -> None:
        """Works out what every solve needs, so that the first one is as quick as the others.

        No answer hangs on whether it was called.
        """
        ...

    def safety_factor(self, loads: Array) -> LimitLoad:
        """The multiple of the loads at which the component fails (limit analysis)."""
        ...

    def snapshot(self) -> object:
        """What the next `solve` hangs on beside its loads (warm starts); None if nothing."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Returns to a snapshot of this system: the next `solve` repeats bit by bit."""
        ...


class ConnectionModel(Protocol):
    """A snap-fit model: from a component to its equations."""

    @property
    def name(self) -> str:
        """How `mechanics.models` knows it."""
        ...

    @property
    def verdict(self) -> VerdictLimits:
        """What counts as stable and as marginal with this model."""
        ...

    @property
    def engagement(self) -> float:
        """Slip by overload after which a connection is broken [m]; 0: at once."""
        ...

    @property
    def impact_time(self) -> float:
        """Duration of real impacts [s]; inf: as long as the engine's."""
        ...

    def system(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        ground: float | None = None,
        origin: ComponentSystem | None = None,
    ) -> ComponentSystem:
        """Builds the equations.

        Args:
            layout: The component.
            anchored: (N,) parts that the world holds.
            ground: Height [m] in the component frame of a rigid horizontal ground that parts may
                rest on (for static analysis), None for no ground.
            origin: Equations of this model for the component before it changed. They only save
                time: what of them still holds is taken over.
        """
        ...
