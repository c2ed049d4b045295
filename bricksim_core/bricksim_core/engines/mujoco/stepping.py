# SPDX-License-Identifier: Apache-2.0
"""One MuJoCo step of a scene, apart from wrenches and robots' drives."""

from __future__ import annotations

import math
from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled
from bricksim_core.engines.contact_lists import join_contacts, take_contacts
from bricksim_core.engines.mujoco.bodies import write_rotation
from bricksim_core.engines.mujoco.carrying import carrier, carry
from bricksim_core.engines.mujoco.contact import ContactParameters, GeomTable
from bricksim_core.engines.mujoco.index import SceneIndex
from bricksim_core.engines.mujoco.patches import FEW, keep_corners
from bricksim_core.engines.protocol import NO_PART, Contacts
from bricksim_core.membership import are_in
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

_FREE_MOVE = 3e-4
"""Distance [m] that a wrench may move a body in one MuJoCo step before contacts are looked for."""
_MOST_PARTS = 16
_HIT_STEPS = 8
"""Steps in the time constant of a contact in which a hit is to be followed. Spins after a hit are
then off by 2 to 6 % on average (docs/sensitivity.md)."""

NEARLY_ASLEEP = -2
"""MuJoCo's count (`tree_asleep`) of a body that falls asleep after one more quiet step."""
_JUST_AWAKE = -1 - int(mujoco.mjMINAWAKE)
"""The same of one that has just been woken."""

_ANY_SPEED = 1e9
"""Speed [m/s] that nothing has."""

_STEP, _STEP_EACH, _CONTACT, _ROW = 0.08, 0.0001, 0.0012, 0.0006
"""Milliseconds of a MuJoCo step and what is done around it, more for each brick, for each contact,
and of an iteration of its solver for each row of constraints."""


class StepLength:
    """Length of a model's steps, and the contacts that belong to it.

    Args:
        model: At its usual length.
        contact: The contact parameters that it was made with.
    """

    def __init__(self, model: mujoco.MjModel, contact: ContactParameters) -> None:
        self._model = model
        self._contact = contact
        self._usual = float(model.opt.timestep)
        self._tables = (model.geom_solref, model.pair_solref, model.eq_solref)
        self._present: tuple[int, bool] = (1, True)
        self._known: dict[tuple[int, bool], list[Array]] = {
            self._present: [table.copy() for table in self._tables]
        }

    def set(self, parts: int, stiffer: bool = True) -> float:
        """Makes a step one of so many parts of the usual one, with contacts that last as much
        shorter unless told otherwise; returns its length [s]."""
        dt, wanted = self._usual / parts, (parts, stiffer or parts == 1)
        if wanted != self._present:
            if wanted not in self._known:
                self._known[wanted] = self._contacts(dt, parts if stiffer else 1)
            for table, values in zip(self._tables, self._known[wanted], strict=True):
                table[:] = values
            self._model.opt.timestep = dt
            self._present = wanted
        return dt

    def _contacts(self, dt: float, shorter: int) -> list[Array]:
        """Reference numbers of all contacts at a length of step [s] that last so much shorter."""
        tables = [table.copy() for table in self._known[1, True]]
        usual, now = self._contact.solref(self._usual), self._contact.solref(dt)
        for table in tables:
            if shorter > 1:
                table[:, 0] /= shorter
            else:
                table[(table == usual).all(axis=1)] = now
        return tables


def step_parts(force_per_mass: float, timestep: float) -> int:
    """Into how many parts a step is taken.

    A strong wrench may throw a free brick through its neighbours within a step, before any contact
    is seen (2 N move 2 g by 16 mm in 1/240 s), and tips a brick off contacts that are as soft as
    that step allows. So the step is divided, and the contacts stiffened, until no wrench can move
    its body far in a part.

    Args:
        force_per_mass: Greatest applied force over mass [m/s^2].
        timestep: [s].
    """
    parts = math.sqrt(force_per_mass / _FREE_MOVE) * timestep
    return max(math.ceil(parts), 1) if parts < _MOST_PARTS else _MOST_PARTS


