# SPDX-License-Identifier: Apache-2.0
"""Reads the bag of an assembly episode; no ROS installation is needed.

Files that a crash cut short are read up to the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from mcap.records import Attachment, Channel, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.errors import BrickSimError
from bricksim_core.spatial import Array, transform
from bricksim_core.topology import Structure

TOPOLOGY = "bricksim_msgs/msg/BrickTopology"
EVENT = "bricksim_msgs/msg/ConnectionEvent"
STATES = "bricksim_msgs/msg/BrickStateArray"
UTILIZATION = "bricksim_msgs/msg/ConnectionUtilizationArray"
CLOCK = "rosgraph_msgs/msg/Clock"
_WANTED = {TOPOLOGY, EVENT, STATES, UTILIZATION, CLOCK}


class EpisodeError(BrickSimError):
    """A bag cannot be read as an episode; the text names file and reason."""


@dataclass(frozen=True, eq=False)
class States:
    """Where every part was: time [s], part ids (N,), world_T_part (N, 4, 4) [m]."""

    time: float
    part_ids: np.ndarray
    world_T_part: Array


@dataclass
class Episode:
    """What an episode's bag holds, in order of time.

    Attributes:
        path: The bag.
        start: Time of the first clock [s].
        end: Time of the last clock [s].
        topologies: (time, bricksim_msgs/BrickTopology) pairs.
        events: bricksim_msgs/ConnectionEvent messages.
        states: Poses of parts.
        utilizations: (time, utilization by connection id) pairs.
        metadata: Text entries: parameters, versions.
        attachments: Files by name.
        truncated: True if a file ended in the middle or is damaged, and was read up to there.
    """

    path: Path
    start: float = 0.0
    end: float = 0.0
    topologies: list[tuple[float, Any]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    states: list[States] = field(default_factory=list)
    utilizations: list[tuple[float, dict[int, float]]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    attachments: dict[str, bytes] = field(default_factory=dict)
    truncated: bool = False

    def structure_at(self, time: float) -> Structure:
        """The structures as the last topology until ``time`` [s] tells.

        Raises:
            EpisodeError: There is no topology yet.
        """
        known = [message for stamp, message in self.topologies if stamp <= time + 1e-9]
        if not known:
            raise EpisodeError(f"{self.path}: no topology until {time:.3f} s")
        return structure_from_topology(known[-1], name=self.path.name)


def read_episode(path: Path) -> Episode:
    """Reads a bag folder or a single MCAP file; what copies of a file hold once more counts once.

    Raises:
        EpisodeError: There is no MCAP file, one is damaged, or topics are missing.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.mcap"), key=_split_number)
    if not files:
        raise EpisodeError(f"{path}: no .mcap file found, expected the folder of a bag")
    episode = Episode(path)
    messages: list[tuple[int, int, str, Any]] = []
    seen: set[tuple[int, str, bytes]] = set()
    for file in files:
        for item in _records(file, episode, seen):
            if isinstance(item, Metadata):
                episode.metadata.update(item.metadata)
            elif isinstance(item, Attachment):
                episode.attachments.setdefault(item.name, item.data)
            else:
                time, kind, message = item
                messages.append((time, len(messages), kind, message))
    messages.sort(key=lambda m: m[:2])
    clocks = [time for time, _, kind, _ in messages if kind == CLOCK]
    if not clocks:
        raise EpisodeError(f"{path}: no /clock in it, expected the bag of an episode")
    episode.start, episode.end = 1e-9 * clocks[0], 1e-9 * clocks[-1]
    for time, _, kind, message in messages:
        _enter(episode, 1e-9 * time, kind, message)
    if not episode.topologies:
        raise EpisodeError(f"{path}: no topology in it, expected the bag of an episode")
    return episode


def verify(episode: Episode) -> list[str]:
    """Compares the topology over time with what the events say.

    Returns:
        What does not agree, one line each; empty if the graph equals the replay of the events.
    """
    problems = []
    events = {int(e.sequence): e for e in episode.events}
    first = episode.topologies[0][1]
    connected = {int(c.id) for c in first.connections}
    sequence = int(first.next_event)
    for time, topology in episode.topologies[1:]:
        while sequence < int(topology.next_event):
            event = events.get(sequence)
            if event is None:
                problems.append(f"event {sequence} is missing before {time:.3f} s")
            else:
                problems += _apply(event, connected)
            sequence += 1
        stated = {int(c.id) for c in topology.connections}
        if stated != connected:
            problems.append(
                f"at {time:.3f} s the topology has connections {sorted(stated - connected)} more"
                f" and {sorted(connected - stated)} fewer than the events say"
            )
            connected = stated
    return problems


def _apply(event: Any, connected: set[int]) -> list[str]:
    connection_id = int(event.connection.id)
    began = event.kind == "assembled"
    if began == (connection_id in connected):
        state = "exists already" if began else "does not exist"
        return [f"event {int(event.sequence)}: connection {connection_id} {state}"]
    (connected.add if began else connected.discard)(connection_id)
    return []


def _enter(episode: Episode, time: float, kind: str, message: Any) -> None:
    if kind == TOPOLOGY:
        # Every split begins with the last topology again.
        if not episode.topologies or _differ(message, episode.topologies[-1][1]):
            episode.topologies.append((time, message))
    elif kind == EVENT:
        episode.events.append(message)
    elif kind == STATES:
        positions = np.array(message.positions, dtype=float).reshape(-1, 3)
        quaternions = np.array(message.orientations, dtype=float).reshape(-1, 4)
        ids = np.array(message.part_ids, dtype=np.int64)
        episode.states.append(States(time, ids, transform(positions, quaternions)))
    elif kind == UTILIZATION:
        pairs = zip(message.connection_ids, message.utilization, strict=True)
        episode.utilizations.append((time, {int(k): float(v) for k, v in pairs}))


def _differ(topology: Any, other: Any) -> bool:
    ids = [[int(part.id) for part in message.parts] for message in (topology, other)]
    return topology.next_event != other.next_event or ids[0] != ids[1]


def _records(
    file: Path, episode: Episode, seen: set[tuple[int, str, bytes]]
) -> Iterator[Metadata | Attachment | tuple[int, str, Any]]:
    decoders = DecoderFactory()
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    try:
        with file.open("rb") as stream:
            for record in StreamReader(stream, validate_crcs=True).records:
                if isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Channel):
                    channels[record.id] = record
                elif isinstance(record, (Metadata, Attachment)):
                    yield record
                elif isinstance(record, Message):
                    schema = schemas[channels[record.channel_id].schema_id]
                    digest = blake2b(record.data, digest_size=16).digest()
                    known = (record.log_time, schema.name, digest)
                    if schema.name not in _WANTED or known in seen:
                        continue
                    seen.add(known)
                    decode = decoders.decoder_for("cdr", schema)
                    if decode is None:
                        raise EpisodeError(f"{file}: {schema.name} cannot be decoded")
                    yield record.log_time, schema.name, decode(record.data)
    except EpisodeError:
        raise
    except OSError as error:
        raise EpisodeError(f"{file}: {error.strerror}") from None
    except Exception as error:  # damaged bytes: whatever decompression and decoders run into
        if not schemas:
            trouble = str(error) or "it ends too soon"
            raise EpisodeError(f"{file}: no MCAP file, or damaged ({trouble})") from None
        episode.truncated = True


def _split_number(path: Path) -> tuple[int, str]:
    tail = path.stem.rpartition("_")[2]
    return (int(tail) if tail.isdecimal() else 0, path.name)
