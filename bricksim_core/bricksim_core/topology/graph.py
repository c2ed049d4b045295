# SPDX-License-Identifier: Apache-2.0
"""The Brick Topology Graph.

Nodes are parts. An edge bundles every connection between the same two parts. Each connected
component has a grid frame in which its parts have exact integer poses; the graph refuses whatever
would give a part two poses or put two parts into the same place. World poses are not kept here:
they are composed from the pose of the component frame, so nothing drifts.
"""

from __future__ import annotations

import itertools
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import SupportsIndex

import networkx as nx
import numpy as np

from bricksim_core.errors import (
    AlreadyConnectedError,
    CollisionError,
    InconsistentTransformError,
    NoOverlapError,
    TopologyError,
    UnknownIdError,
)
from bricksim_core.parts import HOLE_INTERFACE, STUD_INTERFACE, BrickShape, Color, Part
from bricksim_core.topology.grid import GridPose
from bricksim_core.topology.ids import MAX_ID, as_id
from bricksim_core.topology.joining import Merged, ends_in, merged_components
from bricksim_core.topology.layout import ComponentLayout
from bricksim_core.topology.occupancy import BoxList, Occupancy, Occupied

_LISTED = 8
"""Parts of a component for each one that asks what is there from which on looking at all of them
costs less than to hash them."""


@dataclass(frozen=True)
class Connection:
    """A stud interface pressed into a hole interface.

    Attributes:
        id: Connection id.
        stud_part: Id of the lower part.
        hole_part: Id of the upper part.
        offset: Origin of the hole interface frame in the stud interface frame [studs].
        yaw: Rotation of the hole interface frame about +z [quarter turns, 0-3].
        stud_interface: Interface id on the lower part.
        hole_interface: Interface id on the upper part.
    """

    id: int
    stud_part: int
    hole_part: int
    offset: tuple[int, int]
    yaw: int
    stud_interface: int = STUD_INTERFACE
    hole_interface: int = HOLE_INTERFACE

    @property
    def interfaces(self) -> tuple[int, int, int, int]:
        """What makes a connection unique: parts and interfaces."""
        return (self.stud_part, self.stud_interface, self.hole_part, self.hole_interface)

    def stud_T_hole(self, stud_shape: BrickShape) -> GridPose:
        """Grid pose of the hole interface in the lower part's hole interface frame."""
        return GridPose(*self.offset, stud_shape.height, self.yaw)


@dataclass
class Component:
    """A rigid set of connected parts: grid poses in the component frame."""

    id: int
    parts: dict[int, GridPose] = field(default_factory=dict)
    occupancy: Occupancy | None = None
    """Where its parts are; None until a search needs it."""

    def copy(self) -> Component:
        """An independent copy."""
        occupancy = None if self.occupancy is None else self.occupancy.copy()
        return Component(self.id, dict(self.parts), occupancy)


@dataclass(frozen=True)
class Joined:
    """What `BrickTopologyGraph.connect` did.

    Attributes:
        connections: The new connections, the requested one first.
        component: Id of the component that holds them all now.
        absorbed: Id of the component that ended, None if both parts were in one already.
        component_T_absorbed: Grid pose of the ended component's frame in the one that stays.
    """

    connections: tuple[Connection, ...]
    component: int
    absorbed: int | None = None
    component_T_absorbed: GridPose = GridPose()


@dataclass(frozen=True)
class Separated:
    """What `BrickTopologyGraph.disconnect` did.

    Attributes:
        connections: The connections that ended.
        pieces: For each component that was touched, the components it consists of now (its own id
            first). All pieces keep the component frame they came from.
    """

    connections: tuple[Connection, ...]
    pieces: dict[int, tuple[int, ...]]


