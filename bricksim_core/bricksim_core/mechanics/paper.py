# SPDX-License-Identifier: Apache-2.0
"""Model "paper": the breakage detector of BrickSim (arXiv 2603.16853) as published.

Each connection carries affine traction fields over its contact points: axial, and two in the plane.
Faces push on each other at the corners of the polygons in which they touch. Three quadratic
programs find the internal forces that balance given loads:

1. *Projection*: the balanceable loads nearest to the given ones (unilateral contacts only).
2. *Relaxation*: the least excess v over the friction limits with which these can be carried.
3. *Energy*: of all such internal forces, those of least weighted squared norm.

The verdicts of this formulation are not reliable (one-stud-wide joints can squeeze themselves tight
without end, so the relaxation alone decides nothing); it is kept for comparison, with every
published constant.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics.geometry import (
    FaceContacts,
    StudContacts,
    StudPattern,
    face_contacts,
    stud_contacts,
)
from bricksim_core.mechanics.portions import Portions
from bricksim_core.mechanics.qp import Program, ProgramState, QpSettings
from bricksim_core.mechanics.types import (
    ComponentSystem,
    ContactVertices,
    LimitLoad,
    Solution,
    SolveStatus,
    VerdictLimits,
)
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.values import as_number, require_flag

_COST = 0.3
"""Cost of a solve for each part (`portions`)."""

LEAST_LENGTH = 0.001
"""Least characteristic length of a component [m]."""

OVERFLOW_UTILIZATION = 1e6
"""Utilization where a contact point has no friction capacity left."""

FIELDS = 9
"""Coefficients of a connection: axial, x and y traction, each constant and slopes along x and y."""


@dataclass(frozen=True)
class PaperParameters:
    """Constants of model "paper"; the defaults are those of the published code.

    Attributes:
        friction_coefficient: Between stud and hole.
        preloaded_force: Normal force at each contact point of an unloaded connection [N]; with the
            friction coefficient it gives 0.7 N of friction a point.
        contact_regularization: Weight of squared contact forces in the energy.
        axial_compliance: Weight of squared axial forces in the energy.
        radial_compliance: Weight of squared radial forces.
        tangential_compliance: Weight of squared tangential forces.
        relaxation_regularization: Weight of the squared norm of all internal forces in the
            relaxation. The paper does not mention it; without it (0) the excess of one-stud-wide
            joints vanishes.
        margin: Slack taken off every limit in the relaxation [N for contacts, 1 for friction]; the
            published code takes its solver's tolerance.
        friction_limits: False leaves out the relaxation and the friction limits: the energy optimum
            alone gives graded utilizations above 1.
        formula: "code": axial over what the other forces leave of the capacity, as published code
            has it; "paper": tangential plus axial over capacity, as the paper has it. Both are at
            most 1 for the same forces.
        imbalance_floor: Least norm of the loads that their imbalance is related to [N].
        solver: How the quadratic programs are solved.

    Raises:
        BrickSimError: A value is negative or of another type.
    """

    friction_coefficient: float = 0.2
    preloaded_force: float = 3.5
    contact_regularization: float = 0.1
    axial_compliance: float = 1.0
    radial_compliance: float = 1.0
    tangential_compliance: float = 1.0
    relaxation_regularization: float = 1e-4
    margin: float = 1e-4
    friction_limits: bool = True
    formula: Literal["code", "paper"] = "code"
    imbalance_floor: float = 1e-9
    solver: QpSettings = QpSettings()

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(getattr(type(self), name), float):
                as_number(value, name, 0.0)
        require_flag(self.friction_limits, "friction_limits")
        if self.formula not in ("code", "paper"):
            raise BrickSimError(f"formula is {self.formula!r}, expected 'code' or 'paper'")


@dataclass(frozen=True)
class PaperModel:
    """The model: builds a component's equations.

    Attributes:
        parameters: Its constants.
        name: How `mechanics.models` knows it.
        verdict: What counts as stable; the published code ignores any imbalance and warns above a
            tenth.
        engagement: 0 m: what is overloaded breaks at once.
        impact_time: Infinite: loads are taken as the engine gives them.
    """

    parameters: PaperParameters = PaperParameters()
    name: str = "paper"
    verdict: VerdictLimits = VerdictLimits(utilization=1.0, imbalance=0.1)
    engagement: float = 0.0
    impact_time: float = np.inf

    def system(
        self,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        ground: float | None = None,
        origin: ComponentSystem | None = None,
    ) -> PaperSystem:
        """Builds the equations (see `ConnectionModel`), always anew.

        The equilibrium rows of anchored parts are dropped. With one anchored part that is the
        published treatment (the root balances everything) without its redundant rows.
        """
        return PaperSystem(
            self.parameters,
            layout,
            np.asarray(anchored, dtype=bool),
            face_contacts(layout, ground),
            stud_contacts(layout),
        )


@dataclass(frozen=True, eq=False)
class _PatternBlocks:
    """Matrices of one stud pattern, in whitened coefficients z.

    Traction coefficients are ``whiten @ z``: slopes are scaled so that the contact points have unit
    covariance.

    Attributes:
        whiten: (9, 9).
        wrench: (6, 9) wrench on the stud part about the overlap's centre.
        energy: (9, 9) Hessian of the energy.
        axial: (H, 9) axial force at the hull points.
        friction: (2H, 9) friction rows at the hull points, + and - tangential.
        radial, tangential: (H, 9) force components at the hull points.
    """

    whiten: Array
    wrench: Array
    energy: Array
    axial: Array
    friction: Array
    radial: Array
    tangential: Array


def _pattern_blocks(pattern: StudPattern, parameters: PaperParameters) -> _PatternBlocks:
    u, v = pattern.position.T
    phi = np.column_stack([np.ones_like(u), u, v])
    zero = np.zeros_like(phi)
    force = np.stack(  # (P, 3, 9): force on the stud at each point
        [
            np.column_stack([zero, phi, zero]),
            np.column_stack([zero, zero, phi]),
            np.column_stack([phi, zero, zero]),
        ],
        axis=1,
    )
    normal, tangent = pattern.normal, pattern.tangent
    axial = force[:, 2]
    radial = np.einsum("pi,pij->pj", normal, force[:, :2])
    tangential = np.einsum("pi,pij->pj", tangent, force[:, :2])
    torque = np.stack(
        [
            v[:, None] * force[:, 2],
            -u[:, None] * force[:, 2],
            u[:, None] * force[:, 1] - v[:, None] * force[:, 0],
        ],
        axis=1,
    )
    wrench = np.concatenate([force.sum(axis=0), torque.sum(axis=0)])
    energy = (
        parameters.axial_compliance * axial.T @ axial
        + parameters.radial_compliance * radial.T @ radial
        + parameters.tangential_compliance * tangential.T @ tangential
    )
    variance, axes = np.linalg.eigh(np.cov(pattern.position.T, bias=True))
    variance = np.maximum(variance, 1e-12 * variance.max())
    slope = axes @ np.diag(variance**-0.5) @ axes.T
    whiten = np.eye(FIELDS)
    for first in (1, 4, 7):
        whiten[first : first + 2, first : first + 2] = slope

    hull = pattern.hull
    axial, radial, tangential = axial[hull], radial[hull], tangential[hull]
    limit = parameters.friction_coefficient * parameters.preloaded_force
    friction = np.stack(
        [
            (axial + sign * tangential) / limit - radial / parameters.preloaded_force
            for sign in (1, -1)
        ],
        axis=1,
    ).reshape(-1, FIELDS)
    return _PatternBlocks(
        whiten=whiten,
        wrench=wrench @ whiten,
        energy=whiten @ energy @ whiten,
        axial=axial @ whiten,
        friction=friction @ whiten,
        radial=radial @ whiten,
        tangential=tangential @ whiten,
    )


@dataclass(frozen=True, eq=False)
class PaperMatrices:
    """Constant matrices of a component; x = [contact forces (V) | whitened coefficients (9 C)].

    Attributes:
        equilibrium: (6 M, V + 9 C) internal wrench on each part that is not anchored, torques over
            `length`; balanced if equilibrium @ x = -loads.
        energy: (V + 9 C,) square, Hessian.
        compression: (G, V + 9 C) rows that must not be negative.
        friction: (H, V + 9 C) rows that must not exceed 1 + v.
        excess: (H, C) which connection's v relaxes each friction row.
        length: Characteristic length [m].
        num_variables, num_rows, num_compression, num_friction, num_connections: V + 9 C, 6 M, G, H
            and C.
    """

    equilibrium: sp.csc_matrix
    energy: sp.csc_matrix
    compression: sp.csc_matrix
    friction: sp.csc_matrix
    excess: sp.csc_matrix
    length: float
    num_variables: int
    num_rows: int
    num_compression: int
    num_friction: int
    num_connections: int


def characteristic_length(layout: ComponentLayout) -> float:
    """Radius of gyration of the parts' centres of mass, at least `LEAST_LENGTH` [m]."""
    weights = layout.masses / layout.masses.sum()
    centred = layout.coms - weights @ layout.coms
    return max(float(np.sqrt(weights @ np.square(centred).sum(axis=1))), LEAST_LENGTH)


