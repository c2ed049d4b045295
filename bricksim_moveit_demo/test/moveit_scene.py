# SPDX-License-Identifier: Apache-2.0
"""What is in MoveIt's planning scene after the differences that it was sent, by MoveIt's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bricksim_core.spatial import transform
from bricksim_moveit_demo.description import ArmDescription
from bricksim_moveit_demo.planning.moveit_messages import scene_changes
from bricksim_moveit_demo.planning.scene import TABLE, PlanningScene, brick_box, brick_name
from bricksim_moveit_demo.world import SimulatedWorld

ADD = b"\x00"


class FollowedScene:
    """Compares the planning scene with the topology, also as MoveIt gets it: step by step.

    A difference's robot state comes before its world. What is attached leaves the world; what is
    let go is in the world, where it was.

    Attributes:
        held: What the arms held, in order.
    """

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._arms = [controller.arm for controller in world.arms.values()]
        self._known: PlanningScene | None = None
        self._objects: dict[str, Any] = {}
        self._attached: dict[str, str] = {}
        self.held: list[dict[str, int]] = []

    def __call__(self, result: Any) -> None:
        """After a step: looks after each event and change of what is held, and now and then."""
        changed = not self.held or self.held[-1] != self._world.held
        if not (changed or result.events or result.step % 20 == 0):
            return
        if changed:
            self.held.append(dict(self._world.held))
        scene = self._world.planning_scene()
        self._apply(scene_changes(self._known, scene, self._arms), self._arms)
        self._known = scene
        self._require_topology()

    def _apply(self, message: Mapping[str, Any], arms: Sequence[ArmDescription]) -> None:
        hands = {arm.tool: set(arm.hand_links) for arm in arms}
        for attached in message["robot_state"]["attached_collision_objects"]:
            name = attached["object"]["id"]
            if attached["object"]["operation"] == ADD:
                assert set(attached["touch_links"]) == hands[attached["link_name"]]
                self._objects.pop(name, None)
                self._attached[name] = attached["link_name"]
            else:
                assert self._attached.pop(name) == attached["link_name"]
                self._objects[name] = None
        for item in message["world"]["collision_objects"]:
            if item["operation"] == ADD:
                self._objects[item["id"]] = item["pose"]
            else:
                del self._objects[item["id"]]

    def _require_topology(self) -> None:
        world, graph = self._world, self._world.graph
        carried: dict[str, str] = {}
        for arm in self._arms:
            if (part := world.held.get(arm.name)) is not None and not world.is_fixed(part):
                group = graph.component_parts(graph.component_of(part))
                carried |= {brick_name(p): arm.tool for p in group}
        assert self._attached == carried
        free = {brick_name(p): p for p in graph.part_ids if brick_name(p) not in carried}
        assert self._objects.keys() == free.keys() | {TABLE}
        for name, part in free.items():
            told = self._objects[name]
            position = [told["position"][axis] for axis in "xyz"]
            rotation = [told["orientation"][axis] for axis in ("x", "y", "z", "w")]
            box = brick_box(graph.part(part).shape, world.part_pose(part))
            np.testing.assert_allclose(transform(position, rotation), box.pose, atol=1e-6)
