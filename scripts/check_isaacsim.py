#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Isaac Sim engine against the sources of the Isaac Sim release that it is for.

Isaac Sim needs a GPU, but its Python sources and node descriptions are in its wheels. They are
downloaded once (0.5 GB, kept unpacked: 40 MB) into a cache outside the repository. Then

1. pyright checks engines/isaacsim against them, and engines/ovphysx against its extra;
2. the action graphs of the ROS 2 bridge are compared with the node descriptions (.ogn).

Where the wheels cannot be downloaded, nothing is checked: that is said, and it is a failure if the
environment variable CI is set.

Usage: check_isaacsim.py (with the Python that has pyright, types-usd and bricksim_core)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

RELEASE = "6.2.0.0"
PACKAGES = {
    "isaacsim-kernel": RELEASE,
    "isaacsim-core": RELEASE,
    "isaacsim-extscache-physics": RELEASE,
    "isaacsim-ros2": RELEASE,
    "isaacsim-storage": RELEASE,
    "warp-lang": "1.16.0",
}
"""Wheels with the sources; Warp's release is one that Isaac Sim takes."""

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bricksim-ros"
OVPHYSX = ROOT / ".venv/extras/ovphysx"
"""The extra ovphysx, where it is installed: its engine is checked against it too."""
TREE = CACHE / f"isaacsim-sources-{RELEASE}"

_MODULES = re.compile(
    r"(?:isaacsim/(?:kit/)?(?:exts|extscache|extscore)/[^/]+/|isaacsim/kit/kernel/py/)"
    r"(?:pip_prebundle/)?(.+\.pyi?)$|(warp/.+\.pyi?)$"
)
_SKIPPED = re.compile(r"/(tests|humble|jazzy)/|^(humble|jazzy|cupy|cupyx|rmm|numpy)/")
_STUB = "from isaacsim.simulation_app import SimulationApp as SimulationApp\n"


def main() -> int:
    """Runs the checks.

    Returns:
        The exit status: 0 if they pass.
    """
    failed = OVPHYSX.is_dir() and check_types("ovphysx", OVPHYSX) != 0
    try:
        fetch()
    except subprocess.CalledProcessError as error:
        print("ISAAC SIM ENGINE NOT CHECKED: its wheels cannot be downloaded", file=sys.stderr)
        print((error.stderr or "").strip()[-400:], file=sys.stderr)
        return 1 if failed or os.environ.get("CI") else 0
    problems = list(graph_problems())
    print("\n".join(problems) or "action graphs: every node and attribute exists")
    failed |= check_types("isaacsim", TREE) != 0
    return int(failed or bool(problems))


def fetch() -> None:
    """Downloads and unpacks the sources, if they are not in the cache.

    Raises:
        subprocess.CalledProcessError: A wheel cannot be downloaded.
    """
    if TREE.is_dir():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        tree = Path(folder) / "tree"
        for name, version in PACKAGES.items():
            download(f"{name}=={version}", Path(folder))
        for wheel in sorted(Path(folder).glob("*.whl")):
            unpack(wheel, tree)
            wheel.unlink()
        (tree / "isaacsim/__init__.py").write_text(_STUB)
        shutil.move(tree, TREE)


def download(requirement: str, folder: Path) -> None:
    """Downloads one wheel without its dependencies."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"),
        *("--only-binary=:all:", "--python-version=3.12", "--implementation=cp"),
        *(f"--platform=manylinux_2_{minor}_x86_64" for minor in (35, 34, 28, 17)),
        "--platform=manylinux2014_x86_64",
    ]
    subprocess.run(
        [*command, f"--dest={folder}", requirement], check=True, capture_output=True, text=True
    )


def unpack(wheel: Path, tree: Path) -> None:
    """Lays the Python modules of all extensions in a wheel into one tree, and its .ogn files."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            found = _MODULES.match(member)
            target = (found[1] or found[2]) if found else None
            if member.endswith(".ogn"):
                target = f"ogn/{Path(member).name}"
            if target is None or _SKIPPED.search(target):
                continue
            path = tree / target
            if path.is_file() and path.stat().st_size > 0 and path.name == "__init__.py":
                continue  # of a namespace that several extensions share
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(member))


def check_types(engine: str, packages: Path) -> int:
    """Runs pyright on an engine.

    Args:
        engine: Name of its folder.
        packages: Where the packages that it imports are.

    Returns:
        pyright's exit status.
    """
    core = ROOT / "bricksim_core"
    settings = {
        "extraPaths": [str(core), str(packages)],
        # The stubs of OpenUSD come first: others bring modules of it without types.
        "stubPath": sysconfig.get_path("purelib"),
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
        "pythonVersion": "3.12",
        "pythonPlatform": "Linux",
        "typeCheckingMode": "standard",
        "reportMissingModuleSource": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        sources = core / "bricksim_core/engines" / engine
        settings["include"] = [os.path.relpath(sources, Path(folder).resolve())]
        path = Path(folder) / "pyrightconfig.json"
        path.write_text(json.dumps(settings))
        print(f"pyright: engine {engine}", flush=True)
        command = [sys.executable, "-m", "pyright", "--project", str(path)]
        return subprocess.run(command, check=False).returncode


def graph_problems() -> Iterator[str]:
    """What the action graphs use that the nodes of Isaac Sim do not have."""
    from bricksim_core.engines.isaacsim.graphs import clock_graph, robot_graph
    from bricksim_core.engines.isaacsim.launch import IsaacOptions

    known = described_nodes()
    options = IsaacOptions()
    for graph in (clock_graph(options), robot_graph(options, "arm", "/World/Robots/arm")):
        wired = [end for pair in graph.connections for end in pair]
        for attribute in [*graph.values, *wired]:
            node, _, name = attribute.partition(".")
            kind = graph.nodes[node].rpartition(".")[2]
            if kind in known and name not in known[kind]:
                yield f"{graph.path}: {graph.nodes[node]} has no {name}"
        for kind in graph.nodes.values():
            if kind.startswith("isaacsim.ros2.") and kind.rpartition(".")[2] not in known:
                yield f"{graph.path}: node type {kind} does not exist"


def described_nodes() -> dict[str, set[str]]:
    """Attributes (``inputs:name``) of the described node types, by their last names."""
    found = {}
    for path in (TREE / "ogn").glob("*.ogn"):
        try:
            description = json.loads(path.read_text())
        except ValueError:
            continue
        for kind, node in description.items():
            if isinstance(node, dict):
                found[kind.rpartition(".")[2]] = {
                    f"{side}:{name}"
                    for side in ("inputs", "outputs")
                    for name in node.get(side, {})
                }
    return found


if __name__ == "__main__":
    sys.exit(main())
