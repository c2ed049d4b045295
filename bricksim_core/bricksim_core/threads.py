# SPDX-License-Identifier: Apache-2.0
"""One thread for linear algebra: our matrices are small, threads only get into each other's way.

On two busy cores a verdict on 126 overloaded bricks took 16 times the CPU time with the two threads
that OpenBLAS chooses by itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Environment that the libraries under numpy and SciPy read when they are loaded."""


def single_thread() -> Mapping[str, str]:
    """What of `SINGLE_THREAD` the environment of this process leaves open."""
    return {name: value for name, value in SINGLE_THREAD.items() if name not in os.environ}


def use_single_thread() -> None:
    """Settles it for this process, if numpy is not loaded yet; what the user has set stays."""
    os.environ.update(single_thread())
