# SPDX-License-Identifier: Apache-2.0
"""A compiled model whose bodies and boxes are assigned to components while it runs.

Compiling a model takes tens to hundreds of milliseconds among many bodies (MuJoCo's work for
inverse weights grows with their square), a change of the topology has to fit into a frame. So the
model is compiled with room to spare: free bodies that carry nothing (*slots*), one static body for
all that the world holds, and a stock of boxes. Putting a component in means to write what the
compiler would have written: mass, inertia, inverse weights, boxes, bounding volume hierarchy. What
follows from what is MuJoCo's engine_setconst.c; the tests compare with models that are compiled.

A slot that carries nothing has its gravity compensated and no boxes: it is at rest and sleeps.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, length
from bricksim_core.engines.boxes import Boxes
from bricksim_core.engines.mujoco.bodies import Body, quaternions
from bricksim_core.engines.mujoco.bvh import box_tree
from bricksim_core.engines.mujoco.masking import BOX_AFFINITY
from bricksim_core.engines.mujoco.specification import HELD, Capacity, slot_name
from bricksim_core.engines.protocol import NO_PART, STUD_SHAPE
from bricksim_core.spatial import Array, transform_points
from bricksim_core.topology.layout import IntArray

NO_COMPONENT = -1
"""Stands for "nothing" where a component id is expected."""
_AS_BODY = int(mujoco.mjtSameFrame.mjSAMEFRAME_BODYROT)
_TURNED = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
_NUDGE = 1e-30
"""Force [N] that wakes a sleeping body, with all that sleeps in touch with it, and does no more."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Addresses of the free bodies in the model; S rows.

    Attributes:
        body: (S,) bodies.
        qpos: (S, 7) their positions.
        dof: (S, 6) their velocities.
        tree: (S,) their kinematic trees.
    """

    body: NDArray[np.intp]
    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]
    tree: NDArray[np.intp]


class Pool:
    """Which component each slot and each box of a model stands for.

    Args:
        model: Compiled from `scene_spec`.
        capacity: What it was compiled for.

    Attributes:
        model: The model.
        capacity: How much fits in.
        held: The static body of what the world holds.
        slots: Addresses of the slots.
        unused_geom: A box that stays unused.
        first_geom: First of the model's geoms that are boxes of the stock, B in all.
        component: (S,) component in each slot, NO_COMPONENT for none.
        moments: (S, 3) principal moments of inertia [kg m^2].
        body_T_component: (S, 4, 4) component frame in each slot's body [m].
        box_part: (B,) part of each box, NO_PART for spare ones.
        box_shape: (B,) its contact shape id.
        box_component: (B,) its component, NO_COMPONENT for spare ones.
        centres: (B, 3) its centre in the component frame [m].
        axes: (B, 3, 3) its axes there.
        halves: (B, 3) its half extents [m].
    """

    def __init__(self, model: mujoco.MjModel, capacity: Capacity) -> None:
        count, boxes = capacity.bodies, capacity.boxes
        self.model = model
        self.capacity = capacity
        self.held = int(model.body(HELD).id)
        self.unused_geom = int(model.body_geomadr[self.held])
        self.first_geom = self.unused_geom + 1
        first = int(model.body(slot_name(0)).id)
        body = np.arange(first, first + count)
        joint = model.body_jntadr[body]
        self.slots = Slots(
            body,
            model.jnt_qposadr[joint][:, None].astype(np.intp) + np.arange(7),
            model.jnt_dofadr[joint][:, None].astype(np.intp) + np.arange(6),
            model.body_treeid[body].astype(np.intp),
        )
        # Of the boxes of the stock: the first geom, and the first node of their trees.
        self._first = self.first_geom, int(model.body_bvhadr[self.held])
        self._other_dofs = np.setdiff1d(np.arange(model.nv), self.slots.dof)
        self.component = np.full(count, NO_COMPONENT, dtype=np.int64)
        self._slot: dict[int, int] = {}
        self.moments = np.ones((count, 3))
        self.body_T_component = np.tile(np.eye(4), (count, 1, 1))
        self.box_part = np.full(boxes, NO_PART, dtype=np.int64)
        self.box_shape = np.zeros(boxes, dtype=np.int64)
        self.box_component = np.full(boxes, NO_COMPONENT, dtype=np.int64)
        self.centres, self.halves = np.zeros((boxes, 3)), np.zeros((boxes, 3))
        self.axes = np.zeros((boxes, 3, 3))
        # Rows of boxes of each slot; the last entry is the static body's.
        self._start = np.zeros(count + 1, dtype=np.intp)
        self._count = np.zeros(count + 1, dtype=np.intp)
        self._stock, self._written = _Stock.of(self), _Written.of(model)
        _take_boxes(*self._tables, self.held, 0, boxes, self.first_geom)
        model.geom_bodyid[self.unused_geom] = 0
        model.geom_rgba[self.unused_geom, 3] = 0.0
        # Copying a whole model takes a millisecond, a good part of the first frame.
        spare = copy.copy(model)
        self._spare: tuple[mujoco.MjModel, _Written] | None = (spare, _Written.of(spare))

    @property
    def has_spare(self) -> bool:
        """Whether the next copy is a quick one."""
        return self._spare is not None

    def copy(self) -> Pool:
        """The same on a model of its own."""
        other = copy.copy(self)
        spare, self._spare, other._spare = self._spare, None, None
        if spare is None:
            model = copy.copy(self.model)
            written = _Written.of(model)
        else:
            model, written = spare
            for values, mine in zip(written, self._written, strict=True):
                values[:] = mine
            model.stat.meaninertia = self.model.stat.meaninertia
            model.opt.enableflags = self.model.opt.enableflags
        other.model = model
        for name in (*_PER_SLOT, *_Stock._fields):
            setattr(other, name, getattr(self, name).copy())
        other._stock, other._written = _Stock.of(other), written
        other._slot = dict(self._slot)
        return other

    # -- reading ------------------------------------------------------------------------------

    @property
    def used(self) -> NDArray[np.intp]:
        """Rows of the boxes in use."""
        return np.flatnonzero(self.box_component != NO_COMPONENT)

    def boxes(self, rows: NDArray[np.intp]) -> Boxes:
        """Some of the boxes, in their component frames."""
        return Boxes(
            self.box_part[rows],
            self.box_shape[rows],
            self.centres[rows],
            self.axes[rows],
            self.halves[rows],
        )

    def geoms(self, bricks: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
        """Geoms of the model that are bricks' boxes, given by part and contact shape id."""
        wanted = np.array(bricks, dtype=np.int64)
        rows = _find(wanted, self.box_component, self.box_part, self.box_shape)
        return self.first_geom + rows

    # -- changes ------------------------------------------------------------------------------

    def assign(
        self,
        data: mujoco.MjData,
        gone: Collection[int],
        new: Sequence[Body],
        held: Sequence[Body] | None,
    ) -> None:
        """Takes components out and puts components in; there has to be room.

        Slots that lose a component come to rest; the states of new ones are up to the caller. What
        is put in wakes in the next step, and what slept in touch with what is taken out.

        Args:
            data: State of the model.
            gone: Ids of free components to take out.
            new: Free components to put in.
            held: All components that the world holds afterwards, None if they are as before.
        """
        old = {component: self._slot[component] for component in gone}
        for slot in old.values():
            self._empty(data, slot)
        if held is not None:
            self._hold(data, held)
        # A component that only changed keeps its slot: nothing else sees a difference.
        kept = {b.spec.component: old[b.spec.component] for b in new if b.spec.component in old}
        empty = (s for s in np.flatnonzero(self.component == NO_COMPONENT).tolist())
        others = (s for s in empty if s not in kept.values())
        for body in new:
            slot = kept.get(body.spec.component)
            self._fill(data, next(others) if slot is None else slot, body)
        self._set_mean_inertia()

    def wake(self, data: mujoco.MjData, components: Collection[int]) -> None:
        """Wakes free components, with what sleeps in touch with them, in the next step."""
        applied = data.xfrc_applied
        for component in components:
            if component in self._slot:
                applied[self.slots.body[self._slot[component]], 2] = _NUDGE

    def _empty(self, data: mujoco.MjData, slot: int) -> None:
        element, dof = int(self.slots.body[slot]), self.slots.dof[slot]
        self.wake(data, [int(self.component[slot])])
        del self._slot[int(self.component[slot])]
        self.component[slot] = NO_COMPONENT
        self._take(slot, element)
        self._written.body_gravcomp[element] = 1.0
        data.qvel[dof] = data.qacc_warmstart[dof] = 0.0

    def _fill(self, data: mujoco.MjData, slot: int, body: Body) -> None:
        """Writes a free component into an empty slot."""
        element = int(self.slots.body[slot])
        self.component[slot] = body.spec.component
        self._slot[body.spec.component] = slot
        self.moments[slot] = body.moments
        self.body_T_component[slot] = body.body_T_component
        start = self._allocate(data, slot, len(body.exposed))
        _write_free(
            *self._tables, element, start, self._first,
            self.slots.dof[slot], body.mass.mass, body.moments,
            _own(body), _placed(body, body.body_T_component),
        )  # fmt: skip
        self.wake(data, [body.spec.component])

    def _hold(self, data: mujoco.MjData, held: Sequence[Body]) -> None:
        """Writes all components that the world holds into the static body."""
        self._take(-1, self.held)
        if not held:
            return
        start = self._allocate(data, -1, sum(len(b.exposed) for b in held))
        own = _Own(*(np.concatenate(each) for each in zip(*map(_own, held), strict=True)))
        places, turns, turned, kinds = zip(
            *(_placed(b, b.spec.world_T_component) for b in held), strict=True
        )
        before = np.cumsum([0, *(len(some) for some in turns[:-1])])
        kind = np.concatenate([some + first for some, first in zip(kinds, before, strict=True)])
        turns = np.concatenate(turns)
        placed = _Placed(np.concatenate(places), turns, np.concatenate(turned), kind)
        shown = _write_held(
            *self._tables, self.held, start, self._first, tuple(own), tuple(placed)
        )  # fmt: skip
        # MuJoCo works out where static geoms are only once, when it makes the data.
        geoms = slice(self.first_geom + start, self.first_geom + start + shown)
        data.geom_xpos[geoms] = placed.places[own.exposed]
        data.geom_xmat[geoms] = turns[kind[own.exposed]].reshape(-1, 9)

    def _take(self, slot: int, element: int) -> None:
        """Gives the boxes of a slot and its body back to the stock."""
        rows = self._rows(slot)
        _take_boxes(*self._tables, element, rows.start, rows.stop, self.first_geom)
        self._count[slot] = 0

    @property
    def _tables(self) -> tuple[tuple, tuple]:
        """What loops write into."""
        return tuple(self._stock), tuple(self._written)

    def _set_mean_inertia(self) -> None:
        """The scale of the solver's tolerance: that of a model without empty slots."""
        inertias = _inertias(
            self.component, self.slots.dof, self._other_dofs, self._written.dof_M0
        )  # fmt: skip
        self.model.stat.meaninertia = inertias.mean() if len(inertias) else 1.0

    # -- boxes --------------------------------------------------------------------------------

    def _rows(self, slot: int) -> slice:
        return slice(self._start[slot], self._start[slot] + self._count[slot])

    def _allocate(self, data: mujoco.MjData, slot: int, count: int) -> int:
        """Finds boxes in a row for a slot that has none; returns the first one."""
        start = _gap(self._start, self._count, self.capacity.boxes, count)
        if start < 0:
            self._compact(data)
            start = _gap(self._start, self._count, self.capacity.boxes, count)
            assert start >= 0
        self._start[slot], self._count[slot] = start, count
        return start

    def _compact(self, data: mujoco.MjData) -> None:
        """Closes the gaps between the boxes in use."""
        taken = np.flatnonzero(self._count)
        taken = taken[np.argsort(self._start[taken])]
        before = np.concatenate([np.arange(r.start, r.stop) for r in map(self._rows, taken)])
        model, count, first = self.model, len(before), self._first[1]
        spare = np.setdiff1d(np.arange(self.capacity.boxes), before)
        order = np.concatenate([before, spare])
        for values in self._stock:
            values[:] = values[order]
        geoms = self.first_geom + order
        stock = slice(self.first_geom, self.first_geom + len(order))
        for array in (
            *(getattr(model, name) for name in _Written._fields if name.startswith("geom_")),
            data.geom_xpos,
            data.geom_xmat,
        ):
            array[stock] = array[geoms]
        child, leaf, bounds = model.bvh_child.copy(), model.bvh_nodeid.copy(), model.bvh_aabb.copy()
        start = 0
        for slot in taken.tolist():
            moved = int(self._start[slot]) - start
            element = self.held if slot == len(self._count) - 1 else int(self.slots.body[slot])
            size = int(model.body_bvhnum[element])
            old, new = first + 2 * int(self._start[slot]), first + 2 * start
            model.bvh_child[new : new + size] = child[old : old + size]
            model.bvh_aabb[new : new + size] = bounds[old : old + size]
            nodes = leaf[old : old + size]
            model.bvh_nodeid[new : new + size] = np.where(nodes < 0, -1, nodes - moved)
            model.body_bvhadr[element] = new
            model.body_geomadr[element] -= moved
            self._start[slot] = start
            start += int(self._count[slot])
        assert start == count