class _Triplets:
    """Collects dense blocks of a sparse matrix."""

    def __init__(self) -> None:
        self._rows: list[NDArray] = []
        self._columns: list[NDArray] = []
        self._values: list[NDArray] = []

    def add(self, rows: NDArray, columns: NDArray, values: NDArray) -> None:
        """Adds entries; the arguments are broadcast. Negative rows are left out."""
        rows, columns, values = np.broadcast_arrays(rows, columns, values)
        keep = (rows >= 0) & (np.abs(values) > 1e-14)
        self._rows.append(rows[keep])
        self._columns.append(columns[keep])
        self._values.append(values[keep])

    def matrix(self, shape: tuple[int, int]) -> sp.csc_matrix:
        if not self._rows:
            return sp.csc_matrix(shape)
        entries = np.concatenate(self._values)
        where = (np.concatenate(self._rows), np.concatenate(self._columns))
        return sp.csc_matrix((entries, where), shape=shape)


def _cross_matrices(vectors: Array) -> Array:
    """(..., 3, 3) matrices [v]x with [v]x f = v x f."""
    result = np.zeros((*vectors.shape, 3))
    x, y, z = np.moveaxis(vectors, -1, 0)
    result[..., 0, 1], result[..., 0, 2], result[..., 1, 2] = -z, y, -x
    result[..., 1, 0], result[..., 2, 0], result[..., 2, 1] = z, -y, x
    return result


