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
from bricksim_core.engines.boxes import Boxes, concatenate
from bricksim_core.engines.mujoco.bodies import Body, quaternions
from bricksim_core.engines.mujoco.bvh import box_tree
from bricksim_core.engines.mujoco.masking import BOX_AFFINITY
from bricksim_core.engines.mujoco.specification import HELD, Capacity, slot_name
from bricksim_core.engines.protocol import NO_PART, STUD_SHAPE
from bricksim_core.spatial import Array
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
        self._first_node = int(model.body_bvhadr[self.held])
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
        self._spare(slice(0, boxes))
        model.geom_bodyid[self.unused_geom] = 0
        model.geom_rgba[self.unused_geom, 3] = 0.0
        self._without_boxes(self.held)
        # Copying a whole model takes a millisecond, which `copy` has not got in a frame.
        self._spare_model: mujoco.MjModel | None = copy.copy(model)

    def copy(self) -> Pool:
        """The same on a model of its own."""
        other = copy.copy(self)
        model, self._spare_model, other._spare_model = self._spare_model, None, None
        if model is None:
            model = copy.copy(self.model)
        else:
            for name in (*_PER_GEOM, *_EDITED):
                getattr(model, name)[:] = getattr(self.model, name)
            model.stat.meaninertia = self.model.stat.meaninertia
            model.opt.enableflags = self.model.opt.enableflags
        other.model = model
        for name in (*_PER_SLOT, *_PER_BOX):
            setattr(other, name, getattr(self, name).copy())
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
        parts, shapes = np.array(bricks, dtype=np.int64).T
        keys = parts << 1 | shapes
        rows = _find(keys, np.argsort(keys), self.box_component, self.box_part, self.box_shape)
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
        self._spare(self._rows(slot))
        self._count[slot] = 0
        self._without_boxes(element)
        self.model.body_gravcomp[element] = 1.0
        data.qvel[dof] = data.qacc_warmstart[dof] = 0.0

    def _fill(self, data: mujoco.MjData, slot: int, body: Body) -> None:
        """Writes a free component into an empty slot."""
        model, element, dof = self.model, int(self.slots.body[slot]), self.slots.dof[slot]
        mass, moments = body.mass.mass, body.moments
        self.component[slot] = body.spec.component
        self._slot[body.spec.component] = slot
        self.moments[slot] = moments
        self.body_T_component[slot] = body.body_T_component
        model.body_gravcomp[element] = 0.0
        model.body_mass[element] = model.body_subtreemass[element] = mass
        model.body_inertia[element] = moments
        weights = (1.0 / mass, sum((1.0 / moments).tolist()) / 3.0)
        model.body_invweight0[element] = weights
        model.dof_invweight0[dof] = np.repeat(weights, 3)
        model.dof_M0[dof] = (mass, mass, mass, *moments)
        placed = body.boxes.moved(body.body_T_component)
        model.dof_length[dof[3:]] = _radius(placed.centres, placed.halves)
        self._put(data, slot, element, [body], placed)
        self.wake(data, [body.spec.component])

    def _hold(self, data: mujoco.MjData, held: Sequence[Body]) -> None:
        """Writes all components that the world holds into the static body."""
        self._spare(self._rows(-1))
        self._count[-1] = 0
        self._without_boxes(self.held)
        if not held:
            return
        placed = concatenate([b.boxes.moved(b.spec.world_T_component) for b in held])
        geoms, put = self._put(data, -1, self.held, held, placed)
        # MuJoCo works out where static geoms are only once, when it makes the data.
        data.geom_xpos[geoms] = put.centres
        data.geom_xmat[geoms] = put.axes.reshape(-1, 9)

    def _put(
        self, data: mujoco.MjData, slot: int, element: int, bodies: Sequence[Body], placed: Boxes
    ) -> tuple[slice, Boxes]:
        """Gives boxes of the stock to a body of the model.

        Args:
            data: State of the model.
            slot: Takes the boxes.
            element: Body of the model.
            bodies: Components.
            placed: Their boxes in the frame of the model's body.

        Returns:
            Geoms of the boxes that something can touch, and these; the others come after them and
            are in no body's list.
        """
        rows = self._allocate(data, slot, len(placed.part_ids))
        if len(bodies) == 1:
            (body,) = bodies
            own, exposed, rgba = body.boxes, body.exposed, body.rgba
        else:
            own = concatenate([b.boxes for b in bodies])
            exposed = np.concatenate([b.exposed for b in bodies])
            rgba = np.concatenate([b.rgba for b in bodies])
        each = [len(b.boxes.part_ids) for b in bodies]
        components = np.repeat([b.spec.component for b in bodies], each)
        model = self.model
        reach = np.empty((len(exposed), 3))
        stock = _Stock(*(getattr(self, name) for name in _PER_BOX))
        table = _Geoms(*(getattr(model, name) for name in _PER_GEOM))
        count = _write(
            exposed, components, own.part_ids, own.shapes, own.centres, own.axes, own.halves,
            placed.centres, placed.axes, quaternions(placed.axes[exposed]), rgba,
            rows.start, self.first_geom, element, stock, table, reach,
        )  # fmt: skip
        rows = slice(rows.start, rows.start + count)
        placed, reach, geoms = placed.take(exposed), reach[:count], self._geoms(rows)
        model.body_geomadr[element] = geoms.start
        model.body_geomnum[element] = count
        model.body_contype[element] = 1
        model.body_conaffinity[element] = BOX_AFFINITY

        tree = box_tree(placed.centres, reach)
        first = self._first_node + 2 * rows.start
        nodes = slice(first, first + len(tree.leaf))
        model.bvh_child[nodes] = tree.child
        model.bvh_nodeid[nodes] = np.where(tree.leaf < 0, -1, tree.leaf + geoms.start)
        model.bvh_aabb[nodes] = tree.bounds
        model.body_bvhadr[element], model.body_bvhnum[element] = first, len(tree.leaf)
        return geoms, placed

    def _without_boxes(self, element: int) -> None:
        model = self.model
        model.body_geomadr[element] = model.body_bvhadr[element] = -1
        model.body_geomnum[element] = model.body_bvhnum[element] = 0
        model.body_contype[element] = model.body_conaffinity[element] = 0

    def _set_mean_inertia(self) -> None:
        """The scale of the solver's tolerance: that of a model without empty slots."""
        dofs = self.slots.dof[self.component != NO_COMPONENT].ravel()
        inertias = self.model.dof_M0[np.concatenate([dofs, self._other_dofs])]
        self.model.stat.meaninertia = inertias.mean() if len(inertias) else 1.0

    # -- boxes --------------------------------------------------------------------------------

    def _rows(self, slot: int) -> slice:
        return slice(self._start[slot], self._start[slot] + self._count[slot])

    def _geoms(self, rows: slice) -> slice:
        return slice(rows.start + self.first_geom, rows.stop + self.first_geom)

    def _spare(self, rows: slice) -> None:
        """Gives boxes back to the stock: the world's, unseen, and in no body's list."""
        self.box_part[rows], self.box_component[rows] = NO_PART, NO_COMPONENT
        self.model.geom_bodyid[self._geoms(rows)] = 0
        self.model.geom_rgba[self._geoms(rows), 3] = 0.0

    def _allocate(self, data: mujoco.MjData, slot: int, count: int) -> slice:
        """Finds boxes in a row for a slot that has none."""
        start = self._gap(count)
        if start is None:
            self._compact(data)
            start = self._gap(count)
            assert start is not None
        self._start[slot], self._count[slot] = start, count
        return self._rows(slot)

    def _gap(self, count: int) -> int | None:
        """First row from which so many boxes are spare."""
        taken = np.flatnonzero(self._count)
        taken = taken[np.argsort(self._start[taken])]
        ends = np.concatenate([[0], (self._start + self._count)[taken]])
        gaps = np.append(self._start[taken], self.capacity.boxes) - ends
        fits = np.flatnonzero(gaps >= count)
        return int(ends[fits[0]]) if len(fits) else None

    def _compact(self, data: mujoco.MjData) -> None:
        """Closes the gaps between the boxes in use."""
        taken = np.flatnonzero(self._count)
        taken = taken[np.argsort(self._start[taken])]
        before = np.concatenate([np.arange(r.start, r.stop) for r in map(self._rows, taken)])
        model, count, first = self.model, len(before), self._first_node
        spare = np.setdiff1d(np.arange(self.capacity.boxes), before)
        order = np.concatenate([before, spare])
        for name in _PER_BOX:
            setattr(self, name, getattr(self, name)[order])
        geoms = self.first_geom + order
        stock = slice(self.first_geom, self.first_geom + len(order))
        for array in (
            *(getattr(model, name) for name in _PER_GEOM),
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


class _Stock(NamedTuple):
    """What a pool knows of its boxes; see `Pool`."""

    part: IntArray
    shape: IntArray
    component: IntArray
    centres: Array
    axes: Array
    halves: Array


class _Geoms(NamedTuple):
    """What a model has of its geoms."""

    bodyid: NDArray[np.int32]
    pos: Array
    quat: Array
    size: Array
    aabb: Array
    rbound: Array
    rgba: NDArray[np.float32]
    group: NDArray[np.int32]
    sameframe: NDArray[np.uint8]
    contype: NDArray[np.int32]
    conaffinity: NDArray[np.int32]


@compiled
def _write(
    exposed: NDArray[np.bool_],
    components: IntArray,
    part_ids: IntArray,
    shapes: IntArray,
    centres: Array,
    axes: Array,
    halves: Array,
    places: Array,
    turns: Array,
    turned: Array,
    rgba: Array,
    start: int,
    first_geom: int,
    element: int,
    stock: _Stock,
    geoms: _Geoms,
    reach: Array,
) -> int:
    """Writes boxes of a body: those that something can touch first, and only these as geoms.

    Args:
        exposed: (N,) which boxes something can touch, E in all.
        components: (N,) their components.
        part_ids: (N,) like the next four, see `Boxes`; in the component frames.
        shapes: (N,)
        centres: (N, 3)
        axes: (N, 3, 3)
        halves: (N, 3)
        places: (N, 3) centres in the body's frame [m].
        turns: (N, 3, 3) axes there.
        turned: (E, 4) quaternions of the exposed ones.
        rgba: (N, 4) colours.
        start: First row of the stock that is for them.
        first_geom: Geom of the stock's first box.
        element: The body.
        stock: To be written, as are the others.
        geoms: Of the model.
        reach: (N, 3) half extents of the first E along the body's axes [m].

    Returns:
        E.
    """
    hidden, count = start + np.count_nonzero(exposed), 0
    for n in range(len(exposed)):
        if exposed[n]:
            row = start + count
        else:
            row = hidden
            hidden += 1
        stock.part[row], stock.shape[row] = part_ids[n], shapes[n]
        stock.component[row] = components[n]
        for i in range(3):
            stock.centres[row, i], stock.halves[row, i] = centres[n, i], halves[n, i]
            for j in range(3):
                stock.axes[row, i, j] = axes[n, i, j]
        if not exposed[n]:
            continue
        g, same = first_geom + row, True
        geoms.bodyid[g] = element
        for i in range(3):
            geoms.pos[g, i], geoms.size[g, i] = places[n, i], halves[n, i]
            geoms.aabb[g, 3 + i] = halves[n, i]
            reach[count, i] = 0.0
            for j in range(3):
                same = same and turns[n, i, j] == (1.0 if i == j else 0.0)
                reach[count, i] += abs(turns[n, i, j]) * halves[n, j]
        for i in range(4):
            geoms.quat[g, i], geoms.rgba[g, i] = turned[count, i], rgba[n, i]
        geoms.rbound[g] = length(halves[n])
        geoms.group[g] = 1 if shapes[n] == STUD_SHAPE else 0
        geoms.sameframe[g] = _AS_BODY if same else _TURNED
        geoms.contype[g], geoms.conaffinity[g] = 1, BOX_AFFINITY
        count += 1
    return count


@compiled
def _find(
    keys: IntArray, order: NDArray[np.intp], component: IntArray, part: IntArray, shape: IntArray
) -> NDArray[np.intp]:
    """Rows of boxes of the stock.

    Args:
        keys: (N,) twice the part of each box, and its shape.
        order: (N,) in which these are sorted; any may be there several times.
        component: (B,) like the next two, see `Pool`.
        part: (B,)
        shape: (B,)

    Returns:
        (N,) -1 where there is no such box.
    """
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


@compiled
def _radius(centres: Array, halves: Array) -> float:
    """Radius of the sphere around the origin that some boxes as spheres are in [m].

    Args:
        centres: (N, 3) [m].
        halves: (N, 3) their half extents [m].
    """
    greatest = 0.0
    for n in range(len(centres)):
        greatest = max(greatest, length(centres[n]) + length(halves[n]))
    return greatest


_PER_SLOT = ("component", "moments", "body_T_component", "_start", "_count")
_PER_BOX = ("box_part", "box_shape", "box_component", "centres", "axes", "halves")
_PER_GEOM = (
    "geom_bodyid",
    "geom_pos",
    "geom_quat",
    "geom_size",
    "geom_aabb",
    "geom_rbound",
    "geom_rgba",
    "geom_group",
    "geom_sameframe",
    "geom_contype",
    "geom_conaffinity",
)
_EDITED = (
    "body_mass",
    "body_subtreemass",
    "body_inertia",
    "body_invweight0",
    "body_gravcomp",
    "body_geomadr",
    "body_geomnum",
    "body_bvhadr",
    "body_bvhnum",
    "body_contype",
    "body_conaffinity",
    "bvh_child",
    "bvh_nodeid",
    "bvh_aabb",
    "dof_invweight0",
    "dof_length",
    "dof_M0",
    "pair_geom1",
    "pair_geom2",
    "pair_signature",
    "pair_margin",
    "pair_friction",
)
"""What else of a model edits change. (Robots' drives write theirs before every step.)"""
