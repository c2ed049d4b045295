# SPDX-License-Identifier: Apache-2.0
"""Getting text in and out of files: size, encoding and atomicity."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bricksim_core.atomic import replacing
from bricksim_core.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024
"""Largest file that is read [bytes]; a JSON topology of 100,000 bricks has a third of it."""
MAX_PARTS = 100_000
"""Most parts that a file may hold, after sub-models are unfolded."""
STANDARD_STREAM = "-"
"""The path that stands for standard input or output."""

_SHOWN = 60
_LISTED = 5
"""Skipped lines that one message names."""


def shorten(value: object) -> str:
    """``repr`` of a value from a file, cut to what fits an error message."""
    text = repr(value[: 2 * _SHOWN]) if isinstance(value, str) else _bounded_repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _bounded_repr(value: object) -> str:
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"an array of {len(value)}" if len(value) > 8 else repr(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    """Content of a file, or of standard input for ``-``, and what to call it in errors.

    Raises:
        FormatError: The file is missing, unreadable, a directory, empty or too large.
    """
    if os.fspath(path) == STANDARD_STREAM:
        name, data = "<stdin>", sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        name = os.fspath(path)
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            raise FormatError(f"{name}: no such file") from None
        except IsADirectoryError:
            raise FormatError(f"{name}: is a directory, expected a structure file") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise FormatError(f"{name}: cannot be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise FormatError(f"{name}: larger than {MAX_BYTES >> 20} MiB, the most that is read")
    return data, name


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes a file at once: a reader finds the old content or the new one, never a part.

    Args:
        text: The content.
        path: The file, or ``-`` for standard output.

    Raises:
        FormatError: The file cannot be written.
    """
    if os.fspath(path) == STANDARD_STREAM:
        sys.stdout.write(text)
        return
    try:
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = error.strerror or error
        raise FormatError(f"{os.fspath(path)}: cannot be written: {reason}") from None


def left_out(skipped: Sequence[str]) -> str:
    """What a reader left out, as the end of an error message; empty if that is nothing."""
    if not skipped:
        return ""
    more = len(skipped) - _LISTED
    text = "; ".join(skipped[:_LISTED]) + (f"; and {more} more" if more > 0 else "")
    return f" (left out: {text})"
