# SPDX-License-Identifier: Apache-2.0
"""Whole episodes: the node lays bricks out, handles them, writes results and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bricksim_core.errors import BrickSimError
from bricksim_core.formats import read_structure
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.building import BuildLog, Summary
from bricksim_moveit_demo.errors import Outcome, TaskError, outcome_of
from bricksim_moveit_demo.filming import Film
from bricksim_moveit_demo.inhand import (
    InHandScene,
    InHandSummary,
    brick_of,
    in_hand_bricks,
    join_in_hand,
)
from bricksim_moveit_demo.layout import packing, read_layout
from bricksim_moveit_demo.nodes.parameters import EPISODES
from bricksim_moveit_demo.nodes.supplies import free_ids, put_down
from bricksim_moveit_demo.nodes.tasks import TaskServer
from bricksim_moveit_demo.reports import Report
from bricksim_moveit_demo.scenes import (
    RESULT_FILES,
    SceneOptions,
    clear_results,
    write_results,
)
from bricksim_moveit_demo.supplying import Supply
from bricksim_moveit_demo.world import Noise, SimulatedWorld
from bricksim_ros import parameters
from bricksim_ros.scene import resolve_uri
from bricksim_ros.server import Advance, Server
from bricksim_ros.simulator_node import SimulationEndedError, SimulatorNode
from bricksim_ros.world import RunState, World, valid_name


class Episode(ABC):
    """What a node does by itself from its first step on."""

    def __init__(self, node: SimulatorNode, noise: Noise) -> None:
        self._node = node
        self._noise = noise
        self._seed: int = parameters.value(node, "seed")

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of what is made."""

    @abstractmethod
    def lay_out(self, world: World) -> None:
        """Puts bricks into the world, as they lie at the beginning."""

    @abstractmethod
    def work(self, scene: SimulatedWorld, tasks: TaskServer) -> Summary | InHandSummary:
        """Does it.

        Raises:
            BrickSimError: It cannot even be begun.
        """

    @abstractmethod
    def cut_off(self, outcome: Outcome, message: str, duration: float) -> Summary | InHandSummary:
        """What is known of it when it ends before its end.

        Args:
            outcome: Why.
            message: The same in words.
            duration: Simulation time so far [s].
        """

    def server(self, scene: SimulatedWorld, tasks: TaskServer) -> EpisodeServer:
        """What carries it out in a node."""
        return EpisodeServer(self._node, self, scene, tasks)

    def tell(self, text: str) -> None:
        """Says how it goes."""
        self._node.get_logger().info(text)


class AssembleEpisode(Episode):
    """Builds a structure from bricks on the table."""

    def __init__(self, node: SimulatorNode, noise: Noise) -> None:
        super().__init__(node, noise)
        path = parameters.value(node, "structure")
        if not path:
            raise TaskError("parameter structure is empty, expected a structure file")
        self._structure = read_structure(resolve_uri(path))
        self._supply: Supply | None = None
        self._log = BuildLog(self._structure)
        chosen = parameters.value(node, "layout")
        self._layout = packing(parameters.value(node, "arms"), self._structure)
        if chosen != "packing":
            self._layout = read_layout(resolve_uri(chosen), self._layout)

    @property
    def name(self) -> str:
        """Name of the structure."""
        return self._structure.name

    def lay_out(self, world: World) -> None:
        """Lays the base and all bricks on the table; if they do not fit, first the base alone."""

        def put(structure: Structure) -> Mapping[int, int]:
            if self._supply is not None:
                return put_down(self._node, world.simulator, structure)
            ids = free_ids(world.simulator, structure)
            entity = world.spawn(
                valid_name(self.name), structure, np.eye(4), initial=True, part_ids=ids
            )
            return entity.part_ids

        sample = self._noise.sample
        self._supply = Supply(
            world.simulator, self._structure, self._layout, self._seed, sample, put
        )

    def work(self, scene: SimulatedWorld, tasks: TaskServer) -> Summary:
        """Builds."""

        def progress(report: Report, inserted: int, total: int) -> None:
            self._log.progress(report, inserted, total)
            self.tell(report.line(inserted, total))

        return tasks.build(
            self._structure,
            starting=self._log.starting,
            progress=progress,
            supply=self._supply,
        )

    def cut_off(self, outcome: Outcome, message: str, duration: float) -> Summary:
        """See `Episode.cut_off`."""
        return self._log.cut_off(outcome, message, duration)


