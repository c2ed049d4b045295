# SPDX-License-Identifier: Apache-2.0
"""Numbers of a PhysX scene, for every engine that runs on PhysX."""

from __future__ import annotations

from dataclasses import dataclass

from bricksim_core.engines.protocol import require_world
from bricksim_core.errors import EngineError
from bricksim_core.values import as_number


@dataclass(frozen=True)
class PhysxSettings:
    """How PhysX simulates bricks; every default with its reason.

    Attributes:
        timestep: Length of one step [s].
        gravity: (3,) gravity [m/s^2], world.
        ground: Height of an infinite ground plane [m], None for none.
        position_iterations: Solver iterations per step for bricks. 32 keep a ten-brick cantilever
            within 0.1 mm.
        robot_iterations: The same for robots and all that touches them. A brick of 2 g between
            fingers of 0.2 kg that press with 20 N takes many: with 32 the fingers sink into it by
            1 mm/s, with 128 they stand still.
        velocity_iterations: Velocity iterations per step. One is what the TGS solver wants.
        friction: Friction of bricks, ground and links [-]; of a pair the larger counts.
        pad_friction: Friction of rubber finger pads [-].
        contact_offset: Distance at which contacts begin to be made [m]: a few times what a
            falling brick covers in a step would be more, but CCD is not needed at brick speeds
            and neighbours at 0.2 mm must not feel each other.
        depenetration_velocity: Greatest speed at which overlapping bodies are pushed apart [m/s].
        enhanced_determinism: Constraints are solved one by one, so that a component's motion does
            not depend on what else is in the scene. Off, they are solved four at a time: a step of
            50 or 200 welded bricks takes 0.55 to 0.75 or 0.4 of the time, the same run still
            repeats bit by bit, sag and drift are the same, but a brick of 2 g in a grip turns by
            0.4 rad/s instead of 0.05 and slips 60 um instead of 1. None: on in scenes with robots.
        sleeping: Components that rest sleep until something touches, pushes or leaves them
            (`engines/rest.py`): they cost nothing and are perfectly still. On ovphysx only.
        armature: Inertia of the motors of joints for which a robot names none [kg m^2 or kg].
    """

    timestep: float = 1.0 / 240.0
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ground: float | None = 0.0
    position_iterations: int = 32
    robot_iterations: int = 128
    velocity_iterations: int = 1
    friction: float = 0.5
    pad_friction: float = 2.0
    contact_offset: float = 0.0005
    depenetration_velocity: float = 1.0
    enhanced_determinism: bool | None = None
    sleeping: bool = True
    armature: float = 0.1

    def __post_init__(self) -> None:
        for name in ("timestep", "contact_offset", "depenetration_velocity"):
            as_number(getattr(self, name), name, 0.0, above=True, error=EngineError)
        require_world(self.gravity, self.ground, error=EngineError)
        for name in ("friction", "pad_friction", "armature", "velocity_iterations"):
            as_number(getattr(self, name), name, 0.0, error=EngineError)
        for name in ("position_iterations", "robot_iterations"):
            as_number(getattr(self, name), f"{name} (PhysX)", 1, 255, error=EngineError)
