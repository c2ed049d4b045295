# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends without an error.

    A reader finds the old content or the new one, never a part. A link stays a link; a device or
    pipe (``/dev/stdout``) gets the content written into it.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / target.name
            yield temporary
            with target.open("wb") as stream:
                stream.write(temporary.read_bytes())
        return
    target = target.resolve() if target.is_symlink() else target
    # Some writers choose the format by the suffix.
    descriptor, name = tempfile.mkstemp(target.suffix, f".{target.stem}.", target.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; a new file has the permissions that the umask leaves.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
