# SPDX-License-Identifier: Apache-2.0
"""Which ids are among others: `numpy.isin` spends most of its time on what it need not ask here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled


def are_in(ids: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,) which of (N,) ids are among others, in any order."""
    return _are_in(np.ascontiguousarray(ids), np.sort(others))


@compiled
def _are_in(ids: NDArray[np.int64], table: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The same for a sorted table."""
    found = np.empty(len(ids), dtype=np.bool_)
    for n in range(len(ids)):
        place = np.searchsorted(table, ids[n])
        found[n] = place < len(table) and table[place] == ids[n]
    return found
