# SPDX-License-Identifier: Apache-2.0
"""What ROS costs: 200 bricks at rest, 20 connection events a second, in real time.

The simulator node has one core to itself; the markers node, which draws for a viewer, and the load
have the others. Ten pairs a second are connected and ten come apart, through the node's services,
whether answers are late or not. Baselines are one core and the events asked for: 0.3 of a core, 20
events a second that came. Needs an activated ROS 2.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BRICKS = 200
PAIRS = 40
EVENTS_A_SECOND = 20
NODES = (
    ("simulator", "bricksim_ros.simulator_node", "-p", "scene:={scene}"),
    ("markers", "bricksim_ros.markers_node", "-p", "use_sim_time:=true"),
)


def run(quick: bool) -> list[dict[str, Any]]:
    """Runs both nodes under load and measures them from outside and inside."""
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print("bench_ros: no ROS 2 is activated, nothing to measure", file=sys.stderr)
        return []
    rows = []
    for events in (0, EVENTS_A_SECOND):
        rows += measure(BRICKS, events, 5.0 if quick else 20.0)
    return rows


def measure(bricks: int, events: int, seconds: float) -> list[dict[str, Any]]:
    """Rows for so many bricks at rest and so many events a second."""
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, 101))
    with tempfile.TemporaryDirectory() as folder, _nodes(Path(folder), bricks) as processes:
        import rclpy

        rclpy.init()
        load = Load(events)
        try:
            load.get_ready()
            before, start = [sum(p.cpu_times()[:2]) for p in processes], time.perf_counter()
            load.run(seconds)
            wall = time.perf_counter() - start
            used = [sum(p.cpu_times()[:2]) for p in processes]
        finally:
            load.node.destroy_node()
            rclpy.shutdown()
    simulator, markers = ((u - b) / wall for u, b in zip(used, before, strict=True))
    total, publishing = (
        sum(getattr(s, name) for s in load.statistics) / wall
        for name in ("total_time", "publish_time")
    )
    stamps = [_seconds(s.header.stamp) for s in load.statistics]
    factor = (stamps[-1] - stamps[0]) / wall
    late = sorted(load.latencies)
    for text, count in load.refused.items():
        print(f"bench_ros: {count} requests refused: {text}", file=sys.stderr)
    rows = [
        ("real-time factor", "1", factor, 1.0),
        ("events that came", "1/s", len(load.events) / wall, float(events)),
        ("requests refused", "1/s", load.refused.total() / wall, None),
        ("answers, median", "ms", 1e3 * late[len(late) // 2] if late else 0.0, None),
        ("answers, 95 %", "ms", 1e3 * late[len(late) * 95 // 100] if late else 0.0, None),
        ("simulator, a simulated second", "core s", simulator / factor, 1.0),
        ("simulator process", "cores", simulator, 1.0),
        ("of it simulation", "cores", total, 1.0),
        ("of it publishing", "cores", publishing, 1.0),
        ("of it services and waiting", "cores", simulator - total - publishing, 1.0),
        ("markers process", "cores", markers, 1.0),
    ]
    return [
        {
            "name": f"{bricks} bricks, {events} events/s: {name}",
            "unit": unit,
            "value": value,
            "baseline": baseline,
            "ratio": value / baseline if baseline else None,
        }
        for name, unit, value, baseline in rows
    ]


@contextmanager
def _nodes(folder: Path, bricks: int) -> Iterator[list[Any]]:
    """The simulator node on a core of its own, the others on the rest; as psutil processes."""
    import psutil

    lines = [f"2x4 ({3 * (i % 20)},{5 * (i // 20)},0)" for i in range(bricks)]
    (folder / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    scene = folder / "scene.yaml"
    scene.write_text("structures: [{file: many.txt, baseplate: none}]\n", encoding="utf-8")
    cores = sorted(os.sched_getaffinity(0))
    own, rest = {cores[0]}, set(cores[1:] or cores)
    nodes = []
    try:
        for name, module, *arguments in NODES:
            filled = [argument.format(scene=scene) for argument in arguments]
            command = [sys.executable, "-m", module, "--ros-args", *filled]
            # Threads take over the affinity of the thread that starts them.
            os.sched_setaffinity(0, own if name == "simulator" else rest)
            nodes.append(subprocess.Popen(command))
        os.sched_setaffinity(0, rest)
        yield [psutil.Process(node.pid) for node in nodes]
    finally:
        os.sched_setaffinity(0, cores)
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait(timeout=20)


class Load:
    """Asks for connections and disconnections at a fixed pace and listens to what happens.

    Args:
        events: Requests a second.

    Attributes:
        node: The node that asks.
        statistics: What the simulator told about its steps.
        events: Connection events received.
        latencies: Seconds from request to answer.
        refused: How often each refusal was answered.
    """

    def __init__(self, events: int) -> None:
        import rclpy
        from visualization_msgs.msg import MarkerArray

        from bricksim_msgs import msg, srv
        from bricksim_ros.publishing import EVENTS, LATCHED

        self.node = node = rclpy.create_node("bench")
        self._pace = events
        self.statistics: list[Any] = []
        self.events: list[Any] = []
        self.latencies: list[float] = []
        self.refused: Counter[str] = Counter()
        self._topology: list[Any] = []
        self._free: deque[tuple[int, int]] = deque()
        self._connected: deque[tuple[tuple[int, int], list[int]]] = deque()
        for kind, name, keep, qos in (
            (msg.StepStatistics, "statistics", self.statistics.append, 100),
            (msg.BrickTopology, "topology", self._topology.append, LATCHED),
            (msg.ConnectionEvent, "connection_events", self.events.append, EVENTS),
            (MarkerArray, "markers", lambda _: None, LATCHED),
        ):
            node.create_subscription(kind, f"bricksim/{name}", keep, qos)
        self._connect = node.create_client(srv.Connect, "bricksim/connect")
        self._disconnect = node.create_client(srv.Disconnect, "bricksim/disconnect")

    def get_ready(self) -> None:
        """Waits until the bricks rest."""
        while not (self._topology and self.statistics and self._connect.service_is_ready()):
            self._spin(time.perf_counter() + 0.1)
        parts = [p.id for p in self._topology[-1].parts]
        self._free.extend(list(zip(parts[0::2], parts[1::2], strict=True))[:PAIRS])
        for _ in range(PAIRS // 2 if self._pace else 0):
            self._ask(connect=True)
            self._spin(time.perf_counter() + 0.05)
        self._spin(time.perf_counter() + 3.0)
        for kept in (self.statistics, self.events, self.latencies):
            kept.clear()
        self.refused.clear()

    def run(self, seconds: float) -> None:
        """Asks at the set pace."""
        start = time.perf_counter()
        for turn in itertools.count():
            due = turn / self._pace if self._pace else seconds
            self._spin(start + min(due, seconds))
            if due >= seconds:
                return
            self._ask(connect=turn % 2 == 0)

    def _ask(self, *, connect: bool) -> None:
        from bricksim_msgs import srv

        if not (self._free if connect else self._connected):
            self.refused["not asked: all answers are still to come"] += 1
            return
        asked = time.perf_counter()
        if connect:
            pair = self._free.popleft()
            request = srv.Connect.Request(
                stud_part=pair[0], hole_part=pair[1], offset=[0, 0], yaw=0
            )
            future = self._connect.call_async(request)
        else:
            pair, ids = self._connected.popleft()
            future = self._disconnect.call_async(srv.Disconnect.Request(connection_ids=ids))

        def answered(done: Any) -> None:
            answer = done.result()
            self.latencies.append(time.perf_counter() - asked)
            if not answer.success:
                self.refused[answer.message] += 1
            if connect and answer.success:
                self._connected.append((pair, list(answer.connection_ids)))
            else:
                self._free.append(pair)

        future.add_done_callback(answered)

    def _spin(self, until: float) -> None:
        import rclpy

        while (left := until - time.perf_counter()) > 0.0:
            rclpy.spin_once(self.node, timeout_sec=left)


def _seconds(stamp: Any) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


if __name__ == "__main__":
    for row in run(quick="--quick" in sys.argv):
        print(f"{row['name']:55} {row['value']:8.3f} {row['unit']}")
