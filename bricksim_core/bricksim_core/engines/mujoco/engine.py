# SPDX-License-Identifier: Apache-2.0
"""The MuJoCo engine: one composite free body per component.

A connected component is rigid by definition, so it is one body that carries the boxes of its
bricks, less those that others enclose: no welds, no drift, exact momenta. A change of the topology
changes the model in place (`pool`) and touches no other body; where that has no room left, a larger
model is compiled and every other body's state carried over bit by bit.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.boxes import Boxes, brick_boxes, penetrating
from bricksim_core.engines.contact_lists import join_contacts, no_contacts
from bricksim_core.engines.mujoco.bodies import Body, make_body, wxyz
from bricksim_core.engines.mujoco.contact import ContactParameters, ContactReader
from bricksim_core.engines.mujoco.creeping import Creep
from bricksim_core.engines.mujoco.drives import DriveState, StepDrives, resting_drives
from bricksim_core.engines.mujoco.index import SceneIndex, make_index
from bricksim_core.engines.mujoco.masking import look_ahead
from bricksim_core.engines.mujoco.pairs import (
    YIELD_TIME,
    Geom,
    GeomPair,
    Yielding,
    set_margins,
    set_pairs,
)
from bricksim_core.engines.mujoco.pool import Pool
from bricksim_core.engines.mujoco.probe import Penetration, penetrations
from bricksim_core.engines.mujoco.robots import Robot, RobotIndex, index_robot, load_robot
from bricksim_core.engines.mujoco.specification import (
    MOST_BODIES,
    Capacity,
    SceneOptions,
    compile_spec,
    scene_spec,
)
from bricksim_core.engines.mujoco.spinning import load_spin, turn_spun
from bricksim_core.engines.mujoco.stepping import (
    NEARLY_ASLEEP,
    Resting,
    StepLength,
    all_below,
    carry_gripped,
    count_once,
    hit_parts,
    lull,
    read_moved,
    read_state,
    repeated,
    step_cost,
    step_on_corners,
    step_parts,
    write_state,
)
from bricksim_core.engines.protocol import (
    BODY_SHAPE,
    MAX_POSITION,
    MAX_SPEED,
    NO_PART,
    STUD_SHAPE,
    BodySpec,
    Contacts,
    JointState,
    RobotSpec,
    StepParts,
    StepReport,
    require_world,
)
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray
from bricksim_core.values import as_number

# MuJoCo would write its warnings to a file in the working directory.
mujoco.set_mju_user_warning(logging.getLogger(__name__).warning)


@dataclass(frozen=True, eq=False)
class _Snapshot:
    owner: object
    bodies: dict[int, Body]
    robots: dict[str, Robot]
    drives: dict[str, DriveState]
    seated: frozenset[tuple[int, int]]
    yielding: dict[GeomPair, Yielding]
    pair_rows: dict[GeomPair, int]
    pool: Pool
    data: mujoco.MjData
    index: SceneIndex
    poses: Array
    twists: Array
    wrenches: dict[int, Array]
    resting: Resting
    changed_to: Resting | None
    creep: Creep


class MujocoEngine:
    """MuJoCo with one composite body per component.

    Args:
        timestep: Length of one step [s].
        gravity: (3,) [m/s^2].
        ground: Height of a rigid horizontal ground plane [m], None for none.
        contact: Contact parameters.

    Raises:
        EngineError: A value is out of range or of another type.
    """

    def __init__(
        self,
        timestep: float = 1.0 / 240.0,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        ground: float | None = 0.0,
        contact: ContactParameters | None = None,
    ) -> None:
        as_number(timestep, "timestep", 0.0, 1.0, above=True, unit="s", error=EngineError)
        require_world(gravity, ground, error=EngineError)
        if not isinstance(contact, ContactParameters | None):
            raise EngineError(f"contact is {contact!r}, expected ContactParameters")
        self._contact = contact or ContactParameters()
        self._options = SceneOptions(
            float(timestep), np.array(gravity, dtype=float), ground, self._contact
        )
        self._owner = object()  # of its snapshots
        self._bodies: dict[int, Body] = {}
        self._robots: dict[str, Robot] = {}
        self._drives: dict[str, DriveState] = {}
        self._seated: frozenset[tuple[int, int]] = frozenset()
        self._yielding: dict[GeomPair, Yielding] = {}
        self._pair_rows: dict[GeomPair, int] = {}
        self._wrenches: dict[int, Array] = {}
        self._reader = ContactReader()
        self._cost = 0.0  # of the step under way
        capacity = Capacity().with_room()
        self._use(Pool(compile_spec(scene_spec(self._options, (), capacity)), capacity))
        self._data = mujoco.MjData(self._model)
        self._spare_data: mujoco.MjData | None = mujoco.MjData(self._model)
        self._index = make_index(self._pool, {}, {})
        self._poses, self._twists = read_state(self._data, self._index)
        self._resting = Resting(np.zeros(0, dtype=np.bool_), no_contacts(self._index.geoms.names))
        # What rests since the last edit, until a step has seen it.
        self._changed_to: Resting | None = self._resting
        self._creep = self._no_creep()

    # -- reading ----------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return float(self._data.time)

    @property
    def timestep(self) -> float:
        """Length of one step [s]."""
        return self._options.timestep

    @property
    def contact_time(self) -> float:
        """Time constant of contacts [s]: the set one, or two steps if that is more."""
        return self._contact.duration(self.timestep)

    @property
    def gravity(self) -> Array:
        """(3,) gravity [m/s^2], world."""
        return self._options.gravity

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model, for rendering and debugging. Read only."""
        return self._model

    @property
    def data(self) -> mujoco.MjData:
        """Its state, for rendering and debugging. Read only."""
        return self._data

    @property
    def component_ids(self) -> IntArray:
        """(K,) sorted ids of all components."""
        return self._index.ids

    @property
    def poses(self) -> Array:
        """(K, 4, 4) world_T_component [m], by `component_ids`."""
        return self._poses

    @property
    def twists(self) -> Array:
        """(K, 6) COM linear and angular velocity, world [m/s, rad/s], by `component_ids`."""
        return self._twists

    # -- bodies -----------------------------------------------------------------------------

    def update(
        self,
        removed: Sequence[int],
        added: Sequence[BodySpec],
        seated: Collection[tuple[int, int]] | None = None,
    ) -> None:
        """Takes bodies out and puts bodies in; see `Engine.update`."""
        gone = set(removed)
        self._check_update(removed, gone, added)
        new = {spec.component: make_body(spec) for spec in added}
        # Of the parts that stay, those in pairs are asked for.
        here = {p for body in new.values() for p in body.spec.layout.part_ids.tolist()}
        pairs = self._seated if seated is None else frozenset(seated)
        old = {part for pair in pairs for part in pair} | {pair[1][0] for pair in self._yielding}
        components = self._index.component_of
        here |= {part for part in old if part in components and components[part] not in gone}
        pairs = frozenset(pair for pair in pairs if pair[0] in here and pair[1] in here)
        before = (self._bodies, self._seated, self._yielding)
        yielding = self._yields(here, new)
        self._bodies = {c: b for c, b in self._bodies.items() if c not in gone} | new
        self._seated, self._yielding = pairs, yielding
        needed = self._needs()
        if self._pool.capacity.holds(needed):
            self._edit([before[0][c] for c in sorted(gone)], new, self._seated ^ before[1])
            return
        try:
            self._rebuild(needed.with_room(), new)
        except Exception:
            self._bodies, self._seated, self._yielding = before
            raise

    def _check_update(
        self, removed: Sequence[int], gone: set[int], added: Sequence[BodySpec]
    ) -> None:
        if len(gone) != len(removed):
            raise EngineError(f"removed lists a component twice: {list(removed)}")
        for component in gone:
            if component not in self._bodies:
                raise EngineError(f"component {component} is not in the scene")
        taken = self._bodies.keys() - gone
        for spec in added:
            if spec.component in taken:
                raise EngineError(f"component {spec.component} is in the scene already")
            taken = taken | {spec.component}
            check_pose(spec.world_T_component, f"pose of component {spec.component}")
            if not np.all(np.isfinite(spec.twist)):
                raise EngineError(
                    f"twist of component {spec.component} is {spec.twist}, expected finite numbers"
                )

    def _yields(self, parts: set[int], new: Mapping[int, Body]) -> dict[GeomPair, Yielding]:
        """Contacts of robots that yield: those that do still, those with bodies put into links."""
        if not self._robots:
            return {}
        yielding = {
            pair: value
            for pair, value in self._yielding.items()
            if pair[1][0] in parts and self.time - value.since < YIELD_TIME
        }
        for body in new.values():
            boxes = body.boxes.take(body.exposed).moved(body.spec.world_T_component)
            for found in self._robots_in(boxes):
                part, shape = int(boxes.part_ids[found.box]), int(boxes.shapes[found.box])
                # What pressed on the link before goes on pressing.
                depth = found.depth - self._depth_now(found.geom, part, shape)
                if depth > self._contact.overlap_tolerance:
                    friction = max(self._contact.friction, self._model.geom_friction[found.geom, 0])
                    pair = (self._model.geom(found.geom).name, (part, shape))
                    yielding[pair] = Yielding(depth, self.time, float(friction))
        return yielding

    def _depth_now(self, geom: int, part_id: int, shape: int) -> float:
        """How deep [m] a robot's geom is in a brick where that is now; 0 if it is not."""
        component = self._index.component_of.get(part_id)
        if component is None:
            return 0.0
        boxes = self._bodies[component].boxes
        own = boxes.take((boxes.part_ids == part_id) & (boxes.shapes == shape))
        own = own.moved(self._poses[self._index.row_of[component]])
        found = list(penetrations(self._model, self._data, np.array([geom]), own, 0.0))
        return found[0].depth if found else 0.0

    def _needs(self) -> Capacity:
        """Room that the present scene takes."""
        bodies = self._bodies.values()
        return Capacity(
            sum(not body.spec.fixed for body in bodies),
            sum(len(body.boxes.part_ids) for body in bodies),
            len(self._seated) + len(self._yielding),
        )

    def _held(self) -> list[Body]:
        fixed = [body for body in self._bodies.values() if body.spec.fixed]
        return sorted(fixed, key=lambda body: body.spec.component)

    def _edit(
        self, gone: Sequence[Body], new: Mapping[int, Body], seats: Collection[tuple[int, int]]
    ) -> None:
        """Changes the model in place; `seats` are pairs that began or ended."""
        another = self._shared
        if another:
            self._use(self._pool.copy())
        pool, data, old = self._pool, self._data, self._index
        fixed = [b for b in (*gone, *new.values()) if b.spec.fixed]
        free = [b for b in new.values() if not b.spec.fixed]
        leaving = [b.spec.component for b in gone if not b.spec.fixed]
        if another or gone or new:
            pool.assign(data, leaving, free, self._held() if fixed else None)
            self._index = make_index(pool, self._bodies, old.robots)
        self._set_pairs()
        self._wrenches = {p: w for p, w in self._wrenches.items() if p in self._index.component_of}
        changed = np.concatenate(
            [np.zeros(0, dtype=np.int64)] + [b.spec.layout.part_ids for b in (*gone, *new.values())]
        )
        alive = self._index.component_of
        disturbed = {alive[part] for pair in seats for part in pair if part in alive}
        if fixed:
            disturbed |= self._resting_at(fixed)
            disturbed |= self._reached_by([b for b in new.values() if b.spec.fixed])
        self._resting = self._changed_to = self._resting.without(old, self._index, changed)
        pool.wake(data, disturbed)
        for body in free:
            self._place(body)
        self._poses, self._twists = read_state(data, self._index)
        self._creep = self._no_creep()

    def _no_creep(self) -> Creep:
        """The bodies that there are, before they have crept."""
        contact, gravity = self._contact, float(np.linalg.norm(self._options.gravity))
        return Creep(
            len(self._index.free),
            gravity if contact.friction > 0.0 else 0.0,
            self.timestep,
            contact.sleep_velocity,
        )

    def _resting_at(self, fixed: Sequence[Body]) -> set[int]:
        """Components that sleep on or at bodies that the world holds or held."""
        index = self._index
        parts = np.concatenate([body.spec.layout.part_ids for body in fixed])
        touching = self._resting.touching(parts)
        return {index.component_of[p] for p in touching if p in index.component_of}

    def _reached_by(self, fixed: Sequence[Body]) -> set[int]:
        """Free components that bodies which the world holds may have been put into: MuJoCo does not
        compare what sleeps with these."""
        index, found = self._index, np.zeros(len(self._index.free), dtype=np.bool_)
        centres, reach = self._data.qpos[index.qpos[:, :3]], index.around.reach[:-1]
        for body in fixed:
            boxes = body.boxes.moved(body.spec.world_T_component)
            low = (boxes.centres - boxes.reach).min(axis=0) - centres
            high = centres - (boxes.centres + boxes.reach).max(axis=0)
            apart = np.linalg.norm(np.maximum(np.maximum(low, high), 0.0), axis=1)
            found |= apart <= reach
        return set(index.ids[index.free[found]].tolist())

    def _use(self, pool: Pool) -> None:
        """Goes on with another model."""
        self._pool, self._model, self._shared = pool, pool.model, False
        self._length = StepLength(pool.model, self._contact)

    def _set_pairs(self) -> None:
        pool = self._pool
        self._pair_rows = set_pairs(
            pool.model, self._seated, self._yielding, self._contact, self._find, pool.unused_geom
        )

    def _find(self, geoms: Sequence[Geom]) -> NDArray[np.intp]:
        """Geoms of the model."""
        found = np.zeros(len(geoms), dtype=np.intp)
        bricks = [i for i, geom in enumerate(geoms) if not isinstance(geom, str)]
        if bricks:
            found[bricks] = self._pool.geoms([g for g in geoms if not isinstance(g, str)])
        for i, geom in enumerate(geoms):
            if isinstance(geom, str):
                found[i] = self._model.geom(geom).id
        return found

    def _rebuild(self, capacity: Capacity, new: Mapping[int, Body]) -> None:
        """Compiles a model with room for more and carries the state over.

        Raises:
            EngineError: It would be too large, or MuJoCo refuses.
        """
        if capacity.bodies > MOST_BODIES:
            raise EngineError(
                f"room for {capacity.bodies} free components is asked for, expected at most"
                f" {MOST_BODIES}"
            )
        model = compile_spec(scene_spec(self._options, self._robots.values(), capacity))
        data, old_data, old_index = mujoco.MjData(model), self._data, self._index
        pool = Pool(model, capacity)
        pool.assign(data, (), [b for b in self._bodies.values() if not b.spec.fixed], self._held())
        data.xfrc_applied[:] = 0.0
        data.time = old_data.time
        self._use(pool)
        robots = {name: index_robot(model, robot) for name, robot in self._robots.items()}
        self._data, self._spare_data = data, mujoco.MjData(model)
        self._index = make_index(pool, self._bodies, robots)
        self._set_pairs()
        self._wrenches = {p: w for p, w in self._wrenches.items() if p in self._index.component_of}
        self._carry_over(old_data, old_index, new)
        self._poses, self._twists = read_state(data, self._index)
        asleep = np.zeros(len(self._index.free), dtype=np.bool_)
        self._resting = self._changed_to = Resting(asleep, no_contacts(self._index.geoms.names))
        self._creep = self._no_creep()

    def _carry_over(
        self, old_data: mujoco.MjData, old_index: SceneIndex, new: Mapping[int, Body]
    ) -> None:
        """State of the bodies that stay, bit by bit, and of the new ones as given."""
        index, data = self._index, self._data
        for body in new.values():
            if not body.spec.fixed:
                self._place(body)
        kept = [c for c in index.free_row if c not in new]
        now = np.array([index.free_row[c] for c in kept], dtype=np.intp)
        old = np.array([old_index.free_row[c] for c in kept], dtype=np.intp)
        data.qpos[index.qpos[now]] = old_data.qpos[old_index.qpos[old]]
        data.qvel[index.dof[now]] = old_data.qvel[old_index.dof[old]]
        data.qacc_warmstart[index.dof[now]] = old_data.qacc_warmstart[old_index.dof[old]]
        # What slept goes through one step awake, to see whether its support is still there.
        slept = self._resting.asleep[old]
        data.tree_asleep[index.tree[now][slept]] = NEARLY_ASLEEP
        for name, place in old_index.robots.items():
            here = index.robots[name]
            data.qpos[here.qpos] = old_data.qpos[place.qpos]
            data.qvel[here.dof] = old_data.qvel[place.dof]
            data.qacc_warmstart[here.dof] = old_data.qacc_warmstart[place.dof]

    def _place(self, body: Body) -> None:
        """Writes the state of a free body as its specification gives it."""
        index, data, spec = self._index, self._data, body.spec
        row = index.free_row[spec.component]
        pose = spec.world_T_component @ body.component_T_body
        spin = spec.twist[3:] @ pose[:3, :3]
        _write_state(
            data.qpos, data.qvel, data.qacc_warmstart, index.qpos[row], index.dof[row],
            pose, wxyz(pose[:3, :3]), spec.twist, spin,
        )  # fmt: skip

    # -- stepping ---------------------------------------------------------------------------

    def apply_wrench(self, part_id: int, wrench: Array) -> None:
        """Applies a wrench at a brick's COM in the next step; see `Engine.apply_wrench`."""
        if part_id not in self._index.component_of:
            raise EngineError(f"part {part_id} is not in the scene")
        wrench = np.asarray(wrench, dtype=float)
        if wrench.shape != (6,) or not np.all(np.isfinite(wrench)):
            raise EngineError(f"wrench on part {part_id} is {wrench}, expected six finite numbers")
        self._wrenches[part_id] = self._wrenches.get(part_id, 0.0) + wrench

    def step(self) -> StepReport:
        """Advances by one time step; see `Engine.step`."""
        data, index = self._data, self._index
        resting, start = self._resting, data.time
        previous = (self._poses, self._twists)
        self._cost = 0.0
        parts = None
        if self._nothing_moves():
            fresh, contacts = index.geoms.no_contacts, resting.contacts
        else:
            pushed = self._pushed()
            parts, lulled = self._advance_lulling()
            fresh = self._reader.contacts(index.geoms)
            borne = fresh if lulled is None else self._creep.borne(index, lulled, fresh)
            self._resting, kept = resting.after(data, index, borne)
            # Of a divided step the contacts are told part by part, as they were.
            if borne is not fresh and parts is None:
                fresh, contacts = borne, join_contacts([borne, kept])
            else:
                contacts = self._reader.followed_by(index.geoms, kept) if len(kept) else fresh
            if self._contact.sleep_velocity > 0.0:
                self._creep.observe(data, index, fresh, pushed)
        data.time = start + self.timestep
        still = resting.asleep & self._resting.asleep
        if parts is None:
            self._poses, self._twists = read_moved(data, index, still, *previous)
        else:
            self._poses, self._twists = parts.world_T_component[-1], parts.twist[-1]
        if len(index.ids) > len(index.free):
            still = self._with_held(still, fresh, resting)
        self._changed_to = None
        return StepReport(
            time=self.time,
            dt=self.timestep,
            component_ids=index.ids,
            world_T_component=self._poses,
            twist=self._twists,
            previous_world_T_component=previous[0],
            previous_twist=previous[1],
            contacts=contacts,
            still=still,
            fresh=fresh,
            parts=parts,
            cost=self._cost,
        )

    def _with_held(
        self, still: NDArray[np.bool_], fresh: Contacts, before: Resting
    ) -> NDArray[np.bool_]:
        """(K,) which components are still, given (F,) which of the free ones are.

        What the world holds is still if its contacts are: those that rest, and no others.
        """
        index = self._index
        components = np.full(
            len(index.ids), self._resting is before and before is not self._changed_to
        )
        components[index.free] = still
        touched = np.concatenate([fresh.part_a, fresh.part_b])
        touched = np.unique(touched[touched != NO_PART])
        for part in touched[index.free_of(touched) < 0].tolist():
            components[index.row_of[index.component_of[part]]] = False
        return components

    def _nothing_moves(self) -> bool:
        """Whether a step would change the time and nothing else: everything sleeps and is not
        pushed."""
        return (
            not self._robots
            and not self._wrenches
            and self._resting.everything
            and not self._data.xfrc_applied.any()
        )

    def _pushed(self) -> NDArray[np.bool_]:
        """(F,) which free components a wrench acts on in the next step."""
        index, found = self._index, np.zeros(len(self._index.free), dtype=np.bool_)
        for part_id in self._wrenches:
            row = index.free_row.get(index.component_of[part_id])
            if row is not None:
                found[row] = True
        return found

    def _advance_lulling(self) -> tuple[StepParts | None, NDArray[np.bool_] | None]:
        """One step, in which what only creeps may fall asleep; see `_advance_parts`.

        Returns:
            The parts for the sake of a hit, and (F,) which bodies fell asleep because they only
            crept, if any.
        """
        if not self._creep.some:
            return self._advance_parts(), None
        model, data, tree = self._model, self._data, self._index.tree
        tired = self._creep.tired & (data.tree_asleep[tree] < 0)
        usual = model.opt.sleep_tolerance
        model.opt.sleep_tolerance = lull(data.tree_asleep, tree[tired])
        try:
            parts = self._advance_parts()
        finally:
            model.opt.sleep_tolerance = usual
        lulled = tired & (data.tree_asleep[tree] >= 0)
        return parts, lulled if lulled.any() else None

    def _advance_parts(self) -> StepParts | None:
        """One step, in as many parts as its wrenches and hits want.

        Returns:
            The parts for the sake of a hit.

        Raises:
            EngineError: The state became unstable; it is as before then, but nothing sleeps.
        """
        data, index = self._data, self._index
        saved = (data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy(), data.time)
        asleep, woken = data.tree_asleep.copy(), ()
        drives = {name: state.copy() for name, state in self._drives.items()}
        parts = step_parts(self._load_wrenches(), self.timestep)
        set_margins(self._model, self._pair_rows, self._yielding, self.time)
        self._reader.clear()
        try:
            if parts > 1:
                dt = self._length.set(parts)
                for i in range(parts):
                    count_once(data.tree_asleep, asleep, i + 1 == parts)
                    self._look_ahead(dt, hits=False)
                    self._advance(dt)
                return None
            hit = self._look_ahead(self.timestep, hits=True)
            parts = hit_parts(self.timestep, self._contact, hit)
            if parts == 1:
                self._advance(self.timestep)
                return None
            dt = self._length.set(parts, stiffer=False)
            poses, twists = repeated(self._poses, parts + 1), repeated(self._twists, parts + 1)
            first = np.zeros(parts + 1, dtype=np.int64)
            for i in range(1, parts + 1):
                count_once(data.tree_asleep, asleep, i == parts)
                # What is alone needs nothing in a part of a step.
                if not index.around.alone:
                    self._look_ahead(dt, hits=False)
                first[i] = self._advance(dt).stop
                write_state(data, index, poses[i], twists[i])
            return StepParts(poses, twists, first)
        except EngineError:
            data.qpos[:], data.qvel[:], data.qacc_warmstart[:], data.time = saved
            self._drives = drives
            woken = index.free_row  # by the edits before, or by now
            raise
        finally:
            self._length.set(1)
            data.xfrc_applied[:] = 0.0
            self._wrenches = {}
            self._pool.wake(data, woken)

    def _look_ahead(self, dt: float, hits: bool) -> float:
        """Makes the model ready for a step; returns how hard a component with connections hits
        something in it, if asked for; see `masking.look_ahead`."""
        if self._robots:  # speculative contacts stay on
            return 0.0
        index, ground = self._index, self._options.ground
        height = -np.inf if ground is None else ground
        return look_ahead(
            self._model, self._data, index.around, index.qpos, index.dof, height, dt, hits
        )

    def _advance(self, dt: float) -> slice:
        """One MuJoCo step; returns which of the contacts that were read are its own.

        Raises:
            EngineError: The state is not finite or absurdly fast.
        """
        model, data, index = self._model, self._data, self._index
        free_spin = load_spin(data.qvel, index.spin, index.moments, dt, data.qfrc_applied)
        before = data.qpos.copy() if self._robots or len(free_spin) else None
        drives = self._load_drives(dt)
        patches = None
        if self._robots:
            mujoco.mj_step(model, data)
        else:
            patches = step_on_corners(model, data, index.geoms)
        self._cost += step_cost(data, len(index.part_ids))
        if not all_below(data.qvel, MAX_SPEED):
            self._require_stable()
        if before is not None and len(free_spin):
            turn_spun(
                before, data.qvel, index.qpos, index.spin, free_spin, dt, data.qfrc_constraint,
                data.qpos,
            )  # fmt: skip
        for robot, drive in drives:
            drive.finish(data.qacc[robot.dof])
        rows = self._reader.read(data, index.geoms, dt, patches)
        if before is not None and self._robots:
            contacts = self._reader.contacts(index.geoms, rows)
            carry_gripped(model, data, index, contacts, before, dt)
        return rows

    def _require_stable(self) -> None:
        """Raises the error that something is too fast, if it is (NaN is)."""
        index = self._index
        twists = self._data.qvel[index.dof].reshape(-1, 2, 3)
        with np.errstate(over="ignore"):
            linear, angular = np.linalg.norm(twists, axis=2).T
        speed = linear + angular * index.around.reach[:-1]
        fast = np.flatnonzero(~(speed < MAX_SPEED))[:5]
        culprits = [
            f"component {component} at {value:.4g} m/s"
            for component, value in zip(
                index.ids[index.free[fast]].tolist(), speed[fast].tolist(), strict=True
            )
        ]
        culprits += [
            f"robot {name!r}"
            for name, robot in index.robots.items()
            if not all_below(self._data.qvel[robot.dof], MAX_SPEED)
        ]
        if culprits:
            raise EngineError(
                f"the state became unstable in the step to {self.time:.4f} s:"
                f" {', '.join(culprits)}, expected less than {MAX_SPEED:.0f} m/s (joints: rad/s)"
            )

    def _load_wrenches(self) -> float:
        """Hands wrenches to MuJoCo; returns the greatest force over mass [m/s^2]."""
        index, applied = self._index, self._data.xfrc_applied
        greatest = 0.0
        for part_id, wrench in self._wrenches.items():
            component = index.component_of[part_id]
            if component not in index.free_row:
                continue
            body = self._bodies[component]
            layout = body.spec.layout
            com = layout.coms[np.searchsorted(layout.part_ids, part_id)]
            arm = self._poses[index.row_of[component], :3, :3] @ (com - body.mass.com)
            row = applied[index.body[index.free_row[component]]]
            row[:3] += wrench[:3]
            row[3:] += wrench[3:] + np.cross(arm, wrench[:3])
            greatest = max(greatest, math.hypot(*row[:3]) / body.mass.mass)
        return greatest

    def _load_drives(self, dt: float) -> list[tuple[RobotIndex, StepDrives]]:
        steps = []
        for name, robot in self._index.robots.items():
            position, velocity = self._data.qpos[robot.qpos], self._data.qvel[robot.dof]
            constants = self._robots[name].drives
            step = StepDrives(constants, self._drives[name], position, velocity, dt)
            self._data.qfrc_applied[robot.dof] = step.force
            self._model.dof_armature[robot.dof] = step.armature
            steps.append((robot, step))
        return steps

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self) -> object:
        """The complete state; see `Engine.snapshot`."""
        pool, index = self._pool, self._index
        if pool.has_spare:  # no edit has to wait for a copy then
            pool = pool.copy()
            index = make_index(pool, self._bodies, index.robots)
        else:
            self._shared = True  # the model is copied when it changes next
        return _Snapshot(
            owner=self._owner,
            bodies=dict(self._bodies),
            robots=dict(self._robots),
            drives={name: state.copy() for name, state in self._drives.items()},
            seated=self._seated,
            yielding=dict(self._yielding),
            pair_rows=self._pair_rows,
            pool=pool,
            data=self._copied_data(),
            index=index,
            poses=self._poses,
            twists=self._twists,
            wrenches=dict(self._wrenches),
            resting=self._resting,
            changed_to=self._changed_to,
            creep=self._creep.copy(),
        )

    def _copied_data(self) -> mujoco.MjData:
        """The state once more: at first in what was made for it when the model was compiled, for
        that takes a good part of the first frame."""
        copied, self._spare_data = self._spare_data, None
        if copied is None:
            return copy.copy(self._data)
        mujoco.mj_copyData(copied, self._model, self._data)
        return copied

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot; see `Engine.restore`."""
        if not isinstance(snapshot, _Snapshot) or snapshot.owner is not self._owner:
            what = "one of another" if isinstance(snapshot, _Snapshot) else type(snapshot).__name__
            raise EngineError(f"restore got {what}, expected a snapshot of this engine")
        self._bodies = dict(snapshot.bodies)
        self._robots = dict(snapshot.robots)
        self._drives = {name: state.copy() for name, state in snapshot.drives.items()}
        self._seated, self._yielding = snapshot.seated, dict(snapshot.yielding)
        self._pair_rows = snapshot.pair_rows
        self._use(snapshot.pool)
        self._shared = True
        self._data, self._spare_data = copy.copy(snapshot.data), None
        self._index = snapshot.index
        self._poses, self._twists = snapshot.poses, snapshot.twists
        self._wrenches = dict(snapshot.wrenches)
        self._resting, self._changed_to = snapshot.resting, snapshot.changed_to
        self._creep = snapshot.creep.copy()

    # -- queries ----------------------------------------------------------------------------

    def overlaps(
        self, bodies: Sequence[BodySpec], ignore: Sequence[int] = (), *, robots: bool = True
    ) -> NDArray[np.bool_]:
        """For each body: would it penetrate anything in the scene; see `Engine.overlaps`."""
        index, tolerance = self._index, self._contact.overlap_tolerance
        pool = self._pool
        used = pool.used
        used = used[~np.isin(pool.box_component[used], list(ignore))]
        rows = np.searchsorted(index.ids, pool.box_component[used])
        scene = pool.boxes(used).moved(self._poses[rows])
        ground = -np.inf if self._options.ground is None else self._options.ground - tolerance
        answers = np.zeros(len(bodies), dtype=np.bool_)
        for i, body in enumerate(bodies):
            boxes = brick_boxes(body.layout).moved(body.world_T_component)
            lowest = (boxes.centres - boxes.reach)[:, 2].min(initial=np.inf)
            answers[i] = (
                (not body.fixed and lowest < ground)
                or self._bricks_collide(boxes, scene)
                or (robots and any(True for _ in self._robots_in(boxes)))
            )
        return answers

    def _bricks_collide(self, boxes: Boxes, scene: Boxes) -> bool:
        first, second, _ = penetrating(boxes, scene, self._contact.overlap_tolerance)
        for i, j in zip(first, second, strict=True):
            a, b = (int(boxes.part_ids[i]), int(scene.part_ids[j]))
            shapes = (boxes.shapes[i], scene.shapes[j])
            seated = (shapes == (STUD_SHAPE, BODY_SHAPE) and (a, b) in self._seated) or (
                shapes == (BODY_SHAPE, STUD_SHAPE) and (b, a) in self._seated
            )
            if not seated:
                return True
        return False

    def _robots_in(self, boxes: Boxes) -> Sequence[Penetration]:
        """Robots' geoms in boxes of the world."""
        if not self._robots:
            return ()
        mujoco.mj_kinematics(self._model, self._data)
        tolerance = self._contact.overlap_tolerance
        geoms = self._index.robot_geoms
        return list(penetrations(self._model, self._data, geoms, boxes, tolerance))

    # -- robots -----------------------------------------------------------------------------

    def add_robot(self, robot: RobotSpec) -> None:
        """Adds a robot at rest; see `Engine.add_robot`."""
        if robot.name in self._robots:
            raise EngineError(f"a robot named {robot.name} is in the scene already")
        if not robot.name or "/" in robot.name:
            raise EngineError(f"robot name is {robot.name!r}, expected a word without a slash")
        check_pose(robot.world_T_base, f"base pose of robot {robot.name}")
        loaded = load_robot(robot)
        self._robots[robot.name] = loaded
        try:
            self._rebuild(self._pool.capacity, {})
        except Exception:
            del self._robots[robot.name]
            raise
        self._drives[robot.name] = resting_drives(len(loaded.joints))
        start = dict.fromkeys(loaded.joints, 0.0) | dict(robot.joint_positions)
        self.set_joint_positions(robot.name, start)

    def joint_state(self, robot: str) -> JointState:
        """State of all joints of a robot that can move; see `Engine.joint_state`."""
        index, data = self._robot(robot), self._data
        return JointState(
            self._robots[robot].joints,
            data.qpos[index.qpos],
            data.qvel[index.dof],
            self._drives[robot].effort.copy(),
        )

    def set_joint_targets(self, robot: str, targets: Mapping[str, float]) -> None:
        """Sets position targets of driven joints; see `Engine.set_joint_targets`."""
        self._robot(robot)
        loaded = self._robots[robot]
        rows = {name: i for i, name in enumerate(loaded.joints) if name in loaded.spec.drives}
        _check_joints(robot, targets, rows)
        for name, target in targets.items():
            self._drives[robot].target[rows[name]] = target

    def set_joint_positions(self, robot: str, positions: Mapping[str, float]) -> None:
        """Puts joints to rest at positions; see `Engine.set_joint_positions`."""
        index, loaded, data = self._robot(robot), self._robots[robot], self._data
        rows = {name: i for i, name in enumerate(loaded.joints)}
        _check_joints(robot, positions, rows)
        values = dict(positions)
        for mimic in loaded.mimics:
            if mimic.leader in positions:
                values[mimic.joint] = mimic.multiplier * positions[mimic.leader] + mimic.offset
        state = self._drives[robot]
        for name, value in values.items():
            row = rows[name]
            data.qpos[index.qpos[row]] = value
            data.qvel[index.dof[row]] = 0.0
            data.qacc_warmstart[index.dof[row]] = 0.0
            state.target[row] = state.set_point[row] = value
            state.effort[row] = state.acceleration[row] = 0.0

    def link_pose(self, robot: str, link: str) -> Array:
        """(4, 4) world_T_link [m]; see `Engine.link_pose`."""
        index, loaded = self._robot(robot), self._robots[robot]
        if link not in loaded.links:
            raise EngineError(
                f"robot {robot} has no link {link}, expected one of {', '.join(loaded.links)}"
            )
        if link not in index.bodies:  # MuJoCo makes a root link "world" its own world
            return np.array(loaded.spec.world_T_base, dtype=float)
        # The step leaves the kinematics of its start behind.
        mujoco.mj_kinematics(self._model, self._data)
        pose = np.eye(4)
        pose[:3, :3] = self._data.xmat[index.bodies[link]].reshape(3, 3)
        pose[:3, 3] = self._data.xpos[index.bodies[link]]
        return pose

    def close(self) -> None:
        """Nothing to free: MuJoCo's objects go with this one."""

    def _robot(self, name: str) -> RobotIndex:
        if name not in self._robots:
            known = ", ".join(self._robots) or "none"
            raise EngineError(f"there is no robot {name}, expected one of: {known}")
        return self._index.robots[name]


