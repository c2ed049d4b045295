# SPDX-License-Identifier: Apache-2.0
"""After a failed try: back to where another one can start, and putting back what broke loose."""

from __future__ import annotations

from bricksim_moveit_demo.connections import connections_to_others
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.hand import Hand
from bricksim_moveit_demo.inserting import InsertionTask, own_candidates, release
from bricksim_moveit_demo.placing import put_down, stands
from bricksim_moveit_demo.removing import pull_free, pull_off, try_removal
from bricksim_moveit_demo.reports import Stage


def recover(hand: Hand, job: InsertionTask) -> None:
    """Brings arm and brick back to where another try of an insertion can start.

    Raises:
        TaskError: That failed, too.
    """
    hand.enter(Stage.RECOVERING)
    motion, world, wanted = hand.motion, hand.world, job.wanted
    motion.settle_motion()
    if wanted.is_met(world.graph):
        if motion.held is not None and job.release:
            release(hand)
        return
    if motion.held is None:
        hand.clear_off()
    elif job.goal.part in motion.carried():
        hand.back_off()
        if not hand.grip_is_good() or hand.attempt % 2 == 0:
            if stands(hand):
                put_down(hand)
            else:
                # It stays in the hand, and is pressed on as it is held now.
                hand.look_at_grip()
    else:
        # It is connected to something that the world holds.
        pull_free(hand, wanted.parts)
    graph = world.graph
    foreign = connections_to_others(graph, wanted.parts)
    if not foreign or wanted.is_met(graph):
        return
    if motion.held is not None:
        motion.controller.give_way(True)
        hand.clear_off()
    _take_off_again(hand, job, f"brick {job.goal.part} is connected as {foreign}")


def clear_hand(hand: Hand, part_id: int) -> None:
    """After a failed removal: puts down what is held, else opens and moves away."""
    hand.enter(Stage.RECOVERING)
    hand.motion.settle_motion()
    if part_id in hand.motion.carried():
        put_down(hand)
    else:
        hand.clear_off()


def _take_off_again(hand: Hand, job: InsertionTask, what: str) -> None:
    """Takes a brick, or what hangs together, off a wrong seat.

    Raises:
        TaskError: It stays there.
    """
    part, parts = job.goal.part, job.wanted.parts
    try:
        if len(parts) > 1:
            options = [o for o in own_candidates(hand, part) if o[0] in parts]
            pull_off(hand, parts, options)
        else:
            try_removal(hand, part, "twist")
    except TaskError as error:
        if error.outcome is Outcome.CANCELED:
            raise
        hand.clear_off()
        raise TaskError(
            f"{what} and does not come off: {error}", Outcome.WRONG_CONNECTION
        ) from error