def hit_parts(timestep: float, contact: ContactParameters, hit: float) -> int:
    """Into how many parts a step is taken for what a component with connections hits in it, so that
    what follows hangs little on the step.

    Args:
        timestep: [s].
        contact: The contact parameters.
        hit: How hard that is, from 0 to 1; see `masking.look_ahead`.
    """
    most = _HIT_STEPS * timestep / contact.duration(timestep)
    return max(1, math.ceil(most * hit - 1e-9))


@compiled
def count_once(asleep: NDArray[np.int32], before: NDArray[np.int32], last: bool) -> None:
    """Makes a step that is taken in parts count once for falling asleep, and only in its last part.

    What fell asleep earlier would have contacts in some of the parts only, and these are what it
    rests on from then on. To be called before each part.

    Args:
        asleep: (T,) MuJoCo's counts (`tree_asleep`) of trees, to be written: they rise in quiet
            steps up to -1; what sleeps has others than negative ones.
        before: (T,) those at the start of the step.
        last: Whether it is the last part.
    """
    for tree in range(len(asleep)):
        if asleep[tree] < 0:
            start = before[tree] if before[tree] < 0 else _JUST_AWAKE
            asleep[tree] = min(asleep[tree], start if last else min(start, NEARLY_ASLEEP - 1))


def lull(asleep: NDArray[np.int32], trees: NDArray[np.intp]) -> float:
    """Makes some trees fall asleep in the next step, together with what they touch, and no others;
    returns the speed [m/s] to tell MuJoCo for that step.

    Args:
        asleep: (T,) MuJoCo's counts (`tree_asleep`), to be written.
        trees: Which trees, all of them awake.
    """
    asleep[asleep < 0] = _JUST_AWAKE
    asleep[trees] = NEARLY_ASLEEP
    return _ANY_SPEED


def step_cost(data: mujoco.MjData, bricks: int) -> float:
    """Cost of the last MuJoCo step with so many bricks; see `StepReport.cost`."""
    iterations = max(data.solver_niter[: max(1, data.nisland)].tolist())
    return _STEP + _STEP_EACH * bricks + _CONTACT * data.ncon + _ROW * data.nefc * iterations


def step_on_corners(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: GeomTable
) -> IntArray | None:
    """One MuJoCo step in which flat patches of contacts bear at their corners; returns the patches
    of its contacts if there are such; see `patches`."""
    mujoco.mj_step1(model, data)
    patches, saved = None, 0
    if data.ncon > FEW:
        found = data.contact
        patches, saved = keep_corners(
            found.geom, found.frame, found.pos, found.dist, found.exclude, found.efc_address,
            model.geom_bodyid, data.geom_xpos, data.geom_xmat, model.geom_size, geoms.other,
        )  # fmt: skip
        if saved:
            mujoco.mj_makeConstraint(model, data)
            mujoco.mj_island(model, data)
            mujoco.mj_projectConstraint(model, data)
            mujoco.mj_referenceConstraint(model, data)
    mujoco.mj_step2(model, data)
    return patches if saved else None


@compiled
def all_below(velocities: Array, limit: float) -> bool:
    """Whether no velocity is as great as a limit, either way; what is not a number is."""
    below = True
    for velocity in velocities:
        below = below and abs(velocity) < limit
    return below


def read_state(data: mujoco.MjData, index: SceneIndex) -> tuple[Array, Array]:
    """(K, 4, 4) world_T_component [m] and (K, 6) COM linear and angular velocities [m/s, rad/s]."""
    poses, twists = index.fixed_pose.copy(), np.zeros((len(index.ids), 6))
    write_state(data, index, poses, twists)
    return poses, twists


