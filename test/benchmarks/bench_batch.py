# SPDX-License-Identifier: Apache-2.0
"""Batch analysis, file to verdict: the default model against model "paper", one process each."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bricksim_core.batch import AnalysisOptions, analyze_files

WALLS = (30, 60, 134)
"""Bricks of the structures."""


def run(quick: bool) -> list[dict[str, Any]]:
    """A row per size; milliseconds of CPU per file."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for bricks in WALLS[:2] if quick else WALLS:
            count = 5 if quick else 20
            files = [str(wall(Path(folder), bricks, number)) for number in range(count)]
            value = per_file(files, "default")
            baseline = per_file(files[: 2 if quick else 5], "paper")
            rows.append(
                {
                    "name": f"file to verdict in a batch, {bricks} bricks",
                    "unit": "ms",
                    "value": 1e3 * value,
                    "baseline": 1e3 * baseline,
                    "ratio": baseline / value,
                }
            )
    return rows


def wall(folder: Path, bricks: int, number: int) -> Path:
    """A wall in bond as StableText2Brick text, at a place that depends on the number."""
    lines = []
    for i in range(bricks):
        layer, place = divmod(i, 5)
        lines.append(f"4x2 ({4 * place + 2 * (layer % 2)},{number % 3},{layer})")
    path = folder / f"wall_{bricks}_{number}.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def per_file(files: list[str], model: str) -> float:
    """CPU time per file [s]."""
    options = AnalysisOptions(model=model, safety_factor=False)
    list(analyze_files(files[:1], options, workers=1))
    start = time.process_time()
    reports = list(analyze_files(files, options, workers=1))
    taken = time.process_time() - start
    failed = [report.error for report in reports if report.error]
    if failed:
        raise AssertionError(failed[0])
    return taken / len(files)
