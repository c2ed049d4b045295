# SPDX-License-Identifier: Apache-2.0
"""How much shorter than in the engine real impacts are.

A rigid-body engine spreads an impact over its own contact time, some milliseconds; real bricks on a
table are in contact for about one (docs/mechanics.md). Impulses are the same, so real forces are
that much higher for that much shorter. This holds for what hits at speed only: forces that press,
carry or drive last as long as the engine says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bricksim_core.engines.protocol import StepReport
from bricksim_core.spatial import Array, cross
from bricksim_core.topology.layout import ComponentLayout, IntArray

HIT_SPEED = 0.1
"""Closing speed from which a contact is an impact [m/s]: that of a fall from half a millimetre."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """Which part belongs to which rigid body.

    Attributes:
        part_ids: (P,) all part ids, sorted.
        row: (P,) row of each part's component in a step report.
        coms: (K, 3) centre of mass of each component in its frame, by rows of the report [m].
    """

    part_ids: IntArray
    row: IntArray
    coms: Array


def bodies_of(layouts: Mapping[int, ComponentLayout]) -> Bodies:
    """The bodies of a scene, from the layouts of all components by id."""
    ordered = [layouts[component] for component in sorted(layouts)]
    none = np.zeros(0, dtype=np.int64)
    part_ids = np.concatenate([none, *(layout.part_ids for layout in ordered)])
    row = np.repeat(np.arange(len(ordered)), [len(layout.part_ids) for layout in ordered])
    coms = [layout.masses @ layout.coms / layout.masses.sum() for layout in ordered]
    order = np.argsort(part_ids)
    return Bodies(part_ids[order], row[order], np.array(coms).reshape(-1, 3))


def closing_speeds(report: StepReport, bodies: Bodies) -> Array:
    """(K,) speed at which each component hits things in a step [m/s].

    The speed at the start of the step along each contact's normal, averaged with the contacts'
    impulses as weights; 0 without contacts. Robots do not count: they drive what they push.
    """
    contacts = report.contacts
    count = len(report.component_ids)
    robots = np.array([name != "ground" for name in contacts.names], dtype=bool)
    kept = contacts.normal_impulse > 0.0
    if robots.any():
        kept &= ~((contacts.other >= 0) & robots[contacts.other])
    if not kept.any():
        return np.zeros(count)
    poses = report.previous_world_T_component
    coms = np.einsum("kij,kj->ki", poses[:, :3, :3], bodies.coms) + poses[:, :3, 3]
    speed = np.zeros(int(kept.sum()))
    rows = []
    for parts, sign in ((contacts.part_a[kept], 1.0), (contacts.part_b[kept], -1.0)):
        row = np.full(len(parts), -1, dtype=np.int64)
        bricks = parts >= 0
        row[bricks] = bodies.row[np.searchsorted(bodies.part_ids, parts[bricks])]
        twist = report.previous_twist[row[bricks]]
        arm = contacts.position[kept][bricks] - coms[row[bricks]]
        velocity = twist[:, :3] + cross(twist[:, 3:], arm)
        speed[bricks] += sign * np.einsum("ci,ci->c", velocity, contacts.normal[kept][bricks])
        rows.append(row)
    impulse = contacts.normal_impulse[kept]
    total, weighted = np.zeros(count), np.zeros(count)
    for row in rows:
        bricks = row >= 0
        np.add.at(total, row[bricks], impulse[bricks])
        np.add.at(weighted, row[bricks], (impulse * speed)[bricks])
    return np.divide(weighted, total, out=np.zeros(count), where=total > 0.0)
