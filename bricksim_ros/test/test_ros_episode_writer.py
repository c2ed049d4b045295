# SPDX-License-Identifier: Apache-2.0
"""Bags: read back with an independent reader, split, cut short by a crash."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock

from bricksim_core.episodes.reader import EpisodeError, read_episode, verify
from bricksim_core.formats import read_structure
from bricksim_ros import conversions
from bricksim_ros.episode_writer import Channel, EpisodeWriter
from bricksim_ros.message_definitions import full_definition
from bricksim_ros.recorder_node import qos_entry

DATA = Path(__file__).parents[2] / "bricksim_core" / "test" / "data"
TYPES = {
    "/clock": "rosgraph_msgs/msg/Clock",
    "/bricksim/topology": "bricksim_msgs/msg/BrickTopology",
}
LATCHED_QOS = qos_entry(None, latched=True)


def _channels() -> list[Channel]:
    return [
        Channel(
            topic,
            kind,
            full_definition(kind),
            latched=topic.endswith("topology"),
            qos=[LATCHED_QOS] if topic.endswith("topology") else [],
        )
        for topic, kind in TYPES.items()
    ]


def _clock(now: int) -> bytes:
    return serialize_message(Clock(clock=conversions.time_message(1e-9 * now)))


def _topology() -> bytes:
    structure = read_structure(DATA / "bricksim" / "demo_assembly_structure1.json")
    head = conversions.header(conversions.time_message(0.0), "world")
    return serialize_message(
        conversions.topology_message(structure.graph, structure.part_poses(), (), 4, head)
    )


def _write(folder: Path, steps: int, split_bytes: int = 0) -> EpisodeWriter:
    writer = EpisodeWriter(
        folder,
        _channels(),
        metadata={"episode": "test"},
        attachments={"structure.json": b"{}"},
        split_bytes=split_bytes,
    )
    for step in range(steps):
        now = 1_000_000_000 + step * 10_000_000
        writer.write("/clock", _clock(now), now)
        if step == 0:
            writer.write("/bricksim/topology", _topology(), now)
    return writer


def test_an_independent_reader_reads_it(tmp_path: Path) -> None:
    writer = _write(tmp_path / "bag", 101)
    writer.close()
    with AnyReader([tmp_path / "bag"]) as reader:
        assert reader.message_count == 102
        assert reader.duration == pytest.approx(1_000_000_000, abs=1)
        topics = {c.topic: c for c in reader.connections}
        assert {t: c.msgtype for t, c in topics.items()} == TYPES
        (row,) = reader.messages([topics["/bricksim/topology"]])
        message: Any = reader.deserialize(row[2], row[0].msgtype)
        assert [int(p.id) for p in message.parts] == [0, 1, 2, 3, 4]
        assert [tuple(int(o) for o in c.offset) for c in message.connections][1] == (9, 8)


def test_metadata_is_that_of_rosbag2(tmp_path: Path) -> None:
    _write(tmp_path / "bag", 11).close()
    text = (tmp_path / "bag" / "metadata.yaml").read_text(encoding="utf-8")
    information = yaml.safe_load(text)["rosbag2_bagfile_information"]
    assert information["version"] == 9
    assert information["storage_identifier"] == "mcap"
    assert information["message_count"] == 12
    assert information["duration"]["nanoseconds"] == 100_000_000
    assert information["relative_file_paths"] == ["bag_0.mcap"]
    topics = {t["topic_metadata"]["name"]: t for t in information["topics_with_message_count"]}
    assert topics["/clock"]["message_count"] == 11
    offered = topics["/bricksim/topology"]["topic_metadata"]["offered_qos_profiles"]
    assert offered[0]["durability"] == "transient_local"


def test_every_split_begins_with_the_latched_messages(tmp_path: Path) -> None:
    writer = _write(tmp_path / "bag", 8000, split_bytes=64 * 1024)
    writer.close()
    files = sorted((tmp_path / "bag").glob("*.mcap"))
    assert len(files) >= 2
    for file in files:
        episode = read_episode(file)
        assert len(episode.topologies) == 1
        assert episode.topologies[0][0] == pytest.approx(episode.start, abs=0.011)
        assert episode.attachments == {"structure.json": b"{}"}
        assert episode.metadata["episode"] == "test"
    whole = read_episode(tmp_path / "bag")
    assert (whole.start, whole.end) == pytest.approx((1.0, 1.0 + 79.99))
    assert len(whole.topologies) == 1
    assert verify(whole) == []


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    script = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from typing import Any
from test_ros_episode_writer import _write
writer = _write(Path({str(tmp_path / "bag")!r}), 60000)
writer.flush()
print("written", flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    episode = read_episode(tmp_path / "bag")
    assert episode.truncated
    assert len(episode.topologies) == 1
    # At most the last chunk is lost: 1 MiB of messages of 43 bytes each, 10 ms apart.
    assert episode.end == pytest.approx(1.0 + 599.99, abs=250.0)


def test_a_damaged_bag_is_read_up_to_the_damage(tmp_path: Path) -> None:
    _write(tmp_path / "bag", 60000).close()
    (file,) = (tmp_path / "bag").glob("*.mcap")
    data = bytearray(file.read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 20_000, 997):
        data[place] ^= 0x55
    file.write_bytes(data)
    episode = read_episode(tmp_path / "bag")
    assert episode.truncated
    assert len(episode.topologies) == 1
    assert 1.0 < episode.end < 1.0 + 599.99


def test_what_stays_as_it_was_takes_little_room(tmp_path: Path) -> None:
    """Messages as large as those of a thousand bricks at rest."""
    same = np.random.default_rng(0).bytes(100_000)
    writer = EpisodeWriter(tmp_path / "bag", _channels())
    for step in range(100):
        writer.write("/clock", _clock(step) + same, step)
    writer.close()
    (file,) = (tmp_path / "bag").glob("*.mcap")
    assert file.stat().st_size < 0.15 * 100 * len(same)


def test_a_bag_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(FileExistsError):
        EpisodeWriter(tmp_path / "bag", _channels())


@pytest.mark.parametrize("content", [b"", b"no bag", b"\x89MCAP0\r\n"])
def test_what_is_no_bag_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(content)
    with pytest.raises(EpisodeError, match=r"x\.mcap: .+ damaged \(.+\)"):
        read_episode(path)
    with pytest.raises(EpisodeError, match=r"no \.mcap file"):
        read_episode(tmp_path / "nowhere")


def test_definitions_are_complete() -> None:
    text = full_definition("bricksim_msgs/msg/ConnectionEvent")
    for part in ("std_msgs/Header", "builtin_interfaces/Time", "geometry_msgs/Quaternion"):
        assert f"MSG: {part}\n" in text
    with pytest.raises(LookupError):
        full_definition("std_msgs/msg/NoSuchMessage")
