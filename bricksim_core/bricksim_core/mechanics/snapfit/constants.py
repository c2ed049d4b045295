# SPDX-License-Identifier: Apache-2.0
"""Every constant of the snap-fit model, with unit and source."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bricksim_core.errors import BrickSimError
from bricksim_core.parts import SIDE_CLEARANCE, STUD_HEIGHT
from bricksim_core.values import as_number


class ConstantsError(BrickSimError):
    """A constant of the snap-fit model is not acceptable."""


@dataclass(frozen=True)
class SnapFitConstants:
    """Constants of the default snap-fit model.

    "Published" values are those of BrickSim (arXiv 2603.16853), taken there from Luo et al. 2015;
    "derived" ones follow from statics or geometry; "estimated" ones are orders of magnitude of ABS
    parts and are shown in docs/mechanics.md to hardly matter. None is fitted to built structures.

    Attributes:
        friction: Coefficient of friction of brick on brick [-]. Published.
        preload: Normal force of the strongest contact point of a stud [N]. Published.
        weak_contact: Preload of a corner stud's walls and of an edge stud's tubes over that of the
            strongest point of the same stud [-]. Derived: equilibrium of a stud between one
            diagonal and two axial contacts.
        bearing_strength: Lateral force that one stud carries before the wall that it presses on
            yields [N]. Estimated: ABS wall, docs/mechanics.md.
        stud_stiffness: Stiffness of a joint per stud and direction [N/m]. Estimated; decides how
            load divides where statics leaves it open, and only relative to the side gap.
        face_stiffness: Stiffness of a face contact per corner of the touching rectangle [N/m].
            Estimated.
        side_gap: Distance of neighbours side by side that has to close before they press on each
            other [m]. Two side clearances.
        ground_friction: Coefficient of friction of brick on ground [-]. As in BrickSim's assets.
        engagement: Slip after which a stud has left its hole [m]: the height of a stud.
        impact_time: Time constant of the contact in an impact of ABS bricks on a hard table [s].
            Estimated: Hertz, and the flexibility of hollow bricks; hardly matters, because the slip
            hangs on the impulse.
        softness: How much less stiff than the elastic joint an overloaded joint is, as a fraction
            [-]. Numerical: it is taken out again (`yielding.hardened`).
        tolerance: Utilization above 1 [-] and imbalance [-] that still counts as carried.
        marginal_low: Utilization from which a structure is called marginal [-].
        marginal_high: Utilization up to which a structure is called marginal [-].
    """

    friction: float = 0.2
    preload: float = 3.5
    weak_contact: float = math.sqrt(0.5)
    bearing_strength: float = 30.0
    stud_stiffness: float = 4e5
    face_stiffness: float = 4e5
    side_gap: float = 2.0 * SIDE_CLEARANCE
    ground_friction: float = 0.5
    engagement: float = STUD_HEIGHT
    impact_time: float = 1e-3
    softness: float = 1e-6
    tolerance: float = 1e-6
    marginal_low: float = 0.9
    marginal_high: float = 1.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            as_number(value, name, 0.0, above=True, error=ConstantsError)

    @property
    def contact_strength(self) -> float:
        """Friction that the strongest contact point of a stud can bear [N]."""
        return self.friction * self.preload
