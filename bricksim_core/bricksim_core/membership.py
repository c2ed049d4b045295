# SPDX-License-Identifier: Apache-2.0
"""Which ids are among others, and where: `numpy.isin` spends most of its time on what it need not
ask here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled


def are_in(ids: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,) which of (N,) ids are among others, in any order."""
    return places_in(np.sort(others), np.ascontiguousarray(ids)) >= 0


@compiled
def places_in(table: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) where (N,) ids are in a sorted table, -1 for those that are not."""
    places = np.searchsorted(table, ids)
    for n in range(len(ids)):
        if places[n] == len(table) or table[places[n]] != ids[n]:
            places[n] = -1
    return places
