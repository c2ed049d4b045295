# SPDX-License-Identifier: Apache-2.0
"""Waiting for launched processes. Output needs ExecuteProcess(cached_output=True)."""

from __future__ import annotations

import time
from collections.abc import Callable

from launch import LaunchContext
from launch.actions import ExecuteLocal

POLL_INTERVAL = 0.02
"""Time between two looks at a process [s]."""

Validate = Callable[[str], bool | None]
"""Looks at all output so far: fails by returning False or by an AssertionError."""


def _wait(done: Callable[[], bool], timeout: float | None) -> bool:
    deadline = None if timeout is None else time.monotonic() + timeout
    while not done():
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(POLL_INTERVAL)
    return True


def _holds(validate: Validate, output: str) -> bool:
    try:
        return validate(output) is not False
    except AssertionError:
        return False


def wait_for_start_sync(
    launch_context: LaunchContext, process_action: ExecuteLocal, timeout: float | None = None
) -> bool:
    """Waits until a process runs.

    Args:
        launch_context: Context of the launch.
        process_action: Its action.
        timeout: Longest time to wait [s], None for ever.

    Returns:
        False if it did not start in time.
    """
    return _wait(lambda: "pid" in (process_action.process_details or {}), timeout)


def wait_for_exit_sync(
    launch_context: LaunchContext, process_action: ExecuteLocal, timeout: float | None = None
) -> bool:
    """Waits until a process has ended; its ``return_code`` is known then.

    Args:
        launch_context: Context of the launch.
        process_action: Its action.
        timeout: Longest time to wait [s], None for ever.

    Returns:
        False if it did not end in time.
    """
    return _wait(lambda: process_action.return_code is not None, timeout)


def wait_for_output_sync(
    launch_context: LaunchContext,
    process_action: ExecuteLocal,
    validate_output: Validate,
    timeout: float | None = None,
) -> bool:
    """Waits until the standard output of a process is as wanted.

    Args:
        launch_context: Context of the launch.
        process_action: Its action.
        validate_output: Looks at all output so far.
        timeout: Longest time to wait [s], None for ever.

    Returns:
        False if it was not so in time.
    """
    return _wait(lambda: _holds(validate_output, process_action.get_stdout()), timeout)


def wait_for_stderr_sync(
    launch_context: LaunchContext,
    process_action: ExecuteLocal,
    validate_output: Validate,
    timeout: float | None = None,
) -> bool:
    """`wait_for_output_sync` for standard error."""
    return _wait(lambda: _holds(validate_output, process_action.get_stderr()), timeout)
