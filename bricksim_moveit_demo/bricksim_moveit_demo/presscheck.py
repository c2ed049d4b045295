# SPDX-License-Identifier: Apache-2.0
"""How hard a brick may be pressed onto what stands there now, and what to hold so that it bears it.

Both sides are analysed as they are in the scene, with gravity and with the press shared by the
studs that are about to engage: what stands there carries the press down, what the gripper holds
carries its reaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bricksim_core.mechanics.analysis import analyze
from bricksim_core.parts import STUD_PITCH, STUD_RADIUS, BrickShape
from bricksim_core.spatial import Array, inverse, transform_points
from bricksim_core.topology.frames import overlap, stud_T_connection
from bricksim_core.topology.graph import BrickTopologyGraph, Connection
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.connections import ConnectionKey, connection_key, seat_in_target
from bricksim_moveit_demo.grasps import is_upright
from bricksim_moveit_demo.reports import InsertionGoal

MARGIN = 1.2
"""Press [-] that both sides must bear over the one that is allowed."""
_BISECTIONS = 7
"""How often the range of forces is halved: 0.2 N of 25 N is left open."""
_POINTS = ((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
"""Where the press may act in each overlap, in half sides from its middle: a brick that is not level
yet stands on one edge of the studs (measured: there it breaks what bears it in the middle)."""


@dataclass(frozen=True)
class PressVerdict:
    """How hard a press may be.

    Attributes:
        force: Greatest force that both sides bear, at most what was asked for [N]; 0 if they do not
            bear the least one.
        reason: What gives way above it; empty if nothing does.
    """

    force: float
    reason: str = ""


class Scene(Protocol):
    """What the check needs to know of a scene; a `World` is one."""

    @property
    def graph(self) -> BrickTopologyGraph:
        """Parts and connections."""
        ...

    @property
    def fixed_parts(self) -> frozenset[int]:
        """Parts that the world holds."""
        ...

    def part_pose(self, part_id: int) -> Array:
        """(4, 4) world_T_part [m]."""
        ...


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two that are pressed onto each other.

    Attributes:
        structure: It, as it stands.
        loads: Wrenches by part id under a press of 1 N, one set for each place where it may act.
    """

    structure: Structure
    loads: list[dict[int, Array]]


