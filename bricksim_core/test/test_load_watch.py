# SPDX-License-Identifier: Apache-2.0
"""What is left out of the load computation because it is still would have said the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from engine_suite import at

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.protocol import StepReport
from bricksim_core.events import EventKind, StepResult
from bricksim_core.formats import parse_structure
from bricksim_core.simulator import Simulator


class ForgetfulEngine(MujocoEngine):
    """Does not tell what is still, so that everything is computed in every frame."""

    def step(self) -> StepReport:
        return replace(super().step(), still=None, fresh=None)


def run(engine: MujocoEngine) -> list[StepResult]:
    """Pairs that rest and are pushed, bricks on a held one that are pulled, a tower that falls on
    one of them; connections come and go."""
    simulator = Simulator(engine)
    pairs = "".join(f"2x4 ({5 * i},0,0)\n2x4 ({5 * i},1,1)\n" for i in range(6))
    ids = simulator.spawn(parse_structure(pairs, baseplate=None))
    plate = parse_structure("2x4 (0,0,0)\n2x4 (0,2,1)\n1x2 (0,8,0)\n", baseplate=None)
    held = simulator.spawn(plate, at(0, 0.2, 0), fixed={1})
    lying = simulator.spawn(parse_structure("2x4 (0,0,0)\n", baseplate=None), at(0, 0.216, 0.0212))
    tower = parse_structure("2x4 (0,0,0)\n2x4 (0,1,1)\n2x4 (0,2,2)\n", baseplate=None)
    simulator.spawn(tower, at(0.0405, 0.0, 0.15, (0.3, 0.2, 0)))
    results, last = [], None
    for frame in range(145):
        if frame == 90:
            (last,) = simulator.graph.connections_of(ids[12])
            simulator.disconnect([last.id])
        if frame == 100 and last is not None:
            simulator.connect(ids[11], ids[12], last.offset, last.yaw)
        if frame in (110, 111):
            simulator.apply_wrench(ids[8], [0, 0, 0.02, 0, 0, 0])
        if frame == 120:
            simulator.hold_fixed(ids[4], True)
        if frame == 130:
            simulator.hold_fixed(held[1], False)
        if 70 <= frame < 75:
            simulator.apply_wrench(held[2], [0, 0, 0.1 * (frame - 69), 0, 0, 0])
        if frame == 60:
            simulator.apply_wrench(lying[1], [0, 0, 0.05, 0, 0, 0])
        results.append(simulator.step())
    return results


def test_still_components_read_what_they_would_read() -> None:
    told = run(MujocoEngine())
    untold = run(ForgetfulEngine())
    events = 0
    for a, b in zip(told, untold, strict=True):
        np.testing.assert_array_equal(a.world_T_part, b.world_T_part)
        np.testing.assert_array_equal(a.connection_ids, b.connection_ids)
        np.testing.assert_array_equal(a.utilization, b.utilization)
        assert [e.connection for e in a.events] == [e.connection for e in b.events]
        events += len(a.events)
    assert events > 8
    assert np.isfinite(told[-1].utilization).all()


def test_what_is_overloaded_but_held_by_others_is_told() -> None:
    """Walls that fall on a corner: for a frame a connection bears more than it can, but those
    beside it hold."""
    bricks = "".join(f"4x2 ({4 * i + 2 * (k % 2)},0,{k})\n" for k in range(8) for i in range(2))
    wall = parse_structure(bricks, baseplate=None)
    simulator = Simulator()
    for x, (z, roll, pitch) in enumerate([(0.3, 1.0, 0.3), (0.2, 0.5, 0.5), (0.2, 0.3, 0.3)]):
        simulator.spawn(wall, at(0.3 * x, 0, z, (roll, pitch, 0)))
    told = 0
    for _ in range(60):
        result = simulator.step()
        assert not any(event.kind is EventKind.BROKEN for event in result.events)
        overloaded = set(result.connection_ids[result.utilization > 1.0].tolist())
        assert set(result.bypassed.tolist()) <= overloaded
        assert result.bypassed.tolist() == sorted(result.bypassed.tolist())
        told += len(result.bypassed) > 0
    assert told
