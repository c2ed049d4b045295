# SPDX-License-Identifier: Apache-2.0
"""The MuJoCo engine: one composite free body per component.

A connected component is rigid by definition, so it is one body that carries the boxes of all its
bricks: no welds, no drift, exact momenta. A change of the topology compiles a new model and carries
every other body's state over bit by bit.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.boxes import Boxes, brick_boxes, concatenate, penetrating
from bricksim_core.engines.mujoco.bodies import (
    Body,
    add_body,
    geom_name,
    make_body,
    rotations,
    wxyz,
)
from bricksim_core.engines.mujoco.carrying import carrier, carry
from bricksim_core.engines.mujoco.contact import (
    ContactParameters,
    GeomTable,
    join_contacts,
    no_contacts,
    read_contacts,
    take_contacts,
)
from bricksim_core.engines.mujoco.drives import (
    DriveState,
    StepDrives,
    resting_drives,
)
from bricksim_core.engines.mujoco.probe import add_probe
from bricksim_core.engines.mujoco.robots import (
    Robot,
    RobotIndex,
    attach_robot,
    index_robot,
    load_robot,
)
from bricksim_core.engines.mujoco.spinning import SLOW, spin_torque
from bricksim_core.engines.protocol import (
    BODY_SHAPE,
    NO_PART,
    STUD_SHAPE,
    BodySpec,
    Contacts,
    JointState,
    RobotSpec,
    StepReport,
)
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology.layout import IntArray

GROUND = "ground"
"""Name of the ground plane, among contacts' names and geoms."""

_MAX_SPEED = 1e3
"""Speed [m/s, rad/s x 1 m] above which a state counts as unstable; a dropped brick does 10."""
_OPEN = -1.0
"""Contact margin [m] of a seated pair: it would touch only when this deep."""
_FREE_MOVE = 3e-4
"""Distance [m] that a wrench may move a body in one MuJoCo step before contacts are looked for."""
_MOST_PARTS = 16
_NUDGE = 1e-30
"""Force [N] that wakes a sleeping body and does nothing else."""
_NEARLY_ASLEEP = -2
"""MuJoCo's count (`tree_asleep`) of a body that falls asleep after one more quiet step."""


@dataclass(frozen=True, eq=False)
class _Index:
    """Where the compiled model keeps what; K components sorted by id, F of them free.

    Attributes:
        ids: (K,) component ids.
        free: (F,) rows of the free ones.
        qpos: (F, 7) addresses of their positions.
        dof: (F, 6) addresses of their velocities.
        tree: (F,) their kinematic trees.
        body_T_component: (F, 4, 4).
        moments: (F, 3) principal moments of inertia [kg m^2].
        fixed_pose: (K, 4, 4) poses of the fixed ones, identity elsewhere.
        row_of: Row by component id.
        component_of: Component id by part id.
        part_ids: (N,) sorted part ids.
        part_free: (N,) which of the free components has each, -1: a fixed one.
        geoms: What each geom stands for.
        boxes: Colliders of all bricks in their component frames.
        box_row: (B,) component row of each.
        seated: Index of the contact pair of each seated pair.
        robots: Where the robots are.
    """

    ids: IntArray
    free: NDArray[np.intp]
    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]
    tree: NDArray[np.intp]
    body_T_component: Array
    moments: Array
    fixed_pose: Array
    row_of: dict[int, int]
    component_of: dict[int, int]
    part_ids: IntArray
    part_free: NDArray[np.intp]
    geoms: GeomTable
    boxes: Boxes
    box_row: NDArray[np.intp]
    seated: dict[tuple[int, int], int]
    robots: dict[str, RobotIndex]

    def free_of(self, part_ids: IntArray) -> NDArray[np.intp]:
        """(M,) which of the free components has each of some parts, -1: a fixed one."""
        if not len(self.part_ids):
            return np.full(len(part_ids), -1)
        place = np.searchsorted(self.part_ids, part_ids)
        return self.part_free[np.minimum(place, len(self.part_ids) - 1)]


