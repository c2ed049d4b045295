# SPDX-License-Identifier: Apache-2.0
"""A brick structure as files hold it: a topology and where its components stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bricksim_core.errors import UnknownIdError
from bricksim_core.spatial import Array
from bricksim_core.topology.graph import BrickTopologyGraph


@dataclass(frozen=True)
class PoseHint:
    """Pose of one part as a topology file states it; it places the part's whole component.

    Attributes:
        part: Part id.
        position: Origin of the part frame in the world [m].
        quaternion: Rotation of the part frame, xyzw.
    """

    part: int
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]


@dataclass
class Structure:
    """A topology with the poses of its components.

    Attributes:
        graph: Parts and connections.
        component_poses: (4, 4) world_T_component [m] of every component, by component id.
        fixed: Ids of parts that the world holds (a base plate on the table).
        name: What to call it: the file's stem.
        origins: Where each part stands in its file ("line 12", "parts[3]"), by part id.
        skipped: What a reader left out, one line each.
        ground: Height of the ground in the world [m] where the file's format defines it; None: the
            lowest point of the parts is on the ground.
        pose_hints: Poses by which the file placed the components, at most one for each, in the
            file's order; None if it was no topology file. They say which part a writer names, the
            poses that hold are ``component_poses``.
        file: The file that it was read from, as it was given; empty if there is none.
    """

    graph: BrickTopologyGraph
    component_poses: dict[int, Array]
    fixed: frozenset[int] = frozenset()
    name: str = "structure"
    origins: dict[int, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    ground: float | None = None
    pose_hints: tuple[PoseHint, ...] | None = None
    file: str = ""

    @property
    def label(self) -> str:
        """What errors call it: its file, or its name if it has none."""
        return self.file or self.name

    def check_part(self, part_id: int) -> None:
        """Refuses a part id, given from outside, that the structure does not have.

        Raises:
            UnknownIdError: Names the structure, the id and the ids that there are.
        """
        if part_id not in self.graph:
            ids = self.graph.part_ids
            known = f"one of {min(ids)} to {max(ids)}" if ids else "a structure with parts"
            raise UnknownIdError(
                f"{self.label}: part id {part_id} does not exist, expected {known}"
            )

    def without(self, part_ids: Iterable[int]) -> Structure:
        """A copy that lacks some parts; what is left stays where it is.

        Raises:
            UnknownIdError: A part does not exist.
        """
        graph = self.graph.copy()
        poses = dict(self.component_poses)
        removed = set(part_ids)
        for part_id in removed:
            for origin, pieces in graph.remove_part(part_id).pieces.items():
                pose = poses.pop(origin)
                poses.update(dict.fromkeys(pieces, pose))
        return replace(
            self,
            graph=graph,
            component_poses=poses,
            fixed=self.fixed - removed,
            origins={p: o for p, o in self.origins.items() if p not in removed},
        )

    def part_poses(self) -> dict[int, Array]:
        """(4, 4) world_T_part [m] of every part, by part id."""
        poses = {}
        for component_id, world_T_component in self.component_poses.items():
            layout = self.graph.layout(component_id)
            world = world_T_component @ layout.component_T_parts
            poses.update(zip(layout.part_ids.tolist(), world, strict=True))
        return poses
