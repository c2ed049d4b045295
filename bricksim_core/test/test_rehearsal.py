# SPDX-License-Identifier: Apache-2.0
"""After the rehearsal nothing has to be compiled any more."""

import subprocess
import sys

DROPS = """
from bricksim_core.compiled import loaded
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.rehearsal import rehearse
from bricksim_core.simulator import Simulator

rehearse()
ready = loaded()
block = parse_structure(running_bond(2, 2, 9), baseplate=None)
analyze(block, loads={1: (0.0, 9.0, -3.0, 0.0, 0.0, 0.0)})
more = parse_structure(running_bond(2, 2, 12), baseplate=None)  # is examined over some frames
for dropped, euler, height in ((block, (0, 0, 0), 0.1), (block, (25, 40, 0), 0.5),
                               (more, (20, 30, 0), 0.5)):
    simulator = Simulator()
    pose = standing(dropped, rotation_from_degrees(*euler), height)
    simulator.spawn(dropped, pose, fixed=())
    events = [event for _ in range(60) for event in simulator.step().events]
    print(len(simulator.graph.component_ids), "pieces")
large = parse_structure(running_bond(3, 5, 15), baseplate=None)
simulator = Simulator()
pose = standing(large, rotation_from_degrees(0, 0, 0), 1.0)
simulator.spawn(large, pose, fixed=())
ended = simulator.graph.connections_of(simulator.graph.part_ids[0])
simulator.disconnect([c.id for c in ended])
simulator.step()
assert ready["bricksim_core.mechanics.snapfit.dissection._left"] == 1
assert ready["bricksim_core.engines.mujoco.creeping._add_up"] == 1
late = {name: (ready.get(name), count) for name, count in loaded().items()
        if count != ready.get(name)}
assert not late, late
"""


def test_no_loop_is_compiled_in_a_run_after_the_rehearsal() -> None:
    result = subprocess.run(
        [sys.executable, "-c", DROPS], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
    assert [int(pieces) > 1 for pieces in result.stdout.split()[::2]] == [False, True, True]
