# SPDX-License-Identifier: Apache-2.0
"""What ROS costs: 200 bricks at rest, 20 events a second, in real time.

Baseline is one core: a ratio of 0.3 says that 30 % of a core are used. Needs an activated ROS 2.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BRICKS = 200
PAIRS = 40
EVENTS_A_SECOND = 20


def run(quick: bool) -> list[dict[str, Any]]:
    """Runs the simulator node with the markers node and measures both from outside and inside."""
    try:
        import psutil
        import rclpy  # noqa: F401
    except ImportError:
        print("bench_ros: no ROS 2 is activated, nothing to measure", file=sys.stderr)
        return []
    seconds = 5.0 if quick else 20.0
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, 101))
    with tempfile.TemporaryDirectory() as folder:
        nodes = _start(Path(folder))
        try:
            processes = [psutil.Process(node.pid) for node in nodes]
            statistics, factor, shares, events = _measure(processes, seconds)
        finally:
            for node in nodes:
                node.terminate()
            for node in nodes:
                node.wait(timeout=20)
    rows = [
        {"name": "simulator process, cores", "unit": "cores", "value": shares[0], "baseline": 1.0},
        {"name": "markers process, cores", "unit": "cores", "value": shares[1], "baseline": 1.0},
        {"name": "real-time factor", "unit": "1", "value": factor, "baseline": 1.0},
        {"name": "events", "unit": "1/s", "value": events, "baseline": EVENTS_A_SECOND},
    ]
    frame = 1e3 / 60.0
    for name in ("total_time", "publish_time", "mechanics_time", "engine_time"):
        mean = 1e3 * sum(getattr(s, name) for s in statistics) / len(statistics)
        rows.append({"name": f"{name} a frame", "unit": "ms", "value": mean, "baseline": frame})
    for row in rows:
        row["ratio"] = row["value"] / row["baseline"]
    return rows


def _start(folder: Path) -> list[subprocess.Popen]:
    lines = [f"2x4 ({3 * (i % 20)},{5 * (i // 20)},0)" for i in range(BRICKS)]
    (folder / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    scene = folder / "scene.yaml"
    scene.write_text("structures: [{file: many.txt, baseplate: none}]\n", encoding="utf-8")
    commands = (
        ("bricksim_ros.simulator_node", "--ros-args", "-p", f"scene:={scene}"),
        ("bricksim_ros.markers_node", "--ros-args", "-p", "use_sim_time:=true"),
    )
    return [subprocess.Popen([sys.executable, "-m", *command]) for command in commands]


def _measure(processes: list, seconds: float) -> tuple[list, float, list[float], float]:
    """Statistics of every frame, real-time factor, cores used by each process, events a second."""
    import rclpy
    from visualization_msgs.msg import MarkerArray

    from bricksim_msgs import msg, srv
    from bricksim_ros.publishing import LATCHED

    rclpy.init()
    node = rclpy.create_node("bench")
    statistics: list = []
    topology: list = []
    node.create_subscription(msg.StepStatistics, "bricksim/statistics", statistics.append, 100)
    node.create_subscription(msg.BrickTopology, "bricksim/topology", topology.append, LATCHED)
    node.create_subscription(MarkerArray, "bricksim/markers", lambda _: None, LATCHED)
    events: list = []
    node.create_subscription(msg.ConnectionEvent, "bricksim/connection_events", events.append, 1000)
    connect = node.create_client(srv.Connect, "bricksim/connect")
    disconnect = node.create_client(srv.Disconnect, "bricksim/disconnect")
    try:
        while not (topology and statistics and connect.service_is_ready()):
            rclpy.spin_once(node, timeout_sec=0.1)
        parts = [p.id for p in topology[-1].parts]
        pairs = list(zip(parts[0::2], parts[1::2], strict=True))[:PAIRS]
        _spin(node, 1.0)
        del statistics[:], events[:]
        before, start = [sum(p.cpu_times()[:2]) for p in processes], time.perf_counter()
        connected: dict[tuple[int, int], list[int]] = {}
        turn = 0
        while time.perf_counter() - start < seconds:
            pair = pairs[turn % PAIRS]
            turn += 1
            if pair in connected:
                request = srv.Disconnect.Request(connection_ids=connected.pop(pair))
                future = disconnect.call_async(request)
            else:
                request = srv.Connect.Request(
                    stud_part=pair[0], hole_part=pair[1], offset=[0, 0], yaw=0
                )
                future = connect.call_async(request)
            _spin(node, 1.0 / EVENTS_A_SECOND, until=start + turn / EVENTS_A_SECOND)
            answer = future.result() if future.done() else None
            if isinstance(answer, srv.Connect.Response) and answer.success:
                connected[pair] = list(answer.connection_ids)
        wall = time.perf_counter() - start
        used = [sum(p.cpu_times()[:2]) for p in processes]
        stamps = [s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in statistics]
        factor = (stamps[-1] - stamps[0]) / wall
        shares = [(u - b) / wall for u, b in zip(used, before, strict=True)]
        return statistics, factor, shares, len(events) / wall
    finally:
        node.destroy_node()
        rclpy.shutdown()


def _spin(node: Any, seconds: float, until: float | None = None) -> None:
    import rclpy

    end = time.perf_counter() + seconds if until is None else until
    while time.perf_counter() < end:
        rclpy.spin_once(node, timeout_sec=max(0.0, end - time.perf_counter()))
