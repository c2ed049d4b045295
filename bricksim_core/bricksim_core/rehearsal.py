# SPDX-License-Identifier: Apache-2.0
"""Makes everything ready that is made ready at first use (`compiled`).

    python -m bricksim_core.rehearsal

Without it the first frame with a contact, the first hit and the first break each take some tenths
of a second, or some seconds right after an installation.
"""

from __future__ import annotations

from functools import cache

from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.simulator import Simulator

_SECONDS = 0.75
"""How long the bricks fall, hit, break and roll."""


@cache
def rehearse() -> None:
    """Analyses, drops and breaks some bricks in a simulator of its own, once in a process."""
    wall = parse_structure(
        "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(4) for i in range(3)),
        baseplate=None,
    )
    arm = parse_structure("".join(f"4x2 ({3 * k},0,{k})\n" for k in range(8)), baseplate=None)
    for structure in (wall, arm):
        analyze(structure)
        analyze(structure, loads={structure.graph.part_ids[-1]: (0.0, 4.0, -4.0, 0.0, 0.0, 0.0)})
        simulator = Simulator()
        pose = standing(structure, rotation_from_degrees(20.0, 50.0, 0.0), 0.5)
        simulator.spawn(structure, pose, fixed=())
        for _ in range(round(_SECONDS * simulator.config.frame_rate)):
            simulator.step()


if __name__ == "__main__":
    rehearse()
