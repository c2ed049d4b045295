# SPDX-License-Identifier: Apache-2.0
"""Bookkeeping of engines in which every brick is its own body.

`WeldedScene` turns "these components go, these come" (`Engine.update`) into the fewest edits of
bodies, welds and collision filters. It knows no engine: ovphysx and Isaac Sim carry out the same
`Edits`, each in its own way.

Filters. Bricks of one component that touch (or nearly) never collide with each other. Where studs
stand in a hole without a connection (`Engine.update`, ``seated``), only the stud slab of the lower
brick and the body of the upper one ignore each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bricksim_core.engines.protocol import BodySpec
from bricksim_core.engines.rigid_fit import RigidGroups
from bricksim_core.engines.welds import Pair, Welds, schedule
from bricksim_core.errors import EngineError
from bricksim_core.parts import BrickShape, Color
from bricksim_core.spatial import Array, inverse
from bricksim_core.topology.grid import relative
from bricksim_core.topology.layout import ComponentLayout


class FilterPrim(NamedTuple):
    """What a collision filter speaks of: a whole brick, its stud slab or its body box."""

    part_id: int
    shape: str = "brick"


@dataclass(frozen=True, eq=False)
class Body:
    """A brick as a body of its own.

    Attributes:
        part_id: Part id.
        shape: Its dimensions.
        color: Its colour.
        world_T_part: (4, 4) pose [m].
        twist: (6,) velocity of its COM and angular velocity, world [m/s, rad/s].
        fixed: True if the world holds it.
    """

    part_id: int
    shape: BrickShape
    color: Color
    world_T_part: Array
    twist: Array
    fixed: bool


@dataclass(frozen=True, eq=False)
class Weld:
    """A weld of two bricks, a < b.

    Attributes:
        pair: Part ids (a, b).
        a_T_weld: (4, 4) weld frame, halfway between the two COMs, in the frame of part a [m].
        b_T_weld: (4, 4) the same frame in the frame of part b [m].
    """

    pair: Pair
    a_T_weld: Array
    b_T_weld: Array


@dataclass(eq=False)
class Edits:
    """What an engine has to do, in this order.

    Attributes:
        unwelded: Welds to take away.
        deleted: Parts whose bodies go.
        created: Bodies to make.
        moved: Bodies that exist and take a new pose and twist.
        held: Existing bodies whose ``fixed`` changes: part id to the new value.
        filters: New list of what each filter prim does not collide with (all of it).
        welded: Welds to make.
    """

    unwelded: list[Pair] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    created: list[Body] = field(default_factory=list)
    moved: list[Body] = field(default_factory=list)
    held: dict[int, bool] = field(default_factory=dict)
    filters: dict[FilterPrim, list[FilterPrim]] = field(default_factory=dict)
    welded: list[Weld] = field(default_factory=list)


class WeldedScene:
    """Which bodies, welds and filters the engine holds at present."""

    def __init__(self) -> None:
        self.bodies: dict[int, BodySpec] = {}
        self._welds: dict[int, Welds] = {}
        self._relative: dict[Pair, tuple[int, ...]] = {}
        self._owner: dict[Pair, int] = {}
        self._seated: frozenset[Pair] = frozenset()
        self._home: dict[int, int] = {}

    # -- reading ----------------------------------------------------------------------------

    @cached_property
    def component_ids(self) -> list[int]:
        """Sorted ids of the components."""
        return sorted(self.bodies)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """(K,) the same as an array."""
        return np.array(self.component_ids, dtype=np.int64)

    @cached_property
    def fixed(self) -> NDArray[np.bool_]:
        """(K,) whether the world holds each component."""
        return np.array([self.bodies[c].fixed for c in self.component_ids], dtype=np.bool_)

    @cached_property
    def groups(self) -> RigidGroups:
        """All components as arrays, by id."""
        return RigidGroups.of([self.bodies[c].layout for c in self.component_ids])

    @property
    def welds(self) -> frozenset[Pair]:
        """Pairs of parts that are welded."""
        return frozenset(self._relative)

    @property
    def seated(self) -> frozenset[Pair]:
        """(lower, upper) pairs whose stud slab and body ignore each other."""
        return self._seated

    # -- changing ---------------------------------------------------------------------------

    def check(self, removed: Sequence[int], added: Sequence[BodySpec]) -> None:
        """Refuses what `update` could not do.

        Raises:
            EngineError: A component id is unknown or given twice, a part is in two components, or
                a pose or twist is not rigid and finite.
        """
        going = set(removed)
        if len(going) < len(removed):
            raise EngineError(f"removed components {sorted(removed)}: an id is given twice")
        if unknown := going - self.bodies.keys():
            raise EngineError(f"component {min(unknown)} is unknown, expected one of this engine")
        coming: set[int] = set()
        taken = {p for p, component in self._home.items() if component not in going}
        for spec in added:
            if spec.component in coming or spec.component in self.bodies.keys() - going:
                raise EngineError(f"component {spec.component} is given twice")
            coming.add(spec.component)
            for part_id in spec.layout.part_ids.tolist():
                if part_id in taken:
                    raise EngineError(f"part {part_id} is in two components")
                taken.add(part_id)
            _check_motion(spec)

    def update(
        self,
        removed: Sequence[int],
        added: Sequence[BodySpec],
        seated: Collection[Pair] | None = None,
    ) -> Edits:
        """Takes components out and puts components in, as `Engine.update`.

        Returns:
            What the engine has to do.

        Raises:
            EngineError: As `check`; nothing has changed then.
        """
        self.check(removed, added)
        old = {c: self.bodies.pop(c) for c in removed}
        old_welds = {c: self._welds.pop(c) for c in removed}
        self.bodies.update((spec.component, spec) for spec in added)
        for spec in old.values():
            for part_id in spec.layout.part_ids.tolist():
                del self._home[part_id]
        for spec in added:
            self._home.update(dict.fromkeys(spec.layout.part_ids.tolist(), spec.component))
        self._changed()

        edits = Edits()
        before = {
            p: (c, spec.fixed) for c, spec in old.items() for p in spec.layout.part_ids.tolist()
        }
        after = {p: spec for spec in added for p in spec.layout.part_ids.tolist()}
        edits.deleted = sorted(before.keys() - after.keys())
        for spec in added:
            for body in _bodies(spec):
                if body.part_id in before:
                    edits.moved.append(body)
                    if before[body.part_id][1] != body.fixed:
                        edits.held[body.part_id] = body.fixed
                else:
                    edits.created.append(body)
        self._weld(old_welds, added, before, edits)
        self._filter(old, added, before, edits)
        self._seat(self._seated if seated is None else seated, edits)
        return edits

    # -- inside -----------------------------------------------------------------------------

    def _changed(self) -> None:
        for name in ("component_ids", "ids", "fixed", "groups"):
            self.__dict__.pop(name, None)

    def _weld(
        self,
        old: Mapping[int, Welds],
        added: Sequence[BodySpec],
        before: Mapping[int, tuple[int, bool]],
        edits: Edits,
    ) -> None:
        gone = frozenset().union(*(w.pairs for w in old.values()))
        present: dict[Pair, Weld] = {}
        for spec in added:
            if spec.fixed:
                self._welds[spec.component] = Welds()
                continue
            layout = spec.layout
            ids = layout.part_ids.tolist()
            index = {p: i for i, p in enumerate(ids)}
            sources = {before[p][0] for p in ids if p in before}
            kept = Welds()
            for source in sorted(sources):
                kept |= old[source].within(ids)
            now = _relative(layout, kept.pairs, index)
            stale = frozenset(pair for pair, pose in now.items() if self._relative[pair] != pose)
            kept = Welds(kept.spanning - stale, kept.mesh - stale)
            connected = zip(layout.stud_index.tolist(), layout.hole_index.tolist(), strict=True)
            welds = schedule(ids, [(ids[i], ids[j]) for i, j in connected], kept)
            self._welds[spec.component] = welds
            now = _relative(layout, welds.pairs, index)
            new = [pair for pair, pose in now.items() if self._relative.get(pair) != pose]
            self._relative |= now
            present |= _welds(layout, new, index)
        held = frozenset().union(*(self._welds[spec.component].pairs for spec in added))
        edits.unwelded = sorted((gone - held) | (gone & present.keys()))
        edits.welded = list(present.values())
        for pair in gone - held:
            del self._relative[pair]

    def _filter(
        self,
        old: Mapping[int, BodySpec],
        added: Sequence[BodySpec],
        before: Mapping[int, tuple[int, bool]],
        edits: Edits,
    ) -> None:
        wanted = {pair for spec in added if not spec.fixed for pair in _near(spec.layout)}
        touched = set(before).union(*(spec.layout.part_ids.tolist() for spec in added))
        had = {pair for pair in self._owner if touched.issuperset(pair)}
        # A new filter goes to the part whose former component was smaller: its list is short and
        # few bodies are edited.
        size = {p: len(old[c].layout.part_ids) for p, (c, _) in before.items()}
        changed = set()
        for pair in had - wanted:
            changed.add(self._owner.pop(pair))
        for a, b in wanted - had:
            owner = min((a, b), key=lambda p: (size.get(p, 0), -p))
            self._owner[a, b] = owner
            changed.add(owner)
        gone = set(edits.deleted)
        lists: dict[int, list[FilterPrim]] = {owner: [] for owner in changed - gone}
        for (a, b), owner in sorted(self._owner.items()):
            if owner in lists:
                lists[owner].append(FilterPrim(b if owner == a else a))
        edits.filters = {FilterPrim(part): lists[part] for part in sorted(lists)}

    def _seat(self, seated: Collection[Pair], edits: Edits) -> None:
        home = self._home
        present = frozenset(p for p in seated if home.keys() >= set(p) and home[p[0]] != home[p[1]])
        changed = {lower for lower, _ in present ^ self._seated} & home.keys()
        self._seated = present
        for lower in sorted(changed):
            uppers = [FilterPrim(upper, "body") for low, upper in sorted(present) if low == lower]
            edits.filters[FilterPrim(lower, "studs")] = uppers


def _check_motion(spec: BodySpec) -> None:
    pose, name = np.asarray(spec.world_T_component), f"component {spec.component}"
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        raise EngineError(f"{name}: pose is {pose.tolist()}, expected a finite 4x4 matrix")
    rotation = pose[:3, :3]
    if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) or np.linalg.det(rotation) < 0:
        raise EngineError(f"{name}: rotation is {rotation.tolist()}, expected a rotation matrix")
    if np.shape(spec.twist) != (6,) or not np.all(np.isfinite(spec.twist)):
        raise EngineError(f"{name}: twist is {spec.twist}, expected six finite numbers")


def _bodies(spec: BodySpec) -> list[Body]:
    layout = spec.layout
    twist = np.zeros(6) if spec.fixed else np.asarray(spec.twist, dtype=float)
    poses, twists = RigidGroups.of([layout]).part_motion(spec.world_T_component[None], twist[None])
    rows = zip(layout.part_ids.tolist(), layout.shapes, spec.colors, poses, twists, strict=True)
    return [Body(i, shape, color, p, t, spec.fixed) for i, shape, color, p, t in rows]


def _relative(
    layout: ComponentLayout, pairs: Collection[Pair], index: Mapping[int, int]
) -> dict[Pair, tuple[int, ...]]:
    """Grid pose of the second part in the first one's frame, of each pair, sorted."""
    ordered = sorted(pairs)
    rows = _rows(ordered, index)
    poses = relative(layout.grids[rows[:, 0]], layout.grids[rows[:, 1]])
    return dict(zip(ordered, map(tuple, poses.tolist()), strict=True))


