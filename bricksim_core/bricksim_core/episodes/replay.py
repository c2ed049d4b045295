# SPDX-License-Identifier: Apache-2.0
"""Re-creates the scene of a recorded episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from bricksim_core.episodes.messages import connection_from_message, shape_from_message
from bricksim_core.episodes.reader import Episode, EpisodeError
from bricksim_core.events import EventKind
from bricksim_core.experiments.recording import ConnectionChange, PartName, Recording
from bricksim_core.parts import BrickShape
from bricksim_core.pictures import ABSENT
from bricksim_core.spatial import Array
from bricksim_core.topology.frames import stud_T_connection


def episode_recording(episode: Episode) -> Recording:
    """The episode frame by frame, for pictures and summaries.

    Poses are `ABSENT` while a part is not in the scene.

    Raises:
        EpisodeError: No brick states were recorded.
    """
    if not episode.states:
        raise EpisodeError(f"{episode.path}: no brick states in it, nothing to show")
    parts: dict[int, Any] = {}
    for _, topology in episode.topologies:
        parts.update({int(p.id): p for p in topology.parts})
    ids = sorted(parts)
    shapes = {i: shape_from_message(parts[i]) for i in ids}
    row = {part_id: n for n, part_id in enumerate(ids)}
    last = episode.structure_at(episode.end)
    pieces = [tuple(last.graph.component_parts(c)) for c in last.graph.component_ids]
    names: tuple[PartName, ...] = tuple(ids)
    return Recording(
        parts=names,
        shapes=tuple(shapes[i] for i in ids),
        colors=tuple(tuple(int(c) for c in parts[i].color) for i in ids),  # type: ignore[misc]
        fixed=np.array([bool(parts[i].fixed) for i in ids]),
        times=np.array([s.time for s in episode.states]),
        world_T_part=_poses(episode, row),
        utilization=_utilization(episode, row),
        changes=tuple(_change(e, shapes, row) for e in episode.events),
        pieces=tuple(sorted(pieces, key=len, reverse=True)),
        timings=(),
        loading=np.zeros(0, dtype=np.bool_),
        solver_notes=(),
    )


def _poses(episode: Episode, row: dict[int, int]) -> Array:
    poses = np.tile(ABSENT, (len(episode.states), len(row), 1, 1))
    for frame, states in enumerate(episode.states):
        known = [n for n, i in enumerate(states.part_ids.tolist()) if i in row]
        poses[frame, [row[int(states.part_ids[n])] for n in known]] = states.world_T_part[known]
    return poses


def _utilization(episode: Episode, row: dict[int, int]) -> Array:
    """(F, N) highest utilization among each part's connections, as last told before each frame."""
    ends = {
        int(c.id): (row[int(c.stud_part)], row[int(c.hole_part)])
        for _, topology in episode.topologies
        for c in topology.connections
    }
    result = np.full((len(episode.states), len(row)), np.nan)
    told = iter(episode.utilizations)
    waiting = next(told, None)
    current = np.full(len(row), np.nan)
    for frame, states in enumerate(episode.states):
        while waiting is not None and waiting[0] <= states.time + 1e-9:
            current = np.full(len(row), np.nan)
            for connection_id, value in waiting[1].items():
                rows = list(ends.get(connection_id, ()))
                current[rows] = np.fmax(current[rows], value)
            waiting = next(told, None)
        result[frame] = current
    return result


def _change(event: Any, shapes: dict[int, BrickShape], row: dict[int, int]) -> ConnectionChange:
    connection = connection_from_message(event.connection)
    stamp = event.header.stamp
    x = y = z = 0.0
    if connection.stud_part in shapes and connection.hole_part in shapes:
        frame = stud_T_connection(
            connection, shapes[connection.stud_part], shapes[connection.hole_part]
        )
        x, y, z = frame[:3, 3].tolist()
    return ConnectionChange(
        time=stamp.sec + 1e-9 * stamp.nanosec,
        kind=EventKind(event.kind),
        cause=str(event.cause),
        stud_part=connection.stud_part,
        hole_part=connection.hole_part,
        offset=connection.offset,
        yaw=connection.yaw,
        utilization=float(event.utilization),
        force=float(event.force),
        part_index=row.get(connection.stud_part, 0),
        local=(x, y, z),
    )
