# SPDX-License-Identifier: Apache-2.0
"""What the launch files share: arguments with one name and one meaning everywhere, and nodes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
)
from launch import Event, LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bricksim_core.threads import single_thread
from bricksim_ros.engine_options import ENGINE_OPTIONS, ENGINES

ARMS_PACKAGE = "bricksim_moveit_demo"

COMMON_ARGUMENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "engine": ("mujoco", "Rigid-body engine", ENGINES),
    **{
        option.name: (
            str(option.default).lower() if isinstance(option.default, bool) else option.default,
            option.description,
            ("true", "false") if isinstance(option.default, bool) else (),
        )
        for option in ENGINE_OPTIONS
    },
    "namespace": ("", "Namespace of all nodes", ()),
    "frame_prefix": ("", "Put in front of every frame but world", ()),
    "publish_clock": ("true", "Publish /clock (one publisher a domain)", ("true", "false")),
    "use_sim_time": ("true", "Nodes beside the simulator follow /clock", ("true", "false")),
    "rviz": ("false", "Start RViz where it is installed", ("true", "false")),
    "markers": ("true", "Start the markers node", ("true", "false")),
    "record": ("false", "Record the episode into a bag", ("true", "false")),
    "bag": ("", "Folder of the bag to record; empty: episodes/episode_<date>", ()),
    "further_topics": ("", "What else to record: NAME TYPE, NAME TYPE, ...", ()),
    "real_time_factor": ("1.0", "Simulated over wall time; 0: as fast as possible", ()),
    "duration": ("0.0", "End after so many simulated seconds; 0: run until Ctrl-C", ()),
    "start_paused": (
        "false",
        "Wait for set_simulation_state before the first step",
        ("true", "false"),
    ),
}


def common_arguments(**defaults: str) -> list[DeclareLaunchArgument]:
    """Declares the arguments that every launch file takes; ``defaults`` replaces defaults."""
    return [
        argument(name, defaults.get(name, default), text, choices)
        for name, (default, text, choices) in COMMON_ARGUMENTS.items()
    ]


def argument(
    name: str, default: str, text: str, choices: Sequence[str] = ()
) -> DeclareLaunchArgument:
    """Declares an argument, which may take any text if there are no choices."""
    limits = {"choices": list(choices)} if choices else {}
    return DeclareLaunchArgument(name, default_value=default, description=text, **limits)


def description(
    arguments: Mapping[str, tuple[str, str] | tuple[str, str, tuple[str, ...]]],
    nodes: Callable[[LaunchContext], list[Action]],
    **defaults: str,
) -> LaunchDescription:
    """A launch file with its own and the common arguments.

    Args:
        arguments: Default, description and, if limited, choices of its own arguments by name.
        nodes: Makes the actions once the arguments are known.
        **defaults: Other defaults of common arguments.
    """
    own = [argument(name, entry[0], entry[1], *entry[2:]) for name, entry in arguments.items()]
    return checked([*own, *common_arguments(**defaults)], nodes)


def checked(
    arguments: Sequence[DeclareLaunchArgument], nodes: Callable[[LaunchContext], list[Action]]
) -> LaunchDescription:
    """A launch file that says which arguments it was given that look misspelt.

    Args:
        arguments: All that it takes.
        nodes: Makes the actions once the arguments are known.
    """
    known = {argument.name for argument in arguments}

    def told(context: LaunchContext) -> list[Action]:
        return [*_misspelt(context, known), *nodes(context)]

    return LaunchDescription([*arguments, OpaqueFunction(function=told)])


def _misspelt(context: LaunchContext, known: Collection[str]) -> Iterator[Action]:
    """Says which arguments look like ours but are not: launch takes any name without a word."""
    for name in context.launch_configurations:
        if name not in known and (meant := get_close_matches(name, known, 1, 0.8)):
            yield LogInfo(msg=f"argument {name}:= is not known; is {meant[0]}:= meant?")


def value(context: LaunchContext, name: str) -> str:
    """Text of a launch argument."""
    return LaunchConfiguration(name).perform(context)


def flag(context: LaunchContext, name: str) -> bool:
    """A true/false launch argument."""
    return value(context, name) == "true"


def number(context: LaunchContext, name: str) -> float:
    """A numeric launch argument.

    Raises:
        ValueError: It is no number; the text names the argument.
    """
    text = value(context, name)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"launch argument {name} is {text!r}, expected a number") from None


def whole_number(context: LaunchContext, name: str) -> int:
    """A launch argument that counts.

    Raises:
        ValueError: It is no whole number; the text names the argument.
    """
    text = value(context, name)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"launch argument {name} is {text!r}, expected a whole number") from None


def engine_parameters(context: LaunchContext) -> dict[str, bool | str]:
    """Parameters of a simulator node that choose the engine and its options."""
    chosen: dict[str, bool | str] = {"engine": value(context, "engine")}
    for option in ENGINE_OPTIONS:
        switch = isinstance(option.default, bool)
        chosen[option.name] = flag(context, option.name) if switch else value(context, option.name)
    return chosen


def write_scene(structures: Sequence[Mapping[str, Any]]) -> Path:
    """A scene file in the temporary folder, for launch files that make their scene."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="bricksim_", suffix=".scene.yaml", delete=False, encoding="utf-8"
    ) as file:
        yaml.safe_dump({"structures": [dict(s) for s in structures]}, file)
    return Path(file.name)