class BrickTopologyGraph:
    """Parts and connections with exact poses inside each component.

    Every mutating method either succeeds or raises and leaves the graph as it was.
    """

    def __init__(self) -> None:
        self._graph = nx.Graph()
        self._connections: dict[int, Connection] = {}
        self._components: dict[int, Component] = {}
        self._component_of: dict[int, int] = {}
        self._next_part = 0
        self._next_connection = 0
        self._next_component = 0
        self._layouts: dict[int, ComponentLayout] = {}
        # Of components that lost parts or connections since: the last layout, what ended.
        self._former: dict[int, tuple[ComponentLayout, frozenset[int]]] = {}

    def copy(self) -> BrickTopologyGraph:
        """An independent graph that equals this one, the ids that it will give included."""
        other = BrickTopologyGraph()
        # Attributes of nodes never change.
        other._graph._node = dict(self._graph._node)  # type: ignore[attr-defined]
        # What `add_edges_from` would do, at a tenth of the time.
        neighbours: dict[int, dict[int, dict]] = {p: {} for p in self._graph}
        for a, adjacent in self._graph._adj.items():  # type: ignore[attr-defined]
            own = neighbours[a]
            for b, data in adjacent.items():
                if b not in own:
                    own[b] = neighbours[b][a] = {"connections": dict(data["connections"])}
        other._graph._adj = neighbours  # type: ignore[attr-defined]
        other._connections = dict(self._connections)
        other._components = {i: c.copy() for i, c in self._components.items()}
        other._component_of = dict(self._component_of)
        other._next_part = self._next_part
        other._next_connection = self._next_connection
        other._next_component = self._next_component
        other._layouts, other._former = dict(self._layouts), dict(self._former)
        return other

    def continue_ids(self, other: BrickTopologyGraph) -> None:
        """Makes the ids of new parts and connections go on after those that ``other`` has given."""
        self._next_part = max(self._next_part, other._next_part)
        self._next_connection = max(self._next_connection, other._next_connection)

    # -- reading ----------------------------------------------------------------------------

    @property
    def graph(self) -> nx.Graph:
        """networkx graph of part ids; node attribute ``part``, edge attribute ``connections``
        (dict of `Connection` by id). Read only."""
        return self._graph

    @property
    def part_ids(self) -> list[int]:
        """Sorted ids of all parts."""
        return sorted(self._graph.nodes)

    @property
    def connections(self) -> dict[int, Connection]:
        """All connections by id, in order of creation. Read only."""
        return self._connections

    @property
    def next_part_id(self) -> int:
        """Id that the next part gets; those after it are free too."""
        return self._next_part

    @property
    def next_connection_id(self) -> int:
        """Id that the next connection gets; those after it are free too."""
        return self._next_connection

    @property
    def component_ids(self) -> list[int]:
        """Sorted ids of all components."""
        return sorted(self._components)

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, part_id: object) -> bool:
        return part_id in self._graph

    def part(self, part_id: int) -> Part:
        """The part with this id.

        Raises:
            UnknownIdError: There is none.
        """
        try:
            return self._graph.nodes[part_id]["part"]
        except KeyError:
            raise UnknownIdError(f"part id {part_id!r} does not exist") from None

    def parts(self) -> Iterator[Part]:
        """All parts, by id."""
        return (self.part(part_id) for part_id in self.part_ids)

    def colors(self, part_ids: Iterable[int]) -> tuple[Color, ...]:
        """Colours of some parts."""
        nodes = self._graph._node  # type: ignore[attr-defined]  # views check every key
        return tuple([nodes[part_id]["part"].color for part_id in part_ids])

    def connection(self, connection_id: int) -> Connection:
        """The connection with this id.

        Raises:
            UnknownIdError: There is none.
        """
        try:
            return self._connections[connection_id]
        except KeyError:
            raise UnknownIdError(f"connection id {connection_id!r} does not exist") from None

    def connections_of(self, part_id: int) -> list[Connection]:
        """Connections of one part, sorted by id.

        Raises:
            UnknownIdError: The part does not exist.
        """
        self.part(part_id)
        bundles = (data["connections"] for _, _, data in self._graph.edges(part_id, data=True))
        return sorted(itertools.chain.from_iterable(b.values() for b in bundles), key=_by_id)

    def connections_between(self, part_a: int, part_b: int) -> list[Connection]:
        """Connections between two parts, sorted by id; empty when there are none."""
        for part_id in (part_a, part_b):
            self.part(part_id)
        data = self._graph.get_edge_data(part_a, part_b)
        return sorted(data["connections"].values(), key=_by_id) if data else []

    def component_of(self, part_id: int) -> int:
        """Id of the component that holds a part.

        Raises:
            UnknownIdError: The part does not exist.
        """
        self.part(part_id)
        return self._component_of[part_id]

    def component_parts(self, component_id: int) -> list[int]:
        """Sorted part ids of a component.

        Raises:
            UnknownIdError: The component does not exist.
        """
        return sorted(self._component(component_id).parts)

    def grid_pose(self, part_id: int) -> GridPose:
        """Grid pose of a part's hole interface frame in its component's frame.

        Raises:
            UnknownIdError: The part does not exist.
        """
        return self._components[self.component_of(part_id)].parts[part_id]

    def relative_grid_pose(self, part_a: int, part_b: int) -> GridPose:
        """Grid pose a_T_b between hole interface frames of two parts of one component.

        Raises:
            UnknownIdError: A part does not exist.
            TopologyError: The parts are in different components.
        """
        if self.component_of(part_a) != self.component_of(part_b):
            raise TopologyError(f"parts {part_a} and {part_b} are not in one component")
        return self.grid_pose(part_a).inverse() @ self.grid_pose(part_b)

    def layout(self, component_id: int) -> ComponentLayout:
        """The component as arrays. The same object is returned until the component changes.

        Raises:
            UnknownIdError: The component does not exist.
        """
        component = self._component(component_id)
        if component_id not in self._layouts:
            former = self._former.pop(component_id, None)
            if former is None:
                layout = self._new_layout(component.parts)
            else:
                whole, ended = former
                layout = whole.kept(np.array(sorted(component.parts), dtype=np.int64), ended)
            self._layouts[component_id] = layout
        return self._layouts[component_id]

    # -- changing ---------------------------------------------------------------------------

    def add_part(
        self,
        shape: BrickShape,
        color: Color = (255, 255, 255),
        *,
        part_id: int | None = None,
        grid: GridPose = GridPose(),
    ) -> int:
        """Adds an unconnected part as a component of its own.

        Args:
            shape: Its dimensions.
            color: Its colour.
            part_id: Its id; None takes the next free one. Ids are never given twice by the graph.
            grid: Where it sits in the frame of its new component.

        Returns:
            The part id.

        Raises:
            TopologyError: The id is in use or none (see `as_id`), or none is left.
        """
        part_id = as_id(self._next_part if part_id is None else part_id, "part id")
        if part_id in self._graph:
            raise TopologyError(f"part id {part_id} is in use already, expected a new one")
        part = Part(part_id, shape, color)
        self._next_part = max(self._next_part, part_id + 1)
        self._graph.add_node(part_id, part=part)
        component = self._new_component()
        component.parts[part_id] = grid
        self._component_of[part_id] = component.id
        return part_id

    @classmethod
    def on_grid(
        cls, parts: Sequence[tuple[Part, GridPose]], connections: Sequence[Connection]
    ) -> BrickTopologyGraph:
        """The graph of parts that stand on one grid, at once and unchecked.

        Does what `add_part` for all of them and then `connect_all` do, for a caller who has found
        the connections from the poses and knows that no two parts overlap.

        Args:
            parts: Parts with ids of their own, and where they stand.
            connections: With ids of their own, each between two parts that have no other.
        """
        graph = cls()
        place = {part.id: k for k, (part, _) in enumerate(parts)}
        graph._graph.add_nodes_from((part.id, {"part": part}) for part, _ in parts)
        lower = [place[c.stud_part] for c in connections]
        upper = [place[c.hole_part] for c in connections]
        kept = ends_in([1] * len(parts), lower, upper)
        # The part whose component stays comes first, as if the others had been added to it.
        members = {k: {parts[k][0].id: parts[k][1]} for k, root in enumerate(kept) if k == root}
        for (part, grid), root in zip(parts, kept, strict=True):
            members[root][part.id] = grid
            graph._component_of[part.id] = root
        graph._components = {k: Component(k, grids) for k, grids in members.items()}
        graph._next_component = len(parts)
        graph._next_part = max(place, default=-1) + 1
        graph._insert(connections)
        return graph

    def remove_part(self, part_id: int) -> Separated:
        """Removes a part with its connections.

        Returns:
            What came apart; the component that held the removed part alone is not among the pieces.

        Raises:
            UnknownIdError: The part does not exist.
        """
        before = self.component_of(part_id)
        separated = self.disconnect(c.id for c in self.connections_of(part_id))
        own = self._component_of.pop(part_id)
        del self._components[own]
        self._forget_layout(own)
        self._graph.remove_node(part_id)
        pieces = separated.pieces.get(before, (before,))
        return Separated(separated.connections, {before: tuple(p for p in pieces if p != own)})

    def connect(
        self,
        stud_part: int,
        hole_part: int,
        offset: tuple[int, int],
        yaw: int,
        *,
        connection_id: int | None = None,
        keep: int | None = None,
        closure: bool = True,
    ) -> Joined:
        """Connects the stud interface of one part with the hole interface of another.

        Args:
            stud_part: Lower part.
            hole_part: Upper part.
            offset: Origin of the hole interface frame in the stud interface frame [studs].
            yaw: Rotation of the hole interface frame about +z [quarter turns], any integer.
            connection_id: Id of the connection; None takes the next free one.
            keep: Id of the component whose frame and id stay; None keeps the one with more parts.
            closure: Also connect every other pair of interfaces that coincide after the join.

        Raises:
            UnknownIdError: A part does not exist.
            TopologyError: Self-connection, id in use, tile without studs, or ``keep`` is neither.
            NoOverlapError: The grids do not overlap.
            AlreadyConnectedError: These interfaces are connected already.
            InconsistentTransformError: The graph implies another relative pose already.
            CollisionError: Two parts would occupy the same place.
        """
        connection = self._new_connection(stud_part, hole_part, offset, yaw, connection_id)
        stud_component = self._components[self._component_of[stud_part]]
        hole_component = self._components[self._component_of[hole_part]]
        stud_T_hole = connection.stud_T_hole(self.part(stud_part).shape)
        target = stud_component.parts[stud_part] @ stud_T_hole
        if stud_component is hole_component:
            self._require_consistent(connection, stud_T_hole)
            self._insert([connection])
            self._forget_layout(stud_component.id)
            return Joined((connection,), stud_component.id)

        stud_T_hole_frame = target @ hole_component.parts[hole_part].inverse()
        kept, absorbed, kept_T_absorbed = stud_component, hole_component, stud_T_hole_frame
        if keep is None:
            swap = len(hole_component.parts) > len(stud_component.parts)
        elif keep in (stud_component.id, hole_component.id):
            swap = keep == hole_component.id
        else:
            raise TopologyError(
                f"keep is component {keep}, expected {stud_component.id} or {hole_component.id}"
            )
        if swap:
            kept, absorbed = hole_component, stud_component
            kept_T_absorbed = stud_T_hole_frame.inverse()

        moved = {p: kept_T_absorbed @ grid for p, grid in absorbed.parts.items()}
        occupancy = self._occupied(kept, len(moved))
        for part_id, grid in moved.items():
            other = occupancy.collision(grid, self.part(part_id).shape)
            if other is not None:
                raise CollisionError(
                    f"connecting part {hole_part} onto part {stud_part} (offset"
                    f" {connection.offset}, yaw {connection.yaw}) would put part {part_id} into"
                    f" part {other}"
                )
        joined = [connection]
        if closure:
            joined += self._coincident(moved, kept, occupancy, skip=connection)
        for part_id, grid in moved.items():
            kept.parts[part_id] = grid
            if kept.occupancy is not None:
                kept.occupancy.add(part_id, grid, self.part(part_id).shape)
            self._component_of[part_id] = kept.id
        del self._components[absorbed.id]
        layout, other_layout = self._layouts.get(kept.id), self._layouts.get(absorbed.id)
        for changed in (kept.id, absorbed.id):
            self._forget_layout(changed)
        self._insert(joined)
        if layout is not None and other_layout is not None:
            grids = np.array([moved[p] for p in other_layout.part_ids.tolist()], dtype=np.int64)
            self._layouts[kept.id] = layout.joined(other_layout.moved(grids), joined)
        return Joined(tuple(joined), kept.id, absorbed.id, kept_T_absorbed)

    def connect_all(self, connections: Iterable[Connection]) -> None:
        """Makes many connections at once: quick where most of the graph is new.

        Does what `connect` without closure does for one after the other, component ids and frames
        included, but all connections or none.

        Args:
            connections: With new ids and yaws of 0 to 3.

        Raises:
            TopologyError: As `connect` raises for the first one that it would refuse.
        """
        new = list(connections)
        merged = self._merged(new)
        if merged is None:
            trial = self.copy()
            for c in new:
                trial.connect(
                    c.stud_part, c.hole_part, c.offset, c.yaw, connection_id=c.id, closure=False
                )
            raise TopologyError("a yaw or an interface id is none that a connection is kept with")
        for kept_id, (absorbed, grids) in merged.items():
            kept = self._components[kept_id]
            kept.parts, kept.occupancy = grids, None
            self._component_of.update(dict.fromkeys(grids, kept_id))
            for component_id in absorbed:
                del self._components[component_id]
            for changed in (kept_id, *absorbed):
                self._forget_layout(changed)
        self._insert(new)

    def disconnect(self, connection_ids: Iterable[int]) -> Separated:
        """Ends connections; components fall apart where nothing else holds them.

        Raises:
            UnknownIdError: A connection does not exist (nothing is changed then).
        """
        ended = [self.connection(i) for i in dict.fromkeys(connection_ids)]
        ends: dict[int, list[int]] = {}
        neighbours = self._graph._adj  # type: ignore[attr-defined]  # views check every key
        for connection in ended:
            pair = (connection.stud_part, connection.hole_part)
            ends.setdefault(self._component_of[connection.stud_part], []).extend(pair)
            bundle = neighbours[pair[0]][pair[1]]["connections"]
            del bundle[connection.id], self._connections[connection.id]
            if not bundle:
                self._graph.remove_edge(*pair)
        pieces = {}
        for component_id, part_ids in ends.items():
            former = self._without(component_id, frozenset(c.id for c in ended))
            component = self._components[component_id]
            split = [self._split_off(component, p) for p in self._cut_off(part_ids)]
            pieces[component_id] = (component_id, *split)
            if former is not None:
                self._former.update(dict.fromkeys(pieces[component_id], former))
        return Separated(tuple(ended), pieces)

    # -- inside -----------------------------------------------------------------------------

    def _component(self, component_id: int) -> Component:
        try:
            return self._components[component_id]
        except KeyError:
            raise UnknownIdError(f"component id {component_id!r} does not exist") from None

    def _forget_layout(self, component_id: int) -> None:
        self._layouts.pop(component_id, None)
        self._former.pop(component_id, None)

    def _without(
        self, component_id: int, ended: frozenset[int]
    ) -> tuple[ComponentLayout, frozenset[int]] | None:
        """Forgets a component's layout; the last one and what has ended since, if there is one."""
        whole, before = self._former.pop(component_id, (None, frozenset[int]()))
        whole = self._layouts.pop(component_id, whole)
        return None if whole is None else (whole, before | ended)

    def _new_layout(self, grids: dict[int, GridPose]) -> ComponentLayout:
        part_ids = sorted(grids)
        index = {part_id: i for i, part_id in enumerate(part_ids)}
        nodes = self._graph.nodes
        if len(grids) == len(self._graph):
            connections = sorted(self._connections.values(), key=_by_id)
        else:
            bundles = (
                data["connections"].values()
                for part_id in part_ids
                for other, data in self._graph.adj[part_id].items()
                if part_id < other
            )
            connections = sorted(itertools.chain.from_iterable(bundles), key=_by_id)
        return ComponentLayout(
            part_ids=np.array(part_ids, dtype=np.int64),
            shapes=tuple(nodes[p]["part"].shape for p in part_ids),
            grids=np.array([grids[p] for p in part_ids], dtype=np.int64).reshape(-1, 4),
            connection_ids=np.array([c.id for c in connections], dtype=np.int64),
            stud_index=np.array([index[c.stud_part] for c in connections], dtype=np.int64),
            hole_index=np.array([index[c.hole_part] for c in connections], dtype=np.int64),
            offsets=np.array([c.offset for c in connections], dtype=np.int64).reshape(-1, 2),
            yaws=np.array([c.yaw for c in connections], dtype=np.int64),
        )

    def _new_connection(
        self,
        stud_part: int,
        hole_part: int,
        offset: tuple[int, int],
        yaw: int,
        connection_id: int | None,
    ) -> Connection:
        stud, hole = self.part(stud_part), self.part(hole_part)
        if connection_id is None:
            connection_id = self._next_connection
        connection_id = as_id(connection_id, "connection id")
        x, y = (_whole(o, "offset") for o in offset)
        yaw = _whole(yaw, "yaw") % 4
        connection = Connection(connection_id, stud_part, hole_part, (x, y), yaw)
        name = f"connection {connection_id} (stud part {stud_part}, hole part {hole_part})"
        if connection_id in self._connections:
            raise TopologyError(f"connection id {connection_id} is in use, expected a new one")
        if stud_part == hole_part:
            raise TopologyError(f"{name} connects a part with itself")
        if not stud.shape.has_studs:
            raise TopologyError(f"{name}: part {stud_part} is a {stud.shape} and has no studs")
        pose = connection.stud_T_hole(stud.shape)
        x0, y0, x1, y1 = pose.footprint(hole.shape)
        if min(x1, stud.shape.length) <= max(x0, 0) or min(y1, stud.shape.width) <= max(y0, 0):
            raise NoOverlapError(
                f"{name}: offset {connection.offset}, yaw {connection.yaw} covers cells"
                f" x {x0}..{x1}, y {y0}..{y1}, expected an overlap with 0..{stud.shape.length},"
                f" 0..{stud.shape.width}"
            )
        for other in self.connections_between(stud_part, hole_part):
            if other.interfaces == connection.interfaces:
                raise AlreadyConnectedError(f"{name}: already connected by connection {other.id}")
        return connection

    def _merged(self, new: list[Connection]) -> dict[int, Merged] | None:
        """What `merged_components` says, None also where ids are unknown, in use or too large."""
        ids = {c.id for c in new}
        if ids and not -MAX_ID <= min(ids) <= max(ids) <= MAX_ID:
            return None
        if len(ids) < len(new) or not self._connections.keys().isdisjoint(ids):
            return None
        ends = dict.fromkeys(p for c in new for p in (c.stud_part, c.hole_part))
        if not self._component_of.keys() >= ends.keys():
            return None
        if any(self._graph.has_edge(c.stud_part, c.hole_part) for c in new):
            return None
        touched = dict.fromkeys(self._component_of[p] for p in ends)
        components = {i: self._components[i].parts for i in touched}
        nodes = self._graph.nodes
        shapes = {p: nodes[p]["part"].shape for parts in components.values() for p in parts}
        return merged_components(components, shapes, new)

    def _require_consistent(self, connection: Connection, stud_T_hole: GridPose) -> None:
        implied = self.relative_grid_pose(connection.stud_part, connection.hole_part)
        if implied == stud_T_hole:
            return
        path = nx.shortest_path(self._graph, connection.stud_part, connection.hole_part)
        raise InconsistentTransformError(
            f"connection {connection.id} puts part {connection.hole_part} at x, y, z, yaw ="
            f" {tuple(stud_T_hole)} from part {connection.stud_part}, but the path"
            f" {' - '.join(map(str, path))} implies {tuple(implied)}"
        )

    def _coincident(
        self,
        moved: dict[int, GridPose],
        kept: Component,
        occupancy: Occupied,
        skip: Connection,
    ) -> list[Connection]:
        """Connections of all coincident interface pairs between the kept and the moved parts."""
        ids = itertools.count(max(self._next_connection, skip.id + 1))
        found = []
        for part_id in sorted(moved):
            grid, shape = moved[part_id], self.part(part_id).shape
            below = occupancy.touching(grid, shape, above=False)
            above = occupancy.touching(grid, shape, above=True) if shape.has_studs else []
            pairs = [(other, part_id) for other in below] + [(part_id, other) for other in above]
            for stud, hole in pairs:
                if (stud, hole) == (skip.stud_part, skip.hole_part):
                    continue
                if not self.part(stud).shape.has_studs:
                    continue
                stud_grid = moved.get(stud) or kept.parts[stud]
                hole_grid = moved.get(hole) or kept.parts[hole]
                relative = stud_grid.inverse() @ hole_grid
                found.append(
                    Connection(
                        as_id(next(ids), "connection id"),
                        stud,
                        hole,
                        (relative.x, relative.y),
                        relative.yaw,
                    )
                )
        return found

    def _insert(self, connections: Sequence[Connection]) -> None:
        for connection in connections:
            pair = (connection.stud_part, connection.hole_part)
            edge = self._graph.get_edge_data(*pair)
            if edge is None:
                self._graph.add_edge(*pair, connections={connection.id: connection})
            else:
                edge["connections"][connection.id] = connection
            self._connections[connection.id] = connection
            self._next_connection = max(self._next_connection, connection.id + 1)

    def _cut_off(self, part_ids: Iterable[int]) -> list[set[int]]:
        """The pieces that hold the given parts of one component, all but one of them.

        Searches from all parts advance in turn and merge where they meet, until one is left; so
        the cost depends on the smaller pieces only, and the piece left over is the largest but for
        the order of the search.
        """
        neighbours = self._graph._adj  # type: ignore[attr-defined]  # views check every key
        owner = {part_id: part_id for part_id in part_ids}
        seen = {part_id: {part_id} for part_id in owner}
        frontiers = {part_id: deque([part_id]) for part_id in owner}
        pieces = []
        while len(frontiers) > 1:
            for source in list(frontiers):
                if len(frontiers) == 1:
                    break
                if source not in frontiers:  # merged into another in this round
                    continue
                if not frontiers[source]:
                    del frontiers[source]
                    pieces.append(seen.pop(source))
                    continue
                # Sorted, so that a copy of the graph falls apart into the same component ids.
                for neighbour in sorted(neighbours[frontiers[source].popleft()]):
                    other = owner.get(neighbour)
                    if other is None:
                        owner[neighbour] = source
                        seen[source].add(neighbour)
                        frontiers[source].append(neighbour)
                    elif other != source:
                        if len(seen[other]) > len(seen[source]):
                            source, other = other, source
                        owner.update(dict.fromkeys(seen[other], source))
                        seen[source] |= seen.pop(other)
                        frontiers[source] += frontiers.pop(other)
        return pieces

    def _split_off(self, component: Component, part_ids: set[int]) -> int:
        piece = self._new_component()
        for part_id in part_ids:
            grid = component.parts.pop(part_id)
            if component.occupancy is not None:
                component.occupancy.remove(part_id, grid, self.part(part_id).shape)
            piece.parts[part_id] = grid
            self._component_of[part_id] = piece.id
        return piece.id

    def _occupied(self, component: Component, asked: int) -> Occupied:
        """Where a component's parts are, for so many others that ask."""
        if component.occupancy is None:
            layout = self._layouts.get(component.id)
            if layout is not None and _LISTED * asked <= len(component.parts):
                return BoxList(layout.part_ids, layout.boxes)
            component.occupancy = Occupancy()
            for part_id, grid in component.parts.items():
                component.occupancy.add(part_id, grid, self.part(part_id).shape)
        return component.occupancy

    def _new_component(self) -> Component:
        component = Component(self._next_component)
        self._components[component.id] = component
        self._next_component += 1
        return component


def _whole(value: SupportsIndex, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TopologyError(f"{name} is {value!r}, expected a whole number") from None


def _by_id(connection: Connection) -> int:
    return connection.id
