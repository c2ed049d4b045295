# SPDX-License-Identifier: Apache-2.0
"""Makes everything ready that is made ready at first use (`compiled`).

    python -m bricksim_core.rehearsal

Without it the first frame with a contact, the first hit and the first break each take some tenths
of a second, or some seconds right after an installation.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.wedges import relieved_in_groups
from bricksim_core.simulator import Simulator
from bricksim_core.topology.structure import Structure

_SECONDS = 0.75
"""How long the bricks fall, hit, break and roll."""
_REST = 1.5
"""How long they lie on a slope."""


@cache
def rehearse() -> None:
    """Analyses, drops and breaks some bricks in a simulator of its own, once in a process."""
    wall = _wall(3, 4)
    arm = parse_structure("".join(f"4x2 ({3 * k},0,{k})\n" for k in range(8)), baseplate=None)
    for structure in (wall, arm):
        analyze(structure)
        analyze(structure, loads={structure.graph.part_ids[-1]: (0.0, 4.0, -4.0, 0.0, 0.0, 0.0)})
        simulator = Simulator()
        pose = standing(structure, rotation_from_degrees(20.0, 30.0, 0.0), 0.5)
        simulator.spawn(structure, pose, fixed=())
        for _ in range(round(_SECONDS * simulator.config.frame_rate)):
            simulator.step()
    # Pushed along, some or most joints and contacts count, for which small and larger structures
    # have solvers apart.
    for structure, force in ((_wall(5, 4), 90.0), (_wall(7, 6), 9.0), (_wall(7, 6), 90.0)):
        pushed = {structure.graph.part_ids[-1]: (force, 0.0, 0.0, 0.0, 0.0, 0.0)}
        analyze(structure, loads=pushed, limit=False)
    _rehearse_changes()
    # What leans creeps, and falls asleep.
    simulator = Simulator(MujocoEngine(gravity=(4.0, 0.0, -9.0)))
    wall = _wall(1, 2)
    simulator.spawn(wall, standing(wall, rotation_from_degrees(0.0, 0.0, 0.0), 0.0), fixed=())
    for _ in range(round(_REST * simulator.config.frame_rate)):
        simulator.step()
    # Two contacts that press against each other.
    sides = np.array([(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)])
    relieved_in_groups(np.array([0, 2]), sides, np.eye(3)[:2], sides)


def _rehearse_changes() -> None:
    """Takes a brick off a large component on the ground, into whose equations that is worked, and
    puts it on; pushes that."""
    block = parse_structure(running_bond(3, 5, 14), baseplate=None)
    simulator = Simulator()
    simulator.spawn(block, standing(block, rotation_from_degrees(0.0, 0.0, 0.0), 0.0), fixed=())
    graph = simulator.graph
    ended = [graph.connection(c.id) for c in graph.connections_of(graph.part_ids[-1])]
    simulator.disconnect([c.id for c in ended])
    simulator.step()
    for c in ended:
        simulator.connect(c.stud_part, c.hole_part, c.offset, c.yaw)
    simulator.step()
    # What is pushed so hard is answered roughly, in one way or another by its size.
    for structure in (block, parse_structure(running_bond(2, 2, 12), baseplate=None)):
        layout = structure.graph.layout(structure.graph.component_ids[0])
        loads = np.zeros((len(layout.part_ids), 6))
        loads[len(loads) // 2, 1] = 1000.0
        SnapFitModel().system(layout, loads[:, 0] > 0.0).solve(loads, tolerance=1e-3)


def _wall(wide: int, high: int) -> Structure:
    """A wall in running bond."""
    return parse_structure(
        "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(high) for i in range(wide)),
        baseplate=None,
    )


if __name__ == "__main__":
    rehearse()
