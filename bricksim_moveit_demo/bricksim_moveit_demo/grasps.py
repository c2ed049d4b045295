# SPDX-License-Identifier: Apache-2.0
"""Grasps of a brick from above, computed from its geometry and its surroundings.

A grasp is the pose of the tool in the part frame. The fingers close along the part's x or y axis on
two opposite sides; the hand may be turned by half a turn; the grip may be anywhere along the side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bricksim_core.parts import STUD_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.sequencing.gripper import Grasp as SequenceGrasp
from bricksim_core.spatial import Array, transform
from bricksim_moveit_demo.description import MAX_WIDTH
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.scene import Box

TIP_BEYOND_TOOL = 0.0095
"""Distance from the tool frame's origin to the end of the fingertips [m] (urdf/fr3.yaml)."""
TIP_WIDTH = 0.0175
"""Width of a fingertip along the gripped side [m]."""
TIP_THICKNESS = 0.0152
"""Thickness of a fingertip away from the gripped side [m]."""

TIP_LENGTH = 0.0185
"""Length of a fingertip along the approach [m]."""

_ON_A_SIDE = 0.99
"""Cosine of the greatest tilt of a brick that rests on a face."""
_LEVEL = 0.3
"""Sine of the greatest slope of an axis along which the fingers close on a brick that leans."""
_TURN_TILTS = (math.radians(45.0), math.radians(35.0), math.radians(55.0))
"""Tilts of the hand before a quarter turn [rad]."""
_LEANING = tuple(math.radians(angle) for angle in (90.0, 75.0, 60.0, 45.0))
"""Tilts of a hand that leans outwards [rad], level first."""
_HOLDING = tuple(math.radians(angle) for angle in (90.0, 75.0, 105.0, 60.0, 120.0))
"""The same for a hand that holds a brick in the air: above 90 degrees it points up."""
_HOLDING_BELOW_TOP = (0.001, 0.003, 0.005)
"""How far below the brick's top the tips then end [m]."""
_INSETS = (0.004, 0.008, 0.002)
"""How far its tips reach in from the end that it leans over [m]."""
_BELOW_TOP = 0.001
"""How far below the brick's top they end at least [m]: another brick comes down there."""
_LEAST_COVERED = 2e-5
"""Area that each tip of a tilted hand must cover [m^2]."""
_END_REACH = 0.014
"""How far the fingertips reach along a brick that is gripped from its end [m]."""
_END_BELOW_TOP = 0.001
"""How far below the brick's top the pads then end [m]."""
_END_RELEASE = 0.004
"""How far the fingers then open to let go [m]: there is room."""
_SQUEEZE = 0.001
"""How much narrower than the brick the closed fingers are taken [m]."""
_LEAST_CONTACT = 0.5 * STUD_PITCH
"""Least length of the gripped side that a fingertip must cover [m]."""


@dataclass(frozen=True, eq=False)
class Grasp:
    """Where the gripper takes a brick.

    Attributes:
        part_T_tool: (4, 4) pose of the tool in the part frame [m].
        width: Width of the brick between the fingers [m].
        depth: How far the fingertips reach below the brick's top [m].
        release: How far each finger opens to let go [m].
        beside: Id of a part that is held together with it, side by side; None if there is none.
    """

    part_T_tool: Array
    width: float
    depth: float
    release: float
    beside: int | None = None

    def held_with(self, part: int) -> frozenset[int]:
        """What is between the fingers when a part is held like this."""
        return frozenset({part} if self.beside is None else {part, self.beside})


def grasps(shape: BrickShape, parameters: TaskParameters) -> Iterator[Grasp]:
    """All grasps of a brick from above, best first: deep and central before shallow and outer.

    Args:
        shape: The brick.
        parameters: Depths and clearances.
    """
    length, width, height = shape.size
    depths = [d for d in parameters.grip_depths if d <= height - parameters.table_clearance]
    options = []
    for along_x, closing, side in ((True, width, length), (False, length, width)):
        for release in parameters.release_clearances:
            if closing + 2.0 * release > MAX_WIDTH:
                continue
            tight = release != max(parameters.release_clearances)
            for offset, (rank, depth) in itertools.product(_offsets(side), enumerate(depths)):
                cost = abs(offset) / STUD_PITCH + rank + 0.5 * (closing > side) + 8.0 * tight
                options.append((cost, along_x, closing, offset, depth, release))
    for _, along_x, closing, offset, depth, release in sorted(options, key=lambda o: o[0]):
        for half_turn in (False, True):
            place = (offset, 0.0) if along_x else (0.0, offset)
            part_T_tool = _tool_pose(height, along_x, place, depth, half_turn)
            yield Grasp(part_T_tool, closing, depth, release)