class PressCheck:
    """Verdicts on one press.

    Args:
        world: The scene.
        moving: Parts that move with the gripper, one component.
        between: Parts between the fingers; each alone has to bear the press.
        formed: Connections that the press is to make; those inside ``moving`` are left out.
        held: Parts that other hands hold.
        push: A part and the (3,) place [m], world, where another hand pushes it up as hard as the
            press; None: there is none.
    """

    def __init__(
        self,
        world: Scene,
        moving: Collection[int],
        between: Collection[int],
        formed: Iterable[ConnectionKey],
        held: Iterable[int] = (),
        push: tuple[int, Array] | None = None,
    ) -> None:
        self._world = world
        group = set(moving)
        self._joints = [
            Connection(-1, stud, hole, offset, yaw)
            for stud, hole, offset, yaw in sorted(formed)
            if (stud in group) != (hole in group)
        ]
        self._group = group
        self._between = frozenset(between)
        self._held = set(held)
        self._push = push

    @property
    def lower_parts(self) -> list[int]:
        """Parts that are pressed on, those with most engaged studs first."""
        studs = {joint.stud_part: 0 for joint in self._joints}
        for joint in self._joints:
            studs[joint.stud_part] += self._studs(joint)
        return sorted(studs, key=lambda part: -studs[part])

    @property
    def middle(self) -> Array:
        """(3,) middle of the studs that are about to engage [m], world."""
        return self._middle((0.0, 0.0))

    def pushed(self, part: int, point: Array) -> PressCheck:
        """The same check with another hand that pushes back at a place ((3,) [m], world)."""
        return self._like(self._joints, (part, point))

    def bearing_alone(self, force: float) -> list[Array]:
        """(3,) middles [m], world, of the joints that bear a press [N] alone where several share
        it."""
        singles = self._singles()
        return [single.middle for single in singles if single.verdict(force, force).force]

    def first(self, force: float) -> Array | None:
        """(3,) where a brick that several joints bear has to come down first [m], world.

        It is the middle of the places that bear a press [N] alone, or half of it if none does.
        None: all of them do, or none bears even that.
        """
        places = [
            (single._middle(point), single._sides((point,)))
            for single in self._singles()
            for point in _POINTS
        ]
        for share in (1.0, 0.5):
            bearing = [place for place, sides in places if not _failure(sides, share * force)]
            if bearing:
                return None if len(bearing) == len(places) else np.mean(bearing, axis=0)
        return None

    def verdict(self, least: float, most: float) -> PressVerdict:
        """How hard the press may be.

        Args:
            least: Force below which pressing makes no sense [N].
            most: Force that is not exceeded in any case [N].
        """
        sides = self._sides()
        reason = _failure(sides, most)
        if not reason:
            return PressVerdict(most)
        weak = _failure(sides, least)
        if weak:
            return PressVerdict(0.0, weak)
        low, high = least, most
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            failure = _failure(sides, middle)
            low, high = (low, middle) if failure else (middle, high)
            reason = failure or reason
        return PressVerdict(low, reason)

    # -- inside -----------------------------------------------------------------------------

    def _middle(self, point: tuple[float, float]) -> Array:
        """(3,) a place in the overlaps [m], world; of several joints the mean of theirs.

        Args:
            point: Where it is in each overlap, in half sides from its middle.
        """
        places = [
            self._world.part_pose(joint.stud_part) @ self._place(joint, "stud_part", point)
            for joint in self._joints
        ]
        return np.average(places, axis=0, weights=[self._studs(j) for j in self._joints])[:3]

    def _singles(self) -> list[PressCheck]:
        """The checks of the joints, each alone, where several share the press."""
        if len(self._joints) < 2:
            return []
        return [self._like([joint], self._push) for joint in self._joints]

    def _like(self, joints: Iterable[Connection], push: tuple[int, Array] | None) -> PressCheck:
        """The same check of other joints and with another push."""
        formed = [connection_key(joint) for joint in joints]
        return PressCheck(self._world, self._group, self._between, formed, self._held, push)

    def _sides(self, points: Iterable[tuple[float, float]] = _POINTS) -> list[_Side]:
        """What is pressed on and what presses, where either can come apart; the press acts at one
        of some points in each overlap."""
        graph = self._world.graph
        below: set[int] = set()
        for joint in self._joints:
            below.update(graph.component_parts(graph.component_of(joint.stud_part)))
        resting = self._world.fixed_parts | self._held
        # A pad holds only the part that it touches, so that each of two has to bear it alone.
        holds = [frozenset({part}) for part in self._between] or [self._between]
        sides = (
            (below, resting, "stud_part", -1.0),
            *((self._group, held, "hole_part", 1.0) for held in holds),
        )
        found = []
        for parts, held, end, sign in sides:
            if len(parts) > 1:
                structure = _structure(self._world, parts, held)
                loads = [self._loads(structure, end, sign, point) for point in points]
                if self._push is not None and self._push[0] in structure.graph:
                    loads = [both for press in loads for both in self._pushed(structure, press)]
                found.append(_Side(structure, loads))
        return found

    def _loads(
        self, structure: Structure, end: str, force: float, point: tuple[float, float]
    ) -> dict[int, Array]:
        """(6,) wrenches about the parts' COM [N, N m]: a press at the engaged studs."""
        graph, poses = structure.graph, structure.part_poses()
        joints = [joint for joint in self._joints if getattr(joint, end) in poses]
        studs = sum(self._studs(joint) for joint in joints)
        loads: dict[int, Array] = {}
        for joint in joints:
            part_id = getattr(joint, end)
            centre = poses[part_id] @ self._place(joint, end, point)
            up = poses[part_id][:3, 2]
            push = up * (force * self._studs(joint) / studs)
            wrench = _wrench(graph, poses, part_id, centre[:3], push)
            loads[part_id] = loads.get(part_id, np.zeros(6)) + wrench
        return loads

    def _pushed(self, structure: Structure, press: dict[int, Array]) -> list[dict[int, Array]]:
        """A press of 1 N with the push of the other hand, which lags behind it or runs ahead."""
        assert self._push is not None
        part_id, point = self._push
        up = np.array([0.0, 0.0, 1.0])
        push = _wrench(structure.graph, structure.part_poses(), part_id, point, up)
        found = []
        for pressed, pushed in ((1.0, 1.0 / MARGIN), (1.0 / MARGIN, 1.0)):
            loads = {part: pressed * wrench for part, wrench in press.items()}
            loads[part_id] = loads.get(part_id, np.zeros(6)) + pushed * push
            found.append(loads)
        return found

    def _studs(self, joint: Connection) -> int:
        x0, y0, x1, y1 = overlap(joint, *self._shapes(joint))
        return max(x1 - x0, 0) * max(y1 - y0, 0)

    def _place(self, joint: Connection, end: str, point: tuple[float, float]) -> Array:
        """(4,) where the press acts in the frame of one of the parts [m, 1]."""
        place = stud_T_connection(joint, *self._shapes(joint))[:, 3]
        x0, y0, x1, y1 = overlap(joint, *self._shapes(joint))
        sides = np.array([x1 - x0 - 1, y1 - y0 - 1]) * 0.5 * STUD_PITCH + STUD_RADIUS
        place[:2] += sides * point
        if end == "stud_part":
            return place
        goal = InsertionGoal(joint.hole_part, joint.stud_part, joint.offset, joint.yaw)
        return inverse(seat_in_target(self._world.graph, goal)) @ place

    def _shapes(self, joint: Connection) -> tuple[BrickShape, BrickShape]:
        graph = self._world.graph
        return graph.part(joint.stud_part).shape, graph.part(joint.hole_part).shape


