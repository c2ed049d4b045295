# SPDX-License-Identifier: Apache-2.0
"""Writes an assembly episode as a rosbag2 folder: MCAP files and metadata.yaml.

The layout is that of rosbag2 version 9 (Jazzy). Chunks are written as they fill, and
metadata.yaml is renewed with every flush, so that what was written can be read after a crash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from mcap.writer import CompressionType, Writer

CHUNK_SIZE = 1024 * 1024
"""Bytes of a chunk, each of which is compressed by itself: several frames of many bricks, of which
most repeat what they were before. What a recorder that is killed may lose at most."""


@dataclass(frozen=True)
class Channel:
    """A recorded topic.

    Attributes:
        topic: Full name.
        type: Message type, ``package/msg/Name``.
        definition: Full text of the definition.
        type_hash: RIHS01 hash, empty if unknown.
        qos: Offered QoS profiles as rosbag2 writes them.
        latched: Transient local: every file begins with the last message.
    """

    topic: str
    type: str
    definition: str
    type_hash: str = ""
    qos: Sequence[Mapping[str, Any]] = ()
    latched: bool = False


@dataclass
class _File:
    """One split of the bag."""

    path: Path
    stream: BinaryIO
    writer: Writer
    channels: dict[str, int] = field(default_factory=dict)
    start: int | None = None
    end: int = 0
    count: int = 0


class EpisodeWriter:
    """Writes one bag.

    Args:
        folder: The bag; must not exist.
        channels: Topics to come; more can be added while writing.
        metadata: Text entries that every file carries under the name ``bricksim``.
        attachments: Files that every MCAP file carries, by name.
        split_bytes: A new file is begun when the current one is larger; 0 never splits.

    Raises:
        FileExistsError: The folder exists.
    """

    def __init__(
        self,
        folder: Path,
        channels: Iterable[Channel],
        *,
        metadata: Mapping[str, str] | None = None,
        attachments: Mapping[str, bytes] | None = None,
        split_bytes: int = 0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=False)
        self.folder = folder
        self.count = 0
        self._channels = {c.topic: c for c in channels}
        self._metadata = dict(metadata or {})
        self._attachments = dict(attachments or {})
        self._split_bytes = split_bytes
        self._counts = dict.fromkeys(self._channels, 0)
        self._latched: dict[str, bytes] = {}
        self._files: list[_File] = []

    @property
    def duration(self) -> float:
        """Time from the first message to the last [s]."""
        starts = [f.start for f in self._files if f.start is not None]
        return 1e-9 * (max(f.end for f in self._files) - min(starts)) if starts else 0.0

    def add_metadata(self, entries: Mapping[str, str]) -> None:
        """Adds text entries that came late; they are in this file and all that follow."""
        self._metadata.update(entries)
        if self._files:
            self._files[-1].writer.add_metadata("bricksim", dict(entries))

    def keep(self, topic: str, data: bytes) -> None:
        """Remembers the last message of a latched topic for the beginning of each file."""
        self._latched[topic] = data

    def write(self, topic: str, data: bytes, time: int) -> None:
        """Writes one serialized message.

        Args:
            topic: One of the channels.
            data: CDR.
            time: Simulation time [ns].
        """
        if self._channels[topic].latched:
            self.keep(topic, data)
        file = self._file(time)
        self._append(file, topic, data, time)

    def flush(self) -> None:
        """Brings what is complete to the disk and renews metadata.yaml."""
        if self._files:
            self._files[-1].stream.flush()
        self._write_metadata()

    def close(self) -> None:
        """Completes the files. Nothing can be written afterwards."""
        if self._files and not self._files[-1].stream.closed:
            self._finish(self._files[-1])
        self._write_metadata()

    def abandon(self) -> None:
        """Lets go of the files as they are: after an error, when no more can be written."""
        for file in self._files:
            with suppress(OSError):
                file.stream.close()

    # -- inside -------------------------------------------------------------------------------

    def _file(self, time: int) -> _File:
        if self._files:
            current = self._files[-1]
            if not self._split_bytes or current.stream.tell() < self._split_bytes:
                return current
            self._finish(current)
        return self._begin(time)

    def _begin(self, time: int) -> _File:
        path = self.folder / f"{self.folder.name}_{len(self._files)}.mcap"
        stream = path.open("wb")
        chunk_size = min(CHUNK_SIZE, self._split_bytes or CHUNK_SIZE)
        writer = Writer(stream, chunk_size=chunk_size, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library="bricksim_ros")
        file = _File(path, stream, writer)
        for channel in self._channels.values():
            schema = writer.register_schema(
                channel.type, "ros2msg", channel.definition.encode("utf-8")
            )
            file.channels[channel.topic] = writer.register_channel(
                channel.topic,
                "cdr",
                schema,
                {
                    "offered_qos_profiles": yaml.safe_dump([dict(q) for q in channel.qos]),
                    "topic_type_hash": channel.type_hash,
                },
            )
        if self._metadata:
            writer.add_metadata("bricksim", self._metadata)
        for name, data in self._attachments.items():
            writer.add_attachment(time, time, name, "application/json", data)
        first = not self._files
        self._files.append(file)
        if not first:
            for topic, data in self._latched.items():
                self._append(file, topic, data, time)
        return file

    def _append(self, file: _File, topic: str, data: bytes, time: int) -> None:
        file.writer.add_message(file.channels[topic], log_time=time, data=data, publish_time=time)
        file.start = time if file.start is None else min(file.start, time)
        file.end = max(file.end, time)
        file.count += 1
        self.count += 1
        self._counts[topic] += 1

    def _finish(self, file: _File) -> None:
        file.writer.finish()
        file.stream.flush()
        os.fsync(file.stream.fileno())
        file.stream.close()

    def _write_metadata(self) -> None:
        starts = [f.start for f in self._files if f.start is not None]
        start = min(starts, default=0)
        end = max((f.end for f in self._files), default=0)
        topics = [
            {
                "topic_metadata": {
                    "name": channel.topic,
                    "type": channel.type,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [dict(q) for q in channel.qos],
                    "type_description_hash": channel.type_hash,
                },
                "message_count": self._counts[channel.topic],
            }
            for channel in self._channels.values()
        ]
        files = [
            {
                "path": file.path.name,
                "starting_time": {"nanoseconds_since_epoch": file.start or 0},
                "duration": {"nanoseconds": file.end - (file.start or file.end)},
                "message_count": file.count,
            }
            for file in self._files
        ]
        information = {
            "version": 9,
            "storage_identifier": "mcap",
            "duration": {"nanoseconds": end - start},
            "starting_time": {"nanoseconds_since_epoch": start},
            "message_count": self.count,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [f.path.name for f in self._files],
            "files": files,
            "custom_data": dict(self._metadata),
            "ros_distro": "jazzy",
        }
        temporary = self.folder / ".metadata.yaml.tmp"
        text = yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.folder / "metadata.yaml")
