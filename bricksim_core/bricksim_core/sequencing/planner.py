# SPDX-License-Identifier: Apache-2.0
"""In which order can a structure be built?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from bricksim_core.sequencing.gripper import GripperModel
from bricksim_core.sequencing.plan import AssemblyPlan, part_name
from bricksim_core.sequencing.search import Search, SearchOptions, SequenceError
from bricksim_core.sequencing.statics import Effort, StaticCheck, analysis_check
from bricksim_core.sequencing.workpiece import workpiece
from bricksim_core.topology import Structure

_CHECKS_PER_PART = 12
_CHECKS = 300
"""Checks of a search before it gives up: this many, and so many for each part."""


def plan_assembly(
    structure: Structure,
    *,
    gripper: GripperModel | None = GripperModel(),
    check: StaticCheck | None = None,
    press_force: float = 5.0,
    press_on_rims: bool = False,
    arms: int = 2,
    base: Iterable[int] | None = None,
    alone: Iterable[int] = (),
) -> AssemblyPlan:
    """Finds an order of insertions from above that builds a structure.

    Every state on the way stands, every brick can be held on its way down, and no press overloads
    what is there. Bricks are put on layer by layer, in the order of the file, as far as that holds.

    Args:
        structure: What to build; its components share an upright grid.
        gripper: Needs room beside the bricks; None leaves that out.
        check: Verdict on half-built structures under loads; None takes `mechanics.analyze` with the
            default model.
        press_force: Force of each press [N], at the engaged studs.
        press_on_rims: True: each press may act on any side of the engaged studs as well as in their
            middle: a brick that comes down a little tilted stands on an edge of them.
        arms: 1, or 2 to allow a second arm to push back during a press, to hold a sub-assembly
            while others are joined to it, or while the first one takes it in another grip. A second
            arm is used only where one does not do.
        base: Ids of the parts that are there from the start (a base plate, what was built before);
            None takes the fixed parts and a base plate under everything.
        alone: Ids of parts for whose press a second hand has no place to push back.

    Raises:
        SequenceError: There is no such order, or none was found with the checks allowed; names the
            bricks that cannot be put on and the reason.
        StructureError: A component is tilted or off the grid of the others.
        UnknownIdError: A part of ``base`` does not exist.
    """
    if arms not in (1, 2):
        raise SequenceError(f"arms is {arms!r}, expected 1 or 2")
    if not (math.isfinite(press_force) and press_force >= 0.0):
        raise SequenceError(f"press_force is {press_force!r} N, expected a number >= 0")
    if not len(structure.graph):
        raise SequenceError(f"{structure.label}: holds no part")
    piece = workpiece(structure)
    plate = piece.grid.baseplate
    fixed = structure.fixed | (frozenset() if plate is None else {plate})
    base = fixed if base is None else frozenset(base)
    for part_id in base:
        structure.graph.part(part_id)
    ground = piece.grid.ground
    if plate is not None and plate in base:
        ground = piece.grid.boxes[plate][2]  # parts beside the plate stand as low as the plate
    checks = _CHECKS + _CHECKS_PER_PART * len(piece.part_ids)
    check = check or analysis_check()
    # With one hand rather than two, and without grasps that scrape rather than with them.
    ways = list(itertools.product(range(1, arms + 1), (True, False)))
    for way in ways if gripper is not None else [(hands, False) for hands in range(1, arms + 1)]:
        hands, careful = way
        last = (hands, careful) == (arms, False)
        effort = Effort(checks if last else checks // 3)
        options = SearchOptions(
            gripper, check, press_force, hands, effort, press_on_rims, careful, frozenset(alone)
        )
        try:
            steps = Search(piece, base, fixed & base, ground, options).run()
            break
        except SequenceError as error:
            if last or error.proven:
                raise
    names = {p: part_name(structure, p) for p in piece.part_ids}
    return AssemblyPlan(structure.name, tuple(sorted(base)), steps, press_force, names)
