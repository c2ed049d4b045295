# SPDX-License-Identifier: Apache-2.0
"""``bricksim bench``: the benchmarks of a checkout as one table."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from bricksim_core.cli.console import number, print_json, print_table, progress, warn
from bricksim_core.cli.options import JsonOption, examples
from bricksim_core.errors import BrickSimError

NAME = "bench"
EXAMPLES = examples("bricksim bench --quick", "bricksim bench --only drop --json > bench.json")
PLACE = Path("test", "benchmarks")
KEYS = ("name", "unit", "value", "baseline", "ratio")


def command(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions and sizes.")] = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="TEXT", help="Modules whose name holds this text."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Folder of the benchmarks.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Run the benchmarks. Ratios compare with a baseline of the same run: above 1 is faster."""
    modules = [m for m in _modules(folder or find_folder()) if only is None or only in m.stem]
    if not modules:
        raise BrickSimError(f"no benchmark's name holds {only!r}")
    rows: list[dict[str, Any]] = []
    failed = False
    with progress("measuring", len(modules)) as show:
        for done, path in enumerate(modules):
            try:
                rows += [_row(path, row) for row in _load(path).run(quick)]
            except Exception as error:
                failed = True
                warn(f"{path.name}: {type(error).__name__}: {error}")
            show(done + 1)
    if json:
        print_json({"machine": machine(), "results": rows})
    else:
        cells = [
            (
                row["name"],
                f"{number(row['value'])} {row['unit']}",
                "–" if row["baseline"] is None else f"{number(row['baseline'])} {row['unit']}",
                "–" if row["ratio"] is None else f"{number(row['ratio'])} ×",
            )
            for row in rows
        ]
        print(machine())
        columns = ("benchmark", "value", "baseline", "ratio")
        print_table(columns, cells, numbers=columns[1:])
    return 2 if failed else 0


def find_folder() -> Path:
    """The benchmarks of the checkout that the package or the working directory is in.

    Raises:
        BrickSimError: There is none.
    """
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / PLACE).is_dir():
                return folder / PLACE
    raise BrickSimError(f"no folder {PLACE} here or above: the benchmarks are part of a checkout")


def machine() -> str:
    """Processor, cores and Python in a line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = os.cpu_count() or 1
    return f"{names[0] if names else model}, {cores} cores, Python {platform.python_version()}"


def _modules(folder: Path) -> Iterator[Path]:
    """Python files of the folder that define ``run``."""
    for path in sorted(folder.glob("*.py")):
        if "\ndef run(" in path.read_text(encoding="utf-8"):
            yield path


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _row(path: Path, row: dict[str, Any]) -> dict[str, Any]:
    missing = [key for key in KEYS if key not in row]
    if missing:
        raise BrickSimError(f"{path.name}: a result lacks {', '.join(missing)}")
    return {"module": path.stem, **row}
