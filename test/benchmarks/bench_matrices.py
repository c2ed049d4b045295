# SPDX-License-Identifier: Apache-2.0
"""Assembly of a component's equations, against assembling them contact point by contact point.

The baseline is what the formulas say literally: a loop over the vertices of touching faces and over
the contact points of all studs, adding each point's block to the equilibrium matrix of model
"paper". Both have to give the same matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from bricksim_core.experiments.bond import running_bond
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.geometry import face_contacts, stud_contacts
from bricksim_core.mechanics.models import get_model
from bricksim_core.mechanics.paper import FIELDS, PaperModel, characteristic_length
from bricksim_core.topology.layout import ComponentLayout


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows: matrices of model "paper" and the default model's equations, by size."""
    rows = []
    for side in (3, 5) if quick else (3, 5, 10):
        layout = block(side)
        anchored = layout.part_ids == 0
        count = len(layout.part_ids) - 1
        naive, baseline = timed(lambda layout=layout, held=anchored: by_points(layout, held), 1)
        system, paper = timed(
            lambda layout=layout, held=anchored: PaperModel().system(layout, held), 3
        )
        difference = abs(naive - system.matrices.equilibrium).max()
        if difference > 1e-9:
            raise AssertionError(f"the matrices of {count} bricks differ by {difference}")
        default = get_model("default")
        _, own = timed(lambda layout=layout, held=anchored, m=default: m.system(layout, held), 3)
        _, contacts = timed(lambda layout=layout: (face_contacts(layout), stud_contacts(layout)), 3)
        for name, value, naive_time in (
            ("contact geometry", contacts, None),
            ("all matrices of model paper", paper, baseline),
            ("equations of model default", own, baseline),
        ):
            rows.append(
                {
                    "name": f"{name}, {count} bricks",
                    "unit": "ms",
                    "value": 1e3 * value,
                    "baseline": naive_time and 1e3 * naive_time,
                    "ratio": naive_time and naive_time / value,
                }
            )
    return rows


def block(side: int) -> ComponentLayout:
    """side^3 bricks of 2 x 4 studs in bond on a base plate."""
    plate = 4 * side + 2, 2 * side + 1
    structure = parse_structure(running_bond(side, side, side), baseplate=plate)
    return structure.graph.layout(structure.graph.component_of(0))


def by_points(layout: ComponentLayout, anchored: np.ndarray) -> sp.csc_matrix:
    """Equilibrium matrix of model "paper", one contact point after the other."""
    faces, studs = face_contacts(layout), stud_contacts(layout)
    length = characteristic_length(layout)
    first_row = {part: 6 * k for k, part in enumerate(np.flatnonzero(~anchored).tolist())}
    vertices = 4 * len(faces)
    columns = vertices + FIELDS * len(studs.pattern)
    entries: list[tuple[float, int, int]] = []

    def add(part: int, point: np.ndarray, force: np.ndarray, column: int) -> None:
        if part in first_row:
            x, y, z = (point - layout.coms[part]).tolist()
            fx, fy, fz = force.tolist()
            torque = (y * fz - z * fy, z * fx - x * fz, x * fy - y * fx)
            for k, value in enumerate((fx, fy, fz, *(t / length for t in torque))):
                if value != 0.0:
                    entries.append((value, first_row[part] + k, column))

    for f in range(len(faces)):
        normal = faces.normal[f]
        for k, point in enumerate(faces.vertices[f]):
            add(int(faces.part_a[f]), point, -normal, 4 * f + k)
            add(int(faces.part_b[f]), point, normal, 4 * f + k)
    positions, connection = studs.position, studs.connection
    axes = np.eye(3)[[2, 0, 1]]  # axial, x, y
    for c in range(len(studs.pattern)):
        points = positions[connection == c]
        local = (points - studs.centre[c])[:, :2]
        variance, directions = np.linalg.eigh(np.cov(local.T, bias=True))
        whiten = directions @ np.diag(variance**-0.5) @ directions.T
        for point, plane in zip(points, local, strict=True):
            phi = np.array([1.0, *(plane @ whiten)])
            for k in range(FIELDS):
                force = phi[k % 3] * axes[k // 3]
                column = vertices + FIELDS * c + k
                add(int(layout.stud_index[c]), point, force, column)
                add(int(layout.hole_index[c]), point, -force, column)
    values, row_indices, column_indices = zip(*entries, strict=True)
    shape = (6 * len(first_row), columns)
    return sp.csc_matrix((values, (row_indices, column_indices)), shape=shape)


def timed(call: Callable[[], Any], times: int) -> tuple[Any, float]:
    """Result of the last call and the shortest time of all [s]."""
    result, best = None, np.inf
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


if __name__ == "__main__":
    for row in run(quick=False):
        ratio = "" if row["ratio"] is None else f"{row['ratio']:6.1f} x baseline"
        print(f"{row['name']:45} {row['value']:9.2f} {row['unit']}  {ratio}")