def planned_grasps(planned: SequenceGrasp, shape: BrickShape) -> Iterator[Grasp]:
    """The two grasps (hand turned by half a turn) that a grasp of an assembly plan stands for.

    Args:
        planned: The planned grasp, from above.
        shape: Shape of the part that is held.
    """
    height = shape.size[2]
    along_x = planned.closing_axis == 1
    for half_turn in (False, True):
        pose = _tool_pose(height, along_x, planned.centre, planned.depth, half_turn)
        yield Grasp(pose, planned.width, planned.depth, planned.opening, planned.beside)


def end_grasps(shape: BrickShape, end: int) -> Iterator[Grasp]:
    """Grasps of a brick from one end of its length, hand level, studs and underside left free.

    The pads grip the two long sides. They end a little below the brick's top, so that another brick
    with fingers around it can be set on top.

    Args:
        shape: The brick.
        end: +1 for the end at greater x of the part frame, -1 for the other.
    """
    length, width, height = shape.size
    reach = min(_END_REACH, 0.5 * length - 0.002)
    tip_end = end * (0.5 * length - reach)
    approach = np.array([-float(end), 0.0, 0.0])
    for closing in (np.array([0.0, 1.0, 0.0]), np.array([0.0, -1.0, 0.0])):
        pose = np.eye(4)
        pose[:3, :3] = np.column_stack([np.cross(closing, approach), closing, approach])
        tool = tip_end - approach[0] * TIP_BEYOND_TOOL
        pose[:3, 3] = [tool, 0.0, height - _END_BELOW_TOP - 0.5 * TIP_WIDTH]
        yield Grasp(pose, width, height - _END_BELOW_TOP, _END_RELEASE)


@dataclass(frozen=True, eq=False)
class Turn:
    """A way to turn a brick onto another side by a quarter.

    Attributes:
        grasp: How it is held: the fingers close along the axis of the turn.
        rest: (4, 4) pose of the part [m], turned, standing on the plane z = 0 with its middle above
            the origin.
    """

    grasp: Grasp
    rest: Array


def is_upright(world_T_part: Array) -> bool:
    """Whether a brick stands on its holes, to 8 degrees."""
    return bool(world_T_part[2, 2] > _ON_A_SIDE)


def turning_grasps(
    shape: BrickShape, world_T_part: Array, parameters: TaskParameters
) -> Iterator[Turn]:
    """Ways to turn a brick that lies on a side, on an end or upside down; best first.

    A brick on a side comes to stand upright, one upside down to lie on a side or an end. The hand
    is tilted to one side before and to the other after, as far above the table as the tips need.

    Args:
        shape: The brick.
        world_T_part: (4, 4) how it lies.
        parameters: Clearances.
    """
    up = world_T_part[2, :3]
    axis = int(np.abs(up).argmax())
    if abs(up[axis]) < _ON_A_SIDE or up[2] > _ON_A_SIDE:
        return
    top = np.sign(up[axis]) * np.eye(3)[axis]
    options = []
    for closing in ({0, 1} - {axis}) if axis < 2 else (0, 1):
        width = shape.size[closing]
        if width + 2.0 * parameters.open_clearance > MAX_WIDTH:
            continue
        sideways = np.eye(3)[1 - closing]
        for after in (np.eye(3)[2],) if axis < 2 else (sideways, -sideways):
            for tilt in _TURN_TILTS:
                pose, contact = _turning_pose(shape, closing, top, after, tilt, parameters)
                if contact >= _LEAST_COVERED:
                    rest = _resting_pose(shape, closing, after)
                    options.append((-contact, width, pose, rest))
    release = max(parameters.release_clearances)
    for _, width, pose, rest in sorted(options, key=lambda option: option[0]):
        for part_T_tool in _both_ways(pose):
            yield Turn(Grasp(part_T_tool, width, shape.size[2], release), rest)


