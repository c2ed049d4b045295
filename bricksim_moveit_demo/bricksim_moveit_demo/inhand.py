# SPDX-License-Identifier: Apache-2.0
"""Two arms: a handover, two bricks joined in the air, the result put onto a base plate."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bricksim_core.errors import PartError
from bricksim_core.parts import STUD_PITCH, BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import Array, inverse, transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.grid import GridPose, part_pose
from bricksim_core.topology.structure import Structure
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.grasps import Grasp, end_grasps, grasps
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.layout import Region, TableLayout, arrange
from bricksim_moveit_demo.reports import InsertionGoal, Report
from bricksim_moveit_demo.world import World

PLATE, LOWER, UPPER = 0, 1, 2
"""Part ids of the in-hand scene."""

_LEAST_LENGTH = 3
"""Studs of the lower brick along the side on which both hands find room."""
_MOST_WIDTH = 7
"""Studs between the fingers [-]: 56 mm of the 80 mm that they open, with room beside."""
_MEETING = np.array([0.55, 0.0, 0.5])
"""Where the hands meet, in the frame of the taking arm's base [m]."""


@dataclass(frozen=True)
class InHandScene:
    """What the two arms join.

    Attributes:
        lower: The brick that is handed over: at least three studs long, so that two hands find
            room on it, narrow enough for a hand, no longer than the plate.
        upper: The brick that is pressed onto it, narrow enough for a hand.
        offset: Where the upper brick goes on the lower one [studs].
        plate: The base plate.
        layout: Where plate and bricks stand: in reach of both arms.

    Raises:
        TaskError: A brick is too short, too wide or too long.
    """

    lower: BrickShape = BrickShape(4, 2)
    upper: BrickShape = BrickShape(4, 2)
    offset: tuple[int, int] = (0, 0)
    plate: BrickShape = BrickShape(12, 12, 1)
    layout: TableLayout = field(
        default_factory=lambda: TableLayout(
            seat=(0.55, 0.0),
            regions=(Region(0.45, 0.16, 0.65, 0.36), Region(0.45, -0.36, 0.65, -0.16)),
        )
    )

    def __post_init__(self) -> None:
        if self.lower.length < _LEAST_LENGTH:
            raise TaskError(
                f"lower brick is {self.lower}, expected at least {_LEAST_LENGTH} studs along its"
                " first side: two hands hold it",
                Outcome.INVALID_GOAL,
            )
        gripped = min(self.upper.length, self.upper.width)
        for name, shape, side in (
            ("lower", self.lower, self.lower.width),
            ("upper", self.upper, gripped),
        ):
            if side > _MOST_WIDTH:
                raise TaskError(
                    f"{name} brick is {shape}, expected at most {_MOST_WIDTH} studs between the"
                    " fingers",
                    Outcome.INVALID_GOAL,
                )
            if shape.length > self.plate.length or shape.width > self.plate.width:
                raise TaskError(
                    f"{name} brick is {shape}, expected no more than the plate's"
                    f" {self.plate.length}x{self.plate.width} studs",
                    Outcome.INVALID_GOAL,
                )

    @property
    def seat(self) -> tuple[int, int]:
        """Where the lower brick goes on the plate [studs]: in the middle."""
        plate, lower = self.plate, self.lower
        return (plate.length - lower.length) // 2, (plate.width - lower.width) // 2


def brick_of(text: str) -> BrickShape:
    """The brick of a size such as ``4x2`` [studs].

    Raises:
        TaskError: It is no size of a brick.
    """
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text.strip())
    try:
        if match is not None:
            return BrickShape(int(match[1]), int(match[2]))
    except PartError:
        pass
    raise TaskError(
        f"size of a brick is {text!r}, expected two numbers of studs such as 4x2",
        Outcome.INVALID_GOAL,
    )


def in_hand_bricks(scene: InHandScene, seed: int = 0) -> Structure:
    """The plate and two loose bricks on the table."""
    generator = np.random.default_rng([seed, 0x14A4D])
    bricks = {LOWER: scene.lower, UPPER: scene.upper}
    poses = arrange(bricks, scene.layout, generator)
    poses[PLATE] = transform([*scene.layout.seat, 0.0])
    graph = BrickTopologyGraph()
    component_poses = {}
    colors = {PLATE: (155, 161, 157), LOWER: (201, 26, 9), UPPER: (0, 85, 191)}
    for part_id, shape in {PLATE: scene.plate, **bricks}.items():
        graph.add_part(shape, colors[part_id], part_id=part_id)
        corner = inverse(part_pose(GridPose(), shape))
        component_poses[graph.component_of(part_id)] = poses[part_id] @ corner
    return Structure(graph, component_poses, frozenset({PLATE}), "inhand")


