# SPDX-License-Identifier: Apache-2.0
"""The parts of Omniverse Kit that come without type stubs, behind typed functions.

Everything else that this package uses of Isaac Sim is checked against its sources
(scripts/check_isaacsim.py). Importable only while the application runs.
"""

from __future__ import annotations

from typing import Protocol, cast

import omni.graph.core as graph_core  # type: ignore[import-not-found]
import omni.timeline  # type: ignore[import-not-found]
import omni.usd  # type: ignore[import-not-found]
from pxr import PhysicsSchemaTools, Sdf, Usd  # type: ignore[attr-defined]

from bricksim_core.engines.isaacsim.graphs import Graph


class Timeline(Protocol):
    """omni.timeline.ITimeline, as far as it is used."""

    def play(self) -> None: ...
    def stop(self) -> None: ...
    def is_playing(self) -> bool: ...
    def commit(self) -> None: ...


def current_stage() -> Usd.Stage:
    """The stage that the application has open."""
    return cast(Usd.Stage, omni.usd.get_context().get_stage())


def timeline() -> Timeline:
    """The application's timeline."""
    return cast(Timeline, omni.timeline.get_timeline_interface())


def path_of(identity: int) -> str:
    """Path of a prim that PhysX names by number."""
    return str(PhysicsSchemaTools.intToSdfPath(identity))


def build_graph(graph: Graph) -> None:
    """Makes an action graph on the stage."""
    keys = graph_core.Controller.Keys
    values = [
        (name, [Sdf.Path(path) for path in value] if isinstance(value, tuple) else value)
        for name, value in graph.values.items()
    ]
    graph_core.Controller.edit(
        {"graph_path": graph.path, "evaluator_name": "execution"},
        {
            keys.CREATE_NODES: list(graph.nodes.items()),
            keys.SET_VALUES: values,
            keys.CONNECT: list(graph.connections),
        },
    )


def compute_counts(graph: Graph) -> dict[str, int]:
    """How often each node of an action graph has been computed, by its name."""
    nodes = {name: graph_core.Controller.node(f"{graph.path}/{name}") for name in graph.nodes}
    return {name: int(node.get_compute_count()) for name, node in nodes.items()}