class InHandEpisode(Episode):
    """Two arms join two bricks in the air and put them onto a plate."""

    def __init__(self, node: SimulatorNode, noise: Noise) -> None:
        super().__init__(node, noise)
        if parameters.value(node, "arms") != 2:
            raise TaskError(
                f"parameter arms is {parameters.value(node, 'arms')}, expected 2 for an in-hand"
                " join"
            )
        self._scene = InHandScene(
            brick_of(parameters.value(node, "lower")), brick_of(parameters.value(node, "upper"))
        )
        self._known = InHandSummary.nothing(Outcome.INTERRUPTED, "")

    @property
    def name(self) -> str:
        """Name of the scene."""
        return "inhand"

    def lay_out(self, world: World) -> None:
        """Lays out `in_hand_bricks`."""
        bricks = in_hand_bricks(self._scene, self._seed)
        world.spawn(self.name, bricks, np.eye(4), initial=True)

    def work(self, scene: SimulatedWorld, tasks: TaskServer) -> InHandSummary:
        """Joins and places."""
        taker, giver = tasks.handlers.values()

        def progress(known: InHandSummary) -> None:
            self._known = known

        return join_in_hand(scene, taker, giver, self._scene, progress)

    def cut_off(self, outcome: Outcome, message: str, duration: float) -> InHandSummary:
        """See `Episode.cut_off`."""
        return replace(self._known, outcome=outcome, message=message, duration=duration)


def create_episode(node: SimulatorNode, noise: Noise) -> Episode | None:
    """The episode that the node's parameters ask for, None if they ask for none.

    Raises:
        BrickSimError: A parameter is not acceptable.
    """
    kind = parameters.value(node, "episode")
    if kind not in EPISODES:
        raise TaskError(f"parameter episode is {kind!r}, expected one of {', '.join(EPISODES[1:])}")
    if not kind:
        return None
    if parameters.value(node, "arms") == 0:
        raise TaskError(f"parameter arms is 0, expected 1 or 2 for episode {kind!r}")
    return (AssembleEpisode if kind == "assemble" else InHandEpisode)(node, noise)


class EpisodeServer(Server):
    """Runs an episode once, writes its results, ends the node: exit code 0 on success, else 1."""

    def __init__(
        self, node: SimulatorNode, episode: Episode, scene: SimulatedWorld, tasks: TaskServer
    ) -> None:
        self._node = node
        self._episode = episode
        self._scene = scene
        self._tasks = tasks
        self._begun = False
        self._film: Film | None = None
        clear_results(self._out())
        if parameters.value(node, "film"):
            arms = [controller.arm for controller in scene.arms.values()]
            self._film = Film(scene.simulator, arms)
            scene.listeners.append(self._film)

    def destroy(self) -> None:
        """It is over."""

    def take_job(self) -> Callable[[Advance], None] | None:
        """The episode, once."""
        if self._begun:
            return None
        self._begun = True
        return self._run

    def _run(self, advance: Advance) -> None:
        # Success is told by what was done; an episode that is cut off has none.
        self._node.exit_code = 1
        self._tasks.running(f"episode {self._episode.name}", advance, self._work)
        assert self._node.world is not None
        self._node.world.state = RunState.QUITTING

    def _work(self) -> None:
        log = self._node.get_logger()
        try:
            self._node.until_playing()
            self._tasks.prepare()
            summary = self._episode.work(self._scene, self._tasks)
        except BrickSimError as error:
            summary = self._cut_off(outcome_of(error), str(error))
        except Exception as error:
            # The node ends, so nobody waits for a video; what cannot be published any more then
            # fails with errors of its own.
            ends = isinstance(error, SimulationEndedError) or not self._node.context.ok()
            text = "interrupted" if ends else f"internal error, {type(error).__name__}: {error}"
            summary = self._cut_off(Outcome.INTERRUPTED, text)
            write_results(self._out(), summary, self._options(), self._episode.name)
            raise
        self._node.exit_code = 0 if summary.success else 1
        out = self._out()
        if out is not None and self._film is not None:
            log.info(f"drawing the video: {self._film.frames} frames")
        try:
            write_results(out, summary, self._options(), self._episode.name, self._film)
        except BrickSimError as error:
            log.error(f"results: {error}")
            self._node.exit_code = 1
        if summary.success:
            log.info(f"{self._episode.name}: done in {summary.duration:.1f} simulated seconds")
        else:
            log.error(f"{self._episode.name}: {summary.message}")
        if out is not None:
            files = [p.name for p in (out / n for n in RESULT_FILES) if p.is_file()]
            log.info(f"results in {out}: {', '.join(files) or 'none'}")

    def _cut_off(self, outcome: Outcome, message: str) -> Summary | InHandSummary:
        return self._episode.cut_off(outcome, message, self._scene.time)

    def _out(self) -> Path | None:
        out = parameters.value(self._node, "out")
        return Path(out).expanduser() if out else None

    def _options(self) -> SceneOptions:
        value = parameters.value
        return SceneOptions(
            seed=value(self._node, "seed"),
            noise_mm=value(self._node, "noise_mm"),
            noise_degrees=value(self._node, "noise_deg"),
            planner=value(self._node, "planner"),
            engine=value(self._node, "engine"),
            arms=value(self._node, "arms"),
            film=value(self._node, "film"),
        )