def arms_package() -> str:
    """Package of the simulator that knows how to drive Franka arms; empty if not installed."""
    try:
        get_package_share_directory(ARMS_PACKAGE)
    except PackageNotFoundError:
        return ""
    return ARMS_PACKAGE


def simulation(
    context: LaunchContext,
    parameters: Mapping[str, Any],
    package: str = "bricksim_ros",
    topics: Sequence[str] = (),
) -> list[Action]:
    """The simulator with what the common arguments ask for around it.

    When the simulator ends, all ends; if it or the recorder failed, so does the launch.

    Args:
        context: Launch context with the common arguments.
        parameters: Further parameters of the simulator node.
        package: Package of its executable ``simulator``.
        topics: What a recorder takes besides its own topics, each ``NAME TYPE``.
    """
    require_engine(value(context, "engine"), package)
    namespace = value(context, "namespace")
    simulator = program(
        "simulator",
        package=package,
        name="simulator",
        namespace=namespace,
        additional_env=single_thread(),
        parameters=[
            {
                **engine_parameters(context),
                "frame_prefix": value(context, "frame_prefix"),
                "publish_clock": flag(context, "publish_clock"),
                "real_time_factor": number(context, "real_time_factor"),
                "duration": number(context, "duration"),
                # A recorder lets the simulation go when it misses nothing any more.
                "start_paused": flag(context, "start_paused") or flag(context, "record"),
                **parameters,
            }
        ],
    )
    actions: list[Action] = [simulator, ends_with(simulator)]
    follow = {"use_sim_time": flag(context, "use_sim_time")}
    if flag(context, "markers") or flag(context, "rviz"):
        actions.append(
            program(
                "markers",
                name="markers",
                namespace=namespace,
                parameters=[follow, {"frame_prefix": value(context, "frame_prefix")}],
            )
        )
    if flag(context, "record"):
        recorder = program(
            "recorder",
            name="recorder",
            namespace=namespace,
            parameters=[
                follow,
                {
                    "autostart": True,
                    "path": value(context, "bag"),
                    "further_topics": [*topics, *value(context, "further_topics").split(",")],
                    "play_when_ready": not flag(context, "start_paused"),
                },
            ],
        )
        actions += [recorder, ends_with(recorder, only_failed=True)]
    if flag(context, "rviz"):
        actions.append(_rviz(namespace, follow))
    return actions


def require_engine(name: str, package: str) -> None:
    """Refuses an engine that cannot start, before anything is started.

    It is the simulator's Python that is asked: its nodes may be installed for Isaac Sim's, while
    launch runs in another one.

    Args:
        name: The engine.
        package: Package of the executable ``simulator``.

    Raises:
        RuntimeError: What the engine lacks; launch shows it as one line.
    """
    if name == "mujoco":
        return
    program = Path(get_package_prefix(package)) / "lib" / package / "simulator"
    with program.open(encoding="utf-8") as file:
        first = file.readline()
    python = first[2:].split() if first.startswith("#!") else [sys.executable]
    question = [*python, "-m", "bricksim_core.engines", name]
    answer = subprocess.run(question, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"engine {name} cannot start")


def program(executable: str, *, package: str = "bricksim_ros", **options: Any) -> Node:
    """A node that runs one of our programs, on the screen.

    Ctrl-C waits for the tenths of a second in which its Python starts
    (`interrupts.end_when_interrupted`).

    Args:
        executable: The program; it ends the holding back of SIGINT.
        package: Package that has it.
        **options: Of `Node`.
    """
    return Node(
        package=package,
        executable=executable,
        exec_name=executable,
        output="screen",
        prefix=["env --block-signal=INT ", LaunchConfiguration("launch-prefix", default="")],
        **options,
    )


def ends_with(node: Node, *, only_failed: bool = False) -> Action:
    """Ends the launch when a node ends; with exit code 1 if that node could not do its work, or
    crashed or was killed (by a machine short of memory, say).

    Args:
        node: The node.
        only_failed: The others go on if it ended with exit code 0 or was killed.
    """

    def ended(event: Event, context: LaunchContext) -> list[Action]:
        assert isinstance(event, ProcessExited)
        killed = event.returncode < 0
        if event.returncode and not (killed and only_failed) and not context.is_shutdown:
            # An exception is how a launch file makes the launch itself fail.
            code = event.returncode
            how = f"was killed by signal {-code}" if killed else f"ended with exit code {code}"
            raise RuntimeError(f"{event.process_name} {how}")
        reason = f"{event.process_name} has ended"
        return [] if only_failed else [EmitEvent(event=Shutdown(reason=reason))]

    return RegisterEventHandler(OnProcessExit(target_action=node, on_exit=ended))


def _rviz(namespace: str, follow: Mapping[str, bool]) -> Action:
    if shutil.which("rviz2") is None:
        return LogInfo(msg="rviz:=true, but rviz2 is not installed: going on without it")
    config = Path(get_package_share_directory("bricksim_ros")) / "config" / "bricksim.rviz"
    return Node(
        package="rviz2",
        executable="rviz2",
        name="rviz",
        namespace=namespace,  # the topics in its configuration are relative
        arguments=["-d", str(config)],
        parameters=[dict(follow)],
    )
