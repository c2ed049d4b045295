# SPDX-License-Identifier: Apache-2.0
"""Does a brick that is not there penetrate a robot? A box of the model is put in its place.

The probe touches nothing: it takes part in no contact, only in distance queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.boxes import Boxes

_NAME = "probe"


def add_probe(spec: mujoco.MjSpec) -> None:
    """Adds the box that stands for whatever is asked about."""
    spec.worldbody.add_geom(
        name=_NAME,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[1e-3, 1e-3, 1e-3],
        contype=0,
        conaffinity=0,
        rgba=[0.0, 0.0, 0.0, 0.0],
        group=5,
    )


@dataclass(frozen=True)
class Penetration:
    """A geom of the model inside of a box that is only asked about.

    Attributes:
        geom: The geom.
        box: Row of the box.
        depth: How deep [m].
    """

    geom: int
    box: int
    depth: float


def penetrations(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    geoms: NDArray[np.intp],
    boxes: Boxes,
    tolerance: float,
) -> Iterator[Penetration]:
    """Which of a model's geoms, at their current places, are inside of which boxes.

    Args:
        model: With a probe; its probe is moved.
        data: With current kinematics.
        geoms: What to compare with.
        boxes: World frame.
        tolerance: Depth that counts as outside [m].
    """
    geoms = geoms[(model.geom_contype[geoms] | model.geom_conaffinity[geoms]) != 0]
    reach = np.linalg.norm(boxes.halves, axis=1)
    gaps = np.linalg.norm(boxes.centres[:, None] - data.geom_xpos[geoms], axis=2)
    near = gaps < reach[:, None] + model.geom_rbound[geoms]
    probe = model.geom(_NAME).id
    fromto = np.zeros(6)
    for i in np.flatnonzero(near.any(axis=1)).tolist():
        model.geom_size[probe] = boxes.halves[i]
        data.geom_xpos[probe] = boxes.centres[i]
        data.geom_xmat[probe] = boxes.axes[i].ravel()
        for geom in geoms[near[i]].tolist():
            depth = -mujoco.mj_geomDistance(model, data, probe, geom, 1.0, fromto)
            if depth > tolerance:
                yield Penetration(geom, i, depth)