def lifting_grasps(
    shape: BrickShape, world_T_part: Array, parameters: TaskParameters
) -> Iterator[Turn]:
    """Ways to take a brick that leans, on no face, from above and to let it fall onto one.

    The fingers close along an axis that is about level; the brick keeps its tilt until it is let
    go of. Best first: those that cover most.

    Args:
        shape: The brick.
        world_T_part: (4, 4) how it leans.
        parameters: Clearances.
    """
    vertical = world_T_part[2, :3]
    if np.abs(vertical).max() > _ON_A_SIDE:
        return
    low, high = _body(shape)
    middle = 0.5 * (low + high)
    rest = np.eye(4)
    rest[:3, :3] = world_T_part[:3, :3]
    rest[:3, 3] = -rest[:3, :3] @ middle
    rest[2, 3] = -_lowest(shape, vertical)
    options = []
    for closing in (0, 1):
        width = shape.size[closing]
        level = abs(vertical[closing]) < _LEVEL
        if not level or width + 2.0 * parameters.open_clearance > MAX_WIDTH:
            continue
        up = vertical - vertical[closing] * np.eye(3)[closing]
        up /= np.linalg.norm(up)
        along = np.cross(np.eye(3)[closing], up)
        reach = float(np.abs(along) @ (high - low)) / 2.0
        # The tips stay above the table.
        least = parameters.table_clearance + TIP_BEYOND_TOOL - rest[2, 3]
        for offset in (0.0, 0.5 * reach, -0.5 * reach):
            place = middle + offset * along
            place += max(0.0, least - float(vertical @ place)) * up
            pose = _tool_at(closing, -up, place)
            covered = _covered(shape, closing, pose)
            if covered >= _LEAST_COVERED:
                options.append((-covered, width, pose))
    release = max(parameters.release_clearances)
    for _, width, pose in sorted(options, key=lambda option: option[0]):
        for part_T_tool in _both_ways(pose):
            yield Turn(Grasp(part_T_tool, width, shape.size[2], release), rest)


def leaning_grasps(shape: BrickShape, parameters: TaskParameters) -> Iterator[Grasp]:
    """Grasps with the hand leaning outwards over a side: they leave room above the brick.

    For a second hand at a brick that the first one presses on. Best first: those that cover most.

    Args:
        shape: The brick.
        parameters: Clearances.
    """
    return _side_grasps(shape, parameters, _LEANING, (_BELOW_TOP,))


def holding_grasps(shape: BrickShape, parameters: TaskParameters) -> Iterator[Grasp]:
    """Grasps from the side for a hand that holds a brick in the air, pointing up or down a little.

    The tips may end farther below the brick's top, so that another hand can hold it there.
    Best first: those that cover most.

    Args:
        shape: The brick.
        parameters: Clearances.
    """
    return _side_grasps(shape, parameters, _HOLDING, _HOLDING_BELOW_TOP)


def _side_grasps(
    shape: BrickShape, parameters: TaskParameters, tilts: Sequence[float], below: Sequence[float]
) -> Iterator[Grasp]:
    options = []
    release = max(parameters.release_clearances)
    for closing, end, tilt in itertools.product((0, 1), (1.0, -1.0), tilts):
        width, side = shape.size[closing], shape.size[1 - closing]
        if width + 2.0 * parameters.open_clearance > MAX_WIDTH:
            continue
        outwards, up = end * np.eye(3)[1 - closing], np.eye(3)[2]
        approach = -(math.cos(tilt) * up + math.sin(tilt) * outwards)
        behind, ahead = TIP_LENGTH - TIP_BEYOND_TOOL, TIP_BEYOND_TOOL
        along = max(behind * math.cos(tilt), -ahead * math.cos(tilt))
        above = along + 0.5 * TIP_WIDTH * math.sin(tilt)
        for inset, lower in itertools.product(_INSETS, below):
            place = (0.5 * side - inset) * outwards + (shape.size[2] - lower - above) * up
            pose = _tool_at(closing, approach, place)
            covered = _covered(shape, closing, pose)
            if covered >= _LEAST_COVERED:
                options.append((-covered, width, pose))
    for _, width, pose in sorted(options, key=lambda option: option[0]):
        for part_T_tool in _both_ways(pose):
            yield Grasp(part_T_tool, width, shape.size[2], release)