# Loops take these as plain tuples: looking at the fields of a named one takes longer than most of
# them.


class _Stock(NamedTuple):
    """What a pool knows of its boxes; see `Pool`."""

    box_part: IntArray
    box_shape: IntArray
    box_component: IntArray
    centres: Array
    axes: Array
    halves: Array

    @classmethod
    def of(cls, pool: Pool) -> _Stock:
        """That of a pool."""
        return cls(*(getattr(pool, name) for name in cls._fields))


class _Written(NamedTuple):
    """Arrays of a model that edits change. (Robots' drives write theirs before every step.)"""

    geom_bodyid: NDArray[np.int32]
    geom_pos: Array
    geom_quat: Array
    geom_size: Array
    geom_aabb: Array
    geom_rbound: Array
    geom_rgba: NDArray[np.float32]
    geom_group: NDArray[np.int32]
    geom_sameframe: NDArray[np.uint8]
    geom_contype: NDArray[np.int32]
    geom_conaffinity: NDArray[np.int32]
    body_mass: Array
    body_subtreemass: Array
    body_inertia: Array
    body_invweight0: Array
    body_gravcomp: Array
    body_geomadr: NDArray[np.int32]
    body_geomnum: NDArray[np.int32]
    body_bvhadr: NDArray[np.int32]
    body_bvhnum: NDArray[np.int32]
    body_contype: NDArray[np.int32]
    body_conaffinity: NDArray[np.int32]
    bvh_child: NDArray[np.int32]
    bvh_nodeid: NDArray[np.int32]
    bvh_aabb: Array
    dof_invweight0: Array
    dof_length: Array
    dof_M0: Array
    pair_geom1: NDArray[np.int32]
    pair_geom2: NDArray[np.int32]
    pair_signature: NDArray[np.int32]
    pair_margin: Array
    pair_friction: Array

    @classmethod
    def of(cls, model: mujoco.MjModel) -> _Written:
        """Those of a model."""
        return cls(*(getattr(model, name) for name in cls._fields))


