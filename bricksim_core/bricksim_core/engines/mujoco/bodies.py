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
from bricksim_core.engines.exposure import exposed_boxes
from bricksim_core.engines.protocol import BodySpec
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

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
        kinds: (K, 3, 3) axes that boxes have.
        kind: (B,) which of these each has.
    """

    spec: BodySpec
    mass: MassProperties
    component_T_body: Array
    body_T_component: Array
    moments: Array
    boxes: Boxes
    rows: NDArray[np.intp]
    exposed: NDArray[np.bool_]
    kinds: Array
    kind: NDArray[np.intp]

    @property
    def rgba(self) -> Array:
        """(B, 4) colours of the boxes, 0 to 1."""
        place = {color: i for i, color in enumerate(dict.fromkeys(self.spec.colors))}
        colors = np.ones((len(place), 4))
        colors[:, :3] = np.array(list(place)) / 255.0
        if len(place) == 1:
            return colors.repeat(len(self.rows), axis=0)
        which = np.array([place[color] for color in self.spec.colors])
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
    seen = _seen(layout.boxes, layout.studded, boxes.axes)
    return Body(spec, mass, frame, back, moments, boxes, *seen)


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
def _seen(
    cells: IntArray, studded: NDArray[np.bool_], axes: Array
) -> tuple[NDArray[np.intp], NDArray[np.bool_], Array, NDArray[np.intp]]:
    """What a `Body` has of its boxes: `rows`, `exposed`, `kinds`, `kind`.

    Args:
        cells: (N, 2, 3) `ComponentLayout.boxes`.
        studded: (N,) which parts have studs.
        axes: (B, 3, 3) of the boxes: first all bodies, then the studs.
    """
    bodies, studs = exposed_boxes(cells)
    rows, exposed = np.empty(len(axes), dtype=np.intp), np.empty(len(axes), dtype=np.bool_)
    count = len(cells)
    for n in range(len(cells)):
        rows[n], exposed[n] = n, bodies[n]
        if studded[n]:
            rows[count], exposed[count] = n, studs[n]
            count += 1
    kinds, kind = kinds_of(axes)
    if len(kinds) == 0:  # too many
        kinds, kind = axes, np.arange(len(axes))
    return rows, exposed, kinds, kind


def wxyz(rotation: Array) -> Array:
    """(4,) unit quaternion in MuJoCo's order of a (3, 3) rotation."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    return quaternion / np.sqrt(quaternion.dot(quaternion))


def quaternions(axes: Array) -> Array:
    """(N, 4) unit quaternions in MuJoCo's order of (N, 3, 3) rotations."""
    if len(axes) == 1:  # most structures
        return wxyz(axes[0])[None]
    return Rotation.from_matrix(axes).as_quat(canonical=True, scalar_first=True)


@compiled
def write_rotation(quaternion: Array, axes: Array) -> None:
    """Writes the (3, 3) rotation matrix of a unit quaternion in MuJoCo's order."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    axes[0, 0], axes[1, 1] = 1.0 - 2.0 * (y * y + z * z), 1.0 - 2.0 * (x * x + z * z)
    axes[2, 2] = 1.0 - 2.0 * (x * x + y * y)
    axes[0, 1], axes[1, 0] = 2.0 * (x * y - z * w), 2.0 * (x * y + z * w)
    axes[0, 2], axes[2, 0] = 2.0 * (x * z + y * w), 2.0 * (x * z - y * w)
    axes[1, 2], axes[2, 1] = 2.0 * (y * z - x * w), 2.0 * (y * z + x * w)
