# SPDX-License-Identifier: Apache-2.0
"""An arm lifts a brick from a pedestal, on any engine; truth: gravity, and that grips hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bricksim_core.engines import BodySpec, Engine
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, inverse, rotation_angle, transform
from bricksim_core.topology import BrickTopologyGraph
from bricksim_moveit_demo.description import ArmDescription, robot_spec

GRIP = 20.0
"""Force of each finger [N]."""


@dataclass(frozen=True)
class Lift:
    """What a lift brought about.

    Attributes:
        rise: How much higher the brick is at the end [m].
        slip: How far it moved in the hand during the lift [m].
        turn: How far it turned in the hand during the lift [rad].
        carried: Vertical force of the robot on the brick at the end over its weight.
        apart: Whether nothing but the robot touches it at the end.
        finger_speed: Greatest speed that a finger tells in the last 0.1 s [m/s].
        brick_speed: The same of the brick [m/s].
        brick_spin: Greatest angular velocity that the brick tells in that time [rad/s].
    """

    rise: float
    slip: float
    turn: float
    carried: float
    apart: bool
    finger_speed: float
    brick_speed: float
    brick_spin: float


def lift(engine: Engine) -> Lift:
    """The FR3, hand down at its ready pose, grips a 4x2 brick there and raises it."""
    arm = ArmDescription("fr3", "")
    engine.add_robot(robot_spec(arm))
    _run(engine, 0.1)
    hand = engine.link_pose("fr3", "fr3_hand_tcp")
    brick = _layout(BrickShape(4, 2), 0)
    height = hand[2, 3] - 0.0048
    stand = BrickShape(1, 1, int(height / 0.0032), has_studs=False)
    top = stand.size[2]
    x, y = hand[:2, 3]
    # Slightly turned, so that the pads have to straighten it.
    askew = transform([x, y, top + 2e-5], [0.0, 0.0, np.sin(0.015), np.cos(0.015)])
    engine.update(
        [],
        [
            _body(0, brick, askew @ transform([-0.016, -0.008, 0.0])),
            _body(1, _layout(stand, 1), transform([x - 0.004, y - 0.004, 0.0]), fixed=True),
        ],
    )
    _run(engine, 0.2)
    stiffness = robot_spec(arm).drives["fr3_finger_joint1"][0]
    closed = 0.0079 - GRIP / stiffness
    engine.set_joint_targets("fr3", dict.fromkeys(arm.fingers, closed))
    before = _run(engine, 1.0)
    grip = inverse(engine.link_pose("fr3", "fr3_hand_tcp")) @ before
    engine.set_joint_targets("fr3", {"fr3_joint4": -2.1, "fr3_joint2": -0.85})
    after = _run(engine, 1.0)
    held = inverse(engine.link_pose("fr3", "fr3_hand_tcp")) @ after
    change = inverse(grip) @ held
    force, touching, speed, twist = _at_the_end(engine, arm)
    return Lift(
        rise=float(after[2, 3] - before[2, 3]),
        slip=float(np.linalg.norm(change[:3, 3])),
        turn=float(rotation_angle(change[:3, :3])),
        carried=force / (brick.masses[0] * 9.81),
        apart=touching <= {"fr3/fr3_leftfinger", "fr3/fr3_rightfinger"},
        finger_speed=speed,
        brick_speed=float(np.linalg.norm(twist[:, :3], axis=1).max()),
        brick_spin=float(np.linalg.norm(twist[:, 3:], axis=1).max()),
    )


def _run(engine: Engine, seconds: float) -> Array:
    """Pose of component 0 (if there is one) after a time."""
    for _ in range(round(seconds / engine.timestep)):
        report = engine.step()
    return report.world_T_component[0] if len(report.component_ids) else np.eye(4)


def _at_the_end(engine: Engine, arm: ArmDescription) -> tuple[float, set[str], float, Array]:
    """Mean vertical force on the brick over 0.1 s [N], names of what touches it, the greatest speed
    that a finger tells [m/s], and (N, 6) the brick's twists."""
    total, names, speed, twists = 0.0, set(), 0.0, []
    steps = round(0.1 / engine.timestep)
    for _ in range(steps):
        report = engine.step()
        contacts = report.contacts
        twists.append(report.twist[0])
        rows = contacts.part_b == 0
        total += contacts.impulse[rows, 2].sum() / engine.timestep
        rows &= contacts.normal_impulse > 0.0
        names |= {contacts.names[i] if i >= 0 else "brick" for i in contacts.other[rows]}
        state = engine.joint_state("fr3")
        fingers = np.isin(state.names, arm.fingers)
        speed = max(speed, float(np.abs(state.velocities[fingers]).max()))
    return total / steps, names, speed, np.array(twists)


def _layout(shape: BrickShape, part_id: int):
    graph = BrickTopologyGraph()
    graph.add_part(shape, part_id=part_id)
    return graph.layout(graph.component_of(part_id))


def _body(component: int, layout, pose: Array, fixed: bool = False) -> BodySpec:
    return BodySpec(component, layout, pose, np.zeros(6), fixed, ((200, 30, 30),))
