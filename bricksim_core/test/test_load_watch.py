# SPDX-License-Identifier: Apache-2.0
"""What is left out of the load computation because it is still would have said the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_suite import at

from bricksim_core.dynamics import MassProperties, mass_properties
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.protocol import StepReport
from bricksim_core.events import Cause, EventKind, StepResult
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import rotation_from_degrees, standing
from bricksim_core.formats import parse_structure
from bricksim_core.load_watch import SOME_PARTS
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.slip import SlipCriterion
from bricksim_core.simulator import Simulator, SimulatorConfig


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


LARGE, SMALL = (3, 5, 14), (2, 2, 12)
"""Blocks of 210 and 48 bricks."""


def tilted(simulator: Simulator, height: float, size: tuple[int, int, int] = LARGE) -> None:
    structure = parse_structure(running_bond(*size), baseplate=None)
    pose = standing(structure, rotation_from_degrees(20.0, 30.0, 0.0), height)
    simulator.spawn(structure, pose, fixed=())


def under_way(simulator: Simulator) -> bool:
    return any(watched.task is not None for watched in simulator._watch._watched.values())


@pytest.mark.parametrize(
    ("size", "height", "frames", "most"),
    [(LARGE, 0.144, 20, 3), (LARGE, 0.144, 38, 3), (LARGE, 0.19, 20, 4), (SMALL, 0.5, 25, 3)],
)
@pytest.mark.parametrize("latest", [1, 9])
def test_examinations_of_large_components_take_several_frames(size, height, frames, most, latest):
    """A block lands on a corner: it slides as far, and the same breaks under the same loads, if
    later by a few frames, and no more than allowed."""
    waited = 0

    def dropped(late: int):
        nonlocal waited
        criterion, limits = SlipCriterion(), BreakageThresholds(lateness=late / 60.0)
        simulator = Simulator(config=SimulatorConfig(breakage=limits))
        simulator._watch.detector.criterion = criterion
        tilted(simulator, height, size)
        connections = sorted(simulator.graph.connections)
        broken, went_on = {}, 0
        for frame in range(frames):
            for event in simulator.step().events:
                if event.cause is Cause.OVERLOAD:
                    broken[event.connection] = frame, event.utilization, event.force
            went_on += under_way(simulator)
            waited = max(waited, *(len(w.waiting) for w in simulator._watch._watched.values()))
        return broken, [criterion.slip(c) for c in connections], went_on

    soon, want, went_on = dropped(0)
    assert not went_on
    late, slips, went_on = dropped(latest)
    assert went_on
    assert waited <= latest
    assert late.keys() == soon.keys()
    assert soon or slips == pytest.approx(want, abs=1e-7)
    for connection, (frame, *load) in soon.items():
        assert 0 <= late[connection][0] - frame <= min(most, latest)
        assert late[connection][1:] == pytest.approx(load, rel=1e-3)


class DearEngine(MujocoEngine):
    """Says that there is no time left for anything else."""

    def step(self) -> StepReport:
        return replace(super().step(), cost=1e3)


def test_what_a_frame_has_no_time_for_is_examined_in_time_nevertheless() -> None:
    """The same breaks under the same loads as at once, none later than allowed, some later than
    with the engine's own costs."""

    def breaks(engine: MujocoEngine, lateness: float) -> dict[object, tuple[int, float]]:
        limits = BreakageThresholds(lateness=lateness)
        simulator = Simulator(engine, SimulatorConfig(breakage=limits))
        tilted(simulator, 0.5, SMALL)
        found = {}
        for frame in range(32):
            for event in simulator.step().events:
                if event.cause is Cause.OVERLOAD:
                    found[event.connection] = frame, event.utilization
        return found

    soon, usual, dear = (
        breaks(MujocoEngine(), 0.0), breaks(MujocoEngine(), 0.15), breaks(DearEngine(), 0.15)
    )  # fmt: skip
    assert soon and soon.keys() == usual.keys() == dear.keys()
    for connection, (frame, utilization) in soon.items():
        assert frame <= usual[connection][0] < dear[connection][0] <= frame + 9
        assert dear[connection][1] == pytest.approx(utilization, rel=1e-3)