def build_matrices(
    parameters: PaperParameters,
    layout: ComponentLayout,
    anchored: NDArray[np.bool_],
    faces: FaceContacts,
    studs: StudContacts,
    blocks: tuple[_PatternBlocks, ...],
) -> PaperMatrices:
    """Assembles a component's matrices."""
    num_vertices, num_connections = 4 * len(faces), len(studs.pattern)
    num_variables = num_vertices + FIELDS * num_connections
    length = characteristic_length(layout)
    coms = layout.coms
    row_of = np.full(len(coms) + 1, -1, dtype=np.int64)  # the last entry serves GROUND = -1
    row_of[:-1][~anchored] = 6 * np.arange(np.count_nonzero(~anchored))
    scale = np.array([1.0, 1.0, 1.0, *np.full(3, 1.0 / length)])

    equilibrium = _Triplets()
    if len(faces):
        vertices = faces.vertices.reshape(-1, 3)
        normal = np.repeat(faces.normal, 4, axis=0)
        column = np.arange(num_vertices)[:, None]
        for part, sign in ((faces.part_a, -1.0), (faces.part_b, 1.0)):
            part = np.repeat(part, 4)
            arm = vertices - coms[part]  # meaningless for GROUND, whose rows are dropped
            wrench = sign * np.concatenate([normal, np.cross(arm, normal)], axis=1) * scale
            first = row_of[part][:, None]
            rows = np.where(first < 0, -1, first + np.arange(6))
            equilibrium.add(rows, column, wrench)
    if num_connections:
        local = np.stack([b.wrench for b in blocks])[studs.pattern]
        columns = num_vertices + FIELDS * np.arange(num_connections)[:, None] + np.arange(FIELDS)
        for part, sign in ((layout.stud_index, 1.0), (layout.hole_index, -1.0)):
            wrench = local.copy()
            wrench[:, 3:] += _cross_matrices(studs.centre - coms[part]) @ local[:, :3]
            wrench *= sign * scale[:, None]
            first = row_of[part][:, None]
            rows = np.where(first < 0, -1, first + np.arange(6))
            equilibrium.add(rows[:, :, None], columns[:, None, :], wrench)
    energy, compression, friction, excess = (_Triplets() for _ in range(4))
    index = np.arange(num_vertices)
    energy.add(index, index, np.full(num_vertices, parameters.contact_regularization))
    compression.add(index, index, np.ones(num_vertices))
    hull_sizes = np.array([len(p.hull) for p in studs.patterns], dtype=np.int64)[studs.pattern]
    first_hull = np.cumsum(hull_sizes) - hull_sizes
    for k, block in enumerate(blocks):
        members = np.flatnonzero(studs.pattern == k)
        columns = num_vertices + FIELDS * members[:, None, None] + np.arange(FIELDS)
        energy.add(columns.swapaxes(1, 2), columns, block.energy)
        hull = np.arange(len(block.axial))[:, None]
        compression.add(
            num_vertices + first_hull[members][:, None, None] + hull, columns, block.axial
        )
        rows = 2 * first_hull[members][:, None] + np.arange(2 * len(block.axial))
        friction.add(rows[:, :, None], columns, block.friction)
        excess.add(rows, members[:, None], np.ones(rows.shape))
    num_hull = int(hull_sizes.sum())
    num_rows = 6 * int(np.count_nonzero(~anchored))
    num_compression, num_friction = num_vertices + num_hull, 2 * num_hull
    return PaperMatrices(
        equilibrium=equilibrium.matrix((num_rows, num_variables)),
        energy=energy.matrix((num_variables, num_variables)),
        compression=compression.matrix((num_compression, num_variables)),
        friction=friction.matrix((num_friction, num_variables)),
        excess=excess.matrix((num_friction, num_connections)),
        length=length,
        num_variables=num_variables,
        num_rows=num_rows,
        num_compression=num_compression,
        num_friction=num_friction,
        num_connections=num_connections,
    )


