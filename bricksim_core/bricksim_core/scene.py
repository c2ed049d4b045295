# SPDX-License-Identifier: Apache-2.0
"""The scene: topology, where its components are, which ones the world holds.

Edits (joins, breaks, spawns, removals, teleports) change the topology and the rigid-body state at
once; `Scene.commit` hands all of them to the engine in one go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed
from bricksim_core.dynamics import (
    MassProperties,
    com_in_world,
    in_world,
    mass_properties,
    merged_twist,
    piece_twists,
)
from bricksim_core.engines.boxes import seat_depths
from bricksim_core.engines.protocol import BodySpec, Engine, StepReport
from bricksim_core.membership import places_in
from bricksim_core.parts import STUD_HEIGHT
from bricksim_core.spatial import Array, joined
from bricksim_core.topology import BrickTopologyGraph, Connection, GridPose, Structure
from bricksim_core.topology.graph import Joined, Separated
from bricksim_core.topology.layout import ComponentLayout, IntArray

_APART = 5e-5
"""Depth [m] of a stud slab in a body below which the two count as pulled apart."""
SEATED_DEPTH = 0.75 * STUD_HEIGHT
"""Depth [m] above which a body stands in the studs rather than on them."""


@dataclass(frozen=True, eq=False)
class PartTable:
    """All parts as arrays; N rows, sorted by part id. Constant while the topology is.

    Attributes:
        ids: (N,) part ids.
        components: (N,) component of each part.
        row: (N,) row of each part's component among the scene's components.
        component_T_part: (N, 4, 4) poses in the component frames [m].
        arms: (N, 3) from the component's COM to the part's, component axes [m].
        sizes: (N, 3) lengths, widths [studs] and heights [plates].
    """

    ids: IntArray
    components: IntArray
    row: NDArray[np.intp]
    component_T_part: Array
    arms: Array
    sizes: IntArray


@dataclass(frozen=True, eq=False)
class SceneState:
    """What `Scene.restore` takes."""

    graph: BrickTopologyGraph
    fixed: frozenset[int]
    seated: frozenset[tuple[int, int]]
    component_ids: IntArray
    poses: Array
    twists: Array
    table: PartTable
    edited: dict[int, tuple[Array, Array]]
    submitted: frozenset[int]
    masses: dict[int, MassProperties]


_NO_PARTS = PartTable(
    ids=np.zeros(0, dtype=np.int64),
    components=np.zeros(0, dtype=np.int64),
    row=np.zeros(0, dtype=np.intp),
    component_T_part=np.zeros((0, 4, 4)),
    arms=np.zeros((0, 3)),
    sizes=np.zeros((0, 3), dtype=np.int64),
)


class Scene:
    """Topology and rigid-body state of everything made of bricks.

    Args:
        engine: Holds the bodies.

    Attributes:
        graph: The topology. Change it through the scene only.
        fixed: Ids of the parts that the world holds.
        seated: Pairs (lower, upper) whose studs stand in each other without a connection.
        component_ids: (K,) sorted ids of the engine's components.
        poses: (K, 4, 4) world_T_component [m].
        twists: (K, 6) COM linear and angular velocity, world [m/s, rad/s].
        table: All parts.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.graph = BrickTopologyGraph()
        self.fixed: frozenset[int] = frozenset()
        self.seated: frozenset[tuple[int, int]] = frozenset()
        self.component_ids: IntArray = np.zeros(0, dtype=np.int64)
        self.poses: Array = np.zeros((0, 4, 4))
        self.twists: Array = np.zeros((0, 6))
        self._edited: dict[int, tuple[Array, Array]] = {}
        self._submitted: frozenset[int] = frozenset()
        self._masses: dict[int, MassProperties] = {}
        self.table = _NO_PARTS

    # -- reading ----------------------------------------------------------------------------

    def pose(self, component: int) -> Array:
        """(4, 4) world_T_component [m]."""
        edited = self._edited.get(component)
        return self.poses[self._row(component)] if edited is None else edited[0]

    def twist(self, component: int) -> Array:
        """(6,) COM linear and angular velocity, world [m/s, rad/s]."""
        edited = self._edited.get(component)
        return self.twists[self._row(component)] if edited is None else edited[1]

    def mass(self, component: int) -> MassProperties:
        """Mass properties of a component in its frame."""
        mass = self._masses.get(component)
        if mass is None:
            mass = self._masses[component] = mass_properties(self.graph.layout(component))
        return mass

    def com(self, component: int) -> Array:
        """(3,) centre of mass of a component, world [m]."""
        return com_in_world(self.mass(component), self.pose(component))

    def is_fixed(self, component: int) -> bool:
        """Whether the world holds a component."""
        fixed = self.fixed
        return bool(fixed) and not fixed.isdisjoint(self.graph.component_parts(component))

    def part_pose(self, part_id: int) -> Array:
        """(4, 4) world_T_part [m]."""
        component = self.graph.component_of(part_id)
        layout = self.graph.layout(component)
        local = layout.component_T_parts[np.searchsorted(layout.part_ids, part_id)]
        return self.pose(component) @ local

    def part_poses(self) -> Array:
        """(N, 4, 4) world_T_part [m] of all parts as committed, by the table."""
        return _part_poses(self.poses, self.table.row, self.table.component_T_part)

    def part_twists(self) -> Array:
        """(N, 6) COM linear and angular velocity of all parts as committed [m/s, rad/s]."""
        return _part_twists(self.poses, self.twists, self.table.row, self.table.arms)

    def body(self, component: int, world_T_component: Array | None = None) -> BodySpec:
        """A component as the engine is given it, at another pose if asked for."""
        layout = self.graph.layout(component)
        return BodySpec(
            component=component,
            layout=layout,
            world_T_component=(
                self.pose(component) if world_T_component is None else world_T_component
            ),
            twist=self.twist(component),
            fixed=self.is_fixed(component),
            colors=self.graph.colors(layout.part_ids.tolist()),
        )

    # -- edits ------------------------------------------------------------------------------

    def add_structure(
        self,
        structure: Structure,
        world_T_structure: Array,
        fixed: Collection[int],
        ids: Mapping[int, int],
    ) -> list[Connection]:
        """Adds a structure's parts and exactly its connections, at rest.

        Args:
            structure: What to add.
            world_T_structure: (4, 4) where [m].
            fixed: Structure ids of the parts that the world holds.
            ids: Scene ids by structure id, free ones.

        Returns:
            The new connections.
        """
        source = structure.graph
        for part in source.parts():
            grid = source.grid_pose(part.id)
            self.graph.add_part(part.shape, part.color, part_id=ids[part.id], grid=grid)
        made = [
            replace(c, id=i, stud_part=ids[c.stud_part], hole_part=ids[c.hole_part])
            for i, c in enumerate(source.connections.values(), self.graph.next_connection_id)
        ]
        self.graph.connect_all(made)
        for component in source.component_ids:
            # The parts came with their grid poses, so the component frame is the structure's.
            here = self.graph.component_of(ids[source.component_parts(component)[0]])
            pose = world_T_structure @ structure.component_poses[component]
            self._edited[here] = (pose, np.zeros(6))
            self._masses.pop(here, None)
        self.fixed |= {ids[p] for p in fixed}
        return made

    def remove(self, part_ids: Iterable[int]) -> list[Connection]:
        """Removes parts; what they held together goes on as pieces.

        Returns:
            The connections that ended.
        """
        ended: list[Connection] = []
        for part_id in part_ids:
            ended += self.split(c.id for c in self.graph.connections_of(part_id)).connections
            component = self.graph.component_of(part_id)
            self.graph.remove_part(part_id)
            self._edited.pop(component, None)
            self._masses.pop(component, None)
            self.fixed -= {part_id}
            self.seated = frozenset(pair for pair in self.seated if part_id not in pair)
        return ended

    def join(
        self, stud_part: int, hole_part: int, offset: tuple[int, int], yaw: int, anchor: int
    ) -> Joined:
        """Connects two parts; the anchor's component stays where it is, the other one snaps to it.

        Both go on as one body with their total momentum, at rest if the world holds one of them.

        Raises:
            TopologyError: The graph refuses; nothing is changed then.
        """
        components = {self.graph.component_of(stud_part), self.graph.component_of(hole_part)}
        before = [
            (in_world(self.mass(c), self.pose(c)), self.twist(c), self.is_fixed(c))
            for c in sorted(components)
        ]
        pose = self.pose(anchor)
        joined = self.graph.connect(stud_part, hole_part, offset, yaw, keep=anchor)
        for component in components:
            self._masses.pop(component, None)
        merged = in_world(self.mass(joined.component), pose)
        twist = (
            np.zeros(6)
            if any(held for _, _, held in before)
            else merged_twist([b for b, _, _ in before], [t for _, t, _ in before], merged)
            if joined.absorbed is not None
            else before[0][1]
        )
        if joined.absorbed is not None:
            self._edited.pop(joined.absorbed, None)
        self._edited[joined.component] = (pose, twist)
        self.seated = frozenset(
            (below, above)
            for below, above in self.seated
            if self.graph.component_of(below) != self.graph.component_of(above)
        )
        return joined

    def split(self, connection_ids: Iterable[int]) -> Separated:
        """Ends connections; pieces go on with the velocity field of the whole.

        Raises:
            UnknownIdError: A connection does not exist; nothing is changed then.
        """
        connections = [self.graph.connection(i) for i in connection_ids]
        touched = {self.graph.component_of(c.stud_part) for c in connections}
        before = {c: (self.pose(c), self.twist(c), self.com(c)) for c in touched}
        separated = self.graph.disconnect(c.id for c in connections)
        for origin, pieces in separated.pieces.items():
            pose, twist, com = before[origin]
            for piece in pieces:
                self._masses.pop(piece, None)
                self._edited[piece] = (pose, twist)
            if len(pieces) == 1:
                continue
            layouts = [self.graph.layout(piece) for piece in pieces]
            coms = np.array([com_in_world(self.mass(piece), pose) for piece in pieces])
            for piece, own in zip(pieces, piece_twists(twist, com, coms), strict=True):
                self._edited[piece] = (pose, np.zeros(6) if self.is_fixed(piece) else own)
            self.seated |= {
                pair
                for below in layouts
                for above in layouts
                if below is not above
                for pair in stacked(below, above)
            }
        return separated

    def place(self, component: int, world_T_component: Array, twist: Array) -> None:
        """Moves a component."""
        self._edited[component] = (
            world_T_component,
            np.zeros(6) if self.is_fixed(component) else twist,
        )

    def hold(self, part_id: int, held: bool) -> None:
        """Lets the world hold a part, or not any more. Its component is at rest then."""
        component = self.graph.component_of(part_id)
        pose = self.pose(component)
        self.fixed = self.fixed | {part_id} if held else self.fixed - {part_id}
        self._edited[component] = (pose, np.zeros(6))

    def release_seats(self) -> bool:
        """Ends seated pairs that have come apart; True if any did."""
        inside = frozenset(self._inside(self.seated, _APART))
        released = inside != self.seated
        self.seated = inside
        return released

    def seat(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Lets those of the pairs (lower, upper) that stand in each other's studs do so."""
        self.seated |= set(self._inside(pairs, SEATED_DEPTH))

    def _inside(self, pairs: Iterable[tuple[int, int]], depth: float) -> list[tuple[int, int]]:
        """Pairs whose stud slab and body penetrate each other by more than a depth [m]."""
        found = sorted(pairs)
        if not found:
            return []
        below, above = zip(*found, strict=True)
        deep = seat_depths(*self._placed(below + above)) > depth
        return [pair for pair, inside in zip(found, deep.tolist(), strict=True) if inside]

    def _placed(self, part_ids: Sequence[int]) -> tuple[IntArray, Array]:
        """Sizes and world poses of some parts."""
        if not self.changed:
            table = self.table
            rows = np.searchsorted(table.ids, np.array(part_ids, dtype=np.int64))
            local = table.component_T_part[rows]
            return table.sizes[rows], _part_poses(self.poses, table.row[rows], local)
        shapes = [self.graph.part(p).shape for p in part_ids]
        return (
            np.array([(s.length, s.width, s.height) for s in shapes], dtype=np.int64),
            np.array([self.part_pose(p) for p in part_ids]),
        )

    # -- engine -----------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether there are edits that the engine does not know yet."""
        return bool(self._edited) or not self._submitted <= set(self.graph.component_ids)

    def commit(self) -> None:
        """Hands all edits to the engine.

        Raises:
            EngineError: The engine refuses.
        """
        if not self.changed:  # but seats may have ended
            self._engine.update((), (), self.seated)
            return
        present = set(self.graph.component_ids)
        gone = [c for c in sorted(self._submitted) if c in self._edited or c not in present]
        self._engine.update(gone, [self.body(c) for c in sorted(self._edited)], self.seated)
        ids = np.array(sorted(present), dtype=np.int64)
        self.poses, self.twists = self._carried(ids)
        self.table = self._changed_table(ids, gone)
        self.component_ids = ids
        self._edited = {}
        self._submitted = frozenset(present)
        for component in self._masses.keys() - present:
            del self._masses[component]

    def _carried(self, ids: IntArray) -> tuple[Array, Array]:
        """Poses and twists of components: as edited, else as they are."""
        poses, twists = _carried(self.component_ids, self.poses, self.twists, ids)
        for component, (pose, twist) in self._edited.items():
            row = int(np.searchsorted(ids, component))
            poses[row], twists[row] = pose, twist
        return poses, twists

    def _changed_table(self, ids: IntArray, gone: Sequence[int]) -> PartTable:
        """The table after the edits: rows of components that stay, and new ones."""
        table, changed = self.table, sorted(self._edited)
        layouts = [self.graph.layout(c) for c in changed]
        coms = np.array([self.mass(c).com for c in changed]).reshape(-1, 3)
        counts = np.array([len(la.part_ids) for la in layouts], dtype=np.int64)
        return PartTable(
            *_merged(
                ids,
                (table.ids, table.components, table.component_T_part, table.arms, table.sizes),
                np.array(gone, dtype=np.int64),
                np.array(changed, dtype=np.int64),
                counts,
                coms,
                joined([la.part_ids for la in layouts], dtype=np.int64),
                joined([la.component_T_parts for la in layouts], (4, 4)),
                joined([la.coms for la in layouts], (3,)),
                joined([la.dimensions for la in layouts], (3,), np.int64),
            )
        )

    def read(self, report: StepReport) -> None:
        """Takes over the state at the end of an engine step."""
        self.poses, self.twists = report.world_T_component, report.twist

    def state(self) -> SceneState:
        """What `restore` takes."""
        return SceneState(
            graph=self.graph.copy(),
            fixed=self.fixed,
            seated=self.seated,
            component_ids=self.component_ids,
            poses=self.poses,
            twists=self.twists,
            table=self.table,
            edited=dict(self._edited),
            submitted=self._submitted,
            masses=dict(self._masses),
        )

    def restore(self, state: SceneState) -> None:
        """Returns to a state; the engine has to be restored to the same moment."""
        self.graph = state.graph.copy()
        self.fixed, self.seated = state.fixed, state.seated
        self.component_ids = state.component_ids
        self.poses, self.twists = state.poses, state.twists
        self.table = state.table
        self._edited, self._submitted = dict(state.edited), state.submitted
        self._masses = dict(state.masses)

    # -- inside -----------------------------------------------------------------------------

    def _row(self, component: int) -> int:
        row = int(np.searchsorted(self.component_ids, component))
        assert self.component_ids[row] == component
        return row


@compiled
def _carried(before: IntArray, poses: Array, twists: Array, ids: IntArray) -> tuple[Array, Array]:
    """(K, 4, 4) poses and (K, 6) twists of components, unset for new ones.

    Args:
        before: (J,) sorted ids of components.
        poses: (J, 4, 4)
        twists: (J, 6)
        ids: (K,) sorted ids of those that are wanted.
    """
    place = places_in(before, ids)
    found, moving = np.empty((len(ids), 4, 4)), np.empty((len(ids), 6))
    for k in range(len(ids)):
        if place[k] >= 0:
            found[k], moving[k] = poses[place[k]], twists[place[k]]
    return found, moving


@compiled
def _part_poses(poses: Array, rows: NDArray[np.intp], component_T_part: Array) -> Array:
    """(N, 4, 4) world_T_part [m].

    Args:
        poses: (K, 4, 4) world_T_component [m].
        rows: (N,) like the next, see `PartTable`.
        component_T_part: (N, 4, 4) [m].
    """
    found = np.zeros((len(rows), 4, 4))
    for n in range(len(rows)):
        pose, local = poses[rows[n]], component_T_part[n]
        for i in range(3):
            for j in range(4):
                found[n, i, j] = (
                    pose[i, 0] * local[0, j] + pose[i, 1] * local[1, j] + pose[i, 2] * local[2, j]
                )
            found[n, i, 3] += pose[i, 3]
        found[n, 3, 3] = 1.0
    return found


@compiled
def _part_twists(poses: Array, twists: Array, rows: NDArray[np.intp], arms: Array) -> Array:
    """(N, 6) COM linear and angular velocities of parts [m/s, rad/s].

    Args:
        poses: (K, 4, 4) world_T_component [m].
        twists: (K, 6) of the components [m/s, rad/s].
        rows: (N,) like the next, see `PartTable`.
        arms: (N, 3) [m].
    """
    found, arm = np.empty((len(rows), 6)), np.empty(3)
    for n in range(len(rows)):
        pose, twist = poses[rows[n]], twists[rows[n]]
        for i in range(3):
            arm[i] = pose[i, 0] * arms[n, 0] + pose[i, 1] * arms[n, 1] + pose[i, 2] * arms[n, 2]
        x, y, z = crossed(twist[3:], arm)
        found[n] = twist
        found[n, 0] += x
        found[n, 1] += y
        found[n, 2] += z
    return found


@compiled
def _merged(
    ids: IntArray,
    table: tuple[IntArray, IntArray, Array, Array, IntArray],
    gone: IntArray,
    changed: IntArray,
    counts: IntArray,
    component_coms: Array,
    part_ids: IntArray,
    component_T_part: Array,
    coms: Array,
    sizes: IntArray,
) -> tuple[IntArray, IntArray, NDArray[np.intp], Array, Array, IntArray]:
    """A `PartTable` with some components taken out and others put in.

    Args:
        ids: (K,) sorted ids of all components then.
        table: Of the table before: ids, components, component_T_part, arms and sizes.
        gone: Sorted ids of the components to take out.
        changed: (M,) ids of those to put in.
        counts: (M,) how many parts each has, N in all.
        component_coms: (M, 3) their centres of mass, component axes [m].
        part_ids: (N,) their parts.
        component_T_part: (N, 4, 4) [m].
        coms: (N, 3) of the parts, component axes [m].
        sizes: (N, 3)
    """
    old_ids, old_components, old_poses, old_arms, old_sizes = table
    stay = np.flatnonzero(places_in(gone, old_components) < 0)
    all_ids = np.concatenate((old_ids[stay], part_ids))
    order, count = np.argsort(all_ids, kind="mergesort"), len(stay)
    owner = np.repeat(np.arange(len(changed)), counts)
    components, rows = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.intp)
    poses, arms = np.empty((len(order), 4, 4)), np.empty((len(order), 3))
    all_sizes = np.empty((len(order), 3), dtype=np.int64)
    for n in range(len(order)):
        if order[n] < count:
            m = stay[order[n]]
            components[n], poses[n], arms[n] = old_components[m], old_poses[m], old_arms[m]
            all_sizes[n] = old_sizes[m]
        else:
            m = order[n] - count
            components[n], poses[n] = changed[owner[m]], component_T_part[m]
            arms[n], all_sizes[n] = coms[m] - component_coms[owner[m]], sizes[m]
        rows[n] = np.searchsorted(ids, components[n])
    return all_ids[order], components, rows, poses, arms, all_sizes


