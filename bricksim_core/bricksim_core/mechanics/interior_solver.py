# SPDX-License-Identifier: Apache-2.0
"""PIQP's proximal interior point method as all models ask for it."""

from __future__ import annotations

import piqp


def interior_solver(tolerance: float) -> piqp.SparseSolver:
    """PIQP, to be set up, with one tolerance for everything."""
    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.verbose = False
    settings.eps_abs = settings.eps_rel = tolerance
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tolerance
    return solver
