# SPDX-License-Identifier: Apache-2.0
"""Paths, stamps, locks and processes that every step of the set-up shares."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SITE_PACKAGES = VENV / "lib" / "python3.12" / "site-packages"
ROS = VENV / "ros"
"""Home of the private ROS 2 runtime; deleting .venv deletes all that was installed."""
ROS_BUILD = ROS / "build"
ROS_RUNTIME = ROS / "jazzy"
INSTALL = ROOT / "install"
REQUIREMENTS = ROOT / "requirements"
STAMPS = VENV / "stamps"
LOCK_FILE = ROOT / ".setup.lock"
LOG_FOLDER = ROOT / "log" / "setup"


class SetupError(Exception):
    """The set-up cannot go on; the text says what is missing and what to do, in one line."""


def say(text: str) -> None:
    """Prints one line about progress."""
    print(f"setup: {text}", flush=True)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Waits until no other set-up of this folder runs. The lock ends with the process."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this folder")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(files: Iterable[Path], *words: object) -> str:
    """Hash of names (relative to the project) and contents of files, and of some words."""
    value = hashlib.sha256()
    for word in (ROOT, *words):
        value.update(f"{word}\0".encode())
    for file in sorted(files):
        value.update(f"{file.relative_to(ROOT)}\0".encode())
        value.update(file.read_bytes())
    return value.hexdigest()


def is_done(step: str, key: str) -> bool:
    """True if a step was completed with the same inputs."""
    stamp = STAMPS / step
    return stamp.is_file() and stamp.read_text() == key


def was_interrupted(step: str) -> bool:
    """True if a step was started but not completed."""
    return (STAMPS / f"{step}.started").exists()


@contextlib.contextmanager
def doing(step: str, key: str) -> Iterator[None]:
    """Marks a step as started, and as done with these inputs if the block does not raise."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    started, stamp = STAMPS / f"{step}.started", STAMPS / step
    started.touch()
    stamp.unlink(missing_ok=True)
    yield
    stamp.write_text(key)
    started.unlink()


def clean_environment(**changes: str) -> dict[str, str]:
    """This process's environment without what would lead pip or Python astray."""
    astray = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in astray}
    return kept | changes


def run(
    command: Sequence[str | Path], log: str, environment: Mapping[str, str] | None = None
) -> None:
    """Runs a program with its output in a log file.

    Raises:
        SetupError: It failed; the text holds the last lines of its output.
    """
    LOG_FOLDER.mkdir(parents=True, exist_ok=True)
    path = LOG_FOLDER / f"{log}.log"
    with path.open("w") as output:
        try:
            result = subprocess.run(
                [str(word) for word in command],
                cwd=ROOT,
                env=clean_environment() if environment is None else dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except FileNotFoundError:
            raise SetupError(f"{command[0]} was not found") from None
    if result.returncode != 0:
        lines = path.read_text(errors="replace").splitlines()[-15:]
        tail = "\n  ".join(line[:200] for line in lines)
        raise SetupError(
            f"{Path(command[0]).name} failed, see {path.relative_to(ROOT)}; its end:\n  {tail}"
        )


def remove(path: Path) -> None:
    """Deletes a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