@dataclass(frozen=True, eq=False)
class _Snapshot:
    bodies: dict[int, Body]
    robots: dict[str, Robot]
    drives: dict[str, DriveState]
    seated: frozenset[tuple[int, int]]
    model: mujoco.MjModel
    data: mujoco.MjData
    pair_margin: Array
    index: _Index
    poses: Array
    twists: Array
    wrenches: dict[int, Array]
    wake: frozenset[int]
    asleep: NDArray[np.bool_]
    resting: Contacts


class MujocoEngine:
    """MuJoCo with one composite body per component.

    Args:
        timestep: Length of one step [s].
        gravity: (3,) [m/s^2].
        ground: Height of a rigid horizontal ground plane [m], None for none.
        contact: Contact parameters.

    Raises:
        EngineError: The time step is not a positive number.
    """

    def __init__(
        self,
        timestep: float = 1.0 / 240.0,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        ground: float | None = 0.0,
        contact: ContactParameters | None = None,
    ) -> None:
        if not (np.isfinite(timestep) and timestep > 0.0):
            raise EngineError(f"timestep is {timestep} s, expected a positive number")
        self._timestep = float(timestep)
        self._gravity = np.array(gravity, dtype=float)
        self._ground = ground
        self._contact = contact or ContactParameters()
        self._bodies: dict[int, Body] = {}
        self._robots: dict[str, Robot] = {}
        self._drives: dict[str, DriveState] = {}
        self._seated: frozenset[tuple[int, int]] = frozenset()
        self._wrenches: dict[int, Array] = {}
        self._wake: set[int] = set()
        self._spec: mujoco.MjSpec | None = self._empty_spec()
        self._model = self._compile(self._spec)
        self._data = mujoco.MjData(self._model)
        self._index = self._make_index()
        self._poses, self._twists = self._read_state()
        self._asleep = np.zeros(0, dtype=np.bool_)
        self._resting = no_contacts(self._index.geoms)

    # -- reading ----------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return float(self._data.time)

    @property
    def timestep(self) -> float:
        """Length of one step [s]."""
        return self._timestep

    @property
    def contact_time(self) -> float:
        """Time constant of contacts [s]: the set one, or two steps if that is more."""
        return max(self._contact.time_constant, 2.0 * self._timestep)

    @property
    def gravity(self) -> Array:
        """(3,) gravity [m/s^2], world."""
        return self._gravity

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
        bodies = {c: b for c, b in self._bodies.items() if c not in gone}
        new = {spec.component: make_body(spec) for spec in added}
        bodies.update(new)
        pairs = self._seated if seated is None else frozenset(seated)
        parts = {int(p) for b in bodies.values() for p in b.spec.layout.part_ids}
        pairs = frozenset(pair for pair in pairs if pair[0] in parts and pair[1] in parts)
        opened = pairs - self._index.seated.keys()
        if not opened and gone == new.keys() and all(map(self._only_moves, added)):
            self._change_seated(pairs)
            self._move(new)
            return
        before = (self._bodies, self._seated)
        self._bodies, self._seated = bodies, pairs
        try:
            self._edit_spec(gone, new)
            self._recompile(new)
        except Exception:
            self._bodies, self._seated = before
            self._spec = None
            raise

    def _only_moves(self, spec: BodySpec) -> bool:
        """Whether a new body is the old one at another place, so that no model is compiled."""
        old = self._bodies[spec.component].spec
        return spec.layout is old.layout and not spec.fixed and not old.fixed

    def _move(self, new: Mapping[int, Body]) -> None:
        self._bodies |= new
        for component, body in new.items():
            i = int(np.searchsorted(self._index.free, self._index.row_of[component]))
            self._place(i, body)
            self._data.qacc_warmstart[self._index.dof[i]] = 0.0
        self._wake |= new.keys() | self._neighbours(new)
        self._poses, self._twists = self._read_state()

    def _neighbours(self, components: Collection[int]) -> set[int]:
        """Components that sleep in touch with some."""
        index, resting = self._index, self._resting
        parts = [p for p, c in index.component_of.items() if c in components]
        rows = np.isin(resting.part_a, parts) | np.isin(resting.part_b, parts)
        touched = np.concatenate([resting.part_a[rows], resting.part_b[rows]])
        return {index.component_of[p] for p in touched.tolist() if p != NO_PART}

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

    def _edit_spec(self, gone: set[int], new: Mapping[int, Body]) -> None:
        spec = self._spec
        if spec is None:
            self._spec = self._full_spec()
            return
        for pair in list(spec.pairs):
            spec.delete(pair)
        for component in gone:
            spec.delete(spec.body(f"component_{component}"))
        for body in new.values():
            add_body(spec.worldbody, body)
        self._add_seated(spec)

    def _recompile(self, new: Mapping[int, Body]) -> None:
        """Compiles the specification and carries the state over."""
        assert self._spec is not None
        model = self._compile(self._spec)
        data = mujoco.MjData(model)
        old_data, old_index = self._data, self._index
        self._model, self._data = model, data
        self._index = self._make_index()
        data.time = old_data.time
        self._carry_over(old_data, old_index, new)
        self._wrenches = {p: w for p, w in self._wrenches.items() if p in self._index.component_of}
        self._wake &= self._bodies.keys()
        self._poses, self._twists = self._read_state()
        self._asleep = np.zeros(len(self._index.free), dtype=np.bool_)
        self._resting = no_contacts(self._index.geoms)

    def _carry_over(
        self, old_data: mujoco.MjData, old_index: _Index, new: Mapping[int, Body]
    ) -> None:
        """State of the bodies that stay, bit by bit, and of the new ones as given."""
        index, data = self._index, self._data
        old_row = {int(old_index.ids[row]): i for i, row in enumerate(old_index.free)}
        kept_new, kept_old = [], []
        for i, row in enumerate(index.free):
            component = int(index.ids[row])
            body = new.get(component)
            if body is None:
                kept_new.append(i)
                kept_old.append(old_row[component])
                continue
            self._place(i, body)
        data.qpos[index.qpos[kept_new]] = old_data.qpos[old_index.qpos[kept_old]]
        data.qvel[index.dof[kept_new]] = old_data.qvel[old_index.dof[kept_old]]
        data.qacc_warmstart[index.dof[kept_new]] = old_data.qacc_warmstart[old_index.dof[kept_old]]
        # What slept goes through one step awake, to see whether its support is still there.
        slept = self._asleep[kept_old]
        data.tree_asleep[index.tree[kept_new][slept]] = _NEARLY_ASLEEP
        for name, old in old_index.robots.items():
            now = index.robots[name]
            data.qpos[now.qpos] = old_data.qpos[old.qpos]
            data.qvel[now.dof] = old_data.qvel[old.dof]
            data.qacc_warmstart[now.dof] = old_data.qacc_warmstart[old.dof]

    def _place(self, i: int, body: Body) -> None:
        """Writes the state of a free body, the i-th of these, as its specification gives it."""
        index, data, spec = self._index, self._data, body.spec
        pose = spec.world_T_component @ body.component_T_body
        data.qpos[index.qpos[i, :3]] = pose[:3, 3]
        data.qpos[index.qpos[i, 3:]] = wxyz(pose)
        data.qvel[index.dof[i, :3]] = spec.twist[:3]
        data.qvel[index.dof[i, 3:]] = spec.twist[3:] @ pose[:3, :3]

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
        saved = (data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy(), data.time)
        self._load_wrenches()
        parts = self._divisions()
        dt = self._timestep / parts
        contacts = []
        try:
            self._set_step(dt)
            for _ in range(parts):
                contacts.append(self._advance(dt))
        except EngineError:
            data.qpos[:], data.qvel[:], data.qacc_warmstart[:], data.time = saved
            raise
        finally:
            self._set_step(self._timestep)
            data.xfrc_applied[:] = 0.0
            self._wrenches, self._wake = {}, set()
        if parts > 1:
            data.time = saved[3] + self._timestep
        previous_poses, previous_twists = self._poses, self._twists
        self._poses, self._twists = self._read_state()
        touching = self._with_resting(join_contacts(contacts))
        return StepReport(
            time=self.time,
            dt=self._timestep,
            component_ids=index.ids,
            world_T_component=self._poses,
            twist=self._twists,
            previous_world_T_component=previous_poses,
            previous_twist=previous_twists,
            contacts=touching,
        )

    def _advance(self, dt: float) -> Contacts:
        """One MuJoCo step.

        Raises:
            EngineError: The state is not finite or absurdly fast.
        """
        model, data = self._model, self._data
        before = data.qpos.copy()
        self._load_spin(dt)
        drives = self._load_drives(dt)
        mujoco.mj_step(model, data)
        speed = np.abs(data.qvel).max(initial=0.0)
        if not (speed < _MAX_SPEED and np.all(np.isfinite(data.qpos))):
            raise EngineError(
                f"the state became unstable in the step to {self.time:.4f} s: {self._unstable()}"
            )
        for robot, drive in drives:
            drive.finish(data.qacc[robot.dof])
        contacts = read_contacts(data, self._index.geoms, dt)
        self._carry_gripped(contacts, before, dt)
        return contacts

    def _divisions(self) -> int:
        """Into how many parts the step is taken.

        A strong wrench may throw a free brick through its neighbours within a step, before any
        contact is seen (2 N move 2 g by 16 mm in 1/240 s), and tips a brick off contacts that are
        as soft as that step allows. So the step is divided, and the contacts stiffened, until no
        wrench can move its body far in a part.
        """
        largest = 0.0
        for component in {self._index.component_of[p] for p in self._wrenches}:
            body = self._bodies[component]
            if not body.spec.fixed:
                push = self._data.body(f"component_{component}").xfrc_applied[:3]
                largest = max(largest, float(np.linalg.norm(push)) / body.mass.mass)
        parts = np.ceil(np.sqrt(largest / _FREE_MOVE) * self._timestep)
        return int(np.clip(parts, 1, _MOST_PARTS))

    def _set_step(self, dt: float) -> None:
        """Length of MuJoCo's steps; contacts get as much stiffer."""
        if self._model.opt.timestep != dt:
            ratio = dt / self._model.opt.timestep
            self._model.opt.timestep = dt
            self._model.geom_solref[:, 0] *= ratio
            self._model.pair_solref[:, 0] *= ratio
            self._model.eq_solref[:, 0] *= ratio

    def _load_wrenches(self) -> None:
        for part_id, wrench in self._wrenches.items():
            component = self._index.component_of[part_id]
            body = self._bodies[component]
            if body.spec.fixed:
                continue
            layout = body.spec.layout
            pose = self._poses[self._index.row_of[component]]
            com = layout.coms[np.searchsorted(layout.part_ids, part_id)]
            arm = pose[:3, :3] @ (com - body.mass.com)
            row = self._data.body(f"component_{component}").xfrc_applied
            row[:3] += wrench[:3]
            row[3:] += wrench[3:] + np.cross(arm, wrench[:3])
        for component in self._wake:
            if not self._bodies[component].spec.fixed:
                self._data.body(f"component_{component}").xfrc_applied[2] += _NUDGE

    def _load_spin(self, dt: float) -> None:
        """Corrects the gyroscopic torques of bodies that spin fast."""
        index, data = self._index, self._data
        angular = data.qvel[index.dof[:, 3:]]
        fast = np.flatnonzero(np.einsum("fi,fi->f", angular, angular) > (SLOW / dt) ** 2)
        data.qfrc_applied[:] = 0.0
        if len(fast):
            torque = spin_torque(index.moments[fast], angular[fast], dt)
            data.qfrc_applied[index.dof[fast, 3:]] = torque

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

    def _carry_gripped(self, contacts: Contacts, before: Array, dt: float) -> None:
        """Moves free bodies along with the robot that has at least two links on them."""
        index, data = self._index, self._data
        rows = np.flatnonzero(contacts.other > 0)  # 0 is the ground
        holding: dict[tuple[int, str], dict[str, float]] = {}
        for row in rows.tolist():
            component = index.component_of[int(contacts.part_b[row])]
            robot, link = contacts.names[contacts.other[row]].split("/", 1)
            links = holding.setdefault((component, robot), {})
            links[link] = links.get(link, 0.0) + float(contacts.normal_impulse[row])
        grips = []
        for (component, robot), links in holding.items():
            if len(links) > 1 and not self._bodies[component].spec.fixed:
                body = index.robots[robot].bodies[max(links, key=lambda name: links[name])]
                grips.append((component, carrier(self._model, data, body)))
        if not grips:
            return
        mujoco.mj_kinematics(self._model, data)
        for component, link in grips:
            qpos = index.qpos[np.searchsorted(index.free, index.row_of[component])]
            carry(data, link, qpos, before[qpos[:3]], dt)

    def _unstable(self) -> str:
        index, data = self._index, self._data
        speed = np.abs(data.qvel[index.dof]).max(axis=1, initial=0.0)
        bad = index.ids[index.free[~(speed < _MAX_SPEED)]]
        return f"components {bad[:5].tolist()}" if len(bad) else "a robot"

    def _read_state(self) -> tuple[Array, Array]:
        index, data = self._index, self._data
        poses = index.fixed_pose.copy()
        twists = np.zeros((len(index.ids), 6))
        positions, velocities = data.qpos[index.qpos], data.qvel[index.dof]
        world_T_body = np.zeros((len(positions), 4, 4))
        world_T_body[:, :3, :3] = rotations(positions[:, 3:])
        world_T_body[:, :3, 3] = positions[:, :3]
        world_T_body[:, 3, 3] = 1.0
        poses[index.free] = world_T_body @ index.body_T_component
        twists[index.free, :3] = velocities[:, :3]
        twists[index.free, 3:] = np.einsum("fij,fj->fi", world_T_body[:, :3, :3], velocities[:, 3:])
        return poses, twists

    def _with_resting(self, contacts: Contacts) -> Contacts:
        """Adds the contacts of sleeping bodies to those of a step: MuJoCo leaves them out, they
        stay as they were when the bodies fell asleep."""
        asleep = self._data.tree_asleep[self._index.tree] >= 0
        if np.array_equal(asleep, self._asleep):
            return join_contacts([contacts, self._resting])
        self._asleep = asleep
        # One more entry for what never sleeps but does not move: fixed bodies, no brick.
        still = np.append(asleep, True)
        kept = take_contacts(self._resting, self._all_still(self._resting, still))
        new = take_contacts(contacts, self._all_still(contacts, still))
        self._resting = join_contacts([kept, new])
        return join_contacts([contacts, kept])

    def _all_still(self, contacts: Contacts, still: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Contacts of sleeping bodies with sleeping or fixed ones or with what is no brick."""
        index = self._index
        a = np.where(contacts.part_a == NO_PART, -1, index.free_of(contacts.part_a))
        b = index.free_of(contacts.part_b)
        return still[a] & still[b] & ((a >= 0) | (b >= 0))

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self) -> object:
        """The complete state; see `Engine.snapshot`."""
        return _Snapshot(
            bodies=dict(self._bodies),
            robots=dict(self._robots),
            drives={name: state.copy() for name, state in self._drives.items()},
            seated=self._seated,
            model=self._model,
            data=copy.copy(self._data),
            pair_margin=self._model.pair_margin.copy(),
            index=self._index,
            poses=self._poses,
            twists=self._twists,
            wrenches=dict(self._wrenches),
            wake=frozenset(self._wake),
            asleep=self._asleep,
            resting=self._resting,
        )

    def restore(self, snapshot: object) -> None:
        """Returns to a snapshot; see `Engine.restore`."""
        if not isinstance(snapshot, _Snapshot):
            raise EngineError(f"{type(snapshot).__name__} is no snapshot of the MuJoCo engine")
        self._bodies = dict(snapshot.bodies)
        self._robots = dict(snapshot.robots)
        self._drives = {name: state.copy() for name, state in snapshot.drives.items()}
        self._seated = snapshot.seated
        self._model = snapshot.model
        self._model.pair_margin[:] = snapshot.pair_margin
        self._data = copy.copy(snapshot.data)
        self._index = snapshot.index
        self._poses, self._twists = snapshot.poses, snapshot.twists
        self._wrenches = dict(snapshot.wrenches)
        self._wake = set(snapshot.wake)
        self._asleep, self._resting = snapshot.asleep, snapshot.resting
        self._spec = None

    # -- queries ----------------------------------------------------------------------------

    def overlaps(
        self, bodies: Sequence[BodySpec], ignore: Sequence[int] = (), *, robots: bool = True
    ) -> NDArray[np.bool_]:
        """For each body: would it penetrate anything in the scene; see `Engine.overlaps`."""
        index, tolerance = self._index, self._contact.overlap_tolerance
        ignored = np.isin(index.ids, list(ignore))
        keep = ~ignored[index.box_row]
        scene = index.boxes.take(keep).moved(self._poses[index.box_row[keep]])
        answers = np.zeros(len(bodies), dtype=np.bool_)
        for i, body in enumerate(bodies):
            boxes = brick_boxes(body.layout).moved(body.world_T_component)
            lowest = (boxes.centres - boxes.reach)[:, 2].min(initial=np.inf)
            answers[i] = (
                not body.fixed and self._ground is not None and lowest < self._ground - tolerance
            ) or self._bricks_collide(boxes, scene)
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
            self._spec = self._full_spec()
            self._recompile({})
        except Exception:
            del self._robots[robot.name]
            self._spec = None
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

    # -- inside -----------------------------------------------------------------------------

    def _empty_spec(self) -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        option, contact = spec.option, self._contact
        option.timestep = self._timestep
        option.gravity = self._gravity
        option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        # Impulses then explain the change of momentum to about 1e-5.
        option.tolerance = 1e-9
        option.impratio = contact.friction_impedance_ratio
        # Velocities are then exactly those that the contact solver found; see drives.py.
        option.integrator = mujoco.mjtIntegrator.mjINT_EULER
        # Fast bodies meet what is in their way in this step instead of passing through it.
        option.enableflags |= mujoco.mjtEnableBit.mjENBL_SPECULATIVE
        # An unstable state is reported, not silently reset.
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        if contact.sleep_velocity > 0.0:
            option.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP
            option.sleep_tolerance = contact.sleep_velocity
        geom = spec.default.geom
        geom.solref = [max(contact.time_constant, 2 * self._timestep), contact.damping_ratio]
        geom.solimp = contact.solimp
        geom.friction = [contact.friction, 0.0, 0.0]
        geom.condim = 3
        if self._ground is not None:
            spec.worldbody.add_geom(
                name=GROUND,
                type=mujoco.mjtGeom.mjGEOM_PLANE,
                size=[0.0, 0.0, 1.0],
                pos=[0.0, 0.0, self._ground],
            )
        return spec

    def _full_spec(self) -> mujoco.MjSpec:
        spec = self._empty_spec()
        for robot in self._robots.values():
            attach_robot(spec, robot, self._contact, self._timestep)
        if self._robots:
            add_probe(spec)
        for body in self._bodies.values():
            add_body(spec.worldbody, body)
        self._add_seated(spec)
        return spec

    def _compile(self, spec: mujoco.MjSpec) -> mujoco.MjModel:
        try:
            return spec.compile()
        except Exception as error:
            raise EngineError(f"MuJoCo cannot build the scene: {error}") from error

    def _add_seated(self, spec: mujoco.MjSpec) -> None:
        contact = self._contact
        for below, above in sorted(self._seated):
            spec.add_pair(
                geomname1=geom_name(below, STUD_SHAPE),
                geomname2=geom_name(above, BODY_SHAPE),
                condim=3,
                friction=[contact.friction, contact.friction, 0.0, 0.0, 0.0],
                solref=[max(contact.time_constant, 2 * self._timestep), contact.damping_ratio],
                solimp=contact.solimp,
                margin=_OPEN,
                gap=0.0,
            )

    def _change_seated(self, pairs: frozenset[tuple[int, int]]) -> None:
        """Lets pairs touch that the compiled model knows as seated."""
        for pair in self._seated - pairs:
            self._model.pair_margin[self._index.seated[pair]] = 0.0
            self._wake |= {self._index.component_of[part] for part in pair}
        for pair in pairs - self._seated:
            self._model.pair_margin[self._index.seated[pair]] = _OPEN
        self._seated = pairs

    def _make_index(self) -> _Index:
        model = self._model
        ids = sorted(self._bodies)
        rows = {c: i for i, c in enumerate(ids)}
        elements = [model.body(f"component_{c}").id for c in ids]
        free = [i for i, c in enumerate(ids) if not self._bodies[c].spec.fixed]
        body = np.array([elements[i] for i in free], dtype=np.intp)
        joint = model.body_jntadr[body]
        fixed_pose = np.tile(np.eye(4), (len(ids), 1, 1))
        for i, c in enumerate(ids):
            if self._bodies[c].spec.fixed:
                fixed_pose[i] = self._bodies[c].spec.world_T_component
        layouts = [self._bodies[c].spec.layout for c in ids]
        local = [brick_boxes(layout) for layout in layouts]
        part_ids = np.concatenate([np.zeros(0, dtype=np.int64), *(la.part_ids for la in layouts)])
        part_free = np.full(len(ids), -1)
        part_free[free] = np.arange(len(free))
        part_free = np.repeat(part_free, [len(la.part_ids) for la in layouts])
        order = np.argsort(part_ids)
        return _Index(
            ids=np.array(ids, dtype=np.int64),
            free=np.array(free, dtype=np.intp),
            qpos=model.jnt_qposadr[joint][:, None].astype(np.intp) + np.arange(7),
            dof=model.jnt_dofadr[joint][:, None].astype(np.intp) + np.arange(6),
            tree=model.body_treeid[body].astype(np.intp),
            body_T_component=np.array(
                [inverse(self._bodies[ids[i]].component_T_body) for i in free]
            ).reshape(-1, 4, 4),
            moments=np.array([self._bodies[ids[i]].moments for i in free]).reshape(-1, 3),
            fixed_pose=fixed_pose,
            row_of=rows,
            component_of={
                p: c
                for c, layout in zip(ids, layouts, strict=True)
                for p in layout.part_ids.tolist()
            },
            part_ids=part_ids[order],
            part_free=part_free[order],
            geoms=self._geom_table(elements, ids),
            boxes=concatenate(local),
            box_row=np.repeat(np.arange(len(ids)), [len(b.part_ids) for b in local]),
            seated={pair: row for row, pair in enumerate(sorted(self._seated))},
            robots={name: index_robot(model, r) for name, r in self._robots.items()},
        )

    def _geom_table(self, elements: Sequence[int], ids: Sequence[int]) -> GeomTable:
        model = self._model
        part = np.full(model.ngeom, NO_PART, dtype=np.int64)
        shape = np.zeros(model.ngeom, dtype=np.int64)
        other = np.zeros(model.ngeom, dtype=np.int64)
        for element, component in zip(elements, ids, strict=True):
            body, first = self._bodies[component], model.body_geomadr[element]
            part[first : first + len(body.geom_parts)] = body.geom_parts
            shape[first : first + len(body.geom_shapes)] = body.geom_shapes
        names = [GROUND]
        for name, robot in self._robots.items():
            for link, body in index_robot(model, robot).bodies.items():
                other[model.geom_bodyid == body] = len(names)
                names.append(f"{name}/{link}")
        other[part != NO_PART] = -1
        return GeomTable(part, shape, other, tuple(names))


def _check_joints(robot: str, values: Mapping[str, float], known: Collection[str]) -> None:
    for name, value in values.items():
        if name not in known:
            raise EngineError(
                f"robot {robot} has no such joint as {name}, expected one of {', '.join(known)}"
            )
        if not np.isfinite(value):
            raise EngineError(f"{name} of robot {robot} is {value}, expected a finite number")


def check_pose(pose: Array, name: str) -> None:
    """Checks that a pose is finite and rigid.

    Raises:
        EngineError: It is not.
    """
    pose = np.asarray(pose)
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        raise EngineError(f"{name} is {pose.tolist()}, expected a finite 4x4 matrix")
    rotation = pose[:3, :3]
    if (
        np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-6
        or np.linalg.det(rotation) < 0.0
        or np.abs(pose[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9
    ):
        raise EngineError(f"{name} is {pose.tolist()}, expected a rotation and a translation")