def lay_out_in_hand(simulator: Simulator, scene: InHandScene, seed: int = 0) -> None:
    """Puts what `in_hand_bricks` makes into an empty simulator, ids as above."""
    simulator.spawn(in_hand_bricks(scene, seed), part_ids={p: p for p in (PLATE, LOWER, UPPER)})


@dataclass(frozen=True)
class InHandSummary:
    """How it went.

    Attributes:
        success: Both bricks are joined and on the plate.
        message: What went wrong; empty on success.
        outcome: Its cause.
        handed_over: The first brick changed hands.
        join: Report of the join in the air, if it was reached.
        place: Report of the placing, if it was reached.
        duration: Simulation time [s].
        planning_time: Wall time spent planning [s].
    """

    success: bool
    message: str
    outcome: Outcome
    handed_over: bool
    join: Report | None
    place: Report | None
    duration: float
    planning_time: float

    @classmethod
    def nothing(cls, outcome: Outcome, message: str) -> InHandSummary:
        """The summary of a scene that was not begun."""
        return cls(False, message, outcome, False, None, None, 0.0, 0.0)


def join_in_hand(
    world: World,
    taker: BrickHandler,
    giver: BrickHandler,
    scene: InHandScene,
    progress: Callable[[InHandSummary], None] = lambda _: None,
) -> InHandSummary:
    """Hands a brick over, presses a second one onto it in the air and places both.

    Args:
        world: The scene.
        taker: The arm that holds the lower brick while the other one presses.
        giver: The arm that picks both bricks.
        scene: What goes where.
        progress: Called after the handover and after the join with what is known by then.
    """
    begin = world.time
    planning = taker.motion.planning_time + giver.motion.planning_time
    handed_over = False
    join: Report | None = None
    place: Report | None = None

    def summary(outcome: Outcome, message: str = "") -> InHandSummary:
        return InHandSummary(
            outcome is Outcome.SUCCEEDED,
            message,
            outcome,
            handed_over,
            join,
            place,
            world.time - begin,
            taker.motion.planning_time + giver.motion.planning_time - planning,
        )

    try:
        _hand_over(taker, giver, scene.lower)
        handed_over = True
        progress(summary(Outcome.INTERRUPTED))
        join = giver.pick_and_insert(InsertionGoal(UPPER, LOWER, scene.offset, 0), release=False)
        progress(summary(Outcome.INTERRUPTED))
        _require(join)
        taker.let_go()
        place = giver.pick_and_insert(InsertionGoal(LOWER, PLATE, scene.seat, 0))
        _require(place)
    except TaskError as error:
        return summary(error.outcome, str(error))
    return summary(Outcome.SUCCEEDED)


def _hand_over(taker: BrickHandler, giver: BrickHandler, shape: BrickShape) -> None:
    """The giver picks the lower brick at one end and offers the other end to the taker.

    Raises:
        TaskError: It did not work; the brick may be in either hand.
    """
    outer = [g for g in grasps(shape, giver.parameters) if _leaves_end(g, shape)]
    grasp = giver.pick(LOWER, outer)
    end = -1 if grasp.part_T_tool[0, 3] > 0.0 else 1
    failure: TaskError | None = None
    for take in end_grasps(shape, end):
        meeting = _meeting_pose(taker.motion.arm.world_T_base, end)
        try:
            giver.carry(meeting)
            taker.take(LOWER, take, giver)
            return
        except TaskError as error:
            if error.outcome not in (Outcome.UNREACHABLE, Outcome.PLANNING_FAILED):
                raise
            failure = failure or error
    assert failure is not None
    raise failure


def _leaves_end(grasp: Grasp, shape: BrickShape) -> bool:
    """Whether a grasp across the width is far enough out to leave the other end to another hand."""
    across_width = abs(grasp.part_T_tool[1, 1]) > 0.5
    return across_width and abs(grasp.part_T_tool[0, 3]) >= 0.5 * shape.size[0] - STUD_PITCH


def _meeting_pose(world_T_taker: Array, end: int) -> Array:
    """World pose of the brick with the named end of its length towards the taking arm."""
    towards = transform(_MEETING)
    if end == 1:
        towards[:3, :3] = np.diag([-1.0, -1.0, 1.0])
    return world_T_taker @ towards


def _require(report: Report) -> None:
    if not report.success:
        raise TaskError(f"brick {report.part_id}: {report.message}", report.outcome)