@compiled
def _take_boxes(
    boxes: tuple, arrays: tuple, element: int, start: int, stop: int, first_geom: int
) -> None:
    """Gives boxes of a body back: they are the world's, unseen, and in no body's list.

    Args:
        boxes: A `_Stock`, to be written, as is the next one.
        arrays: A `_Written`.
        element: The body.
        start: First row of the stock that is its own.
        stop: The row after the last one.
        first_geom: Geom of the stock's first box.
    """
    stock, written = _Stock(*boxes), _Written(*arrays)
    for row in range(start, stop):
        stock.box_part[row], stock.box_component[row] = NO_PART, NO_COMPONENT
        written.geom_bodyid[first_geom + row] = 0
        written.geom_rgba[first_geom + row, 3] = 0.0
    written.body_geomadr[element] = written.body_bvhadr[element] = -1
    written.body_geomnum[element] = written.body_bvhnum[element] = 0
    written.body_contype[element] = written.body_conaffinity[element] = 0


@compiled
def _inertias(
    component: IntArray, dof: NDArray[np.intp], others: NDArray[np.intp], inertia: Array
) -> Array:
    """Diagonal of a model's mass matrix without that of empty slots; see `Pool`, `Slots`."""
    found, count = np.empty(dof.size + len(others)), 0
    for slot in range(len(component)):
        if component[slot] != NO_COMPONENT:
            for i in range(6):
                found[count + i] = inertia[dof[slot, i]]
            count += 6
    for other in others:
        found[count] = inertia[other]
        count += 1
    return found[:count]


