# SPDX-License-Identifier: Apache-2.0
"""What the tests of all packages share: a ROS domain of its own for each launch test."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DOMAIN_IDS = range(1, 102)
"""ROS domains whose ports lie below Linux's ephemeral ports."""


def pytest_configure() -> None:
    """Lets SIGINT and SIGTERM end this run together with the processes that it started.

    A shell without job control starts background jobs with SIGINT ignored, and children inherit
    that.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_silent(domain_id: int) -> bool:
    """True if no DDS participant of this machine has the first unicast port of the domain."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", 7400 + 250 * domain_id + 10))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _unused_domain() -> Iterator[int]:
    """A ROS domain that no other test run and no running node of this machine uses."""
    for domain_id in DOMAIN_IDS:
        path = Path(tempfile.gettempdir()) / f"bricksim-test-domain-{domain_id}.lock"
        try:
            # The lock ends with the process, however it ends.
            lock = path.open("w")
        except PermissionError:  # another user's
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if _is_silent(domain_id):
                yield domain_id
                return
    raise RuntimeError(f"all ROS domains of {DOMAIN_IDS} are in use on this machine")


@pytest.fixture
def ros_domain_id(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """ROS domain of this test alone, set in the environment of all that it starts."""
    with _unused_domain() as domain_id:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id))
        yield domain_id


@pytest.fixture(scope="module")
def module_ros_domain_id() -> Iterator[int]:
    """ROS domain of one test file alone, for launch fixtures of module scope."""
    with _unused_domain() as domain_id, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(domain_id))
        yield domain_id


@pytest.fixture(autouse=True)
def _own_domain_for_launch_tests(request: pytest.FixtureRequest) -> None:
    # pytest sets up autouse fixtures first: before the test's launch fixture starts its processes.
    if request.node.get_closest_marker("launch") is None:
        return
    if "module_ros_domain_id" not in request.fixturenames:
        request.getfixturevalue("ros_domain_id")
