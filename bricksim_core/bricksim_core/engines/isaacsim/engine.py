# SPDX-License-Identifier: Apache-2.0
"""The engine protocol on Isaac Sim.

The stage is the application's; bricks, welds and filters are USD prims that `StageAuthor` writes at
run time. Physics is stepped by the SimulationManager on the CPU; the application itself is updated
(window, action graphs) without stepping.
"""

from __future__ import annotations

from collections.abc import Sequence

import carb
import carb.settings
import numpy as np
from isaacsim import SimulationApp
from isaacsim.core.experimental.prims import RigidPrim
from isaacsim.core.experimental.utils.stage import create_new_stage
from isaacsim.core.rendering_manager import RenderingManager
from isaacsim.core.simulation_manager import SimulationManager
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
        super().__init__(settings)
        self.app = app
        self.options = options
        self._frame = 0
        self._view: RigidPrim | None = None
        create_new_stage()
        self.author = StageAuthor(kit.current_stage(), settings)
        self.author.scene()
        SimulationManager.setup_simulation(dt=settings.timestep, device="cpu")
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
        if edits.created or edits.deleted:
            paths = [names.brick(p) for p in self.scene.groups.part_ids.tolist()]
            self._view = RigidPrim(paths, resolve_paths=False) if paths else None
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
        return poses, np.concatenate([linear, angular], axis=1)

    def place(self, poses: Array, twists: Array) -> None:
        """Puts all bodies; see `WeldedEngine.place`."""
        for fixed in (True, False):
            rows = np.flatnonzero(self.part_fixed == fixed)
            self._put(rows.tolist(), poses[rows], twists[rows], fixed)

    def push(self, part_ids: Sequence[int], wrenches: Array, points: Array) -> None:
        """Applies forces and torques, next step only."""
        if self._view is not None:
            self._view.apply_forces_and_torques_at_pos(
                wrenches[:, :3],
                wrenches[:, 3:],
                positions=points,
                indices=self._rows(part_ids),
                local_frame=False,
            )

    def advance(self) -> None:
        """Advances PhysX by one time step; the application every few of them."""
        SimulationManager.step(steps=1)
        self._frame += 1
        needed = not self.options.headless or self.options.ros_bridge or self.options.sim_control
        if needed and self._frame % self.options.frame_steps == 0:
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

    def _move(self, bodies: Sequence[Body]) -> None:
        for held in (True, False):
            chosen = [body for body in bodies if body.fixed == held]
            rows = self._rows([body.part_id for body in chosen])
            poses = np.array([body.world_T_part for body in chosen])
            self._put(rows, poses, np.array([body.twist for body in chosen]), held)

    def _put(self, rows: list[int], poses: Array, twists: Array, held: bool) -> None:
        """Sets poses and, of free bricks, twists; by rows of the scene's groups."""
        if not rows or self._view is None:
            return
        orientations = np.roll(quaternion_of(poses), 1, axis=1)
        self._view.set_world_poses(poses[:, :3, 3], orientations, indices=rows)
        if not held:
            self._view.set_velocities(twists[:, :3], twists[:, 3:], indices=rows)

    def _rows(self, part_ids: Sequence[int]) -> list[int]:
        ids = self.scene.groups.part_ids
        rows = np.searchsorted(ids, part_ids, sorter=np.argsort(ids))
        if len(rows) and rows.max() >= len(ids):
            raise EngineError(f"parts {list(part_ids)} are not all in the scene")
        return np.argsort(ids)[rows].tolist()
