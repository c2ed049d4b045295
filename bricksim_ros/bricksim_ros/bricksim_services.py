# SPDX-License-Identifier: Apache-2.0
"""BrickSim's own services: structures, connections, analysis, export."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from rclpy.lifecycle import LifecycleNode

from bricksim_core.errors import BrickSimError
from bricksim_core.formats import (
    Format,
    check_supported,
    format_structure,
    parse_structure,
    read_structure,
    write_structure,
)
from bricksim_core.mechanics.analysis import Analysis, analyze
from bricksim_core.topology import Structure
from bricksim_msgs import srv
from bricksim_ros.frames import Frames
from bricksim_ros.running import unexpected
from bricksim_ros.scene import resolve_uri
from bricksim_ros.server import Server
from bricksim_ros.world import World

AT_REST = 0.02
"""Speed [m/s] of what counts as standing: a step of gravity is 0.16 m/s, resting contacts 1e-4."""

MAX_REASONS = 10
"""As many components of an analysis tell why they fail; of the others only the number is told."""

MAX_TEXT = 64 * 1024 * 1024
"""Longest structure text [bytes] that a service takes."""


class BricksimServices(Server):
    """Serves ``bricksim/*`` for a `World`.

    Args:
        node: Node that owns the services; names are relative to it.
        world: What they act on.
    """

    def __init__(self, node: LifecycleNode, world: World) -> None:
        self._node = node
        self._world = world
        self._frames = Frames(node, world)
        handlers: dict[str, tuple[type, Callable[[Any, Any], None]]] = {
            "spawn_structure": (srv.SpawnStructure, self._spawn),
            "export_topology": (srv.ExportTopology, self._export),
            "analyze_stability": (srv.AnalyzeStability, self._analyze),
            "connect": (srv.Connect, self._connect),
            "disconnect": (srv.Disconnect, self._disconnect),
            "hold_fixed": (srv.HoldFixed, self._hold),
        }
        self._services = [
            node.create_service(kind, f"bricksim/{name}", self._guarded(handler))
            for name, (kind, handler) in handlers.items()
        ]

    def destroy(self) -> None:
        """Takes the services away."""
        for service in self._services:
            self._node.destroy_service(service)

    def _guarded(self, handler: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
        """A handler whose errors become a text; the node goes on whatever was asked."""

        def serve(request: Any, response: Any) -> Any:
            try:
                handler(request, response)
                response.success = True
            except (BrickSimError, ValueError, OSError) as error:
                response = type(response)(success=False, message=str(error))
            except Exception as error:
                response = type(response)(success=False, message=unexpected(self._node, error))
            return response

        return serve

    def _spawn(self, request: srv.SpawnStructure.Request, response: Any) -> None:
        if bool(request.text) == bool(request.uri):
            raise BrickSimError("exactly one of text and uri is expected")
        pose = self._frames.state(request.pose.header.frame_id, request.pose.pose).world_T_entity
        structure = _structure(request.text, request.uri, request.format, request.name)
        entity = self._world.spawn("", structure, pose, hold=request.fixed or None)
        self._node.publish_now()  # type: ignore[attr-defined]
        own_ids = list(entity.part_ids)
        graph = self._world.simulator.graph
        response.file_part_ids = own_ids
        response.part_ids = [entity.part_ids[i] for i in own_ids]
        response.connection_ids = sorted(
            {c.id for p in response.part_ids for c in graph.connections_of(p)}
        )
        response.skipped = list(structure.skipped)

    def _export(self, request: srv.ExportTopology.Request, response: Any) -> None:
        structure = self._scene(request.component_ids)
        kind = _format(request.format) or Format.TOPOLOGY
        response.text = format_structure(structure, kind)
        if request.path:
            write_structure(structure, resolve_uri(request.path), format=kind)

    def _analyze(self, request: srv.AnalyzeStability.Request, response: Any) -> None:
        simulator = self._world.simulator
        if request.text:
            structure = _structure(request.text, "", request.format, "text")
            check_supported(structure)
        else:
            structure = self._scene(request.component_ids)
        g = request.gravity
        gravity = np.array([g.x, g.y, g.z])
        if not np.all(np.isfinite(gravity)):
            raise BrickSimError(f"gravity is {gravity.tolist()}, expected finite numbers")
        if not gravity.any():
            gravity = simulator.engine.gravity
        loads = np.array(request.load_wrenches, dtype=float)
        ids = list(request.load_part_ids)
        if len(loads) != 6 * len(ids) or not np.all(np.isfinite(loads)):
            raise BrickSimError(
                f"load_wrenches holds {len(loads)} numbers for {len(ids)} parts, expected"
                " 6 finite numbers each"
            )
        wrenches: dict[int, np.ndarray] = {}
        for part_id, wrench in zip(ids, loads.reshape(-1, 6), strict=True):
            structure.graph.part(part_id)
            wrenches[part_id] = wrenches.get(part_id, np.zeros(6)) + wrench
        analysis = analyze(structure, gravity=gravity, loads=wrenches, model=simulator.config.model)
        fill_analysis(response, analysis, () if request.text else self._moving(structure))

    def _moving(self, structure: Structure) -> list[str]:
        """What of the scene is not at rest, as the analysis takes it to be; one line each."""
        lines = []
        for component in structure.graph.component_ids:
            parts = structure.graph.component_parts(component)
            speed = float(np.linalg.norm(self._world.simulator.part_twist(parts[0])[:3]))
            if speed > AT_REST:
                lines.append(
                    f"part {parts[0]} and the {len(parts) - 1} connected to it: moving at"
                    f" {speed:.3g} m/s, analysed as if standing"
                )
        return lines

    def _scene(self, component_ids: Iterable[int]) -> Structure:
        """The scene, or some of its components, as a structure."""
        structure = self._world.simulator.structure()
        wanted = set(component_ids)
        for component_id in wanted:
            structure.graph.component_parts(component_id)
        others = set(structure.graph.component_ids) - wanted if wanted else ()
        return structure.without(p for c in others for p in structure.graph.component_parts(c))

    def _connect(self, request: srv.Connect.Request, response: Any) -> None:
        connections = self._world.simulator.connect(
            request.stud_part,
            request.hole_part,
            (int(request.offset[0]), int(request.offset[1])),
            request.yaw,
        )
        self._node.publish_now()  # type: ignore[attr-defined]
        response.connection_ids = [c.id for c in connections]

    def _disconnect(self, request: srv.Disconnect.Request, response: Any) -> None:
        graph = self._world.simulator.graph
        parts = {
            part
            for i in request.connection_ids
            for part in (graph.connection(i).stud_part, graph.connection(i).hole_part)
        }
        self._world.simulator.disconnect(request.connection_ids)
        self._node.publish_now()  # type: ignore[attr-defined]
        response.component_ids = sorted({graph.component_of(p) for p in parts})

    def _hold(self, request: srv.HoldFixed.Request, response: Any) -> None:
        for part_id in request.part_ids:
            self._world.simulator.graph.part(part_id)
        for part_id in request.part_ids:
            self._world.simulator.hold_fixed(part_id, request.fixed)
        self._node.publish_now()  # type: ignore[attr-defined]


def fill_analysis(
    response: srv.AnalyzeStability.Response, analysis: Analysis, notes: Iterable[str] = ()
) -> None:
    """Writes an analysis into a response; ``notes`` join the reasons in its text."""
    codes = srv.AnalyzeStability.Response
    response.verdict = codes.STABLE if analysis.stable else codes.UNSTABLE
    if analysis.marginal:
        response.verdict = codes.MARGINAL
    if analysis.unknown:
        response.verdict = codes.UNKNOWN
    ids = sorted(analysis.utilization)
    worst = analysis.worst_connection
    reasons = [*analysis.reasons, *notes]
    if len(reasons) > MAX_REASONS:
        reasons[MAX_REASONS:] = [f"and {len(reasons) - MAX_REASONS} more"]
    response.message = "; ".join(reasons)
    response.max_utilization = float(analysis.max_utilization)
    response.worst_connection = -1 if worst is None else worst
    response.safety_factor = float(analysis.safety_factor)
    response.connection_ids = ids
    response.utilization = [float(analysis.utilization[i]) for i in ids]
    response.solve_time = float(analysis.solve_time)


def _format(name: str) -> Format | None:
    if not name:
        return None
    try:
        return Format(name)
    except ValueError:
        known = ", ".join(str(f) for f in Format)
        raise BrickSimError(f"format is {name!r}, expected one of {known}") from None


def _structure(text: str, uri: str, format_name: str, name: str) -> Structure:
    if len(text) > MAX_TEXT:
        raise BrickSimError(f"text has {len(text)} characters, expected at most {MAX_TEXT}")
    kind = _format(format_name)
    if uri:
        return read_structure(resolve_uri(uri), format=kind)
    return parse_structure(text, name=name or "text", format=kind)
