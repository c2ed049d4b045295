# SPDX-License-Identifier: Apache-2.0
"""One composite body per component: its frame, its geoms, its state in MuJoCo's terms.

The body frame has its origin at the component's centre of mass and the principal axes of its
inertia, so MuJoCo's mass matrix is diagonal and a body that turns freely does not wander.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from bricksim_core.dynamics import MassProperties, mass_properties
from bricksim_core.engines.boxes import Boxes, brick_boxes
from bricksim_core.engines.protocol import STUD_SHAPE, BodySpec
from bricksim_core.spatial import Array, inverse

GEOM_SHAPES = ("body", "studs")
"""Suffixes of geom names by contact shape id: geom ``brick_<id>_<suffix>``."""


def geom_name(part_id: int, shape: int) -> str:
    """Name of a brick's geom."""
    return f"brick_{part_id}_{GEOM_SHAPES[shape]}"


@dataclass(frozen=True, eq=False)
class Body:
    """A component as the engine holds it.

    Attributes:
        spec: What it was given.
        mass: Mass properties in the component frame.
        component_T_body: (4, 4) frame of the MuJoCo body [m].
        body_T_component: (4, 4) its inverse [m].
        moments: (3,) principal moments of inertia [kg m^2].
        boxes: Colliders in the component frame, in the order of the body's geoms.
    """

    spec: BodySpec
    mass: MassProperties
    component_T_body: Array
    body_T_component: Array
    moments: Array
    boxes: Boxes

    @property
    def name(self) -> str:
        """Name of the MuJoCo body."""
        return body_name(self.spec.component)


def body_name(component: int) -> str:
    """Name of a component's MuJoCo body."""
    return f"component_{component}"


def make_body(spec: BodySpec) -> Body:
    """Works out a component's body frame and geoms."""
    mass = mass_properties(spec.layout)
    frame = np.eye(4)
    frame[:3, 3] = mass.com
    moments = np.diag(mass.inertia).copy()
    if np.abs(mass.inertia - np.diag(moments)).max() > 1e-12 * moments.max():
        moments, axes = np.linalg.eigh(mass.inertia)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        frame[:3, :3] = axes
    return Body(spec, mass, frame, inverse(frame), moments, brick_boxes(spec.layout))


def add_body(world: mujoco.MjsBody, body: Body) -> None:
    """Adds a component to a specification: free, or part of the world if it is fixed."""
    spec = body.spec
    pose = spec.world_T_component @ body.component_T_body
    element = world.add_body(name=body.name, pos=pose[:3, 3], quat=wxyz(pose[:3, :3]))
    if not spec.fixed:
        element.add_freejoint()
        element.explicitinertial = True
        element.mass = body.mass.mass
        element.inertia = body.moments
        element.ipos = np.zeros(3)
        element.iquat = np.array([1.0, 0.0, 0.0, 0.0])
    boxes = body.boxes.moved(body.body_T_component)
    colors: Mapping[int, tuple[float, ...]] = {
        int(part): (*(c / 255.0 for c in color), 1.0)
        for part, color in zip(spec.layout.part_ids, spec.colors, strict=True)
    }
    parts, shapes = boxes.part_ids.tolist(), boxes.shapes.tolist()
    for i, (part, shape) in enumerate(zip(parts, shapes, strict=True)):
        element.add_geom(
            name=geom_name(part, shape),
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=boxes.centres[i],
            quat=wxyz(boxes.axes[i]),
            size=boxes.halves[i],
            rgba=colors[part],
            group=1 if shape == STUD_SHAPE else 0,
        )


def wxyz(rotation: Array) -> Array:
    """(4,) unit quaternion in MuJoCo's order of a (3, 3) rotation."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    return quaternion / np.linalg.norm(quaternion)


def rotations(quaternions: Array) -> Array:
    """(N, 3, 3) rotation matrices of (N, 4) unit quaternions in MuJoCo's order."""
    w, x, y, z = quaternions.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), -1, 0)
