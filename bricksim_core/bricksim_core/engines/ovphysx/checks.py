# SPDX-License-Identifier: Apache-2.0
"""Whether the ovphysx engine works here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import ovphysx

from bricksim_core.doctor import Check
from bricksim_core.engines.ovphysx.engine import OvphysxEngine
from bricksim_core.engines.protocol import BodySpec
from bricksim_core.errors import BrickSimError
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph


def checks() -> Iterator[Check]:
    """Version; and that a brick at rest weighs what it should."""
    yield Check("ovphysx: package", True, f"{ovphysx.__version__} (NVIDIA Omniverse licence)")
    try:
        yield Check("ovphysx: brick at rest", True, _rest())
    except BrickSimError as error:
        yield Check("ovphysx: brick at rest", False, str(error))


def _rest() -> str:
    engine = OvphysxEngine()
    try:
        graph = BrickTopologyGraph()
        part = graph.add_part(BrickShape(4, 2))
        layout = graph.layout(graph.component_of(part))
        engine.update([], [BodySpec(0, layout, np.eye(4), np.zeros(6), False, ((255, 0, 0),))])
        for _ in range(119):
            engine.step()
        report = engine.step()
    finally:
        engine.close()
    weight = layout.masses.sum() * 9.81
    found = report.contacts.impulse[:, 2].sum() / report.dt
    if not abs(found - weight) < 0.01 * weight:
        raise BrickSimError(f"the ground carries {found:.5f} N, expected {weight:.5f} N")
    return f"{found:.5f} N"