def test_small_pieces_of_what_is_late_wait_as_it_did() -> None:
    """A block in whose examinations there is no time is cut in two: what it has waited for is not
    examined at once."""
    simulator = Simulator(DearEngine())
    tilted(simulator, 0.144, SMALL)

    def waiting() -> int:
        return max(len(watched.waiting) for watched in simulator._watch._watched.values())

    while waiting() < 2:
        simulator.step()
    graph = simulator.graph
    layout = graph.layout(graph.component_ids[0])
    heights = layout.grids[:, 2]
    below = heights < np.median(heights)
    simulator.disconnect(
        layout.connection_ids[below[layout.stud_index] & ~below[layout.hole_index]].tolist()
    )
    simulator.step()
    sizes = [len(graph.component_parts(c)) for c in graph.component_ids]
    assert len(sizes) == 2 and max(sizes) < SOME_PARTS
    assert waiting() >= 2
    for _ in range(30):
        simulator.step()
        assert waiting() <= 9


def test_a_snapshot_in_the_midst_of_an_examination_changes_nothing() -> None:
    """Neither for the simulator that goes on nor for one that returns to it, not even if what is
    examined is changed."""

    def poses(simulator: Simulator, edited: bool) -> np.ndarray:
        if edited:
            simulator.hold_fixed(0, True)
        return np.array([simulator.step().world_T_part for _ in range(12)])

    wanted = {}
    for edited in (False, True):
        plain = Simulator()
        tilted(plain, 0.144)
        while not under_way(plain):
            plain.step()
        wanted[edited] = poses(plain, edited)
    simulator = Simulator()
    tilted(simulator, 0.144)
    while not under_way(simulator):
        simulator.step()
    snapshot = simulator.snapshot()
    for edited in (False, True, False):
        np.testing.assert_array_equal(poses(simulator, edited), wanted[edited])
        simulator.restore(snapshot)
        assert under_way(simulator)


def test_a_change_ends_what_is_under_way() -> None:
    """It is not examined again, the loads that wait behind it are."""
    simulator = Simulator()
    tilted(simulator, 0.144)

    def waiting() -> list:
        (watched,) = simulator._watch._watched.values()
        return [due for frame in watched.waiting for due in frame]

    while not under_way(simulator) or len(waiting()) < 3:
        simulator.step()
    before = waiting()
    simulator.hold_fixed(0, True)
    assert not under_way(simulator)
    after = waiting()
    assert [due.dt for due in after] == [due.dt for due in before[1:]]


def test_what_waits_of_a_whole_moves_each_of_its_pieces() -> None:
    """They have its momentum and its spin, and their loads are in balance."""
    simulator = Simulator()
    tilted(simulator, 0.144)

    def changes() -> list[tuple[MassProperties, list]]:
        return [
            (
                mass_properties(watched.layout),
                [due.worked_out().loads for frame in watched.waiting for due in frame],
            )
            for watched in simulator._watch._watched.values()
        ]

    while not under_way(simulator) or len(changes()[0][1]) < 3:
        simulator.step()
    ((whole, before),) = changes()
    (component,) = simulator.graph.component_ids
    layout = simulator.graph.layout(component)
    lower = layout.coms[:, 2] < np.median(layout.coms[:, 2])
    across = lower[layout.stud_index] != lower[layout.hole_index]
    simulator.disconnect(layout.connection_ids[across].tolist())
    pieces = changes()
    assert len(pieces) == 2
    for n, pulse in enumerate(before[1:]):
        momentum, spin = np.zeros(3), np.zeros(3)
        for piece, pulses in pieces:
            change, loads = pulses[n].change, pulses[n].total
            momentum += piece.mass * change[:3]
            spin += piece.inertia @ change[3:]
            spin += np.cross(piece.com - whole.com, piece.mass * change[:3])
            assert abs(loads[:, :3].sum(axis=0)).max() < 1e-9 * abs(loads).max()
        assert momentum == pytest.approx(whole.mass * pulse.change[:3], abs=1e-9)
        assert spin == pytest.approx(whole.inertia @ pulse.change[3:], abs=1e-9)
    notes = [note for _ in range(12) for note in simulator.step().solver_notes]
    assert not notes