def stacked(below: ComponentLayout, above: ComponentLayout) -> list[tuple[int, int]]:
    """Pairs (lower, upper part) of two layouts in one frame where the upper one is on the studs."""
    lower, upper = _stacked(below.boxes, below.studded, above.boxes)
    return list(zip(below.part_ids[lower].tolist(), above.part_ids[upper].tolist(), strict=True))


@compiled
def _stacked(
    below: IntArray, studded: NDArray[np.bool_], above: IntArray
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of boxes (`ComponentLayout.boxes`) of which one stands on the other's studs.

    Args:
        below: (N, 2, 3) [studs, studs, plates].
        studded: (N,) which of them have studs.
        above: (M, 2, 3)

    Returns:
        (P,) indices of the lower and (P,) of the upper boxes, in order.
    """
    count, lower, upper = 0, np.empty(64, dtype=np.intp), np.empty(64, dtype=np.intp)
    for i in range(len(below)):
        for j in range(len(above)):
            if (
                below[i, 1, 2] != above[j, 0, 2]
                or not studded[i]
                or below[i, 0, 0] >= above[j, 1, 0]
                or above[j, 0, 0] >= below[i, 1, 0]
                or below[i, 0, 1] >= above[j, 1, 1]
                or above[j, 0, 1] >= below[i, 1, 1]
            ):
                continue
            if count == len(lower):
                lower, upper = np.append(lower, lower), np.append(upper, upper)
            lower[count], upper[count] = i, j
            count += 1
    return lower[:count], upper[:count]


def component_T_other(graph: BrickTopologyGraph, connection: Connection, anchor: int) -> GridPose:
    """Grid pose of the other component's frame in the anchor's if a connection were made."""
    below, above = connection.stud_part, connection.hole_part
    pose = (
        graph.grid_pose(below)
        @ connection.stud_T_hole(graph.part(below).shape)
        @ graph.grid_pose(above).inverse()
    )
    return pose if graph.component_of(below) == anchor else pose.inverse()
