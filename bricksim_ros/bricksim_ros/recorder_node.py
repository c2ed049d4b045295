# SPDX-License-Identifier: Apache-2.0
"""The recorder node: one assembly episode, one bag."""

from __future__ import annotations

import queue
import sys
import threading
import time
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.serialization import deserialize_message
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import SetSimulationState

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.errors import BrickSimError
from bricksim_core.formats import Format, format_structure
from bricksim_msgs import msg, srv
from bricksim_ros import parameters
from bricksim_ros.episode_writer import Channel, EpisodeWriter
from bricksim_ros.message_definitions import full_definition
from bricksim_ros.recorded_topics import CLOCK, TOPICS, TOPOLOGY, RecordedTopic, further_topics
from bricksim_ros.running import run_node, spin, wall_timer

_SAME_TIME = 500_000_000
"""Steps back of the clock below this [ns] are no reset."""
_STALE_TIME = 2.0
"""Wall time [s] after a reset of time in which messages from before it may still come."""
_INFINITE = {"sec": 9223372036, "nsec": 854775807}


class RecorderNode(Node):
    """Subscribes raw and hands over to a writing thread, so nothing waits for the disk."""

    def __init__(self) -> None:
        super().__init__("recorder")
        self._declare()
        self._queue: queue.Queue = queue.Queue(parameters.value(self, "queue_size"))
        self._lock = threading.Lock()
        self._writer: EpisodeWriter | None = None
        self._wanted: tuple[Path, str, dict[str, str]] | None = None
        self._now: int | None = None
        self._start = 0
        self._stale_until = 0.0
        self._latched: dict[str, bytes] = {}
        self._topology_is_ahead = False
        self._dropped = 0
        self._failure = ""
        self._failed: EpisodeWriter | None = None
        self._episode = 0
        self._topics = [*TOPICS, *further_topics(parameters.value(self, "further_topics"))]
        self._names = {topic.name: self.resolve_topic_name(topic.name) for topic in self._topics}
        # Publishers find subscriptions in the order in which these are made: when clock and
        # topology are heard, nothing of the others is missed any more.
        for topic in sorted(self._topics, key=lambda topic: topic.name in (CLOCK, TOPOLOGY)):
            self._subscribe(topic)
        self.create_service(srv.StartRecording, "bricksim/start_recording", self._start_service)
        self.create_service(srv.StopRecording, "bricksim/stop_recording", self._stop_service)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        wall_timer(self, 1.0, self._report)
        self._simulator = AsyncParameterClient(self, parameters.value(self, "simulator"))
        self._thread = threading.Thread(target=self._write_loop, name="bag writer", daemon=True)
        self._thread.start()
        if parameters.value(self, "autostart"):
            self._begin("", "", {})
        if parameters.value(self, "play_when_ready"):
            self._play = self.create_client(SetSimulationState, "set_simulation_state")
            self._play_timer = wall_timer(self, 0.1, self._play_if_ready)

    def _declare(self) -> None:
        def describe(text: str) -> ParameterDescriptor:
            return ParameterDescriptor(description=text, read_only=True)

        self.declare_parameter("output", "episodes", describe("Folder for bags without a path"))
        self.declare_parameter("path", "", describe("Bag to write when recording at start"))
        self.declare_parameter("autostart", False, describe("Record from the start"))
        self.declare_parameter(
            "play_when_ready", False, describe("Let a paused simulation go once all is subscribed")
        )
        self.declare_parameter("simulator", "simulator", describe("Name of the simulator node"))
        self.declare_parameter(
            "further_topics", [""], describe("What else to record, each NAME TYPE")
        )
        number = describe("Messages that may wait for the disk")
        number.integer_range = [IntegerRange(from_value=10, to_value=10_000_000)]
        self.declare_parameter("queue_size", 20_000, number)
        size = describe("Size of a file at which the next one begins [bytes]; 0: never")
        size.integer_range = [IntegerRange(from_value=0, to_value=2**40)]
        self.declare_parameter("split_bytes", 2**30, size)

    # -- subscriptions --------------------------------------------------------------------------

    def _subscribe(self, topic: RecordedTopic) -> None:
        def take(data: bytes) -> None:
            self._take(topic, data)

        self.create_subscription(topic.kind, topic.name, take, topic.qos, raw=True)

    def _take(self, topic: RecordedTopic, data: bytes) -> None:
        stamp = topic.stamp(data)
        if topic.name == CLOCK:
            assert stamp is not None
            self._tick(stamp, data)
            return
        if topic.name == TOPOLOGY:
            self._topology_is_ahead = self._is_ahead(stamp)
        if topic.latched:
            self._latched[topic.name] = data
        time_ns = stamp or self._now
        if self._writer is None or self._now is None or time_ns is None:
            return
        if topic.name == TOPOLOGY and self._topology_is_ahead:
            return
        if time_ns > self._now + _SAME_TIME and time.monotonic() < self._stale_until:
            return  # from before it
        self._put(topic.name, data, max(time_ns, self._start))

    def _is_ahead(self, stamp: int | None) -> bool:
        """True for a topology from after a reset of time whose clock has not been read yet."""
        if self._now is None or stamp is None or TOPOLOGY not in self._latched:
            return False  # the first one may be as old as the simulation
        return stamp < self._now - _SAME_TIME

    def _tick(self, now: int, data: bytes) -> None:
        before, self._now = self._now, now
        if before is not None and now < before - _SAME_TIME and self._writer is not None:
            self._begin_anew()
        if self._wanted is None:
            if self._writer is not None:
                self._put(CLOCK, data, max(now, self._start))
        elif self._episode == 0 or TOPOLOGY in self._latched:
            self._open(now, data)

    def _begin_anew(self) -> None:
        """Simulation time went back: the episode is over, the next one gets its own bag.

        That bag waits for the topology as it is after the reset.
        """
        assert self._writer is not None
        folder = self._writer.folder
        self._end()
        if not self._topology_is_ahead:
            self._latched.pop(TOPOLOGY, None)
        self._topology_is_ahead = False
        self._stale_until = time.monotonic() + _STALE_TIME
        self._episode += 1
        name = folder.name if self._episode == 1 else folder.name.rpartition("_")[0]
        self._wanted = (folder.with_name(f"{name}_{self._episode}"), name, {})

    def _put(self, topic: str, data: bytes, time_ns: int) -> None:
        try:
            self._queue.put_nowait((self._writer, self._names[topic], data, time_ns))
        except queue.Full:
            self._dropped += 1

    # -- episodes -------------------------------------------------------------------------------

    def _begin(self, path: str, name: str, metadata: dict[str, str]) -> Path:
        """The bag is opened at the next clock, so that nothing in it precedes the clock."""
        chosen = path or parameters.value(self, "path")
        if chosen:
            folder = Path(chosen).expanduser()
        else:
            stamp = datetime.now().strftime("%Y%m%d_%H%M%S")
            folder = Path(parameters.value(self, "output")) / f"episode_{stamp}"
            if folder.exists():
                folder = folder.with_name(f"{folder.name}_{time.time_ns() % 10**9}")
        if folder.exists():
            raise BrickSimError(f"{folder} exists, expected a new folder")
        if not folder.name:
            raise BrickSimError(f"{folder} is no name for a bag")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".bricksim_", dir=folder.parent):
                pass
        except OSError as error:
            raise BrickSimError(f"{folder} cannot be written: {error.strerror}") from None
        self._wanted = (folder, name or folder.name, metadata)
        self._dropped = 0
        self._failure = ""
        self._episode = 0
        return folder

    def _open(self, now: int, clock: bytes) -> None:
        assert self._wanted is not None
        folder, name, metadata = self._wanted
        self._wanted = None
        self._start = now
        entries = {"episode": name, "bricksim_version": _version(), **metadata}
        try:
            writer = EpisodeWriter(
                folder,
                self._channels(),
                metadata=entries,
                attachments=self._structure_file(),
                split_bytes=parameters.value(self, "split_bytes"),
            )
        except OSError as error:
            self._give_up(None, error)
            return
        self._writer = writer
        self._put(CLOCK, clock, now)
        for topic, data in self._latched.items():
            self._put(topic, data, now)
        self._ask_parameters(writer)
        self.get_logger().info(f"recording {folder}")

    def _play_if_ready(self) -> None:
        if self._failure:
            raise BrickSimError(self._failure)  # else the simulation would be held for ever
        if self._writer is None or TOPOLOGY not in self._latched:
            return
        if self._play.service_is_ready():
            self._play_timer.cancel()
            state = SimulationState(state=SimulationState.STATE_PLAYING)
            self._play.call_async(SetSimulationState.Request(state=state))

    def _end(self) -> EpisodeWriter | None:
        writer, self._writer = self._writer, None
        self._wanted = None
        if writer is not None:
            self._queue.join()
            with self._lock:
                if writer is not self._failed:
                    try:
                        writer.close()
                    except OSError as error:
                        self._give_up(writer, error)
            if writer is self._failed:
                return writer
            text = (
                f"recorded {writer.folder}: {writer.count} messages, {writer.duration:.2f} s"
                f"{f', {self._dropped} dropped' if self._dropped else ''}"
            )
            if self.context.ok():
                self.get_logger().info(text)
            else:
                print(text, flush=True)  # after an interrupt there is no /rosout any more
        return writer

    def _give_up(self, writer: EpisodeWriter | None, error: Exception) -> None:
        """Ends a recording that cannot be written (disk full, folder gone); the node goes on."""
        self._failure = f"recording ended early: {error}"
        self._failed = writer
        if writer is not None:
            writer.abandon()
        self.get_logger().error(self._failure)

    def _channels(self) -> list[Channel]:
        channels = []
        for topic in self._topics:
            infos = self.get_publishers_info_by_topic(self._names[topic.name])
            channels.append(
                Channel(
                    topic=self._names[topic.name],
                    type=topic.type_name,
                    definition=full_definition(topic.type_name),
                    type_hash=str(infos[0].topic_type_hash) if infos else "",
                    qos=[qos_entry(i.qos_profile, topic.latched) for i in infos[:1]]
                    or [qos_entry(None, topic.latched)],
                    latched=topic.latched,
                )
            )
        return channels

    def _structure_file(self) -> dict[str, bytes]:
        data = self._latched.get(TOPOLOGY)
        if data is None:
            return {}
        try:
            structure = structure_from_topology(deserialize_message(data, msg.BrickTopology))
            text = format_structure(structure, Format.TOPOLOGY)
        except BrickSimError as error:
            self.get_logger().warning(f"no structure file in the bag: {error}")
            return {}
        return {"structure.json": text.encode("utf-8")}

    def _ask_parameters(self, writer: EpisodeWriter) -> None:
        if not self._simulator.services_are_ready():
            return

        def listed(future) -> None:
            names = future.result().result.names
            self._simulator.get_parameters(names).add_done_callback(
                lambda f: got(names, f.result().values)
            )

        def got(names, values) -> None:
            entries = {
                f"parameter.{n}": str(parameter_value_to_python(v))
                for n, v in zip(names, values, strict=True)
            }
            with self._lock:
                if writer is self._writer:
                    writer.add_metadata(entries)

        self._simulator.list_parameters().add_done_callback(listed)

    # -- services, thread, health -----------------------------------------------------------------

    def _start_service(self, request, response):
        try:
            if self._writer is not None or self._wanted is not None:
                raise BrickSimError("a recording is running")
            entries = {}
            for item in request.metadata:
                key, equals, value = item.partition("=")
                if not key or not equals:
                    raise BrickSimError(f"metadata is {item!r}, expected key=value")
                entries[key] = value
            response.path = str(self._begin(request.path, request.name, entries))
            response.success = True
        except BrickSimError as error:
            response.message = str(error)
        return response

    def _stop_service(self, _request, response):
        writer = self._end()
        if writer is None:
            response.message = "nothing is recorded"
            return response
        response.success = writer is not self._failed
        response.message = "" if response.success else self._failure
        response.path = str(writer.folder)
        response.messages = writer.count
        response.dropped = self._dropped
        response.duration = writer.duration
        return response

    def _write_loop(self) -> None:
        flushed = time.monotonic()
        while True:
            try:
                item = self._queue.get(timeout=0.5)
            except queue.Empty:
                item = None
            with self._lock:
                writer = self._writer
                try:
                    if item is not None:
                        writer, name, data, time_ns = item
                        if writer is self._failed:
                            self._dropped += 1
                        else:
                            writer.write(name, data, time_ns)
                    if time.monotonic() - flushed > 1.0:
                        flushed = time.monotonic()
                        if writer is not None and writer is not self._failed:
                            writer.flush()
                except Exception as error:  # without this thread the node would wait for ever
                    self._dropped += 1
                    self._give_up(writer, error)
            if item is not None:
                self._queue.task_done()

    def _report(self) -> None:
        recording = self._writer is not None
        status = DiagnosticStatus(name=f"{self.get_fully_qualified_name()}: recording")
        status.level = DiagnosticStatus.WARN if self._dropped else DiagnosticStatus.OK
        status.message = "recording" if recording else "idle"
        if self._dropped:
            status.message = f"{self._dropped} messages dropped"
        if self._failure:
            status.level, status.message = DiagnosticStatus.ERROR, self._failure
        status.values = [
            KeyValue(key="messages", value=str(self._writer.count if self._writer else 0)),
            KeyValue(key="dropped", value=str(self._dropped)),
            KeyValue(key="waiting", value=str(self._queue.qsize())),
        ]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def close(self) -> None:
        """Ends a recording that is running."""
        self._end()


def qos_entry(profile: QoSProfile | None, latched: bool) -> dict:
    """An offered QoS profile as rosbag2 writes it; None: what the simulator offers."""
    durable = latched
    reliable = True
    depth = 1 if latched else 10
    if profile is not None:
        durable = profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL
        reliable = profile.reliability == QoSReliabilityPolicy.RELIABLE
        depth = profile.depth or depth
    return {
        "history": "keep_last",
        "depth": depth,
        "reliability": "reliable" if reliable else "best_effort",
        "durability": "transient_local" if durable else "volatile",
        "deadline": dict(_INFINITE),
        "lifespan": dict(_INFINITE),
        "liveliness": "automatic",
        "liveliness_lease_duration": dict(_INFINITE),
        "avoid_ros_namespace_conventions": False,
    }


def _version() -> str:
    try:
        return version("bricksim_core")
    except PackageNotFoundError:
        return "unknown"


def main(args: list[str] | None = None) -> int:
    """Entry point of ``ros2 run bricksim_ros recorder``."""
    return run_node(RecorderNode, spin, args, close=RecorderNode.close)


if __name__ == "__main__":
    sys.exit(main())