def _turning_pose(
    shape: BrickShape,
    closing: int,
    top: Array,
    after: Array,
    tilt: float,
    parameters: TaskParameters,
) -> tuple[Array, float]:
    """Tool in the part frame for a turn, and the area that the tips cover [m^2].

    Args:
        shape: The brick.
        closing: Axis along which the fingers close.
        top: (3,) direction that points up before the turn, part frame.
        after: (3,) the one that points up after it.
        tilt: Tilt of the hand before the turn [rad].
        parameters: Clearances.
    """
    approach = -(math.cos(tilt) * top + math.sin(tilt) * after)
    low, high = _body(shape)
    middle = 0.5 * (low + high)
    place = middle.copy()
    for direction, angle in ((top, tilt), (after, 0.5 * math.pi - tilt)):
        # Lowest corner of the tips below the tool frame when this direction points up.
        below = TIP_BEYOND_TOOL * math.cos(angle) + 0.5 * TIP_WIDTH * math.sin(angle)
        bottom = _lowest(shape, direction)
        wanted = max(bottom + parameters.table_clearance + below, float(middle @ direction))
        place += (wanted - middle @ direction) * direction
    pose = _tool_at(closing, approach, place)
    return pose, _covered(shape, closing, pose)


def _both_ways(part_T_tool: Array) -> tuple[Array, Array]:
    """A tool pose, and the same with the hand turned by half a turn."""
    turned = part_T_tool.copy()
    turned[:3, :2] *= -1.0
    return part_T_tool, turned


def _tool_at(closing: int, approach: Array, place: Array) -> Array:
    """Tool pose in the part frame from the closing axis, the approach and the position [m]."""
    along = np.eye(3)[closing]
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([np.cross(along, approach), along, approach])
    pose[:3, 3] = place
    return pose


def _covered(shape: BrickShape, closing: int, part_T_tool: Array) -> float:
    """Area of a side that a tip covers [m^2]."""
    low, high = _body(shape)
    across, beyond = np.meshgrid(
        np.linspace(-0.5, 0.5, 25) * TIP_WIDTH,
        np.linspace(TIP_BEYOND_TOOL - TIP_LENGTH, TIP_BEYOND_TOOL, 25),
    )
    points = part_T_tool[:3, 3] + across[..., None] * part_T_tool[:3, 0]
    points = points + beyond[..., None] * part_T_tool[:3, 2]
    inside = (points >= low - 1e-9) & (points <= high + 1e-9)
    inside[..., closing] = True
    return float(inside.all(axis=-1).mean() * TIP_WIDTH * TIP_LENGTH)


def _resting_pose(shape: BrickShape, closing: int, up: Array) -> Array:
    """Part with a direction up, standing on z = 0, the closing axis along x."""
    along = np.eye(3)[closing]
    pose = np.eye(4)
    pose[:3, :3] = np.array([along, np.cross(up, along), up])
    low, high = _body(shape)
    pose[:3, 3] = -pose[:3, :3] @ (0.5 * (low + high))
    pose[2, 3] = -_lowest(shape, up)
    return pose


def _body(shape: BrickShape) -> tuple[Array, Array]:
    """Lowest and highest corner of a brick without its studs, part frame [m]."""
    length, width, height = shape.size
    return np.array([-0.5 * length, -0.5 * width, 0.0]), np.array(
        [0.5 * length, 0.5 * width, height]
    )


def _lowest(shape: BrickShape, up: Array) -> float:
    """Least height of a brick with its studs along a direction of the part frame [m]."""
    low, high = _body(shape)
    high[2] += STUD_HEIGHT if shape.has_studs else 0.0
    return float(np.minimum(low * up, high * up).sum())


