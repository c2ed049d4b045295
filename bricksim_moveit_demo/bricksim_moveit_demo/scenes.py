# SPDX-License-Identifier: Apache-2.0
"""The two scenes, ready to run headless: building a structure, joining in the hands."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bricksim_core.atomic import replacing
from bricksim_core.engines import create_engine
from bricksim_core.errors import BrickSimError
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import BuildLog, StructureBuilder, Summary, needed
from bricksim_moveit_demo.description import one_arm, two_arms
from bricksim_moveit_demo.errors import Outcome, outcome_of
from bricksim_moveit_demo.filming import Film
from bricksim_moveit_demo.foreseeing import plan_bearable, within_reach
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.inhand import InHandScene, InHandSummary, join_in_hand, lay_out_in_hand
from bricksim_moveit_demo.layout import TableLayout, packing
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.protocol import GREATEST_SEED, PlanningOptions, create_planner
from bricksim_moveit_demo.reports import Report
from bricksim_moveit_demo.supplying import Supply
from bricksim_moveit_demo.world import Noise, SimulatedWorld

RESULT_FILES = ("summary.json", "final.png", "video.mp4")
"""What `write_results` writes."""


@dataclass(frozen=True)
class SceneOptions:
    """How a scene is run.

    Attributes:
        seed: Seed of the layout, the noise and the planner.
        noise_mm: Greatest error of brick places and observations along x and y [mm].
        noise_degrees: Greatest yaw error [degrees].
        planner: ``auto``, ``embedded`` or ``moveit``.
        engine: ``mujoco``, ``ovphysx`` or ``isaacsim``.
        arms: How many arms build, 1 or 2.
        film: True: pictures and a video are made.
        parameters: Numbers of picking and inserting.
        config: Settings of the simulator.

    Raises:
        BrickSimError: The seed is negative or too large, or the noise negative or not finite.
    """

    seed: int = 0
    noise_mm: float = 1.0
    noise_degrees: float = 2.0
    planner: str = "embedded"
    engine: str = "mujoco"
    arms: int = 1
    film: bool = False
    parameters: TaskParameters = TaskParameters()
    config: SimulatorConfig = SimulatorConfig()

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= GREATEST_SEED:
            raise BrickSimError(f"seed is {self.seed}, expected 0 to {GREATEST_SEED}")
        noise = (self.noise_mm, self.noise_degrees)
        if not all(math.isfinite(value) and value >= 0.0 for value in noise):
            raise BrickSimError(
                f"noise is {noise[0]:g} mm, {noise[1]:g} degrees, expected two finite numbers"
                " of 0 or more"
            )

    @property
    def noise(self) -> Noise:
        """The errors."""
        return Noise.of(self.noise_mm, self.noise_degrees)


def assemble(
    structure: Structure,
    options: SceneOptions = SceneOptions(),
    out: Path | None = None,
    progress: Callable[[Report, int, int], None] | None = None,
    layout: TableLayout | None = None,
) -> Summary:
    """One arm, or two, build a structure from bricks on the table.

    If it is interrupted or cannot be begun, summary.json tells what is known, and the exception
    goes on.

    Args:
        structure: What to build.
        options: How.
        out: Folder for summary.json, final.png and video.mp4; None: none are written.
        progress: Called after each brick.
        layout: Where things stand; None: `packing` for these arms.

    Raises:
        SequenceError: No order of insertions builds it.
        StructureError: It needs more than these arms, or does not bear a press.
        TaskError: A brick does not fit on the table.
        EngineError: The engine does not start.
        BrickSimError: The results cannot be written.
    """
    clear_results(out)
    log = BuildLog(structure)

    def told(report: Report, inserted: int, total: int) -> None:
        log.progress(report, inserted, total)
        if progress is not None:
            progress(report, inserted, total)

    simulator = _simulator(options)
    film: Film | None = None
    try:
        layout = layout or packing(options.arms, structure)
        summary, film = _assembled(structure, options, simulator, layout, told, log.starting)
    except (BrickSimError, KeyboardInterrupt) as error:
        failure = Outcome.INTERRUPTED, "interrupted"
        if isinstance(error, BrickSimError):
            failure = outcome_of(error), str(error)
        write_results(out, log.cut_off(*failure, simulator.time), options, structure.name)
        raise
    write_results(out, summary, options, structure.name, film)
    return summary


def _assembled(
    structure: Structure,
    options: SceneOptions,
    simulator: Simulator,
    layout: TableLayout,
    progress: Callable[[Report, int, int], None],
    starting: Callable[[int, str, int, int], None],
) -> tuple[Summary, Film | None]:
    """Builds; see `assemble`. Returns how it went and what was filmed."""
    steps = plan_bearable(structure, options.parameters, options.arms)
    supply = Supply(simulator, structure, layout, options.seed, options.noise.sample)
    supply.begin(needed(steps))
    arms = one_arm() if options.arms == 1 else two_arms()
    world = SimulatedWorld(simulator, arms, options.noise, options.seed)
    planner = create_planner(options.planner, arms, PlanningOptions(seed=options.seed))
    film = _film(world, options)
    try:
        handlers = {a.name: BrickHandler(world, planner, a.name, options.parameters) for a in arms}
        steps = within_reach(structure, steps, world, [h.hand for h in handlers.values()])
        builder = StructureBuilder(world, handlers, progress, starting, supply)
        return builder.build(steps), film
    finally:
        planner.close()


def assemble_in_hand(
    scene: InHandScene = InHandScene(),
    options: SceneOptions = SceneOptions(),
    out: Path | None = None,
) -> InHandSummary:
    """Two arms join two bricks in the air and put the result onto a plate.

    If it is interrupted, summary.json tells what is known, and the exception goes on.

    Args:
        scene: What they join.
        options: How.
        out: Folder for summary.json, final.png and video.mp4; None: none are written.
    """
    clear_results(out)
    simulator = _simulator(options)
    lay_out_in_hand(simulator, scene, options.seed)
    arms = two_arms()
    world = SimulatedWorld(simulator, arms, options.noise, options.seed)
    planner = create_planner(options.planner, arms, PlanningOptions(seed=options.seed))
    film = _film(world, options)
    options = replace(options, arms=len(arms))
    known = [InHandSummary.nothing(Outcome.INTERRUPTED, "interrupted")]
    try:
        taker, giver = (BrickHandler(world, planner, a.name, options.parameters) for a in arms)
        summary = join_in_hand(world, taker, giver, scene, known.append)
    except KeyboardInterrupt:
        cut_off = replace(known[-1], message="interrupted", duration=world.time)
        write_results(out, cut_off, options, "inhand")
        raise
    finally:
        planner.close()
    write_results(out, summary, options, "inhand", film)
    return summary


def _simulator(options: SceneOptions) -> Simulator:
    config = options.config
    engine = create_engine(
        options.engine, timestep=config.timestep, gravity=config.gravity, ground=config.ground
    )
    return Simulator(engine, config)


def _film(world: SimulatedWorld, options: SceneOptions) -> Film | None:
    if not options.film:
        return None
    film = Film(world.simulator, [controller.arm for controller in world.arms.values()])
    world.listeners.append(film)
    return film


def require_folder(out: Path | None) -> None:
    """Makes the folder of the results, before anything is built for it.

    Raises:
        BrickSimError: It cannot be made, or nothing can be written into it.
    """
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise _unwritable(out, error) from error


def clear_results(out: Path | None) -> None:
    """Makes the folder of the results; those of an earlier run are removed, so that they are not
    taken for this one's, which may be killed before it has any.

    Raises:
        BrickSimError: As `require_folder`.
    """
    require_folder(out)
    if out is None:
        return
    try:
        for name in RESULT_FILES:
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(out, error) from error


def write_results(
    out: Path | None,
    summary: Summary | InHandSummary,
    options: SceneOptions,
    name: str,
    film: Film | None = None,
) -> None:
    """Writes summary.json and, if there is a film, video.mp4 and final.png.

    Results come first: the summary is on disk before pictures are tried.

    Args:
        out: The folder, which exists; None: nothing is written.
        summary: How it went.
        options: How the scene was run.
        name: Name of what was built.
        film: What was filmed.

    Raises:
        BrickSimError: A file cannot be written.
        PictureError: There is no headless OpenGL here.
    """
    if out is None:
        return
    document: dict[str, Any] = {
        "structure": name,
        "seed": options.seed,
        "noise_mm": options.noise_mm,
        "noise_degrees": options.noise_degrees,
        "planner": options.planner,
        "engine": options.engine,
        "arms": options.arms,
        **asdict(summary),
    }
    summary_file, picture, video = (out / name for name in RESULT_FILES)
    try:
        with replacing(summary_file) as temporary:
            temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        if film is not None:
            film.write(video, picture)
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> BrickSimError:
    return BrickSimError(f"{out}: results cannot be written there: {error.strerror or error}")