class _Own(NamedTuple):
    """Boxes of some components, N rows, in the component frames.

    Attributes:
        exposed: (N,) which of them something can touch, E in all.
        components: (N,) their components.
        part_ids: (N,) like the next four, see `Boxes`.
        shapes: (N,)
        centres: (N, 3)
        axes: (N, 3, 3)
        halves: (N, 3)
        rgba: (N, 4) colours.
    """

    exposed: NDArray[np.bool_]
    components: IntArray
    part_ids: IntArray
    shapes: IntArray
    centres: Array
    axes: Array
    halves: Array
    rgba: Array


class _Placed(NamedTuple):
    """The same boxes in the frame of a body of the model.

    Attributes:
        places: (N, 3) centres [m].
        turns: (K, 3, 3) axes that boxes have.
        turned: (K, 4) quaternions of these.
        kind: (N,) which of them each has.
    """

    places: Array
    turns: Array
    turned: Array
    kind: NDArray[np.intp]


def _own(body: Body) -> tuple:
    """The `_Own` of a component."""
    boxes = body.boxes
    components = np.full(len(body.exposed), body.spec.component)
    return (
        body.exposed, components, boxes.part_ids, boxes.shapes,
        boxes.centres, boxes.axes, boxes.halves, body.rgba,
    )  # fmt: skip