def write_state(data: mujoco.MjData, index: SceneIndex, poses: Array, twists: Array) -> None:
    """Writes what `read_state` reads over that of the free components."""
    nothing = np.zeros(len(index.free), dtype=np.bool_)
    rows, local = index.free, index.body_T_component
    _read(data.qpos, data.qvel, index.qpos, index.dof, nothing, rows, local, poses, twists)


def repeated(values: Array, times: int) -> Array:
    """(times, ...) the same values so many times."""
    found = np.empty((times, *values.shape))
    found[:] = values
    return found


def read_moved(
    data: mujoco.MjData, index: SceneIndex, still: NDArray[np.bool_], poses: Array, twists: Array
) -> tuple[Array, Array]:
    """Poses and velocities of all components, where some have moved; see `read_state`.

    Args:
        data: The state.
        index: Of the model.
        still: (F,) which free components have not moved.
        poses: (K, 4, 4) poses of these and of what is held; handed back as they are if nothing
            moved.
        twists: (K, 6) their velocities.
    """
    if still.all():
        return poses, twists
    poses, twists = poses.copy(), twists.copy()
    rows, local = index.free, index.body_T_component
    _read(data.qpos, data.qvel, index.qpos, index.dof, still, rows, local, poses, twists)
    return poses, twists


@compiled
def _read(
    qpos: Array,
    qvel: Array,
    positions: NDArray[np.intp],
    velocities: NDArray[np.intp],
    still: NDArray[np.bool_],
    rows: NDArray[np.intp],
    body_T_component: Array,
    poses: Array,
    twists: Array,
) -> None:
    """Writes poses and velocities of the components that moved; see `read_moved`.

    Args:
        qpos: Positions of the model.
        qvel: Its velocities.
        positions: (F, 7) addresses of the free components' positions.
        velocities: (F, 6) those of their velocities.
        still: (F,) which of them to leave out.
        rows: (F,) their rows among the K components.
        body_T_component: (F, 4, 4) [m].
        poses: (K, 4, 4) to be written.
        twists: (K, 6) to be written.
    """
    turn = np.empty((3, 3))
    for f in range(len(rows)):
        if still[f]:
            continue
        at, moving, row = positions[f], velocities[f], rows[f]
        write_rotation(qpos[at[3] : at[3] + 4], turn)
        for i in range(3):
            twists[row, i] = qvel[moving[i]]
            twists[row, 3 + i] = (
                turn[i, 0] * qvel[moving[3]]
                + turn[i, 1] * qvel[moving[4]]
                + turn[i, 2] * qvel[moving[5]]
            )
            for j in range(4):
                poses[row, i, j] = (
                    turn[i, 0] * body_T_component[f, 0, j]
                    + turn[i, 1] * body_T_component[f, 1, j]
                    + turn[i, 2] * body_T_component[f, 2, j]
                )
            poses[row, i, 3] += qpos[at[i]]


def carry_gripped(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    index: SceneIndex,
    contacts: Contacts,
    before: Array,
    dt: float,
) -> None:
    """Moves free bodies along with the robot that has at least two links on them.

    Args:
        model: The model.
        data: Right after a step.
        index: Of the model.
        contacts: Of the step.
        before: Positions (``qpos``) before the step.
        dt: Its length [s].
    """
    grips = []
    for (component, robot), links in _holding(index, contacts).items():
        if len(links) > 1 and component in index.free_row:
            strongest = max(links, key=lambda name: links[name])
            grips.append((component, carrier(model, data, index.robots[robot].bodies[strongest])))
    if not grips:
        return
    mujoco.mj_kinematics(model, data)
    for component, link in grips:
        qpos = index.qpos[index.free_row[component]]
        carry(data, link, qpos, before[qpos[:3]], dt)