def _welds(
    layout: ComponentLayout, pairs: Sequence[Pair], index: Mapping[int, int]
) -> dict[Pair, Weld]:
    rows = _rows(pairs, index)
    component_T_weld = np.tile(np.eye(4), (len(pairs), 1, 1))
    component_T_weld[:, :3, 3] = 0.5 * layout.coms[rows].sum(axis=1)
    parts_T_component = inverse(layout.component_T_parts)
    a_T_weld, b_T_weld = (parts_T_component[rows[:, side]] @ component_T_weld for side in (0, 1))
    found = zip(pairs, a_T_weld, b_T_weld, strict=True)
    return {pair: Weld(pair, a, b) for pair, a, b in found}


def _rows(pairs: Sequence[Pair], index: Mapping[int, int]) -> NDArray[np.intp]:
    """(M, 2) rows of pairs in a layout."""
    return np.array([(index[a], index[b]) for a, b in pairs], dtype=np.intp).reshape(-1, 2)


def _near(layout: ComponentLayout) -> list[Pair]:
    """Pairs of a component's bricks that touch or have no more than a plate between them."""
    low = np.column_stack([layout.footprints[:, :2], layout.grids[:, 2]])
    top = layout.grids[:, 2] + layout.dimensions[:, 2] + 1
    high = np.column_stack([layout.footprints[:, 2:], top])
    below = np.all(low[:, None] <= high[None], axis=2)
    rows, columns = np.nonzero(np.triu(below & below.T, 1))
    ids = layout.part_ids
    return list(zip(ids[rows].tolist(), ids[columns].tolist(), strict=True))
