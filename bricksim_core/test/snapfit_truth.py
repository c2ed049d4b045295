# SPDX-License-Identifier: Apache-2.0
"""The default model written down a second time: every contact point a force, solved by Clarabel.

Shares no code with the model but the layout. Where the model has four tipping rows a joint, this
has a friction force at every contact point of every stud, a push at every corner of every overlap,
and lets the solver find out what they can carry together.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bricksim_core.topology.layout import ComponentLayout

clarabel: Any = importlib.import_module("clarabel")  # it has no stubs

PITCH, PLATE, RADIUS = 0.008, 0.0032, 0.0024
STRONG = 0.2 * 3.5
"""Friction limit of a strong contact point [N]."""
WEAK = STRONG / np.sqrt(2.0)
BEARING = 30.0
"""Lateral strength per stud [N]."""
STIFFNESS = 4e5
"""Of a joint per stud and of a side contact per corner [N/m]."""
SIDE_GAP = 0.0002
"""[m]"""


def stud_points(
    cell: tuple[int, int], hole: tuple[int, int, int, int]
) -> list[tuple[float, float, float]]:
    """Contact points (x, y [m], strength [N]) of the stud in a cell under a hole brick's plan."""
    (i, j), (x0, y0, x1, y1) = cell, hole
    centre = np.array([(i + 0.5) * PITCH, (j + 0.5) * PITCH])
    axes = [np.array(a, dtype=float) for a in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    diagonals = [np.array(d) / np.sqrt(2.0) for d in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    if min(x1 - x0, y1 - y0) == 1:
        found = [(d, STRONG) for d in axes]
    else:
        walls = [d for d in axes if not (x0 <= i + d[0] < x1 and y0 <= j + d[1] < y1)]
        inner = [d for d in diagonals if all(d @ w < 0.0 for w in walls)]
        strength = {0: (STRONG, STRONG), 1: (STRONG, WEAK), 2: (WEAK, STRONG)}[len(walls)]
        found = [(w, strength[0]) for w in walls] + [(d, strength[1]) for d in inner]
    return [(*(centre + RADIUS * d), s) for d, s in found]


@dataclass
class _Joint:
    lower: int
    upper: int
    centre: np.ndarray
    sides: np.ndarray  # full sides of the overlap [m]
    studs: int
    points: np.ndarray  # (P, 3): x, y from the centre [m], strength [N]
    lever: float  # sum of the studs' distances from the centre [m]


class PointForces:
    """All forces of a component: points, pushes, lateral forces, side contacts."""

    def __init__(self, layout: ComponentLayout, anchored: np.ndarray) -> None:
        self.layout, self.anchored = layout, anchored
        plans = layout.footprints
        bottoms = layout.grids[:, 2]
        tops = bottoms + layout.dimensions[:, 2]
        self.joints = []
        for lower, upper in zip(layout.stud_index, layout.hole_index, strict=True):
            low = np.maximum(plans[lower, :2], plans[upper, :2])
            high = np.minimum(plans[lower, 2:], plans[upper, 2:])
            centre = np.array([*(0.5 * (low + high) * PITCH), tops[lower] * PLATE])
            cells = [(i, j) for i in range(low[0], high[0]) for j in range(low[1], high[1])]
            points = np.array([p for c in cells for p in stud_points(c, tuple(plans[upper]))])
            points[:, :2] -= centre[:2]
            middles = (np.array(cells) + 0.5) * PITCH - centre[:2]
            self.joints.append(
                _Joint(
                    int(lower),
                    int(upper),
                    centre,
                    (high - low) * PITCH,
                    len(cells),
                    points,
                    float(np.linalg.norm(middles, axis=1).sum()),
                )
            )
        self.sides = list(self._side_contacts(plans, bottoms, tops))
        self._build()

    def _side_contacts(self, plans, bottoms, tops):
        """(low part, high part, axis, point) of every corner of every side contact, and of parts
        on tiles."""
        count = len(plans)
        joined = set(
            zip(self.layout.stud_index.tolist(), self.layout.hole_index.tolist(), strict=True)
        )
        boxes = np.column_stack([plans[:, :2], bottoms, plans[:, 2:], tops])
        scale = np.array([PITCH, PITCH, PLATE])
        for a in range(count):
            for b in range(count):
                for axis in range(3):
                    if (
                        a == b
                        or boxes[a, axis + 3] != boxes[b, axis]
                        or (axis == 2 and (a, b) in joined)
                    ):
                        continue
                    low = np.maximum(boxes[a, :3], boxes[b, :3])
                    high = np.minimum(boxes[a, 3:], boxes[b, 3:])
                    others = [k for k in range(3) if k != axis]
                    if any(low[k] >= high[k] for k in others):
                        continue
                    for corner in ((0, 0), (1, 0), (1, 1), (0, 1)):
                        point = low.astype(float)
                        point[axis] = boxes[b, axis]
                        for k, pick in zip(others, corner, strict=True):
                            point[k] = high[k] if pick else low[k]
                        yield a, b, axis, point * scale

    def _build(self) -> None:
        """Maps from all unknowns to wrenches: column layout per joint
        [points | 4 corner pushes | Fx Fy Mz | twist share | bearing shares], then side contacts."""
        coms = self.layout.coms
        rows, columns, values = [], [], []
        self.wrench_maps = []
        self.point_columns, self.corner_columns, self.plane_columns, self.twist_columns = (
            [],
            [],
            [],
            [],
        )
        width = 0

        def put(part, column, wrench, at):
            if part < 0 or self.anchored[part]:
                return
            moment = wrench[3:] + np.cross(at - coms[part], wrench[:3])
            for k, value in enumerate([*wrench[:3], *(moment / PITCH)]):
                if value != 0.0:
                    rows.append(6 * part + k)
                    columns.append(column)
                    values.append(value)

        for joint in self.joints:
            count = len(joint.points)
            columns_of = []
            for x, y, _ in joint.points:
                columns_of.append(np.array([0, 0, 1, y, -x, 0.0]))
            self.point_columns.append(np.arange(width, width + count))
            half = 0.5 * joint.sides
            for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                columns_of.append(-np.array([0, 0, 1, sy * half[1], -sx * half[0], 0.0]))
            self.corner_columns.append(np.arange(width + count, width + count + 4))
            for k in (0, 1, 5):
                columns_of.append(np.eye(6)[k])
            self.plane_columns.append(np.arange(width + count + 4, width + count + 7))
            self.twist_columns.append(width + count + 7)
            columns_of.append(np.zeros(6))
            for k, wrench in enumerate(columns_of):
                put(joint.lower, width + k, wrench, joint.centre)
                put(joint.upper, width + k, -wrench, joint.centre)
            self.wrench_maps.append((width, np.array(columns_of).T))
            width += len(columns_of)
        self.side_columns = np.arange(width, width + len(self.sides))
        for k, (a, b, axis, point) in enumerate(self.sides):
            push = np.zeros(6)
            push[axis] = 1.0
            put(a, width + k, -push, point)
            put(b, width + k, push, point)
        width += len(self.sides)
        self.width = width
        count = 6 * len(self.layout.part_ids)
        self.free = np.flatnonzero(np.repeat(~self.anchored, 6))
        matrix = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(count, width)))
        self.equilibrium = matrix[self.free]

    def _limits(self, levels: int) -> tuple[Any, Any]:
        """Rows A x + B level <= 0 and signs: (A, B) with one level per joint or one for all."""
        rows, level_of = [], []
        for k, joint in enumerate(self.joints):
            level = k if levels > 1 else 0
            twist, plane = self.twist_columns[k], self.plane_columns[k]
            single = joint.studs == 1
            for column, strength in zip(self.point_columns[k], joint.points[:, 2], strict=True):
                row = {column: 1.0 / strength}
                if single:
                    row[twist] = 1.0
                rows.append(row)
                level_of.append(level)
            total = joint.points[:, 2].sum()
            if single:
                for sign in (1.0, -1.0):
                    rows.append({plane[2]: sign / (RADIUS * total), twist: -1.0})
                    level_of.append(None)
            torque = BEARING * joint.lever + RADIUS * total
            for sx in (1.0, -1.0):
                for sy in (1.0, -1.0):
                    for sz in (1.0, -1.0):
                        row = {
                            plane[0]: sx / (BEARING * joint.studs),
                            plane[1]: sy / (BEARING * joint.studs),
                        }
                        if not single:
                            row[plane[2]] = sz / torque
                        rows.append(row)
                        level_of.append(level)
        nonnegative = np.concatenate([*self.point_columns, *self.corner_columns, self.side_columns])
        for column in [*nonnegative, *self.twist_columns]:
            rows.append({int(column): -1.0})
            level_of.append(None)
        at = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
        columns = np.concatenate([list(r) for r in rows]).astype(int)
        values = np.concatenate([list(r.values()) for r in rows])
        A = sp.csr_array(sp.coo_array((values, (at, columns)), shape=(len(rows), self.width)))
        with_level = [i for i, level in enumerate(level_of) if level is not None]
        picked = [level_of[i] for i in with_level]
        B = sp.csr_array(
            sp.coo_array((-np.ones(len(picked)), (with_level, picked)), shape=(len(rows), levels))
        )
        return A, B

    def _loads(self, loads: np.ndarray) -> np.ndarray:
        scaled = loads.copy()
        scaled[:, 3:] /= PITCH
        return -scaled.reshape(-1)[self.free]

    def least_level(self, loads: np.ndarray) -> float:
        """Least utilization of all joints at once: the inverse of the safety factor."""
        A, B = self._limits(1)
        b = self._loads(loads)
        matrix = sp.vstack(
            [sp.hstack([self.equilibrium, sp.csr_array((len(b), 1))]), sp.hstack([A, B])]
        )
        cost = np.append(np.zeros(self.width), 1.0)
        x = _clarabel(np.zeros(self.width + 1), cost, matrix, b, A.shape[0])
        return x[-1]

    def unbalanced(self, loads: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(N, 6) what of the loads accelerates parts of (N, 6, 6) inertia (Gauss's principle): of
        least M^-1 norm, torques in N m."""
        A, B = self._limits(1)
        b = -self._loads(loads)
        free = self.free.reshape(-1, 6)[:, 0] // 6
        scale = np.array([1, 1, 1, PITCH, PITCH, PITCH])
        # r = L s with M = L L', torques over PITCH; s is the last unknown.
        scaled = [masses[k] / np.outer(scale, scale) / 0.001 for k in free]
        roots = sp.block_diag([sp.csr_array(np.linalg.cholesky(m)) for m in scaled])
        count = len(b)
        matrix = sp.vstack(
            [
                sp.hstack([-self.equilibrium, roots]),
                sp.hstack([A, sp.csr_array((A.shape[0], count))]),
            ]
        )
        square = np.concatenate([np.zeros(self.width), np.ones(count)])
        bounds = -(B @ np.ones(1))
        x = _clarabel(square, np.zeros(len(square)), matrix, b, A.shape[0], bounds)
        left = np.zeros((len(masses), 6))
        left[free] = (roots @ x[self.width :]).reshape(-1, 6) * scale
        return left

    def elastic_plastic(self, loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(C,) least overload (squares weighted by pull-off strength), then (C, 6) wrenches of
        least elastic energy."""
        A, B = self._limits(len(self.joints))
        b = self._loads(loads)
        joints = len(self.joints)
        # u = 1 + v; levels enter as B (1 + v).
        offset = -(B @ np.ones(joints))
        pull = np.array([j.points[:, 2].sum() for j in self.joints])
        keep = sp.csr_array(-sp.eye_array(joints))
        matrix = sp.vstack(
            [
                sp.hstack([self.equilibrium, sp.csr_array((len(b), joints))]),
                sp.hstack([A, B]),
                sp.hstack([sp.csr_array((joints, self.width)), keep]),
            ]
        )
        square = np.concatenate([np.zeros(self.width), pull])
        bounds = np.concatenate([offset, np.zeros(joints)])
        x = _clarabel(square, np.zeros(self.width + joints), matrix, b, A.shape[0] + joints, bounds)
        overload = np.maximum(x[self.width :], 0.0)
        overload[overload < 1e-7] = 0.0

        # Energy of the joints' wrenches w = M x, written with w as extra unknowns.
        rows, columns, values = [], [], []
        flexibility = []
        for k, (first, wrench_map) in enumerate(self.wrench_maps):
            i, j = np.nonzero(wrench_map)
            scale = np.array([1, 1, 1, PITCH, PITCH, PITCH])
            rows.append(6 * k + i)
            columns.append(first + j)
            values.append((wrench_map / scale[:, None])[i, j])
            sx, sy = self.joints[k].sides
            stiff = self.joints[k].studs * np.array(
                [1, 1, 1, sy**2 / 12, sx**2 / 12, (sx**2 + sy**2) / 12]
            )
            flexibility.append(scale**2 / stiff)
        M = sp.coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(6 * joints, self.width),
        )
        square = np.zeros(self.width + 6 * joints)
        square[self.side_columns] = 1.0
        square[self.width :] = np.concatenate(flexibility)
        linear = np.zeros(self.width + 6 * joints)
        linear[self.side_columns] = STIFFNESS * np.array(
            [SIDE_GAP if axis < 2 else 0.0 for _, _, axis, _ in self.sides]
        )
        matrix = sp.vstack(
            [
                sp.hstack([self.equilibrium, sp.csr_array((len(b), 6 * joints))]),
                sp.hstack([M, -sp.eye_array(6 * joints)]),
                sp.hstack([A, sp.csr_array((A.shape[0], 6 * joints))]),
            ]
        )
        equal = np.concatenate([b, np.zeros(6 * joints)])
        bounds = -(B @ (1.0 + overload + 1e-8))
        x = _clarabel(square, linear, matrix, equal, A.shape[0], bounds)
        wrench = x[self.width :].reshape(-1, 6) * [1, 1, 1, PITCH, PITCH, PITCH]
        return overload, wrench


def _clarabel(square, linear, matrix, equal, inequalities, bounds=None):
    """Least 1/2 x' diag(square) x + linear' x with the first rows = equal, the rest <= bounds."""
    upper = np.zeros(inequalities) if bounds is None else bounds
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(inequalities)]
    # Where it gets stuck, another unit for the objective helps it.
    for unit, tolerance in ((1.0, 1e-10), (10.0, 1e-10), (0.1, 1e-10), (1.0, 1e-8)):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        result = clarabel.DefaultSolver(
            sp.csc_matrix(sp.diags_array(unit * square)),
            unit * linear,
            sp.csc_matrix(matrix),
            np.concatenate([equal, upper]),
            cones,
            settings,
        ).solve()
        if result.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
            return np.array(result.x)
    raise AssertionError(f"Clarabel ended with {result.status}")
