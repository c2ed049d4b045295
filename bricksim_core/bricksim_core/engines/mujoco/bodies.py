# SPDX-License-Identifier: Apache-2.0
"""One composite body per component: its frame, its geoms, its state in MuJoCo's terms.

The body frame has its origin at the component's centre of mass and the principal axes of its
inertia, so MuJoCo's mass matrix is diagonal and a body that turns freely does not wander.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bricksim_core.compiled import compiled
from bricksim_core.dynamics import MassProperties, mass_properties
from bricksim_core.engines.boxes import Boxes, brick_boxes, kinds_of
from bricksim_core.engines.exposure import exposed_parts
from bricksim_core.engines.protocol import STUD_SHAPE, BodySpec
from bricksim_core.parts import Color
from bricksim_core.spatial import Array, inverse


@dataclass(frozen=True, eq=False)
class Body:
    """A component as the engine holds it.

    Attributes:
        spec: What it was given.
        mass: Mass properties in the component frame.
        component_T_body: (4, 4) frame of the MuJoCo body [m].
        body_T_component: (4, 4) its inverse [m].
        moments: (3,) principal moments of inertia [kg m^2].
        boxes: Colliders in the component frame.
        exposed: (B,) which of them something outside can touch.
    """

    spec: BodySpec
    mass: MassProperties
    component_T_body: Array
    body_T_component: Array
    moments: Array
    boxes: Boxes
    exposed: NDArray[np.bool_]

    @cached_property
    def rgba(self) -> Array:
        """(B, 4) colours of the boxes, 0 to 1."""
        place: dict[Color, int] = {}
        which = np.array([place.setdefault(color, len(place)) for color in self.spec.colors])
        colors = np.ones((len(place), 4))
        colors[:, :3] = np.array(list(place)) / 255.0
        return colors[which[np.searchsorted(self.spec.layout.part_ids, self.boxes.part_ids)]]


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
    boxes = brick_boxes(spec.layout)
    bodies, studs = exposed_parts(spec.layout)
    rows = np.searchsorted(spec.layout.part_ids, boxes.part_ids)
    exposed = np.where(boxes.shapes == STUD_SHAPE, studs[rows], bodies[rows])
    return Body(spec, mass, frame, inverse(frame), moments, boxes, exposed)


def wxyz(rotation: Array) -> Array:
    """(4,) unit quaternion in MuJoCo's order of a (3, 3) rotation."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    return quaternion / np.linalg.norm(quaternion)


def quaternions(axes: Array) -> Array:
    """(N, 4) unit quaternions in MuJoCo's order of (N, 3, 3) rotations."""
    kinds, which = kinds_of(axes)
    if len(kinds) == 1:  # most structures
        return np.tile(wxyz(kinds[0]), (len(axes), 1))
    rotations = Rotation.from_matrix(kinds if len(kinds) else axes)
    found = rotations.as_quat(canonical=True, scalar_first=True)
    return found[which] if len(kinds) else found


@compiled
def write_rotation(quaternion: Array, axes: Array) -> None:
    """Writes the (3, 3) rotation matrix of a unit quaternion in MuJoCo's order."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    axes[0, 0], axes[1, 1] = 1.0 - 2.0 * (y * y + z * z), 1.0 - 2.0 * (x * x + z * z)
    axes[2, 2] = 1.0 - 2.0 * (x * x + y * y)
    axes[0, 1], axes[1, 0] = 2.0 * (x * y - z * w), 2.0 * (x * y + z * w)
    axes[0, 2], axes[2, 0] = 2.0 * (x * z + y * w), 2.0 * (x * z - y * w)
    axes[1, 2], axes[2, 1] = 2.0 * (y * z - x * w), 2.0 * (y * z + x * w)
