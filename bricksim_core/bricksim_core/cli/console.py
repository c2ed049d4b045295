# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON and progress on the terminal, and none of the decoration elsewhere."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET = 10.0
"""Time between two lines of progress where there is no terminal [s]."""
_WIDE = 400
"""Width of output that does not go to a terminal: nothing is cut or wrapped."""


def print_json(value: Any) -> None:
    """One line of JSON."""
    print(json_text(value), flush=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """Strict JSON: numbers that it does not have (infinity, not a number) become null."""
    return json.dumps(_strict(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()
) -> None:
    """A table: with a frame on a terminal, aligned text elsewhere.

    Args:
        columns: Headings.
        rows: Cells.
        numbers: Headings of the columns that are aligned to the right.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    table = Table(box=box.ROUNDED if terminal else None, pad_edge=terminal)
    for column in columns:
        right = column in numbers
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(width=None if terminal else _WIDE, highlight=False).print(table)


_STYLES = {
    "stable": "green",
    "ok": "green",
    "marginal": "yellow",
    "skipped": "yellow",
    "unstable": "bold red",
    "error": "bold red",
    "FAILED": "bold red",
}


_NOTHING = 1e-9
"""Below this a utilization, ratio or time is rounding."""


def number(value: float | None, digits: int = 3) -> str:
    """A number for people; a dash if there is none."""
    if value is None or math.isnan(value):
        return "–"
    if abs(value) < _NOTHING:
        return "0"
    return "∞" if math.isinf(value) else f"{value:.{digits}g}"


def counted(count: int, noun: str) -> str:
    """A count and its noun in singular or plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@contextmanager
def progress(label: str, total: float) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal's standard error; elsewhere a line now and then.

    Work that is done within `QUIET` seconds leaves no line.

    Yields:
        A function that takes how much is done.
    """
    if not sys.stderr.isatty():
        yield _Lines(label, total).show
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counted = [MofNCompleteColumn()] if total > 1 else []
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *counted,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        # On a terminal, lines are printed above the bar; anything else must reach its target.
        redirect_stdout=sys.stdout.isatty(),
    )
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


class _Lines:
    """Progress for a log: a line each time that `QUIET` seconds have gone by."""

    def __init__(self, label: str, total: float) -> None:
        self._label, self._total = label, total
        self._told = time.monotonic()

    def show(self, done: float) -> None:
        now = time.monotonic()
        if now - self._told < QUIET:
            return
        self._told = now
        count = f" ({done:g} of {self._total:g})" if self._total > 1 else ""
        print(f"{self._label}: {done / self._total:.0%}{count}", file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """A line on standard error."""
    print(f"bricksim: {message}", file=sys.stderr)