def _placed(body: Body, pose: Array) -> tuple:
    """The `_Placed` of a component in a body in whose frame it has a (4, 4) pose [m]."""
    turns = pose[:3, :3] @ body.kinds
    return transform_points(pose, body.boxes.centres), turns, quaternions(turns), body.kind


@compiled
def _set_mass(
    written: _Written,
    element: int,
    dof: NDArray[np.intp],
    mass: float,
    moments: Array,
    centres: Array,
    halves: Array,
) -> None:
    """Writes what a model has of the mass of a free body.

    Args:
        written: To be written.
        element: The body.
        dof: (6,) its velocities.
        mass: [kg].
        moments: (3,) principal moments of inertia [kg m^2].
        centres: (N, 3) of its boxes, in its frame [m].
        halves: (N, 3) their half extents [m].
    """
    turning, radius = 0.0, 0.0
    for i in range(3):
        turning += 1.0 / moments[i]
        written.body_inertia[element, i] = moments[i]
    for n in range(len(centres)):
        radius = max(radius, length(centres[n]) + length(halves[n]))
    moving, turning = 1.0 / mass, turning / 3.0
    written.body_gravcomp[element] = 0.0
    written.body_mass[element] = written.body_subtreemass[element] = mass
    written.body_invweight0[element, 0], written.body_invweight0[element, 1] = moving, turning
    for i in range(3):
        written.dof_invweight0[dof[i]], written.dof_invweight0[dof[3 + i]] = moving, turning
        written.dof_M0[dof[i]], written.dof_M0[dof[3 + i]] = mass, moments[i]
        written.dof_length[dof[3 + i]] = radius


@compiled
def _write_free(
    stock: tuple,
    arrays: tuple,
    element: int,
    start: int,
    first: tuple[int, int],
    dof: NDArray[np.intp],
    mass: float,
    moments: Array,
    boxes: tuple,
    placed: tuple,
) -> None:
    """Writes a free body; arguments as of `_set_mass` and `_write`."""
    written, own = _Written(*arrays), _Own(*boxes)
    there = _Placed(*placed)
    _set_mass(written, element, dof, mass, moments, there.places, own.halves)
    _write(_Stock(*stock), written, element, start, first, own, there)


@compiled
def _write_held(
    stock: tuple,
    arrays: tuple,
    element: int,
    start: int,
    first: tuple[int, int],
    boxes: tuple,
    placed: tuple,
) -> int:
    """Writes what the world holds; arguments as of `_write`."""
    written, own = _Written(*arrays), _Own(*boxes)
    return _write(_Stock(*stock), written, element, start, first, own, _Placed(*placed))


