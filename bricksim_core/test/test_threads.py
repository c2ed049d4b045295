# SPDX-License-Identifier: Apache-2.0
"""Programs leave linear algebra one thread unless the user wants more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bricksim_core.threads import SINGLE_THREAD

COUNT = """
import os
from bricksim_core.threads import use_single_thread
use_single_thread()
import numpy as np
matrix = np.ones((600, 600))
matrix @ matrix
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("wanted", [None, 2])
def test_linear_algebra_has_one_thread_or_those_that_the_user_asks_for(wanted):
    environment = {k: v for k, v in os.environ.items() if k not in SINGLE_THREAD}
    if wanted is not None:
        environment |= dict.fromkeys(SINGLE_THREAD, str(wanted))
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == (wanted or 1)