def hand_boxes(opening: float) -> list[Box]:
    """Boxes that enclose fingertips, fingers and hand, in the tool frame.

    Args:
        opening: Distance of the finger pads [m].
    """
    boxes = []
    for side in (1.0, -1.0):
        tip = side * (0.5 * opening + 0.5 * TIP_THICKNESS)
        boxes.append(Box((TIP_WIDTH, TIP_THICKNESS, TIP_LENGTH), transform([0.0, tip, 0.00025])))
        finger = side * (0.5 * opening + 0.0145)
        boxes.append(Box((0.022, 0.023, 0.0385), transform([0.0, finger, -0.0258])))
    boxes.append(Box((0.0634, 0.2046, 0.0922), transform([0.0, 0.0, -0.0834])))
    return boxes


def hand_is_free(
    world_T_tool: Array, opening: float, obstacles: Sequence[Box], clearance: float
) -> bool:
    """Whether fingers and hand at a pose keep a clearance [m] from all obstacles."""
    return not any(
        boxes_overlap(Box(part.size, world_T_tool @ part.pose), obstacles, clearance).any()
        for part in hand_boxes(opening)
    )


def presses_on(part_T_tool: Array, width: float, others: Sequence[Box]) -> bool:
    """Whether fingers that are closed to a width [m] press on other bricks, too (boxes in the frame
    of the held part)."""
    return not hand_is_free(part_T_tool, width - _SQUEEZE, others, 0.0)


def boxes_overlap(box: Box, others: Sequence[Box], clearance: float = 0.0) -> Array:
    """Which boxes come closer to a box than a clearance (separating axes of two cuboids).

    The clearance is exact across faces and slightly generous across edges.

    Args:
        box: One box.
        others: M boxes in the same frame.
        clearance: Gap to keep [m].

    Returns:
        (M,) bool.
    """
    if not others:
        return np.zeros(0, dtype=bool)
    half_a = 0.5 * np.array(box.size)
    half_b = 0.5 * np.array([other.size for other in others])
    poses = np.array([other.pose for other in others])
    axes_a = box.pose[:3, :3].T
    axes_b = np.swapaxes(poses[:, :3, :3], 1, 2)
    crossed = np.cross(axes_a[None, :, None, :], axes_b[:, None, :, :]).reshape(-1, 9, 3)
    axes = np.concatenate([np.broadcast_to(axes_a, (len(others), 3, 3)), axes_b, crossed], axis=1)
    norms = np.linalg.norm(axes, axis=2)
    axes = axes / np.maximum(norms, 1e-9)[..., None]
    distance = np.abs(np.einsum("mki,mi->mk", axes, poses[:, :3, 3] - box.pose[:3, 3]))
    reach_a = np.abs(np.einsum("mki,ji->mkj", axes, axes_a)) @ half_a
    reach_b = np.einsum("mkj,mj->mk", np.abs(np.einsum("mki,mji->mkj", axes, axes_b)), half_b)
    gap = distance - reach_a - reach_b
    gap[norms < 1e-6] = -np.inf
    return gap.max(axis=1) < clearance


def _offsets(side: float) -> list[float]:
    """Grip positions along a side from the middle outwards: half studs, then, reaching over its
    ends where neighbours stand flush with it, quarters."""
    greatest = 0.5 * side + 0.5 * TIP_WIDTH - _LEAST_CONTACT
    step = 0.25 * STUD_PITCH
    count = int(greatest / step + 1e-9)
    quarters = (i for i in range(-count, count + 1) if i % 2 == 0 or abs(i) * step > 0.5 * side)
    return sorted((i * step for i in quarters), key=lambda o: (abs(o), -o))


def _tool_pose(
    height: float, along_x: bool, place: tuple[float, float], depth: float, half_turn: bool
) -> Array:
    """Tool over a place of the part, z down; fingers close along y if they grip sides along x."""
    closing = np.array([0.0, 1.0, 0.0]) if along_x else np.array([1.0, 0.0, 0.0])
    if half_turn:
        closing = -closing
    down = np.array([0.0, 0.0, -1.0])
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([np.cross(closing, down), closing, down])
    pose[:3, 3] = [*place, height - depth + TIP_BEYOND_TOOL]
    return pose
