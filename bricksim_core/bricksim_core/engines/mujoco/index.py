# SPDX-License-Identifier: Apache-2.0
"""Where a model keeps what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.mujoco.bodies import Body
from bricksim_core.engines.mujoco.contact import GeomTable
from bricksim_core.engines.mujoco.masking import Surroundings, surroundings
from bricksim_core.engines.mujoco.pool import NO_COMPONENT, Pool
from bricksim_core.engines.mujoco.robots import RobotIndex
from bricksim_core.engines.mujoco.specification import GROUND
from bricksim_core.engines.protocol import NO_PART
from bricksim_core.spatial import Array, joined
from bricksim_core.topology.layout import IntArray

_IDENTITY = np.eye(4)[None]


@dataclass(frozen=True, eq=False)
class SceneIndex:
    """Addresses in a model; K components sorted by id, F of them free.

    Attributes:
        ids: (K,) component ids.
        free: (F,) rows of the free ones.
        body: (F,) their MuJoCo bodies.
        qpos: (F, 7) addresses of their positions.
        dof: (F, 6) addresses of their velocities.
        spin: (F, 3) those of their angular velocities.
        tree: (F,) their kinematic trees.
        body_T_component: (F, 4, 4).
        moments: (F, 3) principal moments of inertia [kg m^2].
        fixed_pose: (K, 4, 4) poses of the fixed ones, identity elsewhere.
        row_of: Row by component id.
        free_row: Which of the free ones is a component, by id; fixed ones are not in it.
        component_of: Component id by part id.
        part_ids: (N,) sorted part ids.
        part_free: (N,) which of the free components has each, -1: a fixed one.
        geoms: What each geom stands for.
        robots: Where the robots are.
        around: How far each body reaches.
    """

    ids: IntArray
    free: NDArray[np.intp]
    body: NDArray[np.intp]
    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]
    spin: NDArray[np.intp]
    tree: NDArray[np.intp]
    body_T_component: Array
    moments: Array
    fixed_pose: Array
    row_of: dict[int, int]
    free_row: dict[int, int]
    component_of: dict[int, int]
    part_ids: IntArray
    part_free: NDArray[np.intp]
    geoms: GeomTable
    robots: dict[str, RobotIndex]
    around: Surroundings

    def free_of(self, part_ids: IntArray) -> NDArray[np.intp]:
        """(M,) which of the free components has each of some parts, -1: a fixed one."""
        if not len(self.part_ids):
            return np.full(len(part_ids), -1)
        place = np.searchsorted(self.part_ids, part_ids)
        return self.part_free[np.minimum(place, len(self.part_ids) - 1)]

    @property
    def robot_geoms(self) -> NDArray[np.intp]:
        """Geoms of all robots."""
        return joined((robot.geoms for robot in self.robots.values()), dtype=np.intp)


def make_index(
    pool: Pool, components: Mapping[int, Body], robots: Mapping[str, RobotIndex]
) -> SceneIndex:
    """Finds components in a model.

    Args:
        pool: The model and what it stands for.
        components: All of them by id.
        robots: Where the robots are.
    """
    ids = np.array(sorted(components), dtype=np.int64)
    layouts = [components[component].spec.layout for component in ids.tolist()]
    part_ids = joined((layout.part_ids for layout in layouts), dtype=np.int64)
    sizes = [(len(layout.part_ids), len(layout.connection_ids)) for layout in layouts]
    counts = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    slots, free, part_ids, owners, part_free, jointed = _places(
        ids, pool.component, part_ids, counts
    )
    fixed_pose = _IDENTITY.repeat(len(ids), axis=0)
    if len(free) < len(ids):
        for i in np.setdiff1d(np.arange(len(ids)), free).tolist():
            fixed_pose[i] = components[int(ids[i])].spec.world_T_component
    at = pool.slots
    return SceneIndex(
        ids=ids,
        free=free,
        body=at.body[slots],
        qpos=at.qpos[slots],
        dof=at.dof[slots],
        spin=np.ascontiguousarray(at.dof[slots, 3:]),
        tree=at.tree[slots],
        body_T_component=pool.body_T_component[slots],
        moments=pool.moments[slots],
        fixed_pose=fixed_pose,
        row_of={c: i for i, c in enumerate(ids.tolist())},
        free_row={c: k for k, c in enumerate(ids[free].tolist())},
        component_of=dict(zip(part_ids.tolist(), owners.tolist(), strict=True)),
        part_ids=part_ids,
        part_free=part_free,
        geoms=_geom_table(pool, robots),
        robots=dict(robots),
        around=surroundings(pool.model, at.body[slots], at.dof[slots], pool.held, jointed),
    )


@compiled
def _places(
    ids: IntArray, carried: IntArray, part_ids: IntArray, counts: IntArray
) -> tuple[
    NDArray[np.intp], NDArray[np.intp], IntArray, IntArray, NDArray[np.intp], NDArray[np.bool_]
]:
    """Finds components and parts.

    Args:
        ids: (K,) sorted ids of all components.
        carried: (S,) components in the slots; see `Pool`.
        part_ids: (N,) parts of the components, one after the other.
        counts: (K, 2) how many parts and connections each has.

    Returns:
        (F,) slots of the free ones, by id, (F,) their rows, (N,) sorted parts, (N,) their
        components, (N,) which of the free ones has each (-1: a fixed one), and (F + 1,) which have
        connections, the fixed ones last.
    """
    slot_of = np.full(len(ids), -1, dtype=np.intp)
    for slot in range(len(carried)):
        if carried[slot] != NO_COMPONENT:
            slot_of[np.searchsorted(ids, carried[slot])] = slot
    count = np.count_nonzero(slot_of >= 0)
    slots, free = np.empty(count, dtype=np.intp), np.empty(count, dtype=np.intp)
    jointed, row_of = np.zeros(count + 1, dtype=np.bool_), np.empty(len(part_ids), dtype=np.intp)
    which, row, n = np.full(len(ids), -1, dtype=np.intp), 0, 0
    for k in range(len(ids)):
        if slot_of[k] >= 0:
            slots[row], free[row], which[k] = slot_of[k], k, row
            row += 1
        if counts[k, 1] > 0:
            jointed[which[k]] = True  # the last one stands for all fixed ones
        row_of[n : n + counts[k, 0]] = k
        n += counts[k, 0]
    row_of = row_of[np.argsort(part_ids, kind="mergesort")]
    return slots, free, np.sort(part_ids), ids[row_of], which[row_of], jointed


def _geom_table(pool: Pool, robots: Mapping[str, RobotIndex]) -> GeomTable:
    model, first = pool.model, pool.first_geom
    part = np.full(model.ngeom, NO_PART, dtype=np.int64)
    shape = np.zeros(model.ngeom, dtype=np.int64)
    part[first : first + len(pool.box_part)] = pool.box_part
    shape[first : first + len(pool.box_part)] = pool.box_shape
    other = np.zeros(model.ngeom, dtype=np.int64)
    names = [GROUND]
    for name, robot in robots.items():
        for link, body in robot.bodies.items():
            other[model.geom_bodyid == body] = len(names)
            names.append(f"{name}/{link}")
    other[part != NO_PART] = -1
    return GeomTable(part, shape, other, tuple(names))
