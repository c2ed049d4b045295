# SPDX-License-Identifier: Apache-2.0
"""Poses, motions and wrenches that users give, checked before anything changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.dynamics import mass_properties
from bricksim_core.engines.boxes import brick_boxes
from bricksim_core.engines.protocol import MAX_POSITION, MAX_SPEED, BodySpec
from bricksim_core.errors import PoseError
from bricksim_core.spatial import Array, transform_points
from bricksim_core.values import as_numbers, shown

MAX_GIVEN_SPEED = 0.5 * MAX_SPEED
"""Greatest speed [m/s] that points of bricks are given: what follows has room up to `MAX_SPEED`."""


def as_pose(pose: ArrayLike) -> Array:
    """(4, 4) pose given by a user, checked.

    Raises:
        PoseError: It is not a finite rigid transform.
    """
    matrix = as_numbers(pose)
    if matrix is None or matrix.shape != (4, 4):
        raise PoseError(f"pose is {shown(pose)}, expected a finite 4x4 matrix")
    rotation = matrix[:3, :3]
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if not error <= 1e-6 or np.linalg.det(rotation) < 0.0:
        raise PoseError(f"rotation is {shown(rotation)}, expected orthonormal and right-handed")
    if np.abs(matrix[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9:
        raise PoseError(f"last row of the pose is {shown(matrix[3])}, expected 0, 0, 0, 1")
    return matrix


def as_six(values: ArrayLike, name: str) -> Array:
    """(6,) twist or wrench given by a user, checked.

    Raises:
        PoseError: It is not six finite numbers.
    """
    numbers = as_numbers(values)
    if numbers is None or numbers.shape != (6,):
        raise PoseError(f"{name} is {shown(values)}, expected six finite numbers")
    return numbers


def require_bearable(bodies: Sequence[BodySpec]) -> None:
    """Checks that engines can go on from where bodies are put, and from how they move.

    Raises:
        PoseError: One is beyond `MAX_POSITION`, or a point of it is faster than `MAX_GIVEN_SPEED`.
    """
    for body in bodies:
        boxes = brick_boxes(body.layout)
        places = transform_points(body.world_T_component, boxes.centres)
        far = int(np.abs(places).max(axis=1).argmax())
        if not np.abs(places[far]).max() <= MAX_POSITION:
            raise PoseError(
                f"part {boxes.part_ids[far]} would be at {places[far].tolist()} m, expected"
                f" coordinates of at most {MAX_POSITION:g} m"
            )
        com = mass_properties(body.layout).com
        reach = np.linalg.norm(np.abs(boxes.centres - com) + boxes.reach, axis=1).max()
        speed = math.hypot(*body.twist[:3]) + math.hypot(*body.twist[3:]) * reach
        if not speed <= MAX_GIVEN_SPEED:
            raise PoseError(
                f"twist of part {body.layout.part_ids[0]} is {body.twist.tolist()}: up to"
                f" {speed:.4g} m/s at its corners, expected at most {MAX_GIVEN_SPEED:g} m/s"
            )
