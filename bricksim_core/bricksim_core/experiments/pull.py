# SPDX-License-Identifier: Apache-2.0
"""Pulling at a part of a structure until something gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.errors import BrickSimError
from bricksim_core.events import StepResult
from bricksim_core.experiments.recording import ConnectionChange, Recorder, Recording
from bricksim_core.experiments.setup import (
    UNHURRIED,
    Progress,
    lowest_parts,
    new_simulator,
    run,
    standing,
)
from bricksim_core.mechanics.analysis import STANDARD_GRAVITY, Analysis, analyze
from bricksim_core.pictures.palette import OVERLOAD_FROM
from bricksim_core.simulator import SimulatorConfig
from bricksim_core.spatial import Array
from bricksim_core.topology import Structure
from bricksim_core.values import as_number

MAX_FORCE = 10000.0
"""Greatest force of an experiment [N]."""
RAMP = 2.0
"""Time in which the force grows from nothing [s]."""
OVERSHOOT = 1.5
"""The simulated force goes to this multiple of the static limit."""
CARRY_ON = 1.3
"""Force on a piece that has come off, in multiples of its weight: it moves away, but not fast."""
AFTERWARDS = 0.5
"""Time that is recorded after the first break [s]."""
PRECISION = 1e-4
"""Relative width to which the static limit is narrowed down."""


@dataclass(frozen=True, eq=False)
class PullResult:
    """What a structure stands at one part.

    Attributes:
        force: Greatest force that was tried [N].
        limit: Statics: force at which the structure's verdict turns to unstable [N]; inf if that is
            beyond `force`, 0 if it does not stand without it, NaN if that is not known
            (`analyze`).
        overloaded: Statics: connections beyond their capacity just above that force, the worst
            first, as (lower part, upper part).
        break_force: Simulation: force when the first connection broke [N]; None if none did.
        broken: Simulation: the connections that broke then.
        recording: All frames of the simulation.
    """

    force: float
    limit: float
    overloaded: tuple[tuple[int, int], ...]
    break_force: float | None
    broken: tuple[ConnectionChange, ...]
    recording: Recording


def pull(
    structure: Structure,
    part: int,
    *,
    force: float = 20.0,
    direction: ArrayLike = (0.0, 0.0, 1.0),
    config: SimulatorConfig = UNHURRIED,
    engine: str = "mujoco",
    progress: Progress | None = None,
) -> PullResult:
    """Pulls at a part's centre of mass with a slowly growing force, by statics and by simulation.

    The world holds the parts that the file fixes, or the lowest parts if it fixes none.

    Args:
        structure: The structure.
        part: Id of the part.
        force: Greatest force [N].
        direction: (3,) direction of the force, world; any length but zero.
        config: Settings of the simulator.
        engine: Name of the rigid-body engine.
        progress: Called after every frame.

    Raises:
        UnknownIdError: The part does not exist.
        BrickSimError: A number is out of range, or the world holds the part.
    """
    force = as_number(force, "force", 1e-6, MAX_FORCE, unit="N")
    structure.check_part(part)
    along = np.asarray(direction, dtype=float)
    length = float(np.linalg.norm(along)) if along.shape == (3,) else math.nan
    if not (math.isfinite(length) and length > 0.0):
        raise BrickSimError(f"direction is {direction}, expected three numbers, not all zero")
    along = along / length
    held = replace(structure, fixed=structure.fixed or lowest_parts(structure))
    if part in held.fixed:
        raise BrickSimError(
            f"{structure.label}: part {part} is held by the world, expected one that can be pulled"
        )
    limit, overloaded = static_limit(held, part, force, along, config)

    # A slower rise about the expected limit, so that a frame's increase is about 1 % of it.
    greatest = min(force, OVERSHOOT * limit) if limit > 0.0 else force
    simulator = new_simulator(config, engine)
    ids = simulator.spawn(held, standing(held, height=config.ground or 0.0))
    recorder = Recorder(simulator, {new: old for old, new in ids.items()})
    break_time: float | None = None

    def tug(time: float) -> None:
        rising = time if break_time is None else break_time
        now = greatest * min(rising / RAMP, 1.0)
        graph = simulator.graph
        together = graph.component_parts(graph.component_of(ids[part]))
        if simulator.fixed_parts.isdisjoint(together):
            weight = STANDARD_GRAVITY * sum(graph.part(p).shape.mass for p in together)
            now = min(now, CARRY_ON * weight)
        simulator.apply_wrench(ids[part], (*(now * along).tolist(), 0.0, 0.0, 0.0))

    def look(result: StepResult) -> bool:
        nonlocal break_time
        if break_time is None and result.events:
            break_time = result.time
        return break_time is not None and result.time >= break_time + AFTERWARDS

    run(simulator, recorder, RAMP + AFTERWARDS, progress, before=tug, after=look)
    recording = recorder.finish()
    first = tuple(c for c in recording.broken if c.time == break_time)
    frame = 1.0 / config.frame_rate
    return PullResult(
        force=force,
        limit=limit,
        overloaded=overloaded,
        break_force=(
            None if break_time is None else greatest * min((break_time - frame) / RAMP, 1.0)
        ),
        broken=first,
        recording=recording,
    )


def static_limit(
    structure: Structure, part: int, force: float, direction: Array, config: SimulatorConfig
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Force at which a structure's verdict turns to unstable, by bisection.

    The forces that can be carried form an interval: what carries two loads carries, in proportion,
    every load between them.

    Returns:
        The force [N] (inf: more than ``force``; 0: unstable without it; NaN: not known) and the
        connections that are overloaded just above it, as (lower part, upper part), the worst first.
    """

    def verdict(size: float) -> Analysis:
        load = np.concatenate([size * direction, np.zeros(3)])
        return analyze(
            structure,
            gravity=config.gravity,
            loads={part: load},
            model=config.model,
            limit=False,
        )

    low, high = 0.0, force
    failing = verdict(0.0)
    if failing.stable:
        failing = verdict(high)
        if failing.stable:
            return math.inf, ()
        while high - low > PRECISION * high and not failing.unknown:
            middle = 0.5 * (low + high)
            analysis = verdict(middle)
            if analysis.stable:
                low = middle
            else:
                high, failing = middle, analysis
    if failing.unknown:
        return math.nan, ()
    over = sorted((-u, i) for i, u in failing.utilization.items() if u > OVERLOAD_FROM)
    if not over and failing.worst_connection is not None:
        # Just at the limit; the verdict turns within the solver's tolerance.
        over = [(-failing.max_utilization, failing.worst_connection)]
    connections = [structure.graph.connection(i) for _, i in over]
    return low, tuple((c.stud_part, c.hole_part) for c in connections)
