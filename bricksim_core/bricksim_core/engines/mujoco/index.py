# SPDX-License-Identifier: Apache-2.0
"""Where a compiled model keeps what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.boxes import Boxes, concatenate
from bricksim_core.engines.mujoco.bodies import Body
from bricksim_core.engines.mujoco.contact import GeomTable
from bricksim_core.engines.mujoco.robots import Robot, RobotIndex, index_robot
from bricksim_core.engines.mujoco.specification import GROUND
from bricksim_core.engines.protocol import NO_PART
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray


@dataclass(frozen=True, eq=False)
class SceneIndex:
    """Addresses in a compiled model; K components sorted by id, F of them free.

    Attributes:
        ids: (K,) component ids.
        free: (F,) rows of the free ones.
        body: (F,) their MuJoCo bodies.
        qpos: (F, 7) addresses of their positions.
        dof: (F, 6) addresses of their velocities.
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
        boxes: Colliders of all bricks in their component frames.
        box_row: (B,) component row of each.
        robots: Where the robots are.
    """

    ids: IntArray
    free: NDArray[np.intp]
    body: NDArray[np.intp]
    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]
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
    boxes: Boxes
    box_row: NDArray[np.intp]
    robots: dict[str, RobotIndex]

    def free_of(self, part_ids: IntArray) -> NDArray[np.intp]:
        """(M,) which of the free components has each of some parts, -1: a fixed one."""
        if not len(self.part_ids):
            return np.full(len(part_ids), -1)
        place = np.searchsorted(self.part_ids, part_ids)
        return self.part_free[np.minimum(place, len(self.part_ids) - 1)]

    @property
    def robot_geoms(self) -> NDArray[np.intp]:
        """Geoms of all robots."""
        none = np.zeros(0, dtype=np.intp)
        return np.concatenate([none, *(robot.geoms for robot in self.robots.values())])


def make_index(
    model: mujoco.MjModel, components: Mapping[int, Body], robots: Mapping[str, Robot]
) -> SceneIndex:
    """Finds components and robots in a compiled model."""
    ids = sorted(components)
    bodies = [components[c] for c in ids]
    elements = np.array([model.body(b.name).id for b in bodies], dtype=np.intp)
    free = np.array([i for i, b in enumerate(bodies) if not b.spec.fixed], dtype=np.intp)
    joint = model.body_jntadr[elements[free]]
    fixed_pose = np.tile(np.eye(4), (len(ids), 1, 1))
    for i, body in enumerate(bodies):
        if body.spec.fixed:
            fixed_pose[i] = body.spec.world_T_component
    layouts = [b.spec.layout for b in bodies]
    part_ids = np.concatenate([np.zeros(0, dtype=np.int64), *(la.part_ids for la in layouts)])
    row = np.repeat(np.arange(len(ids)), [len(la.part_ids) for la in layouts])
    which = np.full(len(ids), -1)
    which[free] = np.arange(len(free))
    order = np.argsort(part_ids)
    places = {name: index_robot(model, robot) for name, robot in robots.items()}
    return SceneIndex(
        ids=np.array(ids, dtype=np.int64),
        free=free,
        body=elements[free],
        qpos=model.jnt_qposadr[joint][:, None].astype(np.intp) + np.arange(7),
        dof=model.jnt_dofadr[joint][:, None].astype(np.intp) + np.arange(6),
        tree=model.body_treeid[elements[free]].astype(np.intp),
        body_T_component=np.array([bodies[i].body_T_component for i in free]).reshape(-1, 4, 4),
        moments=np.array([bodies[i].moments for i in free]).reshape(-1, 3),
        fixed_pose=fixed_pose,
        row_of={c: i for i, c in enumerate(ids)},
        free_row={ids[i]: k for k, i in enumerate(free.tolist())},
        component_of=dict(zip(part_ids.tolist(), np.array(ids)[row].tolist(), strict=True)),
        part_ids=part_ids[order],
        part_free=which[row][order],
        geoms=_geom_table(model, elements, bodies, places),
        boxes=concatenate([b.boxes for b in bodies]),
        box_row=np.repeat(np.arange(len(ids)), [len(b.boxes.part_ids) for b in bodies]),
        robots=places,
    )


def _geom_table(
    model: mujoco.MjModel,
    elements: NDArray[np.intp],
    bodies: Sequence[Body],
    robots: Mapping[str, RobotIndex],
) -> GeomTable:
    part = np.full(model.ngeom, NO_PART, dtype=np.int64)
    shape = np.zeros(model.ngeom, dtype=np.int64)
    other = np.zeros(model.ngeom, dtype=np.int64)
    for first, body in zip(model.body_geomadr[elements].tolist(), bodies, strict=True):
        last = first + len(body.boxes.part_ids)
        part[first:last] = body.boxes.part_ids
        shape[first:last] = body.boxes.shapes
    names = [GROUND]
    for name, robot in robots.items():
        for link, body in robot.bodies.items():
            other[model.geom_bodyid == body] = len(names)
            names.append(f"{name}/{link}")
    other[part != NO_PART] = -1
    return GeomTable(part, shape, other, tuple(names))
