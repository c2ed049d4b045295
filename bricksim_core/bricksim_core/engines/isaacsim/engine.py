# SPDX-License-Identifier: Apache-2.0
"""The engine protocol on Isaac Sim.

The stage is the application's; bricks, welds and filters are USD prims that `StageAuthor` writes at
run time. Physics is stepped by the SimulationManager on the CPU; the application itself is updated
(window, action graphs) without stepping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import carb
import carb.settings
import numpy as np
from isaacsim import SimulationApp
from isaacsim.core.experimental.prims import RigidPrim
from isaacsim.core.experimental.utils.stage import create_new_stage
from isaacsim.core.rendering_manager import RenderingManager
from isaacsim.core.simulation_manager import SimulationManager
from numpy.typing import NDArray
from omni.physx import get_physx_scene_query_interface, get_physx_simulation_interface
from scipy.spatial.transform import Rotation

from bricksim_core.engines.boxes import Boxes
from bricksim_core.engines.isaacsim import kit, ros
from bricksim_core.engines.isaacsim.contacts import read_contacts
from bricksim_core.engines.isaacsim.launch import IsaacOptions
from bricksim_core.engines.isaacsim.robots import Robot
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.engines.protocol import Contacts, RobotSpec
from bricksim_core.engines.usd import names
from bricksim_core.engines.usd.author import StageAuthor
from bricksim_core.engines.welded import Body, Edits
from bricksim_core.engines.welded_engine import OVERLAP_TOLERANCE, WeldedEngine
from bricksim_core.errors import EngineError
from bricksim_core.spatial import Array, quaternion_of, transform


class IsaacEngine(WeldedEngine):
    """Isaac Sim; `start` makes one.

    Args:
        app: The running application.
        settings: Numbers of the scene.
        options: How to run the application.

    Raises:
        EngineError: Something of Isaac Sim cannot be enabled.
    """

    def __init__(self, app: SimulationApp, settings: PhysxSettings, options: IsaacOptions) -> None:
        super().__init__(replace(settings, sleeping=False))
        self.app = app
        self.options = options
        self._frame = 0
        self._view: RigidPrim | None = None
        self._viewed: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._rows: list[int] = []
        create_new_stage()
        # What hears of a new stage forgets its physics scenes: now, not at the first update later.
        app.update()
        self.author = StageAuthor(kit.current_stage(), self.settings)
        self.author.scene()
        # The step is on our scene; given here, it would be cut to 1/int(1/dt).
        SimulationManager.setup_simulation(device="cpu")
        # The timeline runs for the action graphs; physics takes no step by itself.
        carb.settings.get_settings().set_bool("/app/player/playSimulations", False)
        kit.timeline().play()
        kit.timeline().commit()
        # Two warm-up steps, here on an empty scene.
        SimulationManager.initialize_physics()
        ros.enable(options)

    def carry_out(self, edits: Edits) -> None:
        """Makes PhysX's scene what the edits say."""
        stage, physics = self.author.stage, get_physx_simulation_interface()
        for pair in edits.unwelded:
            stage.RemovePrim(names.weld(pair))
        for part_id in edits.deleted:
            stage.RemovePrim(names.brick(part_id))
        for body in edits.created:
            self.author.brick(body)
        for part_id, fixed in edits.held.items():
            self.author.hold(part_id, fixed)
        physics.flush_changes()
        self.author.filters(edits.filters)
        physics.flush_changes()
        part_ids = self.scene.groups.part_ids
        if edits.created or edits.deleted:
            self._look_at(part_ids)
        # Joins and breaks change the scene's order; the view keeps the one that it was made with.
        self._rows = self._rows_of(part_ids)
        self._move([*edits.created, *edits.moved])
        # Welds come last, when the bodies are where the welds want them.
        for weld in edits.welded:
            self.author.weld(weld)
        physics.flush_changes()

    def part_motion(self) -> tuple[Array, Array]:
        """Motions of the bodies themselves; see `WeldedEngine.part_motion`."""
        if self._view is None:
            return np.zeros((0, 4, 4)), np.zeros((0, 6))
        positions, orientations = (a.numpy().astype(float) for a in self._view.get_world_poses())
        linear, angular = (a.numpy().astype(float) for a in self._view.get_velocities())
        poses = transform(positions, np.roll(orientations, -1, axis=1))
        return poses[self._rows], np.concatenate([linear, angular], axis=1)[self._rows]

    def place(self, poses: Array, twists: Array) -> None:
        """Puts all bodies; see `WeldedEngine.place`."""
        part_ids = self.scene.groups.part_ids
        for fixed in (True, False):
            chosen = self.part_fixed == fixed
            self._put(part_ids[chosen], poses[chosen], twists[chosen], fixed)

    def push(self, part_ids: Sequence[int], wrenches: Array, points: Array) -> None:
        """Applies forces and torques, next step only."""
        if self._view is not None:
            self._view.apply_forces_and_torques_at_pos(
                wrenches[:, :3],
                wrenches[:, 3:],
                positions=points,
                indices=self._rows_of(part_ids),
                local_frame=False,
            )

    def advance(self) -> None:
        """Advances PhysX by one time step; the application every few of them.

        Raises:
            EngineError: Somebody has stopped Isaac Sim's timeline.
        """
        if SimulationManager.get_physics_simulation_view() is None:
            raise EngineError(
                "Isaac Sim's timeline was stopped, which takes its scene of bricks away: start the"
                " engine anew, and pause rather than stop"
            )
        self._frame += 1
        needed = not self.options.headless or self.options.ros_bridge or self.options.sim_control
        due = needed and self._frame % self.options.frame_steps == 0
        # Where Fabric is on, window and transforms show what was written to it last, and PhysX does
        # not write by itself while the application does not step it.
        SimulationManager.step(steps=1, update_fabric=due and SimulationManager.is_fabric_enabled())
        if due:
            RenderingManager.render()

    def read_contacts(self) -> Contacts:
        """Contacts of the last step."""
        return read_contacts(self.colliders)

    def path_of(self, handle: int) -> str:
        """Path of a collider that a contact names by number."""
        return kit.path_of(handle)

    def hits_robot(self, boxes: Boxes) -> bool:
        """Whether one of the boxes overlaps a robot."""
        query = get_physx_scene_query_interface()
        found: list[str] = []

        def report(hit) -> bool:
            found.append(hit.collision)
            return True

        rotations = Rotation.from_matrix(boxes.axes).as_quat()
        for centre, halves, rotation in zip(boxes.centres, boxes.halves, rotations, strict=True):
            query.overlap_box(
                carb.Float3(*(halves - 0.5 * OVERLAP_TOLERANCE).tolist()),
                carb.Float3(*centre.tolist()),
                carb.Float4(*rotation.tolist()),
                report,
                False,
            )
        return any(path.startswith(f"{names.ROBOTS}/") for path in found)

    def make_robot(self, robot: RobotSpec) -> Robot:
        """Adds one of Isaac Sim's robots to the scene."""
        made = Robot(self.author, robot, self.options)
        if self.options.ros_bridge:
            ros.connect_robot(self.options, robot.name, made.root)
        return made

    def restart(self) -> None:
        """Takes all bodies out."""
        self.update(self.scene.component_ids, [], [])
        self.clear()

    def close(self) -> None:
        """Ends the application."""
        kit.timeline().stop()
        self.app.close()

    def _look_at(self, part_ids: NDArray[np.int64]) -> None:
        """Makes the view of all bricks.

        Raises:
            EngineError: PhysX does not have them; reads would come from USD, which stands still.
        """
        self._viewed = part_ids.copy()
        paths = [names.brick(part_id) for part_id in part_ids.tolist()]
        self._view = RigidPrim(paths, resolve_paths=False) if paths else None
        if self._view is not None and not self._view.is_physics_tensor_entity_valid():
            raise EngineError(f"Isaac Sim has no physics view of its {len(paths)} bricks")

    def _move(self, bodies: Sequence[Body]) -> None:
        for held in (True, False):
            chosen = [body for body in bodies if body.fixed == held]
            poses = np.array([body.world_T_part for body in chosen])
            twists = np.array([body.twist for body in chosen])
            self._put([body.part_id for body in chosen], poses, twists, held)

    def _put(
        self, part_ids: Sequence[int] | NDArray[np.int64], poses: Array, twists: Array, held: bool
    ) -> None:
        """Sets poses and, of free bricks, twists."""
        if not len(part_ids) or self._view is None:
            return
        rows = self._rows_of(part_ids)
        orientations = np.roll(quaternion_of(poses), 1, axis=1)
        self._view.set_world_poses(poses[:, :3, 3], orientations, indices=rows)
        if not held:
            self._view.set_velocities(twists[:, :3], twists[:, 3:], indices=rows)

    def _rows_of(self, part_ids: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """Rows of the view."""
        order = np.argsort(self._viewed)
        return order[np.searchsorted(self._viewed, part_ids, sorter=order)].tolist()
