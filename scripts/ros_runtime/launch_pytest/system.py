# SPDX-License-Identifier: Apache-2.0
"""A launch service that runs while a test runs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import psutil
from launch import LaunchDescription, LaunchService
from launch_testing.actions import ReadyToTest

READY_TIMEOUT = 60.0
"""Longest time from the start to ReadyToTest [s]."""
STOP_TIMEOUT = 20.0
"""Longest time from the request to end to the end [s]: launch itself sends SIGTERM 5 s after SIGINT
and SIGKILL 5 s after that."""


def _find_ready_action(description: LaunchDescription) -> ReadyToTest:
    pending = list(description.entities)
    while pending:
        entity = pending.pop(0)
        if isinstance(entity, ReadyToTest):
            return entity
        pending += entity.describe_sub_entities()
        for _, entities in entity.describe_conditional_sub_entities():
            pending += entities
    raise RuntimeError("the LaunchDescription of a launch fixture must hold a ReadyToTest action")


class LaunchedSystem:
    """The processes of one launch description.

    The event loop of launch has to run in the main thread, so it runs while the test runs in a
    thread of its own (`run_while`).
    """

    def __init__(self, description: LaunchDescription) -> None:
        self._ready_action = _find_ready_action(description)
        self._loop = asyncio.new_event_loop()
        self.service = LaunchService(noninteractive=True)
        self.service.include_launch_description(description)
        self._task: asyncio.Task[int] | None = None
        self._before = set(psutil.Process().children(recursive=True))

    def start(self) -> None:
        """Starts everything and waits for ReadyToTest.

        Raises:
            RuntimeError: The launch ended, or did not become ready in time.
        """
        ready = asyncio.Event()
        self._ready_action._add_callback(ready.set)
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self.service.run_async(shutdown_when_idle=False))

        async def until_ready() -> None:
            waiting = asyncio.ensure_future(ready.wait())
            assert self._task is not None
            await asyncio.wait(
                {waiting, self._task}, timeout=READY_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()

        self._loop.run_until_complete(until_ready())
        if self._task.done():
            raise RuntimeError(f"launch ended with {self._task.result()} before it was ready")
        if not ready.is_set():
            raise RuntimeError(f"launch was not ready after {READY_TIMEOUT} s")

    def run_while(self, function: Callable[[], Any]) -> Any:
        """Calls a function in a thread, with launch running; returns or raises what it does."""
        result: asyncio.Future[Any] = self._loop.create_future()
        context = contextvars.copy_context()

        def settle(setter: Callable[[Any], None], value: Any) -> None:
            if not result.done():
                setter(value)

        def call() -> None:
            try:
                setter, value = result.set_result, context.run(function)
            except BaseException as error:  # also pytest.skip and pytest.fail
                setter, value = result.set_exception, error
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(settle, setter, value)

        # A daemon: a test that hangs when the user interrupts must not keep pytest from ending.
        threading.Thread(target=call, name="launch-test", daemon=True).start()
        return self._loop.run_until_complete(result)

    def run_coroutine(self, coroutine: Any) -> Any:
        """Runs a coroutine beside launch."""
        return self._loop.run_until_complete(coroutine)

    def stop(self) -> None:
        """Ends all processes and waits for their end; does nothing the second time.

        Raises:
            RuntimeError: A process had to be killed.
        """
        if self._loop.is_closed():
            return
        try:
            if self._task is not None and not self._task.done():
                self.service.shutdown(force_sync=True)
                waiting = asyncio.wait({self._task}, timeout=STOP_TIMEOUT)
                self._loop.run_until_complete(waiting)
        finally:
            left = set(psutil.Process().children(recursive=True)) - self._before
            for process in left:
                process.kill()
            psutil.wait_procs(left, timeout=5.0)
            self._loop.close()
            asyncio.set_event_loop(None)
        if left:
            raise RuntimeError(f"processes had to be killed after the launch: {left}")
