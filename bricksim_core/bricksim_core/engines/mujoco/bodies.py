# SPDX-License-Identifier: Apache-2.0
"""One composite body per component: its frame, its geoms, its state in MuJoCo's terms.

The body frame has its origin at the component's centre of mass and the principal axes of its
inertia, so MuJoCo's mass matrix is diagonal and a body that turns freely does not wander.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bricksim_core.compiled import compiled
from bricksim_core.dynamics import MassProperties, mass_properties
from bricksim_core.engines.boxes import Boxes, brick_boxes, kinds_of
from bricksim_core.engines.exposure import exposed_parts
from bricksim_core.engines.protocol import BodySpec
from bricksim_core.parts import Color
from bricksim_core.spatial import Array

_AXES = np.eye(3)


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
        rows: (B,) which of the layout's parts each belongs to.
        exposed: (B,) which of them something outside can touch.
    """

    spec: BodySpec
    mass: MassProperties
    component_T_body: Array
    body_T_component: Array
    moments: Array
    boxes: Boxes
    rows: NDArray[np.intp]
    exposed: NDArray[np.bool_]

    @property
    def rgba(self) -> Array:
        """(B, 4) colours of the boxes, 0 to 1."""
        place: dict[Color, int] = {}
        which = np.array([place.setdefault(color, len(place)) for color in self.spec.colors])
        colors = np.ones((len(place), 4))
        colors[:, :3] = np.array(list(place)) / 255.0
        return colors[which[self.rows]]


def make_body(spec: BodySpec) -> Body:
    """Works out a component's body frame and geoms."""
    layout = spec.layout
    mass = mass_properties(layout)
    moments, axes = mass.inertia.diagonal().copy(), _AXES
    if not _diagonal(mass.inertia):
        moments, axes = np.linalg.eigh(mass.inertia)
    frame, back = _frame(axes, mass.com)
    boxes = brick_boxes(layout)
    rows, exposed = _exposed_boxes(layout.studded, *exposed_parts(layout))
    return Body(spec, mass, frame, back, moments, boxes, rows, exposed)


@compiled
def _diagonal(inertia: Array) -> bool:
    """Whether the axes of a (3, 3) inertia are its principal axes."""
    aside = max(abs(inertia[0, 1]), abs(inertia[0, 2]), abs(inertia[1, 2]))
    return aside <= 1e-12 * max(inertia[0, 0], inertia[1, 1], inertia[2, 2])


@compiled
def _frame(axes: Array, origin: Array) -> tuple[Array, Array]:
    """(4, 4) frame and its inverse.

    Args:
        axes: (3, 3) orthonormal columns; the third one is turned round if that makes a rotation.
        origin: (3,) [m].
    """
    volume, frame, back = 0.0, np.eye(4), np.eye(4)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        volume += axes[i, 2] * (axes[j, 0] * axes[k, 1] - axes[k, 0] * axes[j, 1])
    for i in range(3):
        frame[i, 3] = origin[i]
        for j in range(3):
            frame[i, j] = -axes[i, j] if j == 2 and volume < 0.0 else axes[i, j]
    for j in range(3):
        away = 0.0
        for i in range(3):
            back[j, i] = frame[i, j]
            away += frame[i, j] * origin[i]
        back[j, 3] = -away
    return frame, back


@compiled
def _exposed_boxes(
    studded: NDArray[np.bool_], bodies: NDArray[np.bool_], studs: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """(B,) parts of a component's boxes and (B,) which of them something can touch.

    Args:
        studded: (N,) which parts have studs.
        bodies: (N,) bodies that something can touch.
        studs: (N,) slabs of studs that something can touch.
    """
    count = len(studded)
    boxes = count + np.count_nonzero(studded)
    rows, exposed = np.empty(boxes, dtype=np.intp), np.empty(boxes, dtype=np.bool_)
    for n in range(len(studded)):
        rows[n], exposed[n] = n, bodies[n]
        if studded[n]:
            rows[count], exposed[count] = n, studs[n]
            count += 1
    return rows, exposed


def wxyz(rotation: Array) -> Array:
    """(4,) unit quaternion in MuJoCo's order of a (3, 3) rotation."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    return quaternion / np.linalg.norm(quaternion)


def quaternions(axes: Array) -> Array:
    """(N, 4) unit quaternions in MuJoCo's order of (N, 3, 3) rotations."""
    kinds, which = kinds_of(axes)
    if len(kinds) == 1:  # most structures
        return wxyz(kinds[0])[None][which]
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
