# SPDX-License-Identifier: Apache-2.0
"""Loads on the parts of a moving component: what its connections have to carry in a step.

By d'Alembert a part is in equilibrium under the internal forces and its *load*: gravity, contacts
and applied wrenches less the rate of change of its own momentum. All parts of a component share one
rigid motion, so their momentum rates follow from the component's: its acceleration under the
external forces (Newton and Euler) and its measured angular velocity. The loads of a free component
are therefore in balance to rounding, and velocities that were set from outside (a teleport, a
reset) load nothing, because no difference of velocities between steps enters. What the measured
change of velocity says beyond the known forces is reported, never hidden.

Loads are averages over steps, in component axes at each step's start (where the engine evaluates
the contacts' lever arms). They are linear in what happens in a step, so a frame's steps are summed
up by component before anything is computed by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import StepReport
from bricksim_core.mechanics.bodies import Bodies
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import ComponentLayout, IntArray

STANDARD_GRAVITY = 9.81
"""[m/s^2]"""


class StepLoads:
    """What loads the W loaded components in S engine steps.

    Args:
        bodies: The scene during the steps.
        reports: The steps, all of one length.
        gravity: (3,) world [m/s^2].
        applied: For each step, (6,) force [N] and torque about the part's COM [N m], world axes,
            by part id; ids of other components are passed over.

    Attributes:
        acceleration: (S, W, 3) of the COM under all forces, component axes [m/s^2]; 0 if held.
        spin: (S, W, 3) angular acceleration, component axes [rad/s^2]; 0 if held.
    """

    def __init__(
        self,
        bodies: Bodies,
        reports: Sequence[StepReport],
        gravity: Array,
        applied: Sequence[Mapping[int, Array]] = (),
    ) -> None:
        self._bodies = bodies
        self._dt = reports[0].dt
        rows, count = bodies.loaded, len(bodies.loaded)
        shape = (len(reports), count)
        poses = np.array([r.previous_world_T_component[rows] for r in reports])
        rotation = np.ascontiguousarray(poses[:, :, :3, :3]).reshape(-1, 3, 3)
        self._part, self._step, self._wrench = self._acting(
            reports, rotation, poses[:, :, :3, 3].reshape(-1, 3), applied
        )
        owner = bodies.owner[self._part]
        flat = self._step * count + owner
        total = np.zeros((len(rotation), 6))
        arm = bodies.arms[self._part]
        torque = self._wrench[:, 3:] + cross(arm, self._wrench[:, :3])
        np.add.at(total, flat, np.concatenate([self._wrench[:, :3], torque], axis=1))

        weight = (gravity @ rotation).reshape(*shape, 3)
        moving = ~bodies.held
        turning = np.array([r.previous_twist[rows, 3:] for r in reports])
        before = np.matmul(turning[:, :, None], poses[:, :, :3, :3])[:, :, 0]
        turning = np.array([r.twist[rows, 3:] for r in reports])
        poses = np.array([r.world_T_component[rows, :3, :3] for r in reports])
        after = np.matmul(turning[:, :, None], poses)[:, :, 0]
        # Mean of w w' over the step if the angular velocity w changes linearly in component axes.
        mixed = before[..., :, None] * after[..., None, :]
        squares = (
            before[..., :, None] * before[..., None, :] + after[..., :, None] * after[..., None, :]
        ) / 3.0 + (mixed + np.swapaxes(mixed, -1, -2)) / 6.0
        squares *= moving[:, None, None]
        total = total.reshape(*shape, 6)
        push = total[..., :3] / bodies.mass[:, None]
        turn = total[..., 3:] - gyroscopic_torque(bodies.inertia, squares)
        self.acceleration = (weight + push) * moving[:, None]
        self.spin = np.einsum("wij,swj->swi", bodies.mobility, turn) * moving[:, None]
        self._squares = squares
        # Gravity and the part of the acceleration that it causes cancel to the last bit.
        self._against = np.where(moving[:, None], push, -weight)

    def summed(self, weights: Array) -> Array:
        """(P, 6) sums over the steps of the loads on the loaded parts, component axes [N, N m].

        Args:
            weights: (S, W) factors.
        """
        bodies, owner = self._bodies, self._bodies.owner
        against = np.einsum("sw,swi->wi", weights, self._against)[owner]
        spin = np.einsum("sw,swi->wi", weights, self.spin)[owner]
        squares = np.einsum("sw,swij->wij", weights, self._squares)
        trace = squares[:, 0, 0] + squares[:, 1, 1] + squares[:, 2, 2]
        outward = squares - trace[:, None, None] * np.eye(3)
        against += cross(spin, bodies.arms)
        against += np.matmul(bodies.arms[:, None, :], outward[owner])[:, 0]
        loads = np.empty((len(owner), 6))
        loads[:, :3] = -bodies.masses[:, None] * against
        loads[:, 3:] = -np.matmul(bodies.inertias, spin[:, :, None])[:, :, 0]
        loads[:, 3:] -= gyroscopic_torque(bodies.inertias, squares[owner])
        factor = weights[self._step, owner[self._part]]
        np.add.at(loads, self._part, factor[:, None] * self._wrench)
        return loads

    def velocity_changes(self, weights: Array) -> Array:
        """(W, 6) how much the steps changed the velocity of the components' COMs and their spin,
        component axes [m/s, rad/s].

        Args:
            weights: (S, W) factors.
        """
        rates = np.concatenate([self.acceleration, self.spin], axis=2)
        return self._dt * np.einsum("sw,swi->wi", weights, rates)

    def _acting(
        self,
        reports: Sequence[StepReport],
        rotation: Array,
        origin: Array,
        applied: Sequence[Mapping[int, Array]],
    ) -> tuple[IntArray, IntArray, Array]:
        """Contacts and applied wrenches on loaded parts.

        Args:
            reports: The steps.
            rotation: (S W, 3, 3) of the components at the starts.
            origin: (S W, 3) their places [m].
            applied: Wrenches by part id for each step.

        Returns:
            (M,) indices of the loaded parts, (M,) steps and (M, 6) mean wrenches about the parts'
            COMs, component axes [N, N m].
        """
        bodies, count = self._bodies, len(self._bodies.loaded)
        part, step, impulse, position = contact_impulses(bodies, reports)
        flat = step * count + bodies.owner[part]
        turned = rotation[flat]
        force = np.matmul(impulse[:, None, :], turned)[:, 0] / reports[0].dt
        arm = np.matmul((position - origin[flat])[:, None, :], turned)[:, 0] - bodies.local[part]
        wrench = np.concatenate([force, cross(arm, force)], axis=1)
        given = [
            (place, s, np.reshape(value, (2, 3)) @ rotation[s * count + bodies.owner[place]])
            for s, wrenches in enumerate(applied)
            for place, value in self._loaded(wrenches)
        ]
        if given:
            part = np.concatenate([part, [place for place, _, _ in given]])
            step = np.concatenate([step, [s for _, s, _ in given]])
            wrench = np.concatenate([wrench, [value.reshape(6) for _, _, value in given]])
        return part, step, wrench

    def _loaded(self, wrenches: Mapping[int, Array]) -> list[tuple[int, Array]]:
        """Wrenches on loaded parts, by index of the part."""
        bodies, found = self._bodies, []
        for part_id, wrench in wrenches.items():
            at = int(bodies.find(np.array(part_id)))
            if at < len(bodies.part_ids) and bodies.part_ids[at] == part_id:
                found.append((int(bodies.place[at]), wrench))
        return [(place, wrench) for place, wrench in found if place >= 0]


def contact_impulses(
    bodies: Bodies, reports: Sequence[StepReport]
) -> tuple[IntArray, IntArray, Array, Array]:
    """Contact impulses on loaded parts.

    Returns:
        (M,) indices of the loaded parts, (M,) steps, (M, 3) impulses [N s] and (M, 3) where [m],
        world.
    """
    contacts = [report.contacts for report in reports]
    step = np.repeat(np.arange(len(reports)), [len(c) for c in contacts])
    a = np.concatenate([c.part_a for c in contacts])
    b = np.concatenate([c.part_b for c in contacts])
    impulse = np.concatenate([c.impulse for c in contacts])
    position = np.concatenate([c.position for c in contacts])
    bricks = np.flatnonzero(a >= 0)
    parts = np.concatenate([b, a[bricks]])
    place = bodies.place[bodies.find(parts)] if len(parts) else parts
    step = np.concatenate([step, step[bricks]])
    impulse = np.concatenate([impulse, -impulse[bricks]])
    position = np.concatenate([position, position[bricks]])
    kept: NDArray[np.bool_] = place >= 0
    return place[kept], step[kept], impulse[kept], position[kept]


def gravity_loads(layout: ComponentLayout, gravity: Array) -> Array:
    """(N, 6) weights of the parts at their COMs [N]; ``gravity`` (3,) in component axes [m/s^2]."""
    loads = np.zeros((len(layout.part_ids), 6))
    loads[:, :3] = layout.masses[:, None] * gravity
    return loads


def gyroscopic_torque(inertia: Array, squares: Array) -> Array:
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
