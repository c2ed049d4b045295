# SPDX-License-Identifier: Apache-2.0
"""Which ids are among others."""

from __future__ import annotations

import numpy as np

from bricksim_core.membership import are_in


def test_ids_are_found_among_others_in_any_order() -> None:
    rng = np.random.default_rng(5)
    for count, others in ((0, 4), (7, 0), (40, 1), (40, 25), (3, 200)):
        ids, among = rng.integers(-5, 60, count), rng.integers(-5, 60, others)
        for table in (among, np.sort(among), among[::-2]):
            expected = [i in table.tolist() for i in ids.tolist()]
            assert are_in(ids, table).tolist() == expected