def _holding(
    index: SceneIndex, contacts: Contacts
) -> Mapping[tuple[int, str], Mapping[str, float]]:
    """Normal impulses [N s] by (component, robot) and link."""
    holding: dict[tuple[int, str], dict[str, float]] = {}
    rows = np.flatnonzero(contacts.other > 0)  # 0 is the ground
    columns = (contacts.part_b, contacts.other, contacts.normal_impulse)
    for part, other, impulse in zip(*(column[rows].tolist() for column in columns), strict=True):
        robot, link = contacts.names[other].split("/", 1)
        links = holding.setdefault((index.component_of[part], robot), {})
        links[link] = links.get(link, 0.0) + impulse
    return holding


class Resting:
    """Contacts of sleeping bodies: MuJoCo leaves them out, they stay as they were last.

    Args:
        asleep: (F,) which free bodies sleep.
        contacts: Their contacts.

    Attributes:
        everything: Whether all of them sleep.
    """

    def __init__(self, asleep: NDArray[np.bool_], contacts: Contacts) -> None:
        self.asleep = asleep
        self.contacts = contacts
        self.everything = bool(asleep.all())

    def after(
        self, data: mujoco.MjData, index: SceneIndex, contacts: Contacts
    ) -> tuple[Resting, Contacts]:
        """What rests after a step with some contacts, and which went on resting in it."""
        if _as_before(data.tree_asleep, index.tree, self.asleep):
            return self, self.contacts
        asleep = data.tree_asleep[index.tree] >= 0
        kept = take_contacts(self.contacts, _all_still(index, self.contacts, asleep))
        new = take_contacts(contacts, _all_still(index, contacts, asleep))
        return Resting(asleep, join_contacts([kept, new])), kept

    def without(self, before: SceneIndex, now: SceneIndex, part_ids: NDArray[np.int64]) -> Resting:
        """What rests of it when the bodies of some parts have changed.

        Args:
            before: Index of the scene before the change.
            now: Index of the scene after it.
            part_ids: The parts.
        """
        if not self.asleep.any():
            return Resting(np.zeros(len(now.free), dtype=np.bool_), self.contacts)
        old, new = before.ids[before.free], now.ids[now.free]
        changed = are_in(now.part_ids, part_ids)
        asleep = np.zeros(len(new), dtype=np.bool_)
        _, there, here = np.intersect1d(old, new, assume_unique=True, return_indices=True)
        asleep[here] = self.asleep[there]
        asleep[now.part_free[changed & (now.part_free >= 0)]] = False
        lost = are_in(self.contacts.part_a, part_ids) | are_in(self.contacts.part_b, part_ids)
        return Resting(asleep, take_contacts(self.contacts, ~lost))

    def touching(self, part_ids: NDArray[np.int64]) -> set[int]:
        """Parts that sleep in touch with some, these included."""
        a, b = self.contacts.part_a, self.contacts.part_b
        rows = are_in(a, part_ids) | are_in(b, part_ids)
        return set(np.concatenate([a[rows], b[rows]]).tolist()) - {NO_PART}


@compiled
def _as_before(
    counts: NDArray[np.int32], tree: NDArray[np.intp], asleep: NDArray[np.bool_]
) -> bool:
    """Whether the same free bodies sleep as before.

    Args:
        counts: MuJoCo's counts (`tree_asleep`) of all trees, not negative for what sleeps.
        tree: (F,) trees of the free bodies.
        asleep: (F,) which of these slept.
    """
    same = True
    for f in range(len(tree)):
        same = same and (counts[tree[f]] >= 0) == asleep[f]
    return same


def _all_still(
    index: SceneIndex, contacts: Contacts, asleep: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Contacts of sleeping bodies with sleeping or fixed ones or with what is no brick."""
    # One more entry for what does not move but never sleeps.
    still = np.append(asleep, True)
    a = np.where(contacts.part_a == NO_PART, -1, index.free_of(contacts.part_a))
    b = index.free_of(contacts.part_b)
    return still[a] & still[b] & ((a >= 0) | (b >= 0))
