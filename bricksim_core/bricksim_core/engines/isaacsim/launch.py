# SPDX-License-Identifier: Apache-2.0
"""Starts the Isaac Sim application, after looking whether it can start at all.

Nothing here imports Omniverse or OpenUSD modules before the application runs: Kit loads its own.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.errors import EngineError

if TYPE_CHECKING:
    from isaacsim import SimulationApp

    from bricksim_core.engines.isaacsim.engine import IsaacEngine

RELEASE = "6.2"
"""Release of Isaac Sim whose API this engine is written against."""

_DISTRIBUTIONS = ("isaacsim-kernel", "isaacsim")
_GPU_MARKS = (Path("/proc/driver/nvidia/gpus"), Path("/dev/nvidia0"), Path("/dev/dxg"))
"""What the kernel shows where there is an NVIDIA GPU (Linux, Linux in containers, WSL)."""


@dataclass(frozen=True)
class IsaacOptions:
    """How to run the application.

    Attributes:
        headless: False opens Isaac Sim's window.
        experience: Path of a ``.kit`` file, empty for Isaac Sim's own for Python.
        launch: Further settings of SimulationApp's launch configuration (``extra_args`` for Kit's
            command line: that of the process is not handed on).
        frame_steps: Physics steps between two updates of the application (window, action graphs);
            4 steps of 1/240 s make 60 Hz.
        ros_bridge: True adds an action graph of Isaac Sim's ROS 2 bridge that publishes clock,
            joint states and transforms of each robot and takes joint commands.
        sim_control: True lets Isaac Sim's extension isaacsim.ros2.sim_control serve its own
            simulation_interfaces services.
        clock_topic: Topic of the clock.
        tf_topic: Topic of the transforms of robots' links.
        joint_states_topic: Topic of joint states; ``{robot}`` stands for a robot's name.
        joint_commands_topic: Topic of joint commands, the same.
        assets_root: Folder or address of Isaac Sim's assets, which holds ``Isaac/Robots``; empty
            for the one that Isaac Sim is set up with.
        assets: USD files of robots by robot name, absolute or below Isaac Sim's assets; robots
            that are not named get Isaac Sim's Franka where their joints are a Franka's.
    """

    headless: bool = True
    experience: str = ""
    launch: Mapping[str, Any] = field(default_factory=dict)
    frame_steps: int = 4
    ros_bridge: bool = False
    sim_control: bool = False
    clock_topic: str = "clock"
    tf_topic: str = "tf"
    joint_states_topic: str = "{robot}/joint_states"
    joint_commands_topic: str = "{robot}/joint_commands"
    assets_root: str = ""
    assets: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.frame_steps < 1:
            raise EngineError(f"frame_steps is {self.frame_steps}, expected at least 1")


def start(**options: Any) -> IsaacEngine:
    """Starts Isaac Sim with an empty scene of bricks.

    Args:
        **options: Of `IsaacOptions` and of `PhysxSettings`.

    Raises:
        EngineError: Isaac Sim is not installed here, has another release, its licence was not
            accepted, there is no GPU, it does not start, or does not take the time step.
        TypeError: There is no such option.
    """
    own = {k: options.pop(k) for k in list(options) if k in IsaacOptions.__dataclass_fields__}
    settings, isaac = PhysxSettings(**options), IsaacOptions(**own)
    rate = 1.0 / settings.timestep
    if abs(rate - round(rate)) > 1e-6 * rate:
        raise EngineError(
            f"timestep is {settings.timestep} s, {rate:.6g} steps a second: Isaac Sim takes whole"
            " numbers of them"
        )
    require_startable()
    app = launch(isaac)
    try:
        from bricksim_core.engines.isaacsim.engine import IsaacEngine

        return IsaacEngine(app, settings, isaac)
    except BaseException:
        app.close()
        raise


def require_startable() -> None:
    """Looks for what would keep Isaac Sim from starting.

    Raises:
        EngineError: The first thing that would.
    """
    for requirement in REQUIREMENTS:
        requirement()


def require_installed() -> str:
    """Where Isaac Sim is installed for this Python.

    Raises:
        EngineError: Nowhere.
    """
    spec = importlib.util.find_spec("isaacsim")
    if spec is None or spec.origin is None:
        raise EngineError(
            f"Isaac Sim is not installed for {sys.executable}: run in the Python of Isaac Sim"
            f" {RELEASE} (docs/engines.md)"
        )
    return spec.origin


def require_release() -> str:
    """Isaac Sim's version.

    Raises:
        EngineError: It is not the release that this engine is written for.
    """
    version = _version()
    if version != RELEASE and not version.startswith(f"{RELEASE}."):
        raise EngineError(
            f"Isaac Sim is {version or 'of an unknown release'}, expected {RELEASE}.*"
        )
    return version


def require_licence() -> str:
    """How the licence was accepted.

    Raises:
        EngineError: It was not, and the application would stop to ask.
    """
    accepted = ("y", "yes", "1")
    if os.environ.get("OMNI_KIT_ACCEPT_EULA", "").lower() in accepted:
        return "OMNI_KIT_ACCEPT_EULA"
    root = Path(require_installed()).parent
    for mark in (root / "kit/EULA_ACCEPTED", root / "EULA_ACCEPTED"):
        if mark.is_file() and mark.read_text().strip().lower() in accepted:
            return str(mark)
    if _workstation() is not None:
        return "workstation installation"
    raise EngineError(
        "NVIDIA's licence (Omniverse EULA) is not accepted: read it, set OMNI_KIT_ACCEPT_EULA=YES"
    )


def require_gpu() -> str:
    """What shows that there is an NVIDIA GPU.

    Raises:
        EngineError: Nothing does.
    """
    for mark in _GPU_MARKS:
        if (mark.is_dir() and any(mark.iterdir())) or (mark.exists() and not mark.is_dir()):
            return str(mark)
    raise EngineError("there is no NVIDIA GPU, which Isaac Sim needs: use engine ovphysx or mujoco")


REQUIREMENTS: tuple[Callable[[], str], ...] = (
    require_installed,
    require_release,
    require_licence,
    require_gpu,
)
"""What Isaac Sim needs, in the order in which it is looked for."""


def launch(options: IsaacOptions) -> SimulationApp:
    """Starts the application.

    Raises:
        EngineError: It does not start.
    """
    loaded = sorted(n for n in sys.modules if n == "pxr" or n.startswith(("pxr.", "omni.usd")))
    if loaded:
        raise EngineError(
            f"{loaded[0]} was imported before Isaac Sim was started: start the engine first"
        )
    try:
        from isaacsim import SimulationApp
    except SystemExit as error:  # its bootstrap ends the process when it cannot go on
        raise EngineError(f"Isaac Sim does not start: {error}") from None
    except Exception as error:
        raise EngineError(f"Isaac Sim does not start: {error}") from None
    if SimulationApp is None:
        raise EngineError("Isaac Sim is installed without isaacsim.simulation_app: isaacsim[all]")
    # A fast shutdown ends the process when the application is closed, with exit code 0 whatever was
    # found, before anything else is written.
    configuration = {"headless": options.headless, "fast_shutdown": False, **options.launch}
    with _own_process():
        try:
            return SimulationApp(configuration, experience=options.experience)
        except SystemExit as error:
            raise EngineError(f"Isaac Sim does not start: exit code {error}") from None
        except Exception as error:
            raise EngineError(f"Isaac Sim does not start: {error}") from None


@contextmanager
def _own_process() -> Iterator[None]:
    """Keeps what SimulationApp takes from its process: it hands the command line, ours, to Kit, and
    has Ctrl-C end everything at once with exit code 0."""
    arguments, interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    sys.argv = arguments[:1]
    try:
        yield
    finally:
        sys.argv = arguments
        main = threading.current_thread() is threading.main_thread()
        if main and interrupt is not None:  # None: it was not set from Python
            signal.signal(signal.SIGINT, interrupt)


def _workstation() -> Path | None:
    """Folder of a workstation installation, None for one by pip."""
    folder = os.environ.get("ISAAC_PATH")
    if folder and (Path(folder) / "VERSION").is_file():
        return Path(folder)
    return None


def _version() -> str:
    if (folder := _workstation()) is not None:
        return (folder / "VERSION").read_text().split("-")[0].split("+")[0].strip()
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""
