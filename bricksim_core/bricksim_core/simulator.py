# SPDX-License-Identifier: Apache-2.0
"""The simulator: bricks that click together, carry load and come apart.

    >>> from bricksim_core.formats import parse_structure
    >>> from bricksim_core.simulator import Simulator
    >>> simulator = Simulator()
    >>> ids = simulator.spawn(parse_structure("2x4 (0,0,0)\\n2x4 (0,2,1)\\n"))
    >>> result = simulator.step()
    >>> bool((result.utilization < 1.0).all())
    True

One step, one direction: the engine advances; the assembly monitor proposes connections, the
breakage detector proposes breaks; the topology applies both; the engine is told what changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.assembly.monitor import AssemblyMonitor
from bricksim_core.assembly.snapping import apply_candidates, plan_snap, require_room
from bricksim_core.assembly.types import AssemblyThresholds, Candidate
from bricksim_core.engines.boxes import brick_boxes, concatenate, penetrating
from bricksim_core.engines.contact_lists import with_links
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.protocol import (
    STUD_SHAPE,
    BodySpec,
    Engine,
    StepReport,
    require_world,
)
from bricksim_core.errors import BrickSimError, CollisionError, PoseError, TopologyError
from bricksim_core.events import (
    Cause,
    ConnectionEvent,
    EventKind,
    SolverNote,
    StepResult,
    Timings,
)
from bricksim_core.given import as_pose, as_six, require_bearable
from bricksim_core.load_watch import LoadWatch
from bricksim_core.mechanics.analysis import GREATEST_LOAD
from bricksim_core.mechanics.detector import BreakageDetector, BreakageThresholds, Finding
from bricksim_core.mechanics.models import get_model
from bricksim_core.mechanics.types import ConnectionModel
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.scene import SEATED_DEPTH, Scene, SceneState
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology import BrickTopologyGraph, Connection, Structure
from bricksim_core.topology.frames import stud_T_connections
from bricksim_core.topology.ids import MAX_SCENE_ID, as_id
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.values import as_number, as_whole, require_flag


@dataclass(frozen=True)
class SimulatorConfig:
    """Settings of one simulator.

    Attributes:
        frame_rate: Simulator steps (frames) per simulated second [1/s].
        substeps: Engine steps per frame. Four at 60 Hz: the stiffest contacts that MuJoCo keeps
            stable then last about 8 ms.
        gravity: (3,) [m/s^2], world.
        ground: Height of a rigid horizontal ground [m], None for none.
        model: Snap-fit model, by name or as an object.
        assembly: When bricks connect.
        breakage: When connections break.
        overlap_tolerance: Penetration [m] that a spawn or teleport may have: what is left of the
            colliders' side clearance.
        seed: Seed of `Simulator.rng`.

    Raises:
        BrickSimError: A value is out of range or of another type.
    """

    frame_rate: float = 60.0
    substeps: int = 4
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ground: float | None = 0.0
    model: str | ConnectionModel = "default"
    assembly: AssemblyThresholds = AssemblyThresholds()
    breakage: BreakageThresholds = BreakageThresholds()
    overlap_tolerance: float = 2e-4
    seed: int = 0

    def __post_init__(self) -> None:
        as_number(self.frame_rate, "frame_rate", 0.0, 1e6, above=True)
        as_whole(self.substeps, "substeps", 1, 1000)
        require_world(self.gravity, self.ground)
        for name, kind in (("assembly", AssemblyThresholds), ("breakage", BreakageThresholds)):
            if not isinstance(getattr(self, name), kind):
                raise BrickSimError(f"{name} is {getattr(self, name)!r}, expected {kind.__name__}")
        as_number(self.overlap_tolerance, "overlap_tolerance", 0.0)
        as_whole(self.seed, "seed", 0, 2**63 - 1)

    @property
    def timestep(self) -> float:
        """Length of an engine step [s]."""
        return 1.0 / (self.frame_rate * self.substeps)


@dataclass(frozen=True, eq=False)
class SimulatorSnapshot:
    """What `Simulator.restore` takes; opaque."""

    owner: object
    config: SimulatorConfig
    engine: object
    scene: SceneState
    monitor: object
    watch: object
    rng: Mapping
    events: tuple[ConnectionEvent, ...]
    wrenches: dict[int, Array]
    sequence: int
    step: int
    time_offset: float
    last: StepReport | None
    topology_changed: bool
    peaks: dict[int, float]


class Simulator:
    """Bricks under physics: one per scene, no global state.

    Args:
        engine: Rigid-body engine, empty; None makes a `MujocoEngine` of the configuration. Its time
            step has to be that of the configuration.
        config: Settings.

    Attributes:
        before_substep: Called before every engine step; may use the engine's robots only.
        rng: Random numbers for users of the simulator; part of its state.

    Raises:
        BrickSimError: Engine and configuration do not fit, or are none.
    """

    def __init__(
        self, engine: Engine | None = None, config: SimulatorConfig = SimulatorConfig()
    ) -> None:
        if not isinstance(config, SimulatorConfig) or isinstance(engine, SimulatorConfig):
            given = engine if isinstance(engine, SimulatorConfig) else config
            raise BrickSimError(
                f"{'engine' if given is engine else 'config'} is a {type(given).__name__}, expected"
                " Simulator(engine, config) or Simulator(config=SimulatorConfig(...))"
            )
        if engine is None:
            engine = MujocoEngine(config.timestep, config.gravity, config.ground)
        if abs(engine.timestep * config.frame_rate * config.substeps - 1.0) > 1e-9:
            raise BrickSimError(
                f"the engine's time step is {engine.timestep} s, expected {config.timestep} s"
            )
        self.engine = engine
        self.before_substep: list[Callable[[], None]] = []
        self.rng = np.random.default_rng(config.seed)
        self._config = config
        self._owner = object()
        self._scene = Scene(engine)
        self._monitor = AssemblyMonitor(config.assembly, engine.timestep)
        detector = BreakageDetector(get_model(config.model), config.breakage)
        self._watch = LoadWatch(
            detector,
            engine.gravity,
            frame=1.0 / config.frame_rate,
            step=engine.timestep,
            contact_time=engine.contact_time,
        )
        self._events: list[ConnectionEvent] = []
        self._wrenches: dict[int, Array] = {}
        self._sequence = 0
        self._step = 0
        self._time_offset = 0.0
        self._last: StepReport | None = None
        self._topology_changed = False
        self._peaks: dict[int, float] = {}
        self._baseline: SimulatorSnapshot | None = None

    # -- reading ----------------------------------------------------------------------------

    @property
    def config(self) -> SimulatorConfig:
        """Settings. Thresholds change at run time by `set_thresholds`."""
        return self._config

    @property
    def graph(self) -> BrickTopologyGraph:
        """The topology. Read only: change it through the simulator."""
        return self._scene.graph

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return self.engine.time + self._time_offset

    @property
    def next_event(self) -> int:
        """Sequence number of the next event."""
        return self._sequence

    @property
    def fixed_parts(self) -> frozenset[int]:
        """Ids of the parts that the world holds."""
        return self._scene.fixed

    def part_pose(self, part_id: int) -> Array:
        """(4, 4) world_T_part [m].

        Raises:
            UnknownIdError: The part does not exist.
        """
        return self._scene.part_pose(part_id)

    def part_twist(self, part_id: int) -> Array:
        """(6,) velocity of the part's COM and angular velocity, world [m/s, rad/s].

        Raises:
            UnknownIdError: The part does not exist.
        """
        self.graph.part(part_id)
        row = int(np.searchsorted(self._scene.table.ids, part_id))
        return self._scene.part_twists()[row]

    def poses(self) -> dict[int, Array]:
        """(4, 4) world_T_part [m] of every part, by id."""
        ids = self._scene.table.ids.tolist()
        return dict(zip(ids, self._scene.part_poses(), strict=True))

    def component_com(self, component_id: int) -> Array:
        """(3,) centre of mass of a component, world [m].

        Raises:
            UnknownIdError: The component does not exist.
        """
        return self._scene.com(component_id)

    def structure(self, name: str = "scene") -> Structure:
        """The whole scene as a structure: topology, poses and held parts as they are now."""
        scene = self._scene
        return Structure(
            graph=scene.graph.copy(),
            component_poses={c: scene.pose(c).copy() for c in scene.graph.component_ids},
            fixed=scene.fixed,
            name=name,
        )

    # -- editing ----------------------------------------------------------------------------

    def spawn(
        self,
        structure: Structure,
        world_T_structure: Array | None = None,
        fixed: Collection[int] | None = None,
        part_ids: Mapping[int, int] | None = None,
    ) -> dict[int, int]:
        """Adds a structure, at rest, with exactly the connections that it has.

        Args:
            structure: What to add; it is not changed.
            world_T_structure: (4, 4) pose of the structure's frame [m]; None: identity.
            fixed: Structure ids of the parts that the world holds; None: those of the structure.
            part_ids: Wanted part ids by structure id (to put parts back that were removed); parts
                not named get new ids.

        Returns:
            Part ids by structure id.

        Raises:
            PoseError: The pose is not finite, not rigid, or puts a part beyond `MAX_POSITION`.
            UnknownIdError: ``fixed`` or ``part_ids`` names a part that the structure does not have.
            TopologyError: A wanted id is in use or none that a scene has (see `MAX_SCENE_ID`), or
                none is left for a part; nothing is added then.
            CollisionError: Something would be inside of something else.
        """
        pose = np.eye(4) if world_T_structure is None else as_pose(world_T_structure)
        fixed = structure.fixed if fixed is None else fixed
        wanted = part_ids or {}
        for part_id in (*fixed, *wanted):
            structure.graph.part(part_id)
        ids = self._new_ids(structure.graph.part_ids, wanted)
        seated = self._require_free(structure, pose, frozenset(fixed))
        made = self._scene.add_structure(structure, pose, fixed, ids)
        self._scene.seat((ids[below], ids[above]) for below, above in seated)
        self._emit(EventKind.ASSEMBLED, Cause.SPAWNED, made)
        self._commit()
        self._watch.detector.prepare()  # a call that nobody expects to take no time, unlike a frame
        return ids

    def remove(self, part_ids: Iterable[int]) -> None:
        """Removes parts, held ones too; what they held together goes on as pieces.

        Raises:
            UnknownIdError: A part does not exist; nothing is removed then.
        """
        gone = list(dict.fromkeys(part_ids))
        frames = self._frames(c for p in gone for c in self.graph.connections_of(p))
        ended = self._scene.remove(gone)
        self._emit(EventKind.BROKEN, Cause.REMOVED, ended, frames)
        self._monitor.forget(gone)
        for part_id in gone:
            self._wrenches.pop(part_id, None)
        self._commit()

    def teleport(
        self,
        part_id: int,
        world_T_part: Array,
        twist: Array | Sequence[float] = (0.0,) * 6,
        *,
        allow_overlap: bool = False,
    ) -> None:
        """Moves a part and everything that it is connected with.

        Args:
            part_id: The part.
            world_T_part: (4, 4) where it goes [m].
            twist: (6,) velocity of the component's COM and angular velocity [m/s, rad/s].
            allow_overlap: False: refuse a place that is taken.

        Raises:
            UnknownIdError: The part does not exist.
            PoseError: Pose or twist are not finite, the pose is not rigid, or they are beyond what
                engines bear (`MAX_POSITION`, `MAX_GIVEN_SPEED`); nothing is changed then.
            CollisionError: The component would be inside of something else.
        """
        self.teleport_all({part_id: (world_T_part, twist)}, allow_overlap=allow_overlap)

    def teleport_all(
        self,
        places: Mapping[int, tuple[ArrayLike, ArrayLike]],
        *,
        allow_overlap: bool = False,
    ) -> None:
        """Moves some parts, one of a component each, at once, and what these are connected with.

        Args:
            places: Pose and twist by part id, as for `teleport`.
            allow_overlap: False: refuse places that are taken, or that overlap each other.

        Raises:
            UnknownIdError: A part does not exist.
            PoseError: As for `teleport`.
            CollisionError: As for `teleport`; nothing is moved then.
            TopologyError: Two parts are of one component.
        """
        bodies: dict[int, BodySpec] = {}
        for part_id, (world_T_part, twist) in places.items():
            component = self.graph.component_of(part_id)
            if component in bodies:
                raise TopologyError(f"part {part_id} moves with another one that is to be moved")
            layout = self.graph.layout(component)
            local = layout.component_T_parts[np.searchsorted(layout.part_ids, part_id)]
            body = self._scene.body(component, as_pose(world_T_part) @ inverse(local))
            bodies[component] = replace(body, twist=as_six(twist, "twist"))
        moved = list(bodies.values())
        require_bearable(moved)
        seated: list[tuple[int, int]] = []
        if not allow_overlap:
            taken = self.engine.overlaps(moved, list(bodies))
            for part_id, body, is_taken in zip(places, moved, taken, strict=True):
                if is_taken:
                    raise CollisionError(
                        f"{_named(part_id, body.layout)} would be inside of"
                        f" {self._obstacle(body, bodies)}"
                    )
            seated = self._require_apart(moved)
        for component, body in bodies.items():
            self._scene.place(component, body.world_T_component, body.twist)
            self._monitor.forget(body.layout.part_ids.tolist())
        self._scene.seat(seated)
        self._commit()

    def hold_fixed(self, part_id: int, held: bool) -> None:
        """Lets the world hold a part (and so its component) where it is, or not any more.

        Raises:
            UnknownIdError: The part does not exist.
            BrickSimError: `held` is neither True nor False.
        """
        self.graph.part(part_id)
        require_flag(held, "held")
        if held == (part_id in self._scene.fixed):
            return
        self._scene.hold(part_id, held)
        self._commit()

    def apply_wrench(self, part_id: int, wrench: Array | Sequence[float]) -> None:
        """Applies force [N] and torque [N m] at a part's COM, world axes, during the next step.

        Raises:
            UnknownIdError: The part does not exist.
            PoseError: The wrench is not six finite numbers, or beyond `GREATEST_LOAD` with those
                of this step before it.
        """
        self.graph.part(part_id)
        wrench = self._wrenches.get(part_id, np.zeros(6)) + as_six(wrench, "wrench")
        if not np.all(np.abs(wrench) <= GREATEST_LOAD):
            raise PoseError(
                f"wrench on part {part_id} would be {wrench.tolist()}, expected at most"
                f" {GREATEST_LOAD:g} N and N m"
            )
        self._wrenches[part_id] = wrench

    def connect(
        self, stud_part: int, hole_part: int, offset: tuple[int, int], yaw: int
    ) -> tuple[Connection, ...]:
        """Connects two parts by command, whatever their distance; the lighter or free one moves.

        Returns:
            The new connections: the one asked for and those that coincide with it.

        Raises:
            TopologyError: The graph refuses, both are held elsewhere, or there is no room.
        """
        snap = plan_snap(self._scene, stud_part, hole_part, offset, yaw)
        require_room(self._scene, self.engine, snap)
        joined = self._scene.join(stud_part, hole_part, offset, yaw, snap.anchor)
        self._emit(EventKind.ASSEMBLED, Cause.COMMAND, joined.connections)
        self._commit()
        return joined.connections

    def disconnect(self, connection_ids: Iterable[int]) -> None:
        """Ends connections by command.

        Raises:
            UnknownIdError: A connection does not exist; nothing is changed then.
        """
        separated = self._scene.split(connection_ids)
        self._emit(EventKind.BROKEN, Cause.COMMAND, separated.connections)
        self._commit()

    def set_thresholds(
        self,
        assembly: AssemblyThresholds | None = None,
        breakage: BreakageThresholds | None = None,
    ) -> None:
        """Changes thresholds from the next step on; None leaves one as it is."""
        if assembly is not None:
            self._config = replace(self._config, assembly=assembly)
            self._monitor.thresholds = assembly
        if breakage is not None:
            self._config = replace(self._config, breakage=breakage)
            self._watch.detector.thresholds = breakage

    # -- stepping ---------------------------------------------------------------------------

    def step(self) -> StepResult:
        """Advances by one frame.

        Raises:
            EngineError: The engine's state became unstable. The frame ends before that, with fewer
                engine steps than others; its wrenches are used up.
        """
        if self._baseline is None:
            self.set_baseline()
        start = perf_counter()
        engine_time = mechanics_time = assembly_time = 0.0
        wrenches, self._wrenches = self._wrenches, {}
        scene, table = self._scene, self._scene.table
        self._watch.begin()
        for _ in range(self._config.substeps):
            t0 = perf_counter()
            for hook in self.before_substep:
                hook()
            for part_id, wrench in wrenches.items():
                self.engine.apply_wrench(part_id, wrench)
            report = self.engine.step()
            t1 = perf_counter()
            scene.read(report)
            self._last = report
            self._monitor.observe(report, table.ids, table.row)
            t2 = perf_counter()
            self._watch.observe(report, wrenches)
            t3 = perf_counter()
            engine_time, assembly_time = engine_time + t1 - t0, assembly_time + t2 - t1
            mechanics_time += t3 - t2
        self._step += 1

        t0 = perf_counter()
        findings, notes = self._watch.examine()
        t1 = perf_counter()
        candidates = self._monitor.candidates(
            table.ids, scene.part_poses(), table.sizes, scene.seated
        )
        t2 = perf_counter()
        self._track_overloads()
        self._break(findings)
        candidates = self._assemble(candidates)
        # Looking for room for a snap commits breaks before, also where there is none.
        if scene.release_seats() or scene.changed or scene.table is not table:
            self._commit()
        t3 = perf_counter()
        assembly_time, mechanics_time = assembly_time + t2 - t1, mechanics_time + t1 - t0

        def timings() -> Timings:
            total = perf_counter() - start
            return Timings(engine_time, assembly_time, mechanics_time, t3 - t2, total)

        return self._result(candidates, notes, timings)

    def result(self) -> StepResult:
        """The present state without stepping, with the events of edits since the last step.

        These events are handed out once: here or by the next step.
        """
        return self._result((), ())

    # -- state ------------------------------------------------------------------------------

    def snapshot(self) -> SimulatorSnapshot:
        """The complete state; `restore` brings it back bit by bit."""
        return SimulatorSnapshot(
            owner=self._owner,
            config=self._config,
            engine=self.engine.snapshot(),
            scene=self._scene.state(),
            monitor=self._monitor.snapshot(),
            watch=self._watch.snapshot(),
            rng=self.rng.bit_generator.state,
            events=tuple(self._events),
            wrenches=dict(self._wrenches),
            sequence=self._sequence,
            step=self._step,
            time_offset=self._time_offset,
            last=self._last,
            topology_changed=self._topology_changed,
            peaks=dict(self._peaks),
        )

    def restore(self, snapshot: SimulatorSnapshot) -> None:
        """Returns to a snapshot of this simulator, time and counters included.

        Raises:
            BrickSimError: It is no snapshot, or one of another simulator, be it set up alike;
                nothing is changed then.
        """
        if not isinstance(snapshot, SimulatorSnapshot):
            raise BrickSimError(
                f"restore got {type(snapshot).__name__}, expected a snapshot of this simulator"
            )
        if snapshot.owner is not self._owner:  # the two would share what each of them changes
            raise BrickSimError(
                f"restore got a snapshot of another simulator (at step {snapshot.step}, with"
                f" {len(snapshot.scene.graph)} parts), expected one of this simulator"
            )
        self.engine.restore(snapshot.engine)
        self._config = snapshot.config
        self._scene.restore(snapshot.scene)
        self._monitor.restore(snapshot.monitor)
        self._watch.restore(snapshot.watch)
        self.rng.bit_generator.state = snapshot.rng
        self._events = list(snapshot.events)
        self._wrenches = dict(snapshot.wrenches)
        self._sequence = snapshot.sequence
        self._step = snapshot.step
        self._time_offset = snapshot.time_offset
        self._last = snapshot.last
        self._topology_changed = snapshot.topology_changed
        self._peaks = dict(snapshot.peaks)

    def set_baseline(self) -> None:
        """Makes the present state the one that `reset` returns to (else: before the first step)."""
        self._baseline = self.snapshot()

    def reset(self, *, rewind_time: bool = False) -> None:
        """Returns to the baseline: parts, connections, poses, velocities and random numbers.

        Thresholds stay as they are. Connections that differ are told as events (causes SPAWNED and
        REMOVED), whose sequence goes on; ids that were given since are not given again.

        Args:
            rewind_time: True: time and steps return to those of the baseline as well; else they go
                on, so that clocks never run backwards.
        """
        if self._baseline is None:
            self.set_baseline()
        assert self._baseline is not None
        before, time, step = self.graph, self.time, self._step
        config, sequence, events = self._config, self._sequence, self._events
        frames = self._frames(before.connections.values())
        self.restore(self._baseline)
        self.graph.continue_ids(before)
        self._sequence, self._events = sequence, events
        self.set_thresholds(config.assembly, config.breakage)
        if not rewind_time:
            self._time_offset += time - self.time
            self._step = step
        ended = [c for i, c in before.connections.items() if self.graph.connections.get(i) != c]
        made = [c for i, c in self.graph.connections.items() if before.connections.get(i) != c]
        self._emit(EventKind.BROKEN, Cause.REMOVED, ended, frames)
        self._emit(EventKind.ASSEMBLED, Cause.SPAWNED, made)
        self._topology_changed = True

    # -- inside -----------------------------------------------------------------------------

    def _break(self, findings: Mapping[int, Finding]) -> None:
        for component, finding in findings.items():
            layout = self.graph.layout(component)
            rows = np.searchsorted(layout.connection_ids, finding.broken)
            separated = self._scene.split(finding.broken)
            assert finding.solution is not None
            frames = self._frames(separated.connections)
            for connection, row in zip(separated.connections, rows, strict=True):
                highest = self._peaks.pop(connection.id, float(finding.utilization[row]))
                self._emit(
                    EventKind.BROKEN,
                    Cause.OVERLOAD,
                    [connection],
                    frames,
                    # What slides along with others bears all it can, whatever it bore bonded.
                    utilization=max(highest, self._config.breakage.utilization),
                    force=float(finding.solution.connection_wrench[row, 2]),
                )

    def _track_overloads(self) -> None:
        """Keeps the highest utilization of connections since they were overloaded first: one that
        slides out breaks only when the load may be over."""
        ids, utilization = self._watch.utilization()
        over = utilization > self._config.breakage.utilization
        for connection, value in zip(ids[over].tolist(), utilization[over].tolist(), strict=True):
            self._peaks[connection] = max(value, self._peaks.get(connection, value))

    def _assemble(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        if not any(c.accepted for c in candidates):
            return candidates
        joins, candidates = apply_candidates(self._scene, self.engine, candidates, self._gripped())
        for candidate, joined in joins:
            first, *others = joined.connections
            self._emit(EventKind.ASSEMBLED, Cause.PRESSED, [first], force=candidate.force)
            self._emit(EventKind.ASSEMBLED, Cause.CLOSURE, others)
        return candidates

    def _gripped(self) -> set[int]:
        """Components that a robot link touches."""
        assert self._last is not None
        contacts = self._last.contacts
        return {
            self.graph.component_of(p)
            for p in np.unique(contacts.part_b[with_links(contacts)]).tolist()
            if p in self.graph
        }

    def _commit(self) -> None:
        self._scene.commit()
        self._watch.sync(self._scene)
        alive = self.graph.connections
        self._peaks = {c: u for c, u in self._peaks.items() if c in alive}
        self._topology_changed = True

    def _frames(self, connections: Iterable[Connection]) -> dict[int, Array]:
        """(4, 4) world frames [m] of connections, by id, where their lower parts are now."""
        graph, frames = self.graph, {}
        groups: dict[int, list[Connection]] = {}
        for connection in connections:
            groups.setdefault(graph.component_of(connection.stud_part), []).append(connection)
        for component, group in groups.items():
            layout = graph.layout(component)
            rows = np.searchsorted(layout.part_ids, [c.stud_part for c in group])
            local = stud_T_connections(
                group,
                [layout.shapes[row] for row in rows.tolist()],
                [graph.part(c.hole_part).shape for c in group],
            )
            placed = self._scene.pose(component) @ layout.component_T_parts[rows] @ local
            frames.update(zip((c.id for c in group), placed, strict=True))
        return frames

    def _emit(
        self,
        kind: EventKind,
        cause: Cause,
        connections: Iterable[Connection],
        frames: Mapping[int, Array] | None = None,
        *,
        utilization: float = np.nan,
        force: float = np.nan,
    ) -> None:
        told = list(connections)
        if frames is None:
            frames = self._frames(told)
        time = self.time
        for connection in told:
            self._events.append(
                ConnectionEvent(
                    self._sequence,
                    time,
                    kind,
                    cause,
                    connection,
                    utilization,
                    force,
                    frames[connection.id],
                )
            )
            self._sequence += 1

    def _result(
        self,
        candidates: tuple[Candidate, ...],
        notes: tuple[SolverNote, ...],
        timings: Callable[[], Timings] = Timings,
    ) -> StepResult:
        connection_ids, utilization = self._watch.utilization()
        events, self._events = tuple(self._events), []
        changed, self._topology_changed = self._topology_changed, False
        table = self._scene.table
        return StepResult(
            time=self.time,
            step=self._step,
            events=events,
            candidates=candidates,
            connection_ids=connection_ids,
            utilization=utilization,
            part_ids=table.ids,
            world_T_part=self._scene.part_poses(),
            twist=self._scene.part_twists(),
            component_of=self._scene.component_ids[table.row],
            solver_notes=notes,
            topology_changed=changed,
            bypassed=self._watch.bypassed(),
            timings=timings(),
        )

    def _new_ids(self, part_ids: Iterable[int], wanted: Mapping[int, int]) -> dict[int, int]:
        """Ids in the scene of a structure's parts, by their own: as wanted, else the next ones.

        Raises:
            TopologyError: A wanted id is in use or none, or none is left.
        """
        own = {p: as_id(i, "wanted part id", 0, MAX_SCENE_ID) for p, i in wanted.items()}
        taken = set[int]()
        for new in own.values():
            if new in self.graph or new in taken:
                raise TopologyError(f"part id {new} is wanted, but in use; expected a free one")
            taken.add(new)
        free = (i for i in itertools.count(self.graph.next_part_id) if i not in taken)
        ids = {p: own[p] if p in own else next(free) for p in part_ids}
        last = max(ids.values(), default=0)
        if last > MAX_SCENE_ID:
            raise TopologyError(
                f"a new part would get id {last}, expected at most {MAX_SCENE_ID}: no ids are left"
                " after those given or wanted before"
            )
        return ids

    def _require_free(
        self, structure: Structure, pose: Array, fixed: frozenset[int]
    ) -> list[tuple[int, int]]:
        """Checks that a structure fits into the scene and into itself.

        Returns:
            Pairs (lower, upper part) of its components that stand in each other's studs without a
            connection, as a scene with a broken joint is exported.

        Raises:
            CollisionError: It does not fit.
        """
        bodies = []
        for component in structure.graph.component_ids:
            layout = structure.graph.layout(component)
            bodies.append(
                BodySpec(
                    component=component,
                    layout=layout,
                    world_T_component=pose @ structure.component_poses[component],
                    twist=np.zeros(6),
                    fixed=not fixed.isdisjoint(layout.part_ids.tolist()),
                    colors=(),
                )
            )
        require_bearable(bodies)
        for body, taken in zip(bodies, self.engine.overlaps(bodies), strict=True):
            if taken:
                name = _named(int(body.layout.part_ids[0]), body.layout)
                raise CollisionError(f"{name} would be inside of {self._obstacle(body)}")
        return self._require_apart(bodies)

    def _require_apart(self, bodies: Sequence[BodySpec]) -> list[tuple[int, int]]:
        """Checks that bodies are not inside of each other.

        Returns:
            Pairs (lower, upper part) that stand in each other's studs without a connection.

        Raises:
            CollisionError: They are.
        """
        if len(bodies) < 2:
            return []
        each = [brick_boxes(b.layout).moved(b.world_T_component) for b in bodies]
        boxes = concatenate(each)
        group = np.repeat(np.arange(len(each)), [len(b.part_ids) for b in each])
        tolerance = self._config.overlap_tolerance
        a, b, depth = penetrating(boxes, boxes, tolerance, group)
        in_studs = (boxes.shapes[a] != boxes.shapes[b]) & (depth > SEATED_DEPTH)
        in_studs &= depth < STUD_HEIGHT + tolerance
        if not in_studs.all():
            i = int(np.argmin(in_studs))
            raise CollisionError(
                f"parts {boxes.part_ids[a[i]]} and {boxes.part_ids[b[i]]} would be"
                f" {depth[i] * 1e3:.3g} mm inside of each other"
            )
        lower = boxes.shapes[a] == STUD_SHAPE
        return list(
            zip(boxes.part_ids[a[lower]].tolist(), boxes.part_ids[b[lower]].tolist(), strict=True)
        )

    def _obstacle(self, body: BodySpec, moved: Collection[int] = ()) -> str:
        """Names what a body at its pose is inside of, but for components that move along."""
        boxes = brick_boxes(body.layout).moved(body.world_T_component)
        for other in self.graph.component_ids:
            if other in moved:
                continue
            layout = self.graph.layout(other)
            scene = brick_boxes(layout).moved(self._scene.pose(other))
            first, second, depth = penetrating(boxes, scene, self._config.overlap_tolerance)
            if len(first):
                return (
                    f"part {scene.part_ids[second[0]]} (part {boxes.part_ids[first[0]]} by"
                    f" {depth[0] * 1e3:.3g} mm)"
                )
        return "the ground or a robot"


def _named(part_id: int, layout: ComponentLayout) -> str:
    """A part and what moves with it, for errors."""
    count = len(layout.part_ids)
    return f"part {part_id}" + (f" with its component of {count} parts" if count > 1 else "")