def _blocks(rows: list[list]) -> sp.csc_matrix:
    """Block matrix without stored zeros; None is an empty block."""
    matrix = sp.csc_matrix(sp.block_array(rows))
    matrix.eliminate_zeros()
    return matrix


class PaperSystem:
    """Equations of one component in model "paper"; solvers stay warm between calls."""

    def __init__(
        self,
        parameters: PaperParameters,
        layout: ComponentLayout,
        anchored: NDArray[np.bool_],
        faces: FaceContacts,
        studs: StudContacts,
    ) -> None:
        """
        Args:
            parameters: Constants.
            layout: The component.
            anchored: (N,) parts that the world holds.
            faces: Where its parts touch.
            studs: Where its studs are held.
        """
        self.parameters = parameters
        self.faces, self.studs = faces, studs
        self._free = ~anchored
        self._blocks = tuple(_pattern_blocks(p, parameters) for p in studs.patterns)
        self.matrices = build_matrices(parameters, layout, anchored, faces, studs, self._blocks)
        self._projection, self._relaxation, self._energy = self._programs()

    def _programs(self) -> tuple[Program, Program, Program]:
        m, settings = self.matrices, self.parameters.solver
        variables, rows = sp.identity(m.num_variables), sp.identity(m.num_rows)
        excess = sp.identity(m.num_connections)
        projection = Program(
            "projection",
            _blocks([[0.0 * variables, None], [None, rows]]),
            _blocks([[m.equilibrium, -rows], [m.compression, None]]),
            settings,
        )
        relaxation = Program(
            "relaxation",
            _blocks(
                [[self.parameters.relaxation_regularization * variables, None], [None, excess]]
            ),
            _blocks(
                [
                    [m.equilibrium, None],
                    [m.compression, None],
                    [m.friction, -m.excess],
                    [None, excess],
                ]
            ),
            settings,
        )
        limits = [[m.equilibrium], [m.compression]]
        if self.parameters.friction_limits:
            limits.append([m.friction])
        energy = Program("energy", m.energy, _blocks(limits), settings, rho=1.0)
        return projection, relaxation, energy

    @property
    def contacts(self) -> ContactVertices:
        """Four corners of every rectangle in which faces touch."""
        return ContactVertices(
            part_a=np.repeat(self.faces.part_a, 4),
            part_b=np.repeat(self.faces.part_b, 4),
            position=self.faces.vertices.reshape(-1, 3),
            normal=np.repeat(self.faces.normal, 4, axis=0),
        )

    @property
    def strength(self) -> Array:
        """(C,) ones: the published selection counts connections."""
        return np.ones(self.matrices.num_connections)

    def solve(self, loads: Array, tolerance: float = 0.0) -> Solution:
        """Internal forces that balance the loads (see `ComponentSystem`), always solved for."""
        start = time.perf_counter()
        m, p = self.matrices, self.parameters
        required = self._required(loads)
        if m.num_variables == 0 or m.num_rows == 0:
            return self._unloaded(required, start)

        statuses, messages = [], []

        def run(program: Program, q: Array, low: list[Array], high: list[Array]) -> Array | None:
            result = program.solve(q, np.concatenate(low), np.concatenate(high))
            statuses.append(result.status)
            messages.append(result.message)
            return None if result.status is SolveStatus.FAILED else result.x

        balanced = np.zeros(m.num_rows)
        unbounded = np.full(m.num_compression, np.inf)
        x = run(
            self._projection,
            np.concatenate([np.zeros(m.num_variables), -required]),
            [balanced, np.zeros(m.num_compression)],
            [balanced, unbounded],
        )
        if x is None:
            return self._failed(messages, start)
        balanceable = m.equilibrium @ x[: m.num_variables]
        imbalance = np.linalg.norm(required - balanceable)
        imbalance /= max(float(np.linalg.norm(required)), p.imbalance_floor)

        floor = np.full(m.num_compression, -p.margin)
        low, high = [balanceable, floor], [balanceable, unbounded]
        if p.friction_limits:
            minus_infinity = np.full(m.num_friction, -np.inf)
            x = run(
                self._relaxation,
                np.zeros(m.num_variables + m.num_connections),
                [*low, minus_infinity, np.zeros(m.num_connections)],
                [
                    *high,
                    np.full(m.num_friction, 1.0 - p.margin),
                    np.full(m.num_connections, np.inf),
                ],
            )
            if x is None:
                return self._failed(messages, start)
            excess = np.maximum(x[m.num_variables :], 0.0)
            low.append(minus_infinity)
            high.append(1.0 + m.excess @ excess)
        x = run(self._energy, np.zeros(m.num_variables), low, high)
        if x is None:
            return self._failed(messages, start)

        fallback = SolveStatus.FALLBACK in statuses
        num_vertices = 4 * len(self.faces)
        coefficients = x[num_vertices:].reshape(-1, FIELDS)
        return Solution(
            status=SolveStatus.FALLBACK if fallback else SolveStatus.SOLVED,
            message="; ".join(filter(None, messages)),
            utilization=self._utilization(coefficients),
            forces=partial(_pair, self._connection_wrench(coefficients), x[:num_vertices]),
            imbalance=float(imbalance),
            solve_time=time.perf_counter() - start,
        )

    def bonded(self, loads: Array) -> Solution:
        """As `solve`: nothing quicker is to be had (see `ComponentSystem`)."""
        return self.solve(loads)

    def solving(self, loads: Array, tolerance: float = 0.0) -> Portions[Solution]:
        """As `solve`, in one portion."""
        yield _COST * len(loads)
        return self.solve(loads, tolerance)

    def factor(self) -> Portions[None]:
        """Nothing: the programs are set up in `solve` (see `ComponentSystem`)."""
        yield 0.0

    def prepare(self) -> None:
        """Nothing as well."""

    def safety_factor(self, loads: Array) -> LimitLoad:
        """The greatest multiple of the loads that meets all limits (see `ComponentSystem`).

        The friction limits hold at the hull points only, as in the rest of this model, so that
        joints one stud wide can make the factor infinite. Solved as a linear program by HiGHS; the
        multipliers of the friction limits say how the component fails.
        """
        m = self.matrices
        required = self._required(loads)
        if not required.any():
            return LimitLoad(np.inf, ())
        result = linprog(
            np.concatenate([np.zeros(m.num_variables), [-1.0]]),
            A_ub=_blocks(
                [[m.friction, None], [-m.compression, sp.csc_matrix((m.num_compression, 1))]]
            ),
            b_ub=np.concatenate([np.ones(m.num_friction), np.zeros(m.num_compression)]),
            A_eq=_blocks([[m.equilibrium, sp.csc_matrix(-required[:, None])]]),
            b_eq=np.zeros(m.num_rows),
            bounds=[(None, None)] * m.num_variables + [(0.0, None)],
            method="highs",
        )
        if result.status == 3:  # unbounded
            return LimitLoad(np.inf, ())
        if result.status != 0:
            return LimitLoad(np.nan, ())
        work = m.excess.T @ -result.ineqlin.marginals[: m.num_friction]
        order = np.argsort(-work, kind="stable")
        mechanism = tuple(order[work[order] > 1e-9 * work.max(initial=0.0)].tolist())
        return LimitLoad(max(float(-result.fun), 0.0), mechanism)

    def snapshot(self) -> tuple[ProgramState | None, ...]:
        """State of the warm starts; `restore` makes the next solve repeat bit by bit."""
        return tuple(program.state() for program in self._all)

    def restore(self, snapshot: tuple[ProgramState | None, ...]) -> None:
        """Returns to a snapshot of this system."""
        for program, state in zip(self._all, snapshot, strict=True):
            program.restore(state)

    def _required(self, loads: Array) -> Array:
        """(6 M,) internal wrench that balances the loads, torques over the length."""
        required = -np.asarray(loads, dtype=float)[self._free]
        required[:, 3:] /= self.matrices.length
        return required.reshape(-1)

    @property
    def _all(self) -> tuple[Program, Program, Program]:
        return self._projection, self._relaxation, self._energy

    def _connection_wrench(self, coefficients: Array) -> Array:
        wrench = np.zeros((len(coefficients), 6))
        for k, block in enumerate(self._blocks):
            members = self.studs.pattern == k
            wrench[members] = coefficients[members] @ block.wrench.T
        return wrench

    def _utilization(self, coefficients: Array) -> Array:
        """(C,) highest utilization of the hull points of each connection."""
        mu, preload = self.parameters.friction_coefficient, self.parameters.preloaded_force
        utilization = np.zeros(len(coefficients))
        for k, block in enumerate(self._blocks):
            members = self.studs.pattern == k
            axial, radial, tangential = (
                coefficients[members] @ rows.T
                for rows in (block.axial, block.radial, block.tangential)
            )
            used, capacity = axial, mu * (radial + preload)
            if self.parameters.formula == "code":
                capacity = capacity - np.abs(tangential)
            else:
                used = axial + np.abs(tangential)
            ratio = np.full_like(used, OVERFLOW_UTILIZATION)
            np.divide(used, capacity, out=ratio, where=capacity > 0.0)
            utilization[members] = np.clip(ratio, 0.0, OVERFLOW_UTILIZATION).max(axis=1)
        return utilization

    def _unloaded(self, required: Array, start: float) -> Solution:
        """Nothing inside carries anything: one part alone, or the world holds all parts."""
        norm = float(np.linalg.norm(required))
        return Solution(
            status=SolveStatus.SOLVED,
            message="",
            utilization=np.zeros(self.matrices.num_connections),
            forces=partial(
                _pair,
                np.zeros((self.matrices.num_connections, 6)),
                np.zeros(4 * len(self.faces)),
            ),
            imbalance=norm / max(norm, self.parameters.imbalance_floor),
            solve_time=time.perf_counter() - start,
        )

    def _failed(self, messages: list[str], start: float) -> Solution:
        num_connections = self.matrices.num_connections
        return Solution(
            status=SolveStatus.FAILED,
            message="; ".join(filter(None, messages)),
            utilization=np.full(num_connections, np.nan),
            forces=partial(
                _pair,
                np.full((num_connections, 6), np.nan),
                np.full(4 * len(self.faces), np.nan),
            ),
            imbalance=np.nan,
            solve_time=time.perf_counter() - start,
        )


def _pair(first: Array, second: Array) -> tuple[Array, Array]:
    return first, second
