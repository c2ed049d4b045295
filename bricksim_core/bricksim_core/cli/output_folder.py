# SPDX-License-Identifier: Apache-2.0
"""Folders of results that appear whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from bricksim_core.errors import BrickSimError

LAST = "summary.json"
"""The file that is moved last: where it is, everything else is complete."""


@contextmanager
def output_folder(folder: Path, results: Collection[str]) -> Iterator[Path]:
    """A temporary folder whose files move into ``folder`` when the block ends without an error.

    The folder is made if it is missing. Files of the same name are replaced; after an error nothing
    has changed.

    Args:
        folder: Where they go.
        results: Names of files that may be written: those of an earlier run that were not written
            again are removed, other files are left alone.

    Raises:
        BrickSimError: The folder cannot be made or written.
    """
    with _reported(folder):
        made = _make(folder)
        staging = Path(tempfile.mkdtemp(prefix=".bricksim-", dir=folder))
    try:
        yield staging
        with _reported(folder):
            (folder / LAST).unlink(missing_ok=True)
            written = {file.name for file in staging.iterdir()}
            for name in set(results) - written:
                (folder / name).unlink(missing_ok=True)
            for file in sorted(staging.iterdir(), key=lambda f: (f.name == LAST, f.name)):
                os.replace(file, folder / file.name)
            made = []
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for path in made:
            try:
                path.rmdir()
            except OSError:
                break


def _make(folder: Path) -> list[Path]:
    """Makes a folder with its parents; returns those made, the innermost first."""
    missing = []
    path = folder
    while not path.exists():
        missing.append(path)
        path = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BrickSimError(f"{folder}: cannot be written: {error.strerror or error}") from None
