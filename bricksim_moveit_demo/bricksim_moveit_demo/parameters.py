# SPDX-License-Identifier: Apache-2.0
"""Every number of picking and inserting, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from bricksim_moveit_demo.errors import TaskError


@dataclass(frozen=True)
class TaskParameters:
    """How bricks are picked, inserted and taken off. All values are positive.

    Attributes:
        grip_force: Force of each finger on a brick [N]; the hand can do 70.
        align_force: Force with which the fingers first close on a brick, until it is square between
            them [N].
        grip_depths: How far the fingertips reach below a brick's top, tried in this order [m].
        align_speed: Speed of each finger on its way to a brick that others are joined to [m/s]: its
            drive is a spring of 4 kN/m, so the force then rises by 20 N/s.
        close_speed: The same for single bricks [m/s].
        open_clearance: Gap between an opened finger and the brick's side before a grasp [m].
        release_clearances: The same after letting go, in order of preference [m].
        neighbor_clearance: Least gap of fingers and hand to other bricks [m].
        table_clearance: Least gap of the fingertips to the table [m].
        approach_height: Height above a grasp or a seat where straight motions begin [m].
        lift_height: How high a brick is lifted after a grasp [m].
        approach_speed: Speed of the last straight piece before a grasp [m/s].
        descend_speed: Speed of the descent until contact [m/s].
        edge_speed: Greatest speed where the brick may meet edges of its neighbours [m/s]; less
            where only a gentle press is borne.
        contact_speed: Greatest speed close above the expected contact [m/s]; less where only a
            gentle press is borne.
        contact_zone: Height above the expected contact where that begins [m].
        side_clearance: How far from a neighbour on one side only a brick comes down before it is
            moved up to it [m].
        contact_force: Force that counts as contact [N]; half the greatest one if that is less.
        press_force: Greatest pressing force [N]; real bricks need 15 to 18.
        least_press_force: Press [N] that what stands there must bear, or nothing is pressed on;
            twice what connects bricks in the simulator (1 N).
        press_ramp: How fast the pressing force rises [N/s].
        press_speed: Greatest speed while pressing [m/s].
        braced_speed: Speed close above the contact while another hand bears the press [m/s]: that
            hand follows the force with a lag of a sixth of a second.
        braced_contact: Force that counts as contact then [N].
        braced_ramp: How fast the pressing force rises then [N/s].
        rock_tilt: Tilt with which a press is repeated towards each of several joints that share it,
            before any search [rad].
        rock_speed: Speed of tilting there [rad/s].
        search_radius: Radius of the spiral search [m].
        search_pitch: Distance of its turns [m].
        search_speed: Speed along it [m/s].
        search_force: Pressing force during the search [N].
        search_yaw: Turn to either side with which the spiral is repeated [rad].
        search_turn_speed: Speed of turning there [rad/s].
        settle_time: How long the arm rests before a force is tared or a brick checked [s].
        collision_force: Force on a motion through free space that counts as a collision [N].
        slip_position: Greatest shift of a held brick in the gripper [m].
        slip_rotation: Greatest rotation of a held brick in the gripper [rad].
        width_tolerance: Greatest difference of gripper width and brick width when gripped [m].
        missing_distance: A brick farther than this from where it was in the gripper is lost [m].
        pull_force: Greatest force when taking a brick off [N].
        pull_grip_force: Force of each finger meanwhile [N].
        pull_speed: Speed of pulling [m/s].
        twist_angle: Tilt when twisting a brick off [rad].
        tries: How often a brick is tried in all.
        timeout: Greatest time for one brick [s].
    """

    grip_force: float = 20.0
    align_force: float = 1.0
    align_speed: float = 0.005
    close_speed: float = 0.02
    grip_depths: tuple[float, ...] = (0.007, 0.005, 0.0035, 0.0022)
    open_clearance: float = 0.004
    release_clearances: tuple[float, ...] = (0.0025, 0.0003)
    neighbor_clearance: float = 0.0005
    table_clearance: float = 0.001
    approach_height: float = 0.03
    lift_height: float = 0.08
    approach_speed: float = 0.08
    descend_speed: float = 0.02
    edge_speed: float = 0.01
    contact_speed: float = 0.002
    contact_zone: float = 0.0025
    side_clearance: float = 0.0015
    contact_force: float = 1.5
    press_force: float = 25.0
    least_press_force: float = 2.0
    press_ramp: float = 15.0
    press_speed: float = 0.005
    braced_speed: float = 0.0005
    braced_contact: float = 0.3
    braced_ramp: float = 1.0
    rock_tilt: float = math.radians(1.0)
    rock_speed: float = 0.1
    search_radius: float = 0.003
    search_pitch: float = 0.001
    search_speed: float = 0.006
    search_force: float = 4.0
    search_yaw: float = math.radians(3.0)
    search_turn_speed: float = 0.2
    settle_time: float = 0.25
    collision_force: float = 15.0
    slip_position: float = 0.003
    slip_rotation: float = math.radians(8.0)
    width_tolerance: float = 0.0015
    missing_distance: float = 0.012
    pull_force: float = 90.0
    pull_grip_force: float = 40.0
    pull_speed: float = 0.01
    twist_angle: float = math.radians(16.0)
    tries: int = 4
    timeout: float = 180.0

    @property
    def braced(self) -> TaskParameters:
        """The numbers for a press that another hand bears."""
        return replace(
            self,
            edge_speed=min(self.edge_speed, self.contact_speed),
            contact_speed=self.braced_speed,
            press_speed=self.braced_speed,
            contact_force=self.braced_contact,
            press_ramp=self.braced_ramp,
        )

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            values = value if isinstance(value, tuple) else (value,)
            if not values or not all(math.isfinite(v) and v > 0.0 for v in values):
                raise TaskError(f"parameter {item.name} is {value}, expected positive numbers")
        if self.press_force < self.least_press_force:
            raise TaskError(
                f"parameter press_force is {self.press_force}, expected at least"
                f" least_press_force, {self.least_press_force}"
            )