@compiled
def _write(
    stock: _Stock,
    written: _Written,
    element: int,
    start: int,
    first: tuple[int, int],
    own: _Own,
    placed: _Placed,
) -> int:
    """Writes boxes of a body: those that something can touch first, and only these as geoms.

    Args:
        stock: To be written, as is the next one.
        written: Of the model.
        element: The body.
        start: First row of the stock that is for them.
        first: Of the stock's first box: the geom, and the first node of trees.
        own: The boxes.
        placed: They in the body's frame.

    Returns:
        How many something can touch.
    """
    exposed, places, kind = own.exposed, placed.places, placed.kind
    first_geom, first_node = first
    shown, count = int(np.count_nonzero(exposed)), 0
    hidden = start + shown
    inside, reach = np.empty((shown, 3)), np.empty((shown, 3))
    for n in range(len(exposed)):
        if exposed[n]:
            row = start + count
        else:
            row = hidden
            hidden += 1
        stock.box_part[row], stock.box_shape[row] = own.part_ids[n], own.shapes[n]
        stock.box_component[row] = own.components[n]
        for i in range(3):
            stock.centres[row, i], stock.halves[row, i] = own.centres[n, i], own.halves[n, i]
            for j in range(3):
                stock.axes[row, i, j] = own.axes[n, i, j]
        if not exposed[n]:
            continue
        g, same, half, turn = first_geom + row, True, own.halves[n], placed.turns[kind[n]]
        written.geom_bodyid[g] = element
        for i in range(3):
            written.geom_pos[g, i], written.geom_size[g, i] = places[n, i], half[i]
            written.geom_aabb[g, 3 + i] = half[i]
            inside[count, i], reach[count, i] = places[n, i], 0.0
            for j in range(3):
                same = same and turn[i, j] == (1.0 if i == j else 0.0)
                reach[count, i] += abs(turn[i, j]) * half[j]
        for i in range(4):
            written.geom_quat[g, i] = placed.turned[kind[n], i]
            written.geom_rgba[g, i] = own.rgba[n, i]
        written.geom_rbound[g] = length(half)
        written.geom_group[g] = 1 if own.shapes[n] == STUD_SHAPE else 0
        written.geom_sameframe[g] = _AS_BODY if same else _TURNED
        written.geom_contype[g], written.geom_conaffinity[g] = 1, BOX_AFFINITY
        count += 1
    tree, root = box_tree(inside, reach), first_node + 2 * start
    for node in range(len(tree.leaf)):
        at, leaf = root + node, tree.leaf[node]
        written.bvh_child[at, 0], written.bvh_child[at, 1] = tree.child[node]
        written.bvh_nodeid[at] = -1 if leaf < 0 else leaf + first_geom + start
        for i in range(6):
            written.bvh_aabb[at, i] = tree.bounds[node, i]
    written.body_geomadr[element], written.body_geomnum[element] = first_geom + start, shown
    written.body_contype[element], written.body_conaffinity[element] = 1, BOX_AFFINITY
    written.body_bvhadr[element], written.body_bvhnum[element] = root, len(tree.leaf)
    return shown


@compiled
def _gap(starts: NDArray[np.intp], counts: NDArray[np.intp], room: int, wanted: int) -> int:
    """First row from which so many boxes in a row are spare, -1 if there is none.

    Args:
        starts: (S + 1,) first rows of the slots' boxes.
        counts: (S + 1,) how many they have.
        room: How many rows there are.
        wanted: How many boxes.
    """
    end = 0
    for slot in np.argsort(starts, kind="mergesort"):
        start, count = int(starts[slot]), int(counts[slot])
        if count == 0:
            continue
        if start - end >= wanted:
            return end
        end = start + count
    return end if room - end >= wanted else -1


@compiled
def _find(
    bricks: IntArray, component: IntArray, part: IntArray, shape: IntArray
) -> NDArray[np.intp]:
    """Rows of boxes of the stock.

    Args:
        bricks: (N, 2) part and shape of each box; any may be there several times.
        component: (B,) like the next two, see `Pool`.
        part: (B,)
        shape: (B,)

    Returns:
        (N,) -1 where there is no such box.
    """
    keys = bricks[:, 0] << 1 | bricks[:, 1]
    order = np.argsort(keys, kind="mergesort")
    wanted, rows = keys[order], np.full(len(keys), -1, dtype=np.intp)
    for b in range(len(part)):
        if component[b] == NO_COMPONENT:
            continue
        key = part[b] << 1 | shape[b]
        place = np.searchsorted(wanted, key)
        while place < len(wanted) and wanted[place] == key:
            rows[order[place]] = b
            place += 1
    return rows


_PER_SLOT = ("component", "moments", "body_T_component", "_start", "_count")
