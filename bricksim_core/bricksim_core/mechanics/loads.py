# SPDX-License-Identifier: Apache-2.0
"""Loads on the parts of a moving component: what its connections have to carry in a step.

By d'Alembert a part is in equilibrium under the internal forces and its *load*: gravity, contacts
and applied wrenches less the rate of change of its own momentum. All parts of a component share one
rigid motion, so their momentum rates follow from the component's: its acceleration under the
external forces (Newton and Euler) and its measured angular velocity. The loads of a free component
are therefore in balance to rounding, and velocities that were set from outside (a teleport, a
reset) load nothing, because no difference of velocities between steps enters. What the measured
change of velocity says beyond the known forces is reported, never hidden.

Loads are averages over the step, in component axes at its start (where the engine evaluates the
contacts' lever arms).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bricksim_core.dynamics import mass_properties
from bricksim_core.engines.protocol import Contacts
from bricksim_core.spatial import Array, cross, transform_points
from bricksim_core.topology.layout import ComponentLayout, IntArray

STANDARD_GRAVITY = 9.81
"""[m/s^2]"""


@dataclass(frozen=True, eq=False)
class PartLoads:
    """Loads on the parts of one component.

    Attributes:
        loads: (N, 6) force [N] and torque about each part's COM [N m], component axes.
        unexplained: (6,) force [N] and torque about the component's COM [N m], component axes, that
            the change of its velocity demands beyond gravity, contacts and applied wrenches. Zero
            for a component that the world holds.
    """

    loads: Array
    unexplained: Array


class ImpulseTable:
    """Contact impulses of one step by the part that they act on."""

    def __init__(self, contacts: Contacts) -> None:
        """
        Args:
            contacts: Of one engine step.
        """
        bricks = contacts.part_a >= 0
        part = np.concatenate([contacts.part_b, contacts.part_a[bricks]])
        impulse = np.concatenate([contacts.impulse, -contacts.impulse[bricks]])
        position = np.concatenate([contacts.position, contacts.position[bricks]])
        order = np.argsort(part, kind="stable")
        self._part, self._impulse = part[order], impulse[order]
        self._position = position[order]

    def on(self, part_ids: IntArray) -> tuple[IntArray, Array, Array]:
        """Impulses on some parts.

        Args:
            part_ids: (N,) part ids.

        Returns:
            (M,) index into ``part_ids``, (M, 3) impulse on that part [N s] and (M, 3) where [m],
            world.
        """
        first = np.searchsorted(self._part, part_ids, side="left")
        counts = np.searchsorted(self._part, part_ids, side="right") - first
        index = np.repeat(np.arange(len(part_ids)), counts)
        within = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = first[index] + within
        return index, self._impulse[rows], self._position[rows]


def part_loads(
    layout: ComponentLayout,
    world_T_component: Array,
    twist: Array,
    next_world_T_component: Array,
    next_twist: Array,
    impulses: ImpulseTable,
    dt: float,
    gravity: Array,
    applied: Mapping[int, Array] | None = None,
    fixed: bool = False,
) -> PartLoads:
    """Loads on the parts of one component, averaged over one engine step.

    Args:
        layout: The component.
        world_T_component: (4, 4) its pose at the start of the step [m].
        twist: (6,) COM linear and angular velocity at the start, world [m/s, rad/s].
        next_world_T_component: (4, 4) its pose at the end [m].
        next_twist: (6,) its velocity at the end [m/s, rad/s].
        impulses: Contact impulses of the step.
        dt: Length of the step [s].
        gravity: (3,) world [m/s^2].
        applied: (6,) force [N] and torque about the part's COM [N m], world axes, by part id; ids
            of other components are passed over.
        fixed: True if the world holds the component: nothing accelerates.
    """
    rotation = world_T_component[:3, :3]
    external = _external_loads(layout, world_T_component, impulses, dt, gravity, applied)
    if fixed:
        return PartLoads(external, np.zeros(6))

    mass, inertia, arms = _rigid_body(layout)
    force = external[:, :3].sum(axis=0)
    torque = (external[:, 3:] + cross(arms, external[:, :3])).sum(axis=0)
    before = rotation.T @ twist[3:]
    after = next_world_T_component[:3, :3].T @ next_twist[3:]
    # Mean of w w' over the step if the angular velocity w changes linearly in component axes.
    squares = (np.outer(before, before) + np.outer(after, after)) / 3.0
    squares += (np.outer(before, after) + np.outer(after, before)) / 6.0
    acceleration = force / mass
    spin = np.linalg.solve(inertia, torque - _gyroscopic_torque(inertia, squares))

    loads = external
    centripetal = arms @ (squares - np.trace(squares) * np.eye(3))
    loads[:, :3] -= layout.masses[:, None] * (acceleration + cross(spin, arms) + centripetal)
    loads[:, 3:] -= layout.inertias @ spin + _gyroscopic_torque(layout.inertias, squares)

    measured = rotation.T @ (next_twist[:3] - twist[:3]) / dt - acceleration
    measured_spin = (after - before) / dt - spin
    return PartLoads(loads, np.concatenate([mass * measured, inertia @ measured_spin]))


def gravity_loads(layout: ComponentLayout, gravity: Array) -> Array:
    """(N, 6) weights of the parts at their COMs [N]; ``gravity`` (3,) in component axes [m/s^2]."""
    loads = np.zeros((len(layout.part_ids), 6))
    loads[:, :3] = layout.masses[:, None] * gravity
    return loads


def _external_loads(
    layout: ComponentLayout,
    world_T_component: Array,
    impulses: ImpulseTable,
    dt: float,
    gravity: Array,
    applied: Mapping[int, Array] | None,
) -> Array:
    rotation = world_T_component[:3, :3]
    loads = gravity_loads(layout, rotation.T @ gravity)
    index, impulse, position = impulses.on(layout.part_ids)
    if len(index):
        arm = position - transform_points(world_T_component, layout.coms[index])
        wrench = np.concatenate([impulse, cross(arm, impulse)], axis=1) / dt
        np.add.at(loads, index, (wrench.reshape(-1, 2, 3) @ rotation).reshape(-1, 6))
    for part_id, wrench in (applied or {}).items():
        row = int(np.searchsorted(layout.part_ids, part_id))
        if row < len(layout.part_ids) and layout.part_ids[row] == part_id:
            loads[row] += (np.asarray(wrench, dtype=float).reshape(2, 3) @ rotation).reshape(6)
    return loads


@lru_cache(maxsize=1024)
def _rigid_body(layout: ComponentLayout) -> tuple[float, Array, Array]:
    """Mass, inertia about the COM and (N, 3) arms from it to the parts' COMs, component axes."""
    mass, com, inertia = mass_properties(layout)
    return mass, inertia, layout.coms - com


def _gyroscopic_torque(inertia: Array, squares: Array) -> Array:
    """Mean of w x (I w), given the mean of w w': twice the axial vector of I (w w')."""
    product = inertia @ squares
    return np.stack(
        [
            product[..., 2, 1] - product[..., 1, 2],
            product[..., 0, 2] - product[..., 2, 0],
            product[..., 1, 0] - product[..., 0, 1],
        ],
        axis=-1,
    )
