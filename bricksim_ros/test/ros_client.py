# SPDX-License-Identifier: Apache-2.0
"""A client for launch tests: calls services, collects messages, waits for conditions."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

PATIENCE = 180.0
"""Longest wait [s]; conditions end it long before on any machine."""
_names = itertools.count()


class RosClient:
    """One node with its executor."""

    def __init__(self, namespace: str = "") -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = Node(
            f"test_client_{os.getpid()}_{next(_names)}", context=self.context, namespace=namespace
        )
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def close(self) -> None:
        """Ends the node."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def wait_for(self, condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
        """Serves callbacks until the condition is true and returns its value."""
        end = time.monotonic() + timeout
        while not (result := condition()):
            assert time.monotonic() < end, f"waited {timeout} s in vain for {what}"
            self._executor.spin_once(timeout_sec=0.05)
        return result

    def spin_for(self, seconds: float) -> None:
        """Serves callbacks for some wall time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.02)

    def call(self, kind: type, name: str, /, **fields: Any) -> Any:
        """Calls a service and returns its response."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        self.wait_for(client.service_is_ready, f"service {name}")
        future = client.call_async(kind.Request(**fields))
        self.wait_for(future.done, f"an answer of {name}")
        return future.result()

    def collect(self, kind: type, topic: str, qos: QoSProfile | int = 1000, **options: Any) -> list:
        """Subscribes; the list fills while callbacks are served."""
        received: list = []
        self.node.create_subscription(kind, topic, received.append, qos, **options)
        return received

    def action(self, kind: type, name: str) -> ActionClient:
        """A client of an action whose server has answered."""
        client = ActionClient(self.node, kind, name)
        self.wait_for(client.server_is_ready, f"action {name}")
        return client

    def goal(self, client: ActionClient, goal: Any, feedback: list | None = None) -> Any:
        """Sends a goal and returns its handle."""
        callback = None if feedback is None else lambda m: feedback.append(m.feedback)
        future = client.send_goal_async(goal, feedback_callback=callback)
        self.wait_for(future.done, "the goal to be answered")
        return future.result()

    def result(self, handle: Any) -> Any:
        """Waits for the result of a goal."""
        future = handle.get_result_async()
        self.wait_for(future.done, "the result of the goal")
        return future.result()


@contextmanager
def ros_client(namespace: str = "") -> Iterator[RosClient]:
    """A client that is closed at the end."""
    client = RosClient(namespace)
    try:
        yield client
    finally:
        client.close()