def _check_joints(robot: str, values: Mapping[str, float], known: Collection[str]) -> None:
    for name, value in values.items():
        if name not in known:
            raise EngineError(
                f"robot {robot} has no such joint as {name}, expected one of {', '.join(known)}"
            )
        if not (isinstance(value, float) and abs(value) <= MAX_POSITION):  # else quick
            shown = f"{name} of robot {robot}"
            as_number(value, shown, -MAX_POSITION, MAX_POSITION, error=EngineError)


def check_pose(pose: Array, name: str) -> None:
    """Checks that a pose is finite and rigid.

    Raises:
        EngineError: It is not.
    """
    pose = np.ascontiguousarray(pose, dtype=np.float64)
    if pose.shape == (4, 4) and _rigid(pose):
        return
    wanted = "a rotation and a translation"
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        wanted = "a finite 4x4 matrix"
    raise EngineError(f"{name} is {pose.tolist()}, expected {wanted}")


@compiled
def _write_state(
    qpos: Array,
    qvel: Array,
    warmstart: Array,
    at: NDArray[np.intp],
    dof: NDArray[np.intp],
    pose: Array,
    quaternion: Array,
    twist: Array,
    spin: Array,
) -> None:
    """Writes the state of a free body.

    Args:
        qpos: Positions of the model, to be written, as are the next two.
        qvel: Its velocities.
        warmstart: Where its solver starts from.
        at: (7,) addresses of the body's position.
        dof: (6,) those of its velocity.
        pose: (4, 4) [m].
        quaternion: (4,) in MuJoCo's order.
        twist: (6,) COM linear and angular velocity, world [m/s, rad/s].
        spin: (3,) angular velocity in the body's frame [rad/s].
    """
    for i in range(3):
        qpos[at[i]] = pose[i, 3]
        qvel[dof[i]], qvel[dof[3 + i]] = twist[i], spin[i]
    for i in range(4):
        qpos[at[3 + i]] = quaternion[i]
    for i in range(6):
        warmstart[dof[i]] = 0.0


@compiled
def _rigid(pose: Array) -> bool:
    """Whether a (4, 4) matrix is finite, a rotation and a translation."""
    error = volume = 0.0
    if not np.isfinite(pose).all():
        return False
    for i in range(3):
        for j in range(3):
            product = 0.0
            for k in range(3):
                product += pose[i, k] * pose[j, k]
            error = max(error, abs(product - (1.0 if i == j else 0.0)))
        m, n = (i + 1) % 3, (i + 2) % 3
        volume += pose[0, i] * (pose[1, m] * pose[2, n] - pose[1, n] * pose[2, m])
    last = abs(pose[3, 0]) + abs(pose[3, 1]) + abs(pose[3, 2]) + abs(pose[3, 3] - 1.0)
    return error <= 1e-6 and volume > 0.0 and last <= 1e-9
