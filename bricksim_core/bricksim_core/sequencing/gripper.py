# SPDX-License-Identifier: Apache-2.0
"""A parallel-jaw gripper that comes from above, and where it can hold a brick among others.

The gripper is a set of boxes that move down with the brick: two fingertips at opposite sides, the
fingers above them and the hand. On the way down they sweep the columns above their final place, so
whatever reaches higher than a box's underside within its outline is in the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from operator import itemgetter

import numpy as np

from bricksim_core.errors import BrickSimError
from bricksim_core.spatial import Array
from bricksim_core.topology.grid import quarter_turn
from bricksim_core.values import as_number

_TINY = 1e-9


class GripperError(BrickSimError):
    """A dimension of a gripper is not acceptable."""


@dataclass(frozen=True)
class GripperModel:
    """Dimensions [m]; the defaults are those of the Franka hand.

    Heights are measured from the end of the fingertips upwards.

    Attributes:
        max_opening: Greatest distance of the pads.
        tip_width: Of a fingertip along the gripped side.
        tip_thickness: Of a fingertip away from the side.
        finger_width: Of the finger above the tip, along the side.
        finger_near: Distance of the finger's inner face from the pad's plane, outwards.
        finger_far: Distance of its outer face.
        finger_height: Where the finger is as wide as that.
        hand_width: Of the hand across the closing direction.
        hand_length: Of the hand along the closing direction.
        hand_height: Underside of the hand.
        release: How far each finger opens to let go, where there is room.
        least_release: How far each finger must open at least.
        clearance: Gap to keep from other bricks.
        spare: How much more than that to keep along the gripped side, where there is room.
        table_clearance: Least gap of the tips to the table where the brick is picked up.
        least_contact: Least length of the side that a fingertip must cover.
        depths: How far the tips may reach below the brick's top, in order of preference.
    """

    max_opening: float = 0.08
    tip_width: float = 0.0175
    tip_thickness: float = 0.0152
    finger_width: float = 0.022
    finger_near: float = 0.003
    finger_far: float = 0.026
    finger_height: float = 0.016
    hand_width: float = 0.0634
    hand_length: float = 0.2046
    hand_height: float = 0.0468
    release: float = 0.0025
    least_release: float = 0.0003
    clearance: float = 0.0005
    spare: float = 0.001
    table_clearance: float = 0.001
    least_contact: float = 0.004
    depths: tuple[float, ...] = (0.007, 0.005, 0.0035, 0.0022, 0.001)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            values = value if isinstance(value, tuple) else (value,)
            if not values:
                raise GripperError(f"{item.name} is {value!r}, expected lengths [m]")
            for length in values:
                as_number(length, item.name, 0.0, above=True, unit="m", error=GripperError)
        if self.least_release > self.release:
            raise GripperError(
                f"least_release is {self.least_release} m, expected at most release"
                f" ({self.release} m)"
            )


@dataclass(frozen=True)
class Grasp:
    """How a brick is held.

    Attributes:
        part: Id of the part between the fingers.
        closing_axis: Axis of the part frame along which the fingers close: 0 (x) or 1 (y).
        centre: (x, y) in the part frame of the point midway between the fingers [m].
        depth: How far the tips reach below the part's top [m] (above its bottom if from_below).
        opening: How far each finger may open to let go [m].
        width: Distance of the fingers when closed [m].
        beside: Id of a part that is held together with it, side by side between the fingers; None
            if there is none.
        from_below: The hand comes from the hole side: the part is upside down.
        scrapes: How many of the two tips come down where other bricks stand flush with the gripped
            side: a hand that is a little off meets their edges.
    """

    part: int
    closing_axis: int
    centre: tuple[float, float]
    depth: float
    opening: float
    width: float
    beside: int | None = None
    from_below: bool = False
    scrapes: int = 0


@dataclass(frozen=True)
class Held:
    """What is to be held: a part, or two side by side.

    Attributes:
        part: Id of the part.
        middle: Middle of the part [m], in a frame whose z is up.
        yaw: Rotation of the part frame about z [quarter turns].
        low: Least corner of what is between the fingers [m].
        high: Greatest corner of its bodies [m].
        beside: Id of the second part.
        closing: The only axis along which two parts can be held together; None for one part.
        from_below: The part is upside down.
    """

    part: int
    middle: tuple[float, float]
    yaw: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    beside: int | None = None
    closing: int | None = None
    from_below: bool = False


def find_grasps(gripper: GripperModel, held: Held, obstacles: Array) -> list[Grasp]:
    """All different ways to hold a part among obstacles, the best first.

    For each closing direction: the widest opening and the deepest grip that are free, at a place
    near the middle in each free stretch of the side. Tips keep off bricks that stand flush
    with the gripped sides, where they can (`Grasp.scrapes`).

    Args:
        gripper: The gripper.
        held: The part.
        obstacles: (M, 6) boxes x0, y0, z0, x1, y1, z1 [m], studs included.
    """
    found: list[tuple[tuple[float, ...], Grasp]] = []
    reachable = obstacles[:, 5] > held.high[2] - max(gripper.depths) - gripper.clearance
    obstacles = obstacles[reachable]
    for closing in (0, 1) if held.closing is None else (held.closing,):
        grips = list(_grips(gripper, held, closing))
        # The last grip needs the least room: where it has none, no other has.
        least = (0.0, 0.0)
        if not grips or not _free_offsets(gripper, held, closing, *grips[-1], least, obstacles):
            continue
        for opening, inside, depth in _preferred(gripper, grips):
            offsets = _free_offsets(gripper, held, closing, opening, depth, inside, obstacles)
            for offset in offsets:
                scrapes = inside.count(0.0)
                grasp = _grasp(held, closing, offset, opening, depth, scrapes)
                cost = (scrapes, -opening, abs(offset), grasp.width, -depth)
                found.append((cost, grasp))
            if offsets:
                break
    return [grasp for _, grasp in sorted(found, key=itemgetter(0))]


def blockers(gripper: GripperModel, held: Held, obstacles: Array) -> list[tuple[int, list[int]]]:
    """What hinders a central grip: closing axis of the part frame and rows of the obstacles.

    An axis without rows is too long for the gripper, or the part too flat.
    """
    result = []
    for closing in (0, 1):
        axis = closing ^ (held.yaw % 2)
        grips = list(_grips(gripper, held, closing))
        rows: list[int] = []
        if grips:
            opening, depth = grips[-1]
            mask = np.zeros(len(obstacles), dtype=bool)
            bars = _blocked(gripper, held, closing, opening, depth, (0.0, 0.0), obstacles)
            for blocked, half, reach in bars:
                middle = 0.5 * (held.low[1 - closing] + held.high[1 - closing])
                low, high = reach[:, 0] - middle - half, reach[:, 1] - middle + half
                mask |= blocked & (low < 0.0) & (high > 0.0)
            rows = np.flatnonzero(mask).tolist()
        result.append((axis, rows))
    return result


def _grips(gripper: GripperModel, held: Held, closing: int) -> Iterator[tuple[float, float]]:
    """Openings and depths that the part allows, the best first."""
    width = held.high[closing] - held.low[closing]
    height = held.high[2] - held.low[2]
    for opening in dict.fromkeys((gripper.release, gripper.least_release)):
        if width + 2.0 * opening > gripper.max_opening + _TINY:
            continue
        for depth in gripper.depths:
            if depth <= height - gripper.table_clearance + _TINY:
                yield opening, depth


def _preferred(
    gripper: GripperModel, grips: list[tuple[float, float]]
) -> Iterator[tuple[float, tuple[float, float], float]]:
    """Openings, how far inside either gripped side nothing else may be, and depths: best first."""
    off = gripper.clearance
    for sides in (((off, off),), ((off, 0.0), (0.0, off)), ((0.0, 0.0),)):
        for (opening, depth), inside in itertools.product(grips, sides):
            yield opening, inside, depth


def _blocked(
    gripper: GripperModel,
    held: Held,
    closing: int,
    opening: float,
    depth: float,
    inside: tuple[float, float],
    obstacles: Array,
) -> Iterator[tuple[np.ndarray, float, Array]]:
    """For each box of the gripper: which obstacles are in its strip, its half width with the
    clearance, and the extent of all obstacles along the side. The tips' strips begin some way
    inside the gripped sides [m], the upper and the lower one."""
    end = held.high[2] - depth
    low, high = held.low[closing], held.high[closing]
    middle = 0.5 * (low + high)
    gap = gripper.clearance - _TINY
    thick = gripper.tip_thickness + opening + gap
    near, far = gripper.finger_near, gripper.finger_far + opening + gap
    reach = 0.5 * gripper.hand_length + gap
    bars = (
        (high - inside[0], high + thick, gripper.tip_width, 0.0),
        (low - thick, low + inside[1], gripper.tip_width, 0.0),
        (high + near, high + far, gripper.finger_width, gripper.finger_height),
        (low - far, low - near, gripper.finger_width, gripper.finger_height),
        (middle - reach, middle + reach, gripper.hand_width, gripper.hand_height),
    )
    extent = obstacles[:, [1 - closing, 4 - closing]]
    for bar_low, bar_high, width, height in bars:
        rows = obstacles[:, 5] > end + height - gap
        rows &= obstacles[:, closing] < bar_high - _TINY
        rows &= obstacles[:, closing + 3] > bar_low + _TINY
        yield rows, 0.5 * width + gap, extent


def _free_offsets(
    gripper: GripperModel,
    held: Held,
    closing: int,
    opening: float,
    depth: float,
    inside: tuple[float, float],
    obstacles: Array,
) -> list[float]:
    """Places along the side near its middle in each stretch where nothing is in the way."""
    side = 1 - closing
    middle = 0.5 * (held.low[side] + held.high[side])
    length = held.high[side] - held.low[side]
    limit = 0.5 * length + 0.5 * gripper.tip_width - min(gripper.least_contact, length)
    taken = [(limit, np.inf)]
    for rows, half, reach in _blocked(gripper, held, closing, opening, depth, inside, obstacles):
        low, high = reach[rows, 0] - middle - half, reach[rows, 1] - middle + half
        taken += zip(low.tolist(), high.tolist(), strict=True)
    offsets = []
    start = -limit
    for low, high in sorted(taken):
        end = min(low, limit)
        if start <= end:
            # Where there is more room than it takes, an error of the pose does no harm.
            spare = min(gripper.spare, 0.5 * (end - start))
            least = start + spare if start > -limit else start
            most = end - spare if end < limit else end
            offsets.append(min(max(0.0, least), most))
        start = max(start, high)
    return offsets


def _grasp(
    held: Held, closing: int, offset: float, opening: float, depth: float, scrapes: int
) -> Grasp:
    place = [0.5 * (held.low[i] + held.high[i]) - held.middle[i] for i in (0, 1)]
    place[1 - closing] += offset
    x, y = np.round(quarter_turn(-held.yaw)[:2, :2] @ place, 9) + 0.0
    return Grasp(
        part=held.part,
        closing_axis=closing ^ (held.yaw % 2),
        centre=(float(x), float(y)),
        depth=depth,
        opening=opening,
        width=round(held.high[closing] - held.low[closing], 9),
        beside=held.beside,
        from_below=held.from_below,
        scrapes=scrapes,
    )
