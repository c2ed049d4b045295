# SPDX-License-Identifier: Apache-2.0
"""The program of bodies and friction as a quadratic program for PIQP: slower, but robust."""

from __future__ import annotations

import numpy as np
import piqp
import scipy.sparse as sp

from bricksim_core.errors import SolverError
from bricksim_core.mechanics.friction_program import FrictionJoints, Program
from bricksim_core.mechanics.interior_solver import interior_solver
from bricksim_core.spatial import Array, cross

_TOLERANCES = (1e-10, 1e-8)
"""Of the interior point method: wanted, and accepted."""

_CORNERS, _ROWS = 4, 10
"""Inequalities of a joint; single studs have one more."""


def moved_by_piqp(program: Program, load: Array, unit: float) -> tuple[Array, Array]:
    """What `friction_program.moved` gives: speeds, and wrenches on the upper bodies of the joints.

    Args:
        program: Bodies and what is between them.
        load: (6 B,) forces on the bodies.
        unit: The force of which they are multiples [N].

    Raises:
        SolverError: The solver found no optimum.
    """
    joints, contacts, links = program.joints, program.contacts, program.links
    count, size, single = len(joints.turn), len(load), np.flatnonzero(joints.single)
    rows = _rows(joints)
    apart = np.zeros((len(single), 6))
    apart[:, 2:5] = joints.apex[single]
    every = np.concatenate([rows.reshape(-1, 6), apart, -contacts.push])
    link = np.concatenate([np.repeat(np.arange(count), _ROWS), single, contacts.link])
    # Each joint slips sideways by one unknown, single studs along or about themselves by another.
    slip = np.full(len(every), -1)
    sideways = slip[: _ROWS * count].reshape(count, _ROWS)
    sideways[:, _CORNERS:] = size + np.arange(count)[:, None]
    own = size + count + np.arange(len(single))
    sideways[single, 8:] = own[:, None]
    slip[_ROWS * count : _ROWS * count + len(single)] = own
    unknowns = size + count + len(single)
    matrix = sp.lil_array((len(every), unknowns))
    for body, arm, sign in (
        (links.lower[link], links.from_lower[link], -1.0),
        (links.upper[link], links.from_upper[link], 1.0),
    ):
        moved = sign * every
        moved[:, 3:] += sign * cross(arm, every[:, :3])
        free = np.flatnonzero(body >= 0)
        matrix[free[:, None], 6 * body[free, None] + np.arange(6)] = moved[free]
    bounded = np.flatnonzero(slip >= 0)
    matrix[bounded, slip[bounded]] = -1.0
    cost = sp.block_diag([*program.mass, sp.csc_array((count + len(single),) * 2)], format="csc")
    linear = np.concatenate([-load, joints.shear / unit, joints.pull[single] / unit])
    status = piqp.PIQP_UNSOLVED
    for tolerance in _TOLERANCES:
        solver, none = interior_solver(tolerance), None
        solver.settings.kkt_solver = piqp.sparse_ldlt_ineq_cond
        solver.setup(
            sp.csc_matrix(cost),
            linear,
            none,
            none,
            sp.csc_matrix(matrix),
            none,
            np.zeros(len(every)),
            none,
            none,
        )
        status = solver.solve()
        if status == piqp.PIQP_SOLVED:
            force = np.array(solver.result.z_u)
            wrench = (force[: _ROWS * count].reshape(count, _ROWS, 1) * rows).sum(axis=1)
            taken = force[_ROWS * count : _ROWS * count + len(single)]
            wrench[single] += taken[:, None] * apart
            return np.array(solver.result.x)[:size], -wrench
    raise SolverError(f"slip: interior point method ended with {status.name}")


def _rows(joints: FrictionJoints) -> Array:
    """(K, 10, 6) the speeds that the inequalities of each joint bound."""
    rows = np.zeros((len(joints.turn), _ROWS, 6))
    rows[:, :_CORNERS, 2] = -1.0
    rows[:, :_CORNERS, 3] = -joints.corners[:, :, 1]
    rows[:, :_CORNERS, 4] = joints.corners[:, :, 0]
    rows[:, 4, 0], rows[:, 5, 0] = 1.0, -1.0
    rows[:, 6, 1], rows[:, 7, 1] = 1.0, -1.0
    rows[:, 8, 5], rows[:, 9, 5] = joints.turn, -joints.turn
    return rows