def stays_whole(world: Scene, parts: Collection[int], held: Collection[int] = ()) -> bool:
    """Whether parts that hang together stay as they are under their weight.

    Args:
        world: The scene.
        parts: All that hangs together.
        held: Those of them that are held; empty: they stand on the table.
    """
    return not PressCheck(world, parts, held, ()).verdict(1.0, 1.0).reason


def bears(world: Scene, part: int, place: Array, force: float) -> bool:
    """Whether what stands there bears a force [N] down on a part at a place ((3,) [m], world)."""
    graph = world.graph
    parts = graph.component_parts(graph.component_of(part))
    structure = _structure(world, parts, world.fixed_parts)
    down = np.array([0.0, 0.0, -1.0])
    load = _wrench(structure.graph, structure.part_poses(), part, place, down)
    return not _failure([_Side(structure, [{part: load}])], force)


def _structure(world: Scene, parts: Collection[int], held: Collection[int]) -> Structure:
    """Some components of the scene, levelled: at rest on the table they are a little tilted."""
    graph = world.graph
    poses = {}
    for component in graph.component_ids:
        layout = graph.layout(component)
        first = int(layout.part_ids[0])
        pose = world.part_pose(first)
        if is_upright(pose):
            pose = _levelled(pose)
        poses[component] = pose @ inverse(layout.component_T_parts[0])
    scene = Structure(graph, poses, frozenset(held).intersection(graph.part_ids), "the scene")
    return scene.without(p for p in graph.part_ids if p not in set(parts))


def _wrench(
    graph: BrickTopologyGraph, poses: Mapping[int, Array], part_id: int, place: Array, force: Array
) -> Array:
    """(6,) wrench about a part's COM [N, N m] of a force ((3,) [N]) at a place ((3,) [m])."""
    com = transform_points(poses[part_id], graph.part(part_id).shape.com)
    return np.concatenate([force, np.cross(place - com, force)])


def _failure(sides: Iterable[_Side], force: float) -> str:
    """What gives way under a press [N] with its margin; empty if nothing does."""
    for side in sides:
        for unit in side.loads:
            loads = {part: MARGIN * force * wrench for part, wrench in unit.items()}
            analysis = analyze(side.structure, loads=loads, limit=False)
            if not analysis.stable:
                return "; ".join(analysis.reasons)
    return ""


def _levelled(pose: Array) -> Array:
    """An almost upright pose, made upright."""
    yaw = np.arctan2(pose[1, 0], pose[0, 0])
    level = np.array(pose)
    level[:3, :3] = [
        [np.cos(yaw), -np.sin(yaw), 0.0],
        [np.sin(yaw), np.cos(yaw), 0.0],
        [0.0, 0.0, 1.0],
    ]
    return level
