# SPDX-License-Identifier: Apache-2.0
"""Does everything that BrickSim relies on work on this machine?"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bricksim_core.errors import BrickSimError


@dataclass(frozen=True)
class Check:
    """One thing that was tried.

    Attributes:
        name: What.
        ok: True: works; False: does not; None: not here, and not needed.
        detail: Version, figure, or what to do.
    """

    name: str
    ok: bool | None
    detail: str = ""


def checks(engine: str | None = None) -> Iterator[Check]:
    """Tries everything, one after the other.

    Args:
        engine: Also try what this engine needs, call by call.

    Raises:
        BrickSimError: There are no checks for this engine.
    """
    own = None if engine in (None, "mujoco") else _engine_checks(str(engine))
    yield _python()
    if own is not None:
        # Before OpenUSD is looked for: Isaac Sim has to load its own first.
        yield from own()
    yield from _packages()
    for name, function in (
        ("statics", _statics),
        ("engine mujoco", _mujoco),
        ("pictures", _pictures),
        ("video", _video),
    ):
        yield _tried(name, function)
    yield _usd()
    yield _ros()


def _engine_checks(engine: str) -> Callable[[], Iterator[Check]]:
    name = f"bricksim_core.engines.{engine}.checks"
    if not re.fullmatch(r"[a-z0-9_]+", engine) or not _exists(name):
        raise BrickSimError(f"engine is {engine!r}, expected mujoco, ovphysx or isaacsim")
    return importlib.import_module(name).checks


def _exists(module: str) -> bool:
    parent = module.rpartition(".")[0]
    try:
        spec = importlib.util.find_spec(parent)
    except ModuleNotFoundError:
        return False
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return any((Path(folder) / f"{module.rpartition('.')[2]}.py").is_file() for folder in folders)


def _tried(name: str, function: Callable[[], str]) -> Check:
    try:
        return Check(name, True, function())
    except BrickSimError as error:
        return Check(name, False, str(error))
    except Exception as error:
        return Check(name, False, f"{type(error).__name__}: {error}")


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores"
    ok = sys.version_info >= (3, 12)
    return Check("python", ok, found if ok else f"{found}; expected 3.12 or newer")


def _packages() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        wanted = requires("bricksim_core") or []
    except PackageNotFoundError:
        yield Check("packages", None, "bricksim_core is not installed, only imported")
        return
    for line in wanted:
        requirement, _, marker = line.partition(";")
        if "extra" in marker:
            continue
        name = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]
        try:
            yield Check(f"package {name}", True, version(name))
        except PackageNotFoundError:
            yield Check(f"package {name}", False, f"missing: pip install '{requirement.strip()}'")


def _statics() -> str:
    """A brick hanging by eight studs at half and at twice its limit."""
    from bricksim_core.formats import parse_structure
    from bricksim_core.mechanics.analysis import analyze

    structure = parse_structure("4x2 (0,0,0)\n", name="doctor")
    load = 0.0
    weight = structure.graph.part(1).shape.mass * 9.81
    for load in (8.0, 50.0):
        analysis = analyze(structure, loads={1: (0, 0, load + weight, 0, 0, 0)}, limit=False)
        if analysis.stable != (load < 20.0):
            verdict = "holds" if analysis.stable else "does not hold"
            raise BrickSimError(f"a 4x2 brick {verdict} {load} N, which is wrong")
    return f"model {analysis.model}"


def _mujoco() -> str:
    """A brick at rest on the ground is carried by its weight."""
    import mujoco

    from bricksim_core.formats import parse_structure
    from bricksim_core.simulator import Simulator

    simulator = Simulator()
    simulator.spawn(parse_structure("4x2 (0,0,0)\n4x2 (0,0,1)\n", baseplate=None))
    for _ in range(30):
        result = simulator.step()
    height = float(result.world_T_part[0, 2, 3])
    if not abs(height) < 1e-3:
        raise BrickSimError(f"a brick on the ground is {1e3 * height:.2f} mm above it after 0.5 s")
    return f"MuJoCo {mujoco.__version__}"


def _pictures() -> str:
    from bricksim_core.formats import parse_structure
    from bricksim_core.pictures import VIDEO, Renderer, fit_camera, structure_scene
    from bricksim_core.pictures.camera import corner_points

    scene, _, poses = structure_scene(parse_structure("2x2 (0,0,0)\n", name="doctor"))
    camera = fit_camera(corner_points(scene.shapes, poses), (64, 48))
    with Renderer(scene, (64, 48), 0.02, quality=VIDEO) as renderer:
        image = renderer.frame(camera, poses)
        device = renderer.device
    if int(image.max()) - int(image.min()) < 50:
        raise BrickSimError(f"the picture is empty ({device})")
    return device


def _video() -> str:
    import av
    import numpy as np

    from bricksim_core.pictures import write_video

    with tempfile.TemporaryDirectory() as folder:
        frames = [np.full((48, 64, 3), value, np.uint8) for value in (0, 255)]
        write_video(frames, Path(folder) / "doctor.mp4", fps=30)
    return f"H.264, PyAV {av.__version__}"


def _usd() -> Check:
    try:
        from pxr import Usd
    except ImportError:
        return Check("usd files", None, "not installed: pip install 'bricksim_core[usd]'")
    return Check("usd files", True, ".".join(str(n) for n in Usd.GetVersion()))


def _ros() -> Check:
    if importlib.util.find_spec("rclpy") is None:
        return Check("ros 2", None, "rclpy is not on the path; source a ROS 2 Jazzy environment")
    return Check("ros 2", True, os.environ.get("ROS_DISTRO", "distribution unknown"))
